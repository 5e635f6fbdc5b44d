//! Colours decide which operators may reuse each other's storages when several run at once.
//!
//! Operators on one path never run at the same time. So the path with the most uncoloured operators
//! gets a colour, k - 1 times; the remaining operators share the last one. A storage is reused only
//! by an operator of the colour that released it.

use crate::baselines::nnvm::Graph;

/// Returns a colour for each node, by index.
pub(super) fn colours(graph: &Graph, count: usize) -> Vec<usize> {
    let mut colours: Vec<Option<usize>> = vec![None; graph.nodes().len()];
    let mut weights: Vec<usize> =
        graph.nodes().iter().map(|node| usize::from(!node.is_variable())).collect();
    let mut colour = 0;
    while colour + 1 < count {
        let path = heaviest_path(graph, &weights);
        if path.iter().all(|&node| weights[node] == 0) {
            break;
        }
        for node in path {
            if weights[node] > 0 {
                (colours[node], weights[node]) = (Some(colour), 0);
            }
        }
        colour += 1;
    }
    colours.into_iter().map(|own| own.unwrap_or(colour)).collect()
}

/// Returns the path of largest weight from its first node on; of equal paths, the one that starts
/// last.
fn heaviest_path(graph: &Graph, weights: &[usize]) -> Vec<usize> {
    let mut heaviest = vec![0; weights.len()];
    let mut next: Vec<Option<usize>> = vec![None; weights.len()];
    let mut start: Option<usize> = None;
    for &node in graph.order().iter().rev() {
        heaviest[node] += weights[node];
        if heaviest[node] > start.map_or(0, |start| heaviest[start]) {
            start = Some(node);
        }
        for input in &graph.nodes()[node].inputs {
            if heaviest[node] > heaviest[input.node] {
                heaviest[input.node] = heaviest[node];
                next[input.node] = Some(node);
            }
        }
    }
    std::iter::successors(start, |&node| next[node]).collect()
}
