//! The same problem from other sides, and with pinned items, for bodies that cannot move.

use std::ops::Range;

use crate::search::{
    Stage,
    state::instance::{Fixed, Instance, Item, Part, Staircase, begins_fuller, mirrored},
};

/// The same problem seen from another side.
#[derive(Clone, Debug)]
pub struct Turned {
    pub inst: Instance,
    /// By body: its number in the original.
    pub numbers: Vec<u32>,
}

impl Instance {
    /// Adds the same problem from other sides, if bodies cannot move: fewer bodies may fit just above, before or after
    /// the fixed ones than on the other side of them. Also adds it with pinned items.
    pub fn with_sides(self) -> Self {
        let has_sides = !self.fixed.is_empty() && self.stages.has(Stage::Sides);
        let turned = if has_sides { self.all_turned() } else { Vec::new() };
        let pinned = self.with_pins().map(Box::new);
        Self { turned, pinned, ..self }
    }

    /// The same problem with pinned items in the place of fixed rectangles, if there are any. Its items are then in the
    /// order that they have where nothing is fixed.
    fn with_pins(&self) -> Option<Turned> {
        let items = self.items.iter().zip(0u32..).map(|(&item, body)| (item, body, None));
        let mut items: Vec<(Item, u32, Option<u64>)> = items.collect();
        let (mut staircases, mut fixed) = (Vec::new(), Vec::new());
        for (staircase, body) in self.staircases.iter().zip((0u32..).skip(items.len())) {
            let fixed_at = self.fixed.binary_search_by_key(&body, |fixed| fixed.body).ok();
            let offset = fixed_at.map(|at| self.fixed[at].offset);
            match staircase.parts[..] {
                [Part { first, end, low: 0, high: size }] if offset.is_some() => {
                    items.push((Item { first, end, size }, body, offset));
                }
                _ => {
                    staircases.push(body);
                    fixed.push(offset);
                }
            }
        }
        if items.len() == self.items.len() {
            return None;
        }
        if staircases.is_empty()
            && begins_fuller(items.iter().map(|(item, ..)| item), self.sections)
        {
            for (item, ..) in &mut items {
                *item = item.mirrored(self.sections);
            }
        }
        items.sort_by_key(|&(i, body, _)| (i.first, i.end, i.size, self.roots[body as usize]));
        let ids = (0u32..).skip(items.len()).zip(fixed);
        let fixed =
            ids.filter_map(|(body, offset)| Some(Fixed { body, offset: offset? })).collect();
        let numbers: Vec<u32> =
            items.iter().map(|&(_, body, _)| body).chain(staircases.iter().copied()).collect();
        let inst = Self {
            pins: items.iter().map(|&(_, _, offset)| offset).collect(),
            items: items.into_iter().map(|(item, ..)| item).collect(),
            staircases: staircases.iter().map(|&body| self.staircase(body).clone()).collect(),
            fixed,
            roots: numbers.iter().map(|&body| self.roots[body as usize]).collect(),
            exact: None,
            turned: Vec::new(),
            pinned: None,
            ..*self
        };
        Some(Turned { inst, numbers })
    }

    /// The same problem from all other sides.
    fn all_turned(&self) -> Vec<Turned> {
        let down = self.upside_down();
        let both = down.as_ref().map(Self::backwards);
        let numbers = (0u32..).take(self.bodies()).collect();
        let down = down.map(|inst| Turned { inst, numbers });
        down.into_iter().chain([self.backwards()]).chain(both).collect()
    }

    /// The same problem upside down, if alignment and bodies allow it.
    fn upside_down(&self) -> Option<Self> {
        // Offsets that are multiples of the alignment would not be so from the limit down.
        let begins_at_0 = |staircase: &Staircase| staircase.parts.iter().any(|part| part.low == 0);
        if self.align > 1 || !self.staircases.iter().all(begins_at_0) {
            return None;
        }
        let mut turned = Self { is_upside_down: true, ..self.clone() };
        for staircase in &mut turned.staircases {
            let top = staircase.top();
            for part in &mut staircase.parts {
                (part.low, part.high) = (top - part.high, top - part.low);
            }
        }
        Some(turned)
    }

    /// The same problem with time reversed.
    fn backwards(&self) -> Turned {
        let mut turned = self.clone();
        let mirror = |item: &Item| item.mirrored(self.sections);
        let mut items: Vec<(Item, u32)> = self.items.iter().map(mirror).zip(0u32..).collect();
        items.sort_by_key(|&(i, number)| (i.first, i.end, i.size, number));
        for staircase in &mut turned.staircases {
            staircase.parts.reverse();
            for part in &mut staircase.parts {
                let Range { start, end } = mirrored(part.first..part.end, self.sections);
                (part.first, part.end) = (start, end);
            }
        }
        let staircases = (0u32..).take(self.bodies()).skip(self.items.len());
        let numbers: Vec<u32> = items.iter().map(|&(_, number)| number).chain(staircases).collect();
        turned.items = items.into_iter().map(|(item, _)| item).collect();
        turned.roots = numbers.iter().map(|&number| self.roots[number as usize]).collect();
        Turned { inst: turned, numbers }
    }

    /// The offset of a body that cannot move, under a limit that is no lower than its top.
    pub fn offset_of(&self, fixed: &Fixed, limit: u64) -> u64 {
        self.turn(fixed.body, fixed.offset, limit)
    }

    /// The offset of a body under a limit, if it lies at `offset` in the original, and vice versa.
    pub fn turn(&self, body: u32, offset: u64, limit: u64) -> u64 {
        if self.is_upside_down { limit.saturating_sub(offset + self.height(body)) } else { offset }
    }
}
