//! The options of planning.

use std::{ffi::c_void, time::Duration};

use library::{Limits, Planner, lower::LoweringOptions};

use crate::{
    array::check,
    error::{Failure, Status, guard},
    observe::{self, Cancel, Progress},
};

/// A planner. The book describes each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The smallest pool that the fast planners and a short search find: the default.
    Best = 0,
    /// An anytime search for the smallest pool, with a proof if it finds one.
    Optimal = 1,
    /// MegEngine's default.
    Pushdown = 2,
    /// MegEngine's allocator with real addresses.
    BestFit = 3,
    /// MegEngine's offline planner.
    IntervalMove = 4,
    /// A linked list of available blocks, the largest of which grows.
    FreeList = 5,
    /// NNVM's and MXNet's PlanMemory.
    Nnvm = 6,
    /// Shared objects of TensorFlow Lite: equal sizes only.
    TfliteEquality = 7,
    /// Shared objects of TensorFlow Lite: over time.
    TfliteGreedyInOrder = 8,
    /// Shared objects of TensorFlow Lite: the busiest step first.
    TfliteGreedyByBreadth = 9,
    /// Shared objects of TensorFlow Lite: large ones first.
    TfliteGreedyBySize = 10,
    /// Shared objects of TensorFlow Lite: the better of the two above.
    TfliteGreedyBest = 11,
    /// Shared objects of TensorFlow Lite: by a min-cost flow.
    TfliteMinCostFlow = 12,
    /// TensorFlow Lite: large ones first, each into the tightest gap.
    TfliteOffsetsBySize = 13,
    /// TensorFlow Lite's interpreter.
    TfliteCpuArena = 14,
    /// TensorFlow Lite Micro.
    TfliteMicro = 15,
    /// Every chunk in memory of its own.
    Naive = 16,
    /// First fit: chunks in several orders, each at the lowest free offset. It supports pools, pins
    /// and streams.
    FirstFit = 17,
}

/// The strategies by number.
const STRATEGIES: &[(Strategy, library::Strategy)] = &[
    (Strategy::Best, library::Strategy::Best),
    (Strategy::Optimal, library::Strategy::Optimal),
    (Strategy::Pushdown, library::Strategy::Pushdown),
    (Strategy::BestFit, library::Strategy::BestFit),
    (Strategy::IntervalMove, library::Strategy::IntervalMove),
    (Strategy::FreeList, library::Strategy::FreeList),
    (Strategy::Nnvm, library::Strategy::Nnvm),
    (Strategy::TfliteEquality, library::Strategy::TfliteEquality),
    (Strategy::TfliteGreedyInOrder, library::Strategy::TfliteGreedyInOrder),
    (Strategy::TfliteGreedyByBreadth, library::Strategy::TfliteGreedyByBreadth),
    (Strategy::TfliteGreedyBySize, library::Strategy::TfliteGreedyBySize),
    (Strategy::TfliteGreedyBest, library::Strategy::TfliteGreedyBest),
    (Strategy::TfliteMinCostFlow, library::Strategy::TfliteMinCostFlow),
    (Strategy::TfliteOffsetsBySize, library::Strategy::TfliteOffsetsBySize),
    (Strategy::TfliteCpuArena, library::Strategy::TfliteCpuArena),
    (Strategy::TfliteMicro, library::Strategy::TfliteMicro),
    (Strategy::Naive, library::Strategy::Naive),
    (Strategy::FirstFit, library::Strategy::FirstFit),
];

fn strategy(number: u32) -> Option<library::Strategy> {
    let mut rows = STRATEGIES.iter();
    rows.find(|(own, _)| *own as u32 == number).map(|&(_, strategy)| strategy)
}

/// Flags for the field `lowering` of the options, which apply to sequences.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// Views share the memory of their input. On by default.
    Views = 1,
    /// Requests to overwrite are accepted, not only required ones. On by default.
    Inplace = 2,
    /// Inputs lie in the pool.
    InputsInPool = 4,
    /// Weights lie in the pool.
    WeightsInPool = 8,
}

/// The options of planning. Fill them with `memplan_options_init` first, then change fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The bytes of this struct as the caller knows it; `memplan_options_init` sets it.
    pub struct_size: u32,
    /// A `memplan_strategy`.
    pub strategy: u32,
    /// Every offset is a multiple of this power of two; 1 by default.
    pub alignment: u64,
    /// Bytes added to the size of every chunk; 0 by default.
    pub padding: u64,
    /// The search nodes to spend. 0, the default, allows more the further the first packings are from
    /// the lower bound, or as many as a time limit allows.
    pub effort: u64,
    /// The size in bytes that the pool must not exceed; `UINT64_MAX`, the default, for no limit.
    pub capacity: u64,
    /// Ends planning after this time in microseconds; 0, the default, for no limit. Strategies that search,
    /// and first-fit, return their best plan so far, which depends on the machine; the others fail.
    pub time_limit_us: u64,
    /// The threads that search at once; 1 by default.
    pub threads: u32,
    /// `memplan_lowering` flags.
    pub lowering: u32,
    /// A request that ends planning early, or null, the default. It must live until the function returns.
    pub cancel: *const Cancel,
    /// Called every few hundred nodes of a search with its progress, by the thread that plans; null by default. It must
    /// not throw, and must not call a function of this library with objects that this call uses.
    pub progress: Option<unsafe extern "C" fn(progress: *const Progress, context: *mut c_void)>,
    /// Passed to `progress` as it is.
    pub progress_context: *mut c_void,
}

