//! ONNX Runtime: the memory that its own planner takes for a model.

use std::path::Path;

use memplan::{Input, baselines::onnxruntime::MemoryPattern};

use crate::{
    args::{InputArgs, RuntimeName},
    files,
};

/// Returns whether models are read for ONNX Runtime.
pub(crate) fn is_asked(args: &InputArgs) -> bool {
    args.runtime == Some(RuntimeName::Onnxruntime)
}

/// The memory pattern of an ONNX model that is read for ONNX Runtime.
pub(crate) fn pattern(
    input: &Input,
    path: Option<&Path>,
    args: &InputArgs,
) -> Option<MemoryPattern> {
    let is_model = is_asked(args) && path.is_some_and(|path| files::is_onnx(path, args));
    match input {
        Input::Sequence(sequence) if is_model => Some(MemoryPattern::of(sequence)),
        _ => None,
    }
}
