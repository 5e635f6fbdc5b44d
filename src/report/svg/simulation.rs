//! The simulation of *pushdown* as a picture. Each event has a column with the memory queue from
//! the bottom up and, below it, the free queue, smallest first.

use std::{fmt::Write, ops::Range};

use crate::{
    Bytes, Problem, Step,
    baselines::pushdown::{Block, Event, Holder, Queues, events},
    report::{
        Size,
        markup::Escaped,
        printable,
        svg::{
            frame::Px,
            lines, open,
            style::{COLOURS, fitted},
        },
    },
};

/// The largest number of events drawn; the picture states how many it omits.
const SHOWN: usize = 40;
/// The most events side by side; more fill further rows, so that a page need not scroll sideways.
const ABREAST: usize = 6;
/// Pixels.
const COLUMN: f64 = 104.0;
const GAP: f64 = 12.0;
const LEFT: f64 = 84.0;
const TOWER: f64 = 300.0;
/// The least height of a block: enough for its name.
const LEAST: f64 = 16.0;
/// The largest number of blocks drawn of a queue, around the event's own; the others are counted.
const MOST: usize = 16;

/// The measurements that all columns share.
struct Drawing<'a> {
    problem: &'a Problem,
    /// The colour of each chunk.
    colours: Vec<usize>,
}

/// Returns the colour of each chunk's chain, the same as on the map.
fn colours(problem: &Problem) -> Vec<usize> {
    let mut colours = vec![0; problem.len()];
    let roots = problem.ids().filter(|&chunk| problem.link(chunk).is_none());
    for (number, root) in roots.enumerate() {
        colours[root.index()] = number % COLOURS;
    }
    problem.ids().map(|chunk| colours[problem.place_in_chain(chunk).0.index()]).collect()
}

