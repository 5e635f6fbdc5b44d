//! The memory of an output: views of an input, and outputs written over an input.

pub(super) mod inplace;
pub(super) mod views;
