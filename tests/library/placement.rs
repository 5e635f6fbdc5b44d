//! An executor gets the memory of each step as slices, or an error that states why it cannot.

use memplan::{
    InputMemory, OpSequence, Operator, Output, OutputMemory, Placement, Plan, PlanError, Planner,
    Strategy,
    sequence::{Dependency, OperatorNode, Origin, SequenceBuilder, TensorId},
    verify::verify,
};
use rstest::rstest;

use crate::common::{
    constraints::Dice,
    properties::{all_options, is_impossible},
    random::random_sequence,
    seeds::times,
};

fn plan(sequence: &SequenceBuilder) -> (OpSequence, Plan) {
    let sequence = sequence.build().unwrap();
    let plan = Planner::new().alignment(4).plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    (sequence, plan)
}

/// x, supplied; a of 24 bytes; a view of its second half; b over that; c, and a workspace.
fn chain() -> SequenceBuilder {
    let mut sequence = OpSequence::builder();
    sequence
        .input("x", 24)
        .operator(Operator::new("conv").inputs(["x"]).output(Output::new("a", 24)).workspace(8))
        .operator(
            Operator::new("slice").inputs(["a"]).output(Output::new("v", 12).reads_at("a", 12)),
        )
        .operator(
            Operator::new("add").inputs(["v", "a"]).output(Output::new("b", 12).overwrites("v")),
        )
        .operator(Operator::new("sum").inputs(["b"]).output(Output::new("y", 4)).workspace(4))
        .output("y");
    sequence
}

#[test]
fn every_step_gets_its_memory() {
    let (sequence, plan) = plan(&chain());
    let placement = plan.placement(&sequence).unwrap();
    let mut pool = vec![0_u32; usize::try_from(plan.pool_size()).unwrap() / 4];

    let conv = placement.memory(0, &mut pool).unwrap();
    let x = sequence.tensor_id("x").unwrap();
    assert_eq!(conv.inputs, [InputMemory::Supplied { tensor: x, offset: 0 }]);
    assert!(matches!(&conv.outputs[..], [OutputMemory::Fresh(a)] if a.len() == 6));
    assert_eq!(conv.workspace.len(), 2);

    let slice = placement.memory(1, &mut pool).unwrap();
    assert_eq!(slice.outputs, [OutputMemory::View]);
    assert!(matches!(slice.inputs[..], [InputMemory::Slice(a)] if a.len() == 6));

    let sum = placement.memory(3, &mut pool).unwrap();
    assert!(matches!(sum.inputs[..], [InputMemory::Slice(b)] if b.len() == 3));
    assert!(matches!(&sum.outputs[..], [OutputMemory::Fresh(y)] if y.len() == 1));
}

/// The output takes the place of a part of its input, and the other input is all of it.
#[test]
fn an_output_over_an_input_gets_one_slice_with_it() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("conv").output(Output::new("a", 24)))
        .operator(
            Operator::new("crop").inputs(["a"]).output(Output::new("b", 8).overwrites_at("a", 8)),
        )
        .output("b")
        .clone();
    let (sequence, plan) = plan(&sequence);
    let mut pool = [0_u32; 6];
    let placement = plan.placement(&sequence).unwrap();
    let crop = placement.memory(1, &mut pool).unwrap();
    assert_eq!(crop.inputs, [InputMemory::InOutput { output: 0, range: 0..6 }]);
    let [OutputMemory::InPlace { memory, range }] = &crop.outputs[..] else { panic!("{crop:?}") };
    assert_eq!((memory.len(), range.clone()), (6, 2..4));
}

