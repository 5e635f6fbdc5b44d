//! Checks the chunk table of a plan alone: rules 2 to 5 with the lifetimes that it states.

use crate::{
    Bytes, Plan, PlannedChunk, PlannedLink,
    boxes::{Boxes, PlacedBox},
    plan::PlannedPart,
    verify::{
        Violation,
        gathered::Gathered,
        places::{Interval, Memory},
        sweep::{Rectangle, overlaps},
    },
};

/// The rules for the links of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// A chunk has one overwriter, which begins in its last step.
    OfProblem,
    /// A chunk may have several overwriters, of different bytes. Each may begin before the chunk's last step; from then
    /// on, the chunk no longer has the bytes that the two have in common. Windows are taken into account.
    OfSequence,
}

pub(super) fn check(plan: &Plan, links: Links) -> Vec<Violation> {
    let mut violations = Vec::new();
    check_pool(plan, &mut violations);
    check_links(plan, links, &mut violations);
    check_objects(plan, &mut violations);
    let gathered = gathered(plan, &mut violations);
    let boxes = (links == Links::OfSequence).then(|| Boxes::of(plan));
    let rectangles: Vec<_> = if let Some(boxes) = boxes.filter(|boxes| !boxes.are_simple()) {
        let rectangle = |(owner, PlacedBox { begin, end, low, high })| Rectangle {
            owner,
            begin,
            end,
            low,
            high,
        };
        boxes.all().map(rectangle).collect()
    } else {
        (0..plan.chunks.len()).flat_map(|at| rectangles(plan, at)).collect()
    };
    violations.extend(overlaps(
        &rectangles,
        |&chunk| plan.chunks[chunk].name.to_string(),
        |old, new| {
            // Padding holds no data, neither behind the chunk nor behind the bytes of a window.
            let real = |rectangle: &Rectangle<usize>| {
                let chunk = &plan.chunks[rectangle.owner];
                let mut windows = plan.windows_of(rectangle.owner).iter();
                let window =
                    windows.find(|one| one.begin <= rectangle.begin && rectangle.begin < one.end);
                let size = window.map_or(chunk.size, |window| window.high.min(chunk.size));
                let end = chunk.offset.saturating_add(size);
                (rectangle.owner, rectangle.low, rectangle.high.min(end))
            };
            gathered.may_share(real(old), real(new))
        },
    ));
    violations
}

/// Returns the bytes to reserve for a chunk.
fn padded(plan: &Plan, chunk: &PlannedChunk) -> Bytes {
    if chunk.size == 0 { 0 } else { chunk.size.saturating_add(plan.padding) }
}

fn end(plan: &Plan, chunk: &PlannedChunk) -> Bytes {
    chunk.offset.saturating_add(padded(plan, chunk))
}

/// Returns the chunk that a chunk overwrites, if the plan lists it, and the offset in that chunk.
fn link(plan: &Plan, chunk: &PlannedChunk) -> Option<PlannedLink> {
    chunk.overwrites.filter(|link| link.chunk < plan.chunks.len())
}

/// Checks rules 4 and 5.
fn check_pool(plan: &Plan, violations: &mut Vec<Violation>) {
    let Plan { alignment, pool_size, lower_bound, .. } = *plan;
    if !alignment.is_power_of_two() {
        violations.push(Violation::BadAlignment { alignment });
        return;
    }
    let mut is_part = vec![false; plan.chunks.len()];
    for part in plan.parts.iter().filter(|part| part.chunk < plan.chunks.len()) {
        is_part[part.chunk] = true;
    }
    let mut expected: Bytes = 0;
    for (at, chunk) in plan.chunks.iter().enumerate().filter(|(_, chunk)| chunk.size > 0) {
        let (name, offset) = (|| chunk.name.to_string(), chunk.offset);
        let inside = offset.checked_add(chunk.size).and_then(|end| end.checked_add(plan.padding));
        if inside.is_none_or(|end| end > pool_size) {
            let size = padded(plan, chunk);
            violations.push(Violation::OutsideThePool { chunk: name(), offset, size, pool_size });
        }
        if chunk.overwrites.is_none() && offset % alignment != 0 && !is_part[at] {
            violations.push(Violation::Misaligned { chunk: name(), offset, alignment });
        }
        // Other overwriters lie inside.
        if chunk.overwrites.is_none_or(|link| link.below > 0) {
            expected = expected.max(end(plan, chunk));
        }
    }
    let expected = expected.checked_next_multiple_of(alignment).unwrap_or(Bytes::MAX);
    if expected != pool_size {
        violations.push(Violation::WrongTotal { expected, found: pool_size });
    }
    if lower_bound > pool_size {
        violations.push(Violation::BoundAbovePool { lower_bound, pool_size });
    }
}

