//! Bodies: the sequences that operators run. Each is planned by itself, before the sequence around
//! it.
//!
//! The pool of a body lies in the workspace of its operator, after copies of the body's inputs. Only
//! one body of an operator runs at a time, so the workspace is as large as its largest body needs.

use std::{borrow::Cow, time::Instant};

use crate::{
    Bytes, OpSequence, Plan, PlanError, PlannedBody, ProblemError, SequenceError, Step,
    search::Limits, sequence::Origin,
};

/// A sequence whose bodies are planned.
pub(super) struct Flattened<'s> {
    /// The sequence without bodies; its workspaces hold their pools and copies.
    pub(super) sequence: Cow<'s, OpSequence>,
    /// The plans, by step and place in the operator's list.
    pub(super) bodies: Vec<PlannedBody>,
}

/// Plans all bodies of a sequence with `plan`, which receives the rest of the limits.
pub(super) fn flatten(
    sequence: &OpSequence,
    limits: Limits,
    plan: impl Fn(&OpSequence, Limits) -> Result<Plan, PlanError>,
) -> Result<Flattened<'_>, PlanError> {
    if !sequence.has_bodies() {
        return Ok(Flattened { sequence: Cow::Borrowed(sequence), bodies: Vec::new() });
    }
    let start = Instant::now();
    let mut bodies = Vec::new();
    let mut rooms: Vec<Bytes> = vec![0; sequence.operators().len()];
    for (step, operator) in sequence.operators().iter().enumerate() {
        for (place, body) in operator.bodies.iter().enumerate() {
            let planned = plan(body, limits.after(start)).map_err(|source| match source {
                // The alignment and the limits are the caller's options, not properties of the body.
                PlanError::Problem(ProblemError::Alignment { .. }) => source,
                source if source.is_stop() => source,
                source => PlanError::Body {
                    operator: sequence.operator_name(step),
                    source: Box::new(source),
                },
            })?;
            let inputs = copies(body, &planned)?;
            // The plan around the body lists them, without the tensors around the body that it uses.
            let planned = Plan { undeclared: Vec::new(), is_sorted: false, ..planned };
            let planned = PlannedBody { step: step as Step, body: place, inputs, plan: planned };
            rooms[step] = rooms[step].max(planned.room());
            bodies.push(planned);
        }
    }
    Ok(Flattened { sequence: sequence.with_rooms(&rooms)?, bodies })
}

/// The bytes of a copy of the inputs of a body, each padded and rounded up to the alignment.
fn copies(body: &OpSequence, plan: &Plan) -> Result<Bytes, SequenceError> {
    let inputs = body.tensors().iter().filter(|tensor| tensor.origin == Origin::Input);
    let mut sum: Bytes = 0;
    for tensor in inputs {
        let size = tensor.size.unwrap_or(0);
        let copy = match size {
            0 => Some(0),
            _ => size
                .checked_add(plan.padding)
                .and_then(|size| size.checked_next_multiple_of(plan.alignment)),
        };
        sum = copy
            .and_then(|copy| sum.checked_add(copy))
            .filter(|sum| sum.checked_add(plan.pool_size).is_some())
            .ok_or_else(|| SequenceError::SizeOverflow { tensor: tensor.name.to_string(), size })?;
    }
    Ok(sum)
}
