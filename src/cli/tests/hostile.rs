//! Inputs that want to do harm: always a clear error with file and place, exit code 2 for bad input
//! and 1 for a bad plan; never a panic, never half a file.

mod command;
#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "../../../tests/common/wire.rs"]
mod wire;

use std::{
    fmt::Write as _,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use command::{Run, memplan, memplan_with, project};
use common::{properties, shared_path};
use memplan::{
    OpSequence, Operator, Output, Planner, Strategy,
    import::{Format, ImportOptions, read_input},
};
use rstest::rstest;
use tempfile::TempDir;
use wire::field;

const EXAMPLE: &str = "book/src/figures/example.json";

/// A folder with one file in it.
fn file(name: &str, text: impl AsRef<[u8]>) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

/// Asserts that input is rejected: exit code 2, nothing on standard output, one line that names the
/// file.
fn assert_refused(run: &Run, path: &str, message: &str) {
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    assert!(run.err.starts_with(&format!("memplan: {path}: ")), "{}", run.err);
    assert!(run.err.contains(message), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
}

/// Returns the next pseudo-random number.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// A model with an operator whose sub-graph has an operator whose sub-graph has ...
fn nested_model(levels: usize) -> Vec<u8> {
    let mut graph = Vec::new();
    for _ in 0..levels {
        let mut attribute = field(1, b"then_branch");
        attribute.extend(field(6, &graph));
        let mut node = field(4, b"If");
        node.extend(field(5, &attribute));
        graph = field(1, &node);
    }
    field(7, &graph)
}

/// x, relu(x), relu(relu(x)): every byte matters.
fn small_model() -> Vec<u8> {
    let dim = |size: u8| field(1, &[8, size]);
    let shape = field(2, &[dim(4), dim(8)].concat());
    let tensor = field(1, &[vec![8, 1], shape].concat());
    let value = |name: &[u8]| [field(1, name), field(2, &tensor)].concat();
    let relu = |from: &[u8], to: &[u8]| [field(1, from), field(2, to), field(4, b"Relu")].concat();
    let graph = [
        field(1, &relu(b"x", b"y")),
        field(1, &relu(b"y", b"z")),
        field(11, &value(b"x")),
        field(12, &value(b"z")),
    ]
    .concat();
    [vec![8, 8], field(8, &[16, 13]), field(7, &graph)].concat()
}

/// The available models, one of the project's own first.
fn models() -> Vec<Vec<u8>> {
    let mut models = vec![small_model()];
    for name in ["light_squeezenet_noshapes", "vgg16_b1", "bert_base_b1_s128"] {
        let path = shared_path(&format!("data/models/{name}.onnx"));
        models.extend(path.map(|path| fs::read(path).unwrap()));
    }
    models
}

#[test]
fn a_small_model_is_read() {
    assert!(read_input(&small_model(), Format::Onnx, &ImportOptions::default()).is_ok());
}

#[test]
fn truncated_models_are_refused_or_planned() {
    for model in models() {
        let stride = (model.len() / 200).max(1);
        for end in (0..model.len()).step_by(stride) {
            properties::bytes_are_read_or_refused(&model[..end], Format::Onnx);
        }
    }
    let model = small_model();
    let (_folder, path) = file("cut.onnx", &model[..model.len() - 9]);
    assert_refused(&memplan(&["plan", &path]), &path, "not an ONNX model, or a damaged one");
}

#[test]
fn models_with_flipped_bits_are_refused_or_planned() {
    let mut state = 1;
    for mut model in models() {
        let flips = if model.len() < 1_000 { model.len() * 8 } else { 300 };
        for flip in 0..flips {
            let bit = if flips == 300 { usize::try_from(next(&mut state)).unwrap() } else { flip };
            let bit = bit % (model.len() * 8);
            model[bit / 8] ^= 1 << (bit % 8);
            properties::bytes_are_read_or_refused(&model, Format::Onnx);
            model[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn ten_thousand_nested_sub_graphs_are_refused() {
    let (_folder, path) = file("deep.onnx", nested_model(10_000));
    assert_refused(&memplan(&["plan", &path]), &path, "nests deeper than");
}

/// An initializer with a packed list of numbers.
#[rstest]
#[case::eleven_bytes(&[0xff; 23], false)]
#[case::sixty_five_bits(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], false)]
#[case::cut(&[1, 0x80], false)]
#[case::largest(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], true)]
fn numbers_that_never_end_are_refused(#[case] numbers: &[u8], #[case] sound: bool) {
    let initializer = [vec![8, 2], field(5, numbers), field(8, b"w")].concat();
    let model = [small_model(), field(7, &field(5, &initializer))].concat();
    let (_folder, path) = file("numbers.onnx", model);
    let run = memplan(&["plan", &path]);
    if sound {
        assert!(!run.err.contains("the list of numbers"), "{}", run.err);
    } else {
        assert_refused(&run, &path, "ends in the middle of one, or holds one that is too long");
    }
}

#[rstest]
#[case::array("[", "]")]
#[case::object("{\"a\":", "}")]
#[case::in_an_unknown_key("{\"format\":\"memplan-problem/1\",\"x\":[", "]}")]
#[case::in_a_request(
    "{\"format\":\"memplan-sequence/1\",\"operators\":[{\"outputs\":[{\"overwrites\":[",
    "]"
)]
fn deep_json_is_refused(#[case] open: &str, #[case] close: &str) {
    let text = [open.repeat(100_000), close.repeat(100_000)].concat();
    let (_folder, path) = file("deep.json", text);
    assert_refused(&memplan(&["plan", &path]), &path, "at line 1 column");
}

fn problem(chunk: &str) -> String {
    format!("{{\"format\": \"memplan-problem/1\",\n\"chunks\": [{chunk}]}}")
}

#[rstest]
#[case::nan("NaN", "line 2 column")]
#[case::infinity("Infinity", "line 2 column")]
#[case::minus_infinity("-Infinity", "line 2 column")]
#[case::beyond_floats("1e999", "line 2 column")]
#[case::exponent("1e3", "line 2 column")]
#[case::whole_float("1.0", "line 2 column")]
#[case::minus_zero("-0", "line 2 column")]
#[case::hex("0x10", "line 2 column")]
#[case::leading_zero("010", "line 2 column")]
#[case::plus("+1", "line 2 column")]
#[case::too_large("18446744073709551616", "line 2 column")]
#[case::long(&"9".repeat(100_000), "line 2 column")]
#[case::text("\"1\"", "line 2 column")]
#[case::null("null", "line 2 column")]
fn numbers_that_are_none_are_refused(#[case] number: &str, #[case] message: &str) {
    let chunk = format!("{{\"id\": 0, \"begin\": 0, \"end\": 1, \"size\": {number}}}");
    let (_folder, path) = file("number.json", problem(&chunk));
    assert_refused(&memplan(&["plan", &path]), &path, message);
}

const HALF: u64 = 1 << 63;

#[test]
fn sums_that_wrap_are_refused_wherever_they_arise() {
    let chunk = |id: u64, size: u64| {
        format!("{{\"id\": {id}, \"begin\": {id}, \"end\": {}, \"size\": {size}}}", id + 1)
    };
    let two = problem(&format!("{},\n{}", chunk(0, HALF), chunk(1, HALF)));
    let csv = format!("id,lower,upper,size\n0,0,1,{HALF}\n1,1,2,{HALF}\n");
    let views = format!(
        r#"{{"format": "memplan-sequence/1", "inputs": [{{"name": "x", "size": 8}}], "operators": [
        {{"inputs": ["x"], "outputs": [{{"name": "y", "size": 8, "reads": {{"input": "x", "offset": {}}}}}]}}]}}"#,
        u64::MAX - 3,
    );
    let updates = views.replace("reads", "overwrites");
    let workspaces = r#"{"format": "memplan-sequence/1", "operators": [
        {"name": "a", "workspace": 9223372036854775808}, {"name": "b", "workspace": 9223372036854775808}]}"#;
    for (name, text, message) in [
        ("sum.json", two.as_str(), "add up to 2^64 bytes or more (at chunk '1'"),
        ("sum.csv", &csv, "add up to 2^64 bytes or more (at chunk '1'"),
        ("view.json", &views, "does not fit in 'x' (8 B)"),
        ("update.json", &updates, "does not fit over 'x' (8 B)"),
        ("workspace.json", workspaces, "add up to 2^64 bytes or more (at 'b'"),
    ] {
        let (_folder, path) = file(name, text);
        assert_refused(&memplan(&["plan", &path]), &path, message);
    }
    // A single such chunk is an ordinary chunk.
    let (_folder, path) = file("one.json", problem(&chunk(0, HALF)));
    for command in ["plan", "show", "explain"] {
        let run = memplan(&[command, &path]);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert!(run.out.contains("8.00 EiB"), "{}", run.out);
    }
    let run = memplan(&["plan", &path, "--padding", &u64::MAX.to_string()]);
    assert_refused(&run, &path, "add up to 2^64 bytes or more");
    let run = memplan(&["plan", &path, "--alignment", &HALF.to_string()]);
    assert_refused(&run, &path, "add up to 2^64 bytes or more");
}

