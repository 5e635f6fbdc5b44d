//! The stages of the search, each of which can be switched off to measure what it gains.

macro_rules! stages {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A stage, or a rule that prunes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Stage {
            $($(#[$doc])* $name,)*
        }

        impl Stage {
            /// All stages.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

stages! {
    /// The problem is first solved without its constraints, which may not bind.
    Relaxed,
    /// The cheap planners after the first one.
    Candidates,
    /// Optional overwrites of a part are given up.
    FewerOverwrites,
    /// Greedy packings.
    Greedy,
    /// Crowded steps are repacked.
    PeakRepair,
    /// Cores of large problems are searched before the whole problem.
    Cores,
    /// More cores of large problems are searched, again and again.
    MoreCores,
    /// A first descent in the middle of the gap.
    FirstDescent,
    /// One limit after the other.
    LimitSchedule,
    /// Sizes without a common divisor are rounded.
    Rounded,
    /// Perfect packings are contracted from the inside out.
    Contraction,
    /// Rounded sizes, with true ones beside them.
    Exact,
    /// Chains eject others.
    Ejection,
    /// Packings of cores guide wider ones.
    Guided,
    /// Branching over the order of pairs.
    Orders,
    /// Rounds of the search with pinned items instead of fixed rectangles.
    Pinned,
    /// Packings without pins are repacked until all pins hold.
    PinRepair,
    /// Refuted states are stored.
    Nogoods,
    /// Conclusions from basins.
    Basins,
    /// No item may fit into waste.
    Waste,
    /// Other rules of branching than the first.
    BranchRules,
    /// Other orders of trying bodies than the first.
    BodyOrders,
    /// The search of rectangles around pins and reserved ranges.
    AroundPins,
    /// First fit in other orders than the first.
    FirstFitOrders,
    /// First fit in orders in which bodies move ahead.
    Promotion,
    /// Each of several pools is packed again alone.
    Repacking,
    /// The bound of bodies any two of which lie side by side.
    Cliques,
    /// Bodies with holes or on streams eject others.
    Pairwise,
    /// Branch and bound over the pools of bodies.
    Assignment,
}

/// The stages that are switched off: by default, none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without(u32);

/// Each stage has a bit.
const _: () = assert!(Stage::ALL.len() <= u32::BITS as usize);

impl Without {
    /// Switches off one stage.
    #[must_use]
    pub const fn stage(stage: Stage) -> Self {
        Self(1 << stage as u32)
    }

    pub(crate) const fn has(self, stage: Stage) -> bool {
        self.0 >> stage as u32 & 1 == 0
    }
}
