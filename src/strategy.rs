//! The table of all planners. To add a planner, add a file, a row here and a line in the match in `baselines`.

use std::{fmt, str::FromStr};

use crate::PlanError;

/// Defines the enum and every function over its variants from one table.
macro_rules! strategies {
    ($($(#[$attribute:meta])* $variant:ident $name:literal, $limit:expr,
        $summary:literal;)*) => {
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

            /// Returns whether the strategy searches; only then do an effort, threads and progress matter.
            #[must_use]
            pub const fn searches(self) -> bool {
                matches!(self, Self::Best | Self::Optimal)
            }

            /// Returns whether the strategy ends early, with a layout, at a time limit or when it is cancelled.
            #[must_use]
            pub const fn is_anytime(self) -> bool {
                self.searches() || matches!(self, Self::FirstFit)
            }

            /// Returns whether the strategy can plan chunks that lie inside others. Only then are inputs
            /// put where an output [gathers](crate::Output::gathers) them.
            #[must_use]
            pub const fn supports_parts(self) -> bool {
                matches!(self, Self::Best | Self::Optimal | Self::FirstFit)
            }

            /// The largest number of chains that the strategy plans in reasonable time: about ten
            /// seconds, unless unusually many chunks are alive at once. `None` if its cost is
            /// almost linear. Larger problems are still planned.
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
    Pushdown "pushdown", None,
        "MegEngine's default: free, alloc and alloc-overwrite on an elastic memory queue";
    BestFit "best-fit", None, "MegEngine's allocator with real addresses";
    IntervalMove "interval-move", Some(100_000),
        "MegEngine's offline planner: longest lifetimes first, pushing up chunks in the way";
    FreeList "free-list", None,
        "a linked list of available blocks, the largest of which grows";
    Nnvm "nnvm", None,
        "NNVM's and MXNet's PlanMemory: reuses free storages of similar size";
    TfliteEquality "tflite-equality", None,
        "shared objects: the free object of exactly the same size";
    TfliteGreedyInOrder "tflite-greedy-in-order", None,
        "shared objects: in order of time, the free object of the nearest size";
    TfliteGreedyByBreadth "tflite-greedy-by-breadth", Some(1_000_000), "shared objects: the busiest step first";
    TfliteGreedyBySize "tflite-greedy-by-size", Some(100_000),
        "shared objects: large ones first, into the object nearest in time";
    TfliteGreedyBest "tflite-greedy-best", Some(100_000),
        "shared objects: the better of by-size and by-breadth";
    TfliteMinCostFlow "tflite-min-cost-flow", Some(2_000),
        "shared objects: takeovers chosen by a min-cost flow";
    TfliteOffsetsBySize "tflite-offsets-by-size", Some(1_000_000), "large ones first, each into the tightest gap";
    TfliteCpuArena "tflite-cpu-arena", Some(1_000_000), "TFLite's interpreter: large ones first, best fit";
    TfliteMicro "tflite-micro", Some(1_000_000), "TFLite Micro: large ones first, first fit";
    Naive "naive", None, "every chain in memory of its own";
    FirstFit "first-fit", Some(200_000),
        "in six orders, each at the lowest free offset; supports pools, pins and streams";
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = PlanError;

    fn from_str(name: &str) -> Result<Self, PlanError> {
        let found = Self::ALL.iter().copied().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| PlanError::UnknownStrategy { name: name.to_owned() })
    }
}
