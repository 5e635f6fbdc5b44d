//! A plan that fits a capacity because some operators run twice.

use std::time::Instant;

use crate::{
    Bytes, Limits, OpSequence, Plan, PlanError, Planner,
    planner::Replanned,
    recompute::{Recomputation, Recompute, Recomputed},
    verify::verify,
};

/// The most budgets for the peak that are tried: even if the live bytes fit the capacity, the pool may not.
const BUDGETS: usize = 6;

/// Before reordering, budgets above the capacity are tried first, in percent of it: in a better order, the plan may
/// still fit.
const BEFORE_REORDERING: [u64; 2] = [125, 110];

impl Planner<'_> {
    /// Plans a sequence within a capacity. If its own plan does not fit, some operators run again; the search looks
    /// for the cheapest set of them. The capacity limits the pool, with alignment, padding, workspaces and outputs
    /// written over inputs. If the live bytes fit but the pool does not, the limit for live bytes is lowered and the
    /// search repeated. The capacity is in bytes. Each search has these limits, as for
    /// [`recompute`](Self::recompute). With limits for orders, the expanded sequence is put into a better order before
    /// it is planned, as [`plan_reordered`](Self::plan_reordered) does.
    ///
    /// ```
    /// use memplan::{Limits, Planner, networks, recompute::Recomputed};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let found = Planner::new().plan_recomputed(&sequence, 8 << 20, Limits::default(), None)?;
    /// assert!(matches!(found, Recomputed::Found(found) if found.plan.pool_size() <= 8 << 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan) and [`recompute`](Self::recompute), and if [`pools`](Self::pools) are given.
    pub fn plan_recomputed(
        &self,
        sequence: &OpSequence,
        capacity: Bytes,
        limits: Limits,
        orders: Option<Limits>,
    ) -> Result<Recomputed<Replanned<Recomputation>>, PlanError> {
        if !self.memories.pools.is_empty() {
            return Err(PlanError::OrderInPools);
        }
        let start = Instant::now();
        let given = self.plan(sequence)?;
        let given_pool = given.pool_size;
        let flat = self.flatten(sequence)?;
        let flat = &flat.sequence;
        let attempt = Attempt { planner: self, sequence, flat, limits, orders, given };
        let mut least = given_pool;
        if given_pool <= capacity {
            return Ok(answer_for(attempt.run(Bytes::MAX, start)?, capacity, &mut least));
        }
        if orders.is_some() {
            let part = |percent: u64| u128::from(capacity) * u128::from(percent) / 100;
            let parts = BEFORE_REORDERING.map(|percent| Bytes::try_from(part(percent)));
            // A better order alone may be enough.
            for budget in [Bytes::MAX].into_iter().chain(parts.into_iter().flatten()) {
                let found = answer_for(attempt.run(budget, start)?, capacity, &mut least);
                if matches!(found, Recomputed::Found(_)) {
                    return Ok(found);
                }
            }
        }
        let mut budget = capacity;
        let mut answer = Recomputed::NotFound { least, peak_bound: 0 };
        for _ in 0..BUDGETS {
            let tried = attempt.run(budget, start)?;
            let over = match &tried {
                Recomputed::Found(found) => found.plan.pool_size.saturating_sub(capacity),
                _ => 0,
            };
            // Below the capacity, a smaller budget proves nothing about it.
            let is_proof = budget == capacity && orders.is_none();
            answer = match answer_for(tried, capacity, &mut least) {
                Recomputed::Impossible { peak_bound } if !is_proof => {
                    Recomputed::NotFound { least, peak_bound }
                }
                other => other,
            };
            match budget.checked_sub(over) {
                Some(smaller) if over > 0 => budget = smaller,
                _ => break,
            }
        }
        if let Recomputed::NotFound { peak_bound, .. } = answer {
            answer = Recomputed::NotFound { least, peak_bound: peak_bound.min(least) };
        }
        Ok(answer)
    }

    /// Searches for the cheapest expanded sequence whose live bytes never exceed the capacity. Gathered inputs count as
    /// copied. The search uses one thread, however many are allowed. [`Limits::default`] allows 4 000 nodes for each
    /// operator, at least 1 250 000, and 250 000 more to improve the result; if nothing fits, a second search has
    /// 8 000 000 nodes. A node takes about a microsecond. Once cancelled, the search soon returns the best that it has.
    /// The progress is in bytes at the peak.
    ///
    /// ```
    /// use memplan::{Limits, OpSequence, Operator, Output, Planner, recompute::Recomputed};
    ///
    /// // Activations of a forward pass, which a backward pass reads in reverse.
    /// let mut step = OpSequence::builder();
    /// step.input("a0", 100);
    /// for layer in 1..=8 {
    ///     let below = format!("a{}", layer - 1);
    ///     let output = Output::new(format!("a{layer}"), 100);
    ///     step.operator(Operator::new(format!("f{layer}")).inputs([below]).output(output));
    /// }
    /// for layer in (1..=8).rev() {
    ///     let mut inputs = vec![format!("a{layer}"), format!("a{}", layer - 1)];
    ///     inputs.extend((layer < 8).then(|| format!("g{}", layer + 1)));
    ///     let output = Output::new(format!("g{layer}"), 100);
    ///     step.operator(Operator::new(format!("b{layer}")).inputs(inputs).output(output));
    /// }
    /// let step = step.output("g1").build()?;
    ///
    /// let found = Planner::new().recompute(&step, 600, Limits::default())?;
    /// let Recomputed::Found(found) = found else { panic!() };
    /// assert!(found.peak <= 600);
    /// assert_eq!(found.extra_cost, found.runs_twice().count() as u64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the sequence cannot be lowered or runs on several streams, the alignment is not a power of two, twice the sum
    /// of the costs exceeds 64 bits, or twice the sum of the sizes exceeds 63.
    pub fn recompute(
        &self,
        sequence: &OpSequence,
        capacity: Bytes,
        limits: Limits,
    ) -> Result<Recomputed<Recomputation>, PlanError> {
        let flat = self.flatten(sequence)?;
        self.recomputation(capacity, limits).run(sequence, &flat.sequence)
    }

    /// Searches for the recomputation at `points` capacities, two at least, spaced evenly from the least peak that is
    /// found to the peak of the given sequence. Returns the cheapest one for each, by rising capacity: the first has
    /// the least peak, the last runs nothing twice, and a larger capacity never costs more. The limits are for all of
    /// them together; the default effort is 1.25 times the effort of one search.
    ///
    /// ```
    /// use memplan::{Limits, Planner, networks};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let curve = Planner::new().recompute_curve(&sequence, 3, Limits::default())?;
    /// let costs: Vec<u64> = curve.iter().map(|found| found.extra_cost).collect();
    /// assert!(costs.is_sorted_by(|less, more| less >= more));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`recompute`](Self::recompute).
    pub fn recompute_curve(
        &self,
        sequence: &OpSequence,
        points: usize,
        limits: Limits,
    ) -> Result<Vec<Recomputation>, PlanError> {
        let flat = self.flatten(sequence)?;
        self.recomputation(Bytes::MAX, limits).curve(sequence, &flat.sequence, points)
    }

    /// A search that counts bytes as this planner does.
    fn recomputation(&self, capacity: Bytes, limits: Limits) -> Recompute<'_> {
        let (lowering, placing, observer) = (self.lowering, self.placing(), self.observer);
        Recompute { capacity, lowering, placing, limits, observer }
    }
}

