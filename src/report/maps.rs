//! Several maps on one scale: one input in several orders.

use std::fmt::Write;

use crate::{
    Bytes, Plan,
    report::{
        MapOptions, StepNames, SvgOptions, by_pool,
        map::map_to_scale,
        markup::Escaped,
        pool_title,
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
    arranged(maps, options, Arrangement::Beside)
}

/// Draws the pools of a plan as a self-contained SVG, one below the other, each in a picture of the
/// given size and all on one scale.
#[must_use]
pub fn pool_maps_svg(plan: &Plan, steps: StepNames<'_>, options: SvgOptions) -> String {
    let pools = by_pool(plan);
    let titles: Vec<String> = (0..pools.len()).map(|at| pool_title(plan, at)).collect();
    let maps = titles.iter().zip(&pools).map(|(title, pool)| MapOf::new(title, pool, steps));
    arranged(&maps.collect::<Vec<_>>(), options, Arrangement::Below)
}

/// The places of several maps in one picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    Beside,
    Below,
}

fn arranged(maps: &[MapOf<'_>], options: SvgOptions, arrangement: Arrangement) -> String {
    /// Room for the titles, in pixels.
    const TITLE: u32 = 36;
    let (width, height) = (options.width.max(320), options.height.max(320));
    let highest = |plan: &Plan| -> Bytes {
        let ends = plan.chunks.iter().map(|chunk| plan.end_of(chunk));
        ends.max().unwrap_or(0).max(plan.pool_size)
    };
    let scale = maps.iter().map(|map| highest(map.plan)).max().unwrap_or(0);
    let (columns, rows) = match arrangement {
        Arrangement::Beside => (maps.len() as u64, 1),
        Arrangement::Below => (1, maps.len() as u64),
    };
    let (all, high) = (u64::from(width) * columns, u64::from(height + TITLE) * rows);
    let titles: Vec<_> = maps.iter().map(|map| Escaped(map.title).to_string()).collect();
    let titles = titles.join("; ");
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all} {high}\" width=\"100%\" role=\"img\">\n\
         <title>{titles}</title>\n\
         <style>\n{STYLE}</style>\n<rect class=\"page\" width=\"{all}\" height=\"{high}\"/>\n"
    );
    for (at, map) in (0..).zip(maps) {
        let (left, top) = match arrangement {
            Arrangement::Beside => (u64::from(width) * at, 0),
            Arrangement::Below => (0, u64::from(height + TITLE) * at),
        };
        let _ = write!(
            svg,
            "<text class=\"head\" x=\"{}\" y=\"{}\">{}</text>\n<svg x=\"{left}\" y=\"{}\" width=\"{width}\" height=\"{height}\">\n{}</svg>\n",
            left + 16,
            top + 26,
            Escaped(map.title),
            top + u64::from(TITLE),
            draw(map.plan, map.steps, options, scale),
        );
    }
    svg.push_str("</svg>\n");
    svg
}
