//! A bound for one pool in which some chunks need no bytes for a while. If every two bodies of a set need all of their
//! bytes at some common time, the bodies of the set lie side by side, even if they are never all alive together.
//!
//! **Idea.** The heaviest such set is a maximum-weight clique of a graph, found by branch and bound. Bodies that need
//! not lie side by side get the same *colour*. A clique has at most one body of each colour, so the heaviest bodies of
//! all colours together weigh no less than any clique. Every clique found is a bound, so the search may end at any
//! time.
//!
//! **Source.** Weighted colours as in Babel, *A fast algorithm for the maximum weight clique problem*, 1994.

use crate::{
    Bytes,
    search::sizes::MAX_WORK,
    sets::{full, insert, narrow, remove, words},
};

/// Which bodies must lie side by side, and what each weighs. Heavier bodies come first.
pub struct Graph {
    weights: Vec<Bytes>,
    adjacent: Vec<Set>,
}

/// A set of bodies, a bit for each.
type Set = Vec<u64>;

/// A state of the search: a clique, and the list of the bodies that lie beside all of its bodies. Each comes with a
/// bound on the weight that it and the bodies before it in the list can add.
struct State {
    weight: Bytes,
    open: Set,
    coloured: Vec<(u32, Bytes)>,
}

impl Graph {
    /// The graph of bodies with these weights, and of the pairs that lie side by side.
    pub fn new(weights: &[Bytes], pairs: impl Iterator<Item = (usize, usize)>) -> Self {
        let count = weights.len();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&body| std::cmp::Reverse(weights[body]));
        let mut place = vec![0; count];
        for (at, &body) in (0..).zip(&order) {
            place[body] = at;
        }
        let mut adjacent = vec![vec![0; words(count)]; count];
        for (first, second) in pairs {
            let (first, second) = (place[first], place[second]);
            insert(&mut adjacent[first as usize], second);
            insert(&mut adjacent[second as usize], first);
        }
        Self { weights: order.iter().map(|&body| weights[body]).collect(), adjacent }
    }

    /// The weight of the heaviest clique found, or `above` if none is heavier.
    pub fn heaviest(&self, above: Bytes) -> Bytes {
        let (mut best, mut work) = (above, 0);
        // At most half of the work, the heaviest bodies first. Without these cliques, the search ended without a bound
        // in two of twenty problems of up to a thousand chunks.
        for first in 0..narrow(self.weights.len()) {
            if work < MAX_WORK / 2 {
                best = best.max(self.greedy(first, &mut work));
            }
        }
        let all = full(self.weights.len());
        let mut states = vec![self.state(0, all, &mut best, &mut work)];
        while let Some(state) = states.last_mut() {
            let next = state.coloured.pop().filter(|&(_, bound)| state.weight + bound > best);
            let Some((body, _)) = next.filter(|_| work < MAX_WORK) else {
                states.pop();
                continue;
            };
            let weight = state.weight + self.weights[body as usize];
            let open = self.beside(&state.open, body);
            remove(&mut state.open, body);
            let state = self.state(weight, open, &mut best, &mut work);
            states.push(state);
        }
        best
    }

    /// The bodies of a set that lie beside another one.
    fn beside(&self, set: &Set, body: u32) -> Set {
        set.iter().zip(&self.adjacent[body as usize]).map(|(a, b)| a & b).collect()
    }

    /// The weight of a clique with this body, to which the heaviest possible body is added again and again.
    fn greedy(&self, first: u32, work: &mut u64) -> Bytes {
        let (mut weight, mut open) =
            (self.weights[first as usize], self.adjacent[first as usize].clone());
        while let Some(body) = first_of(&open) {
            weight += self.weights[body as usize];
            open = self.beside(&open, body);
            *work += open.len() as u64;
        }
        weight
    }

    /// Colours the bodies that may be added to a clique. If each has a colour of its own, all can be added.
    fn state(&self, weight: Bytes, open: Set, best: &mut Bytes, work: &mut u64) -> State {
        let (mut coloured, mut left) = (Vec::new(), open.clone());
        let (mut bound, mut colours) = (0, 0);
        while let Some(first) = first_of(&left) {
            // Heavier bodies come first, so the first of a colour is its heaviest.
            bound += self.weights[first as usize];
            colours += 1;
            let mut same = left.clone();
            while let Some(body) = first_of(&same) {
                coloured.push((body, bound));
                remove(&mut left, body);
                remove(&mut same, body);
                same.iter_mut().zip(&self.adjacent[body as usize]).for_each(|(a, b)| *a &= !b);
            }
        }
        *work += (coloured.len() * open.len()) as u64;
        if colours == coloured.len() {
            *best = (*best).max(weight + bound);
            coloured.clear();
        }
        State { weight, open, coloured }
    }
}

/// The first body of a set.
fn first_of(set: &Set) -> Option<u32> {
    let word = set.iter().position(|&bits| bits != 0)?;
    Some(narrow(word * 64) + set[word].trailing_zeros())
}

#[cfg(test)]
mod tests {
    use arbitrary::Result;

    use super::*;
    use crate::{bound::cliques::tests::heaviest_of_all, seeds::times};

    /// Compares with all sets of bodies.
    #[test]
    fn the_heaviest_clique_is_found() {
        times(1500, |random| {
            let count = random.int_in_range(1..=12)?;
            let weights: Vec<Bytes> =
                (0..count).map(|_| random.int_in_range(0..=9)).collect::<Result<_>>()?;
            let share = random.int_in_range(0..=9)?;
            let mut pairs = Vec::new();
            for second in 0..count {
                for first in 0..second {
                    if random.int_in_range(0..=9)? < share {
                        pairs.push((first, second));
                    }
                }
            }
            let most = heaviest_of_all(&weights, |first, second| pairs.contains(&(first, second)));
            let graph = Graph::new(&weights, pairs.iter().copied());
            assert_eq!(graph.heaviest(0), most);
            assert_eq!(graph.heaviest(most + 3), most + 3);
            Ok(())
        });
    }
}
