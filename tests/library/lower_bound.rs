//! The lower bound holds: no valid plan is smaller.

use crate::common::{
    problems::{Segment, footprint},
    random::{Wild, random_problem},
    seeds::times,
};
use memplan::{Problem, problem::ChunkId};

/// The smallest possible pool, found by trying every aligned offset for every root.
fn smallest_pool(problem: &Problem) -> u64 {
    let roots: Vec<ChunkId> = problem.roots().collect();
    let segments: Vec<Vec<Segment>> = roots.iter().map(|&root| footprint(problem, root)).collect();
    let top = |at: usize, base: u64| problem.align_up(base + problem.padded_size(roots[at]));
    let fits = |bases: &[u64], at: usize, base: u64| {
        bases.iter().enumerate().all(|(other, &other_base)| {
            segments[at].iter().all(|a| {
                segments[other].iter().all(|b| {
                    a.end <= b.begin
                        || b.end <= a.begin
                        || base + a.high <= other_base + b.low
                        || other_base + b.high <= base + a.low
                })
            })
        })
    };
    let mut best = problem.naive_size();
    let mut open = vec![Vec::new()];
    while let Some(bases) = open.pop() {
        let at = bases.len();
        if at == roots.len() {
            best = best.min((0..at).map(|at| top(at, bases[at])).max().unwrap_or(0));
            continue;
        }
        let mut base = 0;
        while top(at, base) <= best {
            if fits(&bases, at, base) {
                let mut next = bases.clone();
                next.push(base);
                open.push(next);
            }
            base += problem.alignment();
        }
    }
    best
}

#[test]
fn no_plan_is_smaller_than_the_lower_bound() {
    let mut met = 0;
    times(1500, |random| {
        let wild = Wild { chunks: 5, steps: 5, size: 7, alignment: true };
        let problem = random_problem(random, wild)?;
        let (bound, smallest) = (problem.lower_bound(), smallest_pool(&problem));
        assert!(bound <= smallest, "bound {bound}, smallest pool {smallest}: {problem:#?}");
        met += usize::from(bound == smallest && problem.has_links());
        Ok(())
    });
    assert!(met > 0, "the bound was met on {met} problems with links only");
}

#[test]
fn more_bytes_never_shrink_the_bound() {
    times(600, |random| {
        let wild = Wild { chunks: 20, steps: 20, size: 50, alignment: false };
        let problem = random_problem(random, wild)?;
        let padded = problem.clone().with_padding(3).unwrap();
        assert!(problem.lower_bound() <= padded.lower_bound());
        let aligned = problem.clone().with_alignment(16).unwrap();
        assert!(problem.lower_bound() <= aligned.lower_bound());
        Ok(())
    });
}
