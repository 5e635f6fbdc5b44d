//! A better order of the operators: the files and messages written, and the verification of its plan.

use std::{fs, path::Path};

use rstest::rstest;
use serde_json::Value;

use crate::command::{memplan, project};

const BRANCHES: &str = "book/src/figures/branches.json";
const HEADS: &str = "tests/models/heads.onnx";
const ENCODER: &str = "tests/models/encoder.onnx";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// `plan` names the command for a better order, unless there is none, or the time or the pool is limited.
#[rstest]
#[case::better(BRANCHES, &[], true)]
#[case::best_already(ENCODER, &[], false)]
#[case::reordered(BRANCHES, &["--reorder"], false)]
#[case::limited(BRANCHES, &["--time-limit", "9s"], false)]
#[case::capacity(BRANCHES, &["--capacity", "1MiB"], false)]
fn a_plan_names_the_command_for_a_better_order(
    #[case] input: &str,
    #[case] options: &[&str],
    #[case] is_named: bool,
) {
    let run = memplan(&[&["plan", input], options].concat());
    let words =
        "\nanother order of the operators needs 5.50 KiB (5 632 B) or less: memplan reorder\n";
    assert_eq!((run.code, run.out.contains(words)), (0, is_named), "{}", run.out);
}

#[test]
fn a_sequence_is_written_in_the_better_order() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("better.json");
    let out = out.to_str().unwrap();
    let run = memplan(&["reorder", BRANCHES, "-o", out, "--alignment", "1"]);
    assert_eq!((run.code, run.err.as_str()), (0, format!("memplan: wrote {out}\n").as_str()));
    for words in [
        "reordered in ",
        "smaller         pool 5.50 KiB instead of 12.5 KiB (56.0 % saved)\n",
        "no order\n                has a lower peak",
        "of 10 operators",
        "its peak at step 6 (head1).",
        "4.00 KiB  made by score2 (step 4), which now runs after it\n",
    ] {
        assert!(run.out.contains(words), "no {words} in {}", run.out);
    }
    // The order that was written is the best one, and its plan is as small as promised.
    let again = json(&memplan(&["reorder", out, "--alignment", "1", "--json"]).out);
    assert_eq!((&again["better"], &again["proven"]), (&false.into(), &true.into()));
    assert_eq!((&again["pool_size"], &again["moved"]), (&5632.into(), &0.into()));
    let operators = |path: &Path| {
        let sequence = json(&fs::read_to_string(path).unwrap());
        let mut operators = sequence["operators"].as_array().unwrap().clone();
        let order: Vec<String> = operators.iter().map(|o| o["name"].to_string()).collect();
        operators.sort_by_key(|operator| operator["name"].to_string());
        (order, operators)
    };
    let first =
        memplan(&["convert", BRANCHES, "-o", folder.path().join("x.json").to_str().unwrap()]);
    assert_eq!(first.code, 0);
    let (given, as_given) = operators(&folder.path().join("x.json"));
    let (order, as_ordered) = operators(Path::new(out));
    assert!(given != order && as_given == as_ordered);
}

