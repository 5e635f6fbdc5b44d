//! Data about the operator list that a sequence was built from, which the sequence itself no longer contains.

use super::OpSequence;

/// Facts about the building of a sequence. They are no part of it: sequences that differ only here are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// The weights that nobody declared, by name.
    pub(super) undeclared: Vec<Box<str>>,
    /// Whether the operators were given in another order.
    pub(super) is_sorted: bool,
    /// By step, the place of its operator among those given; empty if that is the order of the steps.
    pub(super) order: Vec<usize>,
}

impl PartialEq for Given {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Given {}

impl OpSequence {
    /// The names that operators read although no operator produces them and they were not declared: weights, or
    /// misspelled names. A tensor around a body counts as declared in the body.
    #[must_use]
    pub fn undeclared(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.given.undeclared.iter().map(|name| &**name).collect();
        for body in self.operators.iter().flat_map(|operator| &operator.bodies) {
            let unknown = |name: &&str| !self.ids.contains_key(*name) && !names.contains(name);
            let inner: Vec<&str> = body.undeclared().into_iter().filter(unknown).collect();
            names.extend(inner);
        }
        names
    }

    /// Returns whether the operators, or those of a body, were not given in execution order, and have
    /// been sorted. Steps count in the sorted order.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        let mut bodies = self.operators.iter().flat_map(|operator| &operator.bodies);
        self.given.is_sorted || bodies.any(Self::is_sorted)
    }

    /// By step, the place of its operator among those given, from 0; empty if they were given in
    /// execution order.
    #[must_use]
    pub fn given_order(&self) -> &[usize] {
        &self.given.order
    }

    /// States the places of the operators in a file that lists them in another order.
    pub(crate) fn set_given_order(&mut self, order: Vec<usize>) {
        self.given.is_sorted |= !order.is_empty();
        self.given.order = order;
    }
}
