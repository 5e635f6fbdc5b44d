//! Shared bytes: the bytes of a part are bytes of its whole.

use std::collections::{BTreeSet, HashSet};

use crate::{
    Bytes,
    problem::{Chunk, ChunkId, constraints::Part},
    sets,
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
    /// By chunk: one of the chunks that it is related to by parts, directly or through others; all of these have the
    /// same.
    families: Vec<usize>,
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
            families: (0..chunks.len()).collect(),
        };
        for part in parts {
            let whole = part.whole.index();
            family.parts[whole].push((part.part, part.offset));
            family.longest[whole] = family.longest[whole].max(chunks[part.part.index()].size);
            family.wholes[part.part.index()].push(part.whole);
            sets::join(&mut family.families, whole, part.part.index());
        }
        family.parts.iter_mut().for_each(|parts| parts.sort_unstable_by_key(|&(id, at)| (at, id)));
        for chunk in 0..chunks.len() {
            family.families[chunk] = sets::find(&mut family.families, chunk);
        }
        family
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

    /// Returns whether one of two chunks is a part of the other, directly or through others.
    pub(crate) fn contains(&self, x: ChunkId, y: ChunkId) -> bool {
        let is_inside = |inner: ChunkId, outer: ChunkId| {
            let mut open = vec![inner];
            let mut seen = open.clone();
            while let Some(chunk) = open.pop() {
                for &whole in self.wholes(chunk) {
                    if whole == outer {
                        return true;
                    }
                    if !seen.contains(&whole) {
                        seen.push(whole);
                        open.push(whole);
                    }
                }
            }
            false
        };
        self.related(x, y) && (is_inside(x, y) || is_inside(y, x))
    }

    /// Returns a chunk on a cycle of parts: one that is a part of itself, directly or through others.
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

    /// The bytes that a byte of a chunk stands for: the bytes of the innermost parts that cover it, or
    /// itself if none does. Also returns for how many bytes, from this one on, the same parts cover them.
    /// Several parts may cover a byte if they are never alive together, such as the arms of a branch.
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

    /// The byte of a part that a byte of a chunk stands for, if exactly one part covers it, and for how many bytes,
    /// from this one on, that part is the only one.
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
            let run = match (self.only_part(x, at_x, size), self.only_part(y, at_y, size)) {
                // Two wholes that share one part here need no search through all parts.
                (Some((of_x, run_x)), Some((of_y, run_y))) if of_x == of_y => run_x.min(run_y),
                _ => {
                    let (of_x, run_x) = self.names(x, at_x, size);
                    let (of_y, run_y) = self.names(y, at_y, size);
                    if !of_x.is_subset(&of_y) && !of_y.is_subset(&of_x) {
                        return false;
                    }
                    run_x.min(run_y)
                }
            };
            let step = run.min(count);
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

#[cfg(test)]
mod tests {
    use arbitrary::{Result, Unstructured};

    use super::*;
    use crate::{Problem, ProblemError, seeds::times};

    /// Chunks, and parts that fit, each in a chunk after it.
    fn random_parts(random: &mut Unstructured<'_>) -> Result<(Vec<Chunk>, Vec<Part>)> {
        let mut chunks = Vec::new();
        for at in 0..random.int_in_range(2..=6)? {
            let begin = random.int_in_range(0..=4)?;
            let end = begin + random.int_in_range(1..=4)?;
            chunks.push(Chunk { begin, end, size: random.int_in_range(1..=4 + at)? });
        }
        let mut parts: Vec<Part> = Vec::new();
        for _ in 0..random.int_in_range(1..=7)? {
            let whole = random.int_in_range(1..=chunks.len() - 1)?;
            let part = random.int_in_range(0..=whole - 1)?;
            if let Some(room) = chunks[whole].size.checked_sub(chunks[part].size) {
                let (part, whole) = (ChunkId::from_index(part), ChunkId::from_index(whole));
                let offset = random.int_in_range(0..=room)?;
                if !parts.iter().any(|old| (old.part, old.whole) == (part, whole)) {
                    parts.push(Part::new(part, whole, offset));
                }
            }
        }
        Ok((chunks, parts))
    }

    /// The parts that have a byte of a chunk, by looking at all.
    fn all_covering(chunks: &[Chunk], parts: &[Part], (chunk, byte): Byte) -> BTreeSet<Byte> {
        let has = |part: &&Part| {
            let size = chunks[part.part.index()].size;
            part.whole == chunk && (part.offset..part.offset + size).contains(&byte)
        };
        parts.iter().filter(has).map(|part| (part.part, byte - part.offset)).collect()
    }

    fn all_names(chunks: &[Chunk], parts: &[Part], byte: Byte) -> BTreeSet<Byte> {
        let inside = all_covering(chunks, parts, byte);
        if inside.is_empty() {
            return BTreeSet::from([byte]);
        }
        inside.into_iter().flat_map(|byte| all_names(chunks, parts, byte)).collect()
    }

    fn may_be_one(chunks: &[Chunk], parts: &[Part], x: Byte, y: Byte) -> bool {
        let (of_x, of_y) = (all_names(chunks, parts, x), all_names(chunks, parts, y));
        of_x.is_subset(&of_y) || of_y.is_subset(&of_x)
    }

