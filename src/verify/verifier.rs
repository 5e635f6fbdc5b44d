//! A full verification: the plan itself, and the requirements of the caller.

use crate::{
    Bytes, InputRef, Plan, Problem, ProblemError,
    lower::LoweringOptions,
    verify::{
        Figure, Violation, bytes_alive, bytes_needed, execute, placing, supplied, table::Links,
        verify, verify_smaller, without_repeats,
    },
};

/// Verifies plans. By default, it only checks that a plan is right; options require an alignment or
/// a padding, or add an execution.
///
/// ```
/// use memplan::{Planner, networks, verify::Verifier};
///
/// let sequence = networks::mobilenet_v2(1)?;
/// let plan = Planner::new().alignment(64).plan(&sequence)?;
/// let verifier = Verifier::new().alignment(64).execute(true);
/// assert_eq!(verifier.verify(&sequence, &plan)?, []);
/// assert!(verifier.bytes_alive(&sequence, &plan)? <= plan.pool_size());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Verifier {
    alignment: Option<Bytes>,
    padding: Option<Bytes>,
    lowering: LoweringOptions,
    execute: bool,
    smaller: bool,
}

impl Verifier {
    /// Creates a verifier with the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires an alignment of the plan of at least this many bytes, a power of two. The default is the alignment of
    /// the problem.
    #[must_use]
    pub fn alignment(mut self, bytes: Bytes) -> Self {
        self.alignment = Some(bytes);
        self
    }

    /// Requires the plan to add at least this many bytes to every chunk. The default is the padding
    /// of the problem.
    #[must_use]
    pub fn padding(mut self, bytes: Bytes) -> Self {
        self.padding = Some(bytes);
        self
    }

    /// Requires inputs and weights of a sequence to lie in the pool if these options put them
    /// there.
    #[must_use]
    pub fn lowering(mut self, options: LoweringOptions) -> Self {
        self.lowering = options;
        self
    }

    /// Also runs the operators of a sequence, as [`execute`](super::execute) does.
    #[must_use]
    pub fn execute(mut self, execute: bool) -> Self {
        self.execute = execute;
        self
    }

    /// Verifies the plan of a sequence for a run with the same sizes as planned or smaller ones, as
    /// [`verify_smaller`](super::verify_smaller) does, which also runs the operators.
    #[must_use]
    pub fn smaller(mut self, smaller: bool) -> Self {
        self.smaller = smaller;
        self
    }

    /// Verifies a plan. Returns everything that is wrong; nothing if the plan is right.
    ///
    /// # Errors
    ///
    /// If the required alignment is not a power of two, the sum of the problem's sizes with it exceeds 64
    /// bits, or a plan of a problem is to be executed.
    pub fn verify<'i>(
        &self,
        input: impl Into<InputRef<'i>>,
        plan: &Plan,
    ) -> Result<Vec<Violation>, ProblemError> {
        match input.into() {
            InputRef::Sequence(sequence) => {
                let (alignment, padding) = (self.alignment.unwrap_or(1), self.padding.unwrap_or(0));
                if !alignment.is_power_of_two() {
                    return Err(ProblemError::Alignment { alignment });
                }
                let mut violations = Vec::new();
                violations.extend(placing(plan, Figure::Alignment, alignment));
                violations.extend(placing(plan, Figure::Padding, padding));
                violations.extend(if self.smaller {
                    verify_smaller(sequence, plan)
                } else {
                    verify(sequence, plan)
                });
                violations.extend(supplied(sequence, plan, self.lowering));
                if self.execute && !self.smaller {
                    violations.extend(execute(sequence, plan));
                    violations = without_repeats(violations);
                }
                Ok(violations)
            }
            InputRef::Problem(_) if self.execute => Err(ProblemError::NothingToRun),
            InputRef::Problem(problem) => Ok(verify(&self.asked(problem)?, plan)),
        }
    }

    /// The most bytes alive at one step, which every pool needs for the chunks and links of a plan. The chunks are
    /// counted as the plan lists them, so the number means nothing if the plan is wrong. A
    /// [`lower_bound`](Plan::lower_bound) above this number is a claim of a search, which verification cannot check.
    ///
    /// # Errors
    ///
    /// If the required alignment is not a power of two, or the sum of the problem's sizes with it exceeds 64 bits.
    pub fn bytes_alive<'i>(
        &self,
        input: impl Into<InputRef<'i>>,
        plan: &Plan,
    ) -> Result<Bytes, ProblemError> {
        let InputRef::Problem(problem) = input.into() else {
            return Ok(bytes_alive(plan, Links::OfSequence));
        };
        let asked = self.asked(problem)?;
        if let Some(needed) = bytes_needed(&asked, plan) {
            return Ok(needed);
        }
        let alive = bytes_alive(plan, Links::OfProblem);
        // The plan may accept fewer requests than the problem does.
        let placed = asked.with_alignment(plan.alignment);
        Ok(match placed.and_then(|placed| placed.with_padding(plan.padding)) {
            Ok(placed) => alive.min(placed.lower_bound()),
            Err(_) => alive,
        })
    }

    /// The problem with the required alignment and padding.
    fn asked(&self, problem: &Problem) -> Result<Problem, ProblemError> {
        let alignment = self.alignment.unwrap_or(problem.alignment());
        let padding = self.padding.unwrap_or(problem.padding());
        problem.clone().with_alignment(alignment)?.with_padding(padding)
    }
}
