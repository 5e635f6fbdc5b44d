//! Searches: capacities, limits, and interruptions.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use rstest::rstest;

use crate::{
    ENCODER, EXAMPLE, PINWHEEL,
    command::{memplan, memplan_with},
    hard,
};

/// A capacity does not weaken what is proven of the plan that fits.
#[test]
fn a_plan_that_fits_is_proven_minimal_if_no_choice_needs_less() {
    for capacity in [&["--capacity", "1MiB"][..], &[]] {
        let run = memplan(&[&["plan", ENCODER], capacity].concat());
        assert!(run.out.contains("= peak of live tensors: proven minimal\n"), "{}", run.out);
    }
}

/// There are three answers: yes with a plan, no with a proof, and unknown. Without a plan that
/// fits, nothing is written.
#[rstest]
#[case::yes(&["--strategy", "naive", "--capacity", "24576"], 0, "fits the capacity of 24.0 KiB (24 576 B)\n")]
#[case::yes_in_another_unit(&["--capacity", "15KiB"], 0, "fits the capacity of 15.0 KiB (15 360 B)\n")]
#[case::no_by_live_bytes(&["--strategy", "naive", "--capacity", "14335"], 1,
    "does not fit: capacity 14.0 KiB (14 335 B), but every plan needs at least 14.0 KiB (14 336 B) (proven) under these rules: in-place as declared; another order (--reorder) or recomputation (memplan recompute) may need less\n")]
#[case::yes_with_an_overwrite_less(&["--capacity", "14336"], 0, "fits the capacity of 14.0 KiB (14 336 B)\n")]
#[case::not_known(&["--strategy", "naive", "--capacity", "15360"], 1,
    "unknown: the smallest pool found so far, 21.0 KiB (21 504 B), exceeds the capacity of 15.0 KiB (15 360 B); it is 1.500 x the peak, 14.0 KiB (14 336 B); --strategy optimal searches for a plan that fits\n")]
fn a_capacity_is_a_question_with_three_answers(
    #[case] words: &[&str],
    #[case] code: i32,
    #[case] answer: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    let run = memplan(&[&["plan", EXAMPLE, "-o", plan.to_str().unwrap()], words].concat());
    assert_eq!(run.code, code);
    if code == 0 {
        assert!(run.out.ends_with(answer), "{}", run.out);
        assert_eq!(memplan(&["verify", EXAMPLE, plan.to_str().unwrap()]).code, 0);
    } else {
        assert_eq!((run.out.as_str(), run.err), ("", format!("memplan: {answer}")));
        assert!(!plan.exists());
    }
}

/// A tiling of 2^20 bytes by pinwheels that lacks every fifth tile, which the packings before the search do not find. A
/// search that ends after one node cannot decide.
#[test]
fn a_capacity_may_need_more_effort_than_allowed() {
    let fits = |effort| {
        let words = ["plan", "-", "--format", "csv", "--strategy", "optimal"];
        let args = [&words[..], &["--capacity", "1MiB", "--effort", effort]].concat();
        let (head, tiles) = PINWHEEL.split_once('\n').unwrap();
        let left = tiles.lines().enumerate().filter(|(at, _)| at % 5 > 0).map(|(_, tile)| tile);
        let left: Vec<&str> = [head].into_iter().chain(left).collect();
        memplan_with(&args, None, &left.join("\n"))
    };
    let run = fits("1");
    assert!(run.code == 1 && run.err.starts_with("memplan: unknown: "), "{}", run.err);
    assert!(run.err.ends_with("; --effort and --time-limit extend the search\n"));
    assert_eq!(fits("50000").code, 0);
}

/// The chunks of the example, with an overwrite that is required.
const TIED: &str = "tests/fixtures/tied.json";

#[test]
fn a_search_proves_that_no_plan_fits() {
    let run = memplan(&["plan", TIED, "--strategy", "optimal", "--capacity", "15359"]);
    let answer = "memplan: does not fit: capacity 15.0 KiB (15 359 B), but every plan needs at least 15.0 KiB (15 360 B) (proven) under these rules: chunks and links as given; 'memplan explain --capacity' names chunks that do not fit together\n";
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (1, "", answer));
}

