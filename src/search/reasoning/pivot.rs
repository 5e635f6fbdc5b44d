//! Pivots: the section to branch on, and the bodies that may come next there.

use crate::search::reasoning::valley::Valley;

/// The comparison of sections for branching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BranchRule {
    /// The fewest branches.
    #[default]
    Fewest,
    /// The fewest branches, with waste counted half.
    WasteHalf,
    /// The fewest branches, with waste counted three times.
    WasteThrice,
    /// The fewest branches per contradiction that the section has led to.
    Faults,
}

/// The number of contradictions that every section is credited with from the start.
const FAULTS_FROM_START: u64 = 300;

impl BranchRule {
    /// The cost of branching on a section; the least is the best.
    pub fn cost(self, bodies: u32, can_waste: bool, faults: u64) -> u64 {
        let (bodies, waste) = (u64::from(bodies) << 1, u64::from(can_waste));
        match self {
            Self::Fewest => bodies + 2 * waste,
            Self::WasteHalf => bodies + waste,
            Self::WasteThrice => bodies + 6 * waste,
            Self::Faults => ((bodies + 2 * waste) << 40) / (FAULTS_FROM_START + faults),
        }
    }
}

/// The urgency of branching on a section: the lowest cost first, then the fullest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    pub cost: u64,
    pub emptiness: u64,
}

/// A section to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pivot {
    pub valley: Valley,
    pub section: usize,
    /// The least amount by which the floor rises if nothing rests on it; `None` if the section cannot waste that
    /// much.
    pub waste: Option<u64>,
    pub urgency: Urgency,
}

/// A body that may come next, and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    pub body: u32,
    pub offset: u64,
}
