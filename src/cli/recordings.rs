//! Recordings of allocations: reading them, and maps of what the program's allocator did beside a plan.

use std::path::Path;

use memplan::{
    Input, Plan,
    import::{
        Format,
        recording::{self, Recording},
    },
    report::{self, MapSheet},
};

use crate::{
    Failure, Verdict,
    args::{InputArgs, ShowArgs},
    files::{self, wrong},
    planning::make_plan,
    show::{self, Form},
    terminal::map_options,
};

/// The end of the name of XLA's buffer assignment, and of the live ranges that newer versions write beside it.
const ASSIGNMENT: &str = "-buffer-assignment.txt";
const RANGES: &str = "-live-range.txt";

/// Returns whether a file is a recording. An option that is only for recordings is an error for others.
pub(crate) fn check(
    path: &Path,
    bytes: &[u8],
    format: Format,
    args: &InputArgs,
) -> Result<bool, Failure> {
    let is_recording = recording::is_recording(bytes, format);
    if args.device.is_some() && !is_recording {
        let words = "--device applies only to recordings of allocations; omit it";
        return Err(wrong(Some(path), words));
    }
    Ok(is_recording)
}

/// Reads a recording. The live ranges of XLA's buffer assignment may stand in a file beside it.
pub(crate) fn read(
    path: &Path,
    mut bytes: Vec<u8>,
    format: Format,
    args: &InputArgs,
) -> Result<Recording, Failure> {
    let name = path.display().to_string();
    if let (Format::Xla, Some(stem)) = (format, name.strip_suffix(ASSIGNMENT)) {
        let beside = format!("{stem}{RANGES}");
        if Path::new(&beside).is_file() {
            bytes.push(b'\n');
            bytes.extend(files::read(Path::new(&beside), args.max_input)?);
        }
    }
    let recording = recording::read(&bytes, format, args.device.as_deref());
    recording.map_err(|error| wrong(Some(path), error))
}

/// Returns whether a map shows recordings: the first is one, and what follows are not plans of it.
pub(crate) fn are_shown(args: &ShowArgs) -> Result<bool, Failure> {
    let mut is_recording = Vec::new();
    for path in &args.plan {
        let format = args.reading.format.map(Format::from);
        let format = Format::of_name(&path.display().to_string()).or(format);
        let is = match format {
            Some(Format::Json) => {
                let bytes = files::read(path, args.reading.max_input)?;
                recording::is_recording(&bytes, Format::Json)
            }
            format => format.is_some_and(|format| recording::is_recording(&[], format)),
        };
        is_recording.push(is);
    }
    match is_recording.iter().position(|&is| is != is_recording[0]) {
        Some(at) => {
            let words = "a map shows either other recordings or plans of the first";
            Err(wrong(args.plan.get(at).map(AsRef::as_ref), words))
        }
        None => Ok(is_recording.first().is_none_or(|&is| is)),
    }
}

/// A map to draw.
struct Map {
    label: String,
    plan: Plan,
    input: Input,
}

/// Draws what the allocator of each recording did, and a plan of the same chunks.
pub(crate) fn show(args: &ShowArgs, form: Form, first: Recording) -> Result<Verdict, Failure> {
    if args.reorder || args.simulation {
        let option = if args.reorder { "--reorder" } else { "--simulation" };
        let words = format!("{option} is not for recordings; omit it");
        return Err(wrong(args.input.as_deref(), words));
    }
    let mut maps = maps(args, args.input.as_deref(), first, form)?;
    for path in &args.plan {
        if let (_, Some(recording)) = files::read_recorded(path, &args.reading)? {
            maps.extend(self::maps(args, Some(path), recording, form)?);
        }
    }
    let text = match form {
        Form::Html => {
            let sheets: Vec<MapSheet<'_>> = maps
                .iter()
                .filter_map(|Map { label, plan, input }| match input {
                    Input::Problem(problem) => {
                        let plans = std::slice::from_ref(plan);
                        Some(MapSheet::new(plans, None).problem(problem).label(label))
                    }
                    Input::Sequence(_) => None,
                })
                .collect();
            let title = args.input.as_deref().map_or_else(String::new, files::short_name);
            report::memory_map_html(&title, &sheets)
        }
        Form::Trace if maps.len() == 1 => report::trace(&maps[0].plan, None),
        Form::Trace => {
            let words = "several recordings are drawn as .svg, .html or .txt";
            return Err(Failure::Input(words.to_owned()));
        }
        Form::Svg | Form::Text => {
            let drawn: Vec<_> = maps.iter().map(|map| (&*map.label, &map.plan, None)).collect();
            match form {
                Form::Svg => report::memory_maps_svg(&drawn, show::picture(args)),
                _ => report::memory_maps(&drawn, map_options(args.width, args.height)),
            }
        }
    };
    show::write(args, &text)
}

/// The maps of a recording: as allocated, and as planned. A trace shows the plan alone.
fn maps(
    args: &ShowArgs,
    path: Option<&Path>,
    recording: Recording,
    form: Form,
) -> Result<Vec<Map>, Failure> {
    let allocated = recording.allocated().map_err(|error| wrong(path, error))?;
    let input = Input::Problem(recording.problem);
    let strategy = args.strategies()[0];
    let plan = make_plan(&input, path, strategy, &args.planner(strategy, &input))?;
    let name = path.map_or_else(String::new, files::short_name);
    let label = |what: &str| match &args.plan[..] {
        [] => format!("{what}, {}", recording.device),
        _ => format!("{name}: {what}"),
    };
    let planned = Map { label: label("planned"), plan, input: input.clone() };
    Ok(match form {
        Form::Trace => vec![planned],
        _ => vec![Map { label: label("as allocated"), plan: allocated, input }, planned],
    })
}
