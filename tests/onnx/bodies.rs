//! Operators that run sequences of their own, such as loops and conditions: each body is planned
//! with the options of the caller, its pool lies in the workspace of the operator, and the checkers
//! check it.

use crate::{
    common::{
        properties::{all_options, is_impossible},
        random::random_sequence,
        seeds::times,
    },
    onnx_text,
    onnx_text::with_body,
};
use memplan::{
    OpSequence, Operator, Output, Plan, Planner, SequenceError, Strategy, TensorPlace,
    import::{Format, ImportOptions, InPlace, onnx, read_input, read_json_plan},
    lower::{LoweringOptions, lower},
    order::default_limits,
    report::{write_plan_json, write_sequence_json},
    sequence::{Dependency, Origin},
    verify::{execute, verify},
};
use rstest::rstest;

/// `next` is written over `t`, and becomes the `state` of the next iteration.
fn body() -> OpSequence {
    OpSequence::builder()
        .input("i", 8)
        .input("state", 100)
        .operator(Operator::new("exp").inputs(["state"]).output(Output::new("t", 100)))
        .operator(
            Operator::new("abs").inputs(["t"]).output(Output::new("next", 100).overwrites("t")),
        )
        .output("next")
        .build()
        .unwrap()
}

/// `captured` comes from the sequence around it.
fn branch() -> OpSequence {
    OpSequence::builder()
        .weight("captured", Some(100))
        .operator(Operator::new("cos").inputs(["captured"]).output(Output::new("b", 300)))
        .output("b")
        .build()
        .unwrap()
}

fn host() -> OpSequence {
    let host = Operator::new("host").inputs(["x"]).output(Output::new("y", 100)).workspace(7);
    OpSequence::builder()
        .input("x", 100)
        .operator(host.body(body()).body(branch()))
        .operator(Operator::new("end").inputs(["y"]).output(Output::new("z", 50)))
        .output("z")
        .build()
        .unwrap()
}

fn room(planner: &Planner<'_>, sequence: &OpSequence) -> u64 {
    let plan = planner.plan(sequence).unwrap();
    assert_eq!(verify(sequence, &plan), []);
    assert_eq!(execute(sequence, &plan), []);
    plan.placement(sequence).unwrap();
    plan.workspace(0).unwrap().size
}

/// Two copies and a pool of one chunk, or of two; the branch needs 300 bytes alone.
#[rstest]
#[case::default(Planner::new(), 7 + 300)]
#[case::aligned(Planner::new().alignment(256), 7 + (256 + 256) + 256)]
#[case::apart(Planner::new().alignment(256).lowering(LoweringOptions::default().inplace(false)),
    7 + (256 + 256) + 512)]
#[case::padded(Planner::new().padding(90), 7 + (8 + 90 + 100 + 90) + (100 + 90))]
#[case::naive(Planner::new().strategy(Strategy::Naive).lowering(LoweringOptions::default().inplace(false)),
    7 + 8 + 100 + 200)]
#[case::supplied_stay_outside(
    Planner::new().lowering(LoweringOptions::default().inputs_in_pool(true).weights_in_pool(true)), 7 + 300)]
fn a_body_is_planned_with_the_options_of_the_caller(
    #[case] planner: Planner<'static>,
    #[case] workspace: u64,
) {
    assert_eq!(room(&planner, &host()), workspace);
}

#[test]
fn lowering_alone_requires_planned_bodies() {
    let error = lower(&host(), LoweringOptions::default()).unwrap_err();
    assert!(matches!(error, SequenceError::BodyNotPlanned { operator } if operator == "host"));
}

#[test]
fn an_error_in_a_body_names_the_operator() {
    let required = OpSequence::builder()
        .input("v", 8)
        .operator(Operator::new("update").inputs(["v"]).output(Output::new("a", 8).updates("v", 0)))
        .operator(Operator::new("late").inputs(["v"]).output(Output::new("b", 8)))
        .build()
        .unwrap();
    let host =
        OpSequence::builder().operator(Operator::new("host").body(required)).build().unwrap();
    let error = Planner::new().plan(&host).unwrap_err().to_string();
    assert!(error.starts_with("the body of operator host cannot be planned: "), "{error}");
    assert!(error.contains("'a' must overwrite 'v'"), "{error}");
}

