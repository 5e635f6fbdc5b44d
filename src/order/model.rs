//! The peak of live bytes as a function of the order.
//!
//! The bytes that are live between two steps depend on the *set* of operators that have run, not on
//! their order. So do the chunks that die in the next step and therefore the chunks that are
//! overwritten (rule a of lowering requires the last reader). The set is closed under predecessors:
//! a *downset*. An order is a path from the empty downset to the full one, one operator at a time,
//! and its peak is the largest of its steps:
//!
//! ```text
//! live(S)    = the bytes live at all times
//!            + the chunks produced in S, or live from the start, with a reader outside S
//! step(v, S) = live(S) + the outputs of v that overwrite nothing, and its workspace
//! ```
//!
//! The search rests on two facts. *live is submodular*, `live(A ∪ B) + live(A ∩ B) <= live(A) +
//! live(B)`: for a chunk, "produced in S" is modular and "all readers in S" supermodular. And *the
//! bytes that a step adds never grow with S*: the more readers have run, the more chunks die and
//! the more is overwritten. The second fact fails for operators that choose among several outputs
//! and chunks in certain ways; [`Model::exact`] is then false.

use std::collections::HashMap;

use crate::{
    Bytes,
    lower::CountedGraph,
    order::{
        mutations::{Mutation, has_mutation},
        overwrites::{Overwrite, is_monotone, overwritten},
        sets::{Lists, NOBODY, has, insert, narrow, words},
    },
};

/// The operators and chunks of a sequence or of a part of one.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The operators that must run before each.
    pub(super) predecessors: Lists,
    pub(super) successors: Lists,
    /// The bytes that are live at all times.
    pub(super) base: Bytes,
    pub(super) sizes: Vec<Bytes>,
    /// The producer of each chunk; [`NOBODY`] if it is live from the start.
    pub(super) producers: Vec<u32>,
    /// By chunk: true if it is kept to the end.
    pub(super) kept: Vec<bool>,
    /// The operators that read each chunk.
    pub(super) readers: Lists,
    /// The chunks that each operator reads and that can die.
    pub(super) reads: Lists,
    /// The chunks that each operator produces and that outlive its step.
    pub(super) produces: Lists,
    /// The bytes of those chunks.
    pub(super) produced: Vec<Bytes>,
    /// The bytes of all outputs and the workspace of each operator.
    pub(super) adds: Vec<Bytes>,
    /// The requests of each operator's outputs to overwrite chunks, in order.
    pub(super) overwrites: Vec<Vec<Overwrite>>,
    /// The bytes of inputs that no operator reads: they are live only in the first step.
    pub(super) unread: Bytes,
    /// True if every operator's step is as described at the top of this file. If not, the model still
    /// serves to find orders and to bound them by cuts, but a failed search proves nothing. In every
    /// order, the peak of the model is at most the peak of a plan.
    pub(super) exact: bool,
}

impl Model {
    pub(super) fn of(graph: &CountedGraph, predecessors: &[Vec<usize>]) -> Self {
        let operators = predecessors.len();
        let mut parts = Parts::new(operators);
        let mut exact = graph.is_exact;
        let mut numbers = vec![None; graph.chunks.len()];
        let inside = graph.chunks.iter().enumerate().filter(|(_, chunk)| !chunk.outside);
        for (index, chunk) in inside {
            let size = chunk.size;
            let producer = chunk.producer.map_or(NOBODY, narrow);
            if let Some(producer) = chunk.producer {
                parts.adds[producer] += size;
            }
            let readers = chunk.readers.iter().map(|&reader| narrow(reader)).collect();
            numbers[index] = parts.chunk(size, producer, chunk.kept, readers);
        }
        for request in &graph.requests {
            let Some(chunk) = numbers[request.overwritten.index()] else { continue };
            let made = request.made.and_then(|chunk| numbers[chunk.index()]);
            let overwrite = Overwrite {
                output: request.output,
                bytes: request.saved,
                size: request.size,
                required: request.required,
                chunk,
                made: made.unwrap_or(NOBODY),
            };
            let overwrites = &mut parts.overwrites[request.operator];
            // An output that may overwrite one chunk and must overwrite another cannot run in every
            // order.
            exact &= !request.required || !overwrites.iter().any(|w| w.output == overwrite.output);
            overwrites.push(overwrite);
        }
        let lists = predecessors.iter().map(|list| list.iter().map(|&first| narrow(first)));
        let mut model = parts.finish(Lists::new(lists));
        model.exact = exact && model.is_exact();
        model
    }

    pub(super) fn operators(&self) -> usize {
        self.adds.len()
    }

    pub(super) fn words(&self) -> usize {
        words(self.operators())
    }

    /// Returns whether a chunk that `operator` reads dies when it runs after `set`.
    pub(super) fn dies(&self, chunk: u32, operator: u32, set: &[u64]) -> bool {
        // The last readers usually run last, so check them first.
        let readers = self.readers.get(chunk as usize).iter().rev();
        !self.kept[chunk as usize] && { readers }.all(|&r| r == operator || has(set, r))
    }

