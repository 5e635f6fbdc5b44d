//! Runs of bytes, each with the end of its uses.

use std::{collections::BTreeMap, mem, ops::Range};

use crate::{Bytes, sets::distinct};

/// Bytes that are used as one, and the last step that uses them.
pub(super) type Run = (Range<Bytes>, usize);

/// Splits bytes where the last step that uses them changes. The uses may overlap; bytes that none of them covers
/// are in no run.
pub(super) fn runs<'u>(uses: impl IntoIterator<Item = &'u Run>) -> Vec<Run> {
    let last = |steps: &mut dyn Iterator<Item = usize>| steps.next().unwrap_or_default();
    runs_on_streams(uses, 1, |_| 0, last)
}

/// Splits bytes where their end changes. `end_of` computes the end from the last steps that use the bytes, one step for
/// each stream that uses them.
pub(super) fn runs_on_streams<'u, K: PartialEq>(
    uses: impl IntoIterator<Item = &'u Run>,
    streams: usize,
    stream: impl Fn(usize) -> usize,
    end: impl Fn(&mut dyn Iterator<Item = usize>) -> K,
) -> Vec<(Range<Bytes>, K)> {
    let mut events: Vec<(Bytes, bool, usize)> = Vec::new();
    for (bytes, step) in uses.into_iter().filter(|(bytes, _)| !bytes.is_empty()) {
        events.extend([(bytes.start, true, *step), (bytes.end, false, *step)]);
    }
    events.sort_unstable();
    let (mut runs, mut from): (Vec<(Range<Bytes>, K)>, Bytes) = (Vec::new(), 0);
    // By stream: the uses that cover the bytes from `from` on, counted by their step.
    let mut open: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new(); streams];
    for (at, begins, step) in events {
        if from < at {
            let mut lasts = open.iter().filter_map(|steps| Some(*steps.last_key_value()?.0));
            if open.iter().any(|steps| !steps.is_empty()) {
                let until = end(&mut lasts);
                match runs.last_mut() {
                    Some((bytes, last)) if bytes.end == from && *last == until => bytes.end = at,
                    _ => runs.push((from..at, until)),
                }
            }
            from = at;
        }
        let open = &mut open[stream(step)];
        let count = open.entry(step).or_default();
        if begins {
            *count += 1;
        } else if *count > 1 {
            *count -= 1;
        } else {
            open.remove(&step);
        }
    }
    runs
}

/// Splits runs of bytes at these places.
pub(super) fn cut<K: Clone>(
    runs: Vec<(Range<Bytes>, K)>,
    cuts: impl Iterator<Item = Bytes>,
) -> Vec<(Range<Bytes>, K)> {
    let cuts = distinct(cuts);
    if cuts.is_empty() {
        return runs;
    }
    let cut = |(bytes, end): (Range<Bytes>, K)| {
        let first = cuts.partition_point(|&at| at <= bytes.start);
        let inside = cuts[first..].iter().copied().take_while(move |&at| at < bytes.end);
        let mut from = bytes.start;
        inside.chain([bytes.end]).map(move |to| (mem::replace(&mut from, to)..to, end.clone()))
    };
    runs.into_iter().flat_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(&[], &[])]
    #[case::one(&[(0..8, 3)], &[(0..8, 3)])]
    #[case::halves(&[(0..8, 0), (0..4, 3), (4..8, 2)], &[(0..4, 3), (4..8, 2)])]
    #[case::equal_halves(&[(0..4, 3), (4..8, 3)], &[(0..8, 3)])]
    #[case::inside(&[(0..9, 1), (3..6, 2), (5..7, 4)], &[(0..3, 1), (3..5, 2), (5..7, 4), (7..9, 1)])]
    #[case::with_a_gap(&[(1..2, 1), (5..6, 1)], &[(1..2, 1), (5..6, 1)])]
    fn bytes_are_split_where_the_last_use_changes(#[case] uses: &[Run], #[case] expected: &[Run]) {
        assert_eq!(runs(uses), expected);
    }

    #[rstest]
    #[case::nowhere(&[], &[0..4, 4..8])]
    #[case::inside(&[6, 2, 2], &[0..2, 2..4, 4..6, 6..8])]
    #[case::at_ends(&[0, 4, 8, 9], &[0..4, 4..8])]
    fn runs_are_cut(#[case] cuts: &[Bytes], #[case] expected: &[Range<Bytes>]) {
        let runs = cut(vec![(0..4, 1), (4..8, 2)], cuts.iter().copied());
        assert_eq!(runs.iter().map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>(), expected);
        assert!(runs.iter().all(|(bytes, end)| *end == if bytes.end <= 4 { 1 } else { 2 }));
    }

    /// Even steps run on one stream, odd ones on another.
    #[rstest]
    #[case::one_stream(&[(0..8, 2), (4..8, 4)], vec![(0..4, vec![2]), (4..8, vec![4])])]
    #[case::both(&[(0..8, 2), (4..8, 3)], vec![(0..4, vec![2]), (4..8, vec![2, 3])])]
    #[case::alike(&[(0..4, 2), (4..8, 2), (0..8, 1), (4..8, 0)], vec![(0..8, vec![2, 1])])]
    fn on_streams_the_last_uses_of_each_are_joined(
        #[case] uses: &[Run],
        #[case] expected: Vec<(Range<Bytes>, Vec<usize>)>,
    ) {
        let runs = runs_on_streams(uses, 2, |step| step % 2, |lasts| lasts.collect::<Vec<_>>());
        assert_eq!(runs, expected);
    }
}
