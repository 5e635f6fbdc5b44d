//! Lower bounds: the peak set, which is the chunks that are alive together and take the most bytes.
//!
//! With one stream, a sweep over the steps finds it, as for unconstrained problems. Bytes that a part and its whole
//! share count once, and bytes that pins and reserved ranges take are not free for other chunks. With several
//! streams, the peak set is an [antichain](super::antichain).

use std::{cmp::Reverse, ops::Range};

use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes, Step,
    bodies::{
        Body, ChainProjection, TimedBox,
        boxes::{concurrent, happens_before},
        builder::{Index, MAX_LOOKED_AT},
    },
    bound::{LiveWeight, Weight, free_bytes::FreeBytes},
    budget::Budget,
    problem::{ChunkId, Problem, align_up, constraints::Clocks},
};

/// Chunks that are alive together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeakSet {
    /// A lower bound of the pool that they need, in bytes.
    pub(crate) bytes: Bytes,
    /// The step in which they are alive; 0 if there are several streams.
    pub(crate) step: Step,
    /// The chunks; empty if there is one stream.
    pub(crate) chunks: Vec<ChunkId>,
}

/// Bytes that a body needs for some time, counted once if several of its boxes need them.
pub(super) struct WeightedBox {
    pub(super) chunk: ChunkId,
    pub(super) time: TimedBox,
    /// The bytes that no other body can have.
    pub(super) weight: Weight,
}

/// Finds the earlier boxes of a list with which a box must be compared.
enum Earlier {
    /// In a short list, all.
    All,
    /// In a long list, those that the index gives.
    Near(Index, ChainProjection),
}

impl Earlier {
    fn of(boxes: &[(ChunkId, TimedBox)]) -> Self {
        if boxes.len() <= MAX_LOOKED_AT {
            return Self::All;
        }
        let begins: Clocks = boxes.iter().map(|(_, one)| &*one.begin).collect();
        Self::Near(Index::default(), ChainProjection::of(&begins))
    }

    /// The earlier boxes, in order, that may share bytes with the next one while both are alive.
    fn then(&mut self, at: usize, next: &TimedBox) -> Vec<usize> {
        let Self::Near(index, line) = self else { return (0..at).collect() };
        let bytes = next.bytes.start.into()..next.bytes.end.into();
        let steps = line.steps(&next.begin, &next.end);
        let mut near = index.near(&bytes, &steps);
        near.sort_unstable();
        index.add(at, bytes, steps);
        near
    }
}

impl Problem {
    /// The heaviest peak set of a constrained problem.
    ///
    /// # Errors
    ///
    /// On several streams, a lighter peak set if the budget ends first.
    pub(crate) fn peak_set_of_bodies(&self, budget: &mut Budget<'_>) -> Result<PeakSet, PeakSet> {
        // In steps, the peak is found whatever the number of chunks, and pins and reserved ranges count.
        if let Ok(Some(linear)) = self.linear_within(budget) {
            let &PeakSet { bytes, step, .. } = linear.peak_set();
            let chunks = linear.alive_at(step).collect();
            return Ok(PeakSet { bytes, step: 0, chunks });
        }
        let peak_set =
            if self.streams() > 1 { self.peak_set_on_streams(budget) } else { Ok(self.peak()) };
        peak_set.map(|peak_set| self.in_pools(peak_set)).map_err(|peak_set| self.in_pools(peak_set))
    }

    /// The least size of the only pool that holds bodies alive together, if their extents have the sum `plain` and
    /// their cells the sum `aligned_bytes`.
    pub(crate) fn bytes_beside(&self, plain: Bytes, aligned_bytes: Bytes) -> Bytes {
        let bytes = self.alive(Weight::new(plain, aligned_bytes), self.cut_off());
        self.in_pools(PeakSet { bytes, ..PeakSet::default() }).bytes
    }

