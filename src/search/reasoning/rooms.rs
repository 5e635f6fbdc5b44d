//! Rooms: the free heights of a section between its floor, the parts that hang above it, the places that are kept
//! free for pinned items, and the limit.
//!
//! Bodies that cannot move divide the heights of a section into rooms, and every item left over the
//! section lies in one of them. There is no packing if
//!
//! 1. an item fits into no room,
//! 2. the items that fit into one room only are larger than this room, or
//! 3. the rooms waste more than the slack of the section, even if the items that fit into a room
//!    fill it as well as they can: the largest sum of their sizes that the room can hold is found
//!    exactly unless heights are too many units.
//!
//! Examining a section takes far longer than a node of the search, so sections that do not fail are
//! examined less and less often.

use std::ops::Range;

use crate::search::state::{instance::Span, skyline::Skyline};

/// The words of a set of sums.
const WORDS: usize = 32;

/// Sums of sizes in higher rooms are not examined.
const MAX_UNITS: u64 = 2047;

/// Sections with more rooms are not examined: the rooms of an item are bits of a word.
const MAX_ROOMS: usize = 64;

/// The most examinations of a section that are left out in turn. With 31, fewer problems with pins were proven.
const LONGEST_PAUSE: u32 = 7;

/// A room, and the sizes of the items that fit into it.
#[derive(Clone, Copy)]
struct Room {
    span: Span,
    /// The sum over all items that fit into it.
    may: u64,
    /// The sum over those that fit into no other.
    must: u64,
}

impl Room {
    fn size(&self) -> u64 {
        self.span.high - self.span.low
    }
}

/// The examinations of a section that are left out, because it has not failed for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pause {
    left: u32,
    length: u32,
}

impl Pause {
    /// Returns whether the section is to be examined now.
    fn is_over(&mut self) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }

    /// Begins the next pause: a longer one if nothing was found, and a shorter one otherwise.
    fn begin(&mut self, is_failed: bool) {
        self.length = if is_failed { self.length / 4 } else { self.length * 2 + 1 };
        self.length = self.length.min(LONGEST_PAUSE);
        self.left = self.length;
    }
}

/// An item left over a section.
#[derive(Clone, Copy)]
struct Guest {
    size: u64,
    /// The rooms that it fits into, as bits.
    rooms: u64,
}

/// The rooms of a problem with bodies that cannot move.
pub struct Rooms {
    /// By section: the items over it.
    items: Vec<Vec<u32>>,
    /// By item: the ranges of heights that no fixed body takes in any of its sections, ascending.
    free: Vec<Vec<Span>>,
    /// By item: the highest floor over its sections, and the count of examinations when it was found.
    floors: Vec<(u64, u64)>,
    /// The examinations so far.
    examined: u64,
    /// By section.
    pauses: Vec<Pause>,
    limit: u64,
    /// Scratch: the parts between the rooms of a section, ascending.
    between: Vec<Span>,
    /// Scratch: the rooms of a section, ascending.
    divided: Vec<Room>,
    /// Scratch: the items over a section.
    guests: Vec<Guest>,
    /// See [`work`](Self::work).
    work: u64,
}

impl Rooms {
    /// Creates the rooms below a limit; `None` if all bodies can move.
    pub fn new(sky: &Skyline<'_>, limit: u64) -> Option<Self> {
        let inst = sky.inst;
        if inst.fixed.is_empty() {
            return None;
        }
        let mut items = vec![Vec::new(); inst.sections];
        for (id, item) in (0..).zip(&inst.items) {
            for over in &mut items[item.sections()] {
                over.push(id);
            }
        }
        let parts = inst.fixed.iter().flat_map(|fixed| {
            let offset = fixed.offset;
            let parts = inst.staircase(fixed.body).parts.iter();
            parts.map(move |part| (part.sections(), part.at(offset)))
        });
        let mut parts: Vec<_> = parts.collect();
        parts.sort_unstable_by_key(|(_, span)| *span);
        let free = inst.items.iter().map(|item| {
            let own = item.sections();
            let meets = |over: &Range<usize>| over.start < own.end && own.start < over.end;
            let spans = parts.iter().filter(|(over, _)| meets(over)).map(|&(_, span)| span);
            let (mut free, mut low) = (Vec::new(), 0_u64);
            for span in spans.chain([Span { low: limit, high: limit }]) {
                if low.saturating_add(item.size) <= span.low {
                    free.push(Span { low, high: span.low });
                }
                low = low.max(span.high);
            }
            free
        });
        let free = free.collect();
        let floors = vec![(0, 0); inst.items.len()];
        let (between, divided, guests) = (Vec::new(), Vec::new(), Vec::new());
        let pauses = vec![Pause::default(); inst.sections];
        let (examined, work) = (0, 0);
        Some(Self { items, free, floors, examined, pauses, limit, between, divided, guests, work })
    }

