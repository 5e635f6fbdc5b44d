//! Outputs that begin below their inputs: links, files, checks.

use memplan::{
    OpSequence, Operator, Output, Plan, PlannedLink, Planner, Problem, TensorPlace,
    lower::{LoweringOptions, lower},
    problem::{Pool, RejectReason, Request},
    verify::{Violation, execute, verify},
};
use rstest::rstest;

/// A blur of 96 bytes whose output begins `below` bytes below its input.
fn blur(below: u64) -> OpSequence {
    OpSequence::builder()
        .operator(Operator::new("load").output(Output::new("x", 96)))
        .operator(
            Operator::new("blur").inputs(["x"]).output(Output::new("y", 96).overlaps("x", below)),
        )
        .output("y")
        .build()
        .unwrap()
}

#[test]
fn an_output_overlaps_its_input() {
    let sequence = blur(32);
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.lower_bound(), plan.proven_optimal()), (128, 128, true));
    assert_eq!((plan.offset("y"), plan.offset("x")), (Some(0), Some(32)));
    assert_eq!(plan.chunks()[1].overwrites, Some(PlannedLink::overlap(0, 32)));
    assert_eq!(plan.peak_step(), 1);
    // Without a distance, it lies inside.
    assert_eq!(Planner::new().plan(&blur(0)).unwrap().pool_size(), 96);
}

/// Both overlaps are needed, and what lies between them could be written in place; but all four tied together
/// take more than each of the two largest steps.
#[test]
fn tensors_are_untied_where_there_is_room() {
    let over = |output: Output, input: &str, below: u64| match below {
        0 => output.overwrites(input),
        below => output.overlaps(input, below),
    };
    let mut sequence = OpSequence::builder();
    sequence.operator(Operator::new("load").output(Output::new("a", 768)));
    for (input, output, size, below) in
        [("a", "b", 512, 5), ("b", "c", 512, 0), ("c", "d", 1024, 513)]
    {
        let made = over(Output::new(output, size), input, below);
        sequence.operator(Operator::new(output).inputs([input]).output(made));
    }
    let sequence = sequence.output("d").build().unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.lower_bound()), (1025, 1025));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    let links: Vec<bool> = plan.chunks().iter().map(|chunk| chunk.overwrites.is_some()).collect();
    assert_eq!(links, [false, true, false, true]);
}

/// The first output may lie over a small input or a large one, which only then the second one cannot have. Another
/// step needs more than all of them without overlaps.
#[test]
fn no_other_overlap_takes_the_place_of_one_that_saves_nothing() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("most").workspace(120))
        .operator(Operator::new("p").output(Output::new("a", 40)).output(Output::new("b", 4)))
        .operator(
            Operator::new("v")
                .inputs(["a", "b"])
                .output(Output::new("c", 40).overlaps("b", 36).overlaps("a", 36))
                .output(Output::new("d", 40).overwrites("a")),
        )
        .operator(Operator::new("last").inputs(["c", "d"]))
        .build()
        .unwrap();
    let lowered = lower(&sequence, LoweringOptions::default()).unwrap();
    let reason = RejectReason::SavesNothing;
    assert!(lowered.refused().any(|(.., refused)| refused == reason));
    let plan = Planner::new().plan(&sequence).unwrap();
    let over: Vec<_> = plan.chunks().iter().filter(|chunk| chunk.overwrites.is_some()).collect();
    assert_eq!((plan.pool_size(), over.len(), &*over[0].name), (120, 1, "d"));
}

/// Four small tensors fill a cell each, so that the step with the overlap needs the most.
#[rstest]
#[case::bytes(1, 1, 64, false)]
#[case::cells(16, 1, 112, true)]
#[case::bytes_on_streams(1, 2, 64, false)]
#[case::cells_on_streams(16, 2, 112, true)]
fn the_bytes_that_an_overlap_saves_are_counted_in_cells(
    #[case] alignment: u64,
    #[case] streams: usize,
    #[case] pool: u64,
    #[case] is_taken: bool,
) {
    let small = ["a", "b", "c", "d"];
    let load = Operator::new("load").output(Output::new("x", 30));
    let load = small.iter().fold(load, |load, name| load.output(Output::new(*name, 1)));
    let sequence = OpSequence::builder()
        .operator(Operator::new("most").workspace(64))
        .operator(load)
        .operator(
            Operator::new("blur").inputs(["x"]).output(Output::new("y", 30).overlaps("x", 16)),
        )
        .operator(Operator::new("last").inputs(["y", "a", "b", "c", "d"]))
        .operator(Operator::new("other").on_stream(streams - 1))
        .build()
        .unwrap();
    let plan = Planner::new().alignment(alignment).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.lower_bound()), (pool, pool));
    assert_eq!(plan.chunks().iter().any(|chunk| chunk.overwrites.is_some()), is_taken);
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

