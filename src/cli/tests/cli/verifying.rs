//! `verify`, and plan files whose bounds are larger than the counted ones.

use std::fs;

use rstest::rstest;

use crate::{
    EXAMPLE,
    command::{memplan, project},
};

#[test]
fn a_plan_is_written_verified_and_found_wrong_when_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for format in ["json", "csv"] {
        let plan = path(&format!("plan.{format}"));
        assert_eq!(memplan(&["plan", EXAMPLE, "--strategy", "pushdown", "-o", &plan]).code, 0);
        let run = memplan(&["verify", EXAMPLE, &plan]);
        assert_eq!((run.code, &run.out[..8]), (0, "correct:"), "{run:?}");
        let end = "chunks, 6 tensors\npool  15.0 KiB (15 360 B)  = 1.071 x peak\n\
            peak  14.0 KiB (14 336 B)  the most bytes live at one step\n";
        let end =
            if format == "csv" { end.replace("6 tensors", "0 tensors") } else { end.to_owned() };
        assert!(run.out.ends_with(&end), "{}", run.out);
        let text = fs::read_to_string(&plan).unwrap().replace("11264", "11263");
        fs::write(&plan, text).unwrap();
        let run = memplan(&["verify", EXAMPLE, &plan]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.out.contains("share the bytes"), "{}", run.out);
    }
    // Nothing is left beside the two plans.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// The chunks of the example, with an overwrite that is required.
const TIED: &str = "tests/fixtures/tied.json";

/// The live bytes are counted again; a larger bound that a search has proven cannot be.
#[test]
fn a_bound_that_only_a_search_can_prove_is_called_a_claim() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    assert_eq!(memplan(&["plan", TIED, "--strategy", "optimal", "-o", &plan]).code, 0);
    let run = memplan(&["verify", TIED, &plan]);
    let expected = "correct: 5 chunks, 0 tensors\n\
        pool           15.0 KiB (15 360 B)  = 1.071 x peak\n\
        peak           14.0 KiB (14 336 B)  the most bytes live at one step\n\
        claimed bound  15.0 KiB (15 360 B)  by the plan file, not checked\n";
    assert_eq!((run.code, run.out.as_str()), (0, expected));
}

/// What was executed is said, so that it shows that anything was.
#[test]
fn an_execution_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    assert_eq!(memplan(&["plan", EXAMPLE, "-o", &plan]).code, 0);
    let verified = memplan(&["verify", EXAMPLE, &plan]).out;
    let executed = memplan(&["verify", EXAMPLE, &plan, "--execute"]).out;
    assert_eq!(executed, verified + "executed 6 operators: each read what it should\n");
}

#[test]
fn supplied_tensors_missing_from_the_pool_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    assert_eq!(memplan(&["plan", EXAMPLE, "-o", &plan]).code, 0);
    let run = memplan(&["verify", EXAMPLE, &plan, "--inputs"]);
    assert_eq!(run.code, 1, "{run:?}");
    let message = "must lie in the pool, but the plan leaves it outside\n";
    assert!(run.out.contains(message), "{}", run.out);
}

/// Only proven pools are called proven, and chunks keep their names.
#[test]
fn a_csv_plan_is_explained_with_the_figures_of_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("plan.csv").display().to_string();
    assert_eq!(memplan(&["plan", EXAMPLE, "--strategy", "naive", "-o", &csv]).code, 0);
    let run = memplan(&["explain", EXAMPLE, &csv]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for text in [
        "= 1.500 x peak\n",
        "14.0 KiB (14 336 B)  at step 5 (concat)\n",
        "; strategy unknown\n",
        "  8.00 KiB  e, step 5\n",
    ] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    assert!(!run.out.contains("proven"), "{}", run.out);
}

/// A plan in JSON must list the tensors; one in CSV has no place for them.
#[test]
fn a_json_plan_without_tensors_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json").display().to_string();
    let run = memplan(&["plan", EXAMPLE, "--json"]);
    let mut plan: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    plan["tensors"] = serde_json::json!([]);
    fs::write(&path, plan.to_string()).unwrap();
    let run = memplan(&["verify", EXAMPLE, &path]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.contains("'e' is missing from the plan\n"), "{}", run.out);
}

