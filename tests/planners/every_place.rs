//! The search in pools, with pins, holes, parts and streams against all places of small problems.

use memplan::{Limits, Plan, PlanError, Planner, Problem, Strategy, problem::ProblemFile};
use serde_json::Value;

use crate::common::{
    demands::{Dice, random_problem},
    judge::{Spot, is_right, least_of_all_places},
};

/// `MEMPLAN_CASES` sets another number.
fn cases() -> u64 {
    let number = std::env::var("MEMPLAN_CASES").ok().and_then(|n| n.parse().ok());
    number.unwrap_or(if cfg!(debug_assertions) { 400 } else { 2_000 })
}

/// The chunk that each one is written over, and the distance between the two.
fn links(problem: &Problem) -> Vec<Option<(usize, i64)>> {
    let link = |chunk| {
        let link = problem.link(chunk)?;
        let distance = i64::try_from(link.offset).unwrap() - i64::try_from(link.below).unwrap();
        Some((link.overwritten.index(), distance))
    };
    problem.ids().map(link).collect()
}

fn read(text: &Value) -> Option<Problem> {
    let file: ProblemFile = serde_json::from_value(text.clone()).ok()?;
    Problem::try_from(file).ok()
}

fn search(problem: &Problem, nodes: u64) -> Result<Plan, PlanError> {
    let limits = Limits::default().nodes(nodes);
    Planner::new().strategy(Strategy::Optimal).limits(limits).plan(problem)
}

/// A search that is cut short claims no false proof. Returns the number of those without a proof.
fn cut_short(problem: &Problem, found: Option<&[u128]>, text: &Value) -> u64 {
    let mut open = 0;
    for nodes in [1, 2, 5, 10, 20, 50] {
        match search(problem, nodes) {
            Ok(plan) => {
                let reached = plan.objective();
                assert!(found.is_some_and(|found| *found <= *reached), "{nodes} nodes: {text}");
                assert!(!plan.proven_optimal || found == Some(&*reached), "{nodes} nodes: {text}");
                open += u64::from(!plan.proven_optimal);
            }
            Err(PlanError::Infeasible) => assert_eq!(found, None, "{nodes} nodes: {text}"),
            Err(error) => assert!(matches!(error, PlanError::NoPlace { .. }), "{error}: {text}"),
        }
    }
    open
}

#[test]
fn no_place_is_better_than_those_of_the_search() {
    let mut dice = Dice(3);
    let (mut solved, mut infeasible, mut too_many, mut open) = (0, 0, 0, 0);
    for _ in 0..cases() {
        let text = random_problem(&mut dice);
        let Some(problem) = read(&text).filter(|problem| !problem.is_plain()) else { continue };
        let found = match search(&problem, 20_000_000) {
            Ok(plan) => {
                assert!(plan.proven_optimal, "{text}");
                let spot = |chunk: &memplan::PlannedChunk| Spot {
                    pool: chunk.pool,
                    offset: chunk.offset,
                    overwrites: chunk.overwrites.map(|link| link.chunk),
                };
                assert!(
                    is_right(&text, &plan.chunks.iter().map(spot).collect::<Vec<_>>()),
                    "{text}"
                );
                Some(plan.objective())
            }
            Err(PlanError::Infeasible) => None,
            Err(error) => panic!("{error}: {text}"),
        };
        let Ok(better) = least_of_all_places(&text, &links(&problem), found.as_deref()) else {
            too_many += 1;
            continue;
        };
        assert_eq!(better, None, "found {found:?}: {text}");
        open += cut_short(&problem, found.as_deref(), &text);
        match found {
            Some(_) => solved += 1,
            None => infeasible += 1,
        }
    }
    eprintln!("{solved} solved, {infeasible} without a plan, {too_many} with too many places");
    assert!(solved > cases() / 4 && infeasible > cases() / 100, "{solved}, {infeasible}");
    assert!(too_many < cases() / 10 && open > cases() / 20, "{too_many}, {open}");
}
