//! The open states of a search after the same number of operators.

use std::collections::HashMap;

use crate::{Bytes, order::sets::narrow};

/// A downset with the search's data about it.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) set: Vec<u64>,
    pub(super) live: Bytes,
    /// The operators that can be moved next.
    pub(super) ready: Vec<u32>,
}

/// A set of distinct downsets.
#[derive(Default)]
pub(super) struct Layer {
    sets: Vec<u64>,
    /// The keys by which states are compared, if they are not the sets themselves.
    keys: Vec<u64>,
    lives: Vec<Bytes>,
    ready: Vec<u32>,
    /// The end of each state's ready operators.
    ready_ends: Vec<u32>,
    /// The paths by which the states were reached.
    paths: Vec<u32>,
    /// The last state of each hash, and for each state the previous one with the same hash.
    by_hash: HashMap<u64, u32>,
    same_hash: Vec<u32>,
    /// The remaining states after the layer was cut to a width, in order.
    kept: Option<Vec<u32>>,
}

const NONE: u32 = u32::MAX;

impl Layer {
    pub(super) fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.lives.len(), Vec::len)
    }

    /// The states in order.
    pub(super) fn states(&self) -> impl Iterator<Item = usize> + use<> {
        let all = if self.kept.is_none() { 0..self.lives.len() } else { 0..0 };
        let kept = self.kept.clone().unwrap_or_default();
        kept.into_iter().map(|state| state as usize).chain(all)
    }

    fn set(&self, state: usize) -> &[u64] {
        let words = self.sets.len() / self.lives.len();
        &self.sets[state * words..(state + 1) * words]
    }

    fn key(&self, state: usize) -> &[u64] {
        if self.keys.is_empty() {
            return self.set(state);
        }
        let words = self.keys.len() / self.lives.len();
        &self.keys[state * words..(state + 1) * words]
    }

    fn ready(&self, state: usize) -> &[u32] {
        let begin = state.checked_sub(1).map_or(0, |before| self.ready_ends[before]);
        &self.ready[begin as usize..self.ready_ends[state] as usize]
    }

    pub(super) fn path(&self, state: usize) -> u32 {
        self.paths[state]
    }

    /// Copies a state.
    pub(super) fn load(&self, state: usize, place: &mut Place) {
        place.set.clear();
        place.set.extend_from_slice(self.set(state));
        place.live = self.lives[state];
        place.ready.clear();
        place.ready.extend_from_slice(self.ready(state));
    }

    /// Adds a state unless one with the same key, by default its set, is present.
    pub(super) fn insert(
        &mut self,
        place: &Place,
        key: Option<&[u64]>,
        path: impl FnOnce() -> u32,
    ) {
        let sought = key.unwrap_or(&place.set);
        let hash = hash(sought);
        let first = self.by_hash.get(&hash).copied();
        let mut other = first.unwrap_or(NONE);
        while other != NONE {
            if self.key(other as usize) == sought {
                return;
            }
            other = self.same_hash[other as usize];
        }
        self.by_hash.insert(hash, narrow(self.lives.len()));
        self.same_hash.push(first.unwrap_or(NONE));
        self.sets.extend_from_slice(&place.set);
        self.keys.extend_from_slice(key.unwrap_or_default());
        self.lives.push(place.live);
        self.ready.extend_from_slice(&place.ready);
        self.ready_ends.push(narrow(self.ready.len()));
        self.paths.push(path());
    }

    /// Keeps the states with the fewest live bytes; returns whether any was dropped.
    pub(super) fn cut_to(&mut self, width: usize) -> bool {
        if self.lives.len() <= width {
            return false;
        }
        let mut order: Vec<u32> = (0..narrow(self.lives.len())).collect();
        let key = |&state: &u32| (self.lives[state as usize], self.set(state as usize));
        order.select_nth_unstable_by(width, |a, b| key(a).cmp(&key(b)));
        order.truncate(width);
        order.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        self.kept = Some(order);
        true
    }
}

fn hash(set: &[u64]) -> u64 {
    set.iter().fold(0, |hash: u64, &word| {
        (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
