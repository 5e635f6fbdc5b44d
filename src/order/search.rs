//! Decides whether an order within a budget of bytes exists.
//!
//! The search walks through downsets from both ends, in layers of equally many operators. Both ends
//! use the same rules; `F` is true for the front end. No rule loses the last order within the
//! budget:
//!
//! - **Forced moves.** Forwards, an operator that can run now within the budget and leaves no more
//!   live bytes than before is run. Moving it to the front of any completion leaves no state
//!   higher: the bytes that it adds never grow with the set it runs after, and no other chunk dies
//!   later or is overwritten less, as more readers have run. Backwards, the operator run last is
//!   taken back if no more bytes are live before it and its step is within the budget; the argument
//!   is the same from the end, by submodularity.
//! - **Lazy operators**, forwards: see `lazy`. Backwards they are forced moves.
//! - **Valleys.** Let `r` be the position of this end and `y` a state reached from it, with no more
//!   bytes live than at `r`, and no downset between the two with fewer than at `y`. Then all other
//!   open states are dropped, and the end moves to `y`. Forwards, for any later state `q` of
//!   another completion, `live(q ∪ y) <= live(q) + live(y) - live(q ∩ y) <= live(q)`, so running
//!   the operators of `y` first is no worse. Backwards the argument uses `q ∩ y`. An operator `w`
//!   of `y` that could overwrite a chunk `c` in the other order, but no longer can, has `size(c)`
//!   fewer bytes in the state before it in the new order, by the same inequality after `w`, which
//!   pays for its output. If some downset between the two has fewer bytes, the cut finds it, and
//!   the end moves there instead: the path to `y` restricted to it stays within the budget.
//! - **Narrows.** Every order passes a state that is the only open one.
//!
//! A search that ends with nothing open and nothing dropped is a proof, and the least step that it
//! rejected is a new bound: for any budget below it, the search would be the same.

use std::collections::BTreeMap;

use crate::{
    Bytes,
    order::{
        cut::{Cutter, Range},
        effort::Effort,
        layer::{Layer, Place},
        lazy::Lazies,
        model::Model,
        sets::{difference, full, has, insert, narrow, remove},
    },
};

/// The answer of a search.
#[derive(Debug)]
pub(super) enum Answer {
    /// An order within the budget.
    Order(Vec<u32>),
    /// No order needs less than this, which is above the budget.
    AtLeast(Bytes),
    Unknown,
}

/// A search for an order.
pub(super) struct Question<'a> {
    pub(super) model: &'a Model,
    pub(super) lazies: &'a Lazies,
    pub(super) budget: Bytes,
    /// The largest number of states in a layer.
    pub(super) width: usize,
}

impl Question<'_> {
    pub(super) fn answer(&self, effort: &mut Effort) -> Answer {
        let mut search = Search {
            question: self,
            cutter: Cutter::new(self.model),
            refused: Bytes::MAX,
            dropped: false,
            paths: Vec::new(),
            moves: Vec::new(),
            new_moves: Vec::new(),
        };
        let mut front = End::new(vec![0; self.model.words()], self.model);
        let mut back = End::new(full(self.model.operators()), self.model);
        if front.place.live > self.budget || back.place.live > self.budget {
            return Answer::AtLeast(front.place.live.max(back.place.live));
        }
        // The ends take turns, because a valley of one makes the other's range smaller.
        for (backwards, forwards) in [(3_000, 3_000), (30_000, 30_000), (0, u64::MAX)] {
            let mut moved = search.advance::<false>(&mut back, &front.place.set, backwards, effort);
            if moved == Stop::Capped {
                moved = search.advance::<true>(&mut front, &back.place.set, forwards, effort);
            }
            match moved {
                Stop::Met => return search.order(front, back),
                Stop::Stuck if !search.dropped && self.model.exact => {
                    return Answer::AtLeast(search.refused);
                }
                Stop::Stuck | Stop::Spent => return Answer::Unknown,
                Stop::Capped => {}
            }
        }
        Answer::Unknown
    }
}

/// One end of the search.
struct End {
    place: Place,
    /// The operators moved so far, from the end of the order where this search end began.
    path: Vec<u32>,
}

impl End {
    fn new(set: Vec<u64>, model: &Model) -> Self {
        let live = model.live_after(&set);
        Self { place: Place { set, live, ready: Vec::new() }, path: Vec::new() }
    }
}

/// The reason why an end stops moving.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// It has met the other end.
    Met,
    /// No state is open.
    Stuck,
    /// It has visited as many states as it may.
    Capped,
    /// The effort is used up.
    Spent,
}

