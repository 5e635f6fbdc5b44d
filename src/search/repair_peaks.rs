//! Peak repair: repacks only the steps in which chains end above the lower bound.
//!
//! On long sequences with short lifetimes, a simple planner exceeds the lower bound only in a few crowded
//! steps. The chains that live there, and those around them, ring by ring, are repacked while all others stay:
//! first greedily, then around a searched core, which is a packing at the bound of the chains of the most
//! crowded steps. So the cost is that of finding these steps and of packing a few hundred chains around each.

use std::{collections::BTreeMap, ops::Range};

use crate::search::{
    Stage,
    capacity::decide,
    cores::{FIRST_LEVELS, thousandths},
    effort::{PATIENCE, SHORT},
    greedy::{COMPLETING, Greedy, Key},
    live_maxima::LiveMaxima,
    sizes::{LONG, MAX_WORK},
    solution::Solution,
};
use crate::{
    Bytes, Limits, Problem, Step,
    budget::Budget,
    monitor::Monitor,
    plan::Layout,
    problem::{ChunkId, Segment},
};

/// Chains to repack together. They share no step with the chains that move in other parts.
#[derive(Default)]
struct Part {
    /// The chains to pack again.
    moved: Vec<ChunkId>,
    /// For each of them, true if it shares a step with a chain above the bound.
    inner: Vec<bool>,
    /// The chains that stay and share a step with them.
    fixed: Vec<ChunkId>,
}

struct PeakRepair<'a> {
    problem: &'a Problem,
    live: LiveMaxima,
    /// The bounding boxes of the chains with bytes, by begin.
    outlines: Vec<Segment>,
    /// The offsets of roots, by chunk.
    bases: Vec<Bytes>,
    /// The size of the pool to reach, in bytes.
    target: Bytes,
    /// The nodes that are left for cores.
    nodes: u64,
    limits: Limits,
    /// The budget of all greedy packings.
    budget: Budget<'a>,
}

/// Repairs the peaks of a layout of a large problem; smaller ones are searched as a whole.
pub(super) fn repair_if_large(
    problem: &Problem,
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) {
    let Solution { lower_bound, pool_size, .. } = *solution;
    let is_large = || problem.roots().nth(LONG).is_some();
    if pool_size > lower_bound
        && is_large()
        && monitor.has(Stage::PeakRepair)
        && !monitor.stop(0, lower_bound, pool_size)
    {
        repair_peaks(problem, solution, limits, monitor);
    }
}

/// Repacks the crowded steps of a packing until no chain ends above the bound or nothing helps.
fn repair_peaks(
    problem: &Problem,
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) {
    let outline = |root| {
        let outline = problem.bounding_box(root);
        Segment { high: problem.align_up(outline.high), ..outline }
    };
    let mut outlines: Vec<Segment> = problem.roots().map(outline).collect();
    outlines.retain(|outline| outline.high > 0);
    outlines.sort_unstable_by_key(|outline| (outline.begin, outline.chunk));
    if monitor.must_stop() {
        return;
    }
    let mut repair = PeakRepair {
        problem,
        live: LiveMaxima::new(problem),
        outlines,
        bases: solution.layout.offsets.clone(),
        target: solution.lower_bound,
        nodes: limits.effort(),
        limits: limits.threads(1),
        budget: monitor.budget().at_most(MAX_WORK),
    };
    // The first ring has the chains that live together with a chain above the bound, the second one those that live
    // together with one of these, and so on.
    for rings in 1..=PATIENCE {
        if monitor.must_stop() {
            break;
        }
        let Some(parts) = repair.parts(rings) else { break };
        for part in &parts {
            let is_stopped = monitor.stop(0, solution.lower_bound, solution.pool_size);
            if is_stopped || repair.budget.spend(0).is_err() {
                break;
            }
            // Chains that stay share no step with a core only if there is a ring between them.
            let cores = if rings > 1 { &FIRST_LEVELS[..] } else { &[] };
            repair.pack(part, cores, monitor);
        }
    }
    solution.nodes = monitor.add(0);
    solution.improve(problem, Layout::from_roots(problem, |root| repair.bases[root.index()]));
}

