//! The walk over the graph.

use std::cmp::Reverse;

use crate::{
    Bytes,
    planner::nnvm::{
        Entry, Graph, InPlace, MATCH_RANGE, Node, colours::colours, storages::Storages,
    },
};

/// How to plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanOptions {
    /// A free storage is reused for sizes that differ by at most this factor; 0 for no reuse.
    pub match_range: u64,
    /// Try 1, 2, 4, ... up to the match range and keep the smallest total, the first of equals.
    pub auto_search: bool,
    /// How many operators may run at once; with more than 1, storages are reused only along paths.
    pub colours: usize,
    /// Let an operator work in place on an input that it ignores, as the original does, though
    /// others may still read that input, or its storage may have gone to somebody else. Such plans
    /// may be wrong.
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

    /// Tries every match range up to the one given, or that one alone.
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

    /// Lets operators work in place on inputs that they ignore, as the original does, or not.
    #[must_use]
    pub const fn take_ignored_inputs(mut self, take: bool) -> Self {
        self.take_ignored_inputs = take;
        self
    }
}

/// Where an entry lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryPlan {
    /// Its storage; `None` if it is not planned: of a variable, external, or not executed.
    pub storage: Option<usize>,
    /// The input whose storage it took over, working in place.
    pub taken_from: Option<usize>,
    /// Nobody reads it, so that its storage is free at once.
    pub dead: bool,
}

/// A storage for every entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// By node and output.
    pub entries: Vec<Vec<EntryPlan>>,
    /// The size of each storage in bytes.
    pub storages: Vec<Bytes>,
}

impl MemoryPlan {
    /// The sum of all storages in bytes.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.storages.iter().sum()
    }

    /// Where an entry lies.
    #[must_use]
    pub fn entry(&self, entry: Entry) -> &EntryPlan {
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

/// How often each entry is read, by node and output: once per use by an operator, once per output
/// of the graph.
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
    /// By storage: the uses still to come of all entries in it. Never negative, unless ignored
    /// inputs are taken.
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

    fn storage(&self, entry: Entry) -> Option<usize> {
        self.entries[entry.node][entry.output].storage
    }

    /// Outputs that go where an input is.
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

    /// The other outputs, the largest first, of equals the later one.
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

    /// The storages of inputs that were read for the last time, and of outputs that nobody reads.
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
