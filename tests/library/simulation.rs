//! Random sequences with everything that a sequence can say run byte by byte as planned, by every strategy and
//! with every option; every plan verifies, before and after it is written to a file.
//!
//! The test prints on standard error what it has tried. It runs for longer with `MEMPLAN_SIMULATION_MS`, in
//! milliseconds.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use memplan::{
    InputRef, Limits, OpSequence, Plan, PlanError, Planner, Problem, Strategy,
    lower::LoweringOptions,
    problem::Pool,
    verify::{execute, verify},
};

use crate::common::{
    constraints::{self, Dice},
    machine,
    properties::all_options,
    random::{Wild, random_problem},
    rich::rich_sequence,
    seeds::times,
};

/// What was tried, and how often.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, usize>);

impl Tally {
    fn count(&mut self, what: &'static str, is_so: bool) {
        *self.0.entry(what).or_default() += usize::from(is_so);
    }
}

/// A planner with random options, sometimes with pools and a pin. `names` can be pinned.
/// The alignment and the padding are at least as given.
fn planner(
    random: &mut Unstructured<'_>,
    names: &[String],
    (least_alignment, least_padding): (u64, u64),
    tally: &mut Tally,
) -> Result<Planner<'static>> {
    // These plan everything.
    let full = [Strategy::FirstFit, Strategy::Best, Strategy::Optimal];
    let strategies = if random.ratio(1, 3)? { &full[..] } else { Strategy::ALL };
    let strategy = *random.choose(strategies)?;
    let lowering: LoweringOptions = all_options().nth(random.choose_index(16)?).unwrap();
    let lowering = lowering.gathers(random.ratio(3, 4)?);
    let lowering = match random.int_in_range(0..=3)? {
        0 => lowering.overlap_limit(Some(random.int_in_range(0..=60)?)),
        _ => lowering,
    };
    let alignment = least_alignment.max(1 << random.int_in_range(0..=4)?);
    let padding = if random.ratio(1, 4)? { random.int_in_range(0..=5)? } else { 0 };
    let padding = least_padding.max(padding);
    let mut planner = Planner::new()
        .strategy(strategy)
        .lowering(lowering)
        .alignment(alignment)
        .padding(padding)
        .limits(Limits::default().nodes(200));
    let has_pools = random.ratio(1, 4)?;
    let mut pool_names: Vec<&str> = vec![""];
    if has_pools {
        pool_names = vec!["fast", "slow"];
        pool_names.truncate(random.int_in_range(1..=2)?);
        let mut pools = Vec::new();
        for (at, name) in pool_names.iter().enumerate() {
            let mut pool = Pool::new(*name).cost(random.int_in_range(0..=3)?);
            match random.int_in_range(0..=4)? {
                0 if at == 0 => pool = pool.capacity(random.int_in_range(1..=90)?),
                1 => pool = pool.largest(alignment * random.int_in_range(1..=8)?),
                2 => {
                    let low = random.int_in_range(0..=20)?;
                    pool = pool.reserved(low..low + random.int_in_range(1..=9)?);
                }
                _ => {}
            }
            pools.push(pool);
        }
        planner = planner.pools(pools);
    }
    let has_pin = !names.is_empty() && random.ratio(1, 6)?;
    if has_pin {
        let offset = alignment * random.int_in_range(0..=5)?;
        let pool = *random.choose(&pool_names)?;
        planner = planner.pin(random.choose(names)?.as_str(), pool, offset);
    }
    tally.count("with pools", has_pools);
    tally.count("with a pin", has_pin);
    Ok(planner)
}

/// The plan of the answer whether a plan fits. It is right, whatever the answer.
fn fit<'i>(
    random: &mut Unstructured<'_>,
    planner: &Planner<'_>,
    input: impl Into<InputRef<'i>>,
) -> Result<std::result::Result<Plan, PlanError>> {
    Ok(planner.fit(input, random.int_in_range(0..=160)?))
}

