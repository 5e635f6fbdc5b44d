//! Facts about the list that a sequence was built from, which the sequence itself no longer shows.

use super::OpSequence;

/// Facts about the building of a sequence. They are no part of it: sequences that differ only here are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// The weights that nobody declared, by name.
    pub(super) undeclared: Vec<Box<str>>,
    /// Whether the operators were given in another order.
    pub(super) is_sorted: bool,
}

impl PartialEq for Given {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Given {}

impl OpSequence {
    /// The names that operators read, but that no operator produces and nobody declared: weights, or an error in
    /// writing. Names of tensors around a body are declared there.
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
}
