//! Writing files whole or not at all.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use super::cannot_write;
use crate::{Failure, interrupt, note};

/// Writes a file whole or not at all: into a new file beside it, which then takes its name. The first
/// signal waits for that. What is no file, such as a pipe, is written to as it is.
pub(crate) fn write(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let is_file = || fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    let written = if path == Path::new("/dev/stdout") {
        // It may be a file to which other text is written, too.
        filled(io::stdout().lock(), fill).map(drop)
    } else if is_file() {
        interrupt::finishing(|| replace(path, fill))
    } else {
        // Opening a pipe waits for its reader, so a signal must end this.
        let file = fs::OpenOptions::new().write(true).open(path);
        file.and_then(|file| filled(file, fill)).map(drop)
    };
    written.map_err(cannot_write(path))?;
    note(&format!("wrote {}", path.display()));
    Ok(())
}

fn filled<W: Write>(out: W, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<W> {
    let mut out = io::BufWriter::new(out);
    fill(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // Behind a link, the file itself is replaced, and it keeps its permissions.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    // The name is random and the file new, so neither a link nor another process can stand in its way.
    let mut new = tempfile::Builder::new();
    new.prefix(".memplan.").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As for any new file: the system takes away what its mask forbids.
        new.permissions(fs::Permissions::from_mode(0o666));
    }
    let new = interrupt::temporary(|| new.tempfile_in(folder.unwrap_or(Path::new("."))))?;
    if let Ok(old) = fs::metadata(&target) {
        new.as_file().set_permissions(old.permissions())?;
    }
    let new = filled(new, fill)?;
    new.as_file().sync_all()?;
    new.persist(&target)?;
    Ok(())
}
