//! Plans of sequences in which each byte lives until its own last reader: an output may be written over a part of a
//! buffer while another part is still read.

#![cfg(feature = "files")]

use std::{cell::Cell, ops::Range};

use arbitrary::Unstructured;

use crate::common::{alive::check, placed::Placed, seeds::times, shared};
use memplan::{
    OpSequence, Operator, Output, Plan, PlannedLink, Planner, Problem, Strategy, TensorPlace,
    plan::Scope,
    problem::Request,
    report::{explain, explain_json, summary, trace},
    verify::{Verifier, execute, verify},
};
use rstest::rstest;
use serde_json::{Value, json};

/// Counting from the operators and running them agree on every placement, byte by byte.
#[test]
fn verify_accepts_exactly_the_placements_that_run() {
    let (right, split, wrong) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let on_streams = [Cell::new(0), Cell::new(0)];
    let one = |random: &mut Unstructured<'_>| {
        let mut placed = Placed::random(random)?;
        let Some(sequence) = placed.sequence() else { return Ok(()) };
        for _ in 0..12 {
            let plan = placed.plan(Some(0));
            let (verified, executed) = (verify(&sequence, &plan), execute(&sequence, &plan));
            assert_eq!(
                verified.is_empty(),
                executed.is_empty(),
                "{verified:#?}\n{executed:#?}\n{sequence:#?}\n{plan:#?}"
            );
            let add = |count: &Cell<usize>, is: bool| count.set(count.get() + usize::from(is));
            add(&right, verified.is_empty());
            add(&wrong, !verified.is_empty());
            let is_split = verified.is_empty() && plan.has_windows();
            add(&split, is_split);
            add(&on_streams[0], is_split && sequence.streams() > 1);
            add(&on_streams[1], !verified.is_empty() && sequence.streams() > 1);
            if verified.is_empty() {
                check(&plan, Some(&sequence));
            }
            // Larger windows, or none, can only be harder to meet.
            let wider = if random.ratio(1, 2)? { Some(random.int_in_range(0..=3)?) } else { None };
            let found = verify(&sequence, &placed.plan(wider));
            assert!(
                !found.is_empty() || executed.is_empty(),
                "{executed:#?}\n{sequence:#?}\n{plan:#?}"
            );
            placed.place(random)?;
        }
        Ok(())
    };
    times(200, one);
    let (right, split, wrong) = (right.get(), split.get(), wrong.get());
    let [split_on_two, wrong_on_two] = on_streams.map(|count| count.get());
    assert!(
        right.min(wrong).min(wrong_on_two) > 100,
        "{right} right, {wrong} ({wrong_on_two}) wrong"
    );
    assert!(split.min(split_on_two) > 10, "{split} ({split_on_two}) by byte");
    eprintln!(
        "{right} placements are right, {split} of them by byte ({split_on_two} on two streams), \
         and {wrong} are wrong ({wrong_on_two})"
    );
}

/// `t` of 64 bytes has two halves: `s` is written over one, `y` over the other, which is read for longer.
fn glu() -> OpSequence {
    let view = |name: &str, low| Output::new(name, 32).reads_at("t", low);
    OpSequence::builder()
        .input("x", 8)
        .operator(Operator::new("m").inputs(["x"]).output(Output::new("t", 64)))
        .operator(Operator::new("v0").inputs(["t"]).output(view("a", 0)))
        .operator(Operator::new("v1").inputs(["t"]).output(view("b", 32)))
        .operator(Operator::new("sig").inputs(["b"]).output(Output::new("s", 32).overwrites("b")))
        .operator(
            Operator::new("mul").inputs(["a", "s"]).output(Output::new("y", 32).overwrites("a")),
        )
        .output("y")
        .build()
        .unwrap()
}

