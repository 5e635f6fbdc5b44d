//! The commands.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use memplan::{
    Bytes, Input, InputRef, OpSequence, Plan, PlannedChunk, Planner, Problem,
    baselines::onnxruntime::MemoryPattern,
    export,
    import::{self, Format},
    order::Reordered,
    plan::ArenaEntry,
    planner::Replanned,
    problem::Pool,
    report::{self, size},
};

use crate::{
    Failure, Verdict,
    advice::advice,
    args::{Emit, ExplainArgs, InputArgs, PlacingArgs, PlanArgs, StrategyArgs},
    files::{self, wrong},
    is_quiet, later, micro, onnxruntime,
    planning::{
        BUILT_IN, built_in, fit, lowered, make_plan, placed, read_plan, sequence_of, stated_order,
    },
    progress::{is_interrupted, searching},
    reorder,
    rules::rules,
    say,
    tflite::{self, TfliteModel},
};

/// Plans the built-in network, and draws the map.
pub(crate) fn demo() -> Result<Verdict, Failure> {
    let sequence = built_in()?;
    let planner = Planner::new().alignment(PlacingArgs::MODEL_ALIGNMENT);
    let plan = planner.plan(&sequence).map_err(|error| wrong(None, error))?;
    let steps = Some(&sequence);
    let options = report::MapOptions::default().height(10).names_only(true);
    let mut out = io::stdout().lock();
    writeln!(out, "{BUILT_IN}")?;
    writeln!(out, "{}", report::summary(&plan, steps, "in-place as declared"))?;
    writeln!(out, "{}", report::memory_map(&plan, steps, options))?;
    writeln!(out, "Plan a model of your own: {} plan MODEL.onnx", command())?;
    Ok(Verdict::Good)
}

/// The relative path by which the command was called; otherwise its name.
fn command() -> String {
    let called = std::env::args_os().next().map(PathBuf::from);
    let called = called.filter(|path| path.is_relative() && path.components().count() > 1);
    called.map_or_else(
        || "memplan".to_owned(),
        |path| report::printable(&path.to_string_lossy()).into_owned(),
    )
}

/// Checks that a plan in CSV can state what is needed to verify it.
fn check_csv(
    plan: &Plan,
    input: &Input,
    args: &PlanArgs,
    output: Option<Format>,
) -> Result<(), Failure> {
    if !args.csv && output != Some(Format::Csv) {
        return Ok(());
    }
    let path = args.input.as_deref();
    let on_streams = |sequence: &OpSequence| sequence.streams() > 1;
    // A problem states its own windows and parts, but not which of the optional parts lie inside others.
    let is_sequence = matches!(input, Input::Sequence(_));
    let stated = if let Input::Problem(problem) = input { problem.parts().len() } else { 0 };
    let missing = [
        (plan.pools().len() > 1, "the pool of a chunk"),
        (plan.pools().iter().any(|pool| pool.largest.is_some()), "the buffers of the pool"),
        (matches!(input, Input::Sequence(sequence) if on_streams(sequence)), "times on streams"),
        (!plan.dims().is_empty(), "the sizes that it holds for"),
        (is_sequence && plan.has_windows(), "the bytes that a chunk needs in part of its life"),
        (plan.parts().len() > stated, "the chunks that lie inside others"),
    ];
    let missing = missing.into_iter().find_map(|(is_needed, what)| is_needed.then_some(what));
    let missing = match missing {
        None => lost(plan, input, path, &args.reading)?,
        missing => missing,
    };
    match missing {
        Some(what) => {
            Err(wrong(path, format!("a plan in CSV cannot state {what}; use .json or --json")))
        }
        None => Ok(()),
    }
}

/// Returns what a plan in CSV of operators says otherwise when it is read: `verify` plans bodies as for a model, and
/// knows only the overwrites that the operators allow together.
fn lost(
    plan: &Plan,
    input: &Input,
    path: Option<&Path>,
    reading: &InputArgs,
) -> Result<Option<&'static str>, Failure> {
    let Input::Sequence(sequence) = input else { return Ok(None) };
    let chunks = plan.chunks();
    if !sequence.has_bodies() && chunks.iter().all(|chunk| chunk.overwrites.is_none()) {
        return Ok(None);
    }
    let path = path.unwrap_or(Path::new(""));
    let problem = lowered(input, path, reading.lowering().gathers(false))?;
    let sizes = problem.chunks().iter().map(|chunk| chunk.size);
    if sequence.has_bodies() && !chunks.iter().map(|chunk| chunk.size).eq(sizes) {
        return Ok(Some("how bodies are planned"));
    }
    let mut csv = Vec::new();
    report::write_plan_csv(&mut csv, plan, None)?;
    let read =
        import::read_plan(&csv, Format::Csv, &problem).map_err(|error| wrong(Some(path), error))?;
    let is_lost = |(written, read): (&PlannedChunk, &PlannedChunk)| {
        written.overwrites.is_some() && read.overwrites.is_none()
    };
    let is_lost = chunks.iter().zip(read.chunks()).any(is_lost);
    Ok(is_lost.then_some("which overwrites it takes"))
}

