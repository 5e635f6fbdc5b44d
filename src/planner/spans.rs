//! Spans of time on several streams.
//!
//! The moments of a [line](Line) cut time into spans. If two boxes have no span in common, one is over before the
//! other begins. So only boxes of the same spans need to be compared. Where streams seldom wait for each
//! other, spans are long.

use std::{iter, ops::Range};

use crate::{
    Step,
    problem::demands::{Line, TimedBox},
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
        let line = Line::of(&begins);
        let on_line: Vec<Range<usize>> =
            all.iter().map(|one| line.life(&one.begin, &one.end)).collect();
        let widths = iter::successors(Some(1), |width| Some(2 * width));
        let widths = widths.take_while(|width| *width <= 2 * line.len());
        let work = |width: usize| work(&on_line, line.len() / width + 1, width);
        let (_, width, met) = widths
            .map(|width| (work(width), width))
            .map(|((met, spans), width)| (met.saturating_add(BOXES_PER_SPAN * spans), width, met))
            .min()
            .unwrap_or((0, 1, 0));
        let times = times(&all);
        let mut lives = on_line
            .iter()
            .zip(times)
            .map(|(life, times)| Life { times, spans: in_spans(life, width) });
        Self {
            lives: boxes.iter().map(|own| lives.by_ref().take(own.len()).collect()).collect(),
            count: line.len() / width + 1,
            met: met / all.len().max(1) as u64,
        }
    }
}

/// The spans of a life on the line, if a span has a number of moments.
fn in_spans(life: &Range<usize>, width: usize) -> Range<usize> {
    life.start / width..(life.end - 1) / width + 1
}

/// The boxes in the spans of all boxes, and the spans of all boxes, if a span has a number of moments.
fn work(on_line: &[Range<usize>], count: usize, width: usize) -> (u64, u64) {
    let mut begun: Vec<u64> = vec![0; count + 1];
    let mut over: Vec<u64> = vec![0; count + 1];
    let mut spans: u64 = 0;
    for life in on_line {
        let life = in_spans(life, width);
        begun[life.start] += 1;
        over[life.end] += 1;
        spans += life.len() as u64;
    }
    if spans > SPANS_PER_BOX * on_line.len() as u64 {
        return (u64::MAX, u64::MAX / BOXES_PER_SPAN);
    }
    // By span: the boxes in all earlier ones.
    let mut before: Vec<u64> = vec![0; count + 1];
    let mut alive = 0;
    for at in 0..count {
        alive = alive + begun[at] - over[at];
        before[at + 1] = before[at] + alive;
    }
    let met = |life: &Range<usize>| {
        let life = in_spans(life, width);
        before[life.end] - before[life.start]
    };
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
