//! An operator with each of the [`SHAPE_SAMPLES`]: shapes and elements that follow from guesses of the open
//! sizes and values.

use std::rc::Rc;

use rten_onnx::onnx::DataType;

use crate::import::onnx::{
    infer::{
        open::{Answer, SHAPE_SAMPLES},
        shapes::shapes,
    },
    ops::{fold::Fold, op::Op, row::Row},
    read::fact::{Fact, Sample, Scalar, count},
};

/// The answers of the rules in each shape sample.
#[derive(Default)]
pub(crate) struct ShapeSamples {
    /// The inputs' facts in each shape sample.
    inputs: Vec<Vec<Option<Fact>>>,
    /// The answers by shape sample, then output.
    answers: Vec<Vec<Answer>>,
}

impl ShapeSamples {
    /// Evaluates the rules in each shape sample.
    pub(crate) fn of(op: &Op, row: Option<&Row>) -> Self {
        let inputs: Vec<Vec<Option<Fact>>> =
            (0..SHAPE_SAMPLES).map(|nth| inputs(op, nth)).collect();
        let answer = |inputs: &Vec<Option<Fact>>| {
            if guesses_zero(op, inputs) {
                return Vec::new();
            }
            let op = guessed(op, inputs);
            let dims = shapes(&op, row).unwrap_or_default();
            let most = row.and_then(|row| row.most).and_then(|most| most(&op).ok());
            let most = most.unwrap_or_default();
            let length = dims.len().max(most.len());
            let at = |index: usize| Answer {
                dims: dims.get(index).cloned().flatten(),
                at_most: most.get(index).cloned().flatten(),
            };
            (0..length).map(at).collect()
        };
        let answers = inputs.iter().map(answer).collect();
        Self { inputs, answers }
    }

    /// The answers for an output, by shape sample; empty if nothing is open.
    pub(crate) fn answers(&self, output: usize) -> Vec<Answer> {
        let at = |answers: &Vec<Answer>| answers.get(output).cloned().unwrap_or_default();
        self.answers.iter().map(at).collect()
    }

    /// Returns whether there are answers for an output.
    pub(crate) fn say(&self, output: usize) -> bool {
        self.answers
            .first()
            .and_then(|answers| answers.get(output))
            .is_some_and(|answer| answer.dims.is_some() || answer.at_most.is_some())
    }

    /// Computes the elements of the outputs in each shape sample.
    pub(crate) fn fold(&self, op: &Op, fold: Fold, outputs: &mut [Fact]) {
        let mut folded: Vec<Vec<Fact>> = Vec::with_capacity(self.inputs.len());
        for (nth, inputs) in self.inputs.iter().enumerate() {
            let mut facts: Vec<Fact> = outputs
                .iter()
                .map(|output| Fact { elements: None, ..output.in_sample(nth) })
                .collect();
            fold.apply(&guessed(op, inputs), &mut facts);
            folded.push(facts);
        }
        for (index, output) in outputs.iter_mut().enumerate() {
            if folded.iter().all(|facts| facts[index].elements.is_none()) {
                continue;
            }
            let mut samples = Vec::with_capacity(SHAPE_SAMPLES);
            for facts in &mut folded {
                let Some(sizes) = facts[index].sizes() else { break };
                samples.push(Sample { sizes, elements: facts[index].elements.take() });
            }
            if samples.len() == SHAPE_SAMPLES {
                if index == 0 {
                    self.decide(op, output, &mut samples);
                }
                output.samples = if output.has_value() { Rc::default() } else { samples.into() };
            }
        }
    }

    /// Guesses do not show every value that a comparison or a remainder can have. It is known only
    /// if it is the same for all values of the elements between their guesses.
    fn decide(&self, op: &Op, output: &mut Fact, samples: &mut [Sample]) {
        let compares = matches!(
            op.node.kind(),
            "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual"
        );
        let jumps = compares
            || matches!(op.node.kind(), "Mod" | "And" | "Or" | "Xor" | "Not" | "BitShift")
            || output.element == Some(DataType::BOOL);
        let Some(length) = samples[0].elements.as_ref().map(Vec::len).filter(|_| jumps) else {
            return;
        };
        let mut known = vec![Scalar::Unknown; length];
        for (place, known) in known.iter_mut().enumerate() {
            let before = output.elements.as_ref().and_then(|elements| elements.get(place));
            let apart = || {
                let (a, b) = (self.hull(0, place, length)?, self.hull(1, place, length)?);
                (compares && (a.1 < b.0 || b.1 < a.0)).then_some(())
            };
            let guess = samples[0].elements.as_ref().and_then(|elements| elements.get(place));
            *known = match (before, guess) {
                (Some(before), _) if *before != Scalar::Unknown => *before,
                (_, Some(guess)) if apart().is_some() => *guess,
                _ => Scalar::Unknown,
            };
        }
        for sample in samples {
            let same_length = count_is(&sample.sizes, length);
            sample.elements = Some(known.clone()).filter(|_| same_length);
        }
        if output.sizes().is_some() {
            output.elements = Some(known);
        }
    }

    /// The smallest and the largest value of an input's element in any shape sample.
    fn hull(&self, input: usize, place: usize, length: usize) -> Option<(i64, i64)> {
        let mut hull: Option<(i64, i64)> = None;
        for inputs in &self.inputs {
            let elements = inputs.get(input)?.as_ref()?.elements.as_ref()?;
            let part = if elements.len() == length { &elements[place..=place] } else { elements };
            for element in part {
                let Scalar::Int(value) = *element else { return None };
                let (low, high) = hull.unwrap_or((value, value));
                hull = Some((low.min(value), high.max(value)));
            }
        }
        hull
    }
}

fn count_is(sizes: &[u64], length: usize) -> bool {
    count(sizes) == u64::try_from(length).ok()
}

/// The facts about an operator's inputs in a shape sample.
pub(crate) fn inputs(op: &Op, nth: usize) -> Vec<Option<Fact>> {
    op.inputs.iter().map(|fact| fact.map(|fact| fact.in_sample(nth))).collect()
}

/// The operator with these inputs.
pub(crate) fn guessed<'a, 'f>(op: &Op<'a, '_>, inputs: &'f [Option<Fact>]) -> Op<'a, 'f> {
    let inputs = inputs.iter().map(Option::as_ref).collect();
    Op { node: op.node, inputs, opset: op.opset, guesses: true, fixed: op.fixed }
}

/// Returns whether a guess of 0 means something else: a `Reshape` to size 0 copies a size of its
/// input, which makes no difference if there are no elements.
fn guesses_zero(op: &Op, inputs: &[Option<Fact>]) -> bool {
    let elements = |fact: Option<&Fact>| fact.and_then(|fact| fact.elements.clone());
    let [Some(data), Some(shape), ..] = inputs else { return false };
    let empty = data.sizes().is_some_and(|sizes| sizes.contains(&0));
    let (known, guessed) = (elements(op.input(1)), elements(Some(shape)));
    let is_known =
        |place: usize| known.as_ref().and_then(|known| known.get(place)) == Some(&Scalar::Int(0));
    let mut guessed = guessed.iter().flatten().enumerate();
    op.node.kind() == "Reshape"
        && !empty
        && guessed.any(|(place, element)| *element == Scalar::Int(0) && !is_known(place))
}