/// Moves the output up by some bytes, and adjusts the plan's figures.
fn nearer(plan: &Plan, bytes: u64) -> Plan {
    let mut plan = plan.clone();
    plan.chunks_mut()[1].offset += bytes;
    plan.chunks_mut()[1].overwrites = Some(PlannedLink::overlap(0, 32 - bytes));
    for tensor in plan.tensors_mut().iter_mut().filter(|tensor| &*tensor.name == "y") {
        if let TensorPlace::Pool { offset, .. } = &mut tensor.place {
            *offset += bytes;
        }
    }
    plan
}

#[rstest]
#[case::a_byte(1)]
#[case::half(16)]
#[case::all_but_a_byte(31)]
fn a_smaller_distance_is_wrong(#[case] bytes: u64) {
    let sequence = blur(32);
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    let near = nearer(&plan, bytes);
    assert!(!verify(&sequence, &near).is_empty());
    let found = execute(&sequence, &near);
    assert!(matches!(found[..], [Violation::WrittenOverInput { .. }]), "{found:?}");

    let problem = lower(&sequence, LoweringOptions::default()).unwrap().problem;
    let plan = Planner::new().plan(&problem).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    let found = verify(&problem, &nearer(&plan, bytes));
    let is_unknown = |one: &Violation| matches!(one, Violation::OverwriteNotRequested { .. });
    assert!(found.iter().any(is_unknown), "{found:?}");
}

/// A larger distance loses no bytes, though a plan keeps to the one that is declared.
#[test]
fn a_larger_distance_runs() {
    let plan = Planner::new().plan(&blur(48)).unwrap();
    assert_eq!(execute(&blur(32), &plan), []);
    assert!(!verify(&blur(32), &plan).is_empty());
}

/// The refusal of an output over `x`, of 16 bytes.
fn refusal(
    operators: impl IntoIterator<Item = Operator>,
    outputs: &[&str],
) -> Option<RejectReason> {
    let mut sequence = OpSequence::builder();
    sequence.operator(Operator::new("load").output(Output::new("x", 16)));
    for operator in operators {
        sequence.operator(operator);
    }
    for output in outputs {
        sequence.output(*output);
    }
    let sequence = sequence.build().unwrap();
    let lowered = lower(&sequence, LoweringOptions::default()).unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    lowered.refused().next().map(|(.., reason)| reason)
}

fn over(size: u64, below: u64) -> Operator {
    Operator::new("conv").inputs(["x"]).output(Output::new("y", size).overlaps("x", below))
}

fn reads(name: &str) -> Operator {
    Operator::new("later").inputs([name, "y"]).output(Output::new("z", 4))
}

#[rstest]
#[case::inside(over(16, 4), &[], None)]
#[case::out_above(over(64, 4), &[], None)]
#[case::all_below(over(16, 16), &[], Some(RejectReason::NothingShared))]
#[case::kept(over(16, 4), &["x"], Some(RejectReason::KeptToTheEnd))]
fn outputs_are_refused_where_inputs_are_needed(
    #[case] operator: Operator,
    #[case] outputs: &[&str],
    #[case] expected: Option<RejectReason>,
) {
    let found = refusal([operator, Operator::new("use").inputs(["y"])], outputs);
    assert_eq!(found, expected);
}

#[test]
fn a_later_reader_and_another_operand_prevent_an_overlap() {
    let late = refusal([over(16, 4), reads("x")], &["z"]);
    assert_eq!(late, Some(RejectReason::NotLastReader));
    // The operator reads the bytes through a view as well, in an unknown order.
    let view = Operator::new("reshape").inputs(["x"]).output(Output::new("v", 16).reads("x"));
    let both = Operator::new("conv").inputs(["x", "v"]);
    let both = both.output(Output::new("y", 16).overlaps("x", 4));
    let aliased = refusal([view, both], &["y"]);
    assert!(matches!(aliased, Some(RejectReason::Alias)), "{aliased:?}");
}

/// Over the second half of `x`, which is a view: what is dead below it is free at once.
#[rstest]
#[case::inside(8, 4, None)]
#[case::below_the_chunk(24, 12, None)]
#[case::out_above(24, 4, Some(RejectReason::DoesNotFit))]
fn a_view_adds_its_offset(
    #[case] size: u64,
    #[case] below: u64,
    #[case] expected: Option<RejectReason>,
) {
    let view = Operator::new("slice").inputs(["x"]).output(Output::new("v", 8).reads_at("x", 8));
    let conv = Operator::new("conv").inputs(["v"]);
    let conv = conv.output(Output::new("y", size).overlaps("v", below));
    assert_eq!(refusal([view, conv], &["y"]), expected);
}

