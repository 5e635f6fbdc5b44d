//! Heavy cliques by hill climbing: sets of boxes on several streams any two of which may be alive together.
//!
//! **Idea.** Choose any set of moments, and take the boxes that have begun at one of them and are over at none of them.
//! These boxes are a clique: if one were over before another begins, it would be over at the moment at which the other
//! has begun. Conversely, every clique is found from the moments at which its boxes begin.
//!
//! The begins of all boxes form few chains, about one for each stream, and the chosen moments are a prefix of each
//! chain. Hill climbing changes the prefix of one chain at a time to the one that gives the heaviest boxes while the
//! other prefixes stay, until no chain gains. So streams that never wait for each other each reach their own peak,
//! even if these peaks are never alive together at a single moment.
//!
//! The first starts are the heaviest moments of each chain. More starts follow in passes: each pass starts from twice
//! as many evenly spread moments as the one before, and searches half as far around them. So all passes take about the
//! same time; the first ones find cliques of long lifetimes, the last ones cliques of short lifetimes.
//!
//! If there is no time for that, one pass finds the heaviest boxes that are alive [at one moment](heaviest_cut).
//!
//! **Cost.** O(n) for each chain after sorting. A change of a prefix visits the begins and ends between its old and its
//! new end; [`MAX_WORK`] limits their total number.

use std::{cmp::Reverse, num::Wrapping, ops::Range};

use crate::{
    Bytes,
    bodies::{ChainIndex, Lifetimes, boxes::happens_before, chains::chains_of_begins},
    budget::{Budget, Stop},
    steps::indices,
};

/// The most begins and ends of boxes that the search visits, counting repeated visits. At least one round over as many
/// chains as there are streams, and one start of the passes, always run.
const MAX_WORK: usize = 30_000_000;

/// The search always tries at least this many moments of a chain in both directions.
const MIN_REACH: usize = 64;

/// A chain of moments, each over at the next, with the begins and ends of all boxes along it.
struct Chain {
    len: usize,
    /// The boxes in order of the first moments at which they have begun, and of those at which they are over; the
    /// length stands for a moment if there is none.
    begins: ByMoment,
    ends: ByMoment,
    /// In the order of begins: the first moment at which the box is over.
    over: Vec<u32>,
}

/// Boxes in order of their moments.
struct ByMoment {
    /// By moment: the number of boxes at earlier moments.
    before: Vec<usize>,
    boxes: Vec<u32>,
}

impl ByMoment {
    fn new(moments: usize, moment_of: &[u32]) -> Self {
        let mut before = vec![0; moments + 2];
        for &moment in moment_of {
            before[moment as usize + 1] += 1;
        }
        for moment in 0..=moments {
            before[moment + 1] += before[moment];
        }
        let (mut boxes, mut next) = (vec![0; moment_of.len()], before.clone());
        for (one, &moment) in (0..).zip(moment_of) {
            boxes[next[moment as usize]] = one;
            next[moment as usize] += 1;
        }
        Self { before, boxes }
    }

    /// The boxes of some moments.
    fn within(&self, moments: &Range<usize>) -> &[u32] {
        &self.boxes[self.before[moments.start]..self.before[moments.end]]
    }

    /// The places of the boxes of a moment in the order.
    fn range(&self, moment: usize) -> Range<usize> {
        self.before[moment]..self.before[moment + 1]
    }
}

/// A box, with the state of the search.
struct Counted {
    /// The number of chains with a chosen moment at which it has begun, and at which it is over.
    counts: [u32; 2],
    weight: Bytes,
}

impl Counted {
    fn is_alive(&self) -> bool {
        self.counts[0] > 0 && self.counts[1] == 0
    }
}

/// Boxes with chosen moments.
struct Cliques {
    boxes: Vec<Counted>,
    chains: Vec<Chain>,
    /// By chain: the number of chosen moments, which are its first ones.
    chosen: Vec<usize>,
    /// The sum of the weights of all boxes that have begun at a chosen moment and are over at none.
    weight: i128,
    work: usize,
}

