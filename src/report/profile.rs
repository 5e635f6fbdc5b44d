//! The facts about a plan that pictures show besides rectangles: the bytes alive at each step, the
//! views in each chunk, and the chain of each chunk.

use std::collections::BTreeMap;

use crate::{
    Bytes, Plan, PlannedChunk, Step, plan::TensorPlace, report::StepNames, sequence::Origin,
};

/// The most bytes alive at one step: the lower bound, unless a search has proven a larger one. In a
/// plan without its problem's links, more bytes are alive than the bound.
pub(super) fn most_alive(plan: &Plan) -> Bytes {
    // Parts and holes are not in the plan, so only the bound counts them.
    if !plan.pools.is_empty() {
        return plan.lower_bound;
    }
    if plan.strategy.is_some_and(|strategy| !strategy.searches()) {
        return plan.lower_bound;
    }
    let most = live_bytes(plan).into_iter().map(|(_, bytes)| bytes).max().unwrap_or(0);
    most.min(plan.lower_bound)
}

/// The bytes that any plan needs, at every step where they change. A chunk counts from the step
/// where it has its bytes to itself. The largest number is the lower bound.
pub(super) fn live_bytes(plan: &Plan) -> Vec<(Step, Bytes)> {
    // Counts plain bytes and cells of the alignment like `Problem::lower_bound`, because offsets of
    // roots are multiples of the alignment. Plans from files may be wrong, so sums are wide.
    let alignment = u128::from(plan.alignment.max(1));
    let mut changes: BTreeMap<Step, (i128, i128)> = BTreeMap::new();
    for chunk in plan.chunks.iter().filter(|chunk| chunk.size > 0) {
        let begin = plan.own_begin(chunk);
        if begin >= chunk.end {
            continue;
        }
        let (low, high) = (u128::from(chunk.offset), u128::from(plan.end_of(chunk)));
        let cells = high.next_multiple_of(alignment) - low.next_multiple_of(alignment);
        let signed = |bytes: u128| i128::try_from(bytes).unwrap_or(0);
        let (bytes, cells) = (signed(high - low), signed(cells));
        let begun = changes.entry(begin).or_default();
        *begun = (begun.0 + bytes, begun.1 + cells);
        let ended = changes.entry(chunk.end).or_default();
        *ended = (ended.0 - bytes, ended.1 - cells);
    }
    let (mut plain, mut celled) = (0_i128, 0_i128);
    changes
        .into_iter()
        .map(|(step, (bytes, cells))| {
            (plain, celled) = (plain + bytes, celled + cells);
            let plain = u128::try_from(plain).unwrap_or(0).next_multiple_of(alignment);
            let alive = plain.max(u128::try_from(celled).unwrap_or(0));
            (step, Bytes::try_from(alive).unwrap_or(Bytes::MAX))
        })
        .collect()
}

/// The chunks that have bytes to themselves at the peak, with their indices in the plan.
pub(super) fn alive_at_peak(plan: &Plan) -> impl Iterator<Item = (usize, &PlannedChunk)> {
    let alive = plan.chunks.iter().enumerate().filter(|(_, chunk)| {
        let lives = plan.own_begin(chunk) <= plan.peak_step && plan.peak_step < chunk.end;
        chunk.size > 0 && lives && plan.peak.is_empty()
    });
    let at_peak = plan.peak.iter().filter_map(|&at| Some((at, plan.chunks.get(at)?)));
    alive.chain(at_peak)
}

/// A tensor that is a view of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View<'a> {
    pub(super) name: &'a str,
    /// The step of its operator, or the chunk's first step if the operator is unknown.
    pub(super) begin: Step,
    /// The offset from the start of the pool, in bytes.
    pub(super) offset: Bytes,
    pub(super) size: Bytes,
}

/// Lists the views in each chunk: all of its tensors but the first.
pub(super) fn views<'a>(plan: &'a Plan, steps: StepNames<'_>) -> Vec<Vec<View<'a>>> {
    let producers: BTreeMap<&str, usize> = steps
        .0
        .into_iter()
        .flat_map(crate::OpSequence::tensors)
        .filter_map(|tensor| match tensor.origin {
            Origin::Output { step, .. } => Some((&*tensor.name, step)),
            Origin::Input | Origin::Weight => None,
        })
        .collect();
    let mut views: Vec<Vec<View<'_>>> = vec![Vec::new(); plan.chunks.len()];
    let mut seen = vec![false; plan.chunks.len()];
    for tensor in &plan.tensors {
        let TensorPlace::Pool { chunk, offset } = tensor.place else { continue };
        let (Some(list), Some(seen)) = (views.get_mut(chunk), seen.get_mut(chunk)) else {
            continue;
        };
        if std::mem::replace(seen, true) {
            let begin = producers.get(&*tensor.name).map(|&step| step as Step);
            let begin = begin.unwrap_or(plan.chunks[chunk].begin);
            list.push(View { name: &tensor.name, begin, offset, size: tensor.size });
        }
    }
    views
}

/// The root of each chunk's chain and the chunk that overwrites it, by index in the plan.
pub(super) struct Chains {
    pub(super) root: Vec<usize>,
    /// The index of each chunk's chain among the chains.
    pub(super) number: Vec<usize>,
    pub(super) overwriter: Vec<Option<usize>>,
}

impl Chains {
    pub(super) fn new(plan: &Plan) -> Self {
        let count = plan.chunks.len();
        let mut chains = Self {
            root: (0..count).collect(),
            number: vec![0; count],
            overwriter: vec![None; count],
        };
        for (at, chunk) in plan.chunks.iter().enumerate() {
            let overwritten = chunk.overwrites.map(|link| link.chunk);
            if let Some(slot) = overwritten.and_then(|at| chains.overwriter.get_mut(at)) {
                *slot = Some(at);
            }
        }
        for (at, chunk) in plan.chunks.iter().enumerate() {
            let mut next = chains.overwriter[at].filter(|_| chunk.overwrites.is_none());
            // An invalid plan may contain a cycle, but none that starts at a root.
            while let Some(member) = next.filter(|&member| chains.root[member] == member) {
                chains.root[member] = at;
                next = chains.overwriter[member];
            }
        }
        let mut numbers = 0..;
        for at in 0..count {
            if chains.root[at] == at {
                chains.number[at] = numbers.next().unwrap_or(0);
            }
        }
        for at in 0..count {
            chains.number[at] = chains.number[chains.root[at]];
        }
        chains
    }
}