#[test]
fn files_keep_bodies_and_their_plans() {
    let mut sequence = host();
    for depth in 1..OpSequence::MAX_DEPTH {
        let text = |plan: &Plan| {
            let mut written = Vec::new();
            write_plan_json(&mut written, plan, None).unwrap();
            written
        };
        let mut written = Vec::new();
        write_sequence_json(&mut written, &sequence).unwrap();
        let read = read_input(&written, Format::Json, &ImportOptions::default()).unwrap();
        assert_eq!(read, sequence.clone().into(), "{depth} levels");
        let plan = Planner::new().strategy(Strategy::Pushdown).plan(&sequence).unwrap();
        let read = read_json_plan(&text(&plan)).unwrap();
        assert_eq!(read, plan);
        assert_eq!(verify(&sequence, &read), []);
        let outer = Operator::new("outer").output(Output::new("o", 1)).body(sequence);
        sequence = OpSequence::builder().operator(outer).build().unwrap();
    }
    let outer = Operator::new("outer").body(sequence);
    let error = OpSequence::builder().operator(outer).build().unwrap_err();
    assert!(matches!(error, SequenceError::TooDeep { limit: OpSequence::MAX_DEPTH, .. }));
}

#[test]
fn sizes_of_bodies_count_in_the_sum() {
    let half = OpSequence::builder().input("h", 1 << 63).build().unwrap();
    let host = Operator::new("host").body(half.clone()).body(half);
    let error = OpSequence::builder().operator(host).build().unwrap_err();
    assert!(matches!(error, SequenceError::SizeOverflow { .. }));
}

#[test]
fn a_better_order_keeps_bodies() {
    let sequence = host();
    let found = Planner::new().plan_reordered(&sequence, default_limits()).unwrap();
    assert_eq!(found.sequence.operators()[0].bodies.len(), 2);
    assert_eq!(verify(&found.sequence, &found.plan), []);
}

/// Spoils the plan of a body, or its place.
#[rstest]
#[case::left_out(|p: &mut Plan| { p.bodies_mut().remove(0); }, "'body 0 of host' is missing from the plan")]
#[case::twice(|p: &mut Plan| { let body = p.bodies()[0].clone(); p.bodies_mut().push(body); }, "'body 0 of operator 0' is in the plan twice")]
#[case::no_such_body(|p: &mut Plan| p.bodies_mut()[1].body = 2, "'body 2 of operator 0' is in the plan, but not in the input")]
#[case::no_body_there(|p: &mut Plan| p.bodies_mut()[1].step = 1, "'body 1 of operator 1' is in the plan, but not in the input")]
#[case::beyond(|p: &mut Plan| p.bodies_mut()[1].step = u64::MAX, "'body 1 of operator 18446744073709551615' is in the plan, but not in the input")]
#[case::copies(|p: &mut Plan| p.bodies_mut()[0].inputs = 100,
    "in body 0 of host: the size of 'the copies of the inputs' is 108, but the plan says 100")]
#[case::alignment(|p: &mut Plan| *p.bodies_mut()[0].plan.alignment_mut() = 2,
    "in body 0 of host: the required alignment is 1, but the plan says 2")]
#[case::padding(|p: &mut Plan| *p.bodies_mut()[0].plan.padding_mut() = 2,
    "in body 0 of host: the required padding is 0, but the plan says 2")]
#[case::pool(|p: &mut Plan| *p.bodies_mut()[1].plan.pool_size_mut() = 299,
    "in body 1 of host: 'b' lies at 0 with 300 B, outside the pool of 299 B")]
#[case::larger_than_the_workspace(|p: &mut Plan| *p.bodies_mut()[1].plan.pool_size_mut() = 301, "'host.workspace' is missing from the plan")]
#[case::endless(|p: &mut Plan| *p.bodies_mut()[1].plan.pool_size_mut() = u64::MAX, "the pools of the bodies add up to 2^64 bytes or more")]
#[case::handed_in(|p: &mut Plan| {
        let mut tensor = p.bodies()[0].plan.tensors()[0].clone();
        tensor.name = "state".into();
        p.bodies_mut()[0].plan.tensors_mut().push(tensor);
    }, "in body 0 of host: 'state' is passed to the body and may not lie in its pool")]
