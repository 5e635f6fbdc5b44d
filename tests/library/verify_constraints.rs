//! Plans of problems with pools, pins, holes, parts or streams: every way in which they can be wrong is
//! found and named, and nothing else is.

use crate::common::{
    self,
    constraints::{Dice, FAMILIES, random_problem, recorded},
    judge::is_right,
    spoiled::{read, spoiled, spots},
};
use memplan::{
    Plan, PlannedLink, Problem,
    plan::PlannedPart,
    problem::{ChunkId, Pool, PoolId, Request},
    search::first_fit,
    verify::{Verifier, verify},
};
use rstest::rstest;
use serde_json::Value;

/// Two pools: 64 bytes of fast memory, of which [56, 60) are reserved, and slow memory in buffers
/// of 32 bytes.
///
/// a [0, 3) 8 bytes; b [2, 4) 8 bytes over a; w [3, 6) 16 bytes with the part p [1, 4) 8 bytes at 8;
/// n [0, 6) 8 bytes pinned to 48; s [0, 6) 20 bytes only in slow memory; x [6, 7) 4 bytes and
/// y [7, 8) 4 bytes, apart; h [0, 6) 8 bytes, none of them in step 3; e without bytes.
fn problem() -> Problem {
    let mut problem = Problem::builder();
    let fast = problem.pool(Pool::new("fast").capacity(64).alignment(8).reserved(56..60).cost(1));
    let slow = problem.pool(Pool::new("slow").largest(32).capacity(64).cost(3));
    for (name, life, size) in [
        ("a", 0..3, 8),
        ("b", 2..4, 8),
        ("w", 3..6, 16),
        ("p", 1..4, 8),
        ("n", 0..6, 8),
        ("s", 0..6, 20),
        ("x", 6..7, 4),
        ("y", 7..8, 4),
        ("h", 0..6, 8),
        ("e", 0..1, 0),
    ] {
        problem.named_chunk(name, life, size);
    }
    let id = ChunkId::from_index;
    problem.request(Request::new(id(B), id(A), 0).required(true));
    problem.part(id(P), id(W), 8).pin(id(N), fast, 48).only_in(id(S), [slow]);
    problem.apart([id(X), id(Y)]).hole(id(H), 3..4).align(id(S), 4).traffic(id(S), 100);
    problem.build().unwrap()
}

fn plan(problem: &Problem) -> Plan {
    let at = |pool: u16, offset: u64| (PoolId(pool), offset);
    let places = [
        at(0, 0),
        at(0, 0),
        at(0, 16),
        at(0, 24),
        at(0, 48),
        at(1, 0),
        at(0, 0),
        at(0, 8),
        at(0, 40),
        at(0, 0),
    ];
    Plan::from_places(problem, &places).unwrap()
}

type Spoil = fn(&mut Plan);

const A: usize = 0;
const B: usize = 1;
const W: usize = 2;
const P: usize = 3;
const N: usize = 4;
const S: usize = 5;
const X: usize = 6;
const Y: usize = 7;
const H: usize = 8;
const E: usize = 9;

#[rstest]
#[case::wrong_pool(|p: &mut Plan| p.chunks_mut()[S].pool = 0, "'s' lies in pool 'fast', where it may not lie")]
#[case::no_such_pool(|p: &mut Plan| p.chunks_mut()[A].pool = 7, "'a' lies in pool '7', which the problem does not have")]
#[case::no_such_pool_for_no_bytes(|p: &mut Plan| p.chunks_mut()[E].pool = 2,
    "'e' lies in pool '2', which the problem does not have")]
#[case::unknown_pool(|p: &mut Plan| p.pools_mut()[1].name = "psram".into(), "'pool 'psram'' is in the plan, but not in the input")]
#[case::chunk_in_unknown_pool(|p: &mut Plan| p.pools_mut()[1].name = "psram".into(),
    "'s' lies in pool 'psram', which the problem does not have")]
