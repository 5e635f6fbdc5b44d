//! What is alive and where: explanations, summaries, maps, pictures and the page state the bytes that the chunks of a
//! plan need, each once.

use std::{fs, path::Path};

use memplan::{
    Input, OpSequence, Operator, Output, Plan, PlanError, Planner, Problem, Strategy,
    import::{Format, ImportOptions, read_input},
    problem::{Pool, PoolId},
    report::explain,
    search::first_fit,
    sequence::SequenceBuilder,
};

use crate::common::{
    alive::check,
    constraints::{Dice, random_branches, random_problem},
    project,
    properties::{all_options, is_impossible},
    random::random_sequence,
    seeds::times,
    shared_path,
};

/// Blocks of `DenseNet`: each concatenation has all inputs of the one before it, whose chunks lie in all of them.
fn dense(blocks: u64) -> SequenceBuilder {
    let mut sequence = OpSequence::builder();
    sequence.operator(Operator::new("stem").output(Output::new("x0", 64)));
    for block in 1..=blocks {
        let names: Vec<String> = (0..block).map(|at| format!("x{at}")).collect();
        let size = 64 + 32 * (block - 1);
        let mut concat = Output::new(format!("c{block}"), size);
        for (at, name) in (0..).zip(&names) {
            concat = concat.gathers(name.as_str(), if at == 0 { 0 } else { 32 + 32 * at });
        }
        let (c, n, x) = (format!("c{block}"), format!("n{block}"), format!("x{block}"));
        sequence
            .operator(Operator::new("cat").inputs(names).output(concat))
            .operator(Operator::new("bn").inputs([c]).output(Output::new(&*n, size)))
            .operator(Operator::new("conv").inputs([n]).output(Output::new(x, 32)));
    }
    sequence
}

#[test]
fn tensors_in_several_concatenations_are_alive_between_them() {
    let sequence = dense(4).output("x4").build().unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(plan.parts().len(), 1 + 2 + 3 + 4);
    assert!(check(&plan, Some(&sequence)) > 0);
    let words = explain(&plan, Some(&sequence));
    assert!(words.contains("The pool is no larger than the peak"), "{words}");
}

/// The models and problems of a folder that can be read; returns how many there are, and how many have shared bytes.
fn check_folder(folder: &Path) -> [usize; 2] {
    let mut checked = [0, 0];
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let format = match path.extension().and_then(|extension| extension.to_str()) {
            Some("onnx") => Format::Onnx,
            Some("tflite") => Format::Tflite,
            Some("json") => Format::Json,
            _ => continue,
        };
        let options = ImportOptions::default().default_dim(8);
        let Ok(input) = read_input(&fs::read(&path).unwrap(), format, &options) else { continue };
        let Ok(plan) = Planner::new().alignment(64).plan(&input) else { continue };
        let steps = match &input {
            Input::Sequence(sequence) => Some(sequence),
            Input::Problem(_) => None,
        };
        checked[0] += 1;
        checked[1] += check(&plan, steps);
    }
    checked
}

#[test]
fn models_and_figures_are_accounted_for() {
    for (folder, least) in [("tests/models", 5), ("tests/fixtures", 3), ("book/src/figures", 5)] {
        let [checked, _] = check_folder(&project().join(folder));
        assert!(checked >= least, "{checked} in {folder}");
    }
    if let Some(folder) = shared_path("data/models") {
        let [checked, shared] = check_folder(&folder);
        assert!(checked > 10 && shared > 0, "{checked}, {shared}");
    }
}

#[test]
fn sequences_with_gathers_are_accounted_for() {
    let (mut planned, mut shared) = (0, 0);
    times(40, |random| {
        let Ok(sequence) = random_sequence(random, 12)? else { return Ok(()) };
        let strategy = *random.choose(Strategy::ALL)?;
        let strategy = if random.ratio(2, 3)? { Strategy::Best } else { strategy };
        let alignment = 1 << (random.int_in_range(0..=6)? / 3 * 2);
        let padding = random.int_in_range(0..=9)? / 7;
        let lowering = all_options().nth(random.choose_index(16)?).unwrap();
        let planner = Planner::new().strategy(strategy).alignment(alignment).padding(padding);
        let planner = planner.lowering(lowering);
        let in_pools = strategy == Strategy::Best && random.ratio(1, 3)?;
        let pools = [Pool::new("fast").capacity(96).cost(1), Pool::new("slow").cost(3)];
        let planner = if in_pools { planner.pools(pools) } else { planner };
        match planner.plan(&sequence) {
            Ok(plan) => {
                planned += 1;
                shared += check(&plan, Some(&sequence));
            }
            Err(error) => assert!(is_impossible(&error), "{error}"),
        }
        Ok(())
    });
    assert!(planned > 15 && shared > 3, "{planned} plans, {shared} with shared bytes");
}

#[test]
fn sequences_with_bodies_are_accounted_for() {
    let mut bodies = 0;
    times(25, |random| {
        let Ok(body) = random_sequence(random, 8)? else { return Ok(()) };
        let sequence = OpSequence::builder()
            .input("x", 9)
            .operator(Operator::new("host").inputs(["x"]).output(Output::new("y", 5)).body(body))
            .operator(Operator::new("end").inputs(["y"]).output(Output::new("z", 3)))
            .build();
        let Ok(sequence) = sequence else { return Ok(()) };
        match Planner::new().alignment(4).plan(&sequence) {
            Ok(plan) => {
                bodies += plan.bodies().len();
                check(&plan, Some(&sequence));
            }
            Err(PlanError::Body { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        Ok(())
    });
    assert!(bodies > 20, "{bodies}");
}

/// The plan of the first-fit strategy.
fn planned(problem: &Problem) -> Option<Plan> {
    let layout = first_fit::layout(problem).ok()?;
    let place = |chunk| (layout.pool(chunk), layout.offset(chunk));
    let places: Vec<(PoolId, u64)> = problem.ids().map(place).collect();
    Some(Plan::from_places(problem, &places).unwrap())
}

#[test]
fn problems_with_pools_pins_parts_windows_and_streams_are_accounted_for() {
    let mut dice = Dice(43);
    let (mut checked, mut shared, mut on_streams) = (0, 0, 0);
    for round in 0..3000 {
        let json =
            if round % 4 == 0 { random_branches(&mut dice) } else { random_problem(&mut dice) };
        let Ok(problem) = serde_json::from_value::<Problem>(json) else { continue };
        let Some(plan) = planned(&problem) else { continue };
        checked += 1;
        on_streams += usize::from(!plan.peak().is_empty());
        shared += check(&plan, None);
    }
    assert!(checked > 500 && shared > 20 && on_streams > 50, "{checked}, {shared}, {on_streams}");
}
