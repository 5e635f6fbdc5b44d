//! Reading inputs and writing results, with errors that name the file.

mod write;

pub(crate) use write::write;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::Path,
};

use memplan::{
    Bytes, Input, Plan, Problem,
    import::{
        self, Format, ImportError, ImportOptions, InPlace,
        onnx::{OnnxError, Survey},
        recording::Recording,
    },
    report::{self, printable},
    sequence::DimRange,
};
use same_file::Handle;

use crate::{
    Failure,
    args::{InputArgs, RuntimeName},
    note, recordings, tflite,
};

/// The name of a file in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// The name of a file in titles: without its folder.
pub(crate) fn short_name(path: &Path) -> String {
    let file = path.file_name().filter(|_| !is_standard(path));
    file.map_or_else(|| name(path), |file| file.display().to_string())
}

pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

pub(crate) fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("{}: {error}", name(path)))
}

fn format(path: &Path, given: Option<Format>) -> Result<Format, Failure> {
    given.or_else(|| Format::of_name(&path.display().to_string())).ok_or_else(|| {
        about(
            path,
            "the name does not end in .onnx, .tflite, .json, .csv, .pickle, .pte or -buffer-assignment.txt; give the format with --format",
        )
    })
}

/// Returns whether an input is an ONNX model, by its name or `--format`.
pub(crate) fn is_onnx(path: &Path, args: &InputArgs) -> bool {
    format(path, args.format.map(Format::from)).is_ok_and(|format| format == Format::Onnx)
}

/// Returns whether an input is a TensorFlow Lite model, by its name or `--format`.
pub(crate) fn is_tflite(path: &Path, args: &InputArgs) -> bool {
    format(path, args.format.map(Format::from)).is_ok_and(|format| format == Format::Tflite)
}

/// Returns whether a file is a TensorFlow Lite model by its name.
pub(crate) fn is_named_tflite(path: &Path) -> bool {
    Format::of_name(&path.display().to_string()) == Some(Format::Tflite)
}

/// Returns whether an input is a model of another tool.
pub(crate) fn is_model(path: &Path, args: &InputArgs) -> bool {
    is_onnx(path, args) || is_tflite(path, args)
}

/// Returns the format of a plan from its file name.
pub(crate) fn plan_format(path: &Path) -> Result<Format, Failure> {
    match Format::of_name(&path.display().to_string()) {
        Some(format @ (Format::Json | Format::Csv)) => Ok(format),
        _ => Err(about(path, "a plan must end in .json or .csv")),
    }
}

/// Returns the format that `convert` writes, from the file name.
pub(crate) fn converted_format(path: &Path, read: &Path) -> Result<Format, Failure> {
    output("-o", path, [read], "convert writes a file, .json or .csv")?;
    match Format::of_name(&path.display().to_string()) {
        Some(Format::Onnx) => Err(about(path, "memplan writes .json and .csv, not ONNX")),
        Some(Format::Tflite) => Err(about(
            path,
            "convert writes .json and .csv; plan -o OUT.tflite writes a model with its plan",
        )),
        Some(format @ (Format::Json | Format::Csv)) => Ok(format),
        _ => Err(about(path, "the output must be .json or .csv")),
    }
}

/// Checks an output path before any work is done: it must be a file and none of the inputs.
pub(crate) fn output<'a>(
    option: &str,
    path: &Path,
    read: impl IntoIterator<Item = &'a Path>,
    remedy: &str,
) -> Result<(), Failure> {
    if is_standard(path) {
        return Err(Failure::Input(format!("{option} must name a file, not -; {remedy}")));
    }
    for read in read {
        if is_same_file(path, read) {
            let read = if path == read { "" } else { &format!(", {}", name(read)) };
            let words = format!("{option} names a file that is read{read}; choose another name");
            return Err(about(path, words));
        }
    }
    Ok(())
}

/// Returns whether both paths lead to the same file, through any links.
fn is_same_file(output: &Path, read: &Path) -> bool {
    // Devices may be both read and written, and opening a pipe would wait for its other end.
    let is_file = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if !is_file(output) || !is_standard(read) && !is_file(read) {
        return false;
    }
    let read = if is_standard(read) { Handle::stdin() } else { Handle::from_path(read) };
    read.and_then(|read| Ok(read == Handle::from_path(output)?)).unwrap_or(false)
}

