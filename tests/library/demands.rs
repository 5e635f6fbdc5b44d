//! Problems with pools, pins, holes, parts or streams: bounds and links that the recorded cases do not cover.

use memplan::{
    Plan, PlannedLink, Planner, Problem, ProblemError, Strategy,
    problem::{Refusal, demands::Pool},
    verify::verify,
};

/// The last cell of the alignment in a pool ends where its capacity does.
#[test]
fn a_bound_does_not_count_bytes_above_a_capacity() {
    let mut builder = Problem::builder().alignment(4);
    builder.pool(Pool::new("small").capacity(5));
    for _ in 0..2 {
        builder.chunk(0..1, 1);
    }
    let problem = builder.build().unwrap();
    let plan = Plan::from_offsets(&problem, &[0, 4]).unwrap();
    assert_eq!((problem.lower_bound().bytes, plan.pool_size), (5, 5));
    assert_eq!(verify(&problem, &plan), []);
}

/// A whole that overwrites its own part: neither is a root, so nothing aligns them.
#[test]
fn a_bound_does_not_align_bodies_without_a_root() {
    let mut builder = Problem::builder().alignment(4);
    for _ in 0..2 {
        let (part, whole) = (builder.chunk(0..2, 1), builder.chunk(1..3, 1));
        builder.part(part, whole, 0).overwrite(whole, part, 0);
    }
    let problem = builder.build().unwrap();
    let plan = Plan::from_offsets(&problem, &[0, 0, 1, 1]).unwrap();
    assert_eq!((problem.lower_bound().bytes, plan.pool_size), (4, 4));
    assert_eq!(verify(&problem, &plan), []);
}

/// Each is made in the only step of the other, so the rules of time alone would let each overwrite
/// the other.
#[test]
fn two_chunks_on_streams_do_not_overwrite_each_other() {
    let mut builder = Problem::builder();
    let (a, b) = (builder.chunk(0..1, 8), builder.chunk(0..1, 8));
    builder.streams(2);
    for chunk in [a, b] {
        builder.clocks(chunk, [1, 0].into(), [2, 0].into(), 0);
    }
    builder.overwrite(a, b, 0).overwrite(b, a, 0);
    let problem = builder.build().unwrap();
    let refused: Vec<_> = problem.refused().iter().map(|one| (one.request, one.reason)).collect();
    assert_eq!(refused, [(1, Refusal::NotBefore)]);
    assert_eq!(problem.lower_bound().bytes, 8);
}

/// Alignment keeps 2 bytes of every buffer of 8 below the body of 7.
#[test]
fn a_body_that_fits_into_no_aligned_place_of_a_buffer_is_too_large() {
    let mut builder = Problem::builder();
    builder.pool(Pool::new("buffers").largest(8));
    let (part, whole) = (builder.chunk(0..2, 1), builder.chunk(1..3, 7));
    builder.part(part, whole, 2).align(part, 4);
    assert!(matches!(builder.build(), Err(ProblemError::TooLarge { .. })));
    builder.pool(Pool::new("other"));
    let problem = builder.build().unwrap();
    assert_eq!(problem.bodies()[0].pools.len(), 1);
}

/// `o` takes the bytes of `w` in the last step that reads it, and `p`, a part of `w`, is read later. No
/// operator reads `o`, so it has no step of its own.
#[test]
fn an_unread_overwriter_destroys_no_part() {
    let mut builder = Problem::builder();
    let (p, w, o) = (builder.chunk(0..4, 8), builder.chunk(1..3, 16), builder.chunk(2..3, 16));
    builder.part(p, w, 0).overwrite(o, w, 0);
    let problem = builder.build().unwrap();
    let refused: Vec<_> = problem.refused().iter().map(|one| one.reason).collect();
    assert_eq!(refused, [Refusal::Clash]);
    let plan = Plan::from_offsets(&problem, &[0, 0, 16]).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    let mut wrong = plan;
    (wrong.chunks[2].offset, wrong.chunks[2].overwrites) = (0, Some(PlannedLink::new(1, 0)));
    let words: Vec<String> = verify(&problem, &wrong).iter().map(ToString::to_string).collect();
    assert!(words.iter().any(|words| words.contains("'0' and '2'")), "{words:?}");
}

/// No offset above them is left in 64 bits.
#[test]
fn reserved_bytes_up_to_the_last_leave_no_place() {
    let mut builder = Problem::builder();
    let mut pool = Pool::new("a");
    pool.reserved.push(0..u64::MAX);
    builder.pool(pool);
    builder.chunk(0..2, 8);
    let problem = builder.build().unwrap();
    for strategy in [Strategy::FirstFit, Strategy::Best, Strategy::Optimal] {
        assert!(Planner::new().strategy(strategy).plan(&problem).is_err(), "{strategy}");
    }
}
