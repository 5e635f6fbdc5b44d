//! The memory map as a page to explore: one file that needs no network. This file writes the data
//! into it; the page itself is the hand-written files in the folder `html`.
//!
//! A browser counts exactly up to 2^53; offsets beyond 8 PiB are shown rounded.

use std::{borrow::Cow, collections::HashMap, fmt::Write};

use serde::Serialize;

use crate::{
    Bytes, Plan, Problem, Step,
    planner::pushdown::{Event, Holder, events},
    problem::ChunkId,
    report::{
        StepNames,
        markup::Escaped,
        printable,
        profile::{live_bytes, views},
    },
    sequence::Origin,
};

const STYLE: &str = include_str!("html/style.css");
const BODY: &str = include_str!("html/body.html");
const SCRIPTS: [&str; 5] = [
    include_str!("html/model.js"),
    include_str!("html/map.js"),
    include_str!("html/panel.js"),
    include_str!("html/simulation.js"),
    include_str!("html/start.js"),
];

/// Plans that cannot stand on one page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// Nothing to show.
    #[error("a page needs a plan")]
    NoPlan,
    /// Two plans of different chunks.
    #[error("plan {0} is not one of the same chunks as the first")]
    OtherChunks(usize),
}

/// The data that the scripts read; names are printable. A list has an entry per chunk, unless its
/// comment says otherwise.
#[derive(Serialize)]
struct Page<'a> {
    title: Cow<'a, str>,
    steps: Step,
    padding: Bytes,
    peak_step: Step,
    /// The names of the operators by step; empty if they are unknown.
    operators: Vec<String>,
    names: Vec<Cow<'a, str>>,
    /// The chunks that no operator made, with what they are.
    supplied: Vec<(usize, &'static str)>,
    sizes: Vec<Bytes>,
    begins: Vec<Step>,
    ends: Vec<Step>,
    /// The first step in which a chunk has its bytes for itself.
    own_begins: Vec<Step>,
    /// The overwritten chunk, and where in it.
    overwrites: Vec<Option<(usize, Bytes)>>,
    /// Chunk, name, offset in the chunk, size, first step; an entry per view.
    views: Vec<(usize, Cow<'a, str>, Bytes, Bytes, Step)>,
    plans: Vec<PagePlan<'a>>,
    /// Step and bytes alive from there on.
    live: Vec<(Step, Bytes)>,
    /// The simulation; empty if the plans are not of the problem's chunks.
    events: Vec<PageEvent>,
}

#[derive(Serialize)]
struct PagePlan<'a> {
    strategy: &'a str,
    winner: Option<&'a str>,
    pool: Bytes,
    bound: Bytes,
    naive: Bytes,
    proven: bool,
    offsets: Vec<Bytes>,
    objects: Vec<Option<usize>>,
}

