//! Rules a to c for requests to overwrite, applied before bodies are joined.

use crate::bodies::builder::{BodyBuilder, earliest_begins::EarliestBegins};
use crate::{
    bodies::happens_before,
    problem::{
        ChunkId, RejectReason, Rejected, Request,
        links::{OPTIONAL, choose},
    },
    sets::find,
};

impl BodyBuilder<'_> {
    /// Applies rules a to c. Returns the remaining requests, and how many of them go first: the required ones, then
    /// those without which a body has no place. Requests of one kind keep their order.
    pub(super) fn allowed(
        &self,
        requests: &[Request],
        refused: &mut Vec<Rejected>,
    ) -> (Vec<usize>, usize) {
        let earliest = EarliestBegins::of(&self.view, requests);
        // Required requests go first, then those without which the pins of two chunks clash or the overwriter has no
        // place, then all others.
        let open = self.open_chunks();
        let is_needed = |request: &Request| {
            self.is_pinned_so(request) || open.get(request.overwriter.index()) == Some(&true)
        };
        let rank = |request: &Request| match request.required {
            true => 0,
            false if is_needed(request) => 1,
            false => OPTIONAL,
        };
        let refuse = |request: &Request| {
            let contradicts = || earliest.contradicts(&self.view, request.overwriter);
            self.rule_a(request).or_else(|| contradicts().then_some(RejectReason::ClocksContradict))
        };
        let taken = choose(self.view.chunks, requests, rank, refuse, refused);
        let mut allowed: Vec<usize> = taken.into_iter().flatten().collect();
        allowed.sort_unstable_by_key(|&index| (rank(&requests[index]), index));
        let first = allowed.partition_point(|&index| rank(&requests[index]) < OPTIONAL);
        (allowed, first)
    }

    /// By chunk, true if its body has a place only if a request is accepted; empty if there is no such body.
    fn open_chunks(&self) -> Vec<bool> {
        if !self.is_open.contains(&true) {
            return Vec::new();
        }
        let mut open = vec![false; self.view.chunks.len()];
        for (body, _) in self.bodies.iter().zip(&self.is_open).filter(|&(_, &is_open)| is_open) {
            for (chunk, _) in &body.members {
                open[chunk.index()] = true;
            }
        }
        open
    }

    /// Rule a: the overwriter's operator is the last reader, and every other reader is over before.
    fn rule_a(&self, request: &Request) -> Option<RejectReason> {
        let (new, old) = (request.overwriter, request.overwritten);
        let chunk = |id: ChunkId| &self.view.chunks[id.index()];
        if chunk(new).size == 0 || chunk(old).size == 0 {
            return Some(RejectReason::Empty);
        }
        if request.below >= chunk(new).size {
            return Some(RejectReason::NothingShared);
        }
        if self.family.contains(new, old) {
            return Some(RejectReason::PartOfTheOther);
        }
        let stream = self.view.constraints.of(new).stream;
        let (begin, end) = (self.view.begin(new), self.view.end(old));
        let is_last =
            begin.iter().zip(&end).enumerate().all(|(at, (&begin, &end))| {
                if at == stream { end == begin + 1 } else { end <= begin }
            });
        if !is_last {
            return Some(RejectReason::NotLastReader);
        }
        let order = |id: ChunkId| (chunk(id).begin, chunk(id).end, id);
        let is_before = match self.view.constraints.streams {
            1 => order(old) < order(new),
            _ => happens_before(&self.view.begin(old), &begin),
        };
        (!is_before).then_some(RejectReason::NotBefore)
    }

    /// Returns whether the overwritten chunk overwrites the overwriter, by itself or through others. On
    /// several streams, chunks that are made in the same step may request that.
    pub(super) fn closes_ring(&mut self, request: Request) -> bool {
        find(&mut self.overwritten, request.overwritten.index()) == request.overwriter.index()
    }
}