#[case::missing_pool(|p: &mut Plan| { p.pools_mut().pop(); }, "'pool 'slow'' is missing from the plan")]
#[case::no_pools(|p: &mut Plan| p.pools_mut().clear(), "'pool 'fast'' is missing from the plan")]
#[case::repeated_pool(|p: &mut Plan| { let pool = p.pools()[0].clone(); p.pools_mut().push(pool); },
    "'pool 'fast'' is in the plan twice")]
#[case::order_of_pools(|p: &mut Plan| p.pools_mut().swap(0, 1),
    "pool 'fast' stands elsewhere in the plan's list of pools than in the problem's")]
#[case::capacity(|p: &mut Plan| p.pools_mut()[0].capacity = None,
    "the capacity of pool 'fast' is 64 B, but the plan says unlimited")]
#[case::cost(|p: &mut Plan| p.pools_mut()[0].cost = 2, "the cost of 'pool fast' is 1, but the plan says 2")]
#[case::outside_capacity(|p: &mut Plan| p.chunks_mut()[H].offset = 64,
    "'h' lies at 64 with 8 B, above the capacity of 64 B of pool 'fast'")]
#[case::outside_by_wrapping(|p: &mut Plan| p.chunks_mut()[H].offset = u64::MAX - 3,
    "'h' lies at 18446744073709551612 with 8 B, above the capacity of 64 B of pool 'fast'")]
#[case::beyond_all_addresses(|p: &mut Plan| p.chunks_mut()[S].offset = u64::MAX - 15,
    "'s' lies at 18446744073709551600 with 20 B, outside the pool of 18446744073709551615 B")]
#[case::outside_the_pool(|p: &mut Plan| p.pools_mut()[0].size = 48, "'n' lies at 48 with 8 B, outside the pool of 48 B")]
#[case::reserved(|p: &mut Plan| p.chunks_mut()[Y].offset = 56,
    "'y' lies at 56 with 4 B, in the reserved bytes [56, 60) of pool 'fast'")]
#[case::pin(|p: &mut Plan| p.chunks_mut()[N].offset = 32,
    "'n' is pinned to 48 in pool 'fast', but lies at 32 in pool 'fast'")]
#[case::pin_in_another_pool(|p: &mut Plan| p.chunks_mut()[N].pool = 1,
    "'n' is pinned to 48 in pool 'fast', but lies at 48 in pool 'slow'")]
#[case::alignment_of_the_pool(|p: &mut Plan| p.chunks_mut()[H].offset = 36,
    "'h' lies at 36, which is not a multiple of the alignment 8")]
#[case::alignment_of_the_chunk(|p: &mut Plan| p.chunks_mut()[S].offset = 2,
    "'s' lies at 2, which is not a multiple of the alignment 4")]
#[case::across_buffers(|p: &mut Plan| p.chunks_mut()[S].offset = 16,
    "'s' and all that is joined to it take the bytes [16, 36) of pool 'slow', across two of its buffers of 32 B")]
#[case::body_across_buffers(|p: &mut Plan| for (chunk, offset) in [(W, 24), (P, 32)] {
        (p.chunks_mut()[chunk].pool, p.chunks_mut()[chunk].offset) = (1, offset);
    }, "'w' and all that is joined to it take the bytes [24, 40) of pool 'slow', across two of its buffers of 32 B")]
#[case::sum_of_buffers(|p: &mut Plan| for (chunk, offset) in [(X, 32), (Y, 64)] {
        (p.chunks_mut()[chunk].pool, p.chunks_mut()[chunk].offset) = (1, offset);
    }, "the chunks in pool 'slow' need 28 B, but the plan says 20")]
#[case::buffers_above_capacity(|p: &mut Plan| for (chunk, offset) in [(A, 32), (B, 32), (H, 64), (W, 96), (P, 104), (X, 128), (Y, 160), (N, 192)] {
        (p.chunks_mut()[chunk].pool, p.chunks_mut()[chunk].offset) = (1, offset + 16);
    }, "the buffers of pool 'slow' take 164 B, more than its capacity of 64 B")]
#[case::part(|p: &mut Plan| p.chunks_mut()[P].offset = 16, "'p' lies at 16; it is a part of 'w' and must lie at 24")]
#[case::part_in_another_pool(|p: &mut Plan| p.chunks_mut()[P].pool = 1,
    "'p' lies in pool 'slow'; it must lie with 'w' in pool 'fast'")]
