//! Operators that must run after others although they read none of their tensors.
//!
//! There are two kinds. Nodes that are folded, such as arithmetic on the shape of a tensor, are not
//! operators of the sequence, but they are nodes of the file, so their readers must run after the
//! operators that their own inputs come from. And operators with a state keep their order: random
//! numbers come from one generator, and an operator of an unknown domain may do anything.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use crate::import::onnx::read::{node::Node, scope};

/// The most steps in all lists together, far above those of any real model. Beyond it, the
/// operators stay in the order given.
const MAX_EDGES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Precedence<'a> {
    /// The steps that make the tensors of the sequence.
    makers: HashMap<&'a str, usize>,
    /// By name of a folded tensor: the steps that it comes from.
    folded: HashMap<&'a str, Rc<[usize]>>,
    /// The last operator with a state.
    last_state: Option<usize>,
    edges: usize,
    /// The first operator that stays where it is, because there are too many edges.
    fixed_from: Option<usize>,
}

impl<'a> Precedence<'a> {
    /// Records a node that is folded.
    pub(super) fn fold(&mut self, node: Node<'a>) {
        let mut names = node.inputs().chain(scope::captured(node)).peekable();
        if names.peek().is_none() {
            return;
        }
        let mut steps = BTreeSet::new();
        let mut shared: Option<Rc<[usize]>> = None;
        for name in names {
            steps.extend(self.makers.get(name));
            if let Some(folded) = self.folded.get(name) {
                steps.extend(folded.iter());
                shared = Some(folded.clone());
            }
        }
        if steps.is_empty() || self.fixed_from.is_some() {
            return;
        }
        let shared = shared.filter(|shared| shared.len() == steps.len());
        let steps = shared.unwrap_or_else(|| {
            self.edges += steps.len();
            steps.into_iter().collect()
        });
        for (_, name) in node.outputs() {
            self.folded.insert(name, steps.clone());
        }
    }

    /// Records the operator of a step, and returns the steps that it must run after, beyond those whose
    /// tensors it reads.
    pub(super) fn operator(
        &mut self,
        node: Node<'a>,
        step: usize,
        has_state: bool,
    ) -> BTreeSet<usize> {
        self.makers.extend(node.outputs().map(|(_, name)| (name, step)));
        if self.edges > MAX_EDGES {
            let from = *self.fixed_from.get_or_insert(step);
            return if from == step { (0..step).collect() } else { BTreeSet::from([step - 1]) };
        }
        let names = || node.inputs().chain(scope::captured(node));
        let mut steps: BTreeSet<usize> = names()
            .filter_map(|name| self.folded.get(name))
            .flat_map(|folded| folded.iter().copied())
            .collect();
        if has_state {
            steps.extend(self.last_state.replace(step));
        }
        for name in names() {
            if let Some(maker) = self.makers.get(name) {
                steps.remove(maker);
            }
        }
        self.edges += steps.len();
        steps
    }
}

/// The places of numbers among all of them, from the smallest on; nothing if they are in order.
pub(super) fn ranks(numbers: &[usize]) -> Vec<usize> {
    if numbers.is_sorted() {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|&at| numbers[at]);
    let mut ranks = vec![0; numbers.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank;
    }
    ranks
}