#[case::workspace(|p: &mut Plan| p.chunks_mut()[1].size -= 1, "'host.workspace' is missing from the plan")]
fn every_wrong_plan_of_a_body_is_found(#[case] spoil: fn(&mut Plan), #[case] message: &str) {
    let sequence = host();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    spoil(&mut plan);
    let mut messages = verify(&sequence, &plan);
    // Execution reports what the shadow memory shows.
    messages.extend(execute(&sequence, &plan));
    let messages: Vec<String> = messages.iter().map(ToString::to_string).collect();
    assert!(messages.iter().any(|found| found == message), "{messages:#?}");
}

/// The loop body `t = exp(state); next = abs(t)`, with an operator that reads `t` at the end.
#[test]
fn the_operators_of_a_body_are_executed() {
    let body = OpSequence::builder()
        .input("state", 16)
        .operator(Operator::new("exp").inputs(["state"]).output(Output::new("t", 16)))
        .operator(Operator::new("abs").inputs(["t"]).output(Output::new("u", 16)))
        .operator(Operator::new("add").inputs(["t", "u"]).output(Output::new("next", 16)))
        .output("next")
        .build()
        .unwrap();
    let host = Operator::new("host").inputs(["x"]).output(Output::new("y", 16)).body(body);
    let sequence = OpSequence::builder().input("x", 16).operator(host).build().unwrap();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(execute(&sequence, &plan), []);
    let inner = &mut plan.bodies_mut()[0].plan;
    let low = inner.offset("t").unwrap();
    for tensor in inner.tensors_mut().iter_mut().filter(|tensor| &*tensor.name == "u") {
        tensor.place = memplan::TensorPlace::Pool { chunk: 1, offset: low };
    }
    let found = execute(&sequence, &plan);
    assert!(found[0].to_string().starts_with("in body 0 of host: "), "{found:?}");
    assert!(found[0].to_string().contains("over its input 't'"), "{found:?}");
}

#[test]
fn random_bodies_run_as_planned() {
    let mut planned = 0;
    times(40, |random| {
        let (Ok(body), Ok(other)) = (random_sequence(random, 8)?, random_sequence(random, 8)?)
        else {
            return Ok(());
        };
        let strategy = *random.choose(Strategy::ALL)?;
        // The output has the name of a weight that a body updates, if there is one.
        let updated = [&body, &other].into_iter().find_map(|body| {
            let overwrites = body.tensors().iter().filter_map(|tensor| match &tensor.origin {
                Origin::Output { dependency: Dependency::Overwrites(over), .. } => Some(over),
                _ => None,
            });
            let required = overwrites.flatten().filter(|over| over.required);
            let mut weights = required.map(|over| body.tensor(over.input));
            weights.find(|tensor| tensor.origin == Origin::Weight).map(|weight| weight.name.clone())
        });
        let name = updated.as_deref().unwrap_or("y");
        let y = Output::new(name, if updated.is_some() { 64 } else { 5 });
        let host = Operator::new("host").inputs(["x"]).output(y);
        let sequence = OpSequence::builder()
            .input("x", 9)
            .operator(host.body(body).body(other))
            .operator(Operator::new("end").inputs([name]).output(Output::new("z", 3)))
            .build();
        let sequence = match sequence {
            Err(
                SequenceError::ResultNotDirect { .. }
                | SequenceError::ResultTooLarge { .. }
                | SequenceError::UnwrittenOutput { .. },
            ) => return Ok(()),
            sequence => sequence.unwrap(),
        };
        for lowering in all_options() {
            let alignment = 1 << random.int_in_range(0..=6)?;
            let planner = Planner::new().strategy(strategy).alignment(alignment).lowering(lowering);
            match planner.plan(&sequence) {
                Ok(plan) => {
                    planned += 1;
                    assert_eq!(verify(&sequence, &plan), [], "{sequence:#?}\n{plan:#?}");
                    assert_eq!(execute(&sequence, &plan), [], "{sequence:#?}\n{plan:#?}");
                }
                Err(error) => assert!(is_impossible(&error), "{error}"),
            }
        }
        Ok(())
    });
    assert!(planned > 0, "{planned}");
}

