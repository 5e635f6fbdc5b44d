//! An executor gets the memory of each step as slices, or an error that states why it cannot.

use memplan::{
    InputMemory, Location, OpSequence, Operator, Output, OutputMemory, Placement, PlacementError,
    Plan, Planner, sequence::SequenceBuilder, verify::verify,
};
use rstest::rstest;

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
    let mut pool = vec![0_u32; usize::try_from(plan.pool_size).unwrap() / 4];

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
    let mut pool = vec![0_u8; usize::try_from(plan.pool_size).unwrap()];
    let start = pool.as_ptr().addr();
    let offset = |slice: &[u8]| (slice.as_ptr().addr() - start) as u64;
    let mut in_place = 0;
    for (step, operator) in sequence.operators().iter().enumerate() {
        let memory = placement.memory(step, &mut pool).unwrap();
        for (&id, output) in operator.outputs.iter().zip(&memory.outputs) {
            let Location::Pool(bytes) = placement.tensor(id) else { panic!("{step}") };
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
                OutputMemory::Supplied { .. } => panic!("{step}"),
            }
        }
        for (&id, input) in operator.inputs.iter().zip(&memory.inputs) {
            match (input, placement.tensor(id)) {
                (InputMemory::Slice(slice), Location::Pool(bytes)) => {
                    assert_eq!(
                        (offset(slice), slice.len() as u64),
                        (bytes.start, bytes.end - bytes.start)
                    );
                }
                (InputMemory::InOutput { .. }, Location::Pool(_))
                | (InputMemory::Supplied { .. }, Location::Supplied { .. }) => {}
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
    let mut names: Vec<&str> = plan.chunks.iter().map(|chunk| &*chunk.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["a.workspace", "a.workspace.0", "a.workspace.1", "b"]);
    let placement = plan.placement(&sequence).unwrap();
    for (step, size) in [(0, 16), (1, 4)] {
        let chunk = plan.workspace(step as u64).unwrap();
        assert_eq!(chunk.size, size);
        assert_eq!(placement.workspace(step), Some(chunk.offset..chunk.offset + size));
        let listed = plan.workspaces(&sequence)[step].map(|at| &plan.chunks[at]);
        assert_eq!(listed, Some(chunk));
    }
    assert_eq!(plan.workspace(2), None);
    assert_eq!(placement.named("b"), Some(placement.tensor(sequence.tensor_id("b").unwrap())));
}

#[rstest]
#[case::missing(|plan: &mut Plan| { plan.tensors.pop(); }, "'y' needs 4 B, but the plan places 0 B")]
#[case::unknown(|plan: &mut Plan| plan.tensors[0].name = "z".into(), "the plan places tensor 'z', which the sequence does not have")]
#[case::size(|plan: &mut Plan| plan.tensors[0].size = 23, "'a' needs 24 B, but the plan places 23 B")]
#[case::outside(|plan: &mut Plan| plan.pool_size = 8, "'a' ends outside the pool of 8 B")]
#[case::no_workspace(|plan: &mut Plan| plan.chunks.retain(|chunk| &*chunk.name != "sum.workspace"), "'the workspace of sum' needs 4 B, but the plan places 0 B")]
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
    assert_eq!(refused, PlacementError::PoolTooSmall { pool_size: plan.pool_size, found: 3 });
    let refused = placement.memory(0, &mut [[0_u8; 5]; 20]).unwrap_err();
    assert!(refused.to_string().contains("does not consist of whole elements of 5 B"), "{refused}");

    // The output of the last operator over its input, which it does not declare.
    let Location::Pool(b) = placement.named("b").unwrap().clone() else { panic!() };
    let y = plan.tensors.iter().position(|tensor| &*tensor.name == "y").unwrap();
    let memplan::TensorPlace::Pool { offset, .. } = &mut plan.tensors[y].place else { panic!() };
    *offset = b.start;
    let placement = plan.placement(&sequence).unwrap();
    assert_eq!(error(&placement, 3), "operator 'sum' writes 'y' into the bytes of 'b'");
}
