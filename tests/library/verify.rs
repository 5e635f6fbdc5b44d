//! Every way in which a plan can be wrong is found and named, and nothing else is.

use crate::common::{
    random::{Wild, random_problem},
    seeds::times,
};
use memplan::{
    OpSequence, Operator, Output, Plan, PlannedLink, PlannedTensor, Planner, Problem, Strategy,
    TensorPlace,
    lower::LoweringOptions,
    problem::{ChunkId, Request},
    sequence::SequenceBuilder,
    verify::{Verifier, Violation, execute, verify},
};
use rstest::rstest;

/// a [0, 2), 20 bytes; b [1, 4), 10 bytes, over a at 6; c [2, 4), 4 bytes; d [4, 5), 0 bytes.
fn problem() -> Problem {
    let mut problem = Problem::builder();
    let a = problem.named_chunk("a", 0..2, 20);
    let b = problem.named_chunk("b", 1..4, 10);
    problem.named_chunk("c", 2..4, 4);
    problem.named_chunk("d", 4..5, 0);
    problem.request(Request::new(b, a, 6).required(true));
    problem.alignment(2).build().unwrap()
}

type Spoil = fn(&mut Plan);

#[rstest]
#[case::overlap(|p: &mut Plan| p.chunks_mut()[2].offset = 14,
    "'b' and 'c' are both alive in step 2 and share the bytes [14, 16)")]
#[case::overwriter_beyond_the_overwritten(|p: &mut Plan| p.chunks_mut()[1].offset = 14,
    "'a' and 'b' are both alive in step 1 and share the bytes [14, 20)")]
#[case::overwriter_before_the_last_step(|p: &mut Plan| p.chunks_mut()[1].begin = 0,
    "'a' and 'b' are both alive in step 0 and share the bytes [6, 16)")]
#[case::misplaced(|p: &mut Plan| p.chunks_mut()[1].offset = 8,
    "'b' lies at 8; it overwrites 'a' and must lie at 6")]
#[case::misaligned(|p: &mut Plan| p.chunks_mut()[2].offset = 1, "'c' lies at 1, which is not a multiple of the alignment 2")]
#[case::outside(|p: &mut Plan| p.chunks_mut()[2].offset = 18, "'c' lies at 18 with 4 B, outside the pool of 20 B")]
#[case::outside_by_wrapping(|p: &mut Plan| p.chunks_mut()[2].offset = u64::MAX - 1,
    "'c' lies at 18446744073709551614 with 4 B, outside the pool of 20 B")]
#[case::missing(|p: &mut Plan| { p.chunks_mut().remove(2); }, "'c' is missing from the plan")]
#[case::unknown(|p: &mut Plan| p.chunks_mut()[2].id = 9, "'c' is in the plan, but not in the input")]
#[case::unknown_by_one(|p: &mut Plan| p.chunks_mut()[2].id = 4, "'c' is in the plan, but not in the input")]
#[case::repeated(|p: &mut Plan| { let d = p.chunks()[3].clone(); p.chunks_mut().push(d); }, "'d' is in the plan twice")]
#[case::size(|p: &mut Plan| p.chunks_mut()[2].size = 3, "the size of 'c' is 4, but the plan says 3")]
#[case::begin(|p: &mut Plan| p.chunks_mut()[2].begin = 3, "the begin of 'c' is 2, but the plan says 3")]
#[case::end(|p: &mut Plan| p.chunks_mut()[2].end = 3, "the end of 'c' is 4, but the plan says 3")]
#[case::total_too_large(|p: &mut Plan| *p.pool_size_mut() = 22, "the pool size is 22 B, but the chunks end at 20 B")]
#[case::total_too_small(|p: &mut Plan| *p.pool_size_mut() = 16, "the pool size is 16 B, but the chunks end at 20 B")]
#[case::bound(|p: &mut Plan| *p.lower_bound_mut() = 22, "the lower bound 22 B is above the pool size 20 B")]
#[case::steps(|p: &mut Plan| *p.steps_mut() = 6, "the number of steps is 5, but the plan says 6")]
#[case::peak(|p: &mut Plan| *p.peak_step_mut() = 1, "the first step with the most bytes alive is 0, but the plan says 1")]
#[case::naive_size(|p: &mut Plan| *p.naive_size_mut() = 33, "the size of one buffer per chunk is 34, but the plan says 33")]
#[case::low_bound(|p: &mut Plan| *p.lower_bound_mut() = 1,
    "the lower bound, the most bytes alive at once, is 20, but the plan says 1")]
