//! Decides whether an order within a budget of bytes exists.
//!
//! The search walks through downsets from both ends, in layers of equally many operators, by the
//! rules of `moves`. Two more rules drop all other open states:
//!
//! - **Valleys**: once a state is a valley as seen from the position of its end, the end moves there.
//!   The states in between that a width has dropped do not matter.
//! - **Narrows.** Every order passes a state that is the only open one.
//!
//! If states differ only by exchanges of symmetric branches, one of them is kept: see `symmetry`.
//!
//! A search that ends with no open state and has dropped none proves that no order fits. The least step
//! that it rejected is then a new bound, because for any smaller budget the search would make the same
//! moves.

use crate::effort::Effort;
use std::collections::BTreeMap;

use crate::{
    Bytes,
    order::{
        layer::{Layer, Place},
        lazy::Waits,
        model::Model,
        moves::Moves,
        mutations::{Mutation, has_mutation},
        sets::{difference, full, narrow},
        symmetry::Symmetry,
    },
};

/// The result of a search.
#[derive(Debug)]
pub(super) enum Answer {
    /// An order within the budget.
    Order(Vec<u32>),
    /// No order needs less than this, which is above the budget.
    AtLeast(Bytes),
    /// The search stopped without a result, and would probably do so for any budget below this as well.
    UnknownBelow(Bytes),
}

/// A search for an order.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) model: &'a Model,
    pub(super) waits: &'a Waits,
    pub(super) symmetry: &'a Symmetry,
    pub(super) budget: Bytes,
    /// The largest number of states in a layer.
    pub(super) width: usize,
    /// The turns that the ends take.
    pub(super) turns: &'a [Turn],
}

/// The work that each end may do before the other end moves, in visits as counted by the effort.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) backwards: u64,
    pub(super) forwards: u64,
}

/// The ends take turns, because a valley of one makes the other's range smaller, and often one of
/// them has far less to do.
pub(super) const TURNS: [Turn; 4] = [
    Turn { backwards: 2_000_000, forwards: 2_000_000 },
    Turn { backwards: 12_000_000, forwards: 12_000_000 },
    Turn { backwards: 72_000_000, forwards: 72_000_000 },
    Turn { backwards: 0, forwards: u64::MAX },
];

impl Question<'_> {
    pub(super) fn answer(&self, effort: &mut Effort) -> Answer {
        let mut search = Search {
            question: self,
            moves: Moves::new(self.model, self.waits, self.budget),
            dropped: false,
            paths: Vec::new(),
            steps: Vec::new(),
        };
        let mut front = End::new(vec![0; self.model.words()], self.model);
        let mut back = End::new(full(self.model.operators()), self.model);
        let is_bounded = self.model.exact && !has_mutation(Mutation::FreeFirstStep);
        let first = if is_bounded { self.model.least_first_step() } else { front.place.live };
        let least = first.max(back.place.live);
        if least > self.budget {
            return Answer::AtLeast(least);
        }
        for &Turn { backwards, forwards } in self.turns {
            let mut moved = search.advance::<false>(&mut back, &front.place.set, backwards, effort);
            if moved == Stop::Capped {
                moved = search.advance::<true>(&mut front, &back.place.set, forwards, effort);
            }
            match moved {
                Stop::Met => return search.order(front, back),
                Stop::Stuck if search.is_complete() => {
                    let above = Bytes::from(has_mutation(Mutation::HighRefusal));
                    return Answer::AtLeast(search.moves.refused.saturating_add(above));
                }
                Stop::Stuck | Stop::NodeLimit => break,
                Stop::Capped => {}
            }
        }
        Answer::UnknownBelow(search.moves.refused)
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
    NodeLimit,
}

struct Search<'a> {
    question: &'a Question<'a>,
    moves: Moves<'a>,
    /// True if a state was dropped because of the width, and no valley has made up for it.
    dropped: bool,
    /// The path by which each state since the end's last position was reached: the previous path,
    /// and the index in `steps` where the operators of the last piece begin; they end where the
    /// next path's begin.
    paths: Vec<(u32, u32)>,
    steps: Vec<u32>,
}

const ROOT: u32 = u32::MAX;

/// A place reached from a state, with the moves there.
#[derive(Default)]
struct Child {
    place: Place,
    moved: Vec<u32>,
}

