//! Reading TensorFlow Lite models.

use std::path::Path;

use memplan::{
    OpSequence,
    import::{
        Format, ImportOptions,
        tflite::{self, KernelLibrary, Runtime, Survey, TfliteError},
    },
    report::printable,
};

use crate::{
    Failure,
    args::{InputArgs, RuntimeName},
    files::{self, about},
    note,
};

/// A TensorFlow Lite model, as it is in its file and as it was read.
pub(crate) struct TfliteModel {
    pub(crate) bytes: Vec<u8>,
    pub(crate) survey: Survey,
    options: ImportOptions,
}

impl TfliteModel {
    /// Reads another model that is in memory, for the same kernels; `path` names it in errors.
    pub(crate) fn survey(&self, bytes: &[u8], path: &Path) -> Result<Survey, Failure> {
        survey(bytes, path, &self.options)
    }
}

/// Reads a TensorFlow Lite model with what the runtime places in its arena.
pub(crate) fn read(path: &Path, args: &InputArgs) -> Result<TfliteModel, Failure> {
    let model = read_quietly(path, args)?;
    note_taken(&model.survey, path);
    Ok(model)
}

/// Reads a model whose open sizes are noted already.
pub(crate) fn read_quietly(path: &Path, args: &InputArgs) -> Result<TfliteModel, Failure> {
    files::check_switches(path, Format::Tflite, args)?;
    let bytes = files::read(path, args.max_input)?;
    let options = options(path, args)?;
    let survey = survey(&bytes, path, &options)?;
    check_supported(&survey, path)?;
    Ok(TfliteModel { bytes, survey, options })
}

/// The most operators that an error names.
const MAX_NAMED: usize = 5;

/// Refuses a model that the runtime cannot load or run: figures for it would be of no use.
fn check_supported(survey: &Survey, path: &Path) -> Result<(), Failure> {
    let unsupported = &survey.unsupported;
    let others = match unsupported.len().saturating_sub(MAX_NAMED) {
        _ if unsupported.is_empty() => return Ok(()),
        0 => String::new(),
        others => format!("; and {others} more"),
    };
    let named: Vec<&str> = unsupported.iter().take(MAX_NAMED).map(String::as_str).collect();
    let words = format!(
        "TensorFlow Lite Micro cannot run this model: {}{others}. Plan it for TensorFlow Lite's interpreter with --runtime tflite; or, if your build has kernels of its own for these operators, state their scratch memory with --scratch, 0 for none",
        named.join("; ")
    );
    Err(about(path, words))
}

/// Notes which shapes of inputs the file does not fix.
fn note_taken(survey: &Survey, path: &Path) {
    if !survey.taken_inputs.is_empty() {
        note(&format!(
            "{}: the file leaves sizes of inputs open; they are taken as it states them: {}",
            files::name(path),
            survey.taken_inputs.join(", ")
        ));
    }
}

/// Reads the bytes of a model into a sequence.
pub(crate) fn sequence(
    bytes: &[u8],
    path: &Path,
    options: &ImportOptions,
) -> Result<OpSequence, Failure> {
    let survey = survey(bytes, path, options)?;
    check_supported(&survey, path)?;
    note_taken(&survey, path);
    Ok(survey.sequence)
}

/// Reads the bytes of a model; `path` names it in errors.
fn survey(bytes: &[u8], path: &Path, options: &ImportOptions) -> Result<Survey, Failure> {
    tflite::survey(bytes, options).map_err(|error| match error {
        // In several lines.
        error @ TfliteError::OpenSizes { .. } => {
            Failure::Lines(format!("{}: {error}", printable(&files::name(path))))
        }
        error => about(path, error),
    })
}

/// Returns the runtime of a TensorFlow Lite model.
pub(crate) fn runtime(args: &InputArgs) -> Runtime {
    match args.runtime {
        Some(RuntimeName::Tflite(runtime)) => runtime,
        _ => Runtime::default(),
    }
}

/// Returns the kernels that run a TensorFlow Lite model.
pub(crate) fn kernel_library(args: &InputArgs) -> Result<KernelLibrary, Failure> {
    let Some(name) = &args.kernels else { return Ok(KernelLibrary::default()) };
    let name = name.display().to_string();
    name.parse().map_err(|error| Failure::Input(format!("--kernels: {error}")))
}

/// Returns the options for reading a TensorFlow Lite model.
pub(crate) fn options(path: &Path, args: &InputArgs) -> Result<ImportOptions, Failure> {
    let options = args.sizes.options().map_err(|error| about(path, error))?;
    if let Some(option) = args.sizes.given_for_onnx() {
        let words = format!("{option} applies only to ONNX models; omit it");
        return Err(about(path, words));
    }
    let library = kernel_library(args)?;
    if args.overlap && library == KernelLibrary::CmsisNnMve {
        let words = "--overlap: the loops of the kernels for MVE are not known; omit it, or state other kernels";
        return Err(Failure::Input(words.to_owned()));
    }
    let options = options.library(library).overlap(args.overlap).runtime(runtime(args));
    let options = options.inplace(args.profile().unwrap_or_default());
    let Some(scratch) = &args.scratch else { return Ok(options) };
    options.read_scratch(&files::text(scratch, args)?).map_err(|error| about(scratch, error))
}
