//! Joins chunks into bodies: overwrites and parts tie the chunks of a body together, and the
//! constraints of all of them say where it may lie.

mod earliest_begins;
mod index;
mod make;
mod pins;
mod placement_constraints;
mod rules;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub(crate) use index::Index;
pub(crate) use make::single_bodies;
use make::{body, reserved};
use pins::Pinned;
use placement_constraints::PlacementConstraints;
use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes, Step,
    bodies::{
        Body, ChainProjection, TimedBox, TimedBoxes,
        boxes::{Apart, View, concurrent},
        bytes::Family,
        join_error::JoinError,
    },
    problem::{Chunk, ChunkId, Link, Links, RejectReason, Rejected, Request, constraints::Clocks},
};

/// Groups of more chunks than this have an [`Index`].
pub(crate) const MAX_LOOKED_AT: usize = if cfg!(test) { 1 } else { 16 };

/// The most lines by which lives are compared.
const MAX_LINES: usize = 8;

/// All steps in which a chunk may be alive.
pub(super) const ALL_STEPS: Range<i128> = Step::MIN as i128..Step::MAX as i128;

/// The steps in which a chunk is alive. With a line, on several streams, its [projection](ChainProjection) onto the
/// line.
pub(super) fn life(view: &View<'_>, line: Option<&ChainProjection>, chunk: ChunkId) -> Range<i128> {
    let Chunk { begin, end, .. } = view.chunks[chunk.index()];
    match (line, view.constraints.lives.get(chunk.index())) {
        (Some(line), Some(life)) => line.steps(&life.begin, &life.end),
        _ => begin.into()..end.into(),
    }
}

/// Chunks at distances from one of them, mostly one.
type Members = SmallVec<[(ChunkId, i128); 1]>;

/// A group of chunks while links are joined. Distances count from one of them.
#[derive(Clone, Debug, Default)]
struct Group {
    members: Members,
    /// The sum of its chunks' placement constraints, once a request has involved the group.
    needs: Option<Box<PlacementConstraints>>,
    /// If it has many chunks, and a request has involved it: an index of them.
    index: Option<Box<Index>>,
    /// With several streams: the line onto which the index projects their lifetimes.
    line: usize,
}

/// The result of joining links.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Resolved {
    /// In the order of their first chunks.
    pub(crate) bodies: Vec<Body>,
    pub(crate) links: Links,
    pub(crate) refused: Vec<Rejected>,
}

/// Joins parts and overwrites into bodies.
pub(crate) struct BodyBuilder<'a> {
    view: View<'a>,
    family: Family,
    links: Vec<Option<Link>>,
    groups: Vec<Group>,
    /// By chunk: its group and its distance there.
    of: Vec<(u32, i128)>,
    /// By chunk: a chunk that it overwrites, by itself or through others, or itself.
    overwritten: Vec<usize>,
    apart: Apart,
    /// The bodies before any request is accepted, in the order of their first chunks.
    bodies: Vec<Body>,
    /// By body: true if it has a place only if a request that concerns it is accepted, as an overwriter need not have
    /// the alignment of a root.
    is_open: Vec<bool>,
    /// With several streams, once a group has an index: the chains of moments onto which lifetimes are projected. On a
    /// chain of its own stream, the lifetime of a chunk is short.
    lines: Vec<ChainProjection>,
    pinned: Pinned,
}