#[test]
fn a_model_is_written_with_its_nodes_moved() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("better.onnx");
    let out = out.to_str().unwrap();
    let run = memplan(&["reorder", HEADS, "--dim", "batch=2", "-o", out, "--json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let found = json(&run.out);
    assert_eq!((&found["better"], &found["proven"]), (&true.into(), &true.into()));
    let plan = json(&memplan(&["plan", out, "--dim", "batch=2", "--json"]).out);
    assert_eq!(plan["pool_size"], found["pool_size"]);
    let (before, after) = (fs::read(project().join(HEADS)).unwrap(), fs::read(out).unwrap());
    assert_eq!(before.len(), after.len());
    assert_ne!(before, after);
    // The sequence can be written instead.
    let sequence = folder.path().join("better.json");
    let sequence = sequence.to_str().unwrap();
    let run = memplan(&["-q", "reorder", HEADS, "--dim", "batch=2", "-o", sequence]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    let plan = json(&memplan(&["plan", sequence, "--json"]).out);
    assert_eq!(plan["pool_size"], found["pool_size"]);
}

/// A file need not list its nodes in execution order. The plan states which runs when, and `reorder` sorts them.
#[test]
fn the_order_of_unsorted_nodes_is_stated() {
    const UNSORTED: &str = "tests/fixtures/unsorted.onnx";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, sorted) = (path("plan.json"), path("sorted.onnx"));
    let run = memplan(&["-q", "plan", UNSORTED, "-o", &plan]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let stated = json(&fs::read_to_string(&plan).unwrap());
    assert_eq!(stated["order"], serde_json::json!([2, 1, 0]));
    assert_eq!(stated["sorted"], true);
    for again in [&[][..], &["--execute"]] {
        let run = memplan(&[&["verify", UNSORTED, &plan], again].concat());
        assert!(run.out.starts_with("correct: "), "{}{}", run.out, run.err);
    }
    let run = memplan(&["-q", "reorder", UNSORTED, "-o", &sorted]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let again = memplan(&["plan", &sorted, "--json"]);
    assert_eq!(again.err, "");
    let again = json(&again.out);
    assert!(again.get("order").is_none() && again.get("sorted").is_none());
    assert_eq!(again["pool_size"], stated["pool_size"]);
    // Both files have the same order.
    assert_eq!(memplan(&["verify", &sorted, &plan]).code, 1);
}

/// If no order is better, and the nodes are in execution order, the file written equals the file read.
#[test]
fn a_model_in_the_best_order_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("same.onnx");
    let run = memplan(&["reorder", ENCODER, "-o", out.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("\nproven          no order is better\n"), "{}", run.out);
    assert_eq!(fs::read(out).unwrap(), fs::read(project().join(ENCODER)).unwrap());
}

#[test]
fn an_order_may_not_be_found_within_the_effort() {
    let run = memplan(&["reorder", HEADS, "--dim", "batch=1", "--effort", "1", "--json"]);
    let found = json(&run.out);
    assert!(found["pool_size"].as_u64() <= found["given_pool_size"].as_u64());
}

#[rstest]
#[case::onto_the_input(&["reorder", BRANCHES, "-o", BRANCHES], "-o names a file that is read; choose another name")]
#[case::onto_standard_output(&["reorder", BRANCHES, "-o", "-"], "-o must name a file, not -; omit -o, and print the order with --json")]
#[case::no_model(&["reorder", BRANCHES, "-o", "x.onnx"], "x.onnx: operators that were not read from ONNX are written as .json")]
#[case::csv(&["reorder", HEADS, "--dim", "batch=1", "-o", "x.csv"], "x.csv: a reordered model must end in .onnx or .json")]
#[case::no_folder(&["reorder", BRANCHES, "-o", "nowhere/x.json"], "nowhere/x.json: cannot write: No such file or directory")]
#[case::no_operators(&["reorder", "book/src/figures/tiling.csv"], "tiling.csv: this is a problem, whose steps are given; only operators can be reordered")]
#[case::open_sizes(&["reorder", HEADS], "batch")]
#[case::plan_of_a_problem(&["plan", "book/src/figures/tiling.csv", "--reorder"], "only operators can be reordered")]
#[case::plan_as_csv(&["plan", BRANCHES, "--reorder", "-o", "x.csv"], "x.csv: only .json can state the order that --reorder finds; use .json")]
#[case::trace(&["show", BRANCHES, "--reorder", "-o", "x.json"], "both orders are drawn as .svg, .html or .txt")]
fn reordering_is_refused_where_it_is_impossible(#[case] args: &[&str], #[case] words: &str) {
    let run = memplan(args);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains(words), "{}", run.err);
}

/// A truncated model, or one with a changed byte, is refused or reordered; in any case the tool exits
/// properly, and no file is half written.
#[test]
fn a_damaged_model_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (damaged, out) = (folder.path().join("damaged.onnx"), folder.path().join("out.onnx"));
    let model = fs::read(project().join(HEADS)).unwrap();
    let ends = (0..model.len()).step_by(167).map(|end| model[..end].to_vec());
    let flips = (0..model.len()).step_by(131).map(|at| {
        let mut flipped = model.clone();
        flipped[at] ^= 1 << (at % 8);
        flipped
    });
    for (at, bytes) in ends.chain(flips).enumerate() {
        fs::write(&damaged, &bytes).unwrap();
        let path = damaged.to_str().unwrap();
        let args = ["reorder", path, "--dim-default", "2", "-o", out.to_str().unwrap()];
        let run = memplan(&args);
        match run.code {
            0 => assert_eq!(fs::read(&out).unwrap().len(), bytes.len(), "{at}"),
            2 => assert!(run.err.starts_with("memplan: ") && !out.exists(), "{at}: {}", run.err),
            code => panic!("{at}: exit code {code}, {}", run.err),
        }
        let _ = fs::remove_file(&out);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{at}");
    }
}

/// A random graph whose best order takes long to find.
fn hard_sequence() -> Value {
    let mut seed = 12_345_u64;
    let mut random = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let operators: Vec<Value> = (0..240_u64)
        .map(|at| {
            let count = if at == 0 { 0 } else { 1 + random(3) };
            let inputs = (0..count).map(|_| format!("t{}", (at - 1).saturating_sub(random(40))));
            let inputs: std::collections::BTreeSet<String> = inputs.collect();
            let output = serde_json::json!({"name": format!("t{at}"), "size": 100 + random(900)});
            serde_json::json!({"name": "", "inputs": inputs, "outputs": [output]})
        })
        .collect();
    serde_json::json!({
        "format": "memplan-sequence/1", "inputs": [], "operators": operators, "outputs": ["t239"],
    })
}

#[cfg(unix)]
#[test]
fn an_interrupted_search_writes_the_best_order_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("hard.json"), folder.path().join("out.json"));
    fs::write(&input, hard_sequence().to_string()).unwrap();
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_memplan"))
        .arg("reorder")
        .arg(&input)
        .args(["--time-limit", "600s", "-o"])
        .arg(&out)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let words = String::from_utf8(output.stderr).unwrap();
    let interrupted =
        "memplan: interrupted: this is the best order so far; it is not proven the best\n";
    assert!(words.starts_with(interrupted), "{words}");
    let again = json(&memplan(&["plan", out.to_str().unwrap(), "--json"]).out);
    let given = json(&memplan(&["plan", input.to_str().unwrap(), "--json"]).out);
    assert!(again["pool_size"].as_u64() <= given["pool_size"].as_u64());
}

