//! The live bytes of an expanded sequence, by one walk over it.
//!
//! A choice gives every operator a *threshold*: its results are dropped after their last reader before that
//! step, and made again for the first reader from that step on. Threshold 0 stands for operators that run
//! only once. A copy runs right before the operator of the given sequence for which it is needed, directly or
//! for another copy: in the *slot* of that operator. If no operator reads the results before that slot, the
//! operator does not run twice but later: it is *deferred*, at no cost. So every choice is a valid expanded
//! sequence, and only its peak and its cost have to be computed.

use crate::{
    Bytes,
    lists::{NOBODY, narrow},
    recompute::model::Model,
};

/// Added to a threshold if the results are made again right at that step, before they are read, while the operands
/// are still live.
pub(super) const EARLY: u32 = 1 << 31;

/// The cost and the peak of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    /// The cost of all copies.
    pub(super) cost: u64,
    /// The most live bytes.
    pub(super) peak: Bytes,
}

/// A run of an operator in the expanded sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) operator: u32,
    pub(super) is_copy: bool,
}

/// Buffers for walks over expanded sequences, and the results of the last one.
pub(super) struct Sweep<'m> {
    pub(super) model: &'m Model,
    /// By operator: the step before which its copy runs; 0 if it has none.
    pub(super) slots: Vec<u32>,
    /// By operator: true if it runs in its slot only.
    pub(super) deferred: Vec<bool>,
    pub(super) runs: Vec<Run>,
    /// By run: the live bytes.
    pub(super) live: Vec<Bytes>,
    /// By step: the place in `runs` of the operator of the given sequence, or, if it is deferred, of the first run
    /// after its slot.
    pub(super) places: Vec<u32>,
    /// By storage, and again by storage for the copies: the first and the last run in which it is live.
    pub(super) first: Vec<u32>,
    pub(super) last: Vec<u32>,
    /// By value: where in `last` its storage is.
    now: Vec<u32>,
    /// By slot: the first copy in it; by operator: the next copy in the same slot.
    heads: Vec<u32>,
    next: Vec<u32>,
    /// The overlays that may be granted: the run, the input's storage in `last`, the overlay.
    asked: Vec<(u32, u32, u32, Bytes)>,
    changes: Vec<i64>,
    /// The runs and values visited so far, for the effort.
    pub(super) work: u64,
}