impl<'a> BodyBuilder<'a> {
    /// Joins the parts, which are required. [`accept`](Self::accept) then tries the requests.
    pub(crate) fn new(view: View<'a>, requests: &[Request]) -> Result<Self, JoinError> {
        let count = view.chunks.len();
        let mut may_overwrite = vec![false; count];
        for request in requests {
            may_overwrite[request.overwriter.index()] = true;
        }
        let mut joiner = Self {
            view,
            family: Family::new(view.chunks, &view.constraints.parts),
            links: vec![None; count],
            groups: (0..count)
                .map(|chunk| Group {
                    members: smallvec![(ChunkId::from_index(chunk), 0)],
                    ..Group::default()
                })
                .collect(),
            of: (0..).take(count).map(|group| (group, 0)).collect(),
            overwritten: (0..count).collect(),
            apart: Apart::of(view),
            bodies: Vec::with_capacity(count),
            is_open: Vec::with_capacity(count),
            lines: Vec::new(),
            pinned: Pinned::default(),
        };
        for part in &view.constraints.parts {
            joiner.join(part.whole, part.part, i128::from(part.offset))?;
        }
        let mut is_seen = vec![false; count];
        for chunk in 0..count {
            let group = joiner.of[chunk].0 as usize;
            if view.chunks[chunk].size > 0 && !std::mem::replace(&mut is_seen[group], true) {
                joiner.check_pairs(joiner.of[chunk].0)?;
                let members = &joiner.groups[group].members;
                let found = joiner.body(members);
                joiner.is_open.push(found.is_err());
                let is_root = |chunk| joiner.is_root(chunk) && !may_overwrite[chunk.index()];
                let found = found.or_else(|_| body(&view, members, is_root))?;
                joiner.bodies.push(found);
            }
        }
        joiner.pin_bodies();
        Ok(joiner)
    }

    /// Puts `inner` at a distance from `outer`, with everything that they are joined to.
    fn join(&mut self, outer: ChunkId, inner: ChunkId, distance: i128) -> Result<(), JoinError> {
        let ((a, at_a), (b, at_b)) = (self.of[outer.index()], self.of[inner.index()]);
        // The distance from the origin of group a to that of group b.
        let shift = at_a + distance - at_b;
        if a == b {
            return if shift == 0 { Ok(()) } else { Err(JoinError::TwoPlaces(inner)) };
        }
        let (keep, drop, shift) = self.larger_first(a, b, shift);
        let members = std::mem::take(&mut self.groups[drop as usize]).members;
        for (chunk, at) in members {
            self.of[chunk.index()] = (keep, at + shift);
            self.groups[keep as usize].members.push((chunk, at + shift));
            self.index(keep, (chunk, at + shift));
        }
        Ok(())
    }

    /// The larger one of two groups, the other one, and the distance between their origins.
    fn larger_first(&self, a: u32, b: u32, shift: i128) -> (u32, u32, i128) {
        let len = |group: u32| self.groups[group as usize].members.len();
        if len(a) >= len(b) { (a, b, shift) } else { (b, a, -shift) }
    }

    /// Adds a chunk to the index of its group, if it has one.
    fn index(&mut self, group: u32, (chunk, at): (ChunkId, i128)) {
        let Group { index, line, .. } = &mut self.groups[group as usize];
        if let Some(index) = index {
            let steps = life(&self.view, self.lines.get(*line), chunk);
            index.add(chunk.index(), self.view.bytes_at(chunk, at), steps);
        }
    }

    /// Prepares a group for requests.
    fn prepare(&mut self, group: u32) -> Result<(), JoinError> {
        let Group { members, needs, index, .. } = &self.groups[group as usize];
        let lacks_index = index.is_none() && members.len() > MAX_LOOKED_AT;
        if needs.is_none() {
            let is_root = |chunk| self.is_root(chunk);
            let needs = PlacementConstraints::of(&self.view, members.iter().copied(), is_root)?;
            self.groups[group as usize].needs = Some(Box::new(needs));
        }
        if lacks_index {
            self.choose_line(group);
            let members = self.groups[group as usize].members.clone();
            self.groups[group as usize].index = Some(Box::default());
            for member in members {
                self.index(group, member);
            }
        }
        Ok(())
    }

    /// With several streams, chooses the line on which the lives of a group's chunks are shortest.
    fn choose_line(&mut self, group: u32) {
        let streams = self.view.constraints.streams;
        if streams > 1 && self.lines.is_empty() {
            let lives = &self.view.constraints.lives;
            let begins: Clocks = lives.iter().map(|life| &*life.begin).collect();
            self.lines = ChainProjection::longest(&begins, streams.min(MAX_LINES));
        }
        let members = &self.groups[group as usize].members;
        let length = |line: &ChainProjection| {
            let life = |&(chunk, _): &(ChunkId, i128)| life(&self.view, Some(line), chunk);
            members.iter().map(life).map(|life| life.end - life.start).sum::<i128>()
        };
        let line = (0..self.lines.len()).min_by_key(|&line| length(&self.lines[line]));
        self.groups[group as usize].line = line.unwrap_or(0);
    }

