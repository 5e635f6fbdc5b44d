//! Joins chunks into bodies: overwrites and parts tie the chunks of a body together, and the
//! demands of all of them say where it may lie.

use crate::{
    Bytes,
    problem::{
        ChunkId, Link, Refusal, Request,
        demands::{
            AllowedPool, Body, Place, Pool, PoolId, TimedBox,
            boxes::{View, concurrent},
            bytes::Family,
            fault::{Fault, Obstacle},
        },
    },
};

/// The offsets that alignments allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Congruence {
    modulus: Bytes,
    rest: Bytes,
}

/// A group of chunks while links are joined. Distances count from one of them.
#[derive(Clone, Debug, Default)]
struct Group {
    members: Vec<(ChunkId, i128)>,
}

/// The bodies of a problem, and its honoured overwrites.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_field_names, reason = "they are the bodies, beside what joins them")]
pub(crate) struct Bodies {
    pub(crate) links: Vec<Option<Link>>,
    /// In the order of their first chunks.
    pub(crate) bodies: Vec<Body>,
    /// By chunk: its body; `None` for chunks without bytes.
    pub(crate) of_chunk: Vec<Option<u32>>,
}

/// The result of joining links.
pub(crate) struct Resolved {
    pub(crate) bodies: Bodies,
    pub(crate) refused: Vec<(usize, Refusal)>,
}

/// Joins parts and overwrites into bodies.
pub(crate) struct Joiner<'a> {
    view: View<'a>,
    family: Family,
    links: Vec<Option<Link>>,
    groups: Vec<Group>,
    /// By chunk: its group and its distance there.
    of: Vec<(u32, i128)>,
    /// By chunk: the lists of chunks that it is kept apart from.
    apart: Vec<Vec<u32>>,
}

impl<'a> Joiner<'a> {
    /// Joins the parts, which always hold; requests may be refused.
    pub(crate) fn new(view: View<'a>) -> Result<Self, Fault> {
        let count = view.chunks.len();
        let mut apart = vec![Vec::new(); count];
        for (group, chunks) in (0..).zip(&view.demands.apart) {
            for chunk in chunks {
                apart[chunk.index()].push(group);
            }
        }
        let mut joiner = Self {
            view,
            family: Family::new(view.chunks, &view.demands.parts),
            links: vec![None; count],
            groups: (0..count)
                .map(|chunk| Group { members: vec![(ChunkId::from_index(chunk), 0)] })
                .collect(),
            of: (0..).take(count).map(|group| (group, 0)).collect(),
            apart,
        };
        for part in &view.demands.parts {
            joiner.join(part.whole, part.part, i128::from(part.offset))?;
        }
        for chunk in 0..count {
            if view.chunks[chunk].size > 0 && joiner.of[chunk].0 as usize == chunk {
                let members = joiner.groups[chunk].members.clone();
                joiner.check_pairs(&members)?;
                joiner.check(&members)?;
            }
        }
        Ok(joiner)
    }

    /// Puts `inner` at a distance from `outer`, with everything that they are joined to.
    fn join(&mut self, outer: ChunkId, inner: ChunkId, distance: i128) -> Result<(), Fault> {
        let ((a, at_a), (b, at_b)) = (self.of[outer.index()], self.of[inner.index()]);
        // The distance from the origin of group a to that of group b.
        let shift = at_a + distance - at_b;
        if a == b {
            return if shift == 0 { Ok(()) } else { Err(Fault::TwoPlaces(inner)) };
        }
        let (keep, drop, shift) =
            if self.groups[a as usize].members.len() >= self.groups[b as usize].members.len() {
                (a, b, shift)
            } else {
                (b, a, -shift)
            };
        let members = std::mem::take(&mut self.groups[drop as usize].members);
        for (chunk, at) in members {
            self.of[chunk.index()] = (keep, at + shift);
            self.groups[keep as usize].members.push((chunk, at + shift));
        }
        Ok(())
    }

    /// Honours the requests that rules a to c allow and that leave every body a place.
    pub(crate) fn honour(mut self, requests: &[Request]) -> Resolved {
        let mut refused = Vec::new();
        for taken in self.allowed(requests, &mut refused) {
            if self.closes_ring(requests[taken]) {
                refused.push((taken, Refusal::NotBefore));
            } else if let Err(fault) = self.overwrite(requests[taken]) {
                refused.push((taken, fault.refusal()));
            }
        }
        refused.sort_by_key(|&(request, _)| request);
        Resolved { bodies: self.finish(), refused }
    }

