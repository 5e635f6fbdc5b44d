//! Boxes on several streams any two of which may be alive together, and that weigh as much as can be found.
//!
//! **Idea.** Choose any moments. Of two boxes that have begun at one of them and are over at none of them, neither
//! is over before the other begins: it would be over at the moment at which the other has begun. And every set
//! of boxes that may be alive together in pairs is found from the moments at which these boxes begin.
//!
//! The begins of all boxes make few chains, about one for each stream, and the chosen moments are the first ones
//! of each chain. One chain at a time takes as many as let the boxes weigh most while the other chains stay,
//! until none gains. So streams that do not wait for each other come to the peak of each stream, which are not
//! alive together at any single moment.
//!
//! It begins with the heaviest moment of each chain, then with moments in passes: each begins at twice as many
//! as the one before, spread evenly, and looks half as far from them. So all passes take about the same time,
//! long lives are found by the first ones, and short lives by the last.
//!
//! **Cost.** O(n log n) for each chain, then as many begins and ends as lie between two choices of a chain, limited by
//! [`MOST_WORK`].

use std::{cmp::Reverse, ops::Range};

use crate::{
    Bytes, Step,
    problem::demands::{
        TimedBox,
        boxes::is_over,
        chains::{chains, wide_sum},
    },
};

/// The begins and ends of boxes that are looked at, each as often as a chain changes, until the search for better
/// moments ends. One round over as many chains as there are streams, and one start of the passes, are always made.
const MOST_WORK: usize = 30_000_000;

/// The moments of a chain, in both directions, that are always looked at.
const LEAST_REACH: usize = 64;

/// Moments, each over at the next.
struct Chain {
    len: usize,
    /// By box: the first moment at which it has begun, and at which it is over; the length if there is none.
    begun: Vec<u32>,
    over: Vec<u32>,
    /// The boxes in order of these moments.
    begins: ByMoment,
    ends: ByMoment,
}

/// Boxes in order of their moments.
struct ByMoment {
    /// By moment: how many boxes come before.
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
}

/// Boxes with chosen moments.
struct Cliques {
    weights: Vec<Bytes>,
    chains: Vec<Chain>,
    /// By chain: how many of its moments are chosen, from the first on.
    chosen: Vec<usize>,
    /// By box: the number of chains at a chosen moment of which it has begun, and is over.
    counts: Vec<[u32; 2]>,
    /// Of all boxes that have begun at a chosen moment and are over at none.
    weight: i128,
    work: usize,
}

/// The heaviest set found of boxes any two of which may be alive together, by index. Each box has a weight.
pub(super) fn heaviest_clique(boxes: &[(&TimedBox, Bytes)]) -> Vec<usize> {
    let begins: Vec<&[Step]> = boxes.iter().map(|(one, _)| &*one.begin).collect();
    let Some(streams) = begins.first().map(|begin| begin.len()) else { return Vec::new() };
    let mut moments = chains(&begins).chains;
    // With fewer chains the bound is smaller, but still valid. Streams that never wait need one each.
    moments.sort_by_key(|chain| Reverse(chain.len()));
    moments.truncate((MOST_WORK / (boxes.len() * streams)).max(streams));
    let chain = |moments: &Vec<usize>| {
        let clocks: Vec<Step> = moments.iter().flat_map(|&at| begins[at]).copied().collect();
        let begun = first_reached(&clocks, boxes.iter().map(|(one, _)| &*one.begin));
        let over = first_reached(&clocks, boxes.iter().map(|(one, _)| &*one.end));
        let len = moments.len();
        let (begins, ends) = (ByMoment::new(len, &begun), ByMoment::new(len, &over));
        Chain { len, begun, over, begins, ends }
    };
    let mut cliques = Cliques {
        weights: boxes.iter().map(|&(_, weight)| weight).collect(),
        chains: moments.iter().map(chain).collect(),
        chosen: vec![0; moments.len()],
        counts: vec![[0; 2]; boxes.len()],
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
        if cliques.work <= MOST_WORK {
            climb(&mut cliques, &none, first, 0);
        }
    }
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by_cached_key(|&at| wide_sum(begins[at]));
    let passes =
        (0..=order.len().ilog2()).flat_map(|pass| (0..1 << pass).map(move |at| (pass, at)));
    for (pass, at) in passes {
        let begin = begins[order[((2 * at + 1) * order.len()) >> (pass + 1)]];
        let until =
            |chain: &Vec<usize>| chain.partition_point(|&moment| is_over(begins[moment], begin));
        let chosen: Vec<usize> = moments.iter().map(until).collect();
        climb(&mut cliques, &chosen, 0, pass);
        if cliques.work > MOST_WORK {
            break;
        }
    }
    cliques.choose(&best.1);
    cliques.alive().collect()
}