impl PeakRepair<'_> {
    /// The parts around the chains that end above the bound. `None` if there are none, or if they
    /// are too large.
    fn parts(&self, rings: u64) -> Option<Vec<Part>> {
        let above =
            |outline: &&Segment| self.bases[outline.chunk.index()] + outline.high > self.target;
        let mut windows = lives(self.outlines.iter().filter(above));
        let inner = windows.clone();
        for _ in 1..rings {
            windows = lives(self.touching(&windows));
        }
        let moved = windows;
        let outer = lives(self.touching(&moved));
        let mut parts: Vec<Part> = outer.iter().map(|_| Part::default()).collect();
        let mut shared = 0;
        for outline in self.touching(&outer) {
            let is_moved = touches(outline, &moved);
            let first = outer.partition_point(|window| window.end <= outline.begin);
            let windows = outer[first..].iter().take_while(|window| window.start < outline.end);
            for (part, _) in parts[first..].iter_mut().zip(windows) {
                if is_moved {
                    part.moved.push(outline.chunk);
                    part.inner.push(touches(outline, &inner));
                } else {
                    part.fixed.push(outline.chunk);
                }
                shared += 1;
            }
            if shared > 4 * self.outlines.len() {
                return None;
            }
        }
        // Larger parts are left to packings of the whole problem.
        parts.retain(|part| part.moved.len() <= self.outlines.len() / 2);
        (!parts.is_empty()).then_some(parts)
    }

    /// The chains that live in one of the windows.
    fn touching<'w>(&'w self, windows: &'w [Range<Step>]) -> impl Iterator<Item = &'w Segment> {
        self.outlines.iter().filter(|outline| touches(outline, windows))
    }

    /// Repacks a part and keeps the packing if it is lower.
    fn pack(&mut self, part: &Part, levels: &[Bytes], monitor: &mut Monitor<'_>) {
        let roots = [&part.moved[..], &part.fixed[..]].concat();
        let greedy = Greedy::of(self.problem, &roots, &self.live);
        let fixed = part.fixed.iter().map(|&root| Some(self.bases[root.index()]));
        let kept: Vec<Option<Bytes>> = part.moved.iter().map(|_| None).chain(fixed).collect();
        let moved = part.moved.len();
        let old: Vec<Bytes> = roots.iter().map(|root| self.bases[root.index()]).collect();
        let (orders, _) = greedy.orders();
        let lowest = greedy.top(&old[..moved]);
        let mut best = Best { greedy, moved, lowest, bases: None };
        self.try_orders(orders, &kept, &mut best);
        let body_of: BTreeMap<ChunkId, usize> = part.moved.iter().copied().zip(0..).collect();
        let mut last = 0;
        for &level in levels {
            if monitor.must_stop() {
                break;
            }
            let least = thousandths(self.target, level);
            let core: Vec<ChunkId> = best
                .greedy
                .crowded(least)
                .into_iter()
                .filter(|root| body_of.get(root).is_some_and(|&body| part.inner[body]))
                .collect();
            let is_new = core.len() > last;
            last = core.len();
            if best.lowest <= self.target || self.nodes == 0 || last > LONG {
                break;
            }
            if !is_new {
                continue;
            }
            let limits = self.limits.nodes(SHORT.min(self.nodes));
            let decision = decide(self.problem, &core, self.target, &limits, monitor);
            self.nodes = self.nodes.saturating_sub(decision.nodes);
            let mut kept = kept.clone();
            for (root, base) in decision.bases.into_iter().flatten() {
                if let Some(&body) = body_of.get(&root) {
                    kept[body] = Some(base);
                }
            }
            self.try_orders(&COMPLETING, &kept, &mut best);
        }
        for (&root, base) in part.moved.iter().zip(best.bases.into_iter().flatten()) {
            self.bases[root.index()] = base;
        }
    }

    /// Packs around the kept bodies in one order after the other, until a packing meets the target.
    fn try_orders(&mut self, orders: &[Key], kept: &[Option<Bytes>], best: &mut Best<'_>) {
        for &key in orders {
            if best.lowest <= self.target {
                break;
            }
            let packed = best.greedy.pack(key, kept, Bytes::MAX, &mut self.budget);
            let Ok(Some(bases)) = packed else { break };
            let top = best.greedy.top(&bases[..best.moved]);
            if top < best.lowest {
                (best.lowest, best.bases) = (top, Some(bases));
            }
        }
    }
}

