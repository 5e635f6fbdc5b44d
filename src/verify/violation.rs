//! The ways in which a plan can be wrong.

use crate::{Bytes, Step, verify::stated::Figure};

/// A violation of a rule by a plan. Chunks and tensors are identified by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Two chunks or tensors share bytes while both are alive.
    #[error(
        "'{first}' and '{second}' are both alive in step {step} and share the bytes [{low}, {high})"
    )]
    Overlap {
        /// The one that begins first.
        first: String,
        /// The other.
        second: String,
        /// The first step in which both are alive.
        step: Step,
        /// The lowest shared byte of the pool.
        low: Bytes,
        /// The byte after the highest shared one.
        high: Bytes,
    },
    /// More overlaps than are listed.
    #[error("more than {limit} overlaps; the others are not listed")]
    MoreOverlaps {
        /// The number listed.
        limit: usize,
    },
    /// An overwriter that is not where its link puts it.
    #[error(
        "'{overwriter}' lies at {found}; it overwrites '{overwritten}' and must lie at {expected}"
    )]
    Misplaced {
        /// The overwriter.
        overwriter: String,
        /// The overwritten chunk.
        overwritten: String,
        /// The offset where it must lie, in bytes.
        expected: Bytes,
        /// The offset where it lies, in bytes.
        found: Bytes,
    },
    /// An overwriter that extends beyond the end of the overwritten chunk.
    #[error("'{overwriter}' overwrites '{overwritten}' but reaches beyond its end")]
    OverwriteTooLarge {
        /// The overwriter.
        overwriter: String,
        /// The overwritten chunk.
        overwritten: String,
    },
    /// An overwriter that does not begin in the last step of the overwritten chunk. In the plan of a sequence, it may
    /// begin before.
    #[error(
        "'{overwriter}' begins in step {begin} and overwrites '{overwritten}', whose last step is {last}"
    )]
    OverwriteOutOfTime {
        /// The overwriter.
        overwriter: String,
        /// The overwritten chunk.
        overwritten: String,
        /// The step in which the overwriter begins.
        begin: Step,
        /// The last step of the overwritten chunk.
        last: Step,
    },
    /// An output of the last operator that is written over a graph output, or the state of a variable in the pool.
    #[error("'{overwriter}' overwrites '{overwritten}', which must be kept after the last step")]
    OverwriteOfKept {
        /// The overwriter.
        overwriter: String,
        /// The overwritten tensor.
        overwritten: String,
    },
    /// A chunk with two overwriters. In the plan of a sequence, both are written over the same bytes of it.
    #[error("'{overwritten}' is overwritten by both '{first}' and '{second}'")]
    OverwrittenTwice {
        /// The overwritten chunk.
        overwritten: String,
        /// One overwriter.
        first: String,
        /// The other.
        second: String,
    },
    /// Chunks that overwrite each other in a cycle.
    #[error("'{chunk}' overwrites itself through other chunks")]
    OverwriteCycle {
        /// A chunk on the cycle.
        chunk: String,
    },
    /// A link that was not requested.
    #[error("'{overwriter}' overwrites '{overwritten}' without a request")]
    OverwriteNotRequested {
        /// The overwriter.
        overwriter: String,
        /// The overwritten chunk.
        overwritten: String,
    },
    /// A chunk that is written over another without a link in the plan.
    #[error("'{overwriter}' is written over '{overwritten}', but the plan has no link for this")]
    LinkMissing {
        /// The overwriter.
        overwriter: String,
        /// The overwritten chunk.
        overwritten: String,
    },
    /// A tensor written over an input although another tensor of the same operator shares the
    /// bytes: an input, which would be destroyed while it is read, or a view that the operator
    /// outputs.
    #[error(
        "'{overwriter}' is written over '{overwritten}', but '{other}' of the same operator shares the bytes [{low}, {high})"
    )]
    OverwriteOfAlias {
        /// The overwriter.
        overwriter: String,
        /// The input that it is declared to overwrite.
        overwritten: String,
        /// The tensor that shares the bytes.
        other: String,
        /// The first shared byte.
        low: Bytes,
        /// The byte after the last shared one.
        high: Bytes,
    },
    /// A required overwrite that the plan does not accept.
    #[error("'{overwriter}' must overwrite '{overwritten}', but does not")]
    RequiredOverwriteMissing {
        /// The overwriter.
        overwriter: String,
        /// The chunk or tensor to overwrite.
        overwritten: String,
    },
    /// A required view that the plan makes a copy.
    #[error("'{view}' must be a view of '{input}', but is a copy")]
    RequiredViewMissing {
        /// The view.
        view: String,
        /// The tensor that it must show.
        input: String,
    },
    /// A required gather that the plan makes a copy.
    #[error("'{input}' must lie inside '{output}', but is copied")]
    RequiredGatherMissing {
        /// The output that must hold the input.
        output: String,
        /// The input.
        input: String,
    },
    /// A root that is not aligned.
    #[error("'{chunk}' lies at {offset}, which is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// The chunk.
        chunk: String,
        /// The offset where it lies, in bytes.
        offset: Bytes,
        /// The alignment in bytes.
        alignment: Bytes,
    },
    /// A chunk that ends above the pool.
    #[error("'{chunk}' lies at {offset} with {size} B, outside the pool of {pool_size} B")]
    OutsideThePool {
        /// The chunk.
        chunk: String,
        /// The offset where it lies, in bytes.
        offset: Bytes,
        /// Its size in bytes.
        size: Bytes,
        /// The size of the pool in bytes.
        pool_size: Bytes,
    },
    /// A chunk or tensor that is missing from the plan.
    #[error("'{name}' is missing from the plan")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A chunk or tensor that the input does not have.
    #[error("'{name}' is in the plan, but not in the input")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// A chunk or tensor that the plan lists twice.
    #[error("'{name}' is in the plan twice")]
    Repeated {
        /// Its name.
        name: String,
    },
    /// A size, lifetime or cost that differs from the input's.
    #[error("the {field} of '{name}' is {expected}, but the plan says {found}")]
    Changed {
        /// The chunk or tensor.
        name: String,
        /// The field that differs.
        field: Figure,
        /// The value in the input.
        expected: u64,
        /// The value in the plan.
        found: u64,
    },
    /// A pool that is larger or smaller than its chunks need.
    #[error("the pool size is {found} B, but the chunks end at {expected} B")]
    WrongTotal {
        /// The highest end of a root, rounded up to the alignment.
        expected: Bytes,
        /// The value in the plan.
        found: Bytes,
    },
    /// A lower bound above the pool size.
    #[error("the lower bound {lower_bound} B is above the pool size {pool_size} B")]
    BoundAbovePool {
        /// The bound that the plan states.
        lower_bound: Bytes,
        /// Its pool size.
        pool_size: Bytes,
    },
    /// A figure of the plan that is wrong.
    #[error("the {figure} is {expected}, but the plan says {found}")]
    WrongFigure {
        /// The figure.
        figure: Figure,
        /// The value counted or required. The bound, the alignment and the padding may be larger.
        expected: u64,
        /// The value in the plan.
        found: u64,
    },
    /// A plan that claims to be the smallest, with a lower bound that does not prove it.
    #[error(
        "the plan claims that no pool is smaller, but its lower bound {lower_bound} B is not its pool size {pool_size} B"
    )]
    NotProven {
        /// The bound that the plan states.
        lower_bound: Bytes,
        /// Its pool size.
        pool_size: Bytes,
    },
    /// An alignment that is not a power of two.
    #[error("the alignment {alignment} is not a power of two")]
    BadAlignment {
        /// The alignment.
        alignment: Bytes,
    },
    /// A tensor that is not inside the chunk that the plan says it is in.
    #[error("tensor '{tensor}' is not inside chunk '{chunk}'")]
    TensorOutsideChunk {
        /// The tensor.
        tensor: String,
        /// The chunk.
        chunk: String,
    },
    /// A chunk that does not lie at the start of the shared object that the plan states, or an overwriter that does not
    /// lie in the object of the chunk that it overwrites.
    #[error("'{chunk}' is not in the shared object that it should be in")]
    WrongObject {
        /// The chunk.
        chunk: String,
    },
    /// A shared object that is larger or smaller than the largest of its chunks.
    #[error("shared object {object} needs {expected} B, but the plan says {found}")]
    WrongObjectSize {
        /// The object, by its index in the plan.
        object: usize,
        /// The bytes that the largest of its chunks needs.
        expected: Bytes,
        /// The value in the plan.
        found: Bytes,
    },
    /// A supplied tensor outside the pool that should lie in it.
    #[error("'{tensor}' must lie in the pool, but the plan leaves it outside")]
    NotInPool {
        /// The input or weight.
        tensor: String,
    },
    /// A chunk in which the operators write nothing.
    #[error("no operator writes to chunk '{chunk}', and it holds no supplied tensor")]
    EmptyChunk {
        /// The chunk.
        chunk: String,
    },
    /// A chunk that holds two tensors, neither of which is a view of the other.
    #[error(
        "chunk '{chunk}' holds both '{first}' and '{second}', and neither is a view of the other"
    )]
    SharedChunk {
        /// The chunk.
        chunk: String,
        /// One tensor.
        first: String,
        /// The other.
        second: String,
    },
    /// A chunk whose name is not that of its content.
    #[error("chunk '{chunk}' holds '{holds}' but has another name")]
    Misnamed {
        /// The chunk.
        chunk: String,
        /// The tensor, or the workspace of an operator.
        holds: String,
    },
    /// A view that the plan puts into another chunk than the tensor that it is a view of.
    #[error("tensor '{tensor}' is a view of '{shown}', but the plan puts it into another chunk")]
    WrongChunk {
        /// The view.
        tensor: String,
        /// The tensor that it is a view of.
        shown: String,
    },
    /// A tensor placed in a supplied tensor that it neither views nor updates.
    #[error("tensor '{tensor}' may not lie at {offset} in '{supplied}'")]
    NotSupplied {
        /// The tensor.
        tensor: String,
        /// The supplied tensor.
        supplied: String,
        /// The offset from its start, in bytes.
        offset: Bytes,
    },
    /// A chunk that the plan refers to but does not list.
    #[error("'{user}' refers to a chunk that the plan does not list")]
    NoSuchChunk {
        /// The overwriter of that chunk, or the tensor in it.
        user: String,
    },
    /// A violation in the plan of a sequence that an operator runs.
    #[error("in {body}: {violation}")]
    InBody {
        /// The place of the body in the operator's list, and the operator.
        body: String,
        /// The violation.
        violation: Box<Violation>,
    },
    /// A tensor that is an input of a body, and that the plan of the body puts into its pool.
    #[error("'{tensor}' is passed to the body and may not lie in its pool")]
    HandedInTwice {
        /// The tensor.
        tensor: String,
    },
    /// A tensor around a body that the body reads although it is not an input of the operator that runs the body.
    #[error(
        "'{tensor}' is read by the body but is not an input of its operator, so other tensors may lie over it"
    )]
    NotKept {
        /// The tensor.
        tensor: String,
    },
    /// A body that reads more bytes of a tensor around it than the tensor has.
    #[error("'{tensor}' has {size} B, but the body reads {reads} B of it")]
    ReadsBeyond {
        /// The tensor.
        tensor: String,
        /// Its size in bytes.
        size: Bytes,
        /// The bytes that the body reads.
        reads: Bytes,
    },
    /// Bytes around a body that the body writes, although its operator must only read them.
    #[error(
        "bytes [{low}, {high}) of '{tensor}' are written by the body but not by its operator, so other tensors may lie or be read there"
    )]
    ChangesKept {
        /// The tensor.
        tensor: String,
        /// The first of the bytes, from the start of the tensor.
        low: Bytes,
        /// The byte after the last of them.
        high: Bytes,
    },
    /// A body that writes a tensor around it, and uses another tensor that shares bytes with that one.
    #[error(
        "'{tensor}' is written by the body, which also uses '{other}', and that shares bytes with it"
    )]
    ChangesOther {
        /// The tensor that is written.
        tensor: String,
        /// The other tensor.
        other: String,
    },
    /// An output of an operator whose body reads that output before it writes anything there.
    #[error(
        "'{tensor}' is an output of the operator, and the body reads it before it writes anything there"
    )]
    ReadsUnwritten {
        /// The output.
        tensor: String,
    },
    /// Bodies whose pools have a total size that exceeds 64 bits.
    #[error("the pools of the bodies add up to 2^64 bytes or more")]
    BodiesTooLarge,
    /// A plan of a problem, which has no operators to run.
    #[error("a problem has no operators that could be run")]
    NothingToRun,
    /// A tensor with bytes that were overwritten, or not yet written.
    #[error("'{tensor}' is not whole {when}: the bytes [{low}, {high}) of {memory} hold {holder}")]
    Lost {
        /// The tensor.
        tensor: String,
        /// The time, such as `when step 3 ('relu') reads it`.
        when: String,
        /// The memory with these bytes: `the pool`, or a supplied tensor.
        memory: String,
        /// The first of the bytes.
        low: Bytes,
        /// The byte after the last of them.
        high: Bytes,
        /// The last writer there; `nothing` if the bytes were never written.
        holder: String,
    },
    /// An operator that writes over one of its inputs without being declared to.
    #[error(
        "{operator} writes {output} over its input '{input}', bytes [{low}, {high}), and may not"
    )]
    WrittenOverInput {
        /// The step.
        operator: String,
        /// The output.
        output: String,
        /// The input that is destroyed.
        input: String,
        /// The first of the bytes.
        low: Bytes,
        /// The byte after the last of them.
        high: Bytes,
    },
    /// A chunk in a pool where it may not lie.
    #[error("'{chunk}' lies in pool '{pool}', where it may not lie")]
    WrongPool {
        /// The chunk.
        chunk: String,
        /// The pool.
        pool: String,
    },
    /// A chunk in a pool that the problem does not have.
    #[error("'{chunk}' lies in pool '{pool}', which the problem does not have")]
    NoSuchPool {
        /// The chunk.
        chunk: String,
        /// The pool: its name, or its index if the plan does not list it.
        pool: String,
    },
    /// A pool that stands at another position of the list than in the problem. The list is in order of preference.
    #[error("pool '{pool}' stands elsewhere in the plan's list of pools than in the problem's")]
    PoolOutOfOrder {
        /// The pool.
        pool: String,
    },
    /// A pool with another capacity than in the problem.
    #[error(
        "the capacity of pool '{pool}' is {}, but the plan says {}",
        limit(*.expected), limit(*.found)
    )]
    WrongCapacity {
        /// The pool.
        pool: String,
        /// The bytes in the problem, if they are limited.
        expected: Option<Bytes>,
        /// The bytes in the plan.
        found: Option<Bytes>,
    },
    /// A chunk that ends above the capacity of its pool.
    #[error(
        "'{chunk}' lies at {offset} with {size} B, above the capacity of {capacity} B of pool '{pool}'"
    )]
    OutsideCapacity {
        /// The chunk.
        chunk: String,
        /// The pool.
        pool: String,
        /// The offset where it lies, in bytes.
        offset: Bytes,
        /// Its bytes, padding included.
        size: Bytes,
        /// The pool's bytes.
        capacity: Bytes,
    },
    /// A chunk in reserved bytes of its pool.
    #[error(
        "'{chunk}' lies at {offset} with {size} B, in the reserved bytes [{low}, {high}) of pool '{pool}'"
    )]
    InReserved {
        /// The chunk.
        chunk: String,
        /// The pool.
        pool: String,
        /// The offset where it lies, in bytes.
        offset: Bytes,
        /// Its bytes, padding included.
        size: Bytes,
        /// The first reserved byte.
        low: Bytes,
        /// The byte after the last.
        high: Bytes,
    },
    /// A chunk that does not lie where it is pinned.
    #[error(
        "'{chunk}' is pinned to {expected} in pool '{expected_pool}', but lies at {offset} in pool '{pool}'"
    )]
    NotPinned {
        /// The chunk.
        chunk: String,
        /// The pool where it lies.
        pool: String,
        /// The offset where it lies, in bytes.
        offset: Bytes,
        /// The pool that it is pinned to.
        expected_pool: String,
        /// The offset that it is pinned to, in bytes.
        expected: Bytes,
    },
    /// The buffers of a pool begin at addresses that are no multiples of the alignment.
    #[error(
        "pool '{pool}' has buffers of {largest} B, which is no multiple of the alignment of {alignment} B"
    )]
    MisalignedBuffers {
        /// The pool.
        pool: String,
        /// The size of its buffers.
        largest: Bytes,
        /// The alignment of the plan.
        alignment: Bytes,
    },
    /// Chunks that are joined by links and lie in more than one buffer of a pool.
    #[error(
        "'{chunk}' and all that is joined to it take the bytes [{low}, {high}) of pool '{pool}', across two of its buffers of {largest} B"
    )]
    AcrossBuffers {
        /// The first of the chunks.
        chunk: String,
        /// The pool.
        pool: String,
        /// The lowest byte of all of them.
        low: Bytes,
        /// The byte after the highest.
        high: Bytes,
        /// The size of a buffer.
        largest: Bytes,
    },
    /// A part that is not where its whole has it.
    #[error("'{part}' lies at {found}; it is a part of '{whole}' and must lie at {expected}")]
    MisplacedPart {
        /// The part.
        part: String,
        /// The whole.
        whole: String,
        /// The offset where it must lie, in bytes.
        expected: Bytes,
        /// The offset where it lies, in bytes.
        found: Bytes,
    },
    /// A chunk in another pool than the one that it overwrites or is a part of.
    #[error("'{chunk}' lies in pool '{pool}'; it must lie with '{other}' in pool '{expected}'")]
    TornApart {
        /// The overwriter or part.
        chunk: String,
        /// The overwritten chunk or the whole.
        other: String,
        /// The pool of the chunk.
        pool: String,
        /// The pool of the other.
        expected: String,
    },
    /// A part of the problem that the plan does not list.
    #[error("'{part}' is a part of '{whole}' at {offset}, but the plan does not say so")]
    MissingPart {
        /// The part.
        part: String,
        /// The whole.
        whole: String,
        /// Bytes from the start of the whole.
        offset: Bytes,
    },
    /// A part in the plan that the problem does not have.
    #[error("the plan says that '{part}' is a part of '{whole}' at {offset}, and it is not")]
    UnknownPart {
        /// The part.
        part: String,
        /// The whole.
        whole: String,
        /// Bytes from the start of the whole.
        offset: Bytes,
    },
    /// Holes or windows of a chunk in the plan that are not those of the problem.
    #[error("the holes and windows that the plan lists for '{chunk}' are not those of the problem")]
    OtherWindows {
        /// The chunk.
        chunk: String,
    },
    /// A window in the plan of a sequence that is empty, or not inside its chunk.
    #[error(
        "the plan lists the bytes [{low}, {high}) of '{chunk}' for the steps [{begin}, {end}), which are none or not all in its life"
    )]
    WindowOutside {
        /// The chunk.
        chunk: String,
        /// The first step of the window.
        begin: Step,
        /// The step after the last.
        end: Step,
        /// The lowest byte, from the start of the chunk.
        low: Bytes,
        /// The byte after the highest.
        high: Bytes,
    },
    /// Bytes of a chunk that a step needs, but that lie in none of the chunk's windows for this step. Only in the plan
    /// of a sequence.
    #[error(
        "'{chunk}' needs its bytes [{low}, {high}) in step {step}, but the plan lists only others for this step"
    )]
    WindowTooSmall {
        /// The chunk.
        chunk: String,
        /// The step.
        step: Step,
        /// The lowest of the bytes, from the start of the chunk.
        low: Bytes,
        /// The byte after the highest.
        high: Bytes,
    },
    /// A chunk that the problem pins, and the plan does not list as pinned.
    #[error("'{chunk}' is pinned, but the plan does not say so")]
    MissingPin {
        /// The chunk.
        chunk: String,
    },
    /// Pools or pins that a plan lists beside its problem, and that contradict each other or the problem.
    #[error("no plan keeps to the pools and pins that the plan lists: {reason}")]
    WrongMemories {
        /// The contradiction.
        reason: String,
    },
    /// A reserved range in the plan that the problem does not have.
    #[error(
        "the plan says that the bytes [{low}, {high}) of pool '{pool}' are reserved, and they are not"
    )]
    UnknownReserve {
        /// The pool.
        pool: String,
        /// The first of the bytes.
        low: Bytes,
        /// The byte after the last.
        high: Bytes,
    },
    /// A reserved range of the problem that the plan does not list.
    #[error(
        "the bytes [{low}, {high}) of pool '{pool}' are reserved, but the plan does not say so"
    )]
    MissingReserve {
        /// The pool.
        pool: String,
        /// The first of the bytes.
        low: Bytes,
        /// The byte after the last.
        high: Bytes,
    },
    /// Two chunks that are to be kept apart and share bytes.
    #[error("'{first}' and '{second}' must be kept apart, but share the bytes [{low}, {high})")]
    TogetherThoughApart {
        /// The lower one.
        first: String,
        /// The other.
        second: String,
        /// The lowest shared byte of the pool.
        low: Bytes,
        /// The byte after the highest shared one.
        high: Bytes,
    },
    /// Two chunks of a program on several streams that share bytes while both may be alive.
    #[error(
        "'{first}' and '{second}' share the bytes [{low}, {high}), and neither is over before the other begins"
    )]
    ClockOverlap {
        /// The lower one.
        first: String,
        /// The other.
        second: String,
        /// The lowest shared byte of the pool.
        low: Bytes,
        /// The byte after the highest shared one.
        high: Bytes,
    },
    /// Two operators on several streams that may use the same bytes at the same time, at least one of them
    /// to write.
    #[error(
        "{first} and {second} may run at the same time, and both use the bytes [{low}, {high}) of {memory}, at least one of them to write"
    )]
    Race {
        /// The operator that comes first in the sequence.
        first: String,
        /// The other.
        second: String,
        /// The pool or a supplied tensor.
        memory: String,
        /// The first of the bytes.
        low: Bytes,
        /// The byte after the last.
        high: Bytes,
    },
    /// An overwriter on one of several streams that may begin before all readers of the overwritten
    /// chunk are over.
    #[error(
        "'{overwriter}' overwrites '{overwritten}', but is not its last reader, or another reader may not be over"
    )]
    OverwriteUnordered {
        /// The overwriter.
        overwriter: String,
        /// The overwritten chunk.
        overwritten: String,
    },
    /// Chunks that the plan lists as alive together although there is one stream: such a plan must state a step
    /// instead.
    #[error(
        "the plan lists chunks that are alive together, which only a plan for several streams does"
    )]
    PeakOnOneStream,
    /// Two chunks that the plan lists as alive together although one is over before the other.
    #[error(
        "'{first}' and '{second}' are listed as alive together, but one is over before the other begins"
    )]
    NeverTogether {
        /// The one listed first.
        first: String,
        /// The other.
        second: String,
    },
    /// A pool whose stated size is not what its chunks need.
    #[error("the chunks in pool '{pool}' need {expected} B, but the plan says {found}")]
    WrongPoolSize {
        /// The pool.
        pool: String,
        /// The bytes that its chunks need.
        expected: Bytes,
        /// The value in the plan.
        found: Bytes,
    },
    /// A pool whose buffers together exceed its capacity.
    #[error("the buffers of pool '{pool}' take {size} B, more than its capacity of {capacity} B")]
    PoolTooLarge {
        /// The pool.
        pool: String,
        /// The bytes of its buffers.
        size: Bytes,
        /// Its bytes.
        capacity: Bytes,
    },
    /// A wrong sum of traffic.
    #[error("the traffic times its cost is {expected}, but the plan says {found}")]
    WrongTraffic {
        /// The value counted.
        expected: u128,
        /// The value in the plan.
        found: u128,
    },
}

/// A capacity, as displayed.
fn limit(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{bytes} B"))
}
