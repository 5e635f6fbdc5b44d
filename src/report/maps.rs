//! Several maps, one below the other: one input in several orders, or the pools of a plan.

use std::fmt::Write;

use crate::{
    Bytes, OpSequence, Plan,
    report::{
        MapOptions, Size, by_pool, in_buffers,
        map::{map_to_scale, memory_map},
        markup::Escaped,
        pool_title,
        svg::{STYLE, memory_map_svg},
    },
};

/// A title, a plan, and the operators that its steps are.
type Titled<'a> = (&'a str, &'a Plan, Option<&'a OpSequence>);

/// Draws plans as text, one below the other, each below its title, with the same number of bytes per line.
#[must_use]
pub fn memory_maps(maps: &[(&str, &Plan, Option<&OpSequence>)], options: MapOptions) -> String {
    let scale = maps.iter().map(|(_, plan, _)| plan.pool_size).max().unwrap_or(0);
    let drawn = maps.iter().map(|(title, plan, steps)| {
        format!("{title}:\n{}", map_to_scale(plan, *steps, options, Some(scale)))
    });
    drawn.collect::<Vec<_>>().join("\n")
}

/// Draws plans as a self-contained SVG, one below the other, each below its title and
/// all on one scale.
#[must_use]
pub fn memory_maps_svg(maps: &[(&str, &Plan, Option<&OpSequence>)], options: MapOptions) -> String {
    let highest = |(_, plan, _): &Titled<'_>| -> Bytes {
        let ends = plan.chunks.iter().map(|chunk| plan.end_of(chunk));
        ends.max().unwrap_or(0).max(plan.pool_size)
    };
    let Some((_, first, _)) = maps.first() else { return String::new() };
    let size = options.pixels(first, maps.len());
    stacked(maps, size, maps.iter().map(highest).max().unwrap_or(0).max(options.scale))
}

/// Draws maps one below the other, each of this size in pixels, on an address axis of at least `scale` bytes.
fn stacked(maps: &[Titled<'_>], (width, height): (u32, u32), scale: Bytes) -> String {
    /// Room for the titles, in pixels.
    const TITLE: u32 = 36;
    let pixels = |size: u32| usize::try_from(size).unwrap_or(usize::MAX);
    let options = MapOptions::default().width(pixels(width)).height(pixels(height)).scale(scale);
    let high = u64::from(height + TITLE) * maps.len() as u64;
    let titles: Vec<_> = maps.iter().map(|&(title, ..)| Escaped(title).to_string()).collect();
    let titles = titles.join("; ");
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {high}\" width=\"100%\" role=\"img\">\n\
         <title>{titles}</title>\n\
         <style>\n{STYLE}</style>\n<rect class=\"page\" width=\"{width}\" height=\"{high}\"/>\n"
    );
    for (at, &(title, plan, steps)) in (0..).zip(maps) {
        let top = u64::from(height + TITLE) * at;
        let _ = write!(
            svg,
            "<text class=\"head\" x=\"16\" y=\"{}\">{}</text>\n<svg x=\"0\" y=\"{}\" width=\"{width}\" height=\"{height}\">\n{}</svg>\n",
            top + 26,
            Escaped(title),
            top + u64::from(TITLE),
            memory_map_svg(plan, steps, options),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws the pools of a plan as text, one below the other, each to a scale of its own.
#[must_use]
pub fn pool_maps(plan: &Plan, steps: Option<&OpSequence>, options: MapOptions) -> String {
    let plan = &*in_buffers(plan);
    let drawn = by_pool(plan).into_iter().zip(titles(plan)).map(|(pool, title)| {
        let map = memory_map(&pool, steps, options);
        if title.is_empty() { map } else { format!("{title}:\n{map}") }
    });
    drawn.collect::<Vec<_>>().join("\n")
}

/// Draws the pools of a plan as a self-contained SVG, one below the other, each to a scale of its
/// own.
#[must_use]
pub fn pool_maps_svg(plan: &Plan, steps: Option<&OpSequence>, options: MapOptions) -> String {
    let size = options.pixels(plan, plan.pools.len().max(1));
    let plan = &*in_buffers(plan);
    let (pools, titles) = (by_pool(plan), titles(plan));
    if let [pool] = &*pools {
        return memory_map_svg(pool, steps, options);
    }
    let maps = titles.iter().zip(&pools);
    let maps = maps.map(|(title, pool)| (&**title, pool, steps));
    stacked(&maps.collect::<Vec<_>>(), size, options.scale)
}

/// The titles of the pools with their capacities.
fn titles(plan: &Plan) -> Vec<String> {
    let title = |at: usize| {
        let capacity = plan.pools.get(at).and_then(|pool| pool.capacity);
        match (pool_title(plan, at), capacity) {
            (title, Some(bytes)) if !title.is_empty() => {
                format!("{title}, capacity {:#}", Size(bytes))
            }
            (title, _) => title,
        }
    };
    (0..plan.pools.len().max(1)).map(title).collect()
}
