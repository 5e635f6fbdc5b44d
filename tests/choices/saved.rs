//! Small graphs on which claims were wrong, with the right answers, and graphs whose right answers are known from
//! elsewhere.

use std::fs;

use memplan::{Limits, OpSequence, PlanError};
use rstest::rstest;

use crate::common::{project, shared};

use super::{
    claims::{Claim, Truth, check},
    draw::{Case, World},
    model::{Memory, Setting},
    plans::{objective, planner},
};

/// What is right about a graph: the pool, or the traffic and the sizes of the slow and of the fast pool; and the pool
/// in the best order.
struct Right {
    best: &'static [u128],
    in_best_order: Option<u64>,
}

fn setting(alignment: u64, inputs_in_pool: bool) -> Setting {
    Setting { alignment, inputs_in_pool, pools: None }
}

/// A fast pool with a capacity and a cost, and a slow one with a cost and without a limit.
fn pools(alignment: u64, inputs_in_pool: bool, [capacity, fast, slow]: [u64; 3]) -> Setting {
    let fast = Memory { capacity: Some(capacity), cost: fast };
    let pools = Some([fast, Memory { capacity: None, cost: slow }]);
    Setting { pools, ..setting(alignment, inputs_in_pool) }
}

/// Two pools with capacities and costs.
fn limited(alignment: u64, capacities: [u64; 2], costs: [u64; 2]) -> Setting {
    let pool = |at: usize| Memory { capacity: Some(capacities[at]), cost: costs[at] };
    Setting { pools: Some([pool(0), pool(1)]), ..setting(alignment, false) }
}

const fn pool(size: &'static [u128]) -> Right {
    Right { best: size, in_best_order: None }
}

const fn order(size: &'static [u128], in_best_order: u64) -> Right {
    Right { best: size, in_best_order: Some(in_best_order) }
}

fn saved(name: &str, setting: Setting) -> Case {
    let path = project().join(format!("tests/choices/graphs/{name}.json"));
    let text = fs::read_to_string(path).unwrap();
    Case { sequence: serde_json::from_str::<OpSequence>(&text).unwrap(), setting }
}

fn world(right: &Right) -> World {
    if right.in_best_order.is_some() { World::Orders } else { World::OneStream }
}

/// The oracle's own answer.
fn is_found_by_trying(case: &Case, right: &Right) {
    let truth = Truth::of(case, world(right)).unwrap();
    assert_eq!(truth.best.as_ref().unwrap().objective, right.best);
    let in_best_order = truth.order.as_ref().map(|order| order.best.pool());
    assert_eq!(in_best_order, right.in_best_order);
    let finding = check(Claim::OracleIsRight, case, &truth).unwrap();
    assert!(finding.wrong.is_empty(), "{:?}", finding.wrong);
}

/// The answers of memplan.
fn is_planned(case: &Case, right: &Right) {
    let plan = planner(case).plan(&case.sequence).unwrap();
    assert_eq!(objective(case, &plan), right.best);
    if let Some(best) = right.in_best_order {
        let limits = Limits::default();
        let found = planner(case).plan_reordered(&case.sequence, limits).unwrap();
        assert_eq!(found.plan.pool_size(), best);
        assert!(found.change.lower_bound <= best, "{:?}", found.change);
    }
    let truth = Truth::of(case, world(right)).unwrap();
    for claim in [Claim::Bound, Claim::BoundOfTheseChoices, Claim::Fit] {
        let finding = check(claim, case, &truth).unwrap();
        assert!(finding.wrong.is_empty(), "{:?}", finding.wrong);
    }
    if let &[size] = right.best {
        let fit = planner(case).fit(&case.sequence, size as u64).unwrap();
        assert!(u128::from(fit.pool_size()) <= size, "{fit:?}");
    }
}

