//! Control: how the effort is spent, on which limits and by how many threads.

pub(super) mod ladder;
pub(super) mod monitor;
pub(super) mod restarts;
pub(super) mod threads;
