//! The table of all planners. To add a planner, add a file and a row here.

use std::{fmt, str::FromStr};

use crate::{
    Problem,
    planner::{
        Layout, PlanError, best, best_fit, free_list, interval_move, nnvm, pushdown,
        search::{self, Limits, Observer},
        tflite,
    },
};

/// Defines the enum and every function over its variants from one table.
macro_rules! strategies {
    ($($(#[$attribute:meta])* $variant:ident $name:literal, $limit:expr
        $(=> $layout:path)?, $summary:literal;)*) => {
        /// A planner, by name.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Strategy {
            $($(#[$attribute])* #[doc = concat!("`", $name, "`: ", $summary, ".")] $variant,)*
        }

        impl Strategy {
            /// All strategies, in the order of tables and help texts.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on the command line and in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// A one-line description.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)* }
            }

            /// Chooses an offset for every chunk; the same problem always gets the same layout.
            /// Strategies that search stay within the limits, report progress and can be cancelled.
            ///
            /// # Errors
            ///
            /// If the strategy cannot plan such a problem.
            pub fn layout(
                self,
                problem: &Problem,
                limits: &Limits,
                observer: Observer<'_>,
            ) -> Result<Layout, PlanError> {
                match self {
                    Self::Best => best::layout(problem, limits, observer),
                    Self::Optimal => Ok(search::layout(problem, limits, observer)),
                    $($(Self::$variant => Ok($layout(problem)),)?)*
                }
            }

            /// Returns whether the strategy searches; only then do limits and an observer matter.
            #[must_use]
            pub const fn searches(self) -> bool {
                matches!(self, Self::Best | Self::Optimal)
            }

            /// The largest number of chains that the strategy plans in reasonable time, about ten
            /// seconds if no more chunks are alive at once than in common graphs. `None` if its
            /// cost is almost linear. Larger problems are still planned.
            #[must_use]
            pub const fn limit(self) -> Option<usize> {
                match self { $(Self::$variant => $limit,)* }
            }
        }
    };
}

strategies! {
    #[default]
    Best "best", None, "the smallest pool of the cheap planners and a short search";
    Optimal "optimal", None,
        "an anytime search for the smallest pool, with a proof if it finds one";
    Pushdown "pushdown", None => pushdown::layout,
        "MegEngine's default: free, alloc and alloc-overwrite on an elastic memory queue";
    BestFit "best-fit", None => best_fit::layout, "MegEngine's allocator with real addresses";
    IntervalMove "interval-move", Some(100_000) => interval_move::layout,
        "MegEngine's offline planner: longest lifetimes first, pushing up chunks in the way";
    FreeList "free-list", None => free_list::layout,
        "a linked list of available blocks, the largest of which grows";
    Nnvm "nnvm", None => nnvm::layout,
        "NNVM's and MXNet's PlanMemory: reuses free storages of similar size";
    TfliteEquality "tflite-equality", None => tflite::equality::layout,
        "shared objects: the free object of exactly the same size";
    TfliteGreedyInOrder "tflite-greedy-in-order", None => tflite::greedy_in_order::layout,
        "shared objects: over time, the free object of the nearest size";
    TfliteGreedyByBreadth "tflite-greedy-by-breadth", Some(1_000_000) =>
        tflite::greedy_by_breadth::layout, "shared objects: the busiest step first";
    TfliteGreedyBySize "tflite-greedy-by-size", Some(100_000) => tflite::greedy_by_size::layout,
        "shared objects: large ones first, into the object nearest in time";
    TfliteGreedyBest "tflite-greedy-best", Some(100_000) => tflite::greedy_by_size::best_layout,
        "shared objects: the better of by-size and by-breadth";
    TfliteMinCostFlow "tflite-min-cost-flow", Some(2_000) => tflite::min_cost_flow::layout,
        "shared objects: takeovers chosen by a min-cost flow";
    TfliteOffsetsBySize "tflite-offsets-by-size", Some(1_000_000) =>
        tflite::offsets_by_size::layout, "large ones first, each into the tightest gap";
    TfliteCpuArena "tflite-cpu-arena", Some(1_000_000) =>
        tflite::cpu_arena::layout, "TFLite's interpreter: large ones first, best fit";
    TfliteMicro "tflite-micro", Some(1_000_000) =>
        tflite::micro::layout, "TFLite Micro: large ones first, first fit";
    Naive "naive", None => tflite::naive::layout, "every chain in memory of its own";
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that belongs to no strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no strategy is called '{0}'; the strategies are {all}", all = Strategy::ALL.iter().map(|s| s.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownStrategy(pub String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL
            .iter()
            .copied()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}
