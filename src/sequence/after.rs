//! References from operators to those that they must run after.

/// A reference to an operator that another one must run after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorRef {
    /// Its name, which no other operator may have.
    Name(Box<str>),
    /// Its index in the list of operators as given, from 0.
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
