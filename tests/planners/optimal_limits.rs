//! The optimal planner keeps to its limits, reports its progress, and answers the same each time.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{common::constraints::Dice, hard, tilings};
use memplan::{
    Bytes, Planner, Problem, Strategy,
    problem::{ChunkId, Pool, PoolId, ProblemBuilder},
    report,
    search::{Fit, Layout, Limits, Observer, Progress, conflict, fits, lay_out, optimize},
    verify::verify,
};
use rstest::rstest;

fn problem(chunks: Vec<(u64, u64, u64)>) -> Problem {
    let mut problem = Problem::builder();
    for (begin, end, size) in chunks {
        problem.chunk(begin..end, size);
    }
    problem.build().unwrap()
}

fn pushdown(problem: &Problem) -> Layout {
    lay_out(Strategy::Pushdown, problem, &Limits::default(), Observer::default()).unwrap()
}

fn flat() -> Problem {
    problem(hard::flat())
}

fn hard() -> Problem {
    problem(hard::uneven(300))
}

#[test]
fn the_same_effort_gives_the_same_answer() {
    let problem = hard();
    for nodes in [0, 1, 1000, 20_000] {
        let limits = Limits::default().nodes(nodes);
        let answer = || optimize(&problem, &limits, Observer::default());
        assert_eq!(answer(), answer());
    }
}

#[test]
fn more_effort_is_never_worse() {
    let problem = hard();
    let mut last = Bytes::MAX;
    for nodes in [0, 1000, 5000, 30_000] {
        let limits = Limits::default().nodes(nodes);
        let outcome = optimize(&problem, &limits, Observer::default());
        assert!(outcome.pool_size <= last);
        assert!(outcome.lower_bound <= outcome.pool_size);
        last = outcome.pool_size;
    }
}

/// The search is cancelled while it packs or while it searches.
#[rstest]
fn a_cancelled_search_gives_the_best_so_far(#[values(0, 1)] nodes: u64) {
    let problem = flat();
    let cancel = AtomicBool::new(false);
    let progress = |p: &Progress| {
        assert!(p.lower_bound <= p.best);
        cancel.fetch_or(p.nodes >= nodes, Ordering::Relaxed);
    };
    let observer = Observer::default().cancel(&cancel).progress(&progress);
    let limits = Limits::default().nodes(u64::MAX);
    let outcome = optimize(&problem, &limits, observer);
    assert_eq!(outcome.pool_size, outcome.layout.pool_size(&problem));
    assert!(!outcome.proven_optimal && (nodes..10_000).contains(&outcome.nodes));
    cancel.store(false, Ordering::Relaxed);
    assert_eq!(fits(&problem, outcome.lower_bound, &limits, observer), Fit::Unknown);
}

/// A run of short lives, most of whose crowded steps simple planners do not pack at the bound.
fn long_run() -> Problem {
    let lives = (0..1500).map(|step| {
        let size = 1 + step * 7919 % 37;
        (step, step + 1 + step * 31 % 9, if step % 100 < 9 { 40 * size } else { size })
    });
    problem(lives.collect())
}

/// Wherever a search is cancelled, while it repairs peaks, packs, completes or searches, it gives a right plan at once,
/// which is no larger than the best that it has reported.
#[rstest]
#[case::flat(flat(), 3000)]
#[case::few(problem(hard::uneven(40)), 3000)]
#[case::many(long_run(), 60_000)]
fn a_plan_comes_out_whenever_the_search_is_cancelled(#[case] problem: Problem, #[case] nodes: u64) {
    for strategy in [Strategy::Optimal, Strategy::Best] {
        let mut last = Bytes::MAX;
        let mut calls = 0;
        for most in 1.. {
            let (cancel, made) = (AtomicBool::new(false), AtomicU64::new(0));
            let best = AtomicU64::new(Bytes::MAX);
            let progress = |p: &Progress| {
                best.store(p.best, Ordering::Relaxed);
                let call = made.fetch_add(1, Ordering::Relaxed) + 1;
                cancel.fetch_or(call == most, Ordering::Relaxed);
            };
            let limits = Limits::default().nodes(nodes);
            let planner = Planner::new().strategy(strategy).limits(limits);
            let planner = planner.cancel(&cancel).progress(&progress);
            let plan = planner.plan(&problem).unwrap();
            assert_eq!(verify(&problem, &plan), []);
            assert!(plan.pool_size() <= last.min(best.into_inner()));
            last = plan.pool_size();
            calls = made.into_inner();
            if calls < most {
                break;
            }
            assert!(calls <= most + 4, "{calls} calls when cancelled at {most}");
        }
        assert!(calls > 4, "{calls}");
    }
}

