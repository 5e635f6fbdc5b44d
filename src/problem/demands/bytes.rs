//! Shared bytes: the bytes of a part are bytes of its whole.

use std::collections::{BTreeSet, HashSet};

use crate::{
    Bytes,
    problem::{Chunk, ChunkId, demands::Part},
};

/// The parts and wholes of every chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    /// By chunk: its parts, and where they lie in it, the lowest first.
    parts: Vec<Vec<(ChunkId, Bytes)>>,
    /// By chunk: the size of its largest part.
    longest: Vec<Bytes>,
    /// By chunk: the chunks that it is a part of.
    wholes: Vec<Vec<ChunkId>>,
    /// By chunk: a number that it shares with all chunks that it is related to by parts, directly or through
    /// others.
    families: Vec<u32>,
}

/// A byte of a chunk.
type Byte = (ChunkId, Bytes);

impl Family {
    pub(crate) fn new(chunks: &[Chunk], parts: &[Part]) -> Self {
        if parts.is_empty() {
            return Self::default();
        }
        let mut family = Self {
            parts: vec![Vec::new(); chunks.len()],
            longest: vec![0; chunks.len()],
            wholes: vec![Vec::new(); chunks.len()],
            families: vec![u32::MAX; chunks.len()],
        };
        for part in parts {
            let whole = part.whole.index();
            family.parts[whole].push((part.part, part.offset));
            family.longest[whole] = family.longest[whole].max(chunks[part.part.index()].size);
            family.wholes[part.part.index()].push(part.whole);
        }
        family.parts.iter_mut().for_each(|parts| parts.sort_unstable_by_key(|&(id, at)| (at, id)));
        for (chunk, number) in (0..chunks.len()).zip(0..) {
            family.number(chunk, number);
        }
        family
    }

    /// Gives a chunk and all its relatives a number, unless they have one.
    fn number(&mut self, chunk: usize, number: u32) {
        let mut open = vec![chunk];
        while let Some(chunk) = open.pop() {
            if self.families[chunk] == u32::MAX {
                self.families[chunk] = number;
                open.extend(self.parts[chunk].iter().map(|(part, _)| part.index()));
                open.extend(self.wholes[chunk].iter().map(|whole| whole.index()));
            }
        }
    }

    /// The parts of a chunk, and where they lie in it, the lowest first.
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
            let place = distance.map(|distance| (distance, part));
            place.is_some_and(|place| {
                self.parts(whole).binary_search_by_key(&place, |&(part, at)| (at, part)).is_ok()
            })
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

    /// The parts that cover a byte of a chunk, and the number of bytes from it on before the next part
    /// begins.
    fn covering(
        &self,
        chunk: ChunkId,
        byte: Bytes,
        size: &dyn Fn(ChunkId) -> Bytes,
    ) -> (impl Iterator<Item = &(ChunkId, Bytes)>, Bytes) {
        let parts = self.parts(chunk);
        let longest = self.longest.get(chunk.index()).copied().unwrap_or(0);
        let begun = parts.partition_point(|&(_, at)| at <= byte);
        let run = parts.get(begun).map_or(Bytes::MAX, |&(_, at)| at - byte);
        let near = parts[..begun].iter().rev().take_while(move |&&(_, at)| byte - at < longest);
        (near.filter(move |&&(part, at)| byte - at < size(part)), run)
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
            let (covering, next) = self.covering(chunk, byte, size);
            run = run.min(next);
            for &(part, at) in covering {
                is_covered = true;
                run = run.min(size(part) - (byte - at));
                if seen.insert((part, byte - at)) {
                    open.push((part, byte - at));
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
        let (mut covering, run) = self.covering(chunk, byte, size);
        let &(part, at) = covering.next()?;
        let run = run.min(at + size(part) - byte);
        covering.next().is_none().then_some(((part, byte - at), run))
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

    /// Returns whether one of two chunks is a part of the other, or both are related through others.
    pub(crate) fn related(&self, x: ChunkId, y: ChunkId) -> bool {
        self.has_relatives(x) && self.families[x.index()] == self.families[y.index()]
    }
}
