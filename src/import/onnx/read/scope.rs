//! The tensors that a graph can refer to, and the execution order of its operators.

use std::collections::{HashMap, HashSet};

use rten_onnx::onnx::GraphProto;

use crate::{
    OpSequence, Operator, Output, SequenceError,
    import::onnx::{read::fact::Fact, read::node::Node},
};

/// The tensors of a graph, and of the graphs around it.
#[derive(Default)]
pub(crate) struct Scope<'a> {
    pub(crate) facts: HashMap<&'a str, Fact>,
    /// The names of all tensors of the graph, if it has sub-graphs.
    names: HashSet<&'a str>,
    pub(crate) outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&Fact> {
        self.facts.get(name).or_else(|| self.outer?.get(name))
    }

    /// The scope of a graph, which has no facts yet.
    pub(crate) fn of(graph: &'a GraphProto, outer: Option<&'a Scope<'a>>) -> Self {
        let has_bodies = graph.node.iter().map(Node).any(|node| node.bodies().next().is_some());
        let names = if has_bodies { defined(graph) } else { HashSet::new() };
        Self { facts: HashMap::new(), names, outer }
    }

    /// Returns whether the graph, or one around it, has a tensor of this name.
    fn has(&self, name: &str) -> bool {
        self.names.contains(name) || self.outer.is_some_and(|outer| outer.has(name))
    }

    /// Renames the weights of a body of its own that have the name of a tensor around it.
    pub(crate) fn keep_apart(&self, body: &mut OpSequence, graph: &GraphProto, operator: &str) {
        for tensor in defined(graph) {
            if self.has(tensor) {
                let mut name = format!("{tensor} of {operator}");
                while self.has(&name) || body.has_name(&name) {
                    name.push('\'');
                }
                body.rename_weight(tensor, &name);
            }
        }
    }
}

/// The tensors of the enclosing graphs that a node's sub-graphs read.
pub(crate) fn captured(node: Node<'_>) -> Vec<&str> {
    let mut names = Vec::new();
    node.bodies().for_each(|body| names.extend(captured_by_graph(body)));
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// The names that a graph defines.
fn defined(graph: &GraphProto) -> HashSet<&str> {
    let nodes = graph.node.iter().map(Node);
    nodes
        .flat_map(|node| node.outputs().map(|(_, name)| name))
        .chain(graph.input.iter().filter_map(|value| value.name.as_deref()))
        .chain(graph.initializer.iter().filter_map(|tensor| tensor.name.as_deref()))
        .collect()
}

/// The names that a graph uses but does not define.
pub(crate) fn captured_by_graph(graph: &GraphProto) -> Vec<&str> {
    let nodes = || graph.node.iter().map(Node);
    let defined = defined(graph);
    let mut seen = HashSet::new();
    nodes()
        .flat_map(|node| node.inputs().chain(captured(node)))
        .chain(graph.output.iter().filter_map(|value| value.name.as_deref()))
        .filter(|name| !name.is_empty() && !defined.contains(name) && seen.insert(*name))
        .collect()
}

/// Returns the operators in execution order, by their indices in the graph. Operators without
/// outputs compute nothing and are omitted. `captured` names the tensors of the enclosing graphs.
///
/// # Errors
///
/// If a name is defined twice or never, or operators form a cycle.
pub(crate) fn execution_order(
    graph: &GraphProto,
    captured_names: &[&str],
) -> Result<Vec<usize>, SequenceError> {
    // Building a sequence of empty tensors finds errors and sorts the operators.
    let mut shell = OpSequence::builder();
    let weights = graph.initializer.iter().filter_map(|tensor| tensor.name.as_deref());
    for name in weights.clone().chain(captured_names.iter().copied()) {
        shell.weight(name, Some(0));
    }
    let weights: HashSet<&str> = weights.collect();
    for name in graph.input.iter().filter_map(|value| value.name.as_deref()) {
        if !weights.contains(name) {
            shell.input(name, 0);
        }
    }
    let mut places = HashMap::new();
    for (place, node) in graph.node.iter().map(Node).enumerate() {
        let mut operator = Operator::new(node.name())
            .kind(node.kind())
            .inputs(node.inputs())
            .inputs(captured(node));
        for (_, name) in node.outputs() {
            operator = operator.output(Output::new(name, 0));
            places.insert(name, place);
        }
        if node.outputs().next().is_some() {
            shell.operator(operator);
        }
    }
    for name in output_names(graph) {
        shell.output(name);
    }
    let shell = shell.build()?;
    let first_output = |outputs: &[crate::sequence::TensorId]| {
        places.get(&*shell.tensor(*outputs.first()?).name).copied()
    };
    Ok(shell.operators().iter().filter_map(|operator| first_output(&operator.outputs)).collect())
}

/// The names that operators, their sub-graphs or the graph outputs refer to.
pub(crate) fn read_names(graph: &GraphProto) -> HashSet<&str> {
    let nodes = graph.node.iter().map(Node);
    nodes.flat_map(|node| node.inputs().chain(captured(node))).chain(output_names(graph)).collect()
}

/// The graph outputs, by name.
pub(crate) fn output_names(graph: &GraphProto) -> impl Iterator<Item = &str> {
    graph.output.iter().filter_map(|value| value.name.as_deref()).filter(|name| !name.is_empty())
}
