//! The in-place abilities of a runtime's kernels: which outputs may be written over an input.
//!
//! An output may take the place of an input only if the kernel reads every element before it
//! overwrites it. That depends on the kernel's code, so the caller must state it: one [`InPlace`]
//! for all operators, and one for each exception.

use std::collections::BTreeMap;

use crate::import::{ImportError, InPlace};

/// The in-place abilities of a runtime's kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernels {
    /// The profile of all operators that are not listed.
    pub(super) profile: InPlace,
    /// True if these are the kernels of ONNX Runtime.
    pub(super) is_onnxruntime: bool,
    /// The exceptions by type, preceded by the domain and a slash for an unknown domain.
    operators: BTreeMap<Box<str>, InPlace>,
}

impl Kernels {
    /// Creates kernels that all follow the profile.
    #[cfg(test)]
    fn new(profile: InPlace) -> Self {
        Self { profile, is_onnxruntime: false, operators: BTreeMap::new() }
    }

    /// The kernels of ONNX Runtime on the CPU, as they are registered in release 1.32.
    pub(super) fn onnxruntime() -> Self {
        Self { profile: InPlace::Rows, is_onnxruntime: true, operators: BTreeMap::new() }
    }

    /// Returns true if these are [the kernels of ONNX Runtime](Self::onnxruntime).
    #[cfg(feature = "onnx")]
    pub(crate) fn is_onnxruntime(&self) -> bool {
        self.is_onnxruntime
    }

    /// Sets the kernel of one operator, overriding the profile.
    pub(super) fn operator(mut self, operator: &str, kernel: InPlace) -> Self {
        let (domain, kind) = operator.rsplit_once('/').unwrap_or(("", operator));
        let known = matches!(domain, "ai.onnx" | "ai.onnx.ml" | "com.microsoft");
        self.operators.insert(if known { kind } else { operator }.into(), kernel);
        self
    }

    /// Adds the operators that a file lists, one per line: `Softmax rows`. Text after a `#` is a comment. A line that
    /// is not an operator with its profile, or repeats an operator, is an error.
    pub(super) fn read(mut self, text: &str) -> Result<Self, ImportError> {
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let wrong = |reason: String| Err(ImportError::Entry { line, reason });
            let words = text.split('#').next().unwrap_or("");
            let mut words = words.split_whitespace();
            let (operator, kernel) = match (words.next(), words.next(), words.next()) {
                (None, ..) => continue,
                (Some(operator), Some(kernel), None) => (operator, kernel),
                _ => {
                    return wrong(format!(
                        "'{}' is not an operator with its profile; write a line such as 'Softmax rows'",
                        text.trim()
                    ));
                }
            };
            let Ok(kernel) = kernel.parse() else {
                return wrong(format!(
                    "the kernel of '{operator}' cannot be '{kernel}'; write none, elementwise or rows"
                ));
            };
            if let Some(&first) = lines.get(operator) {
                return wrong(format!(
                    "line {first} already names '{operator}'; keep one of the two"
                ));
            }
            #[cfg(feature = "onnx")]
            if !operator.contains('/') && !crate::import::onnx::ops::is_known(operator) {
                return wrong(format!(
                    "unknown operator '{operator}'; write an operator of another domain with its domain, such as 'my.domain/{operator}'"
                ));
            }
            lines.insert(operator, line);
            self = self.operator(operator, kernel);
        }
        Ok(self)
    }

    /// The profile of all operators that are not listed.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    pub(crate) fn profile(&self) -> InPlace {
        self.profile
    }

    /// The profile of an operator, if it is listed.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    pub(crate) fn named(&self, operator: &str) -> Option<InPlace> {
        self.operators.get(operator).copied()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Kernels;
    use crate::import::InPlace;

    #[test]
    fn a_file_names_one_operator_per_line() {
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
    fn a_malformed_line_is_an_error(#[case] text: &str, #[case] message: &str) {
        let error = Kernels::default().read(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
