//! Rule d of lowering (the book, Lowering): an output may be written over a part of a chunk only
//! if no other tensor that its operator uses lies there.
//!
//! `add(x[0:32], x[16:48])` cannot be written over `x[16:48]`: the first input would be destroyed
//! while it is read. An input that occupies exactly the overwritten bytes does no harm, because the
//! operator may overwrite those anyway, element by element. A view that the same operator outputs
//! is always destroyed, because it shows the old bytes.

use std::cmp::Reverse;

use crate::{
    Bytes,
    lower::place::Places,
    problem::ChunkId,
    sequence::{Dependency, OpSequence, OperatorNode, Origin, TensorId},
};

/// The bytes that the tensors of an operator occupy.
pub(super) struct Aliases {
    /// The spans by chunk, then lowest byte. No two are equal.
    spans: Vec<Span>,
    /// For each span, the spans of its chunk up to this one that reach highest: at most
    /// [`CANDIDATES`] indices in `spans`, the highest first.
    highest: Vec<Vec<usize>>,
}

/// The number of candidate spans that suffice: at most two spans that share bytes with an overwriter are
/// harmless, the overwritten input and the span of exactly the overwritten bytes. A third is not.
const CANDIDATES: usize = 3;

/// The bytes of some tensors in a chunk.
struct Span {
    chunk: ChunkId,
    low: Bytes,
    /// The byte after the last.
    high: Bytes,
    /// True if it is an output of the operator; false if it is an input.
    output: bool,
    /// A tensor that lies there, and a second one if there are several.
    tensor: TensorId,
    second: Option<TensorId>,
}

impl Aliases {
    pub(super) fn of(sequence: &OpSequence, operator: &OperatorNode, places: &Places) -> Self {
        let views = operator.outputs.iter().filter(|&&output| {
            let origin = &sequence.tensor(output).origin;
            matches!(origin, Origin::Output { dependency: Dependency::Reads { .. }, .. })
        });
        let inputs = operator.inputs.iter().map(|&input| (input, false));
        let spans = inputs
            .chain(views.map(|&view| (view, true)))
            .filter_map(|(tensor, output)| {
                let (chunk, low) = places.tensors[tensor.index()]?;
                // A weight of unknown size may extend anywhere.
                let size = sequence.tensor(tensor).size.unwrap_or(Bytes::MAX);
                let high = low.saturating_add(size);
                Some(Span { chunk, low, high, output, tensor, second: None })
            })
            .collect();
        Self::new(spans)
    }

    fn new(mut spans: Vec<Span>) -> Self {
        spans.sort_unstable_by_key(|span| (span.place(), span.tensor));
        spans.dedup_by(|next, kept| {
            let alike = next.place() == kept.place();
            if alike && next.tensor != kept.tensor {
                kept.second.get_or_insert(next.tensor);
            }
            alike
        });
        let mut highest: Vec<Vec<usize>> = Vec::with_capacity(spans.len());
        for (at, span) in spans.iter().enumerate() {
            let before = highest.last().filter(|_| spans[at - 1].chunk == span.chunk);
            let mut reaching = before.cloned().unwrap_or_default();
            reaching.push(at);
            reaching.sort_by_key(|&at| Reverse(spans[at].high));
            reaching.truncate(CANDIDATES);
            highest.push(reaching);
        }
        Self { spans, highest }
    }

    /// Returns a tensor that prevents these bytes of a chunk from being written in the place of
    /// `overwritten`.
    pub(super) fn in_the_way(
        &self,
        overwritten: TensorId,
        chunk: ChunkId,
        low: Bytes,
        high: Bytes,
    ) -> Option<TensorId> {
        self.sharing(chunk, low, high).find_map(|span| match (span.low, span.high) {
            _ if span.output => Some(span.tensor),
            bytes if bytes == (low, high) => None,
            _ if span.tensor != overwritten => Some(span.tensor),
            _ => span.second,
        })
    }

    /// Returns a tensor besides `overwritten` that shares any of these bytes of a chunk.
    pub(super) fn beside(
        &self,
        overwritten: TensorId,
        chunk: ChunkId,
        low: Bytes,
        high: Bytes,
    ) -> Option<TensorId> {
        self.sharing(chunk, low, high).find_map(|span| {
            if span.tensor == overwritten { span.second } else { Some(span.tensor) }
        })
    }

    /// The spans of a chunk that share these bytes: three of them if there are more.
    fn sharing(&self, chunk: ChunkId, low: Bytes, high: Bytes) -> impl Iterator<Item = &Span> {
        let reach = self.spans.partition_point(|span| (span.chunk, span.low) < (chunk, high));
        let highest = reach.checked_sub(1).map(|last| &self.highest[last]);
        let spans = highest.into_iter().flatten().map(|&at| &self.spans[at]);
        spans.filter(move |span| span.chunk == chunk && span.high > low)
    }
}

impl Span {
    fn place(&self) -> (ChunkId, Bytes, Bytes, bool) {
        (self.chunk, self.low, self.high, self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

    #[test]
    fn a_tensor_in_the_way_is_found_exactly_if_there_is_one() {
        let in_the_way_of_some = |random: &mut arbitrary::Unstructured<'_>| {
            let mut all = Vec::new();
            for at in 0..random.int_in_range(0..=8)? {
                let low = random.int_in_range(0..=11)?;
                all.push(Span {
                    chunk: ChunkId(random.int_in_range(0..=1)?),
                    low,
                    high: random.int_in_range(low + 1..=12)?,
                    output: random.ratio(1, 8)?,
                    tensor: TensorId(at),
                    second: None,
                });
            }
            let spans = all.iter().map(|span| Span { second: None, ..*span }).collect();
            let aliases = Aliases::new(spans);
            for span in &all {
                let low = random.int_in_range(span.low..=span.high - 1)?;
                let high = random.int_in_range(low + 1..=span.high)?;
                let is_in_the_way = |other: &Span| {
                    let shares = other.chunk == span.chunk && other.low < high && low < other.high;
                    let is_other =
                        other.tensor != span.tensor && (other.low, other.high) != (low, high);
                    shares && (other.output || is_other)
                };
                let found = aliases.in_the_way(span.tensor, span.chunk, low, high);
                assert_eq!(found.is_some(), all.iter().any(is_in_the_way));
                assert!(found.is_none_or(|found| is_in_the_way(&all[found.index()])));
            }
            Ok(())
        };
        times(1500, |random| in_the_way_of_some(random));
    }
}
