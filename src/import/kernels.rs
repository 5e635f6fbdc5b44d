//! The in-place abilities of a runtime's kernels: which outputs may be written over an input.
//!
//! An output may take the place of an input only if the kernel reads every element before it
//! overwrites it. That depends on the kernel's code, so the caller must state it: one [`InPlace`]
//! for all operators, and one for each exception.

use std::{collections::BTreeMap, fmt, str::FromStr};

/// The order in which kernels read and write, from the least in-place ability to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InPlace {
    /// A kernel may write before it reads: nothing is written over an input.
    None,
    /// An element-wise kernel reads each element for the last time before it writes the one at the
    /// same place.
    Elementwise,
    /// Also, a kernel of a row-wise operator, such as `Softmax`, reads each row for the last time
    /// before it overwrites the row. A row holds all inputs of an output element.
    #[default]
    Rows,
}

impl InPlace {
    /// All values, from the least to the most.
    pub const ALL: &[Self] = &[Self::None, Self::Elementwise, Self::Rows];

    /// The name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Elementwise => "elementwise",
            Self::Rows => "rows",
        }
    }

    /// A line of help.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::None => "No operators",
            Self::Elementwise => "Element-wise operators, such as Relu and Add",
            Self::Rows => "Also Softmax, normalizations and other row-wise operators",
        }
    }
}

impl fmt::Display for InPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for InPlace {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|known| known.name() == name);
        known.copied().ok_or_else(|| format!("'{name}' is not one of none, elementwise, rows"))
    }
}

/// The in-place abilities of a runtime's kernels.
///
/// ```
/// use memplan::import::{InPlace, Kernels};
///
/// let kernels = Kernels::new(InPlace::Elementwise)
///     .read("Softmax rows  # a pass for the sum, a pass to divide\nGelu none")?;
/// assert_eq!(kernels.profile(), InPlace::Elementwise);
/// assert_eq!(kernels.operators().collect::<Vec<_>>(), [("Gelu", InPlace::None), ("Softmax", InPlace::Rows)]);
/// # Ok::<(), memplan::import::KernelsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernels {
    profile: InPlace,
    /// The exceptions by type, preceded by the domain and a slash for an unknown domain.
    operators: BTreeMap<Box<str>, InPlace>,
}

impl Kernels {
    /// Creates kernels that all follow the profile.
    #[must_use]
    pub fn new(profile: InPlace) -> Self {
        Self { profile, operators: BTreeMap::new() }
    }

    /// Sets the kernel of one operator, overriding the profile. Operators are named by their type,
    /// such as `Softmax`; those outside ONNX's own domain, `ai.onnx.ml` and `com.microsoft` with
    /// their domain, such as `my.domain/Swish`.
    #[must_use]
    pub fn operator(mut self, operator: &str, kernel: InPlace) -> Self {
        let (domain, kind) = operator.rsplit_once('/').unwrap_or(("", operator));
        let known = matches!(domain, "ai.onnx" | "ai.onnx.ml" | "com.microsoft");
        self.operators.insert(if known { kind } else { operator }.into(), kernel);
        self
    }

    /// Adds the operators that a file lists, one per line: `Softmax rows`. Text after a `#` is a
    /// comment.
    ///
    /// # Errors
    ///
    /// If a line is not an operator with its profile, or repeats an operator.
    pub fn read(mut self, text: &str) -> Result<Self, KernelsError> {
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let words = text.split('#').next().unwrap_or("");
            let mut words = words.split_whitespace();
            let (operator, kernel) = match (words.next(), words.next(), words.next()) {
                (None, ..) => continue,
                (Some(operator), Some(kernel), None) => (operator, kernel),
                _ => return Err(KernelsError::Malformed { line, text: text.trim().to_owned() }),
            };
            let kernel = kernel.parse().map_err(|_| KernelsError::UnknownKernel {
                line,
                operator: operator.to_owned(),
                kernel: kernel.to_owned(),
            })?;
            if let Some(&first) = lines.get(operator) {
                return Err(KernelsError::Repeated { line, operator: operator.to_owned(), first });
            }
            #[cfg(feature = "onnx")]
            if !operator.contains('/') && !super::onnx::is_known_operator(operator) {
                return Err(KernelsError::UnknownOperator { line, operator: operator.to_owned() });
            }
            lines.insert(operator, line);
            self = self.operator(operator, kernel);
        }
        Ok(self)
    }

    /// The profile of all operators that are not listed.
    #[must_use]
    pub fn profile(&self) -> InPlace {
        self.profile
    }

    /// The listed operators, sorted, with their profiles.
    pub fn operators(&self) -> impl Iterator<Item = (&str, InPlace)> {
        self.operators.iter().map(|(operator, &kernel)| (&**operator, kernel))
    }

    /// The profile of an operator, if it is listed.
    #[cfg(feature = "onnx")]
    pub(crate) fn named(&self, operator: &str) -> Option<InPlace> {
        self.operators.get(operator).copied()
    }
}

