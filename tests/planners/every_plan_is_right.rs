//! Every strategy's plan of every real model and problem passes `verify`. In problems of few chains, each pair of them is compared.

#![allow(clippy::cast_precision_loss, reason = "the table shows three digits")]

use std::{collections::HashMap, fs, path::PathBuf};

use crate::common::{problems::wrong, shared_path};
use memplan::{
    Input, Planner, Problem, Strategy,
    import::{Format, ImportOptions, read_input},
    problem::ChunkId,
    verify::verify,
};
use rstest::rstest;

/// The files of a folder that memplan reads, if the folder exists.
fn inputs(folder: &str) -> Vec<(PathBuf, Input)> {
    let Some(folder) = shared_path(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let format = Format::of_name(path.to_str().unwrap()).unwrap();
            let input = read_input(&fs::read(&path).unwrap(), format, &ImportOptions::default());
            (path, input.unwrap())
        })
        .collect()
}

/// The most chains of a problem of which each pair is compared.
const MAX_COMPARED: usize = 3_000;

/// Returns whether a strategy plans a problem within seconds, without optimization.
fn is_quick(strategy: Strategy, problem: &Problem, chains: usize) -> bool {
    match strategy {
        Strategy::TfliteMinCostFlow => problem.len() <= 400 || chains <= 220,
        _ => chains <= MAX_COMPARED || strategy.limit().is_none_or(|limit| limit >= 200_000),
    }
}

/// `best` is what is planned by default, since it is never worse than `MegEngine`'s planner.
#[rstest]
fn of_everything_in(
    #[values(
        "data/models",
        "data/problems",
        "data/problems/challenging",
        "data/problems/training"
    )]
    folder: &str,
) {
    for (path, input) in inputs(folder) {
        let mut pools = HashMap::new();
        let chains = match &input {
            Input::Problem(problem) => problem.roots().count(),
            Input::Sequence(_) => 0,
        };
        for &strategy in Strategy::ALL {
            let planner = Planner::new().strategy(strategy);
            let label = || format!("{} by {strategy}", path.display());
            let plan = match &input {
                Input::Sequence(sequence) => planner.alignment(64).plan(sequence).unwrap(),
                Input::Problem(problem) if is_quick(strategy, problem, chains) => {
                    let plan = planner.plan(problem).unwrap();
                    if chains <= MAX_COMPARED {
                        let offset = |chunk: ChunkId| plan.chunks()[chunk.index()].offset;
                        assert_eq!(wrong(problem, plan.pool_size(), offset), None, "{}", label());
                    }
                    plan
                }
                Input::Problem(_) => continue,
            };
            assert_eq!(verify(&input, &plan), [], "{}", label());
            pools.insert(strategy, plan.pool_size());
        }
        assert!(pools[&Strategy::Best] <= pools[&Strategy::Pushdown], "{}", path.display());
    }
}

#[test]
fn best_is_never_worse_than_pushdown_without_alignment() {
    for (path, input) in inputs("data/models") {
        let pool = |strategy| {
            let planner = Planner::new().strategy(strategy);
            planner.plan(&input).unwrap().pool_size()
        };
        assert!(pool(Strategy::Best) <= pool(Strategy::Pushdown), "{}", path.display());
    }
}

/// The table of what memplan saves equals the measured figures.
#[test]
fn the_table_of_savings_is_true() {
    let chapter =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/book/src/savings.md")).unwrap();
    let mut rows = 0;
    for (model, name) in
        [("vgg16", "VGG-16"), ("resnet50", "ResNet-50"), ("mobilenet_v2", "MobileNetV2")]
    {
        for batch in [1, 128] {
            let file = format!("data/models/{model}_b{batch}.onnx");
            let Some(path) = shared_path(&file) else { continue };
            let bytes = fs::read(path).unwrap();
            let input = read_input(&bytes, Format::Onnx, &ImportOptions::default()).unwrap();
            let Input::Sequence(sequence) = input else { panic!("{file} is a model") };
            let plan = Planner::new().plan(&sequence).unwrap();
            let each: u64 = sequence
                .operators()
                .iter()
                .flat_map(|operator| &operator.outputs)
                .filter_map(|&output| sequence.tensor(output).size)
                .sum();
            let saved = 100.0 * (1.0 - plan.pool_size() as f64 / each as f64);
            let row = format!(
                "| {name} | {batch} | {} | {} | {} | {saved:.1} % |",
                mebibytes(each),
                mebibytes(plan.pool_size()),
                mebibytes(plan.lower_bound())
            );
            assert!(chapter.contains(&row), "the chapter lacks {row}");
            rows += 1;
        }
    }
    assert!(rows == 0 || rows == 6);
}

/// Formats bytes in MiB with at least three digits, in groups of three.
fn mebibytes(bytes: u64) -> String {
    let value = bytes as f64 / f64::from(1 << 20);
    let text = match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    };
    match text.len().checked_sub(3).filter(|&thousands| thousands > 0 && !text.contains('.')) {
        Some(thousands) => format!("{} {}", &text[..thousands], &text[thousands..]),
        None => text,
    }
}
