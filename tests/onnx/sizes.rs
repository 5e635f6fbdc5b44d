//! Sizes of an ONNX model that are known only at run time, and shapes that it declares.

use crate::onnx_text::{OPSET, describe, graph, model, with_body};
use memplan::{
    OpSequence, Planner,
    import::{
        ImportOptions,
        onnx::{OnnxError, read, survey},
    },
    sequence::SizeBasis,
};
use rstest::rstest;
use rten_onnx::onnx::GraphProto;

fn read_graph(graph: GraphProto, options: &ImportOptions) -> Result<OpSequence, OnnxError> {
    read(&model(graph, OPSET), options)
}

fn read_text(text: &str, options: &ImportOptions) -> Result<OpSequence, OnnxError> {
    read_graph(graph(text), options)
}

fn error(text: &str) -> String {
    read_text(text, &ImportOptions::default()).unwrap_err().to_string()
}

/// `y:8` for a size that is exact, `y:<=8` for an upper bound, `y:=8` for one that is only
/// declared.
fn sizes(sequence: &OpSequence) -> String {
    let output = |id: &memplan::sequence::TensorId| {
        let tensor = sequence.tensor(*id);
        let sign = match tensor.basis {
            SizeBasis::AtMost => "<=",
            SizeBasis::Declared => "=",
            _ => "",
        };
        format!("{}:{sign}{}", tensor.name, tensor.size.unwrap())
    };
    let outputs = sequence.operators().iter().flat_map(|operator| &operator.outputs);
    outputs.map(output).collect::<Vec<_>>().join(" ")
}

fn sizes_of(text: &str) -> String {
    sizes(&read_text(text, &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}")))
}

// Sizes with a bound.

#[rstest]
#[case::non_zero("in x:f32[3,4]\ny = NonZero(x)", "y:<=192")]
#[case::non_zero_of_a_scalar("in x:f32[]\ny = NonZero(x)", "y:<=8")]
#[case::suppression(
    "in b:f32[2,50,4]\nin s:f32[2,3,50]\nweight n=[7]\ny = NonMaxSuppression(b, s, n)",
    "y:<=1008"
)]
#[case::suppression_of_few(
    "in b:f32[1,5,4]\nin s:f32[1,1,5]\nweight n=[9223372036854775807]\ny = NonMaxSuppression(b, s, n)",
    "y:<=120"
)]
#[case::compress("in x:f32[3,4]\nin c:bool[2]\ny = Compress(x, c) axis=1", "y:<=24")]
#[case::compress_all("in x:f32[3,4]\nin c:bool[9]\ny = Compress(x, c)", "y:<=36")]
#[case::unique("in x:f32[3,4]\na, b, c, d = Unique(x)", "a:<=48 b:<=96 c:<=96 d:<=96")]
#[case::unique_slices("in x:f32[3,4]\na = Unique(x) axis=1", "a:<=48")]
#[case::top_k("in x:f32[3,9]\nin k:i64[1]\ny, i = TopK(x, k)", "y:<=108 i:<=216")]
#[case::slices("in x:f32[9]\nin e:i64[1]\nweight s=[2]\ny = Slice(x, s, e)", "y:<=28")]
#[case::branches_of_a_sum(
    "in x:f32[9]\ni = NonZero(x)\nj = Transpose(i)\ny = Cast(j) to=1\nz = Concat(y, y) axis=0",
    "i:<=72 j:<=72 y:<=36 z:<=72"
)]
// Runtimes omit the dilation, and return less than the standard.
#[case::disputed_pool(
    "in x:f32[1,1,10]\ny = MaxPool(x) kernel_shape=[4] dilations=[2] auto_pad='SAME_UPPER'",
    "y:<=40"
)]
// The larger of two interpretations counts.
#[case::disputed_slice(
    "in x:f32[5]\nweight s=[3]\nweight e=[9223372036854775807]\nweight a=[0]\nweight p=[-1]\ny = Slice(x, s, e, a, p)\nz = Neg(y)",
    "y:<=16 z:<=16"
)]
fn sizes_with_a_bound_are_planned_at_it(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(sizes_of(text), expected);
}

