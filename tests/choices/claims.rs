//! The claims that are checked, one by one.

use std::sync::OnceLock;

use memplan::{
    Limits, Plan, PlanError, Strategy, order::Reordered, plan::Scope, planner::Replanned,
};

use super::{
    draw::{Case, World},
    model::Model,
    orders::{BestOrder, best_order},
    packing::TooMany,
    plans::{choices_of, fault, fault_of_places, kept, objective, plan_of, planner},
    pools::two_pools,
    ties::{Link, Questions, choices, questions},
    truth::{Best, one_pool},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// The oracle's own plan runs, and no plan that verifies is better.
    OracleIsRight,
    /// Every plan verifies, and runs byte by byte.
    Runs,
    /// What has a plan is planned.
    Planned,
    /// "No plan exists."
    NoPlan,
    /// The bound, and a proof, over all choices.
    Bound,
    /// The bound, and a proof, over plans of the same chunks: with the same ties, and lives as long.
    BoundOfTheseChoices,
    /// "No plan fits."
    Fit,
    /// The proofs of all strategies.
    Strategies,
    /// "No order is better."
    OrderBound,
    /// No pool is smaller than the bytes alive at once.
    PoolBelowAlive,
    /// The pool, or the traffic, is within a percent of the best.
    Quality,
    /// The pool in the best order is within a percent of the best.
    OrderQuality,
}

impl Claim {
    pub const ALL: [Self; 12] = [
        Self::OracleIsRight,
        Self::Runs,
        Self::Planned,
        Self::NoPlan,
        Self::Bound,
        Self::BoundOfTheseChoices,
        Self::Fit,
        Self::Strategies,
        Self::OrderBound,
        Self::PoolBelowAlive,
        Self::Quality,
        Self::OrderQuality,
    ];

    pub fn is_about(self, world: World) -> bool {
        match self {
            Self::OrderBound | Self::PoolBelowAlive | Self::OrderQuality => world == World::Orders,
            Self::Strategies => world == World::OneStream,
            Self::NoPlan => world == World::TwoPools,
            _ => world != World::Orders,
        }
    }

    /// The share of wrong answers that is allowed, in percent.
    pub fn allowed(self) -> u64 {
        u64::from(matches!(self, Self::Quality | Self::OrderQuality))
    }
}

/// What is true of a case, and memplan's plans of it once a claim needs them.
pub struct Truth {
    model: Model,
    questions: Questions,
    choices: Vec<Vec<Link>>,
    pub best: Option<Best>,
    pub order: Option<BestOrder>,
    plan: OnceLock<Result<Plan, PlanError>>,
    reordered: OnceLock<Result<Replanned<Reordered>, PlanError>>,
}

impl Truth {
    pub fn of(case: &Case, world: World) -> Result<Self, TooMany> {
        let model = case.model();
        let questions = questions(&model);
        let choices = choices(&questions).ok_or(TooMany)?;
        let (plan, reordered) = (OnceLock::new(), OnceLock::new());
        let mut truth =
            Self { model, questions, choices, best: None, order: None, plan, reordered };
        truth.best = best_of(&truth.model, case, &truth.choices)?;
        if world == World::Orders {
            let mut model = case.model();
            truth.order = best_order(&mut model, &truth.questions, &truth.choices)?;
        }
        Ok(truth)
    }

    fn plan(&self, case: &Case) -> Result<&Plan, &PlanError> {
        self.plan.get_or_init(|| planner(case).plan(&case.sequence)).as_ref()
    }

    fn reordered(&self, case: &Case) -> Result<&Replanned<Reordered>, &PlanError> {
        let limits = Limits::default().nodes(100_000);
        let reordered = || planner(case).plan_reordered(&case.sequence, limits);
        self.reordered.get_or_init(reordered).as_ref()
    }

    /// The smallest pools together of a plan that is known. Several pools are compared by traffic first, so another plan
    /// than the best may have smaller ones.
    fn smallest(&self, case: &Case) -> Option<u64> {
        let first_fit = || planner(case).strategy(Strategy::FirstFit).plan(&case.sequence);
        let other = case.setting.pools.and_then(|_| first_fit().ok());
        let other = other.as_ref().map(Plan::pool_size);
        self.best.as_ref().map(pools_of).into_iter().chain(other).min()
    }

    /// The best plan with the ties of a plan that needs its chunks for as long.
    fn with_ties_of(&self, case: &Case, plan: &Plan) -> Result<Option<Best>, TooMany> {
        let model = Model { kept: kept(case, &self.model, plan), ..case.model() };
        best_of(&model, case, &choices_of(case, &self.questions, plan))
    }
}

fn best_of(model: &Model, case: &Case, choices: &[Vec<Link>]) -> Result<Option<Best>, TooMany> {
    match case.setting.pools {
        Some(pools) => two_pools(model, choices, pools),
        None => one_pool(model, choices, i64::MAX),
    }
}

