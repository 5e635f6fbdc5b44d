//! Outputs that begin below their inputs: the smallest pools, compared with those of trying all
//! places.

use arbitrary::{Result, Unstructured};
use memplan::{
    Limits, OpSequence, Operator, Output, Plan, Planner, Strategy,
    lower::{LoweringOptions, lower},
    verify::{execute, verify},
};

use rstest::rstest;

use crate::common::constraints::Dice;

/// An operator of a small sequence: the tensors that it reads, and its output.
#[derive(Clone, Debug)]
struct Small {
    stream: usize,
    inputs: Vec<usize>,
    size: u64,
    /// The input that the output is written over, and how far below it begins.
    over: Option<(usize, u64)>,
}

/// Each operator makes the tensor with its number. The last one is the graph's output.
#[derive(Clone, Debug)]
struct SmallSequence(Vec<Small>);

/// An order in which the operators may run: by operator, its step.
type Order = Vec<usize>;

impl SmallSequence {
    fn random(random: &mut Unstructured<'_>, streams: usize) -> Result<Self> {
        let mut operators: Vec<Small> = Vec::new();
        for at in 0..random.int_in_range(2..=5)? {
            let mut inputs = Vec::new();
            for _ in 0..2 {
                if at > 0 && random.ratio(2, 3)? {
                    inputs.push(random.choose_index(at)?);
                }
            }
            inputs.dedup();
            let over = match &inputs[..] {
                [] => None,
                some if random.ratio(3, 4)? => {
                    Some((*random.choose(some)?, random.int_in_range(0..=3)?))
                }
                _ => None,
            };
            let size = random.int_in_range(1..=5)?;
            // Without a distance, it must lie inside.
            let over = over.map(|(input, below)| match below {
                0 if size > operators[input].size => (input, 1),
                below => (input, below),
            });
            let stream = random.choose_index(streams)?;
            operators.push(Small { stream, inputs, size, over });
        }
        Ok(Self(operators))
    }

    fn build(&self) -> OpSequence {
        let mut sequence = OpSequence::builder();
        let name = |tensor: usize| format!("t{tensor}");
        for (at, small) in self.0.iter().enumerate() {
            let output = Output::new(name(at), small.size);
            let output = match small.over {
                Some((input, below)) => output.overlaps(name(input), below),
                None => output,
            };
            let inputs = small.inputs.iter().map(|&input| name(input));
            let operator = Operator::new(format!("op{at}")).on_stream(small.stream);
            sequence.operator(operator.inputs(inputs).output(output));
        }
        sequence.output(name(self.0.len() - 1)).build().unwrap()
    }

    /// All orders in which the streams may run. Operators may take the same step.
    fn orders(&self) -> Vec<Order> {
        let is_before = |first: usize, at: usize| {
            let Small { stream, inputs, .. } = &self.0[at];
            first < at && (inputs.contains(&first) || self.0[first].stream == *stream)
        };
        let mut open = vec![(0, vec![None; self.0.len()])];
        let mut found = Vec::new();
        while let Some((step, order)) = open.pop() {
            let is_ready = |at: &usize| {
                order[*at].is_none()
                    && (0..*at).all(|first| !is_before(first, *at) || order[first].is_some())
            };
            let ready: Vec<usize> = (0..self.0.len()).filter(is_ready).collect();
            if ready.is_empty() {
                found.push(order.iter().flatten().copied().collect());
            }
            for chosen in 1..1_usize << ready.len() {
                let mut order = order.clone();
                let is_chosen = |(bit, _): &(usize, &usize)| chosen >> bit & 1 == 1;
                for (_, &at) in ready.iter().enumerate().filter(is_chosen) {
                    order[at] = Some(step);
                }
                open.push((step + 1, order));
            }
        }
        found
    }

    /// The step after the last one that reads a tensor.
    fn end(&self, tensor: usize, order: &Order) -> usize {
        if tensor + 1 == self.0.len() {
            return self.0.len();
        }
        let reads = |at: &usize| self.0[*at].inputs.contains(&tensor);
        let last = (0..self.0.len()).filter(reads).map(|at| order[at]).max();
        last.unwrap_or(order[tensor]) + 1
    }

    /// The tensor that a tensor begins below, if that is allowed: in no order, anything reads the former later.
    fn over(&self, tensor: usize, orders: &[Order]) -> Option<(usize, u64)> {
        let Small { size, over, .. } = self.0[tensor];
        let is_last =
            |input: usize| orders.iter().all(|order| self.end(input, order) == order[tensor] + 1);
        over.filter(|&(input, below)| is_last(input) && below < size)
    }

    /// The same sequence without the overlaps that a plan drops.
    fn as_planned(&self, plan: &Plan, orders: &[Order]) -> Self {
        let mut planned = self.clone();
        for (at, small) in planned.0.iter_mut().enumerate() {
            let link = plan.chunks()[at].overwrites;
            assert!(link.is_none() || self.over(at, orders).is_some(), "{self:?}");
            small.over = small.over.filter(|_| link.is_some());
        }
        planned
    }

