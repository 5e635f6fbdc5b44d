//! Models in which two sizes exclude each other, so that no runtime can run them, and those that only look
//! like them. What is refused here is refused by ONNX Runtime, and what is accepted runs there.

use std::fmt::Write as _;

use crate::onnx_text::{OPSET, describe, graph, model, one_operator, with_body};
use memplan::{
    import::{
        ImportOptions,
        onnx::{OnnxError, read, read_with_nodes},
    },
    sequence::DimRange,
};
use rstest::rstest;

/// Inputs as `f32[2]`, `=[1]` for a constant or `-` for an absent one; both sizes, as the error names them.
#[rstest]
// Element by element.
#[case("Add", "f32[2,3] f32[2,4]", "", "dimension 1 of 'i0' is 3, but dimension 1 of 'i1' is 4")]
#[case("Mul", "f32[2,3] f32[3,3]", "", "dimension 0 of 'i0' is 2, but dimension 0 of 'i1' is 3")]
#[case("Equal", "f32[0,3] f32[2,3]", "", "dimension 0 of 'i0' is 0, but dimension 0 of 'i1' is 2")]
#[case(
    "Sum",
    "f32[1] f32[3,1] f32[2,1]",
    "",
    "dimension 0 of 'i1' is 3, but dimension 0 of 'i2' is 2"
)]
#[case(
    "Where",
    "bool[2] f32[3] f32[1]",
    "",
    "dimension 0 of 'i0' is 2, but dimension 0 of 'i1' is 3"
)]
#[case("Expand", "f32[2,3] =[2,4]", "", "dimension 1 of 'i0' is 3, but element 1 of 'i1' is 4")]
#[case("PRelu", "f32[2,3] f32[2]", "", "dimension 0 of 'i1' is 2, but dimension 1 of 'i0' is 3")]
#[case("Clip", "f32[4] f32[2]", "", "'i1' has 2 elements, but 1 is needed")]
#[case(
    "QuantizeLinear",
    "f32[2,3] f32[2] u8[2]",
    "",
    "dimension 1 of 'i0' is 3, but dimension 0 of 'i1' is 2"
)]
#[case(
    "DequantizeLinear",
    "u8[2,3] f32[3] u8[2]",
    "",
    "'i1' has 3 elements, but 'i2' has 2 elements"
)]
#[case(
    "com.microsoft/BiasGelu",
    "f32[2,3] f32[2]",
    "",
    "dimension 0 of 'i1' is 2, but dimension 1 of 'i0' is 3"
)]
// Layout.
#[case(
    "Concat",
    "f32[2,3] f32[2,4]",
    "axis=0",
    "dimension 1 of 'i0' is 3, but dimension 1 of 'i1' is 4"
)]
#[case("Concat", "f32[2,3] f32[2]", "axis=0", "'i0' has 2 dimensions, but 'i1' has 1 dimension")]
#[case("Concat", "f32[2,3] f32[2,3]", "axis=2", "its axis is 2, but 'i0' has 2 dimensions")]
// No size is left open, so runtimes compare them before the run, though nothing is copied.
#[case(
    "Concat",
    "f32[0,2] f32[2,1]",
    "axis=1",
    "dimension 0 of 'i0' is 0, but dimension 0 of 'i1' is 2"
)]
#[case(
    "Reshape",
    "f32[2,3] =[4]",
    "",
    "'i0' has 6 elements, but the number of elements of the shape that it requests is 4"
)]
#[case(
    "Reshape",
    "f32[2,3] =[4,-1]",
    "",
    "'i0' has 6 elements, but the product of the sizes that it requests is 4"
)]
#[case("Reshape", "f32[2,3] =[3,2,0]", "", "element 2 of 'i1' is 0, but 'i0' has 2 dimensions")]
#[case("Flatten", "f32[2,3]", "axis=3", "its axis is 3, but 'i0' has 2 dimensions")]
#[case("Squeeze", "f32[2,3] =[0]", "", "dimension 0 of 'i0' is 2, but 1 is needed")]
#[case("Unsqueeze", "f32[2,3] =[0,4]", "", "element 1 of 'i1' is 4, but 'i0' has 2 dimensions")]
#[case("Unsqueeze", "f32[2,3] =[0,-4]", "", "element 0 of 'i1' is 0, but element 1 of 'i1' is -4")]
#[case(
    "Transpose",
    "f32[2,3]",
    "perm=[0,1,2]",
    "the length of its perm is 3, but 'i0' has 2 dimensions"
)]
#[case("Tile", "f32[2,3] =[1]", "", "'i1' has 1 element, but 'i0' has 2 dimensions")]
#[case("Pad", "f32[2,3] =[1,1]", "", "'i1' has 2 elements, but 'i0' has 2 dimensions")]
#[case("Pad", "f32[2,3] =[0,0,-3,0]", "", "dimension 0 of 'i0' is 2, but element 2 of 'i1' is -3")]
#[case("Slice", "f32[2,3] =[0,0] =[1]", "", "'i1' has 2 elements, but 'i2' has 1 element")]
#[case("Slice", "f32[2,3] =[0] =[1] =[2]", "", "element 0 of 'i3' is 2, but 'i0' has 2 dimensions")]
#[case("Split", "f32[6] =[1,4]", "", "dimension 0 of 'i0' is 6, but the sum of its parts is 5")]
#[case("Split", "f32[6] =[1,2,3]", "", "'i1' has 3 elements, but the number of its outputs is 2")]
#[case("Split", "f32[7]", "", "dimension 0 of 'i0' is 7, but the number of its outputs is 2")]
#[case("Resize", "f32[1,1,4,4] - =[1.0,2.0]", "", "'i2' has 2 elements, but 'i0' has 4 dimensions")]
#[case(
    "DepthToSpace",
    "f32[1,6,2,2]",
    "blocksize=2",
    "dimension 1 of 'i0' is 6, but its blocksize is 2"
)]
#[case(
    "SpaceToDepth",
    "f32[1,1,4,5]",
    "blocksize=2",
    "dimension 3 of 'i0' is 5, but its blocksize is 2"
)]
#[case(
    "ReverseSequence",
    "f32[4,3,2] i64[2]",
    "",
    "dimension 1 of 'i0' is 3, but dimension 0 of 'i1' is 2"
)]
// Products.
#[case("MatMul", "f32[2,3] f32[4,5]", "", "dimension 1 of 'i0' is 3, but dimension 0 of 'i1' is 4")]
#[case(
    "MatMul",
    "f32[2,2,3] f32[3,3,4]",
    "",
    "dimension 0 of 'i0' is 2, but dimension 0 of 'i1' is 3"
)]
#[case("MatMul", "f32[2,3] f32[2]", "", "dimension 1 of 'i0' is 3, but dimension 0 of 'i1' is 2")]
#[case(
    "MatMulInteger",
    "u8[2,3] u8[2,3]",
    "",
    "dimension 1 of 'i0' is 3, but dimension 0 of 'i1' is 2"
)]
#[case(
    "QLinearMatMul",
    "u8[2,3] f32[] u8[] u8[4,5] f32[] u8[] f32[] u8[]",
    "",
    "dimension 1 of 'i0' is 3, but dimension 0 of 'i3' is 4"
)]
#[case(
    "com.microsoft/FusedMatMul",
    "f32[2,3] f32[3,4]",
    "transB=1",
    "dimension 1 of 'i0' is 3, but dimension 1 of 'i1' is 4"
)]
#[case(
    "Gemm",
    "f32[2,3] f32[3,4]",
    "transB=1",
    "dimension 1 of 'i0' is 3, but dimension 1 of 'i1' is 4"
)]
#[case(
    "Gemm",
    "f32[2,3] f32[3,4] f32[2]",
    "",
    "dimension 0 of 'i2' is 2, but dimension 1 of 'i1' is 4"
)]
#[case("Gemm", "f32[2,3,1] f32[3,4]", "", "'i0' has 3 dimensions, but 2 is needed")]
#[case(
    "Einsum",
    "f32[2,3] f32[4,5]",
    "equation='ij,jk->ik'",
    "dimension 1 of 'i0' is 3, but dimension 0 of 'i1' is 4"
)]
#[case("Det", "f32[2,3]", "", "dimension 1 of 'i0' is 3, but dimension 0 of 'i0' is 2")]
// Windows.
#[case(
    "Conv",
    "f32[1,3,8,8] f32[4,2,3,3]",
    "",
    "dimension 1 of 'i0' is 3, but dimension 1 of 'i1' is 2"
)]
#[case(
    "Conv",
    "f32[1,4,8,8] f32[3,2,3,3]",
    "group=2",
    "dimension 0 of 'i1' is 3, but its group is 2"
)]
#[case(
    "Conv",
    "f32[1,3,8,8] f32[4,3,3,3] f32[3]",
    "",
    "dimension 0 of 'i1' is 4, but dimension 0 of 'i2' is 3"
)]
#[case(
    "Conv",
    "f32[1,3,8,8] f32[4,3,3,3]",
    "kernel_shape=[3,5]",
    "number 1 of its kernel_shape is 5, but dimension 3 of 'i1' is 3"
)]
#[case(
    "Conv",
    "f32[1,3,8,2] f32[4,3,3,3]",
    "",
    "dimension 3 of 'i0' is 2, but dimension 3 of 'i1' is 3"
)]
#[case("Conv", "f32[1,3,8,8] f32[4,3,3]", "", "'i0' has 4 dimensions, but 'i1' has 3 dimensions")]
#[case(
    "ConvTranspose",
    "f32[1,3,8] f32[4,3,3]",
    "",
    "dimension 1 of 'i0' is 3, but dimension 0 of 'i1' is 4"
)]
#[case(
    "MaxPool",
    "f32[1,3,1,8]",
    "kernel_shape=[3,3]",
    "dimension 2 of 'i0' is 1, but number 0 of its kernel_shape is 3"
)]
#[case(
    "MaxPool",
    "f32[1,3,8,8]",
    "kernel_shape=[3]",
    "the length of its kernel_shape is 1, but 2 is needed"
)]
#[case(
    "RoiAlign",
    "f32[1,3,8,8] f32[5,4] i64[4]",
    "",
    "dimension 0 of 'i2' is 4, but dimension 0 of 'i1' is 5"
)]
#[case(
    "GridSample",
    "f32[1,2,4,4] f32[2,3,5,2]",
    "",
    "dimension 0 of 'i0' is 1, but dimension 0 of 'i1' is 2"
)]
// Indices.
#[case("Gather", "f32[2,3] =[0,2]", "", "element 1 of 'i1' is 2, but dimension 0 of 'i0' is 2")]
#[case("GatherND", "f32[2,3] i64[4,3]", "", "dimension 1 of 'i1' is 3, but 'i0' has 2 dimensions")]
#[case("GatherElements", "f32[2,3] i64[2]", "", "'i0' has 2 dimensions, but 'i1' has 1 dimension")]
#[case(
    "ScatterElements",
    "f32[2,3] i64[1,2] f32[1,3]",
    "",
    "dimension 1 of 'i1' is 2, but dimension 1 of 'i2' is 3"
)]
#[case(
    "ScatterND",
    "f32[2,3] i64[4,1] f32[4,2]",
    "",
    "dimension 1 of 'i0' is 3, but dimension 1 of 'i2' is 2"
)]
#[case("TopK", "f32[2,3] =[4]", "", "element 0 of 'i1' is 4, but dimension 1 of 'i0' is 3")]
#[case("Softmax", "f32[2,3]", "axis=2", "its axis is 2, but 'i0' has 2 dimensions")]
#[case(
    "ReduceMean",
    "f32[2,3]",
    "axes=[2]",
    "number 0 of its axes is 2, but 'i0' has 2 dimensions"
)]
#[case(
    "NegativeLogLikelihoodLoss",
    "f32[3,5,2] i64[3,4]",
    "",
    "dimension 1 of 'i1' is 4, but dimension 2 of 'i0' is 2"
)]
#[case("OneHot", "i64[2] =10 f32[3]", "", "dimension 0 of 'i2' is 3, but 2 is needed")]
#[case(
    "NonMaxSuppression",
    "f32[1,6,4] f32[1,2,5]",
    "",
    "dimension 2 of 'i1' is 5, but dimension 1 of 'i0' is 6"
)]
#[case("EyeLike", "f32[2,3,4]", "", "'i0' has 3 dimensions, but 2 is needed")]
#[case("Range", "=1 =5 =0", "", "element 0 of 'i2' is 0, but a number other than 0 is needed")]
// Layers.
#[case(
    "BatchNormalization",
    "f32[1,3,2] f32[3] f32[3] f32[4] f32[3]",
    "",
    "dimension 0 of 'i3' is 4, but dimension 1 of 'i0' is 3"
)]
#[case(
    "InstanceNormalization",
    "f32[1,3,2] f32[1] f32[3]",
    "",
    "dimension 0 of 'i1' is 1, but dimension 1 of 'i0' is 3"
)]
#[case(
    "LayerNormalization",
    "f32[2,3,4] f32[3]",
    "",
    "dimension 0 of 'i1' is 3, but dimension 2 of 'i0' is 4"
)]
#[case(
    "com.microsoft/SkipLayerNormalization",
    "f32[1,2,4] f32[1,2,4] f32[3]",
    "",
    "dimension 0 of 'i2' is 3, but dimension 2 of 'i0' is 4"
)]
#[case(
    "LSTM",
    "f32[5,2,3] f32[1,16,3] f32[1,16,5]",
    "",
    "dimension 2 of 'i2' is 5, but dimension 1 of 'i1' is 16"
)]
#[case(
    "GRU",
    "f32[5,2,3] f32[1,12,4] f32[1,12,4]",
    "",
    "dimension 2 of 'i1' is 4, but dimension 2 of 'i0' is 3"
)]
#[case(
    "RNN",
    "f32[5,2,3] f32[2,4,3] f32[2,4,4]",
    "",
    "dimension 0 of 'i1' is 2, but the number of its directions is 1"
)]
#[case(
    "Attention",
    "f32[2,3,4,8] f32[2,3,6,7] f32[2,3,6,10]",
    "",
    "dimension 3 of 'i1' is 7, but dimension 3 of 'i0' is 8"
)]
#[case(
    "com.microsoft/MultiHeadAttention",
    "f32[1,2,9] f32[1,3,9] f32[1,3,9]",
    "num_heads=2",
    "dimension 2 of 'i0' is 9, but its num_heads is 2"
)]
fn sizes_that_exclude_each_other_are_named(
    #[case] kind: &str,
    #[case] inputs: &str,
    #[case] attributes: &str,
    #[case] sizes: &str,
) {
    let outputs = if matches!(kind, "Split" | "TopK") { 2 } else { 1 };
    let text = one_operator(kind, inputs, attributes, outputs);
    let error = read(&model(graph(&text), OPSET), &ImportOptions::default()).unwrap_err();
    let kind = kind.rsplit('/').next().unwrap();
    let expected = format!("operator {kind} (which makes 'o0') cannot run: {sizes}; ");
    assert!(error.to_string().starts_with(&expected), "{error}");
}