/// `u` is written over `t`, and one half of it is updated while the other is still to be read.
#[rstest]
#[case::on_one_stream(0)]
#[case::on_two_streams(1)]
fn a_half_of_an_overwriter_is_updated(#[case] stream: usize) {
    let view = |name: &str, low| Output::new(name, 32).reads_at("u", low).required();
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("t", 64)))
        .operator(Operator::new("n").inputs(["t"]).output(Output::new("u", 64).updates("t", 0)))
        .operator(Operator::new("split").inputs(["u"]).output(view("a", 0)).output(view("b", 32)))
        .operator(
            Operator::new("k")
                .inputs(["b"])
                .output(Output::new("c", 32).updates("b", 0))
                .on_stream(stream),
        )
        .operator(Operator::new("r").inputs(["a"]).output(Output::new("y", 32)))
        .operator(Operator::new("s").inputs(["y", "c"]))
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.offset("u")), (96, plan.offset("t")));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

/// Each half of `t` is written over on the stream that reads it last.
#[test]
fn the_halves_of_a_buffer_are_written_over_on_two_streams() {
    let view = |name: &str, low| Output::new(name, 32).reads_at("t", low);
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("t", 64)))
        .operator(Operator::new("split").inputs(["t"]).output(view("a", 0)).output(view("b", 32)))
        .operator(
            Operator::new("sig")
                .inputs(["b"])
                .output(Output::new("s", 32).overwrites("b"))
                .on_stream(1),
        )
        .operator(Operator::new("neg").inputs(["a"]).output(Output::new("n", 32).overwrites("a")))
        .operator(Operator::new("mul").inputs(["n", "s"]).output(Output::new("y", 32)))
        .operator(Operator::new("exp").inputs(["y"]).output(Output::new("z", 32)).on_stream(1))
        .output("z")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.scope()), (96, Scope::AllChoices));
    assert_eq!((plan.offset("n"), plan.offset("s")), (plan.offset("a"), plan.offset("b")));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    // `exp` may run while `mul` still reads `n`, but not before it has made `y`.
    let mut wrong = plan.clone();
    let place = wrong.tensors_mut().iter_mut().find(|tensor| &*tensor.name == "n").unwrap();
    assert!(matches!(place.place, TensorPlace::Pool { .. }));
    place.place.clone_from(&plan.tensor("b").unwrap().place);
    assert!(!verify(&sequence, &wrong).is_empty() && !execute(&sequence, &wrong).is_empty());
}

fn glu_plan(format: u64, windows: &[[u64; 4]]) -> Value {
    let chunk = |id: u64, name: &str, size: u64, [begin, end]: [u64; 2], offset: u64| {
        let over = (id > 0).then(|| json!({"chunk": 0, "offset": offset}));
        json!({"id": id, "name": name, "size": size, "begin": begin, "end": end,
            "offset": offset, "overwrites": over})
    };
    let tensor = |name: &str, chunk: u64, offset: u64, size: u64| json!({"name": name, "chunk": chunk, "offset": offset, "size": size});
    let mut plan = json!({
        "format": format!("memplan-plan/{format}"), "pool_size": 64, "lower_bound": 64,
        "proven_optimal": true, "naive_size": 128, "alignment": 1, "steps": 5, "peak_step": 0,
        "chunks": [chunk(0, "t", 64, [0, 5], 0), chunk(1, "s", 32, [3, 5], 32),
            chunk(2, "y", 32, [4, 5], 0)],
        "tensors": [tensor("t", 0, 0, 64), tensor("a", 0, 0, 32), tensor("b", 0, 32, 32),
            tensor("s", 1, 32, 32), tensor("y", 2, 0, 32)],
    });
    if format == 2 {
        plan["pools"] = json!([{"name": "pool", "size": 64}]);
        (plan["traffic"], plan["objective"]) = (json!(0), json!([0, 64]));
        let window = |&[begin, end, low, high]: &[u64; 4]| json!({"chunk": 0, "begin": begin, "end": end, "low": low, "high": high});
        plan["windows"] = windows.iter().map(window).collect();
    }
    plan
}

fn read(plan: Value) -> Plan {
    serde_json::from_value(plan).unwrap()
}

