//! Problems one after the other in one pool, with chunks that they share.

use std::convert::Infallible;

use memplan::{
    PlanError, Planner, Problem, ProblemError, Strategy,
    planner::PlanCache,
    problem::{ChunkId, Pool, ProblemBuilder, Request},
    verify::verify,
};
use rstest::rstest;

use crate::common::{
    random::{Wild, random_problem},
    seeds::times,
};

/// The plan is right, and each phase lies in it as if it were alone: nothing else shares its steps.
fn check(problem: &Problem, strategy: Strategy) -> u64 {
    let plan = Planner::new().strategy(strategy).plan(problem).unwrap();
    assert_eq!(verify(problem, &plan), [], "{problem:?}");
    plan.pool_size()
}

#[test]
fn phases_that_share_nothing_take_what_the_largest_takes() {
    let wild = Wild { chunks: 7, steps: 5, size: 9, alignment: false };
    let one = |random: &mut arbitrary::Unstructured<'_>| {
        let (first, second) = (random_problem(random, wild)?, random_problem(random, wild)?);
        let both = first.clone().concat(&second, &[]).unwrap();
        assert!(both.is_unconstrained());
        assert_eq!(both.steps(), first.steps() + second.steps());
        let bounds = [&first, &second].map(Problem::lower_bound);
        assert_eq!(both.lower_bound(), bounds[0].max(bounds[1]));
        let alone = [&first, &second].map(|problem| check(problem, Strategy::Optimal));
        assert_eq!(check(&both, Strategy::Optimal), alone[0].max(alone[1]));
        for strategy in [Strategy::Pushdown, Strategy::Naive, Strategy::TfliteGreedyBySize] {
            check(&both, strategy);
        }
        Ok(())
    };
    times(1500, one);
}

#[test]
fn shared_chunks_are_alive_all_the_time() {
    let wild = Wild { chunks: 6, steps: 5, size: 9, alignment: true };
    let one = |random: &mut arbitrary::Unstructured<'_>| {
        let first = random_problem(random, wild)?;
        let second = random_problem(random, wild)?;
        let alike = first.ids().flat_map(|a| second.ids().map(move |b| (a, b)));
        let size =
            |pair: &(ChunkId, ChunkId)| (first.chunk(pair.0).size, second.chunk(pair.1).size);
        let alike: Vec<(ChunkId, ChunkId)> =
            alike.filter(|pair| size(pair).0 == size(pair).1).collect();
        if alike.is_empty() {
            return Ok(());
        }
        let pair = *random.choose(&alike)?;
        // Padding and alignment may differ, and the larger ones count.
        let both = first.clone().concat(&second, &[pair]).unwrap();
        assert_eq!(both.len(), first.len() + second.len() - 1);
        let shared = both.chunk(pair.0);
        assert_eq!((shared.begin, shared.end), (0, both.steps()));
        check(&both, Strategy::Best);
        Ok(())
    };
    times(1500, one);
}

/// A chunk of the later phase needs its bytes again after a hole, in the steps of that phase.
#[test]
fn holes_and_windows_move_with_their_phase() {
    let mut first = Problem::builder();
    first.chunk(0..3, 1);
    let mut second = Problem::builder();
    let (held, windowed) = (second.chunk(0..9, 64), second.chunk(0..9, 64));
    second.hole(held, 2..4).window(windowed, 5..6, 0..8);
    second.chunk(1..3, 64);
    let second = second.build().unwrap();
    let both = first.build().unwrap().concat(&second, &[]).unwrap();
    assert_eq!(check(&both, Strategy::Optimal), check(&second, Strategy::Optimal));
    let text = serde_json::to_value(&both).unwrap();
    assert_eq!(text["chunks"][1]["holes"], serde_json::json!([[5, 7]]));
    assert_eq!(text["chunks"][2]["windows"][0]["begin"], 8);
}

/// A state that each phase updates in its place: four chunks, one run of bytes.
#[test]
fn a_required_update_of_a_shared_state_stays_in_its_place() {
    let phase = || {
        let mut phase = Problem::builder();
        let old = phase.named_chunk("old", 0..2, 64);
        let new = phase.named_chunk("new", 1..3, 64);
        phase.named_chunk("other", 0..3, 16);
        phase.request(Request::new(new, old, 0).required(true));
        (phase.build().unwrap(), old, new)
    };
    let ((first, _, new), (second, old, last)) = (phase(), phase());
    let both = first.concat(&second, &[(new, old)]).unwrap();
    let last = ChunkId(last.0 + 2);
    let plan = Planner::new().plan(&both).unwrap();
    assert_eq!(verify(&both, &plan), []);
    let at = |chunk| plan.chunk_offset(chunk);
    assert_eq!([at(ChunkId(0)), at(new), at(last)], [at(new); 3]);
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (80, true));
}

/// A state that the first phase updates twice, of which the last update is shared.
#[test]
fn all_updates_of_a_shared_state_stay_in_its_place() {
    let mut first = Problem::builder();
    let chunks = [first.chunk(0..2, 64), first.chunk(1..3, 64), first.chunk(2..4, 64)];
    for pair in chunks.windows(2) {
        first.request(Request::new(pair[1], pair[0], 0).required(true));
    }
    let mut second = Problem::builder();
    let state = second.chunk(0..2, 64);
    let (first, second) = (first.build().unwrap(), second.build().unwrap());
    for chunk in chunks {
        let both = first.clone().concat(&second, &[(chunk, state)]).unwrap();
        let plan = Planner::new().plan(&both).unwrap();
        assert_eq!(verify(&both, &plan), []);
        assert_eq!((plan.pool_size(), plan.proven_optimal()), (64, true));
    }
}

