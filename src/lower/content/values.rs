//! The values of a sequence: when their bytes are needed, and what outputs may save.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use crate::{
    Bytes,
    lower::{
        LoweringOptions, Placing,
        clocks::OperatorClocks,
        content::pieces::{Piece, PieceList, Pieces},
        runs::{Run, cut, runs},
    },
    sequence::{Dependency, OpSequence, OperatorNode, Origin, Overwrite, Tensor, TensorId},
    sets,
};

/// The most pairs of values and operators that are compared on several streams.
const MAX_PAIRS: usize = 20_000_000;

/// Bytes that are needed, and the bytes of the alignment cells that they take from all other values. Both are lower
/// bounds of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) plain: i128,
    pub(super) cells: i128,
}

impl Count {
    pub(super) fn plus(self, other: Self) -> Self {
        Self { plain: self.plain + other.plain, cells: self.cells + other.cells }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self { plain: self.plain - other.plain, cells: self.cells - other.cells }
    }

    fn most(self) -> i128 {
        self.plain.max(self.cells)
    }
}

/// The bytes that an operator writes for one tensor, and their uses. Steps count from 0; bytes kept to the end are used
/// in the step after the last.
#[derive(Clone, Debug, Default)]
pub(super) struct Value {
    /// The step that writes it, or 0 if it is supplied; `None` if the tensor has no bytes of its own in the pool.
    pub(super) written: Option<usize>,
    pub(super) size: Bytes,
    /// The last step that uses all of it.
    last: usize,
    /// Steps that use some of its bytes; for each run of bytes, the last such step.
    uses: Vec<Run>,
    /// All steps that use any of it, on several streams.
    steps: Vec<usize>,
    /// True if it may begin at an unaligned offset, or share a cell with a value that it is tied to.
    pub(super) is_exact: bool,
    /// True if it is tied to no other value.
    is_single: bool,
    /// True if its bytes are all of its tensor.
    is_whole: bool,
}

pub(super) struct Values<'a> {
    pub(super) sequence: &'a OpSequence,
    pub(super) options: LoweringOptions,
    placing: Placing,
    pub(super) pieces: Pieces,
    pub(super) of: Vec<Value>,
    /// By value: its runs of bytes with the last step that uses them. Those of a value whose bytes count one by one
    /// end wherever a use begins or ends: copies may put them into different cells.
    pub(super) runs: Vec<Vec<Run>>,
}

impl<'a> Values<'a> {
    pub(super) fn of(sequence: &'a OpSequence, options: LoweringOptions, placing: Placing) -> Self {
        let pieces = Pieces::of(sequence, options);
        let of = vec![Value::default(); sequence.tensors().len()];
        let mut values = Self { sequence, options, placing, pieces, of, runs: Vec::new() };
        values.write();
        values.use_all();
        values.tie();
        values.runs = values.of.iter().map(Value::runs).collect();
        values
    }

    /// Records the step that writes each value.
    fn write(&mut self) {
        let tensors = self.sequence.tensors();
        for (at, tensor) in tensors.iter().enumerate() {
            for piece in self.pieces.of[at].iter().filter(|piece| piece.value == at) {
                let written = match tensor.origin {
                    Origin::Output { step, .. } => step,
                    Origin::Input | Origin::Weight => 0,
                };
                let value = &mut self.of[at];
                value.written = Some(written);
                value.size += piece.size;
                value.last = written;
                value.is_single = true;
                value.is_whole = piece.size == tensor.size.unwrap_or(0);
            }
        }
    }

    /// Records the steps that use each value.
    fn use_all(&mut self) {
        let several = self.sequence.streams() > 1;
        for (step, operator) in self.sequence.operators().iter().enumerate() {
            for tensor in self.pieces.used(self.sequence, operator) {
                self.use_at(tensor, step, several);
            }
        }
        let end = self.sequence.operators().len();
        for &output in self.sequence.outputs() {
            self.use_at(output, end, several);
        }
        for weight in self.kept_weights() {
            self.use_at(weight, end, several);
        }
    }

    /// The weights in the pool that outlive the sequence. An update takes the place of a weight, so that the old value
    /// need not be kept.
    pub(super) fn kept_weights(&self) -> Vec<TensorId> {
        let updated = self.updated();
        let tensors = self.sequence.tensors().iter().enumerate();
        let is_kept = |(at, tensor): &(usize, &Tensor)| {
            tensor.origin == Origin::Weight && !self.pieces.is_outside[*at] && !updated.contains(at)
        };
        tensors.filter(is_kept).map(|(at, _)| TensorId::from_index(at)).collect()
    }

