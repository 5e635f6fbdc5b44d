//! Small steps against an exact oracle: every way to choose where operators run again.

use std::collections::BTreeSet;

use memplan::{
    Bytes, Limits, OpSequence, Planner,
    recompute::Recomputed,
    sequence::{Origin, TensorId},
};

use super::steps::{chain, random_graph, random_step};
use crate::common::{constraints::Dice, seeds::longer};

/// The least costs by peak: for every peak that some expansion has, the least cost of an expansion with at most
/// that peak. Only for sequences without views and overwrites.
struct Oracle<'a> {
    sequence: &'a OpSequence,
    /// By operator: the step before which it runs again, or none.
    slots: Vec<Option<usize>>,
    /// The peaks and the costs of all expansions.
    points: Vec<(Bytes, u64)>,
    left: u64,
}

impl<'a> Oracle<'a> {
    /// Tries all expansions, if they are not too many.
    fn new(sequence: &'a OpSequence) -> Option<Self> {
        let slots = vec![None; sequence.operators().len()];
        let mut oracle = Self { sequence, slots, points: Vec::new(), left: 60_000 };
        oracle.choose(0);
        (oracle.left > 0).then_some(oracle)
    }

    fn choose(&mut self, step: usize) {
        let operators = self.sequence.operators();
        if self.left == 0 {
            return;
        }
        if step == operators.len() {
            self.left -= 1;
            self.points.push(self.measure());
            return;
        }
        self.choose(step + 1);
        let of = &operators[step];
        let is_read = |id: &TensorId| operators.iter().any(|other| other.inputs.contains(id));
        let is_result = of.outputs.iter().any(|id| self.sequence.outputs().contains(id));
        if of.once || is_result || !of.outputs.iter().any(is_read) {
            return;
        }
        for slot in step + 1..operators.len() {
            self.slots[step] = Some(slot);
            self.choose(step + 1);
        }
        self.slots[step] = None;
    }

    /// The runs in order: the operator, and whether it is the later of two.
    fn runs(&self, is_deferred: &[bool]) -> Vec<(usize, bool)> {
        let mut runs = Vec::new();
        for (step, is_deferred) in is_deferred.iter().enumerate() {
            for copy in 0..step {
                if self.slots[copy] == Some(step) {
                    runs.push((copy, true));
                }
            }
            if !is_deferred {
                runs.push((step, false));
            }
        }
        runs
    }

    /// By run: the runs whose results it reads; each reads the last run of a producer before it.
    fn readers(&self, runs: &[(usize, bool)]) -> Vec<Vec<(usize, TensorId)>> {
        let sequence = self.sequence;
        let producer = |id: TensorId| match sequence.tensor(id).origin {
            Origin::Output { step, .. } => Some(step),
            _ => None,
        };
        let mut reads = vec![Vec::new(); runs.len()];
        for (at, &(step, _)) in runs.iter().enumerate() {
            for &input in &sequence.operators()[step].inputs {
                let Some(maker) = producer(input) else { continue };
                if let Some(from) = (0..at).rev().find(|&before| runs[before].0 == maker) {
                    reads[at].push((from, input));
                } else {
                    reads[at].push((usize::MAX, input));
                }
            }
        }
        reads
    }

    fn measure(&self) -> (Bytes, u64) {
        let sequence = self.sequence;
        // What nobody reads before it runs again need not run twice.
        let mut is_deferred = vec![false; self.slots.len()];
        let mut runs = self.runs(&is_deferred);
        for step in (0..self.slots.len()).rev() {
            if self.slots[step].is_none() {
                continue;
            }
            let first = runs.iter().position(|run| *run == (step, false)).unwrap();
            let is_read = self.readers(&runs).iter().flatten().any(|&(from, _)| from == first);
            if !is_read {
                is_deferred[step] = true;
                runs = self.runs(&is_deferred);
            }
        }
        let reads = self.readers(&runs);
        let mut live = vec![0; runs.len()];
        let mut cost = 0;
        for (at, &(step, is_copy)) in runs.iter().enumerate() {
            let operator = &sequence.operators()[step];
            if is_copy && !is_deferred[step] {
                cost += operator.cost;
            }
            live[at] += operator.workspace;
            for &output in &operator.outputs {
                let mut last = at;
                for (reader, read) in reads.iter().enumerate() {
                    if read.contains(&(at, output)) {
                        last = last.max(reader);
                    }
                }
                if sequence.outputs().contains(&output) {
                    last = runs.len() - 1;
                }
                for bytes in &mut live[at..=last] {
                    *bytes += sequence.tensor(output).size.unwrap();
                }
            }
        }
        (live.into_iter().max().unwrap_or(0), cost)
    }

