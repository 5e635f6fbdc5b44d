//! The checks of a sequence whose names are resolved.

use crate::{
    Bytes,
    sequence::{
        Dependency, Gather, OpSequence, OperatorNode, Origin, Overwrite, SequenceError, TensorId,
    },
};

/// Checks that views fit in the tensors that they read.
pub(super) fn views(sequence: &OpSequence) -> Result<(), SequenceError> {
    for tensor in sequence.tensors() {
        let Origin::Output { step, dependency: Dependency::Reads { input, offset, .. } } =
            &tensor.origin
        else {
            continue;
        };
        let input = sequence.tensor(*input);
        // A weight of unknown size has room for any view.
        let (size, room) = (tensor.size.unwrap_or(0), input.size.unwrap_or(Bytes::MAX));
        if offset.checked_add(size).is_none_or(|end| end > room) {
            return Err(SequenceError::ViewDoesNotFit {
                operator: sequence.operator_name(*step),
                output: tensor.name.to_string(),
                size,
                offset: *offset,
                input: input.name.to_string(),
                room,
            });
        }
    }
    Ok(())
}

/// Checks that overwriters fit in the chunks that they are written over, which may extend beyond an
/// input that is a view (the book, Lowering).
pub(super) fn overwriters(sequence: &OpSequence) -> Result<(), SequenceError> {
    // From the start of each tensor to the end of its chunk; a weight of unknown size has room for
    // everything.
    let mut rooms: Vec<Bytes> =
        sequence.tensors().iter().map(|tensor| tensor.size.unwrap_or(Bytes::MAX)).collect();
    for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
        let tensor = sequence.tensor(output);
        let Origin::Output { step, dependency } = &tensor.origin else {
            continue;
        };
        match dependency {
            Dependency::Fresh | Dependency::Gathers(_) => {}
            Dependency::Reads { input, offset, .. } => {
                rooms[output.index()] = rooms[input.index()] - offset;
            }
            Dependency::Overwrites(overwrites) => {
                let size = tensor.size.unwrap_or(0);
                for &Overwrite { input, offset, below, required } in overwrites {
                    if below > 0 {
                        if offset > 0 || required {
                            return Err(SequenceError::OverlapInside {
                                operator: sequence.operator_name(*step),
                                output: tensor.name.to_string(),
                                input: sequence.tensor(input).name.to_string(),
                            });
                        }
                        continue;
                    }
                    let room = rooms[input.index()];
                    if offset.checked_add(size).is_none_or(|end| end > room) {
                        return Err(SequenceError::OverwriteDoesNotFit {
                            operator: sequence.operator_name(*step),
                            output: tensor.name.to_string(),
                            size,
                            offset,
                            input: sequence.tensor(input).name.to_string(),
                            room,
                        });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Checks that gathered inputs fit in their output without overlapping.
pub(super) fn gathers(sequence: &OpSequence) -> Result<(), SequenceError> {
    for tensor in sequence.tensors() {
        let Origin::Output { step, dependency: Dependency::Gathers(gathers) } = &tensor.origin
        else {
            continue;
        };
        let (operator, output) = (|| sequence.operator_name(*step), || tensor.name.to_string());
        let room = tensor.size.unwrap_or(0);
        let name = |input: TensorId| sequence.tensor(input).name.to_string();
        let mut ranges = Vec::with_capacity(gathers.len());
        for &Gather { input, offset, .. } in gathers {
            // A weight of unknown size may be empty.
            let size = sequence.tensor(input).size.unwrap_or(0);
            let Some(end) = offset.checked_add(size).filter(|&end| end <= room) else {
                return Err(SequenceError::GatherDoesNotFit {
                    operator: operator(),
                    input: name(input),
                    size,
                    offset,
                    output: output(),
                    room,
                });
            };
            if size > 0 {
                ranges.push((offset, end, input));
            }
        }
        ranges.sort_unstable();
        if let Some(pair) = ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
            return Err(SequenceError::GathersOverlap {
                operator: operator(),
                output: output(),
                first: name(pair[0].2),
                second: name(pair[1].2),
            });
        }
    }
    Ok(())
}

/// Every chunk has a clock with an entry for each stream.
pub(super) fn streams(sequence: &OpSequence) -> Result<(), SequenceError> {
    let is_too_many = |operator: &OperatorNode| operator.stream >= OpSequence::MAX_STREAMS;
    match sequence.operators().iter().position(is_too_many) {
        Some(step) => Err(SequenceError::TooManyStreams {
            operator: sequence.operator_name(step),
            stream: sequence.operators()[step].stream,
            limit: OpSequence::MAX_STREAMS,
        }),
        None => Ok(()),
    }
}

/// Limits the nesting of bodies, because they are walked recursively.
pub(super) fn depth(sequence: &OpSequence) -> Result<(), SequenceError> {
    let too_deep = |operator: &&OperatorNode| {
        operator.bodies.iter().any(|body| body.depth >= OpSequence::MAX_DEPTH)
    };
    match sequence.operators().iter().position(|operator| too_deep(&operator)) {
        Some(step) => Err(SequenceError::TooDeep {
            operator: sequence.operator_name(step),
            limit: OpSequence::MAX_DEPTH,
        }),
        None => Ok(()),
    }
}

/// Checks the sizes that dimensions may have.
pub(super) fn dims(sequence: &OpSequence) -> Result<(), SequenceError> {
    sequence.dims().iter().try_for_each(|(name, range)| range.check(name))
}

/// Checks that the sum of all tensors and workspaces, those of bodies included, fits in 64 bits.
pub(super) fn sizes(sequence: &OpSequence) -> Result<(), SequenceError> {
    add_sizes(sequence, 0).map(|_| ())
}

fn add_sizes(sequence: &OpSequence, mut sum: Bytes) -> Result<Bytes, SequenceError> {
    for tensor in sequence.tensors() {
        sum = add(sum, tensor.size.unwrap_or(0), || tensor.name.to_string())?;
    }
    for (step, operator) in sequence.operators().iter().enumerate() {
        let name = || format!("the workspace of {}", sequence.operator_name(step));
        sum = add(sum, operator.workspace, name)?;
    }
    let mut bodies = sequence.operators().iter().flat_map(|operator| &operator.bodies);
    bodies.try_fold(sum, |sum, body| add_sizes(body, sum))
}

fn add(sum: Bytes, size: Bytes, name: impl FnOnce() -> String) -> Result<Bytes, SequenceError> {
    sum.checked_add(size).ok_or_else(|| SequenceError::SizeOverflow { tensor: name(), size })
}