impl Search<'_> {
    /// Returns whether a search without an order proves that none exists.
    fn is_complete(&self) -> bool {
        self.question.model.exact && (!self.dropped || has_mutation(Mutation::ProofWithGaps))
    }

    /// Moves an end towards the other.
    fn advance<const F: bool>(
        &mut self,
        end: &mut End,
        goal: &[u64],
        most: u64,
        effort: &mut Effort,
    ) -> Stop {
        let (mut place, mut from) = (Place::default(), Place::default());
        let mut children: Vec<Child> = Vec::new();
        let symmetry = self.question.symmetry.alike_in(goal);
        let mut key = Vec::new();
        let key_looks = symmetry.operators() as u64;
        self.set_out::<F>(end, goal, effort);
        loop {
            let needed = self.distance::<F>(&end.place.set, goal);
            if needed == 0 {
                return Stop::Met;
            }
            self.paths.clear();
            self.steps.clear();
            let mut dropped = false;
            let mut layers: BTreeMap<usize, Layer> = BTreeMap::new();
            layers.entry(0).or_default().insert(&end.place, None, || ROOT);
            let end_of_turn = effort.looks().saturating_add(most);
            let taken = 'search: loop {
                let Some((count, mut layer)) = layers.pop_first() else {
                    self.dropped |= dropped;
                    return Stop::Stuck;
                };
                if count > 0 && layer.len() == 1 && layers.is_empty() {
                    self.dropped |= dropped;
                    layer.load(0, &mut place);
                    self.moves.start();
                    break 'search layer.path(0);
                }
                dropped |= layer.cut_to(self.question.width);
                for state in layer.states() {
                    if effort.looks() >= end_of_turn {
                        return Stop::Capped;
                    }
                    if effort.is_spent() {
                        return Stop::NodeLimit;
                    }
                    layer.load(state, &mut from);
                    let found = self.expand::<F>(&from, &mut children, goal, effort);
                    for child in &children[..found] {
                        let count = count + self.moves.count::<F>(&child.moved);
                        if child.place.live <= end.place.live || count == needed {
                            place.clone_from(&child.place);
                            self.moves.moved.clone_from(&child.moved);
                            break 'search layer.path(state);
                        }
                        let (paths, steps) = (&mut self.paths, &mut self.steps);
                        effort.spend(key_looks);
                        let key = (!symmetry.is_empty()).then(|| {
                            symmetry.key(&child.place.set, &mut key);
                            &key[..]
                        });
                        layers.entry(count).or_default().insert(&child.place, key, || {
                            paths.push((layer.path(state), narrow(steps.len())));
                            steps.extend_from_slice(&child.moved);
                            narrow(paths.len() - 1)
                        });
                    }
                }
            };
            self.stand::<F>(end, (&place, taken), goal, effort);
        }
    }

    /// Finds the places that a state leads to, a valley alone if there is one, and returns their
    /// number.
    fn expand<const F: bool>(
        &mut self,
        from: &Place,
        children: &mut Vec<Child>,
        goal: &[u64],
        effort: &mut Effort,
    ) -> usize {
        let mut found = 0;
        let mut place = Place::default();
        for block in self.moves.choices::<F>(from, goal, effort) {
            if children.len() == found {
                children.push(Child::default());
            }
            let child = &mut children[found];
            child.place.clone_from(from);
            self.moves.start();
            effort.spend(4 + (from.set.len() + from.ready.len()) as u64 / 4);
            if !self.moves.try_block::<F>(&mut child.place, &block, goal, effort) {
                continue;
            }
            self.moves.close::<F>(&mut child.place, from.live, goal, effort);
            child.moved.clone_from(&self.moves.moved);
            place.clone_from(&child.place);
            if self.moves.dive::<F>(&mut place, from, goal, effort) {
                children[0].place.clone_from(&place);
                children[0].moved.clone_from(&self.moves.moved);
                return 1;
            }
            found += 1;
        }
        found
    }

    /// Starts an end at its position.
    fn set_out<const F: bool>(&mut self, end: &mut End, goal: &[u64], effort: &mut Effort) {
        self.moves.start();
        self.moves.close_all::<F>(&mut end.place, goal, effort);
        end.path.append(&mut self.moves.moved);
    }

    /// Moves an end to `place`, reached by a path and the moves made, or to the valley on the way
    /// there.
    fn stand<const F: bool>(
        &mut self,
        end: &mut End,
        (place, path): (&Place, u32),
        goal: &[u64],
        effort: &mut Effort,
    ) {
        let mut pieces = vec![std::mem::take(&mut self.moves.moved)];
        let mut next = path;
        while next != ROOT {
            let (before, begin) = self.paths[next as usize];
            let ends = self.paths.get(next as usize + 1).map(|&(_, begin)| begin as usize);
            let ends = ends.unwrap_or(self.steps.len());
            pieces.push(self.steps[begin as usize..ends].to_vec());
            next = before;
        }
        self.moves.moved = pieces.into_iter().rev().flatten().collect();
        let from = std::mem::replace(&mut end.place, place.clone());
        if place.live <= from.live {
            self.moves.deepen::<F>(&mut end.place, &from, goal, effort);
        }
        end.path.append(&mut self.moves.moved);
    }

    /// Returns the number of moves that count between a state and the goal.
    fn distance<const F: bool>(&self, set: &[u64], goal: &[u64]) -> usize {
        let (low, high) = if F { (set, goal) } else { (goal, set) };
        self.moves.count::<F>(&difference(high, low))
    }

    /// Returns the whole order once the ends have met, including lazy operators that only the back
    /// needs.
    fn order(&self, front: End, back: End) -> Answer {
        let between = difference(&back.place.set, &front.place.set);
        let order: Vec<u32> =
            { front.path.into_iter() }.chain(between).chain(back.path.into_iter().rev()).collect();
        // In an exact model this always holds.
        let peak = self.question.model.peak(&order);
        if peak <= self.question.budget {
            Answer::Order(order)
        } else {
            debug_assert!(!self.question.model.exact, "a search broke its budget");
            Answer::UnknownBelow(self.moves.refused.min(peak))
        }
    }
}