#[case::missing_part(|p: &mut Plan| p.parts_mut().clear(), "'p' is a part of 'w' at 8, but the plan does not say so")]
#[case::part_elsewhere(|p: &mut Plan| p.parts_mut()[0].offset = 4,
    "the plan says that 'p' is a part of 'w' at 4, and it is not")]
#[case::unknown_part(|p: &mut Plan| p.parts_mut()[0].whole = A, "the plan says that 'p' is a part of 'a' at 8, and it is not")]
#[case::repeated_part(|p: &mut Plan| { let part: PlannedPart = p.parts()[0]; p.parts_mut().push(part); },
    "'p as a part of w' is in the plan twice")]
#[case::no_such_part(|p: &mut Plan| p.parts_mut()[0].chunk = 10, "'w' refers to a chunk that the plan does not list")]
#[case::longer_hole(|p: &mut Plan| p.set_windows([(H, 3..5, 0..0)]),
    "the holes and windows that the plan lists for 'h' are not those of the problem")]
#[case::hole_of_another(|p: &mut Plan| p.set_windows([(S, 3..4, 0..0)]),
    "the holes and windows that the plan lists for 's' are not those of the problem")]
#[case::hole_of_none(|p: &mut Plan| p.set_windows([(10, 3..4, 0..0)]), "'a window' refers to a chunk that the plan does not list")]
#[case::no_windows(|p: &mut Plan| p.set_windows([]),
    "the holes and windows that the plan lists for 'h' are not those of the problem")]
#[case::missing_pin(|p: &mut Plan| p.pinned_mut().clear(), "'n' is pinned, but the plan does not say so")]
#[case::repeated_pin(|p: &mut Plan| p.pinned_mut().push(N), "'the pin of n' is in the plan twice")]
#[case::no_such_pin(|p: &mut Plan| p.pinned_mut().push(10), "'a pin' refers to a chunk that the plan does not list")]
#[case::missing_reserve(|p: &mut Plan| p.reserved_mut().clear(),
    "the bytes [56, 60) of pool 'fast' are reserved, but the plan does not say so")]
#[case::unknown_reserve(|p: &mut Plan| p.reserved_mut()[0].1.end = 58,
    "the plan says that the bytes [56, 58) of pool 'fast' are reserved, and they are not")]
#[case::apart(|p: &mut Plan| p.chunks_mut()[Y].offset = 0, "'x' and 'y' must be kept apart, but share the bytes [0, 4)")]
#[case::overlap(|p: &mut Plan| p.chunks_mut()[H].offset = 16,
    "'w' and 'h' are both alive in step 4 and share the bytes [16, 24)")]
#[case::overlap_with_a_part(|p: &mut Plan| p.chunks_mut()[H].offset = 24,
    "'h' and 'p' are both alive in step 1 and share the bytes [24, 32)")]
#[case::misplaced(|p: &mut Plan| p.chunks_mut()[B].offset = 8, "'b' lies at 8; it overwrites 'a' and must lie at 0")]
#[case::overwriter_in_another_pool(|p: &mut Plan| p.chunks_mut()[B].pool = 1,
    "'b' lies in pool 'slow'; it must lie with 'a' in pool 'fast'")]
#[case::link_dropped(|p: &mut Plan| p.chunks_mut()[B].overwrites = None, "'b' must overwrite 'a', but does not")]
#[case::whole_life_without_the_link(|p: &mut Plan| p.chunks_mut()[B].overwrites = None,
    "'a' and 'b' are both alive in step 2 and share the bytes [0, 8)")]
#[case::link_invented(|p: &mut Plan| p.chunks_mut()[X].overwrites = Some(PlannedLink::new(A, 0)),
    "'x' overwrites 'a' without a request")]
#[case::link_out_of_time(|p: &mut Plan| p.chunks_mut()[X].overwrites = Some(PlannedLink::new(A, 0)),
    "'x' begins in step 6 and overwrites 'a', whose last step is 2")]