/// Written and read slices never share an element, and each holds all bytes of its tensor.
#[test]
fn slices_of_a_real_network_are_apart() {
    let sequence = memplan::networks::mobilenet_v2(1).unwrap();
    let plan = Planner::new().alignment(64).plan(&sequence).unwrap();
    let placement = plan.placement(&sequence).unwrap();
    let mut pool = vec![0_u8; usize::try_from(plan.pool_size()).unwrap()];
    let start = pool.as_ptr().addr();
    let offset = |slice: &[u8]| (slice.as_ptr().addr() - start) as u64;
    let mut in_place = 0;
    for (step, operator) in sequence.operators().iter().enumerate() {
        let memory = placement.memory(step, &mut pool).unwrap();
        for (&id, output) in operator.outputs.iter().zip(&memory.outputs) {
            let bytes = placement.bytes(id).unwrap();
            match output {
                OutputMemory::Fresh(slice) => {
                    assert_eq!(
                        (offset(slice), slice.len() as u64),
                        (bytes.start, bytes.end - bytes.start)
                    );
                }
                OutputMemory::InPlace { memory, range } => {
                    in_place += 1;
                    assert_eq!(offset(&memory[range.clone()]), bytes.start);
                    assert_eq!(range.len() as u64, bytes.end - bytes.start);
                }
                OutputMemory::View => assert_eq!(operator.kind.as_ref(), "Flatten"),
                other => panic!("{step}: {other:?}"),
            }
        }
        for (&id, input) in operator.inputs.iter().zip(&memory.inputs) {
            match (input, placement.bytes(id)) {
                (InputMemory::Slice(slice), Some(bytes)) => {
                    assert_eq!(
                        (offset(slice), slice.len() as u64),
                        (bytes.start, bytes.end - bytes.start)
                    );
                }
                (InputMemory::InOutput { .. }, Some(_)) => {}
                (&InputMemory::Supplied { tensor, offset }, None) => {
                    assert_eq!(placement.supplied(id), Some((tensor, offset)));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(in_place, 45);
}

/// Two operators have the same name; the name of the first one's workspace is also that of a
/// tensor.
#[test]
fn workspaces_have_names_of_their_own_and_are_found_by_step() {
    let mut sequence = OpSequence::builder();
    sequence
        .operator(Operator::new("a").output(Output::new("a.workspace", 8)).workspace(16))
        .operator(
            Operator::new("a").inputs(["a.workspace"]).output(Output::new("b", 8)).workspace(4),
        )
        .output("b");
    let (sequence, plan) = plan(&sequence);
    let mut names: Vec<&str> = plan.chunks().iter().map(|chunk| &*chunk.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["a.workspace", "a.workspace.0", "a.workspace.1", "b"]);
    let placement = plan.placement(&sequence).unwrap();
    for (step, size) in [(0, 16), (1, 4)] {
        let chunk = plan.workspace(step as u64).unwrap();
        assert_eq!(chunk.size, size);
        assert_eq!(placement.workspace(step), Some(chunk.offset..chunk.offset + size));
        let listed = plan.workspaces(&sequence)[step].map(|at| &plan.chunks()[at]);
        assert_eq!(listed, Some(chunk));
    }
    assert_eq!(plan.workspace(2), None);
}

#[rstest]
#[case::missing(|plan: &mut Plan| { plan.tensors_mut().pop(); }, "'y' needs 4 B, but the plan places 0 B")]
#[case::unknown(|plan: &mut Plan| plan.tensors_mut()[0].name = "z".into(), "the plan places tensor 'z', which the sequence does not have")]
#[case::size(|plan: &mut Plan| plan.tensors_mut()[0].size = 23, "'a' needs 24 B, but the plan places 23 B")]
#[case::outside(|plan: &mut Plan| *plan.pool_size_mut() = 8, "'a' ends outside the pool of 8 B")]
#[case::no_workspace(|plan: &mut Plan| plan.chunks_mut().retain(|chunk| &*chunk.name != "sum.workspace"), "'the workspace of sum' needs 4 B, but the plan places 0 B")]
fn a_plan_of_something_else_is_refused(#[case] change: fn(&mut Plan), #[case] message: &str) {
    let (sequence, mut plan) = plan(&chain());
    change(&mut plan);
    assert_eq!(plan.placement(&sequence).unwrap_err().to_string(), message);
}

#[test]
fn a_step_without_slices_is_an_error_with_the_reason() {
    let (sequence, mut plan) = plan(&chain());
    let error = |placement: &Placement<'_>, step| {
        placement.memory(step, &mut [0_u32; 20]).unwrap_err().to_string()
    };
    let placement = plan.placement(&sequence).unwrap();
    let refused = placement.memory(0, &mut [0_u8; 3]).unwrap_err();
    assert_eq!(refused, PlanError::PoolTooSmall { pool_size: plan.pool_size(), found: 3 });
    let refused = placement.memory(0, &mut [[0_u8; 5]; 20]).unwrap_err();
    assert!(refused.to_string().contains("does not consist of whole elements of 5 B"), "{refused}");

    // The output of the last operator over its input, which it does not declare.
    let b = placement.bytes(sequence.tensor_id("b").unwrap()).unwrap();
    let y = plan.tensors().iter().position(|tensor| &*tensor.name == "y").unwrap();
    let memplan::TensorPlace::Pool { offset, .. } = &mut plan.tensors_mut()[y].place else {
        panic!()
    };
    *offset = b.start;
    let placement = plan.placement(&sequence).unwrap();
    assert_eq!(error(&placement, 3), "operator 'sum' writes 'y' into the bytes of 'b'");
}

/// The example of `Output::gathers`.
#[test]
fn a_concatenation_whose_inputs_lie_inside_it_has_nothing_to_write() {
    let concat = Output::new("c", 96).gathers("a", 0).gathers("b", 64);
    let sequence = OpSequence::builder()
        .operator(Operator::new("conv").output(Output::new("a", 64)))
        .operator(Operator::new("conv").output(Output::new("b", 32)))
        .operator(Operator::new("concat").inputs(["a", "b"]).output(concat))
        .output("c")
        .clone();
    let (sequence, plan) = plan(&sequence);
    let placement = plan.placement(&sequence).unwrap();
    let mut pool = [0_u32; 24];
    for (step, size) in [(0, 16), (1, 8)] {
        let conv = placement.memory(step, &mut pool).unwrap();
        assert!(matches!(&conv.outputs[..], [OutputMemory::Fresh(x)] if x.len() == size));
    }
    let concat = placement.memory(2, &mut pool).unwrap();
    assert_eq!(concat.outputs, [OutputMemory::View]);
    assert!(concat.inputs.iter().all(|input| matches!(input, InputMemory::Slice(_))));
}

/// `x` lies outside the pool, so it is copied between the others.
#[test]
fn a_concatenation_shares_a_slice_with_the_inputs_inside_it() {
    let concat = Output::new("c", 24).gathers("a", 0).gathers("x", 8).gathers("b", 16);
    let sequence = OpSequence::builder()
        .input("x", 8)
        .operator(Operator::new("conv").output(Output::new("a", 8)))
        .operator(Operator::new("conv").output(Output::new("b", 8)))
        .operator(Operator::new("concat").inputs(["a", "x", "b"]).output(concat))
        .output("c")
        .clone();
    let (sequence, plan) = plan(&sequence);
    let mut pool = [0_u32; 6];
    let placement = plan.placement(&sequence).unwrap();
    let concat = placement.memory(2, &mut pool).unwrap();
    let x = sequence.tensor_id("x").unwrap();
    let inside = |range| InputMemory::InOutput { output: 0, range };
    assert_eq!(
        concat.inputs,
        [inside(0..2), InputMemory::Supplied { tensor: x, offset: 0 }, inside(4..6)]
    );
    let [OutputMemory::InPlace { memory, range }] = &concat.outputs[..] else {
        panic!("{concat:?}")
    };
    assert_eq!((memory.len(), range.clone()), (6, 0..6));
}

/// The content of every tensor, as if each had a buffer of its own.
fn contents(sequence: &OpSequence) -> Vec<Vec<u8>> {
    let mut dice = Dice(7);
    let mut fresh = |id: TensorId| -> Vec<u8> {
        let size = sequence.tensor(id).size.unwrap_or(0);
        (0..size).map(|_| u8::try_from(dice.roll(256)).unwrap()).collect()
    };
    let ids = |at: usize| TensorId(u32::try_from(at).unwrap());
    let mut contents: Vec<Vec<u8>> =
        (0..sequence.tensors().len()).map(|at| fresh(ids(at))).collect();
    for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
        let Origin::Output { dependency, .. } = &sequence.tensor(output).origin else { continue };
        let at = |offset: u64| usize::try_from(offset).unwrap();
        match dependency {
            Dependency::Reads { input, offset, .. } => {
                let size = contents[output.index()].len();
                let base = contents[input.index()][at(*offset)..][..size].to_vec();
                contents[output.index()] = base;
            }
            Dependency::Gathers(gathers) => {
                for gather in gathers {
                    let input = contents[gather.input.index()].clone();
                    contents[output.index()][at(gather.offset)..][..input.len()]
                        .copy_from_slice(&input);
                }
            }
            _ => {}
        }
    }
    contents
}

fn bytes_of<'p>(
    placement: &Placement<'_>,
    id: TensorId,
    pool: &'p mut [u8],
) -> Option<&'p mut [u8]> {
    let bytes = placement.bytes(id)?;
    let [start, end] = [bytes.start, bytes.end].map(|at| usize::try_from(at).unwrap());
    Some(&mut pool[start..end])
}