    /// Accepts the requests that rules a to c allow and that leave every body a place.
    ///
    /// # Errors
    ///
    /// If a body has no place because a request was rejected.
    pub(crate) fn accept(mut self, requests: &[Request]) -> Result<Resolved, JoinError> {
        let mut refused = Vec::new();
        let (allowed, first) = self.allowed(requests, &mut refused);
        for &taken in &allowed {
            self.set_pending(requests[taken], true);
        }
        let mut again = Vec::new();
        for (at, taken) in allowed.into_iter().enumerate() {
            match self.attempt(requests[taken]) {
                Err(_) if at < first => again.push(taken),
                result => {
                    self.set_pending(requests[taken], false);
                    refused.extend(result.err().map(|reason| (taken, reason)));
                }
            }
        }
        // Some of the requests that go first are possible only together with others.
        for taken in again {
            let result = self.attempt(requests[taken]);
            refused.extend(result.err().map(|reason| (taken, reason)));
        }
        refused.sort_by_key(|&(request, _)| request);
        self.finish(refused)
    }

    /// Accepts a request, or changes nothing and returns the reason.
    fn attempt(&mut self, request: Request) -> Result<(), RejectReason> {
        if self.closes_ring(request) {
            return Err(RejectReason::NotBefore);
        }
        self.overwrite(request).map_err(JoinError::reject_reason)
    }

    /// Accepts a request, or changes nothing and returns the error.
    fn overwrite(&mut self, request: Request) -> Result<(), JoinError> {
        let (new, old) = (request.overwriter, request.overwritten);
        let link = request.link();
        let ((a, at_a), (b, at_b)) = (self.of[old.index()], self.of[new.index()]);
        let shift = at_a + link.distance() - at_b;
        if a == b && shift != 0 {
            return Err(JoinError::TwoPlaces(new));
        }
        self.prepare(a)?;
        self.prepare(b)?;
        let was_root = self.is_root(new);
        self.links[new.index()] = Some(link);
        let result = self
            .check_join((a, b, shift), was_root.then_some(new))
            .and_then(|needs| self.check_written(new, old, link).map(|()| needs))
            .and_then(|needs| self.pin_joined((a, b, shift), &needs).map(|()| needs));
        match result {
            Ok(needs) => {
                let stays = a == self.larger_first(a, b, shift).0;
                let needs = if stays { needs } else { needs.counted_from(shift) };
                self.overwritten[new.index()] = old.index();
                self.join(old, new, link.distance())?;
                self.groups[self.of[new.index()].0 as usize].needs = Some(Box::new(needs));
                Ok(())
            }
            Err(error) => {
                self.links[new.index()] = None;
                Err(error)
            }
        }
    }

    /// Checks whether two groups can be one body, the second at distance `shift` from the first. `no_root` is the chunk
    /// of the second that is no longer a root, if any. Returns the placement constraints of both together.
    fn check_join(
        &self,
        (a, b, shift): (u32, u32, i128),
        no_root: Option<ChunkId>,
    ) -> Result<PlacementConstraints, JoinError> {
        if a != b {
            let (large, small, shift) = self.larger_first(a, b, shift);
            for &(chunk, at) in &self.groups[small as usize].members {
                let x = (chunk, at + shift);
                let bytes = self.view.bytes_at(chunk, x.1);
                for y in self.sharing(large, bytes, self.steps(large, chunk)) {
                    self.check_pair(x, y)?;
                }
            }
        }
        let [first, second] = [a, b].map(|group| &self.groups[group as usize]);
        // Both groups are prepared.
        let (Some(needs), Some(other)) = (&first.needs, &second.needs) else {
            return Err(JoinError::NoCommonPool(first.members[0].0));
        };
        let (mut needs, mut other) =
            (PlacementConstraints::clone(needs), PlacementConstraints::clone(other));
        if let Some(chunk) = no_root {
            other.no_longer_root(&self.view, (chunk, self.of[chunk.index()].1));
        }
        let settled = if a == b {
            needs = other;
            needs.settle(&self.view, |_, _| None)
        } else {
            // Chunks that are pinned already lie at no reserved bytes.
            let unpinned = |needs: &PlacementConstraints| needs.pinned().is_none();
            let [of_first, of_second] = [(&needs, first), (&other, second)]
                .map(|(needs, group)| if unpinned(needs) { &group.members[..] } else { &[] });
            needs.add_all(&other, shift)?;
            needs.settle(&self.view, |pool, origin| {
                let hit = reserved(&self.view, of_first, pool, origin);
                hit.or_else(|| reserved(&self.view, of_second, pool, origin + shift))
            })
        };
        settled.map(|_| needs)
    }