/// The file that the plan is written to, and its format; none for a C header, which has a writer of its own.
fn output_of(args: &PlanArgs) -> Result<Option<(&Path, Format)>, Failure> {
    let output = match args.output.as_deref() {
        Some(path) if args.emit.is_some() => {
            let read = args.input.as_deref().into_iter().chain(args.later.files());
            files::output("-o", path, read, "omit -o to print the header")?;
            files::check_writable(path)?;
            None
        }
        Some(path) => {
            let read = args.input.as_deref();
            let format = files::plan_to_write(path, read, &args.reading)?;
            files::output("-o", path, args.later.files(), "")?;
            Some((path, format))
        }
        None => None,
    };
    if let Some((path, Format::Csv | Format::Tflite)) = output.filter(|_| args.reorder) {
        let words = "only .json can state the order that --reorder finds; use .json";
        return Err(wrong(Some(path), words));
    }
    Ok(output)
}

pub(crate) fn plan(args: &PlanArgs) -> Result<Verdict, Failure> {
    let output = output_of(args)?;
    micro::check(args)?;
    if let (Some((path, Format::Tflite)), false) = (output, args.later.after.is_empty()) {
        let words = "a model states the plan of one input only; take .json";
        return Err(wrong(Some(path), words));
    }
    let (input, model) = input_of_plan(args)?;
    let start = Instant::now();
    let path = args.input.as_deref();
    let (reading, planning) = (&args.reading, &args.planning);
    let rules = || rules(&input, path, reading, planning.strategy);
    let found =
        if args.reorder { Some(look_for_order(&input, path, reading, planning)?) } else { None };
    let plan = match (&found, args.capacity) {
        (Some(found), Some(capacity)) if found.plan.pool_size() > capacity => {
            say(&format!("{}{OTHER_WAYS}", refusal_of_orders(found, capacity, &rules())));
            return Ok(Verdict::Bad);
        }
        (Some(found), _) => found.plan.clone(),
        (None, None) => {
            make_plan(&input, path, planning.strategy, &planning.planner(reading, &input, path))?
        }
        (None, Some(capacity)) => {
            let plan = fit(&input, path, reading, planning, capacity)?;
            if plan.fits(capacity) == Some(false) {
                say(&(refusal(&plan, capacity, &rules()) + remedy(&input)));
            } else if plan.pool_size() > capacity {
                say(&doubt(&plan, capacity));
            }
            if plan.pool_size() > capacity {
                return Ok(Verdict::Bad);
            }
            plan
        }
    };
    check_csv(&plan, &input, args, output.map(|(_, format)| format))?;
    let took = start.elapsed();
    let arena = match &model {
        Some(model) if !args.reorder => Some(micro::Prediction::of(model, &plan, args)?),
        _ => None,
    };
    let pattern = onnxruntime::pattern(&input, path, reading);
    let shared = micro::SharedPrediction::of(args)?;
    let runtime =
        RuntimeMemory { arena: arena.as_ref(), shared: shared.as_ref(), pattern: pattern.as_ref() };
    let entry = || runtime.entry(&plan);
    let problem = match &input {
        Input::Problem(problem) => Some(problem),
        Input::Sequence(_) => None,
    };
    let mut verdict = Verdict::Good;
    if let (Some(path), Some(arena)) = (&args.c_struct, &arena) {
        arena.write_c_struct(path)?;
    }
    match output {
        Some((path, Format::Tflite)) => {
            if let Some(arena) = &arena {
                verdict = arena.write(path)?;
            }
        }
        Some((path, Format::Csv)) => {
            files::write(path, |out| report::write_plan_csv(out, &plan, problem))?;
        }
        Some((path, _)) => files::write(path, |out| write_plan(out, &plan, &input, took, entry()))?,
        None => {}
    }
    if args.emit == Some(Emit::CHeader) {
        write_header(args, &plan)?;
        return Ok(verdict);
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        write_plan(&mut out, &plan, &input, took, entry())?;
    } else if args.csv {
        report::write_plan_csv(&mut out, &plan, problem)?;
    } else if output.is_none() || args.table || !is_quiet() {
        let name = args.input.as_deref().map_or_else(|| BUILT_IN.to_owned(), files::name);
        writeln!(out, "{}, planned in {}", report::printable(&name), report::seconds(took))?;
        let rules = rules();
        let steps = found.as_ref().map_or(sequence_of(&input), |found| Some(&found.sequence));
        write!(out, "{}", report::summary(&plan, steps, &rules))?;
        if let (Some(found), Input::Sequence(given)) = (&found, &input) {
            write!(out, "\n{}", report::reordering(found, given))?;
        }
        if let Some(found) = better_order(args, &input, &plan) {
            let pool = size(found.pool_size());
            writeln!(out, "another order of the operators needs {pool} or less: memplan reorder")?;
        }
        if let Some(report) = runtime.report(&plan) {
            write!(out, "\n{report}")?;
        }
        if let Some(capacity) = args.capacity {
            writeln!(out, "fits the capacity of {}", size(capacity))?;
        }
        if args.table {
            write!(out, "\n{}", report::offsets(&plan))?;
        }
    }
    out.flush()?;
    Ok(verdict)
}