#[test]
fn lives_that_never_end_are_planned_and_drawn() {
    let chunk = format!("{{\"id\": 0, \"begin\": 7, \"end\": {}, \"size\": 5}}", u64::MAX);
    let (_folder, path) = file("long.json", problem(&chunk));
    for command in ["plan", "show", "explain"] {
        let run = memplan(&[command, &path]);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
    }
}

#[test]
fn a_model_larger_than_memory_is_refused() {
    let dim = |size: u64| {
        let mut varint = vec![8];
        let mut rest = size;
        while rest >= 0x80 {
            varint.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        varint.push(u8::try_from(rest).unwrap());
        field(1, &varint)
    };
    let shape = field(2, &[dim(1 << 40), dim(1 << 40)].concat());
    let tensor = field(1, &[vec![8, 1], shape].concat());
    let value = |name: &[u8]| [field(1, name), field(2, &tensor)].concat();
    let relu = [field(1, b"x"), field(2, b"y"), field(4, b"Relu")].concat();
    let graph = [field(1, &relu), field(11, &value(b"x")), field(12, &value(b"y"))].concat();
    let model = [vec![8, 8], field(8, &[16, 13]), field(7, &graph)].concat();
    let (_folder, path) = file("large.onnx", model);
    assert_refused(&memplan(&["plan", &path]), &path, "has 2^64 bytes or more");
}

fn lines(count: u64) -> String {
    let mut text = String::from("id,lower,upper,size\n");
    for line in 0..count {
        let _ = writeln!(text, "{line},{line},{},{}", line + 1 + line % 5, 1 + line * 7919 % 4096);
    }
    text
}

#[test]
fn a_million_lines_are_read_and_a_bad_one_at_the_end_is_named() {
    let mut text = lines(1_000_000);
    let args = ["plan", "-", "--format", "csv", "--strategy", "pushdown"];
    let run = memplan_with(&args, None, &text);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("1000000 chunks"), "{}", run.out);
    text.push_str("last,0,1,-1\n");
    let run = memplan_with(&args, None, &text);
    assert_refused(&run, "standard input", "line 1000002, column 'size': '-1' is not");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "half a minute without optimization")]
