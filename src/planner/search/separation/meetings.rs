//! Meetings: the differences of offsets at which two bodies overlap.

use crate::planner::search::state::instance::Part;

/// The most meetings, each counted for both bodies: they take 64 MB. Problems with more are not
/// separated.
const MOST_MEETINGS: usize = 2_000_000;

/// The initial weight of a meeting.
pub const LIGHT: i64 = 256;

/// A range of differences of offsets, both ends excluded, at which two bodies overlap.
#[derive(Clone, Copy, Debug)]
pub struct Meeting {
    pub other: u32,
    /// The same meeting, seen from the other body.
    pub twin: u32,
    /// The offset of this body minus that of the other.
    pub low: i64,
    pub high: i64,
    pub weight: i64,
}

impl Meeting {
    /// The distance to the nearest difference without an overlap; 0 if there is none.
    pub fn depth(&self, difference: i64) -> i64 {
        (difference - self.low).min(self.high - difference).max(0)
    }
}

/// The meetings of all bodies, and for each body the end of its meetings in the list; `None` if
/// there are too many.
pub fn meetings(bodies: &[Vec<Part>], align: i64) -> Option<(Vec<Meeting>, Vec<usize>)> {
    let mut order: Vec<usize> = (0..bodies.len()).collect();
    order.sort_by_key(|&body| bodies[body].first().map(|part| part.first));
    let mut of: Vec<Vec<Meeting>> = vec![Vec::new(); bodies.len()];
    let mut live: Vec<usize> = Vec::new();
    let mut clashes = Vec::new();
    let mut count = 0;
    for body in order {
        let Some(first) = bodies[body].first().map(|part| part.first) else { continue };
        live.retain(|&other| bodies[other].last().is_some_and(|part| part.end > first));
        for &other in &live {
            clash(&bodies[body], &bodies[other], align, &mut clashes);
            for &(low, high) in &clashes {
                let twin = |body: usize| u32::try_from(of[body].len()).unwrap_or(u32::MAX);
                let (here, there) = (twin(body), twin(other));
                let mut meet = |body: usize, other: usize, twin, low, high| {
                    let other = u32::try_from(other).unwrap_or(u32::MAX);
                    of[body].push(Meeting { other, twin, low, high, weight: LIGHT });
                };
                meet(body, other, there, low, high);
                meet(other, body, here, -high, -low);
                count += 2;
            }
            if count > MOST_MEETINGS {
                return None;
            }
        }
        live.push(body);
    }
    let mut ends = Vec::with_capacity(bodies.len());
    let mut end = 0;
    for meetings in &of {
        end += meetings.len();
        ends.push(end);
    }
    // So far, a twin counts from the first meeting of its body.
    for meeting in of.iter_mut().flatten() {
        let begin = (meeting.other as usize).checked_sub(1).map_or(0, |before| ends[before]);
        meeting.twin += u32::try_from(begin).unwrap_or(u32::MAX);
    }
    Some((of.concat(), ends))
}

/// The ranges of differences of aligned offsets at which two bodies overlap, ascending and apart.
fn clash(a: &[Part], b: &[Part], align: i64, clashes: &mut Vec<(i64, i64)>) {
    clashes.clear();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(&part), Some(&other)) = (a.peek(), b.peek()) {
        if part.first < other.end && other.first < part.end {
            let low = signed(other.low) - signed(part.high);
            let high = signed(other.high) - signed(part.low);
            clashes.push((low.div_euclid(align) * align, -(-high).div_euclid(align) * align));
        }
        if part.end <= other.end {
            a.next();
        } else {
            b.next();
        }
    }
    clashes.sort_unstable();
    clashes.dedup_by(|next, last| {
        let is_joined = next.0 < last.1;
        if is_joined {
            last.1 = last.1.max(next.1);
        }
        is_joined
    });
}

/// Converts a height, which is far below 2^63.
pub fn signed(height: u64) -> i64 {
    i64::try_from(height).unwrap_or(i64::MAX)
}