/// A body that passes on its two states unchanged: their copies must not overwrite each other.
#[test]
fn the_states_that_a_body_returns_are_not_views_of_those_that_it_gets() {
    let model = with_body(
        "in x:f32[16]\nin y:f32[16]\nweight n=3\na, b = Loop(n, , x, y)\nout a\nout b",
        "Loop",
        &[(
            "body",
            "in i:i64[]\nin c:bool[]\nin s\nin t\nd = Identity(c)\nu = Identity(t)\nr = Identity(s)\nv = Reshape(r, k)\nweight k=[16]\nout d\nout u\nout v",
        )],
    );
    let sequence =
        onnx::read(&onnx_text::model(model, onnx_text::OPSET), &ImportOptions::default()).unwrap();
    let plan = Planner::new().alignment(64).plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    let body = &plan.bodies()[0];
    // i, c, s, t; then d, u and v, while r is a view of s.
    assert_eq!((body.inputs, body.plan.pool_size()), (256, 192));
}

/// A branch that makes its result in `y`, the output of its operator, at an offset.
fn branch_into_y(result: u64, offset: u64) -> OpSequence {
    let last = Operator::new("last").inputs(["t", "y"]);
    OpSequence::builder()
        .weight("y", Some(offset + result))
        .operator(Operator::new("first").output(Output::new("t", 8)))
        .operator(last.output(Output::new("result", result).updates("y", offset)))
        .output("result")
        .build()
        .unwrap()
}

fn condition(y: Output, result: u64, offset: u64) -> Result<OpSequence, SequenceError> {
    let condition = Operator::new("if").inputs(["x"]).output(y);
    let branches = condition.body(branch_into_y(result, offset)).body(branch_into_y(2, 0));
    OpSequence::builder()
        .operator(Operator::new("before").output(Output::new("x", 4)))
        .operator(branches)
        .operator(Operator::new("after").inputs(["x", "y"]))
        .build()
}

fn place_of_result(plan: &Plan, body: usize) -> &TensorPlace {
    let tensors = plan.bodies()[body].plan.tensors();
    &tensors.iter().find(|tensor| &*tensor.name == "result").unwrap().place
}

/// 4 bytes of `x`, 2 of `y` and 8 of `t`: the least for two branches one after the other.
#[test]
fn branches_make_their_results_in_the_output_of_the_operator() {
    let sequence = condition(Output::new("y", 2), 2, 0).unwrap();
    for &strategy in Strategy::ALL {
        for lowering in all_options() {
            let plan = Planner::new().strategy(strategy).lowering(lowering).plan(&sequence);
            let plan = plan.unwrap();
            assert_eq!(verify(&sequence, &plan), [], "{strategy}");
            assert_eq!(execute(&sequence, &plan), [], "{strategy}");
            let in_y = TensorPlace::Supplied { tensor: "y".into(), offset: 0 };
            assert_eq!([place_of_result(&plan, 0), place_of_result(&plan, 1)], [&in_y; 2]);
            assert_eq!(plan.workspace(1).unwrap().size, 8, "{strategy}");
        }
    }
    assert_eq!(Planner::new().plan(&sequence).unwrap().pool_size(), 14);
    let mut written = Vec::new();
    write_sequence_json(&mut written, &sequence).unwrap();
    let read = read_input(&written, Format::Json, &ImportOptions::default()).unwrap();
    assert_eq!(read, sequence.clone().into());
}

#[rstest]
#[case::in_the_pool(TensorPlace::Pool { chunk: 0, offset: 0 }, "'result' must overwrite 'y', but does not")]
#[case::elsewhere(TensorPlace::Supplied { tensor: "y".into(), offset: 1 }, "'result' must overwrite 'y', but does not")]
fn a_result_in_another_place_is_found(#[case] wrong: TensorPlace, #[case] message: &str) {
    let sequence = condition(Output::new("y", 2), 2, 0).unwrap();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    let tensors = plan.bodies_mut()[1].plan.tensors_mut().iter_mut();
    tensors
        .filter(|tensor| &*tensor.name == "result")
        .for_each(|tensor| tensor.place = wrong.clone());
    for found in [verify(&sequence, &plan), execute(&sequence, &plan)] {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|found| found.contains(message)), "{found:#?}");
        assert!(found.iter().all(|found| found.contains("in body 1 of if")), "{found:#?}");
    }
}

