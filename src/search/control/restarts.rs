//! Restarts: decides whether everything fits under a limit, in many short rounds.
//!
//! The time of one search has a heavy tail: one branching order finds a packing in a hundred nodes
//! where another needs a billion. So the search restarts on Luby's schedule: most rounds have few
//! nodes, and each has another branching order, another branching rule and a little random noise.
//! Rounds share their no-goods and counts of contradictions. A round that ends within its nodes,
//! without a packing, proves that there is none, unless it places true sizes beside rounded ones. If
//! there are staircases, rounds alternate with the disjunctive search.
//!
//! Bodies that cannot move obstruct the search from its first node, which changes all of its branches. So if there
//! are any, half of the nodes go to rounds with *pinned items*: fixed rectangles are placed like other items, and a
//! branch ends as soon as one of them lies at another offset. A search that packs a problem without pins often packs
//! it this way too.

use crate::search::{
    Stage,
    branching::{
        body_order::{LAP, rank_bodies, rank_by_guide},
        tree::Tree,
    },
    control::{limit_schedule::ROUNDS_AT_BOUND, meter::Meter},
    disjunctive::Disjunctive,
    effort::{UNIT, Verdict, luby, weigh},
    reasoning::{nogoods::Nogoods, pivot::BranchRule, valleys::Valleys},
    state::{instance::Instance, skyline::Skyline},
};

const BRANCH_RULES: [BranchRule; 4] =
    [BranchRule::Fewest, BranchRule::WasteHalf, BranchRule::Faults, BranchRule::WasteThrice];

pub struct Restarts<'a> {
    inst: &'a Instance,
    valleys: Valleys<'a>,
    tree: Tree,
    nogoods: Nogoods,
    /// The other search, if there are staircases.
    pub disjunctive: Option<Disjunctive>,
    /// The rounds with pinned items in the place of fixed rectangles.
    pinned: Option<Box<Pinned<'a>>>,
    /// The offsets of the last packing.
    offsets: Vec<u64>,
    round: u64,
    rank: Vec<u32>,
    /// By body: its offset in a packing that guides every second round, if it has one there.
    guide: Option<Vec<Option<u64>>>,
}

/// Rounds with pinned items.
struct Pinned<'a> {
    search: Restarts<'a>,
    /// The number of rounds so far.
    rounds: u64,
    /// The highest limit to try.
    most: u64,
    /// The highest limit that was refuted for packings in which every pinned item rests on others.
    refuted: Option<u64>,
}

/// The nodes of both searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    pub in_disjunctive: u64,
    pub in_valleys: u64,
}

impl NodeCounts {
    fn total(self) -> u64 {
        self.in_disjunctive + self.in_valleys
    }
}

impl<'a> Restarts<'a> {
    /// Creates the rounds of a thread; each thread has its own noise in the branching orders.
    pub fn new(inst: &'a Instance, thread: u64) -> Self {
        let pinned = inst.pinned.as_deref().filter(|_| inst.stages.has(Stage::Pinned));
        let searches = 1 + usize::from(pinned.is_some());
        Self {
            disjunctive: Disjunctive::new(inst).filter(|_| inst.stages.has(Stage::Orders)),
            pinned: pinned.map(|pinned| {
                let search = Self::in_valleys(&pinned.inst, thread, searches);
                Box::new(Pinned { search, rounds: 0, most: u64::MAX, refuted: None })
            }),
            ..Self::in_valleys(inst, thread, searches)
        }
    }

    /// Creates the rounds of one of several searches, without the disjunctive search.
    fn in_valleys(inst: &'a Instance, thread: u64, searches: usize) -> Self {
        Self {
            inst,
            valleys: Valleys::new(Skyline::new(inst, 0)),
            tree: Tree::default(),
            nogoods: Nogoods::one_of(searches),
            disjunctive: None,
            pinned: None,
            offsets: Vec::new(),
            round: first_round(thread),
            rank: vec![0; inst.bodies()],
            guide: None,
        }
    }

    /// Lets a packing of some bodies, the offsets of the others unknown, guide every second round.
    pub fn guided_by(self, offsets: Vec<Option<u64>>) -> Self {
        Self { guide: Some(offsets), ..self }
    }

    /// Searches with pinned items under this limit and lower ones only.
    pub fn pin_below(&mut self, most: u64) {
        if let Some(pinned) = &mut self.pinned {
            pinned.most = most;
        }
    }

    /// The number of nodes so far. A node that examines many bodies counts for several.
    pub fn nodes(&self) -> u64 {
        self.spent().total()
    }

    fn spent(&self) -> NodeCounts {
        NodeCounts {
            in_disjunctive: self.disjunctive.as_ref().map_or(0, Disjunctive::nodes),
            in_valleys: self.in_own_valleys() + self.in_pinned(),
        }
    }

    fn in_pinned(&self) -> u64 {
        self.pinned.as_ref().map_or(0, |pinned| pinned.search.nodes())
    }

    fn in_own_valleys(&self) -> u64 {
        weigh(self.tree.nodes, self.valleys.work())
    }

    /// Searches under a limit for this many rounds, or until the meter ends it.
    pub fn decide(&mut self, limit: u64, rounds: u64, meter: &mut Meter<'_>) -> Verdict {
        let before = self.spent();
        let mut run = self.disjunctive.as_ref().map_or(0, |search| search.first_run(rounds));
        let mut round = 0;
        while round < rounds && !meter.is_over(self.nodes()) {
            let verdict = if self.is_disjunctive_due(before) {
                let verdict = self.run_disjunctive(limit, run, meter);
                run = run.saturating_mul(4);
                verdict
            } else {
                round += 1;
                self.run_rounds(limit, luby(round.div_ceil(LAP)), meter)
            };
            if verdict != Verdict::NodeLimit {
                return verdict;
            }
        }
        Verdict::NodeLimit
    }

