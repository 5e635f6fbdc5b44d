//! The accepted overwrite requests (the book, Lowering) and the chains that they form.

use std::fmt;

use crate::{
    Bytes,
    problem::{Chunk, ChunkId},
};

/// A request that a chunk be written over a part of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The newer chunk.
    pub overwriter: ChunkId,
    /// The older chunk.
    pub overwritten: ChunkId,
    /// The offset in the older chunk, in bytes from its start; 0 if the newer one begins below it.
    pub offset: Bytes,
    /// The bytes by which the newer chunk begins below the older one: a partial overlap, which may
    /// extend beyond the older chunk at both ends. 0 for a chunk that lies inside.
    pub below: Bytes,
    /// True if a plan without the overwrite is wrong (a state update) rather than only larger.
    pub required: bool,
}

impl Request {
    /// Creates an optional request to write `overwriter` over `overwritten`, beginning `offset` bytes
    /// after its start.
    #[must_use]
    pub const fn new(overwriter: ChunkId, overwritten: ChunkId, offset: Bytes) -> Self {
        Self { overwriter, overwritten, offset, below: 0, required: false }
    }

    /// Creates an optional request to write `overwriter` over `overwritten`, beginning `below` bytes
    /// below its start.
    #[must_use]
    pub const fn overlap(overwriter: ChunkId, overwritten: ChunkId, below: Bytes) -> Self {
        Self { overwriter, overwritten, offset: 0, below, required: false }
    }

    /// Sets whether the overwrite is required, as for a state update.
    #[must_use]
    pub const fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// The link that it becomes if it is accepted.
    pub(crate) const fn link(self) -> Link {
        Link { overwritten: self.overwritten, offset: self.offset, below: self.below }
    }
}

/// The link of an overwriter to the chunk that it overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The chunk that is written over.
    pub(crate) overwritten: ChunkId,
    /// The offset in it, in bytes from its start; 0 if the overwriter begins below it.
    pub(crate) offset: Bytes,
    /// The bytes by which the overwriter begins below it; 0 if it lies inside.
    pub(crate) below: Bytes,
}

impl Link {
    /// The distance from the start of the overwritten chunk to the start of the overwriter, in bytes.
    pub(crate) fn distance(self) -> i128 {
        i128::from(self.offset) - i128::from(self.below)
    }
}

