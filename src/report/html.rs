//! The memory map as a page to explore: one file that needs no network. The page itself is the
//! hand-written files in the folder `html`; [`data`] collects the data that they show.
//!
//! A browser counts exactly up to 2^53; offsets beyond 8 PiB are shown rounded.

mod data;
mod sheet;
mod tables;

pub use sheet::MapSheet;

use std::fmt::Write;

use crate::{
    Plan, PlannedChunk,
    report::{
        html::data::{Page, Sheet},
        in_buffers,
        markup::Escaped,
        printable,
    },
};

const STYLE: &str = include_str!("html/style.css");
const BODY: &str = include_str!("html/body.html");
const SCRIPTS: [&str; 9] = [
    include_str!("html/model.js"),
    include_str!("html/colours.js"),
    include_str!("html/map.js"),
    include_str!("html/layer.js"),
    include_str!("html/panel.js"),
    include_str!("html/table.js"),
    include_str!("html/export.js"),
    include_str!("html/simulation.js"),
    include_str!("html/start.js"),
];

/// Writes the page. The page shows one plan, or any two plans side by side: two of one sheet, such as plans by several
/// strategies, or one from each of two sheets, such as an input in two orders. A plan by *pushdown* comes with its
/// simulation. The text is empty if there is no plan.
#[must_use]
pub fn memory_map_html(title: &str, sheets: &[MapSheet<'_>]) -> String {
    let mut page = Page { title: printable(title), sheets: Vec::new() };
    let in_buffers = |sheet: &MapSheet<'_>| -> Vec<Plan> {
        sheet.plans.iter().map(|plan| in_buffers(plan).into_owned()).collect()
    };
    let plans: Vec<Vec<Plan>> = sheets.iter().map(in_buffers).collect();
    for (sheet, plans) in sheets.iter().zip(&plans) {
        // Links and parts belong to the sheet, and a plan may do without some.
        for plans in plans.chunk_by(|a, b| same_chunks(a, b) && same_relations(a, b)) {
            page.sheets.push(Sheet::new(&MapSheet { plans, ..*sheet }, &plans[0]));
        }
    }
    if page.sheets.is_empty() {
        return String::new();
    }
    // Strings and numbers always serialize, so nothing is lost here.
    let data = safe(&serde_json::to_string(&page).unwrap_or_default());
    let mut html = String::with_capacity(data.len() + (64 << 10));
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{}: memory map</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{BODY}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n\"use strict\";\n",
        Escaped(title),
    );
    html.extend(SCRIPTS);
    html.push_str("</script>\n</body>\n</html>\n");
    html
}

fn same_chunks(plan: &Plan, other: &Plan) -> bool {
    let alike = |(a, b): (&PlannedChunk, &PlannedChunk)| {
        (a.begin, a.end, a.size) == (b.begin, b.end, b.size)
    };
    plan.chunks.len() == other.chunks.len() && plan.chunks.iter().zip(&other.chunks).all(alike)
}

fn same_relations(plan: &Plan, other: &Plan) -> bool {
    let links = |plan: &Plan| plan.chunks.iter().map(|chunk| chunk.overwrites).collect::<Vec<_>>();
    plan.parts == other.parts && links(plan) == links(other)
}

/// Escapes JSON for a script element, which may contain neither `</script>` nor line separators.
fn safe(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text
}
