//! `best` gives up overwrites of a part where that makes the pool smaller, and no others.

use memplan::{
    Input, Plan, Planner, Problem, Strategy,
    problem::{ChunkId, Request},
    search::Limits,
    verify::{execute, verify},
};
use rstest::rstest;
use serde_json::json;

use crate::chains::{sequence_of, staircases};

/// The drawn chains as a problem; all overwrites may be required.
fn problem(chunks: u64, seed: u64, alignment: u64, padding: u64, required: bool) -> Problem {
    let mut problem = Problem::builder().alignment(alignment).padding(padding);
    for (at, chunk) in staircases(chunks, seed).iter().enumerate() {
        let id = problem.chunk(chunk.begin..chunk.end, chunk.size);
        if let Some((over, offset)) = chunk.over {
            let request = Request::new(ChunkId::from_index(at), ChunkId::from_index(over), offset);
            problem.request(request.required(required));
            assert_eq!(id, request.overwriter);
        }
    }
    problem.build().unwrap()
}

fn plan(input: &Input, strategy: Strategy) -> Plan {
    // The effort that is enough by far, so that debug builds are quick.
    let limits = Limits::default().nodes(100_000);
    Planner::new().strategy(strategy).limits(limits).plan(input).unwrap()
}

fn overwriters(plan: &Plan) -> usize {
    plan.chunks().iter().filter(|chunk| chunk.overwrites.is_some()).count()
}

/// With all overwrites, none of these is packed as well. Chunks written over the whole of another stay there.
#[rstest]
fn fewer_overwrites_make_smaller_pools(#[values(1, 2, 3, 4)] seed: u64) {
    let problem = problem(600, seed, 1, 0, false);
    let input = Input::Problem(problem.clone());
    let plan = plan(&input, Strategy::Best);
    let optimal = self::plan(&input, Strategy::Optimal);
    assert_eq!(verify(&problem, &plan), []);
    assert_eq!(overwriters(&optimal), problem.links_taken());
    assert!(
        plan.pool_size() < optimal.pool_size(),
        "{} of {}",
        plan.pool_size(),
        optimal.pool_size()
    );
    assert_eq!(plan.lower_bound(), problem.lower_bound());
    assert!(overwriters(&plan) < problem.links_taken());
    for (id, planned) in problem.ids().zip(plan.chunks()) {
        if let Some((old, _)) = problem.overwritten(id)
            && problem.chunk(old).size == planned.size
        {
            assert!(planned.overwrites.is_some(), "{}", planned.name);
        }
    }
}

#[test]
fn required_overwrites_are_never_given_up() {
    let problem = problem(600, 1, 1, 0, true);
    let plan = plan(&Input::Problem(problem.clone()), Strategy::Best);
    assert_eq!(verify(&problem, &plan), []);
    assert_eq!(overwriters(&plan), problem.links_taken());
}

#[rstest]
#[case(1, 0)]
#[case(64, 0)]
#[case(256, 40)]
#[case(4096, 1)]
fn plans_of_a_problem_are_right(#[case] alignment: u64, #[case] padding: u64) {
    let mut given_up = 0;
    for seed in 0..8 {
        let problem = problem(100 + 60 * seed, seed, alignment, padding, false);
        let plan = plan(&Input::Problem(problem.clone()), Strategy::Best);
        assert_eq!(verify(&problem, &plan), [], "seed {seed}");
        assert!(plan.lower_bound() <= plan.pool_size());
        given_up += problem.links_taken() - overwriters(&plan);
    }
    assert!(given_up > 0);
}

/// The operators write and read what they should, and tensors of the plan lie where its chunks lie.
#[test]
fn plans_of_a_sequence_run_right() {
    let drawn = staircases(600, 2);
    let input = Input::Sequence(sequence_of(&drawn));
    let plan = plan(&input, Strategy::Best);
    let Input::Sequence(sequence) = &input else { unreachable!("it was made of one") };
    assert_eq!(verify(sequence, &plan), []);
    assert_eq!(execute(sequence, &plan), []);
    assert!(overwriters(&plan) < drawn.iter().filter(|chunk| chunk.over.is_some()).count());
}

/// A pool that `best` finds is not denied when asked for.
#[rstest]
fn a_capacity_may_be_met_with_fewer_overwrites(#[values(1, 3)] seed: u64) {
    let problem = problem(600, seed, 1, 0, false);
    let limits = Limits::default().nodes(100_000);
    let fit = |strategy, capacity| {
        Planner::new().strategy(strategy).limits(limits).fit(&problem, capacity).unwrap()
    };
    let bound = problem.lower_bound();
    let capacity = bound + bound / 100;
    let plan = fit(Strategy::Best, capacity);
    assert_eq!(verify(&problem, &plan), []);
    assert!(plan.pool_size() <= capacity, "seed {seed}");
    assert!(fit(Strategy::Optimal, capacity).pool_size() > capacity, "seed {seed}");
    assert_eq!(fit(Strategy::Best, bound - 1).fits(bound - 1), Some(false));
}

/// A place that an overwrite takes away is not denied to other plans.
#[rstest]
#[case(7)]
#[case(10)]
fn an_overwrite_that_leaves_no_place_is_given_up(#[case] capacity: u64) {
    let problem: Problem = serde_json::from_value(json!({
        "format": "memplan-problem/2",
        "pools": [{"name": "pool", "capacity": 7}],
        "chunks": [
            {"id": 0, "name": "low", "size": 1, "begin": 4, "end": 7},
            {"id": 1, "name": "high", "size": 6, "begin": 5, "end": 8},
            {"id": 2, "name": "before", "size": 4, "begin": 2, "end": 5},
            {"id": 3, "name": "pinned", "size": 4, "begin": 7, "end": 8, "pin": {"offset": 3, "pool": "pool"}},
        ],
        "overwrites": [
            {"chunk": 0, "overwritten": 2, "offset": 2},
            {"chunk": 3, "overwritten": 1, "offset": 2},
        ],
    }))
    .unwrap();
    let planned = Planner::new().plan(&problem).unwrap();
    let fitting = Planner::new().fit(&problem, capacity).unwrap();
    for plan in [planned, fitting] {
        assert_eq!(verify(&problem, &plan), []);
        assert_eq!(plan.pool_size(), 7);
    }
}