/// Shape arithmetic on bounds: equal sizes stay equal, and exact sizes stay exact.
#[test]
fn equal_sizes_stay_equal() {
    let text = "
        in x:f32[6]
        in w:f32[6,8]
        weight zero=0
        weight axis=[0]
        weight minus=[-1]
        i = NonZero(x)
        at = Squeeze(i, axis)
        rows = Gather(w, at) axis=0
        shape = Shape(rows)
        n = Gather(shape, zero)
        m = Unsqueeze(n, axis)
        target = Concat(m, minus) axis=0
        table = Reshape(rows, target)
        sum = Add(table, rows)
        top = ReduceMax(sum) axes=[0] keepdims=0";
    let sequence = read_text(text, &ImportOptions::default()).unwrap();
    assert!(sizes(&sequence).ends_with("table:<=192 sum:<=192 top:32"), "{}", sizes(&sequence));
    let described = describe(&sequence);
    assert!(described.contains("table:192 = Reshape(rows, target) of rows+0"), "{described}");
    assert!(described.contains("sum:192 = Add(table, rows) over"), "{described}");
    // The shape differs from run to run, so an operator computes it.
    assert!(described.contains("shape:16 = Shape(rows)"), "{described}");
}

/// Sizes that may differ at run time must not be taken for equal, although their bounds are.
#[test]
fn nothing_is_written_over_a_tensor_that_may_be_smaller() {
    let text = "in x:f32[6]\nin y:f32[6]\ni = NonZero(x)\nj = NonZero(y)\nz = Add(i, j)";
    let described = describe(&read_text(text, &ImportOptions::default()).unwrap());
    assert!(described.ends_with("z:48 = Add(i, j)"), "{described}");
}

/// A view whose offset depends on an open size has memory of its own.
#[test]
fn no_view_begins_at_an_open_offset() {
    let text = "
        in x:f32[6]
        weight zero=0
        weight one=[1]
        weight axis=[0]
        weight end=[1000]
        i = NonZero(x)
        j = Transpose(i)
        shape = Shape(j)
        n = Gather(shape, zero)
        m = Unsqueeze(n, axis)
        start = Sub(m, one)
        last = Slice(j, start, end, axis)
        first = Slice(j, axis, one, axis)";
    let described = describe(&read_text(text, &ImportOptions::default()).unwrap());
    let line = |name: &str| described.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(!line("last:").contains(" of "), "{described}");
    assert!(line("first:").contains(" of j+0"), "{described}");
}

/// A tensor that grows as an open size shrinks has no bound, so its size must be given.
#[rstest]
#[case::a_difference(
    "in x:f32[9]\nweight ten=[10]\ni = NonZero(x)\ns = Shape(i)\nweight a=[1]\nweight b=[2]\nn = Slice(s, a, b)\nd = Sub(ten, n)\ny = ConstantOfShape(d)"
)]
#[case::a_remainder(
    "in x:f32[12]\nweight seven=[7]\ni = NonZero(x)\ns = Shape(i)\nweight a=[1]\nweight b=[2]\nn = Slice(s, a, b)\nd = Mod(n, seven)\ny = ConstantOfShape(d)"
)]
fn a_size_without_a_bound_must_be_given(#[case] text: &str) {
    let message = error(text);
    assert!(message.contains("--shape y="), "{message}");
    let options = ImportOptions::default().shape("y", [Some(10)]);
    let sequence = read_text(text, &options).unwrap();
    assert!(sizes(&sequence).ends_with("y:<=40"), "{}", sizes(&sequence));
}

// Sizes that the user must give.

#[test]
fn one_error_lists_all_open_sizes() {
    let text = "
        in x:f32[batch,3,?]
        in r:i64[1]
        in k:i64[]
        info t:i64[rows]
        t = Tile(r, r)
        weight zero=0
        weight one=1
        u = Range(zero, k, one)
        v = Add(x, x)";
    assert_eq!(
        error(text),
        "4 sizes are not known before the run; give the upper bound of each N, with
  --dim batch=N,rows=N --shape 'x=?x3xN' --shape u=N
or give some of them, and one size for all others with --dim-default N
  batch, dimension 0 of 'x', an input of the graph: the model leaves it open
  dimension 2 of 'x', an input of the graph: the model leaves it open
  rows, dimension 0 of 't', made by operator Tile (which makes 't'): it depends on values that are known only at run time
  dimension 0 of 'u', made by operator Range (which makes 'u'): it depends on values that are known only at run time"
    );
}

#[test]
fn each_open_size_of_a_tensor_counts() {
    let message = error("in x:f32[?,3,?]\ny = Neg(x)");
    let expected =
        "2 sizes are not known before the run; give the upper bound of each of N, M, with
  --shape x=Nx3xM
or give some";
    assert!(message.starts_with(expected), "{message}");
}

