//! The promises of the ONNX importer, on graphs of a few operators each.

use std::fmt::Write as _;

use crate::{
    onnx_text::{OPSET, describe, graph, model, one_operator, with_body},
    wire::field,
};
use memplan::{
    OpSequence, Planner,
    import::{
        ImportOptions, InPlace,
        onnx::{OnnxError, read},
    },
    sequence::{Dependency, Origin},
};
use rstest::rstest;
use rten_onnx::onnx::GraphProto;

fn import(text: &str) -> Result<OpSequence, OnnxError> {
    read(&model(graph(text), OPSET), &ImportOptions::default())
}

fn error(text: &str) -> String {
    import(text).unwrap_err().to_string()
}

fn described(text: &str) -> String {
    describe(&import(text).unwrap_or_else(|error| panic!("{error}")))
}

// Shapes.

/// Inputs as `f32[2]`, `=[1]` for a constant or `-` for an absent one; the bytes of each output.
#[rstest]
#[case("Conv", "f32[1,3,8,8] f32[4,3,3,3]", "", &[4 * 4 * 6 * 6])]
#[case("Conv", "f32[1,3,8,8] f32[4,3,3,3]", "pads=[1,1,1,1] strides=[2,2]", &[4 * 4 * 4 * 4])]
#[case("Conv", "f32[1,3,8,8] f32[4,3,3,3]", "dilations=[2,2]", &[4 * 4 * 4 * 4])]
#[case("Conv", "f32[1,3,9,9] f32[4,3,3,3]", "auto_pad='SAME_UPPER' strides=[2,2]", &[4 * 4 * 5 * 5])]
#[case("Conv", "f32[1,3,9,9] f32[4,3,3,3]", "auto_pad='VALID'", &[4 * 4 * 7 * 7])]
#[case("Conv", "f32[1,3,8] f32[4,3,3]", "", &[4 * 4 * 6])]
#[case("Conv", "f32[1,3,8,8,8] f32[4,3,3,3,3]", "", &[4 * 4 * 6 * 6 * 6])]
#[case("ConvTranspose", "f32[1,3,8,8] f32[3,4,2,2]", "strides=[2,2]", &[4 * 4 * 16 * 16])]
#[case("ConvTranspose", "f32[1,4,8] f32[4,4,3]", "group=2 output_shape=[20]", &[4 * 8 * 20])]
#[case("MaxPool", "f32[1,3,8,8]", "kernel_shape=[2,2] strides=[2,2]", &[4 * 3 * 16, 8 * 3 * 16])]
#[case("MaxPool", "f32[1,3,7,7]", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1", &[4 * 3 * 16])]
#[case("AveragePool", "f32[1,3,4,4,4]", "kernel_shape=[2,2,2]", &[4 * 3 * 27])]
#[case("GlobalAveragePool", "f32[1,3,8,8]", "", &[12])]
#[case("Gemm", "f32[2,3] f32[4,3] f32[4]", "transB=1", &[4 * 8])]
#[case("MatMul", "f32[5,1,2,3] f32[7,3,4]", "", &[4 * 5 * 7 * 8])]
#[case("MatMul", "f32[3] f32[3,4]", "", &[16])]
#[case("MatMul", "f32[2,3] f32[3]", "", &[8])]
#[case("MatMul", "f32[3] f32[3]", "", &[4])]
#[case("MatMul", "f32[3] f32[7,3,4]", "", &[4 * 7 * 4])]
#[case("com.microsoft/FusedMatMul", "f32[1,4,4] f32[4,1,6]", "transBatchB=1", &[4 * 24])]
#[case("com.microsoft/FusedMatMul", "f32[4,2,3] f32[2,4,5]", "transA=1 transBatchA=1", &[4 * 30])]
#[case("MaxPool", "f32[1,1,2]", "kernel_shape=[4] strides=[3]", &[4, 8])]
#[case("Einsum", "f32[2,3] f32[3,4]", "equation='ij,jk->ik'", &[32])]
#[case("Reshape", "f32[2,3,4] =[0,-1]", "", &[96])]
#[case("Flatten", "f32[2,3,4]", "axis=2", &[96])]
#[case("Transpose", "f32[2,3,4]", "perm=[2,0,1]", &[96])]
#[case("Squeeze", "f32[1,3,1]", "axes=[0]", &[12])]
#[case("Squeeze", "f32[1,3,1] =[0,-1]", "", &[12])]
#[case("Unsqueeze", "f32[3] =[0,-1]", "", &[12])]
#[case("Concat", "f32[2,3] f32[2,4]", "axis=-1", &[4 * 14])]
#[case("Slice", "f32[10,4] =[1] =[9223372036854775807] =[0]", "", &[4 * 36])]
#[case("Slice", "f32[10,4] =[-1] =[-9223372036854775807] =[0] =[-3]", "", &[4 * 16])]
#[case("Slice", "f32[10,4]", "starts=[2] ends=[-2] axes=[0]", &[4 * 24])]
#[case("Split", "f32[7,2]", "axis=0 num_outputs=2", &[4 * 8, 4 * 6])]
#[case("Split", "f32[7,2] =[1,6]", "", &[8, 48])]
#[case("Split", "f32[7,2]", "split=[1,6]", &[8, 48])]
#[case("Pad", "f32[2,2] =[1,0,1,0]", "", &[4 * 8])]
#[case("Pad", "f32[2,2]", "pads=[1,0,1,0]", &[4 * 8])]
#[case("Tile", "f32[2,2] =[3,1]", "", &[4 * 12])]
#[case("Expand", "f32[2,1] =[3,1,5]", "", &[4 * 30])]
#[case("Gather", "f32[5,4] i64[2,3]", "axis=1", &[4 * 30])]
#[case("GatherND", "f32[5,4,3] i64[2,1]", "", &[4 * 24])]
#[case("TopK", "f32[2,9] =[3]", "", &[24, 48])]
#[case("OneHot", "i64[4] =10 f32[2]", "", &[160])]
#[case("ArgMax", "f32[2,9]", "axis=1 keepdims=0", &[16])]
#[case("ReduceMean", "f32[2,3,4]", "axes=[1,2]", &[8])]
#[case("ReduceSum", "f32[2,3,4] =[-1]", "keepdims=0", &[24])]
#[case("ReduceSum", "f32[2,3,4]", "noop_with_empty_axes=1", &[96])]
#[case("Resize", "f32[1,1,4,4] - =[1.0,1.0,2.0,0.5]", "", &[4 * 16])]
#[case("Resize", "f32[1,1,4,4] - - =[1,1,7,5]", "", &[4 * 35])]
#[case("Upsample", "f32[1,1,4,4]", "scales=[1.0,1.0,2.0,2.0]", &[4 * 64])]
#[case("DepthToSpace", "f32[1,8,2,2]", "blocksize=2", &[128])]
#[case("SpaceToDepth", "f32[1,2,4,4]", "blocksize=2", &[128])]
#[case("LSTM", "f32[5,2,3] f32[1,16,3] f32[1,16,4]", "hidden_size=4", &[160, 32, 32])]
#[case("GRU", "f32[5,2,3] f32[2,12,3] f32[2,12,4]", "direction='bidirectional'", &[320, 64])]
#[case("LayerNormalization", "f16[2,3,4] f16[4]", "", &[48, 24, 24])]
#[case("BatchNormalization", "f32[1,3,2,2] f32[3] f32[3] f32[3] f32[3]", "", &[48])]
#[case("com.microsoft/MatMulNBits", "f32[2,64] u8[8,2,16]", "N=8", &[64])]
#[case("com.microsoft/SkipLayerNormalization", "f32[1,2,4] f32[1,2,4]", "", &[32])]
#[case("com.microsoft/MultiHeadAttention", "f32[1,2,8] f32[1,3,8] f32[1,3,8]", "num_heads=2", &[64])]
#[case("GridSample", "f32[1,2,4,4] f32[1,3,5,2]", "", &[120])]
#[case("AffineGrid", "f32[2,2,3] =[2,3,4,5]", "", &[4 * 2 * 4 * 5 * 2])]
#[case("AffineGrid", "f32[2,3,4] =[2,3,4,5,6]", "", &[4 * 2 * 4 * 5 * 6 * 3])]
#[case("CausalConvWithState", "f32[2,3,10] f32[3,1,4]", "", &[240, 4 * 2 * 3 * 3])]
#[case("CenterCropPad", "f32[20,10,3] =[10,7]", "axes=[0,1]", &[4 * 210])]
#[case("CenterCropPad", "f32[20,10] =[10,70]", "", &[2800])]
#[case("Col2Im", "f32[1,10,5] =[5,5] =[1,5]", "", &[4 * 2 * 25])]
#[case("CumProd", "f32[3,4] =1", "", &[48])]
#[case("Det", "f32[5,2,2]", "", &[20])]
#[case("Det", "f32[2,2]", "", &[4])]
#[case("MaxUnpool", "f32[1,1,2,2] i64[1,1,2,2]", "kernel_shape=[2,2] strides=[2,2]", &[64])]
#[case("MaxUnpool", "f32[1,1,2,2] i64[1,1,2,2] =[1,1,5,5]", "kernel_shape=[2,2]", &[100])]
#[case("LinearAttention", "f32[1,5,32] f32[1,5,16] f32[1,5,24]", "q_num_heads=4 kv_num_heads=2", &[960, 768])]
#[case("MelWeightMatrix", "=8 =16 =8192 f32[] f32[]", "", &[4 * 9 * 8])]
#[case("NegativeLogLikelihoodLoss", "f32[3,5,2] i64[3,2]", "", &[4])]
#[case("NegativeLogLikelihoodLoss", "f32[3,5,2] i64[3,2]", "reduction='none'", &[24])]
#[case("SoftmaxCrossEntropyLoss", "f32[3,5] i64[3]", "reduction='none'", &[12, 60])]
#[case("SwiGLU", "f32[3,5] f32[3,5]", "", &[60])]
#[case("TfIdfVectorizer", "i64[2,6]", "ngram_indexes=[0,1,2,6,3]", &[56])]
#[case("Attention", "f32[2,3,4,8] f32[2,3,6,8] f32[2,3,6,10]", "", &[960, 1152, 1440, 576])]
#[case("OptionalHasElement", "f32[9]", "", &[1])]
// Types.
#[case("BitCast", "f32[3]", "to=6", &[12])]
#[case("Cast", "f32[3]", "to=10", &[6])]
#[case("Equal", "f32[3] f32[3]", "", &[3])]
#[case("QuantizeLinear", "f32[3] f32[] i8[]", "", &[3])]
#[case("DequantizeLinear", "u8[3] f32[]", "", &[12])]
#[case("DynamicQuantizeLinear", "f32[3]", "", &[3, 4, 1])]
#[case("MatMulInteger", "u8[2,3] i8[3,4]", "", &[32])]
#[case("Where", "bool[3] f16[3] f16[1]", "", &[6])]
#[case("Identity", "i4[3]", "", &[2])]
#[case("Concat", "u4[3] u4[4]", "axis=0", &[4])]
fn shapes_and_types_are_inferred(
    #[case] kind: &str,
    #[case] inputs: &str,
    #[case] attributes: &str,
    #[case] bytes: &[u64],
) {
    let lines = one_operator(kind, inputs, attributes, bytes.len());
    let sequence = import(&lines).unwrap_or_else(|error| panic!("{error}"));
    let outputs = &sequence.operators()[0].outputs;
    let sizes: Vec<u64> = outputs.iter().map(|id| sequence.tensor(*id).size.unwrap()).collect();
    assert_eq!(sizes, bytes);
}

