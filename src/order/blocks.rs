//! The moves with a choice at the front of a search: blocks of operators.
//!
//! A *raise* is an operator that lets no chunk die when it runs and has neither a workspace nor an
//! unread output: it only adds what it produces. A raise can wait. A *block* is some raises followed by
//! one operator that is not a raise, the *last* one, which lets chunks die or has a hill. From a state,
//! only these blocks are needed for each last operator:
//!
//! - the operator with the ancestors that it waits for, if these are raises and the operator itself is
//!   then not one;
//! - for each chunk that it reads, the same with all other readers of the chunk and their ancestors, if
//!   these are raises, so that the chunk dies. If the operator is not a raise without these readers
//!   either, the block is needed only if the operator overwrites more with them.
//!
//! *Proof.* Consider an order within the budget that continues from the state. Let `w` be its first
//! operator that is not a raise, and `x` the raises before `w`. Choose a block for `w` as follows: if
//! `w` overwrites a chunk, the block for that chunk; otherwise the first kind, or the block for any
//! chunk that dies. All raises of the block are among `x`. Run the block first, then the rest of `x`.
//! Before `w`, fewer operators have raised the live bytes, and `w` overwrites as many bytes as before,
//! so its step is no larger. Let `d` be the bytes of the chunks that died at `w` in the old order and
//! are still live after `w` in the new one. The rest of `x` ends in the state that the old order had
//! after `w`, and needs at most `d` bytes more than are live in that state. In the old order, `w`
//! needed at least as many: before it, all chunks that died at it were live, and what it overwrote is
//! no larger than the chunks that died in the block.
//!
//! If there is no block, all operators left are raises, which can run in any order.

use crate::order::{
    lazy::Lazies,
    model::Model,
    mutations::{Mutation, has_mutation},
    sets::{has, insert, narrow, remove},
};

/// Operators to move one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The raises, ascending. They are in no tree, so this order is executable.
    pub(super) raises: Vec<u32>,
    pub(super) last: u32,
}

/// An operator that can run after raises alone.
struct Reached {
    operator: u32,
    /// The raises that it waits for, ascending.
    waits: Vec<u32>,
    is_raise: bool,
}

/// Finds blocks.
pub(super) struct Blocks {
    reached: Vec<Reached>,
    /// The index in `reached` of each operator.
    index: Vec<u32>,
    set: Vec<u64>,
    /// The operators and chunks visited, for the effort.
    pub(super) work: u64,
}

const NONE: u32 = u32::MAX;

impl Blocks {
    pub(super) fn new(model: &Model) -> Self {
        Self { reached: Vec::new(), index: vec![NONE; model.operators()], set: Vec::new(), work: 0 }
    }

    /// Finds the blocks needed at a state, of operators inside `goal`; `None` if an operator
    /// overwrites chunks in a way that the proof at the top of this file does not cover.
    pub(super) fn find(
        &mut self,
        model: &Model,
        lazies: &Lazies,
        (set, ready): (&[u64], &[u32]),
        goal: &[u64],
    ) -> Option<Vec<Block>> {
        self.set.clear();
        self.set.extend_from_slice(set);
        self.reach(model, lazies, ready, goal);
        let mut blocks = Vec::new();
        let applies = (0..self.reached.len()).all(|at| self.add_blocks(model, at, &mut blocks));
        for reached in &self.reached {
            self.index[reached.operator as usize] = NONE;
        }
        applies.then_some(blocks)
    }

