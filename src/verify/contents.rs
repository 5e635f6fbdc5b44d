//! The memory that a sequence needs, counted only from its operators and the places of its tensors.
//!
//! A *content* is what an operator writes once: the output itself and the views in the same place.
//! It must stay untouched from the step that writes it to the last step that reads any of them.
//! Chunks play no part here.

use std::ops::Range;

use crate::{
    Bytes, OpSequence, Plan, Step,
    sequence::{Dependency, OperatorNode, Origin, Overwrite, TensorId},
    verify::{
        Violation,
        gathered::Gathered,
        places::{self, Interval, Memory, Place},
        sharing::{Declared, Sharing},
    },
};

/// The bytes that a content occupies, with its lifetime.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) memory: Memory,
    /// The step of the operator that writes it; 0 if it is supplied.
    pub(super) written: Step,
    /// The first step in which it has its bytes to itself: one later if it overwrites another
    /// content.
    pub(super) begin: Step,
    /// The last step that reads it, plus 1.
    pub(super) end: Step,
    pub(super) low: Bytes,
    /// The byte after the last, padding included.
    pub(super) high: Bytes,
    /// The content that it is written over, identified by the tensor written there.
    pub(super) overwrites: Option<usize>,
    /// True if it must survive the last step.
    pub(super) kept: bool,
}

impl Content {
    /// The bytes of an overwriter outside the content that it overwrites. It needs them from its first step
    /// on.
    pub(super) fn outside(&self, old: &Self) -> impl Iterator<Item = Range<Bytes>> {
        let below = self.low..self.high.min(old.low);
        let above = self.low.max(old.high)..self.high;
        [below, above].into_iter().filter(|bytes| !bytes.is_empty())
    }
}

/// All contents of a sequence.
pub(super) struct Contents {
    /// The tensor whose content each tensor shows: itself unless it is a view in place.
    pub(super) shown: Vec<usize>,
    /// The content of each tensor that was written.
    pub(super) of: Vec<Option<Content>>,
    /// The bytes that outputs gather in place.
    pub(super) gathered: Gathered,
}

/// Counts the contents. Outputs that lie where their operators may not write are violations.
pub(super) fn count(
    sequence: &OpSequence,
    plan: &Plan,
    places: &[Place],
    violations: &mut Vec<Violation>,
) -> Contents {
    let tensors = sequence.tensors().len();
    let contents = Contents {
        shown: (0..tensors).collect(),
        of: vec![None; tensors],
        gathered: Gathered::none(tensors),
    };
    let (is_part, viewed) = (vec![false; tensors], places::viewed(sequence));
    let mut counter = Counter { sequence, plan, places, contents, is_part, viewed, violations };
    counter.walk();
    counter.check_alignment();
    counter.keep_to_the_end();
    counter.contents
}

struct Counter<'a> {
    sequence: &'a OpSequence,
    plan: &'a Plan,
    places: &'a [Place],
    contents: Contents,
    /// By written tensor: true if an output gathers it in place.
    is_part: Vec<bool>,
    /// By tensor: the tensor that it is a view of, through other views, wherever the plan puts it.
    viewed: Vec<usize>,
    violations: &'a mut Vec<Violation>,
}

impl<'a> Counter<'a> {
    fn name(&self, tensor: usize) -> String {
        self.sequence.tensors()[tensor].name.to_string()
    }

