//! Models as ONNX Runtime runs them: its order, its views, its in-place kernels, and its memory pattern.

use memplan::{
    OpSequence,
    baselines::onnxruntime::MemoryPattern,
    import::{ImportOptions, onnx::read},
    sequence::{Dependency, Origin},
};
use rstest::rstest;

use crate::{
    common::{project, shared_path},
    onnx_text::{OPSET, graph, model},
};

fn read_for_runtime(bytes: &[u8]) -> OpSequence {
    read(bytes, &ImportOptions::default().onnxruntime()).unwrap()
}

/// The blocks that ONNX Runtime 1.32 allocates in a second run, in bytes, with graph optimizations disabled, as
/// `tests/onnx_backend/pattern.py` measures them.
#[rstest]
#[case("data/models/bert_base_b1_s128.onnx", 9_044_480)]
#[case("data/models/densenet121_b1.onnx", 11_239_424)]
#[case("data/models/efficientnet_b0_b1.onnx", 15_253_504)]
#[case("data/models/inception_v3_b1.onnx", 11_139_840)]
#[case("data/models/mobilenet_v2_b1.onnx", 6_823_936)]
#[case("data/models/resnet50_b1.onnx", 11_239_424)]
#[case("data/models/vgg16_b1.onnx", 25_690_112)]
#[case("data/models/vit_b_16_b1.onnx", 21_222_656)]
fn patterns_are_those_of_the_runtime(#[case] path: &str, #[case] measured: u64) {
    let Some(path) = shared_path(path) else { return };
    let sequence = read_for_runtime(&std::fs::read(path).unwrap());
    assert_eq!(MemoryPattern::of(&sequence).size, measured);
}

/// In the runtime, these take 256 and 768 bytes more, for tensors that are known before the run: unless it folds them
/// first, the runtime makes them in every run.
#[rstest]
#[case("encoder.onnx", 1_536_000, 51_200)]
#[case("unet_block.onnx", 2_625_792, 65_536)]
fn patterns_are_recorded(#[case] name: &str, #[case] size: u64, #[case] outputs: u64) {
    let bytes = std::fs::read(project().join("tests/models").join(name)).unwrap();
    let pattern = MemoryPattern::of(&read_for_runtime(&bytes));
    assert_eq!((pattern.size, pattern.outputs), (size, outputs));
}

/// How an output depends on the inputs, such as `over a`, by the name of the output.
fn dependency(sequence: &OpSequence, name: &str) -> String {
    let tensor = sequence.tensor(sequence.tensor_id(name).unwrap());
    let name = |id| &sequence.tensor(id).name;
    let Origin::Output { dependency, .. } = &tensor.origin else { panic!("{tensor:?}") };
    match dependency {
        Dependency::Fresh => "fresh".to_owned(),
        Dependency::Reads { input, .. } => format!("of {}", name(*input)),
        Dependency::Overwrites(requests) => {
            let inputs: Vec<&str> = requests.iter().map(|of| &**name(of.input)).collect();
            format!("over {}", inputs.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// The output `b` of an operator that reads the computed tensors `a`, of 2 x 8 elements, and `w`.
#[rstest]
#[case("b = Relu(a)", "over a")]
#[case("b = Softmax(a) axis=1", "over a")]
#[case("b = Cast(a) to=6", "over a")]
#[case("b = Cast(a) to=10", "fresh")]
#[case("b = Add(a, w)", "fresh")]
#[case("b = Sqrt(a)", "fresh")]
#[case("b = LpNormalization(a)", "fresh")]
#[case("b = Reshape(a, wide)", "of a")]
#[case("b = Flatten(a)", "of a")]
#[case("b = Unsqueeze(a, wide)", "of a")]
#[case("b = Identity(a)", "of a")]
#[case("b = Transpose(a) perm=[0,1]", "fresh")]
#[case("b = Slice(a, from, to)", "fresh")]
#[case("b = Concat(a, w) axis=0", "fresh")]
#[case("b = com.microsoft/FusedConv(four, kernel, , quad)", "over quad")]
#[case("b = com.microsoft/Gelu(a)", "fresh")]
fn outputs_share_what_the_runtimes_kernels_share(#[case] operator: &str, #[case] expected: &str) {
    let text = format!(
        "in x:f32[2,8]
         weight wide=[0,1]
         weight from=[0,0]
         weight to=[1,8]
         weight shape=[1,1,2,8]
         weight kernel:f32[1,1,1,1]
         a = Exp(x)
         w = Log(x)
         four = Expand(x, shape)
         quad = Neg(four)
         {operator}
         y = ReduceSum(b) keepdims=0
         out y"
    );
    let text = text.replace(
        "weight wide=[0,1]",
        match operator {
            _ if operator.contains("Reshape") => "weight wide=[16,1]",
            _ => "weight wide=[0]",
        },
    );
    let sequence = read_for_runtime(&model(graph(&text), OPSET));
    assert_eq!(dependency(&sequence, "b"), expected);
}

#[test]
fn outputs_of_the_model_share_nothing() {
    let text = "in x:f32[4]
        a = Exp(x)
        y = Relu(a)
        z = Identity(y)
        out y
        out z";
    let sequence = read_for_runtime(&model(graph(text), OPSET));
    assert_eq!(
        (dependency(&sequence, "y"), dependency(&sequence, "z")),
        ("fresh".into(), "fresh".into())
    );
    let pattern = MemoryPattern::of(&sequence);
    assert_eq!((pattern.size, pattern.outputs), (256, 32));
}

#[rstest]
#[case::what_is_later_in_the_file_first(
    "a = Relu(x)\nb = Tanh(x)\ny = Add(a, b)\nout y",
    &["Tanh", "Relu", "Add"]
)]
#[case::whatever_the_order_of_the_inputs(
    "a = Relu(x)\nb = Tanh(x)\ny = Add(b, a)\nout y",
    &["Tanh", "Relu", "Add"]
)]
#[case::the_last_leaf_first("y = Relu(x)\nz = Tanh(x)\nout y\nout z", &["Tanh", "Relu"])]
#[case::a_branch_at_once(
    "a = Relu(x)\nb = Tanh(x)\nc = Neg(a)\nd = Abs(b)\ny = Add(c, d)\nout y",
    &["Tanh", "Abs", "Relu", "Neg", "Add"]
)]
#[case::also_where_the_file_has_none("y = Neg(a)\na = Relu(x)\nout y", &["Relu", "Neg"])]
fn operators_run_in_the_runtimes_order(#[case] lines: &str, #[case] expected: &[&str]) {
    let bytes = model(graph(&format!("in x:f32[4]\n{lines}")), OPSET);
    let sequence = read_for_runtime(&bytes);
    let kinds: Vec<&str> = sequence.operators().iter().map(|operator| &*operator.kind).collect();
    assert_eq!(kinds, expected);
}
