//! TensorFlow Lite models: the arena that the runtime needs, and models with a plan in their metadata.

use std::{
    fmt::Display,
    io::{self, Write},
    path::{Path, PathBuf},
};

use memplan::{
    Input, Plan,
    export::tflite::{OfflinePlan, c_struct},
    import::tflite::Survey,
    plan::ArenaEntry,
    report::{self, count, size},
    verify,
};

use crate::{
    Failure, Verdict,
    args::{InputArgs, PlanArgs, VerifyArgs},
    files::{self, wrong},
    note,
    planning::make_plan,
    say,
    tflite::{self, TfliteModel},
};

/// The arena of the runtime for a model, with a plan and without.
pub(crate) struct Prediction<'a> {
    model: &'a TfliteModel,
    plan: &'a Plan,
    args: &'a PlanArgs,
    path: &'a Path,
    entry: ArenaEntry,
}

/// Checks the options that apply only to models for the runtime.
pub(crate) fn check(args: &PlanArgs) -> Result<(), Failure> {
    let is_model = |path: &Path| files::is_tflite(path, &args.reading);
    if !args.input.as_deref().is_some_and(is_model) {
        let given = [(args.c_struct.is_some(), "--c-struct"), (args.replace, "--replace")];
        if let Some((_, option)) = given.into_iter().find(|(given, _)| *given) {
            let words = format!("{option} applies only to TensorFlow Lite models; omit it");
            return Err(wrong(args.input.as_deref(), words));
        }
    }
    if args.reading.is_for_interpreter() {
        let writes = args.output.as_deref().is_some_and(files::is_named_tflite);
        let given = [(args.c_struct.is_some(), "--c-struct"), (writes, "-o with .tflite")];
        if let Some((_, option)) = given.into_iter().find(|(given, _)| *given) {
            let remedy = format!("{option} or --runtime");
            return Err(wrong(args.input.as_deref(), takes_no_plan(&remedy)));
        }
    }
    if args.input.as_deref().is_some_and(is_model) && args.planning.placing.has_pools() {
        let words = "the runtime has one arena for a TensorFlow Lite model; omit --pool";
        return Err(wrong(args.input.as_deref(), words));
    }
    if let Some(path) = &args.c_struct {
        let read = [&args.input, &args.reading.scratch, &args.output].into_iter().flatten();
        files::output("--c-struct", path, read.map(PathBuf::as_path), "it writes a file")?;
        files::check_writable(path)?;
    }
    Ok(())
}

fn takes_no_plan(remedy: &str) -> String {
    format!("TensorFlow Lite's interpreter takes no plan from outside; omit {remedy}")
}

impl<'a> Prediction<'a> {
    pub(crate) fn of(
        model: &'a TfliteModel,
        plan: &'a Plan,
        args: &'a PlanArgs,
    ) -> Result<Self, Failure> {
        let path = args.input.as_deref().unwrap_or(Path::new(""));
        let entry = entry(model, plan, path, &args.reading)?;
        let prediction = Self { model, plan, args, path, entry };
        if args.csv {
            // CSV cannot hold the prediction.
            note(&prediction.line());
        }
        Ok(prediction)
    }

    fn is_smaller(&self) -> bool {
        self.entry.planned < self.entry.own
    }

    /// The report in the plan's file.
    pub(crate) fn entry(&self) -> ArenaEntry {
        self.entry.clone()
    }

    /// The report below the summary of the plan.
    pub(crate) fn report(&self) -> String {
        let mut text = report::arena(&self.entry);
        let has_faults = !self.entry.wrong_plan.is_empty();
        let is_writable = OfflinePlan::check_model(&self.model.bytes).is_ok();
        let is_free = !self.entry.planned_already || self.args.replace;
        let is_micro = !self.args.reading.is_for_interpreter();
        let can_write = is_micro && self.args.output.is_none() && is_writable;
        if can_write && has_faults {
            text.push_str("  --replace -o OUT.tflite writes the model with a right plan.\n");
        } else if can_write && self.is_smaller() && is_free {
            text.push_str("  -o OUT.tflite writes the model with this plan.\n");
        }
        let output = self.args.output.as_deref().filter(|path| files::is_named_tflite(path));
        let is_written = self.is_smaller() || has_faults;
        if let Some(output) = output.filter(|_| is_written) {
            let (model, output) = (files::name(self.path), files::name(output));
            let options = self.args.reading.arena_options();
            text.push_str(&report::printable(&format!(
                "  check it: memplan verify {model} {output}{options}"
            )));
            text.push('\n');
        }
        text
    }

