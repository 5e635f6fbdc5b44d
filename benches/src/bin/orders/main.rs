//! Measures the search for an order on random relatives of the graphs that it is made for.
//!
//! `cargo run --release --bin orders -- [FAMILY]... [--seeds FIRST..END] [--nodes N] [--save FOLDER]`
//! in the folder of the benchmarks draws one graph of each family from each seed (by default
//! `0..10`), and prints a line for each graph and a line of counts for each family. `--save` writes
//! the graphs as JSON files.

mod families;
mod net;

use std::{fs, path::PathBuf, process::ExitCode, time::Instant};

use families::{FAMILIES, Family};
use memplan::{
    Planner,
    order::{Reordered, default_limits},
    report::write_sequence_json,
};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The measurements that are asked for.
struct Task {
    families: Vec<Family>,
    seeds: std::ops::Range<u64>,
    nodes: Option<u64>,
    save: Option<PathBuf>,
}

impl Task {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut task = Self { families: Vec::new(), seeds: 0..10, nodes: None, save: None };
        while let Some(argument) = arguments.next() {
            let wrong = || format!("{argument} needs a value, as in --seeds 0..10 --nodes 1000000");
            let mut value = || arguments.next().ok_or_else(wrong);
            match argument.as_str() {
                "--seeds" => {
                    let range = value()?;
                    let ends = range.split_once("..").ok_or_else(wrong)?;
                    let number = |end: &str| end.parse().map_err(|_| wrong());
                    task.seeds = number(ends.0)?..number(ends.1)?;
                }
                "--nodes" => task.nodes = Some(value()?.parse().map_err(|_| wrong())?),
                "--save" => task.save = Some(value()?.into()),
                name => {
                    let family = FAMILIES.iter().find(|family| family.name == name);
                    task.families.push(*family.ok_or_else(|| {
                        let names = FAMILIES.map(|family| family.name).join(", ");
                        format!("{name} is no family; the families are {names}")
                    })?);
                }
            }
        }
        if task.families.is_empty() {
            task.families = FAMILIES.to_vec();
        }
        Ok(task)
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let task = Task::parse(arguments)?;
    let limits = task.nodes.map_or_else(default_limits, |nodes| default_limits().nodes(nodes));
    let planner = Planner::new();
    println!(
        "{:<18}{:>9}{:>14}{:>14}{:>14}{:>9}{:>11}{:>9}",
        "graph", "operators", "given peak", "found peak", "bound", "gap", "nodes", "seconds"
    );
    let mut counts = Vec::new();
    for family in task.families {
        let mut count = Count::default();
        for seed in task.seeds.clone() {
            let name = format!("{}-{seed}", family.name);
            let sequence = family.draw(seed).map_err(|error| format!("{name}: {error}"))?;
            if let Some(folder) = &task.save {
                let path = folder.join(format!("{name}.json"));
                fs::File::create(&path)
                    .and_then(|file| write_sequence_json(file, &sequence))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
            let start = Instant::now();
            let found =
                planner.reorder(&sequence, limits).map_err(|error| format!("{name}: {error}"))?;
            println!(
                "{name:<18}{:>9}{:>14}{:>14}{:>14}{:>9}{:>11}{:>9.2}",
                sequence.operators().len(),
                found.given_peak,
                found.peak,
                found.lower_bound,
                gap(&found).map_or("proven".to_owned(), percent),
                found.nodes,
                start.elapsed().as_secs_f64(),
            );
            count.add(&found);
        }
        counts.push((family.name, count));
    }
    println!();
    println!(
        "{:<18}{:>9}{:>14}{:>14}{:>14}{:>14}",
        "family", "graphs", "better", "most saved", "proven", "largest gap"
    );
    for (name, count) in counts {
        println!(
            "{name:<18}{:>9}{:>14}{:>14}{:>14}{:>14}",
            count.graphs,
            count.better,
            percent(count.most_saved),
            count.proven,
            percent(count.largest_gap),
        );
    }
    Ok(())
}

/// The results of a family.
#[derive(Default)]
struct Count {
    graphs: usize,
    better: usize,
    proven: usize,
    most_saved: f64,
    largest_gap: f64,
}

impl Count {
    fn add(&mut self, found: &Reordered) {
        self.graphs += 1;
        self.better += usize::from(found.is_better());
        self.proven += usize::from(found.is_proven());
        self.most_saved = self.most_saved.max(1.0 - ratio(found.peak, found.given_peak));
        self.largest_gap = self.largest_gap.max(gap(found).unwrap_or(0.0));
    }
}

/// Returns by how much the peak exceeds the bound; `None` if it is proven.
fn gap(found: &Reordered) -> Option<f64> {
    (!found.is_proven()).then(|| ratio(found.peak, found.lower_bound) - 1.0)
}

#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
