//! Plans run on a shadow of the memory: this checks planners and lowering from the operators and
//! the offsets alone.

use crate::common::{properties::all_options, random::random_sequence, seeds::times};
use arbitrary::{Result, Unstructured};
use memplan::{
    OpSequence, Operator, Output, Plan, Planner, Strategy, TensorPlace,
    lower::LoweringOptions,
    verify::{execute, verify},
};
use rstest::rstest;

/// Moves a tensor, a workspace or two.
fn disturb(random: &mut Unstructured<'_>, plan: &mut Plan) -> Result<()> {
    for _ in 0..random.int_in_range(1..=2)? {
        let to = random.int_in_range(0..=plan.pool_size())?;
        let other = if plan.tensors().is_empty() {
            0
        } else {
            random.choose_index(plan.tensors().len())?
        };
        let place = plan.tensors().get(other).map(|tensor| tensor.place.clone());
        if random.ratio(1, 4)? && !plan.chunks().is_empty() {
            let chunk = random.choose_index(plan.chunks().len())?;
            plan.chunks_mut()[chunk].offset = to;
        } else if !plan.tensors().is_empty() {
            let tensor = random.choose_index(plan.tensors().len())?;
            match (&mut plan.tensors_mut()[tensor].place, place) {
                (
                    TensorPlace::Pool { offset, .. },
                    Some(TensorPlace::Pool { offset: other, .. }),
                ) if other % 2 == 0 => {
                    *offset = other;
                }
                (TensorPlace::Pool { offset, .. } | TensorPlace::Supplied { offset, .. }, _) => {
                    *offset = to;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// A plan that cannot run is never accepted, and most wrong plans cannot run.
#[test]
fn verify_finds_whatever_goes_wrong_when_a_disturbed_plan_runs() {
    let (mut wrong, mut lost) = (0, 0);
    times(100, |random| {
        let Ok(sequence) = random_sequence(random, 10)? else { return Ok(()) };
        let options = all_options().nth(random.choose_index(16)?).unwrap_or_default();
        let Ok(mut plan) = Planner::new().lowering(options).plan(&sequence) else { return Ok(()) };
        disturb(random, &mut plan)?;
        let (verified, executed) = (verify(&sequence, &plan), execute(&sequence, &plan));
        assert!(
            executed.is_empty() || !verified.is_empty(),
            "{executed:#?}\n{sequence:#?}\n{plan:#?}"
        );
        wrong += usize::from(!verified.is_empty());
        lost += usize::from(!executed.is_empty());
        Ok(())
    });
    assert!(lost * 3 > wrong, "{lost} of {wrong} wrong plans cannot run");
}

/// With `--nocapture` it prints the time for each model.
#[test]
fn every_model_runs_as_planned_by_all_with_all_options() {
    use memplan::import::{ImportOptions, onnx::read};
    let Some(folder) = crate::common::shared_path("data/models") else { return };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for file in files {
        let sequence = read(&std::fs::read(&file).unwrap(), &ImportOptions::default()).unwrap();
        // Half of the models know the sizes of their weights.
        let sized = sequence.tensors().iter().all(|tensor| tensor.size.is_some());
        // The min-cost flow between all pairs is slow without optimization.
        let is_slow = |strategy| strategy == Strategy::TfliteMinCostFlow && cfg!(debug_assertions);
        let start = std::time::Instant::now();
        let mut running = std::time::Duration::ZERO;
        for &strategy in Strategy::ALL.iter().filter(|&&s| !is_slow(s)) {
            for options in all_options().filter(|options| sized || !options.weights_in_pool) {
                let planner = Planner::new().strategy(strategy).lowering(options).alignment(64);
                let plan = planner.plan(&sequence).unwrap();
                let label = || format!("{}, {strategy}, {options:?}", file.display());
                assert_eq!(verify(&sequence, &plan), [], "{}", label());
                let running_since = std::time::Instant::now();
                assert_eq!(execute(&sequence, &plan), [], "{}", label());
                running = running.max(running_since.elapsed());
            }
        }
        let name = file.file_name().unwrap().display();
        eprintln!("{name}: {:?}, one run at most {running:?}", start.elapsed());
    }
}

/// image 8 -> conv: x 16, workspace 4 -> view: v 8 of x at 8 -> relu: z 8 over v -> late: u 8.
/// A weight w of 8 gets an update of 4 bytes at 4.
fn sequence() -> OpSequence {
    let mut sequence = OpSequence::builder();
    sequence
        .input("image", 8)
        .weight("w", Some(8))
        .operator(Operator::new("conv").inputs(["image"]).output(Output::new("x", 16)).workspace(4))
        .operator(Operator::new("view").inputs(["x"]).output(Output::new("v", 8).reads_at("x", 8)))
        .operator(Operator::new("relu").inputs(["v"]).output(Output::new("z", 8).overwrites("v")))
        .operator(Operator::new("late").inputs(["z"]).output(Output::new("u", 8)))
        .operator(
            Operator::new("split")
                .inputs(["w"])
                .output(Output::new("w2", 4).updates("w", 4))
                .output(Output::new("a", 4)),
        )
        .output("u");
    sequence.build().unwrap()
}

fn put(plan: &mut Plan, name: &str, place: TensorPlace) {
    plan.tensors_mut().iter_mut().find(|tensor| &*tensor.name == name).unwrap().place = place;
}

fn at(plan: &mut Plan, name: &str, to: u64) {
    let tensor = plan.tensors_mut().iter_mut().find(|tensor| &*tensor.name == name).unwrap();
    match &mut tensor.place {
        TensorPlace::Pool { offset, .. } | TensorPlace::Supplied { offset, .. } => *offset = to,
        _ => {}
    }
}

fn in_image(offset: u64) -> TensorPlace {
    TensorPlace::Supplied { tensor: "image".into(), offset }
}

type Spoil = fn(&mut Plan);

#[rstest]
#[case::an_output_over_the_input(|p: &mut Plan| at(p, "u", 12),
    "step 3 ('late') writes 'u' over its input 'z', bytes [12, 20), and may not")]
#[case::beside_the_place_declared(|p: &mut Plan| at(p, "z", 10),
    "step 2 ('relu') writes 'z' over its input 'v', bytes [12, 18), and may not")]
#[case::a_view_moved_onto_its_input(|p: &mut Plan| at(p, "v", 8),
    "step 1 ('view') writes 'v' over its input 'x', bytes [8, 16), and may not")]