/// Declares two tests for each graph.
macro_rules! graphs {
    ($($(#[$attribute:meta])* $name:ident: $setting:expr, $right:expr;)*) => {
        $(
            mod $name {
                use super::*;

                #[test]
                fn is_found_by_trying() {
                    super::is_found_by_trying(&saved(stringify!($name), $setting), &$right);
                }

                #[test]
                $(#[$attribute])*
                fn is_planned() {
                    super::is_planned(&saved(stringify!($name), $setting), &$right);
                }
            }
        )*
    };
}

graphs! {
    view_of_a_part: setting(1, false), pool(&[64]);
    slice_right_before_its_use: setting(1, false), pool(&[76]);
    halves_that_one_operator_overwrites: setting(64, false), pool(&[128]);
    copy_that_saves_a_cell: setting(64, false), pool(&[320]);
    #[ignore = "only a copy of a supplied tensor lets the output lie off the alignment"]
    copy_that_shares_a_cell: setting(4, false), pool(&[8]);
    view_of_an_input: setting(1, true), pool(&[72]);
    view_in_a_better_order: setting(1, true), order(&[96], 64);
    gated_halves: setting(1, false), pool(&[128]);
    half_that_is_read_first: setting(1, false), pool(&[136]);
    halves_on_two_streams: setting(1, false), pool(&[136]);
    updates_of_both_halves: setting(1, false), pool(&[72]);
    update_beside_an_output: setting(1, false), pool(&[64]);
    update_in_the_first_step: setting(1, true), pool(&[3]);
    update_beside_a_view_on_a_stream: setting(1, true), pool(&[3]);
    update_beside_a_reader_on_a_stream: setting(1, false), pool(&[16]);
    update_beside_a_view_of_an_input: setting(1, false), pool(&[2]);
    view_beside_a_small_tensor: setting(64, true), order(&[128], 64);
    gather_of_the_smaller: setting(64, true), pool(&[128]);
    gather_of_one_of_two: setting(1, true), pool(&[96]);
    gather_or_overwrite: setting(1, false), pool(&[48]);
    gathers_that_need_each_other: setting(1, false), pool(&[12]);
    copies_that_two_outputs_overwrite: setting(1, false), pool(&[3]);
    gather_that_aligns_a_part: setting(64, false), pool(&[64]);
    views_in_different_cells: setting(2, false), pool(&[8]);
    gathers_on_two_streams: setting(1, false), pool(&[48]);
    views_of_inputs_on_two_streams: setting(1, true), pool(&[4]);
    overwrite_of_a_part_beside_a_view: setting(1, true), pool(&[11]);
    gathers_of_a_gathered_copy: setting(1, false), pool(&[5]);
    #[ignore = "an overwrite is accepted after all gathers"]
    gather_beside_an_overwrite: setting(1, false), pool(&[9]);
    gather_in_order: setting(1, false), order(&[96], 96);
    gather_in_a_better_order: setting(1, false), order(&[64], 48);
    update_beside_a_view_in_a_better_order: setting(1, false), order(&[2], 1);
    workspace_in_a_better_order: setting(1, false), order(&[6], 5);
    halves_in_a_better_order: setting(1, false), order(&[3], 2);
    views_of_shared_bytes_in_a_better_order: setting(1, false), order(&[7], 5);
    overwrite_in_the_slow_pool: pools(1, false, [64, 1, 20]), pool(&[5248, 128, 64]);
    overwrite_in_the_middle: setting(1, false), pool(&[72]);
    overwrite_on_another_stream: setting(1, false), pool(&[80]);
    overwrite_in_a_better_order: setting(2, false), order(&[4], 2);
    #[ignore = "an overlap has the least distance"]
    overlap_further_below: setting(64, false), pool(&[128]);
    overlap_without_shared_bytes: setting(64, false), pool(&[192]);
    overlap_beside_workspaces: setting(64, false), pool(&[256]);
    overlap_in_a_better_order: setting(64, false), order(&[192], 128);
    overwrite_across_pools: pools(1, false, [48, 2, 3]), pool(&[162, 15, 34]);
    overlap_across_pools: pools(64, false, [64, 2, 20]), pool(&[44, 64, 64]);
    overlap_that_fits_no_pool: limited(64, [65, 1], [1, 3]), pool(&[138, 1, 65]);
    overlap_across_small_pools: limited(2, [1, 17], [1, 3]), pool(&[82, 17, 1]);
    gather_across_pools: pools(64, true, [128, 2, 3]), pool(&[523, 192, 128]);
    gather_in_the_fast_pool: pools(1, true, [64, 2, 20]), pool(&[192, 0, 32]);
}

/// An overlap at a larger distance is not tried, so nothing is proven.
#[test]
fn no_plan_is_found_where_one_exists() {
    let case = saved("overlap_further_below", limited(64, [66, 0], [1, 1]));
    let truth = Truth::of(&case, World::TwoPools).unwrap();
    assert!(truth.best.is_some());
    assert_eq!(planner(&case).plan(&case.sequence), Err(PlanError::NoPlanFound));
}

/// The best plan is not tried, so nothing is claimed about it.
#[rstest]
#[case::gather("gather_beside_an_overwrite")]
#[case::overlap("overlap_beside_an_overwrite")]
fn a_plan_that_is_not_tried_is_not_excluded(#[case] name: &str) {
    let case = saved(name, setting(1, false));
    let truth = Truth::of(&case, World::OneStream).unwrap();
    for claim in [Claim::Bound, Claim::BoundOfTheseChoices, Claim::Fit] {
        let finding = check(claim, &case, &truth).unwrap();
        assert!(finding.wrong.is_empty(), "{:?}", finding.wrong);
    }
}

/// Right answers that others have found.
#[rstest]
#[case::concat("concat_false_proof", setting(1, false), pool(&[136]))]
#[case::gathers("gather_choice_false_proof", setting(1, false), pool(&[72]))]
#[case::halves("disjoint_parts_glu", setting(1, false), pool(&[64]))]
#[case::updates("disjoint_parts_required", setting(1, false), pool(&[72]))]
#[case::links("adversary/proof_links_359", setting(1, false), pool(&[4]))]
#[case::more_links("adversary/proof_links_640", setting(1, false), pool(&[8]))]
#[case::plain_links("adversary/proof_links_plain", setting(1, false), pool(&[7]))]
#[case::order("reorder_concat", setting(1, false), order(&[240], 208))]
#[case::pools("pools_overwrite", pools(1, false, [64, 1, 20]), pool(&[272, 4, 64]))]
#[case::more_pools("adversary/pools_traffic_proof", pools(4, false, [64, 1, 20]), pool(&[4128, 100, 48]))]
fn known_answers_are_found_by_trying(
    #[case] name: &str,
    #[case] setting: Setting,
    #[case] right: Right,
) {
    let Some(text) = shared(&format!("data/repro3/{name}.json")) else { return };
    let case = Case { sequence: serde_json::from_str::<OpSequence>(&text).unwrap(), setting };
    is_found_by_trying(&case, &right);
}
