//! A plan against its operator sequence: tensors, their lifetimes counted from the operators anew.
//!
//! A *content* is what an operator writes once: the output itself and the views that lie where it
//! lies. It must stay untouched from the step that writes it to the last step that reads any of
//! them. Chunks do not occur here.

use std::{borrow::Cow, collections::HashMap};

use crate::{
    Bytes, OpSequence, Plan, Step, TensorPlace,
    sequence::{Dependency, Origin, TensorId},
    verify::{
        Field, Violation,
        sweep::{Rectangle, overlaps},
    },
};

pub(super) fn check(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut violations = Vec::new();
    let places = places(sequence, plan, &mut violations);
    let mut checker = Checker {
        sequence,
        plan,
        places,
        content_of: (0..sequence.tensors().len()).collect(),
        contents: vec![None; sequence.tensors().len()],
        violations,
    };
    checker.walk();
    checker.keep_to_the_end();
    checker.check_workspaces_and_overlaps();
    checker.violations
}

/// Where a tensor lies, as the plan says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// In the pool, at this offset.
    Pool(Bytes),
    /// In a supplied tensor, at this offset.
    Supplied(TensorId, Bytes),
    Nowhere,
}

/// A content in the pool, under the tensor that was written.
#[derive(Clone, Debug)]
struct Content {
    /// When it needs its bytes for itself.
    begin: Step,
    end: Step,
    low: Bytes,
    high: Bytes,
}

/// Rule 1 for tensors: each is in the plan once, with its size, inside its chunk.
fn places(sequence: &OpSequence, plan: &Plan, violations: &mut Vec<Violation>) -> Vec<Place> {
    let ids: HashMap<&str, usize> =
        sequence.tensors().iter().enumerate().map(|(at, tensor)| (&*tensor.name, at)).collect();
    let mut places = vec![None; sequence.tensors().len()];
    for planned in &plan.tensors {
        let name = || planned.name.to_string();
        let Some(&at) = ids.get(&*planned.name) else {
            violations.push(Violation::Unknown { name: name() });
            continue;
        };
        let place = match &planned.place {
            TensorPlace::Pool { chunk, offset } => {
                let chunk = &plan.chunks[*chunk];
                let end = |offset: Bytes, size: Bytes| offset.saturating_add(size);
                if *offset < chunk.offset
                    || end(*offset, planned.size) > end(chunk.offset, chunk.size)
                {
                    violations.push(Violation::TensorOutsideChunk {
                        tensor: name(),
                        chunk: chunk.name.to_string(),
                    });
                }
                Place::Pool(*offset)
            }
            TensorPlace::Supplied { tensor, offset } => {
                let supplied = ids.get(&**tensor);
                if supplied.is_none() {
                    violations.push(Violation::Unknown { name: tensor.to_string() });
                }
                supplied.map_or(Place::Nowhere, |&supplied| Place::Supplied(id(supplied), *offset))
            }
            TensorPlace::Nowhere => Place::Nowhere,
        };
        if places[at].replace(place).is_some() {
            violations.push(Violation::Repeated { name: name() });
        }
        if let Some(expected) = sequence.tensors()[at].size
            && expected != planned.size
        {
            let found = planned.size;
            violations.push(Violation::Changed {
                name: name(),
                field: Field::Size,
                expected,
                found,
            });
        }
    }
    let mut result = Vec::with_capacity(places.len());
    for ((at, place), tensor) in places.into_iter().enumerate().zip(sequence.tensors()) {
        let produced = matches!(tensor.origin, Origin::Output { .. });
        let needs_bytes = produced && tensor.size != Some(0);
        result.push(match place {
            None | Some(Place::Nowhere) if needs_bytes => {
                violations.push(Violation::Missing { name: tensor.name.to_string() });
                Place::Nowhere
            }
            None if produced => Place::Nowhere,
            None => Place::Supplied(id(at), 0),
            Some(place) => place,
        });
    }
    result
}

fn id(at: usize) -> TensorId {
    TensorId(u32::try_from(at).unwrap_or(u32::MAX))
}

struct Checker<'a> {
    sequence: &'a OpSequence,
    plan: &'a Plan,
    places: Vec<Place>,
    /// The tensor whose content a tensor shows: itself unless it is a view in place.
    content_of: Vec<usize>,
    /// By tensor that was written.
    contents: Vec<Option<Content>>,
    violations: Vec<Violation>,
}