    #[test]
    fn bytes_are_the_same_as_byte_by_byte() {
        let (mut equal, mut different, mut inside) = (0, 0, 0);
        let one = |random: &mut Unstructured<'_>| {
            let (chunks, parts) = random_parts(random)?;
            let family = Family::new(&chunks, &parts);
            let size = |chunk: ChunkId| chunks[chunk.index()].size;
            let ids = || (0..chunks.len()).map(ChunkId::from_index);
            for x in ids() {
                for byte in 0..size(x) {
                    let (covering, _) = family.covering(x, byte, &size);
                    let covering = covering.map(|&(part, at)| (part, byte - at)).collect();
                    assert_eq!(all_covering(&chunks, &parts, (x, byte)), covering, "{parts:?}");
                    let (names, run) = family.names(x, byte, &size);
                    assert!(run > 0 && byte + run <= size(x));
                    for more in 0..run {
                        let moved = names.iter().map(|&(chunk, at)| (chunk, at + more)).collect();
                        assert_eq!(all_names(&chunks, &parts, (x, byte + more)), moved);
                    }
                }
                for y in ids() {
                    for distance in -8..=8_i128 {
                        let is_part = |(part, whole, offset): (ChunkId, ChunkId, i128)| {
                            parts.iter().any(|one| {
                                (one.part, one.whole, i128::from(one.offset))
                                    == (part, whole, offset)
                            })
                        };
                        let expected = is_part((x, y, distance)) || is_part((y, x, -distance));
                        assert_eq!(family.has_part((x, 20 + distance), (y, 20)), expected);
                        inside += u32::from(expected);
                    }
                    let at_x = random.int_in_range(0..=size(x) - 1)?;
                    let at_y = random.int_in_range(0..=size(y) - 1)?;
                    let most = (size(x) - at_x).min(size(y) - at_y);
                    let count = random.int_in_range(1..=most)?;
                    let expected = (0..count).all(|more| {
                        may_be_one(&chunks, &parts, (x, at_x + more), (y, at_y + more))
                    });
                    assert_eq!(family.same((x, at_x), (y, at_y), count, &size), expected);
                    (equal, different) =
                        (equal + u32::from(expected && x != y), different + u32::from(!expected));
                }
            }
            Ok(())
        };
        times(300, one);
        assert!(equal.min(different).min(inside) > 100, "{equal} {different} {inside}");
    }

    /// By chunk: its offset from the first chunk that parts join it to, and that chunk. `None` if a chunk has
    /// two places.
    fn offsets(chunks: &[Chunk], parts: &[Part]) -> Option<Vec<(usize, i128)>> {
        let mut of: Vec<(usize, i128)> = (0..chunks.len()).map(|chunk| (chunk, 0)).collect();
        for part in parts {
            let ((a, at_a), (b, at_b)) = (of[part.whole.index()], of[part.part.index()]);
            let shift = at_a + i128::from(part.offset) - at_b;
            if a == b && shift != 0 {
                return None;
            }
            of.iter_mut()
                .filter(|own| own.0 == b && a != b)
                .for_each(|own| *own = (a, own.1 + shift));
        }
        Some(of)
    }

    #[test]
    fn a_body_clashes_as_it_does_byte_by_byte() {
        let (mut right, mut clashing) = (0, 0);
        let one = |random: &mut Unstructured<'_>| {
            let (chunks, parts) = random_parts(random)?;
            let mut problem = Problem::builder();
            for chunk in &chunks {
                problem.chunk(chunk.begin..chunk.end, chunk.size);
            }
            for part in &parts {
                problem.part(part.part, part.whole, part.offset);
            }
            let is_right = match problem.build() {
                Ok(_) => true,
                Err(ProblemError::Clash { .. }) => false,
                // Other faults are found first.
                Err(_) => return Ok(()),
            };
            let Some(of) = offsets(&chunks, &parts) else { panic!("two places: {parts:?}") };
            let meets = |x: usize, y: usize| {
                let (a, b) = (chunks[x], chunks[y]);
                of[x].0 == of[y].0 && a.begin < b.end && b.begin < a.end
            };
            let is_clash = |x: usize, y: usize| {
                (0..chunks[x].size).any(|byte| {
                    let in_y = of[x].1 + i128::from(byte) - of[y].1;
                    let in_y = Bytes::try_from(in_y).ok().filter(|&at| at < chunks[y].size);
                    in_y.is_some_and(|in_y| {
                        let (x, y) = (ChunkId::from_index(x), ChunkId::from_index(y));
                        !may_be_one(&chunks, &parts, (x, byte), (y, in_y))
                    })
                })
            };
            let clash = (0..chunks.len()).any(|x| (0..x).any(|y| meets(x, y) && is_clash(x, y)));
            assert_eq!(is_right, !clash, "{chunks:?} {parts:?}");
            (right, clashing) = (right + u32::from(is_right), clashing + u32::from(!is_right));
            Ok(())
        };
        times(6000, one);
        assert!(right.min(clashing) > 50, "{right} right, {clashing} clashing");
    }
}