fn ten_million_lines_are_read() {
    let text = lines(10_000_000);
    let args = ["plan", "-", "--format", "csv", "--strategy", "pushdown"];
    let run = memplan_with(&args, None, &text);
    assert!(run.out.contains("10000000 chunks"), "{}{}", run.out, run.err);
}

/// An operator on 10^5 tensors: time proportional to the product of inputs and outputs would seem
/// to hang the suite.
#[test]
fn an_operator_with_very_many_inputs_and_outputs_is_planned() {
    let mut sequence = OpSequence::builder();
    let mut all = Operator::new("all");
    for at in 0..100_000 {
        let (input, output) = (format!("x{at}"), format!("y{at}"));
        sequence.operator(Operator::new("").output(Output::new(&*input, 8)));
        let output = Output::new(output, 8);
        all = all.inputs([&*input]).output(match at % 2 {
            0 => output.overwrites(input),
            _ => output.reads(input),
        });
    }
    sequence.operator(all);
    let sequence = sequence.build().unwrap();
    let planner = Planner::new().strategy(Strategy::Pushdown);
    assert!(properties::is_planned_rightly(&sequence, &planner));
}

#[rstest]
#[case::tensor(r#"{"format": "memplan-sequence/1", "operators": [
    {"name": "a", "outputs": [{"name": "x", "size": 1}]}, {"name": "b", "outputs": [{"name": "x", "size": 1}]}]}"#,
    "tensor 'x' is defined twice: by operator 'a' and by operator 'b'")]
