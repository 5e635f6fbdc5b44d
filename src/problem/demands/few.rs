//! Lists that mostly have one item.

use std::{fmt, ops::Deref, slice};

use smallvec::SmallVec;

/// A list that mostly has one item, which then needs no memory of its own.
#[derive(Clone, PartialEq, Eq)]
pub struct Few<T>(SmallVec<[T; 1]>);

impl<T: fmt::Debug> fmt::Debug for Few<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(SmallVec::from_iter(items))
    }
}
