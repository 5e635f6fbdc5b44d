//! A plan in a better order of the operators.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::choices::{MAX_SETS_OF, MAX_SIZE};
use crate::{
    Limits, OpSequence, Plan, PlanError, Planner,
    lower::{Placing, optional_ties},
    order::{ReorderOptions, Reordered, peak, reorder},
    planner::Replanned,
};

/// The nodes of a brief search for an order, and for a plan in the best of them.
const PROBE_NODES: u64 = 10_000;

/// The most orders of a small sequence that are tried beside the best one.
const MAX_NEARBY: usize = 512;

/// The most operators of a sequence that is searched briefly.
const MAX_PROBED: usize = 2000;

impl Planner<'_> {
    /// Searches for the order of the operators that needs the fewest bytes, without a plan of it. The search uses one
    /// thread, however many are allowed. Once cancelled, it soon returns its best order so far. The progress is in
    /// bytes at the peak.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, Planner, order::default_limits};
    ///
    /// // Two branches, listed side by side.
    /// let mut sequence = OpSequence::builder();
    /// for branch in ["a", "b"] {
    ///     sequence.operator(Operator::new("wide").output(Output::new(format!("{branch}1"), 1000)));
    /// }
    /// for branch in ["a", "b"] {
    ///     sequence.operator(
    ///         Operator::new("narrow")
    ///             .inputs([format!("{branch}1")])
    ///             .output(Output::new(format!("{branch}2"), 10)),
    ///     );
    /// }
    /// let join = Operator::new("join").inputs(["a2", "b2"]).output(Output::new("y", 10));
    /// let sequence = sequence.operator(join).output("y").build()?;
    ///
    /// let found = Planner::new().reorder(&sequence, default_limits())?;
    /// assert_eq!((found.given_peak, found.peak), (2010, 1020));
    /// assert_eq!(found.order, [0, 2, 1, 3, 4]);
    /// assert!(found.is_proven());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the sequence cannot be lowered, its operators run on several streams, the alignment is not a
    /// power of two, or the sum of the sizes exceeds 64 bits.
    pub fn reorder(&self, sequence: &OpSequence, limits: Limits) -> Result<Reordered, PlanError> {
        let flat = self.flatten(sequence)?.sequence;
        reorder(&flat, &self.orders(self.placing(), limits))
    }

    /// Plans a sequence in the order that needs the least memory, as far as the search finds one
    /// within `limits`. The pool is never larger than with the given order, which is kept unless
    /// another one makes the pool smaller.
    ///
    /// A time limit covers everything: at most a quarter is spent on the plan in the given order, another
    /// quarter is reserved for the plan in the new order, and the search uses the rest.
    ///
    /// ```
    /// use memplan::{Planner, networks, order::default_limits};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let found = Planner::new().plan_reordered(&sequence, default_limits())?;
    /// assert!(found.plan.pool_size() <= found.given.pool_size());
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), and if [`pools`](Self::pools) are given: orders are compared by the
    /// size of one pool.
    pub fn plan_reordered(
        &self,
        sequence: &OpSequence,
        limits: Limits,
    ) -> Result<Replanned<Reordered>, PlanError> {
        if !self.memories.pools.is_empty() {
            return Err(PlanError::OrderInPools);
        }
        let start = Instant::now();
        let left = |time: Duration| time.saturating_sub(start.elapsed());
        let given = self.within(limits.time.map(|time| time / 4)).plan(sequence)?;
        let took = start.elapsed();
        let search =
            Limits { time: limits.time.map(|time| left(time).saturating_sub(took)), ..limits };
        let options = self.orders(placing_of(&given), search);
        let flat = self.flatten(sequence)?.sequence;
        let reordered = reorder(&flat, &options)?;
        let planner = self.within(limits.time.map(left));
        let found = planner.plan_found(sequence, reordered, given)?;
        if limits.time.is_some() {
            Ok(found)
        } else {
            planner.with_nearby_orders(found, sequence, &flat)
        }
    }

    /// If the sequence is small, also tries orders near the best one: the best orders without one tie between two
    /// tensors, each searched briefly, and orders in which one operator has moved. An order that needs more bytes with
    /// all ties may need fewer without some of them, and the pool may be larger than the bytes alive.
    fn with_nearby_orders(
        &self,
        found: Replanned<Reordered>,
        given: &OpSequence,
        flat: &OpSequence,
    ) -> Result<Replanned<Reordered>, PlanError> {
        if flat.operators().len() > MAX_SIZE {
            return Ok(found);
        }
        let limits = Limits::default().nodes(PROBE_NODES);
        let options = self.orders(placing_of(&found.given), limits);
        let tried = HashSet::from([found.change.order.clone()]);
        let mut nearby = Nearby { planner: self, options, given, found, tried };
        let ties = optional_ties(flat, self.lowering);
        if ties.len() <= MAX_SETS_OF {
            for without in ties.chunks(1).chain([&ties[..]]) {
                if nearby.is_done() {
                    break;
                }
                if let Ok(reordered) = reorder(&flat.without(without), &nearby.options) {
                    nearby.offer(reordered.order)?;
                }
            }
        }
        while nearby.move_one()? {}
        Ok(nearby.found)
    }

    /// Searches briefly for an order of the operators that needs a smaller pool than `given`, a plan of the sequence,
    /// and returns the plan in that order. Takes a few hundredths of a second at most. `None` if no such order was
    /// found, or if the sequence runs on several streams or has more than 2000 operators.
    /// [`plan_reordered`](Self::plan_reordered) may find an even smaller pool.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, Planner};
    ///
    /// let mut sequence = OpSequence::builder();
    /// for (name, size) in [("a", 100), ("b", 100)] {
    ///     sequence.operator(Operator::new(name).output(Output::new(name, size)));
    /// }
    /// for (name, input) in [("c", "a"), ("d", "b")] {
    ///     sequence.operator(Operator::new(name).inputs([input]).output(Output::new(name, 10)));
    /// }
    /// let sequence = sequence.output("c").output("d").build()?;
    /// let planner = Planner::new();
    /// let plan = planner.plan(&sequence)?;
    /// let found = planner.probe_orders(&sequence, &plan).unwrap();
    /// assert_eq!((plan.pool_size(), found.pool_size()), (210, 120));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn probe_orders(&self, sequence: &OpSequence, given: &Plan) -> Option<Plan> {
        let is_one = sequence.streams() == 1 && given.pools.len() < 2;
        if !is_one || sequence.operators().len() > MAX_PROBED {
            return None;
        }
        let planner = self.clone().limits(Limits::default().nodes(PROBE_NODES));
        let flat = planner.flatten(sequence).ok()?.sequence;
        let options = planner.orders(placing_of(given), planner.limits);
        let reordered = reorder(&flat, &options).ok()?;
        let found = planner.plan_found(sequence, reordered, given.clone()).ok()?.plan;
        (found.pool_size < given.pool_size).then_some(found)
    }

    /// The options of comparing orders as plans do.
    fn orders(&self, placing: Placing, limits: Limits) -> ReorderOptions<'_> {
        ReorderOptions { lowering: self.lowering, placing, limits, observer: self.observer }
    }

    /// The planner with at most this time.
    fn within(&self, time: Option<Duration>) -> Self {
        let least = [self.limits.time, time].into_iter().flatten().min();
        self.clone().limits(Limits { time: least, ..self.limits })
    }

    /// Plans a sequence in an order that was found, and keeps that order only if the pool is smaller.
    fn plan_found(
        &self,
        sequence: &OpSequence,
        mut reordered: Reordered,
        given: Plan,
    ) -> Result<Replanned<Reordered>, PlanError> {
        let is_better = reordered.is_better();
        // With other choices, a plan may need less than the orders were compared by.
        reordered.given_peak = reordered.given_peak.min(given.pool_size);
        if is_better {
            let sequence = sequence.permuted(&reordered.order)?;
            match self.plan(&sequence) {
                Ok(mut plan) if plan.pool_size < given.pool_size => {
                    plan.order.clone_from(&reordered.order);
                    reordered.peak = reordered.peak.min(plan.pool_size);
                    return Ok(Replanned { change: reordered, sequence, plan, given });
                }
                Err(error) if !error.is_stop() => return Err(error),
                // There is a plan of the order given.
                _ => {}
            }
        }
        reordered.keep_given();
        let (sequence, plan) = (sequence.clone(), given.clone());
        Ok(Replanned { change: reordered, sequence, plan, given })
    }
}

