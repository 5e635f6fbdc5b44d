//! A sheet of a page: plans of the same chunks.

use crate::{OpSequence, Plan, Problem};

/// Plans of the same chunks, with their operators and problem.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MapSheet<'a> {
    /// A label that distinguishes it from the other sheets of a page; may be empty.
    pub label: &'a str,
    /// The plans. Those of other chunks than the one before begin a sheet of their own.
    pub plans: &'a [Plan],
    /// The sequence whose operators the steps are, if there is one.
    pub steps: Option<&'a OpSequence>,
    /// The problem that the plans solve, for the simulation of *pushdown*, if there is one.
    pub problem: Option<&'a Problem>,
}

impl<'a> MapSheet<'a> {
    /// Creates a sheet without a label and without a simulation.
    #[must_use]
    pub const fn new(plans: &'a [Plan], steps: Option<&'a OpSequence>) -> Self {
        Self { label: "", plans, steps, problem: None }
    }

    /// Adds the simulation of *pushdown* with this problem, if the plans are of its chunks.
    #[must_use]
    pub fn problem(mut self, problem: impl Into<Option<&'a Problem>>) -> Self {
        self.problem = problem.into();
        self
    }

    /// Labels the sheet.
    #[must_use]
    pub const fn label(mut self, label: &'a str) -> Self {
        self.label = label;
        self
    }
}
