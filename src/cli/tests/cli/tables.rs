//! Printed tables: at most 80 columns wide, every offset on request, and every part that succeeds
//! when another fails.

use std::fs;

use rstest::rstest;
use serde_json::Value;

use crate::{
    EIGHT, EXAMPLE, PINWHEEL,
    command::{memplan, memplan_with, project},
    shared::shared_path,
};

/// No line is wider than a common terminal, except those that hold a path.
fn assert_narrow(args: &[&str], out: &str, path: &str) {
    for line in out.lines().filter(|line| !line.contains(path)) {
        assert!(line.chars().count() <= 80, "{args:?}: {line}");
    }
}

fn assert_commands_are_narrow(path: &str) {
    for command in [
        &["plan"][..],
        &["plan", "--table"],
        &["compare", "--effort", "10"],
        &["show"],
        &["show", "--strategy", "naive"],
        &["explain"],
        &["explain", "--strategy", "pushdown"],
        &["explain", "--strategy", "naive"],
        &["explain", "--capacity", "1"],
    ] {
        let mut args = command.to_vec();
        args.insert(1, path);
        let run = memplan(&args);
        assert!(run.code < 2, "{args:?}: {}", run.err);
        assert_narrow(&args, &run.out, path);
    }
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    assert_eq!(memplan(&["plan", path, "-o", &plan]).code, 0);
    let args = ["verify", path, &plan];
    let run = memplan(&args);
    assert!(run.code == 0 && run.out.starts_with("correct: "), "{args:?}: {run:?}");
    assert_narrow(&args, &run.out, path);
}

#[rstest]
#[case(EXAMPLE)]
#[case(EIGHT)]
#[case("book/src/figures/overwrite.json")]
#[case("book/src/figures/crowd.csv")]
#[case("tests/models/mobilenet_v3_se_64_i8.tflite")]
fn every_table_fits_eighty_columns(#[case] path: &str) {
    assert_commands_are_narrow(path);
}

/// The test has names that are too long for a line, and sizes and steps of twenty digits.
#[test]
fn long_names_and_large_numbers_fit_eighty_columns() {
    let folder = tempfile::tempdir().unwrap();
    let long = "decoder/layer/attention/".repeat(20);
    let operators = (0..40).map(|at| {
        let over = format!(r#""overwrites": {{"input": "{long}{at}"}}"#);
        format!(
            r#"{{"name": "{long}op{at}", "inputs": ["{long}{at}"], "workspace": {at},
                "outputs": [{{"name": "{long}{}", "size": 100000000000, {over}}}]}}"#,
            at + 1
        )
    });
    let operators: Vec<_> = operators.collect();
    let sequence = folder.path().join("long.json");
    let operators = operators.join(",");
    let text = format!(r#"{{"format": "memplan-sequence/1", "operators": [{operators}]}}"#);
    fs::write(&sequence, text).unwrap();
    assert_commands_are_narrow(sequence.to_str().unwrap());
    let problem = folder.path().join("large.csv");
    let text = "id,lower,upper,size\n1,18446744073709551600,18446744073709551614,9000000000000000000\n\
        2,18446744073709551610,18446744073709551615,9000000000000000001\n";
    fs::write(&problem, text).unwrap();
    assert_commands_are_narrow(problem.to_str().unwrap());
}

#[test]
fn tables_of_real_models_fit_eighty_columns() {
    for path in ["data/models/bert_base_b1_s128.onnx", "data/order/densenet121_b1.json"] {
        if let Some(path) = shared_path(path) {
            assert_commands_are_narrow(path.to_str().unwrap());
        }
    }
}

/// Many inputs take several tables.
#[test]
fn many_inputs_are_compared_in_eighty_columns() {
    let paths = [EXAMPLE, EIGHT, EXAMPLE, EIGHT, EXAMPLE, EIGHT, EXAMPLE];
    let args = [&["compare", "--effort", "10"], &paths[..]].concat();
    let run = memplan(&args);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_narrow(&args, &run.out, "book/src/figures");
    assert_eq!(run.out.matches("(7)").count(), 4, "{}", run.out);
    assert!(run.out.contains("\npool                             (6)       (7)\n"), "{}", run.out);
}

