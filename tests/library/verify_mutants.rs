//! Plans changed in any field are rejected exactly when the slow checker, which goes byte by byte
//! and step by step, rejects them.
//!
//! Each test prints on standard error how many changes it made.

#![cfg(feature = "files")]

use std::collections::BTreeMap;

use crate::common::{
    mutants::{FIELDS, mutate},
    oracle::{is_right_for_problem, is_right_for_sequence},
    properties::all_options,
    random::{Wild, random_problem, random_sequence},
    seeds::times,
};
use memplan::{
    OpSequence, Operator, Output, Plan, Planner, Strategy,
    verify::{Figure, Violation, execute, verify},
};
use rstest::rstest;
use serde_json::json;

/// The number of changes of each field, and of those in plans that were wrong.
#[derive(Default)]
struct Tally {
    fields: BTreeMap<&'static str, (usize, usize)>,
    right: usize,
    wrong: usize,
}

impl Tally {
    fn count(&mut self, fields: &[&'static str], is_right: bool) {
        for field in fields {
            let (tried, wrong) = self.fields.entry(field).or_default();
            *tried += 1;
            *wrong += usize::from(!is_right);
        }
        self.right += usize::from(is_right);
        self.wrong += usize::from(!is_right);
    }

    /// Every field was changed so that a plan was wrong; some changes were harmless.
    fn check(&self, fields: impl Iterator<Item = &'static str>) {
        eprintln!("{} mutants are right and {} wrong: {:?}", self.right, self.wrong, self.fields);
        for field in fields {
            let &(tried, wrong) = self.fields.get(field).unwrap_or(&(0, 0));
            assert!(wrong > 0, "of {tried} changes of {field} none made a plan wrong");
        }
        assert!(self.right > 0);
    }
}

/// A regression test: the mutants once changed only places, links and the pool.
#[test]
fn mutants_of_plans_of_problems() {
    let mut tally = Tally::default();
    times(3000, |random| {
        let wild = Wild { chunks: 8, steps: 8, size: 12, alignment: true };
        let problem = random_problem(random, wild)?;
        let strategy = *random.choose(Strategy::ALL)?;
        let plan = Planner::new().strategy(strategy).plan(&problem).unwrap();
        assert!(is_right_for_problem(&problem, &plan), "{problem:#?}\n{plan:#?}");
        for _ in 0..8 {
            let mut mutant = plan.clone();
            let mut fields = vec![mutate(random, &mut mutant)?];
            if random.ratio(1, 4)? {
                fields.push(mutate(random, &mut mutant)?);
            }
            let violations = verify(&problem, &mutant);
            let is_right = is_right_for_problem(&problem, &mutant);
            assert_eq!(
                violations.is_empty(),
                is_right,
                "{fields:?}: {problem:#?}\n{mutant:#?}\n{violations:#?}"
            );
            tally.count(&fields, is_right);
        }
        Ok(())
    });
    // A problem has no tensors, and chunks are found by id.
    let unchecked = |field: &&str| field.starts_with("tensor") || *field == "chunk.name";
    tally.check(FIELDS.into_iter().filter(|field| !unchecked(field)));
}

/// A regression test: `verify` once took lifetimes, bounds, steps and links from the plans of
/// sequences unchecked.
#[test]
fn mutants_of_plans_of_sequences() {
    let mut tally = Tally::default();
    times(500, |random| {
        let Ok(sequence) = random_sequence(random, 8)? else { return Ok(()) };
        let options = all_options().nth(random.choose_index(16)?).unwrap_or_default();
        let strategy = *random.choose(Strategy::ALL)?;
        let alignment = 1 << random.int_in_range(0..=3)?;
        let padding = if random.ratio(1, 4)? { random.int_in_range(0..=3)? } else { 0 };
        // The oracle does not support gathers.
        let planner = Planner::new().strategy(strategy).lowering(options.gathers(false));
        let planner = planner.alignment(alignment).padding(padding);
        let Ok(plan) = planner.plan(&sequence) else { return Ok(()) };
        // `by_byte` judges chunks that are needed in parts.
        if plan.has_windows() {
            return Ok(());
        }
        assert!(is_right_for_sequence(&sequence, &plan), "{sequence:#?}\n{plan:#?}");
        for _ in 0..12 {
            let mut mutant = plan.clone();
            let mut fields = vec![mutate(random, &mut mutant)?];
            if random.ratio(1, 4)? {
                fields.push(mutate(random, &mut mutant)?);
            }
            let violations = verify(&sequence, &mutant);
            let is_right = is_right_for_sequence(&sequence, &mutant);
            assert_eq!(
                violations.is_empty(),
                is_right,
                "{fields:?}: {sequence:#?}\n{mutant:#?}\n{violations:#?}"
            );
            // A framework can use a correct plan.
            let executed = execute(&sequence, &mutant);
            assert!(
                executed.is_empty() || !is_right,
                "{fields:?}: {sequence:#?}\n{mutant:#?}\n{executed:#?}"
            );
            tally.count(&fields, is_right);
        }
        Ok(())
    });
    tally.check(FIELDS.into_iter());
}

/// `y` and `z` are written over different bytes of `x` in one step. In that step their memory is that of `x`, so the
/// padding of `y` may lie over `z`, as nothing is written to padding. Later it may not.
#[rstest]
#[case::values_meet(4, 2, false)]
#[case::padding_meets_a_value(7, 2, true)]
#[case::nothing_meets(8, 2, true)]
#[case::padding_meets_a_value_later(7, 3, false)]
#[case::nothing_meets_later(8, 3, true)]
fn padding_of_two_overwriters_of_a_chunk(
    #[case] offset: u64,
    #[case] end: u64,
    #[case] is_right: bool,
) {
    let both = Operator::new("both").inputs(["x"]);
    let both = both.output(Output::new("y", 5).overwrites("x"));
    let read = Operator::new("read").inputs(if end == 3 { vec!["y", "z"] } else { vec![] });
    let sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("x", 20)))
        .operator(both.output(Output::new("z", 12).overwrites_at("x", offset)))
        .operator(read)
        .build()
        .unwrap();
    let over = |offset| json!({"chunk": 0, "offset": offset});
    let text = json!({
        "format": "memplan-plan/1", "pool_size": 23, "lower_bound": 23, "naive_size": 46,
        "alignment": 1, "padding": 3, "steps": 3, "peak_step": 0,
        "chunks": [
            {"id": 0, "name": "x", "size": 20, "begin": 0, "end": 2, "offset": 0},
            {"id": 1, "name": "y", "size": 5, "begin": 1, "end": end, "offset": 0, "overwrites": over(0)},
            {"id": 2, "name": "z", "size": 12, "begin": 1, "end": end, "offset": offset,
                "overwrites": over(offset)},
        ],
        "tensors": [
            {"name": "x", "chunk": 0, "offset": 0, "size": 20},
            {"name": "y", "chunk": 1, "offset": 0, "size": 5},
            {"name": "z", "chunk": 2, "offset": offset, "size": 12},
        ],
    });
    let plan: Plan = serde_json::from_value(text).unwrap();
    let violations = verify(&sequence, &plan);
    assert_eq!(violations.is_empty(), is_right, "{violations:#?}");
    assert_eq!(is_right_for_sequence(&sequence, &plan), is_right);
}