    /// Returns the size of a tensor in bytes. A weight of unknown size may have any number.
    fn size(&self, tensor: usize) -> Bytes {
        self.sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX)
    }

    /// Walks over the operators: reads extend contents, outputs begin them.
    fn walk(&mut self) {
        for (at, tensor) in self.sequence.tensors().iter().enumerate() {
            if !matches!(tensor.origin, Origin::Output { .. }) {
                self.begin(at, 0, None);
            }
        }
        let sequence = self.sequence;
        for (step, operator) in (0..).zip(sequence.operators()) {
            for input in &operator.inputs {
                self.touch(input.index(), step);
            }
            let mut sharing = None;
            for output in &operator.outputs {
                self.produce(output.index(), step, operator, &mut sharing);
            }
        }
    }

    /// Records that a content is read in a step.
    fn touch(&mut self, tensor: usize, step: Step) {
        if let Some(content) = &mut self.contents.of[self.contents.shown[tensor]] {
            content.end = content.end.max(step + 1);
        }
    }

    fn begin(&mut self, tensor: usize, step: Step, over: Option<Declared>) {
        let size = self.size(tensor);
        let Some(Interval { memory, low, high }) = self.places[tensor].interval(size) else {
            return;
        };
        let padding = if memory == Memory::Pool { self.plan.padding } else { 0 };
        let high = high.saturating_add(padding);
        // An output shares the bytes of the content that it overwrites in this step. In this step
        // they count for that content; if it lives longer, the two overlap. Only a partial overlap
        // extends beyond it.
        let overwrites = over.and_then(|over| {
            let shown = self.contents.shown[over.input];
            let old = self.contents.of[shown].as_ref().filter(|old| old.memory == memory)?;
            let shares = if over.is_overlap {
                // Padding alone is not written over it.
                low < old.high && old.low < low.saturating_add(size)
            } else {
                old.low <= low && high <= old.high
            };
            shares.then_some(shown)
        });
        if memory == Memory::Pool && self.sequence.tensors()[tensor].size.is_none() {
            let pool_size = self.plan.pool_size;
            let chunk = self.name(tensor);
            self.violations.push(Violation::OutsideThePool { chunk, offset: low, size, pool_size });
        }
        let begin = if overwrites.is_some() { step + 1 } else { step };
        self.contents.of[tensor] = Some(Content {
            memory,
            written: step,
            begin,
            end: step + 1,
            low,
            high,
            overwrites,
            kept: false,
        });
    }

    /// Checks the alignment of contents that neither overwrite another nor lie inside one.
    fn check_alignment(&mut self) {
        let alignment = self.plan.alignment;
        for (tensor, content) in self.contents.of.iter().enumerate() {
            let Some(Content { memory: Memory::Pool, low, overwrites: None, .. }) = *content else {
                continue;
            };
            if low % alignment.max(1) != 0 && !self.is_part[tensor] {
                let chunk = self.name(tensor);
                self.violations.push(Violation::Misaligned { chunk, offset: low, alignment });
            }
        }
    }

    /// Records the inputs that an output gathers in place.
    fn gather(&mut self, tensor: usize) {
        let found = Gathered::in_place(self.sequence, self.places, tensor);
        let mut from = Vec::with_capacity(found.len());
        for (input, interval) in found {
            let shown = self.contents.shown[input];
            self.is_part[shown] = true;
            from.push((interval, shown));
        }
        self.contents.gathered.gather(tensor, from);
    }

    /// Records that an operator writes an output or passes on a view.
    fn produce(
        &mut self,
        tensor: usize,
        step: Step,
        operator: &OperatorNode,
        sharing: &mut Option<Sharing<'a>>,
    ) {
        let sequence = self.sequence;
        let Origin::Output { dependency, .. } = &sequence.tensors()[tensor].origin else {
            return;
        };
        let mut overwritten = None;
        match dependency {
            Dependency::Fresh => {}
            Dependency::Gathers(_) => self.gather(tensor),
            Dependency::Reads { input, offset, .. } => {
                if self.places[tensor].is_at(self.places[input.index()], *offset) {
                    self.contents.shown[tensor] = self.contents.shown[input.index()];
                    self.touch(tensor, step);
                    return;
                }
            }
            Dependency::Overwrites(overwrites) => {
                overwritten = self.overwritten(tensor, overwrites, operator, sharing);
            }
        }
        if let (Place::Supplied(supplied, offset), None) = (self.places[tensor], overwritten) {
            self.violations.push(Violation::NotSupplied {
                tensor: self.name(tensor),
                supplied: self.name(supplied.index()),
                offset,
            });
        }
        self.begin(tensor, step, overwritten);
    }

    /// Returns the input that an output is declared to be written over, if it lies there. Other
    /// tensors of the operator are not declared; one that shares bytes with the output is a
    /// violation, unless the output may be written over another input in the same place.
    fn overwritten(
        &mut self,
        tensor: usize,
        overwrites: &[Overwrite<TensorId>],
        operator: &OperatorNode,
        sharing: &mut Option<Sharing<'a>>,
    ) -> Option<Declared> {
        let mut declared = Vec::new();
        for overwrite in overwrites {
            let &Overwrite { input, below, required, .. } = overwrite;
            let expected = self.places[input.index()];
            let viewed = self.viewed[input.index()];
            // The update of a copy is no update of the tensor that it is a copy of.
            let is_copied =
                required && self.contents.shown[input.index()] != self.contents.shown[viewed];
            if is_copied && self.size(tensor) > 0 {
                self.violations.push(Violation::RequiredOverwriteMissing {
                    overwriter: self.name(tensor),
                    overwritten: self.name(viewed),
                });
            }
            if self.places[tensor].is_over(expected, overwrite) {
                if required || matches!(expected, Place::Pool(_)) {
                    declared.push(Declared { input: input.index(), is_overlap: below > 0 });
                }
            } else if required && self.size(tensor) > 0 {
                self.violations.push(Violation::RequiredOverwriteMissing {
                    overwriter: self.name(tensor),
                    overwritten: self.name(input.index()),
                });
            }
        }
        let &first = declared.first()?;
        let sharing =
            sharing.get_or_insert_with(|| Sharing::of(self.sequence, operator, self.places));
        let allowed = declared.iter().copied().find(|&one| sharing.allows(tensor, one));
        if allowed.is_none()
            && let Some((other, Interval { low, high, .. })) =
                sharing.first_in_the_way(tensor, first)
        {
            self.violations.push(Violation::OverwriteOfAlias {
                overwriter: self.name(tensor),
                overwritten: self.name(first.input),
                other: self.name(other),
                low,
                high,
            });
        }
        Some(allowed.unwrap_or(first))
    }

    /// Keeps graph outputs and the state of variables (weights, or the updates that replace them)
    /// to the end.
    fn keep_to_the_end(&mut self) {
        let steps = self.sequence.operators().len() as Step;
        let tensors = self.sequence.tensors();
        let mut state: Vec<bool> =
            tensors.iter().map(|tensor| tensor.origin == Origin::Weight).collect();
        for output in self.sequence.operators().iter().flat_map(|operator| &operator.outputs) {
            let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
                &tensors[output.index()].origin
            else {
                continue;
            };
            for overwrite in overwrites.iter().filter(|overwrite| overwrite.required) {
                // An update of a view in place updates the tensor that the view shows.
                let variable = self.contents.shown[overwrite.input.index()];
                if state[variable] && tensors[output.index()].size == tensors[variable].size {
                    state[variable] = false;
                    state[output.index()] = true;
                }
            }
        }
        let in_pool = |&at: &usize| matches!(self.places[at], Place::Pool(_));
        let kept = (0..tensors.len()).filter(|&at| state[at]).filter(in_pool);
        for at in kept.chain(self.sequence.outputs().iter().map(|output| output.index())) {
            if let Some(content) = &mut self.contents.of[self.contents.shown[at]] {
                content.end = content.end.max(steps);
                content.kept = true;
            }
        }
    }
}