/// The state that all attempts for a sequence share.
struct Attempt<'a> {
    planner: &'a Planner<'a>,
    sequence: &'a OpSequence,
    /// The sequence with workspace in place of its bodies.
    flat: &'a OpSequence,
    limits: Limits,
    /// The limits of the search for an order, if one is asked for.
    orders: Option<Limits>,
    /// The plan of the sequence as given.
    given: Plan,
}

/// The answer of a search, with a plan if it found something.
type Answer = Recomputed<Replanned<Recomputation>>;

impl Attempt<'_> {
    /// Searches for a peak within a budget and plans what is found. The plan may be too large.
    fn run(&self, budget: Bytes, start: Instant) -> Result<Answer, PlanError> {
        let search = self.planner.recomputation(budget, self.limits.after(start));
        let mut recomputation = match search.run(self.sequence, self.flat)? {
            Recomputed::Found(found) => *found,
            Recomputed::Impossible { peak_bound } => {
                return Ok(Recomputed::Impossible { peak_bound });
            }
            Recomputed::NotFound { least, peak_bound } => {
                return Ok(Recomputed::NotFound { least, peak_bound });
            }
        };
        let sequence = recomputation.sequence.clone();
        let (sequence, plan) = if let Some(limits) = self.orders {
            let found = self.planner.plan_reordered(&sequence, limits)?;
            if found.change.is_better() {
                recomputation.peak = found.change.peak;
                recomputation.peak_bound = recomputation.peak_bound.min(recomputation.peak);
            }
            // The expanded sequence is in this order, so the plan needs to state none.
            (found.sequence, Plan { order: Vec::new(), ..found.plan })
        } else {
            let plan = self.planner.plan(&sequence)?;
            (sequence, plan)
        };
        debug_assert!(verify(&sequence, &plan).is_empty(), "the plan is right");
        let given = self.given.clone();
        // With other choices, a plan may need less than the search has counted.
        recomputation.given_peak = recomputation.given_peak.min(given.pool_size);
        recomputation.peak = recomputation.peak.min(plan.pool_size);
        recomputation.peak_bound = recomputation.peak_bound.min(recomputation.peak);
        Ok(Recomputed::Found(Box::new(Replanned { change: recomputation, sequence, plan, given })))
    }
}

/// The answer for a capacity after an attempt. `least` is the smallest pool or peak so far.
fn answer_for(attempt: Answer, capacity: Bytes, least: &mut Bytes) -> Answer {
    let (size, peak_bound) = match attempt {
        Recomputed::Found(found) if found.plan.pool_size > capacity => {
            (found.plan.pool_size, found.change.peak_bound)
        }
        Recomputed::NotFound { least, peak_bound } => (least, peak_bound),
        Recomputed::Found(_) | Recomputed::Impossible { .. } => return attempt,
    };
    *least = size.min(*least);
    Recomputed::NotFound { least: *least, peak_bound }
}