impl<'m> Sweep<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        let operators = model.operators();
        let storages = model.storages.len();
        Self {
            model,
            slots: vec![0; operators],
            deferred: vec![false; operators],
            runs: Vec::with_capacity(2 * operators),
            live: Vec::with_capacity(2 * operators),
            places: vec![0; operators],
            first: vec![NOBODY; 2 * storages],
            last: vec![NOBODY; 2 * storages],
            now: vec![NOBODY; model.values.len()],
            heads: vec![NOBODY; operators + 1],
            next: vec![NOBODY; operators],
            asked: Vec::new(),
            changes: Vec::new(),
            work: 0,
        }
    }

    /// Walks over the sequence that a choice leads to.
    pub(super) fn score(&mut self, thresholds: &[u32]) -> Score {
        let cost = self.place_copies(thresholds);
        self.list_runs();
        self.find_lives();
        let peak = self.add_up();
        self.work += self.runs.len() as u64;
        Score { cost, peak }
    }

    /// Finds the slot of every copy, from the last operator to the first: readers come before what they read. Returns
    /// the cost of all copies.
    fn place_copies(&mut self, thresholds: &[u32]) -> u64 {
        let mut cost = 0;
        self.heads.fill(NOBODY);
        for operator in (0..self.model.operators()).rev() {
            (self.slots[operator], self.deferred[operator]) = (0, false);
            let leader = self.model.leader[operator] as usize;
            let threshold = thresholds[leader] & !EARLY;
            if threshold as usize <= operator || self.model.latest[operator] == 0 {
                continue;
            }
            let (mut slot, mut first) = (NOBODY, NOBODY);
            for &reader in self.model.readers.get(operator) {
                let at = reader as usize;
                let copy = self.slots[at];
                for step in [if self.deferred[at] { copy } else { reader }, copy] {
                    if step >= threshold {
                        slot = slot.min(step);
                    } else if step > 0 {
                        first = first.min(step);
                    }
                }
            }
            if slot != NOBODY && leader == operator && thresholds[leader] >= EARLY {
                slot = threshold;
            }
            if slot <= self.model.latest[operator] && slot != NOBODY {
                self.slots[operator] = slot;
                self.deferred[operator] = first == NOBODY && !self.model.makes_kept[operator];
                if !self.deferred[operator] {
                    cost += self.model.cost[operator];
                }
                self.next[operator] = self.heads[slot as usize];
                self.heads[slot as usize] = narrow(operator);
            }
        }
        cost
    }

    fn list_runs(&mut self) {
        self.runs.clear();
        for operator in 0..self.model.operators() {
            let mut copy = self.heads[operator];
            while copy != NOBODY {
                let is_copy = !self.deferred[copy as usize];
                self.runs.push(Run { operator: copy, is_copy });
                copy = self.next[copy as usize];
            }
            self.places[operator] = narrow(self.runs.len());
            if !self.deferred[operator] {
                self.runs.push(Run { operator: narrow(operator), is_copy: false });
            }
        }
    }

    /// Finds the first and the last run of every storage and of its copy.
    fn find_lives(&mut self) {
        let model = self.model;
        let storages = model.storages.len();
        let end = narrow(self.runs.len().saturating_sub(1));
        // As slices, they stay in registers.
        let (first, last, now) = (&mut self.first[..], &mut self.last[..], &mut self.now[..]);
        first.fill(NOBODY);
        last.fill(NOBODY);
        self.asked.clear();
        for (at, storage) in model.storages.iter().enumerate() {
            if storage.producer == NOBODY {
                first[at] = 0;
                last[at] = if storage.kept { end } else { 0 };
            }
        }
        for (now, value) in now.iter_mut().zip(&model.values) {
            *now = value.storage;
        }
        for (at, run) in self.runs.iter().enumerate() {
            let (at, operator) = (narrow(at), run.operator as usize);
            let reads = model.reads.get(operator);
            for &value in reads {
                extend(&mut last[now[value as usize] as usize], at);
            }
            for overlay in &model.overlays[operator] {
                let input = now[overlay.input as usize];
                self.asked.push((at, input, overlay.output, overlay.bytes));
            }
            let makes = model.makes.get(operator);
            for &made in makes {
                let value = model.values[made as usize];
                let storage = value.storage as usize;
                if value.of != NOBODY {
                    let of = now[value.of as usize];
                    extend(&mut last[of as usize], at);
                    now[made as usize] = of;
                    continue;
                }
                let kept = model.storages[storage].kept;
                let instance = storage + if run.is_copy { storages } else { 0 };
                first[instance] = at;
                last[instance] = if kept && !run.is_copy { end } else { at };
                if !kept || !run.is_copy {
                    now[made as usize] = narrow(instance);
                }
            }
            self.work += (reads.len() + makes.len()) as u64;
        }
    }

    /// Adds up the live bytes of every run; returns the most.
    fn add_up(&mut self) -> Bytes {
        let model = self.model;
        self.changes.clear();
        self.changes.resize(self.runs.len() + 1, 0);
        let changes = &mut self.changes[..];
        let storages = model.storages.iter().chain(&model.storages);
        for ((&first, &last), storage) in self.first.iter().zip(&self.last).zip(storages) {
            if first != NOBODY {
                let bytes = storage.bytes.cast_signed();
                changes[first as usize] += bytes;
                changes[last as usize + 1] -= bytes;
            }
        }
        let mut live = 0;
        let runs = self.runs.iter().zip(&self.changes);
        self.live.clear();
        self.live.extend(runs.map(|(run, change)| {
            live += change;
            live.cast_unsigned() + model.workspace[run.operator as usize]
        }));
        self.grant_overlays();
        self.live.iter().copied().max().unwrap_or(0)
    }

    /// Subtracts the bytes of outputs that lie over an input that dies: for each output the first possible input, and
    /// for each input one output.
    fn grant_overlays(&mut self) {
        let mut granted: Vec<(u32, u32, u32)> = Vec::new();
        for &(run, input, output, bytes) in &self.asked {
            let is_taken = |&(at, over, under): &(u32, u32, u32)| {
                at == run && (over == output || under == input)
            };
            if self.last[input as usize] == run && !granted.iter().rev().take(8).any(is_taken) {
                granted.push((run, output, input));
                self.live[run as usize] = self.live[run as usize].saturating_sub(bytes);
            }
        }
    }
}

/// Extends the lifetime of a storage to a run, if it ends earlier.
fn extend(last: &mut u32, run: u32) {
    *last = run.max(*last);
}
