//! What the importer asks the user for, and what the user may state: sizes, shapes, element types and values.

use crate::onnx_text::{OPSET, describe, graph, model, with_body};
use memplan::{
    OpSequence,
    import::{
        ImportOptions,
        onnx::{OnnxError, read},
    },
    sequence::DimRange,
};
use rstest::rstest;
use rten_onnx::onnx::{GraphProto, TypeProto};

fn options() -> ImportOptions {
    ImportOptions::default()
}

fn read_text(text: &str, options: &ImportOptions) -> Result<OpSequence, OnnxError> {
    read(&model(graph(text), OPSET), options)
}

fn error(text: &str, options: &ImportOptions) -> String {
    read_text(text, options).unwrap_err().to_string()
}

fn described(text: &str, options: &ImportOptions) -> String {
    describe(&read_text(text, options).unwrap_or_else(|error| panic!("{error}")))
}

/// The second line of the error: the options to copy.
fn asked(text: &str) -> String {
    error(text, &options()).lines().nth(1).unwrap_or("").trim().to_owned()
}

// Inputs first.

const LONG_WINDOW: &str =
    "in x:f32[b,1,s]\nweight w:f32[4,1,320]\nweight t=[0,2,2,-1]\nweight a=[3]
    c = Conv(x, w)\nr = Reshape(c, t)\ny = Squeeze(r, a)\nout y";

#[rstest]
#[case::a_window_longer_than_any_guess(LONG_WINDOW, "--dim b=N,s=N")]
#[case::what_follows("in x:f32[n,3]\ny = NonZero(x)\nz = Transpose(y)\nout z", "--dim n=N")]
#[case::a_length("in x:f32[n]\ns = Shape(x)\nr = ConstantOfShape(s)\nout r", "--dim n=N")]
#[case::what_is_open_anyway(
    "in x:f32[n]\nk = Mystery(x)\ny = Relu(x)\nout y\nout k",
    "--dim n=N --shape k=SHAPE"
)]
#[case::blanks("in x:f32[a b]\ny = Relu(x)\nout y", "--dim 'a b=N'")]
#[case::a_dash("in x:f32[-a]\ny = Relu(x)\nout y", "--dim=-a=N")]
#[case::a_letter_for_each("in x:f32[?,4,?]\ny = Relu(x)\nout y", "--shape x=Nx4xM")]
#[case::an_open_and_a_named_size("in x:f32[n,?]\ny = Relu(x)\nout y", "--dim n=N --shape 'x=?xN'")]
fn the_inputs_are_asked_for_first(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(asked(text), expected);
}

#[test]
fn an_input_that_is_too_short_is_the_cause() {
    let error = error(LONG_WINDOW, &options().dims([("b", 1), ("s", 100)]));
    let expected = "operator Conv (which makes 'c') cannot run: dimension 2 of 'x' is 100, but dimension 2 of 'w' is 320; ";
    assert!(error.starts_with(expected) && error.ends_with("; give --dim s=320"), "{error}");
}

// Names that are none.

#[rstest]
#[case::marks("f32[1,*,*]", "--shape x=1xNxM")]
#[case::one_mark("f32[1,*]", "--shape x=1xN")]
#[case::words("f32[None,None]", "--shape x=NxM")]
#[case::one_word("f32[None,4]", "--dim None=N")]
fn two_unknown_sizes_are_two(#[case] of: &str, #[case] expected: &str) {
    assert_eq!(asked(&format!("in x:{of}\ny = Relu(x)\nout y:{of}")), expected);
}

#[test]
fn a_mark_has_no_size() {
    let text = "in x:f32[*,*]\ny = Relu(x)\nout y";
    let error = error(text, &options().dims([("*", 4)]));
    assert!(error.contains("it is no name"), "{error}");
    assert_eq!(described(text, &options().shape("x", [Some(2), Some(3)])), "y:24 = Relu(x) over x");
}

// Sizes that follow from others.

const PAST: &str =
    "in past:f32[p,4]\nin new:f32[s,4]\nin mask:f32[p + s]\nkeys = Concat(past, new) axis=0
    m = Relu(mask)\nout keys:f32[p + s,4]\nout m";

