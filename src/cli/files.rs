//! Reading inputs and writing results, with errors that name the file.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use memplan::{
    Input, Plan, Problem,
    import::{self, Format, ImportOptions},
};

use crate::{Failure, args::InputArgs, interrupt};

/// What a file is called in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// What a file is called in titles: without its folder.
pub(crate) fn short_name(path: &Path) -> String {
    let file = path.file_name().filter(|_| !is_standard(path));
    file.map_or_else(|| name(path), |file| file.display().to_string())
}

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("{}: {error}", name(path)))
}

fn format(path: &Path, given: Option<Format>) -> Result<Format, Failure> {
    given.or_else(|| Format::of_name(&path.display().to_string())).ok_or_else(|| {
        about(path, "the name does not end in .onnx, .json or .csv; say what it is with --format")
    })
}

/// The format of a plan, by the end of its name.
pub(crate) fn plan_format(path: &Path) -> Result<Format, Failure> {
    match Format::of_name(&path.display().to_string()) {
        Some(format @ (Format::Json | Format::Csv)) => Ok(format),
        _ => Err(about(path, "a plan is .json or .csv")),
    }
}

/// The format of what `convert` writes, by the end of its name.
pub(crate) fn converted_format(path: &Path) -> Result<Format, Failure> {
    no_dash(path, "convert writes a file, .json or .csv")?;
    match Format::of_name(&path.display().to_string()) {
        Some(Format::Onnx) => Err(about(path, "memplan writes .json and .csv, not ONNX")),
        Some(format) => Ok(format),
        None => Err(about(path, "what is written is .json or .csv")),
    }
}

/// An output is a file: what goes to standard output needs no name.
pub(crate) fn no_dash(path: &Path, remedy: &str) -> Result<(), Failure> {
    if is_standard(path) {
        return Err(Failure::Input(format!("-o names a file, and - is none; {remedy}")));
    }
    Ok(())
}

/// The format of a plan that is to be written, once it is made: so that no search is in vain, the
/// name is looked at before.
pub(crate) fn plan_to_write(path: &Path) -> Result<Format, Failure> {
    no_dash(path, "leave -o away, and print the plan with --json or --csv")?;
    let format = plan_format(path)?;
    let failed = cannot_write(path);
    if path.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| fs::metadata(folder).map(|_| ())).map_err(failed)?;
    Ok(format)
}

fn cannot_write(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::Input(format!("{}: cannot write: {error}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if is_standard(path) {
        io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        fs::read(path).map(|read| bytes = read)
    };
    read.map_err(|error| about(path, error))?;
    Ok(bytes)
}

/// Reads an operator sequence or a problem.
pub(crate) fn read_input(path: &Path, args: &InputArgs) -> Result<Input, Failure> {
    let format = format(path, args.format.map(Format::from))?;
    if format != Format::Onnx && !args.dims.is_empty() {
        return Err(about(path, "--dim is for ONNX models, and this is none; leave it away"));
    }
    let mut options = ImportOptions::default();
    for (name, size) in &args.dims {
        if options.dims.insert(name.clone(), *size).is_some() {
            return Err(about(path, format!("--dim {name}=N is given twice; give it once")));
        }
    }
    let input =
        import::read_input(&read(path)?, format, &options).map_err(|error| about(path, error))?;
    match (&input, args.lowering_switch()) {
        (Input::Problem(_), Some(switch)) => Err(about(
            path,
            format!(
                "{switch} is for operators, and this is a problem, whose chunks are given; leave it away"
            ),
        )),
        _ => Ok(input),
    }
}

/// Reads a plan for a problem.
pub(crate) fn read_plan(path: &Path, problem: &Problem) -> Result<Plan, Failure> {
    let format = plan_format(path)?;
    import::read_plan(&read(path)?, format, problem).map_err(|error| about(path, error))
}

/// Writes a file whole or not at all: beside it first, then renamed. Ctrl-C waits for it.
pub(crate) fn write(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    interrupt::finishing(|| write_beside(path, fill))
}

fn write_beside(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = cannot_write(path);
    // A device, such as /dev/stdout, cannot be renamed to.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        let mut file = fs::OpenOptions::new().write(true).open(path).map_err(&failed)?;
        return fill(&mut file).map_err(failed);
    }
    // Behind a link, the file is what is written anew, and it keeps who may read it.
    let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = beside(&file);
    let written = fs::File::create(&beside).and_then(|new| {
        if let Ok(old) = fs::metadata(&file) {
            new.set_permissions(old.permissions())?;
        }
        let mut new = io::BufWriter::new(new);
        fill(&mut new)?;
        new.into_inner()?.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, &file)).map_err(|error| {
        // What is half written goes; if it cannot, there is nothing more to do.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

fn beside(path: &Path) -> PathBuf {
    // Not the name and more, which might be too long.
    path.with_file_name(format!(".memplan.{}.tmp", std::process::id()))
}