/// Checks that parts lie in their wholes; returns those that do.
fn gathered(plan: &Plan, violations: &mut Vec<Violation>) -> Gathered {
    let mut parts: Vec<Vec<(Interval, usize)>> = vec![Vec::new(); plan.chunks.len()];
    for &PlannedPart { chunk, whole, offset, low, size } in &plan.parts {
        let (Some(inside), Some(around)) = (plan.chunks.get(chunk), plan.chunks.get(whole)) else {
            violations.push(Violation::NoSuchChunk { user: "the list of parts".to_owned() });
            continue;
        };
        let (part, name) = (inside.name.to_string(), around.name.to_string());
        let expected = around.offset.saturating_add(offset);
        let found = inside.offset.saturating_add(low);
        // A part is made before its whole.
        let is_earlier = (inside.begin, chunk) < (around.begin, whole);
        let has = |from: Bytes, of: &PlannedChunk| {
            from.checked_add(size).is_some_and(|end| end <= of.size)
        };
        let fits = has(offset, around) && has(low, inside);
        if !is_earlier || !fits || size == 0 {
            violations.push(Violation::UnknownPart { part, whole: name, offset });
        } else if found != expected {
            violations.push(Violation::MisplacedPart { part, whole: name, expected, found });
        } else if let Some(interval) = Interval::new(Memory::Pool, found, size) {
            parts[whole].push((interval, chunk));
        }
    }
    let mut gathered = Gathered::none(plan.chunks.len());
    for (whole, mut parts) in parts.into_iter().enumerate() {
        parts.sort_unstable();
        for pair in parts.windows(2).filter(|pair| pair[0].0.high > pair[1].0.low) {
            violations.push(Violation::UnknownPart {
                part: plan.chunks[pair[1].1].name.to_string(),
                whole: plan.chunks[whole].name.to_string(),
                offset: pair[1].0.low - plan.chunks[whole].offset,
            });
        }
        parts.dedup_by(|next, kept| kept.0.high > next.0.low);
        gathered.gather(whole, parts);
    }
    gathered
}

/// Checks rule 3, as far as the table alone shows it.
fn check_links(plan: &Plan, links: Links, violations: &mut Vec<Violation>) {
    let mut overwriters: Vec<Option<usize>> = vec![None; plan.chunks.len()];
    let mut again = Vec::new();
    // A chunk without bytes writes none.
    for (at, chunk) in plan.chunks.iter().enumerate().filter(|(_, chunk)| chunk.size > 0) {
        let Some(PlannedLink { chunk: overwritten, offset, below }) = link(plan, chunk) else {
            continue;
        };
        let old = &plan.chunks[overwritten];
        let name = |chunk: &PlannedChunk| chunk.name.to_string();
        let first = overwriters[overwritten].replace(at);
        if let (Some(first), Links::OfSequence) = (first, links) {
            again.extend([first, at]);
        } else if let Some(first) = first {
            violations.push(Violation::OverwrittenTwice {
                overwritten: name(old),
                first: name(&plan.chunks[first]),
                second: name(chunk),
            });
        }
        let expected = old.offset.saturating_add(offset).saturating_sub(below);
        let distance = i128::from(chunk.offset) - i128::from(old.offset);
        if distance != i128::from(offset) - i128::from(below) {
            violations.push(Violation::Misplaced {
                overwriter: name(chunk),
                overwritten: name(old),
                expected,
                found: chunk.offset,
            });
        }
        let end = offset.checked_add(chunk.size);
        if below == 0 && end.is_none_or(|end| end > old.size) {
            violations.push(Violation::OverwriteTooLarge {
                overwriter: name(chunk),
                overwritten: name(old),
            });
        }
        let last = old.end.checked_sub(1);
        let is_in_time = match links {
            Links::OfProblem => last == Some(chunk.begin),
            Links::OfSequence => old.begin <= chunk.begin && last >= Some(chunk.begin),
        };
        if !is_in_time {
            violations.push(Violation::OverwriteOutOfTime {
                overwriter: name(chunk),
                overwritten: name(old),
                begin: chunk.begin,
                last: old.end.saturating_sub(1),
            });
        }
    }
    check_ranges(plan, again, violations);
    if let Some(chunk) = cycle(plan) {
        violations.push(Violation::OverwriteCycle { chunk });
    }
}

