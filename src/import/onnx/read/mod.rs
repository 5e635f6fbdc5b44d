//! What stands in the file: its parts as the passes ask for them, and what it says of its tensors.

pub(super) mod fact;
pub(super) mod model;
pub(super) mod op;
pub(super) mod scope;
pub(super) mod types;
pub(super) mod wire;
