//! Checks a plan of storages by executing it.

use std::collections::BTreeMap;

use memplan::baselines::nnvm::{Graph, MemoryPlan, NodeEntry};

/// Returns the first entry that a reader would find overwritten, with that reader (`None` if the
/// entry is an output of the graph). An operator may write an output over an input only if it works
/// in place.
pub fn wrong_read(graph: &Graph, plan: &MemoryPlan) -> Option<(NodeEntry, Option<usize>)> {
    // The writer of each storage's content and of each entry's. An identity passes on its input's
    // writer.
    let mut held: BTreeMap<usize, NodeEntry> = BTreeMap::new();
    let mut content: BTreeMap<NodeEntry, NodeEntry> = BTreeMap::new();
    let is_lost = |entry: NodeEntry,
                   held: &BTreeMap<usize, NodeEntry>,
                   content: &BTreeMap<NodeEntry, NodeEntry>| {
        let storage = plan.entry(entry).storage;
        storage.is_some_and(|storage| held.get(&storage) != content.get(&entry))
    };
    for &index in graph.order() {
        let node = &graph.nodes()[index];
        let reads = |at: &usize| !node.ignored_inputs.contains(at);
        let inputs: Vec<usize> = (0..node.inputs.len()).filter(reads).collect();
        for &input in &inputs {
            if is_lost(node.inputs[input], &held, &content) {
                return Some((node.inputs[input], Some(index)));
            }
        }
        for (output, planned) in plan.entries[index].iter().enumerate() {
            let entry = NodeEntry { node: index, output };
            let Some(storage) = planned.storage else { continue };
            let identity = node.in_place.iter().any(|pair| {
                pair.identity && pair.output == output && Some(pair.input) == planned.taken_from
            });
            let source = planned.taken_from.map(|input| node.inputs[input]);
            let written = source.filter(|_| identity).map_or(entry, |source| content[&source]);
            for &input in &inputs {
                let same = plan.entry(node.inputs[input]).storage == Some(storage);
                let in_place = source
                    .is_some_and(|source| content.get(&source) == content.get(&node.inputs[input]));
                if same && !in_place {
                    return Some((node.inputs[input], Some(index)));
                }
            }
            content.insert(entry, written);
            held.insert(storage, written);
        }
    }
    graph
        .outputs()
        .iter()
        .find(|&&entry| is_lost(entry, &held, &content))
        .map(|&entry| (entry, None))
}
