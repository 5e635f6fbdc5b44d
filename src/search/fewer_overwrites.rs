//! The same problem with fewer overwrites, which often fits in a smaller pool.
//!
//! An overwrite saves bytes in the one step in which both chunks would otherwise be alive, but it also ties the two
//! chunks together for good. If a chunk is written over only a part of another, its chain becomes a staircase, and
//! staircases waste space below and beside their steps. In all but the most crowded steps there is room for both
//! chunks. So every optional overwrite of a part is dropped unless that changes the lower bound or the peak step. What
//! remains is mostly rectangles, which pack better and are searched faster. Overwrites of a whole chunk are kept: a
//! chain of them is a rectangle.
//!
//! Dropping overwrites never lowers the bytes alive. It may lower the cells of the alignment, in a chain whose new root
//! was not aligned before. If that would lower the lower bound, no overwrite is dropped.

use crate::{
    Problem, Step,
    bound::PeakSet,
    problem::{ChunkId, Request},
};

/// Returns the chunks of an unconstrained problem with fewer overwrites of a part, and with the same lower bound and
/// peak step; `None` if all overwrites must stay.
pub(super) fn with_fewer_overwrites(problem: &Problem) -> Option<Problem> {
    if !problem.is_unconstrained() || !problem.has_links() {
        return None;
    }
    let peak = problem.peak_set();
    within(problem, peak).filter(|looser| looser.peak_set() == peak)
}

/// Drops overwrites of parts such that at most `peak.bytes` are alive in any step, and fewer before the peak step.
/// `None` if none can be dropped.
fn within(problem: &Problem, peak: &PeakSet) -> Option<Problem> {
    let accepted: Vec<Request> = problem.accepted_requests().collect();
    let is_given_up = |request: &&Request| {
        let [new, old] = [request.overwriter, request.overwritten].map(|c| problem.chunk(c).size);
        !request.required && new != old
    };
    let mut given_up: Vec<ChunkId> =
        accepted.iter().filter(is_given_up).map(|request| request.overwriter).collect();
    given_up.sort_unstable();
    let chunks: Vec<ChunkId> = problem.ids().collect();
    // A chunk counts from its own first step if it overwrites nothing. Its cells of the alignment may count as more in
    // later steps, too, so its whole life is looked at once the first steps are right.
    let mut first_steps = true;
    while !given_up.is_empty() {
        let kept = accepted.iter().filter(|r| given_up.binary_search(&r.overwriter).is_err());
        let looser = problem.subset(&chunks, kept.copied(), std::iter::empty()).ok()?;
        let crowded = crowded_spans(&looser, peak);
        if crowded.is_empty() {
            return Some(looser);
        }
        let before = given_up.len();
        given_up.retain(|&chunk| {
            let life = looser.bounding_box(chunk);
            let end = if first_steps { life.begin + 1 } else { life.end };
            let at = crowded.partition_point(|&(_, crowded_end)| crowded_end <= life.begin);
            crowded.get(at).is_none_or(|&(crowded_begin, _)| crowded_begin >= end)
        });
        if given_up.len() == before {
            if !first_steps {
                return None;
            }
            first_steps = false;
        }
    }
    None
}

/// The spans of steps, in order, in which more bytes are alive than at the peak, or as many before it.
fn crowded_spans(problem: &Problem, peak: &PeakSet) -> Vec<(Step, Step)> {
    let mut spans: Vec<(Step, Step)> = Vec::new();
    let mut since = None;
    problem.sweep_live_bytes(|step, bytes| {
        if bytes > peak.bytes || bytes == peak.bytes && step < peak.step {
            since.get_or_insert(step);
        } else if let Some(begin) = since.take() {
            spans.push((begin, step));
        }
    });
    spans.extend(since.map(|begin| (begin, Step::MAX)));
    spans
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{Bytes, search::samples::random_problem, seeds::times};

    /// In step 2, `b` is written over a part of `a`; in step 4, `d` over the whole of `c`. At most `most` bytes may be
    /// alive: without the first overwrite, 16 are in step 2.
    #[rstest]
    #[case::there_is_room(16, false, Some(1))]
    #[case::too_many_bytes_would_be_alive(15, false, None)]
    #[case::it_is_required(16, true, None)]
    fn an_overwrite_of_a_part_is_given_up_where_there_is_room(
        #[case] most: Bytes,
        #[case] required: bool,
        #[case] links: Option<usize>,
    ) {
        let mut problem = Problem::builder();
        let (a, b) = (problem.chunk(0..3, 12), problem.chunk(2..4, 4));
        let (c, d) = (problem.chunk(3..5, 9), problem.chunk(4..6, 9));
        problem.request(Request::new(b, a, 8).required(required));
        problem.overwrite(d, c, 0);
        let problem = problem.build().unwrap();
        let looser = within(&problem, &PeakSet { bytes: most, ..PeakSet::default() });
        assert_eq!(looser.as_ref().map(Problem::links_taken), links);
        if let Some(looser) = looser {
            assert_eq!((looser.link(b), looser.link(d)), (None, problem.link(d)));
        }
    }

    /// Chunks keep their ids, lives and sizes, the bound stays, and no links change but those of parts; with any number
    /// of bytes alive, none of these is left.
    #[test]
    fn only_links_change() {
        let mut loosened = 0;
        times(500, |bytes| {
            let problem = random_problem(bytes)?;
            let is_of_part = |chunk: ChunkId| {
                let link = problem.link(chunk);
                link.is_some_and(|l| problem.chunk(l.overwritten).size != problem.chunk(chunk).size)
            };
            let most = PeakSet { bytes: Bytes::MAX, ..PeakSet::default() };
            let all = problem.has_links().then(|| within(&problem, &most)).flatten();
            assert_eq!(all.is_some(), problem.ids().any(is_of_part));
            for (looser, is_all) in [(with_fewer_overwrites(&problem), false), (all, true)] {
                let Some(looser) = looser else { continue };
                loosened += 1;
                assert_eq!(looser.chunks(), problem.chunks());
                assert_eq!(looser.alignment(), problem.alignment());
                assert_eq!(looser.padding(), problem.padding());
                assert!(is_all || looser.peak_set() == problem.peak_set());
                assert!(looser.links_taken() < problem.links_taken());
                for chunk in problem.ids() {
                    let (before, after) = (problem.link(chunk), looser.link(chunk));
                    let may_go = is_of_part(chunk) && after.is_none();
                    assert!(before == after || may_go, "{chunk:?}: {before:?}, {after:?}");
                    assert!(!is_all || after.is_none() || !is_of_part(chunk));
                }
            }
            Ok(())
        });
        assert!(loosened > 100, "{loosened}");
    }
}
