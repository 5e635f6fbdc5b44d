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
        places::{self, Interval, Memory, Places, Workspace},
        ranges,
        sweep::OVERLAP_LIMIT,
    },
};

/// If the peak lists more chunks, only this many of them are compared with each other.
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
    /// As `overwritten`, for bytes that the overwritten tensor does not need while the operator runs.
    beside: Option<usize>,
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
    let lives = lives(sequence, contents, places, &order);
    let checker = Checker { sequence, contents, places, order: &order, lives: &lives };
    let mut found = Vec::new();
    let mut timed: Vec<Timed<'_>> = Vec::new();
    // Contents until the last reader of any of their bytes.
    let mut whole: Vec<Timed<'_>> = Vec::new();
    // Bytes of overwriters while their operators run.
    let mut written_over: Vec<Timed<'_>> = Vec::new();
    for (at, content) in contents.of.iter().enumerate() {
        let Some((content, life)) = content.as_ref().zip(lives[at].as_ref()) else { continue };
        let mut begin = &life.begin;
        if let Some(old) = content.overwrites {
            // The overwriter has the bytes to itself once its operator is over.
            begin = &order.after[index(content.written)];
            found.extend(checker.unordered(at, content, old));
            written_over.extend(checker.while_written(at, content, old));
        }
        let from_begin = |bytes: Range<Bytes>, end: &Clock| Timed {
            begin: begin.clone(),
            end: end.clone(),
            ..checker.timed(at, content, bytes)
        };
        let needs = life.needs.iter().filter(|need| need.end != *begin);
        timed.extend(needs.map(|need| from_begin(need.low..need.high, &need.end)));
        let bytes = content.low..content.high;
        whole.extend((*begin != life.end).then(|| from_begin(bytes, &life.end)));
    }
    timed.extend(workspaces.iter().map(|workspace| Timed {
        name: &workspace.name,
        tensor: None,
        chunk: Some(workspace.chunk),
        overwritten: None,
        beside: None,
        memory: workspace.interval.memory,
        low: workspace.interval.low,
        high: workspace.interval.high,
        begin: order.before[workspace.step].clone(),
        end: order.after[workspace.step].clone(),
    }));
    let of_workspaces = timed.iter().filter(|one| one.tensor.is_none());
    check_peak(plan, whole.iter().chain(of_workspaces).chain(&written_over), &mut found);
    timed.append(&mut written_over);
    timed.sort_by_key(|one| (one.memory, one.low, one.tensor));
    let mut visit = |old: &Timed<'_>, new: &Timed<'_>| {
        if checker.may_share(old, new) {
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

struct Checker<'a> {
    sequence: &'a OpSequence,
    contents: &'a Contents,
    places: &'a Places,
    order: &'a Order,
    /// By tensor that was written.
    lives: &'a [Option<Life>],
}

impl<'a> Checker<'a> {
    fn name(&self, tensor: usize) -> &'a str {
        &self.sequence.tensors()[tensor].name
    }

    fn size(&self, tensor: usize) -> Bytes {
        self.sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX)
    }

    /// Bytes of a content while its operator runs.
    fn timed(&self, at: usize, content: &Content, bytes: Range<Bytes>) -> Timed<'a> {
        let written = index(content.written);
        Timed {
            name: self.name(at),
            tensor: Some(at),
            chunk: self.places.chunks[at],
            overwritten: None,
            beside: None,
            memory: content.memory,
            low: bytes.start,
            high: bytes.end,
            begin: self.order.before[written].clone(),
            end: self.order.after[written].clone(),
        }
    }

    /// The needs of a content.
    fn needs(&self, tensor: usize) -> impl Iterator<Item = &'a Need> + use<'a> {
        let lives: &'a [Option<Life>] = self.lives;
        lives[tensor].iter().flat_map(|life| &life.needs)
    }

    /// Finds bytes of an overwritten content that may be read after a content is written there.
    fn unordered(&self, at: usize, content: &Content, old: usize) -> Option<Violation> {
        let written = index(content.written);
        let mut own = self.order.before[written].clone();
        own[self.order.streams[written]] += 1;
        // Writing destroys no padding.
        let value = |tensor: usize| self.places.of[tensor].interval(self.size(tensor));
        let lost = value(at)?.common(&value(old)?)?;
        let is_lost = |need: &Need| {
            let shares = need.low < lost.high && lost.low < need.high;
            shares && !is_over(&need.end, &own)
        };
        self.needs(old).any(is_lost).then(|| Violation::OverwriteUnordered {
            overwriter: self.name(at).to_owned(),
            overwritten: self.name(old).to_owned(),
        })
    }

    /// The bytes of an overwriter while its operator runs: the bytes that the overwritten content does not need then,
    /// and if other contents share bytes with the overwritten one, all bytes that are written.
    fn while_written(&self, at: usize, content: &Content, old: usize) -> Vec<Timed<'a>> {
        let before = &self.order.before[index(content.written)];
        let needed = self.needs(old).filter(|need| !is_over(&need.end, before));
        let needed = needed.map(|need| need.low..need.high);
        let outside = ranges::outside(content.low..content.high, needed).into_iter();
        let beside = Some(old);
        let mut timed: Vec<Timed<'_>> =
            outside.map(|bytes| Timed { beside, ..self.timed(at, content, bytes) }).collect();
        if self.contents.gathered.is_shared(old) {
            // The overwriter must not destroy contents that share bytes with the overwritten one and are still needed.
            let bytes = content.low..content.low.saturating_add(self.size(at));
            timed.push(Timed { overwritten: Some(old), ..self.timed(at, content, bytes) });
        }
        timed
    }

    /// Returns whether two contents have the same bytes where they overlap.
    fn may_share(&self, x: &Timed<'_>, y: &Timed<'_>) -> bool {
        let gathered = &self.contents.gathered;
        let real = |one: &Timed<'_>| {
            let tensor = one.tensor?;
            let content = self.contents.of[tensor].as_ref()?;
            let end = content.low.saturating_add(self.size(tensor));
            Some((tensor, one.low, one.high.min(end)))
        };
        // Padding may overlap that of a relative of the overwritten content, as that content may.
        let is_beside = |new: &Timed<'_>, other: &Timed<'_>| {
            let relatives = new.beside.zip(other.tensor);
            relatives.is_some_and(|(old, other)| gathered.related(old, other))
        };
        let is_written = x.overwritten.is_some() || y.overwritten.is_some();
        real(x).zip(real(y)).is_some_and(|(of_x, of_y)| {
            // Writing destroys no padding.
            let is_padding = (is_written || is_beside(x, y) || is_beside(y, x))
                && of_x.1.max(of_y.1) >= of_x.2.min(of_y.2);
            is_padding || gathered.may_share(of_x, of_y)
        }) || self.is_harmless(x, y)
            || self.is_harmless(y, x)
    }

    /// Returns whether an overwriter, while it is written, destroys no needed bytes of another content. A content that
    /// shares no bytes with the overwritten one cannot lie there in that step.
    fn is_harmless(&self, new: &Timed<'_>, other: &Timed<'_>) -> bool {
        let gathered = &self.contents.gathered;
        let related = |old| other.tensor.is_some_and(|other| gathered.related(old, other));
        let is_same = new.tensor == other.tensor || new.overwritten == other.tensor;
        new.overwritten.is_some_and(|old| is_same || !related(old) || self.is_last(new, other))
    }

    /// Returns whether the operator of an overwriter is the last that needs a content. Rule d says which of its inputs
    /// it may destroy.
    fn is_last(&self, new: &Timed<'_>, other: &Timed<'_>) -> bool {
        let of = other.tensor.and_then(|other| self.contents.of[other].as_ref());
        of.is_some_and(|of| {
            let is_made = is_over(&self.order.after[index(of.written)], &new.begin);
            is_made && is_over(&other.end, &new.end) && !of.kept
        })
    }
}

