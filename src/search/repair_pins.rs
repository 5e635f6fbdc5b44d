//! Repairing pins: a packing in which no item is pinned is repacked, one window of time after the other, until all
//! pinned items lie where they must.
//!
//! Many problems are packed at their bound in milliseconds if nothing is pinned, and hardly ever with all pins at once.
//! So each start packs all items without pins. Some pins hold by chance. Then one broken pin is chosen at random, and a
//! window of sections around it. All items that live in the window are repacked, with this pin and those in the
//! window that hold already, while the others stay. If that succeeds, one more pin holds (large neighbourhood search,
//! Shaw 1998). If no pin is gained for a while, windows have more nodes, and then another start follows.

use std::ops::Range;

use crate::{
    monitor::Monitor,
    search::{
        control::{
            descent::{Attempt, Attempts, Packer},
            meter::Meter,
            restarts::Restarts,
        },
        effort::{PATIENCE, SHORT, Verdict, weigh},
        engine::{Engine, Share},
        guided::SHARE,
        packing::Packing,
        random::Random,
        state::instance::{Instance, Item, Pinned, Staircase},
    },
};

/// The most sections of a window before the pin, and after it. With a fifth of them, the items around the window leave
/// too little freedom.
const REACH: usize = 50;

/// Packs the items of an instance around fixed rectangles.
pub struct PinRepair<'a> {
    inst: &'a Instance,
    /// The instance with pinned items.
    pinned: &'a Pinned,
    /// The same items without pins.
    free: Instance,
    /// The pinned items.
    pins: Vec<Pin>,
    /// The number of starts so far; each has its own seed.
    starts: u64,
    nodes: u64,
    /// True if further attempts are pointless: the items do not fit even without pins, or hardly any start packs them.
    is_hopeless: bool,
}

/// The only offset that an item may have.
#[derive(Clone, Copy)]
struct Pin {
    item: usize,
    offset: u64,
}

impl Pin {
    fn holds(self, packing: &[u64]) -> bool {
        packing[self.item] == self.offset
    }
}

/// Sections in which all items are repacked.
struct Window {
    sections: Range<usize>,
    /// By item: the offset of its pin, if that must hold.
    offsets: Vec<Option<u64>>,
}

impl Window {
    fn contains(&self, item: &Item) -> bool {
        let Range { start, end } = item.sections();
        start < self.sections.end && self.sections.start < end
    }
}

impl Engine for PinRepair<'_> {
    fn run(&mut self, packing: &mut Packing<'_>, share: Share, monitor: &mut Monitor<'_>) -> u64 {
        let share = share.all();
        packing.descend(self, Attempts { levels: &[0], share, enough: 0 }, share, monitor)
    }
}

impl<'a> PinRepair<'a> {
    /// Returns `None` if no rectangles are fixed, if there are other bodies than rectangles, or if one is fixed at all
    /// times, as a reserved range is: a window around it would contain all items.
    pub fn new(inst: &'a Instance) -> Option<Self> {
        let pinned = inst.pinned.as_deref()?;
        if !pinned.inst.staircases.is_empty() {
            return None;
        }
        let pin = |(item, offset): (usize, &Option<u64>)| Some(Pin { item, offset: (*offset)? });
        let pins: Vec<Pin> = pinned.inst.pins.iter().enumerate().filter_map(pin).collect();
        let sections = |pin: &Pin| pinned.inst.items[pin.item].sections().len();
        if pins.iter().any(|pin| sections(pin) == pinned.inst.sections) {
            return None;
        }
        let mut free = pinned.inst.clone();
        free.pins.clear();
        Some(Self { inst, pinned, free, pins, starts: 0, nodes: 0, is_hopeless: false })
    }

    /// Searches for a packing with at most this many nodes, and counts them.
    fn search(
        &mut self,
        inst: &Instance,
        Attempt { limit, seed }: Attempt,
        nodes: u64,
        meter: &mut Meter<'_>,
    ) -> (Verdict, Vec<u64>) {
        let mut search = Restarts::new(inst, seed);
        let before = weigh(self.nodes + 1, inst.bodies() as u64);
        let verdict = search.decide(limit, u64::MAX, &mut meter.part(before, nodes));
        self.nodes = before + search.nodes();
        let is_packed = verdict == Verdict::Packed;
        (verdict, if is_packed { search.offsets().to_vec() } else { Vec::new() })
    }