/// Runtimes skip inputs without elements.
#[rstest]
#[case("x:f32[a,3] e:f32[b,1]", 0, &[("a", 2), ("b", 0)], 24)]
#[case("e:f32[b,1] x:f32[a,3]", 0, &[("a", 2), ("b", 0)], 24)]
#[case("x:f32[b,2] e:f32[2,a]", 1, &[("a", 1), ("b", 0)], 24)]
#[case("x:f32[a,3] e:f32[5,b]", 0, &[("a", 2), ("b", 0)], 84)]
#[case("x:f32[a,3] e:f32[a,b]", 1, &[("a", 2), ("b", 0)], 24)]
fn a_concatenation_skips_what_is_empty(
    #[case] inputs: &str,
    #[case] axis: i64,
    #[case] dims: &[(&str, u64)],
    #[case] bytes: u64,
) {
    let mut text = String::new();
    for input in inputs.split(' ') {
        writeln!(text, "in {input}").unwrap();
    }
    let names: Vec<&str> = inputs.split(' ').map(|input| &input[..1]).collect();
    write!(text, "y = Concat({}) axis={axis}\nout y", names.join(", ")).unwrap();
    let options = ImportOptions::default().dims(dims.iter().copied());
    let sequence = read(&model(graph(&text), OPSET), &options).unwrap();
    let expected = format!("y:{bytes} = Concat({})", names.join(", "));
    assert_eq!(describe(&sequence), expected);
}