    /// The report in one line.
    fn line(&self) -> String {
        let ArenaEntry { own, planned, planned_already, .. } = self.entry;
        let without = if planned_already { "with the file's plan" } else { "by its own planner" };
        let what = if self.args.reading.is_for_interpreter() {
            "arena of TensorFlow Lite's interpreter"
        } else {
            "head of TensorFlow Lite Micro's arena"
        };
        let wrong =
            if self.entry.wrong_plan.is_empty() { "" } else { "; the plan in the file is wrong" };
        format!("{what}: {} {without}, {} with this plan{wrong}", size(own), size(planned))
    }

    /// Writes the model with the plan in its metadata, if the runtime then takes less memory or the plan
    /// there is wrong. The bytes to be written are read back first: they must be the same model, and its
    /// plan must work.
    pub(crate) fn write(&self, path: &Path) -> Result<Verdict, Failure> {
        let Self { model, plan, entry, .. } = self;
        if !self.is_smaller() && entry.wrong_plan.is_empty() {
            say(&format!(
                "{}: nothing is written: with this plan, the runtime would take a head of {}, and without it {}",
                path.display(),
                size(entry.planned),
                size(entry.own)
            ));
            return Ok(Verdict::Bad);
        }
        if let Some(fault) = entry.wrong_plan.first().filter(|_| !self.args.replace) {
            let words = format!("its plan is wrong: {fault}; replace it with --replace");
            return Err(wrong(Some(self.path), words));
        }
        let arena = &model.survey.arena;
        let failed = |error: &dyn Display| wrong(Some(self.path), error);
        // A wrong plan is replaced even if no plan takes less than the runtime's own planner.
        let offline = if self.is_smaller() {
            OfflinePlan::of_plan(arena, plan)
        } else {
            note("the runtime's own planner takes no more, so the new plan states no offsets");
            OfflinePlan::online(arena)
        };
        let planned = offline.simulate(&model.survey).map_err(|error| failed(&error))?;
        let bytes = offline
            .write(&model.bytes, arena, self.args.replace)
            .map_err(|error| failed(&error))?;
        let written = model.survey(&bytes, self.path)?;
        let found = OfflinePlan::of_model(&bytes).map_err(|error| wrong(Some(path), error))?;
        let is_right = written == model.survey
            && found.as_ref() == Some(&offline)
            && verify::execute(&written.sequence, &planned).is_empty();
        if !is_right {
            let words = "with its plan, the model would be read as another one or run wrongly; nothing is written, and this is a bug in memplan";
            return Err(wrong(Some(self.path), words));
        }
        files::write(path, |out| out.write_all(&bytes))?;
        Ok(Verdict::Good)
    }

    /// Writes all offsets, also of scratch buffers, as C++ source.
    pub(crate) fn write_c_struct(&self, path: &Path) -> Result<(), Failure> {
        let Survey { sequence, arena, .. } = &self.model.survey;
        if let Some(violation) = verify::execute(sequence, self.plan).first() {
            let words = format!("the plan would run wrongly, and is not written: {violation}");
            return Err(wrong(Some(self.path), words));
        }
        let stem = self.path.file_stem().map(|stem| stem.display().to_string());
        let stem = format!("memplan_{}", stem.unwrap_or_default());
        match c_struct(&stem, arena, self.plan) {
            Some(text) => files::write(path, |out| out.write_all(text.as_bytes())),
            None => Err(wrong(
                Some(self.path),
                "--c-struct needs offsets at multiples of 16 below 2 GiB; omit --alignment",
            )),
        }
    }
}

/// The arena of the runtime for models that share it, each with a plan of its own and without.
pub(crate) struct SharedPrediction(ArenaEntry);

impl SharedPrediction {
    /// Plans each model alone, as the plan in a file is. `None` if others than models run in the pool, or if the
    /// options refer to the pool of all.
    pub(crate) fn of(args: &PlanArgs) -> Result<Option<Self>, Failure> {
        let PlanArgs { input, reading, planning, later, .. } = args;
        let paths: Vec<&Path> = input.as_deref().into_iter().chain(later.files()).collect();
        let is_model = |path: &&Path| !files::is_standard(path) && files::is_tflite(path, reading);
        let is_shared = !later.after.is_empty() && paths.iter().all(is_model);
        let is_bound = planning.placing.has_pins() || !later.share.is_empty();
        if !is_shared || is_bound || reading.is_for_interpreter() {
            return Ok(None);
        }
        let (mut models, mut entries) = (Vec::new(), Vec::new());
        for path in paths {
            let model = tflite::read_quietly(path, reading)?;
            let input = Input::Sequence(model.survey.sequence.clone());
            let planner = planning.planner(reading, &input, Some(path));
            let plan = make_plan(&input, Some(path), planning.strategy, &planner)?;
            let mut entry = self::entry(&model, &plan, path, reading)?;
            let name = files::short_name(path);
            for words in entry.wrong_plan.iter_mut().chain(&mut entry.unknown_scratch) {
                *words = format!("{name}: {words}");
            }
            entries.push(entry);
            models.push(model);
        }
        let arenas = models.iter().map(|model| &model.survey.arena);
        let Some(shared) = report::shared_arena_entry(arenas.zip(entries).collect()) else {
            return Ok(None);
        };
        if args.csv {
            // CSV cannot hold the prediction.
            let ArenaEntry { own, planned, .. } = shared;
            note(&format!(
                "head of TensorFlow Lite Micro's arena: {} for the files, {} with a plan of each",
                size(own),
                size(planned)
            ));
        }
        Ok(Some(Self(shared)))
    }

