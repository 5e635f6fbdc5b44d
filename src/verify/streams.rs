//! Operators on several streams: which of them may run at the same time, and the bytes that they then
//! may not share.
//!
//! An operator begins when the one before it on its stream and those that it waits for are over. The
//! *clock* of a moment counts, for each stream, the operators that are certainly over. Two operators are
//! in order if one is over by the clock of the other; otherwise they may run at the same time.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use crate::{
    Bytes, OpSequence, Plan, Step,
    verify::{
        Violation,
        chains::{ClockTreeSpace, each_meeting},
        contents::{Content, Contents},
        places::{Interval, Memory, Places, Workspace},
        ranges,
        sweep::OVERLAP_LIMIT,
    },
};

/// The number of chunks listed as the peak that are compared with each other, at most.
const MAX_AT_PEAK: usize = 1_000;

type Clock = Box<[Step]>;

/// The operators of a sequence, partly in order.
pub(super) struct Order {
    /// By step.
    streams: Vec<usize>,
    /// By step: the clock at which the operator begins.
    before: Vec<Clock>,
    /// By step: the clock at which the operator is over.
    after: Vec<Clock>,
    /// The clock at which all operators are over.
    end: Clock,
}

fn join(clock: &mut [Step], other: &[Step]) {
    for (at, &other) in clock.iter_mut().zip(other) {
        *at = (*at).max(other);
    }
}

fn is_over(end: &[Step], begin: &[Step]) -> bool {
    end.iter().zip(begin).all(|(end, begin)| end <= begin)
}

impl Order {
    /// Creates the order of operators that wait for `waits`, by step, and for those before them on their
    /// stream.
    pub(super) fn of(sequence: &OpSequence, waits: &[Vec<usize>]) -> Self {
        let streams: Vec<usize> = sequence.operators().iter().map(|one| one.stream).collect();
        let width = sequence.streams();
        let mut order = Self {
            before: Vec::with_capacity(streams.len()),
            after: Vec::with_capacity(streams.len()),
            streams,
            end: vec![0; width].into(),
        };
        let mut last: Vec<Clock> = vec![vec![0; width].into(); width];
        for step in 0..order.streams.len() {
            let stream = order.streams[step];
            let mut clock = last[stream].clone();
            for &first in waits.get(step).into_iter().flatten().filter(|&&first| first < step) {
                join(&mut clock, &order.after[first]);
            }
            order.before.push(clock.clone());
            clock[stream] += 1;
            join(&mut order.end, &clock);
            last[stream].clone_from(&clock);
            order.after.push(clock);
        }
        order
    }

    /// Returns whether an operator is over when another one begins.
    fn is_before(&self, first: usize, second: usize) -> bool {
        let stream = self.streams[first];
        self.after[first][stream] <= self.before[second][stream]
    }

    /// Returns whether two operators cannot run at the same time.
    fn in_order(&self, a: usize, b: usize) -> bool {
        a == b || self.is_before(a, b) || self.is_before(b, a)
    }
}

/// Bytes that operators use, and the time in which they are needed.
struct Timed<'a> {
    name: &'a str,
    /// The tensor that was written there; `None` for a workspace.
    tensor: Option<usize>,
    /// The chunk in the pool.
    chunk: Option<usize>,
    /// The tensor that it is written over, while its operator runs.
    overwritten: Option<usize>,
    memory: Memory,
    low: Bytes,
    high: Bytes,
    begin: Clock,
    end: Clock,
}

impl ClockTreeSpace for Timed<'_> {
    fn bytes(&self) -> Range<u128> {
        self.low.into()..self.high.into()
    }

    fn begins(&self) -> impl Iterator<Item = Step> {
        self.begin.iter().copied()
    }

    fn ends(&self) -> impl Iterator<Item = Step> {
        self.end.iter().copied()
    }
}

