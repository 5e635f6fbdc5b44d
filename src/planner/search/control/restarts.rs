//! Restarts: decides whether everything fits under a limit, in many short rounds.
//!
//! The time of one search has a heavy tail: one branching order finds a packing in a hundred nodes
//! where another needs a billion. So the search restarts on Luby's schedule: most rounds have few
//! nodes, and each has another branching order, another branching rule and a little random noise.
//! Rounds share their no-goods and counts of contradictions. A round that ends within its nodes,
//! without a packing, proves that there is none, unless it places true sizes beside rounded ones. If
//! there are staircases, rounds alternate with the disjunctive search.

use crate::planner::search::{
    branching::{
        body_order::{LAP, rank_bodies},
        tree::Tree,
    },
    disjunctive::Disjunctive,
    effort::{UNIT, Verdict, luby, weigh},
    reasoning::{nogoods::Nogoods, pivot::BranchRule, valleys::Valleys},
    state::{instance::Instance, skyline::Skyline},
};

/// The number of nodes between two calls of `stop`.
const PAUSE: u64 = 256;

const BRANCH_RULES: [BranchRule; 4] =
    [BranchRule::Fewest, BranchRule::WasteHalf, BranchRule::Faults, BranchRule::WasteThrice];

pub struct Restarts<'a> {
    inst: &'a Instance,
    valleys: Valleys<'a>,
    tree: Tree,
    nogoods: Nogoods,
    /// The other search, if there are staircases.
    pub disjunctive: Option<Disjunctive>,
    /// The rounds upside down, if some bodies cannot move.
    upside_down: Option<Box<Self>>,
    /// The search that found the last packing.
    found: Found,
    /// The offsets of the last packing that was found upside down.
    turned: Vec<u64>,
    round: u64,
    rank: Vec<u32>,
}

/// The search that found a packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    InValleys,
    InDisjunctive,
    UpsideDown,
}

/// The nodes of both searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub in_disjunctive: u64,
    pub in_valleys: u64,
}

impl Spent {
    fn total(self) -> u64 {
        self.in_disjunctive + self.in_valleys
    }
}

impl<'a> Restarts<'a> {
    /// Creates the rounds of a thread; each thread has its own noise in the branching orders.
    pub fn new(inst: &'a Instance, thread: u64) -> Self {
        let upside_down = inst
            .upside_down
            .as_deref()
            .map(|turned| Box::new(Self::new(turned, thread).in_valleys()));
        Self {
            inst,
            valleys: Valleys::new(Skyline::new(inst, 0)),
            tree: Tree::new(),
            nogoods: Nogoods::new(),
            disjunctive: Disjunctive::new(inst),
            upside_down,
            found: Found::InValleys,
            turned: Vec::new(),
            round: first_round(thread),
            rank: vec![0; inst.bodies()],
        }
    }

    /// Leaves out the disjunctive search.
    fn in_valleys(self) -> Self {
        Self { disjunctive: None, ..self }
    }

    /// The number of nodes so far. A node that examines many bodies counts for several.
    pub fn nodes(&self) -> u64 {
        self.spent().total()
    }

    fn spent(&self) -> Spent {
        Spent {
            in_disjunctive: self.disjunctive.as_ref().map_or(0, Disjunctive::nodes),
            in_valleys: self.in_own_valleys()
                + self.upside_down.as_ref().map_or(0, |turned| turned.nodes()),
        }
    }

    fn in_own_valleys(&self) -> u64 {
        weigh(self.tree.nodes, self.valleys.work())
    }

    /// Searches under a limit for this many rounds, until there are `last` nodes, or until `stop`
    /// returns true.
    pub fn decide(
        &mut self,
        limit: u64,
        rounds: u64,
        last: u64,
        stop: &mut impl FnMut(u64) -> bool,
    ) -> Verdict {
        if stop(self.nodes()) {
            return Verdict::Spent;
        }
        let (mut asked, mut stopped) = (self.nodes(), false);
        let mut stop = |nodes: u64| {
            if nodes >= asked + PAUSE {
                asked = nodes;
                stopped = stop(nodes);
            }
            stopped = stopped || nodes >= last;
            stopped
        };
        let before = self.spent();
        let mut run = self.disjunctive.as_ref().map_or(0, |search| search.first_run(rounds));
        let mut round = 0;
        while round < rounds {
            let verdict = if self.is_disjunctive_due(before) {
                let verdict = self.run_disjunctive(limit, run, &mut stop);
                run = run.saturating_mul(4);
                if stop(self.nodes()) {
                    return verdict;
                }
                verdict
            } else {
                if stop(self.nodes()) {
                    break;
                }
                round += 1;
                self.run_rounds(limit, luby(round.div_ceil(LAP)), last, &mut stop)
            };
            if verdict != Verdict::Spent {
                return verdict;
            }
        }
        Verdict::Spent
    }