/// Both orders are sheets of one page.
#[test]
fn a_page_shows_both_orders() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("orders.html");
    let run = memplan(&["show", BRANCHES, "--reorder", "-o", page.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.err);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(r#""label":"order given""#) && page.contains(r#""label":"order found""#));
}

#[test]
fn a_plan_of_another_order_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let plan = path.to_str().unwrap();
    let run = memplan(&["plan", BRANCHES, "--reorder", "--alignment", "1", "-o", plan]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("pool      5.50 KiB") && run.out.contains("smaller  "), "{}", run.out);
    for args in [&["verify", BRANCHES, plan][..], &["verify", BRANCHES, plan, "--execute"]] {
        let run = memplan(args);
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        assert!(run.out.starts_with("correct: "), "{}", run.out);
    }
    // The maps name operators in the order of the plan.
    let shown = memplan(&["show", BRANCHES, plan]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    let explained = memplan(&["explain", BRANCHES, plan]);
    assert_eq!(explained.code, 0, "{}", explained.err);
    // Without its order, or with one that cannot run, the plan is wrong.
    let mut wrong = json(&fs::read_to_string(&path).unwrap());
    wrong["order"].as_array_mut().unwrap().reverse();
    fs::write(&path, wrong.to_string()).unwrap();
    let run = memplan(&["verify", BRANCHES, plan]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.out.contains("the plan's order of the operators is wrong"), "{}", run.out);
    assert_eq!(memplan(&["show", BRANCHES, plan]).code, 2);
    wrong.as_object_mut().unwrap().remove("order");
    fs::write(&path, wrong.to_string()).unwrap();
    assert_eq!(memplan(&["verify", BRANCHES, plan]).code, 1);
}

#[rstest]
#[case(
    "5631",
    1,
    "does not fit: capacity 5.50 KiB (5 631 B), but every order needs at least 5.50 KiB"
)]
#[case("5632", 0, "")]
fn a_capacity_is_checked_for_all_orders(
    #[case] capacity: &str,
    #[case] code: i32,
    #[case] words: &str,
) {
    let args = ["plan", BRANCHES, "--reorder", "--alignment", "1", "--capacity", capacity];
    let run = memplan(&args);
    assert_eq!(run.code, code, "{}{}", run.out, run.err);
    assert!(run.err.contains(words), "{}", run.err);
}

#[test]
fn both_orders_stand_side_by_side() {
    let run = memplan(&["show", BRANCHES, "--reorder", "--alignment", "1"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with("In the order given:\npool 12.5 KiB"), "{}", run.out);
    assert!(run.out.contains("\nIn the order found:\npool 5.50 KiB"), "{}", run.out);
    let lines: Vec<&str> =
        run.out.lines().filter_map(|line| line.split("1 row = ").nth(1)).collect();
    assert!(lines.len() == 2 && lines[0] == lines[1], "one scale: {}", run.out);
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("both.svg");
    let run = memplan(&["show", BRANCHES, "--reorder", "-o", svg.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.err);
    let drawn = fs::read_to_string(svg).unwrap();
    assert_eq!(drawn.matches("<svg").count(), 5, "{drawn}");
    let explained = memplan(&["explain", BRANCHES, "--reorder", "--alignment", "1"]);
    assert!(explained.out.starts_with("smaller  "), "{}", explained.out);
    assert!(explained.out.contains("\nPeak, at step "), "{}", explained.out);
}

#[test]
fn a_comparison_has_a_row_for_the_better_order() {
    let run = memplan(&["compare", BRANCHES, "--reorder", "--alignment", "1"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let rows = run.out.split_once("strategy").unwrap().1;
    let first = rows.lines().nth(1).unwrap();
    assert!(first.contains("best, reordered") && first.contains("5.50 KiB"), "{}", run.out);
    let two = ["compare", BRANCHES, "book/src/figures/tiling.csv", "--reorder"];
    let run = memplan(&two);
    let row = run.out.lines().find(|line| line.starts_with("best, reordered")).unwrap();
    assert!(row.trim_end().ends_with('-'), "{}", run.out);
    let found = json(&memplan(&["compare", BRANCHES, "--reorder", "--json"]).out);
    assert!(found[0]["best_reordered"]["pool_size"].as_u64() < found[0]["bytes_alive"].as_u64());
}
