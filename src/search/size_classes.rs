//! Size classes: the fastest planner that shares memory, for when there is no time for a better plan.
//!
//! **Idea.** Sizes are rounded up to one of four classes per power of two, and only chains of the same class share
//! memory. So each class is planned by itself, and its chains and their times fit in a cache. A chain takes the block
//! that became free last, or if none is free, a new one at the top. A class takes as many blocks as the most of its
//! chains that are alive at once, each as large as its largest chain.
//!
//! **Cost.** O(n log n): for a million chunks, a tenth of what pushdown takes where many are alive at once. The pool
//! can be several times as large.

use crate::{
    Bytes, Problem, Step,
    plan::Layout,
    problem::{ChunkId, Segment},
    steps::{indices, sorted_by_step},
};

/// A chain from its first to its last step.
#[derive(Clone, Copy, Default)]
struct Life {
    begin: Step,
    end: Step,
    root: ChunkId,
    /// In bytes, padding included; 0 if the chunk is not a root.
    size: Bytes,
}

impl Life {
    fn of(problem: &Problem, root: ChunkId) -> Self {
        if problem.link(root).is_some() {
            return Self::default();
        }
        let Segment { begin, end, high: size, .. } = problem.bounding_box(root);
        Self { begin, end, root, size }
    }
}

/// The number of the class of a size: it is rounded up to a multiple of a quarter of the largest power of two that is
/// not above it.
fn class_of(size: Bytes) -> u64 {
    let quarter = size.checked_ilog2().unwrap_or(0).saturating_sub(2);
    4 * u64::from(quarter) + size.div_ceil(1 << quarter)
}

/// Plans a problem.
pub(super) fn layout(problem: &Problem) -> Layout {
    // Rounded up, sizes near the limits of 64 bits could exceed them.
    let is_rounded = problem.naive_size() < Bytes::MAX / 2;
    let class = |life: &Life| if is_rounded { class_of(life.size) } else { life.size };
    let last = class(&Life { size: Bytes::MAX, ..Life::default() });
    let lives = problem.ids().map(|chunk| Life::of(problem, chunk));
    let by_class = sorted_by_step(lives, last, class);
    let mut bases = vec![0; problem.len()];
    let mut top = 0;
    for lives in by_class.chunk_by(|a, b| class(a) == class(b)).filter(|lives| lives[0].size > 0) {
        let largest = lives.iter().map(|life| life.size).max().unwrap_or(0);
        let in_order = |step: fn(&Life) -> Step| {
            let steps = indices(lives.len()).map(|at| (step(&lives[at as usize]), at));
            sorted_by_step(steps, problem.steps(), |&(step, _)| step)
        };
        let mut ended = in_order(|life| life.end).into_iter().peekable();
        // By life, and those that are free.
        let (mut blocks, mut free): (Vec<Bytes>, _) = (vec![0; lives.len()], Vec::new());
        for (begin, new) in in_order(|life| life.begin) {
            while let Some((_, last)) = ended.next_if(|&(end, _)| end <= begin) {
                free.push(blocks[last as usize]);
            }
            blocks[new as usize] = free.pop().unwrap_or_else(|| {
                let block = top;
                top = problem.align_up(block + largest);
                block
            });
        }
        for (life, block) in lives.iter().zip(blocks) {
            bases[life.root.index()] = block;
        }
    }
    Layout::from_roots(problem, |root| bases[root.index()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, search::samples::random_problem, verify::verify};

    fn offsets(problem: &Problem) -> Vec<Bytes> {
        layout(problem).offsets
    }

    #[test]
    fn plans_in_size_classes_are_right_however_large_the_sizes_are() {
        let shift = [0, 8, 56];
        arbtest::arbtest(|random| {
            let small = random_problem(random)?;
            let shift = random.choose(&shift)?;
            let mut problem = Problem::builder().alignment(small.alignment());
            let ids: Vec<_> = small
                .ids()
                .map(|id| {
                    let chunk = small.chunk(id);
                    problem.chunk(chunk.begin..chunk.end, chunk.size << shift)
                })
                .collect();
            for id in small.ids() {
                if let Some(link) = small.link(id) {
                    let over = ids[link.overwritten.index()];
                    problem.overwrite(ids[id.index()], over, link.offset << shift);
                }
            }
            let Ok(problem) = problem.build() else { return Ok(()) };
            let plan = Plan::from_offsets(&problem, &offsets(&problem)).unwrap();
            assert_eq!(verify(&problem, &plan), []);
            Ok(())
        })
        .budget_ms(200);
    }

    /// Chunks of a class share a block, others do not. Smaller classes lie lower.
    #[test]
    fn a_block_is_shared_by_chunks_of_its_class() {
        for (size, expected) in
            [(80, [0, 0]), (79, [0, 0]), (65, [0, 0]), (64, [64, 0]), (81, [0, 80])]
        {
            let mut problem = Problem::builder();
            problem.chunk(0..1, 80);
            problem.chunk(1..2, size);
            assert_eq!(offsets(&problem.build().unwrap()), expected, "{size}");
        }
        // A block has room for the largest chunk of its class, whatever lies in it first.
        let mut problem = Problem::builder();
        problem.chunk(0..1, 65);
        problem.chunk(0..2, 7);
        problem.chunk(1..2, 80);
        problem.chunk(0..1, 66);
        assert_eq!(offsets(&problem.build().unwrap()), [7, 0, 87, 87]);
    }

    /// With few and with many chunks for each step.
    #[test]
    fn a_class_takes_as_few_blocks_as_chunks_are_alive_at_once() {
        arbtest::arbtest(|random| {
            let mut problem = Problem::builder();
            let steps = *random.choose(&[4, 40, 4000])?;
            for _ in 0..random.int_in_range(1..=30)? {
                let begin = random.int_in_range(0..=steps)?;
                problem.chunk(begin..begin + random.int_in_range(1..=steps)?, 100);
            }
            let problem = problem.build().unwrap();
            assert_eq!(layout(&problem).pool_size(&problem), problem.lower_bound());
            Ok(())
        })
        .budget_ms(200);
    }
}