#[case::link_too_large(|p: &mut Plan| p.chunks_mut()[W].overwrites = Some(PlannedLink::new(A, 16)),
    "'w' overwrites 'a' but reaches beyond its end")]
#[case::two_overwriters(|p: &mut Plan| p.chunks_mut()[X].overwrites = Some(PlannedLink::new(A, 0)),
    "'a' is overwritten by both 'b' and 'x'")]
#[case::cycle(|p: &mut Plan| p.chunks_mut()[A].overwrites = Some(PlannedLink::new(B, 0)),
    "'a' overwrites itself through other chunks")]
#[case::no_such_chunk(|p: &mut Plan| p.chunks_mut()[B].overwrites = Some(PlannedLink::new(10, 0)),
    "'b' refers to a chunk that the plan does not list")]
#[case::missing(|p: &mut Plan| { p.chunks_mut().pop(); }, "'e' is missing from the plan")]
#[case::size(|p: &mut Plan| p.chunks_mut()[Y].size = 3, "the size of 'y' is 4, but the plan says 3")]
#[case::size_of_a_pool(|p: &mut Plan| p.pools_mut()[0].size = 64, "the chunks in pool 'fast' need 56 B, but the plan says 64")]
#[case::size_of_all_pools(|p: &mut Plan| *p.pool_size_mut() = 80, "the sum of the sizes of all pools is 76, but the plan says 80")]
#[case::traffic(|p: &mut Plan| *p.traffic_mut() = 0, "the traffic times its cost is 364, but the plan says 0")]
#[case::naive_size(|p: &mut Plan| *p.naive_size_mut() = 1, "the size of one buffer per chunk is 84, but the plan says 1")]
#[case::steps(|p: &mut Plan| *p.steps_mut() = 9, "the number of steps is 8, but the plan says 9")]
#[case::peak(|p: &mut Plan| *p.peak_step_mut() += 1, "the first step with the most bytes alive is 1, but the plan says 2")]
#[case::peak_of_streams(|p: &mut Plan| p.peak_mut().push(A),
    "the plan lists chunks that are alive together, which only a plan for several streams does")]
#[case::alignment_of_a_pool(|p: &mut Plan| p.pools_mut()[0].alignment = 4, "the alignment of 'pool fast' is 8, but the plan says 4")]
#[case::low_bound(|p: &mut Plan| *p.lower_bound_mut() = 51,
    "the lower bound, the most bytes alive at once, is 52, but the plan says 51")]
#[case::bound_above(|p: &mut Plan| *p.lower_bound_mut() = 77, "the lower bound 77 B is above the pool size 76 B")]
#[case::bad_alignment(|p: &mut Plan| *p.alignment_mut() = 3, "the alignment 3 is not a power of two")]
#[case::object(|p: &mut Plan| p.objects_mut().push(8), "'a' is not in the shared object that it should be in")]
fn a_wrong_plan_is_refused(#[case] spoil: Spoil, #[case] message: &str) {
    let problem = problem();
    let mut plan = plan(&problem);
    assert_eq!(verify(&problem, &plan), []);
    spoil(&mut plan);
    let messages: Vec<String> = verify(&problem, &plan).iter().map(ToString::to_string).collect();
    assert!(messages.iter().any(|found| found == message), "{messages:#?}");
}

/// One pool for three streams. a is made on stream 0 and read on stream 1; b overwrites it there. c
/// and d, on streams 0 and 2, are never ordered.
fn streams() -> Problem {
    let mut problem = Problem::builder();
    let [a, b, c, d] = [("a", 8), ("b", 8), ("c", 4), ("d", 4)]
        .map(|(name, size)| problem.named_chunk(name, 0..1, size));
    problem.streams(3);
    problem.clocks(a, [0, 0, 0], [1, 1, 0], 0);
    problem.clocks(b, [1, 0, 0], [1, 2, 0], 1);
    problem.clocks(c, [1, 0, 0], [2, 0, 0], 0);
    problem.clocks(d, [0, 0, 0], [0, 0, 1], 2);
    problem.overwrite(b, a, 0).overwrite(c, a, 4);
    problem.build().unwrap()
}