/// The reason why an output of an ONNX operator may not be written over an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NotInPlace {
    /// Kernels of such operators write before they have read everything they need, for this reason.
    Kernel(&'static str),
    /// The operator is unknown.
    Unknown,
    /// The kernels of such operators need this profile, which the caller does not allow.
    Profile(InPlace),
    /// The caller states that this operator's kernel cannot work in place.
    Named,
    /// No input that could be overwritten has the output's shape and width and is computed in the
    /// run.
    Shape,
    /// Another input reads the memory of that input in another order.
    Aliased,
}

impl fmt::Display for NotInPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel(why) => why,
            Self::Unknown => "memplan does not know how its kernel works",
            Self::Profile(InPlace::Rows) => "its kernel works on rows, which the profile excludes",
            Self::Profile(_) => "the profile writes nothing over an input",
            Self::Named => "the file of kernels says none",
            Self::Shape => "no computed input has its shape and width",
            Self::Aliased => "another input reads the same memory in another order",
        })
    }
}

/// A file of kernels that cannot be read. The caller adds the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelsError {
    /// A line is not a pair of words.
    #[error(
        "line {line}: '{text}' is not an operator with its profile; write a line such as 'Softmax rows'"
    )]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// The profile is unknown.
    #[error(
        "line {line}: the kernel of '{operator}' cannot be '{kernel}'; write none, elementwise or rows"
    )]
    UnknownKernel {
        /// The line, from 1.
        line: usize,
        /// The operator.
        operator: String,
        /// The profile found.
        kernel: String,
    },
    /// An operator of a known domain is unknown.
    #[error(
        "line {line}: unknown operator '{operator}'; write an operator of another domain with its domain, such as 'my.domain/{operator}'"
    )]
    UnknownOperator {
        /// The line, from 1.
        line: usize,
        /// The operator.
        operator: String,
    },
    /// An operator is listed twice.
    #[error("line {line}: line {first} already names '{operator}'; keep one of the two")]
    Repeated {
        /// The line, from 1.
        line: usize,
        /// The operator.
        operator: String,
        /// The line that lists it first.
        first: usize,
    },
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{InPlace, Kernels};

    #[test]
    fn a_file_names_an_operator_a_line() {
        let text =
            "# kernels of ours\n\nSoftmax none # twice over\r\n  my.domain/Swish\telementwise\n";
        let kernels = Kernels::new(InPlace::Rows).read(text).unwrap();
        let expected = Kernels::new(InPlace::Rows)
            .operator("Softmax", InPlace::None)
            .operator("my.domain/Swish", InPlace::Elementwise);
        assert_eq!(kernels, expected);
        assert_eq!(Kernels::default().read("").unwrap(), Kernels::new(InPlace::Rows));
    }

    #[rstest]
    #[case(
        "\nSoftmax",
        "line 2: 'Softmax' is not an operator with its profile; write a line such as 'Softmax rows'"
    )]
    #[case("Softmax rows none", "line 1: 'Softmax rows none' is not an operator with its profile")]
    #[case(
        "Softmax row",
        "line 1: the kernel of 'Softmax' cannot be 'row'; write none, elementwise or rows"
    )]
    #[case(
        "Softmax rows\n#\nSoftmax none",
        "line 3: line 1 already names 'Softmax'; keep one of the two"
    )]
    #[case("my.domain/Op rows\nmy.domain/Op rows", "line 2: line 1 already names 'my.domain/Op'")]
    #[cfg_attr(
        feature = "onnx",
        case(
            "Sofmax rows",
            "line 1: unknown operator 'Sofmax'; write an operator of another domain with its domain, such as 'my.domain/Sofmax'"
        )
    )]
    fn a_line_that_makes_no_sense_is_an_error(#[case] text: &str, #[case] message: &str) {
        let error = Kernels::default().read(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
