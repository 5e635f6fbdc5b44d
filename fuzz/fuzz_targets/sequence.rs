//! Checks that random operator sequences run as planned, with any strategy and any lowering
//! options.

#![no_main]

#[path = "../../tests/common/bodies.rs"]
mod bodies;

use arbitrary::Unstructured;
use bodies::properties::a_sequence_runs_as_planned;
use memplan_fuzz::within_memory;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    within_memory(bytes, |bytes| {
        let _ = a_sequence_runs_as_planned(&mut Unstructured::new(bytes));
    });
});