    /// The line onto which the index of a group projects the lifetimes of its chunks.
    fn line(&self, group: u32) -> Option<&ChainProjection> {
        self.lines.get(self.groups[group as usize].line)
    }

    /// The steps in which a chunk is compared with the chunks of a group: all if it is kept apart from others.
    fn steps(&self, group: u32, chunk: ChunkId) -> Range<i128> {
        if self.apart.is_free(chunk) {
            life(&self.view, self.line(group), chunk)
        } else {
            ALL_STEPS
        }
    }

    /// Checks that an overwriter destroys no bytes that the overwritten chunk shares with a part or a whole
    /// and that are still needed: in the same step, as an input of the same operator, or later, when the
    /// overwriter itself may be over.
    fn check_written(&self, new: ChunkId, old: ChunkId, link: Link) -> Result<(), JoinError> {
        if !self.family.has_relatives(old) {
            return Ok(());
        }
        let (group, at_old) = self.of[old.index()];
        let at_new = at_old + link.distance();
        let (begin, end) = (self.view.begin(new), self.view.written(new));
        let written = TimedBox { begin, end, bytes: 0..self.size(new) };
        let bytes = at_new..at_new + i128::from(self.size(new));
        // With several streams, a lifetime may end before the step in which it begins is over.
        let of_line = |line: &ChainProjection| line.steps(&written.begin, &written.end);
        let steps = self.line(group).map_or_else(|| self.steps(group, new), of_line);
        for (other, at) in self.sharing(group, bytes, steps) {
            if other == new || other == old || !self.family.related(other, old) {
                continue;
            }
            let is_hit = self.boxes(other).iter().any(|needed| {
                let (low, high) = (needed.bytes.start, needed.bytes.end.min(self.size(other)));
                at + i128::from(low) < at_new + i128::from(written.bytes.end)
                    && at_new < at + i128::from(high)
                    && concurrent(needed, &written)
            });
            if is_hit {
                return Err(JoinError::Clash(new, other));
            }
        }
        Ok(())
    }

    fn size(&self, chunk: ChunkId) -> Bytes {
        self.view.chunks[chunk.index()].size
    }

    fn boxes(&self, chunk: ChunkId) -> TimedBoxes {
        self.view.boxes(chunk, self.links[chunk.index()])
    }

