//! The scratch memory of the operators of a model, as the caller states it.

use std::collections::BTreeMap;

use crate::{Bytes, import::ImportError};

/// The scratch memory of operators in bytes, by their names or types.
pub(super) type Workspaces = BTreeMap<Box<str>, Bytes>;

/// Reads the lines of [`ImportOptions::read_workspaces`](crate::import::ImportOptions::read_workspaces).
pub(super) fn read(text: &str) -> Result<Workspaces, ImportError> {
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
            ImportError::Entry { line, reason }
        };
        let (operator, bytes) = stated.rsplit_once([' ', '\t']).ok_or_else(malformed)?;
        let bytes = bytes.parse().map_err(|_| malformed())?;
        if operators.insert(operator.trim().into(), bytes).is_some() {
            let operator = operator.trim();
            let reason = format!("'{operator}' has a line already; keep one of the two");
            return Err(ImportError::Entry { line, reason });
        }
    }
    Ok(operators)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::read;

    #[test]
    fn names_may_have_spaces_and_signs() {
        let text = "# measured\n\nmy conv 8\r\n  a#1/b:0\t16\t# here\n";
        let expected = [("my conv", 8), ("a#1/b:0", 16)].map(|(name, bytes)| (name.into(), bytes));
        assert_eq!(read(text).unwrap(), expected.into());
    }

    #[rstest]
    #[case("Conv", "line 1: 'Conv' is not an operator with the bytes")]
    #[case("\nConv 1KiB", "line 2: 'Conv 1KiB' is not an operator with the bytes")]
    #[case("Conv -1", "line 1: 'Conv -1' is not an operator with the bytes")]
    #[case("Conv 1\nConv 2", "line 2: 'Conv' has a line already")]
    fn a_malformed_line_is_an_error(#[case] text: &str, #[case] message: &str) {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
