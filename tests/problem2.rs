//! Problems that are not plain: errors, refusals, places.

#[path = "common/mod.rs"]
mod common;

use memplan::{Problem, problem::ProblemFile};
use serde_json::Value;

const FAMILIES: [&str; 11] = [
    "plain",
    "alignment",
    "pins",
    "holes",
    "parts",
    "streams",
    "choices",
    "pools",
    "buffers",
    "all",
    "handmade",
];

/// The recorded cases, without those that exclude chunks by choices.
fn cases() -> Vec<Value> {
    let mut cases = Vec::new();
    for family in FAMILIES {
        let Some(text) = common::shared(&format!("data/problem2/oracle_{family}.jsonl")) else {
            continue;
        };
        let lines = text.lines().filter(|line| !line.contains("\"when\""));
        cases.extend(lines.map(|line| {
            let mut case: Value = serde_json::from_str(line).unwrap();
            case["family"] = family.into();
            case
        }));
    }
    cases
}

/// Reads a problem, or returns the word of its error.
fn read(text: &str) -> Result<Problem, String> {
    let file: ProblemFile = serde_json::from_str(text).map_err(|error| {
        let is_key = error.to_string().contains("unknown field");
        if is_key { "UnknownKey".to_owned() } else { error.to_string() }
    })?;
    Problem::try_from(file).map_err(|error| {
        let word = format!("{error:?}");
        word.split([' ', '{']).next().unwrap().to_owned()
    })
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
                    .map(|d| serde_json::json!([d.request, format!("{:?}", d.reason)]))
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
        let bound = problem.lower_bound().bytes;
        let best = case["objective"][1].as_u64().unwrap_or(u64::MAX);
        if bound < recorded || bound > best {
            wrong.push(format!("{}: {bound}, recorded {recorded}, best {best}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn optima_are_found_and_proven() {
    let mut wrong = Vec::new();
    let (mut count, mut most) = (0, 0.0);
    for case in cases() {
        let Ok(problem) = read(&case["problem"].to_string()) else { continue };
        if case["error"].is_string() {
            continue;
        }
        count += 1;
        let begun = std::time::Instant::now();
        let planner = memplan::Planner::new().strategy(memplan::Strategy::Optimal);
        let planner = planner.limits(memplan::Limits::default().nodes(20_000_000));
        let found = match planner.plan(&problem) {
            Ok(plan) => format!(
                "{:?} {}",
                if problem.is_plain() { vec![0, plan.pool_size.into()] } else { plan.objective() },
                plan.proven_optimal
            ),
            Err(error) => format!("{error:?}"),
        };
        let recorded = match case["objective"].as_array() {
            Some(objective) => format!(
                "{:?} true",
                objective.iter().map(|x| x.as_u64().unwrap()).collect::<Vec<_>>()
            ),
            None => "Infeasible".to_owned(),
        };
        let took = begun.elapsed().as_secs_f64();
        most = f64::max(most, took);
        if took > 1.0 {
            println!("{} {took:.1}", case["name"]);
        }
        if found != recorded {
            wrong.push(format!("{}: {found}, recorded {recorded}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}, {most}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn first_fit_dump() {
    let mut out = String::new();
    for case in cases() {
        let Ok(problem) = read(&case["problem"].to_string()) else { continue };
        if problem.is_plain() {
            continue;
        }
        let answer = match memplan::planner::first_fit::layout(&problem) {
            Ok(layout) => {
                let chunks: Vec<Value> = problem
                    .ids()
                    .map(|c| {
                        serde_json::json!({
                            "id": problem.labels().number(c),
                            "pool": problem.pools()[layout.pool(c).index()].name,
                            "offset": layout.offset(c)
                        })
                    })
                    .collect();
                let objective: Vec<u64> =
                    layout.objective(&problem).iter().map(|&x| u64::try_from(x).unwrap()).collect();
                serde_json::json!({"name": case["name"], "plan": {"chunks": chunks, "objective": objective}})
            }
            Err(error) => serde_json::json!({"name": case["name"], "error": error.to_string()}),
        };
        out.push_str(&answer.to_string());
        out.push('\n');
    }
    std::fs::write("/tmp/ff.jsonl", out).unwrap();
}
