//! Sizes that an operator needs to agree. A rule for shapes takes each size from one place, and so cannot
//! see that another place has a different one; a check compares the places. Sizes that are not known before
//! the run are not compared.
//!
//! - `signature`: shapes as patterns, such as `N C *, C, C`;
//! - `elements`: broadcasting, and what works element by element;
//! - `layouts`: operators that move elements;
//! - `products`: sums of products;
//! - `windows`: convolutions and pools;
//! - `choices`: operators that take elements at indices, and reductions;
//! - `signals`: Fourier transforms;
//! - `attention`: attention, and the embedding of positions;
//! - `models`: other whole layers.

pub(super) mod attention;
pub(super) mod choices;
pub(super) mod elements;
pub(super) mod layouts;
pub(super) mod models;
pub(super) mod products;
pub(super) mod signals;
mod signature;
pub(super) mod windows;

use std::borrow::Cow;

use signature::signature;

use crate::import::onnx::{OnnxError, ops::op::Op};

/// A comparison of an operator's sizes.
pub(crate) type Check = fn(&Op) -> Checked;

/// The outcome of a check.
pub(crate) type Checked = Result<(), Conflict>;

/// A place that has a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A dimension of an input: the index of the input, then of the dimension.
    Dim(usize, usize),
    /// The number of dimensions of an input.
    Rank(usize),
    /// The number of elements of an input.
    Count(usize),
    /// An element of an input: the index of the input, then of the element.
    Element(usize, usize),
    /// An attribute that is one number.
    Attribute(&'static str),
    /// A number in an attribute.
    Item(&'static str, usize),
    /// Something else, such as `the number of its outputs`.
    Other(&'static str),
    /// The operator needs it.
    Needed,
    /// The operator needs another.
    Excluded,
}

/// A size, or another number, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) place: Place,
    pub(crate) number: i128,
}

impl Size {
    pub(crate) fn new(place: Place, number: impl Into<i128>) -> Self {
        Self { place, number: number.into() }
    }

    /// A number that the operator needs.
    fn needed(number: impl Into<i128>) -> Self {
        Self::new(Place::Needed, number)
    }

    /// The size as a part of a sentence: `dimension 1 of 'x' is 65`.
    fn written(self, op: &Op) -> String {
        let Self { place, number } = self;
        let name = |input| match op.node.input(input) {
            Some(name) => format!("'{name}'"),
            None => format!("input {input}"),
        };
        match place {
            Place::Dim(input, dim) => format!("dimension {dim} of {} is {number}", name(input)),
            Place::Rank(input) => format!("{} has {}", name(input), counted(number, "dimension")),
            Place::Count(input) => format!("{} has {}", name(input), counted(number, "element")),
            Place::Element(input, at) => format!("element {at} of {} is {number}", name(input)),
            Place::Attribute(attribute) => format!("its {attribute} is {number}"),
            Place::Item(attribute, at) => format!("number {at} of its {attribute} is {number}"),
            Place::Other(what) => format!("{what} is {number}"),
            Place::Needed => format!("{number} is needed"),
            Place::Excluded => format!("a number other than {number} is needed"),
        }
    }
}

fn counted(number: i128, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Two numbers of an operator that exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) first: Size,
    pub(crate) second: Size,
    pub(crate) rule: &'static str,
}

impl Conflict {
    /// The error that names the operator, both numbers and the rule.
    pub(crate) fn error(&self, op: &Op) -> OnnxError {
        let (first, second) = (self.first.written(op), self.second.written(op));
        OnnxError::Conflict {
            operator: op.node.label(),
            sizes: format!("{first}, but {second}"),
            rule: self.rule,
            difference: i64::try_from(self.second.number - self.first.number).unwrap_or(i64::MAX),
            remedy: String::new(),
        }
    }
}

pub(crate) const EQUAL: &str = "both must be equal";
const RANK: &str = "the numbers of dimensions must agree";
const AXIS: &str = "the axis must be one of the dimensions";
const LENGTH: &str = "each dimension needs one number";
const DIVIDES: &str = "the first must be a multiple of the second";
const WITHIN: &str = "the first must not be more than the second";
const AT_LEAST: &str = "it must be at least the second";

/// Fails with a conflict unless a condition is met.
fn require(met: bool, first: Size, second: Size, rule: &'static str) -> Checked {
    if met { Ok(()) } else { Err(Conflict { first, second, rule }) }
}

