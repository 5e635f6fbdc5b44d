//! Checks that bytes as a TensorFlow Lite model are rejected, or read, planned correctly and written
//! again.

#![no_main]

#[path = "../../tests/common/bodies.rs"]
mod bodies;

use bodies::properties::bytes_are_read_or_refused;
use memplan::import::Format;
use memplan_fuzz::within_memory;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    within_memory(bytes, |bytes| bytes_are_read_or_refused(bytes, Format::Tflite));
});
