//! Readers of other programs' formats.

#[cfg(feature = "onnx")]
pub mod onnx;
