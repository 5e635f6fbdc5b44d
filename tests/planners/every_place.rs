//! Whatever a problem says, plans are right, and what planners claim about it is true: compared with trying all
//! places of small problems with pools, pins, holes, windows, parts, overwrites, overlaps and streams.

use arbitrary::Unstructured;
use memplan::{
    Input, Limits, Plan, PlanError, Planner, Problem, ProblemError, Strategy,
    import::{Format, ImportError, ImportOptions, read_input},
    verify::verify,
};
use serde_json::Value;

use crate::common::{
    choices::choices,
    constraints::{Dice, random_branches, random_problem},
    every_place::{Objective, TooMany, better_plan, objective},
    judge::{Judge, Over},
    seeds::times,
    spoiled::{links, links_of, spoiled, spots},
};

/// What was compared, so that no kind of comparison is missing.
#[derive(Debug, Default)]
pub struct Counts {
    /// Plans that a search has proven to be the best, and that are.
    proven: u64,
    open: u64,
    infeasible: u64,
    /// Errors of problems that have no plan.
    errors: u64,
    right: u64,
    wrong: u64,
    /// Questions with too many places to try.
    pub too_many: u64,
}

/// A problem as its text and as memplan reads it.
struct Case<'a> {
    text: &'a Value,
    judge: Judge,
    problem: Problem,
}

impl Case<'_> {
    /// The objective of a plan, with the traffic even if the problem is unconstrained.
    fn objective(&self, plan: &Plan) -> Objective {
        let found = plan.objective();
        let found = if found.len() == 1 { vec![0, found[0]] } else { found };
        assert_eq!(found, objective(&self.judge, &spots(plan)), "{}", self.text);
        found
    }

    /// Checks that no plan with these overwrites is below a limit.
    fn no_plan_is_better(
        &self,
        links: &[Option<Over>],
        limit: Option<&[u128]>,
        claim: &str,
        counts: &mut Counts,
    ) {
        match better_plan(&self.judge, links, limit) {
            Ok(None) => {}
            Ok(Some(better)) => panic!("{claim}, but {better:?}\n{}", self.text),
            Err(TooMany) => counts.too_many += 1,
        }
    }

    /// Checks that a plan is right, and that both checkers say so; returns its objective.
    fn check(&self, plan: &Plan, name: &str) -> Objective {
        assert_eq!(verify(&self.problem, plan), [], "{name}: {}\n{plan:#?}", self.text);
        assert!(self.judge.all(&spots(plan)), "{name}: {}\n{plan:#?}", self.text);
        self.objective(plan)
    }

    /// Plans with a strategy and checks what it claims.
    fn plan(&self, strategy: Strategy, nodes: u64, counts: &mut Counts) -> Option<Plan> {
        let name = format!("{strategy} with {nodes} nodes");
        let planner = Planner::new().strategy(strategy).limits(Limits::default().nodes(nodes));
        let plan = match planner.plan(&self.problem) {
            Ok(plan) => plan,
            Err(PlanError::Infeasible) => {
                let claim = format!("{name}: no plan exists");
                self.no_plan_is_better(&links(&self.problem), None, &claim, counts);
                counts.infeasible += 1;
                return None;
            }
            Err(PlanError::NoPlace { .. } | PlanError::NoPlanFound) => return None,
            Err(error) => panic!("{name}: {error}\n{}", self.text),
        };
        let found = self.check(&plan, &name);
        if plan.proven_optimal() {
            let claim = format!("{name}: no plan is below {found:?}");
            self.no_plan_is_better(&links_of(&plan), Some(&found), &claim, counts);
            counts.proven += 1;
        } else {
            counts.open += 1;
            if found.len() == 2 {
                let limit = [found[0], plan.lower_bound().into()];
                let claim = format!("{name}: no plan is below {limit:?}");
                self.no_plan_is_better(&links_of(&plan), Some(&limit), &claim, counts);
            }
        }
        Some(plan)
    }

    /// Asks whether a pool near the smallest one is large enough.
    fn fit(&self, dice: &mut Dice, plan: &Plan, counts: &mut Counts) {
        let capacity = (plan.pool_size() + dice.roll(3)).saturating_sub(dice.roll(4));
        let strategy = if dice.roll(2) == 0 { Strategy::Best } else { Strategy::Optimal };
        let planner = Planner::new().strategy(strategy).limits(Limits::default().nodes(2_000));
        let plan = match planner.fit(&self.problem, capacity) {
            Ok(plan) => plan,
            Err(error) => panic!("fit: {error}\n{}", self.text),
        };
        let traffic = self.check(&plan, "fit")[0];
        match plan.fits(capacity) {
            Some(true) => assert!(plan.pool_size() <= capacity, "fit: {}", self.text),
            Some(false) => {
                let limit = [traffic, u128::from(capacity) + 1];
                let claim = format!("{strategy}: nothing fits into {capacity}");
                self.no_plan_is_better(&links(&self.problem), Some(&limit), &claim, counts);
            }
            None => {}
        }
    }

    /// Compares what both checkers say about changed plans.
    fn spoil(&self, dice: &mut Dice, plan: &Plan, counts: &mut Counts) {
        let mut plan = plan.clone();
        for _ in 0..4 {
            let new = spoiled(dice, self.text, &self.problem, &plan);
            let violations = verify(&self.problem, &new);
            let is_right = self.judge.all(&spots(&new));
            let [name, places] = [format!("{violations:?}"), format!("{:?}", spots(&new))];
            assert_eq!(violations.is_empty(), is_right, "{name}\n{}\n{places}", self.text);
            if is_right {
                counts.right += 1;
                plan = new;
            } else {
                counts.wrong += 1;
            }
        }
    }
}

