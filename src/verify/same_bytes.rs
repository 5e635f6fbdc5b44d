//! The same-bytes rule: the bytes of a part are bytes of its whole, so both may need them at once.

use std::collections::{BTreeSet, HashSet};

use crate::{
    Bytes, Problem,
    problem::{ChunkId, constraints::Part},
    verify::joined::Joined,
};

/// A byte of a chunk.
type Byte = (ChunkId, Bytes);

/// The parts of a problem.
pub(super) struct SameBytes<'a> {
    problem: &'a Problem,
    /// By chunk: its parts by offset.
    parts: Vec<Vec<(Bytes, ChunkId)>>,
    /// By chunk: the size of its largest part.
    longest: Vec<Bytes>,
    direct: HashSet<(ChunkId, ChunkId, Bytes)>,
    /// By chunk: the group of chunks that it is related to by parts, directly or through others.
    family: Vec<usize>,
    has_relatives: Vec<bool>,
}

impl<'a> SameBytes<'a> {
    pub(super) fn new(problem: &'a Problem, parts: &[Part]) -> Self {
        let count = problem.len();
        let mut same = Self {
            problem,
            parts: vec![Vec::new(); count],
            longest: vec![0; count],
            direct: HashSet::new(),
            family: Vec::new(),
            has_relatives: vec![false; count],
        };
        let mut joined = Joined::new(count);
        for part in parts {
            let (inside, whole) = (part.part.index(), part.whole.index());
            same.parts[whole].push((part.offset, part.part));
            same.longest[whole] = same.longest[whole].max(same.size(part.part));
            same.direct.insert((part.part, part.whole, part.offset));
            (same.has_relatives[inside], same.has_relatives[whole]) = (true, true);
            joined.join(part.part, part.whole);
        }
        same.parts.iter_mut().for_each(|parts| parts.sort_unstable());
        same.family = (0..count).map(|chunk| joined.find(chunk)).collect();
        same
    }

    /// Returns whether a chunk is a part, or has one.
    pub(super) fn has_relatives(&self, chunk: ChunkId) -> bool {
        self.has_relatives[chunk.index()]
    }

    /// Returns whether two chunks are related by parts, directly or through others.
    pub(super) fn are_relatives(&self, x: ChunkId, y: ChunkId) -> bool {
        self.family[x.index()] == self.family[y.index()]
    }

    fn size(&self, chunk: ChunkId) -> Bytes {
        self.problem.chunk(chunk).size
    }

    /// Returns whether two chunks that lie at these offsets may both need the bytes `[low, high)`,
    /// which both have.
    pub(super) fn may_share(
        &self,
        (x, at_x): Byte,
        (y, at_y): Byte,
        (low, high): (u128, u128),
    ) -> bool {
        let is_one_family = self.has_relatives[x.index()]
            && self.has_relatives[y.index()]
            && self.family[x.index()] == self.family[y.index()];
        if !is_one_family {
            return false;
        }
        let direct = |part: Byte, whole: Byte| {
            part.1 >= whole.1 && self.direct.contains(&(part.0, whole.0, part.1 - whole.1))
        };
        if direct((x, at_x), (y, at_y)) || direct((y, at_y), (x, at_x)) {
            return true;
        }
        // Padding has no contents; only bytes of the chunks themselves must be the same.
        let end = |chunk, at| u128::from(at) + u128::from(self.size(chunk));
        let high = high.min(end(x, at_x)).min(end(y, at_y));
        let within = |value: u128, at: Bytes| Bytes::try_from(value - u128::from(at)).unwrap_or(0);
        let mut now = low;
        while now < high {
            let (of_x, run_x) = self.names((x, within(now, at_x)));
            let (of_y, run_y) = self.names((y, within(now, at_y)));
            if !of_x.is_subset(&of_y) && !of_y.is_subset(&of_x) {
                return false;
            }
            now += u128::from(run_x.min(run_y).max(1));
        }
        true
    }

    /// The bytes that are the same as a byte of a chunk: those of the innermost parts that cover it, or if there are
    /// none, the byte itself; and the number of bytes from it on that the same parts cover.
    fn names(&self, byte: Byte) -> (BTreeSet<Byte>, Bytes) {
        let mut names = BTreeSet::new();
        let mut run = Bytes::MAX;
        let mut seen = HashSet::from([byte]);
        let mut open = vec![byte];
        while let Some((chunk, at)) = open.pop() {
            run = run.min(self.size(chunk) - at);
            let parts = &self.parts[chunk.index()];
            let begun = parts.partition_point(|&(offset, _)| offset <= at);
            if let Some(&(next, _)) = parts.get(begun) {
                run = run.min(next - at);
            }
            let reach = self.longest[chunk.index()];
            let near = parts[..begun].iter().rev().take_while(|(offset, _)| at - offset < reach);
            let mut is_covered = false;
            for &(offset, part) in near.filter(|&&(offset, part)| at - offset < self.size(part)) {
                is_covered = true;
                if seen.insert((part, at - offset)) {
                    open.push((part, at - offset));
                }
            }
            if !is_covered {
                names.insert((chunk, at));
            }
        }
        (names, run)
    }
}
