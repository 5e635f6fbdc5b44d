//! The third pass: accepts or refuses each write dependency (the book, Lowering).

use std::collections::HashSet;

use crate::{
    Bytes, SequenceError, Step,
    lower::{
        LoweringOptions, Placing, RejectedTie,
        aliases::Aliases,
        clocks::Lifetimes,
        overlaps::Overlaps,
        place::{DraftChunk, Places, Variable},
    },
    problem::{Chunk, ChunkId, Links, RejectReason, Request},
    sequence::{Dependency, OpSequence, Origin, Overwrite, TensorId},
};

/// The accepted links between all chunks, those outside the pool included.
pub(super) struct Resolved {
    links: Links,
    /// All requests, those dropped because they save nothing in this order included.
    requests: Vec<Request>,
    /// The requests that did not become links.
    pub(super) refused: Vec<RejectedTie>,
    /// The limits of overlaps that may lead to different plans, ascending.
    limits: Vec<Bytes>,
}

impl Resolved {
    pub(super) fn place_in_chain(&self, chunk: ChunkId) -> (ChunkId, Bytes) {
        self.links.place(chunk)
    }

    pub(super) fn into_limits(self) -> Vec<Bytes> {
        self.limits
    }

    /// All requests, accepted or not, in order. They do not depend on lifetimes.
    pub(super) fn into_requests(self) -> Vec<Request> {
        self.requests
    }

    /// The requests that became links, in order.
    pub(super) fn accepted(&self) -> impl Iterator<Item = Request> + '_ {
        self.requests.iter().copied().filter(|request| self.links.is_accepted(request))
    }
}

/// A write dependency between tensors.
struct WriteDependency<'a> {
    step: usize,
    output: TensorId,
    overwrite: &'a Overwrite<TensorId>,
}

pub(super) fn resolve(
    sequence: &OpSequence,
    options: LoweringOptions,
    placing: Placing,
    places: &Places,
    lives: Option<&Lifetimes>,
) -> Result<Resolved, SequenceError> {
    let mut requests = Vec::new();
    let mut dependencies = Vec::new();
    let mut refused = Vec::new();
    for (step, operator) in sequence.operators().iter().enumerate() {
        let mut aliases = None;
        for &output in &operator.outputs {
            let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
                &sequence.tensor(output).origin
            else {
                continue;
            };
            // An update without bytes writes nothing, so a required one counts as accepted.
            let Some((overwriter, _)) = places.tensors[output.index()] else { continue };
            let aliases = aliases.get_or_insert_with(|| Aliases::of(sequence, operator, places));
            for overwrite in overwrites.iter().filter(|o| options.inplace || o.required) {
                let dependency = WriteDependency { step, output, overwrite };
                match dependency.request(sequence, places, overwriter, aliases) {
                    Ok(request) => {
                        if let Some(reason) = lives.and_then(|lives| lives.reject_reason(&request))
                        {
                            refused.push(dependency.refuse(sequence, reason, None)?);
                        } else {
                            requests.push(request);
                            dependencies.push(dependency);
                        }
                    }
                    Err((reason, alias)) => {
                        refused.push(dependency.refuse(sequence, reason, alias)?);
                    }
                }
            }
        }
    }
    let chunks: Vec<Chunk> = places
        .chunks
        .iter()
        .map(|&DraftChunk { begin, end, size, .. }| Chunk { begin, end, size })
        .collect();
    let (mut links, mut dropped) = Links::resolve(&chunks, &requests);
    let overlaps = Overlaps::of(&places.chunks, &links, &requests, placing, lives);
    let limits = overlaps.as_ref().map(Overlaps::limits).unwrap_or_default();
    let useless = overlaps.map(|overlaps| overlaps.useless(options.overlap_limit));
    let useless = useless.unwrap_or_default();
    if !useless.is_empty() {
        for &request in &useless {
            let reason = RejectReason::SavesNothing;
            refused.push(dependencies[request].refuse(sequence, reason, None)?);
        }
        // Other overlaps in the same steps would not save anything either.
        let step = |at: usize| places.chunks[requests[at].overwriter.index()].begin;
        let steps: HashSet<Step> = useless.iter().map(|&at| step(at)).collect();
        let is_other = |at: usize| {
            requests[at].below > 0 && steps.contains(&step(at)) && !links.is_accepted(&requests[at])
        };
        let is_kept = |at: &usize| useless.binary_search(at).is_err() && !is_other(*at);
        let kept: Vec<usize> = (0..requests.len()).filter(is_kept).collect();
        let kept_requests: Vec<Request> = kept.iter().map(|&at| requests[at]).collect();
        dropped.retain(|&(request, _)| is_other(request));
        let (without, dropped_then) = Links::resolve(&chunks, &kept_requests);
        links = without;
        dropped.extend(dropped_then.into_iter().map(|(then, reason)| (kept[then], reason)));
    }
    for (request, reason) in dropped {
        refused.push(dependencies[request].refuse(sequence, reason, None)?);
    }
    Ok(Resolved { links, requests, refused, limits })
}

