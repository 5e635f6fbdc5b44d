//! Reasoning: conclusions from a partial packing without branching, and the choice of where to
//! branch.

pub(super) mod nogoods;
pub(super) mod pivot;
mod staircases;
mod survey;
mod valley;
pub(super) mod valleys;
