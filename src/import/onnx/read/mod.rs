//! The parts of the file and the facts that it states about its tensors.

pub(super) mod context;
pub(super) mod declared;
pub(super) mod element;
pub(super) mod expression;
pub(super) mod fact;
pub(super) mod findings;
pub(super) mod functions;
pub(super) mod given;
pub(super) mod node;
pub(super) mod optionals;
pub(super) mod placeholders;
pub(super) mod scope;
pub(super) mod stored;
pub(super) mod wire;
