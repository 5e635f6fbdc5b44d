//! Code that several test files share.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod graphs;
pub mod problems;
pub mod properties;
pub mod random;

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The project's folder, from the library's package and from the tool's.
pub fn project() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let holds_both = |folder: &&Path| folder.join("src/cli").exists();
    package.ancestors().find(holds_both).unwrap().to_owned()
}

/// A folder of real models, problems and recorded answers beside the project, if it is there.
pub fn shared_path(path: &str) -> Option<PathBuf> {
    let path = project().join("../shared").join(path);
    path.exists().then_some(path)
}

/// The text of a file in that folder.
pub fn shared(path: &str) -> Option<String> {
    shared_path(path).map(|path| std::fs::read_to_string(path).unwrap())
}

/// The cases of a file of recorded answers, if it is there.
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