#[test]
fn shape_arithmetic_is_folded_away() {
    let text = "
        in x:f32[2,3,4]
        weight zero=0
        weight minus=[-1]
        s = Shape(x)
        n = Gather(s, zero) axis=0
        v = Unsqueeze(n) axes=[0]
        two = Add(v, v)
        half = Div(two, two)
        t = Concat(v, minus, half) axis=0
        y = Reshape(x, t)
        out y";
    assert_eq!(described(text), "y:96 = Reshape(x, t) of x+0");
}

#[test]
fn shapes_are_computed_in_floats_as_well() {
    let text = "
        in x:f32[1,1,5,5]
        weight scale=[1.0,1.0,1.5,1.5]
        s = Shape(x)
        f = Cast(s) to=1
        m = Mul(f, scale)
        d = Floor(m)
        t = Cast(d) to=7
        y = Resize(x, , , t)
        out y";
    assert_eq!(described(text), "y:196 = Resize(x, t)");
}

#[test]
fn sizes_beyond_32_bits_are_exact_or_refused() {
    let reshaped = "in x:f32[100000,100000]\ny = Flatten(x) axis=0";
    assert_eq!(described(reshaped), "y:40000000000 = Flatten(x) of x+0");
    let transposed = "in x:u8[5000000000,2]\ny = Transpose(x)";
    assert_eq!(described(transposed), "y:10000000000 = Transpose(x)");
    let pooled = "in x:u8[1,1,5000000000]\ny = AveragePool(x) kernel_shape=[2]";
    assert!(error(pooled).contains("--shape y=1x1xN\n"));
    let large = "in x:f32[4294967296,4294967296]";
    assert!(error(large).contains("2^64 bytes or more"));
}