impl Checker<'_> {
    fn name(&self, tensor: usize) -> String {
        self.sequence.tensors()[tensor].name.to_string()
    }

    fn size(&self, tensor: usize) -> Bytes {
        match self.sequence.tensors()[tensor].size {
            Some(size) if size > 0 => size,
            _ => 0,
        }
    }

    /// Walks the operators: reads prolong contents, outputs begin them.
    fn walk(&mut self) {
        for (at, tensor) in self.sequence.tensors().iter().enumerate() {
            if !matches!(tensor.origin, Origin::Output { .. }) {
                self.begin(at, 0, None);
            }
        }
        for (step, operator) in (0..).zip(self.sequence.operators()) {
            for input in &operator.inputs {
                self.touch(input.index(), step);
            }
            for output in &operator.outputs {
                self.produce(output.index(), step);
            }
        }
    }

    /// A content is read in a step.
    fn touch(&mut self, tensor: usize, step: Step) {
        if let Some(content) = &mut self.contents[self.content_of[tensor]] {
            content.end = content.end.max(step + 1);
        }
    }

    fn begin(&mut self, tensor: usize, step: Step, overwritten: Option<usize>) {
        let Place::Pool(low) = self.places[tensor] else { return };
        let size = self.size(tensor);
        if size == 0 {
            return;
        }
        let high = low.saturating_add(size).saturating_add(self.plan.padding);
        // Inside the bytes of the content that it overwrites, it shares them in this step. That
        // content guards them until then; if it lives on, the two overlap.
        let shares = overwritten
            .and_then(|overwritten| self.contents[self.content_of[overwritten]].as_ref())
            .is_some_and(|old| old.low <= low && high <= old.high);
        if !shares && low % self.plan.alignment.max(1) != 0 {
            self.violations.push(Violation::Misaligned {
                chunk: self.name(tensor),
                offset: low,
                alignment: self.plan.alignment,
            });
        }
        let begin = if shares { step + 1 } else { step };
        self.contents[tensor] = Some(Content { begin, end: step + 1, low, high });
    }

    /// An operator writes, or passes on, an output.
    fn produce(&mut self, tensor: usize, step: Step) {
        let Origin::Output { dependency, .. } = &self.sequence.tensors()[tensor].origin else {
            return;
        };
        let moved = |place: Place, by: Bytes| match place {
            Place::Pool(offset) => Place::Pool(offset.saturating_add(by)),
            Place::Supplied(supplied, offset) => {
                Place::Supplied(supplied, offset.saturating_add(by))
            }
            Place::Nowhere => Place::Nowhere,
        };
        let mut overwritten = None;
        match dependency {
            Dependency::Fresh => {}
            Dependency::Reads { input, offset } => {
                if self.places[tensor] == moved(self.places[input.index()], *offset) {
                    self.content_of[tensor] = self.content_of[input.index()];
                    self.touch(tensor, step);
                    return;
                }
            }
            Dependency::Overwrites(overwrites) => {
                for overwrite in overwrites {
                    let input = overwrite.input.index();
                    let expected = moved(self.places[input], overwrite.offset);
                    if self.places[tensor] == expected && expected != Place::Nowhere {
                        if overwrite.required || matches!(expected, Place::Pool(_)) {
                            overwritten = Some(input);
                        }
                    } else if overwrite.required && self.size(tensor) > 0 {
                        self.violations.push(Violation::RequiredOverwriteMissing {
                            overwriter: self.name(tensor),
                            overwritten: self.name(input),
                        });
                    }
                }
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

    /// Graph outputs, and the state of variables: weights, or what was required to replace them.
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
                let whole = tensors[output.index()].size == tensors[overwrite.input.index()].size;
                if state[overwrite.input.index()] && whole {
                    state[overwrite.input.index()] = false;
                    state[output.index()] = true;
                }
            }
        }
        let kept = (0..tensors.len()).filter(|&at| state[at]);
        for at in kept.chain(self.sequence.outputs().iter().map(|output| output.index())) {
            if let Some(content) = &mut self.contents[self.content_of[at]] {
                content.end = content.end.max(steps);
            }
        }
    }

    /// Workspaces are chunks of their operator's step; then rule 2 for everything in the pool.
    fn check_workspaces_and_overlaps(&mut self) {
        let mut rectangles: Vec<Rectangle<'_>> = self
            .contents
            .iter()
            .enumerate()
            .filter_map(|(at, content)| {
                let Content { begin, end, low, high } = content.clone()?;
                let name = Cow::Borrowed(&*self.sequence.tensors()[at].name);
                Some(Rectangle { name, begin, end, low, high })
            })
            .collect();
        let chunks: HashMap<(&str, Step), usize> = self
            .plan
            .chunks
            .iter()
            .enumerate()
            .map(|(at, chunk)| ((&*chunk.name, chunk.begin), at))
            .collect();
        for (step, operator) in (0..).zip(self.sequence.operators()) {
            if operator.workspace == 0 {
                continue;
            }
            let place = usize::try_from(step).unwrap_or(usize::MAX);
            let name = format!("{}.workspace", self.sequence.operator_name(place));
            let planned = chunks.get(&(&*name, step)).map(|&at| &self.plan.chunks[at]);
            match planned.filter(|chunk| chunk.size >= operator.workspace) {
                None => self.violations.push(Violation::Missing { name }),
                Some(chunk) => rectangles.push(Rectangle {
                    name: Cow::Owned(name),
                    begin: step,
                    end: step + 1,
                    low: chunk.offset,
                    high: chunk.offset.saturating_add(operator.workspace),
                }),
            }
        }
        let found = overlaps(&rectangles);
        self.violations.extend(found);
    }
}
