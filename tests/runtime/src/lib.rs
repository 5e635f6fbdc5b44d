//! A real run: networks executed by [`rten`], with every intermediate tensor in one allocation, at
//! the offsets that memplan planned.
//!
//! [`Network::load`] fills a model with random weights. [`Network::run`] is the runtime's own run of the
//! whole graph, with its own memory. [`Network::run_in_pool`] has the runtime compute one operator at a time,
//! in memplan's order: the inputs are borrowed from the pool, the outputs are copied into the pool and
//! dropped, and views move no bytes, nor do inputs that lie inside the output that gathers them. Between two
//! operators nothing is kept but the pool, the graph inputs, the weights, and the tensors that are the same
//! in every run according to memplan; these are computed once, from other inputs.
//!
//! The runtime optimizes nothing, so both run the same graph, on one thread.

mod network;
mod peak;
mod small;
mod tensor;
mod weights;

use std::{
    io::{self, Write},
    path::PathBuf,
};

pub use network::{Inputs, Network, Pool};
pub use peak::{Peaks, peaks};
pub use small::small_network;

/// The models of `data/models` that the runtime runs, with the names to display.
pub const MODELS: [(&str, &str); 9] = [
    ("VGG-16", "vgg16_b1"),
    ("ResNet-50", "resnet50_b1"),
    ("MobileNetV2", "mobilenet_v2_b1"),
    ("DenseNet-121", "densenet121_b1"),
    ("EfficientNet-B0", "efficientnet_b0_b1"),
    ("Inception v3", "inception_v3_b1"),
    ("BERT base, 128 tokens", "bert_base_b1_s128"),
    ("GPT-2, 128 tokens", "gpt2_b1_s128"),
    ("ViT-B/16", "vit_b_16_b1"),
];

/// A model from the folder beside the project, if it exists. If it is missing, that is reported
/// once on standard error.
///
/// # Panics
///
/// If it is missing and `MEMPLAN_SHARED=required`.
#[must_use]
pub fn model(name: &str) -> Option<Vec<u8>> {
    static SKIPPED: std::sync::Once = std::sync::Once::new();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/models");
    let model = std::fs::read(folder.join(format!("{name}.onnx"))).ok();
    if model.is_none() {
        let required = std::env::var_os("MEMPLAN_SHARED").is_some_and(|value| value == "required");
        assert!(!required, "{} lacks {name}.onnx, but MEMPLAN_SHARED=required", folder.display());
        SKIPPED.call_once(|| {
            // The test harness captures `eprintln!`, but not this.
            let _ =
                writeln!(io::stderr(), "SKIPPED: models of ../shared, which is not there ({name})");
        });
    }
    model
}