// Declared shapes and symbolic sizes.

#[test]
fn declared_shapes_are_used_where_no_rule_applies() {
    let text = "
        in x:f32[2,3]
        info y:f16[7]
        y = some.domain/Mystery(x)
        out y";
    assert_eq!(described(text), "y:14 = Mystery(x)");
}

#[test]
fn symbolic_sizes_are_given_by_name() {
    let text = "
        in x:f32[batch,3]
        info y:f32[batch,rest]
        y = Relu(x)
        z = some.domain/Mystery(y)
        out z:f32[batch,5]";
    let bytes = model(graph(text), OPSET);
    let read_with =
        |dims: &[(&str, u64)]| read(&bytes, &ImportOptions::default().dims(dims.iter().copied()));
    let expected = "y:24 = Relu(x) over x\nz:40 = Mystery(y)";
    assert_eq!(describe(&read_with(&[("batch", 2)]).unwrap()), expected);
    assert_eq!(
        read_with(&[]).unwrap_err().to_string(),
        "a size is not known before the run; give the upper bound of each N, with\n  --dim batch=N\n  batch, dimension 0 of 'x', an input of the graph: the model leaves it open"
    );
    assert_eq!(
        read_with(&[("btach", 2)]).unwrap_err().to_string(),
        "no dimension of the model is called 'btach'; there are: batch, rest"
    );
}

#[test]
fn sizes_known_only_at_run_time_may_be_given_by_name() {
    let text = "in b:f32[1,6,4]\nin s:f32[1,1,6]\ninfo y:i64[found,3]\ny = NonMaxSuppression(b, s)";
    assert_eq!(described(text), "y:0 = NonMaxSuppression(b, s)");
    let options = ImportOptions::default().dims([("found", 10)]);
    let sequence = read(&model(graph(text), OPSET), &options).unwrap();
    assert_eq!(describe(&sequence), "y:0 = NonMaxSuppression(b, s)");
}

// Constants.

#[rstest]
#[case::initializers(
    "in x:f32[2]\nweight w:f32[2]\ny = Add(x, w)\nout y",
    "y:8 = Add(x, w) over x"
)]
#[case::constant_nodes(
    "in x:f32[2]\nc = Constant() value_floats=[1.0,2.0]\ny = Add(x, c)",
    "y:8 = Add(x, c) over x"
)]
#[case::computed_from_constants(
    "in x:f32[2]\nweight w:f32[2]\ne = Exp(w)\ny = Add(x, e)",
    "y:8 = Add(x, e) over x"
)]
#[case::the_shape_of_what_is_made(
    "in x:f32[2]\na = Relu(x)\ns = Shape(a)\ny = Cast(s) to=1\nz = Relu(a)",
    "a:8 = Relu(x) over x\nz:8 = Relu(a) over a"
)]
#[case::but_not_random_numbers("y = RandomNormal() shape=[4]\nout y", "y:16 = RandomNormal()")]
#[case::inputs_with_an_initializer(
    "in x:f32[2]\nin w:f32[2]\nweight w:f32[2]\ny = Add(w, x)",
    "y:8 = Add(w, x) over x"
)]
fn constants_take_no_memory(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(described(text), expected);
}

#[test]
fn a_constant_may_be_a_graph_output() {
    let sequence = import("in x:f32[2]\ns = Shape(x)\nout s").unwrap();
    assert!(sequence.operators().is_empty());
    assert_eq!(&*sequence.tensor(sequence.outputs()[0]).name, "s");
    assert_eq!(Planner::new().plan(&sequence).unwrap().pool_size(), 0);
}

#[test]
fn a_model_input_with_an_initializer_is_a_weight() {
    let sequence = import("in x:f32[2]\nin w:f32[2]\nweight w:f32[2]\ny = Add(w, x)").unwrap();
    let origins: Vec<_> = sequence.tensors().iter().map(|tensor| &tensor.origin).collect();
    assert!(matches!(origins[..], [Origin::Input, Origin::Weight, Origin::Output { .. }]));
}

// Views.

#[rstest]
#[case("f32[2,3]", "Reshape(x, s)", "s=[3,2]", "of x+0")]
#[case("f32[2,3]", "Flatten(x)", "s=0", "of x+0")]
#[case("f32[1,3]", "Squeeze(x)", "s=0", "of x+0")]
#[case("f32[2,3]", "Unsqueeze(x, s)", "s=[0]", "of x+0")]
#[case("f32[2,3]", "Identity(x)", "s=0", "of x+0")]
#[case("f32[2,3]", "Cast(x) to=1", "s=0", "of x+0")]
#[case("f32[2,3]", "Cast(x) to=6", "s=0", "over x")]
#[case("f32[2,3]", "Cast(x) to=10", "s=0", "")]
#[case("f32[2,3]", "Expand(x, s)", "s=[2,1]", "of x+0")]
#[case("f32[2,3]", "Expand(x, s)", "s=[1,2,3]", "")]
#[case("f32[2,3]", "Dropout(x)", "s=0", "of x+0")]
#[case("f32[2,1,3]", "Transpose(x) perm=[1,0,2]", "s=0", "of x+0")]
#[case("f32[2,1,3]", "Transpose(x) perm=[2,1,0]", "s=0", "")]
#[case("f32[6,2]", "Slice(x, s, e)", "s=[2]", "of x+16")]
#[case("f32[6,2]", "Slice(x, s, e, , t)", "s=[0]", "")]
#[case("f32[6,2]", "Slice(x, s, e, , t)", "s=[2]", "of x+16")]
#[case("f32[1,6,2]", "Slice(x) starts=[0,1] ends=[1,3] axes=[0,1]", "s=0", "of x+8")]
#[case("f32[4,6,2]", "Slice(x) starts=[3,1] ends=[4,3] axes=[0,1]", "s=0", "of x+152")]
#[case("f32[4,6,2]", "Slice(x) starts=[1] ends=[3] axes=[1]", "s=0", "")]
#[case("i4[6,2]", "Slice(x, s, e)", "s=[2]", "of x+2")]
#[case("i4[7]", "Slice(x) starts=[1] ends=[3] axes=[0]", "s=0", "")]
fn views_share_the_memory_of_their_input(
    #[case] input: &str,
    #[case] operator: &str,
    #[case] weight: &str,
    #[case] expected: &str,
) {
    let text = format!("in x:{input}\nweight {weight}\nweight e=[4]\nweight t=[2]\ny = {operator}");
    let described = described(&text);
    let suffix = described.split_once(')').unwrap().1.trim();
    assert_eq!(suffix, expected, "{described}");
}