/// Random chunks, half of which need no bytes for a while.
fn with_holes() -> Problem {
    let mut dice = Dice(11);
    let mut problem = Problem::builder();
    for _ in 0..150 {
        let (begin, life) = (dice.roll(250), 2 + dice.roll(60));
        let chunk = problem.chunk(begin..begin + life, 16 + 16 * dice.roll(64));
        if life > 4 && dice.roll(2) == 0 {
            problem.hole(chunk, begin + 1..begin + 1 + life / 3);
        }
    }
    problem.build().unwrap()
}

/// A time limit alone begins with the search by default, so that as many nodes lead to the same pool or a smaller one.
#[rstest]
#[case::rectangles(flat())]
#[case::holes(with_holes())]
fn a_time_limit_alone_makes_no_pool_larger(#[case] problem: Problem) {
    let plan = |limits: Limits, most: u64| {
        let (cancel, nodes) = (AtomicBool::new(false), AtomicU64::new(0));
        let progress = |p: &Progress| {
            nodes.fetch_max(p.nodes, Ordering::Relaxed);
            cancel.fetch_or(p.nodes > most, Ordering::Relaxed);
        };
        let planner = Planner::new().limits(limits).cancel(&cancel).progress(&progress);
        let plan = planner.plan(&problem).unwrap();
        (plan.pool_size(), nodes.into_inner())
    };
    let (pool, nodes) = plan(Limits::default(), u64::MAX);
    let hour = Limits::default().time(Duration::from_hours(1));
    let (in_time, spent) = plan(hour, nodes);
    assert!(in_time <= pool && spent > nodes, "{in_time} and {pool}, {spent} and {nodes} nodes");
}

/// A node may count for several, so the last one may exceed the limit a little.
#[test]
fn the_effort_is_spent_and_not_more() {
    let problem = hard();
    for nodes in [0, 1, 100, 5000] {
        let limits = Limits::default().nodes(nodes);
        let outcome = optimize(&problem, &limits, Observer::default());
        assert!(!outcome.proven_optimal);
        assert!((nodes..=nodes + 100).contains(&outcome.nodes), "{} of {nodes}", outcome.nodes);
    }
}

/// Around a pin, several searches share a given effort.
#[test]
fn a_given_effort_is_not_exceeded_around_a_pin() {
    let mut problem = Problem::builder();
    problem.pool(Pool::new("pool"));
    for (begin, end, size) in hard::flat() {
        problem.chunk(begin..end, size);
    }
    problem.pin(ChunkId::from_index(0), PoolId::default(), 0);
    let problem = problem.build().unwrap();
    for nodes in [100, 5000, 100_000] {
        let spent = AtomicU64::new(0);
        let progress = |p: &Progress| {
            spent.fetch_max(p.nodes, Ordering::Relaxed);
        };
        let limits = Limits::default().nodes(nodes);
        let plan = Planner::new().limits(limits).progress(&progress);
        let plan = plan.plan(&problem).unwrap();
        assert!(!plan.proven_optimal());
        let spent = spent.into_inner();
        assert!((nodes / 2..=nodes + 100).contains(&spent), "{spent} of {nodes}");
    }
}

#[test]
fn no_time_and_a_cancelled_search_pack_and_search_nothing() {
    let problem = problem(hard::uneven(40));
    let cancelled = AtomicBool::new(true);
    let unlimited = Limits::default().nodes(u64::MAX);
    let no_time = unlimited.time(Duration::ZERO);
    let no_nodes = unlimited.nodes(0);
    let layout = pushdown(&problem);
    let packed = optimize(&problem, &no_nodes, Observer::default());
    assert!(packed.pool_size < layout.pool_size(&problem), "there is something to pack");
    let running = AtomicBool::new(false);
    for (limits, cancel) in [(no_time, &running), (unlimited, &cancelled)] {
        let observer = || Observer::default().cancel(cancel);
        let outcome = optimize(&problem, &limits, observer());
        assert_eq!((&outcome.layout.offsets, outcome.nodes), (&layout.offsets, 0));
        let capacity = problem.lower_bound();
        let fit = fits(&problem, capacity, &limits, observer());
        assert_eq!(fit, Fit::Unknown);
    }
}

