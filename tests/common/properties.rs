//! Properties of every input: bodies for `cargo test` and for the fuzzers in `fuzz/`.

#![allow(dead_code, reason = "each target uses its own part")]

use arbitrary::{Result, Unstructured};
use memplan::{
    Input, OpSequence, Plan, PlanError, Planner, Problem, SequenceError, Strategy,
    import::{
        Format, ImportOptions, read_input, read_plan,
        tflite::{Runtime, survey},
    },
    lower::{LoweringOptions, lower},
    problem::{ChunkId, Feature, Request},
    report::{MapOptions, explain, memory_map, summary, write_problem_json, write_sequence_json},
    search::Limits,
    verify::{Figure, Violation, execute, verify},
};

use super::random::{Wild, random_problem, random_sequence};

/// All combinations of the options of lowering.
pub fn all_options() -> impl Iterator<Item = LoweringOptions> {
    (0..16).map(|bits| {
        LoweringOptions::default()
            .views(bits & 1 == 0)
            .inplace(bits & 2 == 0)
            .inputs_in_pool(bits & 4 != 0)
            .weights_in_pool(bits & 8 != 0)
    })
}

/// Returns whether an error means that the caller requires the impossible, or needs bytes one by one from a strategy
/// that plans whole chunks.
pub fn is_impossible(error: &PlanError) -> bool {
    match error {
        PlanError::Body { source, .. } => is_impossible(source),
        PlanError::Unsupported { strategy, feature, .. } => {
            *feature == Feature::Parts && !strategy.supports_parts()
        }
        PlanError::Sequence(error) => matches!(
            error,
            SequenceError::RequiredOverwrite { .. }
                | SequenceError::RequiredOverwriteOfAlias { .. }
        ),
        _ => false,
    }
}

/// Plans a sequence and runs both checkers; returns whether there is a plan.
pub fn is_planned_rightly(sequence: &OpSequence, planner: &Planner<'_>) -> bool {
    let plan = match planner.plan(sequence) {
        Ok(plan) => plan,
        Err(error) if is_impossible(&error) => return false,
        Err(error) => panic!("{error}\n{planner:?}\n{sequence:#?}"),
    };
    assert_eq!(verify(sequence, &plan), [], "{planner:?}\n{sequence:#?}\n{plan:#?}");
    assert_eq!(execute(sequence, &plan), [], "{planner:?}\n{sequence:#?}\n{plan:#?}");
    assert!(plan.lower_bound() <= plan.pool_size());
    true
}

/// Returns a planner with a random strategy, and sometimes a large alignment and padding.
fn random_planner(random: &mut Unstructured<'_>) -> Result<Planner<'static>> {
    let strategy = *random.choose(Strategy::ALL)?;
    let most = if random.ratio(1, 4)? { 12 } else { 4 };
    let alignment = 1 << random.int_in_range(0..=most)?;
    let padding = if random.ratio(1, 4)? { random.int_in_range(0..=70)? } else { 0 };
    Ok(planner(strategy).alignment(alignment).padding(padding))
}

/// Checks that a random sequence runs as planned, with all options of lowering. Returns the numbers
/// of plans and of attempts.
pub fn sequences_run_as_planned(random: &mut Unstructured<'_>) -> Result<(usize, usize)> {
    let Ok(sequence) = random_sequence(random, 12)? else { return Ok((0, 0)) };
    let planner = random_planner(random)?;
    let planned = all_options()
        .filter(|&options| is_planned_rightly(&sequence, &planner.clone().lowering(options)))
        .count();
    Ok((planned, 16))
}

/// Checks that a random sequence, possibly of many operators, runs as planned with some options of
/// lowering. For fuzzers, which try other options in other runs.
pub fn a_sequence_runs_as_planned(random: &mut Unstructured<'_>) -> Result<()> {
    let options = all_options().nth(random.choose_index(16)?).unwrap_or_default();
    let planner = random_planner(random)?.lowering(options);
    let operators = *random.choose(&[6, 12, 48])?;
    if let Ok(sequence) = random_sequence(random, operators)? {
        is_planned_rightly(&sequence, &planner);
    }
    Ok(())
}

/// Rebuilds a problem with other chunks in the same order, without requests of removed chunks.
pub fn rebuilt(
    problem: &Problem,
    alignment: u64,
    keep: impl Fn(usize) -> bool,
    size: impl Fn(u64) -> u64,
) -> Problem {
    let mut rebuilt = Problem::builder();
    let mut ids: Vec<Option<ChunkId>> = Vec::new();
    for (at, chunk) in problem.chunks().iter().enumerate() {
        ids.push(keep(at).then(|| rebuilt.chunk(chunk.begin..chunk.end, size(chunk.size))));
    }
    for request in problem.requests() {
        if let (Some(overwriter), Some(overwritten)) =
            (ids[request.overwriter.index()], ids[request.overwritten.index()])
        {
            let request = Request::new(overwriter, overwritten, size(request.offset))
                .required(request.required);
            rebuilt.request(request);
        }
    }
    rebuilt.alignment(alignment).padding(problem.padding()).build().unwrap()
}

/// Creates a planner that searches briefly: many short cases find more faults than a few long
/// searches.
fn planner(strategy: Strategy) -> Planner<'static> {
    Planner::new().strategy(strategy).limits(Limits::default().nodes(200))
}

