//! Outputs that begin below their inputs: the smallest pools, compared with those of trying all
//! places.

use arbtest::arbitrary::{Result, Unstructured};
use memplan::{
    Limits, OpSequence, Operator, Output, Plan, Planner, Strategy,
    lower::{LoweringOptions, lower},
    verify::{execute, verify},
};

use crate::common::demands::Dice;

/// An operator of a small sequence: the tensors that it reads, and its output.
#[derive(Clone, Debug)]
struct Small {
    inputs: Vec<usize>,
    size: u64,
    /// The input that the output is written over, and how far below it begins.
    over: Option<(usize, u64)>,
}

/// Each operator makes the tensor with its number. The last one is the graph's output.
#[derive(Clone, Debug)]
struct SmallSequence(Vec<Small>);

impl SmallSequence {
    fn random(random: &mut Unstructured<'_>) -> Result<Self> {
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
            operators.push(Small { inputs, size, over });
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
            sequence.operator(Operator::new(format!("op{at}")).inputs(inputs).output(output));
        }
        sequence.output(name(self.0.len() - 1)).build().unwrap()
    }

    /// The step after the last one that reads a tensor.
    fn end(&self, tensor: usize) -> usize {
        if tensor + 1 == self.0.len() {
            return self.0.len();
        }
        let reads = |at: &usize| self.0[*at].inputs.contains(&tensor);
        (tensor + 1..self.0.len()).rev().find(reads).map_or(tensor + 1, |at| at + 1)
    }

    /// The tensor that a tensor begins below, if that is allowed: nothing reads the former later.
    fn over(&self, tensor: usize) -> Option<(usize, u64)> {
        let Small { size, over, .. } = self.0[tensor];
        over.filter(|&(input, below)| self.end(input) == tensor + 1 && below < size)
    }

    /// The same sequence without the overlaps that a plan drops.
    fn as_planned(&self, plan: &Plan) -> Self {
        let mut planned = self.clone();
        for (at, small) in planned.0.iter_mut().enumerate() {
            let link = plan.chunks[at].overwrites;
            assert!(link.is_none() || self.over(at).is_some(), "{self:?}");
            small.over = small.over.filter(|_| link.is_some());
        }
        planned
    }

    /// The most bytes that any step needs if all possible overlaps are used.
    fn bound(&self) -> u32 {
        let apart: Vec<u64> = vec![0; self.0.len()];
        let bytes = |step: usize| {
            let needs = |at: usize| match self.over(at) {
                Some((input, below)) if at == step => {
                    let shared = (self.0[at].size - below).min(self.0[input].size);
                    u32::try_from(self.0[at].size - shared).unwrap()
                }
                _ => self.needs(at, step, &apart).count_ones(),
            };
            (0..self.0.len()).map(needs).sum()
        };
        (0..self.0.len()).map(bytes).max().unwrap()
    }

    /// The bytes of the pool that a tensor needs in a step, one bit each.
    fn needs(&self, tensor: usize, step: usize, offsets: &[u64]) -> u64 {
        if step < tensor || self.end(tensor) <= step {
            return 0;
        }
        let all = |tensor: usize| ((1_u64 << self.0[tensor].size) - 1) << offsets[tensor];
        match self.over(tensor) {
            Some((input, _)) if step == tensor => all(tensor) & !all(input),
            _ => all(tensor),
        }
    }

    /// The smallest pool below a limit, by trying all places of the tensors that are not yet placed.
    fn least(&self, offsets: &mut Vec<u64>, pool: u64, limit: u64) -> Option<u64> {
        let new = offsets.len();
        if new == self.0.len() {
            return Some(pool);
        }
        let mut limit = limit;
        let mut least = None;
        let size = self.0[new].size;
        for offset in 0.. {
            if offset + size >= limit {
                break;
            }
            let is_linked =
                self.over(new).is_none_or(|(input, below)| offsets[input] == offset + below);
            offsets.push(offset);
            let fits = is_linked
                && (0..new).all(|old| {
                    (0..self.0.len()).all(|step| {
                        self.needs(old, step, offsets) & self.needs(new, step, offsets) == 0
                    })
                });
            if fits && let Some(found) = self.least(offsets, pool.max(offset + size), limit) {
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
    lower(sequence, LoweringOptions::default()).unwrap().problem.lower_bound().bytes
}

#[test]
fn optima_are_those_of_trying_all_places() {
    let (mut honoured, mut saved) = (0, 0);
    let mut dice = Dice(3);
    for _ in 0..400 {
        let bytes: Vec<u8> = (0..96).map(|_| u8::try_from(dice.roll(256)).unwrap()).collect();
        let small = SmallSequence::random(&mut Unstructured::new(&bytes)).unwrap();
        let sequence = small.build();
        let plan = optimal(&sequence);
        assert!(plan.proven_optimal, "{small:?}");
        assert_eq!(verify(&sequence, &plan), [], "{small:?}\n{plan:#?}");
        assert_eq!(execute(&sequence, &plan), [], "{small:?}\n{plan:#?}");
        assert_eq!(u32::try_from(least_bound(&sequence)).unwrap(), small.bound(), "{small:?}");
        let planned = small.as_planned(&plan);
        let least = planned.least(&mut Vec::new(), 0, 26);
        assert_eq!(Some(plan.pool_size), least, "{small:?}\n{plan:#?}");
        for strategy in [Strategy::Best, Strategy::FirstFit] {
            let other = Planner::new().strategy(strategy).plan(&sequence).unwrap();
            assert_eq!(verify(&sequence, &other), [], "{strategy} {small:?}\n{other:#?}");
            assert!(other.pool_size >= plan.pool_size, "{strategy} {small:?}");
        }
        let links = plan.chunks.iter().filter(|chunk| chunk.overwrites.is_some()).count();
        honoured += links;
        let plain =
            SmallSequence(small.0.iter().map(|s| Small { over: None, ..s.clone() }).collect());
        saved += usize::from(optimal(&plain.build()).pool_size > plan.pool_size);
    }
    assert!(honoured > 100 && saved > 60, "{honoured} {saved}");
}