#[test]
fn files_state_distances_only_where_they_are_used() {
    let sequence = blur(32);
    let text = serde_json::to_string(&sequence).unwrap();
    assert!(text.contains(r#""overwrites":{"input":"x","offset":0,"below":32,"#), "{text}");
    assert_eq!(serde_json::from_str::<OpSequence>(&text).unwrap(), sequence);
    assert!(!serde_json::to_string(&blur(0)).unwrap().contains("below"));

    let problem = lower(&sequence, LoweringOptions::default()).unwrap().problem;
    let text = serde_json::to_string(&problem).unwrap();
    assert!(text.contains("memplan-problem/2") && text.contains(r#""below":32"#), "{text}");
    assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
    let plain = text.replace("memplan-problem/2", "memplan-problem/1");
    let error = serde_json::from_str::<Problem>(&plain).unwrap_err().to_string();
    assert!(error.contains("'below'"), "{error}");

    let plan = Planner::new().plan(&sequence).unwrap();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    let plan = Planner::new().plan(&problem).unwrap();
    let offsets: Vec<u64> = plan.chunks().iter().map(|chunk| chunk.offset).collect();
    assert_eq!(Plan::from_offsets(&problem, &offsets).unwrap().chunks(), plan.chunks());
}

#[rstest]
#[case::one_stream(1)]
#[case::two_streams(2)]
fn an_overlap_has_no_offset(#[case] streams: u64) {
    let [begin, middle, end] =
        if streams == 1 { ["0", "1", "2"] } else { ["[0, 0]", "[1, 0]", "[2, 0]"] };
    let text = format!(
        r#"{{"format": "memplan-problem/2", "streams": {streams}, "chunks": [
            {{"id": 0, "begin": {begin}, "end": {end}, "size": 16}},
            {{"id": 1, "begin": {middle}, "end": {end}, "size": 16}}],
            "overwrites": [{{"chunk": 1, "overwritten": 0, "offset": 4, "below": 4}}]}}"#
    );
    let error = serde_json::from_str::<Problem>(&text).unwrap_err().to_string();
    assert!(error.contains("'offset' or 'below'"), "{error}");
}

#[test]
fn an_update_cannot_begin_below_its_variable() {
    let text = serde_json::to_string(&blur(32)).unwrap();
    let text = text.replace(r#""required":false"#, r#""required":true"#);
    let error = serde_json::from_str::<OpSequence>(&text).unwrap_err().to_string();
    assert!(error.contains("begins below 'x'"), "{error}");
}

/// The overwriter goes where its body fits: not below a capacity that is too small for both.
#[test]
fn a_body_that_fits_nowhere_is_not_made() {
    let mut problem = Problem::builder();
    problem.pool(Pool::new("small").capacity(24));
    let input = problem.chunk(0..2, 12);
    let output = problem.chunk(1..3, 24);
    problem.request(Request::overlap(output, input, 14));
    let problem = problem.build().unwrap();
    assert_eq!(problem.refused().first().map(|dropped| dropped.1), Some(RejectReason::TooLarge));
}

/// Other overlaps may lead to a smaller pool, so only the bytes that all of them need refute a capacity.
#[test]
fn a_capacity_is_refuted_for_all_overlaps() {
    let sequence = blur(32);
    let best = Planner::new().plan(&sequence).unwrap().pool_size();
    let fit = |capacity| Planner::new().fit(&sequence, capacity).unwrap();
    assert_eq!(fit(best).pool_size(), best);
    assert_eq!(fit(best - 1).fits(best - 1), Some(false));
}

/// An output may lie where it could overlap its input, in bytes that nobody needs any more, without a link.
#[test]
fn bytes_that_are_over_need_no_link() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("load").output(Output::new("x", 12)))
        .operator(Operator::new("slice").inputs(["x"]).output(Output::new("v", 3).reads_at("x", 4)))
        .operator(Operator::new("make").inputs(["v"]).output(Output::new("y", 2).overlaps("v", 4)))
        .output("y")
        .build()
        .unwrap();
    let lowering = LoweringOptions::default().overlap_limit(Some(0));
    let plan = Planner::new().lowering(lowering).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.offset("y"), plan.offset("v")), (12, Some(0), Some(4)));
    assert!(plan.chunks().iter().all(|chunk| chunk.overwrites.is_none()));
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(execute(&sequence, &plan), []);
}