struct Search<'a> {
    question: &'a Question<'a>,
    cutter: Cutter,
    /// The least step that exceeded the budget.
    refused: Bytes,
    /// True if a state was dropped because of the width.
    dropped: bool,
    /// The path by which each state since the end's last position was reached: the previous path,
    /// and the index in `moves` where the operators of the last piece begin; they end where the
    /// next path's begin.
    paths: Vec<(u32, u32)>,
    moves: Vec<u32>,
    new_moves: Vec<u32>,
}

const ROOT: u32 = u32::MAX;

impl Search<'_> {
    /// Moves an end towards the other.
    fn advance<const F: bool>(
        &mut self,
        end: &mut End,
        goal: &[u64],
        most: u64,
        effort: &mut Effort,
    ) -> Stop {
        let mut place = Place::default();
        self.set_out::<F>(end, goal, effort);
        loop {
            let needed = self.distance::<F>(&end.place.set, goal);
            if needed == 0 {
                return Stop::Met;
            }
            self.paths.clear();
            self.moves.clear();
            let mut layers: BTreeMap<usize, Layer> = BTreeMap::new();
            layers.entry(0).or_default().insert(&end.place, || ROOT);
            let mut looked = 0;
            let taken = 'search: loop {
                let Some((count, mut layer)) = layers.pop_first() else { return Stop::Stuck };
                if count > 0 && layer.len() == 1 && layers.is_empty() {
                    layer.load(0, &mut place);
                    self.new_moves.clear();
                    break 'search layer.path(0);
                }
                self.dropped |= layer.cut_to(self.question.width);
                for state in layer.states() {
                    looked += 1;
                    if looked > most {
                        return Stop::Capped;
                    }
                    if effort.is_spent() {
                        return Stop::Spent;
                    }
                    layer.load(state, &mut place);
                    for at in 0..place.ready.len() {
                        if at > 0 {
                            layer.load(state, &mut place);
                        }
                        self.new_moves.clear();
                        if !self.try_move::<F>(&mut place, at, goal, false, effort) {
                            continue;
                        }
                        self.close::<F>(&mut place, goal, effort);
                        let moved = self.count::<F>(&self.new_moves);
                        if place.live <= end.place.live || count + moved == needed {
                            break 'search layer.path(state);
                        }
                        let (paths, moves) = (&mut self.paths, &mut self.moves);
                        let new_moves = &self.new_moves;
                        layers.entry(count + moved).or_default().insert(&place, || {
                            paths.push((layer.path(state), narrow(moves.len())));
                            moves.extend_from_slice(new_moves);
                            narrow(paths.len() - 1)
                        });
                        effort.spend(2 + place.set.len() as u64);
                    }
                }
            };
            self.stand::<F>(end, &place, taken, goal, effort);
        }
    }

    /// Starts an end at its position.
    fn set_out<const F: bool>(&mut self, end: &mut End, goal: &[u64], effort: &mut Effort) {
        end.place.ready = self.ready::<F>(&end.place.set, goal);
        self.new_moves.clear();
        self.close::<F>(&mut end.place, goal, effort);
        end.path.append(&mut self.new_moves);
    }

    /// Moves an end to a state: to `place`, reached by a path and the new moves, or to a deeper
    /// valley on the way there.
    fn stand<const F: bool>(
        &mut self,
        end: &mut End,
        place: &Place,
        path: u32,
        goal: &[u64],
        effort: &mut Effort,
    ) {
        let mut pieces = vec![std::mem::take(&mut self.new_moves)];
        let mut next = path;
        while next != ROOT {
            let (before, begin) = self.paths[next as usize];
            let ends = self.paths.get(next as usize + 1).map(|&(_, begin)| begin as usize);
            let ends = ends.unwrap_or(self.moves.len());
            pieces.push(self.moves[begin as usize..ends].to_vec());
            next = before;
        }
        let moves = pieces.into_iter().rev().flatten();
        if place.live > end.place.live {
            end.path.extend(moves);
            end.place = place.clone();
            return;
        }
        let (low, high) = if F { (&end.place, place) } else { (place, &end.place) };
        let free = difference(&high.set, &low.set);
        let range = Range { inside: &low.set, free: &free };
        let least = self.cutter.least(self.question.model, &range, None);
        effort.spend(std::mem::take(&mut self.cutter.work));
        let live = low.live - least.touched_inside + least.touched;
        if live < place.live {
            end.path.extend(moves.filter(|&operator| has(&least.set, operator) == F));
            end.place = Place { set: least.set, live, ready: Vec::new() };
            self.set_out::<F>(end, goal, effort);
        } else {
            end.path.extend(moves);
            end.place = place.clone();
        }
    }

    /// Makes all forced moves.
    fn close<const F: bool>(&mut self, place: &mut Place, goal: &[u64], effort: &mut Effort) {
        let mut idle = 0;
        let mut at = 0;
        while idle < place.ready.len() {
            if at >= place.ready.len() {
                at = 0;
            }
            if self.try_move::<F>(place, at, goal, true, effort) {
                idle = 0;
            } else {
                idle += 1;
                at += 1;
            }
        }
    }

    /// Moves a ready operator if its step is within the budget and, if `forced` is set, no more
    /// bytes are live on the far side of it.
    fn try_move<const F: bool>(
        &mut self,
        place: &mut Place,
        at: usize,
        goal: &[u64],
        forced: bool,
        effort: &mut Effort,
    ) -> bool {
        let Question { model, lazies, budget, .. } = *self.question;
        let operator = place.ready[at];
        let produced = model.produced[operator as usize];
        effort.spend(4 + model.reads.get(operator as usize).len() as u64);
        let (step, after);
        if F {
            let mut live = place.live;
            let moved = self.new_moves.len();
            for &lazy in lazies.needs.get(operator as usize) {
                if !has(&place.set, lazy) {
                    live += model.produced[lazy as usize];
                    insert(&mut place.set, lazy);
                    self.new_moves.push(lazy);
                }
            }
            step = live + model.step_adds(operator, &place.set);
            after = live + produced - model.frees(operator, &place.set);
            if step > budget || (forced && after > place.live) {
                for lazy in self.new_moves.drain(moved..) {
                    remove(&mut place.set, lazy);
                }
                self.refuse(step, forced && after > place.live);
                return false;
            }
            insert(&mut place.set, operator);
        } else {
            remove(&mut place.set, operator);
            after = place.live + model.frees(operator, &place.set) - produced;
            step = after + model.step_adds(operator, &place.set);
            if step > budget || (forced && after > place.live) {
                insert(&mut place.set, operator);
                self.refuse(step, forced && after > place.live);
                return false;
            }
        }
        place.live = after;
        self.new_moves.push(operator);
        place.ready.swap_remove(at);
        let neighbours = if F { &lazies.successors } else { &model.predecessors };
        for &next in neighbours.get(operator as usize) {
            if self.is_ready::<F>(next, &place.set, goal) {
                place.ready.push(next);
            }
        }
        true
    }

    fn refuse(&mut self, step: Bytes, for_its_valley: bool) {
        if !for_its_valley {
            self.refused = self.refused.min(step);
        }
    }

    /// Returns whether an operator that has not been moved can be moved, as far as other operators
    /// allow.
    fn is_ready<const F: bool>(&self, operator: u32, set: &[u64], goal: &[u64]) -> bool {
        let Question { model, lazies, .. } = self.question;
        let at = operator as usize;
        if F {
            has(goal, operator) && lazies.predecessors.get(at).iter().all(|&first| has(set, first))
        } else {
            !has(goal, operator) && !model.successors.get(at).iter().any(|&next| has(set, next))
        }
    }

    fn ready<const F: bool>(&self, set: &[u64], goal: &[u64]) -> Vec<u32> {
        let (low, high) = if F { (set, goal) } else { (goal, set) };
        let mut ready = difference(high, low);
        ready.retain(|&operator| {
            !(F && self.question.lazies.lazy[operator as usize])
                && self.is_ready::<F>(operator, set, goal)
        });
        ready
    }

    /// Returns the number of moves that count between a state and the goal.
    fn distance<const F: bool>(&self, set: &[u64], goal: &[u64]) -> usize {
        let (low, high) = if F { (set, goal) } else { (goal, set) };
        self.count::<F>(&difference(high, low))
    }

    /// Counts moves. Forwards, lazy operators move with others and do not count.
    fn count<const F: bool>(&self, moves: &[u32]) -> usize {
        let lazy = |&&operator: &&u32| F && self.question.lazies.lazy[operator as usize];
        moves.len() - moves.iter().filter(lazy).count()
    }

    /// Returns the whole order once the ends have met, including lazy operators that only the back
    /// needs.
    fn order(&self, front: End, back: End) -> Answer {
        let between = difference(&back.place.set, &front.place.set);
        let order: Vec<u32> =
            { front.path.into_iter() }.chain(between).chain(back.path.into_iter().rev()).collect();
        // In an exact model this always holds.
        if self.question.model.peak(&order) <= self.question.budget {
            Answer::Order(order)
        } else {
            debug_assert!(!self.question.model.exact, "a search broke its budget");
            Answer::Unknown
        }
    }
}