/// Checks that contents and workspaces that may be needed at the same time share no bytes, and that
/// no tensor is overwritten that another stream may still read.
pub(super) fn check(
    sequence: &OpSequence,
    plan: &Plan,
    contents: &Contents,
    places: &Places,
    workspaces: &[Workspace],
) -> Vec<Violation> {
    let order = Order::of(sequence, &sequence.waits());
    let lives = lives(sequence, contents, &order);
    let name = |tensor: usize| &*sequence.tensors()[tensor].name;
    let mut found = Vec::new();
    let mut timed: Vec<Timed<'_>> = Vec::new();
    // Bytes of overwriters while their operators run.
    let mut written_over: Vec<Timed<'_>> = Vec::new();
    for (at, content) in contents.of.iter().enumerate() {
        let Some((content, (begin, end))) = content.as_ref().zip(lives[at].clone()) else {
            continue;
        };
        let &Content { memory, written, low, high, overwrites, .. } = content;
        let mut begin = begin;
        if let Some(old) = overwrites {
            // It has the bytes to itself once its operator is over.
            begin.clone_from(&order.after[index(written)]);
            let mut own = order.before[index(written)].clone();
            own[order.streams[index(written)]] += 1;
            if lives[old].as_ref().is_some_and(|(_, end)| !is_over(end, &own)) {
                let (overwriter, overwritten) = (name(at).to_owned(), name(old).to_owned());
                found.push(Violation::OverwriteUnordered { overwriter, overwritten });
            }
            let while_it_runs = |overwritten, bytes: Range<Bytes>| Timed {
                name: name(at),
                tensor: Some(at),
                chunk: places.chunks[at],
                overwritten,
                memory,
                low: bytes.start,
                high: bytes.end,
                begin: order.before[index(written)].clone(),
                end: order.after[index(written)].clone(),
            };
            // On several streams, each content lives as a whole.
            let whole = contents.of[old].as_ref().map(|old| old.low..old.high);
            let outside = ranges::outside(low..high, whole.into_iter());
            written_over.extend(outside.into_iter().map(|bytes| while_it_runs(None, bytes)));
            if contents.gathered.is_shared(old) {
                // It must not destroy what shares its bytes with the overwritten content and is still needed.
                let size = sequence.tensors()[at].size.unwrap_or(Bytes::MAX);
                written_over.push(while_it_runs(Some(old), low..low.saturating_add(size)));
            }
        }
        if begin != end {
            let (name, tensor, chunk) = (name(at), Some(at), places.chunks[at]);
            let overwritten = None;
            timed.push(Timed { name, tensor, chunk, overwritten, memory, low, high, begin, end });
        }
    }
    timed.extend(workspaces.iter().map(|workspace| Timed {
        name: &workspace.name,
        tensor: None,
        chunk: Some(workspace.chunk),
        overwritten: None,
        memory: workspace.interval.memory,
        low: workspace.interval.low,
        high: workspace.interval.high,
        begin: order.before[workspace.step].clone(),
        end: order.after[workspace.step].clone(),
    }));
    check_peak(plan, timed.iter().chain(&written_over), &mut found);
    timed.append(&mut written_over);
    timed.sort_by_key(|one| (one.memory, one.low, one.tensor));
    let real = |one: &Timed<'_>| {
        let tensor = one.tensor?;
        let size = sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX);
        let end = contents.of[tensor].as_ref()?.low.saturating_add(size);
        Some((tensor, one.low, one.high.min(end)))
    };
    let gathered = &contents.gathered;
    // A content that shares no bytes with the overwritten one cannot lie there in that step.
    let is_harmless = |new: &Timed<'_>, other: &Timed<'_>| {
        let related = |old| other.tensor.is_some_and(|other| gathered.related(old, other));
        let is_same = new.tensor == other.tensor || new.overwritten == other.tensor;
        new.overwritten.is_some_and(|old| is_same || !related(old))
    };
    let may_share = |x: &Timed<'_>, y: &Timed<'_>| {
        let is_written = x.overwritten.is_some() || y.overwritten.is_some();
        real(x).zip(real(y)).is_some_and(|(of_x, of_y)| {
            // Writing destroys no padding.
            let is_padding = is_written && of_x.1.max(of_y.1) >= of_x.2.min(of_y.2);
            is_padding || gathered.may_share(of_x, of_y)
        }) || is_harmless(x, y)
            || is_harmless(y, x)
    };
    let mut visit = |old: &Timed<'_>, new: &Timed<'_>| {
        if may_share(old, new) {
            return true;
        }
        if found.len() >= OVERLAP_LIMIT {
            found.push(Violation::MoreOverlaps { limit: OVERLAP_LIMIT });
            return false;
        }
        found.push(Violation::ClockOverlap {
            first: old.name.to_owned(),
            second: new.name.to_owned(),
            low: old.low.max(new.low),
            high: old.high.min(new.high),
        });
        true
    };
    timed.chunk_by(|a, b| a.memory == b.memory).all(|memory| each_meeting(memory, &mut visit));
    found
}

fn index(step: Step) -> usize {
    usize::try_from(step).unwrap_or(usize::MAX)
}