/// The reason why a request to overwrite or to gather was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectReason {
    /// Rule a: the overwriter does not begin in the last step of the overwritten chunk.
    NotLastReader,
    /// Rule b: the overwriter already overwrites another chunk.
    OverwritesAnother,
    /// Rule c: another overwriter, at least as large or required, already overwrites the chunk.
    OverwrittenByAnother,
    /// Rule c: a larger or required overwriter came later and took the place.
    Displaced,
    /// Another stream may still use the overwritten chunk when the overwriter is written.
    Unordered,
    /// The overwriter does not come after the overwritten chunk in chunk order, or on several streams it
    /// may begin before that chunk; or overwrites would form a ring.
    NotBefore,
    /// On several streams, a chunk begins after the overwriter is written, but not after all that its
    /// operator waited for. No program has such clocks.
    ClocksContradict,
    /// One of the two has no bytes.
    Empty,
    /// The overwriter would end at or below the start of the other chunk.
    NothingShared,
    /// The overwriter would begin inside the other chunk and reach beyond its end.
    DoesNotFit,
    /// The step that both share is not among those that need the most bytes, so an overlap saves
    /// nothing.
    SavesNothing,
    /// The overwritten chunk is kept to the end: a graph output, or the state of a variable.
    KeptToTheEnd,
    /// The overwritten chunk was supplied from outside the pool.
    OutsideThePool,
    /// The chunk would need bytes that another chunk of its body needs.
    Clash,
    /// With the requested padding, the chunk would need bytes that another chunk of its body needs.
    PaddingClash,
    /// One of the two is a part of the other, directly or through others.
    PartOfTheOther,
    /// Another link puts the chunk elsewhere in its body.
    TwoPlaces,
    /// Two chunks of the body are pinned to places that do not agree.
    TwoPins,
    /// A pin puts the body at a place that it may not have.
    Pins,
    /// No pool is allowed for all chunks of the body.
    NoCommonPool,
    /// The alignments of the body's chunks cannot all be met.
    Misaligned,
    /// The body fits in none of its pools.
    TooLarge,
    /// The gathered input is a view of a larger chunk, or less than all of it.
    NotAllOfItsChunk,
    /// The output gathers the same chunk twice.
    PartTwice,
    /// More bytes would be alive at once, because an overwrite would be lost.
    LargerBound,
    /// Too many chunks are joined to each other to try one more.
    TooManyJoined,
    /// Another tensor of the operator shares bytes with what would be overwritten.
    Alias,
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotLastReader => "a later operator reads that chunk",
            Self::OverwritesAnother => "it already overwrites another chunk",
            Self::OverwrittenByAnother => "another chunk overwrites that one",
            Self::Displaced => "a larger overwriter of that chunk came later",
            Self::Unordered => "another stream may still use that chunk",
            Self::NotBefore => "that chunk does not come before it",
            Self::ClocksContradict => "clocks contradict each other about what is over when",
            Self::Empty => "one of the two has no bytes",
            Self::NothingShared => "it would lie below that chunk as a whole",
            Self::DoesNotFit => "it would reach beyond the end of that chunk",
            Self::SavesNothing => "other steps need as many bytes without it",
            Self::KeptToTheEnd => "that chunk must be kept to the end",
            Self::OutsideThePool => "that chunk lies outside the pool",
            Self::Clash => "another chunk joined to them needs the same bytes",
            Self::PaddingClash => "its padding would lie on bytes that another chunk needs",
            Self::PartOfTheOther => "one is a part of the other",
            Self::TwoPlaces => "another link puts it elsewhere",
            Self::TwoPins => "chunks joined to them are pinned to places that do not agree",
            Self::Pins => "a pin would put the two where they may not lie",
            Self::NoCommonPool => "no pool is allowed for both",
            Self::Misaligned => "the alignments of both cannot be met",
            Self::TooLarge => "together they fit in none of their pools",
            Self::NotAllOfItsChunk => "it is not all of its chunk",
            Self::PartTwice => "the same chunk is gathered twice",
            Self::LargerBound => "an overwrite would be lost and more bytes be alive at once",
            Self::TooManyJoined => "too many chunks are joined to try one more",
            Self::Alias => "another tensor of the operator shares the overwritten bytes",
        })
    }
}

/// A request that was not accepted, by its index in the list given, with the reason.
pub(crate) type Rejected = (usize, RejectReason);

/// The accepted links of a problem.
///
/// Links form chains, never trees: a chunk overwrites at most one other and is overwritten by at
/// most one other, and an overwriter comes after its overwritten chunk in chunk order. All tables
/// are empty if nothing is linked; otherwise they have an entry per chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Links {
    /// The link of each overwriter.
    by_overwriter: Vec<Option<Link>>,
    /// The overwriter of each chunk; the inverse of `by_overwriter`.
    overwriters: Vec<Option<ChunkId>>,
    /// The root of each chunk's chain and the offset from it; `(itself, 0)` for a root.
    places: Vec<(ChunkId, Bytes)>,
}

impl Links {
    /// Takes the requests in order and keeps those that rules a to c allow.
    pub(crate) fn resolve(chunks: &[Chunk], requests: &[Request]) -> (Self, Vec<Rejected>) {
        let mut dropped = Vec::new();
        if requests.is_empty() {
            return (Self::default(), dropped);
        }
        let rank = |request: &Request| if request.required { 0 } else { OPTIONAL };
        let taken =
            choose(chunks, requests, rank, |request| refuse(chunks, *request), &mut dropped);
        let links = taken.into_iter().map(|taken| Some(requests[taken?].link()));
        (Self::of(links.collect()), dropped)
    }

    /// Returns whether the link of a request exists.
    pub(crate) fn is_accepted(&self, request: &Request) -> bool {
        self.get(request.overwriter) == Some(request.link())
    }

