//! Plans and orders back into the files that runtimes take.

#[cfg(feature = "onnx")]
pub mod onnx;
#[cfg(feature = "tflite")]
pub mod tflite;
