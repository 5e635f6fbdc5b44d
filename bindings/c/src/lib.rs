//! memplan for C and C++. The functions here are what `memplan.h` declares, and their comments are
//! the header's.
//!
//! No function panics, throws or hands over memory that the caller must free with anything but the
//! `_free` functions, and none calls back except to report progress where options ask for it. Pointers and lengths are checked as far as they can be: null,
//! misaligned and impossibly long arrays are errors.

mod array;
mod cache;
mod error;
mod explain;
mod observe;
mod options;
mod plan;
mod problem;
mod reorder;
mod sequence;
mod shapes;

pub use error::{Status, memplan_last_error};
pub use explain::{memplan_plan_explain, memplan_verify_sequence};
pub use observe::{Cancel, Progress, memplan_cancel_free, memplan_cancel_new, memplan_cancel_set};
pub use options::{Lowering, Options, Strategy, memplan_options_init};
pub use plan::{
    NO_CHUNK, Place, PlaceKind, Plan, memplan_plan_free, memplan_plan_lower_bound,
    memplan_plan_offsets, memplan_plan_overwritten, memplan_plan_pool_size,
    memplan_plan_pool_sizes, memplan_plan_pools, memplan_plan_tensors, memplan_plan_workspaces,
};
pub use problem::{
    Chunk, Overwrite, Pin, Pool, Problem, memplan_plan_problem, memplan_problem_free,
    memplan_problem_new, memplan_problem_new_in_pools, memplan_verify, memplan_verify_in_pools,
};
pub use sequence::{
    Dependency, DependencyKind, Output, Sequence, UNKNOWN_SIZE, memplan_plan_sequence,
    memplan_sequence_free, memplan_sequence_input, memplan_sequence_new, memplan_sequence_operator,
    memplan_sequence_output, memplan_sequence_weight,
};

/// The version of this interface. It grows by one when a program must be changed.
pub const ABI_VERSION: u32 = 1;

/// Returns the version of the interface that the library implements, to be compared with
/// `MEMPLAN_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn memplan_abi_version() -> u32 {
    ABI_VERSION
}