#[case::input(r#"{"format": "memplan-sequence/1", "inputs": [{"name": "x", "size": 1}, {"name": "x", "size": 1}], "operators": []}"#,
    "tensor 'x' is defined twice: by the list of inputs and by the list of inputs")]
#[case::id(
    r#"{"format": "memplan-problem/1", "chunks": [
    {"id": 7, "begin": 0, "end": 1, "size": 1}, {"id": 7, "begin": 0, "end": 1, "size": 1}]}"#,
    "two chunks have the id '7'"
)]
#[case::key(
    r#"{"format": "memplan-problem/1", "chunks": [], "chunks": []}"#,
    "duplicate field `chunks` at line 1"
)]
#[case::cycle(
    r#"{"format": "memplan-sequence/1", "operators": [
    {"name": "a", "inputs": ["y"], "outputs": [{"name": "x", "size": 1}]},
    {"name": "b", "inputs": ["x"], "outputs": [{"name": "y", "size": 1}]}]}"#,
    "the operators form a cycle: b -> a"
)]
#[case::own_output(
    r#"{"format": "memplan-sequence/1", "operators": [
    {"name": "a", "inputs": ["x"], "outputs": [{"name": "x", "size": 1}]}]}"#,
    "the operators form a cycle: a"
)]
#[case::links_in_a_circle(
    r#"{"format": "memplan-problem/1", "chunks": [
    {"id": 0, "begin": 0, "end": 1, "size": 1}, {"id": 1, "begin": 0, "end": 1, "size": 1}],
    "overwrites": [{"chunk": 0, "overwritten": 1, "offset": 0, "required": true},
    {"chunk": 1, "overwritten": 0, "offset": 0, "required": true}]}"#,
    "chunk '0' must overwrite '1', but that chunk does not come before it"
)]
fn what_contradicts_itself_is_refused(#[case] text: &str, #[case] message: &str) {
    let (_folder, path) = file("odd.json", text);
    assert_refused(&memplan(&["plan", &path]), &path, message);
}

/// Chunks and operators may share a name; their steps distinguish them.
#[test]
fn operators_of_one_name_are_verified() {
    let text = r#"{"format": "memplan-sequence/1", "operators": [
        {"name": "a", "outputs": [{"name": "a.workspace", "size": 9}], "workspace": 3},
        {"name": "a", "inputs": ["a.workspace"], "outputs": [{"name": "y", "size": 9}], "workspace": 4}]}"#;
    let (folder, path) = file("names.json", text);
    let plan = folder.path().join("plan.json").display().to_string();
    assert_eq!(memplan(&["plan", &path, "-o", &plan]).code, 0);
    let run = memplan(&["verify", "--execute", &path, &plan]);
    assert_eq!(run.code, 0, "{}", run.out);
}

/// Characters that a terminal interprets: colours, a bell, a title, text from right to left.
const COMMANDS: &str = r"\u001b[31mred\u0007\u009b2J\u001b]0;title\u0007\r\n\u202e";