/// A plan without a chunk that it refers to is wrong, not unreadable, and can be shown.
#[test]
fn a_json_plan_without_a_chunk_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = memplan(&["plan", EXAMPLE, "--json", "--strategy", "pushdown"]);
    let mut plan: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let chunks = plan["chunks"].as_array_mut().unwrap();
    chunks.remove(0);
    let lost = chunks.pop().unwrap();
    assert_eq!(lost["name"], "e");
    plan["pool_size"] = serde_json::json!(1);
    fs::write(path("plan.json"), plan.to_string()).unwrap();
    for args in [&["verify"][..], &["verify", "--execute"]] {
        let run = memplan(&[args, &[EXAMPLE, &path("plan.json")]].concat());
        assert_eq!(run.code, 1, "{run:?}");
        for user in ["a", "e"] {
            let text = format!("'{user}' refers to a chunk that the plan does not list\n");
            assert_eq!(run.out.matches(&text).count(), 1, "{}", run.out);
        }
        assert!(run.out.contains("the pool size is"), "{}", run.out);
    }
    assert_eq!(memplan(&["explain", EXAMPLE, &path("plan.json")]).code, 0);
    for map in ["map.txt", "map.svg", "map.html", "map.json"] {
        assert_eq!(memplan(&["show", EXAMPLE, &path("plan.json"), "-o", &path(map)]).code, 0);
    }
}

#[test]
fn a_plan_of_another_model_is_named_so_and_its_violations_are_abridged() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    assert_eq!(memplan(&["plan", "tests/models/encoder.onnx", "-o", &plan]).code, 0);
    let other = "tests/models/unet_block.onnx";
    let run = memplan(&["verify", other, &plan]);
    let first = "the plan is of another input: 1 of its 45 names are in this one\n";
    assert!(run.code == 1 && run.out.starts_with(first), "{}", run.out);
    let end = " more; -v lists all\nwrong: 198 violations\n";
    assert!(run.out.lines().count() == 13 && run.out.ends_with(end), "{}", run.out);
    assert_eq!(memplan(&["verify", "-v", other, &plan]).out.lines().count(), 200);
    let run = memplan(&["verify", other]);
    let words = "unet_block.onnx: no plan is given; add it, as in: memplan verify MODEL PLAN.json";
    assert!(run.code == 2 && run.err.contains(words), "{}", run.err);
}

/// The alignment and padding of the input, or those of the command line, must hold.
#[rstest]
#[case::as_the_input_asks(&[], &[], 0, "correct: ")]
#[case::larger(&["--alignment", "128"], &[], 0, "correct: ")]
#[case::smaller_by_request(&["--alignment", "1"], &["--alignment", "1"], 0, "correct: ")]
#[case::smaller(&["--alignment", "1"], &[], 1, "the required alignment is 64, but the plan says 1\n")]
#[case::no_padding(&["--padding", "0"], &[], 1, "the required padding is 8, but the plan says 0\n")]
#[case::larger_by_request(&[], &["--padding", "9"], 1, "the required padding is 9, but the plan says 8\n")]
fn a_plan_must_have_the_required_alignment_and_padding(
    #[case] planning: &[&str],
    #[case] verifying: &[&str],
    #[case] code: i32,
    #[case] answer: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (input, plan) = (path("input.json"), path("plan.json"));
    let text = r#"{"format": "memplan-problem/1", "alignment": 64, "padding": 8,
        "chunks": [{"id": 0, "begin": 0, "end": 2, "size": 100}, {"id": 1, "begin": 1, "end": 3, "size": 8}]}"#;
    fs::write(&input, text).unwrap();
    assert_eq!(memplan(&[&["plan", &input, "-o", &plan], planning].concat()).code, 0);
    let run = memplan(&[&["verify", &input, &plan], verifying].concat());
    assert_eq!((run.code, run.err.as_str()), (code, ""));
    assert!(run.out.starts_with(answer), "{}", run.out);
}

