//! TensorFlow Lite models: reading, predicting and writing them.

#[path = "../common/flatbuffer.rs"]
mod flatbuffer;
#[path = "../common/shared.rs"]
mod shared;

mod answers;
mod export;
mod reader;
mod shapes;