#[rstest]
#[case::by_name(ImportOptions::default().dims([("found", 5)]), "y:<=40")]
#[case::by_shape(ImportOptions::default().shape("y", [Some(6)]), "y:<=48")]
#[case::by_default(ImportOptions::default().default_dim(7), "y:<=56")]
fn an_open_size_is_given(#[case] options: ImportOptions, #[case] expected: &str) {
    let text =
        "in k:i64[]\nweight zero=0\nweight one=1\ninfo y:i64[found]\ny = Range(zero, k, one)";
    assert_eq!(sizes(&read_text(text, &options).unwrap()), expected);
}

#[test]
fn given_sizes_never_exceed_a_bound() {
    let text = "in x:f32[3]\ninfo y:i64[1,found]\ny = NonZero(x)";
    let given = |found| ImportOptions::default().dims([("found", found)]);
    assert_eq!(sizes(&read_text(text, &given(2)).unwrap()), "y:<=16");
    assert_eq!(sizes(&read_text(text, &given(9)).unwrap()), "y:<=24");
}

#[test]
fn inputs_have_the_shapes_that_are_given() {
    let text = "in x:f32[?,3]\ny = Neg(x)";
    let shape = |shape: &[Option<u64>]| ImportOptions::default().shape("x", shape.to_vec());
    assert_eq!(sizes(&read_text(text, &shape(&[Some(2), None])).unwrap()), "y:24");
    let error = read_text(text, &shape(&[Some(2)])).unwrap_err().to_string();
    assert_eq!(error, "the shape given for 'x' is [2], but the model has [?, 3]");
    let options = ImportOptions::default().shape("z", [None]);
    let error = read_text(text, &options).unwrap_err().to_string();
    assert!(error.ends_with("is called 'z'; its input is 'x'"), "{error}");
}

// Sizes that the model declares.

#[rstest]
#[case::stale(
    "in x:f32[8,64]\ninfo a:f32[1,64]\na = Relu(x)\nz = Exp(a)",
    "a",
    "[1, 64]",
    "[8, 64]"
)]
#[case::stale_output("in x:f32[8,64]\na = Relu(x)\nout a:f32[1,64]", "a", "[1, 64]", "[8, 64]")]
#[case::other_rank("in x:f32[8]\ninfo a:f32[8,1]\na = Relu(x)", "a", "[8, 1]", "[8]")]
#[case::over_the_bound(
    "in x:f32[8]\ninfo a:i64[1,9]\na = NonZero(x)",
    "a",
    "[1, 9]",
    "at most [1, 8]"
)]
fn a_contradiction_is_refused_unless_one_side_is_trusted(
    #[case] text: &str,
    #[case] tensor: &str,
    #[case] declared: &str,
    #[case] inferred: &str,
) {
    let message = error(text);
    for part in [
        format!("declares tensor '{tensor}'"),
        format!("with shape {declared}"),
        format!("give {inferred};"),
        "--trust-inference".to_owned(),
        "--trust-declared".to_owned(),
    ] {
        assert!(message.contains(&part), "{message}");
    }
    let size = |options: ImportOptions| {
        let sequence = read_text(text, &options).unwrap();
        let tensor = sequence.tensors().iter().find(|of| &*of.name == tensor).unwrap();
        (tensor.size.unwrap(), tensor.basis)
    };
    let options = ImportOptions::default();
    let (declared, inferred) =
        (size(options.clone().trust_declared()), size(options.trust_inference()));
    assert_eq!(declared.1, SizeBasis::Declared);
    assert_ne!(inferred.1, SizeBasis::Declared);
}

#[test]
fn sizes_that_are_only_declared_are_marked() {
    let text = "in x:f32[2]\ninfo y:f32[4]\ny = Mystery(x)\nz = Neg(y)";
    assert_eq!(sizes_of(text), "y:=16 z:16");
}

// Sub-graphs.

const STEADY: &str = "in i:i64[]\nin c:bool[]\nin s\nd = Identity(c)";