fn index(step: Step) -> usize {
    usize::try_from(step).unwrap_or(usize::MAX)
}

/// When a content is needed.
#[derive(Clone)]
struct Life {
    /// The clock at which it is supplied or its operator begins.
    begin: Clock,
    /// The clock at which the last reader of any of its bytes is over.
    end: Clock,
    /// All of its bytes, ascending.
    needs: Vec<Need>,
}

/// Some bytes of a content, and the clock at which the last reader of these bytes is over.
#[derive(Clone)]
struct Need {
    low: Bytes,
    high: Bytes,
    end: Clock,
}

/// The life of each content, by the tensor that was written.
fn lives(
    sequence: &OpSequence,
    contents: &Contents,
    places: &Places,
    order: &Order,
) -> Vec<Option<Life>> {
    let start: Clock = vec![0; order.end.len()].into();
    let mut begins = vec![start.clone(); contents.of.len()];
    let mut ends = begins.clone();
    let mut reads: Vec<Vec<(Range<Bytes>, &Clock)>> = vec![Vec::new(); contents.of.len()];
    let mut read = |tensor: usize, end| {
        let shown = contents.shown[tensor];
        let size = |tensor: usize| sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX);
        let Some((content, bytes)) =
            contents.of[shown].as_ref().zip(places.of[tensor].interval(size(tensor)))
        else {
            return;
        };
        // The padding is needed as long as the last byte.
        let is_last = bytes.high == content.low.saturating_add(size(shown));
        let high = if is_last { content.high } else { bytes.high };
        reads[shown].push((bytes.low..high, end));
    };
    for (step, operator) in sequence.operators().iter().enumerate() {
        let only_shown = places::only_shown(sequence, &places.of, operator);
        for output in operator.outputs.iter().map(|output| output.index()) {
            // A view that shares memory is a reader of the bytes that it shows.
            if contents.shown[output] == output {
                begins[output].clone_from(&order.before[step]);
            }
            join(&mut ends[contents.shown[output]], &order.after[step]);
            read(output, &order.after[step]);
        }
        for input in operator.inputs.iter().map(|input| input.index()) {
            join(&mut ends[contents.shown[input]], &order.after[step]);
            if only_shown.binary_search(&input).is_err() {
                read(input, &order.after[step]);
            }
        }
    }
    for &kept in &contents.kept {
        join(&mut ends[contents.shown[kept]], &order.end);
        read(kept, &order.end);
    }
    let times = begins.into_iter().zip(ends).zip(reads);
    let lives = contents.of.iter().zip(times).map(|(content, ((begin, end), reads))| {
        let content = content.as_ref()?;
        let needs = needs(content.low..content.high, &begin, reads);
        Some(Life { begin, end, needs })
    });
    lives.collect()
}

