//! The terminal on which results are printed.

use std::io;

use memplan::report::MapOptions;

/// Returns the options of a map: the given size, or the width of the terminal.
pub(crate) fn map_options(width: Option<usize>, height: usize) -> MapOptions {
    let columns = || {
        let terminal = || terminal_size::terminal_size_of(io::stdout());
        let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        given.or_else(|| terminal().map(|(width, _)| usize::from(width.0)))
    };
    let options = MapOptions::default().height(height);
    width.or_else(columns).map_or(options, |width| options.width(width))
}