#[rstest]
#[case("f32[5,2]", "axis=0", "y:24, z:16 = Split(x) of x+0 of x+24")]
#[case("f32[1,5,2]", "axis=1", "y:24, z:16 = Split(x) of x+0 of x+24")]
#[case("f32[2,5]", "axis=1", "y:24, z:16 = Split(x)")]
fn a_split_of_the_leading_dimension_is_views(
    #[case] input: &str,
    #[case] attributes: &str,
    #[case] expected: &str,
) {
    assert_eq!(described(&format!("in x:{input}\ny, z = Split(x) {attributes}")), expected);
}

#[test]
fn a_dropout_that_trains_makes_new_tensors() {
    let inference = "in x:f32[4]\ny, m = Dropout(x)\nout y\nout m";
    assert_eq!(described(inference), "y:16, m:4 = Dropout(x) of x+0");
    let unread_mask = "in x:f32[4]\ny, m = Dropout(x)\nout y";
    assert_eq!(described(unread_mask), "y:16 = Dropout(x) of x+0");
    let training = "in x:f32[4]\nweight r=0.5\nin t:bool[]\ny, m = Dropout(x, r, t)\nout y";
    assert_eq!(described(training), "y:16, m:4 = Dropout(x, r, t)");
}

// In place.

#[rstest]
#[case::unary("b:16 = Relu(a)", "over a")]
#[case::any_input("b:16 = Add(s, a)", "over a")]
#[case::all_in_order("b:16 = Add(a, x)", "over a over x")]
#[case::the_same_twice("b:16 = Mul(a, a)", "over a")]
#[case::broadcast("b:64 = Add(a, column)", "")]
#[case::smaller_elements("b:4 = Equal(a, x)", "")]
#[case::where_any("b:16 = Where(c, a, x)", "over a over x")]
#[case::slope("b:16 = PRelu(a, s)", "over a")]
#[case::clip("b:16 = Clip(a, s, s)", "over a")]
#[case::rows("b:16 = Softmax(a)", "over a")]
#[case::kernels_that_look_back("b:16 = Hardmax(a)", "")]
#[case::other_operators("b:16 = some.domain/Relu(a)", "")]
// Views of the same memory in another order.
#[case::part("b:16 = Add(a, first)", "")]
#[case::part_with_another("b:16 = Where(a, first, x)", "over x")]
// The kernels of these add further inputs to the result of the first two.
#[case::further_inputs("b:16 = Sum(s, x, a)", "over x")]
#[case::only_further_inputs("b:16 = Max(s, s, a)", "")]
#[case::a_further_input_again("b:16 = Mean(a, x, a)", "over x")]
#[case::renamed("b:16 = Add(a, same)", "over a over same")]
#[case::column_of_itself("b:64 = Add(a, tall)", "")]
#[case::square_of_views("b:4 = Add(first, last)", "")]
fn elementwise_operators_may_overwrite(#[case] operator: &str, #[case] expected: &str) {
    let (output, call) = operator.split_once(" = ").unwrap();
    let (name, _) = output.split_once(':').unwrap();
    let text = format!(
        "in x:f32[4]
        in s:f32[]
        in c:bool[4]
        in column:f32[4,1]
        weight i=[0]
        weight j=[1]
        weight k=[3]
        weight n=[4]
        weight up=[4,1]
        info b:{}
        a = Sin(x)
        first = Slice(a, i, j)
        last = Slice(a, k, n)
        same = Identity(a)
        tall = Reshape(a, up)
        {name} = {call}",
        match output {
            "b:64" => "f32[4,4]",
            "b:4" if call.starts_with("Equal") => "bool[4]",
            "b:4" => "f32[1]",
            _ => "f32[4]",
        }
    );
    let described = described(&text);
    let line = described.lines().last().unwrap();
    assert!(line.starts_with(output), "{line}");
    assert_eq!(line.split_once(')').unwrap().1.trim(), expected, "{line}");
}

/// Operators that read a row before they write over it, and the operands that have the shape of the
/// output; never a scale or a bias.
#[rstest]
#[case("LogSoftmax(a) axis=1", "over a")]
#[case("Softmax(a) axis=0", "over a")]
#[case("LpNormalization(a)", "over a")]
#[case("MeanVarianceNormalization(a)", "over a")]
#[case("LayerNormalization(a, row, row)", "over a")]
#[case("LayerNormalization(a, b) axis=0", "over a")]
#[case("RMSNormalization(a, row)", "over a")]
#[case("com.microsoft/SimplifiedLayerNormalization(a, row)", "over a")]
#[case("InstanceNormalization(a, row, row)", "over a")]
#[case("GroupNormalization(a, row, row) num_groups=2", "over a")]
#[case("com.microsoft/SkipLayerNormalization(a, b, row, row)", "over a over b")]
#[case("com.microsoft/SkipLayerNormalization(a, row, row, row)", "over a")]
#[case("com.microsoft/SkipLayerNormalization(a, same, row, row)", "over a over same")]
#[case("com.microsoft/QLinearSoftmax(q, s, z, s, z) opset=13", "over q")]
#[case("com.microsoft/QLinearAdd(q, s, z, r, s, z, s, z)", "over q over r")]
#[case("com.microsoft/QLinearSigmoid(q, s, z, s, z)", "over q")]
// The scale lies in the memory of the data.
#[case("LayerNormalization(a, a) axis=0", "")]
#[case("LayerNormalization(a, part)", "")]
#[case("com.microsoft/SkipLayerNormalization(a, b, part, row)", "over b")]
#[case("com.microsoft/SkipLayerNormalization(a, part, row, row)", "")]
// Kernels that read their input again, or neighbours of an element.
#[case("Hardmax(a)", "")]
#[case("LRN(a) size=3", "")]
#[case("CumSum(a, n)", "")]
#[case("com.microsoft/QuickGelu(a)", "")]
#[case("RotaryEmbedding(a, row, row)", "")]
fn row_wise_operators_may_overwrite(#[case] call: &str, #[case] expected: &str) {
    let text = format!(
        "in x:f32[2,4]
        in row:f32[4]
        in u:u8[2,4]
        in s:f32[]
        in z:u8[]
        weight n=0
        weight i=[0]
        weight j=[1]
        a = Sin(x)
        b = Cos(x)
        q = BitwiseNot(u)
        r = BitwiseNot(q)
        same = Identity(a)
        part = Slice(a, i, j, i)
        info y:{}[2,4]
        y = {call}",
        if call.contains("QLinear") { "u8" } else { "f32" }
    );
    let described = described(&text);
    let line = described.lines().find(|line| line.starts_with("y:")).unwrap();
    assert_eq!(line.rsplit_once(')').unwrap().1.trim(), expected, "{line}");
}