#[test]
fn progress_goes_one_way() {
    for problem in [hard(), hard().with_alignment(64).unwrap()] {
        let told: Mutex<Vec<Progress>> = Mutex::default();
        let progress = |p: &Progress| told.lock().unwrap().push(*p);
        let limits = Limits::default().nodes(100_000);
        let observer = Observer::default().progress(&progress);
        let outcome = optimize(&problem, &limits, observer);
        let told = told.into_inner().unwrap();
        assert!((20..1000).contains(&told.len()), "{} calls", told.len());
        assert!(told.is_sorted_by_key(|p| p.nodes) && told.is_sorted_by_key(|p| p.lower_bound));
        assert!(told.is_sorted_by(|a, b| a.best >= b.best));
        let last = told[told.len() - 1];
        assert!(0 < last.nodes && last.nodes <= outcome.nodes);
        assert!(last.best >= outcome.pool_size && last.lower_bound <= outcome.lower_bound);
        let pushdown = pushdown(&problem).pool_size(&problem);
        assert_eq!((told[0].best, told[0].nodes), (pushdown, 0));
        let packed = told.iter().rfind(|p| p.nodes == 0).unwrap();
        assert!(last.best < packed.best, "the search tells what it finds");
    }
}

#[test]
fn a_question_about_a_capacity_reports_its_own_bounds() {
    let problem = hard().with_alignment(64).unwrap();
    let capacity = problem.lower_bound();
    let searched = AtomicU64::new(0);
    let progress = |p: &Progress| {
        assert!(p.nodes == 0 || (p.lower_bound, p.best) == (capacity, capacity), "{p:?}");
        searched.fetch_add(u64::from(p.nodes > 0), Ordering::Relaxed);
    };
    let limits = Limits::default().nodes(5000);
    let observer = Observer::default().progress(&progress);
    assert_eq!(fits(&problem, capacity, &limits, observer), Fit::Unknown);
    assert!(searched.into_inner() > 0);
}

/// Too many live bytes are a conflict without a search, and every chunk of it is needed.
#[test]
fn too_many_live_bytes_are_a_minimal_conflict() {
    let problem = hard();
    let capacity = problem.lower_bound() - 1;
    let limits = Limits::default().nodes(0);
    let conflict = conflict(&problem, capacity, &limits, Observer::default()).unwrap();
    assert!(conflict.irreducible);
    let bytes: Bytes = conflict.roots.iter().map(|&root| problem.padded_size(root)).sum();
    let least = conflict.roots.iter().map(|&root| problem.padded_size(root)).min().unwrap();
    assert!(bytes > capacity && bytes - least <= capacity);
}

#[test]
fn a_comparison_lets_its_caller_watch_all_searches() {
    let problem = problem(hard::uneven(100));
    let calls = AtomicU64::new(0);
    let progress = |_: &Progress| {
        calls.fetch_add(1, Ordering::Relaxed);
    };
    let limits = Limits::default().nodes(1000);
    let planner = Planner::new().limits(limits).progress(&progress);
    assert!(!planner.compare(&problem).unwrap().rows.is_empty());
    assert!(calls.into_inner() > 1);
}

/// A capacity below the live bytes, or one that the fast planners meet, needs no search.
#[test]
fn without_effort_only_trivial_capacities_are_decided() {
    let problem = hard();
    let bound = problem.lower_bound();
    let pushdown = pushdown(&problem).pool_size(&problem);
    let none = Limits::default().nodes(0);
    let fit = |capacity| fits(&problem, capacity, &none, Observer::default());
    assert_eq!(fit(bound - 1), Fit::No);
    assert_eq!(fit(bound), Fit::Unknown);
    assert!(matches!(fit(pushdown), Fit::Yes(layout) if layout.pool_size(&problem) <= pushdown));
    assert_eq!(conflict(&problem, bound, &none, Observer::default()), None);
}

