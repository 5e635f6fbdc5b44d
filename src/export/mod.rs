//! Writes plans and orders into model files.

mod c_header;
mod c_names;
#[cfg(feature = "onnx")]
pub mod onnx;
#[cfg(feature = "tflite")]
pub mod tflite;

pub use c_header::c_header;
