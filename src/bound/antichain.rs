//! Peak sets on several streams.
//!
//! Boxes any two of which may be alive together are an antichain of the order "is over before", and a minimum flow
//! finds the heaviest antichain (Dilworth's theorem with weights). Beyond [`MAX_ORDERED`] boxes,
//! [hill climbing](super::cliques) finds a heavy one, which may give a smaller bound. If there is no time for that,
//! the heaviest set [alive at one moment](super::cliques::heaviest_cut) is used.

use std::{borrow::Cow, time::Instant};

use crate::{
    Bytes,
    bodies::{BodyLifetimes, Lifetimes, boxes::happens_before},
    bound::{
        PeakSet,
        cliques::{heaviest_clique, heaviest_cut},
    },
    budget::Budget,
    flow::{Network, SINK, SOURCE, UNCUT},
    problem::{ChunkId, Problem},
    sets::distinct,
};

/// The most boxes for which the heaviest antichain is found by flow.
const MAX_ORDERED: usize = 600;

/// Hill climbing is skipped if less time is left than this many times what the heaviest moment took to find.
const TIMES: u32 = 1;

/// The boxes of all bodies with their weights. Bytes that several boxes of a body need count in one of them.
struct Needed<'a> {
    problem: &'a Problem,
    /// In order of the sums of their begins.
    lives: Cow<'a, Lifetimes>,
    /// By life.
    plain: Vec<Bytes>,
    /// By life: the box that it is the life of.
    boxes: Cow<'a, [u32]>,
    /// By box: the chunk and the bytes of cells, unless each box is a body.
    cells: Vec<(ChunkId, Bytes)>,
}

impl<'a> Needed<'a> {
    fn of(problem: &'a Problem, of_bodies: &'a BodyLifetimes) -> Self {
        let bodies = problem.bodies();
        let by_life = |boxes: &[u32], plain: &[Bytes]| -> Vec<Bytes> {
            boxes.iter().map(|&at| plain[at as usize]).collect()
        };
        // With several streams, a chunk needs all of its bytes for all of its life.
        if of_bodies.are_single {
            let plain: Vec<Bytes> = bodies.iter().map(|body| body.extent).collect();
            return Self {
                problem,
                lives: Cow::Borrowed(&of_bodies.lives),
                plain: by_life(&of_bodies.bodies, &plain),
                boxes: Cow::Borrowed(&of_bodies.bodies),
                cells: Vec::new(),
            };
        }
        let streams = of_bodies.lives.streams();
        let (mut plain, mut cells) = (Vec::new(), Vec::new());
        let lives = Lifetimes::of(streams, bodies.len(), |visit| {
            plain.clear();
            cells.clear();
            for body in bodies {
                for one in problem.weighted(body) {
                    visit(&one.time.begin, &one.time.end);
                    plain.push(one.weight.plain.0);
                    cells.push((one.chunk, one.weight.aligned_bytes.0));
                }
            }
        });
        let (boxes, lives) = lives.sorted();
        let plain = by_life(&boxes, &plain);
        Self { problem, lives: Cow::Owned(lives), plain, boxes: Cow::Owned(boxes), cells }
    }

    /// The chunk of a life, and the bytes of the cells that it alone touches.
    fn cells(&self, life: usize) -> (ChunkId, Bytes) {
        let at = self.boxes[life] as usize;
        self.cells.get(at).copied().unwrap_or_else(|| {
            let body = &self.problem.bodies()[at];
            (body.members[0].0, self.problem.aligned_bytes(body, &(0..body.extent)))
        })
    }

    /// The peak set of some lives.
    fn peak_set(&self, chosen: Vec<usize>) -> PeakSet {
        let problem = self.problem;
        let plain: Bytes = chosen.iter().map(|&at| self.plain[at]).sum();
        let cells = chosen.into_iter().map(|at| self.cells(at));
        let (chunks, aligned_bytes): (Vec<ChunkId>, Vec<Bytes>) = cells.unzip();
        let aligned_bytes: Bytes = aligned_bytes.into_iter().sum();
        PeakSet {
            bytes: plain.max(aligned_bytes.saturating_sub(problem.cut_off())),
            step: 0,
            chunks: distinct(chunks),
        }
    }
}

