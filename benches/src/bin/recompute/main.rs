//! Measures recomputation under a budget on training steps.
//!
//! `cargo run --release --bin recompute -- [--nodes N] [--curve POINTS] [--capacity BYTES]... FILE...` reads
//! operator sequences. Where a file of costs lies beside one, `NAME.costs.json`, it gives `cost` and `once`
//! by operator. For each capacity, by default parts of the given peak, a line shows what was found.

use std::{fs, process::ExitCode, time::Instant};

use memplan::{Limits, OpSequence, Planner, recompute::Recomputed};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut nodes, mut points, mut capacities, mut files) = (None, None, Vec::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|value| value.parse::<u64>().ok());
            value.ok_or(format!("{argument} needs a number"))
        };
        match &*argument {
            "--nodes" => nodes = Some(number()?),
            "--curve" => points = Some(number()?),
            "--capacity" => capacities.push(number()?),
            _ => files.push(argument),
        }
    }
    for file in files {
        let sequence = read(&file)?;
        let limits = nodes.map_or_else(Limits::default, |nodes| Limits::default().nodes(nodes));
        match points {
            Some(points) => print_curve(&file, &sequence, limits, points)?,
            None => print_capacities(&file, &sequence, limits, &capacities)?,
        }
    }
    Ok(())
}

fn read(file: &str) -> Result<OpSequence, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut json: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    if let Ok(costs) = fs::read_to_string(file.replace(".json", ".costs.json")) {
        let costs: serde_json::Value =
            serde_json::from_str(&costs).map_err(|error| error.to_string())?;
        for operator in json["operators"].as_array_mut().into_iter().flatten() {
            let of = &costs[operator["name"].as_str().unwrap_or_default()];
            (operator["cost"], operator["once"]) = (of["cost"].clone(), of["once"].clone());
        }
    }
    serde_json::from_value(json).map_err(|error| format!("{file}: {error}"))
}

fn print_capacities(
    file: &str,
    sequence: &OpSequence,
    limits: Limits,
    capacities: &[u64],
) -> Result<(), String> {
    let planner = Planner::new();
    let full = planner.recompute(sequence, u64::MAX, Limits::default());
    let full = full.map_err(|error| error.to_string())?;
    let Recomputed::Found(full) = full else {
        return Err("no limit, and it does not fit".to_owned());
    };
    let parts =
        [9, 75, 6, 5].map(|part| full.given_peak * part / if part == 75 { 100 } else { 10 });
    let capacities = if capacities.is_empty() { &parts } else { capacities };
    println!("{file}: peak {}, bound {}, cost {}", full.given_peak, full.peak_bound, full.cost);
    for &capacity in capacities {
        let start = Instant::now();
        let found = planner.recompute(sequence, capacity, limits);
        let found = found.map_err(|error| error.to_string())?;
        let seconds = start.elapsed().as_secs_f64();
        match found {
            Recomputed::Found(found) => println!(
                "  {capacity} extra {} bound {} peak {} runs {} nodes {} seconds {seconds:.2}",
                found.extra_cost,
                found.cost_bound,
                found.peak,
                found.runs_twice().count(),
                found.nodes
            ),
            other => println!("  {capacity} {other:?} seconds {seconds:.2}"),
        }
    }
    Ok(())
}

fn print_curve(
    file: &str,
    sequence: &OpSequence,
    limits: Limits,
    points: u64,
) -> Result<(), String> {
    let start = Instant::now();
    let points = usize::try_from(points).map_err(|error| error.to_string())?;
    let curve = Planner::new().recompute_curve(sequence, points, limits);
    let curve = curve.map_err(|error| error.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    if let Some(last) = curve.last() {
        println!(
            "{file}: peak {}, bound {}, cost {}, seconds {seconds:.2}",
            last.given_peak,
            last.peak_bound,
            last.given_cost()
        );
    }
    for found in &curve {
        println!(
            "  {} extra {} bound {} peak {}",
            found.capacity, found.extra_cost, found.cost_bound, found.peak
        );
    }
    Ok(())
}