fn placing_of(plan: &Plan) -> Placing {
    Placing { alignment: plan.alignment, padding: plan.padding }
}

/// The orders tried beside the best one.
struct Nearby<'a> {
    planner: &'a Planner<'a>,
    options: ReorderOptions<'a>,
    given: &'a OpSequence,
    found: Replanned<Reordered>,
    tried: HashSet<Vec<usize>>,
}

impl Nearby<'_> {
    /// Returns whether no order is better, or enough are tried.
    fn is_done(&self) -> bool {
        let Replanned { plan, change: reordered, .. } = &self.found;
        plan.pool_size <= reordered.lower_bound || self.tried.len() >= MAX_NEARBY
    }

    /// Plans in an order, unless that was tried or cannot be better. Returns whether the plan is smaller.
    fn offer(&mut self, order: Vec<usize>) -> Result<bool, PlanError> {
        let pool = self.found.plan.pool_size;
        let Ok(sequence) = self.given.permuted(&order) else { return Ok(false) };
        if !self.tried.insert(order.clone()) {
            return Ok(false);
        }
        let peak = peak(&self.planner.flatten(&sequence)?.sequence, &self.options)?;
        if peak >= pool {
            return Ok(false);
        }
        let nodes = self.planner.limits.nodes.map_or(PROBE_NODES, |nodes| nodes.min(PROBE_NODES));
        let planner = self.planner.clone().limits(self.planner.limits.nodes(nodes));
        match planner.plan(&sequence) {
            Ok(plan) if plan.pool_size < pool => {
                self.found.change.take(order.clone(), peak.min(plan.pool_size));
                self.found.plan = Plan { order, ..plan };
                self.found.sequence = sequence;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Moves one operator to another place, if the pool is smaller then.
    fn move_one(&mut self) -> Result<bool, PlanError> {
        let now = self.found.change.order.clone();
        for from in 0..now.len() {
            for to in 0..now.len() {
                if self.is_done() {
                    return Ok(false);
                }
                let mut order = now.clone();
                let operator = order.remove(from);
                order.insert(to, operator);
                if self.offer(order)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl Replanned<Reordered> {
    /// Replaces the order by another one of `given`, the sequence before reordering; for example,
    /// by one that a file can hold. The order given is kept unless the pool of the other is
    /// smaller.
    ///
    /// # Errors
    ///
    /// As [`Planner::plan`], and if the operators cannot run in this order.
    pub fn with_order(
        self,
        order: Vec<usize>,
        given: &OpSequence,
        planner: &Planner<'_>,
    ) -> Result<Self, PlanError> {
        if order == self.change.order {
            return Ok(self);
        }
        let mut reordered = self.change;
        let permuted = given.permuted(&order)?;
        let flat = planner.flatten(&permuted)?;
        reordered.take(
            order,
            peak(&flat.sequence, &planner.orders(placing_of(&self.given), planner.limits))?,
        );
        planner.plan_found(given, reordered, self.given)
    }
}
