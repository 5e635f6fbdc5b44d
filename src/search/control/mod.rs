//! Control: spends the effort of a search. It tries limits in turn, restarts in rounds, runs threads and counts nodes.

pub(super) mod descent;
pub(super) mod limit_schedule;
pub(super) mod meter;
pub(super) mod restarts;
pub(super) mod threads;
