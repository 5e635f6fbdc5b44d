//! The third pass: which write dependencies are honoured (spec 2.3).

use tracing::debug;

use crate::{
    Bytes, SequenceError,
    lower::{
        LoweringOptions,
        place::{DraftChunk, Places, Variable},
    },
    problem::{Chunk, ChunkId, Links, Refusal, Request},
    sequence::{Dependency, OpSequence, Origin, Overwrite, Tensor, TensorId},
};

/// The honoured links between all chunks, those outside the pool included.
pub(super) struct Resolved {
    links: Links,
    requests: Vec<Request>,
}

impl Resolved {
    pub(super) fn place_in_chain(&self, chunk: ChunkId) -> (ChunkId, Bytes) {
        self.links.place(chunk)
    }

    /// The requests that became links, in order.
    pub(super) fn honoured(&self) -> impl Iterator<Item = Request> + '_ {
        self.requests.iter().copied().filter(|request| {
            self.links.get(request.overwriter).is_some_and(|link| {
                (link.overwritten, link.offset) == (request.overwritten, request.offset)
            })
        })
    }
}

/// A write dependency between tensors.
struct Wish<'a> {
    step: usize,
    output: &'a Tensor,
    overwrite: &'a Overwrite<TensorId>,
}

pub(super) fn resolve(
    sequence: &OpSequence,
    options: LoweringOptions,
    places: &Places,
) -> Result<Resolved, SequenceError> {
    let mut requests = Vec::new();
    let mut wishes = Vec::new();
    for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
        let tensor = sequence.tensor(output);
        let Origin::Output { step, dependency: Dependency::Overwrites(overwrites) } =
            &tensor.origin
        else {
            continue;
        };
        for overwrite in overwrites.iter().filter(|o| options.inplace || o.required) {
            let wish = Wish { step: *step, output: tensor, overwrite };
            match wish.request(sequence, places, output)? {
                Ok(request) => {
                    requests.push(request);
                    wishes.push(wish);
                }
                Err(reason) => wish.refuse(sequence, reason)?,
            }
        }
    }
    let chunks: Vec<Chunk> = places
        .chunks
        .iter()
        .map(|&DraftChunk { begin, end, size, .. }| Chunk { begin, end, size })
        .collect();
    let (links, dropped) = Links::resolve(&chunks, &requests);
    for dropped in dropped {
        wishes[dropped.request].refuse(sequence, dropped.reason)?;
    }
    Ok(Resolved { links, requests })
}

impl Wish<'_> {
    /// The wish as a request between chunks, or the reason why it cannot be one.
    fn request(
        &self,
        sequence: &OpSequence,
        places: &Places,
        output: TensorId,
    ) -> Result<Result<Request, Refusal>, SequenceError> {
        let Overwrite { input, offset, required } = *self.overwrite;
        let (Some((overwriter, _)), Some((overwritten, base))) =
            (places.tensors[output.index()], places.tensors[input.index()])
        else {
            return Ok(Err(Refusal::Empty));
        };
        let size = places.chunks[overwriter.index()].size;
        let chunk = &places.chunks[overwritten.index()];
        // An input that is a view adds its own offset; the rest of its chunk is room, too.
        let offset_in_chunk = base.checked_add(offset);
        if offset_in_chunk
            .and_then(|offset| offset.checked_add(size))
            .is_none_or(|end| end > chunk.size)
        {
            return Err(SequenceError::OverwriteDoesNotFit {
                operator: sequence.operator_name(self.step),
                output: self.output.name.to_string(),
                size,
                offset,
                input: sequence.tensor(input).name.to_string(),
                room: chunk.size - base,
            });
        }
        if chunk.kept() {
            return Ok(Err(Refusal::KeptToTheEnd));
        }
        if !required && (chunk.outside.is_some() || chunk.variable == Variable::Outside) {
            return Ok(Err(Refusal::OutsideThePool));
        }
        let offset = offset_in_chunk.unwrap_or(0);
        Ok(Ok(Request { overwriter, overwritten, offset, required }))
    }

    /// A dropped request is an event; a dropped requirement is an error.
    fn refuse(&self, sequence: &OpSequence, reason: Refusal) -> Result<(), SequenceError> {
        let operator = sequence.operator_name(self.step);
        let (output, input) = (&*self.output.name, &*sequence.tensor(self.overwrite.input).name);
        if self.overwrite.required {
            return Err(SequenceError::RequiredOverwrite {
                operator,
                output: output.to_owned(),
                input: input.to_owned(),
                reason,
            });
        }
        debug!(target: "memplan::lower", operator, output, input, %reason, "in-place request dropped");
        Ok(())
    }
}
