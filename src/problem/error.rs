//! Errors in problems.

use crate::{Bytes, Step, problem::RejectReason};

/// A problem that cannot be planned. Chunks are named as in the input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// A chunk's lifetime does not end after it begins.
    #[error("chunk '{chunk}' has an empty lifetime: {reason}")]
    EmptyLifetime {
        /// The chunk's name.
        chunk: String,
        /// The reason, with its times.
        reason: String,
    },
    /// Two chunks have the same id.
    #[error("two chunks have the id '{id}'; ids must be unique")]
    DuplicateId {
        /// The id.
        id: String,
    },
    /// The number of ids differs from the number of chunks.
    #[error("there must be one id for each of the {chunks} chunks")]
    IdCount {
        /// The number of chunks.
        chunks: usize,
    },
    /// A request, a part or a list of chunks kept apart refers to a chunk that does not exist.
    #[error("{user} names chunk {id}, which does not exist")]
    UnknownChunk {
        /// The place that names it, such as `an overwrite request`.
        user: &'static str,
        /// The id that no chunk has.
        id: u64,
    },
    /// A problem lists more pools than are allowed.
    #[error("there are {pools} pools; at most {most} may be listed")]
    TooManyPools {
        /// The number of pools.
        pools: usize,
        /// The most that are allowed.
        most: usize,
    },
    /// A pool has no name.
    #[error("a pool has no name; give each a name of its own")]
    UnnamedPool,
    /// A chunk requests to overwrite itself.
    #[error("chunk '{chunk}' requests to overwrite itself")]
    OverwritesItself {
        /// The chunk's name.
        chunk: String,
    },
    /// An overwriter does not fit into the chunk that it would overwrite.
    #[error(
        "chunk '{overwriter}' ({size} B) does not fit in '{overwritten}' ({room} B) at offset {offset}"
    )]
    OverwriteDoesNotFit {
        /// The overwriter's name.
        overwriter: String,
        /// The overwritten chunk's name.
        overwritten: String,
        /// The overwriter's size in bytes.
        size: Bytes,
        /// The requested offset in bytes.
        offset: Bytes,
        /// The overwritten chunk's size in bytes.
        room: Bytes,
    },
    /// A request to overwrite states both an offset inside the other chunk and bytes below it.
    #[error(
        "chunk '{overwriter}' may begin inside the chunk that it overwrites or below it, not both: give 'offset' or 'below'"
    )]
    OffsetAndBelow {
        /// The overwriter's name.
        overwriter: String,
    },
    /// A required overwrite cannot be accepted.
    #[error("chunk '{overwriter}' must overwrite '{overwritten}', but {reason}")]
    RequiredOverwrite {
        /// The overwriter's name.
        overwriter: String,
        /// The overwritten chunk's name.
        overwritten: String,
        /// The reason.
        reason: RejectReason,
    },
    /// The alignment is not a power of two.
    #[error("alignment {alignment} is not a power of two")]
    Alignment {
        /// The alignment in bytes.
        alignment: Bytes,
    },
    /// The sum of the padded and aligned sizes of all chunks, plus one more alignment, exceeds 64
    /// bits.
    #[error(
        "the sizes of all chunks and an alignment add up to 2^64 bytes or more (at chunk '{chunk}' \
         of {size} B; the alignment is {alignment} B, the padding of each chunk {padding} B)"
    )]
    SizeOverflow {
        /// The chunk at which the sum no longer fits.
        chunk: String,
        /// Its size in bytes.
        size: Bytes,
        /// The alignment in bytes.
        alignment: Bytes,
        /// The padding in bytes.
        padding: Bytes,
    },
    /// The list of pools of a problem or of a chunk is empty.
    #[error("{}", no_pools(chunk.as_deref()))]
    NoPools {
        /// The chunk, if it is the list of a chunk.
        chunk: Option<String>,
    },
    /// Two pools have the same name.
    #[error("two pools are called '{pool}'; names must be unique")]
    DuplicatePool {
        /// The name.
        pool: String,
    },
    /// A chunk names a pool that does not exist.
    #[error("there is no pool '{pool}'; the name of a pool must be in the list of pools")]
    UnknownPool {
        /// The name, or the index.
        pool: String,
    },
    /// A pin names no pool, but there are several.
    #[error("the pin of chunk '{chunk}' must name one of the pools")]
    PinWithoutPool {
        /// The chunk.
        chunk: String,
    },
    /// A chunk without bytes is pinned.
    #[error("chunk '{chunk}' has no bytes, so it cannot be pinned")]
    PinnedEmpty {
        /// The chunk.
        chunk: String,
    },
    /// A pin puts a body where it may not lie, or on another pinned body.
    #[error("{reason}")]
    Pins {
        /// A pinned chunk.
        chunk: String,
        /// The reason, with the names of the chunks.
        reason: String,
    },
    /// A reserved range is empty.
    #[error("a reserved range of pool '{pool}' is empty")]
    EmptyReserve {
        /// The pool.
        pool: String,
    },
    /// The size of a pool's buffers is not a positive multiple of its alignment, or the pool has
    /// reserved ranges.
    #[error(
        "pool '{pool}' consists of buffers of {largest} B; their size must be a positive multiple of the alignment, {alignment} B, and there may be no reserved ranges beside them"
    )]
    Largest {
        /// The pool.
        pool: String,
        /// The size of the buffers.
        largest: Bytes,
        /// The alignment in the pool.
        alignment: Bytes,
    },
    /// A body fits in none of its pools.
    #[error(
        "chunk '{chunk}' and all that is joined to it take {size} B, and no pool where they may lie has room for them"
    )]
    TooLarge {
        /// A chunk of the body.
        chunk: String,
        /// The bytes of the body, padding included.
        size: Bytes,
    },
    /// A hole or window is empty or outside the lifetime of its chunk.
    #[error(
        "chunk '{chunk}' has a hole or window [{begin}, {end}) that is empty or outside its lifetime"
    )]
    HoleOutside {
        /// The chunk.
        chunk: String,
        /// The first step of the hole.
        begin: Step,
        /// The step after its last.
        end: Step,
    },
    /// Two holes or windows of a chunk overlap.
    #[error("two holes or windows of chunk '{chunk}' overlap")]
    HolesOverlap {
        /// The chunk.
        chunk: String,
    },
    /// A window is empty or outside the bytes of its chunk.
    #[error(
        "chunk '{chunk}' has a window of the bytes [{low}, {high}), which is empty or outside its {size} B"
    )]
    Window {
        /// The chunk.
        chunk: String,
        /// The first byte.
        low: Bytes,
        /// The byte after the last.
        high: Bytes,
        /// The size of the chunk.
        size: Bytes,
    },
    /// A chunk has holes or windows although there are several streams.
    #[error("chunk '{chunk}' has holes or windows, which exist only with one stream")]
    HoleInStreams {
        /// The chunk.
        chunk: String,
    },
    /// The stream of a chunk, or the length of its clocks, does not match the number of streams.
    #[error(
        "chunk '{chunk}' needs one time for each of the {streams} streams in `begin` and in `end`, and a stream below {streams}"
    )]
    Streams {
        /// The chunk.
        chunk: String,
        /// The number of streams.
        streams: usize,
    },
    /// A part does not fit in its whole.
    #[error("part '{part}' does not fit in '{whole}' at offset {offset}")]
    PartDoesNotFit {
        /// The part.
        part: String,
        /// The whole.
        whole: String,
        /// Bytes from the start of the whole.
        offset: Bytes,
    },
    /// A chunk is a part of itself, directly or through others.
    #[error("chunk '{chunk}' is a part of itself")]
    PartOfItself {
        /// The chunk.
        chunk: String,
    },
    /// A chunk is listed twice as a part of another.
    #[error("chunk '{part}' is listed twice as a part of '{whole}'")]
    PartTwice {
        /// The part.
        part: String,
        /// The whole.
        whole: String,
    },
    /// A part or a whole has no bytes.
    #[error("part '{part}' or its whole '{whole}' has no bytes")]
    EmptyPart {
        /// The part.
        part: String,
        /// The whole.
        whole: String,
    },
    /// Two parts that are alive together cover the same bytes of a whole.
    #[error("parts '{first}' and '{second}' of '{whole}' overlap while both are alive")]
    PartsOverlap {
        /// One part.
        first: String,
        /// The other.
        second: String,
        /// The whole.
        whole: String,
    },
    /// An optional part is not alive when its whole begins, so it could not be copied.
    #[error(
        "optional part '{part}' of '{whole}' is not alive when '{whole}' begins, so it could not be copied"
    )]
    OptionalPartNotAlive {
        /// The part.
        part: String,
        /// The whole.
        whole: String,
    },
    /// Two optional parts cover the same bytes of a whole, which holds both.
    #[error("optional parts '{first}' and '{second}' of '{whole}' overlap")]
    OptionalPartsOverlap {
        /// One part.
        first: String,
        /// The other.
        second: String,
        /// The whole.
        whole: String,
    },
    /// Links put a chunk at two places of its body.
    #[error(
        "the overwrites and parts that chunk '{chunk}' takes part in would put it at two offsets at once"
    )]
    TwoPlaces {
        /// The chunk.
        chunk: String,
    },
    /// Two chunks of a body are pinned to places that contradict each other.
    #[error("chunks joined to '{chunk}' are pinned to places that do not agree; omit a pin")]
    TwoPins {
        /// A chunk of the body.
        chunk: String,
    },
    /// The chunks of a body allow no common pool.
    #[error("chunk '{chunk}' and the chunks joined to it have no pool in common")]
    NoCommonPool {
        /// A chunk of the body.
        chunk: String,
    },
    /// The alignments of a body's chunks cannot all be met.
    #[error(
        "chunk '{chunk}' cannot be aligned together with the chunks that it is joined to; change their alignments or their offsets in each other"
    )]
    Misaligned {
        /// The chunk.
        chunk: String,
    },
    /// Two chunks of a body need the same bytes at the same time.
    #[error(
        "chunks '{first}' and '{second}' are joined so that both need the same bytes at the same time"
    )]
    Clash {
        /// One chunk.
        first: String,
        /// The other.
        second: String,
    },
    /// Two chunks are listed as shared but cannot be the same memory.
    #[error("chunks '{earlier}' and '{later}' cannot be shared: {reason}")]
    Shared {
        /// The chunk of the earlier problem.
        earlier: String,
        /// The chunk of the later one.
        later: String,
        /// The rule that they break.
        reason: String,
    },
    /// The two problems of a concatenation list different pools.
    #[error("the two problems list other pools; list the same, or list them in one only")]
    OtherPools,
    /// The steps of two concatenated problems do not add up in 64 bits.
    #[error("the steps of both problems do not add up in 64 bits")]
    TooManySteps,
    /// There are more than 2^32 - 1 chunks.
    #[error("a problem holds at most {} chunks", u32::MAX)]
    TooManyChunks,
    /// A file of format 1 has a key of format 2.
    #[error("'{key}' is a key of \"{format}\"; name that format to use it")]
    UnknownKey {
        /// The key.
        key: &'static str,
        /// The format that has it.
        format: &'static str,
    },
    /// The file has another format.
    #[error("the format is '{found}', expected '{expected}'")]
    Format {
        /// The format in the file.
        found: String,
        /// The format expected.
        expected: &'static str,
    },
    /// A problem has no operators that could be run.
    #[error("only a plan of operators can be executed, and this is one of a problem")]
    NothingToRun,
}

impl ProblemError {
    /// The chunk whose line in a CSV file is wrong, if a single line is.
    #[cfg(feature = "files")]
    pub(crate) fn chunk(&self) -> Option<&str> {
        match self {
            Self::DuplicateId { id: chunk }
            | Self::SizeOverflow { chunk, .. }
            | Self::EmptyLifetime { chunk, .. }
            | Self::HoleOutside { chunk, .. }
            | Self::HolesOverlap { chunk }
            | Self::HoleInStreams { chunk }
            | Self::Window { chunk, .. }
            | Self::PinnedEmpty { chunk }
            | Self::Pins { chunk, .. } => Some(chunk),
            _ => None,
        }
    }
}

fn no_pools(chunk: Option<&str>) -> String {
    match chunk {
        None => "the list of pools is empty; leave it out for one pool without limits".to_owned(),
        Some(chunk) => format!("chunk '{chunk}' may lie in no pool; name at least one"),
    }
}