#[case::an_output_over_another(|p: &mut Plan| put(p, "w2", TensorPlace::Pool { chunk: 4, offset: 8 }),
    "'w2' is not whole when step 4 ('split') ends: the bytes [8, 12) of the pool hold 'a'")]
#[case::a_dead_output_over_a_graph_output(|p: &mut Plan| at(p, "a", 7),
    "'u' is not whole after the last step: the bytes [7, 8) of the pool hold 'a'")]
#[case::workspace_over_the_output(|p: &mut Plan| p.chunks_mut()[1].offset = 3,
    "'conv.workspace' is not whole when step 0 ('conv') ends: the bytes [4, 7) of the pool hold 'x'")]
#[case::workspace_missing(|p: &mut Plan| p.chunks_mut()[1].begin = 1, "'conv.workspace' is missing from the plan")]
#[case::workspace_outside(|p: &mut Plan| p.chunks_mut()[1].offset = 17,
    "'conv.workspace' lies at 17 with 4 B, outside the pool of 20 B")]
#[case::an_update_beside_its_variable(|p: &mut Plan| at(p, "w2", 3), "'w2' must overwrite 'w', but does not")]
#[case::an_update_in_the_pool(|p: &mut Plan| put(p, "w2", TensorPlace::Pool { chunk: 0, offset: 0 }),
    "'w2' must overwrite 'w', but does not")]
#[case::in_memory_of_others(|p: &mut Plan| put(p, "z", in_image(0)), "tensor 'z' may not lie at 0 in 'image'")]
#[case::outside_the_pool(|p: &mut Plan| at(p, "u", 13), "'u' lies at 13 with 8 B, outside the pool of 20 B")]
#[case::at_the_end_of_all_numbers(|p: &mut Plan| at(p, "u", u64::MAX),
    "'u' lies at 18446744073709551614 with 1 B, outside the pool of 20 B")]
#[case::workspace_at_the_end_of_all_numbers(|p: &mut Plan| p.chunks_mut()[1].offset = u64::MAX,
    "'conv.workspace' lies at 18446744073709551614 with 1 B, outside the pool of 20 B")]
