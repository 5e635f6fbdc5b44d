//! Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) of a choice. The random numbers have a fixed
//! seed, so the result is always the same.

use crate::{
    lists::{NOBODY, narrow},
    recompute::{
        gaps::{self, Gap},
        repair::Over,
        search::{Choice, Search, apply},
        sweep::{EARLY, Score},
    },
};

/// The random numbers of splitmix64 (Steele, Lea and Flood, 2014).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`, which is not 0.
    #[allow(clippy::cast_possible_truncation, reason = "the result is below `count`")]
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// A number from 0 to 1.
    #[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(super) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// An approximation of the exponential of a number that is not positive. It uses only multiplications, so that the
/// result is the same on every machine; library functions may differ.
fn exp(of: f64) -> f64 {
    let mut power = (1.0 + of / 1024.0).max(0.0);
    for _ in 0..10 {
        power *= power;
    }
    power
}

/// Rounds of annealing, each from the best choice so far.
const ROUNDS: u64 = 12;

/// At most this fraction of the effort left after a round is for shifts: 1 / `SHIFTS`.
const SHIFTS: u64 = 8;

/// A round tries at most this many changes, times the square of the number of operators that may run again.
const TRIES: u64 = 100;

/// The first temperature of a round, as a fraction of the mean cost of an operator. This and the numbers below were
/// measured on training steps of 61 to 399 operators.
const HOT: f64 = 0.2;
/// The natural logarithm of the last temperature divided by the first: a twentieth.
const COOLING: f64 = -2.995_732_273_553_991;

/// The penalty for an excess of 1, as a fraction of the total cost; and the limits of its change, as factors.
const PENALTY: f64 = 0.1;
const MIN_PENALTY: f64 = 0.1;
const MAX_PENALTY: f64 = 30.0;

/// After this many changes, the penalty falls or rises by a factor if most choices were inside or outside the budget.
const WINDOW: u32 = 200;
const FACTOR: f64 = 1.1;

/// The weight of costs while no choice is within the budget.
const WEIGHT_OUTSIDE: f64 = 0.05;

/// The part of the proposals that consist of one more change.
const ONE_MORE: f64 = 0.2;

/// Improves the best choice of a search until its effort ends.
pub(super) fn anneal(search: &mut Search<'_, '_, '_>) {
    if search.candidates.is_empty() {
        return;
    }
    let mut random = Random(7);
    for round in (1..=ROUNDS).rev() {
        let whole = search.effort.limit_to(round);
        let from = search.best.clone().unwrap_or_else(|| search.least.clone());
        Annealing::new(search, from, round % 3 > 0, &mut random).run();
        search.effort.restore(whole);
        let whole = search.effort.limit_to(round.max(SHIFTS));
        search.shift();
        search.add_chains();
        search.effort.restore(whole);
    }
}

struct Annealing<'a, 'm, 'e, 'o> {
    search: &'a mut Search<'m, 'e, 'o>,
    random: &'a mut Random,
    /// True in two of three rounds: then copies may run at steps where nothing reads them, and operands may be dropped
    /// over short gaps. Both often lead away from good choices.
    is_wide: bool,
    thresholds: Vec<u32>,
    /// By operator: its slot in the present choice.
    slots: Vec<u32>,
    score: Score,
    /// The bytes above the budget, summed up over the runs, as a part of the budget.
    excess: f64,
    /// The weighted cost, and the penalty for the excess.
    energy: f64,
    /// The penalty for an excess of 1, and the one at the beginning.
    penalty: f64,
    first_penalty: f64,
    temperature: f64,
    /// The change under trial: operators with their new thresholds.
    changes: Vec<(u32, u32)>,
    found: Vec<u32>,
}

#[allow(clippy::cast_precision_loss, reason = "costs are compared with noise")]
impl<'a, 'm, 'e, 'o> Annealing<'a, 'm, 'e, 'o> {
    fn new(
        search: &'a mut Search<'m, 'e, 'o>,
        from: Choice,
        is_wide: bool,
        random: &'a mut Random,
    ) -> Self {
        let total: u64 = search.model.cost.iter().sum();
        let penalty = total as f64 * PENALTY;
        let score = search.score(&from.thresholds);
        let mut annealing = Self {
            slots: search.sweep.slots.clone(),
            search,
            random,
            is_wide,
            thresholds: from.thresholds,
            score,
            excess: 0.0,
            energy: 0.0,
            penalty,
            first_penalty: penalty,
            temperature: 0.0,
            changes: Vec::new(),
            found: Vec::new(),
        };
        annealing.excess = annealing.measured_excess();
        annealing.energy = annealing.energy_of(score, annealing.excess);
        annealing
    }

