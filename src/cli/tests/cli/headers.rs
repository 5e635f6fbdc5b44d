//! Plans as C headers, compiled with a program that runs the operators in the arena.

use std::{fmt::Write, fs, path::Path, process::Command};

use serde_json::Value;

use crate::command::{memplan, project};

const STEP: &str = "book/src/figures/step.json";

/// Fills the outputs of an operator with bytes that follow from all bytes of its inputs.
const RUN: &str = "
static uint64_t read_all(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size; at++) hash = (hash ^ bytes[at]) * 1099511628211u;
    return hash;
}
static void fill(uint64_t hash, unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size; at++) {
        hash = hash * 6364136223846793005u + 1442695040888963407u;
        bytes[at] = (unsigned char)(hash >> 56);
    }
}
";

fn constant(tensor: &str) -> String {
    format!("STEP_{}", tensor.replace('.', "_").to_ascii_uppercase())
}

/// A program that runs a training step twice: in the arena, and with memory of its own for each tensor.
fn program(sequence: &Value) -> String {
    let mut text = format!("#include \"step.h\"\n#include <stdlib.h>\n#include <string.h>\n{RUN}");
    let operators = sequence["operators"].as_array().unwrap();
    let name = |value: &Value| value.as_str().unwrap().to_owned();
    let made: Vec<String> = operators
        .iter()
        .flat_map(|operator| operator["outputs"].as_array().unwrap())
        .map(|output| name(&output["name"]))
        .collect();
    let mut body = String::new();
    for (step, operator) in operators.iter().enumerate() {
        let _ = writeln!(body, "    hash = {step};");
        for input in operator["inputs"].as_array().unwrap().iter().map(name) {
            if made.contains(&input) {
                let of = constant(&input);
                let _ = writeln!(body, "    hash = read_all(hash, AT({of}), {of}_SIZE);");
            }
        }
        for (at, output) in operator["outputs"].as_array().unwrap().iter().enumerate() {
            let of = constant(&name(&output["name"]));
            let _ = writeln!(body, "    fill(hash + {at}, AT({of}), {of}_SIZE);");
        }
    }
    for (function, place) in
        [("in_arena", "(memory + x##_OFFSET)"), ("apart", "(memory + x##_APART)")]
    {
        let _ = writeln!(text, "#define AT(x) {place}");
        if function == "apart" {
            let mut start = "0".to_owned();
            for tensor in &made {
                let of = constant(tensor);
                let _ = writeln!(text, "#define {of}_APART ({start})");
                start = format!("{of}_APART + {of}_SIZE");
            }
            let _ = writeln!(text, "#define ALL ({start})");
        }
        let _ = writeln!(
            text,
            "static uint64_t {function}(unsigned char *memory) {{\n    uint64_t hash = 0, result = 1;\n{body}"
        );
        for output in sequence["outputs"].as_array().unwrap().iter().map(name) {
            let of = constant(&output);
            let _ = writeln!(text, "    result = read_all(result, AT({of}), {of}_SIZE);");
        }
        let _ = writeln!(text, "    return result;\n}}\n#undef AT");
    }
    text.push_str(
        "int main(void) {
    unsigned char *arena = malloc(STEP_ARENA_SIZE), *apart_memory = malloc(ALL);
    if (!arena || !apart_memory) return 2;
    memset(arena, 1, STEP_ARENA_SIZE);
    int equal = in_arena(arena) == apart(apart_memory);
    free(arena), free(apart_memory);
    return equal ? 0 : 1;
}
",
    );
    text
}

fn compile(folder: &Path, file: &str) -> bool {
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-Wall", "-Werror", "-O1", "-o", "step"]).arg(file);
    command.current_dir(folder).status().unwrap().success()
}

#[test]
fn a_generated_program_runs_in_the_arena_of_the_header() {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let header = folder.path().join("step.h");
    let run = memplan(&["plan", STEP, "--emit", "c-header", "-o", header.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (0, ""));
    let sequence = fs::read_to_string(project().join(STEP)).unwrap();
    let sequence: Value = serde_json::from_str(&sequence).unwrap();
    fs::write(folder.path().join("step.c"), program(&sequence)).unwrap();
    assert!(compile(folder.path(), "step.c"));
    let step = folder.path().join("step");
    assert!(Command::new(&step).status().unwrap().success());
    // The program finds a tensor that lies over another, and the compiler one that lies outside.
    let text = fs::read_to_string(&header).unwrap();
    let offset = |name: &str| {
        let line = text.lines().find(|line| line.contains(&format!("{name}_OFFSET "))).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    };
    let moved = |to: &str| {
        let line = format!("#define STEP_A1_OFFSET {}", offset("STEP_A1"));
        fs::write(&header, text.replace(&line, &format!("#define STEP_A1_OFFSET {to}"))).unwrap();
    };
    moved(&offset("STEP_H1"));
    assert!(compile(folder.path(), "step.c"));
    assert_eq!(Command::new(&step).status().unwrap().code(), Some(1));
    moved("999999u");
    assert!(!compile(folder.path(), "step.c"));
}

#[test]
fn names_that_c_does_not_have_are_replaced_and_numbered() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("2 nets.json");
    let sequence = r#"{"format": "memplan-sequence/1", "operators": [
        {"name": "p", "inputs": [], "outputs": [{"name": "a/b", "size": 8}, {"name": "a.b", "size": 8}, {"name": "*/ 1\\", "size": 8}]}],
        "outputs": ["a/b", "a.b", "*/ 1\\"]}"#;
    fs::write(&input, sequence).unwrap();
    let run = memplan(&["plan", input.to_str().unwrap(), "--emit", "c-header"]);
    assert_eq!(run.code, 0, "{}", run.err);
    for text in
        ["PLAN_2_NETS_A_B_OFFSET", "PLAN_2_NETS_A_B_2_OFFSET", "PLAN_2_NETS_T____1__SIZE 8u"]
    {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    assert!(!run.out.contains("*/ 1"), "{}", run.out);
    let several = memplan(&[
        "plan",
        input.to_str().unwrap(),
        "--emit",
        "c-header",
        "--pool",
        "a:16",
        "--pool",
        "b",
    ]);
    assert!(several.code == 2 && several.err.contains("one pool"), "{several:?}");
}