#[case::no_proof(|p: &mut Plan| *p.pool_size_mut() = 22,
    "the plan claims that no pool is smaller, but its lower bound 20 B is not its pool size 22 B")]
#[case::alignment_too_small(|p: &mut Plan| *p.alignment_mut() = 1, "the required alignment is 2, but the plan says 1")]
#[case::alignment(|p: &mut Plan| *p.alignment_mut() = 3, "the alignment 3 is not a power of two")]
#[case::link_dropped(|p: &mut Plan| p.chunks_mut()[1].overwrites = None, "'b' must overwrite 'a', but does not")]
#[case::link_invented(|p: &mut Plan| p.chunks_mut()[2].overwrites = Some(PlannedLink::new(1, 2)), "'c' overwrites 'b' without a request")]
#[case::link_too_large(|p: &mut Plan| p.chunks_mut()[1].overwrites = Some(PlannedLink::new(2, 0)), "'b' overwrites 'c' but reaches beyond its end")]
#[case::link_out_of_time(|p: &mut Plan| p.chunks_mut()[2].overwrites = Some(PlannedLink::new(0, 0)),
    "'c' begins in step 2 and overwrites 'a', whose last step is 1")]
#[case::two_overwriters(|p: &mut Plan| p.chunks_mut()[2].overwrites = Some(PlannedLink::new(0, 0)), "'a' is overwritten by both 'b' and 'c'")]
#[case::cycle(|p: &mut Plan| p.chunks_mut()[0].overwrites = Some(PlannedLink::new(1, 0)), "'a' overwrites itself through other chunks")]
fn a_wrong_plan_of_a_problem_is_refused(#[case] spoil: Spoil, #[case] message: &str) {
    let problem = problem();
    let mut plan = Planner::new().plan(&problem).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    assert_eq!((plan.pool_size(), plan.chunks()[2].offset), (20, 16));
    spoil(&mut plan);
    let violations: Vec<String> = verify(&problem, &plan).iter().map(ToString::to_string).collect();
    assert!(violations.iter().any(|violation| violation == message), "{violations:#?}");
}

/// x supplied, 8; conv: y, 16, workspace 4; view: v, 8 of y at 8; relu: z, 8 over v; late: u, 8.
fn sequence() -> OpSequence {
    let mut sequence = OpSequence::builder();
    declare(&mut sequence);
    sequence.build().unwrap()
}

fn declare(sequence: &mut SequenceBuilder) {
    sequence
        .input("x", 8)
        .weight("w", Some(8))
        .operator(Operator::new("conv").inputs(["x"]).output(Output::new("y", 16)).workspace(4))
        .operator(Operator::new("view").inputs(["y"]).output(Output::new("v", 8).reads_at("y", 8)))
        .operator(Operator::new("relu").inputs(["v"]).output(Output::new("z", 8).overwrites("v")))
        .operator(Operator::new("late").inputs(["z"]).output(Output::new("u", 8)))
        .operator(
            Operator::new("update").inputs(["w"]).output(Output::new("w2", 4).updates("w", 4)),
        )
        .output("u");
}

fn tensor<'a>(plan: &'a mut Plan, name: &str) -> &'a mut PlannedTensor {
    plan.tensors_mut().iter_mut().find(|tensor| &*tensor.name == name).unwrap()
}