/// By written tensor: the clock at which it is supplied or its operator begins, and the clock at which its
/// last reader is over.
fn lives(sequence: &OpSequence, contents: &Contents, order: &Order) -> Vec<Option<(Clock, Clock)>> {
    let start: Clock = vec![0; order.end.len()].into();
    let mut lives: Vec<Option<(Clock, Clock)>> = contents
        .of
        .iter()
        .map(|one| one.as_ref().map(|_| (start.clone(), start.clone())))
        .collect();
    for (step, operator) in sequence.operators().iter().enumerate() {
        for output in &operator.outputs {
            // A view that shares memory is a reader of the tensor that it shows.
            let is_written = contents.shown[output.index()] == output.index();
            if let (true, Some(life)) = (is_written, &mut lives[output.index()]) {
                life.0.clone_from(&order.before[step]);
            }
        }
        for tensor in operator.inputs.iter().chain(&operator.outputs) {
            if let Some((_, end)) = &mut lives[contents.shown[tensor.index()]] {
                join(end, &order.after[step]);
            }
        }
    }
    for (life, content) in lives.iter_mut().zip(&contents.of) {
        if let (Some((_, end)), Some(Content { kept: true, .. })) = (life, content) {
            join(end, &order.end);
        }
    }
    lives
}

/// Checks that the chunks listed as the peak are needed at the same time.
fn check_peak<'a>(
    plan: &Plan,
    timed: impl Iterator<Item = &'a Timed<'a>>,
    found: &mut Vec<Violation>,
) {
    let mut of_chunk: BTreeMap<usize, Vec<&Timed<'_>>> = BTreeMap::new();
    for one in timed.filter(|one| one.overwritten.is_none()) {
        if let Some(chunk) = one.chunk {
            of_chunk.entry(chunk).or_default().push(one);
        }
    }
    let mut peak: Vec<&[&Timed<'_>]> = Vec::new();
    for at in plan.peak.iter().take(MAX_AT_PEAK) {
        if *at >= plan.chunks.len() {
            found.push(Violation::NoSuchChunk { user: "the peak".to_owned() });
        }
        let Some(new) = of_chunk.get(at) else { continue };
        let meets = |old: &[&Timed<'_>]| old.iter().any(|x| new.iter().any(|y| x.meets(y)));
        if let Some(old) = peak.iter().find(|old| !meets(old)) {
            let (first, second) = (old[0].name.to_owned(), new[0].name.to_owned());
            found.push(Violation::NeverTogether { first, second });
        }
        peak.push(new);
    }
}

/// The operators that last used some bytes.
#[derive(Clone, Debug)]
struct Use {
    /// The byte after the last.
    high: Bytes,
    /// The step that wrote them; `None` before the first step.
    writer: Option<usize>,
    /// The steps that have read them since, the last of each stream.
    readers: Vec<usize>,
}

/// Finds operators that use the same bytes, at least one of them to write, and that may run at the same
/// time: a race detector. It watches every byte, as intervals.
pub(super) struct Races {
    order: Order,
    /// By first byte; intervals do not overlap.
    uses: BTreeMap<(Memory, Bytes), Use>,
    reported: HashSet<(usize, usize)>,
}

/// Two operators that race for bytes.
pub(super) struct Race {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) bytes: Interval,
}

impl Races {
    pub(super) fn of(order: Order) -> Self {
        Self { order, uses: BTreeMap::new(), reported: HashSet::new() }
    }

    /// Records that an operator reads or writes bytes. Returns the races with those before that have not
    /// been returned yet.
    pub(super) fn record(&mut self, step: usize, bytes: Interval, is_write: bool) -> Vec<Race> {
        let Interval { memory, low, high } = bytes;
        self.split(memory, low);
        self.split(memory, high);
        let mut found = Vec::new();
        let mut gaps = Vec::new();
        let mut reached = low;
        let order = &self.order;
        for (&(_, start), used) in self.uses.range_mut((memory, low)..(memory, high)) {
            if start > reached {
                gaps.push((reached, start));
            }
            reached = used.high;
            let readers: &[usize] = if is_write { &used.readers } else { &[] };
            for &other in used.writer.iter().chain(readers) {
                let pair = (other.min(step), other.max(step));
                if !order.in_order(other, step) && self.reported.insert(pair) {
                    let bytes = Interval { memory, low: start, high: used.high };
                    found.push(Race { first: other, second: step, bytes });
                }
            }
            if !is_write {
                used.readers.retain(|&other| order.streams[other] != order.streams[step]);
                used.readers.push(step);
            }
        }
        if is_write {
            while let Some((&start, _)) = self.uses.range((memory, low)..(memory, high)).next() {
                self.uses.remove(&start);
            }
            let used = Use { high, writer: Some(step), readers: Vec::new() };
            self.uses.insert((memory, low), used);
            return found;
        }
        if reached < high {
            gaps.push((reached, high));
        }
        for (low, high) in gaps {
            self.uses.insert((memory, low), Use { high, writer: None, readers: vec![step] });
        }
        found
    }

    /// Splits an interval at this byte if it extends beyond it.
    fn split(&mut self, memory: Memory, at: Bytes) {
        let before = self.uses.range_mut(..(memory, at)).next_back();
        if let Some((&(of, _), used)) = before
            && of == memory
            && used.high > at
        {
            let above = used.clone();
            used.high = at;
            self.uses.insert((memory, at), above);
        }
    }
}
