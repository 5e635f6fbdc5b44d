//! Switches off each stage of the search, one at a time, and counts what that costs.
//!
//! `cargo run --release --bin ablation -- [STAGE]...` in the folder of the benchmarks plans problems of many
//! families with every stage and without each one, by default and, for families that profit from it, with ten times
//! the effort. It prints a table: on which families the pools become larger or smaller, which proofs are lost or
//! gained, and the nodes. Nothing depends on a clock, so a busy machine changes nothing. With `--families NAME,NAME`
//! it plans only these, and with `--each` it prints each problem that changes.

mod families;

use std::{process::ExitCode, sync::Mutex};

use families::Family;
use memplan::{
    Problem, Strategy,
    search::{Limits, Observer, Progress, Stage, Without, lay_out},
};

/// What a search found, and how much it searched for that.
#[derive(Clone, PartialEq)]
struct Found {
    /// Traffic, then pools.
    objective: Vec<u128>,
    is_proven: bool,
    nodes: u64,
}

impl Found {
    /// Plans a problem, and adds up the nodes of all searches.
    fn of(problem: &Problem, limits: &Limits) -> Self {
        // The nodes of the searches that have ended, and of the one that runs.
        let nodes = Mutex::new((0, 0));
        let count = |progress: &Progress| {
            if let Ok(mut nodes) = nodes.lock() {
                if progress.nodes < nodes.1 {
                    nodes.0 += nodes.1;
                }
                nodes.1 = progress.nodes;
            }
        };
        let layout = lay_out(Strategy::Best, problem, limits, Observer::default().progress(&count));
        let (ended, last) = nodes.lock().map_or((0, 0), |nodes| *nodes);
        let Ok(layout) = layout else {
            return Self { objective: vec![u128::MAX], is_proven: false, nodes: ended + last };
        };
        let bound = problem.lower_bound().max(layout.lower_bound);
        let is_proven = layout.is_proven || bound == layout.pool_size(problem);
        Self { objective: layout.objective(problem), is_proven, nodes: ended + last }
    }

    /// By how many percent this is worse than another result, in the first figure in which they differ.
    #[allow(clippy::cast_precision_loss, reason = "a ratio")]
    fn worse_than(&self, other: &Self) -> f64 {
        let differ = self.objective.iter().zip(&other.objective).find(|(a, b)| a != b);
        differ.map_or(0.0, |(&a, &b)| (a as f64 / b.max(1) as f64 - 1.0) * 100.0)
    }
}

/// The results of all problems of a family at one effort.
struct Row {
    family: &'static str,
    times: u64,
    found: Vec<Found>,
}

/// Plans all families without some stages.
fn rows<'a>(families: impl IntoIterator<Item = &'a Family>, without: Without) -> Vec<Row> {
    let mut rows = Vec::new();
    for &Family { name, nodes, ref problems } in families {
        for times in [1, 10] {
            let mut limits = Limits::default();
            limits.without = without;
            if times > 1 {
                let Some(nodes) = nodes else { continue };
                limits = limits.nodes(nodes * times);
            }
            let found = problems.iter().map(|(_, problem)| Found::of(problem, &limits)).collect();
            rows.push(Row { family: name, times, found });
        }
    }
    rows
}

/// The families on which a stage can change anything.
fn concerns(stage: Stage, family: &Family) -> bool {
    use Stage::{
        AroundPins, Assignment, Cliques, Cores, Exact, FewerOverwrites, FirstFitOrders, Guided,
        MoreCores, Orders, Pairwise, PeakRepair, PinRepair, Pinned, Promotion, Relaxed, Rounded,
    };
    let names: &[&str] = match stage {
        Relaxed | FirstFitOrders | Promotion | Cliques | Pairwise | Assignment => {
            &["pins", "fixed", "holes", "streams", "pools"]
        }
        Pinned | PinRepair | AroundPins => &["pins", "fixed"],
        PeakRepair | Cores | MoreCores => &["edges", "training", "tilings", "long"],
        Rounded | Exact => &["hard", "noisy", "edges", "training", "uneven", "lives"],
        FewerOverwrites | Orders => {
            &["edges", "training", "stepped", "small", "chains", "staircases", "uneven"]
        }
        Guided => &["hard", "noisy", "edges", "uneven", "lives", "pins", "fixed"],
        _ => return true,
    };
    names.contains(&family.name)
}

