//! The content of tensors, as runs of bytes that operators write.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes,
    lower::{LoweringOptions, place},
    sequence::{Dependency, Gather, OpSequence, OperatorNode, Origin, TensorId},
};

/// Bytes of a tensor that are bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The offset in the tensor.
    pub(super) at: Bytes,
    /// The tensor for which the value was written.
    pub(super) value: usize,
    /// The offset in that tensor.
    pub(super) low: Bytes,
    pub(super) size: Bytes,
}

/// The value of bytes that are not counted, while pieces are collected.
const UNCOUNTED: usize = usize::MAX;

pub(super) type PieceList = SmallVec<[Piece; 1]>;

/// Where the bytes of every tensor come from.
pub(super) struct Pieces {
    /// By tensor: its content in the order of its bytes; empty if that lies outside the pool.
    pub(super) of: Vec<PieceList>,
    /// By tensor: the tensor that it is a view of, through other views, and its offset there.
    pub(super) base: Vec<(usize, Bytes)>,
    /// By tensor: true if a tensor outside the pool holds it.
    pub(super) is_outside: Vec<bool>,
    /// True if bytes that outputs gather through views of tensors outside the pool count as the outputs' own. False if
    /// two outputs may share the bytes of one copy of such a view; then these bytes are not counted at all.
    counts_copies: bool,
}

impl Pieces {
    pub(super) fn of(sequence: &OpSequence, options: LoweringOptions) -> Self {
        let pieces = Self::with_copies(sequence, options, true);
        if pieces.may_share_a_copy(sequence) {
            return Self::with_copies(sequence, options, false);
        }
        pieces
    }

    fn with_copies(sequence: &OpSequence, options: LoweringOptions, counts_copies: bool) -> Self {
        let count = sequence.tensors().len();
        let mut pieces = Self {
            of: vec![PieceList::new(); count],
            base: (0..count).map(|at| (at, 0)).collect(),
            is_outside: vec![false; count],
            counts_copies,
        };
        for (at, tensor) in sequence.tensors().iter().enumerate() {
            let in_pool = match tensor.origin {
                Origin::Input => options.inputs_in_pool,
                Origin::Weight => options.weights_in_pool,
                Origin::Output { .. } => continue,
            };
            pieces.is_outside[at] = !in_pool;
            if in_pool {
                pieces.of[at] = own(at, tensor.size.unwrap_or(0));
            }
        }
        let is_updated = place::views_with_updates(sequence);
        for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
            pieces.produce(sequence, options, output, is_updated[output.index()]);
        }
        // Only now, because outputs take over pieces of their inputs.
        for all in &mut pieces.of {
            all.retain(|piece| piece.value != UNCOUNTED);
        }
        pieces
    }

    /// Returns whether two outputs gather the same bytes of tensors outside the pool through views. A copy of such a
    /// view lies in the pool, and may share its bytes with both outputs.
    fn may_share_a_copy(&self, sequence: &OpSequence) -> bool {
        let through_view = sequence.gathers().filter_map(|gather| {
            let input = gather.input.index();
            let (base, low) = self.base[input];
            let bytes = (base, low, low + sequence.tensor(gather.input).size.unwrap_or(0));
            (self.is_outside[input] && base != input).then_some(bytes)
        });
        let mut bytes: Vec<(usize, Bytes, Bytes)> = through_view.collect();
        bytes.sort_unstable();
        bytes.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[1].1 < pair[0].2)
    }

    fn produce(
        &mut self,
        sequence: &OpSequence,
        options: LoweringOptions,
        output: TensorId,
        is_updated: bool,
    ) {
        let at = output.index();
        let tensor = sequence.tensor(output);
        let size = tensor.size.unwrap_or(0);
        let Origin::Output { dependency, .. } = &tensor.origin else { return };
        match dependency {
            Dependency::Reads { input, offset, required }
                if options.views || *required || is_updated =>
            {
                let (base, below) = self.base[input.index()];
                self.base[at] = (base, below + offset);
                self.is_outside[at] = self.is_outside[input.index()];
                self.of[at] = self.range(input.index(), *offset..offset + size);
            }
            Dependency::Overwrites(overwrites)
                if overwrites
                    .iter()
                    .any(|one| one.required && self.is_outside[one.input.index()]) =>
            {
                self.is_outside[at] = true;
            }
            Dependency::Gathers(gathers) => {
                let gathers = gathers.iter().filter(|one| options.gathers || one.required);
                self.of[at] = self.gather(sequence, at, size, gathers);
            }
            _ => self.of[at] = own(at, size),
        }
    }

    /// The tensors whose bytes an operator uses, whatever a plan chooses: a view that is given up reads more.
    pub(super) fn used(
        &self,
        sequence: &OpSequence,
        operator: &OperatorNode,
    ) -> SmallVec<[TensorId; 8]> {
        let used = sequence.used_tensors(operator, |view, _| self.is_view(view));
        used.map(|(tensor, _)| tensor).collect()
    }

    /// Returns whether a tensor is a view, of a tensor in the pool or outside.
    pub(super) fn is_view(&self, tensor: TensorId) -> bool {
        self.base[tensor.index()].0 != tensor.index()
    }

    /// The content of these bytes of a tensor.
    pub(super) fn range(&self, tensor: usize, bytes: Range<Bytes>) -> PieceList {
        let pieces = self.of[tensor].iter().filter_map(|piece| {
            let (low, high) = (bytes.start.max(piece.at), bytes.end.min(piece.at + piece.size));
            (low < high).then(|| Piece {
                at: low - bytes.start,
                low: piece.low + (low - piece.at),
                size: high - low,
                ..*piece
            })
        });
        pieces.collect()
    }

    /// The content of an output that gathers inputs: the inputs' content, and the output's own between them.
    fn gather<'g>(
        &self,
        sequence: &OpSequence,
        output: usize,
        size: Bytes,
        gathers: impl Iterator<Item = &'g Gather<TensorId>>,
    ) -> PieceList {
        let mut pieces = PieceList::new();
        for &Gather { input, offset, .. } in gathers {
            let size = sequence.tensor(input).size.unwrap_or(0);
            let is_view = self.is_view(input);
            if !self.is_outside[input.index()] {
                let from = self.range(input.index(), 0..size);
                pieces
                    .extend(from.into_iter().map(|piece| Piece { at: piece.at + offset, ..piece }));
            } else if is_view && !self.counts_copies {
                pieces.push(Piece { at: offset, value: UNCOUNTED, low: 0, size });
            }
        }
        pieces.sort_unstable_by_key(|piece| piece.at);
        let mut all = PieceList::new();
        let mut from = 0;
        let between = |from: Bytes, to: Bytes| {
            (from < to).then(|| Piece { at: from, value: output, low: from, size: to - from })
        };
        for piece in pieces {
            all.extend(between(from, piece.at));
            from = piece.at + piece.size;
            all.push(piece);
        }
        all.extend(between(from, size));
        all
    }
}

fn own(tensor: usize, size: Bytes) -> PieceList {
    if size == 0 {
        return PieceList::new();
    }
    smallvec![Piece { at: 0, value: tensor, low: 0, size }]
}