/// For each of some clocks, the first moment of a chain at which it is over, or the number of moments if there is
/// none. The clocks of the moments lie one after the other. Clocks that follow each other are usually close,
/// so each search begins where the last one ended.
fn first_reached<'a>(moments: &[Step], clocks: impl Iterator<Item = &'a [Step]>) -> Vec<u32> {
    let mut near = 0;
    let of_clock = |clock: &[Step]| {
        let len = moments.len() / clock.len();
        let is_before = |at: usize| !is_over(clock, &moments[at * clock.len()..][..clock.len()]);
        let (mut low, mut high, mut step) = (near, near, 1);
        while low > 0 && !is_before(low - 1) {
            (low, high, step) = (low.saturating_sub(step), low - 1, 2 * step);
        }
        while high < len && is_before(high) {
            (low, high, step) = (high + 1, len.min(high + step), 2 * step);
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        near = low;
        u32::try_from(low).expect("fewer than 2^32 boxes begin")
    };
    clocks.map(of_clock).collect()
}

impl Cliques {
    /// Chooses the first moments of each chain.
    fn choose(&mut self, chosen: &[usize]) {
        for (at, &to) in chosen.iter().enumerate() {
            self.move_to(at, to);
        }
    }

    /// Chooses this number of moments of a chain.
    fn move_to(&mut self, at: usize, to: usize) {
        let (chain, old) = (&self.chains[at], self.chosen[at]);
        let moved = old.min(to)..old.max(to);
        let is_alive = |[begun, over]: [u32; 2]| begun > 0 && over == 0;
        for (which, boxes) in [&chain.begins, &chain.ends].into_iter().enumerate() {
            let boxes = boxes.within(&moved);
            self.work += boxes.len();
            for &one in boxes {
                let counts = &mut self.counts[one as usize];
                let was_alive = is_alive(*counts);
                if old < to {
                    counts[which] += 1;
                } else {
                    counts[which] -= 1;
                }
                match (was_alive, is_alive(*counts)) {
                    (false, true) => self.weight += i128::from(self.weights[one as usize]),
                    (true, false) => self.weight -= i128::from(self.weights[one as usize]),
                    _ => {}
                }
            }
        }
        self.chosen[at] = to;
    }

    /// The boxes that have begun at a chosen moment and are over at none.
    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.weights.len()).filter(|&at| self.counts[at][0] > 0 && self.counts[at][1] == 0)
    }

    /// Chooses the best moments of one chain after the other, round by round, until no chain gains or, after
    /// the first round, too much work is done.
    fn climb(&mut self, first: usize, pass: u32) {
        let (mut at, mut content) = (first, 0);
        let round = self.work + 2 * self.weights.len() * self.chains.len();
        while content < self.chains.len() && self.work < MOST_WORK.max(round) {
            let before = self.chosen[at];
            let len = self.chains[at].len;
            self.improve(at, (len >> pass).max(LEAST_REACH));
            content = if self.chosen[at] == before { content + 1 } else { 1 };
            at = (at + 1) % self.chains.len();
        }
    }

    /// Chooses the moments of a chain that are best with those of the others, no more than so many earlier or
    /// later.
    fn improve(&mut self, at: usize, reach: usize) {
        let (chain, old) = (&self.chains[at], self.chosen[at]);
        let near = old.saturating_sub(reach)..chain.len.min(old + reach);
        let (begins, ends) = (chain.begins.within(&near), chain.ends.within(&near));
        self.work += begins.len() + ends.len();
        // By number of chosen moments: the weight, less that of one moment fewer.
        let mut gains = vec![0_i128; near.len() + 1];
        for one in begins.iter().map(|&one| one as usize) {
            let (begun, over) = (chain.begun[one] as usize, chain.over[one] as usize);
            if self.counts[one] == [u32::from(begun < old), u32::from(over < old)] {
                gains[begun + 1 - near.start] += i128::from(self.weights[one]);
            }
        }
        for one in ends.iter().map(|&one| one as usize) {
            let over = chain.over[one] as usize;
            if self.counts[one][1] == u32::from(over < old) {
                gains[over + 1 - near.start] -= i128::from(self.weights[one]);
            }
        }
        let weights = gains.into_iter().scan(0, |weight, gain| {
            *weight += gain;
            Some(*weight)
        });
        let by_number = (near.start..).zip(weights);
        let best = by_number.max_by_key(|&(to, weight)| (weight, to == old, Reverse(to)));
        self.move_to(at, best.map_or(old, |(to, _)| to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{problem::demands::concurrent, seeds::bytes_of};

    /// Two streams that never wait: one has its peak early, the other late.
    #[test]
    fn each_stream_comes_to_its_own_peak() {
        let boxed = |begin: [Step; 2], end: [Step; 2]| TimedBox {
            begin: begin.into(),
            end: end.into(),
            bytes: 0..1,
        };
        let mut boxes = Vec::new();
        for at in 0..20 {
            boxes.push((boxed([at, 0], [at + 1, 0]), if at == 3 { 100 } else { 1 }));
            boxes.push((boxed([0, at], [0, at + 1]), if at == 17 { 200 } else { 1 }));
        }
        let boxes: Vec<_> = boxes.iter().map(|(one, weight)| (one, *weight)).collect();
        let mut found: Vec<Bytes> =
            heaviest_clique(&boxes).into_iter().map(|at| boxes[at].1).collect();
        found.sort_unstable();
        assert_eq!(found, [100, 200]);
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
        let boxes: Vec<_> = boxes.iter().map(|(one, weight)| (one, *weight)).collect();
        let found: Bytes = heaviest_clique(&boxes).into_iter().map(|at| boxes[at].1).sum();
        assert_eq!(found, 100);
    }

    /// The heaviest of all sets of boxes any two of which may be alive together.
    fn heaviest_of_all(boxes: &[(&TimedBox, Bytes)]) -> Bytes {
        let is_clique = |set: u32| {
            let inside: Vec<_> = (0..boxes.len()).filter(|at| set >> at & 1 == 1).collect();
            let others = |&a: &usize| inside.iter().all(|&b| a <= b || together(boxes, a, b));
            inside.iter().all(others)
        };
        let weight = |set: u32| -> Bytes {
            (0..boxes.len()).filter(|at| set >> at & 1 == 1).map(|at| boxes[at].1).sum()
        };
        (0..1 << boxes.len()).filter(|&set| is_clique(set)).map(weight).max().unwrap_or(0)
    }

    fn together(boxes: &[(&TimedBox, Bytes)], a: usize, b: usize) -> bool {
        concurrent(boxes[a].0, boxes[b].0)
    }

    /// More streams than chains that the work suffices for: none of them is left out.
    #[test]
    fn every_one_of_many_streams_comes_to_its_peak() {
        let streams = 320;
        assert!(MOST_WORK / (streams * streams) < streams);
        let boxed = |at: usize| {
            let begin = vec![0; streams].into_boxed_slice();
            let mut end = begin.clone();
            end[at] = 1;
            TimedBox { begin, end, bytes: 0..1 }
        };
        let boxes: Vec<TimedBox> = (0..streams).map(boxed).collect();
        let boxes: Vec<_> = boxes.iter().map(|one| (one, 1)).collect();
        assert_eq!(heaviest_clique(&boxes).len(), streams);
    }

    /// Boxes at random: what is found is a set of boxes that are alive together in pairs, and seldom lighter
    /// than the heaviest.
    #[test]
    fn what_is_found_is_alive_together_in_pairs_and_seldom_too_light() {
        let (mut cases, mut best) = (0, 0);
        let mut one = |random: &mut arbitrary::Unstructured<'_>| -> arbitrary::Result<()> {
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
            let boxes: Vec<_> = boxes.iter().map(|(one, weight)| (one, *weight)).collect();
            let found = heaviest_clique(&boxes);
            for (at, &a) in found.iter().enumerate() {
                assert!(found[..at].iter().all(|&b| together(&boxes, a, b)), "{boxes:?}");
            }
            cases += 1;
            let weight: Bytes = found.iter().map(|&at| boxes[at].1).sum();
            best += u32::from(weight == heaviest_of_all(&boxes));
            Ok(())
        };
        for seed in 0..1_000_u64 {
            one(&mut arbitrary::Unstructured::new(&bytes_of(seed))).unwrap();
        }
        assert!(200 * best >= 199 * cases, "{best} of {cases}");
    }
}