/// A regression test: 663 of 1 078 such edits once passed.
#[test]
fn no_edit_of_a_lifetime_in_a_plan_of_a_sequence_passes() {
    let mut edits = 0;
    times(300, |random| {
        let Ok(sequence) = random_sequence(random, 12)? else { return Ok(()) };
        let options = all_options().nth(random.choose_index(16)?).unwrap_or_default();
        let planner = Planner::new().strategy(Strategy::Pushdown).lowering(options);
        let Ok(plan) = planner.plan(&sequence) else { return Ok(()) };
        for at in 0..plan.chunks().len() {
            for edit in 0..5 {
                let mut edited = plan.clone();
                let chunk = &mut edited.chunks_mut()[at];
                match edit {
                    0 => chunk.begin += 1,
                    1 => chunk.begin = chunk.begin.wrapping_sub(1),
                    2 => chunk.end += 1,
                    3 => chunk.end -= 1,
                    _ => chunk.end += 1_000,
                }
                let violations = verify(&sequence, &edited);
                let is_lifetime = |violation: &Violation| {
                    matches!(
                        violation,
                        Violation::Changed { field: Figure::Begin | Figure::End, .. }
                    )
                };
                // A workspace is known by its step.
                let is_workspace = |violation: &Violation| {
                    matches!(violation, Violation::Missing { .. })
                        && edited.chunks()[at].name.contains(".workspace")
                };
                assert!(
                    violations.iter().any(|v| is_lifetime(v) || is_workspace(v)),
                    "{sequence:#?}\n{edited:#?}\n{violations:#?}"
                );
                edits += 1;
            }
        }
        Ok(())
    });
    eprintln!("{edits} edits of lifetimes");
    assert!(edits > 0);
}

/// Every mutant that `verify` accepts also runs, and most mutants are rejected.
#[test]
fn mutants_of_plans_with_parts() {
    let (mut accepted, mut found) = (0, 0);
    times(2000, |random| {
        let Ok(sequence) = random_sequence(random, 8)? else { return Ok(()) };
        let options = all_options().nth(random.choose_index(16)?).unwrap_or_default();
        let planner = Planner::new().strategy(Strategy::FirstFit).lowering(options);
        let Ok(plan) = planner.alignment(1 << random.int_in_range(0..=3)?).plan(&sequence) else {
            return Ok(());
        };
        if plan.parts().is_empty() {
            return Ok(());
        }
        for _ in 0..12 {
            let mut mutant = plan.clone();
            let field = if random.ratio(1, 3)? {
                let part = random.choose_index(mutant.parts().len())?;
                let chunks = mutant.chunks().len();
                match random.int_in_range(0..=3)? {
                    0 => drop(mutant.parts_mut().remove(part)),
                    1 => mutant.parts_mut()[part].offset += random.int_in_range(1..=4)?,
                    2 => mutant.parts_mut()[part].chunk = random.choose_index(chunks)?,
                    _ => mutant.parts_mut()[part].whole = random.choose_index(chunks)?,
                }
                "parts"
            } else {
                mutate(random, &mut mutant)?
            };
            let is_right = verify(&sequence, &mutant).is_empty();
            let executed = execute(&sequence, &mutant);
            assert!(executed.is_empty() || !is_right, "{field}: {sequence:#?}\n{mutant:#?}");
            assert!(!is_right || field != "parts" || mutant == plan, "{sequence:#?}\n{mutant:#?}");
            *(if is_right { &mut accepted } else { &mut found }) += 1;
        }
        Ok(())
    });
    assert!(accepted > 0 && found > 4 * accepted, "{accepted} accepted, {found} found");
}
