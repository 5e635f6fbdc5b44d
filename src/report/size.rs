//! Human-readable sizes: `12.3 MiB (12 902 400 B)`.

use std::fmt;

use crate::Bytes;

/// Formats a number of bytes in a binary unit and exactly. `{:#}` displays only the unit.
///
/// ```
/// use memplan::report::size;
///
/// assert_eq!(size(12_902_400).to_string(), "12.3 MiB (12 902 400 B)");
/// assert_eq!(format!("{:#}", size(12_902_400)), "12.3 MiB");
/// ```
#[must_use]
pub fn size(bytes: Bytes) -> impl fmt::Display + Copy {
    Size(bytes)
}

/// A number of bytes, displayed as [`size`] describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) Bytes);

impl fmt::Display for Size {
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let exact = grouped(self.0);
        if self.0 < 1024 {
            return f.pad(&format!("{exact} B"));
        }
        // Shows three digits, but never 1024, which is 1 in the next unit.
        let (mut value, mut unit) = (self.0 as f64 / 1024.0, 0);
        while value >= 1023.5 && unit + 1 < UNITS.len() {
            (value, unit) = (value / 1024.0, unit + 1);
        }
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        let short = format!("{value:.decimals$} {}", UNITS[unit]);
        f.pad(&if f.alternate() { short } else { format!("{short} ({exact} B)") })
    }
}

/// Formats digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Size;

    #[rstest]
    #[case(0, "0 B")]
    #[case(999, "999 B")]
    #[case(1023, "1 023 B")]
    #[case(1024, "1.00 KiB (1 024 B)")]
    #[case(1_048_063, "1023 KiB (1 048 063 B)")]
    #[case(1_048_064, "1.00 MiB (1 048 064 B)")]
    #[case(1_048_575, "1.00 MiB (1 048 575 B)")]
    #[case(12_902_400, "12.3 MiB (12 902 400 B)")]
    #[case(105_791_392, "101 MiB (105 791 392 B)")]
    #[case(14_690_799_616, "13.7 GiB (14 690 799 616 B)")]
    #[case(u64::MAX, "16.0 EiB (18 446 744 073 709 551 615 B)")]
    fn sizes_show_a_unit_and_every_byte(#[case] bytes: u64, #[case] shown: &str) {
        assert_eq!(Size(bytes).to_string(), shown);
    }
}
