//! Pointers from C, checked and turned into slices, strings and references.

use std::{
    ffi::{CStr, c_char},
    ptr,
    sync::Arc,
};

use crate::error::Failure;

/// Checks that `n` elements can lie there: not null, aligned, and not longer than any object can be.
pub(crate) fn check<T>(pointer: *const T, n: usize, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::null(name));
    }
    if !pointer.is_aligned() {
        return Err(Failure::invalid(format!("'{name}' is not aligned to its elements")));
    }
    let most = isize::MAX.unsigned_abs() / size_of::<T>().max(1);
    if n > most {
        return Err(Failure::invalid(format!("'{name}' cannot have {n} elements")));
    }
    Ok(())
}

/// Returns the array as a slice. An array without elements may be null.
///
/// # Safety
///
/// `pointer` points to `n` elements that nothing changes while the slice lives.
pub(crate) unsafe fn slice<'a, T>(
    pointer: *const T,
    n: usize,
    name: &str,
) -> Result<&'a [T], Failure> {
    if n == 0 {
        return Ok(&[]);
    }
    check(pointer, n, name)?;
    // SAFETY: not null, aligned and of a possible length; the rest is promised by the caller.
    Ok(unsafe { std::slice::from_raw_parts(pointer, n) })
}

/// Checks that the caller's array of `n` elements can hold exactly `count` values.
pub(crate) fn check_count<T>(
    out: *const T,
    n: usize,
    count: usize,
    what: &str,
) -> Result<(), Failure> {
    if n != count {
        return Err(Failure::invalid(format!("'n' is {n}, but there are {count} {what}")));
    }
    if n == 0 { Ok(()) } else { check(out, n, "out") }
}

/// Writes the values into the caller's array of `n` elements; there must be exactly `n` values.
///
/// # Safety
///
/// `out` points to `n` elements that may be written.
pub(crate) unsafe fn fill<T>(
    out: *mut T,
    n: usize,
    values: impl ExactSizeIterator<Item = T>,
    what: &str,
) -> Result<(), Failure> {
    check_count(out, n, values.len(), what)?;
    for (at, value) in values.take(n).enumerate() {
        // SAFETY: at < n, and the caller promises n elements.
        unsafe { out.add(at).write(value) };
    }
    Ok(())
}

/// Returns a reference to what the pointer points to.
///
/// # Safety
///
/// `pointer` is null or points to a valid value that nothing changes while the reference lives.
pub(crate) unsafe fn reference<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    check(pointer, 1, name)?;
    // SAFETY: not null and aligned; the rest is promised by the caller.
    Ok(unsafe { &*pointer })
}

/// Returns an exclusive reference to what the pointer points to.
///
/// # Safety
///
/// `pointer` is null or points to a valid value that nothing else uses while the reference lives.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    check(pointer, 1, name)?;
    // SAFETY: not null and aligned; the rest is promised by the caller.
    Ok(unsafe { &mut *pointer })
}

/// Returns a text, or `None` for null.
///
/// # Safety
///
/// `text` is null or points to a text with a NUL at its end.
pub(crate) unsafe fn text(text: *const c_char, name: &str) -> Result<Option<String>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null; the caller promises the NUL.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| Failure::invalid(format!("'{name}' is not UTF-8")))?;
    Ok(Some(text.to_owned()))
}

/// Gives a new value to the caller, who frees it with [`free`].
///
/// # Safety
///
/// `out` points to a pointer that may be written.
pub(crate) unsafe fn give<T>(out: *mut *mut T, value: T) -> Result<(), Failure> {
    check(out, 1, "out")?;
    // SAFETY: not null and aligned; the caller promises that it may be written.
    unsafe { out.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// Gives a shared value, or null for none, to the caller, who frees it with [`free_shared`].
///
/// # Safety
///
/// `out` points to a pointer that may be written.
pub(crate) unsafe fn give_shared<T>(
    out: *mut *mut T,
    value: impl Into<Option<Arc<T>>>,
) -> Result<(), Failure> {
    check(out, 1, "out")?;
    let value = value.into().map_or(ptr::null_mut(), |value| Arc::into_raw(value).cast_mut());
    // SAFETY: not null and aligned; the caller promises that it may be written.
    unsafe { out.write(value) };
    Ok(())
}

/// Shares a value that the caller has.
///
/// # Safety
///
/// `value` is null or comes from [`give_shared`] and is not freed.
pub(crate) unsafe fn share<T>(value: *const T, name: &str) -> Result<Arc<T>, Failure> {
    check(value, 1, name)?;
    // SAFETY: it comes from `Arc::into_raw`, and the caller's own share keeps it alive.
    unsafe {
        Arc::increment_strong_count(value);
        Ok(Arc::from_raw(value))
    }
}

/// Frees a value; null is ignored.
///
/// # Safety
///
/// `value` is null or comes from [`give`], and nothing uses it any more.
pub(crate) unsafe fn free<T>(value: *mut T) {
    if !value.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and nothing else frees it.
        drop(unsafe { Box::from_raw(value) });
    }
}

/// Frees the caller's share of a value; null is ignored.
///
/// # Safety
///
/// `value` is null or comes from [`give_shared`], and the caller uses it no more.
pub(crate) unsafe fn free_shared<T>(value: *mut T) {
    if !value.is_null() {
        // SAFETY: it comes from `Arc::into_raw`, once for each time that it is freed.
        drop(unsafe { Arc::from_raw(value) });
    }
}
