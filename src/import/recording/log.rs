//! The allocations of one device in the order of events, which become chunks.

use std::collections::{BTreeSet, HashMap};

use crate::{
    Bytes, Problem, Step,
    import::{
        Format, ImportError,
        recording::{Device, Recording, sites::Sites},
    },
    problem::align_up,
};

/// The events of one device. Event `n`, from 1, is step `n`; step 0 is before all events.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) device: String,
    pub(super) events: Step,
    allocations: Vec<Allocation>,
    /// The allocation at each address that is in use.
    alive: HashMap<u64, usize>,
    /// Allocations over an address that was in use, whose release is not recorded.
    lost: u64,
    streams: BTreeSet<u64>,
    /// The most bytes that the allocator has reserved.
    pub(super) reserved: Option<Bytes>,
}

/// The places of allocations without the addresses that were never in use, and what their addresses cover.
struct Places {
    offsets: Vec<Bytes>,
    span: Option<Bytes>,
    touched: Option<Bytes>,
}

#[derive(Clone, Copy, Debug)]
struct Allocation {
    address: u64,
    size: Bytes,
    begin: Step,
    /// `None` as long as it is not released.
    end: Option<Step>,
    site: u32,
}

/// The bytes of an event: where they lie, and the place in the program that allocated them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) address: u64,
    pub(super) size: Bytes,
    pub(super) site: u32,
}

impl Log {
    pub(super) fn new(device: impl Into<String>) -> Self {
        Self { device: device.into(), ..Self::default() }
    }

    /// The logs that have allocations, with their devices and peaks.
    pub(super) fn by_peak(logs: impl IntoIterator<Item = Self>) -> Vec<Device<Self>> {
        let logs = logs.into_iter().filter(|log| !log.allocations.is_empty());
        logs.map(|log| (log.device.clone(), log.peak(), log)).collect()
    }

    pub(super) fn stream(&mut self, stream: u64) {
        self.streams.insert(stream);
    }

    pub(super) fn allocate(&mut self, Range { address, size, site }: Range) {
        self.events += 1;
        if size == 0 {
            return;
        }
        let begin = self.events;
        self.allocations.push(Allocation { address, size, begin, end: None, site });
        if let Some(old) = self.alive.insert(address, self.allocations.len() - 1) {
            self.lost += 1;
            self.allocations[old].end = Some(begin);
        }
    }

    /// Ends the allocation at an address; one that no event began was there before.
    pub(super) fn release(&mut self, Range { address, size, site }: Range) {
        self.events += 1;
        let end = Some(self.events);
        match self.alive.remove(&address) {
            Some(at) => self.allocations[at].end = end,
            None if size > 0 => {
                self.allocations.push(Allocation { address, size, begin: 0, end, site });
            }
            None => {}
        }
    }

    /// Adds what is in use at the end, unless an event began it: it was there before all events.
    pub(super) fn hold(&mut self, Range { address, size, site }: Range) {
        if size > 0 && !self.alive.contains_key(&address) {
            self.alive.insert(address, self.allocations.len());
            self.allocations.push(Allocation { address, size, begin: 0, end: None, site });
        }
    }

    /// The most bytes in use after an event.
    fn peak(&self) -> u128 {
        let mut changes: Vec<(Step, i128)> = Vec::with_capacity(2 * self.allocations.len());
        for allocation in &self.allocations {
            changes.push((allocation.begin, allocation.size.into()));
            changes.extend(allocation.end.map(|end| (end, -i128::from(allocation.size))));
        }
        // At one step, what ends comes first.
        changes.sort_unstable();
        let sums = changes.iter().scan(0_i128, |alive, &(_, change)| {
            *alive += change;
            Some(*alive)
        });
        sums.max().and_then(|most| most.try_into().ok()).unwrap_or(0)
    }

    /// Makes chunks of the allocations, in the order in which they begin.
    pub(super) fn finish(
        mut self,
        sites: &Sites,
        format: Format,
        alignment: Bytes,
    ) -> Result<Recording, ImportError> {
        self.allocations.sort_by_key(|allocation| allocation.begin);
        let last = self.events + 1;
        let mut problem = Problem::builder().alignment(alignment);
        for &Allocation { size, begin, end, site, .. } in &self.allocations {
            let name = sites.names.get(site as usize).map_or("", |name| name);
            problem.named_chunk(name, begin..end.unwrap_or(last), size);
        }
        problem.at_least_steps(last);
        let problem = problem.finish()?;
        let count = |is: fn(&Allocation) -> bool| {
            self.allocations.iter().filter(|allocation| is(allocation)).count() as u64
        };
        let (begun_before, left) = (count(|of| of.begin == 0), count(|of| of.end.is_none()));
        let line = |of: &Allocation| sites.lines.get(of.site as usize).copied().unwrap_or(0);
        let lines = self.allocations.iter().map(line).collect();
        let Places { offsets, span, touched } = self.places(alignment);
        Ok(Recording {
            problem,
            format,
            device: self.device,
            others: Vec::new(),
            events: self.events,
            begun_before,
            left,
            lost: self.lost,
            streams: self.streams.len(),
            reserved: self.reserved,
            span,
            touched,
            offsets,
            lines,
            line_names: sites.line_names.clone(),
            delegates: 0,
            outside: Vec::new(),
        })
    }

    /// The place of each allocation if the ranges of addresses that were never in use are left out.
    fn places(&self, alignment: Bytes) -> Places {
        let mut order: Vec<usize> = (0..self.allocations.len()).collect();
        order.sort_unstable_by_key(|&at| self.allocations[at].address);
        let mut offsets = vec![0; order.len()];
        let mut touched: Bytes = 0;
        // The end of the range so far, and its distance from the offsets.
        let (mut end, mut shift, mut top): (u64, u64, Bytes) = (0, 0, 0);
        for &at in &order {
            let Allocation { address, size, .. } = self.allocations[at];
            if address >= end {
                let start = align_up(top, alignment) + address % alignment;
                shift = address.wrapping_sub(start);
                end = address;
            }
            offsets[at] = address.wrapping_sub(shift);
            let own_end = address.saturating_add(size);
            touched = touched.saturating_add(own_end.saturating_sub(end));
            end = end.max(own_end);
            top = top.max(end.wrapping_sub(shift));
        }
        let first = order.first().map(|&at| self.allocations[at].address);
        Places { offsets, span: first.map(|first| end - first), touched: first.map(|_| touched) }
    }
}