    /// The tensors that required overwrites change.
    fn updated(&self) -> HashSet<usize> {
        let outputs = self.sequence.operators().iter().flat_map(|operator| &operator.outputs);
        let updates = outputs.flat_map(|&output| match &self.sequence.tensor(output).origin {
            Origin::Output { dependency: Dependency::Overwrites(list), .. } => &list[..],
            _ => &[],
        });
        let required = updates.filter(|overwrite| overwrite.required);
        required.map(|overwrite| self.pieces.base[overwrite.input.index()].0).collect()
    }

    fn use_at(&mut self, tensor: TensorId, step: usize, several: bool) {
        for &Piece { value, low, size, .. } in &self.pieces.of[tensor.index()] {
            let value = &mut self.of[value];
            if several && value.steps.last() != Some(&step) {
                value.steps.push(step);
            }
            if value.is_whole && size == value.size {
                value.last = value.last.max(step);
                continue;
            }
            let bytes = low..low + size;
            match value.uses.last_mut() {
                Some((last, until)) if *last == bytes => *until = (*until).max(step),
                _ => value.uses.push((bytes, step)),
            }
        }
    }

    /// Joins values that choices may put into one chunk, and finds the ones whose bytes count one by one.
    fn tie(&mut self) {
        let alignment = self.placing.alignment;
        let mut parent: Vec<usize> = (0..self.of.len()).collect();
        let mut is_exact = vec![false; self.of.len()];
        for &output in self.sequence.operators().iter().flat_map(|operator| &operator.outputs) {
            let tensor = self.sequence.tensor(output);
            let size = tensor.size.unwrap_or(0);
            let Origin::Output { dependency, .. } = &tensor.origin else { continue };
            // A cut is aligned if it is at a multiple of the alignment or at the end.
            let is_cell = |at: Bytes, end: Bytes| at == end || at.is_multiple_of(alignment);
            let mut join = |this: &mut Self, others: &PieceList, is_aligned: bool| {
                let own = sets::find(&mut parent, output.index());
                is_exact[own] |= !is_aligned;
                for other in others {
                    let (a, b) = sets::join(&mut parent, output.index(), other.value);
                    is_exact[a] |= is_exact[b];
                    this.of[other.value].is_single &= other.value == output.index();
                    this.of[output.index()].is_single = false;
                }
            };
            match dependency {
                Dependency::Overwrites(overwrites) => {
                    for overwrite in overwrites {
                        if !(self.options.inplace || overwrite.required) {
                            continue;
                        }
                        let (base, bytes) = self.overwritten(output, overwrite);
                        let whole = self.sequence.tensors()[base].size.unwrap_or(Bytes::MAX);
                        let others = self.pieces.of[base].clone();
                        // If every old value dies as a whole, nothing is left beside the output.
                        let is_whole = others.iter().all(|one| self.of[one.value].uses.is_empty());
                        let is_aligned = overwrite.below.is_multiple_of(alignment)
                            && is_cell(bytes.start, whole)
                            && (is_whole || is_cell(bytes.end, whole));
                        let is_aligned = is_aligned
                            && self.in_copies(overwrite, size).all(|(bytes, whole)| {
                                is_cell(bytes.start, whole) && is_cell(bytes.end, whole)
                            });
                        join(self, &others, is_aligned);
                    }
                }
                Dependency::Gathers(gathers)
                    if gathers.iter().any(|one| self.options.gathers || one.required) =>
                {
                    let all = self.pieces.of[output.index()].clone();
                    let is_aligned = gathers.iter().all(|gather| {
                        let end =
                            gather.offset + self.sequence.tensor(gather.input).size.unwrap_or(0);
                        is_cell(gather.offset, size) && is_cell(end, size)
                    });
                    let is_whole = all.iter().all(|piece| {
                        let whole = self.sequence.tensors()[piece.value].size.unwrap_or(0);
                        is_cell(piece.low, whole) && is_cell(piece.low + piece.size, whole)
                    });
                    join(self, &all, is_aligned && is_whole);
                }
                _ => {}
            }
        }
        for at in 0..self.of.len() {
            let root = sets::find(&mut parent, at);
            self.of[at].is_exact = is_exact[root];
        }
    }

