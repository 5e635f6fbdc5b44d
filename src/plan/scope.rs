//! The plans that a bound is proven for.

use std::fmt;

use crate::{
    InputRef, PlannedBody, PlannedTensor, Problem, TensorPlace,
    lower::{LoweringOptions, has_parts, optional_ties},
};

/// The plans that [`Plan::lower_bound`](crate::Plan::lower_bound) and
/// [`Plan::proven_optimal`](crate::Plan::proven_optimal) hold for.
///
/// A planner has choices: a view may be a copy instead, an output that may be written over an input may lie
/// elsewhere, and an input may lie inside the output that gathers it or be copied there. A proof over all choices
/// holds for every plan of the input; with a proof over these choices only, other choices may lead to a smaller pool.
///
/// ```
/// use memplan::{Planner, Problem, plan::Scope};
///
/// let mut problem = Problem::builder();
/// let old = problem.chunk(0..2, 10);
/// let new = problem.chunk(1..3, 10);
/// problem.overwrite(new, old, 0);
/// let problem = problem.build()?;
/// let plan = Planner::new().plan(&problem)?;
/// assert_eq!((plan.proven_optimal(), plan.scope()), (true, Scope::AllChoices));
/// # Ok::<(), memplan::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Scope {
    /// The plans of the same chunks: `these_choices` in files. They have the same views, overwrites and copies, and the
    /// same lifetimes.
    TheseChoices,
    /// All plans of the input: `all_choices`.
    AllChoices,
}

impl Scope {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TheseChoices => "these_choices",
            Self::AllChoices => "all_choices",
        }
    }

    /// The scope of what is proven about an input that is lowered with these options.
    pub(crate) fn of(input: InputRef<'_>, options: LoweringOptions) -> Self {
        let has_choice = match input {
            InputRef::Problem(problem) => {
                let has_parts = options.gathers && !problem.optional_parts().is_empty();
                has_parts || has_optional_overwrite(problem)
            }
            InputRef::Sequence(sequence) => {
                has_parts(sequence, options) || !optional_ties(sequence, options).is_empty()
            }
        };
        if has_choice { Self::TheseChoices } else { Self::AllChoices }
    }

    /// The scope of a plan with these bodies. Their pools are part of the plan's pool, so a proof over all choices
    /// needs such a proof for every body.
    pub(crate) fn with_bodies(self, bodies: &[PlannedBody]) -> Self {
        let is_supplied =
            |tensor: &PlannedTensor| matches!(tensor.place, TensorPlace::Supplied { .. });
        let is_settled = |PlannedBody { plan, .. }: &PlannedBody| {
            // Results made in the operator's outputs could have left room there for what is in the pool.
            let is_made_outside = plan.pool_size > 0 && plan.tensors.iter().any(is_supplied);
            plan.proven_optimal && plan.scope == Self::AllChoices && !is_made_outside
        };
        if bodies.iter().all(is_settled) { self } else { Self::TheseChoices }
    }
}

fn has_optional_overwrite(problem: &Problem) -> bool {
    let has_bytes = |chunk| problem.chunk(chunk).size > 0;
    problem.requests().iter().any(|request| {
        !request.required && has_bytes(request.overwriter) && has_bytes(request.overwritten)
    })
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
