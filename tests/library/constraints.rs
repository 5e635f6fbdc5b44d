//! Problems with pools, pins, holes, parts or streams: bounds and links that the recorded cases do not cover.

use memplan::{
    Limits, Plan, PlanError, PlannedLink, Planner, Problem, ProblemError, Strategy,
    problem::{ChunkId, Pool, ProblemBuilder, RejectReason, Request},
    verify::verify,
};
use rstest::rstest;

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
    assert_eq!((problem.lower_bound(), plan.pool_size()), (5, 5));
    assert_eq!(verify(&problem, &plan), []);
}

/// A part is bytes of its whole, directly or through others, so neither is written over the other.
#[test]
fn a_whole_is_not_written_over_its_part() {
    let mut builder = Problem::builder();
    let (inner, part, whole) =
        (builder.chunk(0..2, 1), builder.chunk(0..3, 2), builder.chunk(1..3, 4));
    builder.part(inner, part, 1).part(part, whole, 2).request(Request::overlap(whole, inner, 3));
    assert_eq!(builder.build().unwrap().refused()[0], (0, RejectReason::PartOfTheOther));
}

/// Each is made in the only step of the other, so the rules of time alone would let each overwrite
/// the other.
#[test]
fn two_chunks_on_streams_do_not_overwrite_each_other() {
    let mut builder = Problem::builder();
    let (a, b) = (builder.chunk(0..1, 8), builder.chunk(0..1, 8));
    builder.streams(2);
    for chunk in [a, b] {
        builder.clocks(chunk, [1, 0], [2, 0], 0);
    }
    builder.overwrite(a, b, 0).overwrite(b, a, 0);
    let problem = builder.build().unwrap();
    assert_eq!(problem.refused(), [(1, RejectReason::NotBefore)]);
    assert_eq!(problem.lower_bound(), 8);
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
    // In the other pool it fits.
    let plan = Planner::new().plan(&builder.build().unwrap()).unwrap();
    assert_eq!(plan.chunks().iter().map(|chunk| chunk.pool).collect::<Vec<_>>(), [1, 1]);
}