#[test]
fn names_with_control_characters_are_spelled_out() {
    let text = format!(
        r#"{{"format": "memplan-sequence/1", "operators": [
        {{"name": "op{COMMANDS}", "outputs": [{{"name": "x{COMMANDS}", "size": 64}}]}},
        {{"name": "relu{COMMANDS}", "inputs": ["x{COMMANDS}"],
          "outputs": [{{"name": "y{COMMANDS}", "size": 64, "overwrites": {{"input": "x{COMMANDS}"}}}}]}},
        {{"name": "add{COMMANDS}", "inputs": ["y{COMMANDS}"], "outputs": [{{"name": "z{COMMANDS}", "size": 64}}]}}]}}"#
    );
    let (folder, path) = file("names.json", &text);
    let plan = folder.path().join("plan.json").display().to_string();
    let harmless = |run: &Run, code: i32| {
        assert_eq!(run.code, code, "{run:?}");
        for text in [&run.out, &run.err] {
            let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(bad), "{text:?}");
        }
    };
    let spelled = r"\u{1b}[31mred\u{7}\u{9b}2J\u{1b}]0;title\u{7}\r\n\u{202e}";
    for command in ["plan", "show", "explain"] {
        let run = memplan(&[command, &path]);
        harmless(&run, 0);
        // Long names are shortened in the middle.
        assert!(command == "plan" || run.out.contains(&spelled[..8]), "{}", run.out);
    }
    harmless(&memplan_with(&["plan", &path], Some("memplan=trace"), ""), 0);
    harmless(&memplan(&["plan", &path, "-o", &plan, "--strategy", "pushdown"]), 0);
    let wrong = fs::read_to_string(&plan).unwrap().replace("\"offset\": 64", "\"offset\": 63");
    fs::write(&plan, wrong).unwrap();
    let run = memplan(&["verify", "--execute", &path, &plan]);
    harmless(&run, 1);
    assert!(run.out.contains(spelled), "{}", run.out);
    // The characters are escaped in errors and in the name of the file.
    let (_folder, path) = file("bad\u{1b}[31m\n.json", text.replace("\"inputs\"", "\"output\""));
    harmless(&memplan(&["plan", &path]), 2);
    let twice = text.replace("\"y", "\"x");
    let run = memplan_with(&["plan", "-", "--format", "json"], None, &twice);
    harmless(&run, 2);
    assert!(run.err.contains("is defined twice"), "{}", run.err);
    let (_folder, path) = file("bad\u{1b}[31m\n.csv", lines(2));
    for paths in [&[&*path][..], &[&*path, &*path]] {
        let run = memplan(&[&["compare"], paths].concat());
        harmless(&run, 0);
        assert!(run.out.contains(r"bad\u{1b}[31m\n.csv"), "{}", run.out);
    }
    let csv = "id,lower,upper,size\n\u{1b}[31m,0,1,\u{1b}[0m\n";
    harmless(&memplan_with(&["plan", "-", "--format", "csv"], None, csv), 2);
}

#[test]
fn a_plan_of_another_input_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    assert_eq!(memplan(&["plan", EXAMPLE, "-o", &plan]).code, 0);
    let run = memplan(&["verify", "--execute", "book/src/figures/overwrite.json", &plan]);
    assert_refused(&run, &plan, "--execute needs operators");
    let (_folder, other) = file("other.json", problem(""));
    let run = memplan(&["verify", &other, &plan]);
    assert_eq!(run.code, 1);
    assert!(run.out.contains("is in the plan, but not in the input"), "{}", run.out);
}

#[test]
fn a_folder_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::create_dir(&path).unwrap();
    let path = path.display().to_string();
    assert_refused(&memplan(&["plan", &path]), &path, "Is a directory");
    assert_refused(&memplan(&["verify", &path, EXAMPLE]), &path, "Is a directory");
    assert_refused(&memplan(&["verify", EXAMPLE, &path]), &path, "a plan is .json or .csv");
    let run = memplan(&["plan", EXAMPLE, "-o", &folder.path().display().to_string()]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
}

/// `memplan ... | head -c 1`, with much more output pending.
#[test]
fn a_closed_pipe_is_no_error() {
    let (_folder, path) = file("many.csv", lines(20_000));
    for kind in ["--json", "--csv"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_memplan"))
            .args(["plan", &path, "--strategy", "naive", kind])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    }
}