/// Returns whether all outputs of an operator may be views, and one of them shows this input.
fn is_shown(sequence: &OpSequence, operator: &OperatorNode, input: TensorId) -> bool {
    let viewed = |&output: &TensorId| match sequence.tensor(output).origin {
        Origin::Output { dependency: Dependency::Reads { input, .. }, .. } => Some(input),
        _ => None,
    };
    let viewed: Vec<Option<TensorId>> = operator.outputs.iter().map(viewed).collect();
    viewed.iter().all(Option::is_some) && viewed.contains(&Some(input))
}

/// Whether an operator has two outputs that gather one tensor. They may share its bytes, and no two slices can.
/// Bytes of `x` that no view shows may be gone, although one of the two views has no bytes.
#[test]
fn an_empty_view_is_a_view() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("x", 8)))
        .operator(
            Operator::new("views")
                .inputs(["x"])
                .output(Output::new("v", 2).reads_at("x", 3))
                .output(Output::new("empty", 0).reads_at("x", 8)),
        )
        .output("v")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    let placement = plan.placement(&sequence).unwrap();
    let mut pool = vec![0_u8; usize::try_from(plan.pool_size()).unwrap()];
    let views = placement.memory(1, &mut pool).unwrap();
    assert_eq!(views.outputs, [OutputMemory::View, OutputMemory::View]);
}

