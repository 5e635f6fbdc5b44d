//! The search in pools, with pins, holes, parts and streams against all places of small problems.

use memplan::{Limits, Plan, PlanError, Planner, Problem, Strategy, problem::ProblemFile};
use serde_json::Value;

use crate::common::{
    demands::{Dice, random_branches, random_problem},
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

/// Counts the problems by how their search ended.
#[derive(Default)]
struct Ends {
    solved: u64,
    infeasible: u64,
    /// Too many places to try them all.
    too_many: u64,
    /// Without a proof when cut short.
    open: u64,
}

/// Compares the search with all places of a problem that is not plain.
fn try_all_places(text: &Value, ends: &mut Ends) {
    let Some(problem) = read(text).filter(|problem| !problem.is_plain()) else { return };
    let found = match search(&problem, 20_000_000) {
        Ok(plan) => {
            assert!(plan.proven_optimal, "{text}");
            let spot = |chunk: &memplan::PlannedChunk| Spot {
                pool: chunk.pool,
                offset: chunk.offset,
                overwrites: chunk.overwrites.map(|link| link.chunk),
            };
            assert!(is_right(text, &plan.chunks.iter().map(spot).collect::<Vec<_>>()), "{text}");
            Some(plan.objective())
        }
        Err(PlanError::Infeasible) => None,
        Err(error) => panic!("{error}: {text}"),
    };
    let Ok(better) = least_of_all_places(text, &links(&problem), found.as_deref()) else {
        ends.too_many += 1;
        return;
    };
    assert_eq!(better, None, "found {found:?}: {text}");
    ends.open += cut_short(&problem, found.as_deref(), text);
    match found {
        Some(_) => ends.solved += 1,
        None => ends.infeasible += 1,
    }
}

#[test]
fn no_place_is_better_than_those_of_the_search() {
    let (mut dice, mut ends) = (Dice(3), Ends::default());
    for _ in 0..cases() {
        try_all_places(&random_problem(&mut dice), &mut ends);
    }
    let Ends { solved, infeasible, too_many, open } = ends;
    eprintln!("{solved} solved, {infeasible} without a plan, {too_many} with too many places");
    assert!(solved > cases() / 4 && infeasible > cases() / 100, "{solved}, {infeasible}");
    assert!(too_many < cases() / 10 && open > cases() / 20, "{too_many}, {open}");
}

/// Two branches, of which one runs, make their results in the same bytes.
#[test]
fn no_place_is_better_for_the_results_of_branches() {
    let (mut dice, mut ends) = (Dice(5), Ends::default());
    for _ in 0..cases() / 2 {
        try_all_places(&random_branches(&mut dice), &mut ends);
    }
    let Ends { solved, infeasible, too_many, open } = ends;
    eprintln!("{solved} solved, {infeasible} without a plan, {too_many} with too many places");
    assert!(solved > cases() / 4 && too_many < cases() / 10, "{solved}, {too_many}");
    assert!(infeasible + open > 0, "{infeasible}, {open}");
}
