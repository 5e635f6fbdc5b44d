//! What outputs may save: the bytes of inputs that they may be written over and that nothing reads any more.

use std::{collections::BTreeMap, ops::Range};

use smallvec::SmallVec;

use super::{
    pieces::{Piece, PieceList},
    values::{Count, Values},
};
use crate::{
    Bytes,
    sequence::{Dependency, OperatorNode, Origin, Overwrite, TensorId},
};

/// With more tensors than this, an operator's tensors are not compared for shared bytes.
const MAX_COMPARED: usize = 16;

impl Values<'_> {
    /// The most bytes that an operator's outputs can share with what they are written over. `is_last` returns whether
    /// this operator may destroy bytes whose last use is in the given step.
    pub(super) fn saved(
        &self,
        step: usize,
        operator: &OperatorNode,
        is_last: impl Fn(usize) -> bool,
    ) -> Count {
        let mut saved = Count::default();
        // By tensor: the bytes that an output may be written over, and nowhere else, and what it saves then.
        let mut rivals: BTreeMap<usize, Vec<(Range<Bytes>, Count)>> = BTreeMap::new();
        let mut values: Vec<usize> = Vec::new();
        let (mut writers, mut is_through_view) = (0, false);
        for &output in &operator.outputs {
            // Outside the pool, it takes no bytes.
            if self.of[output.index()].written.is_none() {
                continue;
            }
            let mut best = Count::default();
            let overwrites: SmallVec<[&Overwrite<TensorId>; 2]> = self.overwrites(output).collect();
            for &overwrite in &overwrites {
                let (dying, shared) = self.dying(step, output, overwrite, &is_last);
                best = Count {
                    plain: best.plain.max(dying.plain),
                    cells: best.cells.max(dying.cells),
                };
                values.extend(shared);
                is_through_view |= self.pieces.is_view(overwrite.input);
            }
            let all = self.count(output.index(), self.of[output.index()].size);
            writers += usize::from(best.plain > 0);
            // At an unaligned offset, all cells that begin in the output may begin in bytes that it destroys.
            let is_exact = best.plain > 0 && self.of[output.index()].is_exact;
            let cells = if is_exact { all.cells } else { best.cells.min(all.cells) };
            let best = Count { plain: best.plain.min(all.plain), cells };
            // A copy of a view has a place of its own, and an output that begins below its input may take fewer bytes.
            if operator.outputs.len() > 1
                && let [overwrite] = overwrites[..]
                && overwrite.below == 0
                && !self.pieces.is_view(overwrite.input)
            {
                let (base, bytes) = self.overwritten(output, overwrite);
                rivals.entry(base).or_default().push((bytes, best));
            } else {
                saved = saved.plus(best);
            }
        }
        let apart = rivals.into_values().map(most_apart);
        let saved = apart.fold(saved, Count::plus);
        if writers < 2 {
            return saved;
        }
        // Several outputs cannot take the same bytes.
        values.sort_unstable();
        values.dedup();
        let is_exact = values.iter().any(|&value| self.of[value].is_exact);
        let dying = values.iter().map(|&value| {
            let count = self.needed(value, &is_last);
            let cells = if is_through_view { self.cells(count.plain, false) } else { count.cells };
            Count { cells, ..count }
        });
        let dying = dying.fold(Count::default(), Count::plus);
        let cells = if is_exact { saved.cells } else { saved.cells.min(dying.cells) };
        Count { plain: saved.plain.min(dying.plain), cells }
    }

    /// The bytes that an output may destroy of what it is written over, and the values that they belong to.
    fn dying(
        &self,
        step: usize,
        output: TensorId,
        overwrite: &Overwrite<TensorId>,
        is_last: impl Fn(usize) -> bool,
    ) -> (Count, Vec<usize>) {
        let mut dying: BTreeMap<usize, Bytes> = BTreeMap::new();
        for piece in self.destroyed(step, output, overwrite) {
            let runs = &self.runs[piece.value];
            let first = runs.partition_point(|(run, _)| run.end <= piece.low);
            let end = piece.low + piece.size;
            let near = runs[first..].iter().take_while(|(run, _)| run.start < end);
            for (run, _) in near.filter(|(_, last)| is_last(*last)) {
                let bytes = run.end.min(end) - run.start.max(piece.low);
                *dying.entry(piece.value).or_default() += bytes;
            }
        }
        let counts = dying.iter().map(|(&value, &bytes)| Count {
            cells: self.saved_cells(overwrite, value, bytes),
            ..self.count(value, bytes)
        });
        (counts.fold(Count::default(), Count::plus), dying.into_keys().collect())
    }

    /// The content that an output destroys when it is written over an input, except the content of the operator's other
    /// tensors and what the operator itself writes.
    fn destroyed(
        &self,
        step: usize,
        output: TensorId,
        overwrite: &Overwrite<TensorId>,
    ) -> Vec<Piece> {
        let (base, bytes) = self.overwritten(output, overwrite);
        let operator = &self.sequence.operators()[step];
        let kept = self.kept((operator, output), overwrite, (base, &bytes));
        let pieces = self.pieces.range(base, bytes).into_iter();
        let old = pieces.filter(|piece| {
            let is_output = !self.is_supplied(piece.value);
            !(is_output && self.of[piece.value].written == Some(step))
        });
        old.flat_map(|piece| without(piece, &kept)).collect()
    }

    /// The content that an output is written over if one of its overwrites is accepted.
    fn targets(&self, output: TensorId) -> Vec<Piece> {
        let of = self.overwrites(output).map(|overwrite| self.overwritten(output, overwrite));
        of.flat_map(|(base, bytes)| self.pieces.range(base, bytes)).collect()
    }

    /// The overwrites of an output that may be accepted, with the content that each destroys.
    pub(super) fn overwritten_by(
        &self,
        step: usize,
        output: TensorId,
    ) -> Vec<(&Overwrite<TensorId>, Vec<Piece>)> {
        self.overwrites(output).map(|one| (one, self.destroyed(step, output, one))).collect()
    }

    /// The content that must survive an operator while an output is written over `bytes` of tensor `base`: the content
    /// of the operator's other tensors, except a tensor that lies at exactly these bytes, or has exactly their content
    /// and so may lie there. Another output may destroy a second copy of the content.
    fn kept(
        &self,
        (operator, output): (&OperatorNode, TensorId),
        overwrite: &Overwrite<TensorId>,
        (base, bytes): (usize, &Range<Bytes>),
    ) -> Vec<Piece> {
        if operator.inputs.len() + operator.outputs.len() > MAX_COMPARED {
            return Vec::new();
        }
        let size = |tensor: TensorId| self.sequence.tensor(tensor).size.unwrap_or(0);
        let old = joined(self.pieces.range(base, bytes.clone()));
        let is_alike = |tensor: TensorId| joined(self.pieces.of[tensor.index()].clone()) == old;
        let is_other = |&&tensor: &&TensorId| {
            let (of, at) = self.pieces.base[tensor.index()];
            let is_there = of == base && (at..at + size(tensor)) == *bytes;
            let is_exact = overwrite.below == 0 && (is_there || is_alike(tensor));
            tensor != overwrite.input && !is_exact
        };
        let is_view = |&&output: &&TensorId| {
            let origin = &self.sequence.tensor(output).origin;
            matches!(origin, Origin::Output { dependency: Dependency::Reads { .. }, .. })
        };
        let inputs = operator.inputs.iter().filter(is_other);
        let others = inputs.chain(operator.outputs.iter().filter(is_view));
        let kept = others.flat_map(|tensor| self.pieces.of[tensor.index()].iter().copied());
        let rivals = operator.outputs.iter().filter(|&&other| other != output);
        let destroyed: Vec<Piece> = rivals.flat_map(|&other| self.targets(other)).collect();
        kept.flat_map(|piece| without(piece, &destroyed)).collect()
    }
}

