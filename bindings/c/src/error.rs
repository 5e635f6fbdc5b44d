//! Failures: a status and a message.

use std::{
    any::Any,
    cell::RefCell,
    ffi::c_char,
    panic::{AssertUnwindSafe, catch_unwind},
};

use library::{PlanError, ProblemError, SequenceError, verify::Violation};

/// The result of a function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It succeeded.
    Ok = 0,
    /// An argument is invalid, or the plan that was verified is wrong.
    Invalid = 1,
    /// A sum of sizes exceeds 64 bits.
    Overflow = 2,
    /// The plan found is larger than the capacity.
    DoesNotFit = 3,
    /// The library failed; please report it. Nothing was changed.
    Panic = 4,
    /// A pointer that must not be null is null.
    Null = 5,
}

/// A status other than `Ok`, with its message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { status: Status::Invalid, message: message.into() }
    }

    pub(crate) fn null(name: &str) -> Self {
        Self { status: Status::Null, message: format!("'{name}' is null") }
    }
}

impl From<ProblemError> for Failure {
    fn from(error: ProblemError) -> Self {
        let status = match error {
            ProblemError::SizeOverflow { .. } => Status::Overflow,
            _ => Status::Invalid,
        };
        Self { status, message: error.to_string() }
    }
}

impl From<SequenceError> for Failure {
    fn from(error: SequenceError) -> Self {
        let status = match error {
            SequenceError::SizeOverflow { .. } => Status::Overflow,
            _ => Status::Invalid,
        };
        Self { status, message: error.to_string() }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Problem(error) => error.into(),
            PlanError::Sequence(error) => error.into(),
            error => Self::invalid(error.to_string()),
        }
    }
}

/// Fails with the first violation of a plan, if there is any.
pub(crate) fn right(violations: &[Violation]) -> Result<(), Failure> {
    let Some(first) = violations.first() else { return Ok(()) };
    let more = match violations.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Err(Failure::invalid(format!("the plan is wrong: {first}{more}")))
}

thread_local! {
    /// The message of this thread's last failure.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs the body of a function. No panic leaves it: unwinding into C is undefined.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    // A body changes nothing outside before it has succeeded, so no broken state can be observed afterwards.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure { status: Status::Panic, message: words(&*panic) },
    };
    // This fails only while the thread ends, when the message can no longer be read.
    let _ = LAST.try_with(|last| last.replace(failure.message));
    failure.status
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the library failed: {}", text.unwrap_or("no reason given"))
}

/// Copies the message of the last function of this thread that failed, in UTF-8 with a NUL at its
/// end, into `out`, which holds `n` bytes; what does not fit is cut off. Returns the bytes of the
/// whole message without the NUL. `out` may be null if `n` is 0.
///
/// # Safety
///
/// `out` points to `n` bytes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_last_error(out: *mut c_char, n: usize) -> usize {
    let copy = |message: &str| {
        // SAFETY: promised by the caller, and a message of this library cannot lie in the caller's buffer.
        unsafe { copy_text(message, out, n) };
        message.len()
    };
    LAST.try_with(|last| last.try_borrow().map_or(0, |message| copy(&message))).unwrap_or(0)
}

/// Copies a text with a NUL at its end into `out`, which holds `n` bytes; what does not fit is cut off.
///
/// # Safety
///
/// `out` is null or points to `n` bytes that may be written, none of them the text's.
pub(crate) unsafe fn copy_text(text: &str, out: *mut c_char, n: usize) {
    if out.is_null() || n == 0 {
        return;
    }
    let mut end = text.len().min(n - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: the caller promises n bytes, and end + 1 <= n.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast::<u8>(), end);
        *out.add(end) = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_error(room: usize) -> (String, usize) {
        let mut out = vec![0x7f_u8; room + 1];
        // SAFETY: there are `room` bytes and one more.
        let length = unsafe { memplan_last_error(out.as_mut_ptr().cast(), room) };
        assert_eq!(out[room], 0x7f, "a byte too many was written");
        let end = out.iter().position(|&byte| byte == 0).unwrap_or(0);
        (String::from_utf8(out[..end].to_vec()).unwrap(), length)
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        let status = guard(|| panic!("queue {}", 7));
        assert_eq!(status, Status::Panic);
        assert_eq!(last_error(64).0, "the library failed: queue 7");
    }

    #[test]
    fn a_message_is_cut_at_a_whole_character() {
        guard(|| Err(Failure::invalid("für")));
        assert_eq!(last_error(5), ("für".to_owned(), 4));
        assert_eq!(last_error(4), ("fü".to_owned(), 4));
        assert_eq!(last_error(3), ("f".to_owned(), 4));
        assert_eq!(last_error(1), (String::new(), 4));
        assert_eq!(last_error(0).1, 4);
    }
}