fn move_to(plan: &mut Plan, name: &str, to: u64) {
    match &mut tensor(plan, name).place {
        TensorPlace::Pool { offset, .. } | TensorPlace::Supplied { offset, .. } => *offset = to,
        _ => {}
    }
}

#[rstest]
#[case::overlap(|p: &mut Plan| move_to(p, "u", 12), "'z' and 'u' are both alive in step 3 and share the bytes [12, 20)")]
#[case::view_elsewhere(|p: &mut Plan| move_to(p, "v", 4), "'y' and 'v' are both alive in step 1 and share the bytes [4, 12)")]
#[case::outside_its_chunk(|p: &mut Plan| move_to(p, "v", 13), "tensor 'v' is not inside chunk 'y'")]
#[case::missing(|p: &mut Plan| p.tensors_mut().retain(|t| &*t.name != "z"), "'z' is missing from the plan")]
#[case::nowhere(|p: &mut Plan| tensor(p, "z").place = TensorPlace::Nowhere, "'z' is missing from the plan")]
#[case::unknown(|p: &mut Plan| tensor(p, "v").name = "other".into(), "'other' is in the plan, but not in the input")]
#[case::repeated(|p: &mut Plan| { let y = p.tensors()[0].clone(); p.tensors_mut().push(y); }, "'y' is in the plan twice")]
#[case::size(|p: &mut Plan| tensor(p, "v").size = 4, "the size of 'v' is 8, but the plan says 4")]
#[case::workspace(|p: &mut Plan| p.chunks_mut()[1].name = "scratch".into(), "'conv.workspace' is missing from the plan")]
#[case::over_workspace(|p: &mut Plan| move_to(p, "y", 2),
    "'conv.workspace' and 'y' are both alive in step 0 and share the bytes [2, 4)")]
#[case::update_elsewhere(|p: &mut Plan| move_to(p, "w2", 0), "'w2' must overwrite 'w', but does not")]
#[case::steps(|p: &mut Plan| *p.steps_mut() = 6, "the number of steps is 5, but the plan says 6")]
#[case::peak(|p: &mut Plan| *p.peak_step_mut() = 1, "the first step with the most bytes alive is 0, but the plan says 1")]
#[case::naive_size(|p: &mut Plan| *p.naive_size_mut() += 1, "the size of one buffer per chunk is 36, but the plan says 37")]
#[case::low_bound(|p: &mut Plan| *p.lower_bound_mut() = 1,
    "the lower bound, the most bytes alive at once, is 20, but the plan says 1")]
#[case::not_supplied(|p: &mut Plan| tensor(p, "u").place = TensorPlace::Supplied { tensor: "x".into(), offset: 0 },
    "tensor 'u' may not lie at 0 in 'x'")]
#[case::unknown_supplied(|p: &mut Plan| tensor(p, "u").place = TensorPlace::Supplied { tensor: "q".into(), offset: 0 },
    "'q' is in the plan, but not in the input")]
fn a_wrong_plan_of_a_sequence_is_refused(#[case] spoil: Spoil, #[case] message: &str) {
    let sequence = sequence();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    spoil(&mut plan);
    let violations: Vec<String> =
        verify(&sequence, &plan).iter().map(ToString::to_string).collect();
    assert!(violations.iter().any(|violation| violation == message), "{violations:#?}");
}

/// The plan says that an operator writes over its input, which a later one still reads.
#[test]
fn writing_over_a_tensor_that_is_still_read_is_found_from_the_operators() {
    let mut reading_late = OpSequence::builder();
    declare(&mut reading_late);
    reading_late.operator(Operator::new("spoiler").inputs(["v"]).output(Output::new("t", 1)));
    let reading_late = reading_late.build().unwrap();
    let plan = Planner::new().plan(&sequence()).unwrap();
    let violations = verify(&reading_late, &plan);
    let expected = "'y' and 'z' are both alive in step 3 and share the bytes [12, 20)";
    assert!(violations.iter().any(|v| v.to_string() == expected), "{violations:#?}");
}

