//! Recordings of allocations on the command line: explained, drawn and refused.

use std::fs;

use rstest::rstest;
use serde_json::Value;

use crate::{EXAMPLE, command::memplan};

const M: u64 = 1 << 20;
const SNAPSHOT: &str = "tests/recordings/step.pickle";
const PROFILE: &str = "tests/recordings/step.json";
const XLA: &str = "tests/recordings/loop-buffer-assignment.txt";
const PROGRAM: &str = "tests/recordings/mlp.pte";

#[rstest]
#[case(SNAPSHOT, "PyTorch memory snapshot, cuda:0: 7 events, 6 chunks", "train.py:6 step")]
#[case(PROFILE, "PyTorch profile, cpu: 26 events, 15 chunks", "mlp.py:6 step, ReluBackward0")]
#[case(XLA, "XLA buffer assignment, memory space 0: 21 instructions", "ynn_fusion")]
#[case(PROGRAM, "ExecuTorch program, forward, arena 1: 10 instructions", "aten::permute_copy.out")]
fn a_recording_is_explained(#[case] path: &str, #[case] head: &str, #[case] line: &str) {
    let run = memplan(&["explain", path]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(run.out.starts_with(head), "{}", run.out);
    for text in
        ["Live bytes or fragmentation?", "make the peak?", "What would one static pool take?", line]
    {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    assert!(run.out.lines().all(|line| line.chars().count() <= 80), "{}", run.out);
}

#[test]
fn the_answers_are_numbers_in_json() {
    let run = memplan(&["explain", SNAPSHOT, "--json"]);
    let explained: Value = serde_json::from_str(&run.out).unwrap();
    let recording = &explained["recording"];
    for (key, bytes) in [("reserved", 16 * M), ("live", 10 * M), ("planned", 10 * M)] {
        assert_eq!(recording[key], bytes, "{key}");
    }
    assert_eq!(recording["lines"][0]["line"], "train.py:6 step");
    assert_eq!(recording["lines"][0]["bytes"], 4 * M);
}

#[test]
fn what_the_allocator_did_is_drawn_beside_the_plan() {
    let run = memplan(&["show", SNAPSHOT, "--height", "8"]);
    assert_eq!(run.code, 0, "{}", run.err);
    for text in ["as allocated, cuda:0:", "pool 13.0 MiB", "planned, cuda:0:", "pool 10.0 MiB"] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("map.html").display().to_string();
    assert_eq!(memplan(&["show", SNAPSHOT, PROFILE, "-o", &page]).code, 0);
    let text = fs::read_to_string(&page).unwrap();
    for label in ["step.pickle: as allocated", "step.pickle: planned", "step.json: as allocated"] {
        assert!(text.contains(label), "no {label}");
    }
}

#[test]
fn a_plan_of_a_recording_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    for path in [SNAPSHOT, PROFILE, XLA, PROGRAM] {
        assert_eq!(memplan(&["plan", path, "-o", &plan]).code, 0);
        let run = memplan(&["verify", path, &plan]);
        assert!(run.code == 0 && run.out.starts_with("correct: "), "{run:?}");
        let run = memplan(&["show", path, &plan, "--height", "4"]);
        assert!(run.code == 0 && !run.out.contains("as allocated"), "{run:?}");
    }
}

#[rstest]
#[case(&["explain", EXAMPLE, "--device", "cpu"], "--device applies only to recordings of allocations")]
#[case(&["explain", SNAPSHOT, "--device", "cpu"], "recorded are cuda:0, cuda:1")]
#[case(&["show", SNAPSHOT, PROFILE, EXAMPLE, "-o", "x.html"], "either other recordings or plans of the first")]
#[case(&["show", SNAPSHOT, "--reorder"], "--reorder is not for recordings")]
#[case(&["explain", SNAPSHOT, "--weights"], "--weights needs operators")]
#[case(&["explain", "tests/recordings/loop-live-range.txt"], "give the format with --format")]
fn an_option_without_effect_is_refused(#[case] args: &[&str], #[case] words: &str) {
    let run = memplan(args);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains(words), "{}", run.err);
}