/// Statistics have memory of their own; the sum of the two operands is as large as each of them.
#[test]
fn the_other_outputs_of_a_normalization_are_their_own() {
    let text = "in x:f32[2,4]\nin w:f32[4]\na = Sin(x)\nb = Cos(x)\n";
    assert!(
        described(&format!("{text}y, m, d = LayerNormalization(a, w)"))
            .ends_with("y:32, m:8, d:8 = LayerNormalization(a, w) over a")
    );
    assert!(
        described(&format!("{text}y, , , t = com.microsoft/SkipLayerNormalization(a, b, w)"))
            .ends_with("y:32, t:32 = SkipLayerNormalization(a, b, w) over a over b over a over b")
    );
}

/// The caller states how the kernels work.
#[rstest]
#[case::none(InPlace::None, "", "a b c d e f")]
#[case::elementwise(InPlace::Elementwise, "", "a>x b>a c d e f>e")]
#[case::rows(InPlace::Rows, "", "a>x b>a c>b d e f>e")]
#[case::a_kernel_that_may(InPlace::None, "Relu elementwise", "a b c d e f>e")]
#[case::a_kernel_that_may_not(InPlace::Rows, "Relu none\nSoftmax none", "a>x b>a c d e f")]
#[case::kernels_that_memplan_does_not_trust(InPlace::Rows, "Hardmax rows", "a>x b>a c>b d>c e f>e")]
#[case::an_operator_of_ones_own(InPlace::None, "my.domain/Twice elementwise", "a b c d e>d f")]
fn a_profile_chooses(#[case] profile: InPlace, #[case] file: &str, #[case] expected: &str) {
    let text = "in x:f32[2,4]
        info e:f32[2,4]
        a = Sin(x)
        b = Cos(a)
        c = Softmax(b)
        d = Hardmax(c)
        e = my.domain/Twice(d)
        f = Relu(e)
        out f";
    let options = ImportOptions::default().inplace(profile).read_kernels(file).unwrap();
    let sequence = read(&model(graph(text), OPSET), &options).unwrap();
    let outputs = sequence.operators().iter().map(|operator| {
        let tensor = sequence.tensor(operator.outputs[0]);
        let mut text = tensor.name.to_string();
        if let Origin::Output { dependency: Dependency::Overwrites(over), .. } = &tensor.origin {
            for over in over {
                let _ = write!(text, ">{}", sequence.tensor(over.input).name);
            }
        }
        text
    });
    assert_eq!(outputs.collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn a_transposed_view_of_the_same_memory_is_not_overwritten() {
    let text = "
        in x:f32[2,2]
        weight flat=[4]
        weight square=[2,2]
        a = Sin(x)
        f = Reshape(a, flat)
        g = Reshape(f, square)
        t = Transpose(a)
        b = Add(a, g)
        c = Add(a, t)";
    let text = described(text);
    assert!(text.contains("b:16 = Add(a, g) over a over g"), "{text}");
    // A transpose has memory of its own.
    assert!(text.contains("c:16 = Add(a, t) over a over t"), "{text}");
}

#[test]
fn batch_normalization_is_in_place_unless_it_trains() {
    let text = |outputs: &str, attributes: &str| {
        let inputs = "in x:f32[1,2,2,2]\nin s:f32[2]";
        described(&format!("{inputs}\n{outputs} = BatchNormalization(x, s, s, s, s) {attributes}"))
    };
    assert_eq!(text("y", ""), "y:32 = BatchNormalization(x, s, s, s, s) over x");
    assert_eq!(
        text("y, m, v", "training_mode=1"),
        "y:32, m:8, v:8 = BatchNormalization(x, s, s, s, s)"
    );
}

/// Before opset 7 it trains unless `is_test` is set.
#[rstest]
#[case(6, "", "")]
#[case(6, "is_test=0", "")]
#[case(6, "is_test=1", " over x")]
#[case(7, "", " over x")]
fn an_old_batch_normalization_trains_by_default(
    #[case] opset: i64,
    #[case] attributes: &str,
    #[case] over: &str,
) {
    let text = format!(
        "in x:f32[1,2,2,2]\nin s:f32[2]\ny = BatchNormalization(x, s, s, s, s) {attributes}"
    );
    let sequence = read(&model(graph(&text), opset), &ImportOptions::default()).unwrap();
    assert_eq!(describe(&sequence), format!("y:32 = BatchNormalization(x, s, s, s, s){over}"));
}

/// Returns the log of reading a graph at the level `debug`.
fn told(graph: GraphProto, opset: i64) -> String {
    let (reader, writer) = std::io::pipe().unwrap();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(std::sync::Mutex::new(writer))
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        read(&model(graph, opset), &ImportOptions::default()).unwrap();
    });
    std::io::read_to_string(reader).unwrap()
}

#[test]
fn a_request_that_is_not_made_is_logged_with_its_reason() {
    let text = "
        in x:f32[4]
        weight i=[0]
        weight j=[1]
        a = Sin(x)
        first = Slice(a, i, j)
        b = Add(a, first)
        out b";
    let told_of = told(graph(text), OPSET);
    let line = told_of.lines().find(|line| line.contains("dropped")).unwrap();
    for part in [
        "operator=\"Add",
        "output=\"b\"",
        "input=\"a\"",
        "another input reads the same memory in another order",
    ] {
        assert!(line.contains(part), "{line}");
    }
    let text = "in x:f32[1,2,2,2]\nin s:f32[2]\ny = BatchNormalization(x, s, s, s, s)\nout y";
    assert!(told(graph(text), 6).contains("reason=in training, it reads its input again"));
}

