//! The bytes alive, counted from the chunks of a plan by address, against what reports state about them.

#![allow(dead_code, reason = "each target uses its own part")]

use std::collections::HashMap;

use memplan::{
    OpSequence, Plan, PlannedChunk, Problem,
    report::{
        MapOptions, MapSheet, by_pool, explain, explain_json, in_buffers, memory_map,
        memory_map_html, memory_map_svg, size, summary,
    },
};
use serde_json::Value;

use super::number;

/// The largest pool and the most steps whose maps are counted cell by cell.
const SMALL: (u64, u64) = (300, 60);

/// Checks all reports about a plan, and about the plans of its bodies. Returns the number of pools in which several
/// chunks share bytes in some step.
pub fn check(plan: &Plan, steps: Option<&OpSequence>) -> usize {
    let split = in_buffers(plan);
    let mut shared = 0;
    for pool in by_pool(&split) {
        shared += check_pool(&pool, steps, plan);
    }
    if plan.steps() <= SMALL.1 {
        check_page(&split, steps, plan);
    }
    let bodies = plan.bodies().iter().map(|body| check(&body.plan, None));
    shared + bodies.sum::<usize>()
}

/// Bytes that are covered by ranges of addresses, plainly and in cells of the alignment.
fn covered(mut ranges: Vec<(u64, u64)>, alignment: u64) -> (u64, u64) {
    ranges.sort_unstable();
    let (mut plain, mut aligned_bytes, mut end) = (0, 0, 0);
    for (low, high) in ranges {
        let low = low.max(end);
        if low < high {
            plain += high - low;
            aligned_bytes += high.next_multiple_of(alignment) - low.next_multiple_of(alignment);
            end = high;
        }
    }
    (plain, plain.next_multiple_of(alignment).max(aligned_bytes))
}

/// The addresses that the chunks of a plan need in a step, with their lengths added up.
fn needs(plan: &Plan, step: u64) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for (at, chunk) in plan.chunks().iter().enumerate().filter(|(_, chunk)| chunk.size > 0) {
        // What an overwriter shares in its first step is counted once.
        if step < chunk.begin || chunk.end <= step {
            continue;
        }
        let mut own = Vec::new();
        let windows = plan.windows(at).filter(|(steps, _)| steps.contains(&step));
        let windows: Vec<_> = windows.collect();
        for (_, bytes) in windows.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            let (low, high) = (chunk.offset + bytes.start, chunk.offset + bytes.end);
            own.push((low, high + plan.padding()));
        }
        if windows.is_empty() {
            own.push((chunk.offset, plan.end_of(chunk)));
        }
        // What an overwriter has taken belongs to it, even if nobody reads it.
        let over = |new: &&PlannedChunk| new.overwrites.is_some_and(|link| link.chunk == at);
        for new in plan.chunks().iter().filter(over).filter(|new| new.begin < step) {
            let is_last = new.offset + new.size >= chunk.offset + chunk.size;
            let high = if is_last { plan.end_of(chunk) } else { new.offset + new.size };
            let left = own
                .into_iter()
                .flat_map(|(low, end)| [(low, end.min(new.offset)), (low.max(high), end)]);
            own = left.filter(|(low, high)| low < high).collect();
        }
        ranges.extend(own);
    }
    ranges
}

fn check_pool(pool: &Plan, steps: Option<&OpSequence>, plan: &Plan) -> usize {
    let alignment = pool.alignment().max(1);
    let explained = explain_json(pool, steps);
    let peak = &explained["peak"];
    let chunks = peak["chunks"].as_array().unwrap();
    let sum: u64 = chunks.iter().map(|chunk| number(&chunk["bytes"])).sum();
    let alive = number(&explained["bytes_alive"]);
    if !pool.peak().is_empty() {
        // With several streams, the chunks listed are alive together, though maybe in no step of the plan.
        let of = |&at: &usize| (pool.chunks()[at].offset, pool.end_of(&pool.chunks()[at]));
        let (plain, most) = covered(pool.peak().iter().map(of).collect(), alignment);
        assert_eq!((sum, alive), (plain, most), "{plan:#?}");
        return 0;
    }
    let counted: Vec<(u64, u64)> =
        (0..pool.steps()).map(|step| covered(needs(pool, step), alignment)).collect();
    let most = counted.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    assert_eq!(alive, most, "bytes alive\n{plan:#?}");
    let words = explain(pool, steps).replace('\n', " ");
    if most == 0 {
        assert!(words.starts_with("Nothing is ever alive."), "{words}");
        return 0;
    }
    let step = number(&peak["step"]);
    let (plain, at_peak) = counted[usize::try_from(step).unwrap()];
    assert_eq!((at_peak, sum), (most, plain), "step {step}\n{plan:#?}");
    assert!(words.contains(&format!(": {}, in ", size(most))), "{}\n{words}", size(most));
    let free: u64 = peak["free"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gap| number(&gap["high"]) - number(&gap["low"]))
        .sum();
    let reserved = pool.reserved(0).map(|bytes| (bytes.start, bytes.end.min(pool.pool_size())));
    let (taken, _) = covered(needs(pool, step).into_iter().chain(reserved).collect(), 1);
    assert_eq!(taken + free, pool.pool_size(), "free bytes\n{plan:#?}");
    let of_summary = summary(pool, steps, "");
    if let Some(row) = of_summary.lines().find_map(|line| line.strip_prefix("peak  ")) {
        let row = row.trim_start();
        let is_pool = row.starts_with("at ") && pool.pool_size() == most;
        assert!(is_pool || row.starts_with(&size(most).to_string()), "{of_summary}");
    }
    if pool.pool_size() <= SMALL.0 && pool.steps() <= SMALL.1 && pool.pool_size() > 0 {
        let counted: Vec<u64> = counted.iter().map(|&(plain, _)| plain).collect();
        check_map(pool, steps, &counted);
        check_picture(pool, steps, &counted);
    }
    let whole = |step| needs(pool, step).iter().map(|(low, high)| high - low).sum::<u64>();
    usize::from((0..).zip(&counted).any(|(step, &(plain, _))| whole(step) > plain))
}

