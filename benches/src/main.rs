//! Measures planning time per phase.
//!
//! `cargo run --release` in this folder measures seconds, the best of several runs, on problems of
//! 10^3 to 10^6 chunks, on the built-in network and on the ONNX models given on the command line.
//! `cargo run --release -- --instructions` counts instructions with `valgrind --tool=callgrind`
//! instead, which does not depend on the load of the machine; it takes minutes.

mod cases;

use std::{
    hint::black_box,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use cases::{Case, Phase};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let instructions = arguments.iter().position(|argument| argument == "--instructions");
    if let Some(at) = instructions {
        arguments.remove(at);
    }
    if let [only, name, phase] = &arguments[..]
        && only == "--only"
    {
        return run_only(name, phase);
    }
    println!(
        "{:<34}{:>10}{:>12}{:>14}{:>16}",
        "case",
        "chunks",
        "phase",
        unit(instructions),
        "per chunk"
    );
    for case in cases::all(&arguments) {
        for &phase in case.phases() {
            let cost = match instructions {
                Some(_) => count(&case, phase).map(|count| (format!("{count}"), count)),
                None => Some(time(&case, phase)),
            };
            let (name, chunks) = (case.name(), case.chunks());
            let Some((cost, number)) = cost else {
                println!("{name:<34}{chunks:>10}{:>12}{:>14}", phase.name(), "no valgrind");
                continue;
            };
            println!(
                "{name:<34}{chunks:>10}{:>12}{cost:>14}{:>16.1}",
                phase.name(),
                number / case.divisor()
            );
        }
    }
    ExitCode::SUCCESS
}

fn unit(instructions: Option<usize>) -> &'static str {
    if instructions.is_some() { "instructions" } else { "time" }
}

/// Returns the best time of several runs that together take about half a second; the number is in
/// nanoseconds.
fn time(case: &Case, phase: Phase) -> (String, f64) {
    let start = Instant::now();
    let mut least = Duration::MAX;
    while start.elapsed() < Duration::from_millis(500) {
        let prepared = case.prepare(phase);
        let run = Instant::now();
        measured(&prepared);
        least = least.min(run.elapsed());
    }
    (format!("{least:.2?}"), least.as_secs_f64() * 1e9)
}

/// Returns the count that `callgrind` collects in [`measured`], in a separate process.
fn count(case: &Case, phase: Phase) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=memplan_benches::measured")
        .arg(std::env::current_exe().ok()?)
        .args(["--only", case.name(), phase.name()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Runs one phase of one case once, under `callgrind`.
fn run_only(name: &str, phase: &str) -> ExitCode {
    // A model is named by its path.
    let case = cases::all(&[name.to_owned()]).into_iter().find(|case| case.name() == name);
    let Some((case, phase)) = case.zip(Phase::of_name(phase)) else {
        return ExitCode::FAILURE;
    };
    let prepared = case.prepare(phase);
    measured(&prepared);
    ExitCode::SUCCESS
}

/// The function whose cost is counted.
#[inline(never)]
fn measured(prepared: &cases::Prepared) {
    black_box(prepared.run());
}
