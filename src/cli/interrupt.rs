//! Signals that end the process: Ctrl-C, a kill, a closed terminal. During a search or a write, the
//! first signal asks it to finish and the second ends the process; at any other time the first
//! signal ends it. No temporary file remains.

use std::{
    fs, io,
    path::PathBuf,
    process,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tempfile::NamedTempFile;

static ASKED: AtomicBool = AtomicBool::new(false);

/// The work that a signal may interrupt.
struct Work {
    busy: bool,
    /// A partly written file.
    temporary: Option<PathBuf>,
}

/// Locked while the process decides to end, so that nothing begins meanwhile.
static WORK: Mutex<Work> = Mutex::new(Work { busy: false, temporary: None });

fn work() -> MutexGuard<'static, Work> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts listening. If the system does not allow it, signals end the process as usual.
pub(crate) fn listen() {
    let _ = on_signals(|exit_code| {
        let work = work();
        if ASKED.swap(true, Ordering::SeqCst) || !work.busy {
            if let Some(file) = &work.temporary {
                let _ = fs::remove_file(file);
            }
            process::exit(exit_code);
        }
    });
}

/// Calls `handle` at every signal, with the exit code that shells give a process ended by it.
#[cfg(unix)]
fn on_signals(handle: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        iterator::Signals,
    };
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let listen = move || signals.forever().for_each(|signal| handle(128 + signal));
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map(|_| ())
}

/// Returns whether the process was started to outlive a signal, as by `nohup`; false if the system
/// does not report it.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(not(unix))]
fn on_signals(handle: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(move || handle(130)).map_err(io::Error::other)
}

/// The flag that the first signal sets.
pub(crate) fn asked() -> &'static AtomicBool {
    &ASKED
}

/// Runs a task that the first signal must not end. A temporary file that it creates is gone or has
/// another name when it ends.
pub(crate) fn finishing<T>(task: impl FnOnce() -> T) -> T {
    work().busy = true;
    let done = task();
    *work() = Work { busy: false, temporary: None };
    done
}

/// Creates a file that is removed if a signal ends the process before the task ends.
pub(crate) fn temporary(
    create: impl FnOnce() -> io::Result<NamedTempFile>,
) -> io::Result<NamedTempFile> {
    let mut work = work();
    let file = create()?;
    work.temporary = Some(file.path().to_owned());
    Ok(file)
}
