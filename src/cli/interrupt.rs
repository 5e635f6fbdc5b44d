//! Ctrl-C: while something is searched or written, the first is a request to come to an end, and
//! the second ends the process. At any other time the first does.

use std::{
    process,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// What a shell says of a process that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Held while it is decided that the process ends, so that nothing begins meanwhile.
static BUSY: Mutex<bool> = Mutex::new(false);

fn busy() -> MutexGuard<'static, bool> {
    BUSY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens from now on. If the system does not let us, Ctrl-C ends the process as ever.
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(|| {
        let busy = busy();
        if ASKED.swap(true, Ordering::SeqCst) || !*busy {
            process::exit(INTERRUPTED);
        }
    });
}

/// Whether there was a Ctrl-C.
pub(crate) fn asked() -> &'static AtomicBool {
    &ASKED
}

/// Does what is not to be ended by the first Ctrl-C.
pub(crate) fn finishing<T>(work: impl FnOnce() -> T) -> T {
    *busy() = true;
    let done = work();
    *busy() = false;
    done
}