fn told(sequence: &OpSequence, plan: &Plan, message: &str) {
    let violations = verify(sequence, plan);
    assert!(violations.iter().any(|v| v.to_string() == message), "{violations:#?}");
}

/// What is supplied needs its bytes for a step.
#[test]
fn a_sequence_without_operators_has_a_step_if_its_input_lies_in_the_pool() {
    let mut sequence = OpSequence::builder();
    sequence.input("x", 8);
    let sequence = sequence.build().unwrap();
    for (inputs, steps) in [(true, 1), (false, 0)] {
        let lowering = LoweringOptions::default().inputs_in_pool(inputs);
        let mut plan = Planner::new().lowering(lowering).plan(&sequence).unwrap();
        assert_eq!((plan.steps(), verify(&sequence, &plan)), (steps, Vec::new()));
        *plan.steps_mut() = 2;
        told(&sequence, &plan, &format!("the number of steps is {steps}, but the plan says 2"));
    }
}

#[test]
fn an_unread_tensor_has_its_bytes_for_one_step() {
    let mut sequence = OpSequence::builder();
    let operator = Operator::new("a").output(Output::new("x", 8)).output(Output::new("y", 8));
    sequence.operator(operator);
    let sequence = sequence.build().unwrap();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    move_to(&mut plan, "x", 0);
    move_to(&mut plan, "y", 7);
    told(&sequence, &plan, "'x' and 'y' are both alive in step 0 and share the bytes [7, 8)");
}

#[test]
fn a_graph_output_must_last() {
    let mut sequence = OpSequence::builder();
    sequence
        .operator(Operator::new("a").output(Output::new("x", 8)))
        .operator(Operator::new("b").output(Output::new("y", 8)))
        .operator(Operator::new("c").output(Output::new("z", 8)))
        .output("x");
    let sequence = sequence.build().unwrap();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    move_to(&mut plan, "x", 0);
    move_to(&mut plan, "z", 4);
    told(&sequence, &plan, "'x' and 'z' are both alive in step 2 and share the bytes [4, 8)");
}

/// An overwriter shares bytes only inside the tensor that it overwrites. Here that is a view, so
/// the rest of its chunk is available too, unless the view is a chunk of its own.
#[test]
fn an_overwriter_that_reaches_beyond_shares_nothing() {
    let build = |size: u64| {
        let mut sequence = OpSequence::builder();
        sequence
            .operator(Operator::new("a").output(Output::new("x", 8)))
            .operator(Operator::new("v").inputs(["x"]).output(Output::new("w", 4).reads("x")))
            .operator(
                Operator::new("b").inputs(["w"]).output(Output::new("y", size).overwrites("w")),
            );
        sequence.build().unwrap()
    };
    let apart = LoweringOptions::default().views(false);
    let plan = Planner::new().lowering(apart).plan(&build(4)).unwrap();
    assert_eq!((plan.offset("y"), verify(&build(4), &plan)), (Some(8), vec![]));
    told(&build(8), &plan, "'w' and 'y' are both alive in step 2 and share the bytes [8, 12)");
}

/// The chunk may lie in the right place and the tensor in it in the wrong one.
#[test]
fn a_tensor_that_overwrites_nothing_is_aligned_wherever_its_chunk_lies() {
    let sequence = sequence();
    let mut plan = Planner::new().alignment(4).plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    tensor(&mut plan, "u").place = TensorPlace::Pool { chunk: 0, offset: 5 };
    told(&sequence, &plan, "'u' lies at 5, which is not a multiple of the alignment 4");
}

/// No planner makes such a plan, but one may be written by hand.
#[test]
fn an_update_without_bytes_need_not_overwrite_anything() {
    let build = |output: Output| {
        let mut sequence = OpSequence::builder();
        sequence
            .operator(Operator::new("a").output(Output::new("x", 8)))
            .operator(Operator::new("b").inputs(["x"]).output(output));
        sequence.build().unwrap()
    };
    let plan = Planner::new().plan(&build(Output::new("y", 0))).unwrap();
    let updating = build(Output::new("y", 0).updates("x", 0));
    assert_eq!(verify(&updating, &plan), []);
    assert_eq!(execute(&updating, &plan), []);
}