/// The most that ranges save together if no two of them share bytes.
fn most_apart(mut ranges: Vec<(Range<Bytes>, Count)>) -> Count {
    ranges.sort_unstable_by_key(|(bytes, _)| bytes.end);
    // By number of ranges: the most that the first ones save.
    let mut most = vec![Count::default()];
    for (at, (bytes, count)) in ranges.iter().enumerate() {
        let before = ranges[..at].partition_point(|(other, _)| other.end <= bytes.start);
        let with = most[before].plus(*count);
        let without = most[at];
        most.push(Count {
            plain: with.plain.max(without.plain),
            cells: with.cells.max(without.cells),
        });
    }
    most[ranges.len()]
}

/// Joins pieces of one value that are adjacent both in the value and in the tensor.
fn joined(mut pieces: PieceList) -> PieceList {
    pieces.sort_by_key(|piece| piece.at);
    let mut all = PieceList::new();
    for piece in pieces {
        match all.last_mut() {
            Some(last)
                if last.value == piece.value
                    && (last.at + last.size, last.low + last.size) == (piece.at, piece.low) =>
            {
                last.size += piece.size;
            }
            _ => all.push(piece),
        }
    }
    all
}

/// Returns the parts of a piece whose bytes no other piece has.
fn without(piece: Piece, others: &[Piece]) -> Vec<Piece> {
    let of_value = others.iter().filter(|one| one.value == piece.value);
    let mut covers: Vec<(Bytes, Bytes)> =
        of_value.map(|one| (one.low, one.low + one.size)).collect();
    covers.sort_unstable();
    let (mut left, mut from, end) = (Vec::new(), piece.low, piece.low + piece.size);
    for (low, high) in covers.into_iter().chain([(end, end)]) {
        let low = low.min(end);
        if from < low {
            left.push(Piece { low: from, size: low - from, ..piece });
        }
        from = from.max(high);
    }
    left
}