#[allow(clippy::cast_possible_truncation, reason = "the struct has some dozens of bytes")]
const SIZE: u32 = size_of::<Options>() as u32;
/// The size in the first header, which ended with `lowering`.
#[allow(clippy::cast_possible_truncation, reason = "the struct has some dozens of bytes")]
const FIRST_SIZE: u32 = std::mem::offset_of!(Options, cancel) as u32;

impl Default for Options {
    fn default() -> Self {
        Self {
            struct_size: SIZE,
            strategy: Strategy::Best as u32,
            alignment: 1,
            padding: 0,
            effort: 0,
            capacity: u64::MAX,
            time_limit_us: 0,
            threads: 1,
            lowering: Lowering::Views as u32 | Lowering::Inplace as u32,
            cancel: std::ptr::null(),
            progress: None,
            progress_context: std::ptr::null_mut(),
        }
    }
}

/// Fills the options with the defaults. `struct_size` is `sizeof(memplan_options)`, so that programs
/// built with an older header go on working when the struct grows.
///
/// # Safety
///
/// `options` points to `struct_size` bytes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_options_init(options: *mut Options, struct_size: u32) -> Status {
    guard(|| {
        if !is_known(struct_size) {
            return Err(size_error(struct_size));
        }
        check(options, 1, "options")?;
        let defaults = Options { struct_size, ..Options::default() };
        // SAFETY: the caller promises as many bytes, and the struct has them.
        unsafe { copy_bytes(&raw const defaults, options, struct_size) };
        Ok(())
    })
}

/// Returns whether a struct of this size is of this header or of an older one.
const fn is_known(struct_size: u32) -> bool {
    struct_size == SIZE || struct_size == FIRST_SIZE
}

/// Copies the first bytes of options.
///
/// # Safety
///
/// Both have as many bytes, and do not overlap.
unsafe fn copy_bytes(from: *const Options, to: *mut Options, bytes: u32) {
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), bytes as usize) };
}

fn size_error(found: u32) -> Failure {
    Failure::invalid(format!(
        "'struct_size' is {found}, but memplan_options has {SIZE} bytes; call memplan_options_init"
    ))
}

impl Options {
    /// Runs a search with the caller's hooks.
    pub(crate) fn observed<R>(
        &self,
        planner: &library::Planner<'_>,
        search: impl FnOnce(&library::Planner<'_>) -> R,
    ) -> R {
        // SAFETY: the options promise null or a request that lives until the call returns.
        let cancel = unsafe { self.cancel.as_ref() };
        observe::observed(cancel, (self.progress, self.progress_context), planner, search)
    }

    /// Reads the caller's options; null stands for the defaults.
    ///
    /// # Safety
    ///
    /// `options` is null or points to as many bytes as its first field says.
    pub(crate) unsafe fn read(options: *const Self) -> Result<Self, Failure> {
        if options.is_null() {
            return Ok(Self::default());
        }
        // The size is read first: an older caller's struct may have fewer fields than this one.
        // SAFETY: the caller promises at least this field.
        let size = unsafe { *crate::array::reference(options.cast::<u32>(), "options")? };
        if !is_known(size) {
            return Err(size_error(size));
        }
        check(options, 1, "options")?;
        let mut read = Self::default();
        // SAFETY: the caller promises as many bytes as the field says.
        unsafe { copy_bytes(options, &raw mut read, size) };
        Ok(Self { struct_size: SIZE, ..read })
    }

    /// Returns the planner with these options.
    pub(crate) fn planner(&self) -> Result<Planner<'static>, Failure> {
        let strategy = strategy(self.strategy)
            .ok_or_else(|| Failure::invalid(format!("no strategy has number {}", self.strategy)))?;
        let flag = |flag: Lowering| self.lowering & flag as u32 != 0;
        if self.lowering >= 2 * Lowering::WeightsInPool as u32 {
            return Err(Failure::invalid(format!(
                "'lowering' is {}, which has unknown flags",
                self.lowering
            )));
        }
        let lowering = LoweringOptions::default()
            .views(flag(Lowering::Views))
            .inplace(flag(Lowering::Inplace))
            .inputs_in_pool(flag(Lowering::InputsInPool))
            .weights_in_pool(flag(Lowering::WeightsInPool));
        Ok(Planner::new()
            .strategy(strategy)
            .alignment(self.alignment)
            .padding(self.padding)
            .lowering(lowering)
            .limits(self.limits(Limits::default())))
    }

    /// The limits of a search, from its own default.
    pub(crate) fn limits(&self, default: Limits) -> Limits {
        let mut limits = default.threads(self.threads as usize);
        if self.effort > 0 {
            limits = limits.nodes(self.effort);
        }
        if self.time_limit_us > 0 {
            limits = limits.time(Duration::from_micros(self.time_limit_us));
        }
        limits
    }

    /// The capacity in bytes, if there is one.
    pub(crate) fn capacity(&self) -> Option<u64> {
        (self.capacity != u64::MAX).then_some(self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_has_a_number() {
        let numbered: Vec<_> = (0..100).filter_map(strategy).collect();
        assert_eq!(numbered, library::Strategy::ALL);
    }
}