    /// The excess of the last walk.
    fn measured_excess(&self) -> f64 {
        self.search.excess() / self.search.budget.max(1) as f64
    }

    fn energy_of(&self, score: Score, excess: f64) -> f64 {
        let weight = if self.search.best.is_none() { WEIGHT_OUTSIDE } else { 1.0 };
        weight * score.cost as f64 + self.penalty * excess
    }

    fn run(&mut self) {
        let start = self.search.effort.looks();
        let costs = self.search.candidates.iter().map(|&one| self.search.model.cost[one as usize]);
        let mean = costs.map(|cost| cost as f64).sum::<f64>() / self.search.candidates.len() as f64;
        let (mut tries, mut inside) = (0, 0);
        let candidates = self.search.candidates.len() as u64;
        let most = TRIES.saturating_mul(candidates.saturating_mul(candidates));
        let mut tried = 0;
        while !self.search.is_over() && tried < most {
            tried += 1;
            let done = self.search.effort.done_since(start).max(tried as f64 / most as f64);
            self.temperature = mean * HOT * exp(done * COOLING);
            if !self.propose() {
                self.search.effort.spend(64);
                continue;
            }
            self.try_changes();
            tries += 1;
            inside += u32::from(self.score.peak <= self.search.budget);
            if tries == WINDOW {
                self.move_penalty(inside);
                (tries, inside) = (0, 0);
            }
        }
        if let Some(best) = self.search.best.clone() {
            let mut thresholds = best.thresholds;
            self.search.restore(&mut thresholds);
        }
    }

    /// Makes the proposed change, and undoes it at random if it is worse (the Metropolis rule).
    fn try_changes(&mut self) {
        let old = apply(&mut self.thresholds, &self.changes);
        let score = self.search.score(&self.thresholds);
        self.search.note(&self.thresholds, score);
        let excess = self.measured_excess();
        let energy = self.energy_of(score, excess);
        let worse = energy - self.energy;
        if worse <= 0.0 || self.random.part() < exp(-worse / self.temperature) {
            (self.score, self.energy, self.excess) = (score, energy, excess);
            self.slots.clone_from(&self.search.sweep.slots);
        } else {
            apply(&mut self.thresholds, &old);
        }
    }

    /// Adapts the penalty so that about half of the choices are within the budget.
    fn move_penalty(&mut self, inside: u32) {
        if inside < WINDOW * 3 / 10 {
            self.penalty *= FACTOR;
        } else if inside > WINDOW * 7 / 10 {
            self.penalty /= FACTOR;
        }
        let first = self.first_penalty;
        self.penalty = self.penalty.clamp(first * MIN_PENALTY, first * MAX_PENALTY);
        self.energy = self.energy_of(self.score, self.excess);
    }

    /// Makes a random change; returns whether there is one.
    fn propose(&mut self) -> bool {
        self.changes.clear();
        self.propose_one();
        while self.random.part() < ONE_MORE {
            self.propose_one();
        }
        !self.changes.is_empty()
    }

    fn propose_one(&mut self) {
        let operator = self.search.candidates[self.random.below(self.search.candidates.len())];
        let at = operator as usize;
        if self.thresholds[at] > 0 && self.slots[at] == 0 {
            // No operator reads its results from the threshold on, so this changes nothing.
            self.thresholds[at] = 0;
        }
        let is_dropped = self.thresholds[at] > 0;
        match self.random.below(10) {
            7.. => self.exchange(operator),
            0..=3 if is_dropped => self.changes.push((operator, 0)),
            4 if is_dropped => self.move_gap(operator),
            5 if is_dropped && self.is_wide && self.random.below(2) == 0 => {
                self.run_anywhere(operator);
            }
            5 if is_dropped => self.run_early(operator),
            3 if !is_dropped && self.is_wide => self.run_anywhere(operator),
            6 if is_dropped => self.join_readers(operator),
            draw => self.drop(operator, draw > 2),
        }
    }

    /// Drops the results of an operator over one of its gaps, most often the longest.
    fn drop(&mut self, operator: u32, with_operands: bool) {
        let is_longest = self.random.below(3) > 0;
        let Some(Gap { threshold, until }) = self.gap(operator, is_longest) else { return };
        self.changes.push((operator, threshold));
        if with_operands {
            let is_last = self.is_wide && self.random.below(2) == 0;
            let over = if is_last { Over::Last } else { Over::Longest };
            let drops = (operator, until);
            self.search.add_operands(drops, over, &self.thresholds, &mut self.changes);
            if self.random.below(2) == 0 {
                let most = 1 + self.random.below(self.changes.len());
                self.changes.truncate(most);
            }
        }
    }