    /// The most bytes that any step of the only stream needs if all possible overlaps are used.
    fn bound(&self, orders: &[Order]) -> u32 {
        let apart: Vec<u64> = vec![0; self.0.len()];
        let overs: Vec<_> = (0..self.0.len()).map(|at| self.over(at, orders)).collect();
        let bytes = |step: usize| {
            let needs = |at: usize| match overs[at] {
                Some((input, below)) if at == step => {
                    let shared = (self.0[at].size - below).min(self.0[input].size);
                    u32::try_from(self.0[at].size - shared).unwrap()
                }
                _ => self.needs(at, step, (&orders[0], &overs), &apart).count_ones(),
            };
            (0..self.0.len()).map(needs).sum()
        };
        (0..self.0.len()).map(bytes).max().unwrap()
    }

    /// The bytes of the pool that a tensor needs in a step, one bit each.
    fn needs(
        &self,
        tensor: usize,
        step: usize,
        (order, overs): (&Order, &[Option<(usize, u64)>]),
        offsets: &[u64],
    ) -> u64 {
        if step < order[tensor] || self.end(tensor, order) <= step {
            return 0;
        }
        let all = |tensor: usize| ((1_u64 << self.0[tensor].size) - 1) << offsets[tensor];
        match overs[tensor] {
            Some((input, _)) if step == order[tensor] => all(tensor) & !all(input),
            _ => all(tensor),
        }
    }

    /// The smallest pool, by trying all places of the tensors.
    fn least(&self, orders: &[Order]) -> Option<u64> {
        let overs: Vec<_> = (0..self.0.len()).map(|at| self.over(at, orders)).collect();
        self.least_from(orders, &overs, &mut Vec::new(), (0, 26))
    }

    /// The smallest pool below a limit, by trying all places of the tensors that are not yet placed.
    fn least_from(
        &self,
        orders: &[Order],
        overs: &[Option<(usize, u64)>],
        offsets: &mut Vec<u64>,
        (pool, mut limit): (u64, u64),
    ) -> Option<u64> {
        let new = offsets.len();
        if new == self.0.len() {
            return Some(pool);
        }
        let mut least = None;
        let size = self.0[new].size;
        for offset in 0.. {
            if offset + size >= limit {
                break;
            }
            let is_linked =
                overs[new].is_none_or(|(input, below)| offsets[input] == offset + below);
            offsets.push(offset);
            let fits = is_linked
                && (0..new).all(|old| {
                    let steps =
                        orders.iter().flat_map(|order| (0..order.len()).map(move |at| (order, at)));
                    steps.into_iter().all(|(order, step)| {
                        let needs = |tensor| self.needs(tensor, step, (order, overs), offsets);
                        needs(old) & needs(new) == 0
                    })
                });
            if fits
                && let Some(found) =
                    self.least_from(orders, overs, offsets, (pool.max(offset + size), limit))
            {
                (least, limit) = (Some(found), found);
            }
            offsets.pop();
        }
        least
    }
}

fn optimal(sequence: &OpSequence) -> Plan {
    let limits = Limits::default().nodes(1_000_000);
    Planner::new().strategy(Strategy::Optimal).limits(limits).plan(sequence).unwrap()
}

/// The bound of the lowered sequence, with every overlap that reduces it.
fn least_bound(sequence: &OpSequence) -> u64 {
    lower(sequence, LoweringOptions::default()).unwrap().problem.lower_bound()
}

#[rstest]
#[case::one_stream(1)]
#[case::two_streams(2)]
fn optima_are_those_of_trying_all_places(#[case] streams: usize) {
    let (mut accepted, mut saved) = (0, 0);
    let mut dice = Dice(3);
    for _ in 0..400 {
        let bytes: Vec<u8> = (0..96).map(|_| u8::try_from(dice.roll(256)).unwrap()).collect();
        let small = SmallSequence::random(&mut Unstructured::new(&bytes), streams).unwrap();
        let (sequence, orders) = (small.build(), small.orders());
        let plan = optimal(&sequence);
        assert!(plan.proven_optimal(), "{small:?}");
        assert_eq!(verify(&sequence, &plan), [], "{small:?}\n{plan:#?}");
        assert_eq!(execute(&sequence, &plan), [], "{small:?}\n{plan:#?}");
        if sequence.streams() == 1 {
            let bound = u32::try_from(least_bound(&sequence)).unwrap();
            assert_eq!(bound, small.bound(&orders), "{small:?}");
        }
        let planned = small.as_planned(&plan, &orders);
        assert_eq!(Some(plan.pool_size()), planned.least(&orders), "{small:?}\n{plan:#?}");
        for strategy in [Strategy::Best, Strategy::FirstFit] {
            let other = Planner::new().strategy(strategy).plan(&sequence).unwrap();
            assert_eq!(verify(&sequence, &other), [], "{strategy} {small:?}\n{other:#?}");
            assert!(other.pool_size() >= plan.pool_size(), "{strategy} {small:?}");
        }
        let links = plan.chunks().iter().filter(|chunk| chunk.overwrites.is_some()).count();
        accepted += links;
        let plain =
            SmallSequence(small.0.iter().map(|s| Small { over: None, ..s.clone() }).collect());
        saved += usize::from(optimal(&plain.build()).pool_size() > plan.pool_size());
    }
    assert!(accepted > 100 && saved > 60, "{accepted} {saved}");
}