    fn least_cost(&self, capacity: Bytes) -> Option<u64> {
        self.points.iter().filter(|(peak, _)| *peak <= capacity).map(|(_, cost)| *cost).min()
    }
}

fn is_plain(sequence: &OpSequence) -> bool {
    sequence.tensors().iter().all(|tensor| match &tensor.origin {
        Origin::Output { dependency, .. } => *dependency == memplan::sequence::Dependency::Fresh,
        _ => true,
    })
}

/// The answers for the capacities at which the least cost changes.
#[derive(Default)]
struct Tally {
    answers: u32,
    proven: u32,
    /// A cost is not the least, or nothing was found although something fits.
    missed: u32,
}

impl Tally {
    fn compare(&mut self, sequence: &OpSequence, oracle: &Oracle<'_>) {
        let capacities: BTreeSet<Bytes> = oracle.points.iter().map(|(peak, _)| *peak).collect();
        let least = *capacities.first().unwrap();
        for capacity in capacities.into_iter().chain([least - 1]) {
            let limits = Limits::default().nodes(60_000);
            let exact = oracle.least_cost(capacity);
            let words = || format!("capacity {capacity}: {sequence:?}");
            self.answers += 1;
            let bound = match Planner::new().recompute(sequence, capacity, limits).unwrap() {
                Recomputed::Found(found) => {
                    let exact = exact.unwrap();
                    assert!((found.cost_bound..=found.extra_cost).contains(&exact), "{}", words());
                    self.proven += u32::from(found.is_proven());
                    self.missed += u32::from(found.extra_cost > exact);
                    found.peak_bound
                }
                Recomputed::Impossible { peak_bound } => {
                    assert_eq!(exact, None, "{}", words());
                    peak_bound
                }
                Recomputed::NotFound { peak_bound, .. } => {
                    self.missed += u32::from(exact.is_some());
                    peak_bound
                }
                other => panic!("{other:?}"),
            };
            assert!(bound <= least, "{}", words());
        }
    }
}

#[test]
fn small_random_steps_are_optimal() {
    let (mut dice, mut tally) = (Dice(1), Tally::default());
    let mut compared = 0;
    while compared < 12 {
        let step = random_step(&mut dice, 5);
        if !is_plain(&step) {
            continue;
        }
        let Some(oracle) = Oracle::new(&step) else { continue };
        tally.compare(&step, &oracle);
        compared += 1;
    }
    assert_eq!(tally.missed, 0);
    assert!(tally.proven > 0, "no cost is proven least");
}

/// In such graphs, some operators wait while memory of others is freed.
#[test]
fn small_random_graphs_are_optimal() {
    let (mut dice, mut tally) = (Dice(2), Tally::default());
    for _ in 0..2000 * longer() {
        let graph = random_graph(&mut dice);
        let oracle = Oracle::new(&graph).unwrap();
        tally.compare(&graph, &oracle);
    }
    let Tally { answers, proven, missed } = tally;
    assert!(proven * 2 > answers && missed * 1000 <= answers, "{answers}, {proven}, {missed}");
}

#[test]
fn small_chains_are_optimal() {
    let mut tally = Tally::default();
    for layers in 2..=4 {
        let step = chain(layers, 3);
        let oracle = Oracle::new(&step).unwrap();
        tally.compare(&step, &oracle);
    }
    assert_eq!(tally.missed, 0);
}
