//! The sizes of problems at which the search changes its method, the units of its effort, and what memory allows.

/// So few bodies are searched in any order at once.
pub const TINY: usize = 20;

/// Smaller problems are searched with all overwrites and true sizes first, and eject no chains: the search of valleys
/// mostly ends.
pub const SMALL: usize = 150;

/// Beyond, neither the order of each pair is searched, nor the pool of each body.
pub const MEDIUM: usize = 500;

/// Beyond, crowded steps are repaired and crowded cores are searched first.
pub const LONG: usize = 1000;

/// Beyond, nothing is searched as a whole, and greedy packings begin with two orders.
pub const LARGE: usize = 5000;

/// Beyond, constraints are left to first fit, and no blocks are merged.
pub const HUGE: usize = 100_000;

/// The nodes between two looks at the limits.
pub const PAUSE: u64 = 256;

/// Bodies, pairs or runs of bytes that are examined in the time of a node.
pub const WORK_PER_NODE: u64 = 64;

/// The work of reading or placing a body, in runs of bytes examined, even where nothing is taken.
pub const WORK_PER_BODY: usize = 64;

/// Bodies that cover more sections than this, all added up, take too much memory.
pub const MAX_COVERED: usize = 50_000_000;

/// More ranges of offsets at which two bodies clash take too much memory.
pub const MAX_CLASHES: usize = 1 << 20;
