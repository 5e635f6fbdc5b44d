//! The progress of a search: one line on the terminal, rewritten repeatedly and erased at the end.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use memplan::{Bytes, Planner, Progress, report::size};

use crate::{interrupt, is_quiet};

/// Searches shorter than this show nothing.
const PATIENCE: Duration = Duration::from_millis(500);

const PAUSE: Duration = Duration::from_millis(200);

/// Runs a search of a planner that Ctrl-C ends early and that shows its progress if there is a terminal. With a
/// capacity, the search decides whether a plan fits.
pub(crate) fn searching<T>(
    capacity: Option<Bytes>,
    planner: &Planner<'_>,
    search: impl FnOnce(&Planner<'_>) -> T,
) -> T {
    let start = Instant::now();
    let line = Mutex::new(Line { began: start, nodes: 0, written: None });
    let show = |progress: &Progress| {
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        line.show(progress, start, capacity);
    };
    let mut planner = planner.clone().cancel(interrupt::asked());
    if io::stderr().is_terminal() && !is_quiet() {
        planner = planner.progress(&show);
    }
    let found = interrupt::finishing(|| search(&planner));
    if line.into_inner().is_ok_and(|line| line.written.is_some()) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    found
}

/// The line on the terminal.
struct Line {
    /// The start of the current search. Where several strategies search, each counts its own nodes.
    began: Instant,
    /// Its nodes so far.
    nodes: u64,
    /// The time of the last write.
    written: Option<Instant>,
}

impl Line {
    fn show(&mut self, progress: &Progress, start: Instant, capacity: Option<Bytes>) {
        let now = Instant::now();
        if progress.nodes < self.nodes {
            self.began = now;
        }
        self.nodes = progress.nodes;
        if now - start >= PATIENCE && self.written.is_none_or(|written| now - written >= PAUSE) {
            self.written = Some(now);
            let line = line(progress, now - self.began, capacity);
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
    }
}

/// Returns whether a search was ended early.
pub(crate) fn is_interrupted() -> bool {
    interrupt::asked().load(Ordering::SeqCst)
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn line(progress: &Progress, took: Duration, capacity: Option<Bytes>) -> String {
    let Progress { lower_bound, best, nodes, .. } = *progress;
    let pace = nodes as f64 / took.as_secs_f64().max(1e-3);
    let nodes = format!("{} nodes, {}/s", short(nodes as f64), short(pace));
    if let Some(capacity) = capacity {
        return format!("does it fit into {:#}?  {nodes}", size(capacity));
    }
    if best == Bytes::MAX {
        return format!("proven {:#}  no plan yet  {nodes}", size(lower_bound));
    }
    let gap = 100.0 * (best as f64 / lower_bound.max(1) as f64 - 1.0);
    let (bound, best) = (size(lower_bound), size(best));
    format!("proven {bound:#}  best {best:#}  gap {gap:.2} %  {nodes}")
}

/// Formats a number in thousands, millions and so on.
fn short(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1} G", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_the_progress_of_the_search() {
        let mut progress = Progress::default();
        (progress.lower_bound, progress.best) = (1000 << 10, 1010 << 10);
        progress.nodes = 3_000_000;
        let took = Duration::from_secs(2);
        assert_eq!(
            line(&progress, took, None),
            "proven 1000 KiB  best 1010 KiB  gap 1.00 %  3.0 M nodes, 1.5 M/s"
        );
        assert_eq!(
            line(&progress, took, Some(1005 << 10)),
            "does it fit into 1005 KiB?  3.0 M nodes, 1.5 M/s"
        );
        progress.best = Bytes::MAX;
        assert_eq!(
            line(&progress, took, None),
            "proven 1000 KiB  no plan yet  3.0 M nodes, 1.5 M/s"
        );
    }
}
