//! Runs a planned sequence on several streams, each a thread, in one pool.
//!
//! The threads wait for each other only where [`OpSequence::waits`] lists a wait. The pool is a list of
//! atomic cells that are read and written with relaxed ordering, so two operators that used the same cells at
//! the same time would give wrong values, not undefined behaviour. A framework does the same with a device's
//! streams and events: it records an event after each operator that another stream waits for.
//!
//! `cargo run --example two_streams`

use std::{
    error::Error,
    ops::Range,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use memplan::{OpSequence, Operator, Output, Plan, Planner, sequence::TensorId, verify::verify};

/// The bytes of a cell of the pool.
pub const CELL: u64 = 8;

/// The cells of a range of bytes.
fn cells(bytes: Range<u64>) -> Range<usize> {
    let cell = |byte: u64| usize::try_from(byte / CELL).unwrap_or(usize::MAX);
    cell(bytes.start)..cell(bytes.end)
}

/// The value that a tensor has in each cell: a mix of the operator's place and of all its inputs.
fn mix(seed: u64, inputs: impl Iterator<Item = u64>) -> u64 {
    let turn = |state: u64, value: u64| {
        (state ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ (state >> 7)
    };
    inputs.fold(turn(seed, 1), turn)
}

/// The cells of the pool that an operator reads and writes.
struct Work {
    stream: usize,
    reads: Vec<Range<usize>>,
    workspace: Range<usize>,
    /// Views write nothing.
    writes: Vec<Range<usize>>,
}

impl Work {
    /// Reads the inputs, uses the workspace, writes the outputs.
    fn run(&self, step: usize, pool: &[AtomicU64]) {
        let read = || self.reads.iter().flat_map(|cells| &pool[cells.clone()]);
        let value = mix(step as u64, read().map(|cell| cell.load(Ordering::Relaxed)));
        for (at, cell) in pool[self.workspace.clone()].iter().enumerate() {
            cell.store(value.wrapping_add(at as u64), Ordering::Relaxed);
        }
        let scratch = &pool[self.workspace.clone()];
        let value = mix(value, scratch.iter().map(|cell| cell.load(Ordering::Relaxed)));
        for (at, cells) in self.writes.iter().enumerate() {
            for (cell, place) in pool[cells.clone()].iter().zip(0_u64..) {
                cell.store(mix(value, [at as u64, place].into_iter()), Ordering::Relaxed);
            }
        }
    }
}

/// A sequence that is ready to run in the pool of its plan.
pub struct Program {
    works: Vec<Work>,
    waits: Vec<Vec<usize>>,
    streams: usize,
    cells: usize,
    outputs: Vec<Range<usize>>,
}

impl Program {
    /// Finds the cells of all tensors. Their sizes and the plan's alignment are multiples of a cell, and
    /// the plan has no inputs in the pool.
    ///
    /// # Errors
    ///
    /// If the plan is not one of the sequence.
    pub fn new(sequence: &OpSequence, plan: &Plan) -> Result<Self, Box<dyn Error>> {
        let placement = plan.placement(sequence)?;
        let place = |tensor: &TensorId| placement.bytes(*tensor).map_or(0..0, cells);
        let works = sequence.operators().iter().enumerate().map(|(step, operator)| {
            let reads: Vec<Range<usize>> = operator.inputs.iter().map(place).collect();
            let is_view = |output: &&TensorId| {
                use memplan::sequence::{Dependency, Origin};
                let origin = &sequence.tensor(**output).origin;
                matches!(origin, Origin::Output { dependency: Dependency::Reads { .. }, .. })
            };
            let written = operator.outputs.iter().filter(|output| !is_view(output));
            Work {
                stream: operator.stream,
                reads,
                workspace: placement.workspace(step).map_or(0..0, cells),
                writes: written.map(place).collect(),
            }
        });
        Ok(Self {
            works: works.collect(),
            waits: sequence.waits(),
            streams: sequence.streams(),
            cells: cells(0..plan.pool_size()).end,
            outputs: sequence.outputs().iter().map(place).collect(),
        })
    }

    fn outputs(&self, pool: &[AtomicU64]) -> Vec<u64> {
        let cells = self.outputs.iter().flat_map(|cells| &pool[cells.clone()]);
        cells.map(|cell| cell.load(Ordering::Relaxed)).collect()
    }

    fn pool(&self) -> Vec<AtomicU64> {
        (0..self.cells).map(|_| AtomicU64::new(0)).collect()
    }

    /// Runs the operators one by one.
    #[must_use]
    pub fn run_in_order(&self) -> Vec<u64> {
        let pool = self.pool();
        self.works.iter().enumerate().for_each(|(step, work)| work.run(step, &pool));
        self.outputs(&pool)
    }

    /// Runs each stream in a thread.
    #[must_use]
    pub fn run_on_streams(&self) -> Vec<u64> {
        let pool = self.pool();
        // The event of each operator: true once it is over.
        let events: Vec<AtomicBool> = self.works.iter().map(|_| AtomicBool::new(false)).collect();
        let stream = |stream: usize| {
            let own = self.works.iter().enumerate().filter(|(_, work)| work.stream == stream);
            for (step, work) in own {
                for &first in &self.waits[step] {
                    // Everything written before the event is visible after it.
                    while !events[first].load(Ordering::Acquire) {
                        thread::yield_now();
                    }
                }
                work.run(step, &pool);
                events[step].store(true, Ordering::Release);
            }
        };
        thread::scope(|scope| {
            for at in 0..self.streams {
                scope.spawn(move || stream(at));
            }
        });
        self.outputs(&pool)
    }
}

/// Two branches, each on its stream, that exchange values twice.
///
/// # Errors
///
/// Never: the operators are right.
pub fn network() -> Result<OpSequence, memplan::SequenceError> {
    let operator = |name: &str, stream: usize, inputs: &[&str]| {
        Operator::new(name).on_stream(stream).inputs(inputs.iter().copied())
    };
    let mut sequence = OpSequence::builder();
    sequence.operator(operator("stem", 0, &[]).output(Output::new("x", 2048)));
    for block in 0..4 {
        let x = if block == 0 { "x".to_owned() } else { format!("m{}", block - 1) };
        let name = |kind: &str| format!("{kind}{block}");
        let left = operator(&name("left"), 0, &[&x]).workspace(512);
        sequence.operator(left.output(Output::new(name("a"), 1024)));
        let act = operator(&name("act"), 0, &[&name("a")]);
        sequence.operator(act.output(Output::new(name("b"), 1024).overwrites(name("a"))));
        let right = operator(&name("right"), 1, &[&x]).workspace(1024);
        sequence.operator(right.output(Output::new(name("c"), 2048)));
        let norm = operator(&name("norm"), 1, &[&name("c")]);
        sequence.operator(norm.output(Output::new(name("d"), 1024)));
        let merge = operator(&name("merge"), block % 2, &[&name("b"), &name("d")]);
        sequence.operator(merge.output(Output::new(name("m"), 2048)));
    }
    sequence.output("m3").build()
}

fn main() -> Result<(), Box<dyn Error>> {
    let sequence = network()?;
    let plan = Planner::new().alignment(CELL).plan(&sequence)?;
    assert!(verify(&sequence, &plan).is_empty(), "the plan is wrong");
    let program = Program::new(&sequence, &plan)?;
    let expected = program.run_in_order();
    let runs = 1000;
    let wrong = (0..runs).filter(|_| program.run_on_streams() != expected).count();
    println!("{runs} runs on two streams in {} B: {wrong} with other values", plan.pool_size());
    assert_eq!(wrong, 0, "the plan is not safe on two streams");
    Ok(())
}

#[cfg(test)]
mod tests {
    use memplan::{Strategy, verify::execute};

    use super::*;

    #[test]
    fn two_streams_in_one_pool_give_equal_bits_a_thousand_times() {
        let sequence = network().unwrap();
        for strategy in [Strategy::Best, Strategy::FirstFit] {
            let plan = Planner::new().strategy(strategy).alignment(CELL).plan(&sequence).unwrap();
            assert_eq!(verify(&sequence, &plan), []);
            assert_eq!(execute(&sequence, &plan), []);
            let program = Program::new(&sequence, &plan).unwrap();
            let expected = program.run_in_order();
            assert!((0..500).all(|_| program.run_on_streams() == expected), "{strategy}");
        }
    }
}
