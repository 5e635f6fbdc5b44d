//! A constraint that binds nothing changes nothing: the pool, the proof and the nodes stay.

use std::{
    fmt::{self, Write},
    sync::Mutex,
};

use memplan::{
    Bytes, InputRef, Problem, Strategy,
    lower::{LoweringOptions, lower},
    search::{Layout, Limits, Observer, Progress, lay_out},
};

use crate::{
    chains, hard,
    no_op_variants::variants,
    same_plan::files,
    tilings::{declare, declare_stepped, guillotine, pinwheel},
};

/// A fixed effort, so that hard problems do not take seconds.
const NODES: u64 = 20_000;

/// The most chunks: the slowest of these problems takes a second.
const MAX_CHUNKS: usize = 2_500;

/// What a search found, and how much it searched for that.
#[derive(Clone, Copy, PartialEq)]
struct Found {
    pool: Bytes,
    is_proven: bool,
    nodes: u64,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proof = if self.is_proven { "proven" } else { "open" };
        write!(f, "{} {proof}", self.pool)
    }
}

impl Found {
    /// Returns whether a search found the same with the same effort, within a tenth or some nodes.
    fn is_like(&self, other: Self) -> bool {
        let most = self.nodes.max(other.nodes);
        let is_near = self.nodes.abs_diff(other.nodes) <= most / 10 + 1000;
        is_near && (self.pool, self.is_proven) == (other.pool, other.is_proven)
    }
}

/// Plans a problem, and adds up the nodes of all searches.
fn plan(problem: &Problem) -> (Layout, Found) {
    // The nodes of the searches that have ended, and of the one that runs.
    let nodes = Mutex::new((0, 0));
    let count = |progress: &Progress| {
        let mut nodes = nodes.lock().unwrap();
        if progress.nodes < nodes.1 {
            nodes.0 += nodes.1;
        }
        nodes.1 = progress.nodes;
    };
    let observer = Observer::default().progress(&count);
    let limits = Limits::default().nodes(NODES);
    let layout = lay_out(Strategy::Best, problem, &limits, observer).unwrap();
    let (ended, last) = nodes.into_inner().unwrap();
    let pool = layout.pool_size(problem);
    let bound = problem.lower_bound().max(layout.lower_bound);
    let is_proven = layout.is_proven || bound == pool;
    (layout, Found { pool, is_proven, nodes: ended + last })
}

/// Problems without constraints, by name.
fn problems() -> Vec<(String, Problem)> {
    let mut problems = Vec::new();
    for chunks in [40, 400] {
        problems.push((format!("scattered {chunks}"), hard::scattered(chunks)));
    }
    let lives =
        [("flat", hard::flat()), ("uneven", hard::uneven(300)), ("short", hard::short_lives(600))];
    for (name, lives) in lives {
        let mut problem = Problem::builder();
        for (begin, end, size) in lives {
            problem.chunk(begin..end, size);
        }
        problems.push((name.to_owned(), problem.build().unwrap()));
    }
    for (name, tiles, one_in) in [
        ("guillotine 200", guillotine(200, 3), 0),
        ("pinwheel 129", pinwheel(129, 3), 0),
        ("stepped 160", guillotine(160, 5), 8),
    ] {
        let mut problem = Problem::builder();
        match one_in {
            0 => declare(&mut problem, &tiles),
            one_in => declare_stepped(&mut problem, &tiles, one_in),
        }
        problems.push((name.to_owned(), problem.build().unwrap()));
    }
    let staircases = chains::sequence_of(&chains::staircases(300, 1));
    let staircases = lower(&staircases, LoweringOptions::default()).unwrap().problem;
    problems.push(("staircases 300".to_owned(), staircases));
    for (name, input) in
        files(&["models", "problems/challenging", "problems/edges", "problems/training"])
    {
        let problem = InputRef::from(&input).lower(LoweringOptions::default()).unwrap().problem;
        if problem.is_unconstrained() && problem.len() <= MAX_CHUNKS {
            problems.push((name, problem));
        }
    }
    problems
}

#[test]
fn constraints_that_bind_nothing_change_nothing() {
    let mut changed = String::new();
    let mut tried = 0;
    for (name, problem) in problems() {
        let (layout, found) = plan(&problem);
        for (variant, problem) in variants(&problem, &layout) {
            let (_, other) = plan(&problem);
            tried += 1;
            if !found.is_like(other) {
                let nodes =
                    if found.nodes.abs_diff(other.nodes) > 1000 { ", other nodes" } else { "" };
                writeln!(changed, "{name}, {variant}: {other}, not {found}{nodes}").unwrap();
            }
        }
    }
    assert!(changed.is_empty(), "of {tried} variants, these change:\n{changed}");
}
