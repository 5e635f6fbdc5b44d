//! Clocks and lives on several streams, each list in one run of memory.

use crate::{
    Step,
    problem::{Problem, demands::chains::by_sum},
};

/// Clocks, by index.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    streams: usize,
    steps: Vec<Step>,
}

impl Clocks {
    /// No clocks yet, with room for so many.
    pub(crate) fn with_capacity(streams: usize, clocks: usize) -> Self {
        Self { streams, steps: Vec::with_capacity(streams * clocks) }
    }

    pub(crate) fn push(&mut self, clock: &[Step]) {
        // Faster than copying a short slice.
        self.steps.extend(clock.iter());
    }

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

    fn last_mut(&mut self) -> &mut [Step] {
        let first = self.steps.len() - self.streams;
        &mut self.steps[first..]
    }
}

impl<'a> FromIterator<&'a [Step]> for Clocks {
    fn from_iter<I: IntoIterator<Item = &'a [Step]>>(clocks: I) -> Self {
        let mut clocks = clocks.into_iter().peekable();
        let streams = clocks.peek().map_or(1, |clock| clock.len());
        let mut list = Self::with_capacity(streams, clocks.size_hint().0);
        clocks.for_each(|clock| list.push(clock));
        list
    }
}

/// Lives, each from a clock to a clock.
#[derive(Clone, Debug)]
pub(crate) struct Lives {
    pub(crate) begins: Clocks,
    pub(crate) ends: Clocks,
}

impl Lives {
    /// No lives yet, with room for so many.
    pub(crate) fn with_capacity(streams: usize, lives: usize) -> Self {
        let clocks = || Clocks::with_capacity(streams, lives);
        Self { begins: clocks(), ends: clocks() }
    }

    /// Adds a life.
    pub(crate) fn push(&mut self, begin: &[Step], end: &[Step]) {
        self.begins.push(begin);
        self.ends.push(end);
    }

    /// Makes the last life begin and end no later, and no earlier, than these clocks on each stream.
    fn widen_last(&mut self, begin: &[Step], end: &[Step]) {
        for (own, &other) in self.begins.last_mut().iter_mut().zip(begin) {
            *own = other.min(*own);
        }
        for (own, &other) in self.ends.last_mut().iter_mut().zip(end) {
            *own = other.max(*own);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.begins.len()
    }
}

/// The lives of the bodies of a problem that is not plain, and their order in time.
#[derive(Clone, Debug)]
pub(crate) struct BodyLives {
    /// By body: that of its chunk, holes included, or from the first begin of a box, stream by stream, to the last end.
    pub(crate) lives: Lives,
    /// The bodies that need bytes, in order of the sums of their begins.
    pub(crate) order: Vec<u32>,
    /// The others, whose lives mean nothing.
    pub(crate) idle: Vec<u32>,
    /// True if each body is one chunk, and none overwrites another.
    pub(crate) are_single: bool,
}

impl BodyLives {
    pub(crate) fn of(problem: &Problem) -> Self {
        let bodies = problem.bodies();
        let streams = problem.demands().map_or(1, |demands| demands.streams);
        let mut lives = Lives::with_capacity(streams, bodies.len());
        let (mut idle, mut are_single) = (Vec::new(), true);
        for (at, body) in (0..).zip(bodies) {
            if let Some((begin, end)) = problem.one_life(body) {
                lives.push(begin, end);
                continue;
            }
            are_single = false;
            let boxes = problem.boxes_of(body);
            if let Some((first, others)) = boxes.split_first() {
                lives.push(&first.begin, &first.end);
                for one in others {
                    lives.widen_last(&one.begin, &one.end);
                }
            } else {
                idle.push(at);
                let never = vec![0; streams];
                lives.push(&never, &never);
            }
        }
        let mut order = by_sum(&lives.begins);
        if !idle.is_empty() {
            order.retain(|at| idle.binary_search(at).is_err());
        }
        Self { lives, order, idle, are_single }
    }
}
