//! The enum of all planners, with their names.

use std::{fmt, str::FromStr};

use crate::{
    Problem,
    planner::{
        Layout, pushdown,
        search::{self, Limits, Observer},
    },
};

/// A planner, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// `MegEngine`'s default: a simulation of free, alloc and alloc-overwrite on an elastic
    /// memory queue, then offsets. See [`pushdown`].
    #[default]
    Pushdown,
    /// An anytime exact search for the smallest pool. See [`search`].
    Optimal,
    /// Every chain in memory of its own: what no sharing costs.
    Naive,
}

impl Strategy {
    /// Every strategy, in the order of tables and help.
    pub const ALL: &[Self] = &[Self::Pushdown, Self::Optimal, Self::Naive];

    /// The name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pushdown => "pushdown",
            Self::Optimal => "optimal",
            Self::Naive => "naive",
        }
    }

    /// What the strategy is, in one line.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Pushdown => {
                "MegEngine's default: free, alloc and alloc-overwrite on an elastic memory queue"
            }
            Self::Optimal => "an exact search for the smallest pool, within an effort",
            Self::Naive => "every chain in memory of its own",
        }
    }

    /// Chooses an offset for every chunk. The same problem always gets the same layout.
    #[must_use]
    pub fn layout(self, problem: &Problem) -> Layout {
        match self {
            Self::Pushdown => pushdown::layout(problem),
            Self::Optimal => {
                let limits = Limits::default();
                search::optimize(problem, None, &limits, Observer::default()).layout
            }
            Self::Naive => naive(problem),
        }
    }
}

/// Lays the chains one after another, in the order of their roots.
fn naive(problem: &Problem) -> Layout {
    let mut bases = vec![0; problem.len()];
    let mut top = 0;
    for root in problem.roots() {
        bases[root.index()] = top;
        top = problem.align_up(top + problem.padded_size(root));
    }
    Layout::from_roots(problem, |root| bases[root.index()])
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no strategy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no strategy is called '{0}'; there are: {all}", all = Strategy::ALL.iter().map(|s| s.name()).collect::<Vec<_>>().join(", "))]
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
