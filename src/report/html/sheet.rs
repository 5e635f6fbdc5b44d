//! A sheet of a page: plans of the same chunks.

use crate::{OpSequence, Plan, Problem};

/// Plans of the same chunks, with their operators and problem.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MapSheet<'a> {
    /// A label that distinguishes it from the other sheets of a page; may be empty.
    pub label: &'a str,
    /// The plans, at least one.
    pub plans: &'a [Plan],
    /// The sequence whose operators the steps are, if there is one.
    pub steps: Option<&'a OpSequence>,
    /// The problem that the plans solve, for the simulation of *pushdown*.
    pub problem: &'a Problem,
}

impl<'a> MapSheet<'a> {
    /// Creates a sheet without a label.
    #[must_use]
    pub const fn new(
        plans: &'a [Plan],
        steps: Option<&'a OpSequence>,
        problem: &'a Problem,
    ) -> Self {
        Self { label: "", plans, steps, problem }
    }

    /// Labels the sheet.
    #[must_use]
    pub const fn label(mut self, label: &'a str) -> Self {
        self.label = label;
        self
    }
}