    /// A peak set with the bytes that the pools need for it.
    fn in_pools(&self, peak_set: PeakSet) -> PeakSet {
        match self.pools() {
            // The highest end of a pin is a bound as well. The size of a pool is a multiple of the alignment,
            // or its capacity.
            [pool] => {
                let bytes = peak_set.bytes.max(self.pinned_end());
                let limit = pool.capacity.unwrap_or(Bytes::MAX);
                let aligned = pool.aligned(self, bytes).unwrap_or(Bytes::MAX);
                PeakSet {
                    bytes: if bytes <= limit { aligned.min(limit) } else { bytes },
                    ..peak_set
                }
            }
            _ => peak_set,
        }
    }

    /// The highest end of a pinned body, counted from the start of its buffer if its pool consists of buffers; 0
    /// without pins. No pool of the plan is smaller.
    pub(crate) fn pinned_end(&self) -> Bytes {
        let ends = self.fixed_bodies().filter_map(|body| {
            let place = body.fixed?;
            let end = place.offset + body.extent;
            let largest = self.pools().get(place.pool.index()).and_then(|pool| pool.largest);
            Some(largest.map_or(end, |largest| (end - 1) % largest + 1))
        });
        ends.max().unwrap_or(0)
    }

    /// The bytes of a body, each counted once at any moment.
    pub(super) fn weighted(&self, body: &Body) -> SmallVec<[WeightedBox; 1]> {
        let with_weight = |(chunk, time): (ChunkId, TimedBox)| {
            let weight = self.weight(body, &time.bytes);
            WeightedBox { chunk, time, weight }
        };
        let mut boxes: SmallVec<[(ChunkId, TimedBox); 1]> = self.boxes_by_chunk(body).collect();
        // A whole comes before the parts in it, so that few boxes are cut.
        boxes.sort_by_key(|(_, one)| (one.bytes.start, Reverse(one.bytes.end)));
        // The boxes of one chunk share nothing.
        if body.members.len() == 1 {
            return boxes.into_iter().map(with_weight).collect();
        }
        let mut earlier = Earlier::of(&boxes);
        let mut weighted = SmallVec::new();
        for (at, (chunk, new)) in boxes.iter().enumerate() {
            let mut pieces = vec![new.clone()];
            for (other, old) in earlier.then(at, new).into_iter().map(|near| &boxes[near]) {
                if other != chunk && concurrent(old, new) {
                    pieces = pieces.into_iter().flat_map(|piece| without(piece, old)).collect();
                }
            }
            weighted.extend(pieces.into_iter().map(|time| with_weight((*chunk, time))));
        }
        weighted
    }

    /// The weight of some bytes of a body.
    fn weight(&self, body: &Body, bytes: &Range<Bytes>) -> Weight {
        Weight::new(bytes.end - bytes.start, self.aligned_bytes(body, bytes))
    }

    /// The bytes of the cells of the alignment that some bytes of a body alone touch, wherever it lies.
    pub(crate) fn aligned_bytes(&self, body: &Body, bytes: &Range<Bytes>) -> Bytes {
        let alignment = self.alignment();
        let residue = body.pools.first().map_or(0, |allowed| allowed.residue);
        let cell = |at: Bytes| align_up(at + residue % alignment, alignment);
        // A body has no root if overwrites and parts form a ring; then it may lie anywhere.
        if body.pools.iter().all(|allowed| allowed.modulus >= alignment) {
            cell(bytes.end).saturating_sub(cell(bytes.start))
        } else {
            0
        }
    }

    /// The bytes that a body needs in each step, with one stream.
    pub(crate) fn body_weights(&self, body: &Body) -> SmallVec<[LiveWeight; 1]> {
        // Most bodies are one chunk that needs all of its bytes all the time, so no boxes are made for it.
        if let Some((&[begin], &[end])) = self.one_life(body)
            && self.all_constraints().of(body.members[0].0).is_whole()
        {
            let weight = self.weight(body, &(0..body.extent));
            return smallvec![LiveWeight { begin, end, weight }];
        }
        let weight = |WeightedBox { time, weight, .. }: WeightedBox| LiveWeight {
            begin: time.begin[0],
            end: time.end[0],
            weight,
        };
        self.weighted(body).into_iter().map(weight).collect()
    }

