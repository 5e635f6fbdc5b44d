//! An operator with the known facts about its inputs, as shape rules, type rules and folding see
//! it.

use crate::import::onnx::read::{
    fact::{Dims, Fact},
    node::Node,
};

/// The reason why a shape cannot be inferred, as the end of a sentence.
pub(crate) type Reason = String;

/// The shape of each output that the rule covers, `None` where it is unknown.
pub(crate) type Shapes = Result<Vec<Option<Dims>>, Reason>;

/// An operator with the known facts about its inputs.
pub(crate) struct Op<'a, 'f> {
    pub(crate) node: Node<'a>,
    pub(crate) inputs: Vec<Option<&'f Fact>>,
    /// The version of the standard operators.
    pub(crate) opset: i64,
    /// True if the sizes are a guess for the run, so that sizes that should agree may not; the
    /// larger one counts.
    pub(crate) guesses: bool,
    /// True if the model states the sizes of all of its inputs, so that runtimes compare them before a run.
    pub(crate) fixed: bool,
}

impl<'f> Op<'_, 'f> {
    /// The facts about an input, unless it is absent.
    pub(crate) fn input(&self, index: usize) -> Option<&'f Fact> {
        self.inputs.get(index).copied().flatten()
    }

    /// The shape of an input, possibly with unknown sizes.
    pub(crate) fn dims(&self, index: usize) -> Result<&'f Dims, Reason> {
        let fact = self.input(index).ok_or_else(|| format!("it has no input {index}"))?;
        fact.dims.as_ref().ok_or_else(|| self.unknown(index, "shape"))
    }

    /// The elements of an input, which must be known whole numbers.
    pub(crate) fn ints(&self, index: usize) -> Result<Vec<i64>, Reason> {
        let fact = self.input(index).ok_or_else(|| format!("it has no input {index}"))?;
        fact.ints().ok_or_else(|| self.unknown(index, "value"))
    }

    /// The numbers in an attribute, as in old opsets, or in an input, as in new ones.
    pub(crate) fn ints_of(
        &self,
        attribute: &str,
        input: usize,
    ) -> Result<Option<Vec<i64>>, Reason> {
        match (self.node.ints(attribute), self.input(input)) {
            (Some(ints), _) => Ok(Some(ints.to_vec())),
            (None, Some(_)) => self.ints(input).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// An axis in an attribute, counted from the end if negative.
    pub(crate) fn axis(&self, default: i64, rank: usize) -> Result<usize, Reason> {
        axis(self.node.int("axis").unwrap_or(default), rank)
    }

    /// The reason why the value of an input is unknown, if it lies in another file.
    pub(crate) fn kept_outside(&self, index: usize) -> Option<Reason> {
        let file = self.input(index)?.external.as_ref()?;
        let name = self.node.input(index).unwrap_or("");
        Some(format!(
            "the value of its input '{name}' lies in external data ('{file}'), which memplan does not read; store it in the model, or give it with --value {name}=V"
        ))
    }

    fn unknown(&self, index: usize, what: &str) -> Reason {
        if let Some(reason) = self.kept_outside(index) {
            return reason;
        }
        format!("the {what} of its input '{}' is unknown", self.node.input(index).unwrap_or(""))
    }
}

/// An axis of a tensor, counted from the end if negative.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, Reason> {
    let from_end = || usize::try_from(axis.unsigned_abs()).ok().and_then(|a| rank.checked_sub(a));
    let resolved = if axis < 0 { from_end() } else { usize::try_from(axis).ok() };
    resolved
        .filter(|&axis| axis < rank)
        .ok_or_else(|| format!("axis {axis} is not among its {rank} dimensions"))
}