const EXACT: &[[u64; 4]] = &[[4, 5, 0, 32]];

/// Windows may be larger than needed, cover the same step, or be left out.
#[rstest]
#[case::no_windows(1, &[])]
#[case::exact(2, EXACT)]
#[case::larger(2, &[[4, 5, 0, 48]])]
#[case::all_of_it(2, &[[4, 5, 0, 64]])]
#[case::two_in_one_step(2, &[[4, 5, 0, 20], [4, 5, 16, 32]])]
#[case::two_in_several_steps(2, &[[1, 5, 0, 32], [1, 4, 32, 64]])]
fn parts_of_a_buffer_are_overwritten_one_by_one(#[case] format: u64, #[case] windows: &[[u64; 4]]) {
    let (sequence, plan) = (glu(), read(glu_plan(format, windows)));
    let verifier = Verifier::new().execute(true);
    assert_eq!(verifier.verify(&sequence, &plan).unwrap(), []);
    assert_eq!(verifier.bytes_alive(&sequence, &plan).unwrap(), 64);
    let steps = Some(&sequence);
    check(&plan, steps);
    let words = explain(&plan, steps);
    let kept = "t is kept by its view a (32 B of 64 B) until step 4 (mul).";
    assert!(words.contains(kept), "{words}");
    assert!(summary(&plan, steps, "").contains("peak"), "{words}");
    let chunk = &explain_json(&plan, steps)["peak"]["chunks"][0];
    assert_eq!(chunk["kept_by"], json!({"views": ["a"], "bytes": 32, "until": 4}));
    let trace: Value = serde_json::from_str(&trace(&plan, steps)).unwrap();
    let alive: Vec<&Value> =
        trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "C").collect();
    assert!(alive.iter().all(|event| event["args"]["bytes"].as_u64() <= Some(64)), "{trace}");
}

/// The plan that was refused when a buffer lived as a whole.
#[test]
fn a_recorded_plan_by_byte_is_right() {
    let Some(text) = shared("data/repro3/disjoint_parts_glu.right_plan.json") else { return };
    let plan: Plan = serde_json::from_str(&text).unwrap();
    let sequence = shared("data/repro3/disjoint_parts_glu.json").unwrap();
    let sequence: OpSequence = serde_json::from_str(&sequence).unwrap();
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

fn put(plan: &mut Plan, name: &str, to: u64) {
    let tensor = plan.tensors_mut().iter_mut().find(|tensor| &*tensor.name == name).unwrap();
    if let TensorPlace::Pool { chunk, ref mut offset } = tensor.place {
        *offset = to;
        plan.chunks_mut()[chunk].offset = to;
    }
}

fn window(windows: &[[u64; 4]]) -> Plan {
    read(glu_plan(2, windows))
}

#[rstest]
#[case::half_over_a_part_that_is_read(|| {
    let mut plan = window(EXACT);
    put(&mut plan, "s", 16);
    plan.chunks_mut()[1].overwrites = Some(PlannedLink::new(0, 16));
    plan
}, "'s' overwrites 't' without a request")]
#[case::over_a_part_that_is_read(|| {
    let mut plan = window(&[]);
    put(&mut plan, "s", 0);
    plan.chunks_mut()[1].overwrites = Some(PlannedLink::new(0, 0));
    plan
}, "'s' overwrites 't' without a request")]
#[case::two_over_the_same_bytes(|| {
    let mut plan = window(&[]);
    put(&mut plan, "y", 32);
    plan.chunks_mut()[2].overwrites = Some(PlannedLink::new(0, 32));
    plan
}, "'t' is overwritten by both 's' and 'y'")]
#[case::link_missing(|| {
    let mut plan = window(EXACT);
    plan.chunks_mut()[1].overwrites = None;
    plan
}, "'s' is written over 't', but the plan has no link for this")]
#[case::window_too_small(|| window(&[[4, 5, 0, 31]]),
    "'t' needs its bytes [31, 32) in step 4, but the plan lists only others for this step")]
