//! Fields that are computed at their first use.

use std::sync::OnceLock;

/// A value that follows from the other fields of its struct. It is computed once, at its first use.
#[derive(Clone, Debug)]
pub(crate) struct Lazy<T>(OnceLock<T>);

impl<T> Lazy<T> {
    /// The value.
    pub(crate) fn get(&self, compute: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(compute)
    }

    /// The value, if it has been computed.
    pub(crate) fn known(&self) -> Option<&T> {
        self.0.get()
    }
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

/// Lazy values are always equal, because the fields that they follow from are compared themselves.
impl<T> PartialEq for Lazy<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