    /// Checks all pairs of a group's chunks that share bytes.
    fn check_pairs(&mut self, group: u32) -> Result<(), JoinError> {
        let members = self.groups[group as usize].members.clone();
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|&index| members[index].1);
        let pair = |old: usize, new: usize| (members[old.min(new)], members[old.max(new)]);
        if members.len() <= MAX_LOOKED_AT {
            let pairs = (0..order.len()).flat_map(|new| (0..new).map(move |old| (old, new)));
            let mut pairs = pairs.map(|(old, new)| pair(order[old], order[new]));
            return pairs.try_for_each(|(x, y)| self.check_pair(x, y));
        }
        self.choose_line(group);
        let mut earlier = Index::default();
        for (number, &new) in order.iter().enumerate() {
            let (chunk, at) = members[new];
            let bytes = self.view.bytes_at(chunk, at);
            let mut near = earlier.near(&bytes, &self.steps(group, chunk));
            near.sort_unstable();
            for old in near {
                let (x, y) = pair(order[old], new);
                self.check_pair(x, y)?;
            }
            earlier.add(number, bytes, life(&self.view, self.line(group), chunk));
        }
        Ok(())
    }

    /// Checks that two chunks of one body do not need the same bytes for different contents.
    fn check_pair(
        &self,
        (x, at_x): (ChunkId, i128),
        (y, at_y): (ChunkId, i128),
    ) -> Result<(), JoinError> {
        let padded = |chunk| i128::from(self.view.padded(chunk));
        if at_x >= at_y + padded(y) || at_y >= at_x + padded(x) {
            return Ok(());
        }
        let (life_x, life_y) = (&self.view.chunks[x.index()], &self.view.chunks[y.index()]);
        let is_apart = life_x.end <= life_y.begin || life_y.end <= life_x.begin;
        if self.apart.keeps(x, y) {
            return Err(JoinError::Clash(x, y));
        }
        // With several streams, these steps are sums of clocks, which do not prove that a chunk is
        // over.
        if is_apart && self.view.constraints.streams == 1
            || self.family.has_part((x, at_x), (y, at_y))
        {
            return Ok(());
        }
        let related = self.family.has_relatives(x) && self.family.has_relatives(y);
        let boxes = |one: ChunkId, other: ChunkId, by: i128| {
            let link = self.pinned.link_to_come(one, (other, by));
            self.view.boxes(one, link.or(self.links[one.index()]))
        };
        for p in boxes(x, y, at_x - at_y) {
            for q in boxes(y, x, at_y - at_x) {
                let low = (at_x + i128::from(p.bytes.start)).max(at_y + i128::from(q.bytes.start));
                let high = (at_x + i128::from(p.bytes.end)).min(at_y + i128::from(q.bytes.end));
                if low >= high || !concurrent(&p, &q) {
                    continue;
                }
                // Padding has no contents: only bytes of the chunks themselves can be the same.
                let end =
                    high.min(at_x + i128::from(self.size(x))).min(at_y + i128::from(self.size(y)));
                let within = |value: i128| Bytes::try_from(value).unwrap_or(0);
                let same = related
                    && if low < end {
                        let (of_x, of_y) = ((x, within(low - at_x)), (y, within(low - at_y)));
                        self.family.same(of_x, of_y, within(end - low), &|chunk| self.size(chunk))
                    } else {
                        self.family.related(x, y)
                    };
                if !same {
                    return Err(JoinError::Clash(x, y));
                }
            }
        }
        Ok(())
    }

    /// The chunks of a group that may need some of these bytes in some of these steps, and a few others.
    fn sharing(
        &self,
        group: u32,
        bytes: Range<i128>,
        steps: Range<i128>,
    ) -> impl Iterator<Item = (ChunkId, i128)> {
        let Group { members, index, .. } = &self.groups[group as usize];
        let near = index.as_ref().map(|index| {
            let near = index.near(&bytes, &steps).into_iter();
            near.map(|chunk| (ChunkId::from_index(chunk), self.of[chunk].1))
        });
        let all = if index.is_none() { &members[..] } else { &[] };
        near.into_iter().flatten().chain(all.iter().copied())
    }

    fn is_root(&self, chunk: ChunkId) -> bool {
        self.links[chunk.index()].is_none() && self.family.wholes(chunk).is_empty()
    }

    /// Makes chunks a body, if they have a pool, a place and an alignment.
    fn body(&self, members: &[(ChunkId, i128)]) -> Result<Body, JoinError> {
        body(&self.view, members, |chunk| self.is_root(chunk))
    }

    fn finish(mut self, refused: Vec<Rejected>) -> Result<Resolved, JoinError> {
        let mut is_seen = vec![false; self.groups.len()];
        let mut error = None;
        let mut bodies = std::mem::take(&mut self.bodies);
        let mut is_open = self.is_open.iter();
        bodies.retain_mut(|body| {
            let is_open = is_open.next() == Some(&true);
            let group = self.of[body.members[0].0.index()].0 as usize;
            if std::mem::replace(&mut is_seen[group], true) {
                return false;
            }
            let Group { members, needs, .. } = &self.groups[group];
            if needs.is_some() || is_open {
                // Every other group was checked when it was joined.
                match self.body(members) {
                    Ok(joined) => *body = joined,
                    Err(found) => error = error.or(Some(found)),
                }
            }
            true
        });
        let resolved = Resolved { bodies, links: Links::of(self.links), refused };
        error.map_or(Ok(resolved), Err)
    }
}
