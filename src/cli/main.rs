//! The `memplan` command, a thin layer over the library. Results go to standard output, messages
//! and traces to standard error. Exit code 0 means success, 1 that a plan is wrong or does not fit,
//! 2 that the arguments or the input are wrong.

mod advice;
mod args;
mod commands;
mod compare;
mod convert;
mod files;
mod interrupt;
mod later;
mod manual;
mod micro;
mod onnxruntime;
mod ops;
mod planning;
mod progress;
mod recompute;
mod recordings;
mod reorder;
mod rules;
mod show;
mod terminal;
mod tflite;
mod verify;

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{Parser, error::ErrorKind};
use memplan::report::printable;
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use args::{Arguments, Command, PlanArgs};

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// The plan is wrong, or does not fit the capacity.
    Bad,
    /// Some of the inputs failed; the others were processed.
    Incomplete,
}

/// An error in the arguments or the input; the text names file, place and remedy.
#[derive(Debug)]
pub(crate) enum Failure {
    Input(String),
    /// The input is valid, but nothing fits.
    NoPlan(String),
    /// An error in several lines, whose text is printable.
    Lines(String),
    /// The reader of the output has closed it.
    ClosedPipe,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Input(format!("cannot write the result: {error}")),
        }
    }
}

/// Prints the help that was asked for, or what is wrong with the arguments.
fn misused(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand;
    let first = std::env::args_os().nth(1).map(PathBuf::from);
    if let Some(file) = first.filter(|first| is_unknown && first.is_file()) {
        let file = file.to_string_lossy();
        let _ =
            writeln!(io::stderr(), "\n  tip: to plan this file: memplan plan {}", printable(&file));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misused(&error),
    };
    QUIET.store(arguments.quiet, Ordering::Relaxed);
    VERBOSE.store(arguments.verbose > 0, Ordering::Relaxed);
    trace(&arguments);
    interrupt::listen();
    let result = match &arguments.command {
        None => commands::demo(),
        Some(Command::Plan(PlanArgs { input: None, .. })) if std::env::args_os().len() == 2 => {
            commands::demo()
        }
        Some(Command::Plan(args)) => commands::plan(args),
        Some(Command::Verify(args)) => verify::verify(args),
        Some(Command::Compare(args)) => compare::compare(args),
        Some(Command::Show(args)) => show::show(args),
        Some(Command::Explain(args)) => commands::explain(args),
        Some(Command::Convert(args)) => convert::convert(args),
        Some(Command::Reorder(args)) => reorder::reorder(args),
        Some(Command::Recompute(args)) => recompute::recompute(args),
        Some(Command::Ops(args)) => ops::ops(args),
        Some(Command::Completions { shell }) => manual::completions(*shell),
        Some(Command::Man { command }) => manual::page(command.as_deref()),
    };
    match result {
        Ok(Verdict::Good) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Ok(Verdict::Incomplete) => ExitCode::from(2),
        Err(Failure::Input(message)) => {
            say(&message);
            ExitCode::from(2)
        }
        Err(Failure::NoPlan(message)) => {
            say(&message);
            ExitCode::from(1)
        }
        Err(Failure::Lines(message)) => {
            let _ = writeln!(io::stderr(), "memplan: {message}");
            ExitCode::from(2)
        }
    }
}

/// Set by `--quiet`.
static QUIET: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Set by `--verbose`.
static VERBOSE: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Prints an error or an answer on standard error. A failure to print is ignored, because there is
/// nowhere left to report it.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr(), "memplan: {}", printable(message));
}

/// Prints a note, unless `--quiet` is given.
pub(crate) fn note(message: &str) {
    if !is_quiet() {
        say(message);
    }
}

/// Writes events to standard error: those selected by `RUST_LOG`, otherwise by `-v` and `-q`.
fn trace(arguments: &Arguments) {
    let level = match (arguments.quiet, arguments.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "warn,memplan=info",
        (false, 2) => "warn,memplan=debug",
        (false, _) => "warn,memplan=trace",
    };
    let chosen = std::env::var("RUST_LOG").unwrap_or_default();
    let targets = match chosen.parse::<Targets>() {
        _ if chosen.is_empty() => None,
        Ok(targets) => Some(targets),
        Err(error) => {
            note(&format!("RUST_LOG: {error}; it is ignored"));
            None
        }
    };
    let targets = targets.or_else(|| level.parse().ok()).unwrap_or_default();
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(colour)
        .log_internal_errors(false)
        .without_time();
    tracing_subscriber::registry().with(targets).with(lines).init();
}
