//! The inputs of random tests, shared with the unit tests.

use std::{
    env,
    time::{Duration, Instant},
};

use arbitrary::{Result, Unstructured};

/// The number in a variable of the environment.
fn variable(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

/// The factor by which tests draw more inputs than usual: `MEMPLAN_LONGER`, or 1.
pub fn longer() -> u64 {
    variable("MEMPLAN_LONGER").unwrap_or(1)
}

/// Consecutive seeds of random inputs, from 0 or `MEMPLAN_FIRST` on: `count` times [`longer`] of them, or those that
/// are reached within `MEMPLAN_BUDGET_MS` milliseconds.
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let (budget, start) =
        (variable("MEMPLAN_BUDGET_MS").map(Duration::from_millis), Instant::now());
    let first = variable("MEMPLAN_FIRST").unwrap_or(0);
    (first..).take_while(move |&seed| match budget {
        Some(budget) => start.elapsed() < budget,
        None => seed < first + count * longer(),
    })
}

/// Pseudo-random bytes (xorshift), the same for each seed.
pub fn bytes_of(mut seed: u64) -> Vec<u8> {
    seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let next = move |_| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()[3]
    };
    (0..4096).map(next).collect()
}

/// Runs a property on the inputs of [`seeds`]. An error means that the property does not apply to an input.
pub fn times(count: u64, mut property: impl FnMut(&mut Unstructured<'_>) -> Result<()>) {
    let mut applies = false;
    for seed in seeds(count) {
        let shown = ShowSeed(seed);
        applies |= property(&mut Unstructured::new(&bytes_of(seed))).is_ok();
        drop(shown);
    }
    assert!(applies, "the property applies to no input");
}

/// Says with which seed a test panics.
struct ShowSeed(u64);

impl Drop for ShowSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("With MEMPLAN_FIRST={} this input is drawn first.", self.0);
        }
    }
}