    /// Rules a to c; returns the requests that remain, in their order.
    fn allowed(&self, requests: &[Request], refused: &mut Vec<(usize, Refusal)>) -> Vec<usize> {
        let count = self.view.chunks.len();
        let mut taken: Vec<Option<usize>> = vec![None; count];
        let mut overwriters: Vec<Option<usize>> = vec![None; count];
        for (index, request) in requests.iter().enumerate() {
            let (new, old) = (request.overwriter, request.overwritten);
            let present = overwriters[old.index()];
            let refusal = self.rule_a(request).or_else(|| {
                if taken[new.index()].is_some() {
                    return Some(Refusal::OverwritesAnother);
                }
                let present = &requests[present?];
                let size = |chunk: ChunkId| self.view.chunks[chunk.index()].size;
                let wins =
                    !present.required && (request.required || size(new) > size(present.overwriter));
                (!wins).then_some(Refusal::OverwrittenByAnother)
            });
            if let Some(refusal) = refusal {
                refused.push((index, refusal));
                continue;
            }
            if let Some(present) = present {
                taken[requests[present].overwriter.index()] = None;
                refused.push((present, Refusal::Displaced));
            }
            taken[new.index()] = Some(index);
            overwriters[old.index()] = Some(index);
        }
        let mut allowed: Vec<usize> = taken.into_iter().flatten().collect();
        allowed.sort_unstable();
        allowed
    }

    /// Rule a: the overwriter's operator is the last reader, and every other reader is over before.
    fn rule_a(&self, request: &Request) -> Option<Refusal> {
        let (new, old) = (request.overwriter, request.overwritten);
        let chunk = |id: ChunkId| &self.view.chunks[id.index()];
        if chunk(new).size == 0 || chunk(old).size == 0 {
            return Some(Refusal::Empty);
        }
        if request.below >= chunk(new).size {
            return Some(Refusal::NothingShared);
        }
        let stream = self.view.demands.chunks[new.index()].stream;
        let (begin, end) = (self.view.begin(new), self.view.end(old));
        let is_last =
            begin.iter().zip(&end).enumerate().all(|(at, (&begin, &end))| {
                if at == stream { end == begin + 1 } else { end <= begin }
            });
        if !is_last {
            return Some(Refusal::NotLastReader);
        }
        let order = |id: ChunkId| (chunk(id).begin, chunk(id).end, id);
        (self.view.demands.streams == 1 && order(new) < order(old)).then_some(Refusal::NotBefore)
    }

    /// Returns whether the overwritten chunk overwrites the overwriter, by itself or through others. On
    /// several streams, chunks that are made in the same step may request that.
    fn closes_ring(&self, request: Request) -> bool {
        let link = |&chunk: &ChunkId| self.links[chunk.index()].map(|link| link.overwritten);
        std::iter::successors(Some(request.overwritten), link)
            .any(|chunk| chunk == request.overwriter)
    }

    /// Honours a request, or changes nothing and returns the fault.
    fn overwrite(&mut self, request: Request) -> Result<(), Fault> {
        let (new, old) = (request.overwriter, request.overwritten);
        let link = Link { overwritten: old, offset: request.offset, below: request.below };
        let ((a, at_a), (b, at_b)) = (self.of[old.index()], self.of[new.index()]);
        let shift = at_a + link.distance() - at_b;
        if a == b && shift != 0 {
            return Err(Fault::TwoPlaces(new));
        }
        self.links[new.index()] = Some(link);
        let result = self.check_join(a, b, shift).and_then(|()| self.check_written(new, old, link));
        match result {
            Ok(()) if a != b => self.join(old, new, link.distance()),
            Ok(()) => Ok(()),
            Err(fault) => {
                self.links[new.index()] = None;
                Err(fault)
            }
        }
    }

    /// Checks two groups as one body, the second at a distance from the first.
    fn check_join(&self, a: u32, b: u32, shift: i128) -> Result<(), Fault> {
        let mut members = self.groups[a as usize].members.clone();
        if a != b {
            let first = members.len();
            members.extend(self.groups[b as usize].members.iter().map(|&(c, at)| (c, at + shift)));
            for &x in &members[..first] {
                for &y in &members[first..] {
                    self.check_pair(x, y)?;
                }
            }
        }
        self.check(&members)
    }

