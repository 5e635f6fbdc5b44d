//! The errors of operator sequences.

use crate::{Bytes, problem::RejectReason, sequence::DimRange};

/// An invalid operator sequence, or one that cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SequenceError {
    /// A tensor that is neither produced nor supplied.
    #[error(
        "{user} names tensor '{tensor}', which no operator produces and which is not declared as input or weight"
    )]
    UnknownTensor {
        /// The operator, or `the list of graph outputs`.
        user: String,
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor that is produced twice, or both supplied and produced.
    #[error("tensor '{tensor}' is defined twice: by {first} and by {second}")]
    DefinedTwice {
        /// The tensor's name.
        tensor: String,
        /// The first definition.
        first: String,
        /// The second definition.
        second: String,
    },
    /// An operator that is to run after one that does not exist.
    #[error("operator '{operator}' must run after operator {after}, which does not exist")]
    UnknownOperator {
        /// The operator.
        operator: String,
        /// The name or the place that it gives.
        after: String,
    },
    /// An operator that is to run after one of several that share a name.
    #[error(
        "operator '{operator}' must run after '{after}', but several operators have that name; give its place in the list instead"
    )]
    AmbiguousOperator {
        /// The operator.
        operator: String,
        /// The name that it gives.
        after: String,
    },
    /// An order that omits or repeats an operator.
    #[error("an order must contain each step below {operators} exactly once")]
    NotAPermutation {
        /// The number of operators.
        operators: usize,
    },
    /// An operator that would run again at a step where it cannot.
    #[error(
        "the operator of step {step} cannot run again before step {before}: it runs at most once again, after its own step and before the last operator; if it makes a graph output, it also runs at its own step"
    )]
    WrongRerun {
        /// The step of the operator.
        step: usize,
        /// The step before which it is to run again.
        before: usize,
    },
    /// An order in which an operator runs too early.
    #[error("operator '{operator}' would run before '{predecessor}', which must come first")]
    RunsBefore {
        /// The operator.
        operator: String,
        /// An operator that must run before it.
        predecessor: String,
    },
    /// Operators that depend on each other in a cycle.
    #[error("the operators form a cycle: {}", operators.join(" -> "))]
    Cycle {
        /// The operators on the cycle, each waiting for the one before; the first waits for the last.
        operators: Vec<String>,
    },
    /// An output that depends on a tensor that its operator does not read.
    #[error(
        "operator '{operator}': output '{output}' depends on '{tensor}', which is not among its inputs"
    )]
    NotAnInput {
        /// The operator.
        operator: String,
        /// Its output.
        output: String,
        /// The tensor named by the dependency.
        tensor: String,
    },
    /// An output with dependencies of two kinds.
    #[error("output '{output}' can have one of 'reads', 'overwrites' and 'gathers', but has more")]
    SeveralDependencies {
        /// The output.
        output: String,
    },
    /// A view that is not inside the tensor that it reads.
    #[error(
        "operator '{operator}': view '{output}' ({size} B at offset {offset}) does not fit in '{input}' ({room} B)"
    )]
    ViewDoesNotFit {
        /// The operator.
        operator: String,
        /// The view.
        output: String,
        /// The view's size in bytes.
        size: Bytes,
        /// Bytes from the input's start.
        offset: Bytes,
        /// The viewed tensor.
        input: String,
        /// Its size in bytes.
        room: Bytes,
    },
    /// An input that does not fit in the output that gathers it.
    #[error(
        "operator '{operator}': '{input}' ({size} B at offset {offset}) does not fit in '{output}' ({room} B), which gathers it"
    )]
    GatherDoesNotFit {
        /// The operator.
        operator: String,
        /// The input.
        input: String,
        /// The input's size in bytes.
        size: Bytes,
        /// Bytes from the output's start.
        offset: Bytes,
        /// The output.
        output: String,
        /// Its size in bytes.
        room: Bytes,
    },
    /// A result that a body makes in an output that shares its bytes with an input.
    #[error(
        "operator '{operator}': a body makes '{result}' in '{output}', which must have memory of its own; omit its 'reads', 'overwrites' or 'gathers'"
    )]
    ResultInShared {
        /// The operator.
        operator: String,
        /// Its output.
        output: String,
        /// The result of the body.
        result: String,
    },
    /// A result that a body makes in an output of its operator through a view or a further body.
    #[error(
        "operator '{operator}': a body makes '{result}' in '{output}' through a view or a body of its own; update '{output}' directly, or give the weight another name"
    )]
    ResultNotDirect {
        /// The operator.
        operator: String,
        /// Its output.
        output: String,
        /// The result of the body.
        result: String,
    },
    /// A result that a body makes in a weight that is larger than the output of that name, or of unknown size.
    #[error(
        "operator '{operator}': a body makes '{result}' in '{output}', an output of {room} B; declare the weight '{output}' of the body with at most that size, or give it another name"
    )]
    ResultTooLarge {
        /// The operator.
        operator: String,
        /// Its output.
        output: String,
        /// The result of the body.
        result: String,
        /// The size of the output in bytes.
        room: Bytes,
    },
    /// A tensor that a body uses, and that is not among the inputs of its operator.
    #[error(
        "operator '{operator}': its body {body} uses '{tensor}', which is not among the operator's inputs; add it there, or give the weight of the body another name if it is another tensor"
    )]
    NotCaptured {
        /// The operator.
        operator: String,
        /// The place of the body in the operator's list.
        body: usize,
        /// The tensor.
        tensor: String,
    },
    /// A body that reads more bytes of a tensor than the tensor has.
    #[error(
        "operator '{operator}': its body {body} reads {size} B of '{tensor}', which has {room} B; declare the weight of the body with at most that size, or give it another name"
    )]
    CapturedTooLarge {
        /// The operator.
        operator: String,
        /// The place of the body in the operator's list.
        body: usize,
        /// The tensor.
        tensor: String,
        /// The size of the body's weight in bytes.
        size: Bytes,
        /// The size of the tensor in bytes.
        room: Bytes,
    },
    /// Bytes that a body changes, although no output of its operator is required to overwrite them.
    #[error(
        "operator '{operator}': '{result}' of its body {body} must overwrite the bytes [{low}, {high}) of '{tensor}', but no output of the operator does; give it one that updates '{tensor}' there, which later operators then read instead"
    )]
    CapturedUpdated {
        /// The operator.
        operator: String,
        /// The place of the body in the operator's list.
        body: usize,
        /// The tensor of the body that is written.
        result: String,
        /// The tensor.
        tensor: String,
        /// The first of the bytes that the body overwrites, from the start of the tensor.
        low: Bytes,
        /// The byte after the last of them.
        high: Bytes,
    },
    /// A tensor that a body changes and that shares bytes with another tensor that the body uses.
    #[error(
        "operator '{operator}': its body {body} overwrites '{tensor}' and also uses '{other}', which shares bytes with it; let the body read '{other}' as a view of '{tensor}', or read a copy"
    )]
    CapturedAlias {
        /// The operator.
        operator: String,
        /// The place of the body in the operator's list.
        body: usize,
        /// The tensor that is written.
        tensor: String,
        /// The other tensor.
        other: String,
    },
    /// An output of an operator that its body reads before it writes it.
    #[error(
        "operator '{operator}': its body {body} reads '{output}', an output of the operator to which nothing has been written; update it in the body first, or give the weight another name"
    )]
    UnwrittenOutput {
        /// The operator.
        operator: String,
        /// The place of the body in the operator's list.
        body: usize,
        /// The output.
        output: String,
    },
    /// Two inputs that an output gathers at the same bytes.
    #[error("operator '{operator}': '{output}' gathers '{first}' and '{second}' at the same bytes")]
    GathersOverlap {
        /// The operator.
        operator: String,
        /// The output.
        output: String,
        /// The input at the lower offset.
        first: String,
        /// The other input.
        second: String,
    },
    /// An overwriter that is not inside the memory of the tensor that it overwrites.
    #[error(
        "operator '{operator}': '{output}' ({size} B at offset {offset}) does not fit over '{input}' ({room} B)"
    )]
    OverwriteDoesNotFit {
        /// The operator.
        operator: String,
        /// The overwriter.
        output: String,
        /// Its size in bytes.
        size: Bytes,
        /// Bytes from the input's start.
        offset: Bytes,
        /// The overwritten tensor.
        input: String,
        /// The bytes from the start of that tensor to the end of its chunk.
        room: Bytes,
    },
    /// An output that begins below an input, but is a required update or has an offset in it.
    #[error(
        "operator '{operator}': '{output}' begins below '{input}', so it can neither be required to overwrite it nor have an offset in it"
    )]
    OverlapInside {
        /// The operator.
        operator: String,
        /// The output.
        output: String,
        /// The input.
        input: String,
    },
    /// A required overwrite that cannot be accepted.
    #[error("operator '{operator}': '{output}' must overwrite '{input}', but {reason}{}", remedy(*reason))]
    RequiredOverwrite {
        /// The operator.
        operator: String,
        /// The overwriter.
        output: String,
        /// The overwritten tensor.
        input: String,
        /// The reason.
        reason: RejectReason,
    },
    /// A required overwrite of bytes that another tensor of the same operator shares: an input,
    /// which would be destroyed while it is read, or a view that the operator outputs.
    #[error(
        "operator '{operator}': '{output}' must overwrite '{input}', but the operator also uses '{other}', which shares some of those bytes"
    )]
    RequiredOverwriteOfAlias {
        /// The operator.
        operator: String,
        /// The overwriter.
        output: String,
        /// The overwritten tensor.
        input: String,
        /// The tensor that shares the bytes.
        other: String,
    },
    /// A required gather that is impossible.
    #[error("operator '{operator}': '{input}' must lie inside '{output}', but {reason}")]
    RequiredGather {
        /// The operator.
        operator: String,
        /// The output that gathers the input.
        output: String,
        /// The input.
        input: String,
        /// The reason.
        reason: RejectReason,
    },
    /// Sizes whose sum exceeds 64 bits.
    #[error("the sizes of all tensors add up to 2^64 bytes or more (at '{tensor}' of {size} B)")]
    SizeOverflow {
        /// The tensor or workspace at which the sum no longer fits.
        tensor: String,
        /// Its size in bytes.
        size: Bytes,
    },
    /// A weight that should lie in the pool but has no size.
    #[error(
        "weight '{tensor}' has no size, so it cannot lie in the pool; declare its size or leave weights outside"
    )]
    WeightWithoutSize {
        /// The weight.
        tensor: String,
    },
    /// An operator on a stream whose number is too high.
    #[error("operator '{operator}' runs on stream {stream}; streams are numbered from 0 to {}", limit - 1)]
    TooManyStreams {
        /// The operator.
        operator: String,
        /// Its stream.
        stream: usize,
        /// The most streams.
        limit: usize,
    },
    /// A better order was requested for operators on several streams.
    #[error(
        "a better order can be searched for on one stream only, and these operators run on several"
    )]
    SeveralStreams,
    /// Bodies nested too deep.
    #[error("the bodies of operator '{operator}' are nested deeper than {limit} levels")]
    TooDeep {
        /// The operator.
        operator: String,
        /// The most levels of bodies.
        limit: usize,
    },
    /// An operator with a body, which must be planned before the operator can be lowered.
    #[error(
        "operator '{operator}' has bodies that are not planned yet; plan the sequence with a Planner, which plans them first"
    )]
    BodyNotPlanned {
        /// The operator.
        operator: String,
    },
    /// A range of sizes is empty.
    #[error("{}", wrong_range(name, *range))]
    WrongRange {
        /// The name of the dimension.
        name: String,
        /// The range.
        range: DimRange,
    },
    /// More than 2^32 - 1 tensors.
    #[error("a sequence holds at most {} tensors", u32::MAX)]
    TooManyTensors,
    /// A file of format 1 has a key of format 2.
    #[error("'{key}' is a key of \"{format}\"; name that format to use it")]
    UnknownKey {
        /// The key.
        key: &'static str,
        /// The format that has it.
        format: &'static str,
    },
    /// A file of another format.
    #[error("the format is '{found}', expected '{expected}'")]
    Format {
        /// The format in the file.
        found: String,
        /// The format expected.
        expected: &'static str,
    },
}

fn wrong_range(name: &str, range: DimRange) -> String {
    let DimRange { least, most, .. } = range;
    format!(
        "the sizes of '{name}' begin at {least} and end at {most}; give the smaller one first, as in {name}={most}..{least}"
    )
}

/// Returns the end of the message: the changes that make the overwrite possible, if there are any to name.
const fn remedy(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::NotLastReader => {
            "; update it after that operator, or let that operator read a copy"
        }
        _ => "",
    }
}
