//! The walk over the graph.

use std::cmp::Reverse;

use crate::{
    Bytes,
    baselines::nnvm::{
        Graph, InPlace, MATCH_RANGE, Node, NodeEntry, colours::colours, storages::Storages,
    },
};

/// Options of [`plan`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanOptions {
    /// A free storage is reused for sizes that differ by at most this factor; 0 for no reuse.
    pub match_range: u64,
    /// Tries 1, 2, 4, ... up to the match range and keeps the first of the smallest totals.
    pub auto_search: bool,
    /// The number of operators that may run at once; above 1, storages are reused only along paths.
    pub colours: usize,
    /// True if an operator may work in place on an input that it ignores, as in the original.
    /// Others may still read that input, or its storage may have been reused, so such plans may be
    /// wrong.
    pub take_ignored_inputs: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            match_range: MATCH_RANGE,
            auto_search: false,
            colours: 1,
            take_ignored_inputs: false,
        }
    }
}

impl PlanOptions {
    /// Reuses a free storage for sizes that differ by at most this factor; 0 for no reuse.
    #[must_use]
    pub const fn match_range(mut self, match_range: u64) -> Self {
        self.match_range = match_range;
        self
    }

    /// Tries every match range up to the one given, or only that one.
    #[must_use]
    pub const fn auto_search(mut self, auto_search: bool) -> Self {
        self.auto_search = auto_search;
        self
    }

    /// Lets this many operators run at once.
    #[must_use]
    pub const fn colours(mut self, colours: usize) -> Self {
        self.colours = colours;
        self
    }

    /// Sets whether operators may work in place on inputs that they ignore, as in the original.
    #[must_use]
    pub const fn take_ignored_inputs(mut self, take: bool) -> Self {
        self.take_ignored_inputs = take;
        self
    }
}

/// The storage of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryPlan {
    /// Its storage; `None` if it is external, belongs to a variable or is not executed.
    pub storage: Option<usize>,
    /// The input whose storage it took over when working in place.
    pub taken_from: Option<usize>,
    /// True if no node reads it, so that its storage is free at once.
    pub dead: bool,
}

/// A storage for every entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// The storage of each entry, by node and output.
    pub entries: Vec<Vec<EntryPlan>>,
    /// The size of each storage in bytes.
    pub storages: Vec<Bytes>,
}

impl MemoryPlan {
    /// The total size of all storages in bytes.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.storages.iter().sum()
    }

    /// The storage of an entry.
    ///
    /// # Panics
    ///
    /// If the entry belongs to another graph.
    #[must_use]
    pub fn entry(&self, entry: NodeEntry) -> &EntryPlan {
        &self.entries[entry.node][entry.output]
    }
}

/// Plans a graph.
#[must_use]
pub fn plan(graph: &Graph, options: &PlanOptions) -> MemoryPlan {
    let colours = match options.colours {
        0 | 1 => vec![0; graph.nodes().len()],
        count => colours(graph, count),
    };
    let most = options.match_range;
    let mut range = if options.auto_search { most.min(1) } else { most };
    let mut best = Walk::new(graph, &colours, options, range).walk();
    while range > 0 && range <= most / 2 {
        range *= 2;
        let plan = Walk::new(graph, &colours, options, range).walk();
        if plan.total() < best.total() {
            best = plan;
        }
    }
    best
}

/// Counts the readers of each entry, by node and output: one per use by an operator and one per
/// graph output.
pub(super) fn readers(graph: &Graph) -> Vec<Vec<i64>> {
    let mut readers: Vec<Vec<i64>> =
        graph.nodes().iter().map(|node| vec![0; node.outputs.len()]).collect();
    let executed = graph.order().iter().map(|&node| &graph.nodes()[node]);
    let inputs = executed.flat_map(|node| node.read_inputs().map(|(_, entry)| entry));
    for entry in inputs.chain(graph.outputs().iter().copied()) {
        readers[entry.node][entry.output] += 1;
    }
    readers
}