    /// Checks that an overwriter destroys no bytes that the overwritten chunk shares with a part or a whole
    /// and that are still needed: in the same step, as an input of the same operator, or later, when the
    /// overwriter itself may be over.
    fn check_written(&self, new: ChunkId, old: ChunkId, link: Link) -> Result<(), Fault> {
        if !self.family.has_relatives(old) {
            return Ok(());
        }
        let (group, at_old) = self.of[old.index()];
        let at_new = at_old + link.distance();
        let begin = self.view.begin(new);
        let mut end = begin.clone();
        end[self.view.demands.chunks[new.index()].stream] += 1;
        let written = TimedBox { begin, end, bytes: 0..self.size(new) };
        for &(other, at) in &self.groups[group as usize].members {
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
                return Err(Fault::Clash(new, other));
            }
        }
        Ok(())
    }

    fn size(&self, chunk: ChunkId) -> Bytes {
        self.view.chunks[chunk.index()].size
    }

    fn boxes(&self, chunk: ChunkId) -> Vec<TimedBox> {
        self.view.boxes(chunk, self.links[chunk.index()])
    }

    /// Checks all pairs of a body's chunks that share bytes.
    fn check_pairs(&self, members: &[(ChunkId, i128)]) -> Result<(), Fault> {
        let end = |(chunk, at): (ChunkId, i128)| at + i128::from(self.view.padded(chunk));
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|&index| members[index].1);
        let mut open: Vec<usize> = Vec::new();
        for new in order {
            open.retain(|&old| end(members[old]) > members[new].1);
            for &old in &open {
                self.check_pair(members[old.min(new)], members[old.max(new)])?;
            }
            open.push(new);
        }
        Ok(())
    }

    /// Checks that two chunks of one body do not need the same bytes for different contents.
    fn check_pair(
        &self,
        (x, at_x): (ChunkId, i128),
        (y, at_y): (ChunkId, i128),
    ) -> Result<(), Fault> {
        let padded = |chunk| i128::from(self.view.padded(chunk));
        if at_x >= at_y + padded(y) || at_y >= at_x + padded(x) {
            return Ok(());
        }
        let (life_x, life_y) = (&self.view.chunks[x.index()], &self.view.chunks[y.index()]);
        let is_over = life_x.end <= life_y.begin || life_y.end <= life_x.begin;
        let groups = &self.apart[y.index()];
        if self.apart[x.index()].iter().any(|group| groups.contains(group)) {
            return Err(Fault::Clash(x, y));
        }
        // With several streams, these steps are sums of clocks, which do not prove that a chunk is
        // over.
        if is_over && self.view.demands.streams == 1 || self.family.has_part((x, at_x), (y, at_y)) {
            return Ok(());
        }
        let related = self.family.has_relatives(x) && self.family.has_relatives(y);
        for p in self.boxes(x) {
            for q in self.boxes(y) {
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
                    return Err(Fault::Clash(x, y));
                }
            }
        }
        Ok(())
    }

    /// Checks that a body has a pool, a place and an alignment.
    fn check(&self, members: &[(ChunkId, i128)]) -> Result<(), Fault> {
        self.body(members).map(|_| ())
    }

    fn body(&self, members: &[(ChunkId, i128)]) -> Result<Body, Fault> {
        let demands = self.view.demands;
        let of = |chunk: ChunkId| &demands.chunks[chunk.index()];
        let low = members.iter().map(|&(_, at)| at).min().unwrap_or(0);
        let within = |at: i128| Bytes::try_from(at - low).unwrap_or(Bytes::MAX);
        let mut placed: Vec<(ChunkId, Bytes)> =
            members.iter().map(|&(chunk, at)| (chunk, within(at))).collect();
        placed.sort_unstable();
        let first = placed[0].0;
        let mut pools: Vec<PoolId> = (0..).take(demands.pools.len()).map(PoolId).collect();
        let mut fixed: Option<(PoolId, i128)> = None;
        for &(chunk, at) in &placed {
            if let Some(allowed) = &of(chunk).pools {
                pools.retain(|pool| allowed.contains(pool));
            }
            if let Some(pin) = of(chunk).pin {
                pools.retain(|&pool| pool == pin.pool);
                let base = i128::from(pin.offset) - i128::from(at);
                if fixed.is_some_and(|fixed| fixed != (pin.pool, base)) {
                    return Err(Fault::TwoPins(first));
                }
                fixed = Some((pin.pool, base));
            }
        }
        let Some(&preferred) = pools.first() else { return Err(Fault::NoCommonPool(first)) };
        self.congruence(&placed, preferred)?;
        let extent = placed.iter().map(|&(chunk, at)| at + self.view.padded(chunk)).max();
        let extent = extent.unwrap_or(0);
        let fixed = match fixed {
            None => None,
            Some((pool, base)) => {
                let pinned = placed.iter().map(|&(chunk, _)| chunk).find(|&c| of(c).pin.is_some());
                let pins = |obstacle| Fault::Pins(pinned.unwrap_or(first), obstacle);
                let offset = Bytes::try_from(base).map_err(|_| pins(Obstacle::BelowThePool))?;
                let place = Place::new(pool, offset);
                match self.obstacle(&placed, extent, place) {
                    Some(obstacle) => return Err(pins(obstacle)),
                    None => Some(place),
                }
            }
        };
        let pools: Vec<AllowedPool> = pools
            .into_iter()
            .filter_map(|pool| {
                let Pool { largest, capacity, .. } = demands.pools[pool.index()];
                let limit = largest.into_iter().chain(capacity).min();
                let Congruence { modulus, rest } = self.congruence(&placed, pool).ok()?;
                // In a pool of buffers, the lowest offset in a buffer that the alignments allow.
                let lowest = largest
                    .map_or(0, |largest| rest % modulus.min(largest & largest.wrapping_neg()));
                let end = lowest.checked_add(extent);
                limit
                    .is_none_or(|limit| end.is_some_and(|end| end <= limit))
                    .then_some(AllowedPool { pool, modulus, rest })
            })
            .collect();
        if pools.is_empty() {
            return Err(Fault::TooLarge(first, extent));
        }
        Ok(Body { members: placed, pools, fixed, extent })
    }

    /// The alignment of a pool's roots.
    fn alignment(&self, pool: &Pool) -> Bytes {
        pool.alignment.max(self.view.alignment)
    }

    fn is_root(&self, chunk: ChunkId) -> bool {
        self.links[chunk.index()].is_none() && self.family.wholes(chunk).is_empty()
    }

    /// The offsets of a body that its members' alignments allow in a pool.
    fn congruence(&self, members: &[(ChunkId, Bytes)], pool: PoolId) -> Result<Congruence, Fault> {
        let of_roots = self.alignment(&self.view.demands.pools[pool.index()]);
        let mut sum = Congruence { modulus: 1, rest: 0 };
        for &(chunk, at) in members {
            let own = self.view.demands.chunks[chunk.index()].alignment;
            let modulus = if self.is_root(chunk) { own.max(of_roots) } else { own };
            let rest = at.wrapping_neg() & (modulus - 1);
            let common = modulus.min(sum.modulus);
            if rest % common != sum.rest % common {
                return Err(Fault::Misaligned(chunk));
            }
            if modulus > sum.modulus {
                sum = Congruence { modulus, rest };
            }
        }
        Ok(sum)
    }

    /// Returns what keeps a body from a place: its alignment, reserved bytes or the end of the pool.
    fn obstacle(
        &self,
        members: &[(ChunkId, Bytes)],
        extent: Bytes,
        place: Place,
    ) -> Option<Obstacle> {
        let Place { offset, .. } = place;
        let pool = &self.view.demands.pools[place.pool.index()];
        let modulus = self.alignment(pool);
        let Ok(aligned) = self.congruence(members, place.pool) else {
            return Some(Obstacle::Alignment { offset, modulus });
        };
        let Some(end) = offset.checked_add(extent) else { return Some(Obstacle::Capacity(None)) };
        let reserved = members.iter().find_map(|&(chunk, at)| {
            let (low, high) = (offset + at, offset + at + self.view.padded(chunk));
            pool.reserved.iter().find(|range| low < range.end && range.start < high)
        });
        if let Some(range) = reserved {
            return Some(Obstacle::Reserved { low: range.start, high: range.end });
        }
        match (pool.largest, pool.capacity) {
            (Some(largest), _) if offset / largest != (end - 1) / largest => {
                return Some(Obstacle::Buffers(largest));
            }
            (None, Some(capacity)) if end > capacity => {
                return Some(Obstacle::Capacity(Some(capacity)));
            }
            _ => {}
        }
        let modulus = aligned.modulus;
        (offset % modulus != aligned.rest).then_some(Obstacle::Alignment { offset, modulus })
    }

    fn finish(self) -> Bodies {
        let mut of_chunk = vec![None; self.view.chunks.len()];
        let mut bodies = Vec::new();
        for chunk in 0..self.view.chunks.len() {
            if self.view.chunks[chunk].size == 0 || of_chunk[chunk].is_some() {
                continue;
            }
            // Every group was checked when it was joined.
            let Ok(body) = self.body(&self.groups[self.of[chunk].0 as usize].members) else {
                continue;
            };
            let index = u32::try_from(bodies.len()).ok();
            body.members.iter().for_each(|&(member, _)| of_chunk[member.index()] = index);
            bodies.push(body);
        }
        Bodies { links: self.links, bodies, of_chunk }
    }
}
