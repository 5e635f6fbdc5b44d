//! The memory around a body. What a body reads there must be kept whole while its operator runs, and what it
//! writes there must be what the operator writes.
//!
//! The plan of the sequence around keeps the inputs of an operator whole, and knows that its outputs are
//! written. A body's weight is the tensor of that name in the nearest sequence around it that has one.

use std::collections::BTreeMap;

use crate::{
    Bytes, OpSequence, Plan, TensorPlace,
    sequence::{Dependency, OperatorNode, Origin},
    verify::Violation,
};

/// The use that a body makes of the memory around it.
#[derive(Clone, Copy, Default)]
struct Use {
    /// The bytes that it reads, from the start of the tensor.
    reads: Bytes,
    /// True if it writes some of them.
    writes: bool,
}

/// Compares what the body of an operator uses with what the operator declares.
pub(super) fn check(
    sequence: &OpSequence,
    operator: &OperatorNode,
    body: &OpSequence,
    plan: &Plan,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (name, Use { reads, writes }) in uses(body, plan) {
        let Some(around) = sequence.tensor_id(name) else { continue };
        let tensor = name.to_owned();
        let is_output = operator.outputs.contains(&around);
        if !is_output && !operator.inputs.contains(&around) {
            violations.push(Violation::NotKept { tensor: tensor.clone() });
        }
        match sequence.tensor(around).size {
            Some(size) if size < reads && !is_output => {
                let tensor = tensor.clone();
                violations.push(Violation::ReadsBeyond { tensor, size, reads });
            }
            _ => {}
        }
        let is_written = operator.outputs.iter().any(|&output| {
            output == around
                || match &sequence.tensor(output).origin {
                    Origin::Output { dependency: Dependency::Overwrites(over), .. } => {
                        over.iter().any(|over| over.required && over.input == around)
                    }
                    _ => false,
                }
        });
        if writes && !is_written {
            violations.push(Violation::ChangesKept { tensor });
        }
    }
    violations
}

/// What a body uses of the memory around it, by the name of the tensor.
fn uses<'s>(body: &'s OpSequence, plan: &'s Plan) -> BTreeMap<&'s str, Use> {
    let mut uses: BTreeMap<&str, Use> = BTreeMap::new();
    let read = body.operators().iter().flat_map(|operator| &operator.inputs);
    for &id in read.chain(body.outputs()) {
        let tensor = body.tensor(id);
        if tensor.origin == Origin::Weight {
            let of = uses.entry(&tensor.name).or_default();
            of.reads = of.reads.max(tensor.size.unwrap_or(0));
        }
    }
    for planned in &plan.tensors {
        // A view writes nothing.
        let is_written = body.tensor_id(&planned.name).is_some_and(|id| {
            matches!(&body.tensor(id).origin,
                Origin::Output { dependency, .. } if !matches!(dependency, Dependency::Reads { .. }))
        });
        if let TensorPlace::Supplied { tensor, .. } = &planned.place
            && is_written
            && body.tensor_id(tensor).is_some_and(|id| body.tensor(id).origin == Origin::Weight)
        {
            uses.entry(tensor).or_default().writes = true;
        }
    }
    for inner in &plan.bodies {
        let operator = usize::try_from(inner.step).ok();
        let operator = operator.and_then(|step| body.operators().get(step));
        let Some(sequence) = operator.and_then(|operator| operator.bodies.get(inner.body)) else {
            continue;
        };
        for (name, Use { reads, writes }) in self::uses(sequence, &inner.plan) {
            if body.tensor_id(name).is_none() {
                let of = uses.entry(name).or_default();
                *of = Use { reads: of.reads.max(reads), writes: of.writes || writes };
            }
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{
        Operator, Output, Planner,
        verify::{execute, verify},
    };

    /// `if` runs a body that reads `x`, or one that runs such a body, and `n` is written over `x`.
    fn host(is_nested: bool, updates: bool) -> OpSequence {
        let n = Output::new("n", 8);
        let n = if updates { n.updates("x", 0) } else { n };
        let run = Operator::new("run").inputs(["x"]).output(n.clone());
        let mut body = OpSequence::builder();
        let mut body = body.weight("x", Some(8)).operator(run).output("n").build().unwrap();
        if is_nested {
            let inner = Operator::new("inner").output(Output::new("m", 8)).body(body);
            body = OpSequence::builder().operator(inner).build().unwrap();
        }
        let host = Operator::new("if").inputs(["w", "x"]).output(n).body(body);
        OpSequence::builder()
            .input("w", 8)
            .operator(Operator::new("load").output(Output::new("x", 8)))
            .operator(host)
            .operator(Operator::new("end").inputs(["n"]).output(Output::new("y", 8)))
            .output("y")
            .build()
            .unwrap()
    }

    /// Sequences that cannot be built.
    #[rstest]
    #[case::right(true, |_: &mut OpSequence| (), None)]
    #[case::not_an_input(false, |s: &mut OpSequence| { s.parts_mut().0[1].inputs.pop(); },
        Some("'x' is read by the body but is not an input of its operator, so other tensors may lie over it"))]
    #[case::an_output(false, |s: &mut OpSequence| {
        let (operators, _) = s.parts_mut();
        let x = operators[1].inputs.pop().unwrap();
        operators[1].outputs.push(x);
    }, None)]
    #[case::too_small(false, |s: &mut OpSequence| s.parts_mut().1[1].size = Some(7),
        Some("'x' has 7 B, but the body reads 8 B of it"))]
    #[case::of_unknown_size(false, |s: &mut OpSequence| s.parts_mut().1[1].size = None, None)]
    #[case::not_updated(true, |s: &mut OpSequence| {
        if let Origin::Output { dependency, .. } = &mut s.parts_mut().1[2].origin {
            *dependency = Dependency::Fresh;
        }
    }, Some("'x' is written by the body but not by its operator, so others may still read it"))]
    fn a_body_uses_what_its_operator_declares(
        #[values(false, true)] is_nested: bool,
        #[case] updates: bool,
        #[case] spoil: fn(&mut OpSequence),
        #[case] message: Option<&str>,
    ) {
        let mut sequence = host(is_nested, updates);
        let plan = Planner::new().plan(&sequence).unwrap();
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
        spoil(&mut sequence);
        let body = &plan.bodies[0];
        let operator = &sequence.operators()[1];
        let found = check(&sequence, operator, &operator.bodies[0], &body.plan);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, Vec::from_iter(message.map(str::to_owned)));
        if let Some(message) = message {
            for found in [verify(&sequence, &plan), execute(&sequence, &plan)] {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                assert!(found.contains(&format!("in body 0 of if: {message}")), "{found:?}");
            }
        }
    }
}