    /// Returns whether it is the disjunctive search's turn. It goes first, and its share of the
    /// nodes grows with the share of staircases among the bodies.
    fn is_disjunctive_due(&self, before: NodeCounts) -> bool {
        let now = self.spent();
        let bodies = self.inst.bodies() as u64;
        let staircases = (self.inst.staircases.len() - self.inst.fixed.len()) as u64;
        let had = (now.in_disjunctive - before.in_disjunctive) * bodies;
        let due = (now.in_valleys - before.in_valleys) * staircases * 4;
        self.disjunctive.is_some() && had <= due
    }

    fn run_disjunctive(&mut self, limit: u64, nodes: u64, meter: &mut Meter<'_>) -> Verdict {
        let in_valleys = self.spent().in_valleys;
        let Some(disjunctive) = &mut self.disjunctive else { return Verdict::NodeLimit };
        let verdict = disjunctive.decide(limit, nodes, &mut meter.part(in_valleys, u64::MAX));
        if verdict == Verdict::Packed {
            self.offsets = disjunctive.offsets();
        }
        verdict
    }

    /// Searches with pinned items if bodies cannot move, and the valleys for one round.
    fn run_rounds(&mut self, limit: u64, units: u64, meter: &mut Meter<'_>) -> Verdict {
        let verdict = self.run_pinned(limit, meter);
        if verdict != Verdict::NodeLimit || meter.is_over(self.nodes()) {
            return verdict;
        }
        let elsewhere = self.nodes() - self.in_own_valleys();
        self.run_round(limit, units, &mut meter.part(elsewhere, u64::MAX))
    }

    /// Searches with pinned items until that has taken as many nodes as the rest. A refutation is no proof: a pinned
    /// item may lie where it rests on nothing.
    fn run_pinned(&mut self, limit: u64, meter: &mut Meter<'_>) -> Verdict {
        let elsewhere = self.nodes() - self.in_pinned();
        let (Some(pinned), Some(other)) = (&mut self.pinned, &self.inst.pinned) else {
            return Verdict::NodeLimit;
        };
        let meter = &mut meter.part(elsewhere, u64::MAX);
        let Pinned { search, rounds, most, refuted } = &mut **pinned;
        while limit <= *most
            && search.nodes() <= elsewhere
            && refuted.is_none_or(|refuted| refuted < limit)
        {
            *rounds += 1;
            let units = luby(in_sweep(*rounds).div_ceil(LAP));
            match search.run_round(limit, units, meter) {
                Verdict::Packed => {
                    self.offsets = other.original_offsets(&search.offsets);
                    return Verdict::Packed;
                }
                Verdict::Refuted => *refuted = Some(limit),
                Verdict::NodeLimit if meter.is_over(search.nodes()) => {
                    return Verdict::NodeLimit;
                }
                Verdict::NodeLimit => {}
            }
        }
        Verdict::NodeLimit
    }

    /// Searches the valleys for one round, of this many [`UNIT`]s of nodes or a little more.
    fn run_round(&mut self, limit: u64, units: u64, meter: &mut Meter<'_>) -> Verdict {
        let unit = UNIT + 2 * self.inst.bodies() as u64;
        self.tree.last = self.tree.nodes.saturating_add(unit.saturating_mul(units));
        match &self.guide {
            Some(guide) if self.round % 2 == 1 => {
                rank_by_guide(guide, limit, self.round, &mut self.rank);
            }
            _ if self.inst.stages.has(Stage::BodyOrders) => {
                rank_bodies(self.inst, self.round, &mut self.rank);
            }
            _ => rank_bodies(self.inst, self.round * LAP, &mut self.rank),
        }
        self.valleys.rule = self.branch_rule();
        self.valleys.sky.reset(limit);
        let verdict = self.tree.run(&mut self.valleys, &self.rank, &mut self.nogoods, meter);
        if verdict == Verdict::Refuted && self.inst.exact.is_some() {
            // This is no proof for the true sizes. Count the round as fully spent, so that the rounds come to an end.
            self.nogoods.clear();
            let rest = self.tree.last.saturating_sub(self.tree.nodes);
            self.tree.nodes += rest.min(meter.left(self.in_own_valleys()));
            self.round += 1;
            return Verdict::NodeLimit;
        }
        if verdict == Verdict::Packed {
            self.offsets = self.valleys.sky.offsets().to_vec();
        }
        self.round += u64::from(verdict == Verdict::NodeLimit);
        verdict
    }

    fn branch_rule(&self) -> BranchRule {
        if self.inst.exact.is_some() {
            // True sizes fail in the same few sections again and again.
            return BranchRule::Faults;
        }
        if !self.inst.stages.has(Stage::BranchRules) {
            return BRANCH_RULES[0];
        }
        let at = (self.round / 2 + self.round / LAP) % BRANCH_RULES.len() as u64;
        BRANCH_RULES[usize::try_from(at).unwrap_or(0)]
    }

    /// The offsets, in units by body, of the last packing.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }
}

/// The place of a round, counted from 1, in its sweep; each sweep is twice as long as the one before.
fn in_sweep(round: u64) -> u64 {
    let sweeps = ((round - 1) / ROUNDS_AT_BOUND + 1).ilog2();
    round - ROUNDS_AT_BOUND * ((1 << sweeps) - 1)
}

/// The first round of a thread; 0 for the first thread.
fn first_round(thread: u64) -> u64 {
    // Any numbers far apart would do; these do well on the hardest public problem.
    if thread == 0 { 0 } else { (thread + 4) << 20 }
}

#[cfg(test)]
mod tests;