/// Checks that overwriters of one chunk are written over different bytes of it.
fn check_ranges(plan: &Plan, mut overwriters: Vec<usize>, violations: &mut Vec<Violation>) {
    overwriters.sort_unstable();
    overwriters.dedup();
    let over = |at: usize| Some((link(plan, &plan.chunks[at])?.chunk, plan.chunks[at].offset, at));
    let mut links: Vec<(usize, Bytes, usize)> = overwriters.into_iter().filter_map(over).collect();
    links.sort_unstable();
    let name = |at: usize| plan.chunks[at].name.to_string();
    for links in links.chunk_by(|a, b| a.0 == b.0) {
        let old = &plan.chunks[links[0].0];
        let bottom = |at: usize| plan.chunks[at].offset.max(old.offset);
        // The overwriter that reaches highest so far.
        let mut highest = (0, links[0].2);
        for &(overwritten, low, at) in links {
            let high = low.saturating_add(plan.chunks[at].size);
            if bottom(at) < highest.0.min(old.offset.saturating_add(old.size)) && bottom(at) < high
            {
                violations.push(Violation::OverwrittenTwice {
                    overwritten: name(overwritten),
                    first: name(highest.1.min(at)),
                    second: name(highest.1.max(at)),
                });
            }
            highest = highest.max((high, at));
        }
    }
}

/// Checks rule 6: shared objects lie one after another. A chunk that overwrites nothing lies at the
/// start of its object, an overwriter lies in the object of the chunk that it overwrites, and an
/// object is as large as the largest of its chunks, rounded up to the alignment.
pub(super) fn check_objects(plan: &Plan, violations: &mut Vec<Violation>) {
    let mut begins = Vec::with_capacity(plan.objects.len());
    let mut end: Bytes = 0;
    for &size in &plan.objects {
        begins.push(end);
        end = end.saturating_add(size);
    }
    let mut needed = vec![0; plan.objects.len()];
    for chunk in &plan.chunks {
        let expected = match link(plan, chunk) {
            _ if chunk.size == 0 || plan.objects.is_empty() => None,
            Some(link) => plan.chunks[link.chunk].object,
            // Two objects without bytes may begin at the same offset.
            None => chunk.object.filter(|&object| begins.get(object) == Some(&chunk.offset)),
        };
        let must_have_one = chunk.size > 0 && !plan.objects.is_empty();
        if chunk.object != expected || (must_have_one && expected.is_none()) {
            violations.push(Violation::WrongObject { chunk: chunk.name.to_string() });
        }
        if let (None, Some(object)) = (link(plan, chunk), expected) {
            needed[object] = needed[object].max(padded(plan, chunk));
        }
    }
    let sizes = plan.objects.iter().zip(needed).enumerate();
    for (object, (&found, needed)) in sizes {
        let expected = needed.checked_next_multiple_of(plan.alignment).unwrap_or(Bytes::MAX);
        if found != expected {
            violations.push(Violation::WrongObjectSize { object, expected, found });
        }
    }
}

/// Returns a chunk whose links lead back to itself.
pub(super) fn cycle(plan: &Plan) -> Option<String> {
    // The walk in which each chunk was seen.
    let mut seen_in: Vec<Option<usize>> = vec![None; plan.chunks.len()];
    for start in 0..plan.chunks.len() {
        let mut at = start;
        while seen_in[at].is_none() {
            seen_in[at] = Some(start);
            match link(plan, &plan.chunks[at]) {
                Some(link) if seen_in[link.chunk] == Some(start) => {
                    return Some(plan.chunks[link.chunk].name.to_string());
                }
                Some(link) => at = link.chunk,
                None => break,
            }
        }
    }
    None
}

/// Returns the steps and bytes that a chunk occupies. An overwriter shares bytes with the overwritten chunk in the last
/// step of that chunk. In this step, the bytes count for the overwritten chunk; the overwriter occupies them from the
/// next step on. Its bytes outside of the overwritten chunk count for the overwriter from its first step on; only an
/// overwriter that begins below the overwritten chunk has such bytes.
fn rectangles(plan: &Plan, at: usize) -> impl Iterator<Item = Rectangle<usize>> {
    let chunk = &plan.chunks[at];
    let (low, high) = (chunk.offset, end(plan, chunk));
    let old = link(plan, chunk).and_then(|link| {
        let old = &plan.chunks[link.chunk];
        let inside = link.below > 0 || (old.offset <= low && high <= end(plan, old));
        let shares = link.chunk != at && inside && old.end.checked_sub(1) == Some(chunk.begin);
        shares.then_some(old)
    });
    let begin = if old.is_some() { chunk.begin + 1 } else { chunk.begin };
    let first = old
        .into_iter()
        .flat_map(move |old| [(low, high.min(old.offset)), (low.max(end(plan, old)), high)]);
    let first = first.filter(|(low, high)| low < high).map(move |(low, high)| Rectangle {
        owner: at,
        begin: chunk.begin,
        end: begin,
        low,
        high,
    });
    let all = Rectangle { owner: at, begin, end: chunk.end, low, high };
    first.chain(std::iter::once(all))
}
