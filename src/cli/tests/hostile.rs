//! Malicious inputs: always a clear error with file and place, exit code 2 for bad input and 1 for
//! a bad plan; never a panic, never half a file.

mod command;
#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "hostile/files.rs"]
mod files;
#[path = "hostile/models.rs"]
mod models;
#[path = "../../../tests/common/wire.rs"]
mod wire;

use std::{fmt::Write as _, fs};

use command::{Run, memplan, memplan_with};
use common::properties;
use memplan::{OpSequence, Operator, Output, Planner, Strategy};
use rstest::rstest;
use tempfile::TempDir;

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
        ("workspace.json", workspaces, "add up to 2^64 bytes or more (at 'the workspace of b'"),
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
fn lifetimes_that_never_end_are_planned_and_drawn() {
    let chunk = format!("{{\"id\": 0, \"begin\": 7, \"end\": {}, \"size\": 5}}", u64::MAX);
    let (_folder, path) = file("long.json", problem(&chunk));
    for command in ["plan", "show", "explain"] {
        let run = memplan(&[command, &path]);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
    }
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
fn control_characters_in_names_are_escaped() {
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
fn json_that_is_not_an_object_is_refused() {
    let object = "an object with the key `format`";
    let not_json = "this is not JSON, which begins with '{'";
    let cases = [
        ("null", not_json),
        ("3", not_json),
        ("\"memplan\"", object),
        (" \n", "the file is empty"),
    ];
    for (text, words) in cases {
        let (_folder, path) = file("input.json", text);
        assert_refused(&memplan(&["plan", &path]), &path, words);
    }
}

/// Whatever a terminal would obey or hide is escaped in JSON, and a reader gets the same name back.
#[test]
fn names_in_json_are_escaped_and_kept() {
    let name = "a\u{1b}[31m\u{7f}\u{9b}b\u{200b}\u{202e}c\u{2066}\u{feff}\u{e0041}\u{e9}";
    let operator = |output: &str| Operator::new(name).output(Output::new(output, 64));
    let graph = OpSequence::builder()
        .operator(operator(name))
        .operator(operator("last").inputs([name]))
        .build()
        .unwrap();
    let mut text = Vec::new();
    memplan::report::write_sequence_json(&mut text, &graph).unwrap();
    let (_folder, path) = file("names.json", text);
    for args in [
        &["plan", "--json"][..],
        &["explain", "--json"],
        &["compare", "--json"],
        &["reorder", "--json"],
        &["convert", "-o", &format!("{path}.json")],
    ] {
        let run = memplan(&[&args[..1], &[&path], &args[1..]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        let shown = if args[0] == "convert" {
            fs::read_to_string(format!("{path}.json")).unwrap()
        } else {
            run.out
        };
        let is_hidden = |c: char| {
            c != '\n' && (c.is_control() || "\u{200b}\u{202e}\u{2066}\u{feff}\u{e0041}".contains(c))
        };
        assert!(!shown.contains(is_hidden), "{args:?}: {shown:?}");
        let value: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let has_name = value.to_string().contains(name.trim_start_matches("a\u{1b}[31m"));
        assert!(has_name || ["compare", "reorder"].contains(&args[0]), "{args:?}: {value}");
    }
}
