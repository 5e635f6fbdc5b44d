//! Descriptions of chunks, for tooltips and traces.

use std::fmt::Write;

use crate::{
    Plan,
    report::{
        Size, printable,
        profile::{Chains, View},
        times::Times,
    },
};

/// The largest number of views that are named.
const SHOWN: usize = 8;

/// Lists name, size, place, lifetime, and the chunks that share its bytes, one per line.
pub(super) fn describe(
    plan: &Plan,
    at: usize,
    times: Times<'_>,
    chains: &Chains,
    views: &[View<'_>],
) -> String {
    let chunk = &plan.chunks[at];
    let mut text = format!(
        "{}\n{} at {}\nalive from {} to {}",
        printable(&chunk.name),
        Size(chunk.size),
        chunk.offset,
        times.name(chunk.begin),
        times.name(chunk.end.saturating_sub(1)),
    );
    let name = |at: usize| plan.chunks.get(at).map_or("?".into(), |chunk| printable(&chunk.name));
    if let Some(link) = chunk.overwrites {
        let at = match link.below {
            0 => format!("at {}", link.offset),
            below => format!("from {below} below"),
        };
        let _ = write!(text, "\nwritten over {} {at}", name(link.chunk));
    }
    let overwriters: Vec<_> = chains.overwriters(at).take(SHOWN).map(name).collect();
    if !overwriters.is_empty() {
        let _ = write!(text, "\noverwritten by {}", overwriters.join(", "));
    }
    for part in chains.around(at).iter().take(SHOWN) {
        if part.size == chunk.size {
            let _ = write!(text, "\ninside {} at {}", name(part.whole), part.offset);
        } else {
            let bytes = (part.low, part.low.saturating_add(part.size));
            let _ = write!(
                text,
                "\nbytes {}..{} inside {} at {}",
                bytes.0,
                bytes.1,
                name(part.whole),
                part.offset
            );
        }
    }
    if !views.is_empty() {
        let names: Vec<_> = views.iter().take(SHOWN).map(|view| printable(view.name)).collect();
        let _ = write!(text, "\nviews: {}", names.join(", "));
        if let Some(more) = views.len().checked_sub(SHOWN).filter(|&more| more > 0) {
            let _ = write!(text, " and {more} more");
        }
    }
    if plan.pinned.binary_search(&at).is_ok() {
        text.push_str("\npinned");
    }
    for window in plan.windows_of(at) {
        let when = times.lifetime(window.begin, window.end);
        let _ = if window.low < window.high {
            write!(text, "\nonly bytes {}..{} in {when}", window.low, window.high)
        } else {
            write!(text, "\nno bytes in {when}")
        };
    }
    if let Some(object) = chunk.object {
        let _ = write!(text, "\nin shared object {object}");
    }
    text
}
