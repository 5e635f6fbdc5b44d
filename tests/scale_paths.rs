//! A million operators through the library and through files: time, and the most memory held, per
//! chunk. The time grows no faster than n log n, within what a busy machine adds.
//!
//! `cargo test --release --test scale_paths -- --ignored --nocapture` prints the figures of the book.

#![cfg(target_os = "linux")]

use std::{fs, time::Instant};

use memplan::{
    Input, OpSequence, Operator, Output, Planner, Problem, Strategy,
    import::{Format, ImportOptions, read_input, read_plan},
    lower::{LoweringOptions, lower},
    report::{write_plan_csv, write_plan_json, write_problem_csv, write_sequence_json},
    verify::{execute, verify},
};

/// Blocks as in real networks: a convolution with workspace, an operator in place, a view, and a sum
/// with the output of three blocks before.
fn network(operators: usize) -> OpSequence {
    let mut sequence = OpSequence::builder();
    sequence.input("t0", 4096);
    for at in 0..operators {
        let (input, output) = (format!("t{at}"), format!("t{}", at + 1));
        let size = 4096 + 64 * (at as u64 / 4 * 7919 % 1024);
        let operator = Operator::new(format!("op{at}"));
        sequence.operator(match at % 4 {
            0 => operator.inputs([input]).output(Output::new(output, size)).workspace(size / 4),
            1 => operator.inputs([&*input]).output(Output::new(output, size).overwrites(&*input)),
            2 => operator.inputs([&*input]).output(Output::new(output, size).reads(&*input)),
            _ => {
                let other = format!("t{}", at.saturating_sub(12));
                operator.inputs([input, other]).output(Output::new(output, size))
            }
        });
    }
    sequence.output(format!("t{operators}"));
    sequence.build().unwrap()
}

/// The most memory that the process held since the last call, in bytes.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let _ = fs::write("/proc/self/clear_refs", "5");
    kib * 1024
}

fn timed<T>(what: &str, chunks: usize, seconds: &mut f64, run: impl FnOnce() -> T) -> T {
    let _ = most_memory();
    let start = Instant::now();
    let result = run();
    let took = start.elapsed();
    *seconds += took.as_secs_f64();
    let memory = most_memory();
    eprintln!(
        "{chunks:>9} chunks  {what:<22} {:>8.0} ms  {:>6} MiB held at most, {:>5} B a chunk",
        took.as_secs_f64() * 1e3,
        memory >> 20,
        memory / chunks.max(1) as u64,
    );
    result
}

/// The seconds of all stages.
fn through_all_paths(operators: usize) -> f64 {
    let mut seconds = 0.0;
    let sequence = network(operators);
    let lowered = lower(&sequence, LoweringOptions::default()).unwrap();
    let (problem, chunks): (Problem, usize) = (lowered.problem.clone(), lowered.problem.len());
    drop((sequence, lowered));
    let mut timed_stage =
        |what: &str, run: &mut dyn FnMut()| timed(what, chunks, &mut seconds, run);

    let (mut sequence, mut plan) = (None, None);
    timed_stage("declare", &mut || sequence = Some(network(operators)));
    let sequence = sequence.unwrap();
    let planner = Planner::new().strategy(Strategy::Pushdown);
    timed_stage("lower and plan", &mut || plan = Some(planner.plan(&sequence).unwrap()));
    let plan = plan.unwrap();
    timed_stage("verify", &mut || assert_eq!(verify(&sequence, &plan), []));
    timed_stage("execute", &mut || assert_eq!(execute(&sequence, &plan), []));

    let (options, mut text) = (ImportOptions::default(), Vec::new());
    timed_stage("write JSON", &mut || write_sequence_json(&mut text, &sequence).unwrap());
    timed_stage("read JSON", &mut || {
        let read = read_input(&text, Format::Json, &options).unwrap();
        assert_eq!(read, Input::Sequence(sequence.clone()));
    });
    text = Vec::new();
    timed_stage("write the plan's JSON", &mut || write_plan_json(&mut text, &plan, None).unwrap());
    timed_stage("read the plan's JSON", &mut || {
        assert_eq!(read_plan(&text, Format::Json, &problem).unwrap(), plan);
    });
    drop((sequence, plan));

    text = Vec::new();
    timed_stage("write CSV", &mut || write_problem_csv(&mut text, &problem).unwrap());
    let mut read = None;
    timed_stage("read CSV", &mut || read = read_input(&text, Format::Csv, &options).ok());
    let Some(Input::Problem(read)) = read else { panic!("no problem") };
    let mut plan = None;
    timed_stage("plan the CSV", &mut || plan = Some(planner.plan(&read).unwrap()));
    let plan = plan.unwrap();
    timed_stage("verify the CSV", &mut || assert_eq!(verify(&read, &plan), []));
    text = Vec::new();
    timed_stage("write the plan's CSV", &mut || write_plan_csv(&mut text, &plan, None).unwrap());
    seconds
}

#[test]
fn ten_thousand_operators_take_every_path() {
    through_all_paths(10_000);
}

#[test]
#[ignore = "a minute without optimization"]
fn a_million_operators_take_every_path_in_about_linear_time() {
    through_all_paths(1_000);
    let small = through_all_paths(100_000);
    let large = through_all_paths(1_000_000);
    // 10 log(10^6) / log(10^5) = 12; caches and a busy machine add to that.
    assert!(large < 24.0 * small, "{small} s for 10^5, {large} s for 10^6");
}

/// Most of the memory is the problem itself: begin, end and size of each chunk.
#[test]
#[ignore = "2 GiB"]
fn ten_million_chunks_are_planned_and_verified() {
    const CHUNKS: u64 = 10_000_000;
    let chunks = usize::try_from(CHUNKS).unwrap();
    let mut seconds = 0.0;
    let problem = timed("declare", chunks, &mut seconds, || {
        let mut problem = Problem::builder();
        for step in 0..CHUNKS {
            problem.chunk(step..step + 1 + step % 5, 1 + step * 7919 % 4096);
        }
        problem.build().unwrap()
    });
    let planner = Planner::new().strategy(Strategy::Pushdown);
    let plan = timed("plan", chunks, &mut seconds, || planner.plan(&problem).unwrap());
    timed("verify", chunks, &mut seconds, || assert_eq!(verify(&problem, &plan), []));
}
