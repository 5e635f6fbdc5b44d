//! Chunks that live on for some of their bytes, and the views that show these.

use crate::{
    Bytes, Plan, Step,
    boxes::{Boxes, PlacedBox},
    report::{
        Size, count,
        profile::{View, views},
        short,
        times::Times,
    },
};

/// The most views that are named.
const SHOWN: usize = 3;

/// The reason why a chunk is still alive in its last step.
pub(super) struct Kept<'a> {
    /// The views, the lowest first.
    pub(super) views: Vec<&'a str>,
    /// The number of bytes that the chunk still needs.
    pub(super) bytes: Bytes,
    /// The last step.
    pub(super) until: Step,
}

impl Kept<'_> {
    /// The reason as a sentence: `t is kept by its view a (32 B of 64 B) until step 4.`
    pub(super) fn sentence(&self, plan: &Plan, chunk: usize, times: Times<'_>) -> String {
        let mut names: Vec<String> =
            self.views.iter().take(SHOWN).map(|name| short(name)).collect();
        if let Some(more) = self.views.len().checked_sub(SHOWN).filter(|&more| more > 0) {
            names.push(count(more as u64, "other"));
        }
        let (name, size) = (short(&plan.chunks[chunk].name), plan.chunks[chunk].size);
        format!(
            "{name} is kept by its {} {} ({:#} of {:#}) until {}.",
            if self.views.len() == 1 { "view" } else { "views" },
            names.join(", "),
            Size(self.bytes),
            Size(size),
            times.short_name(self.until),
        )
    }
}

/// By chunk: the reason why it lives to its end, if it needs only some of its bytes there and views show these.
pub(super) fn kept<'a>(plan: &'a Plan, times: Times<'a>) -> impl Fn(usize) -> Option<Kept<'a>> {
    let views = views(plan, times.steps());
    let boxes = Boxes::of(plan);
    move |chunk| {
        if boxes.is_simple(chunk) {
            return None;
        }
        let all: Vec<PlacedBox> = boxes.of_chunk(chunk).collect();
        let until = all.iter().map(|own| own.end).max()? - 1;
        let last = plan.chunks[chunk].offset.saturating_add(plan.chunks[chunk].size);
        let mut in_last: Vec<PlacedBox> =
            all.into_iter().filter(|own| own.is_alive_at(until)).collect();
        in_last.sort_by_key(|own| own.low);
        let runs = in_last.chunk_by(|a, b| a.high == b.low);
        let left = runs.map(|run| (run[0].low, run[run.len() - 1].high.min(last)));
        let left: Vec<(Bytes, Bytes)> = left.collect();
        let bytes = left.iter().map(|(low, high)| high.saturating_sub(*low)).sum();
        if bytes >= plan.chunks[chunk].size {
            return None;
        }
        let mut names: Vec<(Bytes, &str)> = Vec::new();
        for (low, high) in left {
            let is_inside = |view: &&View<'a>| {
                let end = view.offset.saturating_add(view.size);
                view.size > 0 && low <= view.offset && end <= high
            };
            let inside = views[chunk].iter().filter(is_inside);
            let most = inside.clone().map(|view| view.size).max();
            let largest = inside.filter(|view| Some(view.size) == most);
            names.extend(largest.map(|view| (view.offset, view.name)));
        }
        names.sort_unstable();
        names.dedup_by_key(|&mut (offset, _)| offset);
        let views: Vec<&str> = names.into_iter().map(|(_, name)| name).collect();
        (!views.is_empty()).then_some(Kept { views, bytes, until })
    }
}
