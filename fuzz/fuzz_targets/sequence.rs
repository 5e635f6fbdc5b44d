//! Random operator sequences run as planned, with all options of lowering.

#![no_main]

#[path = "../../tests/common/bodies.rs"]
mod bodies;

use arbitrary::Unstructured;
use bodies::properties::sequences_run_as_planned;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = sequences_run_as_planned(&mut Unstructured::new(bytes));
});
