//! Assigns: outputs that are written to variables.

use crate::baselines::nnvm::{
    Graph, MemoryPlan, NodeEntry, NodeKind,
    plan::{EntryPlan, readers},
};

/// A plan in which variables have storages as well.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignedPlan {
    /// The plan, with the storages of the variables after the planned ones, in execution order.
    pub plan: MemoryPlan,
    /// The assigns that became no-ops, by index in the list of nodes: their value is computed
    /// directly into the variable.
    pub no_ops: Vec<usize>,
}

/// Gives every variable a storage of its own, and every assign the storage of its variable.
///
/// If a [`NodeKind::Broadcast`] operator computes the right-hand side for this assign alone, it
/// writes directly into the variable. Unlike the original, this requires that no operator reads the
/// variable after that operator, and that the operator does not merely pass an input on.
#[must_use]
pub fn assign(graph: &Graph, plan: MemoryPlan) -> AssignedPlan {
    let mut assigned = AssignedPlan { plan, no_ops: Vec::new() };
    for &index in graph.order() {
        let node = &graph.nodes()[index];
        if node.is_variable() {
            for (output, tensor) in node.outputs.iter().enumerate() {
                let storage = assigned.plan.storages.len();
                assigned.plan.storages.push(tensor.bytes);
                assigned.plan.entries[index][output].storage = Some(storage);
            }
        }
    }
    let readers = readers(graph);
    let last_uses = LastUses::of(graph);
    for &index in graph.order() {
        let node = &graph.nodes()[index];
        let (NodeKind::Assign, &[variable, value]) = (node.kind, &*node.inputs) else { continue };
        let storage = assigned.plan.entry(variable).storage;
        assigned.plan.entries[index][0].storage = storage;
        let temporary = readers[value.node][value.output] <= 1
            && graph.nodes()[value.node].kind == NodeKind::Broadcast
            && graph.tensor(value).bytes == graph.tensor(variable).bytes
            && !graph.tensor(value).external
            && !passes_on(graph, value, assigned.plan.entry(value));
        if temporary && last_uses.before(variable, index) <= last_uses.positions[value.node] {
            assigned.plan.entries[value.node][value.output].storage = storage;
            assigned.no_ops.push(index);
        }
    }
    assigned
}

/// Returns whether an entry is an unchanged input in the input's own storage.
fn passes_on(graph: &Graph, entry: NodeEntry, plan: &EntryPlan) -> bool {
    let pairs = &graph.nodes()[entry.node].in_place;
    plan.taken_from.is_some_and(|input| {
        pairs.iter().any(|pair| pair.identity && (pair.input, pair.output) == (input, entry.output))
    })
}

/// The uses of every entry, in execution order.
struct LastUses {
    /// The position of each node in the execution order.
    positions: Vec<usize>,
    /// The nodes that read each entry, by node and output, in execution order.
    users: Vec<Vec<Vec<usize>>>,
}

impl LastUses {
    fn of(graph: &Graph) -> Self {
        let mut positions = vec![0; graph.nodes().len()];
        let mut users: Vec<Vec<Vec<usize>>> =
            graph.nodes().iter().map(|node| vec![Vec::new(); node.outputs.len()]).collect();
        for (position, &index) in graph.order().iter().enumerate() {
            positions[index] = position;
            for (_, entry) in graph.nodes()[index].read_inputs() {
                users[entry.node][entry.output].push(index);
            }
        }
        for entry in graph.outputs() {
            users[entry.node][entry.output].push(usize::MAX);
        }
        Self { positions, users }
    }

    /// The position of the last node other than `assign` that uses a variable.
    fn before(&self, variable: NodeEntry, assign: usize) -> usize {
        let users = self.users[variable.node][variable.output].iter();
        users
            .filter(|&&user| user != assign)
            .map(|&user| self.positions.get(user).copied().unwrap_or(usize::MAX))
            .max()
            .unwrap_or(0)
    }
}
