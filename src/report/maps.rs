//! Several maps on one scale: one input in several orders.

use std::fmt::Write;

use crate::{
    Bytes, Plan,
    report::{
        MapOptions, StepNames, SvgOptions,
        map::map_to_scale,
        markup::Escaped,
        svg::{STYLE, draw},
    },
};

/// A map among others.
#[derive(Clone, Copy, Debug)]
pub struct MapOf<'a> {
    title: &'a str,
    plan: &'a Plan,
    steps: StepNames<'a>,
}

impl<'a> MapOf<'a> {
    /// The map of a plan, with a title.
    #[must_use]
    pub fn new(title: &'a str, plan: &'a Plan, steps: StepNames<'a>) -> Self {
        Self { title, plan, steps }
    }
}

/// Draws plans as text, one below the other, with the same number of bytes per line.
#[must_use]
pub fn memory_maps(maps: &[MapOf<'_>], options: MapOptions) -> String {
    let scale = maps.iter().map(|map| map.plan.pool_size).max().unwrap_or(0);
    let drawn = maps.iter().map(|map| {
        format!("{}:\n{}", map.title, map_to_scale(map.plan, map.steps, options, Some(scale)))
    });
    drawn.collect::<Vec<_>>().join("\n")
}

/// Draws plans as a self-contained SVG, side by side, each in a picture of the given size and all
/// on one scale.
#[must_use]
pub fn memory_maps_svg(maps: &[MapOf<'_>], options: SvgOptions) -> String {
    /// Room for the titles, in pixels.
    const TITLE: u32 = 36;
    let (width, height) = (options.width.max(320), options.height.max(320));
    let highest = |plan: &Plan| -> Bytes {
        let ends = plan.chunks.iter().map(|chunk| plan.end_of(chunk));
        ends.max().unwrap_or(0).max(plan.pool_size)
    };
    let scale = maps.iter().map(|map| highest(map.plan)).max().unwrap_or(0);
    let (all, high) = (u64::from(width) * maps.len() as u64, height + TITLE);
    let titles: Vec<_> = maps.iter().map(|map| Escaped(map.title).to_string()).collect();
    let titles = titles.join("; ");
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all} {high}\" width=\"100%\" role=\"img\">\n\
         <title>{titles}</title>\n\
         <style>\n{STYLE}</style>\n<rect class=\"page\" width=\"{all}\" height=\"{high}\"/>\n"
    );
    for (at, map) in maps.iter().enumerate() {
        let left = u64::from(width) * at as u64;
        let _ = write!(
            svg,
            "<text class=\"head\" x=\"{}\" y=\"26\">{}</text>\n<svg x=\"{left}\" y=\"{TITLE}\" width=\"{width}\" height=\"{height}\">\n{}</svg>\n",
            left + 16,
            Escaped(map.title),
            draw(map.plan, map.steps, options, scale),
        );
    }
    svg.push_str("</svg>\n");
    svg
}
