//! Plan files that are changed in one place: `verify` rejects each change that does not lead to a right plan again.
//!
//! The tests print on standard error what they have changed.

use arbitrary::{Result, Unstructured};
use memplan::{
    Limits, OpSequence, Plan, Planner, Problem, Strategy,
    problem::Pool,
    verify::{execute, verify},
};
use serde_json::Value;

use crate::common::{
    constraints::{self, Dice},
    file_mutants::{Changed, is_information, is_of_caller, is_place, key, mutate, places},
    judge::{self, Spot},
    machine,
    properties::all_options,
    random::{Wild, random_problem},
    rich::rich_sequence,
    seeds::times,
};

/// Changes a plan file in several ways, one at a time. `right` tells whether a plan that `verify` accepts is right.
fn change(
    random: &mut Unstructured<'_>,
    plan: &Plan,
    changed: &mut Changed,
    mut accepts: impl FnMut(&mut Unstructured<'_>, &Plan, &str) -> Result<bool>,
) -> Result<()> {
    let file = serde_json::to_value(plan).unwrap();
    let places = places(&file);
    for _ in 0..20 {
        let path = random.choose(&places)?;
        let key = key(path);
        let mut mutant = file.clone();
        mutate(random, &mut mutant, path)?;
        if mutant == file {
            continue;
        }
        let is_accepted = match serde_json::from_value::<Plan>(mutant) {
            Ok(mutant) if without_empty(&mutant) == without_empty(plan) => true,
            Ok(mutant) => accepts(random, &mutant, &key)?,
            Err(_) => false,
        };
        changed.count(key, !is_accepted);
    }
    Ok(())
}

/// A plan may put tensors without bytes anywhere, or leave them out.
fn without_empty(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.tensors_mut().retain(|tensor| tensor.size > 0);
    for body in plan.bodies_mut() {
        body.plan = without_empty(&body.plan);
    }
    plan
}

/// The sequence in the order of a plan, if that is possible.
fn in_order(sequence: &OpSequence, plan: &Plan) -> Option<OpSequence> {
    if plan.order().is_empty() {
        Some(sequence.clone())
    } else {
        sequence.permuted(plan.order()).ok()
    }
}

#[test]
fn every_key_of_a_plan_of_a_sequence() {
    let mut changed = Changed::default();
    let one = |random: &mut Unstructured<'_>| {
        let Ok(sequence) = rich_sequence(random)? else { return Ok(()) };
        let strategies = [Strategy::FirstFit, Strategy::Best, *random.choose(Strategy::ALL)?];
        let mut planner = Planner::new()
            .strategy(*random.choose(&strategies)?)
            .lowering(all_options().nth(random.choose_index(16)?).unwrap())
            .alignment(1 << random.int_in_range(0..=3)?)
            .limits(Limits::default().nodes(100));
        if random.ratio(1, 4)? {
            planner = planner.padding(random.int_in_range(1..=4)?);
        }
        if random.ratio(1, 3)? {
            let fast = Pool::new("fast").capacity(random.int_in_range(1..=60)?).cost(1);
            let slow = if random.ratio(1, 2)? {
                Pool::new("slow").cost(3).largest(64)
            } else {
                Pool::new("slow").cost(3).reserved(8..16)
            };
            planner = planner.pools([fast, slow]);
        }
        let plan = if random.ratio(1, 6)? {
            let limits = Limits::default().nodes(100);
            planner.plan_reordered(&sequence, limits).map(|found| found.plan)
        } else {
            planner.plan(&sequence)
        };
        let Ok(plan) = plan else { return Ok(()) };
        change(random, &plan, &mut changed, |random, mutant, key| {
            let Some(run) = in_order(&sequence, mutant) else { return Ok(false) };
            if !verify(&run, mutant).is_empty() {
                return Ok(false);
            }
            let shown = || {
                let (run, right) = (serde_json::to_string(&run), serde_json::to_string(&plan));
                let wrong = serde_json::to_string(mutant).unwrap();
                format!("{key}\n{}\n{}\n{wrong}", run.unwrap(), right.unwrap())
            };
            assert_eq!(execute(&run, mutant), [], "{}", shown());
            let outcome = machine::run(&run, mutant, random)?;
            assert_eq!(outcome, Ok(()), "{}", shown());
            assert!(is_information(key) || is_of_caller(key) || is_place(key), "{}", shown());
            Ok(true)
        })
    };
    times(150, one);
    changed.report(|key| is_information(key) || is_of_caller(key));
}

#[test]
fn every_key_of_a_plan_of_a_problem() {
    let mut changed = Changed::default();
    let one = |random: &mut Unstructured<'_>| {
        let (text, problem) = if random.ratio(1, 3)? {
            let wild = Wild { chunks: 8, steps: 8, size: 12, alignment: true };
            let problem = random_problem(random, wild)?;
            (serde_json::to_value(&problem).unwrap(), problem)
        } else {
            let text = constraints::random_problem(&mut Dice(random.arbitrary()?));
            let Ok(problem) = serde_json::from_value::<Problem>(text.clone()) else {
                return Ok(());
            };
            (text, problem)
        };
        let strategies = [Strategy::FirstFit, Strategy::Best, *random.choose(Strategy::ALL)?];
        let planner = Planner::new()
            .strategy(*random.choose(&strategies)?)
            .limits(Limits::default().nodes(100));
        let Ok(plan) = planner.plan(&problem) else { return Ok(()) };
        let lists_pools = text["pools"].as_array().is_some_and(|pools| !pools.is_empty());
        change(random, &plan, &mut changed, |_, mutant, key| {
            if !verify(&problem, mutant).is_empty() {
                return Ok(false);
            }
            let shown = || {
                let (right, wrong) = (serde_json::to_string(&plan), serde_json::to_string(mutant));
                format!("{key}\n{text}\n{}\n{}", right.unwrap(), wrong.unwrap())
            };
            assert!(judge::is_right(&text, &spots(&problem, mutant)), "{}", shown());
            let is_of_caller = !lists_pools && is_of_caller(key);
            let is_name = key == "chunks[].name";
            let may_differ = is_information(key) || is_place(key) || is_of_caller || is_name;
            // Overwrites need not be accepted.
            let is_link = key.starts_with("chunks[].overwrites");
            assert!(may_differ || is_link, "{}", shown());
            Ok(true)
        })
    };
    times(600, one);
    changed.report(is_information);
}

/// The places that a plan gives, by the position of the chunk in the problem.
fn spots(problem: &Problem, plan: &Plan) -> Vec<Spot> {
    let place = |id: u64| plan.chunks().iter().position(|chunk| chunk.id == id).unwrap();
    let position = |id: u64| problem.ids().position(|chunk| problem.number(chunk) == id).unwrap();
    problem
        .ids()
        .map(|chunk| {
            let planned = &plan.chunks()[place(problem.number(chunk))];
            let over = planned.overwrites.filter(|_| planned.size > 0);
            Spot {
                pool: planned.pool,
                offset: planned.offset,
                overwrites: over.map(|link| {
                    let distance = link.offset.cast_signed() - link.below.cast_signed();
                    (position(plan.chunks()[link.chunk].id), distance)
                }),
            }
        })
        .collect()
}

/// A file whose only entries are right or left out is the same plan.
#[test]
fn a_plan_file_with_an_unknown_key_is_refused() {
    let plan = Planner::new().plan(&Problem::builder().build().unwrap()).unwrap();
    let mut file = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<Plan>(file.clone()).unwrap(), plan);
    file["other"] = Value::Null;
    assert!(serde_json::from_value::<Plan>(file).is_err());
}
