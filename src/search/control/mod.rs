//! Control: spends the effort on limits in turn, in rounds, by several threads, and counts it.

pub(super) mod descent;
pub(super) mod limit_schedule;
pub(super) mod meter;
pub(super) mod restarts;
pub(super) mod threads;
