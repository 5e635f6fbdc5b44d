//! Properties of lowering and planning on random inputs.

use crate::common::{longer, properties};

#[test]
fn random_sequences_run_as_planned_by_all_with_all_options() {
    let (mut planned, mut asked) = (0, 0);
    arbtest::arbtest(|random| {
        let (plans, of) = properties::sequences_run_as_planned(random)?;
        planned += plans;
        asked += of;
        Ok(())
    })
    .budget_ms(1_250 * longer());
    eprintln!("{planned} plans of {asked} asked for");
    assert!(planned * 2 > asked, "{planned} plans of {asked} asked for");
}

#[test]
fn plans_change_with_the_problem_as_they_must() {
    let mut cases = 0;
    arbtest::arbtest(|random| {
        cases += 1;
        properties::problems_are_planned_rightly(random)
    })
    .budget_ms(2_500 * longer());
    eprintln!("{cases} problems, each planned five times");
}

#[test]
fn one_more_operator_never_reduces_live_bytes() {
    arbtest::arbtest(properties::one_more_operator_never_reduces_live_bytes)
        .budget_ms(400 * longer());
}
