//! Runs the tool like a user.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The project's folder, to which paths in the tests are relative.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The output of a run and its exit code.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs `memplan` in the project's folder.
pub fn memplan(args: &[&str]) -> Run {
    memplan_with(args, None, "")
}

/// Runs `memplan` with `RUST_LOG` and standard input.
pub fn memplan_with(args: &[&str], log: Option<&str>, input: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memplan"));
    command
        .args(args)
        .current_dir(project())
        .env_remove("RUST_LOG")
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(log) = log {
        command.env("RUST_LOG", log);
    }
    let mut child = command.spawn().unwrap();
    // A tool that does not read its input closes it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
