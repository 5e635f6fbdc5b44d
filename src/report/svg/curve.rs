//! A curve as a picture: the peak to the right, the extra cost up.

use std::fmt::Write;

use crate::{
    Bytes,
    recompute::Recomputation,
    report::{
        Size,
        svg::{frame::Px, open},
    },
};

/// Pixels. Narrow enough to be read on a telephone.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 56.0;

/// The number of parts into which grid lines divide each axis.
const PARTS: u32 = 4;

/// Draws the extra cost of a [curve](crate::Planner::recompute_curve), as a part of the cost of the given sequence,
/// against its peak, as a self-contained SVG. The text is empty if there are fewer than two points.
#[must_use]
pub fn recompute_curve_svg(curve: &[Recomputation]) -> String {
    let [first, .., given] = curve else { return String::new() };
    let most = curve.iter().map(|found| found.extra_cost).max().unwrap_or(0);
    let scale = Scale { peak: given.given_peak.max(1), cost: most.max(1) };
    let description = format!(
        "From {} without recomputation down to {}; no recomputation in this order has less than {} alive at once.",
        Size(given.given_peak),
        Size(first.peak),
        Size(given.peak_bound)
    );
    let mut svg = String::new();
    let title = "Extra cost of recomputation";
    open(&mut svg, WIDTH, HEIGHT, title, &description);
    let _ = writeln!(svg, "<text class=\"head\" x=\"16\" y=\"24\">{title}</text>");
    scale.draw_axes(&mut svg, given.given_cost());
    let bound = scale.x(given.peak_bound);
    let _ = writeln!(
        svg,
        "<path class=\"bound\" d=\"M{0} {1}V{2}\"/>",
        Px(bound),
        Px(TOP),
        Px(HEIGHT - BOTTOM)
    );
    let mut path = String::new();
    for (at, found) in curve.iter().enumerate() {
        let letter = if at == 0 { 'M' } else { 'L' };
        let (x, y) = (scale.x(found.peak), scale.y(found.extra_cost));
        let _ = write!(path, "{letter}{} {}", Px(x), Px(y));
    }
    let _ = writeln!(svg, "<path class=\"live\" d=\"{path}\"/>");
    for found in curve {
        let (x, y) = (scale.x(found.peak), scale.y(found.extra_cost));
        let _ = writeln!(
            svg,
            "<circle class=\"c c0\" cx=\"{}\" cy=\"{}\" r=\"4\"><title>{:#}: {} more</title></circle>",
            Px(x),
            Px(y),
            Size(found.peak),
            percent(found.extra_cost, given.given_cost()),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The ends of the axes.
struct Scale {
    peak: Bytes,
    cost: u64,
}

#[allow(clippy::cast_precision_loss, reason = "pixels")]
impl Scale {
    fn x(&self, peak: Bytes) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (peak as f64 / self.peak as f64).min(1.0)
    }

    fn y(&self, cost: u64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP - 12.0) * cost as f64 / self.cost as f64
    }

    fn draw_axes(&self, svg: &mut String, whole: u64) {
        let bottom = HEIGHT - BOTTOM;
        for part in 0..=PARTS {
            let share = u64::from(part);
            let (peak, cost) =
                (self.peak / u64::from(PARTS) * share, self.cost / u64::from(PARTS) * share);
            let (x, y) = (self.x(peak), self.y(cost));
            let _ = writeln!(
                svg,
                "<path class=\"rule\" d=\"M{0} {1}V{bottom}M{LEFT} {2}H{3}\"/>",
                Px(x),
                Px(TOP),
                Px(y),
                Px(WIDTH - RIGHT),
            );
            let _ = writeln!(
                svg,
                "<text class=\"soft mid\" x=\"{}\" y=\"{}\">{:#}</text>\n<text class=\"soft end\" x=\"{}\" y=\"{}\">{}</text>",
                Px(x),
                Px(bottom + 18.0),
                Size(peak),
                Px(LEFT - 8.0),
                Px(y + 4.0),
                percent(cost, whole),
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"soft end\" x=\"{}\" y=\"{}\">alive at once; the dashed line is the bound</text>",
            Px(WIDTH - RIGHT),
            Px(bottom + 38.0),
        );
    }
}

#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}