    /// The number of items, their sections, their free ranges, the rooms compared with these, and sums examined so far;
    /// four sections, ranges or rooms count as one.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The limit below which the rooms lie.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The first of some sections whose items left cannot fit into its rooms. Examining a section costs far more
    /// than a node, so sections that never fail are seldom examined; others find what these would.
    pub fn first_unfit(&mut self, sky: &Skyline<'_>, mut sections: Range<usize>) -> Option<usize> {
        self.examined += 1;
        sections.find(|&x| {
            if !is_examined(sky, x) || !self.pauses[x].is_over() {
                return false;
            }
            let fits = self.fit(sky, x);
            self.pauses[x].begin(!fits);
            !fits
        })
    }

    /// Returns whether the items left over a section may fit into its rooms.
    fn fit(&mut self, sky: &Skyline<'_>, x: usize) -> bool {
        self.divide(sky, x);
        let slack = sky.slack(x);
        self.invite(sky, x)
            && self.divided.iter().all(|room| room.must <= room.size())
            && self.divided.iter().map(|room| room.size().saturating_sub(room.may)).sum::<u64>()
                <= slack
            && self.waste() <= slack
    }

    /// Finds the rooms of a section.
    fn divide(&mut self, sky: &Skyline<'_>, x: usize) {
        self.divided.clear();
        let mut low = sky.floor(x);
        let top = Span { low: sky.limit(), high: sky.limit() };
        self.between.clear();
        self.between.extend(sky.reserved(x).iter().copied().chain([top]));
        self.between.sort_unstable();
        for part in &self.between {
            if low < part.low {
                self.divided.push(Room { span: Span { low, high: part.low }, may: 0, must: 0 });
            }
            low = part.high;
        }
    }

    /// Finds the rooms that each item left over a section fits into; returns false if one fits into
    /// none.
    fn invite(&mut self, sky: &Skyline<'_>, x: usize) -> bool {
        self.guests.clear();
        for &id in self.items[x].iter().filter(|&&id| !sky.is_placed(id)) {
            let item = sky.inst.items[id as usize];
            let (floor, found) = &mut self.floors[id as usize];
            if *found != self.examined {
                *found = self.examined;
                *floor = sky.highest_floor(item.sections());
                self.work += item.sections().len() as u64 / 4;
            }
            self.work += 1;
            let mut rooms = 0_u64;
            let fits = |free: &&Span| free.low.max(*floor).saturating_add(item.size) <= free.high;
            self.work += self.free[id as usize].len() as u64 / 4;
            for free in self.free[id as usize].iter().filter(fits) {
                self.work += self.divided.len() as u64 / 4;
                for (at, Room { span, .. }) in self.divided.iter().enumerate() {
                    let low = free.low.max(span.low).max(*floor);
                    let fits = low.saturating_add(item.size) <= free.high.min(span.high);
                    rooms |= u64::from(fits) << at;
                }
            }
            if rooms == 0 {
                return false;
            }
            self.guests.push(Guest { size: item.size, rooms });
            for (at, room) in self.divided.iter_mut().enumerate() {
                room.may += item.size * (rooms >> at & 1);
                room.must += item.size * u64::from(rooms == 1 << at);
            }
        }
        true
    }

    /// The least waste of the rooms, each by itself.
    fn waste(&mut self) -> u64 {
        let mut waste = 0;
        for (at, room) in self.divided.iter().enumerate() {
            let size = room.size();
            if room.must == room.may || size > MAX_UNITS {
                waste += size.saturating_sub(room.may);
                continue;
            }
            let mut sums = Sums::from(room.must, size);
            let choice = |guest: &&Guest| guest.rooms >> at & 1 > 0 && guest.rooms != 1 << at;
            for guest in self.guests.iter().filter(choice) {
                if sums.has_last() {
                    break;
                }
                sums.add(guest.size);
                self.work += 1;
            }
            waste += size - sums.most();
        }
        waste
    }
}

/// Returns whether a section has rooms that can be examined.
fn is_examined(sky: &Skyline<'_>, x: usize) -> bool {
    let rooms = sky.reserved(x).len() + 1;
    (2..=MAX_ROOMS).contains(&rooms) && sky.items_left(x) > 0 && !sky.has_staircases(x)
}

/// The sums of some of a set of sizes, up to a largest one.
struct Sums {
    /// A bit for each sum.
    bits: [u64; WORDS],
    /// The number of words in use.
    words: usize,
    last: u64,
}

