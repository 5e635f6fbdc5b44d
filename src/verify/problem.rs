//! Compares a plan with its problem: rule 1 for chunks, and links against requests.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::{
    Plan, PlannedChunk, PlannedLink, Problem,
    problem::{ChunkId, Ids, Request, constraints::Part},
    verify::{Figure, Violation},
};

/// The chunks of a problem and those of its plan, side by side.
pub(super) struct Matching {
    /// The chunk of the problem for each chunk of the plan.
    pub(super) chunks: Vec<Option<ChunkId>>,
    /// The chunk of the plan for each chunk of the problem.
    pub(super) planned: Vec<Option<usize>>,
}

pub(super) fn check(problem: &Problem, plan: &Plan, violations: &mut Vec<Violation>) -> Matching {
    let labels = &problem.labels;
    let find = finder(problem);

    let mut chunks: Vec<Option<ChunkId>> = Vec::with_capacity(plan.chunks.len());
    let mut planned: Vec<Option<usize>> = vec![None; problem.len()];
    for (at, chunk) in plan.chunks.iter().enumerate() {
        let name = || chunk.name.to_string();
        let id = find(chunk);
        chunks.push(id);
        let Some(id) = id else {
            violations.push(Violation::Unknown { name: name() });
            continue;
        };
        if planned[id.index()].replace(at).is_some() {
            violations.push(Violation::Repeated { name: name() });
        }
        let real = problem.chunk(id);
        for (field, expected, found) in [
            (Figure::Size, real.size, chunk.size),
            (Figure::Begin, real.begin, chunk.begin),
            (Figure::End, real.end, chunk.end),
        ] {
            if expected != found {
                violations.push(Violation::Changed { name: name(), field, expected, found });
            }
        }
    }
    for id in problem.ids().filter(|id| planned[id.index()].is_none()) {
        violations.push(Violation::Missing { name: labels.name(id) });
    }

    let of = |request: &Request| {
        (request.overwriter, request.overwritten, request.offset, request.below)
    };
    let requested: HashSet<(ChunkId, ChunkId, u64, u64)> =
        problem.requests().iter().map(of).collect();
    let link_of = |at: usize| {
        let PlannedLink { chunk: overwritten, offset, below } = plan.chunks[at].overwrites?;
        Some((chunks[at]?, (*chunks.get(overwritten)?)?, offset, below))
    };
    for at in 0..plan.chunks.len() {
        if let Some(link) = link_of(at).filter(|link| !requested.contains(link)) {
            violations.push(Violation::OverwriteNotRequested {
                overwriter: labels.name(link.0),
                overwritten: labels.name(link.1),
            });
        }
    }
    // An update without bytes has nothing to write.
    let writes = |chunk: ChunkId| problem.chunk(chunk).size > 0;
    for request in problem.requests().iter().filter(|r| r.required && writes(r.overwriter)) {
        let link = of(request);
        let taken = planned[request.overwriter.index()].and_then(link_of);
        if taken != Some(link) {
            violations.push(Violation::RequiredOverwriteMissing {
                overwriter: labels.name(request.overwriter),
                overwritten: labels.name(request.overwritten),
            });
        }
    }
    Matching { chunks, planned }
}

/// The problem with those of its optional parts that a plan lists as required. If they contradict each other, returns
/// the problem unchanged, so that the parts of the plan are violations.
pub(super) fn with_listed_parts<'p>(problem: &'p Problem, plan: &Plan) -> Cow<'p, Problem> {
    if problem.optional_parts().is_empty() || plan.parts.is_empty() {
        return Cow::Borrowed(problem);
    }
    let find = finder(problem);
    let chunk = |at: usize| plan.chunks.get(at).and_then(&find);
    let listed: HashSet<_> =
        plan.parts.iter().map(|part| (chunk(part.chunk), chunk(part.whole), part.offset)).collect();
    let is_listed =
        |part: &&Part| listed.contains(&(Some(part.part), Some(part.whole), part.offset));
    let with = problem.with_parts(problem.optional_parts().iter().filter(is_listed));
    with.map_or(Cow::Borrowed(problem), Cow::Owned)
}

/// Finds the chunk of the problem that a chunk of the plan stands for.
type Finder<'a> = Box<dyn Fn(&PlannedChunk) -> Option<ChunkId> + 'a>;

fn finder(problem: &Problem) -> Finder<'_> {
    match &problem.labels.ids {
        Ids::Positions => Box::new(|chunk| {
            let at = usize::try_from(chunk.id).ok().filter(|&at| at < problem.len())?;
            Some(ChunkId::from_index(at))
        }),
        Ids::Numbers(numbers) => {
            let ids: HashMap<u64, ChunkId> = numbers.iter().copied().zip(problem.ids()).collect();
            Box::new(move |chunk| ids.get(&chunk.id).copied())
        }
        Ids::Texts(_) => {
            let ids: HashMap<String, ChunkId> =
                problem.ids().map(|id| (problem.name(id), id)).collect();
            Box::new(move |chunk| ids.get(&*chunk.name).copied())
        }
    }
}
