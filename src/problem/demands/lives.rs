//! Lives on several streams, in one run of memory.

use crate::Step;

/// Lives, each from a clock to a clock.
pub(crate) struct Lives {
    streams: usize,
    /// By life: its begin, then its end.
    clocks: Vec<Step>,
}

impl Lives {
    /// No lives yet, with room for so many.
    pub(crate) fn with_capacity(streams: usize, lives: usize) -> Self {
        Self { streams, clocks: Vec::with_capacity(2 * streams * lives) }
    }

    /// Adds a life.
    pub(crate) fn push(&mut self, begin: &[Step], end: &[Step]) {
        // Faster than copying short slices.
        self.clocks.extend(begin.iter().chain(end));
    }

    /// Makes the last life begin and end no later, and no earlier, than these clocks on each stream.
    pub(crate) fn widen_last(&mut self, begin: &[Step], end: &[Step]) {
        let first = self.clocks.len() - 2 * self.streams;
        let (begins, ends) = self.clocks[first..].split_at_mut(self.streams);
        for (own, &other) in begins.iter_mut().zip(begin) {
            *own = other.min(*own);
        }
        for (own, &other) in ends.iter_mut().zip(end) {
            *own = other.max(*own);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.clocks.len() / (2 * self.streams)
    }

    pub(crate) fn begin(&self, at: usize) -> &[Step] {
        &self.clocks[2 * at * self.streams..][..self.streams]
    }

    pub(crate) fn end(&self, at: usize) -> &[Step] {
        &self.clocks[(2 * at + 1) * self.streams..][..self.streams]
    }

    pub(crate) fn begins(&self) -> Vec<&[Step]> {
        (0..self.len()).map(|at| self.begin(at)).collect()
    }

    pub(crate) fn ends(&self) -> Vec<&[Step]> {
        (0..self.len()).map(|at| self.end(at)).collect()
    }
}
