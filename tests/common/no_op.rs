//! Constraints that bind nothing: each variant of a problem has the same plans as the problem itself.

use memplan::{Problem, search::Layout};
use serde_json::{Value, json};

/// The variants of a problem without constraints, by name. One pins a chunk where a layout puts it.
pub fn variants(problem: &Problem, layout: &Layout) -> Vec<(&'static str, Problem)> {
    let plain: Value = serde_json::to_value(problem).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut file = plain.clone();
        file["format"] = "memplan-problem/2".into();
        change(&mut file);
        serde_json::from_value(file).unwrap()
    };
    let sum = problem.naive_size();
    let largest = problem.roots().max_by_key(|&root| problem.chunk(root).size);
    let mut variants = vec![
        ("large pool", with(&|file| file["pools"] = json!([{"name": "p", "capacity": sum}]))),
        (
            "tiny pool",
            with(&|file| {
                let tiny = json!({"name": "tiny", "capacity": 1, "cost": 1});
                file["pools"] = json!([{"name": "p"}, tiny]);
            }),
        ),
        (
            "reserved above",
            with(&|file| file["pools"] = json!([{"name": "p", "reserved": [[sum, sum + 4096]]}])),
        ),
        (
            "whole windows",
            with(&|file| {
                for chunk in file["chunks"].as_array_mut().unwrap() {
                    let (begin, end, high) = (&chunk["begin"], &chunk["end"], &chunk["size"]);
                    if *high != 0 {
                        let window = json!({"begin": begin, "end": end, "low": 0, "high": high});
                        chunk["windows"] = json!([window]);
                    }
                }
            }),
        ),
        (
            "clocks",
            with(&|file| {
                file["streams"] = 1.into();
                for chunk in file["chunks"].as_array_mut().unwrap() {
                    for key in ["begin", "end"] {
                        chunk[key] = json!([chunk[key]]);
                    }
                }
            }),
        ),
    ];
    if let Some(chunk) = largest {
        let pinned = with(&|file| {
            file["chunks"][chunk.index()]["pin"] = json!({"offset": layout.offset(chunk)});
        });
        variants.push(("pin", pinned));
    }
    variants
}
