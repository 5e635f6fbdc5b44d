//! Describes the rules of a plan: which outputs could be written over inputs, and what lies in the
//! pool.

use std::path::Path;

use memplan::{Input, import::InPlace};

use crate::{args::InputArgs, files};

/// Describes the rules for an input, such as `in place: rows, inputs in the pool`.
pub(crate) fn rules(input: &Input, path: Option<&Path>, args: &InputArgs) -> String {
    let mut rules = match input {
        Input::Sequence(_) if path.is_some_and(|path| files::is_tflite(path, args)) => {
            let kernels = files::kernel_library(args).unwrap_or_default();
            format!("in place: {}, {kernels} kernels", args.profile().unwrap_or_default())
        }
        Input::Sequence(_) if path.is_some_and(|path| files::is_onnx(path, args)) => {
            let kernels = args.kernels.as_deref();
            let kernels = kernels.map(|path| format!(" but for {}", files::short_name(path)));
            format!(
                "in place: {}{}",
                args.profile().unwrap_or_default(),
                kernels.unwrap_or_default()
            )
        }
        Input::Sequence(_) if args.profile() == Some(InPlace::None) => "in place: none".to_owned(),
        Input::Sequence(_) => "in place: as declared".to_owned(),
        Input::Problem(_) => "chunks and links as given".to_owned(),
    };
    let options = args.lowering();
    for (applies, rule) in [
        (!options.views, ", no views"),
        (options.inputs_in_pool, ", inputs in the pool"),
        (options.weights_in_pool, ", weights in the pool"),
    ] {
        if applies {
            rules.push_str(rule);
        }
    }
    rules
}