#[rstest]
#[case::overlap(|p: &mut Plan| p.chunks_mut()[3].offset = 8,
    "'c' and 'd' share the bytes [8, 12), and neither is over before the other begins")]
#[case::overlap_of_a_part(|p: &mut Plan| p.chunks_mut()[3].offset = 6,
    "'a' and 'd' share the bytes [6, 8), and neither is over before the other begins")]
#[case::no_last_reader(|p: &mut Plan| {
        (p.chunks_mut()[2].offset, p.chunks_mut()[2].overwrites) = (4, Some(PlannedLink::new(0, 4)));
    }, "'c' overwrites 'a', but is not its last reader, or another reader may not be over")]
#[case::whole_life_without_the_link(|p: &mut Plan| p.chunks_mut()[1].overwrites = None,
    "'a' and 'b' share the bytes [0, 8), and neither is over before the other begins")]
#[case::peak(|p: &mut Plan| *p.peak_mut() = vec![0, 1],
    "'a' and 'b' are listed as alive together, but one is over before the other begins")]
#[case::no_such_chunk(|p: &mut Plan| *p.peak_mut() = vec![4], "'the peak' refers to a chunk that the plan does not list")]
#[case::no_proof(|p: &mut Plan| *p.lower_bound_mut() = 12,
    "the plan claims that no pool is smaller, but its lower bound 12 B is not its pool size 16 B")]
fn a_wrong_plan_for_streams_is_refused(#[case] spoil: Spoil, #[case] message: &str) {
    let problem = streams();
    let mut plan = Plan::from_offsets(&problem, &[0, 0, 8, 12]).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (16, true));
    spoil(&mut plan);
    let messages: Vec<String> = verify(&problem, &plan).iter().map(ToString::to_string).collect();
    assert!(messages.iter().any(|found| found == message), "{messages:#?}");
}

/// On stream 0, b is written over a in a's last step, and nobody reads b. On stream 1, the whole around
/// a needs the same bytes until later, which joining refuses; a plan may do it all the same.
#[rstest]
#[case::whole_alive(2, &["'whole' and 'b' share the bytes [0, 4), and neither is over before the other begins"])]
#[case::whole_over(0, &[])]
fn an_unread_overwriter_destroys_no_relative_on_another_stream(
    #[case] end: u64,
    #[case] expected: &[&str],
) {
    let mut builder = Problem::builder();
    let [whole, a, b] = [("whole", 8), ("a", 4), ("b", 4)]
        .map(|(name, size)| builder.named_chunk(name, 0..1, size));
    builder.streams(2);
    builder.clocks(whole, [0, 0], [1, end], 0);
    builder.clocks(a, [0, 0], [2, 0], 0);
    builder.clocks(b, [1, 0], [2, 0], 0);
    let problem = builder.part(a, whole, 0).overwrite(b, a, 0).build().unwrap();
    let is_refused = problem.overwritten(b).is_none();
    assert_eq!(is_refused, !expected.is_empty());
    let mut plan = Plan::from_offsets(&problem, &[0, 0, if is_refused { 8 } else { 0 }]).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    plan.chunks_mut()[2].offset = 0;
    plan.chunks_mut()[2].overwrites = Some(PlannedLink::new(1, 0));
    let messages: Vec<String> = verify(&problem, &plan).iter().map(ToString::to_string).collect();
    let clashes: Vec<&String> = messages.iter().filter(|text| text.contains("share")).collect();
    assert_eq!(clashes, expected);
}

/// A plan may accept fewer requests than the problem does; the overwriter then needs its bytes for
/// its whole lifetime.
#[test]
fn a_request_may_be_dropped() {
    let mut builder = Problem::builder();
    let (a, b) = (builder.named_chunk("a", 0..3, 8), builder.named_chunk("b", 2..5, 8));
    builder.overwrite(b, a, 0).hole(a, 1..2);
    let problem = builder.build().unwrap();
    let apart = Plan::from_offsets(&problem, &[0, 8]).unwrap();
    assert_eq!((apart.chunks()[1].overwrites, apart.lower_bound()), (None, 8));
    assert_eq!(verify(&problem, &apart), []);
    assert_eq!(Verifier::new().verify(&problem, &apart).unwrap(), []);
    assert_eq!(Verifier::new().bytes_alive(&problem, &apart).unwrap(), 8);
    let over = Plan::from_offsets(&problem, &[0, 0]).unwrap();
    assert!(over.chunks()[1].overwrites.is_some());
    assert_eq!(verify(&problem, &over), []);
}

