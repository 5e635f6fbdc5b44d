//! The same input gives the same plan, on every machine and in every build: the digests of plans of
//! all models and problems, by every strategy, are in a table. `SNAPSHOTS=overwrite cargo test
//! --release --test planners same_plan` rewrites it.

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

use crate::{common::shared_path, hard};
use memplan::{
    Input, Plan, PlanError, Planner, Strategy, TensorPlace,
    import::{Format, ImportOptions, InPlace, read_input},
    networks,
    search::Limits,
};

/// Fowler, Noll and Vo's hash, FNV-1a, of 64 bits.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Everything that a framework takes from a plan.
fn digest(plan: &Plan) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    for number in
        [plan.pool_size(), plan.lower_bound(), plan.naive_size(), plan.steps(), plan.peak_step()]
    {
        digest.add(&number.to_le_bytes());
    }
    for chunk in plan.chunks() {
        for number in [chunk.id, chunk.size, chunk.begin, chunk.end, chunk.offset] {
            digest.add(&number.to_le_bytes());
        }
        if !plan.pools().is_empty() {
            digest.add(&chunk.pool.to_le_bytes());
        }
    }
    for tensor in plan.tensors() {
        digest.add(tensor.name.as_bytes());
        let offset = match &tensor.place {
            TensorPlace::Pool { offset, .. } | TensorPlace::Supplied { offset, .. } => *offset,
            _ => u64::MAX,
        };
        digest.add(&offset.to_le_bytes());
    }
    digest.0
}

/// Every input by name; those of the project come first.
fn inputs() -> Vec<(String, Input)> {
    let mut inputs = Vec::new();
    for batch in [1, 128] {
        let network = Input::Sequence(networks::mobilenet_v2(batch).unwrap());
        inputs.push((format!("mobilenet_v2:{batch}"), network));
    }
    for chunks in [5, 50, 500] {
        inputs.push((format!("scattered:{chunks}"), Input::Problem(hard::scattered(chunks))));
    }
    inputs.extend(files(&["models", "problems", "problems/challenging", "problems/training"]));
    inputs
}

/// The inputs in the book's figures and in these folders of `../shared/data`, by file name.
pub fn files(folders: &[&str]) -> Vec<(String, Input)> {
    let mut inputs = Vec::new();
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("book/src/figures");
    let shared = folders.iter().filter_map(|folder| shared_path(&format!("data/{folder}")));
    for folder in std::iter::once(own).chain(shared) {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(format) = Format::of_name(&name).filter(|_| !name.contains(".plan.")) else {
                continue;
            };
            let bytes = fs::read(&file).unwrap();
            // The tables test planners, not kernels.
            let options = ImportOptions::default().inplace(InPlace::Elementwise);
            inputs.push((name, read_input(&bytes, format, &options).unwrap()));
        }
    }
    inputs
}

/// The default effort of a small gap, so that hard problems do not take seconds.
fn limits() -> Limits {
    Limits::default().nodes(50_000)
}

fn plan(input: &Input, strategy: Strategy) -> Result<Plan, PlanError> {
    Planner::new().strategy(strategy).limits(limits()).plan(input)
}

#[test]
fn every_plan_is_the_one_in_the_table() {
    let table = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/planners/same_plan.txt");
    let mut digests = BTreeMap::new();
    for (name, input) in inputs() {
        let chunks = plan(&input, Strategy::FirstFit).unwrap().chunks().len();
        for &strategy in Strategy::ALL {
            // The min-cost flow between all pairs, and walks over all conflicts, are slow.
            let most = match strategy {
                Strategy::TfliteMinCostFlow if cfg!(debug_assertions) => 220,
                Strategy::TfliteMinCostFlow => 500,
                _ if strategy.limit().is_some() => 3_000,
                _ => usize::MAX,
            };
            if chunks <= most {
                let plan = match plan(&input, strategy) {
                    Err(PlanError::Unsupported { .. }) => continue,
                    plan => plan.unwrap(),
                };
                let digest = digest(&plan);
                digests.insert(format!("{name} {strategy}"), format!("{digest:016x}"));
            }
        }
    }
    if std::env::var_os("SNAPSHOTS").is_some_and(|action| action == "overwrite") {
        let mut text = String::new();
        for (plan, digest) in &digests {
            let _ = writeln!(text, "{plan} {digest}");
        }
        fs::write(&table, text).unwrap();
    }
    let text = fs::read_to_string(&table).unwrap();
    let pinned: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let changed: Vec<&String> = digests
        .iter()
        .filter(|(plan, digest)| pinned.get(plan.as_str()) != Some(&digest.as_str()))
        .map(|(plan, _)| plan)
        .collect();
    assert_eq!(changed, Vec::<&String>::new(), "plans that are not those in {}", table.display());
    eprintln!("{} plans of {} in the table", digests.len(), pinned.len());
}

/// Threads may finish in any order; the pool can only become smaller.
#[test]
fn two_threads_find_the_same_pool_or_a_smaller_one() {
    let two = limits().threads(2);
    for (name, input) in inputs() {
        for strategy in [Strategy::Best, Strategy::Optimal] {
            let one = plan(&input, strategy).unwrap();
            let two = Planner::new().strategy(strategy).limits(two).plan(&input).unwrap();
            assert!(two.pool_size() <= one.pool_size(), "{name}, {strategy}");
            if one.proven_optimal() {
                assert_eq!(two.pool_size(), one.pool_size(), "{name}, {strategy}");
            }
        }
    }
}