fn plan_of(problem: &Problem, strategy: Strategy) -> Plan {
    let plan = planner(strategy).plan(problem).unwrap();
    assert_eq!(verify(problem, &plan), [], "{strategy}: {problem:#?}");
    plan
}

fn offsets(plan: &Plan) -> Vec<u64> {
    plan.chunks().iter().map(|chunk| chunk.offset).collect()
}

/// Returns the same problem with its chunks in another order, each at the given index.
fn shuffled(problem: &Problem, places: &[usize]) -> Problem {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|&at| places[at]);
    let mut shuffled = Problem::builder();
    let mut ids = vec![None; places.len()];
    for at in order {
        let chunk = problem.chunks()[at];
        ids[at] = Some(shuffled.chunk(chunk.begin..chunk.end, chunk.size));
    }
    let id = |old: ChunkId| ids[old.index()].unwrap();
    for &request in problem.requests() {
        let moved = Request::new(id(request.overwriter), id(request.overwritten), request.offset);
        shuffled.request(moved.required(request.required));
    }
    shuffled.alignment(problem.alignment()).padding(problem.padding()).build().unwrap()
}

/// Checks that a random problem is planned correctly and that plans change with the problem as they
/// must.
pub fn problems_are_planned_rightly(random: &mut Unstructured<'_>) -> Result<()> {
    let wild = Wild { chunks: 16, steps: 12, size: 40, alignment: true };
    let problem = random_problem(random, wild)?;
    let strategy = *random.choose(Strategy::ALL)?;
    let plan = plan_of(&problem, strategy);

    // Compare live bytes, because a search may raise the bound of one problem further than of
    // another.
    let live = |problem: &Problem| problem.lower_bound();

    let mut places: Vec<usize> = (0..problem.len()).collect();
    for at in 1..places.len() {
        places.swap(at, random.choose_index(at + 1)?);
    }

    // Ids are only names: other ids give the same offsets.
    let ids = places.iter().map(|&place| place as u64).collect();
    let mut named = Problem::builder();
    for chunk in problem.chunks() {
        named.chunk(chunk.begin..chunk.end, chunk.size);
    }
    for &request in problem.requests() {
        named.request(request);
    }
    named.with_ids(ids);
    let (alignment, padding) = (problem.alignment(), problem.padding());
    let named = named.alignment(alignment).padding(padding).build().unwrap();
    assert_eq!(offsets(&plan_of(&named, strategy)), offsets(&plan), "{strategy}: {problem:#?}");

    // The same chunks in another order may have other ties, but the bound stays.
    let shuffled = shuffled(&problem, &places);
    let shuffled_plan = plan_of(&shuffled, strategy);
    assert_eq!(verify(&shuffled, &shuffled_plan), [], "{strategy}: {shuffled:#?}");
    if problem.requests().is_empty() {
        assert_eq!(live(&shuffled), live(&problem));
        assert!(shuffled_plan.pool_size() >= plan.lower_bound(), "{strategy}: {shuffled:#?}");
    }

    // Multiplying all sizes and the alignment by a number multiplies all offsets.
    if padding == 0 && strategy != Strategy::Nnvm {
        let factor = 1 << random.int_in_range(1..=4)?;
        let scaled = rebuilt(&problem, alignment * factor, |_| true, |size| size * factor);
        let scaled_plan = plan_of(&scaled, strategy);
        assert_eq!(live(&scaled), live(&problem) * factor);
        let expected: Vec<u64> = offsets(&plan).iter().map(|offset| offset * factor).collect();
        assert_eq!(offsets(&scaled_plan), expected, "{strategy} x {factor}: {problem:#?}");
    }

    // A plan for twice the alignment is also valid for the alignment.
    let coarse = rebuilt(&problem, alignment * 2, |_| true, |size| size);
    let mut coarse_plan = plan_of(&coarse, strategy);
    // An overwriter's bytes, rounded inwards, may be fewer.
    assert!(problem.has_links() || live(&coarse) >= live(&problem));
    let ends = coarse_plan.chunks().iter().filter(|c| c.overwrites.is_none() && c.size > 0);
    let top = ends.map(|chunk| coarse_plan.end_of(chunk)).max().unwrap_or(0);
    *coarse_plan.alignment_mut() = alignment;
    *coarse_plan.pool_size_mut() = top.next_multiple_of(alignment);
    // What holds for plans with all overwrites need not hold for one that gives some up: without an overwriter that
    // lies at an odd offset, even fewer cells of the alignment may be alive.
    let gives_up = strategy.searches() && !problem.requests().is_empty();
    let bound =
        if gives_up { live(&problem).min(coarse_plan.pool_size()) } else { plan.lower_bound() };
    *coarse_plan.lower_bound_mut() = bound;
    *coarse_plan.naive_size_mut() = plan.naive_size();
    *coarse_plan.peak_step_mut() = plan.peak_step();
    *coarse_plan.proven_optimal_mut() = false;
    // The sizes of objects depend on the alignment.
    coarse_plan.objects_mut().clear();
    coarse_plan.chunks_mut().iter_mut().for_each(|chunk| chunk.object = None);
    let mut found = verify(&problem, &coarse_plan);
    // The step with the most bytes alive depends on the overwrites that are taken.
    let is_peak =
        |one: &Violation| matches!(one, Violation::WrongFigure { figure: Figure::PeakStep, .. });
    found.retain(|one| !(gives_up && is_peak(one)));
    assert_eq!(found, [], "{strategy}: {problem:#?}");

    // Removing a chunk that takes part in no overwriting never adds live bytes.
    if !problem.is_empty() {
        let gone = random.choose_index(problem.len())?;
        let asked = |request: &Request| {
            request.overwriter.index() == gone || request.overwritten.index() == gone
        };
        if !problem.requests().iter().any(asked) {
            let less = rebuilt(&problem, alignment, |at| at != gone, |size| size);
            assert!(live(&less) <= live(&problem));
        }
    }
    Ok(())
}

