//! Sequences, problems and plans: reading, lowering, checking and drawing them.

#[path = "../common/mod.rs"]
mod common;

mod advice;
mod alive;
mod by_byte;
mod captured;
mod constraint_pictures;
mod constraints;
mod execution;
mod files;
mod fuzz_corpus;
mod gathers;
mod later;
mod linear;
mod lower_bound;
mod lowering;
mod optional_parts;
mod order;
mod overlap;
mod pictures;
mod placement;
mod plan_files;
mod pools;
mod properties;
mod report_words;
mod required;
mod retired_words;
mod scope;
mod sequence_checks;
mod sequence_order;
mod simulation;
mod smaller;
mod streams;
mod verify;
mod verify_constraints;
mod verify_mutants;