/// The heaviest boxes that are alive at one moment, by index. Expects lifetimes and weights in order
/// of the sums of the boxes' begins. There is one moment for each box: the latest step so far of each
/// stream, when all boxes up to that one have begun.
pub(super) fn heaviest_cut(lives: &Lifetimes, weights: &[Bytes]) -> Vec<usize> {
    // The begins need not form a chain; the index then uses the latest step so far of each stream.
    let along = ChainIndex::begins(lives, &indices(lives.len()));
    let over = |at: usize| along.over_at(lives.end(at)) as usize;
    // By moment: the weight of what is over. Nothing is over before it begins.
    let mut ended = vec![Wrapping(0); lives.len() + 1];
    let (mut alive, mut most) = (Wrapping(0), (Wrapping(0), 0));
    for (moment, &weight) in weights.iter().enumerate() {
        let weight = Wrapping(weight);
        ended[over(moment).max(moment)] += weight;
        alive += weight - ended[moment];
        if alive > most.0 {
            most = (alive, moment);
        }
    }
    let begun = 0..lives.len().min(most.1 + 1);
    begun.filter(|&at| over(at) > most.1).collect()
}

/// The heaviest clique that hill climbing finds, by index of its boxes. Expects lifetimes and weights in order of the
/// sums of the boxes' begins.
///
/// # Errors
///
/// If the budget ends first.
pub(super) fn heaviest_clique(
    lives: &Lifetimes,
    weights: &[Bytes],
    budget: &mut Budget<'_>,
) -> Result<Vec<usize>, Stop> {
    let (count, streams) = (lives.len(), lives.streams());
    if count == 0 {
        return Ok(Vec::new());
    }
    budget.look()?;
    let mut moments = chains_of_begins(lives).chains;
    // With fewer chains the bound is smaller, but still valid. Streams that never wait need one each.
    moments.sort_by_key(|chain| Reverse(chain.len()));
    moments.truncate((MAX_WORK / (count * streams)).max(streams));
    let chain = |moments: &Vec<u32>| {
        budget.look()?;
        let along = ChainIndex::begins(lives, &moments.iter().copied());
        let begun: Vec<u32> = (0..count).map(|at| along.over_at(lives.begin(at))).collect();
        let over: Vec<u32> = (0..count).map(|at| along.over_at(lives.end(at))).collect();
        let len = moments.len();
        let (begins, ends) = (ByMoment::new(len, &begun), ByMoment::new(len, &over));
        let over = begins.boxes.iter().map(|&one| over[one as usize]).collect();
        Ok(Chain { len, begins, ends, over })
    };
    let chains = moments.iter().map(chain).collect::<Result<Vec<Chain>, Stop>>()?;
    let mut cliques = Cliques {
        boxes: weights.iter().map(|&weight| Counted { counts: [0; 2], weight }).collect(),
        chains,
        chosen: vec![0; moments.len()],
        weight: 0,
        work: 0,
    };
    let mut best: (i128, Vec<usize>) = (0, vec![0; moments.len()]);
    let mut climb = |cliques: &mut Cliques, chosen: &[usize], first: usize, pass: u32| {
        cliques.choose(chosen);
        cliques.climb(first, pass);
        if cliques.weight > best.0 {
            best = (cliques.weight, cliques.chosen.clone());
        }
    };
    let none = vec![0; moments.len()];
    for first in 0..moments.len() {
        budget.look()?;
        if cliques.work <= MAX_WORK {
            climb(&mut cliques, &none, first, 0);
        }
    }
    let passes = (0..=count.ilog2()).flat_map(|pass| (0..1 << pass).map(move |at| (pass, at)));
    for (pass, at) in passes {
        budget.look()?;
        let begin = lives.begin(((2 * at + 1) * count) >> (pass + 1));
        let is_before = |&at: &u32| happens_before(lives.begin(at as usize), begin);
        let until = |chain: &Vec<u32>| chain.partition_point(is_before);
        let chosen: Vec<usize> = moments.iter().map(until).collect();
        climb(&mut cliques, &chosen, 0, pass);
        if cliques.work > MAX_WORK {
            break;
        }
    }
    cliques.choose(&best.1);
    Ok(cliques.alive().collect())
}

impl Cliques {
    /// Chooses this many of the first moments of each chain.
    fn choose(&mut self, chosen: &[usize]) {
        for (at, &to) in chosen.iter().enumerate() {
            self.move_to(at, to);
        }
    }

