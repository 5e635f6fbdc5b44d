//! The names by which operators refer to those that they must run after.

/// An operator that another one names, to run after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorRef {
    /// By its name, which no other operator has.
    Name(Box<str>),
    /// By its place in the list of operators as it is given, from 0.
    Place(usize),
}

impl From<&str> for OperatorRef {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

impl From<String> for OperatorRef {
    fn from(name: String) -> Self {
        Self::Name(name.into())
    }
}

impl From<usize> for OperatorRef {
    fn from(place: usize) -> Self {
        Self::Place(place)
    }
}
