//! Pairs: the differences of offsets that keep two bodies apart.

use crate::search::sizes::{LARGE, MAX_KEPT};

/// A number above every offset and difference.
pub const FAR: i64 = i64::MAX / 8;

/// A range of differences that keep two bodies apart, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub least: i64,
    pub most: i64,
}

/// Two bodies that share a section.
pub struct Pair {
    pub bodies: [usize; 2],
    /// The second offset minus the first must lie in one of these; ascending.
    pub gaps: Vec<Gap>,
    /// The number of times that no gap was left.
    pub faults: u64,
}

/// A body on a section.
pub struct Interval {
    pub body: usize,
    pub low: i64,
    pub high: i64,
}

/// All pairs that share a section, with their gaps; `None` if there are more than [`LARGE`], or too
/// many cases of two bodies on one section.
pub fn pairs(sections: &[Vec<Interval>], bodies: usize, align: i64) -> Option<Vec<Pair>> {
    let meetings = sections.iter().map(|section| section.len() * section.len() / 2);
    if meetings.sum::<usize>() > MAX_KEPT {
        return None;
    }
    let mut clashes: Vec<Vec<(i64, i64)>> = Vec::new();
    let mut number = vec![usize::MAX; bodies * bodies];
    let mut of = Vec::new();
    for section in sections {
        // By body.
        for (at, b) in section.iter().enumerate() {
            for a in &section[..at] {
                let number = &mut number[a.body * bodies + b.body];
                if *number == usize::MAX {
                    if clashes.len() == LARGE {
                        return None;
                    }
                    *number = clashes.len();
                    clashes.push(Vec::new());
                    of.push([a.body, b.body]);
                }
                clashes[*number].push((a.low - b.high, a.high - b.low));
            }
        }
    }
    let pairs = of.into_iter().zip(clashes);
    Some(pairs.map(|(bodies, clashes)| Pair::new(bodies, clashes, align)).collect())
}

impl Pair {
    /// Creates the pair of two bodies that clash if the difference of their offsets, a multiple of `align`,
    /// lies strictly within one of these ranges.
    pub fn new(bodies: [usize; 2], mut clashes: Vec<(i64, i64)>, align: i64) -> Self {
        clashes.sort_unstable();
        let mut gaps = Vec::new();
        let mut from = -FAR;
        for (low, high) in clashes {
            let to = low.div_euclid(align) * align;
            if from <= to {
                gaps.push(Gap { least: from, most: to });
            }
            from = from.max(-(-high).div_euclid(align) * align);
        }
        gaps.push(Gap { least: from, most: FAR });
        Self { bodies, gaps, faults: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fifty bodies that meet on every section, with one section more than is searched.
    #[test]
    fn too_many_meetings_are_not_examined() {
        for (sections, used) in [(3355, true), (3356, false)] {
            let slices = || (0..50).map(|body| Interval { body, low: 0, high: 1 }).collect();
            let sections: Vec<Vec<Interval>> = (0..sections).map(|_| slices()).collect();
            assert_eq!(pairs(&sections, 50, 1).map(|pairs| pairs.len()), used.then_some(1225));
        }
    }
}