/// The lowest packing of a part.
struct Best<'a> {
    greedy: Greedy<'a>,
    /// The number of bodies that move, the first of all.
    moved: usize,
    lowest: Bytes,
    /// The offsets by body; `None` if no new packing is lower.
    bases: Option<Vec<Bytes>>,
}

/// Returns whether a chain lives in one of the windows, which are ascending.
fn touches(outline: &Segment, windows: &[Range<Step>]) -> bool {
    let first = windows.partition_point(|window| window.end <= outline.begin);
    windows.get(first).is_some_and(|window| window.start < outline.end)
}

/// Merges the lifetimes of chains, sorted by begin, into windows that do not overlap.
fn lives<'o>(outlines: impl Iterator<Item = &'o Segment>) -> Vec<Range<Step>> {
    let mut windows: Vec<Range<Step>> = Vec::new();
    for outline in outlines {
        match windows.last_mut() {
            Some(last) if outline.begin < last.end => last.end = last.end.max(outline.end),
            _ => windows.push(outline.begin..outline.end),
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Observer,
        baselines::pushdown,
        budget::Budget,
        search::samples::{add_problem, random_problem, right_plan},
        seeds::times,
    };

    /// Returns the pools before and after.
    fn repaired(problem: &Problem, nodes: u64) -> [Bytes; 2] {
        let mut solution =
            Solution::of(problem, Budget::unlimited(|budget| pushdown::layout(problem, budget)));
        let before = solution.pool_size;
        let limits = Limits::default().nodes(nodes);
        repair_peaks(
            problem,
            &mut solution,
            &limits,
            &mut Monitor::new(&limits, Observer::default()),
        );
        assert_eq!(solution.layout.pool_size(problem), solution.pool_size);
        right_plan(problem, &solution.layout);
        [before, solution.pool_size]
    }

    #[test]
    fn a_repaired_packing_is_right_and_never_higher() {
        times(1000, |random| {
            let mut long = Problem::builder().alignment(*random.choose(&[1, 4])?);
            let gap = random.int_in_range(0..=12)?;
            for turn in 0..random.int_in_range(1..=12)? {
                add_problem(&mut long, &random_problem(random)?, turn * gap, 0);
            }
            let [before, after] = repaired(&long.build().unwrap(), 100);
            assert!(after <= before);
            Ok(())
        });
    }

    /// Three chunks that the simulation stacks too high, among thousands that it packs well.
    #[test]
    fn a_crowded_step_is_packed_anew_and_all_else_stays() {
        let mut problem = Problem::builder();
        for step in 0..4000 {
            let size = 1 + step * 7919 % 37;
            problem.chunk(step..step + 1 + step % 5, if step % 400 < 9 { 40 * size } else { size });
        }
        let problem = problem.build().unwrap();
        let [before, after] = repaired(&problem, 0);
        let bound = problem.lower_bound();
        assert!(before > bound, "there is something to repair");
        assert_eq!(after, bound);
    }

    /// The search finds a perfect packing that no greedy order finds.
    #[test]
    fn a_crowded_core_is_searched() {
        let mut problem = Problem::builder();
        // A pinwheel around a square, which leaves no gap.
        for (begin, end, size) in
            [(0, 20, 10), (20, 30, 20), (10, 30, 10), (0, 10, 20), (10, 20, 10)]
        {
            problem.chunk(1000 + begin..1000 + end, size * 7);
        }
        for step in 0..2000 {
            problem.chunk(step..step + 1, 0);
            problem.chunk(3000 + step..3003 + step, 1 + step % 3);
        }
        let problem = problem.build().unwrap();
        let [before, after] = repaired(&problem, 10_000);
        assert!(before > 210, "there is something to repair: {before}");
        assert_eq!(after, 210);
    }
}
