//! Cancelling and time limits: every strategy ends soon, with a right plan or a clear error.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::hard;
use memplan::{
    Limits, OpSequence, Operator, Output, PlanError, Planner, Problem, Progress, Strategy,
    planner::Comparison,
    search::{Observer, lay_out},
    verify::verify,
};
use rstest::rstest;

fn problem(chunks: u64) -> Problem {
    let mut problem = Problem::builder();
    for (begin, end, size) in hard::uneven(chunks) {
        problem.chunk(begin..end, size);
    }
    problem.build().unwrap()
}

/// Strategies that need no time have a plan.
fn has_plan(strategy: Strategy) -> bool {
    strategy.is_anytime() || strategy == Strategy::Naive
}

#[rstest]
#[case::cancelled(true)]
#[case::out_of_time(false)]
fn every_strategy_ends_with_a_right_plan_or_an_error(#[case] is_cancelled: bool) {
    let problem = problem(3000);
    let cancel = AtomicBool::new(is_cancelled);
    let limits =
        if is_cancelled { Limits::default() } else { Limits::default().time(Duration::ZERO) };
    for &strategy in Strategy::ALL {
        let planner = Planner::new().strategy(strategy).limits(limits).cancel(&cancel);
        match planner.plan(&problem) {
            Ok(plan) => {
                assert!(has_plan(strategy), "{strategy}");
                assert_eq!(verify(&problem, &plan), [], "{strategy}");
            }
            Err(error) => {
                assert!(!has_plan(strategy), "{strategy}: {error}");
                let expected = if is_cancelled {
                    PlanError::Cancelled { strategy }
                } else {
                    PlanError::OutOfTime { strategy }
                };
                assert_eq!(error, expected);
            }
        }
    }
}

/// A problem on two streams that run in turn is planned in steps. Finding these counts, too.
#[test]
fn streams_are_put_in_one_line_within_the_limit() {
    let mut problem = Problem::builder();
    problem.streams(2);
    for at in 0..30_000 {
        let clock = |at: u64| [at.div_ceil(2), at / 2];
        let chunk = problem.chunk(0..1, 1 + at % 100);
        problem.clocks(chunk, clock(at), clock(at + 2), (at % 2) as usize);
    }
    let problem = problem.build().unwrap();
    let plan =
        |strategy: Strategy, limits| lay_out(strategy, &problem, &limits, Observer::default());
    // The second one has nothing else to do that takes time.
    let strategies = [Strategy::BestFit, Strategy::Naive];
    for strategy in strategies {
        let late = Limits::default().time(Duration::ZERO);
        assert_eq!(plan(strategy, late), Err(PlanError::OutOfTime { strategy }));
    }
    assert!(strategies.into_iter().all(|strategy| plan(strategy, Limits::default()).is_ok()));
}

/// The error is about the limit, not about the body that was planned at that moment.
#[test]
fn a_body_that_is_stopped_is_no_fault_of_the_body() {
    let mut body = OpSequence::builder();
    for at in 0..3000 {
        body.operator(Operator::new("").output(Output::new(format!("t{at}"), 1 + at % 7)));
    }
    let operator = Operator::new("host").body(body.build().unwrap()).output(Output::new("y", 4));
    let graph = OpSequence::builder().operator(operator).build().unwrap();
    let strategy = Strategy::Pushdown;
    let planner = Planner::new().strategy(strategy).limits(Limits::default().time(Duration::ZERO));
    assert_eq!(planner.plan(&graph), Err(PlanError::OutOfTime { strategy }));
}

fn reasons(comparison: &Comparison) -> impl Fn(Strategy) -> Option<&'static str> {
    let row = |strategy| comparison.rows.iter().find(move |row| row.0 == strategy).unwrap();
    move |strategy| row(strategy).1.err()
}

/// The first strategy searches and reports, and its caller has seen enough.
#[test]
fn a_cancelled_comparison_keeps_what_has_ended() {
    let problem = problem(400);
    let cancel = AtomicBool::new(false);
    let progress = |progress: &Progress| {
        if progress.nodes > 0 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let limits = Limits::default().nodes(u64::MAX);
    let planner = Planner::new().limits(limits).cancel(&cancel).progress(&progress);
    let compared = planner.compare(&problem).unwrap();
    let reason = reasons(&compared);
    for &strategy in Strategy::ALL {
        let expected = (strategy != Strategy::Best).then_some("stopped");
        assert_eq!(reason(strategy), expected, "{strategy}");
    }
}

#[test]
fn a_comparison_without_time_has_the_strategies_that_end_early() {
    let problem = problem(3000);
    let limits = Limits::default().time(Duration::ZERO);
    let compared = Planner::new().limits(limits).compare(&problem).unwrap();
    let reason = reasons(&compared);
    for &strategy in Strategy::ALL {
        let expected = match () {
            () if strategy == Strategy::TfliteMinCostFlow => Some("too large"),
            () if has_plan(strategy) => None,
            () => Some("too slow"),
        };
        assert_eq!(reason(strategy), expected, "{strategy}");
    }
}