impl Sums {
    fn from(sum: u64, last: u64) -> Self {
        let words = usize::try_from(last / 64 + 1).unwrap_or(0);
        let mut bits = [0; WORDS];
        bits[usize::try_from(sum / 64).unwrap_or(0)] = 1 << (sum % 64);
        Self { bits, words, last }
    }

    /// Adds a size to each sum, or not.
    fn add(&mut self, size: u64) {
        let (words, shift) = (usize::try_from(size / 64).unwrap_or(usize::MAX), size % 64);
        for at in (words..self.words).rev() {
            let from = at - words;
            let carried =
                if shift > 0 && from > 0 { self.bits[from - 1] >> (64 - shift) } else { 0 };
            self.bits[at] |= self.bits[from] << shift | carried;
        }
    }

    /// Returns whether the last sum is one of them.
    fn has_last(&self) -> bool {
        self.bits[usize::try_from(self.last / 64).unwrap_or(0)] >> (self.last % 64) & 1 > 0
    }

    /// The largest sum.
    fn most(&self) -> u64 {
        let mut keep = u64::MAX >> (63 - self.last % 64);
        for at in (0..self.words).rev() {
            let word = self.bits[at] & keep;
            if word > 0 {
                return at as u64 * 64 + u64::from(word.ilog2());
            }
            keep = u64::MAX;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::{
        Step,
        problem::{ChunkId, Segment},
        search::state::instance::{Instance, Outline},
    };

    /// Creates a body from its steps, its bytes and its offset, if it cannot move.
    fn body(steps: Range<Step>, high: u64, fixed: Option<u64>) -> Outline {
        let root = ChunkId::from_index(0);
        let segment = Segment { chunk: root, begin: steps.start, end: steps.end, low: 0, high };
        Outline { root, segments: vec![segment], fixed }
    }

    #[test]
    fn a_section_that_never_fails_is_seldom_examined_and_one_that_fails_often() {
        let mut pause = Pause::default();
        let mut examined = |is_failed: bool, times: u32| {
            let mut count = 0;
            for _ in 0..times {
                if pause.is_over() {
                    pause.begin(is_failed);
                    count += 1;
                }
            }
            count
        };
        assert_eq!(examined(false, 1), 1);
        // After 2 + 4 + 8 times, each pause is the longest.
        assert_eq!(examined(false, 2 + 4 + 8), 3);
        assert_eq!(examined(false, 800), 100);
        // The pauses shrink to a quarter: 7, 1 and none.
        assert_eq!(examined(true, 8 + 2 + 96), 98);
    }

    /// Below the limit of 10, a body that lies at 3..5 leaves rooms of 3 and 5.
    #[rstest::rstest]
    #[case::both_full(&[3, 5], true)]
    #[case::fits_into_neither(&[6], false)]
    #[case::too_large_for_the_only_room(&[4, 4], false)]
    #[case::too_few_for_the_lower_room(&[4, 2, 2], false)]
    #[case::sums_to_both(&[2, 2, 2, 1, 1], true)]
    #[case::wastes_the_slack(&[4, 2], true)]
    #[case::no_even_sum_fills_either(&[2, 2, 2, 2], false)]
    fn items_must_fill_the_rooms_beside_a_fixed_body(#[case] sizes: &[u64], #[case] fits: bool) {
        let mut bodies: Vec<Outline> = sizes.iter().map(|&size| body(0..1, size, None)).collect();
        bodies.push(body(0..1, 2, Some(3)));
        let inst = Instance::of_outlines(&bodies, 1, false);
        assert_eq!(inst.unit, 1);
        let mut sky = Skyline::new(&inst, 0);
        sky.reset(10);
        let unfit = Rooms::new(&sky, 10).unwrap().first_unfit(&sky, 0..inst.sections);
        assert_eq!(unfit, (!fits).then_some(0));
    }

    /// The room of 3 in the first step is closed to an item that meets another body in the second.
    #[rstest::rstest]
    #[case(0..1, true)]
    #[case(0..2, false)]
    fn an_item_fits_into_a_room_if_all_its_steps_are_free(
        #[case] steps: Range<Step>,
        #[case] fits: bool,
    ) {
        let fixed = [body(0..1, 2, Some(3)), body(1..2, 3, Some(1))];
        let items = [body(0..1, 5, None), body(steps, 3, None)];
        let inst = Instance::of_outlines(&[&fixed[..], &items].concat(), 1, false);
        let mut sky = Skyline::new(&inst, 0);
        sky.reset(10);
        let unfit = Rooms::new(&sky, 10).unwrap().first_unfit(&sky, 0..inst.sections);
        assert_eq!(unfit, (!fits).then_some(0));
    }
}
