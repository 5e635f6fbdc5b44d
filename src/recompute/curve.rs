//! The least recomputation at many capacities.

use crate::effort::Effort;
use crate::{
    Bytes, OpSequence, PlanError,
    recompute::{
        Recomputation, Recompute, bound,
        found::Sequences,
        model::Model,
        repair::Trials,
        search::{Choice, Search},
        usual_nodes,
    },
};

/// The choice for a capacity, and the bound on its cost.
struct Answer {
    capacity: Bytes,
    choice: Choice,
    cost_bound: u64,
}

impl Recompute<'_> {
    /// The curve of a sequence `given`; `flat` is the same sequence with workspace in place of its bodies.
    pub(crate) fn curve(
        &self,
        given: &OpSequence,
        flat: &OpSequence,
        points: usize,
    ) -> Result<Vec<Recomputation>, PlanError> {
        let sequences = Sequences { given, flat };
        let model = self.model(sequences.given, sequences.flat)?;
        let given_peak = self.peak(sequences.flat)?;
        let peak_bound = bound::peak(&model).min(given_peak);
        let mut effort = self.work(usual_nodes(&model) / 4 * 5);
        let steps = points.max(2) as u64;
        let least = effort.share(LEAST, |effort| least_peak(&model, peak_bound, effort));
        // From the largest capacity on, each answer begins with the one before.
        let mut answers: Vec<Answer> = Vec::new();
        let mut seeds = vec![least.thresholds.clone()];
        let low = least.score.peak;
        let span = given_peak.saturating_sub(low);
        for at in (0..steps).rev() {
            #[allow(clippy::cast_possible_truncation, reason = "at most the span")]
            let capacity =
                low + (u128::from(span) * u128::from(at) / u128::from(steps - 1)) as Bytes;
            let one = Self { capacity, ..self.clone() };
            let fits = given_peak <= capacity;
            let (choice, cost_bound) = effort.share(at + 1, |effort| {
                let cost_bound = if fits { 0 } else { one.cost_bound(&model, effort) };
                let mut search = Search::new(&model, capacity, effort);
                search.least_cost = cost_bound;
                search.run(&seeds);
                (search.best.take().unwrap_or_else(|| least.clone()), cost_bound)
            });
            seeds.truncate(1);
            seeds.push(choice.thresholds.clone());
            answers.push(Answer { capacity, choice, cost_bound });
        }
        answers.reverse();
        for at in 1..answers.len() {
            if answers[at].choice.score.cost > answers[at - 1].choice.score.cost {
                answers[at].choice = answers[at - 1].choice.clone();
            }
        }
        let mut points = Vec::with_capacity(answers.len());
        for Answer { capacity, choice, cost_bound } in answers {
            let found = self.found(&model, sequences, &choice, cost_bound)?;
            // The model's peak may differ slightly, so the peak after lowering decides.
            points.push(Recomputation { capacity: capacity.max(found.peak), ..found });
        }
        Ok(points)
    }
}

/// The search for the least peak takes this fraction of the effort, 1 / `LEAST`, and dropping alone takes 1 /
/// `DROPPING` of that.
const LEAST: u64 = 3;
const DROPPING: u64 = 2;

/// Rounds of halving the distance between the bound and the least peak so far.
const ROUNDS: u64 = 6;

/// Searches for the least peak: drops whatever lowers it, then looks for less between that and the bound.
fn least_peak(model: &Model, bound: Bytes, effort: &mut Effort<'_>) -> Choice {
    let mut search = Search::new(model, bound, effort);
    let whole = search.effort.limit_to(DROPPING);
    let nothing = search.nothing();
    search.polish(nothing, Trials::Few);
    search.effort.restore(whole);
    let mut best = search.least.clone();
    let mut low = bound;
    for round in (1..=ROUNDS).rev() {
        if low >= best.score.peak {
            break;
        }
        let middle = low + (best.score.peak - low) / 2;
        let whole = search.effort.limit_to(round);
        search.budget = middle;
        search.best = None;
        search.run_until_found(&best.thresholds);
        search.effort.restore(whole);
        if search.least.score.peak < best.score.peak {
            best = search.least.clone();
        }
        if search.best.is_none() {
            low = middle + 1;
        }
    }
    best
}