#[test]
fn branches_of_different_sizes_are_planned_at_the_larger() {
    let branches: &[(&str, &str)] = &[
        ("then_branch", "a = Concat(x, x) axis=0\nout a:f32[N]"),
        ("else_branch", "b = Relu(x)\nout b:f32[M]"),
    ];
    let text = "in x:f32[64]\nin c:bool[]\ny = If(c)\nz = Neg(y)";
    let sequence = read_graph(with_body(text, "If", branches), &ImportOptions::default()).unwrap();
    assert_eq!(sizes(&sequence), "y:<=512 z:<=512");
    let text = "in x:f32[64]\nin c:bool[]\ninfo y:f32[64]\ny = If(c)\nz = Neg(y)";
    let error = read_graph(with_body(text, "If", branches), &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("with shape [64], but its inputs give [128]"));
}

/// A state that grows is never planned at its first size, whatever the body declares.
#[rstest]
#[case::undeclared("out t")]
#[case::declared("out t:f32[4]")]
fn a_state_that_grows_is_refused_or_given(#[case] output: &str) {
    let body = format!("{STEADY}\nt = Concat(s, s) axis=0\nout d\n{output}");
    let outer = || {
        with_body("in x:f32[4]\nweight n=3\ny = Loop(n, , x)\nout y", "Loop", &[("body", &body)])
    };
    let error = read_graph(outer(), &ImportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("--shape y=N") || error.contains("--trust-inference"), "{error}");
    let options = ImportOptions::default().shape("y", [Some(32)]).trust_inference();
    assert_eq!(sizes(&read_graph(outer(), &options).unwrap()), "y:<=128");
}

#[test]
fn a_state_that_settles_is_planned_at_its_largest() {
    let body = format!("{STEADY}\nt = Add(s, big)\nout d\nout t");
    let outer = with_body(
        "in x:f32[1]\nin big:f32[64]\nweight n=3\ny = Loop(n, , x)\nout y",
        "Loop",
        &[("body", &body)],
    );
    assert_eq!(sizes(&read_graph(outer, &ImportOptions::default()).unwrap()), "y:<=256");
}

#[test]
fn a_loop_that_may_stop_early_has_a_bound_on_its_output() {
    let body = "in i:i64[]\nin c:bool[]\nin s\nd = IsNaN(s)\nt = Exp(s)\nout d\nout t\nout t";
    let outer = with_body(
        "in x:f32[]\nweight n=5\ny, all = Loop(n, , x)\nout y\nout all",
        "Loop",
        &[("body", body)],
    );
    assert_eq!(sizes(&read_graph(outer, &ImportOptions::default()).unwrap()), "y:4 all:<=20");
}

// Whole models.

/// The head of a detection model without its weights: the boxes that are kept, the best of them,
/// and those above a threshold. No size is below that in ONNX Runtime, and exact sizes equal it.
#[test]
fn a_detection_model_is_planned_at_once() {
    let bytes = include_bytes!("../fixtures/detection.onnx");
    let sequence = read(bytes, &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        sizes(&sequence),
        "c1:8192 f:8192 s0:2048 b0:4096 s1:2048 scores:2048 b1:4096 b2:4096 boxes:4096 kept:<=960 \
         which:<=320 flat:4096 found:<=640 found_shape:16 number:8 number1:8 rows:16 table:<=640 \
         hidden:<=2560 active:<=2560 best:<=160 k:8 top:<=40 index:<=80 detections:<=160 sure:<=10 \
         sure_at:<=80"
    );
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(plan.tensors().iter().filter(|t| t.basis == SizeBasis::AtMost).count(), 12);
    let tighter = ImportOptions::default().dims([("found", 4), ("sure", 2)]);
    let sequence = read(bytes, &tighter).unwrap_or_else(|error| panic!("{error}"));
    assert!(sizes(&sequence).ends_with("detections:<=64 sure:<=10 sure_at:<=16"));
}

// Without all sizes.

/// A survey needs no sizes: it states those that it knows, and names the tensors of unknown size.
#[rstest]
#[case::symbol("in x:f32[batch,4]\ny = Relu(x)\nz = Exp(w)\nin w:f32[8]", "y:0 z:32", "y")]
#[case::half_known(
    "in x:f32[n,4]\ny = Reshape(x, s)\nweight s=[2,2]\nz = Relu(y)",
    "y:16 z:16",
    ""
)]
#[case::operator("in x:f32[4]\ny = Mystery(x)\nz = Relu(y)\nv = Relu(x)", "y:0 z:0 v:16", "y z")]
#[case::run("in x:f32[n]\ny = NonZero(x)\nz = Cast(y) to=1", "y:0 z:0", "y z")]
fn a_survey_lists_tensors_of_unknown_size(
    #[case] text: &str,
    #[case] expected: &str,
    #[case] unknown: &str,
) {
    let survey = survey(&model(graph(text), OPSET), &ImportOptions::default()).unwrap();
    assert_eq!(sizes(&survey.sequence), expected);
    assert_eq!(survey.unknown.into_iter().collect::<Vec<_>>().join(" "), unknown);
}

