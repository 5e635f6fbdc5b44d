//! Models read for several sizes of a dimension: one plan holds for all of them.

use std::{cell::RefCell, collections::HashSet, fmt::Write, ops::RangeInclusive};

use crate::onnx_text::{OPSET, describe, graph, model, with_body};
use memplan::{
    OpSequence, Planner, Strategy,
    import::{ImportOptions, onnx::read},
    sequence::{Dependency, DimRange, Origin},
    verify::{copied_views, execute, verify, verify_smaller},
};
use rstest::rstest;
use rten_onnx::onnx::{Dimension, ModelProto, TensorProto};

type Ranges<'a> = &'a [(&'a str, RangeInclusive<u64>)];

/// All shapes in the ranges.
fn shapes(ranges: Ranges) -> Vec<Vec<(String, u64)>> {
    ranges.iter().fold(vec![Vec::new()], |shapes, (name, sizes)| {
        let with = |shape: &Vec<(String, u64)>, size| {
            let mut shape = shape.clone();
            shape.push(((*name).to_owned(), size));
            shape
        };
        shapes.iter().flat_map(|shape| sizes.clone().map(move |size| with(shape, size))).collect()
    })
}

/// Reads a model for all shapes and plans it with several strategies. Each plan must be right for each shape,
/// whose sequence is read by itself.
fn holds_for_all(bytes: &[u8], options: &ImportOptions, ranges: Ranges) -> OpSequence {
    let ranged = options.clone().dims(ranges.iter().cloned());
    let sequence = read(bytes, &ranged).unwrap_or_else(|error| panic!("{error}"));
    let strategies = [Strategy::Best, Strategy::FirstFit, Strategy::TfliteGreedyBySize];
    let plans = strategies.map(|strategy| {
        let plan = Planner::new().strategy(strategy).plan(&sequence).unwrap();
        assert_eq!(verify(&sequence, &plan), [], "{strategy}");
        assert_eq!(execute(&sequence, &plan), [], "{strategy}");
        assert_eq!(plan.dims(), sequence.dims());
        plan
    });
    for shape in shapes(ranges) {
        let exact = options.clone().dims(shape.iter().cloned());
        for plan in &plans {
            let copies = copied_views(&read(bytes, &exact).unwrap(), plan);
            let smaller = read(bytes, &exact.clone().copies(copies)).unwrap();
            assert_eq!(verify_smaller(&smaller, plan), [], "{shape:?}, {:?}", plan.strategy());
        }
    }
    sequence
}

/// The operators, as `describe` prints them, with the gathered inputs.
fn described(sequence: &OpSequence) -> String {
    let mut text = describe(sequence);
    for tensor in sequence.tensors() {
        if let Origin::Output { dependency: Dependency::Gathers(gathers), .. } = &tensor.origin {
            for gather in gathers {
                let input = &sequence.tensor(gather.input).name;
                write!(text, "\n{}+{} holds {input}", tensor.name, gather.offset).unwrap();
            }
        }
    }
    text
}

#[rstest]
#[case::chain(
    "in x:f32[n,4]\na = Relu(x)\nb = Flatten(a) axis=0\ny = Neg(b)\nout y",
    1..=6,
    "a:96 = Relu(x) over x\nb:96 = Flatten(a) of a+0\ny:96 = Neg(b) over b"
)]
// With one row, the other operand has the shape of the sum as well.
#[case::broadcast(
    "in x:f32[n,4]\nin w:f32[1,4]\na = Relu(x)\nb = Relu(w)\ny = Add(b, a)\nout y",
    1..=5,
    "a:80 = Relu(x) over x\nb:16 = Relu(w) over w\ny:80 = Add(b, a) over a"
)]
// The parts are runs of bytes for one row only.
#[case::split(
    "in x:f32[n,4]\na = Relu(x)\nb, c = Split(a) axis=1\ny = Add(b, c)\nout y",
    1..=4,
    "a:64 = Relu(x) over x\nb:32, c:32 = Split(a)\ny:32 = Add(b, c) over b over c"
)]
#[case::transpose(
    "in x:f32[n,4]\na = Relu(x)\nb = Transpose(a)\ny = Relu(b)\nout y",
    1..=4,
    "a:64 = Relu(x) over x\nb:64 = Transpose(a)\ny:64 = Relu(b) over b"
)]
#[case::expand(
    "in x:f32[1,4]\nin z:f32[n,4]\na = Relu(x)\ns = Shape(z)\ny = Expand(a, s)\nout y",
    1..=4,
    "a:16 = Relu(x) over x\ny:64 = Expand(a, s)"
)]
// The last rows begin at another place for each shape, the first rows do not.
#[case::slice(
    "in x:f32[n,4]\nweight b=[-2]\nweight e=[9999]\nweight o=[1]\nweight z=[0]\na = Relu(x)
    last = Slice(a, b, e, z)\nrest = Slice(a, o, e, z)\nc = Relu(last)\nd = Relu(rest)\nout c\nout d",
    2..=5,
    "a:80 = Relu(x) over x\nlast:32 = Slice(a, b, e, z)\nrest:64 = Slice(a, o, e, z) of a+16