#[test]
fn a_size_follows_from_others() {
    assert_eq!(asked(PAST), "--dim p=N,s=N");
    let expected = "keys:144 = Concat(past, new)\nm:36 = Relu(mask) over mask";
    assert_eq!(described(PAST, &options().dims([("p", 7), ("s", 2)])), expected);
    assert_eq!(described(PAST, &options().dims([("p", 7), ("s", 2), ("p + s", 9)])), expected);
    let wrong = error(PAST, &options().dims([("p", 7), ("s", 2), ("p + s", 10)]));
    assert_eq!(
        wrong,
        "the size 'p + s' follows from the others and is 9, but --dim gives 10; omit it, or give other sizes"
    );
    // No whole number: then it is a name like any other.
    let half = "in x:f32[n]\nin y:f32[n/2]\nz = Relu(y)\nout z\nw = Relu(x)\nout w";
    assert!(error(half, &options().dims([("n", 3)])).contains("--dim n/2=N"));
    assert!(read_text(half, &options().dims([("n", 4)])).is_ok());
}

#[test]
fn a_range_follows_from_others() {
    let range = |least, most| DimRange::from(least..=most);
    let ranges = options().dims([("p", range(0, 7)), ("s", range(1, 2)), ("p + s", range(1, 9))]);
    let sequence = read_text(PAST, &ranges).unwrap();
    assert_eq!(describe(&sequence).lines().next().unwrap(), "keys:144 = Concat(past, new)");
    let dims: Vec<&str> = sequence.dims().keys().map(|name| &**name).collect();
    assert_eq!(dims, ["p", "s"]);
    let narrow = options().dims([("p", range(1, 7)), ("s", range(1, 2)), ("p + s", range(2, 8))]);
    let survey = memplan::import::onnx::survey(&model(graph(PAST), OPSET), &narrow).unwrap();
    assert!(survey.impossible.unwrap().contains("with 1 of the 14 combinations"));
}

// Declarations that state nothing.

/// A graph whose result has a type without contents.
fn untyped(text: &str) -> GraphProto {
    let mut graph = graph(text);
    graph.output[0].r#type = Some(TypeProto { tensor_type: None, sequence: None });
    graph
}

#[test]
fn a_result_without_a_type_is_unknown() {
    let text = "in x:f32[n,3]\nin c:bool[]\ny = If(c)\nz = Relu(y)\nout z";
    let mut outer = with_body(text, "If", &[("then_branch", "a = Neg(x)\nout a")]);
    let other = with_body(text, "If", &[("then_branch", "b = Relu(x)\nout b")]);
    let mut branch = other.node[0].attribute[0].clone();
    branch.name = Some("else_branch".to_owned());
    branch.g = Some(untyped("b = Relu(x)\nout b"));
    outer.node[0].attribute.push(branch);
    let bytes = model(outer, OPSET);
    let error = read(&bytes, &options()).unwrap_err().to_string();
    assert!(error.contains("--dim n=N"), "{error}");
    assert!(read(&bytes, &options().dims([("n", 2)])).is_ok());
}

#[test]
fn a_declared_number_is_no_evidence_for_a_matrix() {
    assert_eq!(
        described("in x:f32[2,4]\ny = Softmax(x)\nout y:f32[]", &options()),
        "y:32 = Softmax(x) over x"
    );
}

// Element types.

#[test]
fn an_element_type_can_be_stated() {
    let text = "in x:f32[4]\na = some.domain/Foo(x)\ny = Relu(a)\nout y";
    let shaped = || options().shape("a", [Some(8)]);
    assert_eq!(
        error(text, &shaped()),
        "the element type of tensor 'a', made by operator Foo (which makes 'a'), is unknown; give it with --type a=float"
    );
    let expected = "a:32 = Foo(x)\ny:32 = Relu(a) over a";
    assert_eq!(described(text, &shaped().element_type("a", "float")), expected);
    assert_eq!(described(text, &shaped().element_type("a", "float32")), expected);
    let wrong = error(text, &shaped().element_type("a", "flaot"));
    assert!(
        wrong.starts_with("the element type given for 'a' is flaot, but ONNX has the types float,"),
        "{wrong}"
    );
    let other = error(text, &shaped().element_type("x", "int8"));
    assert_eq!(other, "the element type given for 'x' is int8, but the model has float");
}

// Values.

const BY_RATE: &str =
    "in x:f32[1,1,8,8]\nin rate:i64[]\nweight k=16000\nc = Equal(rate, k)\ny = If(c)\nout y";