/// No cell of a map with a line for each byte holds two chunks, and as many cells are taken as bytes are alive.
fn check_map(pool: &Plan, steps: Option<&OpSequence>, counted: &[u64]) {
    let (height, width) = (pool.pool_size(), 11 + pool.steps());
    let [height, width] = [height, width].map(|size| usize::try_from(size).unwrap());
    let options = MapOptions::default().height(height).width(width);
    let map = memory_map(pool, steps, options);
    let rows: Vec<&[u8]> =
        map.lines().filter_map(|line| Some(line.split_once(" |")?.1.as_bytes())).collect();
    let bytes = pool.pool_size() / rows.len() as u64;
    let per_step = rows[0].len() / counted.len();
    for (step, &alive) in counted.iter().enumerate() {
        let cells = || rows.iter().map(|row| row[step * per_step]);
        assert!(cells().all(|cell| cell != b'*'), "step {step}\n{map}");
        let taken = cells().filter(|cell| !b".#".contains(cell)).count() as u64;
        assert_eq!(taken * bytes, alive, "step {step}\n{map}\n{pool:#?}");
    }
}

/// The rectangles of a picture cover as much of it as bytes are alive.
fn check_picture(pool: &Plan, steps: Option<&OpSequence>, counted: &[u64]) {
    let options = MapOptions::default().width(3000).height(3000);
    let svg = memory_map_svg(pool, steps, options);
    let (mut free, mut taken) = (0.0, 0.0);
    for line in svg.lines().filter(|line| line.starts_with("<rect class=\"")) {
        let value = |name: &str| -> f64 {
            let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        let area = || value("width") * value("height");
        if line.contains("<title>free</title>") {
            free = area();
        } else if line.starts_with("<rect class=\"c c") || line.starts_with("<rect class=\"t c") {
            taken += area();
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let share = counted.iter().sum::<u64>() as f64 / (pool.pool_size() * pool.steps()) as f64;
    assert!((taken / free - share).abs() < 0.01, "{} instead of {share}\n{pool:#?}", taken / free);
}

/// The boxes of the page have as many bytes in each step as are alive, in all pools together.
fn check_page(split: &Plan, steps: Option<&OpSequence>, plan: &Plan) {
    let problem = Problem::builder().build().unwrap();
    let plans = std::slice::from_ref(split);
    let html = memory_map_html("page", &[MapSheet::new(plans, steps).problem(&problem)]);
    let (_, rest) = html.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let boxes = &data["sheets"][0]["boxes"];
    let column = |name: &str| super::numbers(&boxes[name]);
    let rows = column("chunk").into_iter().zip(column("begin")).zip(column("end"));
    let rows = rows.zip(column("low").into_iter().zip(column("high")));
    let mut listed: HashMap<u64, Vec<[u64; 4]>> = HashMap::new();
    for (((chunk, begin), end), (low, high)) in rows {
        listed.entry(chunk).or_default().push([begin, end, low, high]);
    }
    let mut drawn = vec![0; usize::try_from(split.steps()).unwrap()];
    for (at, chunk) in split.chunks().iter().enumerate().filter(|(_, chunk)| chunk.size > 0) {
        let whole = [split.own_begin(chunk), chunk.end, 0, chunk.size + split.padding()];
        for [begin, end, low, high] in listed.remove(&(at as u64)).unwrap_or_else(|| vec![whole]) {
            for step in begin..end.min(split.steps()) {
                drawn[usize::try_from(step).unwrap()] += high - low;
            }
        }
    }
    let mut counted = vec![0; drawn.len()];
    for pool in by_pool(split) {
        for (step, counted) in (0..).zip(&mut counted) {
            *counted += covered(needs(&pool, step), 1).0;
        }
    }
    assert_eq!(drawn, counted, "the page\n{plan:#?}");
}
