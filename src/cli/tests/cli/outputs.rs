//! Inputs and outputs: outputs that are inputs, files that are too large, temporary files, and the
//! amount of messages.

use std::{fs, process::Stdio, time::Duration};

use rstest::rstest;

use crate::{
    EXAMPLE,
    command::{memplan, memplan_with, project},
};

/// The example in a folder of its own, with a symbolic and a hard link to it.
fn linked() -> (tempfile::TempDir, [String; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let names = ["input.json", "link.json", "hard.json"];
    let paths = names.map(|name| folder.path().join(name).display().to_string());
    fs::copy(project().join(EXAMPLE), &paths[0]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&paths[0], &paths[1]).unwrap();
    fs::hard_link(&paths[0], &paths[2]).unwrap();
    (folder, paths)
}

#[cfg(unix)]
#[rstest]
#[case::plan(&["plan"], &[])]
#[case::convert(&["convert"], &["--lower"])]
#[case::show(&["show"], &[])]
fn an_output_that_is_the_input_is_refused(#[case] before: &[&str], #[case] after: &[&str]) {
    let (folder, paths) = linked();
    let old = fs::read_to_string(&paths[0]).unwrap();
    for output in &paths {
        let run = memplan(&[before, &[&paths[0]], after, &["-o", output]].concat());
        let words = format!("memplan: {output}: -o names a file that is read");
        assert!(run.err.starts_with(&words), "{}", run.err);
        assert!(run.err.ends_with("; choose another name\n"), "{}", run.err);
        assert_eq!((run.code, run.out.as_str()), (2, ""));
        assert_eq!(fs::read_to_string(&paths[0]).unwrap(), old);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[cfg(unix)]
#[test]
fn an_output_that_is_standard_input_or_the_plan_shown_is_refused() {
    let (_folder, paths) = linked();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_memplan"))
        .args(["plan", "-", "--format", "json", "-o", &paths[1]])
        .stdin(fs::File::open(&paths[0]).unwrap())
        .output()
        .unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("-o names a file that is read, standard input;"), "{words}");
    assert_eq!(output.status.code(), Some(2));
    let run = memplan(&["show", EXAMPLE, &paths[0], "-o", &paths[2]]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("-o names a file that is read, "), "{}", run.err);
}

/// Other files and devices are written as usual.
#[test]
fn an_output_beside_the_input_is_written_and_reported() {
    let (folder, paths) = linked();
    let plan = folder.path().join("plan.json").display().to_string();
    let wrote = format!("memplan: wrote {plan}\n");
    let run = memplan(&["plan", &paths[0], "-o", &plan]);
    assert_eq!((run.code, &run.err), (0, &wrote));
    assert!(run.out.contains("pool"), "{}", run.out);
    let run = memplan(&["convert", &paths[0], "-o", &plan]);
    assert_eq!((run.code, &run.err), (0, &wrote));
    let run = memplan(&["plan", &paths[0], "-o", &plan, "-q"]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    assert_eq!(memplan(&["-q", "verify", &paths[0], &plan]).code, 0);
}

#[test]
fn a_file_larger_than_allowed_is_not_read() {
    let run = memplan(&["plan", EXAMPLE, "--max-input", "100"]);
    let words =
        format!("memplan: {EXAMPLE}: larger than 100 B; raise the limit with --max-input\n");
    assert_eq!((run.code, run.out.as_str(), run.err), (2, "", words));
    let text = fs::read_to_string(project().join(EXAMPLE)).unwrap();
    for (limit, code) in [(text.len(), 0), (text.len() - 1, 2)] {
        let limit = limit.to_string();
        assert_eq!(memplan(&["plan", EXAMPLE, "--max-input", &limit]).code, code);
        let piped = ["plan", "-", "--format", "json", "--max-input", &limit];
        assert_eq!(memplan_with(&piped, None, &text).code, code);
    }
    assert_eq!(memplan(&["plan", EXAMPLE, "--max-input", "18446744073709551615"]).code, 0);
}

#[cfg(unix)]
#[test]
fn reading_an_endless_device_ends() {
    for args in [
        &["plan", "/dev/zero", "--format", "csv"][..],
        &["compare", "/dev/zero", "--format", "json"],
        &["convert", "/dev/zero", "--format", "onnx", "-o", "x.json"],
    ] {
        let run = memplan(&[args, &["--max-input", "1MiB"]].concat());
        let words = "memplan: /dev/zero: larger than 1.00 MiB (1 048 576 B); raise the limit with --max-input";
        assert!(run.code == 2 && run.err.starts_with(words), "{run:?}");
    }
}

/// The second signal ends a write and removes the temporary file.
#[cfg(unix)]
#[rstest]
fn no_temporary_file_stays(#[values("-INT", "-TERM", "-HUP")] signal: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("id,lower,upper,size\n");
    text.extend((0..200_000).map(|id| format!("{id},{id},{},8\n", id + 1)));
    let input = folder.path().join("many.csv");
    fs::write(&input, text).unwrap();
    let plan = folder.path().join("plan.json");
    let is_temporary = |entry: fs::DirEntry| entry.file_name().to_string_lossy().contains(".tmp");
    let temporary = || {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.filter_map(Result::ok).any(is_temporary)
    };
    let mut command = std::process::Command::new("env");
    if cfg!(target_os = "linux") {
        command.arg("--default-signal=HUP");
    }
    let mut child = command
        .arg(env!("CARGO_BIN_EXE_memplan"))
        .args(["plan", "--strategy", "naive", "-o"])
        .args([&plan, &input])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !temporary() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..2 {
        let _ = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        std::thread::sleep(Duration::from_millis(5));
    }
    let code = child.wait().unwrap().code();
    assert!(!temporary(), "{code:?}");
    let ended = match signal {
        "-INT" => 130,
        "-TERM" => 143,
        _ => 129,
    };
    // The file may have been written between the two signals.
    assert!(plan.exists() && code == Some(0) || code == Some(ended), "{code:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_hang_up_is_ignored_under_nohup() {
    let folder = tempfile::tempdir().unwrap();
    let input = crate::searches::hard_csv(folder.path());
    let child = std::process::Command::new("nohup")
        .arg(env!("CARGO_BIN_EXE_memplan"))
        .args(["plan", "--strategy", "optimal", "--time-limit", "2s"])
        .arg(&input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(500));
        let _ = std::process::Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!String::from_utf8(output.stderr).unwrap().contains("interrupted"));
}

/// Each `-v` logs more; `RUST_LOG` wins.
#[test]
fn each_v_logs_more() {
    let logged = |words: &[&str], log: Option<&str>| {
        let run =
            memplan_with(&[&["plan", EXAMPLE, "--strategy", "pushdown"], words].concat(), log, "");
        assert_eq!(run.code, 0);
        run.err
            .lines()
            .map(|line| line.trim_start().split(' ').next().unwrap().to_owned())
            .max_by_key(|level| {
                ["", "WARN", "INFO", "DEBUG", "TRACE"].iter().position(|known| known == level)
            })
    };
    let level = |level: &str| Some(level.to_owned());
    assert_eq!(logged(&[], None), None);
    assert_eq!(logged(&["-v"], None), level("INFO"));
    assert_eq!(logged(&["-vv"], None), level("DEBUG"));
    assert_eq!(logged(&["-vvv"], None), level("TRACE"));
    assert_eq!(logged(&["-vvv"], Some("memplan=info")), level("INFO"));
    assert_eq!(logged(&["-q"], Some("memplan=debug")), level("DEBUG"));
    let run = memplan(&["plan", EXAMPLE, "-q", "-v"]);
    assert!(run.code == 2 && run.err.contains("cannot be used with"), "{}", run.err);
}

/// At `debug`, each decision is logged once and by name; what was tried, at `trace`.
#[test]
fn final_decisions_are_logged_by_name() {
    for capacity in [&[][..], &["--capacity", "1MiB"]] {
        let args = [&["plan", "tests/models/encoder.onnx"], capacity].concat();
        let logged = |log| memplan_with(&args, Some(log), "").err;
        let decisions = logged("memplan::links=debug");
        assert_eq!(decisions.matches("written over").count(), 21, "{decisions}");
        assert!(decisions.contains("chunk=\"/l.0.1/Softmax_output_0\""), "{decisions}");
        assert!(!decisions.contains("request dropped"), "{decisions}");
        let requests = logged("memplan::lower=debug");
        assert_eq!(requests.matches("request dropped").count(), 10, "{requests}");
        assert_eq!(requests.matches("lowered").count(), 1, "{requests}");
    }
}

/// Four tensors of a byte fill four cells of 16 bytes, so that an overlap saves bytes that it would not save without
/// an alignment.
#[test]
fn a_saved_plan_is_shown_with_the_overlaps_that_its_alignment_needs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (sequence, plan) = (path("sequence.json"), path("plan.json"));
    let small = ["a", "b", "c", "d"].map(|name| format!(r#"{{"name": "{name}", "size": 1}}"#));
    let text = format!(
        r#"{{"format": "memplan-sequence/2", "outputs": ["z"], "operators": [
        {{"name": "most", "inputs": [], "outputs": [], "workspace": 64}},
        {{"name": "load", "inputs": [], "outputs": [{{"name": "x", "size": 30}}, {}]}},
        {{"name": "blur", "inputs": ["x"],
          "outputs": [{{"name": "y", "size": 30, "overwrites": {{"input": "x", "below": 16}}}}]}},
        {{"name": "last", "inputs": ["y", "a", "b", "c", "d"], "outputs": [{{"name": "z", "size": 1}}]}}]}}"#,
        small.join(", ")
    );
    fs::write(&sequence, text).unwrap();
    let planned = memplan(&["plan", &sequence, "--alignment", "16", "-o", &plan]);
    assert!(planned.out.contains("112 B"), "{planned:?}");
    assert_eq!(memplan(&["verify", &sequence, &plan, "--execute"]).code, 0);
    let shown = memplan(&["show", &sequence, &plan]).out;
    assert!(shown.starts_with("pool 112 B (1.000 x peak)\n"), "{shown}");
}
