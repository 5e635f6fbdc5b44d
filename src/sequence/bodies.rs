//! Operators that run sequences of their own, and the workspace that replaces those once they are
//! planned.

use std::borrow::Cow;

#[cfg(test)]
use crate::sequence::{OperatorNode, Tensor};
use crate::{
    Bytes,
    sequence::{OpSequence, SequenceError, TensorId, check, given::Given, uses::uses},
};

impl OpSequence {
    /// The most levels of bodies within bodies. A JSON parser with the usual limit of 128 levels reads
    /// them all.
    pub const MAX_DEPTH: usize = 24;

    /// Returns true if an operator runs a sequence of its own.
    #[must_use]
    pub fn has_bodies(&self) -> bool {
        self.depth > 0
    }

    /// The operators and the tensors, for tests of sequences that cannot be built.
    #[cfg(test)]
    pub(crate) fn parts_mut(&mut self) -> (&mut [OperatorNode], &mut [Tensor]) {
        (&mut self.operators, &mut self.tensors)
    }

    /// The same operators without bodies. The workspace of each operator grows by `rooms`, in bytes, by
    /// step.
    ///
    /// # Errors
    ///
    /// If the sum of the sizes exceeds 64 bits.
    pub(crate) fn with_rooms(&self, rooms: &[Bytes]) -> Result<Cow<'_, Self>, SequenceError> {
        if !self.has_bodies() {
            return Ok(Cow::Borrowed(self));
        }
        let mut flat = self.clone();
        flat.depth = 0;
        flat.updated_in_bodies = self.updated_in_bodies();
        flat.given = Given {
            undeclared: self.undeclared().into_iter().map(Into::into).collect(),
            is_sorted: self.is_sorted(),
            order: self.given.order.clone(),
        };
        for (step, operator) in flat.operators.iter_mut().enumerate() {
            if operator.bodies.is_empty() {
                continue;
            }
            operator.bodies.clear();
            operator.runs_bodies = true;
            let size = rooms.get(step).copied().unwrap_or(0);
            operator.workspace = operator.workspace.checked_add(size).ok_or_else(|| {
                let tensor = format!("the workspace of {}", self.operator_name(step));
                SequenceError::SizeOverflow { tensor, size }
            })?;
        }
        check::sizes(&flat)?;
        Ok(Cow::Owned(flat))
    }

    /// The tensors that bodies updated, if the bodies have been replaced by workspace.
    pub(crate) fn updates_of_bodies(&self) -> &[TensorId] {
        &self.updated_in_bodies
    }

    /// The tensors that bodies update, ascending.
    fn updated_in_bodies(&self) -> Vec<TensorId> {
        let bodies = self.operators.iter().flat_map(|operator| &operator.bodies);
        let uses = bodies.flat_map(uses);
        let updated = uses.filter(|(_, of)| of.writes.is_some());
        let mut updated: Vec<TensorId> =
            updated.filter_map(|(name, _)| self.tensor_id(name)).collect();
        updated.sort_unstable();
        updated.dedup();
        updated
    }
}
