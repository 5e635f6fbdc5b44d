//! The facts about a plan that pictures show besides rectangles: the views in each chunk, and the chain of
//! each chunk.

use std::collections::BTreeMap;

use crate::{
    Bytes, OpSequence, Plan, Step,
    plan::{PlannedPart, TensorPlace},
};

/// Returns whether the most bytes alive at one step are the lower bound: there is one pool without limits, and no chunk
/// has a fixed place.
pub(super) fn is_bound_by_steps(plan: &Plan) -> bool {
    let is_free = match &*plan.pools {
        [] => true,
        [pool] => pool.capacity.is_none() && plan.pinned.is_empty() && plan.reserved.is_empty(),
        _ => false,
    };
    is_free && plan.peak.is_empty()
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
pub(super) fn views<'a>(plan: &'a Plan, steps: Option<&OpSequence>) -> Vec<Vec<View<'a>>> {
    let producers: BTreeMap<&str, usize> = steps
        .into_iter()
        .flat_map(OpSequence::tensors)
        .filter_map(|tensor| Some((&*tensor.name, tensor.producer()?)))
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

/// The root of each chunk's chain and the chunk that overwrites it, by index in the plan, and the chunks around it.
pub(super) struct Chains {
    pub(super) root: Vec<usize>,
    /// The index of each chunk's chain among the chains.
    pub(super) number: Vec<usize>,
    /// Pairs of an overwritten chunk and its overwriter, sorted by the overwritten chunk.
    links: Vec<(usize, usize)>,
    /// Sorted by the chunk inside.
    parts: Vec<PlannedPart>,
}

impl Chains {
    pub(super) fn new(plan: &Plan) -> Self {
        let count = plan.chunks.len();
        let mut chains = Self {
            root: (0..count).collect(),
            number: vec![0; count],
            links: Vec::new(),
            parts: plan.parts.clone(),
        };
        chains.parts.sort_by_key(|part| part.chunk);
        let links = plan.chunks.iter().enumerate();
        let links = links.filter_map(|(at, chunk)| Some((chunk.overwrites?.chunk, at)));
        chains.links = links.filter(|&(old, _)| old < count).collect();
        chains.links.sort_unstable();
        for at in (0..count).filter(|&at| plan.chunks[at].overwrites.is_none()) {
            // An invalid plan may contain a cycle, but none that starts at a root.
            let mut open: Vec<usize> = chains.overwriters(at).collect();
            while let Some(member) = open.pop() {
                chains.root[member] = at;
                open.extend(chains.overwriters(member));
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

    /// The chunks that are written over a chunk.
    pub(super) fn overwriters(&self, chunk: usize) -> impl Iterator<Item = usize> + '_ {
        let from = self.links.partition_point(|&(old, _)| old < chunk);
        let links = self.links[from..].iter().take_while(move |&&(old, _)| old == chunk);
        links.map(|&(_, new)| new)
    }

    /// The chunks that a chunk lies inside.
    pub(super) fn around(&self, chunk: usize) -> &[PlannedPart] {
        let from = self.parts.partition_point(|part| part.chunk < chunk);
        let count = self.parts[from..].partition_point(|part| part.chunk == chunk);
        &self.parts[from..from + count]
    }
}
