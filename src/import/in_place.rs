//! In-place operation: how a kernel must work so that an output may be written over an input, and
//! the reasons why it may not.

use std::{fmt, str::FromStr};

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

/// The reason why an output of a model's operator may not be written over an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg(any(feature = "onnx", feature = "tflite"))]
#[cfg_attr(not(feature = "onnx"), allow(dead_code, reason = "some are of ONNX models"))]
pub(crate) enum NotInPlace {
    /// Kernels of such operators write before they have read everything they need, for this reason.
    Kernel(&'static str),
    /// The operator is unknown.
    Unknown,
    /// The kernels of such operators need this profile, which the caller does not allow.
    Profile(InPlace),
    /// The caller states that this operator's kernel cannot work in place.
    Named,
    /// No input that could be overwritten has the output's shape and element width and is computed
    /// at run time.
    Shape,
    /// Another input reads the memory of that input in another order.
    Aliased,
    /// It is right for some sizes only of the dimensions that have several.
    Sizes,
}

#[cfg(any(feature = "onnx", feature = "tflite"))]
impl NotInPlace {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Kernel(why) => why,
            Self::Unknown => "memplan does not know how its kernel works",
            Self::Profile(InPlace::Rows) => "its kernel works on rows, which the profile excludes",
            Self::Profile(_) => "the profile writes nothing over an input",
            Self::Named => "the file of kernels says none",
            Self::Shape => "no computed input has its shape and width",
            Self::Aliased => "another input reads the same memory in another order",
            Self::Sizes => "it is right for some of the sizes only",
        }
    }
}