#[rstest]
#[case::over_an_input(Output::new("y", 4).overwrites("x"), 2, 0, "'y', which must have memory of its own")]
#[case::a_view(Output::new("y", 4).reads("x"), 2, 0, "'y', which must have memory of its own")]
#[case::gathered(Output::new("y", 4).gathers("x", 0), 2, 0, "'y', which must have memory of its own")]
#[case::too_large(Output::new("y", 2), 3, 0, "'result' in 'y', an output of 2 B")]
#[case::beyond_the_end(Output::new("y", 2), 2, 1, "'result' in 'y', an output of 2 B")]
fn a_result_that_its_output_cannot_hold_is_refused(
    #[case] y: Output,
    #[case] result: u64,
    #[case] offset: u64,
    #[case] words: &str,
) {
    let error = condition(y, result, offset).unwrap_err().to_string();
    assert!(error.contains("operator 'if'") && error.contains(words), "{error}");
}

/// A body with a weight `y` and these operators.
fn with_weight_y(size: Option<u64>, operators: &[Operator]) -> OpSequence {
    let mut body = OpSequence::builder();
    body.weight("y", size);
    operators.iter().cloned().for_each(|operator| {
        body.operator(operator);
    });
    body.build().unwrap()
}

/// A body that updates `y` itself, through a view, or in a body of its operator.
fn updating_y(size: Option<u64>, way: &str) -> OpSequence {
    let view = Output::new("v", 2).reads("y");
    let view = Operator::new("view").inputs(["y"]).output(view);
    let update = |input: &str| {
        let result = Output::new("r", 2).updates(input, 0);
        Operator::new("update").inputs([input]).output(result)
    };
    match way {
        "directly" => with_weight_y(size, &[update("y")]),
        "a view" => with_weight_y(size, &[view, update("v")]),
        "beside a view" => with_weight_y(size, &[view, update("y")]),
        "nested" => {
            let q = Output::new("q", 2).updates("y", 0);
            let inner = Operator::new("inner").inputs(["y"]).output(q);
            with_weight_y(size, &[inner.body(updating_y(size, "directly"))])
        }
        "undeclared" => {
            let inner = Operator::new("inner").output(Output::new("q", 2));
            let inner = inner.body(updating_y(size, "directly"));
            OpSequence::builder().operator(inner).build().unwrap()
        }
        "of another" => {
            let inner = Operator::new("inner").output(Output::new("y", 2));
            let inner = inner.body(updating_y(size, "directly"));
            OpSequence::builder().operator(inner).build().unwrap()
        }
        _ => with_weight_y(size, &[view]),
    }
}

/// Views of `y`, and bodies in bodies, would write it where its room and its input are not looked at.
#[rstest]
#[case::directly("directly", Some(2), None)]
#[case::a_larger_weight("directly", Some(3), Some("an output of 2 B"))]
#[case::a_weight_of_unknown_size("directly", None, Some("an output of 2 B"))]
#[case::through_a_view("a view", Some(2), Some("through a view or a body"))]
#[case::beside_a_view("beside a view", Some(2), Some("through a view or a body"))]
#[case::nested("nested", Some(2), Some("through a view or a body"))]
#[case::nested_and_undeclared("undeclared", Some(2), Some("through a view or a body"))]
#[case::of_another_operator("of another", Some(2), None)]
#[case::only_read("reads", Some(9), Some("to which nothing has been written"))]
fn only_direct_updates_make_results_in_outputs(
    #[case] way: &str,
    #[case] size: Option<u64>,
    #[case] words: Option<&str>,
) {
    let host = |y: Output| {
        let host = Operator::new("if").inputs(["x"]).output(y).body(updating_y(size, way));
        let before = Operator::new("before").output(Output::new("x", 2));
        OpSequence::builder().operator(before).operator(host).build()
    };
    let error = host(Output::new("y", 2)).err().map(|error| error.to_string());
    match (&error, words) {
        (Some(error), Some(words)) => {
            assert!(error.contains("operator 'if'") && error.contains(words), "{error}");
        }
        _ => assert_eq!(error.as_deref(), words),
    }
    let is_shared = matches!(
        host(Output::new("y", 2).overwrites("x")),
        Err(SequenceError::ResultInShared { .. })
    );
    assert_eq!(is_shared, !matches!(way, "of another" | "reads"));
}