/// Checks that adding an operator whose output is never read never reduces the live bytes.
pub fn one_more_operator_never_reduces_live_bytes(random: &mut Unstructured<'_>) -> Result<()> {
    let Ok(sequence) = random_sequence(random, 8)? else { return Ok(()) };
    let size = random.int_in_range(0..=100_u64)?;
    let mut longer = serde_json::to_value(&sequence).unwrap();
    let more = serde_json::json!({"name": "more", "outputs": [{"name": "more", "size": size}]});
    longer["operators"].as_array_mut().unwrap().push(more);
    let longer: OpSequence = serde_json::from_value(longer).unwrap();
    let strategy = *random.choose(Strategy::ALL)?;
    // One more reader may decide whether an input can be gathered.
    for options in all_options().map(|options| options.gathers(false)) {
        let planner = planner(strategy).lowering(options);
        let Ok(before) = planner.plan(&sequence) else { continue };
        if lower(&sequence, options).is_err() {
            continue;
        }
        assert!(is_planned_rightly(&longer, &planner));
        let after = planner.plan(&longer).unwrap();
        // A search may raise the bound of one sequence further than that of the other.
        let live = |sequence| lower(sequence, options).unwrap().problem.lower_bound();
        assert!(live(&longer) >= live(&sequence).max(size));
        let least = planner.content_bound(&sequence).unwrap().unwrap_or(0);
        assert!(after.pool_size() >= least.min(before.lower_bound()));
        // What is copied has a buffer of its own.
        let is_copied = !(before.copies().len() == 0 && after.copies().len() == 0);
        assert!(is_copied || after.naive_size() == before.naive_size() + size);
    }
    Ok(())
}