    /// A window around a broken pin, chosen at random. That pin must hold, and so must those that hold there already.
    fn window(&self, packing: &[u64], random: &mut Random) -> Option<Window> {
        let broken: Vec<&Pin> = self.pins.iter().filter(|pin| !pin.holds(packing)).collect();
        let chosen = broken.get(random.below(broken.len()))?;
        let reach = 1 + random.below(REACH);
        let Range { start, end } = self.free.items[chosen.item].sections();
        let sections = start.saturating_sub(reach)..(end + reach).min(self.free.sections);
        let mut window = Window { sections, offsets: vec![None; packing.len()] };
        for pin in &self.pins {
            let is_kept = pin.holds(packing) && window.contains(&self.free.items[pin.item]);
            if is_kept || pin.item == chosen.item {
                window.offsets[pin.item] = Some(pin.offset);
            }
        }
        Some(window)
    }

    /// Repacks all items of a window while the others stay; returns whether that succeeds.
    fn repack(
        &mut self,
        packing: &mut [u64],
        window: &Window,
        (attempt, nodes): (Attempt, u64),
        meter: &mut Meter<'_>,
    ) -> bool {
        let repacked = || self.free.items.iter().filter(|item| window.contains(item));
        let first = repacked().map(|item| item.first).min().unwrap_or(0);
        let end = repacked().map(|item| item.end).max().unwrap_or(0);
        let (mut items, mut numbers, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
        for (number, item) in self.free.items.iter().enumerate() {
            let (begin, end) = (item.first.max(first), item.end.min(end));
            if begin >= end {
                continue;
            }
            let here = Item { first: begin - first, end: end - first, size: item.size };
            let root = self.free.roots[number];
            if window.contains(item) && window.offsets[number].is_none() {
                items.push((here, root));
                numbers.push(number);
            } else {
                let offset = window.offsets[number].unwrap_or(packing[number]);
                fixed.push((Staircase { parts: vec![here.part()] }, root, Some(offset)));
            }
        }
        let inst = self.free.with_bodies(items, fixed, (end - first) as usize);
        let (verdict, offsets) = self.search(&inst, attempt, nodes, meter);
        if verdict != Verdict::Packed {
            return false;
        }
        for (number, offset) in numbers.into_iter().zip(offsets) {
            packing[number] = offset;
        }
        for Pin { item, offset } in &self.pins {
            if window.offsets[*item].is_some() {
                packing[*item] = *offset;
            }
        }
        true
    }

    /// Repacks windows until all pins hold, or until too many consecutive ones have gained no pin; returns whether all
    /// pins hold.
    fn repair(
        &mut self,
        packing: &mut [u64],
        random: &mut Random,
        limit: u64,
        meter: &mut Meter<'_>,
    ) -> bool {
        let mut failures = 0;
        while failures < PATIENCE * PATIENCE && !meter.is_over(self.nodes) {
            let Some(window) = self.window(packing, random) else { return true };
            let seed = random.below(1 << 20) as u64;
            // A window gets more nodes after every few consecutive ones that gain no pin.
            let nodes = SHORT * (1 + failures / PATIENCE);
            let attempt = (Attempt { limit, seed }, nodes);
            let is_packed = self.repack(packing, &window, attempt, meter);
            failures = if is_packed { 0 } else { failures + 1 };
        }
        false
    }
}

impl Packer for PinRepair<'_> {
    fn nodes(&self) -> u64 {
        self.nodes
    }

