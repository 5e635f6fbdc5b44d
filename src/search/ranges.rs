//! The offsets that bodies may have, and ranges of offsets at which they clash.

/// The offsets that a body may have: `residue` modulo `modulus`.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub modulus: i64,
    pub residue: i64,
}

impl Grid {
    /// The lowest allowed offset that is not below `offset`.
    pub fn round_up(self, offset: i64) -> i64 {
        offset + (self.residue - offset).rem_euclid(self.modulus)
    }

    /// The highest allowed offset that is not above `offset`.
    pub fn round_down(self, offset: i64) -> i64 {
        offset - (offset - self.residue).rem_euclid(self.modulus)
    }
}

/// Sorts ranges, with both ends excluded, and merges those that have offsets in common.
pub fn merge(ranges: &mut Vec<(i64, i64)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let is_joined = next.0 < last.1;
        if is_joined {
            last.1 = last.1.max(next.1);
        }
        is_joined
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_unless_they_only_touch() {
        let mut ranges = vec![(4, 9), (0, 5), (9, 12), (1, 2), (20, 21)];
        merge(&mut ranges);
        // The offset 9 is in none of them.
        assert_eq!(ranges, [(0, 9), (9, 12), (20, 21)]);
    }
}
