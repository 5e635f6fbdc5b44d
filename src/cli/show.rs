//! The memory map in every form: on the terminal, and in files according to their names.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use memplan::{
    Input, OpSequence, Plan, Planner, Problem, Step, Strategy,
    report::{self, MapOptions, MapSheet},
};

use crate::{
    Failure, Verdict,
    args::ShowArgs,
    files, later,
    planning::{BUILT_IN, make_plan, placed, read_plan, sequence_of},
    recordings, reorder,
    terminal::map_options,
};

/// The form of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Svg,
    Html,
    /// For Perfetto and other trace viewers.
    Trace,
}

impl Form {
    fn of(path: &Path) -> Result<Self, Failure> {
        let end = path.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
        match end.as_deref() {
            Some("txt") => Ok(Self::Text),
            Some("svg") => Ok(Self::Svg),
            Some("html") => Ok(Self::Html),
            Some("json") => Ok(Self::Trace),
            // This may be a device such as /dev/stdout.
            _ if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) => {
                Ok(Self::Text)
            }
            _ => Err(Failure::Input(format!(
                "{}: a map is .svg, .html, .txt, or .json for a trace viewer",
                path.display()
            ))),
        }
    }
}

pub(crate) fn show(args: &ShowArgs) -> Result<Verdict, Failure> {
    let form = match args.output.as_deref() {
        Some(path) => {
            let read =
                args.input.as_deref().into_iter().chain(args.plan.iter().map(PathBuf::as_path));
            let read = read.chain(args.later.files());
            files::output("-o", path, read, "omit -o to print the map")?;
            Form::of(path)?
        }
        None => Form::Text,
    };
    let (given, recording) =
        later::recorded_input(args.input.as_deref(), &args.reading, &args.later)?;
    if let Some(recording) = recording
        && recordings::are_shown(args)?
    {
        return recordings::show(args, form, recording);
    }
    if args.strategies().len().max(args.plan.len()) > 1 && form != Form::Html {
        let several = if args.plan.is_empty() { "strategies" } else { "plans" };
        let words = format!("several {several} need an .html file");
        return Err(Failure::Input(words));
    }
    let text = match form {
        _ if args.simulation && form != Form::Svg => {
            return Err(Failure::Input("the simulation needs an .svg file".to_owned()));
        }
        _ if args.scale.is_some() && form != Form::Svg => {
            return Err(Failure::Input("--scale needs an .svg file".to_owned()));
        }
        Form::Svg if args.simulation => simulation(args, &given)?,
        Form::Html => page(args, given)?,
        _ if args.reorder => both_orders(args, form, &given)?,
        Form::Text | Form::Svg | Form::Trace => {
            let (plan, input) = plan(args, given, args.strategies()[0])?;
            draw(args, form, &plan, sequence_of(&input))
        }
    };
    write(args, &text)
}

/// Writes a map to the file given, or prints it.
pub(crate) fn write(args: &ShowArgs, text: &str) -> Result<Verdict, Failure> {
    match &args.output {
        Some(path) => files::write(path, |out| out.write_all(text.as_bytes()))?,
        None => io::stdout().lock().write_all(text.as_bytes())?,
    }
    Ok(Verdict::Good)
}

/// The width asked for, in pixels.
fn pixels(args: &ShowArgs) -> Option<u32> {
    args.width.map(|width| u32::try_from(width).unwrap_or(u32::MAX))
}

/// The options of a picture of maps.
pub(crate) fn picture(args: &ShowArgs) -> MapOptions {
    let fitting = MapOptions::default().scale(args.scale.unwrap_or(0));
    args.width.map_or(fitting, |width| fitting.width(width))
}

fn draw(args: &ShowArgs, form: Form, plan: &Plan, steps: Option<&OpSequence>) -> String {
    match form {
        Form::Svg => report::pool_maps_svg(plan, steps, picture(args)),
        Form::Trace => report::trace(plan, steps),
        Form::Text | Form::Html => {
            report::pool_maps(plan, steps, map_options(args.width, args.height))
        }
    }
}

/// The maps of the order given and of a better one, on one scale.
fn both_orders(args: &ShowArgs, form: Form, given: &Input) -> Result<String, Failure> {
    if form == Form::Trace {
        let words = "both orders are drawn as .svg, .html or .txt; memplan reorder writes the new one to a file, which show takes";
        return Err(Failure::Input(words.to_owned()));
    }
    let planner = args.planner(args.strategies()[0], given);
    let found = reorder::look(given, args.input.as_deref(), &planner, args.order_limits())?;
    let (before, after) = (sequence_of(given), Some(&found.sequence));
    let maps =
        [("In the order given", &found.given, before), ("In the order found", &found.plan, after)];
    let maps = if found.change.is_better() { &maps[..] } else { &maps[..1] };
    Ok(match form {
        Form::Svg => report::memory_maps_svg(maps, picture(args)),
        _ => report::memory_maps(maps, map_options(args.width, args.height)),
    })
}

