//! The nodes of a model's main graph as they stand in the file.
//!
//! Constants, and all nodes that are folded, are not operators of the sequence. A call of one of
//! the model's functions is one node but several operators. An order of the operators must
//! therefore be completed to an order of the nodes.

use std::collections::HashMap;

use rten_onnx::onnx::GraphProto;

use crate::import::onnx::read::{node::Node, scope};

/// The nodes of the main graph, by their places in the file, and the operators that they became.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// By node: the nodes that must run before it.
    predecessors: Vec<Vec<usize>>,
    /// By step of the sequence: its node.
    of_step: Vec<usize>,
}

impl Nodes {
    /// The nodes of a graph as it was parsed: those that make what a node and its sub-graphs read
    /// run before it.
    pub(super) fn new(graph: &GraphProto) -> Self {
        let nodes = || graph.node.iter().map(Node).enumerate();
        let makers: HashMap<&str, usize> = nodes()
            .flat_map(|(place, node)| node.outputs().map(move |(_, name)| (name, place)))
            .collect();
        let mut predecessors: Vec<Vec<usize>> = nodes()
            .map(|(place, node)| {
                let names = node.inputs().chain(scope::captured(node));
                let makers = names.filter_map(|name| makers.get(name).copied());
                makers.filter(|&maker| maker != place).collect()
            })
            .collect();
        // A node without outputs has side effects, so such nodes keep their order.
        let silent = nodes().filter(|(_, node)| node.outputs().next().is_none());
        let silent: Vec<usize> = silent.map(|(place, _)| place).collect();
        for pair in silent.windows(2) {
            predecessors[pair[1]].push(pair[0]);
        }
        Self { predecessors, of_step: Vec::new() }
    }

    /// Adds facts of the sequence: the nodes of its steps, and the nodes with a state, which keep
    /// their order.
    pub(super) fn finish(&mut self, of_step: Vec<usize>, with_state: &[usize]) {
        for pair in with_state.windows(2).filter(|pair| pair[0] != pair[1]) {
            self.predecessors[pair[1]].push(pair[0]);
        }
        for list in &mut self.predecessors {
            list.sort_unstable();
            list.dedup();
        }
        self.of_step = of_step;
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.predecessors.len()
    }

    /// By step of the sequence: its node. A call of a function is one node but several operators.
    pub(crate) fn of_steps(&self) -> &[usize] {
        &self.of_step
    }

    /// See [`Survey::step_order`](super::Survey::step_order).
    pub(super) fn steps(&self, order: &[usize]) -> Vec<usize> {
        let mut places = vec![0; self.len()];
        for (place, &node) in order.iter().enumerate() {
            if let Some(of_node) = places.get_mut(node) {
                *of_node = place;
            }
        }
        let mut steps: Vec<usize> = (0..self.of_step.len()).collect();
        steps.sort_by_key(|&step| places[self.of_step[step]]);
        steps
    }

    /// See [`Survey::node_order`](super::Survey::node_order).
    pub(crate) fn order(&self, steps: &[usize]) -> Vec<usize> {
        let nodes = self.len();
        let mut successors: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        for (node, list) in self.predecessors.iter().enumerate() {
            for &first in list {
                successors[first].push(node);
            }
        }
        let mut is_operator = vec![false; nodes];
        for &node in &self.of_step {
            is_operator[node] = true;
        }
        let mut walk = Walk {
            predecessors: &self.predecessors,
            waits: self.predecessors.iter().map(Vec::len).collect(),
            successors,
            entered: vec![false; nodes],
            done: vec![false; nodes],
            is_late: vec![false; nodes],
            order: Vec::with_capacity(nodes),
        };
        let mut operators = steps.iter().filter_map(|&step| self.of_step.get(step).copied());
        for (place, &is_operator) in is_operator.iter().enumerate() {
            if !is_operator {
                walk.is_late[place] = walk.waits[place] > 0;
                if !walk.is_late[place] {
                    walk.run(place);
                }
            } else if let Some(next) = operators.find(|&operator| !walk.done[operator]) {
                walk.run(next);
            }
        }
        (0..nodes).for_each(|node| walk.run(node));
        walk.order
    }
}

/// Puts nodes into order, each after those that must run before it.
struct Walk<'a> {
    predecessors: &'a [Vec<usize>],
    successors: Vec<Vec<usize>>,
    /// By node: the number of its predecessors that have no place yet.
    waits: Vec<usize>,
    entered: Vec<bool>,
    done: Vec<bool>,
    /// True if a node could not stay where it was, and runs as soon as it can.
    is_late: Vec<bool>,
    order: Vec<usize>,
}

impl Walk<'_> {
    /// Appends a node and what must run before it, without recursion.
    fn run(&mut self, node: usize) {
        // Nodes; true if all of their predecessors have a place.
        let mut stack = vec![(node, false)];
        while let Some((node, is_ready)) = stack.pop() {
            if self.done[node] {
                continue;
            }
            if !is_ready {
                if !std::mem::replace(&mut self.entered[node], true) {
                    stack.push((node, true));
                    let first = self.predecessors[node].iter().rev();
                    stack.extend(first.map(|&first| (first, false)));
                }
                continue;
            }
            self.done[node] = true;
            self.order.push(node);
            for &next in self.successors[node].iter().rev() {
                self.waits[next] -= 1;
                if self.waits[next] == 0 && self.is_late[next] {
                    stack.push((next, true));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(predecessors: &[&[usize]], of_step: &[usize]) -> Nodes {
        let predecessors = predecessors.iter().map(|list| list.to_vec()).collect();
        Nodes { predecessors, of_step: of_step.to_vec() }
    }

    #[test]
    fn an_order_that_changes_nothing_leaves_the_file_alone() {
        // A constant far from its reader, and a shape that is folded.
        let nodes = nodes(&[&[], &[], &[1], &[1], &[2, 0]], &[1, 3, 4]);
        assert_eq!(nodes.order(&[0, 1, 2]), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_folded_node_moves_before_its_first_reader() {
        // Node 3 is a constant that node 4 reads.
        let nodes = nodes(&[&[], &[0], &[1], &[], &[3], &[2, 4]], &[0, 1, 2, 4, 5]);
        assert_eq!(nodes.order(&[3, 0, 1, 2, 4]), [3, 4, 0, 1, 2, 5]);
    }

    #[test]
    fn a_node_that_must_wait_follows_its_predecessor() {
        // Node 1 takes the shape of the output of node 0, and only node 3 reads it.
        let nodes = nodes(&[&[], &[0], &[], &[1, 2]], &[0, 2, 3]);
        assert_eq!(nodes.order(&[1, 0, 2]), [2, 0, 1, 3]);
    }

    #[test]
    fn a_call_runs_once_and_whole() {
        // Node 1 is two operators.
        let nodes = nodes(&[&[], &[], &[0], &[1, 2]], &[0, 1, 1, 2, 3]);
        assert_eq!(nodes.order(&[1, 0, 2, 3, 4]), [1, 0, 2, 3]);
        assert_eq!(nodes.steps(&[1, 0, 2, 3]), [1, 2, 0, 3, 4]);
    }

    #[test]
    fn nodes_in_no_order_are_put_into_one() {
        let nodes = nodes(&[&[1], &[], &[0]], &[1, 0, 2]);
        assert_eq!(nodes.order(&[0, 1, 2]), [1, 0, 2]);
        // No file with a cycle is read, but the walk ends even then.
        let circle = Nodes { predecessors: vec![vec![1], vec![0]], of_step: vec![0, 1] };
        assert_eq!(circle.order(&[0, 1]).len(), 2);
    }
}