#[cfg(target_os = "linux")]
#[rstest]
#[case::plan(&["plan", EXAMPLE])]
#[case::json(&["plan", EXAMPLE, "--json"])]
#[case::csv(&["plan", EXAMPLE, "--csv"])]
#[case::built_in(&[])]
#[case::show(&["show", EXAMPLE])]
#[case::explain(&["explain", EXAMPLE])]
#[case::verify(&["verify", "book/src/figures/overwrite.json", "book/src/figures/wrong.plan.json"])]
fn a_full_disk_is_told(#[case] args: &[&str]) {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_memplan"));
    command.args(args).current_dir(project()).stdout(full());
    let output = command.output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(words, "memplan: cannot write the result: No space left on device (os error 28)\n");
    assert_eq!(output.status.code(), Some(2));
    // That error cannot be printed now either.
    assert_eq!(command.stderr(full()).status().unwrap().code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_for_files_and_for_words() {
    let run = memplan(&["plan", EXAMPLE, "-o", "/dev/full", "--json"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    assert_eq!(run.err, "memplan: /dev/full: a plan is .json or .csv\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.json");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let path = path.display().to_string();
    for args in [["plan", EXAMPLE, "-o", path.as_str()], ["convert", EXAMPLE, "-o", path.as_str()]]
    {
        assert_refused(&memplan(&args), &path, "cannot write: No space left on device");
    }
    // A message that cannot be printed does not change the exit code.
    for (args, code) in [(["plan", "nowhere.json"], 2), (["plan", EXAMPLE], 0)] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_memplan"));
        command.args(args).current_dir(project()).env("RUST_LOG", "memplan=debug");
        assert_eq!(command.stdout(Stdio::null()).stderr(full).status().unwrap().code(), Some(code));
    }
}

/// Before anything is searched.
#[test]
fn a_plan_is_not_written_over_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    fs::create_dir(&path).unwrap();
    let path = path.display().to_string();
    let args = ["plan", "nowhere.json", "--time-limit", "60s", "-o", &path];
    assert_refused(&memplan(&args), &path, "cannot write: is a directory");
}

#[cfg(unix)]
#[test]
fn a_name_as_long_as_names_may_be_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{}.json", "n".repeat(250)));
    assert_eq!(memplan(&["plan", EXAMPLE, "-o", &path.display().to_string()]).code, 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_json_that_is_no_object_is_refused() {
    for text in ["null", "3", "\"memplan\""] {
        let (_folder, path) = file("input.json", text);
        assert_refused(&memplan(&["plan", &path]), &path, "an object with the key `format`");
    }
}

#[cfg(unix)]
#[test]
fn a_file_behind_a_link_is_written_and_keeps_who_may_read_it() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let (folder, plan) = file("plan.json", "the old plan");
    fs::set_permissions(&plan, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.json");
    symlink("plan.json", &link).unwrap();
    assert_eq!(memplan(&["plan", EXAMPLE, "-o", &link.display().to_string()]).code, 0);
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&plan).unwrap().contains("pool_size"));
    assert_eq!(fs::metadata(&plan).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// Ctrl-C at any moment leaves the old file, or the new one, whole, and nothing beside it.
#[cfg(unix)]
#[test]
fn an_interrupted_write_leaves_a_whole_file() {
    let (folder, input) = file("many.csv", lines(30_000));
    let plan: PathBuf = folder.path().join("plan.json");
    let old = "the old plan\n";
    let is_whole = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text == old || serde_json::from_str::<serde_json::Value>(&text).is_ok()
    };
    let mut interrupted = 0;
    for millis in [1, 20, 60, 100, 140, 180, 220, 260, 320, 400] {
        fs::write(&plan, old).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_memplan"))
            .args(["plan", &input, "--strategy", "naive", "-o"])
            .arg(&plan)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        interrupted += usize::from(!child.wait().unwrap().success());
        assert!(is_whole(&plan), "after {millis} ms");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "after {millis} ms");
    }
    assert!(interrupted > 0);
}