/// Returns the format of a plan to be written. The name is checked first, so that no search is
/// wasted.
pub(crate) fn plan_to_write(
    path: &Path,
    read: Option<&Path>,
    args: &InputArgs,
) -> Result<Format, Failure> {
    let is_model = read.is_some_and(|read| is_tflite(read, args));
    output("-o", path, read, "omit -o, and print the plan with --json or --csv")?;
    let format = match Format::of_name(&path.display().to_string()) {
        Some(Format::Tflite) if is_model => Format::Tflite,
        Some(Format::Tflite) => {
            return Err(about(path, "only the plan of a .tflite model is written into one"));
        }
        _ => plan_format(path)?,
    };
    check_writable(path)?;
    Ok(format)
}

/// The format of operators that are to be written once their order is found.
pub(crate) fn order_to_write(
    path: &Path,
    read: &Path,
    args: &InputArgs,
) -> Result<Format, Failure> {
    output("-o", path, [read], "omit -o, and print the order with --json")?;
    let format = Format::of_name(&path.display().to_string());
    let format = match (format, is_onnx(read, args)) {
        (Some(format @ (Format::Onnx | Format::Json)), true) => format,
        (Some(Format::Json), false) => Format::Json,
        (_, true) => return Err(about(path, "a reordered model must end in .onnx or .json")),
        (Some(Format::Tflite), false) if is_tflite(read, args) => Format::Tflite,
        (_, false) => {
            return Err(about(path, "operators that were not read from ONNX are written as .json"));
        }
    };
    check_writable(path)?;
    Ok(format)
}

/// Checks what can be checked before a file is written.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let failed = cannot_write(path);
    if path.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| fs::metadata(folder).map(|_| ())).map_err(failed)
}

fn cannot_write(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::Input(format!("{}: cannot write: {error}", path.display()))
}

/// Reads a file of at most `limit` bytes, so that reading an endless device ends.
pub(crate) fn read(path: &Path, limit: Bytes) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| about(path, error);
    let (source, size): (Box<dyn Read>, Bytes) = if is_standard(path) {
        (Box::new(io::stdin().lock()), 0)
    } else {
        let file = fs::File::open(path).map_err(failed)?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        (Box::new(file), size)
    };
    let mut bytes = Vec::new();
    if size <= limit {
        bytes.reserve(usize::try_from(size).unwrap_or(0));
        // One byte more than allowed shows that the file is too large.
        source.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    }
    if size.max(bytes.len() as u64) > limit {
        let words =
            format!("larger than {}; raise the limit with --max-input", report::size(limit));
        return Err(about(path, words));
    }
    Ok(bytes)
}

/// Reads an operator sequence or a problem.
pub(crate) fn read_input(path: &Path, args: &InputArgs) -> Result<Input, Failure> {
    Ok(read_recorded(path, args)?.0)
}

/// Reads an operator sequence or a problem, with the facts of a recording if it is one.
pub(crate) fn read_recorded(
    path: &Path,
    args: &InputArgs,
) -> Result<(Input, Option<Recording>), Failure> {
    read_with(path, args, |options| options)
}

/// The sizes of symbolic dimensions that are given, by name.
pub(crate) fn dims(path: &Path, args: &InputArgs) -> Result<BTreeMap<String, DimRange>, Failure> {
    Ok(args.sizes.options().map_err(|error| about(path, error))?.dims)
}

/// Reads an operator sequence or a problem a second time, after a change of the options.
pub(crate) fn read_again(
    path: &Path,
    args: &InputArgs,
    change: impl FnOnce(ImportOptions) -> ImportOptions,
) -> Result<Input, Failure> {
    if is_standard(path) {
        let words = "the model must be read with other sizes as well; give it as a file";
        return Err(about(path, words));
    }
    Ok(read_with(path, args, change)?.0)
}

