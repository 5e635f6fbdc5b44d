//! An independent checker of expanded sequences, written from what one is: every operator of the given sequence
//! runs exactly once as itself; a copy is an operator that runs again, reads the values that the operator reads,
//! and makes the same values under other names; an operator that must not run twice has none.

use std::collections::HashMap;

use memplan::{
    OpSequence,
    sequence::{Dependency, OperatorNode, Origin, TensorId},
};

/// The cost of all copies of an expanded sequence, or the reason why it is none of the given one.
pub fn check(given: &OpSequence, expanded: &OpSequence) -> Result<u64, String> {
    let mut checker = Checker::new(given, expanded)?;
    for step in 0..expanded.operators().len() {
        checker
            .run(step)
            .map_err(|reason| format!("{}: {reason}", expanded.operator_name(step)))?;
    }
    checker.end()
}

/// An output that is written over an input, `offset` bytes from its start.
struct Update {
    made: TensorId,
    input: TensorId,
    offset: u64,
}

struct Checker<'a> {
    given: &'a OpSequence,
    expanded: &'a OpSequence,
    /// By tensor of the expanded sequence: the tensor of the given sequence whose value it holds.
    holds: Vec<Option<TensorId>>,
    /// By tensor of the expanded sequence: the tensor whose memory it shares, and the offset there.
    memory: Vec<(usize, u64)>,
    runs: Vec<usize>,
    copies: Vec<usize>,
    cost: u64,
}

impl<'a> Checker<'a> {
    fn new(given: &'a OpSequence, expanded: &'a OpSequence) -> Result<Self, String> {
        let mut holds = Vec::new();
        for tensor in expanded.tensors() {
            let supplied = !matches!(tensor.origin, Origin::Output { .. });
            let same = given.tensor_id(&tensor.name).filter(|_| supplied);
            if supplied && same.is_none_or(|id| given.tensor(id) != tensor) {
                return Err(format!("{} is supplied, but not in the given sequence", tensor.name));
            }
            holds.push(same);
        }
        let count = given.operators().len();
        let memory = (0..holds.len()).map(|at| (at, 0)).collect();
        Ok(Self {
            given,
            expanded,
            holds,
            memory,
            runs: vec![0; count],
            copies: vec![0; count],
            cost: 0,
        })
    }

    fn run(&mut self, step: usize) -> Result<(), String> {
        let node = &self.expanded.operators()[step];
        let inputs: Vec<TensorId> = node
            .inputs
            .iter()
            .map(|id| self.holds[id.index()].ok_or("reads what is not there"))
            .collect::<Result<_, _>>()?;
        let (of, is_copy) = self.find(node, &inputs)?;
        let original = &self.given.operators()[of];
        let mut updates = Vec::new();
        for (made, &value) in node.outputs.iter().zip(&original.outputs) {
            let (tensor, same) = (self.expanded.tensor(*made), self.given.tensor(value));
            if (tensor.size, tensor.dtype(), tensor.shape(), tensor.basis)
                != (same.size, same.dtype(), same.shape(), same.basis)
            {
                return Err(format!("{} is not like {}", tensor.name, same.name));
            }
            updates.extend(self.check_dependency(*made, value)?);
        }
        for update in updates {
            self.update(&update);
        }
        for (made, &value) in node.outputs.iter().zip(&original.outputs) {
            self.holds[made.index()] = Some(value);
        }
        let counts = if is_copy { &mut self.copies } else { &mut self.runs };
        counts[of] += 1;
        if is_copy {
            self.cost += original.cost;
            if original.once {
                return Err("must not run twice".to_owned());
            }
        }
        Ok(())
    }

    /// The operator of the given sequence that this one is, and whether it is a copy.
    fn find(&self, node: &OperatorNode, inputs: &[TensorId]) -> Result<(usize, bool), String> {
        let name = |sequence: &OpSequence, id: TensorId| sequence.tensor(id).name.clone();
        let candidates = self.given.operators().iter().enumerate();
        let alike: Vec<(usize, &OperatorNode)> = candidates
            .filter(|(_, one)| {
                one.kind == node.kind
                    && one.inputs == inputs
                    && one.outputs.len() == node.outputs.len()
                    && (one.workspace, one.cost, one.once, one.stream)
                        == (node.workspace, node.cost, node.once, node.stream)
            })
            .collect();
        let pairs = |one: &OperatorNode| -> Vec<(Box<str>, Box<str>)> {
            let pairs = node.outputs.iter().zip(&one.outputs);
            pairs.map(|(&a, &b)| (name(self.expanded, a), name(self.given, b))).collect()
        };
        let is_itself = |(at, one): &(usize, &OperatorNode)| {
            let same = pairs(one).iter().all(|(new, old)| new == old);
            same && node.name == one.name && self.runs[*at] == 0
        };
        let is_copy_of = |(at, one): &(usize, &OperatorNode)| {
            let named = |new: &str, old: &str| new.starts_with(&format!("{old}~1"));
            let is_named = one.name == node.name && one.name.is_empty()
                || !one.name.is_empty() && named(&node.name, &one.name);
            let again = pairs(one).iter().all(|(new, old)| named(new, old));
            is_named && again && self.copies[*at] == 0
        };
        let itself = alike.iter().find(|&one| is_itself(one)).map(|&(at, _)| (at, false));
        itself
            .or_else(|| alike.iter().find(|&one| is_copy_of(one)).map(|&(at, _)| (at, true)))
            .ok_or_else(|| "is no operator of the given sequence with these values".to_owned())
    }