/// The branch of known size makes its result in the output of the condition, whose size is not known.
#[test]
fn a_survey_reads_a_condition_with_one_branch_of_unknown_size() {
    let text = "in x:f32[4]\nin c:bool[]\na = Sin(x)\ny = If(c)\nz = Relu(y)\nout z";
    let branches = [("then_branch", "t = Exp(a)\nout t"), ("else_branch", "e = Mystery(a)\nout e")];
    let model = model(with_body(text, "If", &branches), OPSET);
    let survey = survey(&model, &ImportOptions::default()).unwrap();
    assert!(survey.unknown.contains("y"), "{:?}", survey.unknown);
}

/// A value that a loop computes from a size known only at run time may grow with each iteration.
#[test]
fn the_value_of_a_state_is_not_that_of_the_first_iteration() {
    let body = "in i:i64[]\nin c:bool[]\nin s:i64[1]\nt = Add(s, s)\nd = Identity(c)\nout d\nout t";
    let text = "in x:f32[8]\nweight n=3\nz = NonZero(x)\nk = Shape(z) start=1\ny = Loop(n, , k)\nf = ConstantOfShape(y)\nout f";
    let error = read_graph(with_body(text, "Loop", &[("body", body)]), &ImportOptions::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("--shape f="), "{error}");
}

#[test]
fn a_declared_type_is_compared_with_the_inferred_one() {
    let text = "in x:f32[8]\ninfo y:f16[8]\ny = Relu(x)\nz = Cast(y) to=7\nout z:i64[8]";
    assert_eq!(
        error(text),
        "the model declares tensor 'y', made by operator Relu (which makes 'y'), with element type float16, but its inputs give float; run shape inference again, or choose: --trust-inference uses the second, --trust-declared the first"
    );
    let options = ImportOptions::default();
    for (options, expected) in
        [(options.clone().trust_inference(), "y:32 z:64"), (options.trust_declared(), "y:16 z:64")]
    {
        let sequence = read_text(text, &options).unwrap();
        assert_eq!(sizes(&sequence), expected);
    }
}

// Sequences: one run of memory, each tensor at a multiple of 64 bytes.

const TWO: &str = "in a:f32[2,3]\nin b:f32[5]\nin p:i64[]\ns = SequenceConstruct(a, b)\nweight one=1\nweight last=-1\n";

