//! Counts with their nouns, singular or plural.

/// Formats a count as `1 chunk` or `2 chunks`.
#[must_use]
pub fn count(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        many => format!("{many} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn only_one_is_one() {
        assert_eq!([0, 1, 2].map(|n| count(n, "step")), ["0 steps", "1 step", "2 steps"]);
    }
}