/// Reads an operator sequence or a problem, after a change of the options.
fn read_with(
    path: &Path,
    args: &InputArgs,
    change: impl FnOnce(ImportOptions) -> ImportOptions,
) -> Result<(Input, Option<Recording>), Failure> {
    let format = format(path, args.format.map(Format::from))?;
    let has_sizes = matches!(format, Format::Onnx | Format::Tflite);
    if let Some(option) = args.sizes.given().filter(|_| !has_sizes) {
        let words = format!("{option} applies only to ONNX models; omit it");
        return Err(about(path, words));
    }
    check_switches(path, format, args)?;
    let options = change(options(path, args)?);
    let bytes = read(path, args.max_input)?;
    let mut recording = None;
    let input = match format {
        format if recordings::check(path, &bytes, format, args)? => {
            let read = recordings::read(path, bytes, format, args)?;
            Input::Problem(recording.insert(read).problem.clone())
        }
        Format::Onnx => {
            let survey = import::onnx::read_with_nodes(&bytes, &options);
            let survey = survey.map_err(|error| unreadable(path)(error.into()))?;
            if let Some(impossible) = &survey.impossible {
                note(&format!("{}: {impossible}", name(path)));
            }
            Input::Sequence(survey.sequence)
        }
        Format::Tflite => Input::Sequence(tflite::sequence(&bytes, path, &options)?),
        format => import::read_input(&bytes, format, &options).map_err(unreadable(path))?,
    };
    match (&input, args.lowering_switch(), args.kernel_switch()) {
        (Input::Problem(problem), Some(switch), _)
            if switch != "--no-gathers" || problem.optional_parts().is_empty() =>
        {
            Err(about(path, format!("{switch} needs operators, but this is a problem; omit it")))
        }
        (Input::Sequence(_), _, Some(switch))
            if !matches!(format, Format::Onnx | Format::Tflite) =>
        {
            Err(about(path, declared_already(switch)))
        }
        _ => Ok((input, recording)),
    }
}

/// Checks switches that are for models of one format only.
pub(crate) fn check_switches(path: &Path, format: Format, args: &InputArgs) -> Result<(), Failure> {
    if format == Format::Tflite && args.has_inputs() {
        let words =
            "--inputs: the runtime keeps the inputs of this model in the pool anyway; omit it";
        return Err(about(path, words));
    }
    if args.overlap && format != Format::Tflite {
        let words = "--overlap applies only to TensorFlow Lite models; omit it";
        return Err(about(path, words));
    }
    let (of_runtime, models) = match args.runtime {
        Some(RuntimeName::Onnxruntime) => (Format::Onnx, "ONNX"),
        _ => (Format::Tflite, "TensorFlow Lite"),
    };
    if let Some(runtime) = args.runtime.filter(|_| format != of_runtime) {
        let name = runtime.name();
        let words = format!("--runtime {name} applies only to {models} models; omit it");
        return Err(about(path, words));
    }
    if let Some(option) = args.inplace_switch().filter(|_| args.is_for_onnxruntime()) {
        let words =
            format!("{option}: ONNX Runtime itself decides what is written over an input; omit it");
        return Err(about(path, words));
    }
    if args.is_for_interpreter() && args.overlap {
        let words = "--overlap is for the kernels of TensorFlow Lite Micro, but --runtime is tflite; omit --overlap and --kernels";
        return Err(about(path, words));
    }
    if args.is_for_interpreter() && args.kernels.is_some() {
        let words =
            "--kernels names those of TensorFlow Lite Micro, but --runtime is tflite; omit it";
        return Err(about(path, words));
    }
    if args.is_for_interpreter() && args.profile().is_some_and(|of| of != InPlace::None) {
        let words = "--inplace: the interpreter itself decides what is written over an input; omit it, or use --inplace none";
        return Err(about(path, words));
    }
    Ok(())
}

/// Reads an ONNX model with the reasons why its operators do not request more.
pub(crate) fn survey(path: &Path, args: &InputArgs) -> Result<Survey, Failure> {
    check_switches(path, Format::Onnx, args)?;
    let options = options(path, args)?;
    import::onnx::survey(&read(path, args.max_input)?, &options)
        .map_err(|error| unreadable(path)(error.into()))
}

