//! Describes the rules of a plan, from the arguments of the command line.

use std::path::Path;

use memplan::{Input, InputRef, Strategy, report};

use crate::{args::InputArgs, files, tflite};

/// Describes the rules for an input, such as `in-place rows, inputs in the pool`. A strategy that puts no inputs where
/// an output gathers them plans with all copies.
pub(crate) fn rules(
    input: &Input,
    path: Option<&Path>,
    args: &InputArgs,
    strategy: Strategy,
) -> String {
    let profile = || args.profile().unwrap_or_default();
    let kernels = match path {
        Some(path) if files::is_tflite(path, args) && args.is_for_interpreter() => {
            let none = args.profile().map(|profile| profile.to_string());
            Some(none.unwrap_or_else(|| "as in TensorFlow Lite's interpreter".to_owned()))
        }
        Some(path) if files::is_tflite(path, args) => {
            let library = tflite::kernel_library(args).unwrap_or_default();
            // A proof holds for the overlaps that the plan takes; others may allow a smaller pool.
            let overlaps = if args.overlap { ", only these overlaps" } else { "" };
            Some(format!("{}, {library} kernels{overlaps}", profile()))
        }
        Some(path) if files::is_onnx(path, args) && args.is_for_onnxruntime() => {
            Some("as in ONNX Runtime".to_owned())
        }
        Some(path) if files::is_onnx(path, args) => {
            let but = args.kernels.as_deref().map(files::short_name);
            let but = but.map_or_else(String::new, |file| format!(", except as in {file}"));
            Some(format!("{}{but}", profile()))
        }
        _ => None,
    };
    let has_gathers = InputRef::from(input).has_gathers();
    let gathers = args.lowering().gathers && (strategy.supports_parts() || !has_gathers);
    report::rules(input.into(), kernels.as_deref(), args.lowering().gathers(gathers))
}
