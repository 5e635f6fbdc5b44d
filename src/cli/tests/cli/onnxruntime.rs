//! Models that are read for ONNX Runtime.

use rstest::rstest;
use serde_json::{Value, json};

use crate::command::memplan;

const ENCODER: &str = "tests/models/encoder.onnx";
const UNET: &str = "tests/models/unet_block.onnx";
const FOR_RUNTIME: [&str; 2] = ["--runtime", "onnxruntime"];

fn for_runtime(args: &[&str]) -> String {
    let run = memplan(&[args, &FOR_RUNTIME].concat());
    assert_eq!((run.code, &*run.err), (0, ""), "{args:?}");
    run.out
}

#[test]
fn the_memory_pattern_stands_beside_the_pool() {
    let expected = "
ONNX Runtime on the CPU
  memory pattern             1.46 MiB (1 536 000 B)
  outputs, allocated apart   50.0 KiB (51 200 B)
  pool of this plan          1.32 MiB (1 382 400 B), 12.9 % less than both
";
    for command in ["plan", "explain"] {
        let out = for_runtime(&[command, ENCODER]);
        assert!(out.contains(expected), "{out}");
        assert!(out.contains("rules     in-place as in ONNX Runtime, alignment 64 B"), "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    }
    let plan: Value = serde_json::from_str(&for_runtime(&["plan", ENCODER, "--json"])).unwrap();
    let arena = &plan["arena"];
    assert_eq!(arena["runtime"], json!("onnxruntime"));
    assert_eq!((&arena["own"], &arena["planned"]), (&json!(1_587_200), &json!(1_382_400)));
    let naive = for_runtime(&["plan", ENCODER, "--strategy", "naive"]);
    assert!(naive.contains("2.88 MiB (3 020 800 B) more"), "{naive}");
    let without = memplan(&["plan", ENCODER]).out;
    assert!(!without.contains("ONNX Runtime"), "{without}");
}

#[test]
fn a_comparison_ends_with_the_memory_patterns() {
    let one = for_runtime(&["compare", ENCODER, "--effort", "1"]);
    let title = "ONNX Runtime's memory pattern, with the outputs\n";
    let expected = format!("\n{title}  1.51 MiB (1 587 200 B), 1.148 of the peak\n");
    assert!(one.ends_with(&expected), "{one}");
    let two = for_runtime(&["compare", ENCODER, UNET, "--effort", "1"]);
    let unet = "  (2) 2.57 MiB (2 691 328 B), 1.172 of the peak\n";
    assert!(two.contains("  (1) 1.51 MiB (1 587 200 B)") && two.ends_with(unet), "{two}");
    let json = for_runtime(&["compare", ENCODER, "--effort", "1", "--json"]);
    let compared: Value = serde_json::from_str(&json).unwrap();
    let expected = json!({"memory_pattern": 1_536_000, "outputs": 51_200});
    assert_eq!(compared[0]["onnxruntime"], expected);
}

/// A plan for the runtime's rules is right for them.
#[test]
fn a_plan_is_verified_for_the_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    assert_eq!(memplan(&[&["plan", ENCODER, "-o", &plan][..], &FOR_RUNTIME].concat()).code, 0);
    let out = for_runtime(&["verify", ENCODER, &plan, "--execute"]);
    assert!(out.starts_with("correct: "), "{out}");
}

#[rstest]
#[case(&["plan", "book/src/figures/example.json"], "--runtime onnxruntime applies only to ONNX models; omit it")]
#[case(&["plan", "tests/models/variable_f32.tflite"], "--runtime onnxruntime applies only to ONNX models; omit it")]
#[case(&["ops", ENCODER, "--inplace", "rows"], "--inplace: ONNX Runtime itself decides")]
#[case(&["plan", ENCODER, "--no-inplace"], "--no-inplace: ONNX Runtime itself decides")]
#[case(&["reorder", ENCODER], "encoder.onnx: ONNX Runtime chooses the order of the nodes itself; omit --runtime onnxruntime")]
#[case(&["plan", ENCODER, "--kernels", "book/src/figures/onnxruntime.kernels"], "--kernels: ONNX Runtime itself decides")]
fn options_that_contradict_it_are_refused(#[case] args: &[&str], #[case] words: &str) {
    let run = memplan(&[args, &FOR_RUNTIME].concat());
    assert!(run.code == 2 && run.err.contains(words), "{}", run.err);
    let other = memplan(&["plan", ENCODER, "--runtime", "tflite"]);
    let words = "--runtime tflite applies only to TensorFlow Lite models; omit it";
    assert!(other.code == 2 && other.err.contains(words), "{}", other.err);
}
