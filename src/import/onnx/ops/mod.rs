//! The facts about the operators: one [`row`](row::Row) each in the [`table`]s, and
//! the rules that the rows use: for shapes, types and values, and the [`checks`] of sizes that must agree.
//! To add an operator, add its row.

mod arithmetic;
mod channels;
pub(super) mod checks;
pub(super) mod fold;
mod images;
mod known;
pub(super) mod layout;
mod learning;
mod limits;
pub(super) mod lists;
mod models;
pub(super) mod op;
pub(super) mod row;
mod runtime;
pub(super) mod slices;
mod symbolic;
mod table;
pub(super) mod types;
mod windows;

pub use known::operators;
pub(super) use table::find;
pub(crate) use table::is_known;
