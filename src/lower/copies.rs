//! Views that cannot be views and are copied: a required overwrite destroys their bytes while they are still needed, or
//! they must lie inside an output although their base does not.

use std::collections::HashMap;

use crate::{
    SequenceError,
    lower::{
        LoweringOptions, clocks,
        place::views_with_updates,
        ties::{Target, is_in_pool, root, targets},
    },
    sequence::{Dependency, OpSequence, TensorId, Tie},
    sets::distinct,
};

/// A required overwrite of bytes of a tensor.
struct Update {
    step: usize,
    target: Target,
}

/// Lowers a sequence with all views or, if a required overwrite or gather makes that impossible, with copies of some.
/// Also returns the copied views.
pub(super) fn lower<T>(
    sequence: &OpSequence,
    options: LoweringOptions,
    lower: impl Fn(&OpSequence) -> Result<T, SequenceError>,
) -> Result<(T, Vec<Tie>), SequenceError> {
    let error = match lower(sequence) {
        Ok(lowered) => return Ok((lowered, Vec::new())),
        Err(error) => error,
    };
    let mut copied = Vec::new();
    for needed in [destroyed, gathered] {
        let more = needed(sequence, options);
        if !options.views || more.is_empty() {
            continue;
        }
        copied.extend(more);
        if let Ok(lowered) = lower(&sequence.without(&copied)) {
            return Ok((lowered, copied));
        }
    }
    Err(error)
}

/// The views to copy so that outputs hold what they must. Of several views that lead to the same bytes, the smallest is
/// copied, and the last of equal ones.
fn gathered(sequence: &OpSequence, options: LoweringOptions) -> Vec<Tie> {
    let is_updated = views_with_updates(sequence);
    let size = |tensor: TensorId| sequence.tensor(tensor).size;
    let required = sequence.gathers().filter(|gather| gather.required);
    let held: Vec<TensorId> =
        required.map(|gather| gather.input).filter(|&input| size(input) != Some(0)).collect();
    let mut times: HashMap<TensorId, usize> = HashMap::new();
    for &input in &held {
        *times.entry(root(sequence, input)).or_default() += 1;
    }
    let mut copied = Vec::new();
    for input in held {
        let (mut views, mut root) = (Vec::new(), input);
        while let Dependency::Reads { input, required, .. } = sequence.dependency(root) {
            if !required && !is_updated[root.index()] {
                views.push(root);
            }
            root = *input;
        }
        let is_possible = size(root) == size(input)
            && is_in_pool(sequence, root, options)
            && times.get(&root) == Some(&1);
        let smallest = views.into_iter().min_by_key(|&view| size(view));
        copied.extend(smallest.filter(|_| !is_possible));
    }
    distinct(copied).into_iter().map(|output| Tie { output, place: 0 }).collect()
}

/// The views to copy so that required overwrites destroy nothing that is still needed, as far as copies can achieve
/// that. Of several views that lead to the same bytes, the smallest is copied, and the first of equal ones.
fn destroyed(sequence: &OpSequence, options: LoweringOptions) -> Vec<Tie> {
    let mut updates: HashMap<TensorId, Vec<Update>> = HashMap::new();
    let required = options.inplace(false);
    for (step, operator) in sequence.operators().iter().enumerate() {
        for target in targets(sequence, operator, required) {
            updates.entry(target.root).or_default().push(Update { step, target });
        }
    }
    if updates.is_empty() {
        return Vec::new();
    }
    let size = |tensor: TensorId| sequence.tensor(tensor).size.unwrap_or(0);
    let producer = |tensor: TensorId| sequence.tensor(tensor).producer();
    let is_updated = views_with_updates(sequence);
    let clocks = clocks::operators(sequence);
    let uses = uses(sequence);
    let mut is_copied = vec![false; sequence.tensors().len()];
    let mut copied = Vec::new();
    let outputs = sequence.operators().iter().flat_map(|operator| &operator.outputs);
    for &view in outputs.filter(|&&output| size(output) > 0 && !is_updated[output.index()]) {
        // The views from this one to the tensor whose bytes they show.
        let (mut chain, mut root, mut low) = (Vec::new(), view, 0);
        while let Dependency::Reads { input, offset, required } = sequence.dependency(root)
            && !is_copied[root.index()]
        {
            chain.push((root, *required));
            (root, low) = (*input, offset.saturating_add(low));
        }
        let bytes = low..size(view).saturating_add(low);
        let is_destroyed = |update: &&Update| {
            let written = &update.target.bytes;
            let is_needed = |&used: &usize| {
                if used == update.step {
                    *written != bytes || producer(view) == Some(used)
                } else {
                    used == sequence.operators().len() || !clocks.is_before(used, update.step)
                }
            };
            written.start < bytes.end
                && bytes.start < written.end
                && uses[view.index()].iter().any(is_needed)
        };
        for update in updates.get(&root).into_iter().flatten().filter(is_destroyed) {
            let is_in_time = |step| step == update.step || clocks.is_before(step, update.step);
            // The last one is next to the root.
            let copies = chain.iter().rev().filter(|&&(view, is_required)| {
                let is_held = is_required || is_updated[view.index()];
                !is_held && producer(view).is_some_and(is_in_time)
            });
            if let Some(&(copy, _)) = copies.min_by_key(|&&(view, _)| size(view)) {
                is_copied[copy.index()] = true;
                copied.push(Tie { output: copy, place: 0 });
                break;
            }
        }
    }
    copied
}

/// By tensor: the steps that use its bytes, and the step after the last one if it is a graph output.
fn uses(sequence: &OpSequence) -> Vec<Vec<usize>> {
    let mut uses = vec![Vec::new(); sequence.tensors().len()];
    for (step, operator) in sequence.operators().iter().enumerate() {
        for (tensor, _) in sequence.used_tensors(operator, |_, _| true) {
            uses[tensor.index()].push(step);
        }
    }
    for output in sequence.outputs() {
        uses[output.index()].push(sequence.operators().len());
    }
    uses
}
