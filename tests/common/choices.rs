//! All choices of the overwrites that a problem requests.

use super::{
    asked::Request,
    judge::{Judge, Over},
};

/// The most requests of which all choices are listed.
const MAX_REQUESTS: usize = 5;

/// Returns the overwrites of each choice of optional requests, with all required ones. A chunk is written over no more
/// than one other, and no more than one over it.
pub fn choices(judge: &Judge) -> Vec<Vec<Option<Over>>> {
    let written = || judge.requests.iter().filter(|request| judge.size(request.new) > 0);
    let may_be = |request: &&Request| request.over.1 > -judge.size(request.new).cast_signed();
    let requests: Vec<&Request> = written().filter(may_be).collect();
    if requests.len() > MAX_REQUESTS {
        return Vec::new();
    }
    let mut found = Vec::new();
    for chosen in 0..1_usize << requests.len() {
        let mut links: Vec<Option<Over>> = vec![None; judge.chunks.len()];
        let mut is_right = true;
        for (_, request) in requests.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1) {
            let old = request.over.0;
            is_right &= judge.is_last_reader(request.new, old)
                && comes_after(judge, request.new, old)
                && !contradicts(judge, request.new)
                && !contains(judge, request.new, old)
                && !contains(judge, old, request.new)
                && links[request.new].is_none()
                && links.iter().flatten().all(|over| over.0 != old);
            links[request.new] = Some(request.over);
        }
        let is_met = |r: &Request| !r.required || links[r.new] == Some(r.over);
        if is_right && written().all(is_met) && !has_ring(&links) {
            found.push(links);
        }
    }
    found
}

/// With one stream, chunks are in the order of their begins, of their ends, and of the list.
fn comes_after(judge: &Judge, new: usize, old: usize) -> bool {
    let key = |chunk: usize| (&judge.chunks[chunk].begin, &judge.chunks[chunk].end, chunk);
    judge.chunks[new].begin.len() > 1 || key(old) < key(new)
}

/// Returns whether, on several streams, a chunk ends before it is written, or another one begins after that in its
/// stream but not in all.
fn contradicts(judge: &Judge, new: usize) -> bool {
    let mut written = judge.chunks[new].begin.clone();
    let stream = judge.chunks[new].stream;
    written[stream] += 1;
    let is_after = |clock: &[u64]| written.iter().zip(clock).all(|(written, at)| written <= at);
    let mut others = judge.chunks.iter().filter(|chunk| chunk.size > 0);
    written.len() > 1
        && (!is_after(&judge.chunks[new].end)
            || others.any(|z| z.begin[stream] >= written[stream] && !is_after(&z.begin)))
}

/// Returns whether a chunk is a part of another, directly or through others.
fn contains(judge: &Judge, whole: usize, chunk: usize) -> bool {
    let of_whole = judge.parts.iter().filter(|&&(_, of, _)| of == whole);
    of_whole.into_iter().any(|&(part, ..)| part == chunk || contains(judge, part, chunk))
}

fn has_ring(links: &[Option<Over>]) -> bool {
    (0..links.len()).any(|first| {
        let over = |&chunk: &usize| Some(links[chunk]?.0);
        std::iter::successors(over(&first), over).take(links.len()).any(|chunk| chunk == first)
    })
}