    /// The memory of an output depends on the inputs that hold the same values, in the same way. Returns the inputs
    /// that it updates, each with the output.
    fn check_dependency(&mut self, made: TensorId, value: TensorId) -> Result<Vec<Update>, String> {
        let dependency = |sequence: &OpSequence, id: TensorId| match &sequence.tensor(id).origin {
            Origin::Output { dependency, .. } => dependency.clone(),
            _ => Dependency::Fresh,
        };
        let (new, old) = (dependency(self.expanded, made), dependency(self.given, value));
        let pairs: Vec<(TensorId, TensorId, Option<u64>)> = match (&new, &old) {
            (Dependency::Fresh, Dependency::Fresh) => Vec::new(),
            (
                Dependency::Reads { input, offset, .. },
                Dependency::Reads { input: old, offset: at, .. },
            ) if offset == at => {
                let (memory, base) = self.memory[input.index()];
                self.memory[made.index()] = (memory, base + offset);
                vec![(*input, *old, None)]
            }
            (Dependency::Overwrites(new), Dependency::Overwrites(old))
                if new.len() == old.len() =>
            {
                let alike = new.iter().zip(old).all(|(new, old)| {
                    (new.offset, new.below, new.required) == (old.offset, old.below, old.required)
                });
                if !alike {
                    return Err("overwrites other bytes".to_owned());
                }
                new.iter()
                    .zip(old)
                    .map(|(new, old)| (new.input, old.input, new.required.then_some(new.offset)))
                    .collect()
            }
            (Dependency::Gathers(new), Dependency::Gathers(old)) if new.len() == old.len() => {
                new.iter().zip(old).map(|(new, old)| (new.input, old.input, None)).collect()
            }
            _ => return Err("depends on its inputs in another way".to_owned()),
        };
        if pairs.iter().any(|(input, old, _)| self.holds[input.index()] != Some(*old)) {
            return Err("depends on another value".to_owned());
        }
        let update = |(input, _, offset): (TensorId, TensorId, Option<u64>)| {
            Some(Update { made, input, offset: offset? })
        };
        Ok(pairs.into_iter().filter_map(update).collect())
    }

    /// Whatever lies in the bytes that an output updates is gone.
    fn update(&mut self, update: &Update) {
        let size = |at: usize| self.expanded.tensors()[at].size.unwrap_or(u64::MAX);
        let (memory, base) = self.memory[update.input.index()];
        let begin = base + update.offset;
        let end = begin + size(update.made.index());
        self.memory[update.made.index()] = (memory, begin);
        for at in 0..self.holds.len() {
            let (other, first) = self.memory[at];
            let meets = first < end && begin < first.saturating_add(size(at));
            let shares = other == memory && begin < end && meets;
            if shares && at != update.made.index() {
                self.holds[at] = None;
            }
        }
    }

    fn end(self) -> Result<u64, String> {
        if let Some(step) = self.runs.iter().position(|&runs| runs != 1) {
            return Err(format!(
                "{} runs {} times as itself",
                self.given.operator_name(step),
                self.runs[step]
            ));
        }
        let names = |sequence: &OpSequence| -> Vec<Box<str>> {
            sequence.outputs().iter().map(|&id| sequence.tensor(id).name.clone()).collect()
        };
        if names(self.given) != names(self.expanded) {
            return Err("has other results".to_owned());
        }
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        for tensor in self.expanded.tensors() {
            *by_name.entry(&tensor.name).or_default() += 1;
        }
        assert!(by_name.values().all(|&count| count == 1), "names are unique");
        let mut operators: Vec<&str> = self
            .expanded
            .operators()
            .iter()
            .map(|one| &*one.name)
            .filter(|name| !name.is_empty())
            .collect();
        let given = self.given.operators().iter().filter(|one| !one.name.is_empty()).count();
        let copies = operators.len() - given;
        operators.sort_unstable();
        operators.dedup();
        let mut of_given: Vec<&str> = self
            .given
            .operators()
            .iter()
            .map(|one| &*one.name)
            .filter(|name| !name.is_empty())
            .collect();
        of_given.sort_unstable();
        of_given.dedup();
        if operators.len() != of_given.len() + copies {
            return Err("gives the name of an operator to a copy".to_owned());
        }
        Ok(self.cost)
    }
}