/// Of several requests for the same place, a plan may accept another one than the problem does; its
/// figures then follow from that.
#[test]
fn a_plan_may_honour_other_requests() {
    let mut problem = Problem::builder();
    let a = problem.named_chunk("a", 0..3, 8);
    let b = problem.named_chunk("b", 2..4, 8);
    let c = problem.named_chunk("c", 2..5, 6);
    problem.named_chunk("d", 4..5, 8);
    problem.overwrite(b, a, 0).overwrite(c, a, 0);
    let problem = problem.build().unwrap();
    let mut plan = Planner::new().plan(&problem).unwrap();
    assert_eq!((plan.lower_bound(), plan.peak_step()), (14, 2));
    plan.chunks_mut()[1].overwrites = None;
    plan.chunks_mut()[2].overwrites = Some(PlannedLink::new(0, 0));
    for (chunk, offset) in plan.chunks_mut().iter_mut().zip([0, 8, 0, 8]) {
        chunk.offset = offset;
    }
    (*plan.pool_size_mut(), *plan.lower_bound_mut(), *plan.proven_optimal_mut()) = (16, 16, true);
    assert_eq!(verify(&problem, &plan), []);
}

#[test]
fn a_plan_for_more_alignment_and_padding_is_one_for_less() {
    let asked = |alignment, padding| {
        problem().with_alignment(alignment).unwrap().with_padding(padding).unwrap()
    };
    let plan = Planner::new().alignment(8).padding(4).plan(&problem()).unwrap();
    for right in [asked(1, 0), asked(8, 4), asked(2, 3)] {
        assert_eq!(verify(&right, &plan), []);
    }
    let violations = verify(&asked(16, 5), &plan);
    let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "the required alignment is 16, but the plan says 8",
            "the required padding is 5, but the plan says 4"
        ]
    );
}

#[test]
fn a_chunk_without_bytes_may_lie_anywhere() {
    let mut problem = Problem::builder();
    problem.chunk(0..4, 8);
    problem.chunk(1..3, 0);
    let problem = problem.build().unwrap();
    let mut plan = Planner::new().plan(&problem).unwrap();
    for offset in [0, 3, 8, 99] {
        plan.chunks_mut()[1].offset = offset;
        assert_eq!(verify(&problem, &plan), []);
    }
}

#[test]
fn overlaps_without_end_are_cut_short() {
    let mut problem = Problem::builder();
    for _ in 0..1000 {
        problem.chunk(0..1, 1);
    }
    let problem = problem.build().unwrap();
    let mut plan = Planner::new().plan(&problem).unwrap();
    plan.chunks_mut().iter_mut().for_each(|chunk| chunk.offset = 0);
    let violations = verify(&problem, &plan);
    assert_eq!(
        violations.last().unwrap().to_string(),
        "more than 10000 overlaps; the others are not listed"
    );
}

/// A chain of ten operators, each of which reads the output before, planned without any sharing, in
/// a table that says that all outputs live from the first step to the last.
#[test]
fn a_table_that_forges_lifetimes_does_not_raise_the_bound() {
    let mut sequence = OpSequence::builder();
    for at in 0..10 {
        let inputs = (at > 0).then(|| format!("t{}", at - 1));
        let output = Output::new(format!("t{at}"), 1_000);
        sequence.operator(Operator::new(format!("o{at}")).inputs(inputs).output(output));
    }
    let sequence = sequence.output("t9").build().unwrap();
    let mut plan = Planner::new().strategy(Strategy::Naive).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.lower_bound()), (10_000, 2_000));
    assert_eq!(verify(&sequence, &plan), []);
    // A bound alone is a claim that a search may have proven.
    (*plan.lower_bound_mut(), *plan.proven_optimal_mut()) = (10_000, true);
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(Verifier::new().bytes_alive(&sequence, &plan).unwrap(), 2_000);
    for chunk in plan.chunks_mut() {
        (chunk.begin, chunk.end) = (0, 10);
    }
    *plan.peak_step_mut() = 0;
    told(&sequence, &plan, "the begin of 't1' is 1, but the plan says 0");
    told(&sequence, &plan, "the end of 't0' is 2, but the plan says 10");
    told(&sequence, &plan, "the first step with the most bytes alive is 1, but the plan says 0");
}