/// The memory that the runtime of a model takes: TensorFlow Lite, or ONNX Runtime.
#[derive(Clone, Copy)]
struct RuntimeMemory<'a> {
    arena: Option<&'a micro::Prediction<'a>>,
    shared: Option<&'a micro::SharedPrediction>,
    pattern: Option<&'a MemoryPattern>,
}

impl RuntimeMemory<'_> {
    fn entry(self, plan: &Plan) -> Option<ArenaEntry> {
        let pattern = || Some(report::memory_pattern_entry(self.pattern?, plan));
        let shared = || self.shared.map(micro::SharedPrediction::entry);
        self.arena.map(micro::Prediction::entry).or_else(shared).or_else(pattern)
    }

    fn report(self, plan: &Plan) -> Option<String> {
        let pattern = || Some(report::memory_pattern(self.pattern?, plan));
        let shared = || self.shared.map(micro::SharedPrediction::report);
        self.arena.map(micro::Prediction::report).or_else(shared).or_else(pattern)
    }
}

/// The plan in an order that needs a smaller pool, if a brief search finds one.
fn better_order(args: &PlanArgs, input: &Input, plan: &Plan) -> Option<Plan> {
    let (Input::Sequence(sequence), Some(path)) = (input, args.input.as_deref()) else {
        return None;
    };
    let is_given = plan.order().is_empty() && args.later.after.is_empty();
    let is_limited = args.planning.searching.limits().time.is_some() || is_interrupted();
    if !is_given || is_limited || args.capacity.is_some() {
        return None;
    }
    let planner = args.planning.planner(&args.reading, input, Some(path));
    planner.probe_orders(sequence, plan)
}

/// Writes a plan as a C header, named after the input.
fn write_header(args: &PlanArgs, plan: &Plan) -> Result<(), Failure> {
    let path = args.input.as_deref();
    let stem = path.filter(|path| path.as_os_str() != "-").and_then(Path::file_stem);
    let stem = stem.map_or_else(|| "model".to_owned(), |stem| stem.display().to_string());
    let mut header = export::c_header(&stem, plan).map_err(|error| wrong(path, error))?;
    if path.is_some_and(|path| files::is_tflite(path, &args.reading)) {
        header.insert_str(
            0,
            "/* The runtime's tensor arena holds more than this pool, its head: see memplan plan. */\n",
        );
    }
    match &args.output {
        Some(output) => files::write(output, |out| out.write_all(header.as_bytes())),
        None => Ok(io::stdout().lock().write_all(header.as_bytes())?),
    }
}

/// Reads what is to be planned, and a TensorFlow Lite model with what its runtime places.
fn input_of_plan(args: &PlanArgs) -> Result<(Input, Option<TfliteModel>), Failure> {
    let is_alone = args.later.after.is_empty();
    match args.input.as_deref() {
        Some(path) if is_alone && files::is_tflite(path, &args.reading) => {
            let model = tflite::read(path, &args.reading)?;
            Ok((Input::Sequence(model.survey.sequence.clone()), Some(model)))
        }
        path => Ok((later::input(path, &args.reading, &args.later)?, None)),
    }
}

/// Writes a plan as JSON, with the order that its input states.
fn write_plan(
    out: &mut dyn Write,
    plan: &Plan,
    input: &Input,
    took: Duration,
    arena: Option<ArenaEntry>,
) -> io::Result<()> {
    let stated = plan.clone().with_order(stated_order(plan, input));
    report::write_plan_file(out, stated, Some(took), arena)
}