    /// Returns the bytes that die when `operator` runs after `set`.
    pub(super) fn frees(&self, operator: u32, set: &[u64]) -> Bytes {
        let reads = self.reads.get(operator as usize).iter();
        reads
            .filter(|&&chunk| self.dies(chunk, operator, set))
            .map(|&chunk| self.sizes[chunk as usize])
            .sum()
    }

    /// Returns the bytes that the step of `operator` after `set` adds to the live ones.
    pub(super) fn step_adds(&self, operator: u32, set: &[u64]) -> Bytes {
        let adds = self.adds[operator as usize];
        match &self.overwrites[operator as usize][..] {
            [] => adds,
            // Where an output saves the bytes of several chunks, they may be counted twice.
            overwrites => {
                let saved = overwritten(overwrites, |chunk| self.dies(chunk, operator, set));
                adds.saturating_sub(saved)
            }
        }
    }

    /// The bytes live before the first step.
    pub(super) fn live_at_start(&self) -> Bytes {
        let chunks = 0..self.sizes.len();
        let supplied = chunks.filter(|&chunk| self.producers[chunk] == NOBODY);
        self.base + supplied.map(|chunk| self.sizes[chunk]).sum::<Bytes>()
    }

    /// The bytes live after a downset.
    pub(super) fn live_after(&self, set: &[u64]) -> Bytes {
        let live = |&chunk: &usize| {
            let produced = self.producers[chunk];
            (produced == NOBODY || has(set, produced))
                && (self.kept[chunk] || !self.readers.get(chunk).iter().all(|&r| has(set, r)))
        };
        let chunks = (0..self.sizes.len()).filter(live);
        self.base + chunks.map(|chunk| self.sizes[chunk]).sum::<Bytes>()
    }

    /// The bytes of every step of an order.
    pub(super) fn steps(&self, order: &[u32]) -> Vec<Bytes> {
        let mut set = vec![0; self.words()];
        let mut live = self.live_at_start();
        let mut steps = Vec::with_capacity(order.len());
        let mut unread = self.unread;
        for &operator in order {
            steps.push(live + self.step_adds(operator, &set) + std::mem::take(&mut unread));
            live = live + self.produced[operator as usize] - self.frees(operator, &set);
            insert(&mut set, operator);
        }
        steps
    }

    /// The most bytes that an order needs.
    pub(super) fn peak(&self, order: &[u32]) -> Bytes {
        self.steps(order).into_iter().max().unwrap_or(0)
    }

    /// Returns the same operators without chunks below `least` bytes. No order needs more than in
    /// the full model.
    pub(super) fn without_chunks_below(&self, least: Bytes) -> Self {
        let mut model = self.clone();
        let small: Vec<bool> = self.sizes.iter().map(|&size| size < least).collect();
        for (chunk, _) in small.iter().enumerate().filter(|(_, small)| **small) {
            let size = std::mem::take(&mut model.sizes[chunk]);
            let producer = model.producers[chunk] as usize;
            if model.producers[chunk] != NOBODY {
                model.produced[producer] -= size;
                model.adds[producer] -= size;
            }
        }
        for overwrite in model.overwrites.iter_mut().flatten() {
            if overwrite.made != NOBODY && small[overwrite.made as usize] {
                overwrite.bytes = 0;
            } else if small[overwrite.chunk as usize] {
                // The chunk has no bytes left that the output can save.
                let size = self.sizes[overwrite.chunk as usize];
                overwrite.bytes = overwrite.bytes.saturating_sub(size);
            }
        }
        model.exact &= model.is_exact();
        model
    }

    /// Returns whether outputs never overwrite less as more chunks die, and unread inputs cannot be
    /// the peak, whichever operator runs first.
    fn is_exact(&self) -> bool {
        let bound = || self.operands();
        self.overwrites.iter().all(|overwrites| is_monotone(overwrites, &self.sizes))
            && (self.unread == 0
                || self.first_steps().max() <= Some(bound())
                || has_mutation(Mutation::UnreadIsNoPeak))
    }

    /// The bytes of the first step of an order, for each operator that it can be.
    fn first_steps(&self) -> impl Iterator<Item = Bytes> {
        let live = self.live_at_start() + self.unread;
        let nothing = vec![0; self.words()];
        (0..self.operators())
            .filter(|&operator| self.predecessors.get(operator).is_empty())
            .map(move |operator| live + self.step_adds(narrow(operator), &nothing))
    }

    /// The least bytes of the first step of an order.
    pub(super) fn least_first_step(&self) -> Bytes {
        self.first_steps().min().unwrap_or(0)
    }

