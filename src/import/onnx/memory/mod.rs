//! The memory of an output: views of an input, outputs written over an input, and outputs that hold
//! inputs one after another.

pub(super) mod gathers;
pub(super) mod inplace;
pub(super) mod onnxruntime;
pub(super) mod views;
