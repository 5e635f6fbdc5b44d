//! The facts about a plan that pictures show besides rectangles: the bytes alive at each step, the
//! views in each chunk, and the chain of each chunk.

use std::{
    collections::{BTreeMap, HashSet},
    ops::AddAssign,
};

use crate::{
    Bytes, Plan, PlannedChunk, Step,
    covered::{self, Covered},
    plan::TensorPlace,
    report::{StepNames, boxes::PlacedBox},
    sequence::Origin,
    steps::sum_by_step,
};

/// The most bytes alive at one step: the lower bound, unless a search has proven a larger one. In a
/// plan without its problem's links, more bytes are alive than the bound.
pub(super) fn most_alive(plan: &Plan) -> Bytes {
    if !is_bound_by_steps(plan) {
        return plan.lower_bound;
    }
    let most = live_bytes(plan).into_iter().map(|(_, bytes)| bytes).max().unwrap_or(0);
    most.min(plan.lower_bound)
}

/// Returns whether the bytes alive at one step are the lower bound: there is one pool, without limits, and
/// nothing has a fixed place.
pub(super) fn is_bound_by_steps(plan: &Plan) -> bool {
    let is_free = match &*plan.pools {
        [] => true,
        [pool] => pool.capacity.is_none() && plan.pinned.is_empty() && plan.reserved.is_empty(),
        _ => false,
    };
    is_free && plan.peak.is_empty()
}

/// The bytes that any plan needs, at every step where they change. A chunk counts from the step
/// where it has its bytes to itself. The largest number is the lower bound.
pub(super) fn live_bytes(plan: &Plan) -> Vec<(Step, Bytes)> {
    // Counts plain bytes and cells of the alignment like `Problem::lower_bound`, because offsets of
    // roots are multiples of the alignment. Plans from files may be wrong, so sums are wide.
    let alignment = u128::from(plan.alignment.max(1));
    if !plan.parts.is_empty() {
        return live_places(plan, alignment);
    }
    // A division of 128 bits would take longer than all else.
    let cell = |at: u128| if alignment == 1 { at } else { at.next_multiple_of(alignment) };
    let changes = plan.all_boxes().flat_map(|(_, PlacedBox { begin, end, low, high })| {
        let (low, high) = (u128::from(low), u128::from(high));
        let cells = cell(high) - cell(low);
        let signed = |bytes: u128| i128::try_from(bytes).unwrap_or(0);
        let (plain, celled) = (signed(high - low), signed(cells));
        [(begin, Change { plain, celled }), (end, Change { plain: -plain, celled: -celled })]
    });
    let last = plan.chunks.iter().map(|chunk| chunk.end).max().unwrap_or(0);
    let mut alive = Change::default();
    let mut live = Vec::new();
    sum_by_step(changes, 2 * plan.chunks.len(), last, |step, change| {
        alive += change;
        let plain = cell(u128::try_from(alive.plain).unwrap_or(0));
        let bytes = plain.max(u128::try_from(alive.celled).unwrap_or(0));
        live.push((step, Bytes::try_from(bytes).unwrap_or(Bytes::MAX)));
    });
    live
}

/// A change of the live bytes, and of the cells of the alignment that they alone touch, in bytes.
#[derive(Clone, Copy, Default)]
struct Change {
    plain: i128,
    celled: i128,
}

impl AddAssign for Change {
    fn add_assign(&mut self, other: Self) {
        self.plain += other.plain;
        self.celled += other.celled;
    }
}

/// As [`live_bytes`], but counted by address, so that the bytes of a part and its whole count once.
fn live_places(plan: &Plan, alignment: u128) -> Vec<(Step, Bytes)> {
    let mut changes: Vec<(Step, i64, u128, u128)> = Vec::new();
    for (at, PlacedBox { begin, end, low, high }) in plan.all_boxes() {
        let base = covered::base(plan.chunks[at].pool);
        let (low, high) = (base + u128::from(low), base + u128::from(high));
        changes.extend([(begin, 1, low, high), (end, -1, low, high)]);
    }
    changes.sort_unstable_by_key(|&(step, ..)| step);
    let cell = |at: u128| at.next_multiple_of(alignment);
    let mut plain = Covered::new(changes.iter().flat_map(|&(_, _, low, high)| [low, high]));
    let mut celled =
        Covered::new(changes.iter().flat_map(|&(_, _, low, high)| [cell(low), cell(high)]));
    let now = |changes: &[(Step, i64, u128, u128)]| {
        for &(_, count, low, high) in changes {
            plain.add(low, high, count);
            celled.add(cell(low), cell(high), count);
        }
        let alive = cell(plain.length()).max(celled.length());
        (changes[0].0, Bytes::try_from(alive).unwrap_or(Bytes::MAX))
    };
    changes.chunk_by(|(step, ..), (next, ..)| step == next).map(now).collect()
}

/// The chunks that have bytes to themselves at the peak, with their indices in the plan and these bytes. A
/// part is omitted if its whole is alive as well.
pub(super) fn placed_at_peak(plan: &Plan) -> impl Iterator<Item = (usize, PlacedBox)> {
    let at_peak = |own: &PlacedBox| plan.peak.is_empty() && own.is_alive_at(plan.peak_step);
    let alive = plan.all_boxes().filter(move |(_, own)| at_peak(own));
    let in_crowd = plan.peak.iter().filter(|&&at| at < plan.chunks.len());
    let all = alive.chain(in_crowd.flat_map(|&at| plan.boxes(at).map(move |own| (at, own))));
    let all: Vec<(usize, PlacedBox)> = all.collect();
    let mut is_inside = vec![false; plan.chunks.len()];
    if !plan.parts.is_empty() {
        let alive: HashSet<usize> = all.iter().map(|&(at, _)| at).collect();
        for part in plan.parts.iter().filter(|part| alive.contains(&part.whole)) {
            if let Some(is_inside) = is_inside.get_mut(part.chunk) {
                *is_inside = true;
            }
        }
    }
    all.into_iter().filter(move |&(at, _)| !is_inside[at])
}

/// As [`placed_at_peak`], with the chunks themselves.
pub(super) fn alive_at_peak(plan: &Plan) -> impl Iterator<Item = (&PlannedChunk, PlacedBox)> {
    placed_at_peak(plan).map(|(at, own)| (&plan.chunks[at], own))
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