#[test]
fn chunks_alive_together_that_are_too_large_are_a_conflict() {
    let mut problem = Problem::builder();
    let first = problem.chunk(0..2, 6);
    problem.chunk(0..1, 3);
    let second = problem.chunk(1..3, 5);
    problem.chunk(2..4, 4);
    let problem = problem.build().unwrap();
    let limits = Limits::default();
    assert_eq!(fits(&problem, 10, &limits, Observer::default()), Fit::No);
    let set = conflict(&problem, 10, &limits, Observer::default()).unwrap();
    assert_eq!((set.roots, set.irreducible), (vec![first, second], true));
    assert!(matches!(fits(&problem, 11, &limits, Observer::default()), Fit::Yes(_)));
    assert_eq!(conflict(&problem, 11, &limits, Observer::default()), None);
}

/// The fewest chunks that are too large together are named at once, however many are alive.
#[test]
fn the_fewest_largest_of_very_many_chunks_are_the_conflict() {
    let mut problem = Problem::builder().alignment(4);
    for size in 1..=20_000 {
        problem.chunk(0..2, size);
    }
    let problem = problem.build().unwrap();
    // Sizes of 20 000 downwards, four of each when rounded up.
    let conflict = conflict(&problem, 160_000, &Limits::default(), Observer::default()).unwrap();
    assert_eq!((conflict.roots.len(), conflict.irreducible), (9, true));
    assert!(conflict.roots.iter().all(|root| problem.chunk(*root).size > 19_991));
}

/// One chain with an overwriter makes neither the answer nor its proof slow.
#[test]
fn all_but_the_smallest_of_very_many_are_a_conflict_beside_a_chain() {
    let mut problem = Problem::builder();
    let whole = problem.chunk(0..2, 10);
    let part = problem.chunk(1..3, 5);
    problem.overwrite(part, whole, 0);
    for size in 1..=3000 {
        problem.chunk(0..2, 10 + size);
    }
    let problem = problem.build().unwrap();
    let capacity = problem.lower_bound() - 1;
    let conflict = conflict(&problem, capacity, &Limits::default(), Observer::default()).unwrap();
    assert_eq!((conflict.roots.len(), conflict.irreducible), (3001, true));
    let words = report::conflict(&problem, capacity, &conflict, None);
    assert!(words.contains("of them are alive: 1 B more than the capacity."));
}

/// Adds three chains that need 59 341 units, though at most 55 011 of them are alive at once.
fn interlocked(problem: &mut ProblemBuilder, unit: Bytes) -> Vec<ChunkId> {
    let first = problem.chunk(0..1, 19_926 * unit);
    let over_first = problem.chunk(0..3, 1_475 * unit);
    let second = problem.chunk(1..2, 45_326 * unit);
    let third = problem.chunk(0..1, 11_140 * unit);
    let over_third = problem.chunk(0..3, 8_210 * unit);
    problem.overwrite(over_first, first, 15_905 * unit).overwrite(over_third, third, 1_784 * unit);
    vec![first, second, third]
}

/// The problem has too many small chunks to be searched as a whole: the bound of a crowded part is
/// a bound of the whole, and that part alone is the conflict.
#[test]
fn the_bound_of_a_crowded_part_is_one_of_the_whole() {
    let mut problem = Problem::builder();
    let roots = interlocked(&mut problem, 1);
    for at in 0..5200 {
        problem.chunk(10 + at..12 + at, 1 + at % 7);
    }
    let problem = problem.build().unwrap();
    let limits = Limits::default();
    let outcome = optimize(&problem, &limits, Observer::default());
    assert_eq!(problem.lower_bound(), 55_011);
    assert_eq!((outcome.pool_size, outcome.lower_bound), (59_341, 59_341));
    assert_eq!(fits(&problem, 59_340, &limits, Observer::default()), Fit::No);
    let conflict = conflict(&problem, 59_340, &limits, Observer::default()).unwrap();
    assert_eq!((conflict.roots, conflict.irreducible), (roots, true));
}

/// The first part raises the bound above all live bytes. Whether a part is crowded does not depend
/// on that bound: the tiling in the second part, four fifths as high as the peak, is searched all
/// the same.
#[test]
fn a_raised_bound_excludes_no_crowded_part() {
    let mut problem = Problem::builder();
    interlocked(&mut problem, 1000);
    for tile in tilings::pinwheel(129, 3) {
        problem.chunk(tile.begin + 10..tile.end + 10, 43 * (tile.high - tile.low));
    }
    for at in 0..5200 {
        problem.chunk(100_000 + at..100_002 + at, 1 + at % 7);
    }
    let problem = problem.build().unwrap();
    let start = |nodes| {
        let limits = Limits::default().nodes(nodes);
        optimize(&problem, &limits, Observer::default())
    };
    assert!(start(0).pool_size > 59_341_000, "there is something to search for");
    assert_eq!(start(50_000).pool_size, 59_341_000);
}