#[case::windows_with_a_gap(|| window(&[[4, 5, 0, 12], [4, 5, 16, 32]]),
    "'t' needs its bytes [12, 16) in step 4, but the plan lists only others for this step")]
#[case::window_too_early(|| window(&[[3, 5, 0, 32]]),
    "'t' needs its bytes [32, 64) in step 3, but the plan lists only others for this step")]
#[case::hole(|| window(&[[4, 5, 0, 0]]),
    "'t' needs its bytes [0, 32) in step 4, but the plan lists only others for this step")]
#[case::window_after_the_end(|| window(&[[4, 6, 0, 32]]),
    "the plan lists the bytes [0, 32) of 't' for the steps [4, 6), which are none or not all in its life")]
#[case::window_beyond_the_chunk(|| window(&[[4, 5, 0, 65]]),
    "the plan lists the bytes [0, 65) of 't' for the steps [4, 5), which are none or not all in its life")]
#[case::window_without_steps(|| window(&[[4, 4, 0, 32]]),
    "the plan lists the bytes [0, 32) of 't' for the steps [4, 4), which are none or not all in its life")]
#[case::shorter_life(|| {
    let mut plan = window(&[]);
    plan.chunks_mut()[0].end = 4;
    plan
}, "the end of 't' is 5, but the plan says 4")]
#[case::end_before_begin(|| {
    let mut plan = window(EXACT);
    (plan.chunks_mut()[0].begin, plan.chunks_mut()[0].end) = (5, 3);
    plan
}, "the end of 't' is 5, but the plan says 3")]
#[case::low_bound(|| {
    let mut plan = window(EXACT);
    (*plan.lower_bound_mut(), *plan.proven_optimal_mut()) = (63, false);
    plan
}, "the lower bound, the most bytes alive at once, is 64, but the plan says 63")]
#[case::peak(|| {
    let mut plan = window(EXACT);
    *plan.peak_step_mut() = 1;
    plan
}, "the first step with the most bytes alive is 0, but the plan says 1")]
fn a_wrong_plan_by_byte_is_refused(#[case] spoil: fn() -> Plan, #[case] message: &str) {
    let plan = spoil();
    let found: Vec<String> = verify(&glu(), &plan).iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|found| found.contains(message)), "{found:#?}");
}

/// `z` may lie in the half of `t` that nobody reads any more, if the plan says that `t` does not need it.
#[rstest]
#[case(&[[3, 5, 0, 8]], None)]
#[case(&[], Some("'t' and 'z' are both alive in step 3 and share the bytes [8, 16)"))]
fn a_new_chunk_lies_in_bytes_that_are_over(
    #[case] windows: &[[u64; 4]],
    #[case] message: Option<&str>,
) {
    let view = |name: &str, low| Output::new(name, 8).reads_at("t", low);
    let halves = Operator::new("split").inputs(["t"]).output(view("a", 0)).output(view("b", 8));
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("t", 16)))
        .operator(halves)
        .operator(Operator::new("n").inputs(["b"]))
        .operator(Operator::new("o").output(Output::new("z", 8)))
        .operator(Operator::new("p").inputs(["a", "z"]))
        .build()
        .unwrap();
    let windows = windows.iter().map(|&[begin, end, low, high]| {
        json!({"chunk": 0, "begin": begin, "end": end, "low": low, "high": high})
    });
    let tensor = |name: &str, chunk: u64, offset: u64, size: u64| json!({"name": name, "chunk": chunk, "offset": offset, "size": size});
    let plan = read(json!({
        "format": "memplan-plan/2", "pool_size": 16, "lower_bound": 16, "naive_size": 24,
        "alignment": 1, "steps": 5, "peak_step": 0, "windows": windows.collect::<Vec<_>>(),
        "pools": [{"name": "pool", "size": 16}], "traffic": 0, "objective": [0, 16],
        "chunks": [
            {"id": 0, "name": "t", "size": 16, "begin": 0, "end": 5, "offset": 0},
            {"id": 1, "name": "z", "size": 8, "begin": 3, "end": 5, "offset": 8},
        ],
        "tensors": [tensor("t", 0, 0, 16), tensor("a", 0, 0, 8), tensor("b", 0, 8, 8),
            tensor("z", 1, 8, 8)],
    }));
    let found: Vec<String> = verify(&sequence, &plan).iter().map(ToString::to_string).collect();
    assert_eq!(found, Vec::from_iter(message.map(str::to_owned)));
    assert_eq!(execute(&sequence, &plan), []);
}