/// The importer plans the body of a loop only for its size, and logs no plan.
#[test]
fn the_body_of_a_loop_is_not_logged_as_a_plan() {
    let body = "in i:i64[]\nin c:bool[]\nin s:f32[16]\nd = Identity(c)\nt = Exp(s)\nout d\nout t";
    let outer =
        with_body("in x:f32[16]\nweight n=3\ny = Loop(n, , x)\nout y", "Loop", &[("body", body)]);
    let told = told(outer, OPSET);
    assert!(told.contains("read an ONNX model"), "{told}");
    assert!(!told.contains("planned"), "{told}");
}

#[test]
fn old_operators_broadcast_by_attribute() {
    let text = "in x:f32[1,3,2,2]\nin b:f32[3]\ny = Add(x, b) axis=1 broadcast=1";
    let sequence = read(&model(graph(text), 6), &ImportOptions::default()).unwrap();
    assert_eq!(describe(&sequence), "y:48 = Add(x, b) over x");
}

// Sub-graphs.

fn import_graph(graph: GraphProto) -> Result<OpSequence, OnnxError> {
    read(&model(graph, OPSET), &ImportOptions::default())
}

#[test]
fn the_larger_branch_is_workspace_and_captured_tensors_are_read() {
    let outer = with_body(
        "in x:f32[16]\nin c:bool[]\na = Sin(x)\ny = If(c)\nz = Relu(y)\nout z",
        "If",
        &[
            ("then_branch", "t = Exp(a)\nout t"),
            ("else_branch", "e = Cos(a)\nf = Exp(e)\ng = Exp(f)\nout g"),
        ],
    );
    // Two of three chunks at once, 64 bytes each.
    assert_eq!(
        describe(&import_graph(outer).unwrap()),
        "a:64 = Sin(x) over x\ny:64 = If(c, a) workspace 128\nz:64 = Relu(y) over y"
    );
}

#[test]
fn only_the_branch_that_runs_counts() {
    let outer = with_body(
        "in x:f32[16]\nweight c=1\ny = If(c)\nout y",
        "If",
        &[("then_branch", "t = Exp(x)\nout t"), ("else_branch", "weight w=0\ne = Cos(w)\nout e")],
    );
    // `t` is made in `y`.
    assert_eq!(describe(&import_graph(outer).unwrap()), "y:64 = If(c, x)");
}

#[test]
fn a_loop_keeps_two_copies_of_its_state() {
    let outer = with_body(
        "in x:f32[16]\nweight n=3\ny, all = Loop(n, , x)\nout y\nout all",
        "Loop",
        &[(
            "body",
            "in i:i64[]\nin c:bool[]\nin s\nd = Identity(c)\nt = Exp(s)\nu = Abs(t)\nout d\nout t\nout u",
        )],
    );
    // State in, iteration number and condition in, all three outputs.
    assert_eq!(describe(&import_graph(outer).unwrap()), "y:64, all:192 = Loop(n, x) workspace 384");
}

#[test]
fn a_loop_of_unknown_length_cannot_collect() {
    let outer = with_body(
        "in x:f32[16]\nin n:i64[]\ny, all = Loop(n, , x)\nout y\nout all",
        "Loop",
        &[(
            "body",
            "in i:i64[]\nin c:bool[]\nin s\nd = Identity(c)\nt = Exp(s)\nout d\nout t\nout t",
        )],
    );
    let error = import_graph(outer).unwrap_err().to_string();
    assert!(error.contains("'all'") && error.contains("Loop"), "{error}");
}

#[test]
fn a_state_must_keep_its_shape() {
    let outer = with_body(
        "in x:f32[16]\nweight n=3\ny = Loop(n, , x)\nout y",
        "Loop",
        &[(
            "body",
            "in i:i64[]\nin c:bool[]\nin s\nd = Identity(c)\nt = Concat(s, s) axis=0\nout d\nout t",
        )],
    );
    let error = import_graph(outer).unwrap_err().to_string();
    assert!(error.contains("its shape changes from iteration to iteration"), "{error}");
}

#[test]
fn a_scan_takes_slices() {
    let outer = with_body(
        "in x:f32[16]\nin seq:f32[5,16]\ny, all = Scan(x, seq) num_scan_inputs=1\nout y\nout all",
        "Scan",
        &[("body", "in s\nin e\nt = Add(s, e)\nu = Abs(t)\nout t\nout u")],
    );
    assert_eq!(
        describe(&import_graph(outer).unwrap()),
        "y:64, all:320 = Scan(x, seq) workspace 256"
    );
}

/// `If` in `If` in `If`, each with one branch; no encoder recurses so deep.
fn nested(depth: usize) -> Vec<u8> {
    let mut graph = Vec::new();
    for _ in 0..depth {
        let attribute = [field(1, b"then_branch"), field(6, &graph)].concat();
        let node = [field(1, b"c"), field(2, b"y"), field(4, b"If"), field(5, &attribute)].concat();
        let output = field(12, &field(1, b"y"));
        graph = [field(1, &node), output].concat();
    }
    let scalar = field(2, &field(1, &[8, 9, 18, 0]));
    let input = field(11, &[field(1, b"c"), scalar].concat());
    field(7, &[graph, input].concat())
}

#[test]
fn sub_graphs_may_nest_deeply() {
    let error = read(&nested(60), &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("else_branch"), "{error}");
    assert!(matches!(
        read(&nested(10_000), &ImportOptions::default()),
        Err(OnnxError::TooDeep { limit: 64 })
    ));
}

// The model's own functions.

/// A function of the model, with operators given as their fields.
fn function(domain: &str, name: &str, inputs: &str, outputs: &str, nodes: &[Vec<u8>]) -> Vec<u8> {
    let names = |number, names: &str| -> Vec<u8> {
        names.split_whitespace().flat_map(|name| field(number, name.as_bytes())).collect()
    };
    let nodes: Vec<u8> = nodes.iter().flat_map(|node| field(7, node)).collect();
    let opset = field(9, &[16, 13]);
    let (name, domain) = (field(1, name.as_bytes()), field(10, domain.as_bytes()));
    field(25, &[name, names(4, inputs), names(5, outputs), nodes, opset, domain].concat())
}