/// With one chain more than are searched as a whole, the effort is spent on all crowded parts until
/// the pool is proven, not on a few of them.
#[test]
fn one_chain_more_than_are_searched_whole_can_still_be_proven() {
    for chunks in [5000, 5001] {
        let problem = problem(hard::short_lives(chunks));
        let outcome = optimize(&problem, &Limits::default(), Observer::default());
        assert!(outcome.proven_optimal, "{} of {}", outcome.pool_size, outcome.lower_bound);
    }
}

/// The chunks alive at the peak fit, even though they fill the capacity.
#[test]
fn a_conflict_need_not_be_at_the_peak() {
    let mut problem = Problem::builder();
    let roots = interlocked(&mut problem, 1);
    problem.chunk(5..6, 59_340);
    let problem = problem.build().unwrap();
    assert_eq!(problem.lower_bound(), 59_340);
    let told = Mutex::new(Vec::new());
    let progress = |p: &Progress| told.lock().unwrap().push(p.nodes);
    let observer = Observer::default().progress(&progress);
    let conflict = conflict(&problem, 59_340, &Limits::default(), observer).unwrap();
    assert_eq!((conflict.roots, conflict.irreducible), (roots, true));
    let told = told.into_inner().unwrap();
    assert!(told.is_sorted() && told.last() > Some(&0), "the nodes of all questions: {told:?}");
}

#[test]
fn an_empty_problem_is_optimal_without_a_search() {
    let problem = Problem::builder().build().unwrap();
    let outcome = optimize(&problem, &Limits::default(), Observer::default());
    assert_eq!((outcome.pool_size, outcome.proven_optimal), (0, true));
    assert!(matches!(fits(&problem, 0, &Limits::default(), Observer::default()), Fit::Yes(_)));
}

/// Each thread may search all the nodes, and the first works as it would alone.
#[test]
fn more_threads_are_never_worse() {
    let problem = flat();
    for nodes in [1, 1000, 30_000] {
        let [one, two, many] = [1, 2, 1_000_000].map(|threads| {
            let limits = Limits::default().nodes(nodes).threads(threads);
            let outcome = optimize(&problem, &limits, Observer::default());
            assert_eq!(outcome.pool_size, outcome.layout.pool_size(&problem));
            outcome
        });
        for more in [two, many] {
            assert!(more.pool_size <= one.pool_size && more.lower_bound >= one.lower_bound);
            assert!(more.proven_optimal || more.nodes >= nodes, "{} of {nodes}", more.nodes);
        }
    }
}

#[test]
fn a_capacity_decided_by_one_thread_is_decided_by_two() {
    let mut problem = Problem::builder();
    let chunk = |at: u64| (at * 7919 % 31, 1 + at * 104_729 % 7, 1 + at * 15_485_863 % 23);
    for (begin, life, size) in (0..24).map(chunk) {
        problem.chunk(begin..begin + life, size);
    }
    let problem = problem.build().unwrap();
    let optimum = optimize(&problem, &Limits::default(), Observer::default());
    assert!(optimum.proven_optimal);
    let limits = Limits::default().threads(2);
    let fit = |capacity| fits(&problem, capacity, &limits, Observer::default());
    assert!(matches!(fit(optimum.pool_size), Fit::Yes(_)));
    assert_eq!(fit(optimum.pool_size - 1), Fit::No);
}

#[test]
fn a_planner_reports_progress_and_can_be_cancelled() {
    let problem = flat();
    for strategy in [Strategy::Optimal, Strategy::Best] {
        let cancel = AtomicBool::new(false);
        let calls = AtomicU64::new(0);
        let progress = |_: &Progress| {
            calls.fetch_add(1, Ordering::Relaxed);
            cancel.store(true, Ordering::Relaxed);
        };
        let limits = Limits::default().nodes(u64::MAX);
        let planner = Planner::new().strategy(strategy).limits(limits);
        let planner = planner.cancel(&cancel).progress(&progress);
        let plan = planner.plan(&problem).unwrap();
        assert!(verify(&problem, &plan).is_empty());
        assert_eq!((calls.into_inner(), plan.proven_optimal()), (1, false));
    }
}
