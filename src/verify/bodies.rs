//! The sequences that operators run (bodies). Each has a plan of its own, which must be right. The operator's
//! workspace must hold a copy of the body's inputs, followed by the pool of that plan.

use std::{borrow::Cow, collections::HashMap};

use crate::{
    Bytes, OpSequence, Plan, PlannedBody, Step, TensorPlace,
    sequence::Origin,
    verify::{Figure, Violation, captured::Around},
};

/// A check of a sequence and its plan.
pub(super) type Check = fn(&OpSequence, &Plan) -> Vec<Violation>;

/// Rejects bodies in the plan of a problem, which has no operators to run them.
pub(super) fn none(plan: &Plan) -> impl Iterator<Item = Violation> {
    plan.bodies.iter().map(|body| Violation::Unknown {
        name: format!("body {} of operator {}", body.body, body.step),
    })
}

/// Checks the plans of the bodies. Returns the operators without bodies, the bytes that those need
/// added to the workspaces, or `None` if the sum exceeds 64 bits.
pub(super) fn flatten<'s>(
    sequence: &'s OpSequence,
    plan: &Plan,
    check: Check,
    violations: &mut Vec<Violation>,
) -> Option<Cow<'s, OpSequence>> {
    let mut planned: HashMap<(Step, usize), &PlannedBody> = HashMap::new();
    for body in &plan.bodies {
        let operator = usize::try_from(body.step).ok();
        let operator = operator.and_then(|step| sequence.operators().get(step));
        let is_known = operator.is_some_and(|operator| body.body < operator.bodies.len());
        let name = || format!("body {} of operator {}", body.body, body.step);
        if !is_known {
            violations.push(Violation::Unknown { name: name() });
        } else if planned.insert((body.step, body.body), body).is_some() {
            violations.push(Violation::Repeated { name: name() });
        }
    }
    let mut rooms: Vec<Bytes> = vec![0; sequence.operators().len()];
    let around = Around::new(sequence, plan);
    let hosts = sequence.operators().iter().enumerate();
    for (step, operator) in hosts.filter(|(_, operator)| !operator.bodies.is_empty()) {
        let declared = around.of(operator);
        for (place, body) in operator.bodies.iter().enumerate() {
            let name = format!("body {place} of {}", sequence.operator_name(step));
            let Some(planned) = planned.get(&(step as Step, place)) else {
                violations.push(Violation::Missing { name });
                continue;
            };
            let mut found = check_body(body, plan, planned, check);
            found.extend(declared.check(body, &planned.plan));
            violations.extend(found.into_iter().map(|violation| Violation::InBody {
                body: name.clone(),
                violation: Box::new(violation),
            }));
            let room = copies(body, plan).saturating_add(planned.plan.pool_size);
            rooms[step] = rooms[step].max(room);
        }
    }
    let flat = sequence.with_rooms(&rooms).ok();
    if flat.is_none() {
        violations.push(Violation::BodiesTooLarge);
    }
    flat
}

fn check_body(
    body: &OpSequence,
    plan: &Plan,
    planned: &PlannedBody,
    check: Check,
) -> Vec<Violation> {
    // The pool of a body begins at a multiple of the outer alignment, not of a larger one.
    let mut violations: Vec<Violation> = [
        (Figure::Alignment, plan.alignment, planned.plan.alignment),
        (Figure::Padding, plan.padding, planned.plan.padding),
    ]
    .into_iter()
    .filter(|(_, expected, found)| expected != found)
    .map(|(figure, expected, found)| Violation::WrongFigure { figure, expected, found })
    .collect();
    let expected = copies(body, plan);
    if planned.inputs != expected {
        violations.push(Violation::Changed {
            name: "the copies of the inputs".to_owned(),
            field: Figure::Size,
            expected,
            found: planned.inputs,
        });
    }
    for tensor in &planned.plan.tensors {
        let origin = body.tensor_id(&tensor.name).map(|id| &body.tensor(id).origin);
        let supplied = matches!(origin, Some(Origin::Input | Origin::Weight));
        if supplied && matches!(tensor.place, TensorPlace::Pool { .. }) {
            violations.push(Violation::HandedInTwice { tensor: tensor.name.to_string() });
        }
    }
    violations.extend(check(body, &planned.plan));
    violations
}

/// The bytes that copies of a body's inputs take: each padded and rounded up to the alignment.
pub(super) fn copies(body: &OpSequence, plan: &Plan) -> Bytes {
    let sizes = body.tensors().iter().filter(|tensor| tensor.origin == Origin::Input);
    let sizes = sizes.filter_map(|tensor| tensor.size).filter(|&size| size > 0);
    let alignment = u128::from(plan.alignment.max(1));
    let copy =
        |size: Bytes| (u128::from(size) + u128::from(plan.padding)).next_multiple_of(alignment);
    Bytes::try_from(sizes.map(copy).sum::<u128>()).unwrap_or(Bytes::MAX)
}
