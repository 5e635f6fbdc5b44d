//! The moves by which a search leaves a state, and those that it can make without a choice.
//!
//! Both ends of a search use the same rules; `F` is true for the front end. No rule loses the last
//! order within the budget:
//!
//! - **Forced moves.** Forwards, an operator that can run now within the budget and leaves no more
//!   live bytes than before is run. Moving it to the front of any completion leaves no state
//!   higher: the bytes that it adds never grow with the set it runs after, and no other chunk dies
//!   later or is overwritten less, as more readers have run. Backwards, the operator run last is
//!   undone if no more bytes are live before it and its step is within the budget; the argument is
//!   the same from the end, by submodularity.
//! - **Lazy operators**: see `lazy`. From the other end they are forced moves.
//! - **Blocks**, forwards: operators that can wait move with one that needs them or reads the
//!   same chunk; see `blocks`.
//! - **Valleys.** Let `y` be a state reached from `r` within the budget, with no more bytes live
//!   than at `r`, and no downset between the two with fewer than at `y`. Then `y` is the only
//!   successor of `r` that is needed. Forwards, for any later state `q` of another completion of
//!   `r`, `live(q ∪ y) <= live(q) + live(y) - live(q ∩ y) <= live(q)`, so running the operators of
//!   `y` first is no worse. Backwards the argument uses `q ∩ y`. An operator `w` of `y` that could
//!   overwrite a chunk `c` in the other order, but no longer can, has `size(c)` fewer bytes in the
//!   state before it in the new order, by the same inequality after `w`, which pays for its output.
//!   If some downset between the two has fewer bytes, the cut finds it, and it takes the place of
//!   `y`: the path to `y` restricted to it stays within the budget.
//! - **Dives** look for a valley beyond one move: they follow the operators that the moves since `r`
//!   concern, the one that leaves the fewest bytes first. A dive that finds none changes nothing.

use crate::effort::Effort;
use crate::{
    Bytes,
    order::{
        blocks::{Block, Blocks},
        cut::{Cutter, Range},
        layer::Place,
        lazy::{Lazies, Waits},
        model::Model,
        mutations::{Mutation, has_mutation},
        sets::{difference, has, insert, remove},
    },
};

/// The number of moves with a choice in a dive.
const DEPTH: usize = 8;

/// An operator does not concern the other readers of a chunk if there are more than this.
const MAX_READERS: usize = 32;

/// The moves within a budget.
pub(super) struct Moves<'a> {
    model: &'a Model,
    waits: &'a Waits,
    budget: Bytes,
    cutter: Cutter,
    blocks: Blocks,
    /// The least step that exceeded the budget.
    pub(super) refused: Bytes,
    /// The operators moved since the last [`Self::start`], in order.
    pub(super) moved: Vec<u32>,
    /// Operators whose move may have become forced, each once.
    open: Vec<u32>,
    is_open: Vec<bool>,
    /// The last start after which a move concerned each operator.
    concerned: Vec<u32>,
    starts: u32,
    /// A state without some operators.
    set: Vec<u64>,
}

impl<'a> Moves<'a> {
    pub(super) fn new(model: &'a Model, waits: &'a Waits, budget: Bytes) -> Self {
        Self {
            model,
            waits,
            budget,
            cutter: Cutter::new(model),
            blocks: Blocks::new(model),
            refused: Bytes::MAX,
            moved: Vec::new(),
            open: Vec::new(),
            is_open: vec![false; model.operators()],
            concerned: vec![0; model.operators()],
            starts: 0,
            set: Vec::new(),
        }
    }

    /// Forgets the moves made so far.
    pub(super) fn start(&mut self) {
        self.moved.clear();
        for operator in self.open.drain(..) {
            self.is_open[operator as usize] = false;
        }
        if self.starts == u32::MAX {
            self.concerned.fill(0);
            self.starts = 0;
        }
        self.starts += 1;
    }

    /// Returns the bytes of the step by which a ready operator is moved, and those live beyond it.
    fn weigh<const F: bool>(&mut self, operator: u32, place: &Place) -> (Bytes, Bytes) {
        let needs = self.lazies::<F>().needs.get(operator as usize);
        if !F && needs.iter().any(|&lazy| has(&place.set, lazy)) {
            return self.weigh_with_lazies(operator, place);
        }
        let produced = self.model.produced[operator as usize];
        let frees = self.model.frees(operator, &place.set);
        let adds = self.model.step_adds(operator, &place.set);
        if F {
            let lazy = needs.iter().filter(|&&lazy| !has(&place.set, lazy));
            let lazy: Bytes = lazy.map(|&lazy| self.model.produced[lazy as usize]).sum();
            let live = place.live + lazy;
            (live + adds, live + produced - frees)
        } else {
            let after = place.live + frees - produced;
            (after + adds, after)
        }
    }

