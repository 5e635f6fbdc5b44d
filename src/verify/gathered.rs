//! The bytes that concatenations take from their inputs without a copy.
//!
//! An output gathers an input in place if the input already lies where the output has it. Those bytes of the
//! output then are the input's, which in turn may have taken them from inputs of its own operator.

use crate::{
    Bytes, OpSequence,
    plan::PlannedPart,
    sequence::{Dependency, Gather, Origin, TensorId},
    verify::places::{Interval, Memory, Place},
};

/// Joins parts of one chunk that lie beside each other in the chunk and in its whole.
pub(super) fn joined(mut parts: Vec<PlannedPart>) -> impl Iterator<Item = PlannedPart> {
    parts.sort_unstable_by_key(|part| (part.whole, part.offset, part.chunk));
    parts.dedup_by(|next, last| {
        let is_one = (last.whole, last.chunk) == (next.whole, next.chunk);
        let end = |first: Bytes, size: Bytes| first.checked_add(size);
        let is_next = end(last.low, last.size) == Some(next.low)
            && end(last.offset, last.size) == Some(next.offset);
        if is_one && is_next {
            last.size = last.size.saturating_add(next.size);
        }
        is_one && is_next
    });
    parts.into_iter()
}

/// The outputs that gather inputs in their places.
pub(super) struct Gathered {
    /// By tensor: the bytes that it has from an input, ascending, and the tensor that was written there.
    from: Vec<Vec<(Interval, usize)>>,
    /// By tensor: its parent in a union-find forest of tensors that share bytes, directly or
    /// through others.
    family: Vec<usize>,
    is_shared: Vec<bool>,
}

impl Gathered {
    pub(super) fn none(tensors: usize) -> Self {
        Self {
            from: vec![Vec::new(); tensors],
            family: (0..tensors).collect(),
            is_shared: vec![false; tensors],
        }
    }

    /// The inputs that an output finds in their places in the pool, with their bytes.
    pub(super) fn in_place(
        sequence: &OpSequence,
        places: &[Place],
        output: usize,
    ) -> Vec<(usize, Interval)> {
        let Origin::Output { dependency: Dependency::Gathers(gathers), .. } =
            &sequence.tensors()[output].origin
        else {
            return Vec::new();
        };
        let in_place = |&Gather { input, offset, .. }: &Gather<TensorId>| {
            let place = places[input.index()];
            let interval = place.interval(sequence.tensor(input).size.unwrap_or(Bytes::MAX))?;
            let is_there = interval.memory == Memory::Pool && place.is_at(places[output], offset);
            is_there.then_some((input.index(), interval))
        };
        let mut found: Vec<(usize, Interval)> = gathers.iter().filter_map(in_place).collect();
        found.sort_unstable_by_key(|&(_, interval)| interval);
        found
    }

    /// Records that an output has these bytes from other written tensors.
    pub(super) fn gather(&mut self, output: usize, from: Vec<(Interval, usize)>) {
        for &(_, input) in &from {
            let (a, b) = (self.representative(output), self.representative(input));
            self.family[a.max(b)] = a.min(b);
            (self.family[output], self.family[input]) = (a.min(b), a.min(b));
            (self.is_shared[output], self.is_shared[input]) = (true, true);
        }
        self.from[output] = from;
    }

    /// The representative of the written tensors that share bytes with this one, directly or through others.
    pub(super) fn representative(&self, mut tensor: usize) -> usize {
        while self.family[tensor] != tensor {
            tensor = self.family[tensor];
        }
        tensor
    }

    /// Returns whether a written tensor takes bytes from another, or another from it.
    pub(super) fn is_shared(&self, tensor: usize) -> bool {
        self.is_shared[tensor]
    }

    /// Returns whether two written tensors share bytes, directly or through others.
    pub(super) fn related(&self, x: usize, y: usize) -> bool {
        self.representative(x) == self.representative(y)
    }

    /// The tensors that a written tensor has its bytes from.
    pub(super) fn from(&self, tensor: usize) -> &[(Interval, usize)] {
        &self.from[tensor]
    }

    /// Splits these bytes of a tensor into runs, each with the written tensor that its bytes belong
    /// to.
    pub(super) fn owners(&self, tensor: usize, bytes: Interval) -> Vec<(Interval, usize)> {
        let mut owners: Vec<(Interval, usize)> = Vec::new();
        let mut open = vec![(bytes, tensor)];
        while let Some((bytes, tensor)) = open.pop() {
            let from = &self.from[tensor];
            let first = from.partition_point(|(one, _)| one.high <= bytes.low);
            let Some((one, input)) = from.get(first).filter(|(one, _)| one.low < bytes.high) else {
                match owners.last_mut() {
                    Some((last, owner)) if *owner == tensor => last.high = bytes.high,
                    _ => owners.push((bytes, tensor)),
                }
                continue;
            };
            // The lowest bytes come last, so that they are next.
            if one.high < bytes.high {
                open.push((Interval { low: one.high, ..bytes }, tensor));
            }
            let (low, high) = (one.low.max(bytes.low), one.high.min(bytes.high));
            open.push((Interval { low, high, ..bytes }, *input));
            if bytes.low < low {
                open.push((Interval { high: low, ..bytes }, tensor));
            }
        }
        owners
    }

    /// Returns whether two written tensors, each given with its first byte and the byte after its last, may be alive at
    /// the same time because the bytes that they have in common belong to both. Padding may overlap that of a relative.
    pub(super) fn may_share(
        &self,
        (x, low_x, high_x): (usize, Bytes, Bytes),
        (y, low_y, high_y): (usize, Bytes, Bytes),
    ) -> bool {
        let (low, high) = (low_x.max(low_y), high_x.min(high_y));
        let bytes = Interval { memory: Memory::Pool, low, high };
        self.related(x, y) && (low >= high || self.owners(x, bytes) == self.owners(y, bytes))
    }
}