/// Step, action, chunk, nearest used chunk below and above, and the blocks between these: each its
/// size, its chunk (or none), and for a free one stamp and age.
type PageEvent =
    (Step, &'static str, u32, Option<u32>, Option<u32>, Vec<(Bytes, Option<u32>, Step, u64)>);

/// Writes the page: all plans of one input, one to be looked at at a time, and the simulation of
/// *pushdown* on the problem that they solve.
///
/// # Errors
///
/// If there is no plan, or the plans are not of the same chunks.
pub fn memory_map_html(
    title: &str,
    plans: &[Plan],
    steps: StepNames<'_>,
    problem: &Problem,
) -> Result<String, PageError> {
    let first = plans.first().ok_or(PageError::NoPlan)?;
    if let Some(other) = plans.iter().position(|plan| !same_chunks(plan, first)) {
        return Err(PageError::OtherChunks(other));
    }
    let views = views(first, steps);
    let page = Page {
        title: printable(title),
        steps: first.steps,
        padding: first.padding,
        peak_step: first.peak_step,
        operators: steps.0.map_or_else(Vec::new, |sequence| {
            (0..sequence.operators().len())
                .map(|step| printable(&sequence.operator_name(step)).into_owned())
                .collect()
        }),
        supplied: supplied(first, steps),
        names: first.chunks.iter().map(|chunk| printable(&chunk.name)).collect(),
        sizes: first.chunks.iter().map(|chunk| chunk.size).collect(),
        begins: first.chunks.iter().map(|chunk| chunk.begin).collect(),
        ends: first.chunks.iter().map(|chunk| chunk.end).collect(),
        own_begins: first.chunks.iter().map(|chunk| first.own_begin(chunk)).collect(),
        overwrites: first.chunks.iter().map(|chunk| chunk.overwrites).collect(),
        views: views
            .iter()
            .enumerate()
            .flat_map(|(at, list)| list.iter().map(move |view| (at, view)))
            .map(|(at, view)| {
                let offset = view.offset.saturating_sub(first.chunks[at].offset);
                (at, printable(view.name), offset, view.size, view.begin)
            })
            .collect(),
        plans: plans.iter().map(page_plan).collect(),
        live: live_bytes(first),
        events: if is_of(first, problem) {
            events(problem).into_iter().map(page_event).collect()
        } else {
            Vec::new()
        },
    };
    // Strings and numbers only: nothing that JSON cannot hold.
    let data = safe(&serde_json::to_string(&page).unwrap_or_default());
    let mut html = String::with_capacity(data.len() + (64 << 10));
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{}: memory map</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{BODY}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n\"use strict\";\n",
        Escaped(title),
    );
    html.extend(SCRIPTS);
    html.push_str("</script>\n</body>\n</html>\n");
    Ok(html)
}

/// Graph inputs and weights in the pool.
fn supplied(plan: &Plan, steps: StepNames<'_>) -> Vec<(usize, &'static str)> {
    let tensors = steps.0.into_iter().flat_map(crate::OpSequence::tensors);
    let kinds: HashMap<&str, &'static str> = tensors
        .filter_map(|tensor| match tensor.origin {
            Origin::Input => Some((&*tensor.name, "a graph input")),
            Origin::Weight => Some((&*tensor.name, "a weight")),
            Origin::Output { .. } => None,
        })
        .collect();
    let chunks = plan.chunks.iter().enumerate();
    chunks.filter_map(|(at, chunk)| Some((at, *kinds.get(&*chunk.name)?))).collect()
}

fn same_chunks(plan: &Plan, other: &Plan) -> bool {
    let alike = |(a, b): (&crate::PlannedChunk, &crate::PlannedChunk)| {
        (a.begin, a.end, a.size, a.overwrites) == (b.begin, b.end, b.size, b.overwrites)
    };
    plan.chunks.len() == other.chunks.len() && plan.chunks.iter().zip(&other.chunks).all(alike)
}

fn is_of(plan: &Plan, problem: &Problem) -> bool {
    plan.chunks.len() == problem.len()
        && plan.chunks.iter().zip(problem.chunks()).zip(problem.ids()).all(|((a, b), id)| {
            let link = problem.link(id).map(|link| (link.overwritten.index(), link.offset));
            (a.begin, a.end, a.size, a.overwrites) == (b.begin, b.end, b.size, link)
        })
}

fn page_plan(plan: &Plan) -> PagePlan<'_> {
    PagePlan {
        strategy: plan.strategy_name(),
        winner: plan.winner.map(crate::Strategy::name),
        pool: plan.pool_size,
        bound: plan.lower_bound,
        naive: plan.naive_size,
        proven: plan.proven_optimal,
        offsets: plan.chunks.iter().map(|chunk| chunk.offset).collect(),
        objects: match plan.objects.as_slice() {
            [] => Vec::new(),
            _ => plan.chunks.iter().map(|chunk| chunk.object).collect(),
        },
    }
}

fn page_event(event: Event) -> PageEvent {
    let number = |chunk: ChunkId| chunk.0;
    let blocks = event.blocks.into_iter().map(|block| match block.holder {
        Holder::Chunk(chunk) => (block.size, Some(chunk.0), 0, 0),
        Holder::Free { stamp, age } => (block.size, None, stamp, age),
    });
    (
        event.step,
        event.action.name(),
        event.chunk.0,
        event.below.map(number),
        event.above.map(number),
        blocks.collect(),
    )
}

/// JSON that may stand in a script element: no `</script>`, no line ends that scripts see.
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
