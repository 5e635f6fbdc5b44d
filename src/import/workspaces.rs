//! The scratch memory of the operators of a model, as the caller states it.

use std::collections::BTreeMap;

use crate::{Bytes, import::LineError};

/// The scratch memory of operators in bytes, by their names or types.
///
/// ```
/// use memplan::import::Workspaces;
///
/// let workspaces = Workspaces::read("Conv 2304  # all of them\n/layer1/Conv 4096")?;
/// assert_eq!(workspaces.of("/layer1/Conv", "Conv"), 4096);
/// assert_eq!(workspaces.of("/layer2/Conv", "Conv"), 2304);
/// assert_eq!(workspaces.of("relu", "Relu"), 0);
/// # Ok::<(), memplan::import::LineError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workspaces {
    operators: BTreeMap<Box<str>, Bytes>,
}

impl Workspaces {
    /// Reads a file with a line for each operator: its name, or a type for all operators of that type that have no
    /// line of their own, then its scratch memory in bytes. Text from a `#` at the beginning of a word on is a
    /// comment.
    ///
    /// # Errors
    ///
    /// If a line is not an operator with a size, or repeats an operator.
    pub fn read(text: &str) -> Result<Self, LineError> {
        let mut operators = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let stated = if text.starts_with('#') { "" } else { text };
            let stated = stated.split(" #").next().unwrap_or("").split("\t#").next().unwrap_or("");
            let stated = stated.trim();
            if stated.is_empty() {
                continue;
            }
            let malformed = || {
                let reason = format!(
                    "'{}' is not an operator with the bytes of its scratch memory; write a line such as 'Conv 2304'",
                    text.trim()
                );
                LineError { line, reason }
            };
            let (operator, bytes) = stated.rsplit_once([' ', '\t']).ok_or_else(malformed)?;
            let bytes = bytes.parse().map_err(|_| malformed())?;
            if operators.insert(operator.trim().into(), bytes).is_some() {
                let operator = operator.trim();
                let reason = format!("'{operator}' has a line already; keep one of the two");
                return Err(LineError { line, reason });
            }
        }
        Ok(Self { operators })
    }

    /// Sets the scratch memory of an operator, or of all operators of a type.
    #[must_use]
    pub fn operator(mut self, operator: impl Into<Box<str>>, bytes: Bytes) -> Self {
        self.operators.insert(operator.into(), bytes);
        self
    }

    /// The scratch memory of an operator by its name and type, in bytes; 0 if nothing is stated.
    #[must_use]
    pub fn of(&self, name: &str, kind: &str) -> Bytes {
        let stated = self.operators.get(name).or_else(|| self.operators.get(kind));
        stated.copied().unwrap_or(0)
    }

    /// The names and types that have a line.
    #[cfg(feature = "onnx")]
    pub(crate) fn stated(&self) -> impl Iterator<Item = &str> {
        self.operators.keys().map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Workspaces;

    #[test]
    fn names_may_have_spaces_and_signs() {
        let text = "# measured\n\nmy conv 8\r\n  a#1/b:0\t16\t# here\n";
        let expected = Workspaces::default().operator("my conv", 8).operator("a#1/b:0", 16);
        assert_eq!(Workspaces::read(text).unwrap(), expected);
    }

    #[rstest]
    #[case("Conv", "line 1: 'Conv' is not an operator with the bytes")]
    #[case("\nConv 1KiB", "line 2: 'Conv 1KiB' is not an operator with the bytes")]
    #[case("Conv -1", "line 1: 'Conv -1' is not an operator with the bytes")]
    #[case("Conv 1\nConv 2", "line 2: 'Conv' has a line already")]
    fn a_malformed_line_is_an_error(#[case] text: &str, #[case] message: &str) {
        let error = Workspaces::read(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