/// Requires two sizes to be equal, if both are known.
fn equal(first: Option<Size>, second: Option<Size>) -> Checked {
    let (Some(first), Some(second)) = (first, second) else { return Ok(()) };
    require(first.number == second.number, first, second, EQUAL)
}

impl<'f> Op<'_, 'f> {
    /// The shape of an input; `None` if it is absent or its number of dimensions is unknown.
    fn shape(&self, input: usize) -> Option<Cow<'f, [Option<u64>]>> {
        self.input(input)?.settled_dims()
    }

    /// A dimension of an input, if its size is known.
    fn dim(&self, input: usize, at: usize) -> Option<Size> {
        let size = *self.shape(input)?.get(at)?;
        Some(Size::new(Place::Dim(input, at), size?))
    }

    /// The dimensions of an input, where their sizes are known; none if the shape is unknown.
    fn sizes(&self, input: usize) -> Vec<Option<Size>> {
        let rank = self.shape(input).map_or(0, |shape| shape.len());
        (0..rank).map(|at| self.dim(input, at)).collect()
    }

    /// The number of dimensions of an input.
    fn rank(&self, input: usize) -> Option<Size> {
        let rank = self.shape(input)?.len();
        Some(Size::new(Place::Rank(input), rank as u64))
    }

    /// The number of elements of an input.
    fn count(&self, input: usize) -> Option<Size> {
        let number = self
            .shape(input)?
            .iter()
            .copied()
            .try_fold(1_i128, |all, size| all.checked_mul(size?.into()));
        Some(Size::new(Place::Count(input), number?))
    }

    /// An attribute that is one number.
    fn attribute(&self, name: &'static str) -> Option<Size> {
        Some(Size::new(Place::Attribute(name), self.node.int(name)?))
    }

    /// The numbers in an attribute, as in old opsets, or in an input, as in new ones, if they are known.
    fn numbers(&self, attribute: &'static str, input: usize) -> Option<Vec<Size>> {
        let in_attribute =
            |(at, &number): (usize, &i64)| Size::new(Place::Item(attribute, at), number);
        if let Some(ints) = self.node.ints(attribute) {
            return Some(ints.iter().enumerate().map(in_attribute).collect());
        }
        let ints = self.input(input)?.ints()?;
        let in_input = |(at, number)| Size::new(Place::Element(input, at), number);
        Some(ints.into_iter().enumerate().map(in_input).collect())
    }

    /// The count of the numbers in an attribute or an input, if it is known.
    fn length(&self, attribute: &'static str, words: &'static str, input: usize) -> Option<Size> {
        if let Some(ints) = self.node.ints(attribute) {
            return Some(Size::new(Place::Other(words), ints.len() as u64));
        }
        self.count(input)
    }
}

/// Requires a number other than 0.
fn not_zero(number: Size, rule: &'static str) -> Checked {
    require(number.number != 0, number, Size::new(Place::Excluded, 0), rule)
}

/// Requires a dimension of an input to have elements.
fn filled(op: &Op, input: usize, at: usize) -> Checked {
    let Some(size) = op.dim(input, at) else { return Ok(()) };
    require(size.number > 0, size, Size::needed(1), AT_LEAST)
}

/// Requires a number of dimensions.
fn has_rank(op: &Op, input: usize, rank: usize) -> Checked {
    let needed = Size::needed(rank as u64);
    let Some(known) = op.rank(input) else { return Ok(()) };
    require(known.number == needed.number, known, needed, RANK)
}

/// Requires at least a number of dimensions.
fn has_rank_of(op: &Op, input: usize, least: usize) -> Checked {
    let Some(known) = op.rank(input) else { return Ok(()) };
    let needed = Size::needed(least as u64);
    require(known.number >= needed.number, known, needed, "more dimensions are needed")
}

/// Requires an axis to be one of the dimensions of an input, or, for `extra` 1, of an output with one more.
/// Returns its place, counted from the start.
fn axis_of(op: &Op, axis: Size, input: usize, extra: usize) -> Result<Option<usize>, Conflict> {
    let Some(rank) = op.rank(input) else { return Ok(None) };
    let all = rank.number + extra as i128;
    let at = if axis.number < 0 { axis.number + all } else { axis.number };
    require((0..all).contains(&at), axis, rank, AXIS)?;
    Ok(usize::try_from(at).ok())
}

/// The attribute `axis`, which has a default.
fn axis_attribute(op: &Op, default: i64) -> Size {
    Size::new(Place::Attribute("axis"), op.node.int("axis").unwrap_or(default))
}
