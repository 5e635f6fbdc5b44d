//! The same problem with pinned items, for bodies that cannot move.

use crate::search::state::instance::{Instance, Item, Part, begins_fuller};

/// The same problem with pinned items in the place of fixed rectangles.
#[derive(Clone, Debug)]
pub struct Pinned {
    pub inst: Instance,
    /// By body: its number in the original.
    pub numbers: Vec<u32>,
}

impl Pinned {
    /// The offsets of a packing, by body of the original.
    pub fn original_offsets(&self, packing: &[u64]) -> Vec<u64> {
        let mut offsets = vec![0; packing.len()];
        for (&number, &offset) in self.numbers.iter().zip(packing) {
            offsets[number as usize] = offset;
        }
        offsets
    }
}

impl Instance {
    /// Adds the same problem with pinned items, if bodies cannot move.
    pub fn with_pins(self) -> Self {
        let pinned = self.pinned().map(Box::new);
        Self { pinned, ..self }
    }

    /// The same problem with pinned items in the place of fixed rectangles, if there are any. Its items are then in the
    /// order that they have where nothing is fixed.
    fn pinned(&self) -> Option<Pinned> {
        let items = self.items.iter().zip(0u32..).map(|(&item, body)| (item, body, None));
        let mut items: Vec<(Item, u32, Option<u64>)> = items.collect();
        let (mut staircases, mut others) = (Vec::new(), Vec::new());
        for (staircase, body) in self.staircases.iter().zip((0u32..).skip(items.len())) {
            let fixed_at = self.fixed.binary_search_by_key(&body, |fixed| fixed.body).ok();
            let offset = fixed_at.map(|at| self.fixed[at].offset);
            match staircase.parts[..] {
                [Part { first, end, low: 0, high: size }] if offset.is_some() => {
                    items.push((Item { first, end, size }, body, offset));
                }
                _ => {
                    staircases.push((staircase.clone(), self.roots[body as usize], offset));
                    others.push(body);
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
        items.sort_by_key(|&(item, body, _)| (item, self.roots[body as usize]));
        let pins = items.iter().map(|&(_, _, offset)| offset).collect();
        let numbers = items.iter().map(|&(_, body, _)| body).chain(others).collect();
        let items = items.iter().map(|&(item, body, _)| (item, self.roots[body as usize]));
        let inst = self.with_bodies(items.collect(), staircases, self.sections);
        Some(Pinned { inst: Self { pins, ..inst }, numbers })
    }
}
