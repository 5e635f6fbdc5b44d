//! State: the problem in sections and units, and partial packings of it.

pub(super) mod exact;
pub(super) mod fingerprint;
pub(super) mod instance;
mod items_left;
pub(super) mod occupancy;
pub(super) mod skyline;