struct Walk<'a> {
    graph: &'a Graph,
    colours: &'a [usize],
    take_ignored_inputs: bool,
    readers: Vec<Vec<i64>>,
    storages: Storages,
    /// The remaining uses of all entries in each storage. Never negative, unless ignored inputs are
    /// taken.
    uses: Vec<i64>,
    entries: Vec<Vec<EntryPlan>>,
}

impl<'a> Walk<'a> {
    fn new(
        graph: &'a Graph,
        colours: &'a [usize],
        options: &PlanOptions,
        match_range: u64,
    ) -> Self {
        let unplanned = |node: &Node| vec![EntryPlan::default(); node.outputs.len()];
        Self {
            graph,
            colours,
            take_ignored_inputs: options.take_ignored_inputs,
            readers: readers(graph),
            storages: Storages::new(match_range),
            uses: Vec::new(),
            entries: graph.nodes().iter().map(unplanned).collect(),
        }
    }

    fn walk(mut self) -> MemoryPlan {
        for &node in self.graph.order() {
            if self.graph.nodes()[node].is_variable() {
                continue;
            }
            self.take_over(node);
            self.request(node);
            self.release(node);
        }
        MemoryPlan { entries: self.entries, storages: self.storages.into_sizes() }
    }

    fn storage(&self, entry: NodeEntry) -> Option<usize> {
        self.entries[entry.node][entry.output].storage
    }

    /// Lets outputs take over the storages of inputs.
    fn take_over(&mut self, index: usize) {
        let node = &self.graph.nodes()[index];
        let ignores_all = node.read_inputs().next().is_none();
        let mut taken = vec![false; node.inputs.len()];
        for &InPlace { input, output, identity } in &node.in_place {
            let from = node.inputs[input];
            let Some(storage) = self.storage(from) else { continue };
            let (source, target) = (self.graph.tensor(from), &node.outputs[output]);
            let uses = self.readers[index][output];
            let same_elements = source.elements == target.elements;
            let last_reader = self.uses[storage] == 1 && !ignores_all;
            let reads = self.take_ignored_inputs || !node.ignored_inputs.contains(&input);
            let allowed = reads
                && !taken[input]
                && self.entries[index][output].storage.is_none()
                && !target.external
                && (last_reader || identity)
                && uses > 0
                && same_elements
                && source.element_type == target.element_type;
            if allowed {
                taken[input] = true;
                self.uses[storage] += uses;
                let plan = &mut self.entries[index][output];
                (plan.storage, plan.taken_from) = (Some(storage), Some(input));
            }
        }
    }

    /// Requests storages for the other outputs, the largest first; of equal ones, the later first.
    fn request(&mut self, index: usize) {
        let node = &self.graph.nodes()[index];
        let open = |output: &usize| {
            !node.outputs[*output].external && self.entries[index][*output].storage.is_none()
        };
        let mut outputs: Vec<usize> = (0..node.outputs.len()).filter(open).collect();
        outputs.sort_by_key(|&output| Reverse((node.outputs[output].elements, output)));
        for output in outputs {
            let bytes = node.outputs[output].bytes;
            let storage = self.storages.request(bytes, node.device, self.colours[index]);
            self.uses.resize(self.uses.len().max(storage + 1), 0);
            self.uses[storage] = self.readers[index][output];
            self.entries[index][output].storage = Some(storage);
        }
    }

    /// Releases the storages of inputs after their last read, and those of unread outputs.
    fn release(&mut self, index: usize) {
        let colour = self.colours[index];
        let node = &self.graph.nodes()[index];
        for (_, entry) in node.read_inputs() {
            if let Some(storage) = self.storage(entry) {
                self.uses[storage] -= 1;
                if self.uses[storage] == 0 {
                    self.storages.release(storage, colour);
                }
            }
        }
        for plan in &mut self.entries[index] {
            if let Some(storage) = plan.storage.filter(|&storage| self.uses[storage] == 0) {
                self.storages.release(storage, colour);
                plan.dead = true;
            }
        }
    }
}
