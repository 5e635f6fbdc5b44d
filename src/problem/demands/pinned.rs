//! Clashes of bodies that pins fix.

use crate::{
    Bytes,
    problem::{
        ChunkId,
        demands::{
            Bodies, Body, Place, TimedBox,
            boxes::{View, concurrent},
        },
    },
};

impl Bodies {
    /// Returns chunks of two pinned bodies that need the same bytes.
    pub(crate) fn clash_of_pins(&self, view: View<'_>) -> Option<(ChunkId, ChunkId)> {
        let fixed: Vec<(&Body, Place)> =
            self.bodies.iter().filter_map(|body| Some((body, body.fixed?))).collect();
        for (index, &(body, place)) in fixed.iter().enumerate() {
            for &(other, beside) in &fixed[..index] {
                if place.pool == beside.pool
                    && let Some(clash) =
                        self.clash(view, (other, beside.offset), (body, place.offset))
                {
                    return Some(clash);
                }
            }
        }
        None
    }

    /// Returns chunks of two bodies that need the same bytes if the bodies lie at these offsets of
    /// one pool.
    fn clash(
        &self,
        view: View<'_>,
        (p, at_p): (&Body, Bytes),
        (q, at_q): (&Body, Bytes),
    ) -> Option<(ChunkId, ChunkId)> {
        let apart = |x: ChunkId, y: ChunkId| {
            view.demands.apart.iter().any(|group| group.contains(&x) && group.contains(&y))
        };
        for &(x, at_x) in &p.members {
            for &(y, at_y) in &q.members {
                let (low_x, low_y) = (at_p + at_x, at_q + at_y);
                if low_x >= low_y + view.padded(y) || low_y >= low_x + view.padded(x) {
                    continue;
                }
                let meets = |a: &TimedBox, b: &TimedBox| {
                    low_x + a.bytes.start < low_y + b.bytes.end
                        && low_y + b.bytes.start < low_x + a.bytes.end
                        && concurrent(a, b)
                };
                let others = view.boxes(y, self.links[y.index()]);
                let boxes = view.boxes(x, self.links[x.index()]);
                if apart(x, y) || boxes.iter().any(|a| others.iter().any(|b| meets(a, b))) {
                    return Some((x, y));
                }
            }
        }
        None
    }
}
