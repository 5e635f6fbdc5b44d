//! Runs of bytes, each with the last step that uses it.

use std::{collections::BTreeMap, ops::Range};

use crate::Bytes;

/// Bytes that are used as one, and the last step that uses them.
pub(super) type Run = (Range<Bytes>, usize);

/// Splits bytes where the last step that uses them changes. The uses may overlap; bytes that none of them covers
/// are in no run.
pub(super) fn runs<'u>(uses: impl IntoIterator<Item = &'u Run>) -> Vec<Run> {
    let mut events: Vec<(Bytes, bool, usize)> = Vec::new();
    for (bytes, last) in uses.into_iter().filter(|(bytes, _)| !bytes.is_empty()) {
        events.extend([(bytes.start, true, *last), (bytes.end, false, *last)]);
    }
    events.sort_unstable();
    let (mut runs, mut from): (Vec<Run>, Bytes) = (Vec::new(), 0);
    // The uses that cover the bytes from `from` on, counted by their last step.
    let mut open: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, begins, last) in events {
        if from < at {
            if let Some((&until, _)) = open.last_key_value() {
                match runs.last_mut() {
                    Some((bytes, last)) if bytes.end == from && *last == until => bytes.end = at,
                    _ => runs.push((from..at, until)),
                }
            }
            from = at;
        }
        let count = open.entry(last).or_default();
        if begins {
            *count += 1;
        } else if *count > 1 {
            *count -= 1;
        } else {
            open.remove(&last);
        }
    }
    runs
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
}