    /// Returns whether it is the disjunctive search's turn. It goes first, and its share of the
    /// nodes grows with that of staircases among the bodies.
    fn is_disjunctive_due(&self, before: Spent) -> bool {
        let now = self.spent();
        let bodies = self.inst.bodies() as u64;
        let staircases = (self.inst.staircases.len() - self.inst.fixed.len()) as u64;
        let had = (now.in_disjunctive - before.in_disjunctive) * bodies;
        let due = (now.in_valleys - before.in_valleys) * staircases * 4;
        self.disjunctive.is_some() && had <= due
    }

    fn run_disjunctive(
        &mut self,
        limit: u64,
        nodes: u64,
        stop: &mut impl FnMut(u64) -> bool,
    ) -> Verdict {
        let in_valleys = self.spent().in_valleys;
        let Some(disjunctive) = &mut self.disjunctive else { return Verdict::Spent };
        let verdict = disjunctive.decide(limit, nodes, &mut |nodes| stop(nodes + in_valleys));
        if verdict == Verdict::Packed {
            self.found = Found::InDisjunctive;
        }
        verdict
    }

    /// Searches the valleys for one round, and then for one upside down if bodies cannot move.
    fn run_rounds(
        &mut self,
        limit: u64,
        units: u64,
        last: u64,
        stop: &mut impl FnMut(u64) -> bool,
    ) -> Verdict {
        let elsewhere = self.nodes() - self.in_own_valleys();
        let verdict = self.run_round(limit, units, last, elsewhere, stop);
        self.found = Found::InValleys;
        let nodes = self.nodes();
        let Some(turned) = &mut self.upside_down else { return verdict };
        if verdict != Verdict::Spent || stop(nodes) {
            return verdict;
        }
        let elsewhere = nodes - turned.nodes();
        let verdict = turned.run_round(limit, units, last, elsewhere, stop);
        if verdict == Verdict::Packed {
            self.found = Found::UpsideDown;
            let offsets = (0..).zip(turned.valleys.sky.offsets());
            let offset = |(body, offset)| limit - offset - self.inst.height(body);
            self.turned = offsets.map(offset).collect();
        }
        verdict
    }

    /// Searches the valleys for one round, of this many [`UNIT`]s of nodes or a little more, until
    /// there are `last` nodes, some of them `elsewhere`.
    fn run_round(
        &mut self,
        limit: u64,
        units: u64,
        last: u64,
        elsewhere: u64,
        stop: &mut impl FnMut(u64) -> bool,
    ) -> Verdict {
        let unit = UNIT + 2 * self.inst.bodies() as u64;
        let budget = self.tree.nodes.saturating_add(unit.saturating_mul(units));
        rank_bodies(self.inst, self.round, &mut self.rank);
        self.valleys.rule = self.branch_rule();
        self.valleys.reset(limit);
        let verdict =
            self.tree.run(&mut self.valleys, &self.rank, &mut self.nogoods, |nodes, work| {
                stop(elsewhere + weigh(nodes, work)) || nodes >= budget
            });
        if verdict == Verdict::Refuted && self.inst.exact.is_some() {
            // That is no proof for the true sizes. Count a whole round, so that the rounds end.
            self.nogoods = Nogoods::new();
            let rest = budget.saturating_sub(self.tree.nodes);
            self.tree.nodes += rest.min(last.saturating_sub(self.nodes()));
            self.round += 1;
            return Verdict::Spent;
        }
        self.round += u64::from(verdict == Verdict::Spent);
        verdict
    }

    fn branch_rule(&self) -> BranchRule {
        if self.inst.exact.is_some() {
            // True sizes fail in the same few sections again and again.
            return BranchRule::Faults;
        }
        let at = (self.round / 2 + self.round / LAP) % BRANCH_RULES.len() as u64;
        BRANCH_RULES[usize::try_from(at).unwrap_or(0)]
    }

    /// The offsets, in units by body, of the last packing.
    pub fn offsets(&self) -> &[u64] {
        match (self.found, &self.disjunctive) {
            (Found::InDisjunctive, Some(search)) => search.offsets(),
            (Found::UpsideDown, _) => &self.turned,
            _ => self.valleys.sky.offsets(),
        }
    }
}

/// The first round of a thread; that of the first thread is 0.
fn first_round(thread: u64) -> u64 {
    // Any numbers far apart would do; these do well on the hardest public problem.
    if thread == 0 { 0 } else { (thread + 4) << 20 }
}

#[cfg(test)]
mod tests {
    use arbitrary::{Result, Unstructured};

