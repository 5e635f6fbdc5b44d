//! The windows that a plan lists for the chunks of a sequence: the steps in which a chunk needs only some of its bytes.
//! In a step with windows, the chunk needs the bytes of all of them together; in a step without a window, all its
//! bytes.

use crate::{
    Bytes, Plan, Step,
    boxes::PlacedBox,
    covered::Covered,
    plan::PlannedWindow,
    verify::{Violation, ranges},
};

/// Checks that the windows lie in their chunks and have all bytes that the chunks need. For a chunk, `needs` returns
/// the steps and the bytes, from its start, that it needs.
pub(super) fn check(
    plan: &Plan,
    needs: impl Fn(usize) -> Vec<PlacedBox>,
    violations: &mut Vec<Violation>,
) {
    let mut windows = plan.windows.clone();
    windows.sort_unstable();
    for windows in windows.chunk_by(|a, b| a.chunk == b.chunk) {
        let Some(chunk) = plan.chunks.get(windows[0].chunk) else {
            violations.push(Violation::NoSuchChunk { user: "a window".to_owned() });
            continue;
        };
        let name = || chunk.name.to_string();
        let steps = chunk.begin..chunk.end;
        let is_inside = |window: &&PlannedWindow| {
            let is_alive = steps.contains(&window.begin) && window.end <= steps.end;
            is_alive
                && window.begin < window.end
                && window.low <= window.high
                && window.high <= chunk.size
        };
        if let Some(&PlannedWindow { begin, end, low, high, .. }) =
            windows.iter().find(|window| !is_inside(window))
        {
            violations.push(Violation::WindowOutside { chunk: name(), begin, end, low, high });
        } else if let Some((step, low, high)) = left_out(windows, &needs(windows[0].chunk)) {
            violations.push(Violation::WindowTooSmall { chunk: name(), step, low, high });
        }
    }
}

/// The first step with a window in which bytes are needed that lie in no window, and some of these bytes.
fn left_out(windows: &[PlannedWindow], needs: &[PlacedBox]) -> Option<(Step, Bytes, Bytes)> {
    let window =
        |&PlannedWindow { begin, end, low, high, .. }: &_| PlacedBox { begin, end, low, high };
    let windows: Vec<PlacedBox> = windows.iter().map(window).collect();
    let ends = || windows.iter().chain(needs).flat_map(|one| [one.low.into(), one.high.into()]);
    let (mut listed, mut all) = (Covered::new(ends()), Covered::new(ends()));
    let mut changes: Vec<(Step, PlacedBox, i64, bool)> = Vec::new();
    for (boxes, is_window) in [(&windows[..], true), (needs, false)] {
        let boxes = boxes.iter().filter(|one| one.begin < one.end);
        changes.extend(
            boxes.flat_map(|&one| [(one.begin, one, 1, is_window), (one.end, one, -1, is_window)]),
        );
    }
    changes.sort_by_key(|&(step, ..)| step);
    let mut open = 0;
    for now in changes.chunk_by(|a, b| a.0 == b.0) {
        for &(_, PlacedBox { low, high, .. }, count, is_window) in now {
            all.add(low.into(), high.into(), count);
            if is_window {
                open += count;
                listed.add(low.into(), high.into(), count);
            }
        }
        if open > 0 && all.length() > listed.length() {
            let step = now[0].0;
            let mut listed: Vec<_> = windows
                .iter()
                .filter(|one| one.is_alive_at(step))
                .map(|one| one.low..one.high)
                .collect();
            listed.sort_by_key(|bytes| bytes.start);
            let needs = needs.iter().filter(|need| need.is_alive_at(step));
            let mut left =
                needs.flat_map(|need| ranges::outside(need.low..need.high, listed.iter().cloned()));
            return left.next().map(|bytes| (step, bytes.start, bytes.end));
        }
    }
    None
}
