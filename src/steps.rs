//! Sorting and adding up by step. Where there are not many more steps than items, a table with an entry per
//! step takes the place of a comparison sort, which is the largest cost of a simple pass over 10^6 chunks.

use std::ops::{AddAssign, Range};

use crate::Step;

/// The most steps per item for which a table of all steps pays.
const STEPS_PER_ITEM: usize = 4;

/// The changes that are collected before they are added up.
const AT_ONCE: usize = 512;

/// Adds up the changes of each step; calls `visit` with every step that has a change, in order. There are
/// about `count` changes, none after the step `last`.
pub(crate) fn sum_by_step<W: Copy + Default + AddAssign>(
    changes: impl Iterator<Item = (Step, W)>,
    count: usize,
    last: Step,
    mut visit: impl FnMut(Step, W),
) {
    if let Some(last) = in_table(last, count) {
        let mut sums = vec![W::default(); last + 1];
        // A bit for each step with a change.
        let mut changed = vec![0_u64; last / 64 + 1];
        // With nothing else to do, and without a branch on what the tables hold, the processor need not wait for one step
        // before it looks up the next.
        let mut add = |few: &mut Vec<(Step, W)>| {
            for (step, change) in few.drain(..) {
                let at = index(step);
                sums[at] += change;
                changed[at / 64] |= 1 << (at % 64);
            }
        };
        let mut few = Vec::with_capacity(AT_ONCE);
        changes.for_each(|change| {
            few.push(change);
            if few.len() == AT_ONCE {
                add(&mut few);
            }
        });
        add(&mut few);
        for (at, mut bits) in changed.into_iter().enumerate() {
            while bits != 0 {
                let at = 64 * at + bits.trailing_zeros() as usize;
                visit(at as Step, sums[at]);
                bits &= bits - 1;
            }
        }
        return;
    }
    let mut changes: Vec<(Step, W)> = changes.collect();
    changes.sort_unstable_by_key(|&(step, _)| step);
    for at_once in changes.chunk_by(|(step, _), (next, _)| step == next) {
        let (step, mut sum) = at_once[0];
        for &(_, change) in &at_once[1..] {
            sum += change;
        }
        visit(step, sum);
    }
}

/// Fewer than 2^32 items in order of their steps; those of one step keep their order. No item is after the step `last`.
pub(crate) fn sorted_by_step<T: Copy + Default>(
    items: impl ExactSizeIterator<Item = T> + Clone,
    last: Step,
    step: impl Fn(&T) -> Step,
) -> Vec<T> {
    let Some(last) = in_table(last, items.len()) else {
        let mut sorted: Vec<T> = items.collect();
        sorted.sort_by_key(step);
        return sorted;
    };
    // The place of the next item of each step.
    let mut next = vec![0_u32; last + 2];
    for item in items.clone() {
        next[index(step(&item)) + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut sorted = vec![T::default(); items.len()];
    for item in items {
        let place = &mut next[index(step(&item))];
        sorted[*place as usize] = item;
        *place += 1;
    }
    sorted
}

/// The indices of fewer than 2^32 steps, in order of these; those of one step keep their order.
pub(crate) fn order_by_step(steps: &[Step]) -> Vec<u32> {
    if steps.is_sorted() {
        return indices(steps.len()).collect();
    }
    let last = steps.iter().copied().max().unwrap_or(0);
    sorted_by_step(indices(steps.len()), last, |&at| steps[at as usize])
}

/// The indices of a list of fewer than 2^32 items.
pub(crate) fn indices(count: usize) -> Range<u32> {
    0..u32::try_from(count).unwrap_or(u32::MAX)
}

/// The last step as an index, if a table of all steps pays for this many items.
fn in_table(last: Step, items: usize) -> Option<usize> {
    usize::try_from(last).ok().filter(|last| last / STEPS_PER_ITEM < items)
}

fn index(step: Step) -> usize {
    usize::try_from(step).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::seeds::times;

    /// Both ways are tried: with few and with many steps per item.
    #[test]
    fn items_are_sorted_and_added_up_by_step_however_many_steps_there_are() {
        times(1000, |random| {
            let last: Step = *random.choose(&[0, 3, 40, Step::MAX - 1])?;
            let mut items: Vec<(Step, u64)> = Vec::new();
            for item in 0..random.int_in_range(0..=20)? {
                items.push((random.int_in_range(0..=last)?, item));
            }
            let mut expected: BTreeMap<Step, u64> = BTreeMap::new();
            for &(step, item) in &items {
                *expected.entry(step).or_default() += item;
            }
            let mut sums = Vec::new();
            let changes = items.iter().copied();
            sum_by_step(changes, items.len(), last, |step, sum| sums.push((step, sum)));
            assert_eq!(sums, expected.into_iter().collect::<Vec<_>>());
            // Items count up, so they are unequal and begin in order.
            let mut sorted = items.clone();
            sorted.sort_unstable();
            let steps: Vec<Step> = items.iter().map(|&(step, _)| step).collect();
            let order = order_by_step(&steps).into_iter().map(|at| items[at as usize]);
            assert_eq!(order.collect::<Vec<_>>(), sorted);
            assert_eq!(sorted_by_step(items.iter().copied(), last, |&(step, _)| step), sorted);
            Ok(())
        });
    }
}