const BRANCHES: [(&str, &str); 2] = [
    ("then_branch", "a = Neg(x)\nout a"),
    ("else_branch", "weight s=[1]\nb = ReduceSum(x, s) keepdims=0\nout b"),
];

#[test]
fn a_value_decides_which_branch_runs() {
    let bytes = model(with_body(BY_RATE, "If", &BRANCHES), OPSET);
    assert_eq!(
        read(&bytes, &options()).unwrap_err().to_string(),
        "a size is not known before the run; give the value V of the input, with\n  --value rate=V\n  the shape of 'y', made by operator If (which makes 'y'): the value of 'rate' decides which branch runs"
    );
    // What lies inside a branch is not asked for.
    let inner = [("then_branch", "a = NonZero(x)\nl = Mystery(a)\nb = Neg(l)\nout b"), BRANCHES[1]];
    let inside = model(with_body(BY_RATE, "If", &inner), OPSET);
    let error = read(&inside, &options()).unwrap_err().to_string();
    assert_eq!(error.lines().nth(1), Some("  --value rate=V"), "{error}");
    // It is asked for together with the inputs.
    let open = BY_RATE.replace("x:f32[1,1,8,8]", "x:f32[n,1,8,8]");
    let error = read(&model(with_body(&open, "If", &BRANCHES), OPSET), &options()).unwrap_err();
    assert_eq!(error.to_string().lines().nth(1), Some("  --dim n=N --value rate=V"), "{error}");
    let shape = |rate: &str| {
        let sequence = read(&bytes, &options().value("rate", rate)).unwrap();
        sequence.tensor(sequence.tensor_id("y").unwrap()).shape().map(<[u64]>::len)
    };
    assert_eq!((shape("16000"), shape("8000")), (Some(4), Some(3)));
}

#[rstest]
#[case::a_list("[2,5]", "y:40 = ConstantOfShape(size)")]
#[case::without_brackets("2,5", "y:40 = ConstantOfShape(size)")]
fn a_value_is_a_shape(#[case] value: &str, #[case] expected: &str) {
    let text = "in size:i64[2]\ny = ConstantOfShape(size)\nz = Relu(y)\nin x:f32[2,5]\nw = Add(y, x)\nout w";
    let described = described(text, &options().value("size", value));
    assert!(!described.contains(expected), "it is known before the run: {described}");
    assert_eq!(described, "w:40 = Add(y, x) over x");
}

#[rstest]
#[case("rate", "fast", "a value is one number, or a short list, such as [1,2]")]
#[case("rate", "[1,2]", "the shape of the tensor is []")]
#[case("rate", "0.5", "the tensor has whole numbers")]
#[case("x", "1", "the shape of the tensor is [1, 1, 8, 8]")]
fn a_value_must_fit(#[case] tensor: &str, #[case] value: &str, #[case] why: &str) {
    let bytes = model(with_body(BY_RATE, "If", &BRANCHES), OPSET);
    let error = read(&bytes, &options().value(tensor, value)).unwrap_err().to_string();
    assert_eq!(error, format!("the value given for '{tensor}' is {value}, but {why}"));
}

#[test]
fn a_shape_in_another_file_is_named() {
    let text = "in x:f32[4,4]\nweight s:i64[2]\ny = Reshape(x, s)\nout y";
    let error = error(text, &options());
    assert!(
        error.contains("the value of its input 's' lies in external data ('another file')"),
        "{error}"
    );
    assert_eq!(described(text, &options().value("s", "[2,8]")), "y:64 = Reshape(x, s) of x+0");
}

/// A captcha reader returns `[1, seqlen]` by its own account, and `[20, 1, 8210]` in fact.
#[rstest]
#[case("out y:f32[1,seqlen]")]
#[case("out y:f32[]")]
#[case("info y:f32[?]\nout y")]
fn an_open_shape_of_another_rank_is_no_evidence(#[case] declared: &str) {
    let text = format!("in x:f32[20,1,64]\ny = Relu(x)\n{declared}");
    assert_eq!(described(&text, &options()), "y:5120 = Relu(x) over x");
    let text = "in x:f32[20,1,64]\ny = Relu(x)\nout y:f32[1,64]";
    assert!(error(text, &options()).contains("with shape [1, 64]"));
}
