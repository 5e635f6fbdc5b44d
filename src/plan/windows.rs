//! Data of the problem that a plan repeats, so that pictures can be drawn from the plan alone: windows and holes,
//! pinned chunks and reserved ranges.

use std::{collections::HashMap, ops::Range};

use crate::{Bytes, Plan, Problem, Step, problem::constraints::ChunkConstraints};

/// Steps in which a chunk needs only some of its bytes, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlannedWindow {
    /// The chunk, by its place in [`Plan::chunks`].
    pub(crate) chunk: usize,
    /// The first of the steps.
    pub(crate) begin: Step,
    /// The step after the last.
    pub(crate) end: Step,
    /// The lowest byte that it needs, from its start.
    pub(crate) low: Bytes,
    /// The byte after the highest; the same as `low` in a hole, where it needs none.
    pub(crate) high: Bytes,
}

impl Plan {
    /// The steps in which a chunk needs only some of its bytes, each with these bytes, from the start of the chunk; no
    /// bytes in a hole. In the other steps, it needs all its bytes. The chunk is given by its place in
    /// [`Plan::chunks`].
    pub fn windows(&self, chunk: usize) -> impl Iterator<Item = (Range<Step>, Range<Bytes>)> + '_ {
        let windows = self.windows_of(chunk).iter();
        windows.map(|window| (window.begin..window.end, window.low..window.high))
    }

    /// Returns whether a chunk needs only some of its bytes in some steps.
    #[must_use]
    pub const fn has_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Replaces the windows of all chunks. Tests spoil plans with it; it is not part of the public interface.
    #[doc(hidden)]
    pub fn set_windows(
        &mut self,
        windows: impl IntoIterator<Item = (usize, Range<Step>, Range<Bytes>)>,
    ) {
        let window = |(chunk, steps, bytes): (usize, Range<Step>, Range<Bytes>)| PlannedWindow {
            chunk,
            begin: steps.start,
            end: steps.end,
            low: bytes.start,
            high: bytes.end,
        };
        self.windows = windows.into_iter().map(window).collect();
    }

    /// Copies the holes, windows, pins and reserved ranges of the problem that this is a plan of.
    pub(super) fn with_windows(self, problem: &Problem) -> Self {
        let Some(constraints) = problem.constraints() else { return self };
        let is_listed = |own: &ChunkConstraints| own.pin.is_some() || !own.is_whole();
        let listed = problem.ids().zip(&constraints.own).filter(|(_, own)| is_listed(own));
        let listed: HashMap<u64, &ChunkConstraints> =
            listed.map(|(chunk, own)| (problem.number(chunk), own)).collect();
        let of_chunks = || {
            let chunks = self.chunks.iter().enumerate().filter(|_| !listed.is_empty());
            chunks.filter_map(|(at, chunk)| Some((at, *listed.get(&chunk.id)?)))
        };
        let mut windows: Vec<PlannedWindow> =
            of_chunks().flat_map(|(chunk, own)| windows(chunk, own)).collect();
        windows.sort_unstable();
        let pinned = of_chunks().filter(|(_, own)| own.pin.is_some());
        let pinned = pinned.map(|(chunk, _)| chunk).collect();
        let reserved = self.pools.iter().enumerate().flat_map(|(at, planned)| {
            let given = constraints.pools.iter().filter(|pool| pool.name == planned.name);
            given.flat_map(|pool| &pool.reserved).map(move |range| (at, range.clone()))
        });
        let reserved = reserved.collect();
        Self { windows, pinned, reserved, ..self }
    }
}

/// The holes and windows of a chunk, in any order.
fn windows(chunk: usize, own: &ChunkConstraints) -> impl Iterator<Item = PlannedWindow> {
    let holes = own.holes.iter().map(move |hole| PlannedWindow {
        chunk,
        begin: hole.start,
        end: hole.end,
        low: 0,
        high: 0,
    });
    holes.chain(own.windows.iter().map(move |window| PlannedWindow {
        chunk,
        begin: window.steps.start,
        end: window.steps.end,
        low: window.bytes.start,
        high: window.bytes.end,
    }))
}
