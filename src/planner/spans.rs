//! Spans of time on several streams.
//!
//! Some moments, each over at the next, cut time into spans. A box may be alive in the spans from the last of these
//! moments that is over when it begins to the first at which it is over. If two boxes have no span in common,
//! a moment lies between them, so one is over before the other begins. So only boxes of the same spans need to
//! be compared. Where streams seldom wait for each other, spans are long.

use std::{iter, ops::Range};

use crate::{
    Step,
    problem::demands::{Chains, TimedBox, chains, is_over},
};

/// Looking at the boxes of one more span takes as long as passing this many boxes.
const BOXES_PER_SPAN: u64 = if cfg!(test) { 1 } else { 64 };

/// The most spans of a box, on average.
const SPANS_PER_BOX: u64 = 16;

/// Boxes in spans of time.
pub(super) struct Spans {
    /// By list of boxes.
    pub(super) lives: Vec<Vec<Life>>,
    /// The number of spans.
    pub(super) count: usize,
    /// The boxes in the spans of a box, on average.
    pub(super) met: u64,
}

/// The life of a box.
pub(super) struct Life {
    /// For each stream, the begin and the end, as numbers of 32 bits in the same order as the steps.
    pub(super) times: Box<[u32]>,
    pub(super) spans: Range<usize>,
}

impl Spans {
    pub(super) fn of(boxes: &[Vec<TimedBox>]) -> Self {
        let all: Vec<&TimedBox> = boxes.iter().flatten().collect();
        let begins: Vec<&[Step]> = all.iter().map(|one| &*one.begin).collect();
        let Chains { chains, .. } = chains(&begins);
        let line = chains.into_iter().max_by_key(Vec::len).unwrap_or_default();
        // The number of moments that are over when a box begins, and of those at which it is not over.
        let on_line = |one: &&TimedBox| {
            let begun = line.partition_point(|&at| is_over(begins[at], &one.begin));
            (begun, line.partition_point(|&at| !is_over(&one.end, begins[at])))
        };
        let on_line: Vec<(usize, usize)> = all.iter().map(on_line).collect();
        let widths = iter::successors(Some(1), |width| Some(2 * width));
        let widths = widths.take_while(|width| *width <= 2 * line.len());
        let work = |width: usize| work(&on_line, line.len() / width + 1, width);
        let (_, width, met) = widths
            .map(|width| (work(width), width))
            .map(|((met, spans), width)| (met.saturating_add(BOXES_PER_SPAN * spans), width, met))
            .min()
            .unwrap_or((0, 1, 0));
        let times = times(&all);
        let mut lives = on_line.iter().zip(times).map(|(&(begun, not_over), times)| Life {
            times,
            spans: begun / width..not_over / width + 1,
        });
        Self {
            lives: boxes.iter().map(|own| lives.by_ref().take(own.len()).collect()).collect(),
            count: line.len() / width + 1,
            met: met / all.len().max(1) as u64,
        }
    }
}

/// The boxes in the spans of all boxes, and the spans of all boxes, if a span has a number of moments.
fn work(on_line: &[(usize, usize)], count: usize, width: usize) -> (u64, u64) {
    let mut begun: Vec<u64> = vec![0; count + 1];
    let mut over: Vec<u64> = vec![0; count + 1];
    let mut spans: u64 = 0;
    for &(first, last) in on_line {
        begun[first / width] += 1;
        over[last / width] += 1;
        spans += (last / width + 1 - first / width) as u64;
    }
    if spans > SPANS_PER_BOX * on_line.len() as u64 {
        return (u64::MAX, u64::MAX / BOXES_PER_SPAN);
    }
    // By span: the boxes in all earlier ones.
    let mut before: Vec<u64> = vec![0; count + 1];
    let mut alive = 0;
    for at in 0..count {
        alive += begun[at];
        before[at + 1] = before[at] + alive;
        alive -= over[at];
    }
    let met = |&(first, last): &(usize, usize)| before[last / width + 1] - before[first / width];
    (on_line.iter().map(met).fold(0, u64::saturating_add), spans)
}

/// The begins and ends of boxes as numbers of 32 bits, stream by stream.
fn times(boxes: &[&TimedBox]) -> Vec<Box<[u32]>> {
    let streams = boxes.first().map_or(0, |one| one.begin.len());
    let mut times = vec![vec![0; 2 * streams].into_boxed_slice(); boxes.len()];
    for stream in 0..streams {
        let steps = |one: &TimedBox| [one.begin[stream], one.end[stream]];
        let mut all: Vec<Step> = boxes.iter().flat_map(|one| steps(one)).collect();
        all.sort_unstable();
        all.dedup();
        for (one, times) in boxes.iter().zip(&mut times) {
            for (step, time) in steps(one).iter().zip(&mut times[2 * stream..]) {
                // There are fewer boxes than 2^31.
                *time =
                    u32::try_from(all.partition_point(|other| other < step)).unwrap_or(u32::MAX);
            }
        }
    }
    times
}