/// The same plan, with an alignment or a padding that the caller requires.
#[rstest]
#[case(Verifier::new(), &[])]
#[case(Verifier::new().alignment(4), &["the required alignment is 4, but the plan says 1"])]
#[case(Verifier::new().padding(1), &["the required padding is 1, but the plan says 0"])]
fn the_caller_may_require_more(#[case] verifier: Verifier, #[case] expected: &[&str]) {
    let mut builder = Problem::builder();
    let a = builder.named_chunk("a", 0..2, 8);
    builder.named_chunk("b", 1..3, 8);
    builder.align(a, 2);
    let problem = builder.build().unwrap();
    let plan = Plan::from_offsets(&problem, &[8, 0]).unwrap();
    let violations = verifier.verify(&problem, &plan).unwrap();
    let messages: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(messages, expected);
    assert_eq!(verifier.bytes_alive(&problem, &plan).unwrap(), 16);
}

/// A chunk for every step overlaps all others; only some of the pairs are listed.
#[rstest]
#[case::one_stream(1)]
#[case::two_streams(2)]
fn not_all_overlaps_are_listed(#[case] streams: usize) {
    let mut builder = Problem::builder();
    builder.streams(streams);
    for _ in 0..200 {
        let chunk = builder.chunk(0..1, 8);
        let clock = |at: u64| vec![at; streams];
        if streams > 1 {
            builder.clocks(chunk, clock(0), clock(1), 0);
        }
    }
    builder.align(ChunkId(0), 2);
    let problem = builder.build().unwrap();
    let violations = verify(&problem, &Plan::from_offsets(&problem, &[0; 200]).unwrap());
    let last =
        violations.iter().position(|violation| violation.to_string().starts_with("more than"));
    assert_eq!(last, Some(10_000));
}

/// The pool that a plan of format 1 does not name.
#[test]
fn a_plan_without_pools_lies_in_the_only_one() {
    let mut builder = Problem::builder();
    let a = builder.named_chunk("a", 0..2, 8);
    builder.pin(a, PoolId(0), 8);
    let problem = builder.build().unwrap();
    let mut plan = Plan::from_offsets(&problem, &[8]).unwrap();
    plan.pools_mut().clear();
    assert_eq!(verify(&problem, &plan), []);
    *plan.pool_size_mut() = 15;
    let messages: Vec<String> = verify(&problem, &plan).iter().map(ToString::to_string).collect();
    assert_eq!(messages[0], "'a' lies at 8 with 8 B, outside the pool of 15 B");
}

/// Compares the answer of `verify` about a plan with that of the slow checker.
fn compare(name: &str, text: &Value, problem: &Problem, plan: &Plan) -> bool {
    let violations = verify(problem, plan);
    let right = is_right(text, &spots(plan));
    assert_eq!(violations.is_empty(), right, "{name}: {violations:#?}\n{text}\n{:#?}", spots(plan));
    right
}

#[test]
fn both_checkers_agree_on_random_plans() {
    let mut dice = Dice(1);
    let (mut right, mut wrong) = (0, 0);
    for round in 0..1_200 {
        let text = random_problem(&mut dice);
        let Some(problem) = read(&text).filter(|problem| !problem.is_unconstrained()) else {
            continue;
        };
        let Ok(layout) = first_fit::layout(&problem) else { continue };
        let places: Vec<(PoolId, u64)> =
            problem.ids().map(|c| (layout.pool(c), layout.offset(c))).collect();
        let mut plan = Plan::from_places(&problem, &places).unwrap();
        assert!(compare(&format!("first fit {round}"), &text, &problem, &plan));
        for turn in 0..8 {
            let new = spoiled(&mut dice, &text, &problem, &plan);
            if compare(&format!("spoiled {round}.{turn}"), &text, &problem, &new) {
                right += 1;
                plan = new;
            } else {
                wrong += 1;
            }
        }
    }
    assert!(right > 1_000 && wrong > 1_000, "{right} right, {wrong} wrong");
}