/// The questions that a case has answered, and the wrong answers: by how much, and what they say.
#[derive(Default)]
pub struct Finding {
    pub asked: u64,
    pub wrong: Vec<(f64, String)>,
}

impl Finding {
    fn ask(&mut self, is_right: bool, by: f64, text: impl FnOnce() -> String) {
        self.asked += 1;
        if !is_right {
            self.wrong.push((by, text()));
        }
    }
}

/// How much larger one objective is than another, in its first figure that differs.
fn ratio(one: &[u128], other: &[u128]) -> f64 {
    let differ = one.iter().zip(other).find(|(one, other)| one != other);
    differ.map_or(1.0, |(&one, &other)| one as f64 / (other as f64).max(1.0))
}

pub fn check(claim: Claim, case: &Case, truth: &Truth) -> Result<Finding, TooMany> {
    let mut finding = Finding::default();
    match claim {
        Claim::OracleIsRight => oracle_is_right(case, truth, &mut finding),
        Claim::Runs => runs(case, truth, &mut finding),
        Claim::Planned => planned(case, truth, &mut finding),
        Claim::NoPlan => no_plan(case, truth, &mut finding),
        Claim::Bound => bound(case, truth, Scope::AllChoices, &mut finding)?,
        Claim::BoundOfTheseChoices => bound(case, truth, Scope::TheseChoices, &mut finding)?,
        Claim::Fit => fit(case, truth, &mut finding),
        Claim::Strategies => strategies(case, truth, &mut finding)?,
        Claim::Quality => quality(case, truth, &mut finding),
        Claim::OrderBound | Claim::PoolBelowAlive | Claim::OrderQuality => {
            order(claim, case, truth, &mut finding);
        }
    }
    Ok(finding)
}

fn oracle_is_right(case: &Case, truth: &Truth, finding: &mut Finding) {
    if let Some(best) = &truth.best
        && let Some(plan) = plan_of(case, &truth.model, best)
    {
        let fault = fault_of_places(case, &plan);
        finding.ask(fault.is_none(), 1.0, || {
            format!("the oracle's plan of {:?} with {:?}: {fault:?}", best.objective, best.links)
        });
    }
    if let Ok(plan) = truth.plan(case) {
        let found = objective(case, plan);
        let best = truth.best.as_ref().map(|best| &best.objective);
        let is_right = best.is_some_and(|best| *best <= found);
        let by = best.map_or(1.0, |best| ratio(best, &found));
        finding
            .ask(is_right, by, || format!("memplan has a plan of {found:?}, the oracle {best:?}"));
    }
}

fn runs(case: &Case, truth: &Truth, finding: &mut Finding) {
    let mut run = |plan: &Plan, what: &str| {
        let fault = fault(case, plan);
        finding.ask(fault.is_none(), 1.0, || format!("{what}: {fault:?}"));
    };
    let planner = planner(case);
    if let Ok(plan) = truth.plan(case) {
        run(plan, "plan");
    }
    if case.setting.pools.is_some() {
        return;
    }
    let capacity = truth.best.as_ref().map_or(0, Best::pool);
    if let Ok(plan) = planner.fit(&case.sequence, capacity) {
        run(&plan, "fit");
    }
    if case.sequence.streams() == 1
        && let Ok(found) = planner.plan_reordered(&case.sequence, Limits::default().nodes(2_000))
    {
        run(&found.plan, "reorder");
    }
}

fn planned(case: &Case, truth: &Truth, finding: &mut Finding) {
    if let Some(best) = &truth.best {
        let plan = truth.plan(case);
        let is_right = matches!(plan, Ok(_) | Err(PlanError::Infeasible));
        finding.ask(is_right, 1.0, || refuted(plan.err(), best));
    }
}

fn no_plan(case: &Case, truth: &Truth, finding: &mut Finding) {
    if let Err(error @ PlanError::Infeasible) = truth.plan(case) {
        let text = |best: &Best| refuted(Some(error), best);
        finding
            .ask(truth.best.is_none(), 1.0, || truth.best.as_ref().map(text).unwrap_or_default());
    }
}

fn refuted(error: Option<&PlanError>, best: &Best) -> String {
    let error = error.map(PlanError::to_string);
    format!("{error:?}, but there is a plan of {:?} with {:?}", best.objective, best.links)
}

/// Checks what a plan claims, if it claims it over these plans, and what may be claimed of it once it is a file.
fn bound(case: &Case, truth: &Truth, scope: Scope, finding: &mut Finding) -> Result<(), TooMany> {
    let Ok(plan) = truth.plan(case) else { return Ok(()) };
    claimed(case, truth, plan, scope, finding)?;
    match planner(case).count_bound(plan.clone(), &case.sequence) {
        Ok(counted) => claimed(case, truth, &counted, scope, finding)?,
        Err(error) => finding.ask(false, 1.0, || format!("its bound is not counted: {error}")),
    }
    Ok(())
}

