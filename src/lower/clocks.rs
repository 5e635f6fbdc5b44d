//! Lifetimes as clocks, for operators on several streams.
//!
//! A clock counts, for each stream, the steps that are over. An operator runs after the one before it on its
//! stream, after the producers of its inputs, and after those that it is declared to run after: the clock
//! before it is the maximum, stream by stream, of the clocks after them. A chunk is alive from the clock
//! before its producer to the maximum of the clocks after its producer and its readers.

use std::iter;

use crate::{
    Step,
    lower::{
        bytes::Made,
        lifetimes::{supplied, uses},
        place::Places,
    },
    problem::{RejectReason, Request, constraints::Clock},
    sequence::OpSequence,
};

/// The lifetime of a chunk.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) begin: Clock,
    pub(super) end: Clock,
    /// The stream of its producer.
    pub(super) stream: usize,
}

impl Life {
    /// Takes the later entries of two clocks as the end.
    fn extend(&mut self, clock: &[Step]) {
        self.end.merge(clock, Step::max);
    }

    /// The moment at which its producer is over, if that begins when it does.
    pub(super) fn written(&self) -> Clock {
        let mut written = self.begin.clone();
        written[self.stream] += 1;
        written
    }

    /// Returns whether an overwriter with this lifetime begins in the step that reads a chunk last,
    /// and all other readers of that chunk are over before.
    fn follows(&self, old: &Self) -> bool {
        let mut times = self.begin.iter().zip(&old.end).enumerate();
        times.all(
            |(at, (&begin, &end))| {
                if at == self.stream { end == begin + 1 } else { end <= begin }
            },
        )
    }
}

/// A moment at which the first operator of a stream is over, and that is no later than any of these ends; `None` if
/// there is none. That of `stream` comes first.
pub(super) fn first_end<'c>(ends: impl Iterator<Item = &'c Clock>, stream: usize) -> Option<Clock> {
    let earlier = |a: Clock, b: Clock| a.iter().zip(&*b).map(|(a, b)| *a.min(b)).collect();
    let mut end = ends.cloned().reduce(earlier)?;
    let is_over = |&stream: &usize| end[stream] > 0;
    let stream = iter::once(stream).chain(0..end.len()).find(is_over)?;
    end.fill(0);
    end[stream] = 1;
    Some(end)
}

/// The clocks before and after each operator, by step.
pub(super) struct OperatorClocks {
    before: Vec<Clock>,
    after: Vec<Clock>,
    /// The moment at which all operators are over.
    end: Clock,
}

impl OperatorClocks {
    /// The moment at which these operators are over. A step beyond the sequence stands for its end.
    pub(super) fn end_of(&self, steps: impl Iterator<Item = usize>) -> Clock {
        let mut end: Option<Clock> = None;
        for clock in steps.map(|step| self.after.get(step).unwrap_or(&self.end)) {
            match &mut end {
                Some(end) => end.merge(clock, Step::max),
                None => end = Some(clock.clone()),
            }
        }
        end.unwrap_or_default()
    }

    /// Returns whether an operator is over before another one begins.
    pub(super) fn is_before(&self, first: usize, then: usize) -> bool {
        self.after[first].iter().zip(&*self.before[then]).all(|(end, begin)| end <= begin)
    }
}

/// The clocks of the operators of a sequence.
pub(super) fn operators(sequence: &OpSequence) -> OperatorClocks {
    let zero: Clock = vec![0; sequence.streams()].into();
    let mut last = vec![zero.clone(); sequence.streams()];
    let mut end = zero;
    let mut before: Vec<Clock> = Vec::with_capacity(sequence.operators().len());
    let mut after: Vec<Clock> = Vec::with_capacity(sequence.operators().len());
    for (step, operator) in sequence.operators().iter().enumerate() {
        let mut clock = last[operator.stream].clone();
        for first in sequence.direct_predecessors(step) {
            clock.merge(&after[first], Step::max);
        }
        before.push(clock.clone());
        clock[operator.stream] += 1;
        last[operator.stream].clone_from(&clock);
        end.merge(&clock, Step::max);
        after.push(clock);
    }
    OperatorClocks { before, after, end }
}

/// The lifetimes of all chunks of a sequence on several streams.
pub(super) struct Lifetimes {
    /// By draft chunk.
    of: Vec<Life>,
    pub(super) streams: usize,
}

impl Lifetimes {
    /// `None` if there is one stream.
    pub(super) fn of(sequence: &OpSequence, places: &Places) -> Option<Self> {
        let streams = sequence.streams();
        if streams == 1 {
            return None;
        }
        let zero: Clock = vec![0; streams].into();
        let OperatorClocks { before, after, end: all } = operators(sequence);
        let mut lives: Vec<Option<Life>> = vec![None; places.chunks.len()];
        for chunk in supplied(sequence, places) {
            let (begin, end) = (zero.clone(), zero.clone());
            lives[chunk.index()] = Some(Life { begin, end, stream: 0 });
        }
        for (step, chunk) in uses(sequence, places) {
            let begins = || Life {
                begin: before[step].clone(),
                end: after[step].clone(),
                stream: sequence.operators()[step].stream,
            };
            lives[chunk.index()].get_or_insert_with(begins).extend(&after[step]);
        }
        for (run, step) in places.begun_after() {
            let begin = after[step].clone();
            let stream = sequence.operators()[step].stream;
            let life = lives[run.index()].take();
            let end = life.map_or_else(|| begin.clone(), |life| life.end);
            lives[run.index()] = Some(Life { begin, end, stream });
        }
        let lives = lives.into_iter().zip(&places.chunks).map(|(life, chunk)| {
            let mut life =
                life.unwrap_or_else(|| Life { begin: zero.clone(), end: all.clone(), stream: 0 });
            if chunk.kept() {
                life.extend(&all);
            }
            // A supplied chunk without readers is alive in the first step, as with one stream.
            if life.begin == life.end
                && let Some(first) = after.first()
            {
                life.extend(first);
            }
            life
        });
        let mut of: Vec<Life> = lives.collect();
        // A supplied chunk that consists of runs is alive only at first, while all of these are.
        for (&whole, split) in &places.runs {
            let ends = split.runs.iter().map(|run| &of[run.chunk.index()].end);
            if let Made::Supplied { first_stream } = split.made
                && let Some(end) = first_end(ends, first_stream)
            {
                of[whole.index()].end = end;
            }
        }
        Some(Self { of, streams })
    }

    pub(super) fn life(&self, chunk: usize) -> &Life {
        &self.of[chunk]
    }

    /// Why a request that would be accepted on one stream is rejected here, if it is.
    pub(super) fn reject_reason(&self, request: &Request) -> Option<RejectReason> {
        let [new, old] = [request.overwriter, request.overwritten].map(|one| &self.of[one.index()]);
        (!new.follows(old)).then_some(RejectReason::Unordered)
    }
}