/// Spoils a plan of `objects`, in which the naive strategy gives every chunk an object.
#[rstest]
#[case::none(|p: &mut Plan| p.chunks_mut()[0].object = None, "'y' is not in the shared object that it should be in")]
#[case::unknown(|p: &mut Plan| p.chunks_mut()[0].object = Some(9), "'y' is not in the shared object that it should be in")]
#[case::another(|p: &mut Plan| p.chunks_mut()[0].object = Some(1), "'y' is not in the shared object that it should be in")]
#[case::size(|p: &mut Plan| p.objects_mut()[0] += 1, "shared object 0 needs 16 B, but the plan says 17")]
#[case::more(|p: &mut Plan| p.objects_mut().push(4), "shared object 3 needs 0 B, but the plan says 4")]
#[case::not_listed(|p: &mut Plan| p.objects_mut().clear(), "'y' is not in the shared object that it should be in")]
fn wrong_shared_objects_are_found(#[case] spoil: Spoil, #[case] message: &str) {
    let sequence = sequence();
    let naive = Planner::new().strategy(Strategy::Naive);
    let mut plan = naive.plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(plan.objects().len(), 3);
    spoil(&mut plan);
    told(&sequence, &plan, message);
}

/// x 48; v1 and v2 are the bytes [0, 32) and [16, 48) of it; add reads both and writes y, 32 bytes.
fn aliased(y: Output) -> OpSequence {
    let mut sequence = OpSequence::builder();
    let split = Operator::new("split").inputs(["x"]);
    let split = split.output(Output::new("v1", 32).reads("x"));
    sequence
        .operator(Operator::new("p").output(Output::new("x", 48)))
        .operator(split.output(Output::new("v2", 32).reads_at("x", 16)))
        .operator(Operator::new("add").inputs(["v1", "v2"]).output(y))
        .output("y");
    sequence.build().unwrap()
}

/// A regression test: both checkers accepted such a plan, and random sequences rarely read two
/// views of one tensor.
#[test]
fn writing_over_an_input_destroys_no_other_input() {
    let sequence = aliased(Output::new("y", 32).overwrites("v2"));
    let mut plan = Planner::new().plan(&sequence).unwrap();
    let offset = plan.offset("v2").unwrap();
    let y = plan.chunks().iter().position(|chunk| &*chunk.name == "y").unwrap();
    assert_eq!(plan.chunks()[y].overwrites, None);
    plan.chunks_mut()[y].offset = offset;
    plan.chunks_mut()[y].overwrites = Some(PlannedLink::new(0, 16));
    move_to(&mut plan, "y", offset);
    (*plan.pool_size_mut(), *plan.lower_bound_mut(), *plan.peak_step_mut()) = (48, 48, 0);
    let violations = verify(&sequence, &plan);
    assert_eq!(
        violations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["'y' is written over 'v2', but 'v1' of the same operator shares the bytes [16, 32)"]
    );
    let executed = execute(&sequence, &plan);
    assert_eq!(
        executed.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["step 2 ('add') writes 'y' over its input 'v1', bytes [16, 32), and may not"]
    );
}

