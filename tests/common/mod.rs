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