/// `y` and `z` are written over different bytes of `x`, so one slice holds all three.
#[test]
fn two_outputs_over_an_input_share_its_memory() {
    let both = Operator::new("both").inputs(["x"]).output(Output::new("y", 2).updates("x", 6));
    let sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("x", 8)))
        .operator(both.output(Output::new("z", 3).updates("x", 1)))
        .operator(Operator::new("use").inputs(["y", "z"]).output(Output::new("r", 8)))
        .output("r")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(plan.offset("y"), plan.offset("x").map(|x| x + 6));
    let placement = plan.placement(&sequence).unwrap();
    let mut pool = vec![0_u8; usize::try_from(plan.pool_size()).unwrap()];
    let both = placement.memory(1, &mut pool).unwrap();
    assert_eq!(both.inputs, [InputMemory::InOutput { output: 0, range: 0..8 }]);
    let [
        OutputMemory::InPlace { memory, range },
        OutputMemory::InOutput { output: 0, range: of_z },
    ] = &both.outputs[..]
    else {
        panic!("{both:?}");
    };
    assert_eq!((memory.len(), range.clone(), of_z.clone()), (8, 6..8, 1..4));
}

/// Runs a plan in one pool as the book tells. Every input must hold what it holds with a buffer for each tensor.
/// Returns the numbers of concatenations with all and with some of their inputs inside.
fn run(sequence: &OpSequence, plan: &Plan) -> [usize; 2] {
    let contents = contents(sequence);
    let placement = plan.placement(sequence).unwrap();
    let mut pool = vec![0xAA_u8; usize::try_from(plan.pool_size()).unwrap()];
    for (at, content) in contents.iter().enumerate() {
        let id = TensorId(u32::try_from(at).unwrap());
        if !matches!(sequence.tensor(id).origin, Origin::Output { .. })
            && let Some(bytes) = bytes_of(&placement, id, &mut pool)
        {
            bytes.copy_from_slice(content);
        }
    }
    let mut inside = [0, 0];
    for (step, operator) in sequence.operators().iter().enumerate() {
        let is_concat = |output: TensorId| {
            let origin = &sequence.tensor(output).origin;
            matches!(origin, Origin::Output { dependency: Dependency::Gathers(_), .. })
        };
        match placement.memory(step, &mut pool) {
            Ok(mut memory) => {
                let is_view = |output: &OutputMemory<'_, u8>| matches!(output, OutputMemory::View);
                for (&id, input) in operator.inputs.iter().zip(&memory.inputs) {
                    // An operator that only makes views reads no bytes that they do not show.
                    let only_views =
                        memory.workspace.is_empty() && memory.outputs.iter().all(is_view);
                    if only_views && is_shown(sequence, operator, id) {
                        continue;
                    }
                    let found = match input {
                        InputMemory::Slice(slice) => *slice,
                        InputMemory::InOutput { output, range } => match &memory.outputs[*output] {
                            OutputMemory::InPlace { memory, .. } => &memory[range.clone()],
                            other => panic!("{other:?}"),
                        },
                        InputMemory::Supplied { .. } => continue,
                    };
                    assert_eq!(found, contents[id.index()], "{step}: {sequence:#?}\n{plan:#?}");
                }
                memory.workspace.fill(0xBB);
                for (at, &id) in operator.outputs.iter().enumerate() {
                    let content = &contents[id.index()];
                    match &mut memory.outputs[at] {
                        OutputMemory::Fresh(memory) => memory.copy_from_slice(content),
                        OutputMemory::InPlace { memory, range } => {
                            inside[1] += usize::from(is_concat(id));
                            memory[range.clone()].copy_from_slice(content);
                        }
                        OutputMemory::InOutput { output, range } => {
                            let (output, range) = (*output, range.clone());
                            let OutputMemory::InPlace { memory, .. } = &mut memory.outputs[output]
                            else {
                                panic!("output {output} has no memory: {sequence:#?}\n{plan:#?}");
                            };
                            memory[range].copy_from_slice(content);
                        }
                        OutputMemory::View => inside[0] += usize::from(is_concat(id)),
                        OutputMemory::Supplied { .. } => {}
                    }
                }
            }
            Err(error) => panic!("{error}\n{sequence:#?}\n{plan:#?}"),
        }
        for &id in &operator.outputs {
            if let Some(bytes) = bytes_of(&placement, id, &mut pool) {
                assert_eq!(bytes, contents[id.index()], "{step}: {sequence:#?}\n{plan:#?}");
            }
        }
    }
    inside
}

#[test]
fn the_memory_of_each_step_holds_what_buffers_of_their_own_hold() {
    let (mut planned, mut inside) = (0, [0, 0]);
    times(150, |random| {
        let Ok(sequence) = random_sequence(random, 12)? else { return Ok(()) };
        let strategy = *random.choose(&[Strategy::Best, Strategy::FirstFit, Strategy::Pushdown])?;
        let lowering = all_options().nth(random.choose_index(16)?).unwrap();
        match Planner::new().strategy(strategy).lowering(lowering).plan(&sequence) {
            Ok(plan) => {
                planned += 1;
                for (sum, more) in inside.iter_mut().zip(run(&sequence, &plan)) {
                    *sum += more;
                }
            }
            Err(error) => assert!(is_impossible(&error), "{error}"),
        }
        Ok(())
    });
    let [all, some] = inside;
    assert!(planned > 50 && all > 5 && some > 5, "{planned} plans, {all} and {some}");
}
