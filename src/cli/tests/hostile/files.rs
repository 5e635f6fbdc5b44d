//! Folders, pipes, full disks, links and interruptions where a file is read or written.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rstest::rstest;

use crate::{
    EXAMPLE, assert_refused,
    command::{memplan, project},
    file, lines,
};

#[test]
fn a_folder_is_not_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::create_dir(&path).unwrap();
    let path = path.display().to_string();
    assert_refused(&memplan(&["plan", &path]), &path, "Is a directory");
    assert_refused(&memplan(&["verify", &path, EXAMPLE]), &path, "Is a directory");
    assert_refused(
        &memplan(&["verify", EXAMPLE, &path]),
        &path,
        "a plan must end in .json or .csv",
    );
    let run = memplan(&["plan", EXAMPLE, "-o", &folder.path().display().to_string()]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
}

/// `memplan ... | head -c 1`, with much more output pending.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let (_folder, path) = file("many.csv", lines(20_000));
    for kind in ["--json", "--csv"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_memplan"))
            .args(["plan", &path, "--strategy", "naive", kind])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    }
}

#[cfg(target_os = "linux")]
#[rstest]
#[case::plan(&["plan", EXAMPLE])]
#[case::json(&["plan", EXAMPLE, "--json"])]
#[case::csv(&["plan", EXAMPLE, "--csv"])]
#[case::built_in(&[])]
#[case::show(&["show", EXAMPLE])]
#[case::explain(&["explain", EXAMPLE])]
#[case::verify(&["verify", "book/src/figures/overwrite.json", "book/src/figures/wrong.plan.json"])]
fn a_full_disk_is_told(#[case] args: &[&str]) {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_memplan"));
    command.args(args).current_dir(project()).stdout(full());
    let output = command.output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(words, "memplan: cannot write the result: No space left on device (os error 28)\n");
    assert_eq!(output.status.code(), Some(2));
    // That error cannot be printed now either.
    assert_eq!(command.stderr(full()).status().unwrap().code(), Some(2));
}

