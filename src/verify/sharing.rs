//! Rule d of lowering: an output may be written over an input of its operator only if no other
//! tensor that the operator uses is destroyed. No other input may share bytes with the output,
//! unless it has exactly those bytes, and no view that the operator outputs may share any.
//!
//! This is decided by counting. The number of intervals that share bytes with `[low, high)` is the number of those that
//! begin below `high`, less the number of those that end at or below `low`: two binary searches.

use crate::{
    Bytes, OpSequence,
    sequence::{Dependency, OperatorNode, Origin},
    verify::places::{Interval, Memory, Place},
};

/// An input that an output is declared to be written over, and lies over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) input: usize,
    /// True if the output begins below the input.
    pub(super) is_overlap: bool,
}

/// The intervals that the inputs of an operator occupy, and its views in place.
pub(super) struct Sharing<'a> {
    sequence: &'a OpSequence,
    places: &'a [Place],
    inputs: Intervals,
    views: Intervals,
    /// True if a conflicting tensor has been reported.
    is_reported: bool,
}

/// Intervals of different tensors.
struct Intervals {
    tensors: Vec<usize>,
    /// The intervals, sorted.
    all: Vec<Interval>,
    /// The ends of the intervals, sorted.
    ends: Vec<(Memory, Bytes)>,
}

impl Intervals {
    fn new(tensors: Vec<usize>, mut intervals: Vec<Interval>) -> Self {
        intervals.sort_unstable();
        let mut ends: Vec<_> = intervals.iter().map(|one| (one.memory, one.high)).collect();
        ends.sort_unstable();
        Self { tensors, all: intervals, ends }
    }

    /// Counts the tensors that share bytes with an interval.
    fn sharing(&self, Interval { memory, low, high }: Interval) -> usize {
        let begun = self.all.partition_point(|one| (one.memory, one.low) < (memory, high));
        let ended = self.ends.partition_point(|&end| end <= (memory, low));
        begun - ended
    }

    /// Counts the tensors that have exactly these bytes.
    fn equal(&self, interval: Interval) -> usize {
        let below = self.all.partition_point(|one| *one < interval);
        self.all[below..].partition_point(|one| *one == interval)
    }
}

impl<'a> Sharing<'a> {
    pub(super) fn of(
        sequence: &'a OpSequence,
        operator: &OperatorNode,
        places: &'a [Place],
    ) -> Self {
        let intervals = |mut tensors: Vec<usize>| {
            tensors.sort_unstable();
            tensors.dedup();
            let occupied = tensors.iter().filter_map(|&tensor| interval(sequence, places, tensor));
            let occupied = occupied.collect();
            Intervals::new(tensors, occupied)
        };
        let views = operator.outputs.iter().filter(|output| {
            matches!(
                &sequence.tensor(**output).origin,
                Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. }
                    if places[output.index()].is_at(places[input.index()], *offset)
            )
        });
        let views = views.map(|output| output.index()).collect();
        let inputs = operator.inputs.iter().map(|input| input.index()).collect();
        Self {
            sequence,
            places,
            inputs: intervals(inputs),
            views: intervals(views),
            is_reported: false,
        }
    }

    fn interval(&self, tensor: usize) -> Option<Interval> {
        interval(self.sequence, self.places, tensor)
    }

    /// Returns whether an output may be written over an input where the output lies.
    pub(super) fn allows(&self, output: usize, Declared { input, is_overlap }: Declared) -> bool {
        let (Some(written), Some(overwritten)) = (self.interval(output), self.interval(input))
        else {
            return true;
        };
        let declared = written != overwritten && written.common(&overwritten).is_some();
        // With a partial overlap, no other input may share bytes, not even with equal bytes.
        let equal = if is_overlap { 0 } else { self.inputs.equal(written) };
        let harmless = equal + usize::from(declared);
        self.inputs.sharing(written) == harmless && self.views.sharing(written) == 0
    }

    /// Returns a tensor that prevents an output from being written over an input, with the bytes
    /// that both have. At most one is reported per operator, so that the reports do not multiply with the number of
    /// outputs and inputs.
    pub(super) fn first_in_the_way(
        &mut self,
        output: usize,
        Declared { input, is_overlap }: Declared,
    ) -> Option<(usize, Interval)> {
        if std::mem::replace(&mut self.is_reported, true) {
            return None;
        }
        let written = self.interval(output)?;
        let is_harmless = |tensor: usize| !is_overlap && self.interval(tensor) == Some(written);
        let is_other = |tensor: usize| tensor != input && !is_harmless(tensor);
        let inputs = self.inputs.tensors.iter().filter(|&&tensor| is_other(tensor));
        inputs
            .chain(&self.views.tensors)
            .find_map(|&tensor| Some((tensor, self.interval(tensor)?.common(&written)?)))
    }
}

fn interval(sequence: &OpSequence, places: &[Place], tensor: usize) -> Option<Interval> {
    places[tensor].interval(sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX))
}