/// Returns whether an error means that a body of parts, whatever is written over whatever, clashes with itself.
fn is_of_parts(error: &ProblemError) -> bool {
    matches!(error, ProblemError::Clash { .. })
}

/// Checks that a problem that is refused has no plan.
fn no_choice_has_a_plan(text: &Value, error: &ProblemError, counts: &mut Counts) {
    use ProblemError::{
        Misaligned, NoCommonPool, Pins, RequiredOverwrite, TooLarge, TwoPins, TwoPlaces,
    };
    let judge = Judge::new(text);
    let choices = match error {
        // Parts that share bytes are refused even if windows keep them from needing these at once.
        ProblemError::PartsOverlap { .. } => return,
        error if is_of_parts(error) => vec![vec![None; judge.chunks.len()]],
        Misaligned { .. }
        | NoCommonPool { .. }
        | Pins { .. }
        | RequiredOverwrite { .. }
        | TooLarge { .. }
        | TwoPins { .. }
        | TwoPlaces { .. } => choices(&judge),
        error => panic!("{error}\n{text}"),
    };
    counts.errors += 1;
    // Several optional overwrites may exclude each other. Which are taken is decided before places are looked at, so a
    // refused problem may have a plan with others; with none or with the only one it has none. Required overwrites are
    // decided before all optional ones, so one that only an optional one makes possible is refused, too.
    let optional = judge.requests.iter().filter(|request| !request.required).count();
    let is_optional = |(new, link): (usize, &Option<Over>)| {
        let is_it = |over: Over| {
            judge.requests.iter().any(|r| r.required && (r.new, r.over) == (new, over))
        };
        link.is_some_and(|over| !is_it(over))
    };
    let needs_none = optional > 1 || matches!(error, RequiredOverwrite { .. });
    let counts_here =
        |links: &Vec<Option<Over>>| !needs_none || !links.iter().enumerate().any(is_optional);
    for links in choices.into_iter().filter(counts_here) {
        match better_plan(&judge, &links, None) {
            Ok(None) => {}
            Ok(Some(plan)) => panic!("{error}, but {plan:?}\n{text}"),
            Err(TooMany) => counts.too_many += 1,
        }
    }
}

/// Compares all that memplan says about a problem with trying all places.
pub fn compare(text: &Value, dice: &mut Dice, counts: &mut Counts) {
    let read = read_input(text.to_string().as_bytes(), Format::Json, &ImportOptions::default());
    let problem = match read {
        Ok(Input::Problem(problem)) => problem,
        Err(ImportError::Problem(error)) => return no_choice_has_a_plan(text, &error, counts),
        other => panic!("{other:?}"),
    };
    let case = Case { text, judge: Judge::new(text), problem };
    let few = [1, 2, 5, 10, 20, 50][usize::try_from(dice.roll(6)).unwrap()];
    case.plan(Strategy::Optimal, few, counts);
    case.plan(Strategy::FirstFit, 1, counts);
    case.plan(Strategy::Best, 10 * few, counts);
    let Some(plan) = case.plan(Strategy::Optimal, 100_000, counts) else { return };
    if plan.pools().len() < 2 {
        case.fit(dice, &plan, counts);
    }
    case.spoil(dice, &plan, counts);
}

#[test]
fn plans_and_claims_are_those_of_trying_all_places() {
    let mut counts = Counts::default();
    let one = |random: &mut Unstructured<'_>| {
        let mut dice = Dice(random.arbitrary()?);
        let text =
            if dice.roll(8) == 0 { random_branches(&mut dice) } else { random_problem(&mut dice) };
        compare(&text, &mut dice, &mut counts);
        Ok(())
    };
    times(150, one);
    eprintln!("{counts:?}");
    let Counts { proven, open, infeasible, errors, right, wrong, too_many } = counts;
    let least = [proven, open, infeasible, errors, right, wrong].into_iter().min();
    assert!(least > Some(0) && too_many < proven / 4, "too few of a kind");
}