    /// The boxes of a body, cut up so that no byte is in two at any moment.
    pub(crate) fn disjoint_boxes(&self, body: &Body) -> impl Iterator<Item = TimedBox> + use<> {
        self.weighted(body).into_iter().map(|one| one.time)
    }

    /// The first step of the only stream with the most bytes alive, and the bytes that the pools need for that step
    /// or, because of pins and reserved ranges, for any other.
    fn peak(&self) -> PeakSet {
        let cut_off = self.cut_off();
        let mut peak_set = PeakSet::default();
        let weights = self.bodies().iter().flat_map(|body| self.body_weights(body));
        self.sweep_weights(weights, self.bodies().len(), |step, alive| {
            let bytes = self.alive(alive, cut_off);
            if bytes > peak_set.bytes {
                peak_set = PeakSet { bytes, step, chunks: Vec::new() };
            }
        });
        let height = self.height_around_fixed();
        let height = if cut_off == 0 { self.align_up(height) } else { height };
        PeakSet { bytes: peak_set.bytes.max(height), ..peak_set }
    }

    /// The least pool size for this weight: its bytes rounded up to the alignment, or its cells if they are more. If
    /// capacities cut off cells, the bytes are not rounded, and the cells count less by `cut_off`.
    fn alive(&self, alive: Weight, cut_off: Bytes) -> Bytes {
        match cut_off {
            0 => alive.bytes_alive(self.alignment()),
            _ => alive.plain.0.max(alive.aligned_bytes.0.saturating_sub(cut_off)),
        }
    }

    /// The least size of the only pool in which the bytes alive in every step fit around pins and reserved ranges; 0
    /// without any of these.
    fn height_around_fixed(&self) -> Bytes {
        // The bytes of several pools or buffers add up, wherever they lie.
        let [pool] = self.pools() else { return 0 };
        if pool.largest.is_some() {
            return 0;
        }
        // The bytes at fixed addresses, with the steps.
        let fixed = self.fixed_bodies().flat_map(|body| {
            let at = body.fixed.map_or(0, |place| place.offset);
            let boxes = self.disjoint_boxes(body);
            boxes.map(move |TimedBox { begin, end, bytes }| {
                (begin[0]..end[0], at + bytes.start..at + bytes.end)
            })
        });
        let mut begun: Vec<(Range<Step>, Range<Bytes>)> = fixed.collect();
        if begun.is_empty() && pool.reserved.is_empty() {
            return 0;
        }
        let mut ended = begun.clone();
        begun.sort_by_key(|(steps, _)| steps.start);
        ended.sort_by_key(|(steps, _)| steps.end);
        let ranges = begun.iter().map(|(_, bytes)| bytes).chain(&pool.reserved);
        let mut free = FreeBytes::new(ranges.flat_map(|range| [range.start, range.end]));
        for range in &pool.reserved {
            free.take(range);
        }
        let others = self.bodies().iter().filter(|body| body.fixed.is_none());
        let weights = others.flat_map(|body| self.body_weights(body));
        // Empty weights, so that the sweep also stops at each step in which fixed bytes change.
        let fixed = begun.iter().map(|&(Range { start: begin, end }, _)| LiveWeight {
            begin,
            end,
            weight: Weight::default(),
        });
        let (mut begun, mut ended) = (begun.iter().peekable(), ended.iter().peekable());
        let mut most = 0;
        self.sweep_weights(weights.chain(fixed), self.bodies().len(), |step, alive| {
            while let Some((_, bytes)) = ended.next_if(|(steps, _)| steps.end <= step) {
                free.release(bytes);
            }
            while let Some((_, bytes)) = begun.next_if(|(steps, _)| steps.start <= step) {
                free.take(bytes);
            }
            most = free.height(alive.plain.0).max(most);
        });
        most
    }

