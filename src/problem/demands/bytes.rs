//! Shared bytes: the bytes of a part are bytes of its whole.

use std::collections::{BTreeSet, HashSet};

use crate::{
    Bytes,
    problem::{ChunkId, demands::Part},
};

/// The parts and wholes of every chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    /// By chunk: its parts, and where they lie in it.
    parts: Vec<Vec<(ChunkId, Bytes)>>,
    /// By chunk: the chunks that it is a part of.
    wholes: Vec<Vec<ChunkId>>,
}

/// A byte of a chunk.
type Byte = (ChunkId, Bytes);

impl Family {
    pub(crate) fn new(chunks: usize, parts: &[Part]) -> Self {
        if parts.is_empty() {
            return Self::default();
        }
        let mut family = Self { parts: vec![Vec::new(); chunks], wholes: vec![Vec::new(); chunks] };
        for part in parts {
            family.parts[part.whole.index()].push((part.part, part.offset));
            family.wholes[part.part.index()].push(part.whole);
        }
        family
    }

    pub(crate) fn parts(&self, chunk: ChunkId) -> &[(ChunkId, Bytes)] {
        self.parts.get(chunk.index()).map_or(&[], |parts| parts)
    }

    pub(crate) fn wholes(&self, chunk: ChunkId) -> &[ChunkId] {
        self.wholes.get(chunk.index()).map_or(&[], |wholes| wholes)
    }

    pub(crate) fn has_relatives(&self, chunk: ChunkId) -> bool {
        !self.parts(chunk).is_empty() || !self.wholes(chunk).is_empty()
    }

    /// Returns whether one of two chunks at these places is a part of the other there.
    pub(crate) fn has_part(&self, (x, at_x): (ChunkId, i128), (y, at_y): (ChunkId, i128)) -> bool {
        let is_part = |part: ChunkId, whole: ChunkId, distance: i128| {
            let distance = Bytes::try_from(distance).ok();
            distance.is_some_and(|distance| self.parts(whole).contains(&(part, distance)))
        };
        is_part(x, y, at_x - at_y) || is_part(y, x, at_y - at_x)
    }

    /// Returns a chunk that is a part of itself, directly or through others.
    pub(crate) fn circle(&self) -> Option<ChunkId> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            Unseen,
            Open,
            Done,
        }
        let mut states = vec![State::Unseen; self.parts.len()];
        let mut open: Vec<(usize, usize)> = Vec::new();
        for root in 0..self.parts.len() {
            if states[root] != State::Unseen {
                continue;
            }
            states[root] = State::Open;
            open.push((root, 0));
            while let Some((chunk, next)) = open.last_mut() {
                let Some(&(part, _)) = self.parts[*chunk].get(*next) else {
                    states[*chunk] = State::Done;
                    open.pop();
                    continue;
                };
                *next += 1;
                match states[part.index()] {
                    State::Unseen => {
                        states[part.index()] = State::Open;
                        open.push((part.index(), 0));
                    }
                    State::Open => return Some(part),
                    State::Done => {}
                }
            }
        }
        None
    }

    /// The bytes that a byte of a chunk stands for: those of the parts that cover it, otherwise
    /// itself; and the number of bytes from it on for which the same parts do. There are several if
    /// parts that are never alive together cover it, such as the arms of a branch.
    fn names(
        &self,
        chunk: ChunkId,
        byte: Bytes,
        size: &dyn Fn(ChunkId) -> Bytes,
    ) -> (BTreeSet<Byte>, Bytes) {
        let mut found = BTreeSet::new();
        let mut run = size(chunk) - byte;
        let mut seen = HashSet::from([(chunk, byte)]);
        let mut open = vec![(chunk, byte)];
        while let Some((chunk, byte)) = open.pop() {
            let mut is_covered = false;
            for &(part, at) in self.parts(chunk) {
                if at <= byte && byte < at + size(part) {
                    is_covered = true;
                    run = run.min(size(part) - (byte - at));
                    if seen.insert((part, byte - at)) {
                        open.push((part, byte - at));
                    }
                } else if byte < at {
                    run = run.min(at - byte);
                }
            }
            if !is_covered {
                found.insert((chunk, byte));
            }
        }
        (found, run)
    }

    /// The byte of a part that a byte of a chunk stands for, if exactly one part covers it; and the number of
    /// bytes from it on for which that part does.
    fn only_part(
        &self,
        chunk: ChunkId,
        byte: Bytes,
        size: &dyn Fn(ChunkId) -> Bytes,
    ) -> Option<(Byte, Bytes)> {
        let mut found = None;
        let mut run = Bytes::MAX;
        for &(part, at) in self.parts(chunk) {
            let end = at + size(part);
            if at <= byte && byte < end {
                if found.replace((part, byte - at)).is_some() {
                    return None;
                }
                run = run.min(end - byte);
            } else if byte < at {
                run = run.min(at - byte);
            }
        }
        Some((found?, run))
    }

    /// Returns whether `count` bytes of two chunks hold the same values, because they stand for the
    /// same bytes.
    pub(crate) fn same(
        &self,
        (x, mut at_x): Byte,
        (y, mut at_y): Byte,
        mut count: Bytes,
        size: &dyn Fn(ChunkId) -> Bytes,
    ) -> bool {
        while count > 0 {
            // Two wholes that share one part here need no search through all parts.
            if let (Some((of_x, run_x)), Some((of_y, run_y))) =
                (self.only_part(x, at_x, size), self.only_part(y, at_y, size))
                && of_x == of_y
            {
                let step = run_x.min(run_y).min(count);
                at_x += step;
                at_y += step;
                count -= step;
                continue;
            }
            let (of_x, run_x) = self.names(x, at_x, size);
            let (of_y, run_y) = self.names(y, at_y, size);
            if !of_x.is_subset(&of_y) && !of_y.is_subset(&of_x) {
                return false;
            }
            let step = run_x.min(run_y).min(count);
            at_x += step;
            at_y += step;
            count -= step;
        }
        true
    }

    /// Returns whether one chunk is a part of the other, or both are related through others.
    pub(crate) fn related(&self, x: ChunkId, y: ChunkId) -> bool {
        let mut seen = HashSet::from([x]);
        let mut open = vec![x];
        while let Some(chunk) = open.pop() {
            let parts = self.parts(chunk).iter().map(|&(part, _)| part);
            for other in parts.chain(self.wholes(chunk).iter().copied()) {
                if other == y {
                    return true;
                }
                if seen.insert(other) {
                    open.push(other);
                }
            }
        }
        false
    }
}