/// Prints what a family loses or gains without a stage; nothing if no pool and no proof changes, and the nodes hardly.
fn compare(stage: Stage, with: &Row, without: &Row, family: &Family, each: bool) {
    let pairs = || with.found.iter().zip(&without.found);
    let worse: f64 = pairs().map(|(with, without)| without.worse_than(with)).sum();
    let count = |is: &dyn Fn(f64) -> bool| {
        pairs().filter(|(with, without)| is(without.worse_than(with))).count()
    };
    let (larger, smaller) = (count(&|worse| worse > 0.0), count(&|worse| worse < 0.0));
    let lost = pairs().filter(|(with, without)| with.is_proven && !without.is_proven).count();
    let gained = pairs().filter(|(with, without)| !with.is_proven && without.is_proven).count();
    let nodes = |row: &Row| row.found.iter().map(|found| found.nodes).sum::<u64>();
    let (before, after) = (nodes(with), nodes(without));
    let is_near = before.abs_diff(after) <= before.max(after) / 100;
    if larger + smaller + lost + gained == 0 && is_near {
        return;
    }
    #[allow(clippy::cast_precision_loss, reason = "a mean")]
    let mean = worse / family.problems.len() as f64;
    println!(
        "| {stage:?} | {}{} | {larger} | {smaller} | {mean:+.2} % | {lost} | {gained} | {before} | {after} |",
        with.family,
        if with.times > 1 { ", ten times" } else { "" },
    );
    if each {
        for ((with, without), (name, _)) in pairs().zip(&family.problems) {
            if with != without {
                println!(
                    "    {name}: {:?} {} {} -> {:?} {} {}",
                    with.objective,
                    with.is_proven,
                    with.nodes,
                    without.objective,
                    without.is_proven,
                    without.nodes
                );
            }
        }
    }
}

fn main() -> ExitCode {
    let mut families = families::all();
    let (mut stages, mut each) = (Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--each" => each = true,
            "--families" => {
                let names = arguments.next().unwrap_or_default();
                families.retain(|family| names.split(',').any(|name| name == family.name));
            }
            name => {
                let named = |stage: &Stage| format!("{stage:?}") == name;
                let Some(stage) = Stage::ALL.iter().copied().find(named) else {
                    eprintln!("{name} is no stage; the stages are {:?}", Stage::ALL);
                    return ExitCode::from(2);
                };
                stages.push(stage);
            }
        }
    }
    if stages.is_empty() {
        stages.extend(Stage::ALL.iter().copied());
    }
    families.retain(|family| stages.iter().any(|&stage| concerns(stage, family)));
    let with = rows(&families, Without::default());
    println!("| with all stages | problems | proven | nodes |");
    println!("| --- | ---: | ---: | ---: |");
    for row in &with {
        let proven = row.found.iter().filter(|found| found.is_proven).count();
        let nodes: u64 = row.found.iter().map(|found| found.nodes).sum();
        let times = if row.times > 1 { ", ten times" } else { "" };
        println!("| {}{times} | {} | {proven} | {nodes} |", row.family, row.found.len());
    }
    println!();
    println!(
        "| without | on | larger | smaller | pools | proofs lost | gained | nodes with | without |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for stage in stages {
        for family in families.iter().filter(|&family| concerns(stage, family)) {
            let with = with.iter().filter(|row| row.family == family.name);
            for (with, without) in with.zip(&rows([family], Without::stage(stage))) {
                compare(stage, with, without, family, each);
            }
        }
    }
    ExitCode::SUCCESS
}
