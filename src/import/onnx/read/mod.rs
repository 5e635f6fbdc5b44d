//! What stands in the file: its parts as the passes ask for them, and what it says of its tensors.

pub(super) mod element;
pub(super) mod fact;
pub(super) mod findings;
pub(super) mod functions;
pub(super) mod model;
pub(super) mod scope;
pub(super) mod wire;