const MASKED: &str = "
    in q:f32[1,4,seq,16]
    in k:f32[1,4,seq,16]
    in past:f32[1,4,past,16]
    in mask:f32[1,1,seq,total]
    keys = Concat(past, k) axis=2
    turned = Transpose(keys) perm=[0,1,3,2]
    scores = MatMul(q, turned)
    masked = Add(scores, mask)
    p = Softmax(masked)
    y = MatMul(p, keys)
    out y";

fn masked(dims: &[(&str, DimRange)]) -> Result<memplan::import::onnx::Survey, OnnxError> {
    let options = ImportOptions::default().dims(dims.iter().copied());
    read_with_nodes(&model(graph(MASKED), OPSET), &options)
}

/// The remedy is tried before it is offered.
#[test]
fn the_remedy_is_a_size_that_fits() {
    let dims = [("seq", 1.into()), ("past", 64.into()), ("total", 100.into())];
    let error = masked(&dims).unwrap_err().to_string();
    let expected = "operator Add (which makes 'masked') cannot run: dimension 3 of 'scores' is 65, but \
        dimension 3 of 'mask' is 100; sizes that are broadcast must be equal, or one of them 1; \
        give --dim past=99 or --dim seq=36 or --dim total=65";
    assert_eq!(error, expected);
    for (name, size) in [("past", 99), ("seq", 36), ("total", 65)] {
        let mut dims = dims;
        dims.iter_mut().filter(|(known, _)| *known == name).for_each(|dim| dim.1 = size.into());
        assert!(masked(&dims).is_ok());
    }
}