#[case::nowhere(|p: &mut Plan| put(p, "x", TensorPlace::Nowhere), "'x' is missing from the plan")]
fn execution_reports_every_fault(#[case] spoil: Spoil, #[case] message: &str) {
    let sequence = sequence();
    let mut plan = Planner::new().strategy(Strategy::Pushdown).plan(&sequence).unwrap();
    assert_eq!(execute(&sequence, &plan), []);
    let places = ["x", "z", "u", "a"].map(|name| plan.offset(name).unwrap());
    assert_eq!((plan.pool_size(), places), (20, [4, 12, 0, 8]), "{plan:#?}");
    spoil(&mut plan);
    let violations: Vec<String> =
        execute(&sequence, &plan).iter().map(ToString::to_string).collect();
    assert!(violations.iter().any(|violation| violation == message), "{violations:#?}");
}

fn plan_in_pool(sequence: &OpSequence) -> Plan {
    let options = LoweringOptions::default().weights_in_pool(true);
    let plan = Planner::new().lowering(options).plan(sequence).unwrap();
    assert_eq!(execute(sequence, &plan), [], "{plan:#?}");
    assert_eq!(verify(sequence, &plan), [], "{plan:#?}");
    plan
}

/// An update of a variable in the pool must be whole at the end; the state that it replaced need
/// not be.
#[test]
fn the_last_state_of_a_variable_is_kept() {
    let mut sequence = OpSequence::builder();
    sequence
        .weight("w", Some(8))
        .operator(Operator::new("flat").inputs(["w"]).output(Output::new("v", 8).reads("w")))
        .operator(Operator::new("step").inputs(["v"]).output(Output::new("w2", 8).updates("v", 0)))
        .operator(Operator::new("late").inputs(["w2"]).output(Output::new("z", 8)))
        .operator(Operator::new("last").output(Output::new("u", 8)));
    let sequence = sequence.build().unwrap();
    let mut plan = plan_in_pool(&sequence);
    let state = plan.offset("w2").unwrap();
    assert_eq!(plan.offset("w"), Some(state));
    at(&mut plan, "u", state);
    let violations = execute(&sequence, &plan);
    let message = format!(
        "'w2' is not whole after the last step: the bytes [{state}, {}) of the pool hold 'u'",
        state + 8
    );
    assert_eq!(violations.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
    let message = format!(
        "'w2' and 'u' are both alive in step 3 and share the bytes [{state}, {})",
        state + 8
    );
    let verified = verify(&sequence, &plan);
    assert!(verified.iter().any(|violation| violation.to_string() == message), "{verified:#?}");
}

/// `w` -> view: v, first half -> view: h -> step: u over h. As copies, the views would be updated instead of `w`.
fn updated_through_views(is_view: bool) -> OpSequence {
    let view = |name, of, size| {
        let output = Output::new(name, size);
        if is_view { output.reads(of) } else { output }
    };
    OpSequence::builder()
        .weight("w", Some(8))
        .operator(Operator::new("flat").inputs(["w"]).output(view("v", "w", 8)))
        .operator(Operator::new("half").inputs(["v"]).output(view("h", "v", 4)))
        .operator(Operator::new("step").inputs(["h"]).output(Output::new("u", 4).updates("h", 0)))
        .operator(Operator::new("last").output(Output::new("y", 8)))
        .output("y")
        .build()
        .unwrap()
}

#[test]
fn an_update_through_views_lands_in_its_variable_without_views_too() {
    let sequence = updated_through_views(true);
    let plan = Planner::new().lowering(LoweringOptions::default().views(false)).plan(&sequence);
    let plan = plan.unwrap();
    for name in ["v", "h", "u"] {
        let place = TensorPlace::Supplied { tensor: "w".into(), offset: 0 };
        assert_eq!(plan.tensor(name).unwrap().place, place, "{name}");
    }
    assert_eq!((execute(&sequence, &plan), verify(&sequence, &plan)), (vec![], vec![]));
}

#[test]
fn an_update_of_a_copy_of_its_variable_is_reported() {
    let plan = Planner::new().plan(&updated_through_views(false)).unwrap();
    let sequence = updated_through_views(true);
    for found in [execute(&sequence, &plan), verify(&sequence, &plan)] {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(found.contains(&"'u' must overwrite 'w', but does not".to_owned()), "{found:?}");
    }
}

/// A tensor with a required overwrite need not be a variable; then nothing is kept.
#[test]
fn an_update_of_no_variable_is_not_kept() {
    let mut sequence = OpSequence::builder();
    sequence
        .operator(Operator::new("a").output(Output::new("x", 8)))
        .operator(Operator::new("step").inputs(["x"]).output(Output::new("y", 8).updates("x", 0)))
        .operator(Operator::new("late").inputs(["y"]).output(Output::new("z", 1)))
        .operator(Operator::new("last").output(Output::new("u", 8)));
    let sequence = sequence.build().unwrap();
    let plan = plan_in_pool(&sequence);
    assert_eq!(plan.offset("u"), plan.offset("y"));
}

/// No sequence has such an update, but a hand-written plan may.
#[test]
fn an_update_beyond_the_end_of_its_variable_is_reported() {
    let sequence = OpSequence::builder()
        .weight("w", Some(8))
        .operator(Operator::new("step").inputs(["w"]).output(Output::new("w2", 4).updates("w", 4)))
        .build()
        .unwrap();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(execute(&sequence, &plan), []);
    put(&mut plan, "w2", TensorPlace::Supplied { tensor: "w".into(), offset: 5 });
    for violations in [execute(&sequence, &plan), verify(&sequence, &plan)] {
        let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let told = "tensor 'w2' may not lie at 5 in 'w'".to_owned();
        assert!(violations.contains(&told), "{violations:#?}");
    }
}

/// Tensors without bytes may lie anywhere.
#[test]
fn tensors_without_bytes_destroy_nothing() {
    let mut sequence = OpSequence::builder();
    sequence
        .operator(Operator::new("a").output(Output::new("x", 8)))
        .operator(Operator::new("b").output(Output::new("empty", 0)))
        .operator(
            Operator::new("c").inputs(["x", "empty"]).output(Output::new("z", 8)).workspace(4),
        );
    let sequence = sequence.build().unwrap();
    let mut plan = plan_in_pool(&sequence);
    for offset in [0, 4, plan.pool_size(), u64::MAX] {
        put(&mut plan, "empty", TensorPlace::Pool { chunk: 0, offset });
        assert_eq!(execute(&sequence, &plan), []);
    }
    plan.tensors_mut().retain(|tensor| &*tensor.name != "empty");
    assert_eq!(execute(&sequence, &plan), []);
    assert_eq!(verify(&sequence, &plan), []);
}

/// A planner that counts only the readers of the tensor itself has this bug: a view of it is still
/// read.
#[test]
fn a_view_overwritten_while_it_is_still_read_is_reported() {
    let build = |late: &str| {
        let mut sequence = OpSequence::builder();
        sequence
            .operator(Operator::new("conv").output(Output::new("x", 8)))
            .operator(Operator::new("view").inputs(["x"]).output(Output::new("v", 8).reads("x")))
            .operator(
                Operator::new("relu").inputs(["x"]).output(Output::new("y", 8).overwrites("x")),
            )
            .operator(Operator::new("add").inputs([late]).output(Output::new("z", 8)))
            .output("z");
        sequence.build().unwrap()
    };
    let plan = Planner::new().plan(&build("y")).unwrap();
    assert_eq!(plan.offset("y"), plan.offset("x"));
    let violations = execute(&build("v"), &plan);
    assert_eq!(
        violations[0].to_string(),
        "'v' is not whole when step 3 ('add') reads it: the bytes [0, 8) of the pool hold 'y'"
    );
}

/// The plans have a supplied tensor in the memory of another, or lack a chunk.
#[rstest]
#[case("w", in_image(0), "tensor 'w' may not lie at 0 in 'image'")]
#[case("x", TensorPlace::Pool { chunk: 99, offset: 0 }, "'x' refers to a chunk that the plan does not list")]
fn invalid_plans_get_the_messages_of_verify(
    #[case] name: &str,
    #[case] place: TensorPlace,
    #[case] message: &str,
) {
    let sequence = sequence();
    let mut plan = Planner::new().plan(&sequence).unwrap();
    let mut nonsense = plan.tensors()[0].clone();
    (nonsense.name, nonsense.size, nonsense.place) = (name.into(), 8, place);
    plan.tensors_mut().retain(|tensor| &*tensor.name != name);
    plan.tensors_mut().push(nonsense);
    let violations = execute(&sequence, &plan);
    assert_eq!(violations[0].to_string(), message);
}