/// `z` may be written over `x`, two bytes behind the view `v`, and lies there by chance: nobody needs these bytes of `x`
/// any more.
#[test]
fn an_output_may_lie_where_it_might_be_written_over_bytes_that_are_over() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("a").output(Output::new("x", 8)))
        .operator(Operator::new("view").inputs(["x"]).output(Output::new("v", 1).reads_at("x", 4)))
        .operator(
            Operator::new("c").inputs(["v"]).output(Output::new("z", 2).overwrites_at("v", 2)),
        )
        .operator(Operator::new("d").inputs(["v", "z"]).output(Output::new("y", 4)))
        .build()
        .unwrap();
    let plan = |low: u64, windows: Value| {
        let chunk = |id: u64, name: &str, size: u64, begin: u64, end: u64, offset: u64| json!({"id": id, "name": name, "size": size, "begin": begin, "end": end, "offset": offset});
        read(json!({
            "format": "memplan-plan/2", "pool_size": 8, "lower_bound": 8, "naive_size": 14,
            "alignment": 1, "steps": 4, "peak_step": 0,
            "pools": [{"name": "pool", "size": 8}], "traffic": 0, "objective": [0, 8],
            "chunks": [chunk(0, "x", 8, 0, 4, 0), chunk(1, "z", 2, 2, 4, low), chunk(2, "y", 4, 3, 4, 0)],
            "tensors": [{"name": "x", "chunk": 0, "offset": 0, "size": 8},
                {"name": "v", "chunk": 0, "offset": 4, "size": 1},
                {"name": "z", "chunk": 1, "offset": low, "size": 2},
                {"name": "y", "chunk": 2, "offset": 0, "size": 4}],
            "windows": windows,
        }))
    };
    let windows = json!([{"chunk": 0, "begin": 1, "end": 4, "low": 4, "high": 5}]);
    let right = plan(6, windows.clone());
    assert_eq!((verify(&sequence, &right), execute(&sequence, &right)), (vec![], vec![]));
    for wrong in [plan(4, windows), plan(6, json!([]))] {
        assert!(!verify(&sequence, &wrong).is_empty());
    }
}

/// An output of the last operator must not be written over a graph output, even if nobody reads it.
#[rstest]
#[case::all(0, 8)]
#[case::some_of_it(4, 4)]
fn nothing_is_written_over_what_is_kept(#[case] offset: u64, #[case] size: u64) {
    let dead = Output::new("y", size).overwrites_at("x", offset);
    let sequence = OpSequence::builder()
        .operator(Operator::new("a").output(Output::new("x", 8)))
        .operator(Operator::new("b").inputs(["x"]).output(dead))
        .output("x")
        .build()
        .unwrap();
    let plan = read(json!({
        "format": "memplan-plan/1", "pool_size": 8, "lower_bound": 8, "naive_size": 8 + size,
        "alignment": 1, "steps": 2, "peak_step": 0,
        "chunks": [
            {"id": 0, "name": "x", "size": 8, "begin": 0, "end": 2, "offset": 0},
            {"id": 1, "name": "y", "size": size, "begin": 1, "end": 2, "offset": offset,
                "overwrites": {"chunk": 0, "offset": offset}},
        ],
        "tensors": [{"name": "x", "chunk": 0, "offset": 0, "size": 8},
            {"name": "y", "chunk": 1, "offset": offset, "size": size}],
    }));
    let found: Vec<String> = verify(&sequence, &plan).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["'y' overwrites 'x', which must be kept after the last step"]);
    assert_eq!(execute(&sequence, &plan).len(), 1);
}

