//! The contract of the command line: exit codes, results on standard output, messages on standard
//! error, errors that name file, place and remedy, and files that are complete or absent.

#[path = "cli/addresses.rs"]
mod addresses;
mod command;
#[path = "../../../tests/common/flatbuffer.rs"]
mod flatbuffer;
#[path = "../../../tests/common/hard.rs"]
mod hard;
#[path = "cli/headers.rs"]
mod headers;
#[path = "cli/onnxruntime.rs"]
mod onnxruntime;
#[path = "cli/orders.rs"]
mod orders;
#[path = "cli/outputs.rs"]
mod outputs;
#[path = "cli/pools.rs"]
mod pools;
#[path = "cli/recompute.rs"]
mod recompute;
#[path = "cli/recordings.rs"]
mod recordings;
#[path = "cli/searches.rs"]
mod searches;
#[path = "../../../tests/common/shared.rs"]
mod shared;
#[path = "cli/tables.rs"]
mod tables;
#[path = "cli/tflite.rs"]
mod tflite;
#[path = "cli/tflite_orders.rs"]
mod tflite_orders;
#[path = "cli/verifying.rs"]
mod verifying;

use std::{fs, process::Stdio};

use command::{memplan, memplan_with};
use rstest::rstest;

const EXAMPLE: &str = "book/src/figures/example.json";
const EIGHT: &str = "book/src/figures/eight.json";
/// Four concatenations, each of which holds the inputs of the one before it.
const DENSE: &str = "tests/fixtures/dense.json";
/// Two concatenations of one tensor. A plan with copies of it takes 256 B, and one without 136 B.
const COPIES: &str = "tests/fixtures/concat_copies.json";
const PINWHEEL: &str = "id,lower,upper,size\n\
    0,3631,4096,460231\n1,0,1001,250121\n2,1001,2004,68005\n3,1134,3019,168374\n\
    4,3019,4096,230278\n5,0,1134,626257\n6,3400,3631,183536\n7,0,2004,172198\n\
    8,2369,3019,61904\n9,1134,2369,249994\n10,1001,2947,182116\n11,2004,2947,240203\n\
    12,1134,2947,207889\n13,2947,3631,276695\n14,2947,3400,353513\n15,3400,4096,169977\n\
    16,2369,4096,188090\n";