    /// Chooses the first `to` moments of chain `at`, and updates counts and weight.
    fn move_to(&mut self, at: usize, to: usize) {
        let (chain, old) = (&self.chains[at], self.chosen[at]);
        let moved = old.min(to)..old.max(to);
        for (which, boxes) in [&chain.begins, &chain.ends].into_iter().enumerate() {
            let boxes = boxes.within(&moved);
            self.work += boxes.len();
            for &one in boxes {
                let one = &mut self.boxes[one as usize];
                let was_alive = one.is_alive();
                if old < to {
                    one.counts[which] += 1;
                } else {
                    one.counts[which] -= 1;
                }
                match (was_alive, one.is_alive()) {
                    (false, true) => self.weight += i128::from(one.weight),
                    (true, false) => self.weight -= i128::from(one.weight),
                    _ => {}
                }
            }
        }
        self.chosen[at] = to;
    }

    /// The boxes that have begun at a chosen moment and are over at none.
    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.boxes.len()).filter(|&at| self.boxes[at].is_alive())
    }

    /// Improves one chain after the other, starting at chain `first`, until no chain gains or, after the first round,
    /// the work exceeds [`MAX_WORK`]. Pass `pass` searches a 2^`pass`-th of each chain in both directions.
    fn climb(&mut self, first: usize, pass: u32) {
        let (mut at, mut content) = (first, 0);
        let round = self.work + 2 * self.boxes.len() * self.chains.len();
        while content < self.chains.len() && self.work < MAX_WORK.max(round) {
            let before = self.chosen[at];
            let len = self.chains[at].len;
            self.improve(at, (len >> pass).max(MIN_REACH));
            content = if self.chosen[at] == before { content + 1 } else { 1 };
            at = (at + 1) % self.chains.len();
        }
    }

    /// Moves the end of a chain's chosen moments to where the boxes weigh most, while the other chains stay, by at most
    /// `reach` moments in either direction.
    fn improve(&mut self, at: usize, reach: usize) {
        let (chain, old) = (&self.chains[at], self.chosen[at]);
        let near = old.saturating_sub(reach)..chain.len.min(old + reach);
        self.work += chain.begins.within(&near).len() + chain.ends.within(&near).len();
        // With this number of chosen moments: the weight, less that with the fewest.
        let mut weight = 0;
        let mut best = (0, near.start == old, Reverse(near.start));
        for moment in near {
            let is_chosen = u32::from(moment < old);
            let over = &chain.over[chain.begins.range(moment)];
            for (&one, &over) in chain.begins.within(&(moment..moment + 1)).iter().zip(over) {
                let one = &self.boxes[one as usize];
                if one.counts == [is_chosen, u32::from((over as usize) < old)] {
                    weight += i128::from(one.weight);
                }
            }
            for &one in chain.ends.within(&(moment..moment + 1)) {
                let one = &self.boxes[one as usize];
                if one.counts[1] == is_chosen {
                    weight -= i128::from(one.weight);
                }
            }
            best = best.max((weight, moment + 1 == old, Reverse(moment + 1)));
        }
        let (_, _, Reverse(to)) = best;
        self.move_to(at, to);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        bodies::{TimedBox, concurrent},
        problem::constraints::Clock,
        seeds::times,
    };

    type Boxes = [(TimedBox, Bytes)];

    /// The boxes that climbing finds, and those that are found at one moment.
    fn found(boxes: &Boxes) -> [Vec<usize>; 2] {
        let lives = Lifetimes::of(boxes[0].0.begin.len(), boxes.len(), |visit| {
            for (one, _) in boxes {
                visit(&one.begin, &one.end);
            }
        });
        let (order, lives) = lives.sorted();
        let weights: Vec<Bytes> = order.iter().map(|&at| boxes[at as usize].1).collect();
        let clique = heaviest_clique(&lives, &weights, &mut Budget::default()).unwrap();
        let by_box = |at: usize| order[at] as usize;
        [clique, heaviest_cut(&lives, &weights)]
            .map(|found| found.into_iter().map(by_box).collect())
    }

    fn weight(boxes: &Boxes, found: &[usize]) -> Bytes {
        found.iter().map(|&at| boxes[at].1).sum()
    }

    /// Two streams that wait for each other every ten steps. The heaviest boxes of each lie far apart, and of
    /// 100 000 boxes there is one pair of heavy ones that may be alive together.
    #[test]
    fn short_lives_are_found_among_many() {
        let mut boxes = Vec::new();
        for at in 0..100_000_u64 {
            let (own, waited) = (at / 2, at / 20 * 10);
            let (mut begin, mut end) = ([waited; 2], [waited; 2]);
            let stream = usize::from(at % 2 == 1);
            (begin[stream], end[stream]) = (own, own + 1);
            let weight = match at {
                10_000 | 90_001 => 60,
                61_804 | 61_813 => 50,
                _ => at % 7,
            };
            boxes.push((TimedBox { begin: begin.into(), end: end.into(), bytes: 0..1 }, weight));
        }
        let [clique, _] = found(&boxes);
        assert_eq!(weight(&boxes, &clique), 100);
    }

    /// The weight of the heaviest clique, by looking at all sets. `is_pair` gets the smaller number first.
    pub(crate) fn heaviest_of_all(
        weights: &[Bytes],
        is_pair: impl Fn(usize, usize) -> bool,
    ) -> Bytes {
        let weight = |set: u32| {
            let inside: Vec<usize> = (0..weights.len()).filter(|at| set >> at & 1 == 1).collect();
            let others = |&b: &usize| inside.iter().all(|&a| a >= b || is_pair(a, b));
            let weight = inside.iter().map(|&at| weights[at]).sum();
            inside.iter().all(others).then_some(weight)
        };
        (0..1 << weights.len()).filter_map(weight).max().unwrap_or(0)
    }

    fn together(boxes: &Boxes, a: usize, b: usize) -> bool {
        concurrent(&boxes[a].0, &boxes[b].0)
    }

    /// More streams than chains that the work suffices for: none of them is left out.
    #[test]
    fn every_one_of_many_streams_comes_to_its_peak() {
        let streams = 320;
        assert!(MAX_WORK / (streams * streams) < streams);
        let boxed = |at: usize| {
            let begin: Clock = vec![0; streams].into();
            let mut end = begin.clone();
            end[at] = 1;
            TimedBox { begin, end, bytes: 0..1 }
        };
        let boxes: Vec<_> = (0..streams).map(|at| (boxed(at), 1)).collect();
        assert_eq!(found(&boxes).map(|found| found.len()), [streams; 2]);
    }

    /// Boxes at random: what is found is a set of boxes that are alive together in pairs, and seldom lighter
    /// than the heaviest.
    #[test]
    fn what_is_found_is_alive_together_in_pairs_and_seldom_too_light() {
        let (mut cases, mut best, mut best_at_one_moment) = (0, 0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| -> arbitrary::Result<()> {
            let streams = random.int_in_range(1..=3)?;
            let mut boxes = Vec::new();
            for _ in 0..random.int_in_range(1..=10)? {
                let (mut begin, mut end) = (Vec::new(), Vec::new());
                for _ in 0..streams {
                    begin.push(random.int_in_range(0..=6)?);
                    end.push(begin[begin.len() - 1] + random.int_in_range(0..=3)?);
                }
                end[0] = end[0].max(begin[0] + 1);
                let timed = TimedBox { begin: begin.into(), end: end.into(), bytes: 0..1 };
                boxes.push((timed, random.int_in_range(1..=9)?));
            }
            let found = found(&boxes);
            for found in &found {
                for (at, &a) in found.iter().enumerate() {
                    assert!(found[..at].iter().all(|&b| together(&boxes, a, b)), "{boxes:?}");
                }
            }
            cases += 1;
            let weights: Vec<Bytes> = boxes.iter().map(|&(_, weight)| weight).collect();
            let heaviest = heaviest_of_all(&weights, |a, b| together(&boxes, a, b));
            let is_heaviest = |found: &Vec<usize>| u32::from(weight(&boxes, found) == heaviest);
            best += is_heaviest(&found[0]);
            best_at_one_moment += is_heaviest(&found[1]);
            Ok(())
        };
        times(1000, one);
        assert!(200 * best >= 199 * cases, "{best} of {cases}");
        assert!(2 * best_at_one_moment >= cases, "{best_at_one_moment} of {cases}");
    }
}
