//! Problems to plan, and a check of layouts.

use memplan::{
    Bytes, Problem, Strategy,
    problem::ChunkId,
    search::{self, Layout, Limits, Observer},
};

/// Plans with a strategy and the default limits.
pub fn layout(strategy: Strategy, problem: &Problem) -> Layout {
    search::lay_out(strategy, problem, &Limits::default(), Observer::default()).unwrap()
}

/// The problem without the overwrites that a layout does without: only `best` may, and only where none is required.
pub fn as_laid_out(problem: &Problem, strategy: Strategy, layout: &Layout) -> Problem {
    let mut kept = Problem::builder().alignment(problem.alignment()).padding(problem.padding());
    for chunk in problem.chunks() {
        kept.chunk(chunk.begin..chunk.end, chunk.size);
    }
    for request in problem.requests() {
        let at = layout.offset(request.overwritten) + request.offset;
        let in_place = layout.offset(request.overwriter) == at;
        if in_place || request.required || strategy != Strategy::Best {
            kept.request(*request);
        }
    }
    kept.build().unwrap()
}

/// Bytes of a chain in some steps, counted from the offset of its root. No other chain may overlap them.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub begin: u64,
    pub end: u64,
    pub low: u64,
    pub high: u64,
}

/// The bytes of the chain of a root: a chunk has its own from the step where the chunk that it overwrites has ended.
pub fn footprint(problem: &Problem, root: ChunkId) -> Vec<Segment> {
    let segment = |id| {
        let chunk = problem.chunk(id);
        let begin = problem.overwritten(id).map_or(chunk.begin, |(old, _)| problem.chunk(old).end);
        let (low, size) = (problem.place_in_chain(id).1, problem.padded_size(id));
        let segment = Segment { begin, end: chunk.end, low, high: low + size };
        (begin < chunk.end && size > 0).then_some(segment)
    };
    problem.chain(root).filter_map(segment).collect()
}

/// Returns the first fault of a pool in which chunks lie at some offsets, found by comparing every segment with every
/// other.
pub fn wrong(problem: &Problem, pool: Bytes, offset: impl Fn(ChunkId) -> Bytes) -> Option<String> {
    if pool < problem.lower_bound() {
        return Some(format!("a pool of {pool} is below the lower bound"));
    }
    let mut laid: Vec<(ChunkId, Segment)> = Vec::new();
    for root in problem.roots() {
        let base = offset(root);
        if !base.is_multiple_of(problem.alignment()) {
            return Some(format!("{root:?} lies at {base}"));
        }
        if base + problem.padded_size(root) > pool {
            return Some(format!("{root:?} sticks out"));
        }
        for chunk in problem.chain(root) {
            if offset(chunk) != base + problem.place_in_chain(chunk).1 {
                return Some(format!("{chunk:?} is not in its place in the chain"));
            }
        }
        laid.extend(footprint(problem, root).into_iter().map(|mut segment| {
            segment.low += base;
            segment.high += base;
            (root, segment)
        }));
    }
    for (at, (root, a)) in laid.iter().enumerate() {
        for (other, b) in &laid[at + 1..] {
            let in_time = a.begin < b.end && b.begin < a.end;
            if root != other && in_time && a.low < b.high && b.low < a.high {
                return Some(format!("{a:?} and {b:?} overlap"));
            }
        }
    }
    None
}

/// Parses a problem in MiniMalloc's form: a line per chunk, with its id, first step, end and size.
pub fn from_csv(text: &str) -> Problem {
    let mut problem = Problem::builder();
    for line in text.lines().skip(1) {
        let numbers: Vec<u64> =
            line.split(',').skip(1).map(|n| n.trim().parse().unwrap()).collect();
        problem.chunk(numbers[0]..numbers[1], numbers[2]);
    }
    problem.build().unwrap()
}
