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
//! **Cost.** O(n log n) for each chain, and O(n) for each change of one, limited by [`MOST_WORK`].

use std::cmp::Reverse;

use crate::{
    Bytes, Step,
    problem::demands::{TimedBox, boxes::is_over, chains::chains},
};

/// The boxes that are weighed, each as often as a chain changes, until the search for better moments ends. One
/// round over as many chains as there are streams is always made.
const MOST_WORK: usize = 30_000_000;

/// Moments, each over at the next.
struct Chain {
    len: usize,
    /// By box: the first moment at which it has begun, and at which it is over; the length if there is none.
    begun: Vec<usize>,
    over: Vec<usize>,
}

/// Boxes with chosen moments.
struct Cliques {
    weights: Vec<Bytes>,
    chains: Vec<Chain>,
    /// By chain: how many of its moments are chosen, from the first on.
    chosen: Vec<usize>,
    /// By box: the number of chains at a chosen moment of which it has begun, and is over.
    begun: Vec<u32>,
    over: Vec<u32>,
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
    let reach =
        |chain: &[usize], clock: &[Step]| chain.partition_point(|&at| !is_over(clock, begins[at]));
    let chain = |moments: &Vec<usize>| Chain {
        len: moments.len(),
        begun: boxes.iter().map(|(one, _)| reach(moments, &one.begin)).collect(),
        over: boxes.iter().map(|(one, _)| reach(moments, &one.end)).collect(),
    };
    let mut cliques = Cliques {
        weights: boxes.iter().map(|&(_, weight)| weight).collect(),
        chains: moments.iter().map(chain).collect(),
        chosen: Vec::new(),
        begun: Vec::new(),
        over: Vec::new(),
        work: 0,
    };
    let mut best: (i128, Vec<usize>) = (0, vec![0; moments.len()]);
    let mut climb = |cliques: &mut Cliques, chosen: Vec<usize>, first: usize| {
        cliques.choose(chosen);
        let weight = cliques.climb(first);
        if weight > best.0 {
            best = (weight, cliques.chosen.clone());
        }
        cliques.work <= MOST_WORK
    };
    // The heaviest moment of each chain, then moments in a sequence that is spread evenly wherever it stops.
    for first in 0..moments.len() {
        if !climb(&mut cliques, vec![0; moments.len()], first) {
            break;
        }
    }
    let bits = usize::BITS - boxes.len().leading_zeros();
    let spread = (0..1_usize << bits).map(|at| at.reverse_bits() >> (usize::BITS - bits));
    for at in spread.filter(|&at| at < boxes.len()) {
        let until = |chain: &Vec<usize>| {
            chain.partition_point(|&moment| is_over(begins[moment], begins[at]))
        };
        if !climb(&mut cliques, moments.iter().map(until).collect(), 0) {
            break;
        }
    }
    cliques.choose(best.1);
    cliques.alive().collect()
}

impl Cliques {
    /// Chooses the first moments of each chain.
    fn choose(&mut self, chosen: Vec<usize>) {
        let count = |first: fn(&Chain) -> &[usize]| {
            let mut counts = vec![0; self.weights.len()];
            for (chain, &chosen) in self.chains.iter().zip(&chosen) {
                for (count, &first) in counts.iter_mut().zip(first(chain)) {
                    *count += u32::from(first < chosen);
                }
            }
            counts
        };
        self.begun = count(|chain| &chain.begun);
        self.over = count(|chain| &chain.over);
        self.chosen = chosen;
    }

    /// The boxes that have begun at a chosen moment and are over at none.
    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.weights.len()).filter(|&at| self.begun[at] > 0 && self.over[at] == 0)
    }

    /// Chooses the best moments of one chain after the other, round by round, until no chain gains or, after
    /// the first round, too much work is done. Returns the weight.
    fn climb(&mut self, first: usize) -> i128 {
        let (mut at, mut content, mut weight) = (first, 0, 0);
        let round = self.work + self.weights.len() * self.chains.len();
        while content < self.chains.len() && self.work < MOST_WORK.max(round) {
            let before = self.chosen[at];
            weight = self.improve(at);
            content = if self.chosen[at] == before { content + 1 } else { 1 };
            at = (at + 1) % self.chains.len();
        }
        weight
    }

    /// Chooses the moments of a chain that are best with those of the others. Returns the weight.
    fn improve(&mut self, at: usize) -> i128 {
        let (chain, old) = (&self.chains[at], self.chosen[at]);
        self.work += self.weights.len();
        // By number of chosen moments: the weight, less that of one moment fewer.
        let mut gains = vec![0_i128; chain.len + 1];
        for (one, &weight) in self.weights.iter().enumerate() {
            let (begun, over) = (chain.begun[one], chain.over[one]);
            if self.over[one] > u32::from(over < old) {
                continue;
            }
            let is_begun = self.begun[one] > u32::from(begun < old);
            let from = if is_begun { 0 } else { begun + 1 };
            if let Some(gain) = gains.get_mut(from) {
                *gain += i128::from(weight);
            }
            if let Some(gain) = gains.get_mut(over + 1) {
                *gain -= i128::from(weight);
            }
        }
        let weights: Vec<i128> = gains
            .into_iter()
            .scan(0, |weight, gain| {
                *weight += gain;
                Some(*weight)
            })
            .collect();
        let mut best = old;
        for (number, &weight) in weights.iter().enumerate() {
            if weight > weights[best] {
                best = number;
            }
        }
        if best != old {
            let changes = self.begun.iter_mut().zip(&mut self.over);
            for ((begun, over), first) in changes.zip(chain.begun.iter().zip(&chain.over)) {
                *begun = *begun + u32::from(*first.0 < best) - u32::from(*first.0 < old);
                *over = *over + u32::from(*first.1 < best) - u32::from(*first.1 < old);
            }
            self.chosen[at] = best;
        }
        weights[best]
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