    /// The longest gap, or any, after which an operator may run again.
    fn gap(&mut self, operator: u32, is_longest: bool) -> Option<Gap> {
        let model = self.search.model;
        gaps::uses(model, &self.slots, operator, &mut self.found);
        let gap = if is_longest {
            gaps::longest(operator, &self.found)
        } else {
            gaps::gaps(operator, &self.found).nth(self.random.below(self.found.len().max(1)))
        };
        gap.filter(|gap| gap.until <= model.latest[operator as usize])
    }

    /// Moves the drop of an operator's results to another gap.
    fn move_gap(&mut self, operator: u32) {
        if let Some(Gap { threshold, .. }) = self.gap(operator, false)
            && threshold != self.thresholds[operator as usize]
        {
            self.changes.push((operator, threshold));
        }
    }

    /// Makes the results of an operator again at any step before their last use.
    fn run_anywhere(&mut self, operator: u32) {
        let model = self.search.model;
        gaps::uses(model, &self.slots, operator, &mut self.found);
        let last = self.found.last().map_or(0, |&last| last.min(model.latest[operator as usize]));
        if last > operator {
            let step = operator + 1 + narrow(self.random.below((last - operator) as usize));
            self.changes.push((operator, step | EARLY));
        }
    }

    /// Makes the results of an operator again where an operand is read or made again.
    fn run_early(&mut self, operator: u32) {
        let model = self.search.model;
        let reads = model.reads.get(operator as usize);
        if reads.is_empty() {
            return;
        }
        let value = reads[self.random.below(reads.len())];
        let producer = model.storages[model.values[value as usize].storage as usize].producer;
        if producer == NOBODY {
            return;
        }
        gaps::uses(model, &self.slots, producer, &mut self.found);
        self.found.push(self.slots[producer as usize]);
        // Right before an operator that reads it, or right after.
        let after = narrow(self.random.below(2));
        self.found.iter_mut().for_each(|at| *at += after);
        let slot = self.slots[operator as usize];
        self.found.retain(|&at| at > operator && (at < slot || slot == 0));
        if !self.found.is_empty() {
            let at = self.found[self.random.below(self.found.len())];
            if at <= model.latest[operator as usize] {
                self.changes.push((operator, at | EARLY));
            }
        }
    }

    /// Makes the results of all readers that run again right where an operator does.
    fn join_readers(&mut self, operator: u32) {
        let model = self.search.model;
        let slot = self.slots[operator as usize];
        for &reader in model.readers.get(operator as usize) {
            let reader = model.leader[reader as usize];
            let at = reader as usize;
            let may_move = self.thresholds[at] > 0 && self.slots[at] > slot;
            if may_move && slot > reader && slot <= model.latest[at] {
                self.changes.push((reader, slot | EARLY));
            }
        }
    }

    /// Drops the results of one of two operators and keeps the other's. The second operator is an operand, a reader, or
    /// any.
    fn exchange(&mut self, operator: u32) {
        let Some(other) = self.partner(operator).filter(|&other| other != operator) else { return };
        let is_dropped = |one: u32| self.thresholds[one as usize] > 0;
        let (kept, dropped) = match (is_dropped(operator), is_dropped(other)) {
            (true, false) => (operator, other),
            (false, true) => (other, operator),
            _ => return,
        };
        if self.search.model.latest[dropped as usize] == 0 {
            return;
        }
        let with_operands = self.random.below(2) == 0;
        let before = self.changes.len();
        self.drop(dropped, with_operands);
        if self.changes.len() > before {
            self.changes.push((kept, 0));
        }
    }

    fn partner(&mut self, operator: u32) -> Option<u32> {
        let model = self.search.model;
        let candidates = &self.search.candidates;
        let mut pick =
            |list: &[u32]| (!list.is_empty()).then(|| list[self.random.below(list.len())]);
        match pick(&[0, 1, 2])? {
            0 => {
                let value = pick(model.reads.get(operator as usize))?;
                let storage = model.values[value as usize].storage as usize;
                Some(model.storages[storage].producer).filter(|&producer| producer != NOBODY)
            }
            1 => {
                let reader = pick(model.readers.get(operator as usize))?;
                Some(model.leader[reader as usize])
            }
            _ => pick(candidates),
        }
    }
}
