//! Lists that mostly have one item.

use std::{fmt, ops::Deref, slice};

use smallvec::SmallVec;

/// A list that mostly has one item, which then needs no memory of its own.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ShortList<T>(SmallVec<[T; 1]>);

impl<T: fmt::Debug> fmt::Debug for ShortList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Deref for ShortList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T> IntoIterator for &'a ShortList<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> FromIterator<T> for ShortList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(SmallVec::from_iter(items))
    }
}
