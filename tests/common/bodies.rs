//! The test bodies that `cargo test` and the fuzzers share.

#[path = "properties.rs"]
pub mod properties;
#[path = "random.rs"]
pub mod random;
