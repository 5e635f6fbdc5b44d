//! The memory map as a picture: steps to the right, addresses up, a rectangle for each chunk.
//!
//! A chunk begins where it has its bytes to itself, so an overwrite chain is a staircase of one
//! colour with dashed seams. Free bytes are hatched. On top are the live bytes at each step and the
//! bound: their peak, or a larger one that a search has proven.

mod curve;
mod frame;
mod simulation;
mod style;

use std::fmt::Write;

use crate::{
    Bytes, OpSequence, Plan, Step,
    boxes::PlacedBox,
    report::{
        MapOptions, Size,
        alive::{Peak, Piece, live_bytes},
        bound_name, count,
        describe::describe,
        markup::Escaped,
        printable,
        profile::{Chains, View, views},
        svg::{
            frame::{Frame, Px},
            style::{COLOURS, FIXED, LETTER, PATTERN, broken, fitted, fitted_name, width},
        },
        times::Times,
    },
};
pub use curve::recompute_curve_svg;
pub use simulation::simulation_svg;
pub(super) use style::STYLE;

/// The largest number of tooltip strips. If there are more steps, several share one.
const STRIPS: Step = 4000;

/// Draws a plan as a self-contained SVG that follows the reader's light or dark theme.
#[must_use]
pub fn memory_map_svg(plan: &Plan, steps: Option<&OpSequence>, options: MapOptions) -> String {
    let (width, height) = options.pixels(plan, 1);
    let (width, height) = (f64::from(width), f64::from(height));
    let mut svg = String::new();
    let times = Times::of(plan, steps);
    let top = heading(&mut svg, plan, times, width, height) + 30.0;
    if !plan.pinned.is_empty() || !plan.reserved.is_empty() {
        svg.push_str(FIXED);
    }
    let legend = legend(plan, times, width);
    let rows = legend.last().map_or(0.0, |entry| entry.y);
    if plan.steps == 0 || plan.pool_size == 0 {
        svg.push_str("<text x=\"16\" y=\"80\">an empty pool</text>\n</svg>\n");
        return svg;
    }
    let highest = plan.chunks.iter().map(|chunk| plan.end_of(chunk)).max().unwrap_or(0);
    let frame = Frame {
        left: LEFT,
        top,
        width: width - LEFT - 16.0,
        height: height - top - 78.0 - rows,
        steps: plan.steps,
        bytes: highest.max(plan.pool_size).max(options.scale),
    };
    ground(&mut svg, &frame, plan);
    let (chains, views) = (Chains::new(plan), views(plan, times.steps()));
    let map = Map { plan, times, frame, chains, views, pieces: plan.pieces() };
    map.chunks(&mut svg);
    map.seams(&mut svg);
    map.profile(&mut svg);
    map.names(&mut svg);
    map.step_axis(&mut svg);
    for Entry { swatch, words, x, y } in legend {
        let y = Px(height - 32.0 - rows + y);
        let _ = writeln!(
            svg,
            "<g transform=\"translate({} {y})\">{swatch}<text x=\"28\" y=\"10\">{words}</text></g>",
            Px(x),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The left end of the map, in pixels.
const LEFT: f64 = 76.0;

/// Begins a picture that scales to its place. Readers who cannot see it get the title and the
/// description.
fn open(svg: &mut String, width: f64, height: f64, title: &str, description: &str) {
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"100%\" role=\"img\">\n\
         <title>{2}</title>\n<desc>{3}</desc>\n\
         <style>\n{STYLE}</style>\n{PATTERN}<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
        Px(width),
        Px(height),
        Escaped(title),
        Escaped(description),
    );
}

/// Writes lines of text from a y coordinate down, and returns the y coordinate below them.
fn lines(svg: &mut String, class: &str, text: &str, width: f64, y: f64) -> f64 {
    let letter = if class == "head" { 8.4 } else { LETTER };
    let mut y = y;
    for line in broken(text, width - 32.0, letter) {
        let _ = writeln!(svg, "<text class=\"{class}\" x=\"16\" y=\"{}\">{line}</text>", Px(y));
        y += 18.0;
    }
    y
}

/// Begins the picture with the figures of the plan, which also serve as the picture's title and description, and
/// returns the y coordinate of the last line.
fn heading(svg: &mut String, plan: &Plan, times: Times<'_>, width: f64, height: f64) -> f64 {
    let winner = plan.winner.map_or_else(String::new, |winner| format!(" ({winner})"));
    let head = format!(
        "{}{winner}: pool {} ({:.3} × {})",
        plan.strategy_name(),
        Size(plan.pool_size),
        plan.ratio(),
        bound_name(plan),
    );
    let more = format!(
        "{} {}; unshared {}; {}, {}",
        bound_name(plan),
        Size(plan.lower_bound),
        Size(plan.unshared_size()),
        count(plan.chunks.len() as u64, "chunk"),
        times.count(plan.steps),
    );
    let description = format!(
        "A memory map: {}s to the right, addresses up, a rectangle for each chunk of memory; {more}.",
        times.unit
    );
    open(svg, width, height, &head, &description);
    let y = lines(svg, "head", &head, width, 24.0);
    lines(svg, "soft", &more, width, y) - 18.0
}

/// Draws the free space and the address marks.
fn ground(svg: &mut String, frame: &Frame, plan: &Plan) {
    let (left, right) = (Px(frame.left), Px(frame.right()));
    let pool = frame.y(plan.pool_size);
    let _ = writeln!(
        svg,
        "<rect class=\"free\" x=\"{left}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>free</title></rect>",
        Px(pool),
        Px(frame.width),
        Px(frame.bottom() - pool),
    );
    for address in frame.addresses() {
        let y = frame.y(address);
        let _ = writeln!(
            svg,
            "<path class=\"rule\" d=\"M{} {}H{right}\"/><text class=\"end soft\" x=\"{}\" y=\"{}\">{:#}</text>",
            Px(frame.left - 4.0),
            Px(y),
            Px(frame.left - 8.0),
            Px(y + 4.0),
            Size(address),
        );
    }
    for (_, bytes) in &plan.reserved {
        let (top, bottom) = (frame.y(bytes.end), frame.y(bytes.start));
        let (low, high) = (Size(bytes.start), Size(bytes.end));
        let _ = writeln!(
            svg,
            "<rect class=\"reserved\" x=\"{left}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>reserved: {low} to {high}</title></rect>",
            Px(top),
            Px(frame.width),
            Px((bottom - top).max(0.4)),
        );
    }
    let _ = writeln!(svg, "<path class=\"frame\" d=\"M{left} {}H{right}\"/>", Px(pool));
}

/// A plan with what its picture needs.
struct Map<'a> {
    plan: &'a Plan,
    times: Times<'a>,
    frame: Frame,
    chains: Chains,
    views: Vec<Vec<View<'a>>>,
    pieces: Vec<Piece>,
}

/// A rectangle in pixels.
struct Rectangle {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Map<'_> {
    /// Returns the rectangle of a run of bytes on the picture; `None` if it has no extent.
    fn rectangle(&self, begin: Step, end: Step, low: Bytes, high: Bytes) -> Option<Rectangle> {
        (begin < end && low < high).then(|| {
            let (x, y) = (self.frame.x(begin), self.frame.y(high));
            let (width, height) = (self.frame.x(end) - x, self.frame.y(low) - y);
            Rectangle { x, y, width, height }
        })
    }

    /// The pieces of the chunks, with their rectangles on the picture.
    fn placed(&self) -> impl Iterator<Item = (usize, PlacedBox, Rectangle)> {
        self.pieces.iter().filter_map(|&Piece { chunk, own }| {
            let PlacedBox { begin, end, low, high } = own;
            Some((chunk, own, self.rectangle(begin, end, low, high)?))
        })
    }

    fn chunks(&self, svg: &mut String) {
        for (at, _, Rectangle { x, y, width, height }) in self.placed() {
            // A border would hide such a small rectangle.
            let class = if width < 3.0 || height < 3.0 { 't' } else { 'c' };
            let text = describe(self.plan, at, self.times, &self.chains, &self.views[at]);
            let _ = writeln!(
                svg,
                "<rect class=\"{class} c{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                self.chains.number[at] % COLOURS,
                Px(x),
                Px(y),
                Px(width.max(0.4)),
                Px(height.max(0.4)),
                Escaped(&text),
            );
            if self.plan.pinned.binary_search(&at).is_ok() {
                let _ = writeln!(
                    svg,
                    "<rect class=\"pinned\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                    Px(x),
                    Px(y),
                    Px(width.max(0.4)),
                    Px(height.max(0.4)),
                );
            }
        }
    }

    /// Draws the place where an overwriter takes over, and the bytes and lifetime of each view.
    fn seams(&self, svg: &mut String) {
        for (at, own, place) in self.placed() {
            let chunk = &self.plan.chunks[at];
            if chunk.overwrites.is_some() && own.begin <= self.plan.own_begin(chunk) {
                let _ = writeln!(
                    svg,
                    "<path class=\"over\" d=\"M{} {}v{}\"/>",
                    Px(place.x),
                    Px(place.y),
                    Px(place.height),
                );
            }
            for view in &self.views[at] {
                let high = view.offset.saturating_add(view.size).min(own.high);
                let (begin, low) = (view.begin.max(own.begin), view.offset.max(own.low));
                let Some(outline) = self.rectangle(begin, own.end, low, high) else {
                    continue;
                };
                if outline.width > 6.0 && outline.height > 6.0 {
                    let _ = writeln!(
                        svg,
                        "<rect class=\"view\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                        Px(outline.x + 2.5),
                        Px(outline.y + 2.5),
                        Px(outline.width - 5.0),
                        Px(outline.height - 5.0),
                    );
                }
            }
        }
    }

    /// Draws the live bytes at each step, the bound and the peak.
    fn profile(&self, svg: &mut String) {
        let Frame { left, .. } = self.frame;
        let (plan, frame) = (self.plan, &self.frame);
        // With several streams, the chunks of the peak are alive together, but maybe in no step of the map.
        let has_step = self.times.has_peak;
        if has_step {
            self.peak(svg, Peak::of(plan).step);
        }
        let mut path = format!("M{} {}", Px(left), Px(frame.bottom()));
        for (step, bytes) in live_bytes(plan) {
            let _ = write!(path, "H{}V{}", Px(frame.x(step)), Px(frame.y(bytes)));
        }
        let _ = write!(path, "H{}", Px(frame.right()));
        let _ =
            writeln!(svg, "<path class=\"halo\" d=\"{path}\"/><path class=\"live\" d=\"{path}\"/>");
        let bound = frame.y(plan.lower_bound);
        let _ = writeln!(
            svg,
            "<path class=\"bound\" d=\"M{} {}H{}\"/>",
            Px(left),
            Px(bound),
            Px(frame.right()),
        );
    }

    /// Draws a frame around the peak step, and its name above the map.
    fn peak(&self, svg: &mut String, step: Step) {
        let frame = &self.frame;
        let (x, width) = (frame.x(step), frame.x(step.saturating_add(1)));
        let top = frame.top;
        let _ = writeln!(
            svg,
            "<rect class=\"peak\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            Px(x),
            Px(top - 4.0),
            Px((width - x).max(1.0)),
            Px(frame.height + 4.0),
        );
        let label = format!("peak: {}", self.times.name(step));
        let (anchor, at) =
            if x > frame.left + frame.width / 2.0 { ("end", width) } else { ("", x) };
        let label = fitted(&label, frame.width / 2.0).unwrap_or_default();
        let _ = writeln!(
            svg,
            "<text class=\"{anchor}\" x=\"{}\" y=\"{}\">{}</text>",
            Px(at),
            Px(top - 9.0),
            Escaped(&label),
        );
    }

    /// Writes names where there is room. The lines that they cross end at an edge in the colour of the chunk.
    fn names(&self, svg: &mut String) {
        for (at, _, place) in self.placed() {
            if place.height < 14.0 {
                continue;
            }
            let chunk = &self.plan.chunks[at];
            let colour = self.chains.number[at] % COLOURS;
            let (x, middle) = (Px(place.x + 5.0), place.y + place.height / 2.0);
            let size = format!("{:#}", Size(chunk.size));
            let room = place.width - 8.0;
            // Part of a name is still useful; part of a size would be wrong.
            let mut lines: Vec<String> =
                fitted_name(&printable(&chunk.name), room).into_iter().collect();
            lines.extend(Some(size).filter(|size| width(size) <= room));
            if place.height < 32.0 {
                lines.truncate(1);
            }
            let mut y = middle + if lines.len() == 2 { -3.0 } else { 4.0 };
            for line in lines {
                let text = Escaped(&line);
                let _ = writeln!(
                    svg,
                    "<text class=\"name s{colour}\" x=\"{x}\" y=\"{}\">{text}</text>",
                    Px(y),
                );
                y += 14.0;
            }
        }
    }

    /// Writes the step numbers, with a strip under each step that names its operator.
    fn step_axis(&self, svg: &mut String) {
        let (frame, bottom) = (&self.frame, self.frame.bottom());
        for step in frame.marked_steps() {
            let _ = writeln!(
                svg,
                "<path class=\"frame\" d=\"M{} {}v5\"/><text class=\"soft\" x=\"{}\" y=\"{}\">{step}</text>",
                Px(frame.x(step)),
                Px(bottom),
                Px(frame.x(step) + 2.0),
                Px(bottom + 17.0),
            );
        }
        let _ = writeln!(
            svg,
            "<path class=\"frame\" d=\"M{} {}H{}\"/><text class=\"end soft\" x=\"{}\" y=\"{}\">{}</text>",
            Px(frame.left),
            Px(bottom),
            Px(frame.right()),
            Px(frame.left - 8.0),
            Px(bottom + 17.0),
            self.times.unit,
        );
        let each = self.plan.steps.div_ceil(STRIPS).max(1);
        for strip in 0..self.plan.steps.div_ceil(each) {
            let (first, next) =
                (strip * each, (strip + 1).saturating_mul(each).min(self.plan.steps));
            let mut text = self.times.name(first);
            if next - first > 1 {
                let _ = write!(text, " to {}", self.times.name(next - 1));
            }
            let _ = writeln!(
                svg,
                "<rect class=\"step\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\"><title>{}</title></rect>",
                Px(frame.x(first)),
                Px(bottom + 1.0),
                Px(frame.x(next) - frame.x(first)),
                Escaped(&text),
            );
        }
    }
}

/// An entry of the legend: a sample and its words, and their position relative to the start of the first row.
struct Entry {
    swatch: String,
    words: &'static str,
    x: f64,
    y: f64,
}

/// The entries of the legend, in as many rows as they need.
fn legend(plan: &Plan, times: Times<'_>, room: f64) -> Vec<Entry> {
    let rect = |class: &str| format!("<rect class=\"{class}\" width=\"22\" height=\"12\"/>");
    let line = |class: &str| format!("<path class=\"{class}\" d=\"M0 6H22\"/>");
    let seam =
        "<rect class=\"c0\" width=\"22\" height=\"12\"/><path class=\"over\" d=\"M11 0v12\"/>";
    let view = "<rect class=\"c2\" width=\"22\" height=\"12\"/><rect class=\"view\" x=\"2\" y=\"2\" width=\"18\" height=\"8\"/>";
    let mut entries = vec![
        (rect("c1"), "memory chunk; a colour for each chain"),
        (seam.to_owned(), "written over"),
        (view.to_owned(), "view"),
        (rect("free"), "free"),
        (line("live"), "live bytes"),
        (line("bound"), bound_name(plan)),
    ];
    entries.extend(times.has_peak.then(|| (rect("peak"), "peak step")));
    let pinned = || rect("c4") + &rect("pinned");
    entries.extend((!plan.pinned.is_empty()).then(|| (pinned(), "pinned")));
    entries.extend((!plan.reserved.is_empty()).then(|| (rect("reserved"), "reserved")));
    let left = if room < 640.0 { 16.0 } else { LEFT };
    let (mut x, mut y) = (left, 0.0);
    let mut placed = Vec::new();
    for (swatch, words) in entries {
        let end = 28.0 + width(words);
        if x > left && x + end > room {
            (x, y) = (left, y + 18.0);
        }
        placed.push(Entry { swatch, words, x, y });
        x += end + 18.0;
    }
    placed
}