#[test]
fn without_arguments_a_built_in_network_is_planned_and_drawn() {
    let run = memplan(&[]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for text in ["pool      640 KiB (655 360 B)", "73.0 % saved", "1 column = 1/4 step"] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    // Every chunk can be told apart, and one command leads on.
    let map: String =
        run.out.lines().filter_map(|line| line.split_once('|')).map(|line| line.1).collect();
    assert!(
        !map.contains('*') && ('a'..='o').all(|letter| map.contains(letter) || letter == 'o'),
        "{map}"
    );
    assert!(run.out.lines().count() <= 25, "{}", run.out);
    assert!(run.out.ends_with("memplan plan MODEL.onnx\n"), "{}", run.out);
}

/// Two screens of 40 lines.
#[test]
fn the_help_of_plan_has_headings_and_fits_in_two_screens() {
    let help = memplan(&["plan", "--help"]).out;
    let headings = ["Input:", "What may share memory:", "Planning:", "Limits:", "Output:"];
    let places = headings.map(|heading| help.find(&format!("\n{heading}\n")));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{help}");
    assert!(help.lines().count() <= 80, "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    // The manual page says more.
    assert!(memplan(&["man", "plan"]).out.len() > 2 * help.len());
}

#[rstest]
#[case::no_such_command(&["draw"], "unrecognized subcommand 'draw'")]
#[case::no_command(&["tests/models/encoder.onnx"], "tip: to plan this file: memplan plan tests/models/encoder.onnx")]
#[case::no_such_strategy(&["plan", "--strategy", "best-guess"], "invalid value 'best-guess' for '--strategy <NAME>'")]
#[case::no_such_file(&["plan", "nowhere.json"], "memplan: nowhere.json: No such file or directory")]
#[case::a_folder(&["plan", "src", "--format", "json"], "memplan: src: Is a directory")]
#[case::no_format(&["plan", "Cargo.toml"], "memplan: Cargo.toml: the name does not end in .onnx, .tflite, .json, .csv, .pickle, .pte or -buffer-assignment.txt; give the format with --format")]
#[case::not_json(&["plan", "Cargo.toml", "--format", "json"], "memplan: Cargo.toml: expected value at line 1 column 2")]
#[case::not_csv(&["plan", "Cargo.toml", "--format", "csv"], "memplan: Cargo.toml: line 1: unknown column '[package]'")]
#[case::alignment(&["plan", EXAMPLE, "--alignment", "3"], "memplan: book/src/figures/example.json: alignment 3 is not a power of two")]
#[case::alignment_too_large(&["plan", EXAMPLE, "--alignment", "9223372036854775808"], "add up to 2^64 bytes or more")]
#[case::padding_too_large(&["plan", EXAMPLE, "--padding", "18446744073709551000"], "(at chunk 'a' of 4096 B; the alignment is 64 B, the padding of each chunk 18446744073709551000 B)")]
#[case::dimension(&["plan", EXAMPLE, "--dim", "batch"], "'batch' is not NAME=N, such as batch=8, or NAME=N..M, such as batch=1..8")]
#[case::range_without_end(&["plan", "tests/models/heads.onnx", "--dim", "batch=0.."], "'batch=0..' is not NAME=N, such as batch=8, or NAME=N..M, such as batch=1..8")]
#[case::range_backwards(&["plan", "tests/models/heads.onnx", "--dim", "batch=5..3"], "memplan: tests/models/heads.onnx: the sizes of 'batch' begin at 5 and end at 3; give the smaller one first, as in batch=3..5")]
#[case::range_of_nothing(&["plan", "tests/models/heads.onnx", "--dim", "batches=1..3"], "no dimension of the model is called 'batches'; there are: batch")]
#[case::range_too_large(&["plan", "tests/models/heads.onnx", "--dim", "batch=1..300000"], "too many to check each for this model; narrow a range, or give a size exactly")]
#[case::range_and_size(&["plan", "tests/models/heads.onnx", "--dim", "batch=1..3", "--dim", "batch=2"], "--dim batch=N is given twice; give it once")]
#[case::no_width(&["show", EXAMPLE, "--width", "0"], "invalid value '0' for '--width <N>': 0 is not in 1..")]
#[case::no_such_unit(&["plan", EXAMPLE, "--capacity", "800k"], "units are B, KB, MB, GB, KiB, MiB and GiB")]
#[case::no_capacity(&["plan", EXAMPLE, "--capacity", "0"], "invalid value '0' for '--capacity <SIZE>': expected a size of at least a byte")]
#[case::capacity_below_zero(&["plan", EXAMPLE, "--capacity=-1"], "invalid value '-1' for '--capacity <SIZE>'")]
#[case::capacity_too_large(&["explain", EXAMPLE, "--capacity", "16777216TiB"], "invalid value '16777216TiB' for '--capacity <SIZE>'")]
#[case::capacity_in_no_unit(&["explain", EXAMPLE, "--capacity", "1 apple"], "such as 1048576, 64KiB or 1.5MiB")]
#[case::capacity_of_a_plan(&["explain", EXAMPLE, "plan.json", "--capacity", "1"], "cannot be used with")]
#[case::no_effort(&["plan", EXAMPLE, "--effort", "0"], "invalid value '0' for '--effort <NODES>'")]
#[case::effort_with_a_unit(&["plan", EXAMPLE, "--effort", "1k"], "expected a number of search nodes of at least 1, such as 100000")]
#[case::endless_effort(&["compare", EXAMPLE, "--effort", "18446744073709551616"], "for '--effort <NODES>'")]
#[case::no_thread(&["plan", EXAMPLE, "--threads", "0"], "invalid value '0' for '--threads <N>': 0 is not in 1..=1024")]
#[case::threads_without_number(&["show", EXAMPLE, "--threads", "1000000"], "1000000 is not in 1..=1024")]
#[case::time_backwards(&["plan", EXAMPLE, "--time-limit=-1s"], "expected a time, such as 2s or 500ms; a number alone is in seconds")]
#[case::plan_format(&["plan", EXAMPLE, "-o", "plan.txt"], "memplan: plan.txt: a plan must end in .json or .csv")]
#[case::no_folder(&["plan", EXAMPLE, "-o", "nowhere/plan.json"], "memplan: nowhere/plan.json: cannot write: No such file or directory")]
#[case::plan_as_input(&["plan", "book/src/figures/wrong.plan.json"], "this is a plan, not an operator sequence or a problem")]
#[case::input_as_plan(&["verify", EXAMPLE, EXAMPLE], "this is not a plan")]
#[case::map_format(&["show", EXAMPLE, "-o", "map.pdf"], "memplan: map.pdf: a map is .svg, .html, .txt, or .json for a trace viewer")]
#[case::strategies_on_one_picture(&["show", EXAMPLE, "--strategy", "best,naive", "-o", "map.svg"], "several strategies need an .html file")]
#[case::steps_of_no_simulation(&["show", EXAMPLE, "--steps", "1..2"], "--simulation")]
#[case::steps_without_an_end(&["show", EXAMPLE, "--simulation", "--steps", "3"], "expected FROM..TO, such as 2..4")]
#[case::explain_a_plan_by_a_strategy(&["explain", EXAMPLE, "p.json", "--strategy", "naive"], "--strategy")]
#[case::show_a_plan_with_an_alignment(&["show", EXAMPLE, "p.json", "--alignment", "64"], "--alignment")]
#[case::steps_backwards(&["show", EXAMPLE, "--simulation", "--steps", "5..2"], "FROM must be less than TO")]
#[case::steps_after_the_last(&["show", EXAMPLE, "--simulation", "--steps", "7..9", "-o", "nowhere.svg"], "book/src/figures/example.json: there are 6 steps, and --steps begins with step 7")]
#[case::steps_that_are_no_numbers(&["show", EXAMPLE, "--simulation", "--steps", "a..4"], "'a' is not a step")]
#[case::scale_of_a_text(&["show", EXAMPLE, "--scale", "1MiB"], "--scale needs an .svg file")]
#[case::simulation_as_text(&["show", EXAMPLE, "--simulation"], "the simulation needs an .svg file")]
#[case::no_folder_for_a_map(&["show", EXAMPLE, "-o", "nowhere/map.svg"], "memplan: nowhere/map.svg: cannot write: No such file or directory")]
#[case::onnx_out(&["convert", EXAMPLE, "-o", "x.onnx"], "memplan writes .json and .csv, not ONNX")]
#[case::dimension_of_no_model(&["plan", EXAMPLE, "--dim", "batch=8"], "memplan: book/src/figures/example.json: --dim applies only to ONNX models; omit it")]
#[case::dimension_of_nothing(&["show", "--dim", "batch=8"], "without an input the built-in network is planned; omit it")]
#[case::format_of_nothing(&["plan", "--format", "csv"], "--format needs an input; omit it")]
#[case::inplace_in_a_problem(&["plan", EIGHT, "--no-inplace"], "memplan: book/src/figures/eight.json: --no-inplace needs operators, but this is a problem; omit it")]
#[case::views_in_a_problem(&["compare", EIGHT, "--no-views"], "eight.json: --no-views needs operators")]
#[case::inputs_in_a_problem(&["show", EIGHT, "--inputs"], "eight.json: --inputs needs operators")]
#[case::weights_in_a_problem(&["explain", EIGHT, "--weights"], "eight.json: --weights needs operators")]
#[case::inplace_in_a_plan_of_a_problem(&["verify", EIGHT, "plan.json", "--no-inplace"], "eight.json: --no-inplace needs operators")]
#[case::inplace_in_a_converted_problem(&["convert", EIGHT, "--no-inplace", "-o", "x.csv"], "eight.json: --no-inplace needs operators")]
#[case::inplace_in_operators(&["convert", EXAMPLE, "--no-inplace", "-o", "x.json"], "--no-inplace affects only lowering; add --lower or omit it")]
#[case::alignment_of_operators(&["convert", EXAMPLE, "--alignment", "8", "-o", "x.json"], "--alignment affects only lowering; add --lower or omit it")]
#[case::converted_format(&["convert", EXAMPLE, "-o", "x.foo"], "memplan: x.foo: the output must be .json or .csv")]
#[case::plan_to_dash(&["plan", EXAMPLE, "-o", "-"], "memplan: -o must name a file, not -; omit -o, and print the plan with --json or --csv")]
#[case::converted_to_dash(&["convert", EXAMPLE, "-o", "-"], "memplan: -o must name a file, not -; convert writes a file, .json or .csv")]
#[case::map_to_dash(&["show", EXAMPLE, "-o", "-"], "memplan: -o must name a file, not -; omit -o to print the map")]
#[case::dimension_twice(&["plan", "Cargo.toml", "--format", "onnx", "--dim", "batch=4", "--dim", "batch=8"], "memplan: Cargo.toml: --dim batch=N is given twice; give it once")]
#[case::profile_in_operators(&["plan", EXAMPLE, "--inplace", "rows"], "memplan: book/src/figures/example.json: --inplace applies only to models; these operators declare what they may overwrite: omit it, or use --inplace none")]
#[case::profile_of_nothing(&["plan", "--inplace", "elementwise"], "memplan: --inplace applies only to models")]
#[case::kernels_in_operators(&["plan", EXAMPLE, "--kernels", "book/src/figures/onnxruntime.kernels"], "example.json: --kernels applies only to models")]
#[case::profile_in_a_problem(&["plan", EIGHT, "--inplace", "none"], "eight.json: --inplace needs operators")]
#[case::unknown_profile(&["plan", EXAMPLE, "--inplace", "columns"], "[possible values: none, elementwise, rows]")]
#[case::kernels_that_are_none(&["plan", ENCODER, "--kernels", "README.md"], "memplan: README.md: line 3: ")]
#[case::kernels_of_another_runtime(&["plan", ENCODER, "--kernels", "cmsis-nn"], "memplan: --kernels cmsis-nn names kernels of TensorFlow Lite Micro, which run .tflite models; ")]
#[case::no_kernels(&["plan", ENCODER, "--kernels", "nowhere.txt"], "memplan: nowhere.txt: No such file or directory")]
#[case::operators_of_a_problem(&["ops", EIGHT], "memplan: book/src/figures/eight.json: this is a problem, which has no operators")]
fn bad_words_and_bad_input_end_with_2(#[case] args: &[&str], #[case] message: &str) {
    let run = memplan(args);
    assert!(run.err.contains(message), "{}", run.err);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
}

const ENCODER: &str = "tests/models/encoder.onnx";

/// A text with its sentences on one line each.
fn unwrapped(text: &str) -> String {
    text.replace("\n  ", " ")
}

/// The rules for in-place writing accompany every proof.
#[rstest]
#[case::default(&["plan", ENCODER], "rules in-place rows, alignment 64 B\n")]
#[case::profile(&["plan", ENCODER, "--inplace", "elementwise"], "rules in-place elementwise, alignment 64 B\n")]
#[case::none(&["plan", ENCODER, "--inplace", "none", "--no-views"], "rules no in-place, no views, alignment 64 B\n")]
#[case::the_old_name(&["plan", ENCODER, "--no-inplace", "--inputs"], "rules no in-place, inputs in the pool, alignment 64 B\n")]
#[case::kernels(&["explain", ENCODER, "--kernels", "book/src/figures/onnxruntime.kernels"], "rules in-place rows, except as in onnxruntime.kernels, alignment 64 B\n")]
#[case::operators(&["explain", EXAMPLE], "rules in-place as declared, alignment 64 B\n")]
#[case::operators_apart(&["plan", EXAMPLE, "--inplace", "none"], "rules no in-place, alignment 64 B\n")]
#[case::problem(&["plan", EIGHT], "rules chunks and links as given, alignment ")]
#[case::all_copies(&["plan", DENSE, "--strategy", "pushdown"], "rules in-place as declared, all copies, alignment 64 B\n")]
#[case::heuristic(&["plan", EXAMPLE, "--strategy", "naive"], "rules in-place as declared, alignment 64 B\n")]
fn the_summary_names_the_rules(#[case] args: &[&str], #[case] rules: &str) {
    let run = memplan(args);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let words = unwrapped(&run.out).replace("rules     ", "rules ");
    assert!(words.contains(rules), "{}", run.out);
}

/// A bound over all choices holds for the plans of every strategy.
#[test]
fn the_claims_of_two_strategies_do_not_contradict_each_other() {
    for (input, strategy, pool, claim) in [
        (EXAMPLE, "best", "14.0 KiB", ": proven minimal"),
        (EXAMPLE, "optimal", "14.0 KiB", ": proven minimal"),
        (COPIES, "best", "136 B", ": proven minimal"),
        (COPIES, "pushdown", "256 B", "in-place as declared, all copies"),
    ] {
        let is_proven = strategy != "pushdown";
        let args = ["plan", input, "--strategy", strategy, "--alignment", "1"];
        let run = memplan(&args);
        let words = unwrapped(&run.out);
        assert!(words.contains(pool), "{words}");
        assert!(words.contains(claim), "{words}");
        assert_eq!(words.contains("proven minimal"), is_proven, "{words}");
        let run = memplan(&[&args[..], &["--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(json["scope"], if is_proven { "all_choices" } else { "these_choices" });
        assert_eq!(json["proven_optimal"], is_proven);
    }
}

/// The inputs of `c` may lie inside it; together they all fit in 96 bytes.
#[test]
fn optional_parts_of_a_problem_are_chosen_or_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (problem, plan) = (path("concat.json"), path("plan.json"));
    let chunk = |id: u64, begin: u64, end: u64, size: u64| serde_json::json!({"id": id, "begin": begin, "end": end, "size": size});
    let part = |chunk: u64, offset: u64| serde_json::json!({"chunk": chunk, "whole": 2, "offset": offset, "required": false});
    let file = serde_json::json!({
        "format": "memplan-problem/2",
        "chunks": [chunk(0, 0, 3, 64), chunk(1, 1, 3, 32), chunk(2, 2, 4, 96)],
        "parts": [part(0, 0), part(1, 64)],
    });
    fs::write(&problem, file.to_string()).unwrap();
    let planned = memplan(&["plan", &problem, "-o", &plan]);
    assert!(
        planned.out.contains("pool      96 B   = peak of live tensors: proven minimal"),
        "{planned:?}"
    );
    let verified = memplan(&["verify", &problem, &plan]);
    assert_eq!((verified.code, &*verified.err), (0, ""), "{}", verified.out);
    let copied = memplan(&["plan", &problem, "--no-gathers"]);
    assert!(
        copied.out.contains("pool      192 B") && copied.out.contains("all copies"),
        "{copied:?}"
    );
    let naive = memplan(&["plan", &problem, "--strategy", "naive"]);
    assert!(naive.out.contains("all copies") && !naive.out.contains("proven"), "{naive:?}");
    let explained = memplan(&["explain", &problem, "--capacity", "95"]);
    assert_eq!(explained.code, 1, "{explained:?}");
    assert!(explained.err.contains("every plan needs at least 96 B"), "{explained:?}");
    let refused = memplan(&["plan", "book/src/figures/eight.json", "--no-gathers"]);
    assert!(refused.err.contains("--no-gathers needs operators"), "{refused:?}");
}

/// Every byte of the pool is taken at the peak, by chunks that lie in several concatenations.
#[test]
fn an_explanation_counts_the_bytes_of_nested_concatenations() {
    let run = memplan(&["explain", DENSE, "--alignment", "1"]);
    assert!(run.out.contains("The pool is no larger than the peak."), "{}", run.out);
    let run = memplan(&["explain", DENSE, "--alignment", "1", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let chunks = json["peak"]["chunks"].as_array().unwrap();
    let sum: u64 = chunks.iter().map(|chunk| chunk["bytes"].as_u64().unwrap()).sum();
    assert_eq!((Some(sum), Some(sum)), (json["bytes_alive"].as_u64(), json["pool_size"].as_u64()));
    assert_eq!(json["peak"]["free"], serde_json::json!([]));
}

/// Lists operators by kind, the sources of views, and the reasons why the others need new memory.
#[test]
fn operators_are_listed_by_kind_with_the_reasons_against_working_in_place() {
    let run = memplan(&["ops", ENCODER, "--inplace", "elementwise"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for text in [
        "tests/models/encoder.onnx: 45 operators of 10 kinds; in-place elementwise\n",
        "Softmax                          1              -              -    1   625 KiB\n",
        "its kernel works on rows, which the profile excludes\n",
        "Erf                              3              -    3   350 KiB              -\n",
        "Reshape                          4    4   200 KiB              -              -\n",
    ] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    assert!(run.out.lines().all(|line| line.chars().count() <= 80), "{}", run.out);
    let run = memplan(&["ops", ENCODER, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(json["rules"], "in-place rows");
    let kinds = json["kinds"].as_array().unwrap();
    let softmax = kinds.iter().find(|kind| kind["kind"] == "Softmax").unwrap();
    assert_eq!(softmax["in_place"], serde_json::json!({"outputs": 1, "bytes": 640_000}));
    assert_eq!(softmax["reasons"], serde_json::json!([]));
    // Operators in JSON declare what they overwrite.
    let run = memplan(&["ops", EXAMPLE, "--no-inplace", "--no-views"]);
    assert!(run.out.contains("views get memory of their own"), "{}", run.out);
    assert!(run.out.contains("requests to write over an input are not accepted"), "{}", run.out);
}

/// A model is converted with the requests that its kernels allow.
#[test]
fn a_converted_model_has_the_requests_that_its_kernels_allow() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json").display().to_string();
    for (profile, softmax, add) in
        [("none", false, false), ("elementwise", false, true), ("rows", true, true)]
    {
        let run = memplan(&["convert", ENCODER, "--inplace", profile, "-o", &file]);
        assert_eq!((run.code, run.out.as_str()), (0, ""));
        let text = fs::read_to_string(&file).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let asks = |kind: &str| {
            let operators = json["operators"].as_array().unwrap().iter();
            let mut operators = operators.filter(|operator| operator["kind"] == kind);
            operators.any(|operator| operator["outputs"][0].get("overwrites").is_some())
        };
        assert_eq!((asks("Softmax"), asks("Add")), (softmax, add), "{profile}");
    }
}

/// A model has no alignment of its own and gets that of a cache line; a problem states one.
#[rstest]
#[case(&[], "alignment 64 B\n")]
#[case(&["--alignment", "1", "--padding", "3"], "alignment 1 B, padding 3 B\n")]
fn the_alignment_of_a_model_is_64_unless_another_is_given(
    #[case] placing: &[&str],
    #[case] line: &str,
) {
    for command in ["plan", "explain"] {
        let run = memplan(&[&[command, EXAMPLE], placing].concat());
        assert!(unwrapped(&run.out).contains(line), "{}", run.out);
    }
    let run = memplan(&[&["plan", "book/src/figures/tiling.csv"], placing].concat());
    assert_eq!(unwrapped(&run.out).contains(line), !placing.is_empty(), "{}", run.out);
}

/// Operators require no alignment or padding, but the command line may.
#[test]
fn a_plan_of_operators_must_have_the_alignment_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for (name, code) in [("plan.json", 1), ("plan.csv", 0)] {
        let plan = folder.path().join(name).display().to_string();
        assert_eq!(memplan(&["plan", EXAMPLE, "--alignment", "1", "-o", &plan]).code, 0);
        assert_eq!(memplan(&["verify", EXAMPLE, &plan]).code, 0);
        // A CSV file states no alignment: its offsets are checked instead.
        assert_eq!(memplan(&["verify", EXAMPLE, &plan, "--alignment", "64"]).code, code);
        assert_eq!(memplan(&["verify", EXAMPLE, &plan, "--alignment", "4096"]).code, 1);
    }
}

#[test]
fn a_plan_is_executed_where_there_are_operators_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (json, csv) = (path("plan.json"), path("plan.csv"));
    for plan in [&json, &csv] {
        assert_eq!(memplan(&["plan", EXAMPLE, "--strategy", "pushdown", "-o", plan]).code, 0);
    }
    assert_eq!(memplan(&["verify", "--execute", EXAMPLE, &json]).code, 0);
    let run = memplan(&["verify", "--execute", EXAMPLE, &csv]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(
        run.err.contains("plan.csv: --execute needs operators, and a plan that lists"),
        "{}",
        run.err
    );
    let text = fs::read_to_string(&json).unwrap().replace("11264", "11263");
    fs::write(&json, text).unwrap();
    let run = memplan(&["verify", "--execute", EXAMPLE, &json]);
    assert_eq!(run.code, 1);
    assert!(
        run.out.contains("share the bytes") && run.out.contains("over its input"),
        "{}",
        run.out
    );
}

/// The ending of a name gives the format, in capitals or not.
#[rstest]
#[case::plan(&["plan", EXAMPLE], "X.JSON", "{\n  \"format\": \"memplan-plan/1\"")]
#[case::convert(&["convert", EXAMPLE], "X.Csv", "id,lower,upper,size,alignment\n")]
#[case::picture(&["show", EXAMPLE], "X.SVG", "<svg ")]
#[case::page(&["show", EXAMPLE], "X.Html", "<!doctype html>")]
fn the_end_of_a_name_may_be_in_capitals(
    #[case] args: &[&str],
    #[case] name: &str,
    #[case] start: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let run = memplan(&[args, &["-o", path.to_str().unwrap()]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with(start), "{}", &text[..80]);
}

#[test]
fn a_failed_write_leaves_the_old_file_whole() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("plan.json");
    fs::create_dir(&target).unwrap();
    let run = memplan(&["plan", EXAMPLE, "-o", &target.display().to_string()]);
    assert_eq!(run.code, 2);
    assert!(target.is_dir());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn json_and_csv_on_standard_output_are_nothing_else() {
    let run = memplan(&["plan", EXAMPLE, "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(plan["format"], "memplan-plan/1");
    let run = memplan(&["plan", EXAMPLE, "--csv", "--strategy", "pushdown"]);
    assert_eq!(run.out.lines().next(), Some("id,lower,upper,size,offset"));
    assert_eq!(run.out.lines().nth(1), Some("0,0,2,4096,0"));
}

#[test]
fn the_input_may_come_from_standard_input() {
    let csv = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n";
    let run = memplan_with(&["plan", "-", "--format", "csv", "--csv"], None, csv);
    assert_eq!(run.out, "id,lower,upper,size,offset\nb1,0,3,4,0\nb2,3,9,4,0\n");
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("map.html");
    let words = ["show", "-", "--format", "csv", "-o", page.to_str().unwrap()];
    assert_eq!(memplan_with(&words, None, csv).code, 0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<title>standard input: memory map"), "{}", &page[..400]);
    let run = memplan_with(&["plan", "-"], None, csv);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("standard input: the name does not end in"), "{}", run.err);
}

/// One input: a row per strategy. Several: a column per input. For machines: numbers.
#[test]
fn all_strategies_stand_side_by_side() {
    let other = "book/src/figures/eight.json";
    let run = memplan(&["compare", EXAMPLE]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for strategy in memplan::Strategy::ALL {
        let rows = run.out.matches(&format!("\n  {strategy} ")).count()
            + run.out.matches(&format!("\n  {strategy}: ")).count();
        assert_eq!(rows, 1, "{}", run.out);
    }
    let run = memplan(&["compare", EXAMPLE, other]);
    for table in ["pool / peak", "pool              ", "planning time     "] {
        let title = run.out.lines().find(|line| line.starts_with(table)).unwrap();
        assert!(title.ends_with("       (1)       (2)"), "{}", run.out);
    }
    assert!(run.out.contains("\npushdown                    15.0 KiB  15.0 KiB\n"), "{}", run.out);
    let run = memplan(&["compare", EXAMPLE, other, "--json"]);
    let inputs: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(inputs[1]["lower_bound"], 15360);
    assert_eq!(inputs[0]["strategies"].as_array().unwrap().len(), memplan::Strategy::ALL.len());
    assert_eq!(inputs[1]["strategies"][0]["pool_size"], 15360);
}

#[test]
fn a_sequence_is_converted_to_itself_to_a_problem_and_to_csv() {
    let folder = tempfile::tempdir().unwrap();
    let convert = |name: &str, lower: bool| {
        let path = folder.path().join(name).display().to_string();
        let mut args = vec!["convert", EXAMPLE, "-o", &path];
        args.extend(lower.then_some("--lower"));
        let run = memplan(&args);
        assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
        (path, run.err)
    };
    let pool = |path: &str| {
        let run = memplan(&["plan", path, "--json", "--strategy", "pushdown"]);
        serde_json::from_str::<serde_json::Value>(&run.out).unwrap()["pool_size"].as_u64()
    };
    let (sequence, _) = convert("sequence.json", false);
    let (problem, words) = convert("problem.json", true);
    assert_eq!((pool(&sequence), pool(&problem)), (Some(15360), Some(15360)));
    assert!(words.contains("the problem has an alignment of 64 B"), "{words}");
    let lowered: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&problem).unwrap()).unwrap();
    assert_eq!(lowered["alignment"], 64);
    // Without the link, nothing is written over, and the message reports it.
    let (csv, words) = convert("problem.csv", false);
    assert!(words.contains("CSV has no overwrite links; 1 chunk that would"), "{words}");
    assert!(fs::read_to_string(&csv).unwrap().starts_with("id,lower,upper,size,alignment\n"));
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), 6);
}

#[test]
fn optional_parts_that_csv_cannot_hold_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let [path, csv] = ["parts.json", "parts.csv"].map(|name| folder.path().join(name));
    let text = r#"{"format": "memplan-problem/2",
        "chunks": [{"id": 0, "begin": 0, "end": 2, "size": 8}, {"id": 1, "begin": 1, "end": 3, "size": 8}],
        "parts": [{"chunk": 0, "whole": 1, "offset": 0, "required": false}]}"#;
    fs::write(&path, text).unwrap();
    let run = memplan(&["convert", path.to_str().unwrap(), "-o", csv.to_str().unwrap()]);
    assert_eq!(run.code, 0);
    let words = "CSV has no parts; 1 optional part will lie elsewhere, and be copied";
    assert!(run.err.contains(words), "{}", run.err);
}

#[test]
fn padding_that_csv_cannot_hold_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("padded.csv").display().to_string();
    let text = r#"{"format": "memplan-problem/1", "padding": 16, "chunks": []}"#;
    let run = memplan_with(&["convert", "-", "--format", "json", "-o", &path], None, text);
    let words = "memplan: CSV has no padding; add --padding 16 when reading the file\n";
    assert_eq!(run.code, 0);
    assert!(run.err.starts_with(words), "{}", run.err);
}

/// A name of a command that is no text is an error like any other.
#[cfg(unix)]
#[test]
fn arguments_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_memplan"));
    let output = command.arg(std::ffi::OsStr::from_bytes(b"\xff.onnx")).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.starts_with("error: "), "{err}");
}

#[cfg(unix)]
#[rstest]
#[case::of_this_folder("target/release/memplan", "target/release/memplan")]
#[case::found_in_the_path("memplan", "memplan")]
#[case::by_its_whole_path("/usr/bin/memplan", "memplan")]
fn the_first_screen_names_the_command_as_it_was_called(#[case] called: &str, #[case] named: &str) {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_memplan"));
    let out = String::from_utf8(command.arg0(called).output().unwrap().stdout).unwrap();
    assert!(
        out.ends_with(&format!("\nPlan a model of your own: {named} plan MODEL.onnx\n")),
        "{out}"
    );
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_memplan"));
    let mut child =
        command.arg("show").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_trace_states_why_a_request_was_dropped() {
    let text = r#"{"format": "memplan-sequence/1", "operators": [
        {"name": "a", "outputs": [{"name": "x", "size": 8}]},
        {"name": "relu", "inputs": ["x"], "outputs": [{"name": "y", "size": 8, "overwrites": {"input": "x"}}]},
        {"name": "add", "inputs": ["x", "y"], "outputs": [{"name": "z", "size": 8}]}]}"#;
    let run = memplan_with(&["plan", "-", "--format", "json"], Some("memplan=debug"), text);
    let expected = r#"DEBUG memplan::lower: in-place request dropped operator="relu" output="y" input="x" reason=a later operator reads that chunk"#;
    assert!(run.err.contains(expected), "{}", run.err);
}

#[test]
fn invalid_words_in_rust_log_are_reported() {
    let run = memplan_with(&["plan", EXAMPLE], Some("memplan=[[["), "");
    assert_eq!(run.code, 0);
    assert!(run.err.starts_with("memplan: RUST_LOG: "), "{}", run.err);
    assert!(run.err.ends_with("; it is ignored\n"), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1);
    assert_eq!(memplan_with(&["plan", EXAMPLE], Some(""), "").err, "");
}

/// The simulation beside a plan places the chunks as that plan does.
#[test]
fn a_plan_from_a_file_is_simulated_with_its_own_padding() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let plan = path("plan.json");
    let placing = ["--alignment", "64", "--padding", "1000"];
    let make = ["plan", EXAMPLE, "--strategy", "pushdown", "-o", &plan];
    assert_eq!(memplan(&[&make[..], &placing].concat()).code, 0);
    let draw = |words: &[&str], file: &str| {
        let file = path(file);
        let run = memplan(&[&["show", EXAMPLE, "-q", "-o", &file], words].concat());
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        fs::read_to_string(file).unwrap()
    };
    let made = [&["--strategy", "pushdown"][..], &placing].concat();
    assert_eq!(draw(&[&plan], "a.html"), draw(&made, "b.html"));
}