/// The number of operators or chunks above which inputs are only read.
const LARGE: usize = 2_000;

/// Checks that bytes in a format are either rejected, or read, planned correctly, and written so
/// that they can be read again. A plan is verified and drawn.
pub fn bytes_are_read_or_refused(bytes: &[u8], format: Format) {
    if format == Format::Tflite {
        let options = ImportOptions::default();
        for options in [options.clone().runtime(Runtime::Interpreter), options.overlap(true)] {
            if let Ok(survey) = survey(bytes, &options) {
                let _ = survey.arena.own_size();
            }
            are_read_or_refused(bytes, format, &options);
        }
    }
    are_read_or_refused(bytes, format, &ImportOptions::default());
}

fn are_read_or_refused(bytes: &[u8], format: Format, options: &ImportOptions) {
    let mut empty = Problem::builder().build().unwrap();
    match read_input(bytes, format, options) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(Input::Problem(problem)) => {
            let mut written = Vec::new();
            write_problem_json(&mut written, &problem).unwrap();
            let again = read_input(&written, Format::Json, options).unwrap();
            if with_number_ids(&problem) {
                assert_eq!(again, Input::Problem(problem.clone()));
            }
            if problem.len() <= LARGE && problem.feature().is_none() {
                draw(&plan_of(&problem, Strategy::Pushdown));
            } else if problem.len() <= LARGE
                && let Ok(plan) = planner(Strategy::FirstFit).plan(&problem)
            {
                assert_eq!(verify(&problem, &plan), [], "{problem:#?}");
                draw(&plan);
            }
            empty = problem;
        }
        Ok(Input::Sequence(sequence)) => {
            let mut written = Vec::new();
            write_sequence_json(&mut written, &sequence).unwrap();
            let again = read_input(&written, Format::Json, options).unwrap();
            assert_eq!(again, Input::Sequence(sequence.clone()));
            if sequence.tensors().len() <= LARGE {
                // Pushdown plans no overlaps.
                let overlaps = options.overlap;
                let strategy = if overlaps { Strategy::FirstFit } else { Strategy::Pushdown };
                is_planned_rightly(&sequence, &Planner::new().strategy(strategy));
            }
        }
    }
    if let Ok(plan) = read_plan(bytes, format, &empty) {
        let _ = verify(&empty, &plan);
        let _ = verify(&OpSequence::default(), &plan);
        let _ = execute(&OpSequence::default(), &plan);
        draw(&plan);
    }
}

/// Converts text ids to names, because JSON has only numbers as ids.
fn with_number_ids(problem: &Problem) -> bool {
    problem.ids().all(|id| problem.number(id).to_string() == problem.id(id))
}

fn draw(plan: &Plan) {
    assert!(summary(plan, None, "").len() + explain(plan, None).len() > 0);
    assert!(!memory_map(plan, None, MapOptions::default()).is_empty());
}