#[test]
fn a_model_that_states_wrong_sizes_is_to_be_corrected() {
    let text = "in x:f32[2,3]\nin w:f32[4,n]\ny = MatMul(x, w)\nout y";
    let options = ImportOptions::default().dims([("n", 5)]);
    let error = read(&model(graph(text), OPSET), &options).unwrap_err().to_string();
    assert!(
        error.ends_with("; the model itself states these sizes, so correct it there"),
        "{error}"
    );
    let options = options.shape("x", [Some(2), Some(3)]);
    let error = read(&model(graph(text), OPSET), &options).unwrap_err().to_string();
    assert!(error.ends_with("; check the shapes given with --shape"), "{error}");
}

/// One of the ranges follows from the others, which no range can state.
#[test]
fn ranges_leave_out_what_is_impossible_together() {
    let range = |least, most| DimRange::from(least..=most);
    let dims = [("seq", range(1, 4)), ("past", 64.into()), ("total", range(65, 68))];
    let survey = masked(&dims).unwrap();
    let impossible = survey.impossible.unwrap();
    for part in [
        "with 12 of the 16 combinations of sizes",
        "with seq=3,total=68, for example",
        "dimension 3 of 'scores' is 67, but dimension 3 of 'mask' is 68",
    ] {
        assert!(impossible.contains(part), "{impossible}");
    }
    let largest = masked(&[("seq", 4.into()), ("past", 64.into()), ("total", 68.into())]).unwrap();
    let sizes = |sequence: &memplan::OpSequence| -> Vec<Option<u64>> {
        sequence.tensors().iter().map(|tensor| tensor.size).collect()
    };
    assert_eq!(sizes(&survey.sequence), sizes(&largest.sequence));
    assert_eq!(largest.impossible, None);
}