    /// The report in the plan's file.
    pub(crate) fn entry(&self) -> ArenaEntry {
        self.0.clone()
    }

    /// The report below the summary of the plan.
    pub(crate) fn report(&self) -> String {
        let mut text = report::arena(&self.0);
        if self.0.planned < self.0.own {
            text.push_str("  memplan plan MODEL -o OUT.tflite writes one model with its plan.\n");
        }
        text
    }
}

/// Reports the arena that the runtime takes for a model, by its own planner or the plan in the file, and with this plan.
pub(crate) fn arena(path: &Path, reading: &InputArgs, plan: &Plan) -> Result<String, Failure> {
    let model = tflite::read(path, reading)?;
    Ok(report::arena(&entry(&model, plan, path, reading)?))
}

/// The figures of the arena with a plan and without. A wrong plan in the file is not compared with.
fn entry(
    model: &TfliteModel,
    plan: &Plan,
    path: &Path,
    reading: &InputArgs,
) -> Result<ArenaEntry, Failure> {
    let (present, faults) = match OfflinePlan::right(&model.bytes, &model.survey) {
        Ok(present) => (present, Vec::new()),
        Err(faults) => (None, faults),
    };
    let kernels = tflite::kernel_library(reading).unwrap_or_default();
    let arena = &model.survey.arena;
    report::arena_entry(arena, plan, present.as_ref(), kernels, &faults)
        .map_err(|error| wrong(Some(path), error))
}

/// Verifies the plan in the metadata of a model against the model that it was made for.
pub(crate) fn verify(args: &VerifyArgs) -> Result<Verdict, Failure> {
    let ignored = [
        (args.alignment.is_some(), "--alignment"),
        (args.padding.is_some(), "--padding"),
        (!args.reading.lowering().views, "--no-views"),
    ];
    if let Some((_, option)) = ignored.into_iter().find(|(given, _)| *given) {
        let words = format!("{option} has no effect on the plan in a model; omit it");
        return Err(wrong(Some(args.plan()), words));
    }
    if args.reading.is_for_interpreter() {
        return Err(wrong(Some(args.plan()), takes_no_plan("--runtime")));
    }
    let model = tflite::read(&args.input, &args.reading)?;
    let survey = &model.survey;
    let bytes = files::read(args.plan(), args.reading.max_input)?;
    let planned = model.survey(&bytes, args.plan())?;
    let mut problems = Vec::new();
    if let Err(error) = OfflinePlan::check_model(&bytes) {
        problems.push(error.to_string());
    }
    if planned != *survey {
        problems.push("the two models differ in their operators or tensors".to_owned());
    }
    let offline = OfflinePlan::of_model(&bytes).map_err(|error| wrong(Some(args.plan()), error))?;
    let Some(offline) = offline else {
        return Err(wrong(
            Some(args.plan()),
            "the model has no offline plan in its metadata; memplan plan MODEL -o OUT.tflite writes one",
        ));
    };
    let head = offline.simulate(&planned).map_err(|error| wrong(Some(args.plan()), error))?;
    problems.extend(offline.faults(&planned, &head));
    let own = OfflinePlan::online(&survey.arena).simulate(survey);
    let own = own.map_err(|error| wrong(Some(&args.input), error))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if problems.is_empty() {
        let tensors = offline.offsets.iter().filter(|offset| offset.is_some()).count();
        writeln!(out, "correct: {} at fixed offsets", count(tensors as u64, "tensor"))?;
        write!(out, "{}", report::heads(own.pool_size(), head.pool_size()))?;
    } else {
        write!(out, "{}", report::violations(&problems, crate::verify::shown()))?;
        let kernels = tflite::kernel_library(&args.reading).unwrap_or_default();
        let overlaps = if args.reading.overlap { "with --overlap" } else { "without --overlap" };
        writeln!(
            out,
            "checked for {kernels} kernels, {overlaps}; the options must be as for plan:\n  --kernels, --overlap, --inplace, --scratch"
        )?;
    }
    out.flush()?;
    Ok(if problems.is_empty() { Verdict::Good } else { Verdict::Bad })
}