/// Draws both queues after each event of these steps of the simulation, as a self-contained SVG of at most `most`
/// pixels in width, or 320 if `most` is less.
#[must_use]
pub fn simulation_svg(problem: &Problem, steps: Range<Step>, most: u32) -> String {
    let most = f64::from(most.max(320));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
    let abreast = (((most - LEFT - 8.0) / (COLUMN + GAP)) as usize).clamp(1, ABREAST);
    let all = events(problem);
    let before = all.partition_point(|event| event.step < steps.start);
    let asked = all.partition_point(|event| event.step < steps.end).max(before) - before;
    let mut queues = Queues::default();
    for event in &all[..before] {
        queues.apply(event);
    }
    let shown = &all[before..before + asked.min(SHOWN)];
    let mut moments = Vec::new();
    for event in shown {
        queues.apply(event);
        moments.push(queues.clone());
    }
    let drawing = Drawing { problem, colours: colours(problem) };
    let total = |queues: &Queues| queues.memory.iter().map(|block| block.size).sum::<Bytes>();
    let highest = moments.iter().map(total).max().unwrap_or(0).max(1);
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    let heights: Vec<f64> = moments
        .chunks(abreast)
        .map(|row| {
            let free = row.iter().map(|queues| queues.free().len().min(MOST + 1)).max();
            TOWER + 80.0 + 18.0 * free.unwrap_or(0) as f64
        })
        .collect();
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    let width =
        (LEFT + shown.len().min(abreast) as f64 * (COLUMN + GAP) + 8.0).max(most.min(520.0));
    let left_out = match asked - shown.len() {
        0 => String::new(),
        more => format!("; {more} more are not shown"),
    };
    let after_all = all.last().map_or(0, |event| event.step.saturating_add(1));
    let end = steps.end.min(after_all.max(steps.start.saturating_add(1)));
    let window = if asked == all.len() {
        String::new()
    } else if end.saturating_sub(1) == steps.start {
        format!(", step {}", steps.start)
    } else {
        format!(", steps {}..{end}", steps.start)
    };
    let plural = if asked == 1 { "" } else { "s" };
    let head = format!("The simulation{window}: {asked} event{plural}{left_out}");
    let mut svg = String::new();
    let mut heading = String::new();
    let more = "both queues after each event; a small block is drawn larger than it is";
    let y = lines(&mut heading, "head", &head, width, 24.0);
    let mut top = lines(&mut heading, "soft", more, width, y) - 2.0;
    let height = top + heights.iter().sum::<f64>().max(12.0);
    let description =
        "The memory queue, from the bottom up, and under it the free queue, after each event.";
    open(&mut svg, width, height, &head, description);
    svg.push_str(&heading);
    for ((events, moments), height) in
        shown.chunks(abreast).zip(moments.chunks(abreast)).zip(heights)
    {
        let _ = write!(
            svg,
            "<g transform=\"translate(0 {})\">\n\
             <text class=\"soft\" x=\"16\" y=\"{}\">memory</text><text class=\"soft\" x=\"16\" y=\"{}\">queue</text>\n\
             <text class=\"soft\" x=\"16\" y=\"{}\">free queue</text>\n",
            Px(top),
            Px(TOWER - 14.0),
            Px(TOWER),
            Px(TOWER + 64.0),
        );
        let mut x = LEFT;
        for (event, queues) in events.iter().zip(moments) {
            tower(&mut svg, &drawing, (queues, event), x, highest);
            under(&mut svg, &drawing, queues, event, x);
            x += COLUMN + GAP;
        }
        svg.push_str("</g>\n");
        top += height;
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws the memory queue, whose top is at 0.
#[allow(clippy::cast_precision_loss, reason = "pixels")]
fn tower(
    svg: &mut String,
    drawing: &Drawing<'_>,
    (queues, event): (&Queues, &Event),
    x: f64,
    highest: Bytes,
) {
    // Only the blocks around the event's block, or around those that it freed, are drawn.
    let all = &queues.memory;
    let is_near = |block: &Block| match block.holder {
        Holder::Chunk(chunk) => chunk == event.chunk || Some(chunk) == event.below,
        Holder::Free { .. } => false,
    };
    let near = all.iter().rposition(is_near).unwrap_or(0);
    let first = near.saturating_sub(MOST / 2).min(all.len().saturating_sub(MOST));
    let drawn = &all[first..all.len().min(first + MOST)];
    let (below, above) = (first, all.len() - first - drawn.len());
    // Every block gets the least height; the rest of the tower is divided by bytes.
    let boxes = drawn.len() + usize::from(below > 0) + usize::from(above > 0);
    let rest = (TOWER - LEAST * boxes as f64).max(0.0);
    let mut y = TOWER;
    if below > 0 {
        y -= LEAST;
        counted(svg, below, x, y);
    }
    if above > 0 {
        counted(svg, above, x, 0.0);
    }
    for block in drawn {
        let height = LEAST + rest * (block.size as f64 / highest as f64);
        y -= height;
        boxed(svg, drawing, block, (x, y), height);
        if block.holder == Holder::Chunk(event.chunk) {
            let _ = writeln!(
                svg,
                "<rect class=\"live\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                Px(x + 1.0),
                Px(y + 1.0),
                Px(COLUMN - 2.0),
                Px(height - 2.0),
            );
        }
    }
    let _ = writeln!(
        svg,
        "<path class=\"frame\" d=\"M{} {}h{}\"/>",
        Px(x - 3.0),
        Px(TOWER),
        Px(COLUMN + 6.0),
    );
}

/// Writes the event and the free queue after it.
fn under(svg: &mut String, drawing: &Drawing<'_>, queues: &Queues, event: &Event, x: f64) {
    let name = drawing.problem.name(event.chunk);
    let name = fitted(&printable(&name), COLUMN).unwrap_or_default();
    let (middle, mut y) = (Px(x + COLUMN / 2.0), TOWER);
    let _ = writeln!(
        svg,
        "<text class=\"mid soft\" x=\"{middle}\" y=\"{}\">step {}: {}</text>\
         <text class=\"mid\" x=\"{middle}\" y=\"{}\">{}</text>",
        Px(y + 14.0),
        event.step,
        Escaped(&name),
        Px(y + 28.0),
        event.action.name(),
    );
    y += 52.0;
    let free = queues.free();
    for block in free.iter().take(MOST) {
        boxed(svg, drawing, block, (x, y), LEAST);
        y += LEAST + 2.0;
    }
    if free.len() > MOST {
        counted(svg, free.len() - MOST, x, y);
    }
}

/// Writes the number of blocks that are not drawn.
fn counted(svg: &mut String, blocks: usize, x: f64, y: f64) {
    let (x, y) = (Px(x + 5.0), Px(y + LEAST / 2.0 + 4.0));
    let _ = writeln!(svg, "<text class=\"soft\" x=\"{x}\" y=\"{y}\">{blocks} more</text>");
}

/// Draws a block with its name and size.
fn boxed(svg: &mut String, drawing: &Drawing<'_>, block: &Block, (x, y): (f64, f64), height: f64) {
    let (class, name) = match block.holder {
        Holder::Chunk(chunk) => {
            let colour = drawing.colours[chunk.index()];
            let name = drawing.problem.name(chunk);
            (format!("c c{colour}"), printable(&name).into_owned())
        }
        Holder::Free { .. } => ("frame free".to_owned(), "free".to_owned()),
    };
    let whole = format!("{name} {:#}", Size(block.size));
    let text = fitted(&whole, COLUMN - 8.0).unwrap_or_default();
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}: {}</title></rect>\
         <text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
        Px(x),
        Px(y),
        Px(COLUMN),
        Px(height),
        Escaped(&name),
        Size(block.size),
        Px(x + 5.0),
        Px(y + height / 2.0 + 4.0),
        Escaped(&text),
    );
}