    use super::*;
    use crate::{
        Step,
        planner::search::{
            control::descent::{Attempt, Packer},
            ejection::Ejection,
            samples::{check_places, instance, interlocking},
            state::{fingerprint::scramble, instance::Outline},
        },
        problem::{ChunkId, Segment},
    };

    /// Neither search waits long for its turn, and the disjunctive one begins.
    #[test]
    fn both_searches_take_turns() {
        let problem = interlocking(30);
        let inst = instance(&problem);
        let mut restarts = Restarts::new(&inst, 0);
        let (mut reported, mut last, mut spent) = (Vec::new(), Spent::default(), 0);
        for limit in (inst.bound()..).step_by(60) {
            let verdict = restarts.decide(limit, 4, u64::MAX, &mut |nodes| {
                reported.push(nodes);
                false
            });
            let now = restarts.spent();
            let in_disjunctive = now.in_disjunctive - last.in_disjunctive;
            let in_valleys = now.in_valleys - last.in_valleys;
            last = now;
            match verdict {
                Verdict::Packed => break,
                Verdict::Refuted => {}
                // All bodies are staircases.
                Verdict::Spent => {
                    spent += 1;
                    assert!(in_valleys > 4 * UNIT && in_disjunctive > 2 * in_valleys, "{now:?}");
                    assert!(in_disjunctive < 16 * in_valleys, "{now:?}");
                }
            }
        }
        assert!(spent > 0 && reported.is_sorted(), "{reported:?}");
    }

    /// A rectangle in steps and units.
    #[derive(Clone, Copy, Debug)]
    struct Rect {
        steps: [Step; 2],
        units: [u64; 2],
    }

    impl Rect {
        fn random(random: &mut Unstructured<'_>, low: u64) -> Result<Self> {
            let begin = random.int_in_range(0..=6)?;
            let end = (begin + random.int_in_range(1..=4)?).min(8);
            Ok(Self { steps: [begin, end], units: [low, low + random.int_in_range(1..=5)?] })
        }

        fn lifted(self, by: u64) -> Self {
            Self { units: self.units.map(|at| at + by), ..self }
        }

        fn meets(&self, other: &Self) -> bool {
            let meet = |a: [u64; 2], b: [u64; 2]| a[0] < b[1] && b[0] < a[1];
            meet(self.steps, other.steps) && meet(self.units, other.units)
        }
    }

    /// A body that can move: a rectangle or, now and then, a staircase of two.
    fn random_body(random: &mut Unstructured<'_>) -> Result<Vec<Rect>> {
        let first = Rect::random(random, 0)?;
        let low = random.int_in_range(0..=first.units[1] - 1)?;
        let mut second = Rect::random(random, low)?;
        second.steps = [first.steps[1], first.steps[1] + 1];
        let is_staircase = random.ratio(1, 6)? && first.steps[1] < 8;
        Ok(if is_staircase { vec![first, second] } else { vec![first] })
    }

    fn outline(body: &[Rect], fixed: Option<u64>) -> Outline {
        let root = ChunkId::from_index(0);
        let segment = |&Rect { steps: [begin, end], units: [low, high] }: &Rect| {
            let (low, high) = (low - fixed.unwrap_or(0), high - fixed.unwrap_or(0));
            Segment { chunk: root, begin, end, low, high }
        };
        Outline { root, segments: body.iter().map(segment).collect(), fixed }
    }

    /// Returns whether bodies fit below a limit beside what is placed, by trying all places.
    fn fits(placed: &mut Vec<Rect>, bodies: &[Vec<Rect>], limit: u64) -> bool {
        let Some((body, others)) = bodies.split_first() else { return true };
        (0..limit).any(|offset| {
            let parts: Vec<Rect> = body.iter().map(|part| part.lifted(offset)).collect();
            let is_free = |part: &Rect| {
                part.units[1] <= limit && !placed.iter().any(|other| part.meets(other))
            };
            let is_free = parts.iter().all(is_free);
            let count = placed.len();
            placed.extend(parts);
            let is_packed = is_free && fits(placed, others, limit);
            placed.truncate(count);
            is_packed
        })
    }