/// Two streams, then one: all later clocks come after all earlier ones.
#[test]
fn a_phase_on_streams_is_over_before_the_next_begins() {
    let mut first = Problem::builder();
    let (a, b) = (first.chunk(0..1, 8), first.chunk(0..1, 8));
    first.streams(2);
    first.clocks(a, [0, 0], [3, 0], 0);
    first.clocks(b, [0, 0], [0, 2], 1);
    let mut second = Problem::builder();
    second.chunk(0..2, 12);
    let d = second.chunk(1..3, 4);
    let (first, second) = (first.build().unwrap(), second.build().unwrap());
    let apart = first.clone().concat(&second, &[]).unwrap();
    assert_eq!(check(&apart, Strategy::Optimal), 16);
    let back = second.clone().concat(&first, &[]).unwrap();
    assert_eq!(check(&back, Strategy::Optimal), 16);
    let mut third = Problem::builder();
    let e = third.chunk(0..1, 4);
    let shared = back.concat(&third.build().unwrap(), &[(d, e)]).unwrap();
    assert_eq!(check(&shared, Strategy::Optimal), 20);
}

fn two(size: u64, build: impl Fn(&mut ProblemBuilder, ChunkId)) -> Problem {
    let mut problem = Problem::builder();
    let chunk = problem.named_chunk("a", 0..2, size);
    build(&mut problem, chunk);
    problem.build().unwrap()
}

fn in_sram(problem: &mut ProblemBuilder, offset: u64, chunk: ChunkId) {
    let sram = problem.pool(Pool::new("sram").cost(1));
    problem.pool(Pool::new("psram").cost(9));
    problem.pin(chunk, sram, offset);
}

#[test]
fn pools_and_pins_are_those_of_both() {
    let pinned = two(8, |problem, chunk| in_sram(problem, 64, chunk));
    let plain = two(8, |_, _| ());
    let shared = [(ChunkId(0), ChunkId(0))];
    for (first, second) in [(&pinned, &plain), (&plain, &pinned), (&pinned, &pinned)] {
        let both = first.clone().concat(second, &shared).unwrap();
        assert_eq!(both.pools().len(), 2);
        let plan = Planner::new().plan(&both).unwrap();
        assert_eq!(verify(&both, &plan), []);
        assert_eq!((plan.chunks().len(), plan.chunks()[0].offset), (1, 64));
        // Both phases move its bytes.
        assert_eq!(plan.traffic(), 16);
    }
    let apart = plain.concat(&pinned, &[]).unwrap();
    assert_eq!(Planner::new().plan(&apart).unwrap().chunks()[1].offset, 64);
}

#[rstest]
#[case::unknown(two(8, |_, _| ()), (ChunkId(0), ChunkId(1)), "a shared chunk")]
#[case::sizes(two(9, |_, _| ()), (ChunkId(0), ChunkId(0)), "they have 8 and 9 B")]
#[case::pins(two(8, |p, c| in_sram(p, 0, c)), (ChunkId(0), ChunkId(0)), "pinned")]
#[case::pools(two(8, |p, _| { p.pool(Pool::new("other")); }), (ChunkId(0), ChunkId(0)),
    "list other pools")]
fn what_cannot_be_shared_is_refused(
    #[case] second: Problem,
    #[case] shared: (ChunkId, ChunkId),
    #[case] words: &str,
) {
    let first = two(8, |problem, chunk| in_sram(problem, 64, chunk));
    let error = first.clone().concat(&second, &[shared]).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    let twice = [(ChunkId(0), ChunkId(0)); 2];
    let error = first.clone().concat(&first, &twice).unwrap_err();
    assert!(matches!(error, ProblemError::Shared { .. }), "{error}");
}

/// Plans for lists of sizes whose sum, product and exclusive or are equal are kept apart.
#[test]
fn plans_are_kept_by_the_sizes_themselves() {
    let planned = |rows: u64, columns: u64| {
        let mut problem = Problem::builder();
        problem.chunk(0..1, rows * 100 + columns);
        Planner::new().plan(&problem.build().unwrap())
    };
    let mut plans = PlanCache::default();
    for (rows, columns) in [(1, 32), (32, 1), (2, 2), (3, 3)] {
        let plan = plans.get_or_plan(&[rows, columns], || planned(rows, columns)).unwrap();
        assert_eq!(plan.pool_size(), rows * 100 + columns);
    }
    let again = plans.get_or_plan(&[2, 2], || -> Result<_, Infallible> { unreachable!() });
    assert_eq!(again.unwrap().pool_size(), 202);
    assert_eq!((plans.len(), plans.pool_size()), (4, 3201));
    let shape = |of: &[u64]| plans.dominating(of).map(|(shape, _)| shape.to_vec());
    assert_eq!(shape(&[2, 3]), Some(vec![3, 3]));
    assert_eq!(shape(&[1, 1]), Some(vec![1, 32]));
    assert_eq!(shape(&[4, 4]), None);
    assert_eq!(shape(&[1]), None);
    assert!(plans.get(&[1]).is_none());
    let failed = plans.get_or_plan(&[9], || Err(PlanError::Infeasible)).unwrap_err();
    assert_eq!((failed, plans.len()), (PlanError::Infeasible, 4));
}