/// After an update of one byte of a variable that was updated as a whole before, the other bytes are its state as well.
#[test]
fn nothing_is_written_over_the_rest_of_an_updated_variable() {
    let mut builder = OpSequence::builder();
    builder.weight("w", Some(16));
    let sequence = builder
        .operator(Operator::new("all").inputs(["w"]).output(Output::new("x", 16).updates("w", 0)))
        .operator(
            Operator::new("some")
                .inputs(["x"])
                .output(Output::new("y", 1).updates("x", 4))
                .output(Output::new("v", 1).reads_at("x", 14)),
        )
        .operator(Operator::new("read").inputs(["v"]).output(Output::new("z", 1).overwrites("v")))
        .output("y")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    assert_eq!(plan.offset("z"), Some(0), "in the pool");
}

/// Both outputs of the last operator are written over the same byte: `a` lies inside `b`.
#[test]
fn two_outputs_are_not_written_over_the_same_bytes_in_a_step() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("a", 1)))
        .operator(Operator::new("cat").inputs(["a"]).output(Output::new("b", 1).gathers("a", 0)))
        .operator(
            Operator::new("both")
                .inputs(["a", "b"])
                .output(Output::new("y", 1).overwrites("a"))
                .output(Output::new("z", 1).overwrites("b")),
        )
        .output("z")
        .build()
        .unwrap();
    let chunk = |id: u64, name: &str, [begin, end]: [u64; 2], over: Option<u64>| {
        let over = over.map(|chunk| json!({"chunk": chunk, "offset": 0}));
        json!({"id": id, "name": name, "size": 1, "begin": begin, "end": end, "offset": 0, "overwrites": over})
    };
    let tensor =
        |name: &str, chunk: u64| json!({"name": name, "chunk": chunk, "offset": 0, "size": 1});
    let plan = json!({
        "format": "memplan-plan/2", "pool_size": 1, "lower_bound": 1, "naive_size": 4, "alignment": 1,
        "steps": 3, "peak_step": 0, "traffic": 0, "objective": [0, 1],
        "pools": [{"name": "pool", "size": 1}],
        "chunks": [
            chunk(0, "a", [0, 3], None), chunk(1, "b", [1, 3], None),
            chunk(2, "y", [2, 3], Some(0)), chunk(3, "z", [2, 3], Some(1)),
        ],
        "parts": [{"chunk": 0, "whole": 1, "offset": 0}],
        "tensors": [tensor("a", 0), tensor("b", 1), tensor("y", 2), tensor("z", 3)],
    });
    let plan = read(plan);
    let found: Vec<String> = verify(&sequence, &plan).iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|found| found.starts_with("'y' and 'z'")), "{found:#?}");
    assert!(!execute(&sequence, &plan).is_empty());
}

/// The same as chunks: two overwriters of one step share the byte that a chunk and its part have in common.
#[test]
fn two_chunks_are_not_written_over_the_same_bytes_in_a_step() {
    let mut problem = Problem::builder();
    let (a, b) = (problem.chunk(0..3, 1), problem.chunk(1..3, 1));
    let (y, z) = (problem.chunk(2..3, 1), problem.chunk(2..3, 1));
    problem.part(a, b, 0);
    problem.overwrite(y, a, 0).overwrite(z, b, 0);
    let problem = problem.build().unwrap();
    let plan = Plan::from_offsets(&problem, &[0, 0, 0, 0]).unwrap();
    let found: Vec<String> = verify(&problem, &plan).iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|found| found.contains("share the bytes [0, 1)")), "{found:#?}");
}

