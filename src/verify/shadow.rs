//! A shadow of the memory: the last writer of every byte, kept as runs of bytes.

use std::collections::BTreeMap;

use crate::{
    Bytes,
    verify::places::{Interval, Memory},
};

/// The last writer of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    Tensor(usize),
    /// By its index in the list of workspaces.
    Workspace(usize),
}

/// The stamps of all bytes.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// The byte after the last and the stamp of each run of bytes, by its first byte. Runs are not
    /// empty and do not overlap; bytes outside all runs were never written.
    runs: BTreeMap<(Memory, Bytes), (Bytes, Stamp)>,
}

impl Shadow {
    pub(super) fn write(&mut self, Interval { memory, low, high }: Interval, stamp: Stamp) {
        self.split(memory, low);
        self.split(memory, high);
        while let Some((&start, _)) = self.runs.range((memory, low)..(memory, high)).next() {
            self.runs.remove(&start);
        }
        self.runs.insert((memory, low), (high, stamp));
    }

    /// Splits a run at this byte if it extends beyond it.
    fn split(&mut self, memory: Memory, at: Bytes) {
        let before = self.runs.range_mut(..(memory, at)).next_back();
        if let Some((&(of, _), run)) = before
            && of == memory
            && run.0 > at
        {
            let (high, stamp) = std::mem::replace(run, (at, run.1));
            self.runs.insert((memory, at), (high, stamp));
        }
    }

    /// Returns the first bytes of an interval with a wrong stamp; bytes without a stamp have
    /// `None`.
    pub(super) fn first(
        &self,
        Interval { memory, low, high }: Interval,
        mut is_wrong: impl FnMut(Option<Stamp>) -> bool,
    ) -> Option<(Interval, Option<Stamp>)> {
        let before = self.runs.range(..=(memory, low)).next_back();
        let before = before.filter(|&(&(of, _), &(end, _))| of == memory && end > low);
        let first = before.map_or((memory, low), |(&start, _)| start);
        let mut reached = low;
        for (&(_, start), &(end, stamp)) in self.runs.range(first..(memory, high)) {
            if start > reached && is_wrong(None) {
                return Some((Interval { memory, low: reached, high: start }, None));
            }
            let (from, to) = (start.max(low), end.min(high));
            if is_wrong(Some(stamp)) {
                return Some((Interval { memory, low: from, high: to }, Some(stamp)));
            }
            reached = to;
        }
        let rest = Interval { memory, low: reached, high };
        (reached < high && is_wrong(None)).then_some((rest, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{seeds::times, sequence::TensorId};

    /// Applies the same writes to a shadow and to a list of bytes.
    #[test]
    fn a_shadow_records_the_last_writer_of_every_byte() {
        const BYTES: u64 = 24;
        let memories = [Memory::Pool, Memory::Supplied(TensorId(0)), Memory::Supplied(TensorId(1))];
        let shadow_of = |random: &mut arbitrary::Unstructured<'_>| {
            let mut shadow = Shadow::default();
            let mut model: BTreeMap<(Memory, Bytes), Stamp> = BTreeMap::new();
            for turn in 0..random.int_in_range(1..=20)? {
                let memory = *random.choose(&memories)?;
                let low = random.int_in_range(0..=BYTES - 1)?;
                let high = random.int_in_range(low + 1..=BYTES)?;
                let interval = Interval { memory, low, high };
                let stamp = Stamp::Tensor(random.int_in_range(0..=3)?);
                if turn % 2 == 0 {
                    shadow.write(interval, stamp);
                    model.extend((low..high).map(|byte| ((memory, byte), stamp)));
                }
                let mut end = None;
                for (&(memory, low), &(high, _)) in &shadow.runs {
                    assert!(low < high && end.is_none_or(|end| end <= (memory, low)));
                    end = Some((memory, high));
                }
                let of = |byte| model.get(&(memory, byte)).copied();
                let wrong = (low..high).find(|&byte| of(byte) != Some(stamp));
                let found = shadow.first(interval, |found| found != Some(stamp));
                assert_eq!(found.map(|(found, _)| found.low), wrong, "{shadow:?}");
                if let Some((found, holder)) = found {
                    assert!(found.memory == memory && found.low < found.high && found.high <= high);
                    assert!((found.low..found.high).all(|byte| of(byte) == holder), "{shadow:?}");
                }
            }
            Ok(())
        };
        times(1000, |random| shadow_of(random));
    }
}
