//! References from operators to those that they must run after.

/// A reference to an operator that another one must run after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OperatorRef {
    /// Its name, which no other operator may have.
    Name(Box<str>),
    /// Its index in the list of operators as given, from 0.
    Place(usize),
}