#[test]
fn help_fits_eighty_columns() {
    for command in ["plan", "verify", "compare", "show", "explain", "convert", "completions", "man"]
    {
        for words in [&[command, "--help"][..], &[command, "-h"], &["help", command]] {
            let run = memplan(words);
            assert_eq!(run.code, 0);
            assert_narrow(words, &run.out, "no path");
        }
    }
    let run = memplan(&[]);
    assert_narrow(&[], &run.out, "no path");
}

/// The offsets of the table are those of the plan.
#[test]
fn the_table_of_a_plan_holds_every_offset() {
    let run = memplan(&["plan", EXAMPLE, "--json"]);
    let plan: Value = serde_json::from_str(&run.out).unwrap();
    let run = memplan(&["plan", EXAMPLE, "--table", "-q"]);
    let (_, table) = run.out.split_once("\n\n").unwrap();
    assert!(table.starts_with("offset  size  chunk alive in  tensor\n"), "{table}");
    let tensors = plan["tensors"].as_array().unwrap();
    assert_eq!(table.lines().count(), tensors.len() + 1);
    for (line, tensor) in table.lines().skip(1).zip(tensors) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |key: &str| tensor[key].as_u64().unwrap().to_string();
        assert_eq!(words[..2], [number("offset"), number("size")], "{line}");
        assert_eq!(words.last().copied(), tensor["name"].as_str(), "{line}");
    }
    // A workspace is a chunk without a tensor; a view of a weight lies outside the pool.
    let text = r#"{"format": "memplan-sequence/1", "operators": [
        {"name": "a", "inputs": ["w"], "workspace": 5, "outputs": [
            {"name": "x", "size": 8}, {"name": "v", "size": 2, "reads": {"input": "w", "offset": 4}}]}]}"#;
    let run = memplan_with(&["plan", "-", "--format", "json", "--table"], None, text);
    let table = run.out.split_once("\n\n").map_or("", |(_, table)| table);
    assert!(
        table.contains("step 0          x\n") && table.contains("step 0          a.workspace\n"),
        "{}",
        run.out
    );
    assert!(table.contains("v, in w at 4\n"), "{}", run.out);
}