c:32 = Relu(last) over last\nd:64 = Relu(rest) over rest"
)]
// Only the last part may have an open size.
#[case::gather(
    "in x:f32[n,4]\nin w:f32[3,4]\na = Relu(w)\nb = Exp(x)\nc = Exp(w)\ny = Concat(a, b, c) axis=0\nout y",
    1..=4,
    "a:48 = Relu(w) over w\nb:64 = Exp(x) over x\nc:48 = Exp(w) over w\ny:160 = Concat(a, b, c)
y+0 holds a\ny+48 holds b"
)]
// The parts of each row lie together for one row only.
#[case::gather_in_rows(
    "in x:f32[n,4]\na = Relu(x)\nb = Exp(x)\ny = Concat(a, b) axis=1\nout y",
    1..=4,
    "a:64 = Relu(x) over x\nb:64 = Exp(x) over x\ny:128 = Concat(a, b)"
)]
// A tensor may be largest for the smallest size.
#[case::the_rest(
    "in x:f32[n,4]\nin t:f32[9,4]\nweight e=[9999]\nweight z=[0]\nweight o=[1]\na = Relu(t)\ns = Shape(x)
    b = Slice(s, z, o)\nc = Slice(a, b, e, z)\ny = Relu(c)\nout y",
    2..=7,
    "a:144 = Relu(t) over t\nc:112 = Slice(a, b, e, z)\ny:112 = Relu(c) over c"
)]
// Runtimes disagree about some of the sizes, so the shape is known before the run for the others only.
#[case::known(
    "in x:f32[1,1,n]\na = MaxPool(x) kernel_shape=[4] dilations=[2] auto_pad='SAME_UPPER'\ns = Shape(a)
    y = Cast(s) to=1\nout y",
    1..=10,
    "a:40 = MaxPool(x)\ns:24 = Shape(a)\ny:12 = Cast(s)"
)]
fn one_plan_holds_for_all_sizes(
    #[case] text: &str,
    #[case] sizes: RangeInclusive<u64>,
    #[case] expected: &str,
) {
    let bytes = model(graph(text), OPSET);
    let sequence = holds_for_all(&bytes, &ImportOptions::default(), &[("n", sizes.clone())]);
    assert_eq!(described(&sequence), expected);
    assert_eq!(sequence.dims().get("n"), Some(&DimRange::from(sizes)));
}

/// With the largest sizes, both operands have the shape of the sum; with others, one is broadcast.
#[test]
fn a_request_must_be_legal_for_all_sizes() {
    let text = "in x:f32[n,4]\nin z:f32[m,4]\na = Relu(x)\nb = Relu(z)\ny = Add(a, b)\nout y";
    let bytes = model(graph(text), OPSET);
    let largest = read(&bytes, &ImportOptions::default().dims([("n", 2), ("m", 2)])).unwrap();
    assert!(described(&largest).ends_with("y:32 = Add(a, b) over a over b"));
    for (ranges, expected) in [
        ([("n", 1..=2), ("m", 1..=2)], "y:32 = Add(a, b)"),
        ([("n", 1..=2), ("m", 2..=2)], "y:32 = Add(a, b) over b"),
    ] {
        let sequence = holds_for_all(&bytes, &ImportOptions::default(), &ranges);
        assert!(described(&sequence).ends_with(expected), "{}", described(&sequence));
    }
}