/// An operator outputs a view of its input and writes over that input as well: even if the view is
/// never read, it must be whole when the operator ends. Execution once did not check it.
#[test]
fn writing_over_an_input_destroys_no_view_that_the_operator_outputs() {
    let build = |z: Output| {
        let mut sequence = OpSequence::builder();
        let both = Operator::new("both").inputs(["x"]).output(Output::new("v", 4).reads_at("x", 2));
        sequence.operator(Operator::new("a").output(Output::new("x", 8))).operator(both.output(z));
        sequence.build().unwrap()
    };
    // The output may lie beside the view.
    let beside = build(Output::new("z", 2).overwrites_at("x", 6));
    let mut plan = Planner::new().plan(&beside).unwrap();
    assert_eq!(plan.offset("z"), plan.offset("x").map(|offset| offset + 6));
    assert_eq!(verify(&beside, &plan), []);
    assert_eq!(execute(&beside, &plan), []);
    let over = build(Output::new("z", 2).overwrites_at("x", 5));
    plan.chunks_mut()[1].overwrites = Some(PlannedLink::new(0, 5));
    let offset = plan.chunks()[0].offset + 5;
    plan.chunks_mut()[1].offset = offset;
    move_to(&mut plan, "z", offset);
    let violations = verify(&over, &plan);
    assert_eq!(
        violations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["'z' is written over 'x', but 'v' of the same operator shares the bytes [5, 6)"]
    );
    assert_eq!(
        execute(&over, &plan)[0].to_string(),
        "'v' is not whole when step 1 ('both') ends: the bytes [5, 6) of the pool hold 'z'"
    );
}

/// A weight that is missing from the list of tensors seems to lie outside, but its chunk remains.
#[test]
fn a_chunk_that_nothing_is_written_into_is_found() {
    let mut sequence = OpSequence::builder();
    sequence.weight("w", Some(8)).operator(Operator::new("a").output(Output::new("x", 8)));
    let sequence = sequence.build().unwrap();
    let options = LoweringOptions::default().weights_in_pool(true);
    let mut plan = Planner::new().lowering(options).plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    plan.tensors_mut().retain(|tensor| &*tensor.name != "w");
    let message = "no operator writes to chunk 'w', and it holds no supplied tensor";
    told(&sequence, &plan, message);
}

/// A plan that leaves supplied tensors outside is right for the sequence, but not for a caller who
/// requires them in the pool.
#[rstest]
#[case::outside(LoweringOptions::default(), &[])]
#[case::inputs(LoweringOptions::default().inputs_in_pool(true),
    &["'x' must lie in the pool, but the plan leaves it outside"])]
#[case::both(LoweringOptions::default().inputs_in_pool(true).weights_in_pool(true),
    &["'x' must lie in the pool, but the plan leaves it outside",
      "'w' must lie in the pool, but the plan leaves it outside"])]