    /// Returns the operators of `part`, in the given order, as a model of their own. They run after
    /// those of `before`, a downset that leaves `live` bytes, and before all others.
    pub(super) fn part(&self, part: &[u32], before: &[u64], live: Bytes) -> Self {
        let numbers: HashMap<u32, u32> = part.iter().copied().zip(0..).collect();
        let number = |operator: u32| numbers.get(&operator).copied();
        let mut parts = Parts::new(part.len());
        let mut chunks: HashMap<u32, Option<u32>> = HashMap::new();
        parts.base = live;
        // They have died unless the part comes first.
        let is_first = before.iter().all(|&word| word == 0);
        parts.unread = if is_first { self.unread } else { 0 };
        let touched = |&operator: &u32| {
            let operator = operator as usize;
            self.reads.get(operator).iter().chain(self.produces.get(operator))
        };
        for &chunk in part.iter().flat_map(touched) {
            let at = chunk as usize;
            if chunks.contains_key(&chunk) {
                continue;
            }
            let producer = Some(self.producers[at]).filter(|&p| p != NOBODY).and_then(number);
            let readers = self.readers.get(at);
            let later = |&reader: &u32| number(reader).is_none() && !has(before, reader);
            let kept = self.kept[at] || readers.iter().any(later);
            let readers = readers.iter().filter_map(|&reader| number(reader)).collect();
            if producer.is_none() {
                // The chunk is live before the part and is counted separately from here on.
                parts.base -= self.sizes[at];
            }
            let producer = producer.unwrap_or(NOBODY);
            chunks.insert(chunk, parts.chunk(self.sizes[at], producer, kept, readers));
        }
        for (number, &operator) in part.iter().enumerate() {
            parts.adds[number] = self.adds[operator as usize];
            let overwrites = self.overwrites[operator as usize].iter();
            let chunk = |chunk: u32| chunks.get(&chunk).copied().flatten();
            let made = |overwrite: &Overwrite| chunk(overwrite.made).unwrap_or(NOBODY);
            let inside = |overwrite: &Overwrite| {
                Some(Overwrite {
                    chunk: chunk(overwrite.chunk)?,
                    made: made(overwrite),
                    ..*overwrite
                })
            };
            parts.overwrites[number] = overwrites.filter_map(inside).collect();
        }
        let predecessors = part.iter().map(|&operator| {
            let list = self.predecessors.get(operator as usize).iter();
            list.filter_map(|&first| number(first))
        });
        // In the whole graph, unread inputs may be known not to be the peak; for a part, that need not hold.
        let exact = self.exact && parts.unread == 0;
        Self { exact, ..parts.finish(Lists::new(predecessors)) }
    }
}

/// A model under construction.
pub(super) struct Parts {
    pub(super) base: Bytes,
    pub(super) unread: Bytes,
    sizes: Vec<Bytes>,
    producers: Vec<u32>,
    kept: Vec<bool>,
    readers: Vec<Vec<u32>>,
    pub(super) adds: Vec<Bytes>,
    pub(super) overwrites: Vec<Vec<Overwrite>>,
}

impl Parts {
    pub(super) fn new(operators: usize) -> Self {
        Self {
            base: 0,
            unread: 0,
            sizes: Vec::new(),
            producers: Vec::new(),
            kept: Vec::new(),
            readers: Vec::new(),
            adds: vec![0; operators],
            overwrites: vec![Vec::new(); operators],
        }
    }

    /// Adds a chunk if it is more than a constant number of bytes. A chunk that is live from start
    /// to end always counts; an unread one counts in one step only.
    pub(super) fn chunk(
        &mut self,
        size: Bytes,
        producer: u32,
        kept: bool,
        readers: Vec<u32>,
    ) -> Option<u32> {
        if producer == NOBODY && kept {
            self.base += size;
            return None;
        }
        if size == 0 || (readers.is_empty() && !kept) {
            self.unread += if producer == NOBODY { size } else { 0 };
            return None;
        }
        self.sizes.push(size);
        self.producers.push(producer);
        self.kept.push(kept);
        self.readers.push(readers);
        Some(narrow(self.sizes.len() - 1))
    }

    pub(super) fn finish(self, predecessors: Lists) -> Model {
        let operators = self.adds.len();
        let readers = Lists::new(self.readers);
        let mut reads = vec![Vec::new(); operators];
        let mut produces = vec![Vec::new(); operators];
        let mut produced = vec![0; operators];
        for chunk in 0..self.sizes.len() {
            if self.producers[chunk] != NOBODY {
                produces[self.producers[chunk] as usize].push(narrow(chunk));
                produced[self.producers[chunk] as usize] += self.sizes[chunk];
            }
            if !self.kept[chunk] {
                for &reader in readers.get(chunk) {
                    reads[reader as usize].push(narrow(chunk));
                }
            }
        }
        Model {
            successors: predecessors.inverted(operators),
            predecessors,
            base: self.base,
            unread: self.unread,
            sizes: self.sizes,
            producers: self.producers,
            kept: self.kept,
            readers,
            reads: Lists::new(reads),
            produces: Lists::new(produces),
            produced,
            adds: self.adds,
            overwrites: self.overwrites,
            exact: true,
        }
    }
}