/// Looks for a better order, and plans it.
fn look_for_order(
    input: &Input,
    path: Option<&Path>,
    reading: &InputArgs,
    planning: &StrategyArgs,
) -> Result<Replanned<Reordered>, Failure> {
    let planner = planning.planner(reading, input, path);
    reorder::look(input, path, &planner, planning.searching.order_limits())
}

/// The advice where no order fits.
const OTHER_WAYS: &str = "; recomputation (memplan recompute) may need less";

/// The advice where no plan fits.
const fn remedy(input: &Input) -> &'static str {
    match input {
        Input::Sequence(_) => {
            "; another order (--reorder) or recomputation (memplan recompute) may need less"
        }
        Input::Problem(_) => "; 'memplan explain --capacity' names chunks that do not fit together",
    }
}

/// Reports that no plan fits in any of the orders found.
fn refusal_of_orders(found: &Replanned<Reordered>, capacity: Bytes, rules: &str) -> String {
    let bound = found.change.lower_bound;
    if bound <= capacity {
        return doubt(&found.plan, capacity);
    }
    format!(
        "does not fit: capacity {}, but every order needs at least {} (proven) under these rules: {rules}",
        size(capacity),
        size(bound)
    )
}

/// Reports that no plan fits.
fn refusal(plan: &Plan, capacity: Bytes, rules: &str) -> String {
    let of_all = plan.content_bound().filter(|&bound| bound > capacity);
    let scoped = of_all.map_or_else(|| report::scoped(plan), |_| "plan");
    let is_smallest = plan.proven_optimal() && plan.pools().len() < 2;
    let bound = if is_smallest { plan.pool_size() } else { plan.lower_bound() };
    format!(
        "does not fit: capacity {}, but every {scoped} needs at least {} (proven) under these rules: {rules}",
        size(capacity),
        size(of_all.unwrap_or(bound))
    )
}

/// Reports that it is not known whether a plan fits.
fn doubt(plan: &Plan, capacity: Bytes) -> String {
    let remedy = match plan.strategy() {
        _ if is_interrupted() => "the search was interrupted",
        Some(strategy) if strategy.searches() => "--effort and --time-limit extend the search",
        _ => "--strategy optimal searches for a plan that fits",
    };
    format!(
        "unknown: the smallest pool found so far, {}, exceeds the capacity of {}; it is {}; {remedy}",
        size(plan.pool_size()),
        size(capacity),
        report::bound_ratio(plan)
    )
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<Verdict, Failure> {
    let (given, recording) =
        later::recorded_input(args.input.as_deref(), &args.reading, &args.later)?;
    if let Some(capacity) = args.capacity {
        return explain_capacity(args, &given, capacity);
    }
    let path = args.input.as_deref();
    let pattern = onnxruntime::pattern(&given, path, &args.reading);
    let mut reordering = None;
    let (plan, input) = match (args.plan.as_deref(), path) {
        (Some(plan), Some(path)) => read_plan(plan, given, path, &args.reading)?,
        _ if args.reorder => {
            let found = look_for_order(&given, path, &args.reading, &args.planning)?;
            if let Input::Sequence(given) = &given {
                reordering = Some(report::reordering(&found, given));
            }
            (found.plan, Input::Sequence(found.sequence))
        }
        _ => {
            let planner = args.planning.planner(&args.reading, &given, path);
            (make_plan(&given, path, args.planning.strategy, &planner)?, given)
        }
    };
    let steps = sequence_of(&input);
    let traffic = traffic(&plan, &input, path, args);
    let advice = advice(args, &input, &plan)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        let mut explained = report::explain_json(&plan, steps);
        explained["advice"] = report::advice_json(&advice);
        if let Some(traffic) = &traffic {
            explained["traffic"] = report::traffic_json(&plan, traffic);
        }
        if let Some(recording) = &recording {
            explained["recording"] = report::recording_json(recording, &plan);
        }
        if let Input::Sequence(sequence) = &input
            && let Some(reruns) = report::reruns_json(sequence)
        {
            explained["runs_twice"] = reruns;
        }
        report::write_json(&mut out, &explained)?;
        out.flush()?;
        return Ok(Verdict::Good);
    }
    if let Some(reordering) = reordering {
        writeln!(out, "{reordering}")?;
    }
    if let Some(recording) = &recording {
        writeln!(out, "{}", report::recording(recording, &plan))?;
        writeln!(out, "What would one static pool take?")?;
    }
    let rules = match &args.plan {
        Some(_) => "as in the plan".to_owned(),
        None => rules(&input, path, &args.reading, args.planning.strategy),
    };
    write!(out, "{}", report::summary(&plan, steps, &rules))?;
    if let Some(traffic) = &traffic {
        write!(out, "\n{}", report::traffic(&plan, traffic))?;
    }
    if let Some(path) = path.filter(|path| shows_arena(args, path)) {
        write!(out, "\n{}", micro::arena(path, &args.reading, &plan)?)?;
    }
    if let Some(pattern) = pattern {
        write!(out, "\n{}", report::memory_pattern(&pattern, &plan))?;
    }
    write!(out, "\n{}", report::explain(&plan, steps))?;
    if let Input::Sequence(sequence) = &input {
        let reruns = report::explain_reruns(sequence, &plan);
        let line = if reruns.is_empty() { "" } else { "\n" };
        write!(out, "{line}{reruns}")?;
    }
    if !advice.is_empty() {
        write!(out, "\n{}", report::advice_text(&advice, steps))?;
    }
    out.flush()?;
    Ok(Verdict::Good)
}

