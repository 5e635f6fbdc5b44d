//! Classes of bodies, whose blocks are alike.

use std::collections::BTreeMap;

use crate::{
    Bytes,
    problem::demands::{AllowedPool, Body},
};

/// Bodies of a class have blocks of the same size, at offsets that all of them allow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class {
    pub(crate) size: Bytes,
    pub(crate) allowed: AllowedPool,
}

impl Class {
    pub(crate) fn of(body: &Body, allowed: AllowedPool) -> Self {
        let step = 1 << body.extent.checked_ilog2().unwrap_or(0).saturating_sub(2);
        Self { size: body.extent.next_multiple_of(step), allowed }
    }
}

/// The class of bodies that are not packed.
pub(crate) const NONE: u32 = u32::MAX;

/// Classes, numbered in the order in which they are found.
pub(crate) struct Classes {
    /// By number.
    pub(crate) all: Vec<Class>,
    numbers: BTreeMap<Class, u32>,
    /// By size: the class that was found last, mostly the only one of the size.
    last: Vec<u32>,
}

impl Classes {
    pub(crate) fn new() -> Self {
        let last = vec![NONE; 4 * Bytes::BITS as usize];
        Self { all: Vec::new(), numbers: BTreeMap::new(), last }
    }

    /// The number of a class; `None` if there are no more numbers.
    pub(crate) fn number(&mut self, class: Class) -> Option<u32> {
        let exponent = class.size.checked_ilog2().unwrap_or(0);
        let quarter = class.size >> exponent.saturating_sub(2) & 3;
        let last = &mut self.last[4 * exponent as usize + quarter as usize];
        if self.all.get(*last as usize) != Some(&class) {
            let next = u32::try_from(self.all.len()).ok().filter(|&next| next != NONE)?;
            *last = *self.numbers.entry(class).or_insert(next);
            if *last == next {
                self.all.push(class);
            }
        }
        Some(*last)
    }
}
