//! What several test files need.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::PathBuf;

/// A folder of real models, problems and recorded answers beside the project, if it is there.
pub fn shared_path(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    path.exists().then_some(path)
}

/// The text of a file in that folder.
pub fn shared(path: &str) -> Option<String> {
    shared_path(path).map(|path| std::fs::read_to_string(path).unwrap())
}