    fn pack(&mut self, attempt: Attempt, meter: &mut Meter<'_>) -> Option<(u64, Vec<u64>)> {
        let limit = attempt.limit;
        let free = self.free.clone();
        let mut failures = 0;
        while failures < PATIENCE && !meter.is_over(self.nodes) {
            self.starts += 1;
            let start = Attempt { limit, seed: self.starts };
            let (verdict, mut packing) = self.search(&free, start, SHARE, meter);
            match verdict {
                Verdict::Packed => failures = 0,
                Verdict::NodeLimit => failures += 1,
                Verdict::Refuted => {
                    self.is_hopeless = true;
                    break;
                }
            }
            let mut random = Random::new(self.starts);
            if verdict == Verdict::Packed && self.repair(&mut packing, &mut random, limit, meter) {
                let offsets = self.pinned.original_offsets(&packing);
                return Some((self.inst.height_of(&offsets), offsets));
            }
        }
        self.is_hopeless = failures == PATIENCE || self.is_hopeless;
        None
    }

    fn floor(&self) -> u64 {
        // Another attempt would begin in the same way.
        if self.is_hopeless { u64::MAX } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::samples::{check_around_fixed, check_places, fixed_at, instance, sawtooth};

    #[test]
    fn items_are_packed_around_fixed_rectangles() {
        check_around_fixed(|around, limit| {
            let around = around.with_pins();
            Some(PinRepair::new(&around)?.pack_alone(limit, 1, 100_000).unwrap())
        });
    }

    /// A quarter of many items are pinned. More and more pins hold while the others stay where they are.
    #[test]
    fn pins_that_hold_are_kept_and_items_outside_of_a_window_stay() {
        let inst = instance(&sawtooth(120));
        let limit = inst.bound() * 11 / 10;
        let packing = |seed| {
            let mut search = Restarts::new(&inst, seed);
            assert_eq!(search.decide(limit, 1000, &mut Meter::unwatched()), Verdict::Packed);
            search.offsets().to_vec()
        };
        let around = fixed_at(&inst, &packing(1), |at| at.is_multiple_of(4)).with_pins();
        let mut repair = PinRepair::new(&around).unwrap();
        let limit = limit / around.unit;
        let free = repair.free.clone();
        let start = Attempt { limit, seed: 2 };
        let mut meter = Meter::unwatched();
        let (verdict, mut packing) = repair.search(&free, start, u64::MAX, &mut meter);
        assert_eq!(verdict, Verdict::Packed);
        let mut random = Random::new(1);
        let mut gained = 0;
        for seed in 0..100 {
            let Some(window) = repair.window(&packing, &mut random) else { break };
            let before = packing.clone();
            let attempt = (Attempt { limit, seed }, SHORT);
            let is_packed = repair.repack(&mut packing, &window, attempt, &mut meter);
            for (at, item) in free.items.iter().enumerate() {
                assert!(is_packed && window.contains(item) || packing[at] == before[at]);
            }
            let pins = || repair.pins.iter();
            assert!(pins().all(|pin| pin.holds(&packing) || !pin.holds(&before)));
            let held = |packing: &[u64]| pins().filter(|pin| pin.holds(packing)).count();
            assert_eq!(held(&packing) > held(&before), is_packed);
            check_places(&free, limit, &packing);
            gained += u32::from(is_packed);
        }
        assert!(gained > 5, "{gained}");
    }

    /// The attempts end for good where there is no packing even without pins.
    #[test]
    fn nothing_is_tried_again_below_a_limit_that_is_refuted_without_pins() {
        let inst = instance(&sawtooth(10));
        let around = fixed_at(&inst, &[0; 10], |at| at == 0).with_pins();
        let mut repair = PinRepair::new(&around).unwrap();
        let limit = around.bound() - 1;
        assert!(repair.pack_alone(limit, 1, 100_000).is_none());
        assert_eq!(repair.floor(), u64::MAX);
    }

    #[test]
    fn only_rectangles_that_are_fixed_for_some_time_are_repaired() {
        assert!(PinRepair::new(&instance(&sawtooth(10)).with_pins()).is_none());
        let items = |count| {
            let mut problem = crate::Problem::builder();
            problem.chunk(0..4, 1);
            problem.chunk(0..2, 2);
            problem.chunk(2..4, 3);
            let inst = instance(&problem.build().unwrap());
            fixed_at(&inst, &[0; 3], |at| at < count).with_pins()
        };
        let is_repaired = [1, 2, 3].map(|count| PinRepair::new(&items(count)).is_some());
        assert_eq!(is_repaired, [true, false, false]);
    }
}