/// A plan file may state any bound. The report calls a bound counted if it is, and a claim
/// otherwise.
#[test]
fn a_bound_in_a_plan_file_is_a_claim_unless_it_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, forged) = (path("plan.json"), path("forged.json"));
    assert_eq!(memplan(&["plan", TIED, "--strategy", "optimal", "-q", "-o", &plan]).code, 0);
    let text = fs::read_to_string(&plan).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (alive, proven) = (14_336, 15_360);
    assert_eq!(value["lower_bound"], proven);
    for (bound, claimed) in [(proven, "15.0 KiB (15 360 B)"), (1, "1 B")] {
        value["lower_bound"] = bound.into();
        value["proven_optimal"] = true.into();
        fs::write(&forged, value.to_string()).unwrap();
        let run = memplan(&["explain", TIED, &forged]);
        assert_eq!(run.code, 0, "{}", run.err);
        let claim = run.out.lines().find(|line| line.starts_with("claimed bound")).unwrap();
        assert!(claim.contains(claimed), "{}", run.out);
        assert!(claim.ends_with("  by the plan file, not checked"), "{}", run.out);
        assert!(!run.out.contains("proven") && !run.out.contains("is smaller"));
        let run = memplan(&["explain", TIED, &forged, "--json"]);
        let found: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(
            (&found["proven_bound"], &found["claimed_bound"]),
            (&alive.into(), &bound.into())
        );
        assert_eq!(found["proven_optimal"], false);
    }
    value["lower_bound"] = alive.into();
    fs::write(&forged, value.to_string()).unwrap();
    let run = memplan(&["explain", TIED, &forged]);
    assert!(!run.out.contains("claim") && !run.out.contains("proven bound"), "{}", run.out);
}

/// Sizes that exclude each other are named with a remedy, and left out of a range.
#[test]
fn sizes_that_exclude_each_other_are_left_out_of_a_range() {
    const MODEL: &str = "tests/fixtures/masked.onnx";
    let run = memplan(&["plan", MODEL, "--dim", "seq=1,past=64,total=100"]);
    let error = "memplan: tests/fixtures/masked.onnx: operator Add (which makes 'ms') cannot run: \
        dimension 3 of 'sc' is 65, but dimension 3 of 'mask' is 100; ";
    assert!(run.code == 2 && run.err.starts_with(error), "{run:?}");
    assert!(run.err.trim_end().ends_with("; give --dim past=99 or --dim seq=36 or --dim total=65"));
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    let made = memplan(&["plan", MODEL, "--dim", "seq=1..4,past=64,total=65..68", "-o", &plan]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.err.contains("the model cannot run with 12 of the 16 combinations"), "{made:?}");
    assert!(made.out.contains("holds for every run with seq=1..4, total=65..68"), "{made:?}");
    for (sizes, code) in [("seq=1,total=65", 0), ("seq=4,total=68", 0), ("seq=2,total=65", 2)] {
        let sizes = format!("past=64,{sizes}");
        let run = memplan(&["verify", MODEL, &plan, "--dim", &sizes]);
        assert_eq!(run.code, code, "{sizes}: {run:?}");
    }
}

