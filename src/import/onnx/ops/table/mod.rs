//! The tables of all operators that memplan knows, one for each origin, and what their rows share.

mod microsoft;
mod ml;
mod onnx;

use crate::import::onnx::{
    ops::{
        checks::{choices, elements, models as layers, windows as slides},
        layout, models,
        op::{Op, Reason, Shapes},
        row::{Domain, Row, Size},
        symbolic,
        types::{BOOL, FIRST, FLOAT, TypeRule},
    },
    read::{fact::List, node::Node},
};

pub(super) const MOVES: &str = "it moves elements to other places";
pub(super) const RESIZES: &str = "no input has the size of the output";
pub(super) const MAKES: &str = "it computes its output from no input";
pub(super) const SPARSE: &str = "its kernel copies the input before it writes some elements";
pub(super) const VIEW: &str = "it is a view";
pub(super) const TEXT: &str = "strings stay outside the pool";
pub(super) const COPIES: &str = "it copies tensors";
pub(super) const EXCLUSIVE: &str =
    "an exclusive sum or product reads an element after writing over it";
pub(super) const READS_AGAIN: &str = "kernels may read elements again after writing over them";

/// The shape of the first input.
pub(super) fn same(op: &Op) -> Shapes {
    Ok(vec![Some(op.dims(0)?.clone())])
}

pub(super) fn same_twice(op: &Op) -> Shapes {
    Ok(vec![Some(op.dims(0)?.clone()); 2])
}

/// The shape is known only at run time.
#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
pub(super) fn unknown(_: &Op) -> Shapes {
    Ok(Vec::new())
}

pub(super) fn always(_: &Op) -> bool {
    true
}

/// Computes each element from the one at the same place in the first input, and from scalars.
pub(super) const fn unary(name: &'static str) -> Row {
    Row::new(name, same).elementwise_over_any()
}

/// Computes each element from those at the same place in all inputs, broadcast to one shape.
pub(super) const fn nary(name: &'static str) -> Row {
    Row::new(name, layout::broadcast_all).checks(elements::all).elementwise_over_any()
}

/// Kernels combine the first two inputs, then the result with each further input.
pub(super) const fn variadic(name: &'static str) -> Row {
    Row::new(name, layout::broadcast_all).checks(elements::all).elementwise(&[0, 1])
}

pub(super) const fn compare(name: &'static str) -> Row {
    nary(name).types(&[BOOL])
}

pub(super) const fn reduce(name: &'static str) -> Row {
    Row::new(name, symbolic::reduce).checks(choices::reduce)
}

pub(super) const fn global_pool(name: &'static str) -> Row {
    Row::new(name, symbolic::global_pool).checks(slides::global_pool)
}

/// Kernels copy the tensors.
pub(super) const fn list(name: &'static str, rule: fn(&Op) -> Result<List, Reason>) -> Row {
    Row::sized(name, Size::List(rule)).never(COPIES)
}

pub(super) const fn refused(name: &'static str, what: &'static str) -> Row {
    Row::sized(name, Size::Refused(what))
}

pub(super) const fn random_like(name: &'static str) -> Row {
    Row::new(name, same).types(&[TypeRule::Attribute("dtype", &FIRST)]).random(always).never(MAKES)
}

pub(super) const fn random(name: &'static str) -> Row {
    Row::new(name, layout::shape_attribute)
        .types(&[TypeRule::Attribute("dtype", &FLOAT)])
        .random(always)
        .never(MAKES)
}

pub(super) const fn window(name: &'static str) -> Row {
    Row::new(name, layout::window)
        .types(&[TypeRule::Attribute("output_datatype", &FLOAT)])
        .never(MAKES)
}

pub(super) const fn layer_normalization(name: &'static str) -> Row {
    Row::new(name, models::layer_normalization)
        .checks(layers::layer_normalization)
        .types(&[FIRST, TypeRule::Attribute("stash_type", &FLOAT)])
        .rows()
        .also_microsoft()
}

/// Before this opset the mask of `Dropout` had the type of the data.
const DROPOUT_MASK_IS_BOOL: i64 = 10;

/// All operators, by kind.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    onnx::TABLE.iter().chain(microsoft::TABLE).chain(ml::TABLE)
}

/// Returns whether some operator of a known domain has this type.
pub(crate) fn is_known(kind: &str) -> bool {
    all().any(|row| row.name == kind)
}

/// The row of an operator, if memplan knows it.
pub(crate) fn find(node: Node) -> Option<&'static Row> {
    let domain = Domain::from_name(node.domain())?;
    all().find(|row| row.name == node.kind() && row.domains.contains(&domain))
}