    /// Finds the operators that can run after raises alone.
    fn reach(&mut self, model: &Model, lazies: &Lazies, ready: &[u32], goal: &[u64]) {
        self.reached.clear();
        for &operator in ready {
            self.add(model, operator, Vec::new());
        }
        let mut at = 0;
        while at < self.reached.len() {
            let Reached { operator, is_raise, .. } = self.reached[at];
            at += 1;
            if !is_raise {
                continue;
            }
            for &next in lazies.successors.get(operator as usize) {
                self.work += 1;
                if !has(goal, next) || self.index[next as usize] != NONE {
                    continue;
                }
                let mut waits = Vec::new();
                let mut first = lazies.predecessors.get(next as usize).iter();
                if !first.all(|&first| self.can_run(first, &mut waits)) {
                    continue;
                }
                waits.sort_unstable();
                waits.dedup();
                self.insert(&waits);
                let any_dies = waits.iter().any(|&raise| self.dies(model, raise));
                self.remove(&waits);
                if !any_dies {
                    self.add(model, next, waits);
                }
            }
        }
    }

    /// Returns whether an operator has run, or can run among raises, which are added to `waits`.
    fn can_run(&self, operator: u32, waits: &mut Vec<u32>) -> bool {
        if has(&self.set, operator) {
            return true;
        }
        let Some(reached) = self.reached.get(self.index[operator as usize] as usize) else {
            return false;
        };
        waits.extend_from_slice(&reached.waits);
        waits.push(operator);
        reached.is_raise
    }

    fn add(&mut self, model: &Model, operator: u32, waits: Vec<u32>) {
        self.insert(&waits);
        let is_raise = (model.adds[operator as usize] == model.produced[operator as usize]
            || has_mutation(Mutation::RaiseWithHill))
            && !self.dies(model, operator);
        self.remove(&waits);
        self.index[operator as usize] = narrow(self.reached.len());
        self.reached.push(Reached { operator, waits, is_raise });
    }

    /// Adds the blocks that end with an operator; returns false if the argument does not apply.
    fn add_blocks(&mut self, model: &Model, at: usize, found: &mut Vec<Block>) -> bool {
        let Reached { operator: last, ref waits, is_raise } = self.reached[at];
        let waits = waits.clone();
        let overwrites = &model.overwrites[last as usize][..];
        let is_single = overwrites.iter().all(|overwrite| {
            let room = model.sizes[overwrite.chunk as usize];
            overwrite.output == overwrites[0].output && overwrite.bytes <= room
        });
        let mut applies = true;
        self.insert(&waits);
        let adds = model.step_adds(last, &self.set);
        for &chunk in model.reads.get(last as usize) {
            if !is_raise && overwrites.is_empty() || model.dies(chunk, last, &self.set) {
                continue;
            }
            let readers = model.readers.get(chunk as usize).iter();
            self.work += readers.len() as u64;
            let mut raises = waits.clone();
            if !readers.filter(|&&other| other != last).all(|&o| self.can_run(o, &mut raises)) {
                continue;
            }
            raises.sort_unstable();
            raises.dedup();
            // Without overwriting, it does not matter which reader is the last.
            let is_other = overwrites.is_empty() && raises.last() > Some(&last);
            if is_other || raises.contains(&last) {
                continue;
            }
            self.insert(&raises);
            let any_dies = raises.iter().any(|&raise| self.dies(model, raise));
            let gains = is_raise || model.step_adds(last, &self.set) < adds;
            self.remove(&raises);
            self.insert(&waits);
            if !any_dies && !has_mutation(Mutation::BlockWithoutReaders) {
                applies &= is_single;
                if gains {
                    found.push(Block { raises, last });
                }
            }
        }
        self.remove(&waits);
        if !is_raise {
            found.push(Block { raises: waits, last });
        }
        applies
    }

    /// Returns whether a chunk that an operator reads dies where it runs.
    fn dies(&mut self, model: &Model, operator: u32) -> bool {
        let reads = model.reads.get(operator as usize);
        self.work += reads.len() as u64;
        reads.iter().any(|&chunk| model.dies(chunk, operator, &self.set))
    }

    fn insert(&mut self, operators: &[u32]) {
        for &operator in operators {
            insert(&mut self.set, operator);
        }
    }

    fn remove(&mut self, operators: &[u32]) {
        for &operator in operators {
            remove(&mut self.set, operator);
        }
    }
}