/// The reason why a dependency cannot be a request, and the tensor that shares the bytes if there is one.
type Rejection = (RejectReason, Option<TensorId>);

impl WriteDependency<'_> {
    /// Returns the dependency as a request between chunks, or the reason why it cannot be one.
    fn request(
        &self,
        sequence: &OpSequence,
        places: &Places,
        overwriter: ChunkId,
        aliases: &Aliases,
    ) -> Result<Request, Rejection> {
        let Overwrite { input, offset, below, required } = *self.overwrite;
        let Some((overwritten, base)) = places.tensors[input.index()] else {
            return Err((RejectReason::Empty, None));
        };
        let size = places.chunks[overwriter.index()].size;
        let chunk = &places.chunks[overwritten.index()];
        // An input that is a view adds its own offset; the rest of its chunk may be overwritten as well. Bytes of an
        // output below the chunk are not shared.
        let (low, below) = match below {
            0 => (base.checked_add(offset), 0),
            _ => (Some(base.saturating_sub(below)), below.saturating_sub(base)),
        };
        let is_below =
            self.overwrite.below > 0 && low.is_some_and(|low| low.saturating_add(size) <= base);
        // On several streams, synchronization is by whole chunks.
        let is_inside = self.overwrite.below > 0 && base > 0 && sequence.streams() > 1;
        if below >= size || is_below || is_inside {
            return Err((RejectReason::NothingShared, None));
        }
        let bytes = low.and_then(|low| Some((low, low.checked_add(size.saturating_sub(below))?)));
        let is_overlap = self.overwrite.below > 0;
        let Some((low, high)) = bytes.filter(|&(_, high)| high <= chunk.size || below > 0) else {
            // The input is a copy and not the view that it might be, or the two overlap partially.
            return Err((RejectReason::DoesNotFit, None));
        };
        let in_the_way = if is_overlap {
            aliases.beside(input, overwritten, low, high)
        } else {
            aliases.in_the_way(input, overwritten, low, high)
        };
        if let Some(other) = in_the_way {
            return Err((RejectReason::Alias, Some(other)));
        }
        let Some((holder, offset)) = places.holder(overwritten, &(low..high)) else {
            return Err((RejectReason::NotLastReader, None));
        };
        let chunk = &places.chunks[holder.index()];
        if chunk.kept() {
            return Err((RejectReason::KeptToTheEnd, None));
        }
        if !required && (chunk.outside.is_some() || chunk.variable == Variable::Outside) {
            return Err((RejectReason::OutsideThePool, None));
        }
        Ok(Request { overwriter, overwritten: holder, offset, below, required })
    }

    /// Records a rejected request. Returns an error if it was required.
    fn refuse(
        &self,
        sequence: &OpSequence,
        reason: RejectReason,
        alias: Option<TensorId>,
    ) -> Result<RejectedTie, SequenceError> {
        let (output, input) = (self.output, self.overwrite.input);
        if !self.overwrite.required {
            return Ok(RejectedTie { output, input, reason, alias });
        }
        let name = |tensor: TensorId| sequence.tensor(tensor).name.to_string();
        let operator = sequence.operator_name(self.step);
        let (output, input) = (name(output), name(input));
        Err(match alias {
            Some(other) => {
                let other = name(other);
                SequenceError::RequiredOverwriteOfAlias { operator, output, input, other }
            }
            None => SequenceError::RequiredOverwrite { operator, output, input, reason },
        })
    }
}