impl Problem {
    /// The heaviest peak set on several streams, or a lighter one as an error, if the budget does not suffice to
    /// find it.
    pub(super) fn peak_set_on_streams(&self, budget: &mut Budget<'_>) -> Result<PeakSet, PeakSet> {
        let start = Instant::now();
        let Some(lives) = self.body_lives() else { return Ok(PeakSet::default()) };
        let needed = Needed::of(self, lives);
        let (lives, weights) = (&needed.lives, &needed.plain);
        if lives.len() <= MAX_ORDERED {
            return Ok(needed.peak_set(heaviest(lives, weights)));
        }
        let light = budget.left().map(|_| heaviest_cut(lives, weights));
        let is_short = budget.left().is_some_and(|left| left < TIMES * start.elapsed());
        if !is_short && let Ok(chosen) = heaviest_clique(lives, weights, budget) {
            return Ok(needed.peak_set(chosen));
        }
        let light = light.unwrap_or_else(|| heaviest_cut(lives, weights));
        Err(needed.peak_set(light))
    }
}

/// The heaviest antichain, by minimum flow: units of flow pass through lifetimes, each over before the next begins, and
/// must cover every weight. A maximum flow from ends to begins gives the number of units that can pass from one
/// lifetime to a later one, so that no new unit is needed. Its minimum cut gives the antichain.
fn heaviest(lives: &Lifetimes, weights: &[Bytes]) -> Vec<usize> {
    let mut network = Network::default();
    network.clear();
    let heavy = (0..lives.len()).filter(|&at| weights[at] > 0);
    let nodes: Vec<(usize, [u32; 2])> =
        heavy.map(|at| (at, [network.add_node(), network.add_node()])).collect();
    for &(at, [begin, end]) in &nodes {
        network.add_edge(SOURCE, end, weights[at]);
        network.add_edge(begin, SINK, weights[at]);
        for &(other, [later, _]) in &nodes {
            if at != other && happens_before(lives.end(at), lives.begin(other)) {
                network.add_edge(end, later, UNCUT);
            }
        }
    }
    network.max_flow();
    let is_reached = network.reached();
    let is_cut = |[begin, end]: [u32; 2]| !is_reached[end as usize] || is_reached[begin as usize];
    nodes.into_iter().filter(|&(_, node)| !is_cut(node)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, sync::atomic::AtomicBool, time::Duration};

    use super::*;
    use crate::{Limits, Planner, Strategy};

    /// Two streams that never wait: one needs most bytes early, the other late.
    fn problem(bodies: u64) -> Problem {
        let mut problem = Problem::builder();
        problem.streams(2);
        for at in 0..bodies {
            for (stream, peak) in [(0, bodies / 4), (1, bodies / 2)] {
                let (mut begin, mut end) = ([0, 0], [0, 0]);
                (begin[stream], end[stream]) = (at, at + 1);
                let chunk = problem.chunk(0..1, if at == peak { 1000 } else { 1 });
                problem.clocks(chunk, begin, end, stream);
            }
        }
        problem.build().unwrap()
    }

    /// If no time is left, the bound of many bodies counts only the bodies alive at one moment. A later call with more
    /// time returns the larger bound.
    #[test]
    fn a_bound_for_which_there_is_no_time_is_lighter_and_not_kept() {
        for (bodies, lighter) in [(MAX_ORDERED as u64 / 2, 2000), (MAX_ORDERED as u64, 1001)] {
            let none = Some(Duration::ZERO);
            for (time, is_stopped) in [(none, false), (none, true), (None, true)] {
                let problem = problem(bodies);
                let cancel = AtomicBool::new(is_stopped);
                let mut budget = Budget::until(None, Some(&cancel)).within(time);
                let peak_set = problem.peak_set_within(&mut budget);
                assert_eq!(peak_set.bytes, lighter, "{time:?}, {is_stopped}");
                assert_eq!(matches!(peak_set, Cow::Owned(_)), lighter < 2000);
                assert_eq!(problem.lower_bound(), 2000);
                assert!(matches!(problem.peak_set_within(&mut budget), Cow::Borrowed(_)));
            }
        }
    }

    #[test]
    fn a_plan_without_time_states_the_bound_that_it_had_time_for() {
        for strategy in [Strategy::Best, Strategy::FirstFit] {
            let problem = problem(MAX_ORDERED as u64);
            let planner = Planner::new().strategy(strategy);
            let late = planner.clone().limits(Limits::default().time(Duration::ZERO));
            let late = late.plan(&problem).unwrap();
            assert_eq!((late.lower_bound, late.peak.len()), (1001, 2));
            assert_eq!(planner.plan(&problem).unwrap().lower_bound, 2000);
        }
    }
}
