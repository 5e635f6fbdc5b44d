//! The memory that a sequence needs, counted only from its operators and the places of its tensors.
//!
//! A *content* is what an operator writes once: the output itself and the views in the same place.
//! Each of its bytes must stay untouched from the step that writes it to the last step that reads this byte: the
//! reader of a view reads only what the view shows. Chunks play no part here.

use std::{collections::HashMap, ops::Range};

use crate::{
    Bytes, OpSequence, Plan, Step,
    sequence::{Dependency, OperatorNode, Origin, Overwrite, TensorId},
    verify::{
        Violation,
        gathered::Gathered,
        places::{self, Interval, Memory, Place, Places},
        ranges::{self, Need},
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
    /// The last step that reads it or some of it, plus 1.
    pub(super) end: Step,
    /// The last step in which all of its bytes are needed, plus 1.
    whole_end: Step,
    pub(super) low: Bytes,
    /// The byte after the last, padding included.
    pub(super) high: Bytes,
    /// The content that it is written over, identified by the tensor written there.
    pub(super) overwrites: Option<usize>,
    /// True if another content is written over it.
    is_overwritten: bool,
    /// True if it must survive the last step.
    pub(super) kept: bool,
}

/// All contents of a sequence.
pub(super) struct Contents {
    /// The tensor whose content each tensor shows: itself unless it is a view in place.
    pub(super) shown: Vec<usize>,
    /// The content of each tensor that was written.
    pub(super) of: Vec<Option<Content>>,
    /// The tensors that must survive the last step.
    pub(super) kept: Vec<usize>,
    /// The ranges of the contents that are not needed as a whole, ascending.
    ranges: HashMap<usize, Vec<Need>>,
    /// The bytes that outputs gather in place.
    pub(super) gathered: Gathered,
}

impl Contents {
    /// The ranges of a content with the step until which each is needed, ascending.
    pub(super) fn needs(&self, tensor: usize) -> impl Iterator<Item = Need> {
        let ranges = self.ranges.get(&tensor).map_or(&[][..], Vec::as_slice);
        let content = self.of[tensor].as_ref().filter(|_| ranges.is_empty());
        let whole = content.map(|one| Need { low: one.low, high: one.high, end: one.end });
        whole.into_iter().chain(ranges.iter().copied())
    }

    /// Returns whether some bytes of a content are needed for longer than others.
    pub(super) fn is_split(&self, tensor: usize) -> bool {
        self.ranges.contains_key(&tensor)
    }

    /// Returns whether some bytes of contents are needed for longer than others.
    pub(super) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// The bytes of an overwriter that the overwritten content does not need in the step that writes the overwriter. In
    /// this step, they already belong to the overwriter alone.
    pub(super) fn outside(&self, content: &Content) -> Vec<Range<Bytes>> {
        let Some(old) = content.overwrites else { return Vec::new() };
        let needs = self.needs(old).filter(|need| need.end > content.written);
        ranges::outside(content.low..content.high, needs.map(|need| need.low..need.high))
    }
}

/// Counts the contents. Outputs that lie where their operators may not write are violations.
pub(super) fn count(
    sequence: &OpSequence,
    plan: &Plan,
    places: &Places,
    violations: &mut Vec<Violation>,
) -> Contents {
    let tensors = sequence.tensors().len();
    let contents = Contents {
        shown: (0..tensors).collect(),
        of: vec![None; tensors],
        kept: Vec::new(),
        ranges: HashMap::new(),
        gathered: Gathered::none(tensors),
    };
    let mut counter = Counter {
        sequence,
        plan,
        places: &places.of,
        chunks: &places.chunks,
        contents,
        is_part: vec![false; tensors],
        viewed: places::viewed(sequence),
        reads: Vec::new(),
        overwritten_again: false,
        violations,
    };
    counter.walk();
    counter.check_alignment();
    counter.check_overwriters();
    counter.keep_to_the_end();
    counter.split();
    counter.contents
}

struct Counter<'a> {
    sequence: &'a OpSequence,
    plan: &'a Plan,
    places: &'a [Place],
    /// By tensor: its chunk in the plan.
    chunks: &'a [Option<usize>],
    contents: Contents,
    /// By written tensor: true if an output gathers it in place.
    is_part: Vec<bool>,
    /// By tensor: the tensor that it is a view of, through other views, wherever the plan puts it.
    viewed: Vec<usize>,
    /// The contents of which an operator reads only some bytes, with these bytes.
    reads: Vec<(usize, Need)>,
    /// True if several outputs may be written over the same bytes.
    overwritten_again: bool,
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
            let only_shown = places::only_shown(sequence, self.places, operator);
            for input in operator.inputs.iter().map(|input| input.index()) {
                self.touch(input, step);
                if only_shown.binary_search(&input).is_err() {
                    self.read(input, step + 1);
                } else {
                    // A view may show none of the bytes.
                    let content = self.contents.of[self.contents.shown[input]].as_ref();
                    let low = content.map_or(0, |content| content.low);
                    let none = Need { low, high: low, end: step + 1 };
                    self.reads.push((self.contents.shown[input], none));
                }
            }
            let mut sharing = None;
            for output in &operator.outputs {
                self.produce(output.index(), step, operator, &mut sharing);
            }
        }
    }

    /// Records that a content is read or shown in a step.
    fn touch(&mut self, tensor: usize, step: Step) {
        if let Some(content) = &mut self.contents.of[self.contents.shown[tensor]] {
            content.end = content.end.max(step + 1);
        }
    }

    /// Records that the bytes of a tensor are needed until a step.
    fn read(&mut self, tensor: usize, end: Step) {
        let shown = self.contents.shown[tensor];
        let sizes = (self.size(tensor), self.size(shown));
        let Some(content) = &mut self.contents.of[shown] else { return };
        if shown == tensor || sizes.0 == sizes.1 {
            content.whole_end = content.whole_end.max(end);
        } else if let Some(Interval { low, high, .. }) = self.places[tensor].interval(sizes.0) {
            // The padding is needed for as long as the last byte is.
            let is_last = high == content.low.saturating_add(sizes.1);
            let high = if is_last { content.high } else { high };
            self.reads.push((shown, Need { low, high, end }));
        }
    }

    /// Splits the contents that are not needed as a whole to their ends.
    fn split(&mut self) {
        let mut reads = std::mem::take(&mut self.reads);
        let of = &self.contents.of;
        let is_partial = |&(shown, _): &(usize, Need)| {
            of[shown].as_ref().is_some_and(|content| content.whole_end < content.end)
        };
        reads.retain(is_partial);
        reads.sort_by_key(|&(shown, _)| shown);
        for reads in reads.chunk_by(|a, b| a.0 == b.0) {
            let shown = reads[0].0;
            let Some(content) = &self.contents.of[shown] else { continue };
            let reads = reads.iter().map(|&(_, need)| need).collect();
            let ranges = ranges::split(&(content.low..content.high), content.whole_end, reads);
            if ranges.iter().any(|need| need.end < content.end) {
                self.contents.ranges.insert(shown, ranges);
            }
        }
    }

    /// Checks that two outputs of one operator share no bytes if they are written over the same content, or over
    /// contents that have bytes in common, even if no operator reads the outputs.
    fn check_overwriters(&mut self) {
        if !self.overwritten_again {
            return;
        }
        let contents = self.contents.of.iter().enumerate();
        let mut over: Vec<(usize, Step, Bytes, usize)> = contents
            .filter_map(|(at, one)| {
                let one = one.as_ref()?;
                let family = self.contents.gathered.representative(one.overwrites?);
                Some((family, one.written, one.low, at))
            })
            .collect();
        over.sort_unstable();
        for alike in over.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let mut highest: Option<(Bytes, usize)> = None;
            for &(_, step, low, at) in alike {
                let high = low.saturating_add(self.size(at));
                if let Some((end, first)) = highest.filter(|&(end, _)| low < end) {
                    let (first, second, high) = (self.name(first), self.name(at), high.min(end));
                    self.violations.push(Violation::Overlap { first, second, step, low, high });
                }
                highest = highest.max(Some((high, at)));
            }
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
                // Padding is not written.
                low < old.high && old.low < low.saturating_add(size)
            } else {
                old.low <= low && high <= old.high
            };
            shares.then_some(shown)
        });
        if let Some(at) = overwrites
            && let Some(old) = self.contents.of[at].as_mut()
        {
            let again = std::mem::replace(&mut old.is_overwritten, true);
            self.overwritten_again |= again || self.contents.gathered.is_shared(at);
        }
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
            whole_end: step + 1,
            low,
            high,
            overwrites,
            is_overwritten: false,
            kept: false,
        });
    }

    /// Returns whether an output that lies where it may be written over an input in the pool is written over it: it
    /// shares bytes with it, or the plan says so. Other bytes of the input's chunk may be over by then, and any output
    /// may lie there.
    fn is_meant(&self, tensor: usize, input: usize) -> bool {
        let interval = |tensor: usize| self.places[tensor].interval(self.size(tensor));
        let shares = || interval(tensor)?.common(&interval(input)?);
        let chunk = self.chunks[tensor].and_then(|chunk| self.plan.chunks.get(chunk));
        let is_linked = chunk.is_some_and(|chunk| chunk.overwrites.is_some());
        matches!(self.places[input], Place::Pool(_)) && (is_linked || shares().is_some())
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
                    self.read(tensor, step + 1);
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
                if required || self.is_meant(tensor, input.index()) {
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
        let places = self.places;
        let in_pool = |&at: &usize| matches!(places[at], Place::Pool(_));
        let kept = (0..tensors.len()).filter(|&at| state[at]).filter(in_pool);
        for at in kept.chain(self.sequence.outputs().iter().map(|output| output.index())) {
            if let Some(content) = &mut self.contents.of[self.contents.shown[at]] {
                content.end = content.end.max(steps);
                content.kept = true;
            }
            self.contents.kept.push(at);
            self.read(at, steps);
        }
    }
}