    /// The overwrites of an output that may be accepted.
    pub(super) fn overwrites(
        &self,
        output: TensorId,
    ) -> impl Iterator<Item = &'a Overwrite<TensorId>> {
        let all = match self.sequence.dependency(output) {
            Dependency::Overwrites(all) => &all[..],
            _ => &[],
        };
        let inplace = self.options.inplace;
        all.iter().filter(move |one| inplace || one.required)
    }

    /// The tensor whose memory an overwriter takes, and its bytes there.
    pub(super) fn overwritten(
        &self,
        output: TensorId,
        overwrite: &Overwrite<TensorId>,
    ) -> (usize, Range<Bytes>) {
        let size = self.sequence.tensor(output).size.unwrap_or(0);
        let (base, at) = self.pieces.base[overwrite.input.index()];
        let (low, below) = match overwrite.below {
            0 => (at.saturating_add(overwrite.offset), 0),
            below => (at.saturating_sub(below), below.saturating_sub(at)),
        };
        (base, low..low.saturating_add(size.saturating_sub(below)))
    }

    /// The bytes that an output takes of each view through which it is written over an input, with the view's size. A
    /// plan may make any of these views a copy.
    fn in_copies(
        &self,
        overwrite: &Overwrite<TensorId>,
        size: Bytes,
    ) -> impl Iterator<Item = (Range<Bytes>, Bytes)> {
        let (mut at, mut low) = (overwrite.input, overwrite.offset);
        std::iter::from_fn(move || {
            let (input, offset) = self.sequence.tensor(at).viewed()?;
            let view = (low..low.saturating_add(size), self.size(at));
            (at, low) = (input, low.saturating_add(offset));
            Some(view)
        })
    }

    /// The most cells of the alignment, in bytes, that an output saves by destroying bytes of a value. If the input is
    /// a view, the output may be written over a copy of it, and the value then has fewer bytes, not an unaligned end.
    pub(super) fn saved_cells(
        &self,
        overwrite: &Overwrite<TensorId>,
        value: usize,
        bytes: Bytes,
    ) -> i128 {
        let count = self.count(value, bytes);
        if self.pieces.is_view(overwrite.input) {
            self.cells(count.plain, false)
        } else {
            count.cells
        }
    }

    /// The count of this many bytes of a value, in one run.
    pub(super) fn count(&self, value: usize, bytes: Bytes) -> Count {
        let Value { is_exact, is_single, ref uses, .. } = self.of[value];
        if bytes == 0 {
            return Count::default();
        }
        let padding = if is_single && uses.is_empty() { self.placing.padding } else { 0 };
        let plain = i128::from(bytes) + i128::from(padding);
        Count { plain, cells: self.cells(plain, is_exact) }
    }

    /// The bytes of the alignment cells whose first byte lies in these bytes, so that no other value counts them.
    pub(super) fn cells(&self, bytes: i128, is_exact: bool) -> i128 {
        let alignment = i128::from(self.placing.alignment);
        let more = if is_exact { 0 } else { alignment - 1 };
        (bytes + more) / alignment * alignment
    }

    /// The count of those runs of a value whose last use is in a step that `is_needed` accepts.
    pub(super) fn needed(&self, value: usize, is_needed: impl Fn(usize) -> bool) -> Count {
        let runs = self.runs[value].iter().filter(|(_, last)| is_needed(*last));
        let counts = runs.map(|(bytes, _)| self.of_run(value, bytes.end - bytes.start));
        counts.fold(Count::default(), Count::plus)
    }

    /// The count of a run of a value. Unless it is the whole value, it may begin anywhere in its first cell.
    fn of_run(&self, value: usize, size: Bytes) -> Count {
        let is_all = self.of[value].is_whole && size == self.of[value].size;
        let count = self.count(value, size);
        if is_all { count } else { Count { cells: self.cells(size.into(), true), ..count } }
    }

    fn workspace(&self, operator: &OperatorNode) -> Count {
        match operator.workspace {
            0 => Count::default(),
            bytes => {
                let plain = i128::from(bytes) + i128::from(self.placing.padding);
                Count { plain, cells: self.cells(plain, false) }
            }
        }
    }

    /// The cells that the workspace of an operator takes, in bytes.
    pub(super) fn counted_workspace(&self, operator: &OperatorNode) -> Bytes {
        Bytes::try_from(self.workspace(operator).cells).unwrap_or(Bytes::MAX)
    }

    /// The most bytes that a step needs, on one stream.
    pub(super) fn most_in_steps(&self) -> i128 {
        let steps = self.sequence.operators().len();
        // By step: the change of the needed bytes when the step begins.
        let mut changes: Vec<Count> = vec![Count::default(); steps + 2];
        for (at, value) in self.of.iter().enumerate() {
            let Some(written) = value.written else { continue };
            let mut counted = self.count(at, value.size);
            changes[written] = changes[written].plus(counted);
            let mut ends: BTreeMap<usize, Count> = BTreeMap::new();
            for (bytes, last) in &self.runs[at] {
                let size = bytes.end - bytes.start;
                let sum = ends.entry((*last).max(written)).or_default();
                *sum = sum.plus(self.of_run(at, size));
            }
            let mut left = ends.values().copied().fold(Count::default(), Count::plus);
            if value.is_exact {
                // Copies of it may follow.
                let change = &mut changes[written + 1];
                *change = change.plus(left.minus(counted));
                counted = left;
            }
            for (last, gone) in ends {
                left = left.minus(gone);
                let change = &mut changes[(last + 1).min(steps + 1)];
                *change = change.plus(left.minus(counted));
                counted = left;
            }
        }
        let (mut alive, mut most) = (Count::default(), 0);
        for (step, operator) in self.sequence.operators().iter().enumerate() {
            alive = alive.plus(changes[step]);
            let saved = self.saved(step, operator, |last| last == step);
            most = most.max(alive.plus(self.workspace(operator)).minus(saved).most());
        }
        most
    }

    /// The most bytes that are needed while an operator runs, on several streams: the values written before it or by
    /// it, and used by it or after it. `None` if there are too many values and operators.
    pub(super) fn most_at_operators(&self, clocks: &OperatorClocks) -> Option<i128> {
        let steps = self.sequence.operators().len();
        let written: Vec<(usize, &Value)> =
            self.of.iter().enumerate().filter(|(_, value)| value.written.is_some()).collect();
        if written.len().saturating_mul(steps) > MAX_PAIRS {
            return None;
        }
        let mut most = 0;
        for (step, operator) in self.sequence.operators().iter().enumerate() {
            let is_before = |first: usize| first == step || clocks.is_before(first, step);
            let is_after =
                |then: usize| then == steps || then == step || clocks.is_before(step, then);
            let mut alive = Count::default();
            for &(at, value) in &written {
                let Some(first) = value.written else { continue };
                if !(self.is_supplied(at) || is_before(first)) {
                    continue;
                }
                let is_written = first == step && !self.is_supplied(at);
                let is_used = || value.steps.iter().any(|&then| is_after(then));
                let count = if is_written || value.uses.is_empty() && is_used() {
                    self.count(at, value.size)
                } else if value.uses.is_empty() {
                    Count::default()
                } else {
                    self.needed(at, is_after)
                };
                alive = alive.plus(count);
            }
            let saved = self.saved(step, operator, |last| last != steps);
            most = most.max(alive.plus(self.workspace(operator)).minus(saved).most());
        }
        Some(most)
    }

    pub(super) fn is_supplied(&self, value: usize) -> bool {
        !matches!(self.sequence.tensors()[value].origin, Origin::Output { .. })
    }

    pub(super) fn pieces(&self, tensor: TensorId) -> &[Piece] {
        &self.pieces.of[tensor.index()]
    }

    pub(super) fn size(&self, tensor: TensorId) -> Bytes {
        self.sequence.tensor(tensor).size.unwrap_or(0)
    }

    /// The cells that a run of a value's bytes takes, in bytes.
    pub(super) fn counted(&self, value: usize, bytes: Bytes) -> Bytes {
        Bytes::try_from(self.count(value, bytes).cells).unwrap_or(Bytes::MAX)
    }

    /// Returns whether a value may begin at an unaligned offset or share a cell with another.
    pub(super) fn is_exact(&self, value: usize) -> bool {
        self.of[value].is_exact
    }
}

impl Value {
    /// The runs of its bytes, each with the last step that uses them.
    fn runs(&self) -> Vec<Run> {
        let whole = (0..self.size, self.last);
        match (self.written, self.is_whole) {
            (None, _) => Vec::new(),
            (_, true) if self.uses.is_empty() => vec![whole],
            (_, true) => self.cut(runs(self.uses.iter().chain([&whole]))),
            (_, false) => self.cut(runs(&self.uses)),
        }
    }

    fn cut(&self, runs: Vec<Run>) -> Vec<Run> {
        let places = self.uses.iter().flat_map(|(bytes, _)| [bytes.start, bytes.end]);
        cut(runs, places.filter(|_| self.is_exact))
    }
}
