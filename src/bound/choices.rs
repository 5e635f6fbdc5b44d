//! A bound that holds whichever of the optional requests and parts a plan accepts.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes, Problem, Step,
    problem::{ChunkId, Request, align_up},
    sets::{find, join, merged},
};

/// The most chunks around a chunk, directly or through others, that a walk visits; beyond that, no bound is given.
const MAX_AROUND: usize = 1 << 12;

impl Problem {
    /// The bytes that every plan needs, whichever requests and parts are accepted. `None` if the problem is
    /// constrained, or if a chunk may lie inside too many others.
    ///
    /// In each step, all live chunks need their bytes. A chunk that may lie inside another counts for as long as either
    /// is alive, once. In its first step, an overwriter may save the bytes of one chunk that it may overwrite. Bytes
    /// count in multiples of the alignment, except in chunks that requests or parts may put at unaligned offsets.
    pub(crate) fn bound_over_choices(&self, alignment: Bytes, padding: Bytes) -> Option<Bytes> {
        if !self.is_unconstrained() {
            return None;
        }
        let exact = self.off_the_alignment(alignment);
        let wholes = Wholes::of(self);
        // The bytes, and the cells of the alignment that they take from all others.
        let count = |chunk: ChunkId, size: Bytes| -> (i128, i128) {
            let padding = if wholes.is_related(chunk) { 0 } else { padding };
            let size = if size == 0 { 0 } else { size.saturating_add(padding) };
            let floor = size & !(alignment - 1);
            let cells = if exact[chunk.index()] { floor } else { align_up(size, alignment) };
            (size.into(), cells.into())
        };
        // The change of both at each step at which they change.
        let mut changes: Vec<(u64, (i128, i128))> = Vec::with_capacity(2 * self.len());
        for id in self.ids() {
            let (plain, cells) = count(id, wholes.own_bytes(id));
            for needed in wholes.needed(id)? {
                changes.extend([(needed.start, (plain, cells)), (needed.end, (-plain, -cells))]);
            }
        }
        // What each overwriter saves at most, in its first step.
        let mut saved: HashMap<ChunkId, (i128, i128)> = HashMap::new();
        for &Request { overwriter, overwritten, below, .. } in self.requests() {
            let [new, old] = [overwriter, overwritten].map(|chunk| self.chunk(chunk));
            if old.end == new.begin + 1 && below < new.size {
                let (plain, cells) = count(overwriter, old.size.min(new.size - below));
                let whole = count(overwriter, new.size);
                // At an unaligned offset, all cells that begin in the overwriter may begin in bytes that it destroys.
                let cells = if exact[overwriter.index()] { whole.1 } else { cells };
                let best = saved.entry(overwriter).or_default();
                *best = (best.0.max(plain), best.1.max(cells));
            }
        }
        for (chunk, (plain, cells)) in saved {
            let begin = self.chunk(chunk).begin;
            changes.extend([(begin, (-plain, -cells)), (begin + 1, (plain, cells))]);
        }
        changes.sort_unstable();
        let (mut alive, mut most) = ((0, 0), 0);
        for now in changes.chunk_by(|a, b| a.0 == b.0) {
            for (_, (plain, cells)) in now {
                alive = (alive.0 + plain, alive.1 + cells);
            }
            most = most.max(alive.0).max(alive.1);
        }
        let most = most.cast_unsigned().next_multiple_of(alignment.into());
        Some(Bytes::try_from(most).unwrap_or(Bytes::MAX))
    }

    /// By chunk: true if it may share a cell of the alignment with another chunk. That holds for a chunk that may be
    /// written over another at an unaligned offset, for optional parts, and for all chunks joined to these.
    fn off_the_alignment(&self, alignment: Bytes) -> Vec<bool> {
        let mut group: Vec<usize> = (0..self.len()).collect();
        let mut exact = vec![false; self.len()];
        for &Request { overwriter, overwritten, offset, below, .. } in self.requests() {
            let is_aligned = offset.is_multiple_of(alignment) && below.is_multiple_of(alignment);
            let (a, b) = join(&mut group, overwriter.index(), overwritten.index());
            exact[a] |= exact[b] || !is_aligned;
        }
        for part in &self.optional_parts {
            let (whole, _) = join(&mut group, part.whole.index(), part.part.index());
            exact[whole] = true;
        }
        (0..self.len()).map(|at| exact[find(&mut group, at)]).collect()
    }
}

