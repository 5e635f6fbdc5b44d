//! Random problems, and a slow check of plans.

use arbitrary::{Result, Unstructured};
use memplan::{Plan, Problem, problem::ChunkId};

/// How wild random problems are.
#[derive(Clone, Copy)]
pub struct Wild {
    pub chunks: usize,
    pub steps: u64,
    pub size: u64,
    pub alignment: bool,
}

/// A problem with overlapping lives, requests of which many can be honoured, and sometimes an
/// alignment and a padding.
pub fn random_problem(random: &mut Unstructured<'_>, wild: Wild) -> Result<Problem> {
    let mut problem = Problem::builder();
    if wild.alignment {
        problem = problem
            .alignment(1 << random.int_in_range(0..=4)?)
            .padding(random.int_in_range(0..=3)?);
    }
    let count = random.int_in_range(0..=wild.chunks)?;
    let mut chunks: Vec<(u64, u64, u64)> = Vec::with_capacity(count);
    for at in 0..count {
        // Half of the chunks begin where an earlier one ends, so that they may overwrite it.
        let over =
            if at > 0 && random.ratio(1, 2)? { Some(random.choose_index(at)?) } else { None };
        let begin = match over {
            Some(over) => chunks[over].1 - 1,
            None => random.int_in_range(0..=wild.steps - 1)?,
        };
        let end = begin + random.int_in_range(1..=wild.steps.div_ceil(2))?;
        let most = over.map_or(wild.size, |over| chunks[over].2);
        let size = random.int_in_range(u64::from(most > 0)..=most)?;
        let chunk = problem.chunk(begin..end, size);
        chunks.push((begin, end, size));
        if let Some(over) = over {
            let offset = random.int_in_range(0..=chunks[over].2 - size)?;
            problem.overwrite(chunk, ChunkId::from_index(over), offset);
        }
    }
    Ok(problem.build().unwrap())
}

/// Whether a plan is right, by the definition and in O(n^2), without links: whatever shares a byte
/// in a step must be joined by overwriting.
pub fn is_right_slowly(plan: &Plan) -> bool {
    let bytes = |at: usize| {
        let chunk = &plan.chunks[at];
        let padding = if chunk.size > 0 { plan.padding } else { 0 };
        (chunk.offset, chunk.offset + chunk.size + padding)
    };
    let mut overwriters = vec![0; plan.chunks.len()];
    for (at, chunk) in plan.chunks.iter().enumerate() {
        if let Some((old, offset)) = chunk.overwrites {
            overwriters[old] += 1;
            let inside = offset + chunk.size <= plan.chunks[old].size;
            let placed = chunk.offset == plan.chunks[old].offset + offset;
            if !inside || !placed || chunk.begin + 1 != plan.chunks[old].end || old == at {
                return false;
            }
        } else if chunk.size > 0 && chunk.offset % plan.alignment != 0 {
            return false;
        }
        if chunk.size > 0 && bytes(at).1 > plan.pool_size {
            return false;
        }
    }
    if overwriters.iter().any(|&count| count > 1) {
        return false;
    }
    // Every chunk that a chunk overwrites, directly or not.
    let below = |at: usize| {
        let mut chain = Vec::new();
        let mut next = plan.chunks[at].overwrites;
        while let Some((old, _)) = next {
            if chain.contains(&old) {
                return None;
            }
            chain.push(old);
            next = plan.chunks[old].overwrites;
        }
        Some(chain)
    };
    for first in 0..plan.chunks.len() {
        let Some(first_below) = below(first) else { return false };
        for second in first + 1..plan.chunks.len() {
            let Some(second_below) = below(second) else { return false };
            let (a, b) = (&plan.chunks[first], &plan.chunks[second]);
            let (low, high) = (a.begin.max(b.begin), a.end.min(b.end));
            // The overwriter's first step is the only one that they may share.
            let newer = if first_below.contains(&second) {
                Some(a)
            } else if second_below.contains(&first) {
                Some(b)
            } else {
                None
            };
            let low = newer.map_or(low, |newer| low.max(newer.begin + 1));
            let ((a_low, a_high), (b_low, b_high)) = (bytes(first), bytes(second));
            if a.size > 0 && b.size > 0 && low < high && a_low < b_high && b_low < a_high {
                return false;
            }
        }
    }
    let roots =
        plan.chunks.iter().enumerate().filter(|(_, c)| c.overwrites.is_none() && c.size > 0);
    let top = roots.map(|(at, _)| bytes(at).1.next_multiple_of(plan.alignment)).max().unwrap_or(0);
    top == plan.pool_size && plan.lower_bound <= plan.pool_size
}
