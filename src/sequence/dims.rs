//! The sizes that a dimension with a name may have.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use crate::SequenceError;

/// The sizes that a dimension may have: one, or all from `least` to `most`.
///
/// ```
/// use memplan::sequence::DimRange;
///
/// assert_eq!(DimRange::from(8), DimRange::from(8..=8));
/// assert_eq!("1..128".parse(), Ok(DimRange::from(1..=128)));
/// assert!(DimRange::from(1..=128).contains(DimRange::from(7)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "[u64; 2]", into = "[u64; 2]")
)]
#[non_exhaustive]
pub struct DimRange {
    /// The smallest size.
    pub least: u64,
    /// The largest size, included.
    pub most: u64,
}

impl DimRange {
    /// Returns whether there is only one size.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.least == self.most
    }

    /// Returns whether every size of the other range is one of this range.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.least <= other.least && other.most <= self.most
    }

    /// Checks the sizes of the dimension with this name.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub(crate) fn check(self, name: &str) -> Result<(), SequenceError> {
        if self.least <= self.most {
            return Ok(());
        }
        Err(SequenceError::WrongRange { name: name.to_owned(), range: self })
    }
}

impl From<u64> for DimRange {
    fn from(size: u64) -> Self {
        Self { least: size, most: size }
    }
}

impl From<RangeInclusive<u64>> for DimRange {
    fn from(range: RangeInclusive<u64>) -> Self {
        Self { least: *range.start(), most: *range.end() }
    }
}

impl From<[u64; 2]> for DimRange {
    fn from([least, most]: [u64; 2]) -> Self {
        Self { least, most }
    }
}

impl From<DimRange> for [u64; 2] {
    fn from(range: DimRange) -> Self {
        [range.least, range.most]
    }
}

impl fmt::Display for DimRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exact() {
            return self.most.fmt(f);
        }
        write!(f, "{}..{}", self.least, self.most)
    }
}

impl FromStr for DimRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |size: &str| size.parse::<u64>().ok();
        let range = match text.split_once("..") {
            Some((least, most)) => {
                size(least).zip(size(most)).map(|(least, most)| Self { least, most })
            }
            None => size(text).map(Self::from),
        };
        range.ok_or_else(|| {
            format!(
                "'{text}' is neither a size, such as 8, nor a range with both ends, such as 1..128"
            )
        })
    }
}
