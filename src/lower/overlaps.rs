//! Which partial overlaps pay.
//!
//! An output that begins below its input saves bytes in one step, the one that both share, and ties the
//! two together for their whole lives. So an overlap is honoured only in the steps that would otherwise
//! need more than the pool needs anyway: the most bytes of any step if all overlaps were honoured.

use crate::{
    Bytes,
    lower::place::DraftChunk,
    problem::{ChunkId, Links, Request},
};

/// Returns the overlaps that save nothing, by their index among the requests. `links` are those that
/// the rules allow.
pub(super) fn useless(chunks: &[DraftChunk], links: &Links, requests: &[Request]) -> Vec<usize> {
    let link = |request: &Request| links.get(request.overwriter);
    let is_taken = |request: &Request| {
        link(request).is_some_and(|link| {
            (link.overwritten, link.below) == (request.overwritten, request.below)
        })
    };
    let overlaps: Vec<(usize, &Request)> =
        (0..).zip(requests).filter(|(_, request)| request.below > 0 && is_taken(request)).collect();
    if overlaps.is_empty() {
        return Vec::new();
    }
    let steps = chunks.iter().map(|chunk| chunk.end).max().unwrap_or(0);
    let index = |step: u64| usize::try_from(step).unwrap_or(usize::MAX);
    // By step, first what begins or ends there, then what is alive.
    let mut alive: Vec<i128> = vec![0; index(steps) + 1];
    for (at, chunk) in chunks.iter().enumerate() {
        let id = ChunkId::from_index(at);
        let (root, _) = links.place(id);
        if chunks[root.index()].outside.is_some() {
            continue;
        }
        // An overwriter inside another chunk has its bytes for itself one step later.
        let is_inside = links.get(id).is_some_and(|link| link.below == 0);
        let begin = if is_inside { chunk.begin + 1 } else { chunk.begin };
        if begin < chunk.end {
            alive[index(begin)] += i128::from(chunk.size);
            alive[index(chunk.end)] -= i128::from(chunk.size);
        }
    }
    for step in 1..alive.len() {
        alive[step] += alive[step - 1];
    }
    let mut least = alive.clone();
    for &(_, request) in &overlaps {
        let (new, old) =
            (&chunks[request.overwriter.index()], &chunks[request.overwritten.index()]);
        least[index(new.begin)] -= i128::from(shared(new.size, old.size, request.below));
    }
    let needed = least.into_iter().max().unwrap_or(0);
    let is_low =
        |request: &Request| alive[index(chunks[request.overwriter.index()].begin)] <= needed;
    overlaps.into_iter().filter(|(_, request)| is_low(request)).map(|(at, _)| at).collect()
}

/// The bytes of an output that lie over its input.
fn shared(new: Bytes, old: Bytes, below: Bytes) -> Bytes {
    new.saturating_sub(below).min(old)
}
