//! The importer of ONNX models.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/onnx_text.rs"]
mod onnx_text;
#[path = "../common/wire.rs"]
mod wire;

mod bodies;
mod caches;
mod conflicts;
mod copies;
mod layers;
mod models;
mod names;
mod onnxruntime;
mod operators;
mod orders;
mod questions;
mod ranges;
mod rules;
mod sizes;