    /// Some bodies cannot move; they may cover all steps, as a reserved range does. The valleys
    /// decide alone, in both directions and in turns. Ejection proves nothing.
    #[test]
    fn packings_around_fixed_bodies_are_those_of_trying_all_places() {
        let (mut packed, mut refuted, mut ejected) = (0, 0, 0);
        arbtest::arbtest(|random| {
            let mut fixed: Vec<Rect> = Vec::new();
            for _ in 0..random.int_in_range(1..=4)? {
                let low = random.int_in_range(0..=7)?;
                let mut rect = Rect::random(random, low)?;
                if random.ratio(1, 6)? {
                    rect.steps = [0, 8];
                }
                if !fixed.iter().any(|other| rect.meets(other)) {
                    fixed.push(rect);
                }
            }
            let mut bodies = Vec::new();
            for _ in 0..random.int_in_range(1..=6)? {
                bodies.push(random_body(random)?);
            }
            let pinned = fixed.iter().map(|rect| outline(&[*rect], Some(rect.units[0])));
            let outlines: Vec<Outline> =
                pinned.chain(bodies.iter().map(|body| outline(body, None))).collect();
            let inst = Instance::of_outlines(&outlines, 1, false);
            let is_packed = |limit: u64| fits(&mut fixed.clone(), &bodies, limit * inst.unit);
            let tops = fixed.iter().map(|rect| rect.units[1] / inst.unit);
            let least = tops.max().unwrap_or(0).max(inst.bound());
            let limit = (least..=least + 50).find(|&limit| is_packed(limit)).unwrap();
            let alone = |inst: &Instance| {
                let mut inst = inst.clone();
                inst.upside_down = None;
                inst
            };
            let turned = alone(inst.upside_down.as_deref().unwrap());
            for inst in [alone(&inst), turned, inst.clone()] {
                let mut restarts = Restarts::new(&inst, 0).in_valleys();
                for limit in (least..=limit).rev() {
                    let verdict = restarts.decide(limit, 1000, u64::MAX, &mut |_| false);
                    let is_packed = is_packed(limit);
                    let expected = if is_packed { Verdict::Packed } else { Verdict::Refuted };
                    assert_eq!(verdict, expected, "{fixed:?} {bodies:?} under {limit}");
                    if is_packed {
                        check_places(&inst, limit, restarts.offsets());
                    }
                    packed += u32::from(is_packed);
                    refuted += u32::from(!is_packed);
                }
            }
            if let Some(mut ejection) = Ejection::new(&inst) {
                for (seed, limit) in (0..).zip(least..=limit) {
                    if ejection.pack(Attempt { limit, seed, nodes: 20 }, &mut |_| false) {
                        assert!(is_packed(limit), "{fixed:?} {bodies:?} under {limit}");
                        check_places(&inst, limit, &ejection.offsets());
                        ejected += 1;
                    }
                }
            }
            Ok(())
        })
        .budget_ms(if cfg!(debug_assertions) { 400 } else { 4000 });
        assert!(packed > 0 && refuted > 0 && ejected > 0, "{packed} {refuted} {ejected}");
    }

    /// Cuts a tile into pieces of at least 2 steps and 6 units.
    fn cut(Rect { steps, units }: Rect, depth: u32, into: &mut Vec<Rect>, draws: &mut u64) {
        let mut draw = |range: [u64; 2], least: u64| {
            *draws += 1;
            range[0] + least + scramble(*draws) % (range[1] - range[0] + 1 - 2 * least)
        };
        let (is_high, is_long) = (units[1] - units[0] > 12, steps[1] - steps[0] > 4);
        let mut halves = [Rect { steps, units }; 2];
        if depth == 0 || !(is_high || is_long) {
            into.push(halves[0]);
            return;
        }
        if is_high && (!is_long || draw([0, 1], 0) == 0) {
            let at = draw(units, 6);
            (halves[0].units[1], halves[1].units[0]) = (at, at);
        } else {
            let at = draw(steps, 2);
            (halves[0].steps[1], halves[1].steps[0]) = (at, at);
        }
        for half in halves {
            cut(half, depth - 1, into, draws);
        }
    }

    /// Of a perfect packing, a tenth of the pieces cannot move. Without regard to the rooms between
    /// these, each takes more than 200 000 nodes.
    #[rstest::rstest]
    fn a_perfect_packing_around_fixed_pieces_is_found(
        #[values(1000, 6000, 18_000, 24_000)] seed: u64,
    ) {
        let (mut pieces, mut draws) = (Vec::new(), seed);
        cut(Rect { steps: [0, 60], units: [0, 300] }, 8, &mut pieces, &mut draws);
        let outline = |(at, &piece): (usize, &Rect)| {
            let low = piece.units[0];
            let fixed = scramble(seed ^ at as u64).is_multiple_of(10).then_some(low);
            let piece = Rect { units: [0, piece.units[1] - low], ..piece };
            let lifted = piece.lifted(fixed.unwrap_or(0));
            Outline { root: ChunkId::from_index(at), ..outline(&[lifted], fixed) }
        };
        let outlines: Vec<Outline> = pieces.iter().enumerate().map(outline).collect();
        let inst = Instance::of_outlines(&outlines, 1, false);
        let mut restarts = Restarts::new(&inst, 0);
        let verdict = restarts.decide(300 / inst.unit, 1000, 20_000, &mut |_| false);
        assert_eq!(verdict, Verdict::Packed, "{} nodes", restarts.nodes());
    }
}