    /// As [`weigh`](Self::weigh), backwards, for an operator with lazy operators that are undone right before it.
    ///
    /// The steps of the lazy operators add nothing, so they need no more than is live after the operator's step, which
    /// is at most what that step itself needs, because its outputs overwrite no more than dies.
    fn weigh_with_lazies(&mut self, operator: u32, place: &Place) -> (Bytes, Bytes) {
        let model = self.model;
        let set = &mut self.set;
        set.clone_from(&place.set);
        let mut live = place.live;
        for &lazy in self.waits.back.needs.get(operator as usize).iter().rev() {
            if has(set, lazy) {
                live += model.frees(lazy, set);
                remove(set, lazy);
            }
        }
        let after = live + model.frees(operator, set) - model.produced[operator as usize];
        (after + model.step_adds(operator, set), after)
    }

    /// The visits that weighing an operator takes.
    fn looks<const F: bool>(&self, operator: u32) -> u64 {
        let needs = self.lazies::<F>().needs.get(operator as usize);
        4 + (self.model.reads.get(operator as usize).len() + 2 * needs.len()) as u64
    }

    fn lazies<const F: bool>(&self) -> &'a Lazies {
        if F { &self.waits.front } else { &self.waits.back }
    }

    /// Returns the moves with a choice at a place.
    pub(super) fn choices<const F: bool>(
        &mut self,
        place: &Place,
        goal: &[u64],
        effort: &mut Effort,
    ) -> Vec<Block> {
        if F && self.model.exact {
            let found =
                self.blocks.find(self.model, &self.waits.front, (&place.set, &place.ready), goal);
            effort.spend(std::mem::take(&mut self.blocks.work));
            match found {
                // Only raises are left.
                Some(blocks) if blocks.is_empty() => {
                    let mut raises = difference(goal, &place.set);
                    raises.retain(|&operator| !self.waits.front.lazy[operator as usize]);
                    return raises.pop().map(|last| Block { raises, last }).into_iter().collect();
                }
                Some(blocks) => return blocks,
                None => {}
            }
        }
        place.ready.iter().map(|&last| Block { raises: Vec::new(), last }).collect()
    }

    /// Moves the operators of a block if its last step is within the budget.
    pub(super) fn try_block<const F: bool>(
        &mut self,
        place: &mut Place,
        block: &Block,
        goal: &[u64],
        effort: &mut Effort,
    ) -> bool {
        let position =
            |place: &Place, operator: u32| place.ready.iter().position(|&o| o == operator);
        for &raise in &block.raises {
            let Some(at) = position(place, raise) else { return false };
            effort.spend(self.looks::<F>(raise));
            let (_, after) = self.weigh::<F>(raise, place);
            self.make::<F>(place, at, after, goal);
        }
        position(place, block.last).is_some_and(|at| self.try_move::<F>(place, at, goal, effort))
    }

    /// Moves a ready operator if its step is within the budget.
    fn try_move<const F: bool>(
        &mut self,
        place: &mut Place,
        at: usize,
        goal: &[u64],
        effort: &mut Effort,
    ) -> bool {
        let operator = place.ready[at];
        effort.spend(self.looks::<F>(operator));
        let (step, after) = self.weigh::<F>(operator, place);
        if step > self.budget + Bytes::from(has_mutation(Mutation::LooseBudget)) {
            self.refused = self.refused.min(step);
            return false;
        }
        self.make::<F>(place, at, after, goal);
        true
    }

    /// Moves a ready operator.
    fn make<const F: bool>(&mut self, place: &mut Place, at: usize, after: Bytes, goal: &[u64]) {
        let operator = place.ready.swap_remove(at);
        let lazies = self.lazies::<F>();
        let needs = lazies.needs.get(operator as usize);
        for at in 0..needs.len() {
            // Backwards, the last one is undone first.
            let lazy = needs[if F { at } else { needs.len() - 1 - at }];
            if has(&place.set, lazy) != F {
                self.put::<F>(lazy, place);
                self.concern(lazies.needed_by.get(lazy as usize), place);
            }
        }
        self.put::<F>(operator, place);
        place.live = after;
        for &next in lazies.successors.get(operator as usize) {
            if self.is_ready::<F>(next, &place.set, goal) {
                place.ready.push(next);
                self.concern(&[next], place);
            }
        }
    }

    /// Adds an operator to the state, or backwards removes it.
    fn put<const F: bool>(&mut self, operator: u32, place: &mut Place) {
        if F {
            insert(&mut place.set, operator);
        } else {
            remove(&mut place.set, operator);
        }
        self.moved.push(operator);
        for &chunk in self.model.reads.get(operator as usize) {
            self.concern(self.model.readers.get(chunk as usize), place);
        }
    }

    /// Records that a move changes the bytes that moving these operators frees or adds.
    fn concern(&mut self, operators: &[u32], place: &Place) {
        if operators.len() > MAX_READERS {
            self.open(&place.ready);
            return;
        }
        for &operator in operators {
            self.concerned[operator as usize] = self.starts;
        }
        self.open(operators);
    }

    fn open(&mut self, operators: &[u32]) {
        for &operator in operators {
            if !std::mem::replace(&mut self.is_open[operator as usize], true) {
                self.open.push(operator);
            }
        }
    }

    /// Makes all forced moves from a place, without assuming anything about how it was reached.
    pub(super) fn close_all<const F: bool>(
        &mut self,
        place: &mut Place,
        goal: &[u64],
        effort: &mut Effort,
    ) {
        place.ready = self.ready::<F>(&place.set, goal);
        self.open(&place.ready);
        self.close::<F>(place, place.live, goal, effort);
    }

    /// Makes all forced moves after moves from a place with none and `floor` live bytes.
    ///
    /// Only moves that concern an operator change by how much it raises or lowers the live bytes. An operator that no
    /// move concerned can only become forced if the budget prevented its move before and fewer bytes are live now.
    pub(super) fn close<const F: bool>(
        &mut self,
        place: &mut Place,
        mut floor: Bytes,
        goal: &[u64],
        effort: &mut Effort,
    ) {
        let mut denied: Vec<u32> = Vec::new();
        while let Some(operator) = self.open.pop() {
            self.is_open[operator as usize] = false;
            effort.spend(1 + place.ready.len() as u64 / 32);
            let Some(at) = place.ready.iter().position(|&ready| ready == operator) else {
                continue;
            };
            effort.spend(self.looks::<F>(operator));
            let (step, after) = self.weigh::<F>(operator, place);
            if after > place.live + Bytes::from(has_mutation(Mutation::RaisingMove)) {
                continue;
            }
            if step > self.budget {
                self.refused = self.refused.min(step);
                denied.push(operator);
                continue;
            }
            let lower = after < place.live;
            self.make::<F>(place, at, after, goal);
            if lower {
                self.open(&denied);
                denied.clear();
            }
            if place.live < floor {
                floor = place.live;
                self.open(&place.ready);
            }
        }
    }

    /// Looks for a valley beyond the moves since `from`, and goes there.
    pub(super) fn dive<const F: bool>(
        &mut self,
        place: &mut Place,
        from: &Place,
        goal: &[u64],
        effort: &mut Effort,
    ) -> bool {
        // Moves that a dive rejects must not affect the bound of the search.
        let refused = self.refused;
        let floor = from.live + Bytes::from(has_mutation(Mutation::HighValley));
        for _ in 0..DEPTH {
            if place.live <= floor {
                break;
            }
            let mut best = None;
            for (at, &operator) in place.ready.iter().enumerate() {
                if self.concerned[operator as usize] == self.starts {
                    effort.spend(self.looks::<F>(operator));
                    let (step, after) = self.weigh::<F>(operator, place);
                    let key = (after, step, operator, at);
                    if step <= self.budget && best.is_none_or(|other| key < other) {
                        best = Some(key);
                    }
                }
            }
            effort.spend(place.ready.len() as u64 / 8);
            let Some((after, .., at)) = best else { break };
            self.make::<F>(place, at, after, goal);
            self.close::<F>(place, from.live, goal, effort);
        }
        self.refused = refused;
        let found = place.live <= floor;
        if found {
            self.deepen::<F>(place, from, goal, effort);
        }
        found
    }

    /// Goes from a place with no more live bytes than `from` to the valley between the two: the
    /// downset with the fewest. [`Self::moved`] are the moves since `from`.
    pub(super) fn deepen<const F: bool>(
        &mut self,
        place: &mut Place,
        from: &Place,
        goal: &[u64],
        effort: &mut Effort,
    ) {
        if has_mutation(Mutation::ValleyWithoutCut) {
            return;
        }
        let (low, high) = if F { (from, &*place) } else { (&*place, from) };
        let free = difference(&high.set, &low.set);
        let range = Range { inside: &low.set, free: &free };
        let least = self.cutter.least(self.model, &range, None);
        effort.spend(std::mem::take(&mut self.cutter.work));
        let live = low.live - least.touched_inside + least.touched;
        if live < place.live {
            self.moved.retain(|&operator| has(&least.set, operator) == F);
            (place.set, place.live) = (least.set, live);
            self.close_all::<F>(place, goal, effort);
        }
    }

    /// Returns whether an operator that has not been moved can be moved, as far as other operators
    /// allow.
    fn is_ready<const F: bool>(&self, operator: u32, set: &[u64], goal: &[u64]) -> bool {
        let mut before = self.lazies::<F>().predecessors.get(operator as usize).iter();
        has(goal, operator) == F && before.all(|&first| has(set, first) == F)
    }

    fn ready<const F: bool>(&self, set: &[u64], goal: &[u64]) -> Vec<u32> {
        let (low, high) = if F { (set, goal) } else { (goal, set) };
        let mut ready = difference(high, low);
        ready.retain(|&operator| {
            !self.lazies::<F>().lazy[operator as usize] && self.is_ready::<F>(operator, set, goal)
        });
        ready
    }

    /// Counts moves. Lazy operators move with others and do not count.
    pub(super) fn count<const F: bool>(&self, moves: &[u32]) -> usize {
        let lazy = |&&operator: &&u32| self.lazies::<F>().lazy[operator as usize];
        moves.len() - moves.iter().filter(lazy).count()
    }
}
