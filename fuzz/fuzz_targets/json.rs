//! Bytes as JSON: refused, or read, planned rightly and written again.

#![no_main]

#[path = "../../tests/common/bodies.rs"]
mod bodies;

use bodies::properties::bytes_are_read_or_refused;
use memplan::import::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bytes_are_read_or_refused(bytes, Format::Json));
