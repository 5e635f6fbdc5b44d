//! The two inputs of planning: operators, or chunks with known lifetimes.

use crate::{
    OpSequence, Problem, SequenceError,
    bodies::Gathered,
    lower::{Lowered, LoweringOptions, gather, lower},
};

/// What a planner accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Operators, which are lowered first.
    Sequence(OpSequence),
    /// Chunks with lifetimes.
    Problem(Problem),
}

/// A borrowed [`Input`]. Functions take `impl Into<InputRef>`: a reference to an [`OpSequence`], a
/// [`Problem`] or an [`Input`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InputRef<'a> {
    /// Operators, which are lowered first.
    Sequence(&'a OpSequence),
    /// Chunks with lifetimes.
    Problem(&'a Problem),
}

impl InputRef<'_> {
    /// Returns the chunks: the operators, lowered with these options, or a copy of the
    /// problem.
    ///
    /// # Errors
    ///
    /// If the operators cannot be lowered; see [`lower`].
    pub fn lower(self, options: LoweringOptions) -> Result<Lowered, SequenceError> {
        match self {
            Self::Sequence(sequence) => lower(sequence, options),
            Self::Problem(problem) => Ok(Lowered {
                problem: problem.clone(),
                places: Vec::new(),
                refused: Vec::new(),
                runs: Vec::new(),
                copied: Vec::new(),
            }),
        }
    }
}

impl InputRef<'_> {
    /// Returns true if outputs gather inputs, or a problem has optional parts: some chunks may, or must, lie inside
    /// others.
    #[must_use]
    pub fn has_gathers(self) -> bool {
        match self {
            Self::Sequence(sequence) => sequence.has_gathers(),
            Self::Problem(problem) => !problem.optional_parts().is_empty(),
        }
    }

    /// Puts chunks inside others, where that costs no memory, and returns whether some are left out.
    pub(crate) fn gather(self, lowered: Lowered) -> (Lowered, bool) {
        match self {
            Self::Sequence(sequence) => {
                let before = lowered.refused.len();
                let gathered = gather(sequence, lowered);
                let is_partial = gathered.refused.len() > before;
                (gathered, is_partial)
            }
            Self::Problem(_) => {
                let Gathered { problem, refused, .. } = lowered.problem.gather_optional();
                (Lowered { problem, ..lowered }, !refused.is_empty())
            }
        }
    }
}

impl<'a> InputRef<'a> {
    /// The operators, if the input has any.
    #[must_use]
    pub const fn sequence(self) -> Option<&'a OpSequence> {
        match self {
            Self::Sequence(sequence) => Some(sequence),
            Self::Problem(_) => None,
        }
    }
}

impl From<OpSequence> for Input {
    fn from(sequence: OpSequence) -> Self {
        Self::Sequence(sequence)
    }
}

impl From<Problem> for Input {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl<'a> From<&'a Input> for InputRef<'a> {
    fn from(input: &'a Input) -> Self {
        match input {
            Input::Sequence(sequence) => Self::Sequence(sequence),
            Input::Problem(problem) => Self::Problem(problem),
        }
    }
}

impl<'a> From<&'a OpSequence> for InputRef<'a> {
    fn from(sequence: &'a OpSequence) -> Self {
        Self::Sequence(sequence)
    }
}

impl<'a> From<&'a Problem> for InputRef<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self::Problem(problem)
    }
}
