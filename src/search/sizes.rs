//! The sizes of problems at which the search changes its method, the units of its effort, and what memory allows.

use std::time::Duration;

/// The search of at most this many bodies takes almost no time, in whatever order it tries them.
pub const TINY: usize = 20;

/// Smaller problems are searched with all overwrites and true sizes first, and without ejection, because the search of
/// valleys mostly finishes.
pub const SMALL: usize = 150;

/// With more bodies, the search branches neither on the order of pairs nor on the pool of each body.
pub const MEDIUM: usize = 500;

/// With more chains, crowded steps are repaired and crowded cores are searched first.
pub const LONG: usize = 1000;

/// With more chains, the problem is not searched as a whole, and greedy packings begin with two orders.
pub const LARGE: usize = 5000;

/// With more chains, constraints are left to first fit, and no blocks are merged.
pub const HUGE: usize = 100_000;

/// The number of nodes between two checks of the limits.
pub const PAUSE: u64 = 256;

/// Bodies, pairs or runs of bytes that are examined in the time of a node. Reading or placing a body, even where
/// nothing is taken, takes as long.
pub const WORK_PER_NODE: usize = 64;

/// Planning without a search takes about this long for each chunk of many.
pub const TIME_PER_CHUNK: Duration = Duration::from_nanos(250);

/// The most runs, pairs or sets of 64 bits that a stage without nodes examines: less than a second of work.
pub const MAX_WORK: u64 = 50_000_000;

/// The most entries of a table; more take some hundred megabytes.
pub const MAX_KEPT: usize = 1 << 22;

/// The most sections that all bodies may cover, counted once for each body; more take too much memory.
pub const MAX_COVERED: usize = 50_000_000;
