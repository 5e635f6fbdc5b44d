//! Names that a sub-graph uses again for a constant of its own, which are not the tensors around it, and names
//! that nobody reads.

use crate::onnx_text::{OPSET, graph, model, with_body};
use memplan::{
    OpSequence, Planner,
    import::{ImportOptions, onnx},
    verify::{execute, verify},
};
use rstest::rstest;

fn read(graph: rten_onnx::onnx::GraphProto) -> OpSequence {
    let sequence = onnx::read(&model(graph, OPSET), &ImportOptions::default()).unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    sequence
}

/// The names of the inputs of an operator.
fn inputs(sequence: &OpSequence, step: usize) -> Vec<&str> {
    let inputs = &sequence.operators()[step].inputs;
    inputs.iter().map(|&input| &*sequence.tensor(input).name).collect()
}

#[rstest]
#[case::made_before("t = Exp(x)\ny = If(c)\nz = Add(y, t)\nout z")]
#[case::made_later("y = If(c)\nt = Exp(x)\nz = Add(y, t)\nout z")]
#[case::captured_by_the_other_branch("t = Exp(x)\ny = If(c)\nz = Abs(y)\nout z")]
fn a_constant_of_a_branch_is_not_the_tensor_of_its_name(#[case] around: &str) {
    let captured = around.contains("Abs");
    let other = if captured { "u = Abs(t)\nout u" } else { "u = Abs(x)\nout u" };
    let graph = with_body(
        &format!("in x:f32[16]\nin c:bool[]\n{around}"),
        "If",
        &[("then_branch", "weight t:f32[16]\nv = Add(x, t)\nout v"), ("else_branch", other)],
    );
    let sequence = read(graph);
    let step =
        sequence.operators().iter().position(|operator| !operator.bodies.is_empty()).unwrap();
    assert_eq!(
        inputs(&sequence, step),
        if captured { vec!["c", "x", "t"] } else { vec!["c", "x"] }
    );
    let bodies = &sequence.operators()[step].bodies;
    assert!(
        inputs(&bodies[0], 0).contains(&"t of If (which makes 'y')"),
        "{:?}",
        inputs(&bodies[0], 0)
    );
}

/// The branch inside reads the constant of the branch around it.
#[test]
fn a_branch_reads_the_nearest_constant() {
    let inner = with_body(
        "weight t:f32[16]\nw = If(c)\nout w",
        "If",
        &[
            ("then_branch", "v = Mul(x, t)\nout v"),
            ("else_branch", "weight t:f32[16]\nv = Sub(x, t)\nout v"),
        ],
    );
    let mut graph = with_body(
        "in x:f32[16]\nin c:bool[]\nt = Exp(x)\ny = If(c)\nz = Add(y, t)\nout z",
        "If",
        &[("then_branch", ""), ("else_branch", "u = Abs(x)\nout u")],
    );
    graph.node[1].attribute[0].g = Some(inner);
    let sequence = read(graph);
    let branch = &sequence.operators()[1].bodies[0];
    let constant = "t of If (which makes 'y')";
    assert_eq!(inputs(branch, 0)[..3], ["c", "x", constant]);
    let bodies = &branch.operators()[0].bodies;
    assert_eq!(inputs(&bodies[0], 0)[..2], ["x", constant]);
    assert_eq!(inputs(&bodies[1], 0)[..2], ["x", "t of If (which makes 'w')"]);
}

/// Only a reshape that somebody reads refuses the model.
#[rstest]
#[case::read_by_nobody("y = Exp(x)\nt = Reshape(x, s)\nout y", None)]
#[case::read("t = Reshape(x, s)\ny = Exp(t)\nout y", Some("'x' has 12 elements, but"))]
#[case::returned("y = Exp(x)\nt = Reshape(x, s)\nout y\nout t", Some("'x' has 12 elements, but"))]
fn a_reshape_that_nobody_reads_may_be_for_other_sizes(
    #[case] operators: &str,
    #[case] words: Option<&str>,
) {
    let graph = graph(&format!("in x:f32[3,4]\nweight s=[4]\n{operators}"));
    let error = onnx::read(&model(graph, OPSET), &ImportOptions::default()).err();
    let error = error.map(|error| error.to_string());
    match words {
        None => assert_eq!(error, None),
        Some(words) => {
            assert!(error.as_ref().is_some_and(|found| found.contains(words)), "{error:?}");
        }
    }
}
