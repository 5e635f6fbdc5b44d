//! The default strategy answers as `MegEngine` does, to the last offset.

mod common;

use common::shared;
use memplan::{Planner, Problem, Strategy, problem::ChunkId};
use serde_json::Value;

fn problem(case: &Value) -> Problem {
    let number = |value: &Value| value.as_u64().unwrap();
    let id = |value: &Value| ChunkId(u32::try_from(number(value)).unwrap());
    let mut problem =
        Problem::builder().alignment(number(&case["alignment"])).padding(number(&case["padding"]));
    for chunk in case["chunks"].as_array().unwrap() {
        problem.chunk(number(&chunk[0])..number(&chunk[1]), number(&chunk[2]));
    }
    for request in case["overwrites"].as_array().unwrap() {
        problem.overwrite(id(&request[0]), id(&request[1]), number(&request[2]));
    }
    problem.build().unwrap()
}

#[test]
fn pushdown_equals_the_recorded_offsets_on_every_case() {
    let Some(golden) = shared("data/golden/megengine.json") else { return };
    let golden: Value = serde_json::from_str(&golden).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 200);
    for (index, case) in cases.iter().enumerate() {
        let problem = problem(case);
        let plan = Planner::new().strategy(Strategy::Pushdown).plan_problem(&problem).unwrap();
        let offsets: Vec<u64> = plan.chunks.iter().map(|chunk| chunk.offset).collect();
        let recorded: Vec<u64> = case["pushdown"]["offsets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|offset| offset.as_u64().unwrap())
            .collect();
        assert_eq!(
            problem.links_taken() as u64,
            case["links_taken"].as_u64().unwrap(),
            "case {index}: links"
        );
        assert_eq!(offsets, recorded, "case {index}: offsets");
        assert_eq!(
            plan.pool_size,
            case["pushdown"]["total"].as_u64().unwrap(),
            "case {index}: total"
        );
        if problem.alignment() == 1 || !problem.has_links() {
            assert_eq!(
                plan.lower_bound,
                case["lower_bound"].as_u64().unwrap(),
                "case {index}: bound"
            );
        }
    }
}