    /// The bytes that capacities cut off from the last cells of pools: the size of a pool is rounded up to
    /// the alignment, but never above its capacity.
    pub(super) fn cut_off(&self) -> Bytes {
        let whole = self.pools().iter().filter(|pool| pool.largest.is_none());
        let over = |capacity: Bytes| match capacity % self.alignment() {
            0 => 0,
            rest => self.alignment() - rest,
        };
        whole.filter_map(|pool| pool.capacity).map(over).fold(0, Bytes::saturating_add)
    }
}

/// Cuts from a box the bytes of another while both are alive, and returns the remaining boxes. With several
/// streams, the time before the other begins ends, stream by stream, at the earlier of two clocks, and the
/// time after it ends begins at the later.
fn without(piece: TimedBox, other: &TimedBox) -> Vec<TimedBox> {
    let (low, high) =
        (other.bytes.start.max(piece.bytes.start), other.bytes.end.min(piece.bytes.end));
    if low >= high || !concurrent(&piece, other) {
        return vec![piece];
    }
    let mut left = vec![
        TimedBox { bytes: piece.bytes.start..low, ..piece.clone() },
        TimedBox { bytes: high..piece.bytes.end, ..piece.clone() },
    ];
    if happens_before(&other.begin, &other.end) {
        let mut before = TimedBox { bytes: low..high, ..piece };
        let mut after = before.clone();
        before.end.merge(&other.begin, Step::min);
        after.begin.merge(&other.end, Step::max);
        left.extend([before, after]);
    }
    left.retain(|one| !one.bytes.is_empty() && one.is_life());
    left
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{problem::constraints::Clock, seeds::times};

    #[test]
    fn all_earlier_boxes_are_found_that_share_bytes_while_both_are_alive() {
        let (mut found, mut others) = (0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let streams = random.int_in_range(1..=2)?;
            let mut boxes = Vec::new();
            for _ in 0..random.int_in_range(1..=20)? {
                let (mut begin, mut end) = (Vec::new(), Vec::new());
                for _ in 0..streams {
                    begin.push(random.int_in_range(0..=20)?);
                    end.push(begin[begin.len() - 1] + random.int_in_range(1..=5)?);
                }
                let low = random.int_in_range(0..=20)?;
                let bytes = low..low + random.int_in_range(1..=9)?;
                boxes.push((ChunkId(0), TimedBox { begin: begin.into(), end: end.into(), bytes }));
            }
            let mut earlier = Earlier::of(&boxes);
            for (at, (_, new)) in boxes.iter().enumerate() {
                let near = earlier.then(at, new);
                assert!(near.is_sorted(), "{near:?}");
                for (other, (_, old)) in boxes[..at].iter().enumerate() {
                    let shares = old.bytes.start < new.bytes.end && new.bytes.start < old.bytes.end;
                    let meets = shares && concurrent(old, new);
                    assert!(!meets || near.contains(&other), "{boxes:?}, {new:?}");
                    found += u32::from(meets);
                    others += u32::from(!near.contains(&other));
                }
            }
            Ok(())
        };
        times(1000, one);
        assert!(found > 0 && others > 0);
    }

    #[rstest]
    #[case::one_stream(&|at| [at].into())]
    #[case::two_streams(&|at| [at, at / 7].into())]
    fn few_boxes_of_a_long_chain_are_looked_at(#[case] clock: &dyn Fn(Step) -> Clock) {
        let boxed = |at| TimedBox { begin: clock(at), end: clock(at + 1), bytes: 0..64 };
        let boxes: Vec<_> = (0..1000).map(|at| (ChunkId(0), boxed(at))).collect();
        let mut earlier = Earlier::of(&boxes);
        for (at, (_, one)) in boxes.iter().enumerate() {
            let near = earlier.then(at, one);
            assert!(near.len() <= 4, "{at}: {near:?}");
        }
    }
}