/// `o` takes the bytes of `w` in the last step that reads it, and `p`, a part of `w`, is read later. No
/// operator reads `o`, so it has no step of its own.
#[test]
fn an_unread_overwriter_destroys_no_part() {
    let mut builder = Problem::builder();
    let (p, w, o) = (builder.chunk(0..4, 8), builder.chunk(1..3, 16), builder.chunk(2..3, 16));
    builder.part(p, w, 0).overwrite(o, w, 0);
    let problem = builder.build().unwrap();
    let refused: Vec<_> = problem.refused().iter().map(|one| one.1).collect();
    assert_eq!(refused, [RejectReason::Clash]);
    let plan = Plan::from_offsets(&problem, &[0, 0, 16]).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    let mut wrong = plan;
    (wrong.chunks_mut()[2].offset, wrong.chunks_mut()[2].overwrites) =
        (0, Some(PlannedLink::new(1, 0)));
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

/// `x` needs some of its four bytes in its last step. `y` is written over it then, and `w` lives in that step alone.
fn overwrite_in_last_step(pause: impl Fn(&mut ProblemBuilder, ChunkId)) -> Problem {
    let mut builder = Problem::builder();
    let (x, y) = (builder.chunk(0..2, 4), builder.chunk(1..3, 4));
    builder.chunk(1..2, 4);
    pause(&mut builder, x);
    builder.request(Request::new(y, x, 0).required(true));
    builder.build().unwrap()
}

/// An overwriter shares no more than the bytes that the overwritten chunk needs: the rest is its own at once, and no
/// other chunk has them.
#[rstest]
#[case::in_a_hole(|b: &mut ProblemBuilder, x| _ = b.hole(x, 1..2), 8)]
#[case::beside_a_window(|b: &mut ProblemBuilder, x| _ = b.window(x, 1..2, 0..1), 8)]
#[case::over_all_bytes(|b: &mut ProblemBuilder, x| _ = b.hole(x, 0..1), 8)]
fn an_overwriter_has_the_other_bytes_to_itself(
    #[case] pause: fn(&mut ProblemBuilder, ChunkId),
    #[case] pool: u64,
) {
    let problem = overwrite_in_last_step(pause);
    for strategy in [Strategy::FirstFit, Strategy::Best, Strategy::Optimal] {
        let plan = Planner::new().strategy(strategy).plan(&problem).unwrap();
        assert_eq!((plan.pool_size(), verify(&problem, &plan)), (pool, vec![]), "{strategy}");
    }
    let mut wrong = Plan::from_offsets(&problem, &[0, 0, 0]).unwrap();
    *wrong.lower_bound_mut() = 4;
    let words: Vec<String> = verify(&problem, &wrong).iter().map(ToString::to_string).collect();
    assert!(words.iter().any(|words| words.contains("'2'")), "{words:?}");
}

/// `y` begins before `x`, which `z` lives before: so `z` and `y` may be alive together.
#[test]
fn a_chunk_that_begins_later_is_not_overwritten() {
    let mut builder = Problem::builder();
    let chunks = [builder.chunk(0..1, 3), builder.chunk(0..1, 3), builder.chunk(0..1, 3)];
    builder.streams(2);
    let [z, x, y] = chunks;
    builder.clocks(z, [0, 0], [1, 0], 0);
    builder.clocks(x, [1, 0], [1, 2], 1);
    builder.clocks(y, [0, 3], [1, 3], 0);
    let required = builder.clone().request(Request::new(y, x, 0).required(true)).build();
    let Err(ProblemError::RequiredOverwrite { reason, .. }) = required else { panic!() };
    assert_eq!(reason, RejectReason::NotBefore);
    let problem = builder.overwrite(y, x, 0).build().unwrap();
    assert_eq!(problem.refused()[0].1, RejectReason::NotBefore);
    let mut wrong = Plan::from_offsets(&problem, &[0, 0, 0]).unwrap();
    wrong.chunks_mut()[2].overwrites = Some(PlannedLink::new(1, 0));
    assert!(!verify(&problem, &wrong).is_empty());
}

/// `z` begins after `y` was written in its own stream, but not after all that `y` waited for.
#[test]
fn a_chunk_is_not_overwritten_if_clocks_contradict_each_other() {
    let mut builder = Problem::builder();
    let [x, y, z] = [0; 3].map(|_| builder.chunk(0..1, 3));
    builder.streams(2);
    builder.clocks(x, [0, 0], [1, 1], 0);
    builder.clocks(y, [0, 2], [1, 2], 0);
    let right = builder.clone().clocks(z, [1, 2], [2, 2], 0).overwrite(y, x, 0).build();
    assert_eq!(right.unwrap().refused(), []);
    builder.clocks(z, [1, 1], [2, 1], 0).overwrite(y, x, 0);
    let problem = builder.build().unwrap();
    assert_eq!(problem.refused()[0].1, RejectReason::ClocksContradict);
    let mut wrong = Plan::from_offsets(&problem, &[0, 0, 0]).unwrap();
    wrong.chunks_mut()[1].overwrites = Some(PlannedLink::new(0, 0));
    let words: Vec<String> = verify(&problem, &wrong).iter().map(ToString::to_string).collect();
    assert!(words.iter().any(|words| words.contains("'1' and '2'")), "{words:?}");
}

/// The overwrite would put the middle chunk where the first one is pinned.
#[test]
fn an_optional_overwrite_that_contradicts_pins_is_dropped() {
    let mut builder = Problem::builder();
    let pool = builder.pool(Pool::new("pool"));
    let (first, middle) = (builder.chunk(0..1, 4), builder.chunk(0..2, 4));
    let last = builder.chunk(1..3, 4);
    builder.pin(first, pool, 4).pin(last, pool, 4).overwrite(last, middle, 0);
    let problem = builder.build().unwrap();
    assert_eq!(problem.refused()[0].1, RejectReason::Pins);
    let plan = Planner::new().plan(&problem).unwrap();
    assert_eq!((plan.pool_size(), verify(&problem, &plan)), (8, vec![]));
    builder.request(Request::new(last, middle, 0).required(true));
    assert!(matches!(
        builder.build(),
        Err(ProblemError::RequiredOverwrite { reason: RejectReason::Pins, .. })
    ));
}

/// Each overwrite agrees with the pins, but the first one puts another chunk where the second one would.
#[test]
fn an_overwrite_that_contradicts_what_another_one_pins_is_dropped() {
    let mut builder = Problem::builder();
    let pool = builder.pool(Pool::new("pool"));
    let (old, new) = (builder.chunk(0..3, 4), builder.chunk(2..4, 4));
    let (wide, inner) = (builder.chunk(0..2, 8), builder.chunk(1..3, 4));
    builder.pin(new, pool, 0).pin(inner, pool, 4);
    builder.overwrite(new, old, 0).overwrite(inner, wide, 4);
    let problem = builder.build().unwrap();
    assert_eq!(problem.refused(), [(1, RejectReason::Pins)]);
    let plan = Planner::new().plan(&problem).unwrap();
    assert_eq!((plan.pool_size(), verify(&problem, &plan)), (12, vec![]));
}

/// Three states of one variable, all at its place: only with both overwrites may the pins hold.
#[test]
fn pins_that_need_an_overwrite_are_kept() {
    let mut builder = Problem::builder();
    let pool = builder.pool(Pool::new("pool"));
    let states = [builder.chunk(0..2, 4), builder.chunk(1..3, 4), builder.chunk(2..4, 4)];
    let larger = builder.chunk(1..2, 4);
    let [first, second, third] = states;
    builder.pin(first, pool, 4).pin(third, pool, 4);
    // It comes first, but it is not required.
    builder.overwrite(larger, first, 0);
    for (new, old) in [(second, first), (third, second)] {
        builder.request(Request::new(new, old, 0).required(true));
    }
    let problem = builder.build().unwrap();
    assert_eq!(problem.refused(), [(0, RejectReason::Displaced)]);
    assert_eq!(Planner::new().plan(&problem).unwrap().pool_size(), 8);
}

/// Without the second overwrite, the pins clash, so the first one gives way although it is larger.
#[test]
fn an_overwrite_that_pins_need_goes_first() {
    let mut builder = Problem::builder();
    let pool = builder.pool(Pool::new("pool"));
    let (old, new, other) =
        (builder.chunk(0..2, 8), builder.chunk(1..3, 4), builder.chunk(1..3, 8));
    builder.pin(old, pool, 0).pin(new, pool, 4);
    builder.overwrite(other, old, 0).overwrite(new, old, 4);
    let problem = builder.build().unwrap();
    assert_eq!(problem.overwritten(new), Some((old, 4)));
}

/// The first request of an overwriter counts, unless another one is required.
#[rstest]
#[case::of_a_plain_problem(false)]
#[case::of_another_problem(true)]
fn a_required_overwrite_goes_before_an_optional_one(#[case] has_pool: bool) {
    let mut builder = Problem::builder();
    if has_pool {
        builder.pool(Pool::new("pool"));
    }
    let (a, b, new) = (builder.chunk(0..2, 4), builder.chunk(0..2, 4), builder.chunk(1..3, 4));
    builder.overwrite(new, a, 0).request(Request::new(new, b, 0).required(true));
    let problem = builder.build().unwrap();
    assert_eq!(problem.overwritten(new), Some((b, 0)));
    assert_eq!(problem.refused(), [(0, RejectReason::OverwritesAnother)]);
}

/// Nothing can be written over a chunk without bytes.
#[test]
fn a_required_overlap_of_an_empty_chunk_is_an_error() {
    let mut builder = Problem::builder();
    let (empty, new) = (builder.chunk(0..2, 0), builder.chunk(1..3, 8));
    builder.request(Request::overlap(new, empty, 4).required(true));
    assert!(matches!(
        builder.build(),
        Err(ProblemError::RequiredOverwrite { reason: RejectReason::Empty, .. })
    ));
}

#[rstest]
#[case::of_a_plain_problem(false)]
#[case::of_another_problem(true)]
fn a_required_overwrite_may_be_stated_twice(#[case] has_pool: bool) {
    let mut builder = Problem::builder();
    if has_pool {
        builder.pool(Pool::new("pool"));
    }
    let (old, new) = (builder.chunk(0..2, 4), builder.chunk(1..3, 4));
    for _ in 0..2 {
        builder.request(Request::new(new, old, 0).required(true));
    }
    assert_eq!(builder.build().unwrap().links_taken(), 1);
}

/// Either joins all four, and so needs the other one, too.
#[test]
fn required_overwrites_may_need_each_other() {
    let mut builder = Problem::builder();
    let (large, old) = (builder.chunk(7..10, 8), builder.chunk(6..8, 3));
    let (part, part_of_old) = (builder.chunk(5..6, 6), builder.chunk(1..6, 3));
    builder.part(part, large, 1).part(part_of_old, old, 0);
    builder.request(Request::overlap(part, part_of_old, 1).required(true));
    assert!(builder.build().is_err());
    let problem = builder.request(Request::overlap(large, old, 2).required(true)).build().unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    assert_eq!((problem.links_taken(), verify(&problem, &plan)), (2, vec![]));
}

/// Pinned to offset 6, `last` puts `middle` to 9, which no root may have, and the chunk below it to 12.
#[test]
fn a_required_overwrite_may_need_an_optional_one() {
    let mut builder = Problem::builder().alignment(4);
    let pool = builder.pool(Pool::new("pool"));
    let (root, middle, last) =
        (builder.chunk(1..4, 1), builder.chunk(3..4, 6), builder.chunk(3..6, 7));
    builder.pin(last, pool, 6).request(Request::overlap(last, middle, 3).required(true));
    assert!(builder.build().is_err());
    let problem = builder.request(Request::overlap(middle, root, 3)).build().unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    let offsets: Vec<_> = plan.chunks().iter().map(|chunk| chunk.offset).collect();
    assert_eq!(offsets, [12, 9, 6]);
    assert_eq!((problem.links_taken(), verify(&problem, &plan)), (2, vec![]));
}

/// In each group of three, any two chunks are alive together at some step, and never all three. So the peak is two of
/// them, and the pool has three, which is proven without trying all places of so many.
#[rstest]
#[case(1, 0, 24)]
#[case(16, 0, 48)]
#[case(1, 3, 33)]
fn chunks_that_lie_side_by_side_are_a_bound(
    #[case] alignment: u64,
    #[case] padding: u64,
    #[case] pool: u64,
) {
    let mut builder = Problem::builder().alignment(alignment).padding(padding);
    for group in 0..20 {
        let begin = 3 * group;
        builder.chunk(begin..begin + 2, 8);
        builder.chunk(begin + 1..begin + 3, 8);
        let third = builder.chunk(begin..begin + 3, 8);
        builder.hole(third, begin + 1..begin + 2);
    }
    let problem = builder.build().unwrap();
    let limits = Limits::default().nodes(1000);
    let planner = Planner::new().limits(limits);
    let plan = planner.plan(&problem).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    assert_eq!((plan.pool_size(), plan.lower_bound(), plan.proven_optimal()), (pool, pool, true));
    assert!(problem.lower_bound() < pool);
    assert_eq!(planner.fit(&problem, pool - 1).unwrap().fits(pool - 1), Some(false));
    builder.pool(Pool::new("small").capacity(pool - alignment));
    assert_eq!(planner.plan(&builder.build().unwrap()), Err(PlanError::Infeasible));
}
