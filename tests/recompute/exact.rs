//! Training steps of 41 to 63 operators, whose least costs CP-SAT has proven: `benches/recompute_exact.py` prints them.

use memplan::{Limits, OpSequence, Planner, recompute::Recomputed};
use rstest::rstest;

use super::curves::shared_step;
use crate::common::expansion;

/// The costs are least for chunks in multiples of this.
const ALIGNMENT: u64 = 64;

fn fixture(name: &str) -> OpSequence {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recompute");
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn is_least(step: &OpSequence, capacity: u64, cost: u64) {
    let planner = Planner::new().alignment(ALIGNMENT);
    let found = match planner.recompute(step, capacity, Limits::default()).unwrap() {
        Recomputed::Found(found) => found,
        other => panic!("{other:?}"),
    };
    assert_eq!(expansion::check(step, &found.sequence), Ok(found.extra_cost));
    assert_eq!(found.extra_cost, cost);
    assert!(found.cost_bound <= cost);
}

/// The first capacity of each step is its least peak.
#[rstest]
#[case("unet", 1_006_848, 1601)]
#[case("unet", 1_162_739, 943)]
#[case("residual", 733_440, 986)]
#[case("residual", 910_489, 467)]
#[case("tied", 1_442_112, 5756)]
#[case("tied", 1_492_582, 5548)]
#[case("tied", 1_543_052, 4348)]
#[case("lstm", 1_703_936, 1378)]
#[case("mlp", 6_296_704, 8369)]
fn the_cost_is_least(#[case] name: &str, #[case] capacity: u64, #[case] cost: u64) {
    is_least(&fixture(name), capacity, cost);
}

#[rstest]
#[case("t_gpt1", 1_883_456, 6870)]
#[case("t_gpt1", 2_156_505, 2710)]
#[case("t_vit1", 3_725_696, 11_132)]
#[case("t_vit1", 3_793_484, 8455)]
#[case("t_vit1", 4_147_788, 4988)]
fn the_cost_of_shared_steps_is_least(#[case] name: &str, #[case] capacity: u64, #[case] cost: u64) {
    if let Some(step) = shared_step(name) {
        is_least(&step, capacity, cost);
    }
}