/// The bytes of all pools together.
fn pools_of(best: &Best) -> u64 {
    let traffic = best.objective.len() / 3;
    best.objective.iter().skip(traffic).map(|&bytes| u64::try_from(bytes).unwrap()).sum()
}

fn claimed(
    case: &Case,
    truth: &Truth,
    plan: &Plan,
    scope: Scope,
    finding: &mut Finding,
) -> Result<(), TooMany> {
    if plan.scope() != scope {
        return Ok(());
    }
    let of_these;
    let best = if scope == Scope::AllChoices {
        &truth.best
    } else {
        of_these = truth.with_ties_of(case, plan)?;
        &of_these
    };
    let Some(best) = best else {
        let links = choices_of(case, &truth.questions, plan);
        finding.ask(false, 1.0, || format!("the oracle has no plan with {links:?}"));
        return Ok(());
    };
    let found = objective(case, plan);
    let strategy = plan.strategy().map(Strategy::name);
    let smallest = truth.smallest(case).filter(|_| scope == Scope::AllChoices);
    let pool = u128::from(smallest.unwrap_or_else(|| pools_of(best)));
    let bound = u128::from(plan.lower_bound());
    let is_right = (!plan.proven_optimal() || found <= best.objective) && bound <= pool;
    let by = ratio(&found, &best.objective).max(bound as f64 / (pool as f64).max(1.0));
    finding.ask(is_right, by, || {
        let proof = if plan.proven_optimal() { "proven" } else { "not proven" };
        format!(
            "{strategy:?}: {found:?} ({proof}), bound {bound}; right is {:?} with {:?}",
            best.objective, best.links
        )
    });
    Ok(())
}

fn fit(case: &Case, truth: &Truth, finding: &mut Finding) {
    let Some(best) = truth.smallest(case) else { return };
    let Ok(plan) = truth.plan(case) else { return };
    let alignment = case.setting.alignment;
    let middle = best.midpoint(plan.pool_size()) / alignment * alignment;
    let mut capacities = vec![best, best + alignment, middle, plan.pool_size().saturating_sub(1)];
    capacities.sort_unstable();
    capacities.dedup();
    for capacity in capacities {
        match planner(case).fit(&case.sequence, capacity) {
            Ok(plan) if plan.fits(capacity) == Some(false) => {
                let by = plan.lower_bound() as f64 / best.max(1) as f64;
                let scope = plan.scope();
                finding.ask(capacity < best, by, || {
                    let bound = plan.lower_bound();
                    format!("{capacity} B: no ({scope}), at least {bound} B; {best} B is possible")
                });
            }
            Ok(_) => finding.asked += 1,
            Err(error) => finding.ask(false, 1.0, || format!("fit: {error}")),
        }
    }
}

fn strategies(case: &Case, truth: &Truth, finding: &mut Finding) -> Result<(), TooMany> {
    for &strategy in Strategy::ALL {
        let planner = planner(case).strategy(strategy).limits(Limits::default().nodes(1_000));
        if let Ok(plan) = planner.plan(&case.sequence) {
            claimed(case, truth, &plan, plan.scope(), finding)?;
        }
    }
    Ok(())
}

fn quality(case: &Case, truth: &Truth, finding: &mut Finding) {
    if let (Some(best), Ok(plan)) = (&truth.best, truth.plan(case)) {
        let found = objective(case, plan);
        let by = ratio(&found, &best.objective);
        finding.ask(by <= 1.01, by, || {
            format!("{found:?}; {:?} is possible with {:?}", best.objective, best.links)
        });
    }
}

fn order(claim: Claim, case: &Case, truth: &Truth, finding: &mut Finding) {
    let Some(BestOrder { order, best }) = &truth.order else { return };
    let Ok(found) = truth.reordered(case) else { return };
    let (pool, bound, peak) = (found.plan.pool_size(), found.change.lower_bound, found.change.peak);
    let by = |bytes: u64| bytes as f64 / best.pool().max(1) as f64;
    match claim {
        Claim::OrderBound => finding.ask(bound <= best.pool(), by(bound), || {
            format!("no order needs fewer than {bound} B; {order:?} needs {} B", best.pool())
        }),
        Claim::PoolBelowAlive => {
            let by = peak as f64 / pool.max(1) as f64;
            finding.ask(peak <= pool, by, || format!("{peak} B alive in a pool of {pool} B"));
        }
        _ => finding.ask(by(pool) <= 1.01, by(pool), || {
            let links = &best.links;
            format!("{pool} B; {order:?} needs {} B with {links:?}", best.pool())
        }),
    }
}