/// A bound that the search raised is not called the peak.
#[test]
fn proven_bytes_and_live_bytes_are_distinguished() {
    let run = memplan(&["explain", TIED, "--strategy", "optimal"]);
    for text in [
        "\npeak          14.0 KiB (14 336 B)  at step 5\n",
        "pool          15.0 KiB (15 360 B)  = proven bound: proven minimal\n",
        "Peak, at step 5: 14.0 KiB (14 336 B), in 3 chunks:\n   57.1 %",
        "1.00 KiB (1 024 B) of the pool (6.7 %) is free even in step 5.\n",
        "No plan is smaller (proven).\n",
    ] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
}

#[test]
fn chunks_that_do_not_fit_are_explained() {
    let run = memplan(&["explain", TIED, "--strategy", "optimal", "--capacity", "15359"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    for text in [
        "It does not fit into 15.0 KiB (15 359 B): these 3 chunks alone do not.",
        "  6.00 KiB  b, steps 1..6, with what is written over it",
        "  17.0 KiB  together",
        "Their peak is 14.0 KiB (14 336 B), at step 5; but in every layout within the\ncapacity, two of them that are alive together overlap",
        "One of these must shrink. Without any one of them, the others listed here fit;\nother chunks may still not fit.\n",
    ] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    let run = memplan(&["explain", TIED, "--strategy", "optimal", "--capacity", "14335"]);
    assert_eq!(run.code, 1);
    let text = "At step 5, 14.0 KiB (14 336 B) of them are alive: 1 B more than the capacity.";
    assert!(run.out.contains(text), "{}", run.out);
    let run = memplan(&["explain", TIED, "--strategy", "optimal", "--capacity", "5000"]);
    assert!(run.out.contains("this chunk alone does not.\n"), "{}", run.out);
    assert!(run.out.ends_with("\nIt must shrink or lie outside the pool.\n"), "{}", run.out);
    assert!(!run.out.contains("together"), "{}", run.out);
    let run = memplan(&["explain", TIED, "--strategy", "optimal", "--capacity", "15360"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let text = "It fits: pool 15.0 KiB (15 360 B), capacity 15.0 KiB (15 360 B).\n\
        The pool is 1.071 x the peak, 14.0 KiB (14 336 B).\n";
    assert_eq!(run.out, text);
}

/// A problem that no default effort solves.
pub fn hard_csv(folder: &Path) -> PathBuf {
    let mut text = String::from("id,lower,upper,size\n");
    for (id, (begin, end, size)) in hard::flat().into_iter().enumerate() {
        writeln!(text, "{id},{begin},{end},{size}").unwrap();
    }
    let path = folder.join("hard.csv");
    fs::write(&path, text).unwrap();
    path
}

#[rstest]
#[case::effort(&["--effort", "100"])]
#[case::time(&["--time-limit", "1ms"])]
fn a_search_without_a_proof_reports_that(#[case] limit: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let input = hard_csv(folder.path());
    for strategy in ["optimal", "best"] {
        let args = ["plan", input.to_str().unwrap(), "--strategy", strategy];
        let run = memplan(&[&args, limit].concat());
        let words = " x peak: not proven minimal";
        assert!(run.code == 0 && run.out.contains(words), "{run:?}");
    }
}

/// The first Ctrl-C ends the search, not the process; so do a kill and the end of a terminal.
#[cfg(unix)]
#[rstest]
#[case::plan(&["plan"], "-INT")]
#[case::show(&["show", "--threads", "2"], "-TERM")]
#[case::explain(&["explain", "--threads", "2"], "-HUP")]
fn an_interrupted_search_gives_the_best_so_far(#[case] command: &[&str], #[case] signal: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (input, plan) = (hard_csv(folder.path()), folder.path().join("plan.json"));
    let (input, plan) = (input.to_str().unwrap(), plan.to_str().unwrap());
    let mut args = [command, &[input, "--strategy", "optimal", "--time-limit", "600s"]].concat();
    if command == ["plan"] {
        args.extend(["-o", plan]);
    }
    // If the test itself runs under `nohup`, the child would inherit that a hang-up is ignored.
    let mut child = std::process::Command::new("env");
    if cfg!(target_os = "linux") {
        child.arg("--default-signal=HUP");
    }
    child.arg(env!("CARGO_BIN_EXE_memplan"));
    child.args(&args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let pid = child.id().to_string();
    std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!output.stdout.is_empty());
    let words = String::from_utf8(output.stderr).unwrap();
    let interrupted =
        "memplan: interrupted: this is the best plan so far; it is not proven minimal\n";
    assert!(words.starts_with(interrupted), "{words}");
    if command == ["plan"] {
        assert_eq!(memplan(&["verify", input, plan]).code, 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

/// Ctrl-C ends the strategy that runs; the table has those before it, and names the others.
#[cfg(unix)]
#[test]
fn an_interrupted_comparison_lists_what_had_not_ended() {
    let folder = tempfile::tempdir().unwrap();
    let input = hard_csv(folder.path());
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_memplan"))
        .args(["compare", input.to_str().unwrap(), "--effort", "1000000000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    let row = |name: &str| table.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    assert!(row("best").contains('B') && !row("best").ends_with("stopped"), "{table}");
    for name in ["optimal", "interval-move", "tflite-min-cost-flow", "naive", "first-fit"] {
        assert!(row(name).ends_with("stopped"), "{table}");
    }
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("memplan: interrupted: "));
}

#[test]
fn a_strategy_without_a_plan_before_its_end_keeps_a_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let input = hard_csv(folder.path());
    let (input, plan) = (input.to_str().unwrap(), folder.path().join("plan.json"));
    let limit = ["--strategy", "tflite-min-cost-flow", "--time-limit", "1ms", "-o"];
    let run = memplan(&[&["plan", input], &limit[..], &[plan.to_str().unwrap()]].concat());
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    let words =
        "strategy tflite-min-cost-flow had no plan when the time limit was over; allow more time";
    assert!(run.err.contains(words), "{}", run.err);
    assert!(!plan.exists());
    let run = memplan(&["compare", input, "--time-limit", "1ms"]);
    let row = run.out.lines().find(|line| line.contains("tflite-min-cost-flow")).unwrap();
    assert!(run.code == 0 && row.ends_with("too slow"), "{run:?}");
}

/// Each change is planned as the caller would plan it.
#[test]
fn an_explanation_ends_with_what_would_help() {
    let model = "tests/models/encoder.onnx";
    let json = |args: &[&str]| -> serde_json::Value {
        let run = memplan(&[&["explain", model, "--json"], args].concat());
        serde_json::from_str(&run.out).unwrap()
    };
    let given = json(&["--inplace", "none"]);
    let mut advice = given["advice"].as_array().unwrap().iter();
    let found = advice.find(|advice| advice["option"] == "--inplace rows").unwrap();
    assert_eq!(found["pool_size"], json(&[])["pool_size"]);
    assert!(found["pool_size"].as_u64() < given["pool_size"].as_u64());
    let text = memplan(&["explain", model]).out;
    assert!(
        text.contains("/Add_2_output_0 is kept for step 32 (/Add_3), which reads it."),
        "{text}"
    );
    let (_, list) = text.split_once("What would help").unwrap();
    assert!(list.contains("without what steps 24..28"), "{list}");
    // A plan from a file, and one in several pools, is explained as it is.
    for args in
        [&["--pool", "a:1MiB:1", "--pool", "b::20"][..], &["--reorder", "--strategy", "naive"]]
    {
        let run = memplan(&[&["explain", model], args].concat());
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{args:?}");
    }
}

/// Kernels of a microcontroller that may write below their input.
#[test]
fn an_overlap_is_measured_where_the_kernels_are_known() {
    let model = "tests/models/mobilenet_v3_se_64_i8.tflite";
    let pool = |args: &[&str]| -> serde_json::Value {
        let run =
            memplan(&[&["explain", model, "--json", "--kernels", "reference"], args].concat());
        serde_json::from_str(&run.out).unwrap()
    };
    let given = pool(&[]);
    let overlapping = pool(&["--overlap"]);
    let mut advice = given["advice"].as_array().unwrap().iter();
    let found = advice.find(|advice| advice["option"] == "--overlap");
    match found {
        Some(found) => assert_eq!(found["pool_size"], overlapping["pool_size"]),
        None => assert!(overlapping["pool_size"].as_u64() >= given["pool_size"].as_u64()),
    }
}
