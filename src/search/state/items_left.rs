//! The items left, by the section in which they begin: lists that an item leaves and comes back to in constant time.

use crate::search::state::instance::Item;

/// No item.
const NONE: u32 = u32::MAX;

pub struct ItemsLeft {
    /// By section: the first item left that begins there; by end, then size.
    head: Vec<u32>,
    /// By item: the next that begins in the same section.
    next: Vec<u32>,
    /// By item: the one before it.
    prev: Vec<u32>,
}

impl ItemsLeft {
    /// Creates the lists of all items.
    pub fn new(items: &[Item], sections: usize) -> Self {
        let none = || vec![NONE; items.len()];
        let mut left = Self { head: vec![NONE; sections], next: none(), prev: none() };
        for (id, item) in (0..NONE).zip(items).rev() {
            left.next[id as usize] = left.head[item.first as usize];
            left.put_back(id, item.first);
        }
        left
    }

    /// Takes an item that begins in section `first` out of its list; its links keep its place.
    pub fn take_out(&mut self, id: u32, first: u32) {
        self.join_around(id, first, (self.prev[id as usize], self.next[id as usize]));
    }

    /// Puts back the item that was taken out last, which begins in section `first`.
    pub fn put_back(&mut self, id: u32, first: u32) {
        self.join_around(id, first, (id, id));
    }

    /// Changes what the item after this one is preceded by, and what the item before it is followed by.
    fn join_around(&mut self, id: u32, first: u32, (before, after): (u32, u32)) {
        let (prev, next) = (self.prev[id as usize], self.next[id as usize]);
        match prev {
            NONE => self.head[first as usize] = after,
            prev => self.next[prev as usize] = after,
        }
        if next != NONE {
            self.prev[next as usize] = before;
        }
    }

    /// The items left that begin in a section, by end, then size.
    pub fn from(&self, x: usize) -> ItemsFrom<'_> {
        ItemsFrom { next: &self.next, at: self.head[x] }
    }
}

/// The items left that begin in one section.
pub struct ItemsFrom<'a> {
    next: &'a [u32],
    at: u32,
}

impl Iterator for ItemsFrom<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let id = self.at;
        if id == NONE {
            return None;
        }
        self.at = self.next[id as usize];
        Some(id)
    }
}