fn simulation(args: &ShowArgs, input: &Input) -> Result<String, Failure> {
    let path = args.input.as_deref().unwrap_or(Path::new(BUILT_IN));
    let problem = placed(input, path, &args.reading, &args.placing)?;
    let steps = args.steps.clone().unwrap_or(0..Step::MAX);
    // The last chunks are freed after the last step.
    if args.steps.is_some() && steps.start > problem.steps() {
        return Err(Failure::Input(format!(
            "{}: there {} {}, and --steps begins with step {}",
            files::name(path),
            if problem.steps() == 1 { "is" } else { "are" },
            report::count(problem.steps(), "step"),
            steps.start
        )));
    }
    Ok(report::simulation_svg(&problem, steps, pixels(args).unwrap_or(960)))
}

/// Plans of the same chunks, and the operators in the order that the plans are for.
struct Sheet {
    label: String,
    plans: Vec<Plan>,
    input: Input,
}

fn page(args: &ShowArgs, given: Input) -> Result<String, Failure> {
    let name = match args.input.as_deref() {
        Some(path) => files::short_name(path),
        None => BUILT_IN.to_owned(),
    };
    let sheets: Vec<Sheet> = sheets(args, given)?;
    let problems: Vec<Option<Problem>> =
        sheets.iter().map(|sheet| problem(args, &sheet.input, &sheet.plans[0])).collect();
    let sheets: Vec<MapSheet<'_>> = sheets
        .iter()
        .zip(&problems)
        .map(|(Sheet { label, plans, input }, problem)| {
            MapSheet::new(plans, sequence_of(input)).problem(problem.as_ref()).label(label)
        })
        .collect();
    Ok(report::memory_map_html(&name, &sheets))
}

/// Collects what a page shows: plans by several strategies have the same chunks; orders, and plans
/// from files, may have others.
fn sheets(args: &ShowArgs, given: Input) -> Result<Vec<Sheet>, Failure> {
    if args.reorder {
        let planner = args.planner(args.strategies()[0], &given);
        let found = reorder::look(&given, args.input.as_deref(), &planner, args.order_limits())?;
        let is_better = found.change.is_better();
        let (before, after) = (vec![found.given], vec![found.plan]);
        let mut sheets =
            vec![Sheet { label: "order given".to_owned(), plans: before, input: given }];
        if is_better {
            let input = Input::Sequence(found.sequence);
            sheets.push(Sheet { label: "order found".to_owned(), plans: after, input });
        }
        return Ok(sheets);
    }
    if args.plan.is_empty() {
        let made = |&strategy| {
            make_plan(&given, args.input.as_deref(), strategy, &args.planner(strategy, &given))
        };
        let plans = args.strategies().iter().map(made).collect::<Result<_, _>>()?;
        return Ok(vec![Sheet { label: String::new(), plans, input: given }]);
    }
    let label = |path: &Path| match args.plan.len() {
        1 => String::new(),
        _ => files::short_name(path),
    };
    let stored = |path: &PathBuf| {
        let (plan, input) = stored(args, given.clone(), path)?;
        Ok(Sheet { label: label(path), plans: vec![plan], input })
    };
    args.plan.iter().map(stored).collect()
}

/// Reads the plan from the given file, or makes one.
fn plan(args: &ShowArgs, input: Input, strategy: Strategy) -> Result<(Plan, Input), Failure> {
    if let Some(path) = args.plan.first() {
        return stored(args, input, path);
    }
    let planner = args.planner(strategy, &input);
    Ok((make_plan(&input, args.input.as_deref(), strategy, &planner)?, input))
}

/// Reads a plan from a file. On the command line, its input comes before it.
fn stored(args: &ShowArgs, input: Input, plan: &Path) -> Result<(Plan, Input), Failure> {
    let path = args.input.as_deref().unwrap_or(Path::new(BUILT_IN));
    read_plan(plan, input, path, &args.reading)
}

/// The problem to simulate for a plan: the chunks with its alignment and padding, and with gathered inputs inside their
/// outputs if they are in the plan. `None` if the plan made choices without which the input cannot be lowered.
fn problem(args: &ShowArgs, input: &Input, plan: &Plan) -> Option<Problem> {
    let options = args.reading.lowering().gathers(!plan.parts().is_empty());
    let planner = Planner::new().alignment(plan.alignment()).padding(plan.padding());
    let lowered = planner.lowering(options).lower(input);
    lowered.ok().map(|lowered| lowered.problem)
}
