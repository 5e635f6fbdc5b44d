//! The reasons why chunks are alive at the peak although the operator of the peak step does not use them: an operator
//! that reads them later, or that they are results.

use std::collections::{HashMap, HashSet};

use crate::{
    OpSequence, Plan, Step,
    plan::TensorPlace,
    report::{printable, short, times::Times},
    sequence::TensorId,
};

/// The reason why a chunk is alive until its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason<'a> {
    /// The operator of this step reads it, by this view if it does not read the chunk's first tensor.
    Read { step: Step, tensor: &'a str, is_view: bool },
    /// This tensor is a result of the sequence.
    Result { tensor: &'a str },
}

impl Reason<'_> {
    /// The reason as a sentence: `t is kept for step 9 (add), which reads its view a.`
    pub(super) fn sentence(&self, plan: &Plan, chunk: usize, times: Times<'_>) -> String {
        let name = short(&plan.chunks[chunk].name);
        match self {
            Self::Read { step, tensor, is_view: true } => {
                let (step, tensor) = (times.short_name(*step), short(tensor));
                format!("{name} is kept for {step}, which reads its view {tensor}.")
            }
            Self::Read { step, .. } => {
                format!("{name} is kept for {}, which reads it.", times.short_name(*step))
            }
            Self::Result { tensor } if short(tensor) == name => {
                format!("{name} is kept to the end: it is a result.")
            }
            Self::Result { tensor } => {
                format!("{name} is kept to the end: {} in it is a result.", short(tensor))
            }
        }
    }
}

/// The reasons of chunks as sentences. Chunks that the same operator reads share one sentence.
pub(super) fn sentences<'a>(
    plan: &Plan,
    found: impl Iterator<Item = (usize, Reason<'a>)>,
    times: Times<'_>,
) -> Vec<String> {
    let mut groups: Vec<(Reason<'a>, Vec<usize>)> = Vec::new();
    for (chunk, reason) in found {
        let read_in = |reason: &Reason<'_>| match reason {
            Reason::Read { step, is_view: false, .. } => Some(*step),
            _ => None,
        };
        let step = read_in(&reason);
        match groups.iter_mut().find(|(other, _)| step.is_some() && read_in(other) == step) {
            Some((_, chunks)) => chunks.push(chunk),
            None => groups.push((reason, vec![chunk])),
        }
    }
    let sentence = |(reason, chunks): (Reason<'a>, Vec<usize>)| match (&chunks[..], reason) {
        (_, Reason::Read { step, .. }) if chunks.len() > 1 => {
            let (names, step) = (names(plan, &chunks), times.short_name(step));
            format!("{names} are kept for {step}, which reads them.")
        }
        (_, reason) => reason.sentence(plan, chunks[0], times),
    };
    groups.into_iter().map(sentence).collect()
}

/// The names of chunks, shortened where they can still be told apart.
fn names(plan: &Plan, chunks: &[usize]) -> String {
    let full = chunks.iter().map(|&chunk| &*plan.chunks[chunk].name);
    let shortened: Vec<String> = full.clone().map(short).collect();
    let is_told_apart = shortened.iter().collect::<HashSet<_>>().len() == shortened.len();
    let mut names = if is_told_apart {
        shortened
    } else {
        full.map(|name| printable(name).into_owned()).collect()
    };
    let last = names.pop().unwrap_or_default();
    format!("{} and {last}", names.join(", "))
}

/// The tensors of a plan by their places in it.
pub(super) struct Reasons<'a> {
    plan: &'a Plan,
    steps: Option<&'a OpSequence>,
    /// By tensor of the sequence: its chunk, and whether it is the chunk's first tensor.
    places: HashMap<TensorId, (usize, bool)>,
}

impl<'a> Reasons<'a> {
    /// Without operators there are no reasons.
    pub(super) fn of(plan: &'a Plan, times: Times<'a>) -> Self {
        let steps = times.steps();
        let mut places = HashMap::new();
        let mut seen = vec![false; plan.chunks.len()];
        for tensor in &plan.tensors {
            let TensorPlace::Pool { chunk, .. } = tensor.place else { continue };
            let (Some(sequence), Some(seen)) = (steps, seen.get_mut(chunk)) else { continue };
            let is_first = !std::mem::replace(seen, true);
            if let Some(id) = sequence.tensor_id(&tensor.name) {
                places.insert(id, (chunk, is_first));
            }
        }
        Self { plan, steps, places }
    }

    /// Returns whether the operator of a step reads or makes a tensor in the chunk.
    pub(super) fn is_used(&self, chunk: usize, step: Step) -> bool {
        let node = self.steps.zip(usize::try_from(step).ok());
        let node = node.and_then(|(sequence, at)| sequence.operators().get(at));
        let ids = node.into_iter().flat_map(|node| node.inputs.iter().chain(&node.outputs));
        ids.filter_map(|id| self.places.get(id)).any(|&(place, _)| place == chunk)
    }

    /// The reason why a chunk is alive in its last step, if an operator reads it there or it is a result.
    pub(super) fn last(&self, chunk: usize) -> Option<Reason<'a>> {
        let sequence = self.steps?;
        let step = self.plan.chunks.get(chunk)?.end.checked_sub(1)?;
        let here = |id: &&TensorId| self.places.get(*id).is_some_and(|&(place, _)| place == chunk);
        if let Some(id) = sequence.outputs().iter().find(here) {
            return Some(Reason::Result { tensor: &sequence.tensor(*id).name });
        }
        let node = sequence.operators().get(usize::try_from(step).ok()?)?;
        let id = node.inputs.iter().find(here)?;
        let is_view = !self.places[id].1;
        Some(Reason::Read { step, tensor: &sequence.tensor(*id).name, is_view })
    }
}