/// Returns whether what is explained is a new plan of a TensorFlow Lite model, which can be read again.
fn shows_arena(args: &ExplainArgs, path: &Path) -> bool {
    let is_new = args.plan.is_none() && !args.reorder && args.later.after.is_empty();
    let is_one_pool = !args.planning.placing.has_pools();
    is_new && is_one_pool && files::is_tflite(path, &args.reading) && path.is_file()
}

/// The problem of a plan in several pools, for comparing the traffic of the plan with the traffic of simple rules.
fn traffic(plan: &Plan, input: &Input, path: Option<&Path>, args: &ExplainArgs) -> Option<Problem> {
    if plan.pools().len() < 2 {
        return None;
    }
    let lowering = args.reading.lowering().gathers(!plan.parts().is_empty());
    let planner = args.planning.planner(&args.reading, input, path).lowering(lowering);
    let planner = planner.alignment(plan.alignment()).padding(plan.padding());
    let lowered = planner.lower(input).ok()?.problem;
    if lowered.pools().len() > 1 {
        return Some(lowered);
    }
    // A plan from a file lists the pools that it was made for.
    let pools = plan.pools().iter().map(|of| {
        let pool = Pool::new(&*of.name).cost(of.cost);
        of.capacity.map_or(pool.clone(), |capacity| pool.capacity(capacity))
    });
    Some(planner.pools(pools.collect::<Vec<_>>()).lower(input).ok()?.problem)
}

/// Lists the chunks that do not fit together, if the input does not fit.
fn explain_capacity(
    args: &ExplainArgs,
    input: &Input,
    capacity: Bytes,
) -> Result<Verdict, Failure> {
    let path = args.input.as_deref();
    let start = Instant::now();
    let plan = fit(input, path, &args.reading, &args.planning, capacity)?;
    let mut out = io::stdout().lock();
    match plan.fits(capacity) {
        Some(true) => {
            let (pool, capacity) = (size(plan.pool_size()), size(capacity));
            writeln!(out, "It fits: pool {pool}, capacity {capacity}.")?;
            writeln!(out, "The pool is {}.", report::bound_ratio(&plan))?;
            return Ok(Verdict::Good);
        }
        Some(false) => {}
        None => {
            say(&doubt(&plan, capacity));
            return Ok(Verdict::Bad);
        }
    }
    let mut limits = args.planning.searching.limits();
    limits.time = limits.time.map(|time| time.saturating_sub(start.elapsed()));
    // The search for chunks that do not fit together supports chains only. With a time limit or several threads, it may
    // end differently than the search for a plan.
    let has_gathers = args.reading.lowering().gathers && InputRef::from(input).has_gathers();
    let file = path.unwrap_or(Path::new(BUILT_IN));
    let problem = placed(input, file, &args.reading, &args.planning.placing).ok();
    let problem = problem.filter(|problem| !has_gathers && problem.feature().is_none());
    let found = problem.as_ref().and_then(|problem| {
        let planner = Planner::new().limits(limits);
        searching(Some(capacity), &planner, |planner| planner.conflict(problem, capacity))
    });
    if let Some((problem, conflict)) = problem.zip(found) {
        let steps = sequence_of(input);
        write!(out, "{}", report::conflict(&problem, capacity, &conflict, steps))?;
    } else {
        let rules = rules(input, path, &args.reading, args.planning.strategy);
        say(&refusal(&plan, capacity, &rules));
    }
    Ok(Verdict::Bad)
}
