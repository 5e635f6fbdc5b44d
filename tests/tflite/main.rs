//! TensorFlow Lite models: what is read, predicted and written.

#[path = "../common/flatbuffer.rs"]
mod flatbuffer;
#[path = "../common/shared.rs"]
mod shared;

mod answers;
mod export;
mod reader;