/// Two chunks are written over parts in one step. The first byte of `z` is the last of `y`.
#[rstest]
#[case::not_needed(1..2, true)]
#[case::needed(0..2, false)]
fn overwriters_of_a_step_may_share_what_one_does_not_need(
    #[case] window: Range<u64>,
    #[case] is_right: bool,
) {
    let mut problem = Problem::builder();
    let [a, b] = [0, 0].map(|begin| problem.chunk(begin..1, 1));
    let [of_a, of_b] = [1, 1].map(|begin| problem.chunk(begin..2, 1));
    let [y, z] = [1, 1].map(|begin| problem.chunk(begin..3, 2));
    problem.part(a, of_a, 0).part(b, of_b, 0);
    problem.request(Request::overlap(y, of_a, 1)).request(Request::overlap(z, of_b, 1));
    problem.window(z, 1..3, window);
    let problem = problem.build().unwrap();
    let plan = Plan::from_offsets(&problem, &[1, 2, 1, 2, 0, 1]).unwrap();
    assert!(plan.chunks()[4].overwrites.is_some() && plan.chunks()[5].overwrites.is_some());
    let found = verify(&problem, &plan);
    assert_eq!(found.is_empty(), is_right, "{found:#?}");
}

/// On several streams, a content lives as a whole: the padding of `y` lies on bytes of `x` that only `n` reads.
#[test]
fn padding_may_lie_on_the_rest_of_a_content_on_another_stream() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("x", 24)))
        .operator(
            Operator::new("n")
                .inputs(["x"])
                .output(Output::new("s", 1))
                .output(Output::new("v", 12).reads_at("x", 3).required()),
        )
        .operator(
            Operator::new("k")
                .inputs(["s", "v"])
                .output(Output::new("y", 12).overwrites("v"))
                .on_stream(1),
        )
        .output("y")
        .build()
        .unwrap();
    let plan = Planner::new().padding(2).plan(&sequence).unwrap();
    assert_eq!(plan.offset("y"), plan.offset("v"));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

/// The padding of `y` lies on the bytes of `t`, which is a part of the overwritten `x` and is read in this step.
#[test]
fn padding_may_lie_on_a_part_on_another_stream() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("s", 24)).output(Output::new("t", 2)))
        .operator(
            Operator::new("n")
                .inputs(["s", "t"])
                .output(Output::new("x", 26).gathers("s", 0).gathers("t", 24)),
        )
        .operator(
            Operator::new("v")
                .inputs(["x"])
                .output(Output::new("v", 19).reads_at("x", 4))
                .on_stream(1),
        )
        .operator(
            Operator::new("k")
                .inputs(["t", "v"])
                .output(Output::new("y", 19).updates("v", 0))
                .on_stream(1),
        )
        .build()
        .unwrap();
    let plan = Planner::new().padding(3).plan(&sequence).unwrap();
    assert_eq!(plan.parts().len(), 2, "t lies in x");
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

/// `w` is written over one byte of `x`, of which only that byte is still needed, and its padding lies on that of `t`,
/// the neighbour of `x` in `z`.
#[test]
fn padding_may_lie_on_that_of_the_neighbour_of_an_overwritten_part() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("t", 1)).output(Output::new("x", 4)))
        .operator(
            Operator::new("n")
                .inputs(["t", "x"])
                .output(Output::new("z", 5).gathers("t", 0).gathers("x", 1)),
        )
        .operator(
            Operator::new("v")
                .inputs(["x", "z"])
                .output(Output::new("v", 1).reads_at("x", 1).required()),
        )
        .operator(Operator::new("k").inputs(["v"]).output(Output::new("w", 1).overwrites("v")))
        .operator(Operator::new("r").inputs(["t"]))
        .build()
        .unwrap();
    let plan = Planner::new().padding(5).plan(&sequence).unwrap();
    assert_eq!(plan.parts().len(), 2, "t and x lie in z");
    assert_eq!(plan.offset("w"), plan.offset("v"));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