/// The largest sizes may be impossible together.
#[test]
fn the_largest_shape_need_not_be_possible() {
    let text = "in x:f32[n,4]\nin w:f32[m,4]\nweight s=[4]\ny = Concat(x, w) axis=0\nz = Reshape(y, s)\nout z";
    let text = text.replace("s=[4]", "s=[4,4]");
    let options = ImportOptions::default().dims([("n", 1..=3), ("m", 1..=3)]);
    let survey = read_with_nodes(&model(graph(&text), OPSET), &options).unwrap();
    assert!(survey.impossible.unwrap().contains("with 6 of the 9 combinations"));
    assert!(describe(&survey.sequence).starts_with("y:64 = Concat(x, w)"));
}

#[test]
fn each_size_of_a_range_must_be_possible() {
    let range = |least, most| DimRange::from(least..=most);
    let dims = [("seq", range(1, 4)), ("past", 64.into()), ("total", range(65, 70))];
    let error = masked(&dims).unwrap_err().to_string();
    assert!(
        error.starts_with("with total=70: operator Add (which makes 'masked') cannot run"),
        "{error}"
    );
    assert!(
        error.ends_with("; narrow the range to the sizes for which the model is valid"),
        "{error}"
    );
    let dims = [("seq", range(1, 4)), ("past", 64.into()), ("total", 100.into())];
    let error = masked(&dims).unwrap_err().to_string();
    assert!(error.starts_with("with seq=4: "), "{error}");
}