    /// Builds the tables from accepted links, by overwriter.
    pub(crate) fn of(links: Vec<Option<Link>>) -> Self {
        if links.iter().all(Option::is_none) {
            return Self::default();
        }
        let mut overwriters = vec![None; links.len()];
        for (overwriter, link) in links.iter().enumerate() {
            if let Some(link) = link {
                overwriters[link.overwritten.index()] = Some(ChunkId::from_index(overwriter));
            }
        }
        let places = places(&links, &overwriters);
        Self { by_overwriter: links, overwriters, places }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_overwriter.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.by_overwriter.iter().flatten().count()
    }

    pub(crate) fn get(&self, overwriter: ChunkId) -> Option<Link> {
        *self.by_overwriter.get(overwriter.index())?
    }

    pub(crate) fn overwriter(&self, overwritten: ChunkId) -> Option<ChunkId> {
        *self.overwriters.get(overwritten.index())?
    }

    pub(crate) fn place(&self, chunk: ChunkId) -> (ChunkId, Bytes) {
        self.places.get(chunk.index()).copied().unwrap_or((chunk, 0))
    }
}

/// Returns the reason to reject a request that follows from its two chunks alone, if there is one.
fn refuse(chunks: &[Chunk], request: Request) -> Option<RejectReason> {
    let overwriter = &chunks[request.overwriter.index()];
    let overwritten = &chunks[request.overwritten.index()];
    let order = |chunk: &Chunk, id| (chunk.begin, chunk.end, id);
    if overwriter.size == 0 || overwritten.size == 0 {
        Some(RejectReason::Empty)
    } else if request.below >= overwriter.size {
        Some(RejectReason::NothingShared)
    } else if overwriter.begin != overwritten.end - 1 {
        Some(RejectReason::NotLastReader)
    } else if order(overwriter, request.overwriter) < order(overwritten, request.overwritten) {
        Some(RejectReason::NotBefore)
    } else {
        None
    }
}

/// The rank of a request that another one may displace.
pub(crate) const OPTIONAL: u8 = 2;

/// Applies rules b and c to all requests that `refuse` accepts, in order of rank. Returns the accepted request of each
/// overwriter, and adds all others to `refused`.
pub(crate) fn choose(
    chunks: &[Chunk],
    requests: &[Request],
    rank: impl Fn(&Request) -> u8,
    refuse: impl Fn(&Request) -> Option<RejectReason>,
    refused: &mut Vec<Rejected>,
) -> Vec<Option<usize>> {
    let mut taken: Vec<Option<usize>> = vec![None; chunks.len()];
    let mut overwriters: Vec<Option<usize>> = vec![None; chunks.len()];
    let size = |request: &Request| chunks[request.overwriter.index()].size;
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|&index| rank(&requests[index]));
    for index in order {
        let request = &requests[index];
        let (new, old) = (request.overwriter.index(), request.overwritten.index());
        let present = overwriters[old];
        let reason = refuse(request).or_else(|| {
            if taken[new].is_some() {
                return Some(RejectReason::OverwritesAnother);
            }
            let stays = |&present: &usize| {
                let present = &requests[present];
                rank(present) < OPTIONAL || size(request) <= size(present)
            };
            let present = present.filter(stays)?;
            Some(if present > index {
                RejectReason::Displaced
            } else {
                RejectReason::OverwrittenByAnother
            })
        });
        if let Some(reason) = reason {
            refused.push((index, reason));
            continue;
        }
        if let Some(present) = present {
            taken[requests[present].overwriter.index()] = None;
            refused.push((present, RejectReason::Displaced));
        }
        taken[new] = Some(index);
        overwriters[old] = Some(index);
    }
    taken
}

/// Walks every chain once, from its root. A chunk that begins below its root has no offset there;
/// bodies say where it lies.
fn places(links: &[Option<Link>], overwriters: &[Option<ChunkId>]) -> Vec<(ChunkId, Bytes)> {
    let mut places: Vec<(ChunkId, Bytes)> =
        (0..links.len()).map(|c| (ChunkId::from_index(c), 0)).collect();
    for root in (0..links.len()).filter(|&c| links[c].is_none()).map(ChunkId::from_index) {
        let (mut last, mut offset) = (root, 0_i128);
        while let Some(next) = overwriters[last.index()] {
            offset += links[next.index()].map_or(0, Link::distance);
            places[next.index()] = (root, Bytes::try_from(offset).unwrap_or(0));
            last = next;
        }
    }
    places
}
