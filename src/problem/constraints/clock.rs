//! Moments of programs on several streams.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    slice,
};

use smallvec::SmallVec;

use crate::Step;

/// The most streams of a clock that needs no heap memory.
const INLINE_STREAMS: usize = 3;

/// A moment of a program on several streams, as a vector clock: for each stream, the number of its
/// steps that are over. With one stream, the step.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Clock(SmallVec<[Step; INLINE_STREAMS]>);

impl Clock {
    /// Chooses between the steps of two clocks, stream by stream: with `min` the earlier ones, with `max` the later.
    pub(crate) fn merge(&mut self, other: &[Step], choose: fn(Step, Step) -> Step) {
        for (own, &other) in self.iter_mut().zip(other) {
            *own = choose(*own, other);
        }
    }
}

impl Clone for Clock {
    fn clone(&self) -> Self {
        Self(SmallVec::from_slice(&self.0))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Clock {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        &self.0
    }
}

impl DerefMut for Clock {
    fn deref_mut(&mut self) -> &mut [Step] {
        &mut self.0
    }
}

impl<'a> IntoIterator for &'a Clock {
    type Item = &'a Step;
    type IntoIter = slice::Iter<'a, Step>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<S: AsRef<[Step]>> From<S> for Clock {
    fn from(steps: S) -> Self {
        Self(SmallVec::from_slice(steps.as_ref()))
    }
}

impl FromIterator<Step> for Clock {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(SmallVec::from_iter(steps))
    }
}

/// A list of clocks in one allocation.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    streams: usize,
    steps: Vec<Step>,
}

impl Clocks {
    pub(crate) fn streams(&self) -> usize {
        self.streams
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len() / self.streams
    }

    pub(crate) fn get(&self, at: usize) -> &[Step] {
        &self.steps[at * self.streams..][..self.streams]
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[Step]> + Clone {
        self.steps.chunks_exact(self.streams)
    }
}

impl<'a> FromIterator<&'a [Step]> for Clocks {
    fn from_iter<I: IntoIterator<Item = &'a [Step]>>(clocks: I) -> Self {
        let mut clocks = clocks.into_iter().peekable();
        let streams = clocks.peek().map_or(1, |clock| clock.len());
        let mut steps = Vec::with_capacity(streams * clocks.size_hint().0);
        // Faster than copying short slices.
        clocks.for_each(|clock| steps.extend(clock.iter()));
        Self { streams, steps }
    }
}