/// The optional parts of a problem, by part and by whole.
struct Wholes<'p> {
    problem: &'p Problem,
    /// By part: the chunks around it.
    around: HashMap<ChunkId, Vec<ChunkId>>,
    /// By whole: the bytes of its parts.
    inside: HashMap<ChunkId, Bytes>,
}

impl<'p> Wholes<'p> {
    fn of(problem: &'p Problem) -> Self {
        let mut wholes = Self { problem, around: HashMap::new(), inside: HashMap::new() };
        for part in &problem.optional_parts {
            wholes.around.entry(part.part).or_default().push(part.whole);
            *wholes.inside.entry(part.whole).or_default() += problem.chunk(part.part).size;
        }
        wholes
    }

    fn is_related(&self, chunk: ChunkId) -> bool {
        self.around.contains_key(&chunk) || self.inside.contains_key(&chunk)
    }

    /// The bytes of a chunk that no other chunk may hold. Its parts share none of them.
    fn own_bytes(&self, chunk: ChunkId) -> Bytes {
        self.problem.chunk(chunk).size - self.inside.get(&chunk).copied().unwrap_or(0)
    }

    /// The steps in which a chunk, or one around it, is alive; `None` if there are too many around it.
    fn needed(&self, chunk: ChunkId) -> Option<SmallVec<[Range<Step>; 1]>> {
        let life = |chunk: ChunkId| {
            let chunk = self.problem.chunk(chunk);
            chunk.begin..chunk.end
        };
        if !self.around.contains_key(&chunk) {
            return Some(smallvec![life(chunk)]);
        }
        let mut all = vec![chunk];
        let mut seen = HashSet::from([chunk]);
        let mut at = 0;
        while let Some(next) = all.get(at).copied() {
            let around = self.around.get(&next).into_iter().flatten();
            all.extend(around.copied().filter(|&whole| seen.insert(whole)));
            at += 1;
            if at > MAX_AROUND {
                return None;
            }
        }
        Some(merged(all.into_iter().map(life).collect()).into())
    }
}

#[cfg(test)]
mod tests {
    use crate::Problem;

    #[test]
    fn the_bound_over_requests_saves_what_the_best_of_them_saves() {
        let mut problem = Problem::builder();
        let a = problem.chunk(0..2, 96);
        problem.chunk(0..2, 64);
        let c = problem.chunk(1..3, 80);
        problem.overwrite(c, a, 0);
        // Rule a: it does not begin in the last step of this one.
        let d = problem.chunk(2..4, 32);
        problem.overwrite(d, a, 0);
        let problem = problem.build().expect("the problem is right");
        assert_eq!(problem.bound_over_choices(1, 0), Some(96 + 64));
        assert_eq!(problem.bound_over_choices(64, 0), Some(128 + 64));
        let without = problem.without(|at| at == 0, |_| false, false);
        let without = without.expect("the problem is right");
        assert_eq!(without.bound_over_choices(1, 0), Some(96 + 64 + 80));
    }

    /// `a` is needed until both chunks around it are over.
    #[test]
    fn bytes_of_parts_count_once() {
        let mut problem = Problem::builder();
        let (a, b) = (problem.chunk(0..2, 8), problem.chunk(0..4, 16));
        let inner = problem.chunk(1..4, 12);
        let outer = problem.chunk(3..5, 32);
        problem.chunk(4..5, 5);
        problem.optional_part(a, inner, 4).optional_part(inner, outer, 0);
        let problem = problem.optional_part(b, outer, 12).build().expect("the problem is right");
        // In step 4: all of `outer`, and 5 more.
        assert_eq!(problem.bound_over_choices(1, 0), Some(37));
        assert_eq!(problem.bound_over_choices(1, 100), Some(137));
        let without = problem.without(|_| false, |at| at == 1, false);
        let without = without.expect("the problem is right");
        // In step 3, `outer` is not around `inner`.
        assert_eq!(without.bound_over_choices(1, 0), Some(12 + 32));
        let parts = problem.without(|_| false, |_| false, true).expect("all parts are possible");
        assert_eq!((parts.parts().len(), parts.lower_bound()), (3, 37));
    }
}