/// The other sizes of a tensor may be known although one is found at run time.
#[test]
fn sizes_beside_open_ones_are_compared() {
    let text = "
        in x:f32[8]
        in w:f32[3,2]
        weight at=[1]
        weight one=[1]
        i = NonZero(x)
        s = Shape(i)
        found = Gather(s, at)
        t = Concat(found, one) axis=0
        rows = Reshape(i, t)
        y = MatMul(rows, w)
        out y";
    let error = read(&model(graph(text), OPSET), &ImportOptions::default()).unwrap_err();
    let expected = "operator MatMul (which makes 'y') cannot run: dimension 1 of 'rows' is 1, but \
        dimension 0 of 'w' is 3; ";
    assert!(error.to_string().starts_with(expected), "{error}");
    let text = text.replace("w:f32[3,2]", "w:f32[1,2]");
    assert!(read(&model(graph(&text), OPSET), &ImportOptions::default()).is_ok());
}

/// A branch may be made for other sizes, unless it is known to run; so may what nobody reads.
#[test]
fn only_what_runs_must_fit() {
    let wrong = "w = Add(x, z)\nout w:f32[2]";
    let right = "w = Relu(x)\nout w:f32[2]";
    let branches = |condition: &str| {
        let text = format!("in x:f32[2]\nin z:f32[3]\n{condition}\ny = If(c)\nout y:f32[2]");
        let bodies = [("then_branch", wrong), ("else_branch", right)];
        read(&model(with_body(&text, "If", &bodies), OPSET), &ImportOptions::default())
    };
    assert!(branches("in c:bool[]").is_ok());
    assert!(branches("weight c=0").is_ok());
    let error = branches("weight c=1").unwrap_err().to_string();
    assert!(error.starts_with("operator Add (which makes 'w') cannot run"), "{error}");
    let unread = "in x:f32[2]\nin z:f32[3]\nw = Add(x, z)\ny = Relu(x)\nout y";
    assert!(read(&model(graph(unread), OPSET), &ImportOptions::default()).is_ok());
}