/// Only the bytes of `v` are still needed of `x` when `y` is written around them, and their padding lies in `y`.
#[test]
fn padding_of_a_part_may_lie_in_its_whole() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("x", 6)))
        .operator(
            Operator::new("n")
                .inputs(["x"])
                .output(Output::new("v", 2).reads_at("x", 2).required()),
        )
        .operator(Operator::new("k").inputs(["v"]).output(Output::new("y", 7).holds("v", 0)))
        .operator(Operator::new("r").inputs(["y"]).output(Output::new("z", 1)))
        .output("v")
        .build()
        .unwrap();
    for padding in 0..4 {
        let plan = Planner::new().padding(padding).plan(&sequence).unwrap();
        let windows: usize = (0..plan.chunks().len()).map(|at| plan.windows(at).count()).sum();
        assert_eq!((plan.offset("y"), windows), (plan.offset("v"), 1), "{padding}");
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    }
}

/// `w` must be written over the first bytes of `x`, and `v` lies four bytes behind them.
#[test]
fn a_required_overwrite_without_room_for_its_padding_is_an_error() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("m").output(Output::new("x", 16)))
        .operator(
            Operator::new("n")
                .inputs(["x"])
                .output(Output::new("w", 2).updates("x", 0))
                .output(Output::new("v", 8).reads_at("x", 6).required()),
        )
        .operator(Operator::new("r").inputs(["v", "w"]))
        .build()
        .unwrap();
    let plan = Planner::new().padding(4).plan(&sequence).unwrap();
    assert_eq!(plan.offset("w"), Some(0));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    for strategy in Strategy::ALL {
        let error = Planner::new().strategy(*strategy).padding(5).plan(&sequence).unwrap_err();
        assert_eq!(
            error.to_string(),
            "operator 'n': 'w' must overwrite 'x[0..6]', but its padding would lie on bytes that another chunk needs",
            "{strategy}"
        );
    }
}

/// `y` lies in the memory of the caller, because it must be written over `x`; so do its bytes, read one by one.
#[test]
fn bytes_of_an_update_outside_the_pool_are_not_in_it() {
    let update = Output::new("y", 6).updates("x", 0);
    let sequence = OpSequence::builder()
        .input("x", 24)
        .operator(Operator::new("m").output(Output::new("s", 64)))
        .operator(Operator::new("n").inputs(["x"]).output(update))
        .operator(Operator::new("k").inputs(["y"]).output(Output::new("v", 1).reads_at("y", 5)))
        .operator(Operator::new("r").inputs(["v", "s"]).output(Output::new("z", 8)))
        .operator(Operator::new("q").inputs(["v", "z"]).output(Output::new("w", 8)))
        .build()
        .unwrap();
    for strategy in [Strategy::Best, Strategy::Optimal, Strategy::Pushdown] {
        let plan = Planner::new().strategy(strategy).plan(&sequence).unwrap();
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    }
}

/// Two outputs of one operator update the halves of a tensor.
#[test]
fn outputs_of_one_operator_update_different_bytes() {
    let update = Operator::new("update").inputs(["x"]);
    let update = update.output(Output::new("y", 64).updates("x", 0));
    let sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("x", 128)))
        .operator(update.output(Output::new("z", 64).updates("x", 64)))
        .operator(Operator::new("add").inputs(["y", "z"]).output(Output::new("s", 64)))
        .output("s")
        .build()
        .unwrap();
    let plan = Planner::new().alignment(64).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (192, true));
    assert_eq!(plan.offset("z"), plan.offset("x").map(|offset| offset + 64));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

/// `p` and `q` divide `y`, which is itself written over `a`, in the step after that, and nothing reads them.
#[test]
fn outputs_that_nothing_reads_divide_an_overwriter() {
    let halves = Operator::new("divide").inputs(["y"]);
    let halves = halves.output(Output::new("p", 4).overwrites("y"));
    let sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("a", 8)))
        .operator(Operator::new("relu").inputs(["a"]).output(Output::new("y", 8).overwrites("a")))
        .operator(
            halves.output(Output::new("q", 4).overwrites_at("y", 4)).output(Output::new("r", 3)),
        )
        .output("r")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (11, true));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}
