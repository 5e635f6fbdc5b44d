//! TensorFlow Lite models: the head of the arena, models with a plan, and what is refused.

use std::fs;

use memplan::export::tflite::ENTRY;
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    command::{Run, memplan},
    flatbuffer::{Subgraph, chain, code, file, model, model_fields, open},
    shared::shared_path,
};

/// A folder with a model in it.
pub(super) struct Folder {
    pub(super) folder: TempDir,
    pub(super) model: String,
}

impl Folder {
    pub(super) fn of(subgraphs: &[Subgraph]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model_path = folder.path().join("chain.tflite");
        fs::write(&model_path, model(subgraphs)).unwrap();
        Self { model: model_path.display().to_string(), folder }
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub(super) fn with(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }
}

#[test]
fn every_command_takes_a_model() {
    let folder = Folder::of(&[chain()]);
    let out = |args: &[&str]| {
        let Run { code, out, err } = memplan(&[args, &[&folder.model]].concat());
        assert_eq!((code, &*err), (0, ""), "{args:?}");
        out
    };
    assert!(out(&["plan"]).replace("\n  ", " ").contains("in-place rows, reference kernels"));
    assert!(out(&["compare"]).contains("tflite-micro"));
    assert!(out(&["show"]).contains("step 5, over c"));
    assert!(out(&["explain"]).contains("CONV_2D 0"));
    assert!(out(&["ops"]).contains("its kernel reads an input for several outputs"));
    assert!(out(&["plan", "--kernels", "cmsis-nn"]).contains("cmsis-nn kernels"));
    let printed = memplan(&["plan", "--csv", &folder.model]);
    let line =
        "head of TensorFlow Lite Micro's arena: 768 B by its own planner, 512 B with this plan";
    assert_eq!(printed.err.trim_end(), format!("memplan: {line}"));
    let json = folder.path("chain.json");
    assert_eq!(memplan(&["convert", &folder.model, "-o", &json]).code, 0);
    let converted = memplan(&["plan", &json, "--alignment", "16"]);
    assert!(converted.out.contains("512 B"), "{}", converted.out);
}

#[test]
fn outputs_begin_below_their_inputs_only_if_the_kernels_are_stated() {
    let mut convolution = chain();
    convolution.operators.truncate(2);
    convolution.tensors.truncate(4);
    convolution.outputs = vec![3];
    let folder = Folder::of(&[convolution]);
    let run = |args: &[&str]| memplan(&[args, &[&folder.model]].concat());
    let refused = |args: &[&str], words: &str| {
        let Run { code, err, .. } = run(args);
        assert!(code == 2 && err.contains(words), "{err}");
    };
    refused(&["plan", "--overlap"], "--kernels");
    refused(&["plan", "--overlap", "--kernels", "cmsis-nn-mve"], "not known");
    refused(&["plan", "--overlap", "--kernels", "mine"], "'mine' is not one of");
    let overlap = ["--overlap", "--kernels", "reference"];
    let summary = run(&[&["plan"], &overlap[..]].concat()).out;
    let words: Vec<&str> = summary.split_whitespace().collect();
    assert!(words.join(" ").contains("reference kernels, only these overlaps"), "{summary}");
    let map = run(&[&["show"], &overlap[..]].concat());
    assert!(map.code == 0 && map.out.contains("below"), "{}{}", map.out, map.err);
    let planned = folder.path("planned.tflite");
    let written = run(&[&["plan", "-o", &planned], &overlap[..]].concat());
    assert_eq!(written.code, 0, "{}", written.err);
    let check = format!("{planned} --kernels reference --overlap\n");
    assert!(written.out.contains("  check it: memplan verify ") && written.out.ends_with(&check));
    let verified = |args: &[&str]| memplan(&[&["verify", &folder.model, &planned], args].concat());
    assert_eq!(verified(&overlap).code, 0);
    // Without --overlap, no kernel is known to allow it.
    let wrong = verified(&[]);
    assert!(
        wrong.code == 1 && wrong.out.contains("without --overlap; the options must be as for plan")
    );
    let json = folder.path("chain.json");
    assert_eq!(run(&[&["convert", "-o", &json], &overlap[..]].concat()).code, 0);
    let Run { code, err, .. } = memplan(&[&["plan", &json], &overlap[..]].concat());
    assert!(code == 2 && err.contains("TensorFlow Lite"), "{err}");
}

#[test]
fn the_head_is_predicted_and_a_smaller_one_written() {
    let folder = Folder::of(&[chain()]);
    let planned = folder.path("planned.tflite");
    let Run { code, out, .. } = memplan(&["plan", &folder.model, "-o", &planned]);
    assert_eq!(code, 0);
    let expected = "
TensorFlow Lite Micro, reference kernels
  head by its own planner    768 B
  head with this plan        512 B, 33.3 % saved
  arena by its own planner   2.22 KiB (2 272 B)
  arena with this plan       1.97 KiB (2 016 B)
  The head holds tensors and 0 scratch buffers of the kernels.";
    assert!(out.contains(expected), "{out}");
    let verified = memplan(&["verify", &folder.model, &planned]);
    let right = "correct: 6 tensors at fixed offsets\n  head by its own planner    768 B\n  \
        head with this plan        512 B, 33.3 % saved\n";
    assert_eq!((verified.code, &*verified.out), (0, right));
    assert_eq!(memplan(&["verify", &planned]).out, right);
    // The same plan is wrong for kernels that cannot work in place.
    let strict = memplan(&["verify", &folder.model, &planned, "--no-inplace"]);
    assert_eq!(strict.code, 1);
    assert!(strict.out.contains("wrong: "), "{}", strict.out);
    // A plan in the file is kept unless it may be replaced, and is replaced only by a smaller one.
    let again = memplan(&["plan", &planned]);
    assert!(again.out.contains("head with the file's plan  512 B"), "{}", again.out);
    let again = memplan(&["plan", &planned, "-o", &folder.path("b.tflite"), "--replace"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("nothing is written: with this plan, the runtime would take"));
    assert!(!folder.folder.path().join("b.tflite").exists());
}

/// A chain, or a convolution for which no plan saves anything, with an offline plan in its metadata.
pub(super) fn with_plan(operators: usize, offsets: &[i32]) -> Folder {
    let mut main = chain();
    main.operators.truncate(operators);
    if operators == 1 {
        main.tensors.truncate(3);
        main.outputs = vec![2];
    }
    let count = i32::try_from(offsets.len()).unwrap();
    let data = [1, 1, count].into_iter().chain(offsets.iter().copied()).flat_map(i32::to_le_bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("planned.tflite");
    fs::write(&path, file(&model_fields(&[main], &[(ENTRY, data.collect())]))).unwrap();
    Folder { model: path.display().to_string(), folder }
}

/// The plan in a model is compared with only if the model runs with it.
#[rstest]
#[case::one_on_another(5, &[0; 7], "writes 'a' over its input 'x'", "512 B")]
#[case::unaligned(5, &[8, -1, -1, -1, -1, -1, -1], "tensor 0 lies at 8, which is no multiple of 16", "512 B")]
#[case::of_another_model(5, &[0; 3], "it states 3 offsets, but there are 7 tensors", "512 B")]
#[case::nothing_to_gain(1, &[0, -1, 0], "writes 'a' over its input 'x'", "512 B")]
fn a_wrong_plan_in_a_model_is_reported_and_replaced(
    #[case] operators: usize,
    #[case] offsets: &[i32],
    #[case] fault: &str,
    #[case] head: &str,
) {
    let folder = with_plan(operators, offsets);
    let Run { code, out, .. } = memplan(&["plan", &folder.model]);
    let words: Vec<&str> = out.split_whitespace().collect();
    let words = words.join(" ");
    assert_eq!(code, 0);
    assert!(words.contains("The plan in the file is wrong for reference kernels"), "{out}");
    assert!(words.contains(fault) && words.contains("head by its own planner"), "{out}");
    assert!(words.contains("--replace -o OUT.tflite writes the model with a right plan."), "{out}");
    assert!(!words.contains("do not use it"), "{out}");
    let json = memplan(&["plan", "--json", &folder.model]).out;
    let arena = &serde_json::from_str::<Value>(&json).unwrap()["arena"];
    assert!(arena["wrong_plan"][0].as_str().unwrap().contains(fault), "{arena}");
    assert_eq!(arena["planned_already"], false);
    let right = folder.path("right.tflite");
    let kept = memplan(&["plan", &folder.model, "-o", &right]);
    assert!(kept.code == 2 && !std::path::Path::new(&right).exists(), "{}", kept.err);
    assert!(
        kept.err.contains("its plan is wrong: ") && kept.err.contains("--replace"),
        "{}",
        kept.err
    );
    let written = memplan(&["plan", &folder.model, "--replace", "-o", &right]);
    assert_eq!(written.code, 0, "{}", written.err);
    // Where no plan saves anything, only the wrong one is taken away.
    assert_eq!(written.err.contains("the new plan states no offsets"), operators == 1);
    let verified = memplan(&["verify", &folder.model, &right]);
    assert_eq!(verified.code, 0, "{}", verified.out);
    assert!(
        verified.out.contains(&format!("head with this plan        {head}")),
        "{}",
        verified.out
    );
    let again = memplan(&["plan", &right, "--json"]).out;
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap()["arena"]["wrong_plan"], Value::Null);
}

/// A plan is right or wrong for the kernels that run.
#[test]
fn the_plan_in_a_model_may_be_wrong_for_other_kernels() {
    let folder = Folder::of(&[chain()]);
    let planned = folder.path("planned.tflite");
    assert_eq!(memplan(&["plan", &folder.model, "-o", &planned]).code, 0);
    let strict = memplan(&["plan", &planned, "--no-inplace"]);
    assert!(
        strict.out.contains("The plan in the file is wrong for reference kernels"),
        "{}",
        strict.out
    );
    let again = folder.path("again.tflite");
    let written = memplan(&["plan", &planned, "--no-inplace", "--replace", "-o", &again]);
    assert_eq!(written.code, 0, "{}", written.err);
    assert_eq!(memplan(&["verify", &folder.model, &again, "--no-inplace"]).code, 0);
    let listed = memplan(&["plan", &planned, "--no-inplace", "--csv"]);
    assert!(listed.err.trim_end().ends_with("; the plan in the file is wrong"), "{}", listed.err);
}

#[test]
fn the_plan_in_json_states_the_arena() {
    let folder = Folder::of(&[chain()]);
    let Run { code, out, err } = memplan(&["plan", "--json", &folder.model]);
    assert_eq!((code, &*err), (0, ""));
    let printed: Value = serde_json::from_str(&out).unwrap();
    let expected = json!({
        "runtime": "tflite-micro",
        "kernels": "reference",
        "own": 768,
        "planned_already": false,
        "planned": 512,
        "scratch_buffers": 0,
        "unknown_scratch": [],
        "not_included": [],
        "tail": 1504,
        "tail_release": "0.dev20261023182759",
        "variables": 0,
    });
    assert_eq!(printed["arena"], expected);
    // The file can be verified like any other plan.
    let plan = folder.with("plan.json", &out);
    assert_eq!(memplan(&["verify", &folder.model, &plan]).code, 0);
}

/// A file that states a batch of 1, and a length of 1 in place of one that it leaves open.
#[test]
fn open_shapes_are_noted_or_asked_for() {
    let batch = |shape: &[i32], signature: &[i32]| {
        let tensors = vec![open("x", shape, signature), open("y", shape, signature)];
        let operators = vec![(code::RELU, vec![0], vec![1], vec![])];
        Folder::of(&[Subgraph { tensors, inputs: vec![0], outputs: vec![1], operators }])
    };
    let folder = batch(&[1, 8], &[-1, 8]);
    let Run { code, out, err } = memplan(&["plan", &folder.model, "--strategy", "naive"]);
    assert!(code == 0 && err.contains("taken as it states them: 'x' as 1x8"), "{err}");
    assert!(out.contains("64 B"), "{out}");
    let interpreter = ["plan", "--runtime", "tflite", &folder.model, "--strategy", "naive"];
    let resized = memplan(&[&interpreter[..], &["--shape", "x=40x8"]].concat());
    assert!(resized.code == 0 && resized.err.is_empty(), "{}", resized.err);
    assert!(resized.out.contains("2.50 KiB (2 560 B)"), "{}", resized.out);
    let folder = batch(&[1, 1], &[-1, -1]);
    for command in ["plan", "show", "ops", "explain"] {
        let Run { code, err, .. } = memplan(&[command, &folder.model]);
        assert!(code == 2 && err.contains("\n  'x', an input: ?x?\n"), "{command}: {err}");
        assert!(err.contains("--runtime tflite") && err.contains("--shape"), "{err}");
    }
}

#[test]
fn a_model_is_planned_for_the_interpreter() {
    let folder = Folder::of(&[chain()]);
    let run = |args: &[&str]| memplan(&[args, &["--runtime", "tflite", &folder.model]].concat());
    let Run { code, out, err } = run(&["plan"]);
    assert_eq!((code, &*err), (0, ""));
    let expected = "
TensorFlow Lite's interpreter
  arena by its own planner   768 B
  arena with this plan       768 B, no saving
  The arena holds tensors, the inputs and outputs of the model to the end,";
    assert!(out.contains(expected), "{out}");
    assert!(out.contains("interpreter, alignment 64 B"), "{out}");
    let printed: Value = serde_json::from_str(&run(&["plan", "--json"]).out).unwrap();
    let arena = &printed["arena"];
    assert_eq!((&arena["runtime"], &arena["own"]), (&json!("tflite"), &json!(768)));
    assert_eq!(arena["not_included"], json!(["other scratch memory of its kernels"]));
    let planned = folder.path("planned.tflite");
    for (args, words) in [
        (&["plan", "-o", &planned][..], "takes no plan from outside; omit -o"),
        (&["plan", "--c-struct", &planned], "takes no plan from outside; omit --c-struct"),
        (&["plan", "--kernels", "reference"], "--kernels names those of TensorFlow Lite Micro"),
        (&["plan", "--inplace", "rows"], "the interpreter itself decides"),
    ] {
        let Run { code, err, .. } = run(args);
        assert!(code == 2 && err.contains(words), "{err}");
    }
    let verified = memplan(&["verify", "--runtime", "tflite", &folder.model, &folder.model]);
    assert!(verified.code == 2 && verified.err.contains("takes no plan"), "{}", verified.err);
    let other = memplan(&["plan", "--runtime", "tflite", "book/src/figures/example.json"]);
    assert!(
        other.code == 2 && other.err.contains("--runtime tflite applies only to"),
        "{}",
        other.err
    );
    assert_eq!(run(&["plan", "--inplace", "none"]).code, 0);
}

#[test]
fn no_model_is_written_if_the_plan_saves_nothing() {
    // A convolution alone needs its input and its output.
    let mut main = chain();
    main.tensors.truncate(3);
    main.operators.truncate(1);
    let folder = Folder::of(&[Subgraph { outputs: vec![2], ..main }]);
    let planned = folder.path("planned.tflite");
    let Run { code, err, .. } = memplan(&["plan", &folder.model, "-o", &planned]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("nothing is written"), "{err}");
    assert!(!folder.folder.path().join("planned.tflite").exists());
}

#[test]
fn a_plan_is_written_as_a_struct() {
    let folder = Folder::of(&[chain()]);
    let source = folder.path("plan.cc");
    assert_eq!(memplan(&["plan", &folder.model, "--c-struct", &source]).code, 0);
    let text = fs::read_to_string(source).unwrap();
    assert!(text.contains("} memplan_chain_offsets = {"), "{text}");
}

#[test]
fn scratch_memory_is_stated_in_a_file() {
    let folder = Folder::of(&[chain()]);
    let scratch = folder.with("scratch.txt", "CONV_2D 4096 # measured\n");
    let out = memplan(&["plan", &folder.model, "--scratch", &scratch]).out;
    assert!(out.contains("head by its own planner    4.50 KiB (4 608 B)"), "{out}");
    assert!(out.contains("1 scratch buffer of the kernels"), "{out}");
}

#[test]
fn no_figure_is_given_for_a_model_that_the_runtime_cannot_run() {
    let mut main = chain();
    main.operators[1].0 = code::CUSTOM;
    let folder = Folder::of(&[main]);
    let scratch = folder.with("scratch.txt", "TheirOperator 0");
    for command in ["plan", "explain", "show", "compare", "ops", "reorder"] {
        let Run { code, out, err } = memplan(&[command, &folder.model]);
        assert_eq!((code, &*out), (2, ""), "{command}");
        assert!(
            err.contains("cannot run this model: TheirOperator: a custom operator (operator 1)"),
            "{err}"
        );
        assert!(err.contains("--runtime tflite") && err.contains("--scratch"), "{err}");
        // A build may have kernels of its own, and the interpreter as well.
        let own = memplan(&[command, &folder.model, "--scratch", &scratch]);
        assert_eq!(own.code, 0, "{command}: {}", own.err);
        let other = memplan(&[command, &folder.model, "--runtime", "tflite"]);
        assert_eq!(other.code, 0, "{command}: {}", other.err);
    }
    let planned = folder.path("planned.tflite");
    assert_eq!(memplan(&["plan", &folder.model, "-o", &planned]).code, 2);
    assert!(!std::path::Path::new(&planned).exists());
}

#[rstest]
#[case(&["--inputs"], "--inputs: the runtime keeps the inputs of this model in the pool anyway; omit it")]
#[case(&["--dim", "n=1"], "--dim applies only to ONNX models; omit it")]
#[case(&["--kernels", "esp-nn"], "--kernels: 'esp-nn' is not one of reference, cmsis-nn, cmsis-nn-dsp, cmsis-nn-mve")]
#[case(&["--reorder", "-o", "x.tflite"], "only .json can state the order that --reorder finds; use .json")]
fn options_that_do_not_fit_are_refused(#[case] options: &[&str], #[case] message: &str) {
    let folder = Folder::of(&[chain()]);
    let Run { code, err, .. } = memplan(&[&["plan", &folder.model], options].concat());
    assert_eq!(code, 2, "{err}");
    assert!(err.contains(message), "{err}");
}

#[test]
fn only_models_of_the_runtime_take_its_options() {
    let folder = Folder::of(&[chain()]);
    let example = "book/src/figures/example.json";
    let refused = |args: &[&str], message: &str| {
        let Run { code, err, .. } = memplan(args);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(message), "{err}");
    };
    let planned = folder.path("planned.tflite");
    refused(
        &["plan", example, "-o", &planned],
        "only the plan of a .tflite model is written into one",
    );
    refused(
        &["plan", example, "--c-struct", &planned],
        "--c-struct applies only to TensorFlow Lite models",
    );
    refused(
        &["verify", &folder.model, &folder.model],
        "the model has no offline plan in its metadata",
    );
    let cut = folder.with("cut.tflite", &model(&[chain()])[..200]);
    refused(&["plan", &cut], "cut.tflite: byte ");
    let other = folder.with("other.tflite", "no model at all");
    refused(&["plan", &other], "other.tflite: this is not a TensorFlow Lite model");
}

/// Every recorded model is written with its plan, and the plan in the file is right.
#[test]
fn shared_models_are_planned_and_verified() {
    let Some(folder) = shared_path("data/tflite/models") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let planned = temporary.path().join("planned.tflite").display().to_string();
    let mut written = 0;
    for model in
        ["vww_mobilenet_v1_025_i8", "densenet_tiny_32_i8", "transformer_tiny_i8", "kws_ds_cnn_i8"]
    {
        let model = folder.join(model).with_extension("tflite").display().to_string();
        let Run { code, .. } = memplan(&["plan", &model, "-o", &planned]);
        if code == 0 {
            written += 1;
            let verified = memplan(&["verify", &model, &planned]);
            assert_eq!(verified.code, 0, "{model}: {}", verified.out);
            let bytes = fs::read(&planned).unwrap();
            assert!(bytes.ends_with(&fs::read(&model).unwrap()), "{model}");
        }
    }
    // For one model, the runtime's own plan is as small.
    assert_eq!(written, 3);
}

#[test]
fn the_arena_of_several_models_is_reported() {
    let [first, second] =
        ["mobilenet_v3_se_64_i8", "variable_f32"].map(|name| format!("tests/models/{name}.tflite"));
    let both = ["plan", &*first, "--after", &second];
    let Run { code, out, err } = memplan(&both);
    assert_eq!((code, &*err), (0, ""));
    let expected = "
TensorFlow Lite Micro, reference kernels, 2 models in one arena
  head by its own planner    32.0 KiB (32 768 B)
  head with a plan of each   24.0 KiB (24 576 B), 25.0 % saved
  arena by its own planner   47.8 KiB (48 896 B)
  arena with a plan of each  39.8 KiB (40 704 B)
  The head holds tensors and 12 scratch buffers";
    assert!(out.contains(expected), "{out}");
    assert!(out.ends_with("memplan plan MODEL -o OUT.tflite writes one model with its plan.\n"));
    let entry = |args: &[&str]| {
        let Run { code, out, err } = memplan(&[args, &["--json"]].concat());
        assert_eq!(code, 0, "{err}");
        serde_json::from_str::<Value>(&out).unwrap()["arena"].clone()
    };
    let expected = json!({
        "runtime": "tflite-micro",
        "models": 2,
        "kernels": "reference",
        "own": 32_768,
        "planned_already": false,
        "planned": 24_576,
        "scratch_buffers": 12,
        "unknown_scratch": [],
        "not_included": [],
        "tail": 16_128,
        "tail_release": "0.dev20261023182759",
        "variables": 0,
    });
    assert_eq!(entry(&both), expected);
    // The head of the written file is the one that was reported.
    let folder = tempfile::tempdir().unwrap();
    let planned = folder.path().join("planned.tflite").display().to_string();
    assert_eq!(memplan(&["plan", &first, "-o", &planned]).code, 0);
    let written = entry(&["plan", &second, "--after", &planned]);
    assert_eq!((&written["own"], &written["planned_already"]), (&json!(24_576), &json!(true)));
    let csv = memplan(&[&both[..], &["--csv"]].concat());
    assert!(csv.err.contains("32.0 KiB (32 768 B) for the files, 24.0 KiB"), "{}", csv.err);
    // Without the tail.
    let other = entry(&[&both[..], &["--kernels", "cmsis-nn"]].concat());
    assert_eq!((&other["tail"], &other["kernels"]), (&Value::Null, &json!("cmsis-nn")));
    // The runtime shares no tensors, and runs no other inputs.
    let sequence = folder.path().join("sequence.json").display().to_string();
    assert_eq!(memplan(&["convert", &first, "-o", &sequence]).code, 0);
    for others in [
        &[
            "plan",
            &first,
            "--after",
            &first,
            "--share",
            "mobilenet_v3_se_64_i8/a_0=mobilenet_v3_se_64_i8.2/a_0",
        ][..],
        &["plan", &first, "--after", &sequence],
        &["plan", &first, "--after", &second, "--runtime", "tflite"],
    ] {
        assert_eq!(entry(others), Value::Null, "{others:?}");
    }
}

#[test]
fn the_arena_is_explained() {
    let run = memplan(&["explain", "tests/models/mobilenet_v3_se_64_i8.tflite"]);
    assert_eq!(run.code, 0, "{}", run.err);
    for text in ["head by its own planner", "\nPeak, at step "] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
}
