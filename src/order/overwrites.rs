//! Requests of outputs to overwrite chunks, and the bytes that they save in a step.

use crate::{Bytes, order::sets::NOBODY};

/// A request of an output to overwrite a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overwrite {
    /// A number for the output, the same for all of its requests.
    pub(super) output: u32,
    /// The bytes that the output counts.
    pub(super) bytes: Bytes,
    /// The size by which outputs that request the same chunk are compared.
    pub(super) size: Bytes,
    pub(super) required: bool,
    /// The chunk to overwrite.
    pub(super) chunk: u32,
    /// The output as a chunk; [`NOBODY`] if it does not outlive the step.
    pub(super) made: u32,
}

impl Overwrite {
    /// Returns whether this request becomes `other` when chunks are exchanged.
    pub(super) fn becomes(&self, other: &Self, exchange: impl Fn(u32) -> u32) -> bool {
        let made = if self.made == NOBODY { NOBODY } else { exchange(self.made) };
        let same = |one: &Self| (one.bytes, one.size, one.required);
        same(self) == same(other) && (exchange(self.chunk), made) == (other.chunk, other.made)
    }

    /// Returns the same request with other numbers for chunks.
    pub(super) fn renumbered(&self, number: impl Fn(u32) -> u32) -> Self {
        let made = if self.made == NOBODY { NOBODY } else { number(self.made) };
        Self { chunk: number(self.chunk), made, ..*self }
    }

    /// Returns whether it is a request of the same output for the same bytes.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.output, self.bytes) == (other.output, other.bytes)
    }
}

/// Returns the bytes of the outputs that overwrite a chunk, by rules b and c of lowering (the book,
/// Lowering).
pub(super) fn overwritten(overwrites: &[Overwrite], dies: impl Fn(u32) -> bool) -> Bytes {
    let single = overwrites.iter().all(|overwrite| overwrite.output == overwrites[0].output);
    let dying = || overwrites.iter().filter(|overwrite| dies(overwrite.chunk));
    // Those that are required come first.
    let mut first = dying().filter(|one| one.required).chain(dying().filter(|one| !one.required));
    if single {
        return first.next().map_or(0, |overwrite| overwrite.bytes);
    }
    // The requests granted so far: at most one for each output and one for each chunk.
    let mut granted: Vec<Overwrite> = Vec::with_capacity(overwrites.len());
    for overwrite in first {
        if granted.iter().any(|other| other.output == overwrite.output) {
            continue;
        }
        match granted.iter().position(|other| other.chunk == overwrite.chunk) {
            None => granted.push(*overwrite),
            Some(at) => {
                let other = granted[at];
                if !other.required && overwrite.size > other.size {
                    granted[at] = *overwrite;
                }
            }
        }
    }
    granted.iter().map(|overwrite| overwrite.bytes).sum()
}

/// Returns whether one more dying chunk never lowers the overwritten bytes, and raises them by at most its own size.
pub(super) fn is_monotone(overwrites: &[Overwrite], sizes: &[Bytes]) -> bool {
    let mut chunks: Vec<u32> = overwrites.iter().map(|overwrite| overwrite.chunk).collect();
    chunks.sort_unstable();
    chunks.dedup();
    if overwrites.iter().all(|overwrite| overwrite.is_like(&overwrites[0])) || chunks.len() < 2 {
        return true;
    }
    if chunks.len() > 8 {
        return false;
    }
    let bytes = |set: usize| {
        overwritten(overwrites, |chunk| {
            chunks.binary_search(&chunk).is_ok_and(|at| set >> at & 1 == 1)
        })
    };
    (0..1_usize << chunks.len()).all(|set| {
        let present = bytes(set);
        (0..chunks.len()).all(|at| {
            let most = present.saturating_add(sizes[chunks[at] as usize]);
            (present..=most).contains(&bytes(set | 1 << at))
        })
    })
}
