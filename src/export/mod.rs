//! An order found, back into the files that runtimes take.

pub mod onnx;
