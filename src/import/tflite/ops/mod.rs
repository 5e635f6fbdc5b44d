//! The facts about operators, one row each: views, in-place outputs, overlaps, scratch memory.

pub(crate) mod overlap;
mod persistent;
pub(crate) mod scratch;
mod support;
mod table;
mod views;

pub(crate) use persistent::{Persistent, persistent};
pub(crate) use support::unsupported;
pub(crate) use table::{Memory, find, writes_early};

use crate::import::tflite::model::{Model, Operator, OperatorAt, Tensor};

/// An operator with its tensors.
pub(crate) struct Op<'m, 'a> {
    pub(crate) model: &'m Model<'a>,
    pub(crate) at: OperatorAt,
    pub(crate) operator: &'m Operator<'a>,
}

impl<'m, 'a> Op<'m, 'a> {
    pub(crate) fn new(model: &'m Model<'a>, at: OperatorAt) -> Self {
        Self { model, at, operator: model.operator(at) }
    }

    pub(crate) fn tensor(&self, tensor: usize) -> &'m Tensor {
        &self.model.subgraphs[self.at.subgraph].tensors[tensor]
    }

    /// An input, if it is present.
    pub(crate) fn input(&self, index: usize) -> Option<&'m Tensor> {
        self.operator.inputs.get(index).copied().flatten().map(|tensor| self.tensor(tensor))
    }

    pub(crate) fn output(&self, index: usize) -> Option<&'m Tensor> {
        self.operator.outputs.get(index).map(|&tensor| self.tensor(tensor))
    }
}