fn supplied_tensors_lie_in_the_pool_if_that_is_required(
    #[case] asked: LoweringOptions,
    #[case] expected: &[&str],
) {
    let mut sequence = OpSequence::builder();
    sequence
        .input("x", 64)
        .input("nothing", 0)
        .weight("w", Some(64))
        .operator(Operator::new("o").inputs(["x", "w"]).output(Output::new("y", 8)));
    let sequence = sequence.build().unwrap();
    let outside = Planner::new().plan(&sequence).unwrap();
    let verifier = Verifier::new().lowering(asked);
    let messages = |plan| {
        let found = verifier.verify(&sequence, plan).unwrap();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(messages(&outside), expected);
    let inside = Planner::new().lowering(asked).plan(&sequence).unwrap();
    assert_eq!(messages(&inside), Vec::<String>::new());
}

#[test]
fn every_strategy_is_right_on_random_problems() {
    times(10, |random| {
        let wild = Wild { chunks: 40, steps: 30, size: 100, alignment: true };
        let problem = random_problem(random, wild)?;
        for &strategy in Strategy::ALL {
            let plan = Planner::new().strategy(strategy).plan(&problem).unwrap();
            assert_eq!(verify(&problem, &plan), [], "{strategy}: {problem:#?}");
        }
        Ok(())
    });
}

#[test]
fn links_of_chunks_only_in_the_plan_do_not_panic() {
    let problem = problem();
    let mut plan = Planner::new().plan(&problem).unwrap();
    plan.chunks_mut()[0].id = 77;
    assert!(!verify(&problem, &plan).is_empty());
    assert_eq!(problem.chunk(ChunkId(0)).size, 20);
}

/// A plan must neither move supplied tensors into each other's memory nor lose them.
#[rstest]
#[case::elsewhere(TensorPlace::Supplied { tensor: "x".into(), offset: 0 }, "tensor 'w' may not lie at 0 in 'x'")]
#[case::nowhere(TensorPlace::Nowhere, "'w' is missing from the plan")]
fn a_supplied_tensor_outside_the_pool_lies_where_it_is(
    #[case] place: TensorPlace,
    #[case] message: &str,
) {
    let sequence = sequence();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    let mut supplied = plan.tensors()[0].clone();
    (supplied.name, supplied.size, supplied.place) = ("w".into(), 8, place);
    plan.tensors_mut().push(supplied);
    let violations = verify(&sequence, &plan);
    assert!(violations.iter().any(|v| v.to_string() == message), "{violations:#?}");
}

/// An update of a view of a variable is one of the variable, whose old state may then go.
#[test]
fn a_variable_may_be_updated_through_a_view() {
    let mut sequence = OpSequence::builder();
    sequence
        .weight("w", Some(8))
        .operator(Operator::new("flat").inputs(["w"]).output(Output::new("v", 8).reads("w")))
        .operator(Operator::new("step").inputs(["v"]).output(Output::new("w2", 8).updates("v", 0)))
        .operator(Operator::new("late").inputs(["w2"]).output(Output::new("z", 8)))
        .output("z");
    let sequence = sequence.build().unwrap();
    let options = LoweringOptions::default().weights_in_pool(true);
    let plan = Planner::new().lowering(options).plan(&sequence).unwrap();
    assert_eq!(plan.offset("w2"), plan.offset("w"));
    assert_eq!(verify(&sequence, &plan), []);
}

/// A hand-written plan may refer to chunks that it does not have.
#[rstest]
#[case::tensor(|p: &mut Plan| tensor(p, "z").place = TensorPlace::Pool { chunk: 99, offset: 0 }, "z")]
#[case::link(|p: &mut Plan| p.chunks_mut()[0].overwrites = Some(PlannedLink::new(99, 0)), "y")]
#[case::behind_the_last(|p: &mut Plan| p.chunks_mut()[0].overwrites = Some(PlannedLink::new(p.chunks().len(), 0)), "y")]
fn a_plan_that_refers_to_missing_chunks_does_not_panic(#[case] spoil: Spoil, #[case] user: &str) {
    let sequence = sequence();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    spoil(&mut plan);
    let message = format!("'{user}' refers to a chunk that the plan does not list");
    assert_eq!(verify(&sequence, &plan)[0].to_string(), message);
    assert_eq!(verify(&problem(), &plan)[0].to_string(), message);
    assert_eq!(execute(&sequence, &plan)[0].to_string(), message);
    // The chunks that it lists are still checked.
    *plan.pool_size_mut() += 1;
    assert!(verify(&sequence, &plan).iter().any(|v| matches!(v, Violation::WrongTotal { .. })));
}

/// A chunk without bytes writes none, whenever it says to be written.
#[test]
fn a_chunk_without_bytes_destroys_nothing() {
    let mut problem = Problem::builder();
    let old = problem.chunk(2..7, 1);
    let empty = problem.chunk(0..1, 0);
    let problem = problem.overwrite(empty, old, 0).build().unwrap();
    let mut plan = Planner::new().plan(&problem).unwrap();
    plan.chunks_mut()[1].overwrites = Some(PlannedLink::new(0, 0));
    assert_eq!(verify(&problem, &plan), []);
}