/// A branch that is not made for the sizes given may never run, so it does not refuse the model.
#[test]
fn a_branch_may_reshape_to_another_number_of_elements() {
    let reshaped = "weight s=[4]\nt = Reshape(x, s)\nr = Exp(t)\nout r";
    let graph = with_body(
        "in x:f32[3,4]\nin c:bool[]\ny = If(c)\nout y",
        "If",
        &[("then_branch", "r = Exp(x)\nout r"), ("else_branch", reshaped)],
    );
    let model = onnx_text::model(graph, onnx_text::OPSET);
    let error =
        onnx::read(&model, &ImportOptions::default()).map(|_| ()).map_err(|e| e.to_string());
    assert!(!format!("{error:?}").contains("another number of elements"), "{error:?}");
}

/// The output must not share the bytes of `c`, whatever is said of the kernels.
#[test]
fn an_if_of_the_size_of_its_condition_is_not_in_place() {
    let branch = "t = Not(c)\nout t";
    let graph = with_body(
        "in b:bool[]\nc = Not(b)\ny = If(c)\nout y",
        "If",
        &[("then_branch", branch), ("else_branch", branch)],
    );
    let options = ImportOptions::default().kernel("If", InPlace::Elementwise);
    let sequence = onnx::read(&onnx_text::model(graph, onnx_text::OPSET), &options).unwrap();
    let y = sequence.tensor(sequence.tensor_id("y").unwrap());
    assert!(matches!(y.origin, Origin::Output { dependency: Dependency::Fresh, .. }), "{y:?}");
}

/// `If` makes the results of its branches in its outputs. Tensors from outside, and outputs with a name that
/// the branch uses, are copied.
#[rstest]
#[case::both("t = Exp(a)\nout t", "e = Cos(a)\nf = Exp(e)\nout f", ["t", "f"], 64)]
#[case::a_view("t = Exp(a)\nr = Identity(t)\nout r", "e = Cos(a)\nout e", ["r", "e"], 64)]
#[case::the_same_name("y = Exp(a)\nout y", "e = Cos(a)\nout e", ["", "e"], 64)]
#[case::read_again("t = Exp(a)\nu = Cos(t)\nv = Add(t, u)\nout t", "e = Cos(a)\nout e", ["t", "e"], 64)]
#[case::viewed_again("t = Exp(a)\nv = Identity(t)\nu = Cos(v)\nout t\nw = Add(t, u)", "e = Cos(a)\nout e", ["tv", "e"], 64)]
#[case::captured("out a", "e = Cos(a)\nout e", ["", "e"], 0)]
fn an_if_makes_its_results_in_its_outputs(
    #[case] then_branch: &str,
    #[case] else_branch: &str,
    #[case] in_y: [&str; 2],
    #[case] workspace: u64,
) {
    let graph = with_body(
        "in x:f32[16]\nin c:bool[]\na = Sin(x)\ny = If(c)\nz = Relu(y)\nout z\nout a",
        "If",
        &[("then_branch", then_branch), ("else_branch", else_branch)],
    );
    let model = onnx_text::model(graph, onnx_text::OPSET);
    let sequence = onnx::read(&model, &ImportOptions::default()).unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(execute(&sequence, &plan), []);
    assert_eq!(plan.workspace(1).map_or(0, |chunk| chunk.size), workspace);
    for (body, expected) in plan.bodies().iter().zip(in_y) {
        let is_in_y = |place: &TensorPlace| matches!(place, TensorPlace::Supplied { tensor, offset: 0 } if &**tensor == "y");
        let tensors = body.plan.tensors().iter();
        let found = tensors.filter(|tensor| &*tensor.name != "y" && is_in_y(&tensor.place));
        let found: Vec<&str> = found.map(|tensor| &*tensor.name).collect();
        assert_eq!(found.join(""), expected);
    }
}
