//! Properties of lowering and planning on random inputs.

use crate::common::{properties, seeds::times};

#[test]
fn random_sequences_run_as_planned_by_all_with_all_options() {
    let (mut planned, mut asked) = (0, 0);
    times(10, |random| {
        let (plans, of) = properties::sequences_run_as_planned(random)?;
        planned += plans;
        asked += of;
        Ok(())
    });
    eprintln!("{planned} plans of {asked} asked for");
    assert!(planned * 2 > asked, "{planned} plans of {asked} asked for");
}

#[test]
fn plans_change_with_the_problem_as_they_must() {
    let mut cases = 0;
    times(2000, |random| {
        cases += 1;
        properties::problems_are_planned_rightly(random)
    });
    eprintln!("{cases} problems, each planned five times");
}

#[test]
fn one_more_operator_never_reduces_live_bytes() {
    times(150, properties::one_more_operator_never_reduces_live_bytes);
}
