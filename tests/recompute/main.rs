//! Expanded sequences are right, within their capacity, and as cheap as they state.

#[path = "../common/mod.rs"]
mod common;

mod curves;
mod exact;
mod oracle;
mod planned;
mod refusals;
mod right;
mod steps;