/// Listing a model's operators needs no sizes.
#[test]
fn operators_of_unknown_shape_are_counted() {
    let model = "tests/fixtures/dynamic.onnx";
    let run = memplan(&["ops", model]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_narrow(&["ops", model], &run.out, "no path");
    for line in [
        "\nshape or type unknown: 4 outputs, not in the bytes; give sizes with --dim,\n",
        "\nMatMul                           1              -              -    1     256 B\n",
        "\nRelu                             1              -              -              -\n",
        "\n      1         ?  shape or type unknown\n",
        "\nFlatten                          1    1       0 B              -              -\n",
    ] {
        assert!(run.out.contains(line), "{line}{}", run.out);
    }
    let run = memplan(&["ops", model, "--json"]);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    let kinds = found["kinds"].as_array().unwrap();
    let unknown = kinds.iter().map(|kind| kind["size_unknown"]["outputs"].as_u64().unwrap());
    assert_eq!((kinds.len(), unknown.sum::<u64>()), (7, 4));
    let run = memplan(&["ops", model, "--dim-default", "16", "--shape", "m=16x16"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(!run.out.contains("unknown"), "{}", run.out);
}

/// Chunks in one stack are alive together, and free space is not reported as used.
#[rstest]
#[case(&["--strategy", "pushdown"])]
#[case(&["--strategy", "naive"])]
#[case(&["--strategy", "tflite-equality"])]
#[case(&[])]
fn the_stacks_of_an_explanation_are_alive_together(#[case] strategy: &[&str]) {
    for (input, text) in
        [("csv", PINWHEEL.to_owned()), ("json", fs::read_to_string(example()).unwrap())]
    {
        let args = [&["explain", "-", "--format", input, "--json"], strategy].concat();
        let run = memplan_with(&args, None, &text);
        let found: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(found["format"], "memplan-explanation/1");
        let number = |value: &Value| value.as_u64().unwrap();
        let mut top = number(&found["pool_size"]);
        for stack in found["stacks"].as_array().unwrap() {
            let (begin, end) = (number(&stack["begin"]), number(&stack["end"]));
            assert!(begin < end);
            for place in stack["places"].as_array().unwrap() {
                assert_eq!(number(&place["high"]), top);
                top = number(&place["low"]);
                let chunk = &place["chunk"];
                if !chunk.is_null() {
                    assert!(number(&chunk["begin"]) <= begin && end <= number(&chunk["end"]));
                }
            }
        }
        assert_eq!(top, 0);
        let free: u64 = found["peak"]["free"]
            .as_array()
            .unwrap()
            .iter()
            .map(|gap| number(&gap["high"]) - number(&gap["low"]))
            .sum();
        assert_eq!(free, number(&found["pool_size"]) - number(&found["bytes_alive"]));
        let args = [&["explain", "-", "--format", input], strategy].concat();
        let run = memplan_with(&args, None, &text);
        assert!(!run.out.contains("wasted"), "{}", run.out);
    }
}

fn example() -> std::path::PathBuf {
    project().join(EXAMPLE)
}

/// The inputs that can be read are compared, and the exit code reports the failure.
#[test]
fn one_bad_file_does_not_hide_the_others() {
    for json in [false, true] {
        let mut args = vec!["compare", "nowhere.json", EXAMPLE, "Cargo.toml"];
        args.extend(json.then_some("--json"));
        let run = memplan(&args);
        assert_eq!(run.code, 2);
        assert_eq!(run.err.lines().count(), 2, "{}", run.err);
        assert!(run.err.starts_with("memplan: nowhere.json: No such file"), "{}", run.err);
        if json {
            let inputs: Value = serde_json::from_str(&run.out).unwrap();
            assert_eq!(inputs[0]["input"], "nowhere.json");
            assert!(inputs[0]["error"].as_str().unwrap().contains("No such file"));
            assert_eq!(inputs[1]["bytes_alive"], 14336);
            assert_eq!(inputs[2]["input"], "Cargo.toml");
        } else {
            assert!(run.out.starts_with(&format!("{EXAMPLE}\n  peak")), "{}", run.out);
        }
    }
    let run = memplan(&["compare", "nowhere.json"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
}

/// A strategy that exceeds the time limit is omitted and named, but for those that end early.
#[test]
fn a_strategy_that_is_too_slow_is_omitted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("id,lower,upper,size\n");
    text.extend((0..1_900).map(|id| format!("{id},{},{},{}\n", id % 97, id % 97 + 40, id + 1)));
    let input = folder.path().join("dense.csv");
    fs::write(&input, text).unwrap();
    let run = memplan(&["compare", input.to_str().unwrap(), "--time-limit", "1ms"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let flow = run.out.lines().find(|line| line.contains("tflite-min-cost-flow")).unwrap();
    assert!(flow.ends_with("too slow"), "{}", run.out);
    let first_fit = run.out.lines().find(|line| line.contains("first-fit")).unwrap();
    assert!(!first_fit.ends_with("too slow"), "{}", run.out);
}

#[rstest]
#[case::bash("bash", "_memplan()")]
#[case::zsh("zsh", "#compdef memplan")]
#[case::fish("fish", "complete -c memplan")]
fn completions_and_manual_come_from_the_same_source(#[case] shell: &str, #[case] start: &str) {
    let run = memplan(&["completions", shell]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(run.out.contains(start) && run.out.contains("time-limit"), "{}", run.out);
    for (page, text) in [(&["man"][..], ".TH memplan 1"), (&["man", "plan"], "time\\-limit")] {
        let run = memplan(page);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert!(run.out.contains(text), "{}", run.out);
    }
    let run = memplan(&["man", "draw"]);
    assert!(
        run.code == 2 && run.err.contains("no command is called 'draw'; the commands are plan, ")
    );
}

/// By name or type; the pool holds it.
#[test]
fn operators_of_a_model_may_need_scratch_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scratch.txt");
    let scratch = file.to_str().unwrap();
    let run = |lines: &str| {
        fs::write(&file, lines).unwrap();
        memplan(&["plan", "tests/models/encoder.onnx", "--table", "--scratch", scratch])
    };
    let stated = run("/l.0.1/MatMul 1048576 # measured\n");
    assert!(stated.out.contains("/l.0.1/MatMul.workspace"), "{}", stated.out);
    for (lines, words) in [
        ("MatMul", "scratch.txt: line 1: 'MatMul' is not an operator with the bytes"),
        ("Einsum 8", "no operator of the model has the name or the type 'Einsum'"),
    ] {
        let refused = run(lines);
        assert_eq!((refused.code, &*refused.out), (2, ""));
        assert!(refused.err.contains(words), "{}", refused.err);
    }
}
