//! Branching: the search tree, and the orders in which it tries bodies.

pub(super) mod body_order;
pub(super) mod tree;
