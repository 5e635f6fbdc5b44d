//! Shell completions and manual pages, from the same source as the help.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{Failure, Verdict, args::Arguments};

pub(crate) fn completions(shell: Shell) -> Result<Verdict, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "memplan", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Verdict::Good)
}

/// Prints the manual page of memplan or of one of its commands.
pub(crate) fn page(name: Option<&str>) -> Result<Verdict, Failure> {
    let mut memplan = Arguments::command();
    memplan.build();
    let found = name.map_or(Some(&memplan), |name| memplan.find_subcommand(name));
    let Some(command) = found else {
        let known: Vec<_> = memplan.get_subcommands().map(clap::Command::get_name).collect();
        let (name, known) = (name.unwrap_or_default(), known.join(", "));
        return Err(Failure::Input(format!(
            "no command is called '{name}'; the commands are {known}"
        )));
    };
    let command = command.clone();
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    io::stdout().lock().write_all(&page)?;
    Ok(Verdict::Good)
}