/// Splits bytes that are needed from a clock on where the clock at which their last reader is over changes.
fn needs(bytes: Range<Bytes>, begin: &Clock, mut reads: Vec<(Range<Bytes>, &Clock)>) -> Vec<Need> {
    let mut whole = begin.clone();
    reads.retain(|(of, end)| {
        let is_part = *of != bytes;
        if !is_part {
            join(&mut whole, end);
        }
        is_part
    });
    let mut bounds: Vec<Bytes> = reads.iter().flat_map(|(of, _)| [of.start, of.end]).collect();
    bounds.extend([bytes.start, bytes.end]);
    bounds.retain(|bound| (bytes.start..=bytes.end).contains(bound));
    bounds.sort_unstable();
    bounds.dedup();
    reads.sort_by_key(|(of, _)| of.start);
    let mut reads = reads.into_iter().peekable();
    let mut open: Vec<(Bytes, &Clock)> = Vec::new();
    let mut needs: Vec<Need> = Vec::new();
    for pair in bounds.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        while let Some((of, end)) = reads.next_if(|(of, _)| of.start <= low) {
            open.push((of.end, end));
        }
        open.retain(|&(until, _)| until > low);
        let mut end = whole.clone();
        for (_, clock) in &open {
            join(&mut end, clock);
        }
        match needs.last_mut() {
            Some(last) if last.end == end => last.high = high,
            _ => needs.push(Need { low, high, end }),
        }
    }
    needs
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