/// A plan for several sizes is verified for each of them, and for no other.
#[test]
fn a_plan_for_a_range_of_sizes_is_verified_for_each() {
    const MODEL: &str = "tests/models/heads.onnx";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let plan = path("plan.json");
    let made = memplan(&["plan", MODEL, "--dim", "batch=2..4", "-o", &plan]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(
        made.out.contains("planned for the largest sizes; holds for every run with batch=2..4\n"),
        "{made:?}"
    );
    let better = path("better.json");
    let made = memplan(&["plan", MODEL, "--dim", "batch=2..4", "--reorder", "-o", &better]);
    assert!(made.code == 0 && made.out.contains(" of 31 operators\n"), "{made:?}");
    for (sizes, plan) in ["2..4", "2", "3", "4", "2..3"]
        .into_iter()
        .flat_map(|sizes| [(sizes, &plan), (sizes, &better)])
    {
        let run =
            memplan(&["verify", MODEL, plan, "--dim", &format!("batch={sizes}"), "--execute"]);
        assert_eq!((run.code, run.out.starts_with("correct:")), (0, true), "{sizes}: {run:?}");
    }
    for sizes in ["1", "5", "1..3", "3..5"] {
        let run = memplan(&["verify", MODEL, &plan, "--dim", &format!("batch={sizes}")]);
        let words = format!(
            "the plan holds for batch=2..4, but not for batch={sizes}\nwrong: 1 violation\n"
        );
        assert_eq!((run.code, run.out), (1, words));
    }
    // A model that must be read twice cannot come from standard input.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_memplan"))
        .args(["verify", "-", &better, "--dim", "batch=3", "--format", "onnx"])
        .stdin(fs::File::open(project().join(MODEL)).unwrap())
        .output()
        .unwrap();
    let words = "memplan: standard input: the model must be read with other sizes as well; give it as a file\n";
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(2), words));
    // A tensor at another offset is found for the smaller sizes, too.
    let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap();
    let same = file["chunks"][0]["offset"].clone();
    for chunk in file["chunks"].as_array_mut().unwrap() {
        chunk["offset"] = same.clone();
    }
    for tensor in file["tensors"].as_array_mut().unwrap() {
        tensor["offset"] = same.clone();
    }
    let wrong = path("wrong.json");
    fs::write(&wrong, file.to_string()).unwrap();
    assert_eq!(memplan(&["verify", MODEL, &wrong, "--dim", "batch=3"]).code, 1);
    for (file, is_wrong) in [(&wrong, true), (&plan, false)] {
        for command in ["explain", "show"] {
            let run = memplan(&[command, MODEL, file, "--dim", "batch=2..4"]);
            let has_warning = run.err.contains("the plan is wrong; memplan verify lists");
            assert_eq!((run.code, has_warning), (0, is_wrong), "{run:?}");
        }
    }
    // So is one beyond the pool.
    let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap();
    let pool_size = file["pool_size"].as_u64().unwrap();
    let (chunk, offset) = (file["chunks"][0]["id"].clone(), 64 + pool_size);
    file["chunks"][0]["offset"] = offset.into();
    for tensor in file["tensors"].as_array_mut().unwrap() {
        if tensor["chunk"] == chunk {
            tensor["offset"] = offset.into();
        }
    }
    fs::write(&wrong, file.to_string()).unwrap();
    assert_eq!(memplan(&["verify", MODEL, &wrong, "--dim", "batch=3"]).code, 1);
    // The sizes of a run must be known by their names.
    let run = memplan(&["verify", MODEL, &plan, "--dim-default", "3"]);
    let words = "is not given; add --dim batch=2..4, or one size";
    assert!(run.code == 2 && run.err.contains(words), "{run:?}");
    // A map or an explanation shows the sizes that were planned.
    for command in ["explain", "show"] {
        assert_eq!(memplan(&[command, MODEL, &plan, "--dim", "batch=2..4"]).code, 0);
        let run = memplan(&[command, MODEL, &plan, "--dim", "batch=7"]);
        let words = "it is a plan for batch=2..4; read the model with --dim and these sizes";
        assert!(run.code == 2 && run.err.contains(words), "{run:?}");
    }
}

/// Sizes that a plan file claims make no check looser unless they are those of the run.
#[rstest]
#[case::unknown_name("tests/models/heads.onnx", &["--dim", "batch=3"], "zzz", 1, 2)]
#[case::one_size("tests/models/heads.onnx", &["--dim", "batch=3"], "batch", 3, 3)]
#[case::default_size("tests/models/heads.onnx", &["--dim-default", "3"], "batch", 1, 4)]
#[case::sequence(EXAMPLE, &[], "zzz", 1, 2)]
fn forged_sizes_hide_nothing(
    #[case] input: &str,
    #[case] sizes: &[&str],
    #[case] name: &str,
    #[case] least: u64,
    #[case] most: u64,
) {
    let folder = tempfile::tempdir().unwrap();
    let forged = folder.path().join("forged.json").display().to_string();
    let run = memplan(&[&["plan", input, "--json"], sizes].concat());
    let mut plan: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    plan["dims"] = serde_json::json!({ name: [least, most] });
    for figure in ["peak_step", "naive_size"] {
        plan[figure] = (plan[figure].as_u64().unwrap() + 1).into();
    }
    let longest = |chunk: &&mut serde_json::Value| chunk["end"].as_u64();
    let chunk = plan["chunks"].as_array_mut().unwrap().iter_mut().max_by_key(longest).unwrap();
    chunk["end"] = (chunk["end"].as_u64().unwrap() - 1).into();
    fs::write(&forged, plan.to_string()).unwrap();
    let run = memplan(&[&["verify", input, &forged], sizes].concat());
    assert!(run.code != 0 && !run.out.contains("correct:"), "{run:?}");
}
