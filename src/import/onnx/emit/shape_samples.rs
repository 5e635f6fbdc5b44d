//! An operator for each shape sample of its open sizes, and the views that are right in all of them.

use crate::import::{
    Kernels,
    onnx::{
        infer::{self, open::SHAPE_SAMPLES},
        memory::views::{self, Place as View},
        ops::{op::Op, row::Row},
        read::fact::Fact,
    },
};

/// An operator in one of the shape samples.
pub(super) struct ShapeSample {
    pub(super) inputs: Vec<Option<Fact>>,
    pub(super) outputs: Vec<Fact>,
}

/// The operator in each shape sample, if a size of it is open.
pub(super) fn shape_samples(op: &Op, outputs: &[Fact]) -> Vec<ShapeSample> {
    let mut facts = op.inputs.iter().flatten().copied().chain(outputs);
    if !facts.any(Fact::is_open) {
        return Vec::new();
    }
    let sample = |nth| ShapeSample {
        inputs: infer::shape_samples::inputs(op, nth),
        outputs: outputs.iter().map(|output| output.in_sample(nth)).collect(),
    };
    (0..SHAPE_SAMPLES).map(sample).collect()
}

/// The outputs that are the same views in every shape sample.
pub(super) fn views_in(
    op: &Op,
    row: Option<&Row>,
    outputs: &[Fact],
    samples: &[ShapeSample],
    kernels: &Kernels,
) -> Vec<View> {
    let mut views: Option<Vec<View>> = None;
    for sample in samples {
        let here = views::views(
            &infer::shape_samples::guessed(op, &sample.inputs),
            row,
            &sample.outputs,
            kernels,
        );
        views = Some(match views {
            None => here,
            Some(views) => views.into_iter().zip(here).map(|(a, b)| a.filter(|_| a == b)).collect(),
        });
    }
    views.unwrap_or_else(|| views::views(op, row, outputs, kernels))
}