/// Checks a plan of a sequence in every way.
fn check(random: &mut Unstructured<'_>, sequence: &OpSequence, plan: &Plan) -> Result<()> {
    let ordered;
    let sequence = if plan.order().is_empty() {
        sequence
    } else {
        ordered = sequence.permuted(plan.order()).unwrap();
        &ordered
    };
    let shown = || {
        let sequence = serde_json::to_string(sequence).unwrap();
        format!("{sequence}\n{}", serde_json::to_string(plan).unwrap())
    };
    for _ in 0..if sequence.streams() > 1 { 3 } else { 1 } {
        if let Err(fault) = machine::run(sequence, plan, random)? {
            panic!("{fault}\n{}\nverify: {:?}", shown(), verify(sequence, plan));
        }
    }
    assert_eq!(verify(sequence, plan), [], "{}", shown());
    assert_eq!(execute(sequence, plan), [], "{}", shown());
    check_file(plan);
    Ok(())
}

/// Checks that a plan is the same once it is written and read.
fn check_file(plan: &Plan) {
    // No file holds the bound of an answer that nothing fits.
    let mut plan = plan.clone();
    *plan.content_bound_mut() = None;
    let plan = &plan;
    let text = serde_json::to_string(plan).unwrap();
    let read: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(read, *plan, "{text}");
}

#[test]
fn every_plan_of_a_sequence_runs_byte_by_byte_and_verifies() {
    let mut tally = Tally::default();
    let one = |random: &mut Unstructured<'_>| {
        let Ok(sequence) = rich_sequence(random)? else {
            tally.count("no sequence", true);
            return Ok(());
        };
        tally.count("sequences", true);
        for _ in 0..4 {
            let names = sequence.tensors().iter().map(|tensor| tensor.name.to_string());
            let planner = planner(random, &names.collect::<Vec<_>>(), (1, 0), &mut tally)?;
            let plan = match random.int_in_range(0..=7)? {
                0 => planner
                    .plan_reordered(&sequence, Limits::default().nodes(200))
                    .map(|found| found.plan),
                1 => fit(random, &planner, &sequence)?,
                _ => planner.plan(&sequence),
            };
            let plan = match plan {
                Ok(plan) => plan,
                Err(PlanError::Unsupported { .. }) => continue,
                Err(_) => {
                    tally.count("no plan", true);
                    continue;
                }
            };
            check(random, &sequence, &plan)?;
            tally.count("plans", true);
            tally.count("with bodies", !plan.bodies().is_empty());
            tally.count("on streams", sequence.streams() > 1);
            tally.count("with parts", !plan.parts().is_empty());
            tally.count("in several pools", plan.pools().len() > 1);
            tally.count("in another order", !plan.order().is_empty());
            tally.count(
                "with overlaps",
                plan.chunks().iter().any(|c| c.overwrites.is_some_and(|link| link.below > 0)),
            );
            tally.count("with overwrites", plan.chunks().iter().any(|c| c.overwrites.is_some()));
        }
        Ok(())
    };
    times(200, one);
    eprintln!("{:?}", tally.0);
}

/// The same for problems, as far as they can be: they have no operators to run.
#[test]
fn every_plan_of_a_problem_verifies() {
    let mut tally = Tally::default();
    let one = |random: &mut Unstructured<'_>| {
        let problem = if random.ratio(1, 3)? {
            random_problem(random, Wild { chunks: 8, steps: 8, size: 12, alignment: true })?
        } else {
            let text = constraints::random_problem(&mut Dice(random.arbitrary()?)).to_string();
            let Ok(problem) = serde_json::from_str::<Problem>(&text) else { return Ok(()) };
            problem
        };
        let names: Vec<String> = problem.ids().map(|chunk| problem.name(chunk)).collect();
        for _ in 0..4 {
            let least = (problem.alignment(), problem.padding());
            let planner = planner(random, &names, least, &mut tally)?;
            let plan = match random.int_in_range(0..=3)? {
                0 => fit(random, &planner, &problem)?,
                _ => planner.plan(&problem),
            };
            let Ok(plan) = plan else {
                tally.count("no plan", true);
                continue;
            };
            tally.count("plans", true);
            tally.count("of unconstrained problems", problem.is_unconstrained());
            tally.count("in several pools", plan.pools().len() > 1);
            let found = verify(&problem, &plan);
            let shown = || {
                let problem = serde_json::to_string(&problem).unwrap();
                format!("{problem}\n{}", serde_json::to_string(&plan).unwrap())
            };
            assert_eq!(found, [], "{}", shown());
            check_file(&plan);
        }
        Ok(())
    };
    times(1000, one);
    eprintln!("{:?}", tally.0);
}