fn call(kind: &str, domain: &str, inputs: &str, output: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let inputs = inputs.split_whitespace().flat_map(|name| field(1, name.as_bytes())).collect();
    let attributes = attributes.iter().flat_map(|attribute| field(5, attribute)).collect();
    let (output, kind) = (field(2, output.as_bytes()), field(4, kind.as_bytes()));
    [inputs, output, kind, field(7, domain.as_bytes()), attributes].concat()
}

/// An attribute that takes the value of an attribute of the function.
fn taken(name: &str, from: &str) -> Vec<u8> {
    [field(1, name.as_bytes()), field(21, from.as_bytes()), vec![0xa0, 1, 2]].concat()
}

/// The function's output has twice as many elements, unlike that of the operators of these names.
#[rstest]
#[case("Relu", "")]
#[case("Gelu", "com.microsoft")]
#[case("Concat2", "my")]
fn a_function_is_planned_as_its_body(#[case] name: &str, #[case] domain: &str) {
    let concat = call("Concat", "", "a a", "b", &[taken("axis", "at")]);
    let twice = function(domain, name, "a", "b", &[concat]);
    let kind = if domain.is_empty() { name.to_owned() } else { format!("{domain}/{name}") };
    let text = format!("in x:f32[4]\ny = {kind}(x) at=0\nz = {kind}(y) at=0\nw = Neg(z)\nout w");
    let bytes = [model(graph(&text), OPSET), twice].concat();
    let sequence = read(&bytes, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        describe(&sequence),
        "y:32 = Concat(x, x)\nz:64 = Concat(y, y)\nw:64 = Neg(z) over z"
    );
}

#[test]
fn functions_call_functions_and_pass_their_inputs_on() {
    let inner = function(
        "my",
        "Inner",
        "p q",
        "r p",
        &[call("Exp", "", "p", "t", &[]), call("Add", "", "t q", "r", &[])],
    );
    let outer = function(
        "my",
        "Outer",
        "a",
        "c",
        &[
            [call("Inner", "my", "a a", "b", &[]), field(2, b"same")].concat(),
            call("Mul", "", "b same", "c", &[]),
        ],
    );
    let text = "in x:f32[4]\ny = my/Outer(x)\nz = my/Outer(y)\nout z";
    let bytes = [model(graph(text), OPSET), inner, outer].concat();
    let sequence = read(&bytes, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let expected = "y::b::t:16 = Exp(x) over x\n\
        y::b:16 = Add(y::b::t, x) over y::b::t over x\n\
        y::same:16 = Identity(x) of x+0\n\
        y:16 = Mul(y::b, y::same) over y::b over y::same";
    let described = describe(&sequence);
    assert!(described.starts_with(expected), "{described}");
    assert_eq!(sequence.operators().len(), 8);
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let endless = function("my", "F", "a", "b", &[call("F", "my", "a", "b", &[])]);
    let bytes = [model(graph("in x:f32[4]\ny = my/F(x)\nout y"), OPSET), endless].concat();
    let error = read(&bytes, &ImportOptions::default()).unwrap_err();
    assert!(matches!(error, OnnxError::TooDeep { .. }), "{error}");
    let double = function(
        "my",
        "F",
        "a",
        "b",
        &[call("F", "my", "a", "c", &[]), call("F", "my", "c", "b", &[])],
    );
    let bytes = [model(graph("in x:f32[4]\ny = my/F(x)\nout y"), OPSET), double].concat();
    let error = read(&bytes, &ImportOptions::default()).unwrap_err();
    assert!(matches!(error, OnnxError::TooDeep { .. }), "{error}");
}

// Refused models.

#[rstest]
#[case::unknown_operator(
    "in x:f32[2]\ny = Mystery(x)",
    "a size is not known before the run; give the upper bound of each N, with\n  --shape y=SHAPE\nSHAPE is the largest size of each dimension, such as 1x128x768\n  the shape of 'y', made by operator Mystery (which makes 'y'): memplan does not know operators of type Mystery"
)]
#[case::a_wide_slope(
    "in x:f32[1,1,2,1]\nin s:f32[2,1,3]\ny = PRelu(x, s)\nout y",
    "operator PRelu (which makes 'y') cannot run: dimension 2 of 's' is 3, but dimension 3 of 'x' is 1; the first must be broadcast to the second: it must be equal or 1; the model itself states these sizes, so correct it there"
)]
#[case::another_number_of_elements(
    "in x:f32[3,4]\nweight s=[1,4]\ny = Reshape(x, s)\nout y",
    "operator Reshape (which makes 'y') cannot run: 'x' has 12 elements, but the number of elements of the shape that it requests is 4; both must be equal; the model itself states these sizes, so correct it there"
)]
#[case::maps(
    "in x:f32[2]\ny = ai.onnx.ml/ZipMap(x)",
    "tensor 'y', made by operator ZipMap (which makes 'y'), is a map, which has no fixed size; only dense tensors of numbers can be planned: remove that part from the model"
)]
#[case::unknown_tensors(
    "in x:f32[2]\ny = Add(x, z)",
    "operator 'Add (operator 0)' names tensor 'z', which no operator produces and which is not declared as input or weight"
)]
#[case::two_makers(
    "in x:f32[2]\ny = Abs(x)\ny = Exp(x)",
    "tensor 'y' is defined twice: by operator 'Abs (operator 0)' and by operator 'Exp (operator 1)'"
)]
#[case::cycles(
    "in x:f32[2]\ny = Add(x, z)\nz = Abs(y)",
    "the operators form a cycle: Abs (operator 1) -> Add (operator 0)"
)]
fn refusals_name_tensor_operator_and_remedy(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(error(text), expected);
}

/// Strings have no fixed size, so the runtime keeps them elsewhere.
#[test]
fn strings_take_no_memory_in_the_pool() {
    let text = "
        in x:str[n]
        in s:str[]
        y = StringConcat(x, s)
        parts, counts = StringSplit(y)
        m = RegexFullMatch(y) pattern='a+'
        out parts
        out m:bool[3]";
    let error = error(text);
    assert!(error.contains("--shape counts=N\n"), "{error}");
    assert_eq!(
        described(&text.replace("[n]", "[3]")),
        "y:0 = StringConcat(x, s)\nparts:0, counts:24 = StringSplit(y)\nm:3 = RegexFullMatch(y)"
    );
}

