//! Recomputation: what is printed and written, and the exit codes.

use std::fs;

use serde_json::{Value, json};

use crate::command::memplan;

/// A forward pass of four layers and a backward pass that reads it in reverse, as a file.
fn step(folder: &tempfile::TempDir) -> String {
    let mut operators = Vec::new();
    for layer in 1..=4 {
        operators.push(json!({
            "name": format!("f{layer}"), "inputs": [format!("a{}", layer - 1)],
            "outputs": [{"name": format!("a{layer}"), "size": 1024}], "cost": 10 * layer,
        }));
    }
    let mut above = "a4".to_owned();
    for layer in (1..=4).rev() {
        operators.push(json!({
            "name": format!("b{layer}"), "inputs": [above, format!("a{}", layer - 1)],
            "outputs": [{"name": format!("g{layer}"), "size": 1024}], "once": true,
        }));
        above = format!("g{layer}");
    }
    let step = json!({
        "format": "memplan-sequence/1", "inputs": [{"name": "a0", "size": 1024}],
        "operators": operators, "outputs": ["g1"],
    });
    let path = folder.path().join("step.json");
    fs::write(&path, step.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_step_is_written_with_copies_and_fits() {
    let folder = tempfile::tempdir().unwrap();
    let step = step(&folder);
    let out = folder.path().join("smaller.json");
    let out = out.to_str().unwrap();
    let run = memplan(&["recompute", &step, "--capacity", "4KiB", "--json", "-o", out]);
    assert_eq!((run.code, run.err.as_str()), (0, format!("memplan: wrote {out}\n").as_str()));
    let found = json_of(&run.out);
    assert_eq!(
        found,
        json!({
            "format": "memplan-recomputation/1", "capacity": 4096, "pool_size": 4096, "peak": 4096,
            "peak_bound": 3072, "extra_cost": 10, "cost": 114, "cost_bound": 10, "proven": true,
            "runs": ["f1"],
        })
    );
    let plan = json_of(&memplan(&["plan", out, "--json"]).out);
    assert_eq!(plan["pool_size"], 4096);
    assert!(fs::read_to_string(out).unwrap().contains("a1~1"));
    let text = memplan(&["recompute", &step, "--capacity", "4KiB"]).out;
    for words in
        ["a pool of 4.00 KiB", "1 of 8 operators", "proven", "f1 (step 0), again before step"]
    {
        assert!(text.contains(words), "no {words} in {text}");
    }
}

#[test]
fn a_capacity_below_every_recomputation_is_refuted() {
    let folder = tempfile::tempdir().unwrap();
    let step = step(&folder);
    let out = folder.path().join("none.json");
    let out = out.to_str().unwrap();
    let run = memplan(&["recompute", &step, "--capacity", "2KiB", "--json", "-o", out]);
    let expected = json!({
        "format": "memplan-recomputation/1", "capacity": 2048, "possible": false, "peak_bound": 3072,
    });
    assert_eq!((run.code, json_of(&run.out)), (1, expected));
    assert!(!fs::exists(out).unwrap());
    let text = memplan(&["recompute", &step, "--capacity", "2KiB"]).out;
    assert!(text.contains("no recomputation fits into 2.00 KiB"), "{text}");
}

#[test]
fn a_curve_is_a_table_a_picture_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let step = step(&folder);
    let out = folder.path().join("curve.svg");
    let out = out.to_str().unwrap();
    let run = memplan(&["recompute", &step, "--curve", "3", "-o", out]);
    assert_eq!(run.code, 0);
    assert!(
        run.out.contains("5.00 KiB           5120   100.0 %     0.0 %             0"),
        "{}",
        run.out
    );
    assert!(fs::read_to_string(out).unwrap().starts_with("<svg "));
    let points = json_of(&memplan(&["recompute", &step, "--curve", "3", "--json"]).out);
    assert_eq!(points["points"][2]["extra_cost"], 0);
    assert_eq!((&points["given_peak"], &points["cost"]), (&5120.into(), &104.into()));
}

#[test]
fn wrong_arguments_and_inputs_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let step = step(&folder);
    let problem = "book/src/figures/eight.json";
    for (args, words) in [
        (&["recompute", &step][..], "--capacity"),
        (&["recompute", &step, "--capacity", "4KiB", "-o", "x.csv"], "written as .json"),
        (&["recompute", &step, "--capacity", "4KiB", "-o", "x.onnx"], "written as .json"),
        (&["recompute", ENCODER, "--capacity", "1MiB", "-o", "x.txt"], "written as .onnx or .json"),
        (&["recompute", &step, "--curve", "3", "-o", "x.json"], "written as .svg"),
        (&["recompute", problem, "--capacity", "4KiB"], "only operators can run twice"),
        (&["recompute", &step, "--capacity", "4KiB", "--curve", "3"], "cannot be used with"),
    ] {
        let run = memplan(args);
        assert_eq!(run.code, 2, "{args:?}");
        assert!(run.err.contains(words), "{args:?}: {}", run.err);
    }
}

const ENCODER: &str = "tests/models/encoder.onnx";

#[test]
fn a_model_is_written_with_copies_of_its_nodes() {
    let folder = tempfile::tempdir().unwrap();
    for (capacity, copies) in [("800KiB", true), ("1MiB", false)] {
        let out = folder.path().join("smaller.onnx");
        let out = out.to_str().unwrap();
        let args = ["recompute", ENCODER, "--capacity", capacity, "--json", "-o", out];
        let run = memplan(&args);
        assert_eq!(run.code, 0, "{}", run.err);
        let found = json_of(&run.out);
        assert_eq!(found["runs"].as_array().unwrap().is_empty(), !copies);
        let given = format!("{}/../../{ENCODER}", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(fs::read(out).unwrap() == fs::read(given).unwrap(), !copies);
        let plan = json_of(&memplan(&["plan", out, "--json"]).out);
        assert_eq!(plan["pool_size"], found["pool_size"]);
    }
}

#[test]
fn an_explanation_names_what_runs_twice_and_what_that_saves() {
    let folder = tempfile::tempdir().unwrap();
    let step = step(&folder);
    let out = folder.path().join("smaller.json");
    let out = out.to_str().unwrap();
    memplan(&["recompute", &step, "--capacity", "4KiB", "-o", out]);
    let text = memplan(&["explain", out]).out;
    for words in [
        "1 operator runs twice; the bytes made are not kept in between:",
        "1.00 KiB  f1, step 0, again in step",
        "Without that, 1.00 KiB (1 024 B) more would be alive in",
    ] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    let explained = json_of(&memplan(&["explain", out, "--json"]).out);
    let one = &explained["runs_twice"][0];
    assert_eq!(
        (&one["operator"], &one["step"], &one["bytes"]),
        (&"f1".into(), &0.into(), &1024.into())
    );
    assert_eq!(one["not_kept"][1], one["again"]);
    let plain = memplan(&["explain", &step]).out;
    assert!(!plain.contains("twice"), "{plain}");
}

/// The costs of a model follow from its shapes.
#[test]
fn models_have_costs() {
    let run = memplan(&["recompute", ENCODER, "--curve", "2", "--json"]);
    let curve = json_of(&run.out);
    assert!(curve["cost"].as_u64().unwrap() > 1_000_000, "{curve}");
}