/// Reads an ONNX model with its bytes and its nodes.
pub(crate) fn read_model(path: &Path, args: &InputArgs) -> Result<(Vec<u8>, Survey), Failure> {
    check_switches(path, Format::Onnx, args)?;
    let bytes = read(path, args.max_input)?;
    let survey = read_with_nodes(&bytes, path, args)?;
    Ok((bytes, survey))
}

/// Reads a model that is in memory; `path` names it in errors.
pub(crate) fn read_with_nodes(
    bytes: &[u8],
    path: &Path,
    args: &InputArgs,
) -> Result<Survey, Failure> {
    import::onnx::read_with_nodes(bytes, &options(path, args)?)
        .map_err(|error| unreadable(path)(error.into()))
}

/// Returns the options for reading a model.
fn options(path: &Path, args: &InputArgs) -> Result<ImportOptions, Failure> {
    let options = args.sizes.options().map_err(|error| about(path, error))?;
    if is_tflite(path, args) {
        return tflite::options(path, args);
    }
    let options = with_kernels(options, args)?;
    let Some(scratch) = args.scratch.as_ref().filter(|_| is_onnx(path, args)) else {
        return Ok(options);
    };
    options.read_workspaces(&text(scratch, args)?).map_err(|error| about(scratch, error))
}

/// Reads a file of text that an option names.
pub(crate) fn text(path: &Path, args: &InputArgs) -> Result<String, Failure> {
    String::from_utf8(read(path, args.max_input)?).map_err(|error| about(path, error))
}

/// Converts an import error to a failure, in several lines if necessary.
fn unreadable(path: &Path) -> impl Fn(ImportError) -> Failure {
    move |error| match error {
        ImportError::Onnx(error @ OnnxError::OpenSizes { .. }) => {
            Failure::Lines(format!("{}: {error}", printable(&name(path))))
        }
        error => about(path, error),
    }
}

/// Explains why a profile of kernels has no effect on operators that declare what they overwrite.
pub(crate) fn declared_already(switch: &str) -> String {
    format!(
        "{switch} applies only to models; these operators declare what they may overwrite: omit it, or use --inplace none"
    )
}

/// Adds the kernels' profiles, from the given option and file.
fn with_kernels(options: ImportOptions, args: &InputArgs) -> Result<ImportOptions, Failure> {
    if args.is_for_onnxruntime() {
        return Ok(options.onnxruntime());
    }
    let options = options.inplace(args.profile().unwrap_or_default());
    let Some(path) = &args.kernels else { return Ok(options) };
    if !path.exists() && tflite::kernel_library(args).is_ok() {
        let words = format!(
            "--kernels {} names kernels of TensorFlow Lite Micro, which run .tflite models; for this input, omit it, or give a file with a profile for each operator, such as 'Softmax none'",
            path.display()
        );
        return Err(Failure::Input(words));
    }
    options.read_kernels(&text(path, args)?).map_err(|error| about(path, error))
}

/// Returns the failure that an input, if it is a file, cannot be used.
pub(crate) fn wrong(path: Option<&Path>, error: impl std::fmt::Display) -> Failure {
    Failure::Input(match path {
        Some(path) => format!("{}: {error}", name(path)),
        None => error.to_string(),
    })
}

/// Reads a plan; one in CSV needs the problem that it is a plan for.
pub(crate) fn read_plan(
    path: &Path,
    args: &InputArgs,
    problem: impl FnOnce() -> Result<Problem, Failure>,
) -> Result<Plan, Failure> {
    let format = plan_format(path)?;
    let bytes = read(path, args.max_input)?;
    let plan = match format {
        Format::Json => import::read_json_plan(&bytes),
        _ => import::read_plan(&bytes, format, &problem()?),
    };
    plan.map_err(|error| about(path, error))
}

/// A model names the files of its weights from its own folder.
pub(crate) fn note_external_data(survey: &Survey, read: &Path, written: &Path) {
    let folder = |path: &Path| path.canonicalize().ok()?.parent().map(Path::to_owned);
    if survey.has_external_data && folder(read) != folder(written) {
        note(&format!(
            "{}: the weights lie in files that the model names from its own folder; copy them into the model's folder",
            written.display()
        ));
    }
}