/// A recorded plan: either chunks with their pools, or offsets in the order of the chunks.
fn stated(problem: &Problem, plan: &Value) -> Option<Plan> {
    let at = |pool: &str, offset: &Value| {
        let pool = problem.pools().iter().position(|one| &*one.name == pool).unwrap_or(0);
        (PoolId(u16::try_from(pool).unwrap()), offset.as_u64().unwrap())
    };
    let chunks = plan.get("chunks").or(plan.get("offsets")).unwrap_or(plan).as_array()?;
    let places = chunks.iter().map(|chunk| match chunk.get("offset") {
        Some(offset) => at(chunk["pool"].as_str().unwrap_or("pool"), offset),
        None => at("pool", chunk),
    });
    Some(Plan::from_places(problem, &places.collect::<Vec<_>>()).unwrap())
}

#[test]
fn recorded_optimal_plans_are_right_and_both_checkers_agree_on_spoiled_ones() {
    let mut dice = Dice(2);
    for family in FAMILIES {
        for case in recorded(&format!("oracle_{family}")) {
            let name = case["name"].as_str().unwrap();
            let text = &case["problem"];
            let Some(problem) = read(text) else { continue };
            let Some(mut plan) = stated(&problem, &case["plan"]) else { continue };
            assert_eq!(verify(&problem, &plan), [], "{name}");
            if problem.is_unconstrained() {
                continue;
            }
            let objective: Vec<u64> = serde_json::from_value(case["objective"].clone()).unwrap();
            let found: Vec<u64> =
                plan.objective().iter().map(|&value| u64::try_from(value).unwrap()).collect();
            assert_eq!(found, objective, "{name}");
            if let Ok(layout) = first_fit::layout(&problem) {
                let places: Vec<(PoolId, u64)> =
                    problem.ids().map(|c| (layout.pool(c), layout.offset(c))).collect();
                let plan = Plan::from_places(&problem, &places).unwrap();
                assert_eq!(verify(&problem, &plan), [], "{name}");
            }
            for _ in 0..10 {
                let new = spoiled(&mut dice, text, &problem, &plan);
                if compare(name, text, &problem, &new) {
                    plan = new;
                }
            }
        }
    }
}

#[rstest]
#[case::usmp("usmp_pools")]
#[case::executorch("executorch_banked")]
#[case::omnimalloc("omnimalloc")]
#[case::minimalloc("minimalloc_gaps")]
#[case::vela("vela")]
fn plans_of_others_are_judged_as_recorded(#[case] file: &str) {
    let mut counts = [0, 0];
    for case in recorded(file) {
        let name = case["name"].as_str().unwrap();
        let Some(problem) = read(&case["problem"]) else { continue };
        let mut plans: Vec<(String, &Value)> = Vec::new();
        for key in ["plan", "minimalloc"] {
            plans.extend(case.get(key).map(|plan| (key.to_owned(), plan)));
        }
        let several = case["plans"].as_object().into_iter().flatten();
        plans.extend(several.map(|(key, plan)| (key.clone(), plan)));
        for (key, plan) in plans {
            let Some(read) = stated(&problem, plan) else { continue };
            let named = &case["violations"][&key];
            let violations = [&plan["violations"], &case["violations"], named];
            let is_wrong = violations.iter().any(|v| v.as_array().is_some_and(|v| !v.is_empty()));
            let found = verify(&problem, &read);
            assert_eq!(!found.is_empty(), is_wrong, "{name} {key}: {found:#?}");
            counts[usize::from(is_wrong)] += 1;
        }
    }
    if common::shared_path("data/problem2").is_some() {
        assert!(counts[0] > 30, "{counts:?}");
        assert!(file != "usmp_pools" || counts[1] > 30, "{counts:?}");
    }
}
