//! Real models, problems and recorded answers, which lie beside the project where it is developed.
//!
//! Tests that need them are skipped where they are missing, and each test binary reports it. With
//! `MEMPLAN_SHARED=required`, a missing file is a failure.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Once,
};

/// The project's folder, for the packages of the library and of the tool.
pub fn project() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let holds_both = |folder: &&Path| folder.join("src/cli").exists();
    package.ancestors().find(holds_both).unwrap().to_owned()
}

/// The path of a file or folder in `../shared`, if it exists.
pub fn shared_path(path: &str) -> Option<PathBuf> {
    static SKIPPED: Once = Once::new();
    let full = project().join("../shared").join(path);
    if full.exists() {
        return Some(full);
    }
    let required = std::env::var_os("MEMPLAN_SHARED").is_some_and(|value| value == "required");
    assert!(!required, "{} does not exist, but MEMPLAN_SHARED=required", full.display());
    SKIPPED.call_once(|| {
        let binary = env!("CARGO_CRATE_NAME");
        // The test harness captures `eprintln!`, but not this.
        let _ = writeln!(
            io::stderr(),
            "SKIPPED: tests of {binary} that need ../shared, which is not there ({path})"
        );
    });
    None
}

/// The text of a file in that folder.
pub fn shared(path: &str) -> Option<String> {
    shared_path(path).map(|path| std::fs::read_to_string(path).unwrap())
}
