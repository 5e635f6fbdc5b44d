//! Pivots: the section to branch on, and the bodies that may come next there.

use crate::search::reasoning::{
    survey::{Survey, is_blocked},
    valley::Valley,
};
use crate::search::state::skyline::Skyline;

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
    fn cost(self, bodies: u32, can_waste: bool, faults: u64) -> u64 {
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
    cost: u64,
    emptiness: u64,
}

/// A section to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pivot {
    /// The valley of the section.
    pub left: usize,
    pub right: usize,
    pub floor: u64,
    pub section: usize,
    /// The least amount by which the floor rises if nothing rests on it; `None` if the section cannot waste that
    /// much.
    pub waste: Option<u64>,
    pub urgency: Urgency,
}

impl Pivot {
    /// The better of two pivots; the first if they are equal.
    pub fn better(best: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (best, other) {
            (Some(best), Some(other)) if other.urgency < best.urgency => Some(other),
            (None, other) => other,
            (best, _) => best,
        }
    }

    /// The best section of a valley that was surveyed.
    pub fn of_valley(
        sky: &Skyline<'_>,
        survey: &Survey,
        rule: BranchRule,
        faults: &[u64],
        v: Valley,
    ) -> Option<Self> {
        let mut best: Option<Self> = None;
        for section in v.sections().filter(|&x| sky.live(x)) {
            let up = survey.step_up(sky, v, section);
            let waste = (up <= sky.slack(section)).then_some(up);
            let bodies = survey.cells[section].count;
            let urgency = Urgency {
                cost: rule.cost(bodies, waste.is_some(), faults[section]),
                emptiness: u64::MAX - sky.items_left(section),
            };
            if best.is_none_or(|best| urgency < best.urgency) {
                let Valley { left, right, floor, .. } = v;
                best = Some(Self { left, right, floor, section, waste, urgency });
            }
        }
        best
    }

    /// The bodies that may rest on the floor, each with its offset.
    pub fn candidates(&self, sky: &Skyline<'_>, survey: &Survey, into: &mut Vec<Candidate>) {
        let (section, floor) = (self.section, self.floor);
        let items = &sky.inst.items;
        for x in self.left..=section {
            let mut last = None;
            for body in sky.items_from(x) {
                let item = &items[body as usize];
                if item.end as usize > self.right {
                    break;
                }
                let is_same = last.replace(item) == Some(item);
                if !is_same && item.end as usize > section && !is_blocked(sky, body, floor) {
                    into.push(Candidate { body, offset: floor });
                }
            }
        }
        if sky.has_staircases(section) {
            for &body in sky.staircases(section) {
                if let Some(offset) = survey.offset_on_floor(sky, body, section, floor) {
                    into.push(Candidate { body, offset });
                }
            }
        }
    }
}

/// A body that may come next, and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    pub body: u32,
    pub offset: u64,
}
