//! An operator in each of the worlds that an open size can be in, and the views that are right in all of them.

use crate::import::{
    Kernels,
    onnx::{
        infer::{self, open::WORLDS},
        memory::views::{self, Place as View},
        ops::{op::Op, row::Row},
        read::fact::Fact,
    },
};

/// An operator in one of the worlds.
pub(super) struct World {
    pub(super) inputs: Vec<Option<Fact>>,
    pub(super) outputs: Vec<Fact>,
}

/// The operator in each world, if a size of it is open.
pub(super) fn worlds(op: &Op, outputs: &[Fact]) -> Vec<World> {
    let mut facts = op.inputs.iter().flatten().copied().chain(outputs);
    if !facts.any(Fact::is_open) {
        return Vec::new();
    }
    let world = |world| World {
        inputs: infer::worlds::inputs(op, world),
        outputs: outputs.iter().map(|output| output.in_world(world)).collect(),
    };
    (0..WORLDS).map(world).collect()
}

/// The outputs that are the same views in every world.
pub(super) fn views_in(
    op: &Op,
    row: Option<&Row>,
    outputs: &[Fact],
    worlds: &[World],
    kernels: &Kernels,
) -> Vec<View> {
    let mut views: Option<Vec<View>> = None;
    for world in worlds {
        let here =
            views::views(&infer::worlds::guessed(op, &world.inputs), row, &world.outputs, kernels);
        views = Some(match views {
            None => here,
            Some(views) => views.into_iter().zip(here).map(|(a, b)| a.filter(|_| a == b)).collect(),
        });
    }
    views.unwrap_or_else(|| views::views(op, row, outputs, kernels))
}