/// Two dimensions, each with several sizes, and operators that run sequences.
#[test]
fn bodies_hold_for_all_sizes() {
    let text = "in x:f32[n,m,4]\nin c:bool[]\na = Relu(x)\ny = If(c)\nz = Relu(y)\nout z";
    let then = "b = Exp(a)\nw = Neg(b)\nout w";
    let otherwise =
        "b = Transpose(a) perm=[1,0,2]\nd = Relu(b)\nw = Transpose(d) perm=[1,0,2]\nout w";
    let bodies = [("then_branch", then), ("else_branch", otherwise)];
    let bytes = model(with_body(text, "If", &bodies), OPSET);
    let ranges = [("n", 1..=3), ("m", 1..=4)];
    let sequence = holds_for_all(&bytes, &ImportOptions::default(), &ranges);
    let is_view = |body: &OpSequence, name: &str| {
        let tensor = body.tensor(body.tensor_id(name).unwrap());
        matches!(&tensor.origin, Origin::Output { dependency: Dependency::Reads { .. }, .. })
    };
    let branch = &sequence.operators()[1].bodies[1];
    // A view only if one of the two sizes is 1.
    assert!(!is_view(branch, "b") && !is_view(branch, "w"));
}

/// The same model with the name `n` for the first dimension of its inputs, and with no other shapes. It
/// reshapes any number of images.
fn named(bytes: &[u8]) -> Vec<u8> {
    let mut model = ModelProto::parse_buf(bytes).unwrap();
    let graph = model.graph.as_mut().unwrap();
    graph.value_info.clear();
    let shapes: HashSet<String> = graph
        .node
        .iter()
        .filter(|node| node.op_type.as_deref() == Some("Reshape"))
        .filter_map(|node| node.input.get(1).cloned())
        .collect();
    let is_shape = |name: Option<&String>| name.is_some_and(|name| shapes.contains(name));
    for tensor in graph.initializer.iter_mut().filter(|tensor| is_shape(tensor.name.as_ref())) {
        open_first(tensor);
    }
    for node in graph.node.iter_mut().filter(|node| is_shape(node.output.first())) {
        node.attribute.iter_mut().filter_map(|value| value.t.as_mut()).for_each(open_first);
    }
    for output in &mut graph.output {
        output.r#type = None;
    }
    for input in &mut graph.input {
        let tensor = input.r#type.as_mut().and_then(|of| of.tensor_type.as_mut());
        let shape = tensor.and_then(|tensor| tensor.shape.as_mut());
        if let Some(first) = shape.and_then(|shape| shape.dim.first_mut()) {
            *first = Dimension { dim_value: None, dim_param: Some("n".to_owned()) };
        }
    }
    model.write_buf().unwrap()
}

/// Replaces a first size of 1 by -1, for what remains.
fn open_first(shape: &mut TensorProto) {
    let raw: Vec<u8> = shape.raw_data.take().map(RefCell::into_inner).unwrap_or_default();
    let sizes = raw.chunks_exact(8).map(|word| i64::from_le_bytes(word.try_into().unwrap()));
    shape.int64_data.extend(sizes);
    if shape.int64_data.first() == Some(&1) && !shape.int64_data.contains(&-1) {
        shape.int64_data[0] = -1;
    }
}

/// The options for the last model state what its own dimensions leave open.
#[rstest]
#[case::encoder("tests/models/encoder.onnx", &[("n", 1..=4)])]
#[case::heads("tests/models/heads.onnx", &[("n", 1..=4)])]
#[case::block_of_a_u_net("tests/models/unet_block.onnx", &[("n", 1..=4)])]
#[case::detection("tests/fixtures/detection.onnx", &[("n", 1..=4)])]
#[case::several("tests/fixtures/dynamic.onnx", &[("batch", 1..=3), ("height", 4..=7)])]
fn models_hold_for_all_sizes(#[case] path: &str, #[case] ranges: Ranges) {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).unwrap();
    if ranges.len() == 1 {
        holds_for_all(&named(&bytes), &ImportOptions::default(), ranges);
    } else {
        let options = ImportOptions::default().default_dim(8).shape("m", [Some(4), Some(4)]);
        holds_for_all(&bytes, &options, ranges);
    }
}

