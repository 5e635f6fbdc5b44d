//! Code that several test files share.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

pub mod alive;
pub mod asked;
pub mod choices;
pub mod constraints;
pub mod every_place;
pub mod expansion;
pub mod file_mutants;
pub mod graphs;
pub mod judge;
pub mod machine;
pub mod mutants;
pub mod oracle;
pub mod placed;
pub mod problems;
pub mod properties;
pub mod random;
pub mod rich;
pub mod seeds;
pub mod shared;
pub mod spoiled;

use arbitrary::{Result, Unstructured};
use serde_json::Value;

pub use shared::{project, shared, shared_path};

/// The cases of a file of recorded answers, if it exists.
pub fn golden(file: &str) -> Option<Vec<Value>> {
    let text = shared(&format!("data/golden/{file}"))?;
    let mut golden: Value = serde_json::from_str(&text).unwrap();
    let Value::Array(cases) = golden["cases"].take() else { panic!("{file} has no cases") };
    Some(cases)
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

pub fn index(value: &Value) -> usize {
    usize::try_from(number(value)).unwrap()
}

pub fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(number).collect()
}

pub fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(index).collect()
}

/// How many times as long as usual tests draw at random: the number in `MEMPLAN_LONGER`, or once.
pub fn longer() -> u64 {
    std::env::var("MEMPLAN_LONGER").map_or(1, |text| text.parse().unwrap())
}

/// Runs a property on as many random inputs, which are the same in every run, and [`longer`] on more.
pub fn times(count: u64, mut property: impl FnMut(&mut Unstructured<'_>) -> Result<()>) {
    let mut dice = constraints::Dice(1);
    for _ in 0..count * longer() {
        let bytes: Vec<u8> = (0..8192).map(|_| u8::try_from(dice.roll(256)).unwrap()).collect();
        // An error means that the input is too short.
        let _ = property(&mut Unstructured::new(&bytes));
    }
}