/// A device that is always full: where that is allowed, one in the folder, so that no mistake replaces the machine's.
#[cfg(target_os = "linux")]
fn full_device(folder: &Path) -> PathBuf {
    let own = folder.join("full");
    let made = Command::new("mknod").arg(&own).args(["c", "1", "7"]).stderr(Stdio::null()).status();
    let is_made = made.is_ok_and(|status| status.success());
    match fs::OpenOptions::new().write(true).open(&own) {
        Ok(_) if is_made => own,
        _ => "/dev/full".into(),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_for_files_and_for_output() {
    let run = memplan(&["plan", EXAMPLE, "-o", "/dev/full", "--json"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    assert_eq!(run.err, "memplan: /dev/full: a plan must end in .json or .csv\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.json");
    std::os::unix::fs::symlink(full_device(folder.path()), &path).unwrap();
    let path = path.display().to_string();
    for args in [["plan", EXAMPLE, "-o", path.as_str()], ["convert", EXAMPLE, "-o", path.as_str()]]
    {
        assert_refused(&memplan(&args), &path, "cannot write: No space left on device");
    }
    // A message that cannot be printed does not change the exit code.
    for (args, code) in [(["plan", "nowhere.json"], 2), (["plan", EXAMPLE], 0)] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_memplan"));
        command.args(args).current_dir(project()).env("RUST_LOG", "memplan=debug");
        assert_eq!(command.stdout(Stdio::null()).stderr(full).status().unwrap().code(), Some(code));
    }
}

/// Before anything is searched.
#[test]
fn a_plan_is_not_written_over_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    fs::create_dir(&path).unwrap();
    let path = path.display().to_string();
    let args = ["plan", "nowhere.json", "--time-limit", "60s", "-o", &path];
    assert_refused(&memplan(&args), &path, "cannot write: is a directory");
}

#[cfg(unix)]
#[test]
fn a_name_as_long_as_names_may_be_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{}.json", "n".repeat(250)));
    assert_eq!(memplan(&["plan", EXAMPLE, "-o", &path.display().to_string()]).code, 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_file_behind_a_link_is_written_and_keeps_its_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let (folder, plan) = file("plan.json", "the old plan");
    fs::set_permissions(&plan, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.json");
    symlink("plan.json", &link).unwrap();
    assert_eq!(memplan(&["plan", EXAMPLE, "-o", &link.display().to_string()]).code, 0);
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&plan).unwrap().contains("pool_size"));
    assert_eq!(fs::metadata(&plan).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// A new file has the permissions that the mask of the process leaves.
#[cfg(unix)]
#[test]
fn a_new_file_has_the_usual_permissions() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    for (mask, expected) in [("022", 0o644), ("027", 0o640), ("000", 0o666)] {
        let plan = folder.path().join(format!("{mask}.json"));
        let status = Command::new("sh")
            .args([
                "-c",
                &format!("umask {mask}; exec \"$@\""),
                "sh",
                env!("CARGO_BIN_EXE_memplan"),
            ])
            .args(["plan", EXAMPLE, "-q", "-o"])
            .arg(&plan)
            .current_dir(project())
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(fs::metadata(&plan).unwrap().permissions().mode() & 0o777, expected, "{mask}");
    }
}

/// No name that a process could foresee leads the output elsewhere.
#[cfg(unix)]
#[test]
fn a_link_prepared_for_a_temporary_file_leads_nowhere() {
    let (folder, victim) = file("victim.txt", "precious");
    let script = "ln -s victim.txt .memplan.$$.tmp; exec \"$0\" plan \"$1\" -q -o plan.json";
    let status = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_memplan")])
        .arg(project().join(EXAMPLE))
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
    let plan = folder.path().join("plan.json");
    assert!(fs::symlink_metadata(&plan).unwrap().is_file());
    assert!(fs::read_to_string(plan).unwrap().contains("pool_size"));
}

/// A signal ends a write that waits for the reader of a pipe; the write is not finished first.
#[cfg(target_os = "linux")]
#[test]
fn one_signal_ends_the_wait_for_the_reader_of_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_memplan"))
        .args(["plan", EXAMPLE, "-q", "-o"])
        .arg(&pipe)
        .current_dir(project())
        .spawn()
        .unwrap();
    // The kernel names what a blocked process waits for.
    let stack = format!("/proc/{}/syscall", child.id());
    let is_waiting = || {
        // `openat`, on this and the other common processor.
        let call = fs::read_to_string(&stack).unwrap_or_default();
        ["257 ", "56 "].iter().any(|open| call.starts_with(open))
    };
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(20));
        if is_waiting() {
            break;
        }
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Text before and after it stays.
#[cfg(unix)]
#[test]
fn standard_output_that_is_a_file_is_not_replaced() {
    let (_folder, path) = file("all.txt", "before\n");
    let all = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let model = "tests/models/mobilenet_v3_se_64_i8.tflite";
    let status = Command::new(env!("CARGO_BIN_EXE_memplan"))
        .args(["plan", model, "--c-struct", "/dev/stdout"])
        .current_dir(project())
        .stdout(all)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let text = fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("// A plan by memplan").unwrap();
    assert_eq!(before, "before\n");
    assert!(rest.contains("peak"), "the summary follows: {text}");
}

/// A pipe with a reader gets the whole plan.
#[cfg(unix)]
#[test]
fn a_pipe_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    let run = memplan(&["plan", EXAMPLE, "-o", &pipe.display().to_string()]);
    assert_eq!(run.code, 0, "{run:?}");
    let read = reader.wait_with_output().unwrap().stdout;
    assert!(serde_json::from_slice::<serde_json::Value>(&read).is_ok());
}

/// Ctrl-C at any moment leaves the old file, or the new one, whole, and nothing beside it.
#[cfg(unix)]
#[test]
fn an_interrupted_write_leaves_a_whole_file() {
    let (folder, input) = file("many.csv", lines(30_000));
    let plan: PathBuf = folder.path().join("plan.json");
    let old = "the old plan\n";
    let is_whole = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text == old || serde_json::from_str::<serde_json::Value>(&text).is_ok()
    };
    // The first one waits for its input, so it is interrupted however slow the machine is.
    let waiting = ("/dev/stdin", 100);
    let writing = [1, 20, 60, 100, 140, 180, 220, 260, 320, 400].map(|millis| (&*input, millis));
    for (input, millis) in [waiting].into_iter().chain(writing) {
        fs::write(&plan, old).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_memplan"))
            .args(["plan", input, "--format", "csv", "--strategy", "naive", "-o"])
            .arg(&plan)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        std::thread::sleep(Duration::from_millis(millis));
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let is_interrupted = !child.wait().unwrap().success();
        drop(stdin);
        assert!(is_interrupted || input != waiting.0);
        assert!(is_whole(&plan), "after {millis} ms");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "after {millis} ms");
    }
}
