//! ONNX Runtime: the memory that its own planner takes for a model.

use std::path::Path;

use memplan::{Input, baselines::onnxruntime::MemoryPattern};

use crate::{args::InputArgs, files};

/// The memory pattern of an ONNX model that is read for ONNX Runtime.
pub(crate) fn pattern(
    input: &Input,
    path: Option<&Path>,
    args: &InputArgs,
) -> Option<MemoryPattern> {
    let is_model = args.is_for_onnxruntime() && path.is_some_and(|path| files::is_onnx(path, args));
    match input {
        Input::Sequence(sequence) if is_model => Some(MemoryPattern::of(sequence)),
        _ => None,
    }
}
