//! The `memplan` command: a thin face of the library. Results go to standard output, words and traces
//! to standard error. Exit code 0 is good, 1 means that a plan is wrong or does not fit, 2 that the
//! words on the command line or the input are.

mod args;
mod commands;
mod files;
mod interrupt;
mod progress;
mod show;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::Parser;
use memplan::report::printable;
use tracing_subscriber::EnvFilter;

use args::{Arguments, Command, PlanArgs};

/// What a command found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// The plan is wrong, or does not fit the capacity.
    Bad,
}

/// Something wrong with the words or the input; the text names file, place and remedy.
#[derive(Debug)]
pub(crate) enum Failure {
    Input(String),
    /// Whoever reads our output has had enough.
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

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    trace();
    interrupt::listen();
    let result = match &arguments.command {
        None => commands::demo(),
        Some(Command::Plan(PlanArgs { input: None, .. })) if std::env::args_os().len() == 2 => {
            commands::demo()
        }
        Some(Command::Plan(args)) => commands::plan(args),
        Some(Command::Verify(args)) => commands::verify(args),
        Some(Command::Compare(args)) => commands::compare(args),
        Some(Command::Show(args)) => show::show(args),
        Some(Command::Explain(args)) => commands::explain(args),
        Some(Command::Convert(args)) => commands::convert(args),
    };
    match result {
        Ok(Verdict::Good) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Err(Failure::Input(message)) => {
            say(&message);
            ExitCode::from(2)
        }
    }
}

/// Words for a person, on standard error. If they cannot be written there is nobody to tell.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr(), "memplan: {}", printable(message));
}

/// Events go to standard error, as `RUST_LOG` says; warnings without it, or if it makes no sense.
fn trace() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|error| {
        if std::env::var_os(EnvFilter::DEFAULT_ENV).is_some() {
            say(&format!("{}: {error}; only warnings are told", EnvFilter::DEFAULT_ENV));
        }
        EnvFilter::new("warn")
    });
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colour)
        .log_internal_errors(false)
        .without_time()
        .init();
}