#[rstest]
#[case::element("y = SequenceAt(s, one)", "y:20 = SequenceAt(s, one) of s+64")]
#[case::last_element("y = SequenceAt(s, last)", "y:20 = SequenceAt(s, last) of s+64")]
#[case::copy("y = Identity(s)", "y:128 = Identity(s) of s+0")]
#[case::optional(
    "o = Optional(s)\ny = OptionalGetElement(o)",
    "o:128 = Optional(s) of s+0\ny:128 = OptionalGetElement(o) of o+0"
)]
#[case::erased("y = SequenceErase(s, last)", "y:64 = SequenceErase(s, last)")]
#[case::erased_at_the_end(
    "y = SequenceErase(s)\nz = SequenceAt(y, last)",
    "y:64 = SequenceErase(s)\nz:24 = SequenceAt(y, last) of y+0"
)]
#[case::inserted(
    "t = SequenceInsert(s, b, last)\ny = SequenceAt(t, last)\nz = SequenceAt(t, one)",
    "t:192 = SequenceInsert(s, b, last)\ny:20 = SequenceAt(t, last) of t+128\nz:20 = SequenceAt(t, one) of t+64"
)]
#[case::appended(
    "t = SequenceInsert(s, a)\ny = SequenceAt(t, last)",
    "t:192 = SequenceInsert(s, a)\ny:24 = SequenceAt(t, last) of t+128"
)]
#[case::length_is_known(
    "n = SequenceLength(s)\ny = ConstantOfShape(n)\nz = Add(y, b)",
    "z:20 = Add(y, b) over b"
)]
#[case::split(
    "t = SplitToSequence(a) axis=1\ny = SequenceAt(t, last)\nz = ConcatFromSequence(t) axis=1",
    "t:192 = SplitToSequence(a)\ny:8 = SequenceAt(t, last) of t+128\nz:24 = ConcatFromSequence(t)"
)]
#[case::split_into_rows(
    "t = SplitToSequence(a) keepdims=0\ny = SequenceAt(t, p)\nz = ConcatFromSequence(t) axis=-1 new_axis=1",
    "t:128 = SplitToSequence(a)\ny:12 = SequenceAt(t, p)\nz:24 = ConcatFromSequence(t)"
)]
#[case::split_by_number(
    "weight two=2\nt = SplitToSequence(b, two)\ny = SequenceAt(t, last)",
    "t:192 = SplitToSequence(b, two)\ny:4 = SequenceAt(t, last) of t+128"
)]
#[case::split_by_sizes(
    "weight sizes=[4,1]\nt = SplitToSequence(b, sizes)\ny = SequenceAt(t, last)",
    "t:128 = SplitToSequence(b, sizes)\ny:4 = SequenceAt(t, last) of t+64"
)]
fn a_sequence_of_known_sizes_is_planned(#[case] text: &str, #[case] expected: &str) {
    let sequence = read_text(&format!("{TWO}{text}"), &ImportOptions::default());
    let described = describe(&sequence.unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(described, format!("s:128 = SequenceConstruct(a, b)\n{expected}"));
}

#[rstest]
#[case::element("in c:f32[2]\ns = SequenceConstruct(b, c)\ny = SequenceAt(s, p)", "s:128 y:<=20")]
#[case::open_elements(
    "n = NonZero(b)\ns = SequenceConstruct(n, b)\nweight one=1\ny = SequenceAt(s, one)",
    "n:<=40 s:<=128 y:20"
)]
#[case::open_parts(
    "n = NonZero(b)\ns = SplitToSequence(n)\nweight zero=0\ny = SequenceAt(s, zero)",
    "n:<=40 s:<=64 y:<=40"
)]
fn a_sequence_of_open_sizes_is_planned_at_the_most(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(sizes_of(&format!("in b:f32[5]\nin p:i64[]\n{text}")), expected);
}

#[rstest]
#[case::elements_of_different_rank(
    "s = SequenceConstruct(a, b)\ny = SequenceAt(s, p)",
    "its tensors have different numbers of dimensions"
)]
#[case::erased_somewhere(
    "s = SequenceConstruct(a, b)\ny = SequenceErase(s, p)",
    "the sequence 'y', made by operator SequenceErase (which makes 'y'), cannot be planned: its tensors differ, and the position is known only at run time; a sequence is planned if the number and the sizes of its tensors are known"
)]
#[case::parts_of_unknown_size(
    "in n:i64[2]\ny = SplitToSequence(b, n)",
    "cannot be planned: the value of its input 'n' is unknown;"
)]
#[case::input(
    "in s:seq(f32[2,3])\ny = SequenceLength(s)",
    "the sequence 's', an input of the graph, cannot be planned: how many tensors it holds is known only at run time; give it with --shape s=NxAxB, for N tensors of A x B elements;"
)]
fn a_sequence_of_unknown_sizes_is_refused(#[case] text: &str, #[case] message: &str) {
    let error = error(&format!("in a:f32[2,3]\nin b:f32[5]\nin p:i64[]\n{text}"));
    assert!(error.contains(message), "{error}");
}

#[test]
fn the_length_of_a_sequence_is_given() {
    let text = "in s:seq(f32[2,k])\nin a:f32[4]\ny = SequenceInsert(s, a)\nz = SequenceErase(s)";
    let given = |shape: &[u64]| {
        let shape: Vec<Option<u64>> = shape.iter().copied().map(Some).collect();
        read_text(text, &ImportOptions::default().shape("s", shape))
    };
    assert_eq!(sizes(&given(&[3, 2, 9]).unwrap()), "y:448 z:256");
    assert!(given(&[3]).unwrap_err().to_string().contains("the size of one of its tensors"));
}

#[test]
fn a_sequence_that_grows_in_a_loop_is_refused() {
    let body = "in i:i64[]\nin c:bool[]\nin s:seq(f32[4])\nt = SequenceInsert(s, x)\nd = Identity(c)\nout d\nout t";
    let text = "in x:f32[4]\nweight n=3\ns = SequenceConstruct(x)\ny = Loop(n, , s)";
    let error = read_graph(with_body(text, "Loop", &[("body", body)]), &ImportOptions::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("with a sequence that grows from iteration to iteration"), "{error}");
}