#[test]
fn types_without_a_size_are_refused() {
    const MAP: u8 = 5;
    let map = field(MAP, &[]);
    let value = [field(1, b"x"), field(2, &map)].concat();
    let graph = [field(11, &value), field(12, &field(1, b"x"))].concat();
    let error = read(&field(7, &graph), &ImportOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("tensor 'x', an input of the graph, is a map, an op"), "{error}");
}

#[test]
fn operators_may_come_in_any_order() {
    let text = "in x:f32[2]\nz = Abs(y)\ny = Exp(x)\nout z";
    assert_eq!(described(text), "y:8 = Exp(x) over x\nz:8 = Abs(y) over y");
}

#[test]
fn absent_outputs_are_not_tensors() {
    let text = "in x:f32[5,2,3]\nin w:f32[1,16,3]\nin r:f32[1,16,4]\n, h = LSTM(x, w, r)\nout h";
    assert_eq!(described(text), "h:32 = LSTM(x, w, r)");
}

#[rstest]
#[case(b"".to_vec())]
#[case(b"NOT AN ONNX MODEL".to_vec())]
#[case(b"{\"format\": \"memplan-sequence/1\"}".to_vec())]
#[case(vec![0xff; 64])]
#[case(vec![0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01])]
fn other_files_are_recognized(#[case] bytes: Vec<u8>) {
    let error = read(&bytes, &ImportOptions::default()).unwrap_err();
    assert!(matches!(error, OnnxError::NotOnnx { .. }), "{error}");
}

#[test]
fn damaged_models_never_panic() {
    let outer = with_body(
        "in x:f32[16]\nweight n=3\nweight w=[1.0]\ny, all = Loop(n, , x)\nz = Conv(x, y) pads=[1,1]\nout all",
        "Loop",
        &[(
            "body",
            "in i:i64[]\nin c:bool[]\nin s\nd = Identity(c)\nt = Exp(s)\nout d\nout t\nout t",
        )],
    );
    let bytes = model(outer, OPSET);
    for length in 0..bytes.len() {
        let _ = read(&bytes[..length], &ImportOptions::default());
    }
    for place in 0..bytes.len() {
        for change in [0x01, 0x7f, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= change;
            let _ = read(&damaged, &ImportOptions::default());
        }
    }
}

/// A small generator of numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

const KINDS: &str = "Add And Attention ArgMax AveragePool BatchNormalization Cast Clip Compress \
    Concat Constant ConstantOfShape Conv ConvTranspose DFT DepthToSpace DequantizeLinear Div Dropout Einsum \
    Expand Flatten GRU Gather GatherElements GatherND Gemm GlobalMaxPool GridSample If LSTM \
    LayerNormalization Loop MatMul MaxPool Mod Mul Multinomial NonMaxSuppression OneHot PRelu Pad \
    Pow QLinearConv QLinearMatMul RandomNormal Range ReduceSum Reshape Resize RoiAlign STFT Scan \
    Shape Size Slice Softmax SpaceToDepth Split Squeeze Tile TopK Transpose Unsqueeze Upsample \
    Where com.microsoft/Attention com.microsoft/EmbedLayerNormalization \
    com.microsoft/GroupQueryAttention com.microsoft/MatMulNBits \
    com.microsoft/MultiHeadAttention com.microsoft/SkipLayerNormalization";

const ATTRIBUTES: &[&str] = &[
    "allowzero",
    "auto_pad",
    "axes",
    "axis",
    "batch_dims",
    "blocksize",
    "broadcast",
    "ceil_mode",
    "dilations",
    "ends",
    "end",
    "equation",
    "group",
    "inverse",
    "k",
    "keepdims",
    "kernel_shape",
    "kv_num_heads",
    "layout",
    "num_heads",
    "num_outputs",
    "num_scan_inputs",
    "onesided",
    "output_padding",
    "output_shape",
    "pads",
    "perm",
    "q_num_heads",
    "qkv_hidden_sizes",
    "sample_size",
    "scales",
    "shape",
    "split",
    "start",
    "starts",
    "strides",
    "to",
    "training_mode",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "7",
    "64",
    "2147483647",
    "-2147483648",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
];

/// Makes a list of numbers.
fn list(dice: &mut Dice) -> String {
    let numbers: Vec<&str> = (0..dice.roll(6)).map(|_| dice.pick(NUMBERS)).collect();
    format!("[{}]", numbers.join(","))
}

#[test]
fn hostile_operators_never_panic() {
    let kinds: Vec<&str> = KINDS.split_whitespace().collect();
    let sizes = ["0", "1", "2", "3", "8", "2147483647", "4294967296", "1000000007"];
    let types = ["f32", "i64", "i4", "bool", "f16"];
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut read_well = 0;
    for _ in 0..10_000 {
        let mut text = String::new();
        let mut names = Vec::new();
        for index in 0..dice.roll(6) {
            match dice.roll(4) {
                0 => writeln!(text, "weight i{index}={}", list(&mut dice)).unwrap(),
                1 => writeln!(text, "weight i{index}={}", dice.pick(NUMBERS)).unwrap(),
                _ => {
                    let sizes: Vec<&str> = (0..dice.roll(6)).map(|_| dice.pick(&sizes)).collect();
                    let element = dice.pick(&types);
                    writeln!(text, "in i{index}:{element}[{}]", sizes.join(",")).unwrap();
                }
            }
            names.push(if dice.roll(9) == 0 { String::new() } else { format!("i{index}") });
        }
        let mut attributes = String::new();
        for _ in 0..dice.roll(5) {
            let name = dice.pick(ATTRIBUTES);
            let value = match (name, dice.roll(2)) {
                ("auto_pad", _) => "'SAME_UPPER'".to_owned(),
                ("equation", 0) => "'...ij,jk'".to_owned(),
                ("equation", _) => "'i...j->...'".to_owned(),
                ("scales", _) => "[1.0,1e30,-2.5]".to_owned(),
                (_, 0) => list(&mut dice),
                _ => dice.pick(NUMBERS).to_owned(),
            };
            write!(attributes, "{name}={value} ").unwrap();
        }
        let kind = dice.pick(&kinds);
        writeln!(text, "a, b, c = {kind}({}) {attributes}", names.join(",")).unwrap();
        read_well += usize::from(import(&text).is_ok());
    }
    println!("{read_well}");
    assert!(read_well > 500, "{read_well}");
}
