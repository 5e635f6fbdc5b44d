//! The positions of steps and bytes on the picture, and the marks on its axes.

use std::fmt;

use crate::{Bytes, Step};

/// A coordinate with at most one decimal.
#[derive(Clone, Copy)]
pub(super) struct Px(pub(super) f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        let text = text.strip_suffix(".0").unwrap_or(&text);
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// The area of the map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The number of steps, at least 1.
    pub(super) steps: Step,
    /// The number of bytes, at least 1.
    pub(super) bytes: Bytes,
}

#[allow(clippy::cast_precision_loss, reason = "pixels")]
impl Frame {
    pub(super) fn x(&self, step: Step) -> f64 {
        self.left + self.width * (step.min(self.steps) as f64 / self.steps as f64)
    }

    pub(super) fn y(&self, byte: Bytes) -> f64 {
        self.top + self.height * (1.0 - byte.min(self.bytes) as f64 / self.bytes as f64)
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// The addresses to mark: multiples of a power of two, at least 30 pixels apart.
    pub(super) fn addresses(&self) -> impl Iterator<Item = Bytes> + use<> {
        let bytes = self.bytes;
        let most = self.height / 30.0;
        let power = (0..63).find(|&power| (bytes >> power) as f64 <= most).unwrap_or(63);
        (0..=bytes >> power).map(move |mark| mark << power)
    }

    /// The steps to mark: 1, 2 or 5 times a power of ten apart, and at least 34 pixels.
    pub(super) fn marked_steps(&self) -> impl Iterator<Item = Step> + use<> {
        let least = 34.0 * self.steps as f64 / self.width;
        let tens = std::iter::successors(Some(1_u64), |ten| ten.checked_mul(10));
        let apart = tens
            .flat_map(|ten| [1, 2, 5].map(|times| ten.saturating_mul(times)))
            .find(|&apart| apart as f64 >= least)
            .unwrap_or(Step::MAX);
        let steps = self.steps;
        (0..=(steps - 1) / apart).map(move |mark| mark * apart)
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Px};

    #[test]
    fn marks_stay_apart_at_every_scale() {
        for shift in 0..64 {
            let (steps, bytes) = (1 << shift, u64::MAX >> (63 - shift));
            let frame = Frame { left: 0.0, top: 0.0, width: 900.0, height: 500.0, steps, bytes };
            assert!(frame.marked_steps().count() <= 27);
            assert!(frame.addresses().count() <= 17);
        }
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([1.0, 0.25, -0.01, 12.96].map(|px| Px(px).to_string()), ["1", "0.2", "0", "13"]);
    }
}