/// The bound of a range is that of its largest size.
#[rstest]
fn real_models_hold_for_all_sizes(
    #[values(
        "densenet121_b1",
        "efficientnet_b0_b1",
        "light_resnet50_noshapes",
        "inception_v3_b1",
        "light_squeezenet_noshapes",
        "mobilenet_v2_b1",
        "resnet50_b1",
        "vgg16_b1"
    )]
    name: &str,
) {
    let Some(path) = crate::common::shared_path(&format!("data/models/{name}.onnx")) else {
        return;
    };
    let named = named(&std::fs::read(path).unwrap());
    let sequence = holds_for_all(&named, &ImportOptions::default(), &[("n", 1..=3)]);
    let largest = read(&named, &ImportOptions::default().dims([("n", 3)])).unwrap();
    let bound = |sequence: &OpSequence| {
        Planner::new().strategy(Strategy::Naive).plan(sequence).unwrap().lower_bound()
    };
    assert_eq!(bound(&sequence), bound(&largest));
}

/// What is exported for one batch cannot run with another.
#[rstest]
#[case("bert_base_b1_s128", "with n=3: operator 'node_add_2' (Add) cannot run")]
#[case("vit_b_16_b1", "with n=3: operator 'node_cat' (Concat) cannot run")]
fn models_for_one_size_are_refused_for_others(#[case] name: &str, #[case] expected: &str) {
    let Some(path) = crate::common::shared_path(&format!("data/models/{name}.onnx")) else {
        return;
    };
    let named = named(&std::fs::read(path).unwrap());
    let error = read(&named, &ImportOptions::default().dims([("n", 1..=3)])).unwrap_err();
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(read(&named, &ImportOptions::default().dims([("n", 1)])).is_ok());
}

const ROWS: &str =
    "in x:f32[n,4]\nin y:f32[m,4]\nz = Concat(x, y) axis=0\ni = NonZero(z)\nout i:i64[2,found]";

#[rstest]
#[case::backwards(&[("n", RangeInclusive::new(5, 3))], "the sizes of 'n' begin at 5 and end at 3; give the smaller one first, as in n=3..5")]
#[case::unknown(&[("k", 1..=3)], "no dimension of the model is called 'k'; there are: found, m, n")]
#[case::found(&[("found", 1..=3)], "the model itself finds the size 'found' in each run, so it has only a largest size; give --dim found=3")]
#[case::too_many(&[("n", 1..=200), ("m", 1..=200)], "the ranges of sizes allow more than 16384 shapes, too many to check each for this model; narrow a range, or give a size exactly")]
#[case::endless(&[("n", 1..=1 << 40), ("m", 1..=1 << 40)], "the ranges of sizes allow more than 16384 shapes, too many to check each for this model; narrow a range, or give a size exactly")]
fn wrong_ranges_are_refused(#[case] ranges: Ranges, #[case] expected: &str) {
    let options = ImportOptions::default().default_dim(2).dims(ranges.iter().cloned());
    assert_eq!(read(&model(graph(ROWS), OPSET), &options).unwrap_err().to_string(), expected);
}

/// A model may be valid for some of the sizes only.
#[test]
fn every_size_must_be_valid() {
    let text = "in x:f32[n,4]\nweight b=[-2]\nweight e=[9999]\nweight z=[0]\nweight t=[2,4]
        l = Slice(x, b, e, z)\ny = Pad(l) pads=[-2,0,0,0]\nout y";
    let bytes = model(graph(text), 10);
    let read = |sizes: RangeInclusive<u64>| {
        read(&bytes, &ImportOptions::default().dims([("n", sizes)]))
            .map_err(|error| error.to_string())
    };
    assert!(read(2..=4).is_ok());
    let error = read(1..=4).unwrap_err();
    assert!(
        error.starts_with("with n=1: ") && error.ends_with("for which the model is valid"),
        "{error}"
    );
}
