//! Checks that random problems are planned correctly and that plans change with them as they must.

#![no_main]

#[path = "../../tests/common/bodies.rs"]
mod bodies;

use arbitrary::Unstructured;
use bodies::properties::problems_are_planned_rightly;
use memplan_fuzz::within_memory;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    within_memory(bytes, |bytes| {
        let _ = problems_are_planned_rightly(&mut Unstructured::new(bytes));
    });
});
