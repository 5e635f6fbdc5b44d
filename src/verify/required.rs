//! Required views and gathers, which no plan may make copies.

use crate::{
    OpSequence,
    sequence::{Dependency, Origin},
    verify::{Violation, places::Place},
};

/// Finds the required views and gathered inputs that do not lie at their places, by the places of all tensors.
pub(super) fn check(sequence: &OpSequence, places: &[Place], violations: &mut Vec<Violation>) {
    let name = |tensor: usize| sequence.tensors()[tensor].name.to_string();
    let is_empty = |tensor: usize| sequence.tensors()[tensor].size == Some(0);
    for (output, tensor) in sequence.tensors().iter().enumerate() {
        let Origin::Output { dependency, .. } = &tensor.origin else { continue };
        match dependency {
            Dependency::Reads { input, offset, required: true } => {
                let input = input.index();
                if !is_empty(output) && !places[output].is_at(places[input], *offset) {
                    let (view, input) = (name(output), name(input));
                    violations.push(Violation::RequiredViewMissing { view, input });
                }
            }
            Dependency::Gathers(gathers) => {
                for gather in gathers.iter().filter(|gather| gather.required) {
                    let input = gather.input.index();
                    if !is_empty(input) && !places[input].is_at(places[output], gather.offset) {
                        let (output, input) = (name(output), name(input));
                        violations.push(Violation::RequiredGatherMissing { output, input });
                    }
                }
            }
            Dependency::Fresh | Dependency::Reads { .. } | Dependency::Overwrites(_) => {}
        }
    }
}
