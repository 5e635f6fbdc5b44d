//! The parts of the file and the facts that it states about its tensors.

pub(super) mod element;
pub(super) mod fact;
pub(super) mod findings;
pub(super) mod functions;
pub(super) mod model;
pub(super) mod optionals;
pub(super) mod scope;
pub(super) mod wire;
