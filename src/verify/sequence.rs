//! A plan against its operator sequence: tensors, their lifetimes counted from the operators anew.
//!
//! A *content* is what an operator writes once: the output itself and the views that lie where it
//! lies. It must stay untouched from the step that writes it to the last step that reads any of
//! them. Chunks do not occur here.

use std::borrow::Cow;

use crate::{
    Bytes, OpSequence, Plan, Step,
    sequence::{Dependency, Origin},
    verify::{
        Violation,
        places::{self, Place},
        sweep::{Rectangle, overlaps},
    },
};

pub(super) fn check(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut violations = Vec::new();
    let places = places::of_tensors(sequence, plan, &mut violations);
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

/// A content in the pool, under the tensor that was written.
#[derive(Clone, Debug)]
struct Content {
    /// When it needs its bytes for itself.
    begin: Step,
    end: Step,
    low: Bytes,
    high: Bytes,
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
        self.sequence.tensors()[tensor].size.unwrap_or(0)
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
        let mut overwritten = None;
        match dependency {
            Dependency::Fresh => {}
            Dependency::Reads { input, offset } => {
                if self.places[tensor] == self.places[input.index()].moved(*offset) {
                    self.content_of[tensor] = self.content_of[input.index()];
                    self.touch(tensor, step);
                    return;
                }
            }
            Dependency::Overwrites(overwrites) => {
                for overwrite in overwrites {
                    let input = overwrite.input.index();
                    let expected = self.places[input].moved(overwrite.offset);
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
                // An update of a view in place is one of what it shows.
                let variable = self.content_of[overwrite.input.index()];
                if state[variable] && tensors[output.index()].size == tensors[variable].size {
                    state[variable] = false;
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
        for workspace in places::workspaces(self.sequence, self.plan, &mut self.violations) {
            let begin = workspace.step as Step;
            rectangles.push(Rectangle {
                name: Cow::Owned(workspace.name),
                begin,
                end: begin + 1,
                low: workspace.low,
                high: workspace.high,
            });
        }
        let found = overlaps(&rectangles);
        self.violations.extend(found);
    }
}
