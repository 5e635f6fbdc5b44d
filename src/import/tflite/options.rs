//! The caller's options: the runtime and the kernels that will run a model.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::{Bytes, import::ImportError};

/// The alignment of all tensors in the arena of TensorFlow Lite Micro, in bytes.
pub const ALIGNMENT: Bytes = 16;

/// The runtime that will run a model. It decides how long tensors live, and which of them may share
/// memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Runtime {
    /// TensorFlow Lite Micro. The memory of the model's inputs is used again after their last reader.
    #[default]
    Micro,
    /// TensorFlow Lite's interpreter, also known as `LiteRT`, without delegates. The model's inputs and
    /// outputs are kept to the end. It cannot be given offsets.
    Interpreter,
}

impl Runtime {
    /// All values.
    pub const ALL: &[Self] = &[Self::Micro, Self::Interpreter];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Micro => "tflite-micro",
            Self::Interpreter => "tflite",
        }
    }

    /// One line of help.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Micro => "TensorFlow Lite Micro, which takes plans in the model's metadata",
            Self::Interpreter => {
                "TensorFlow Lite's interpreter, which keeps inputs and takes no plans"
            }
        }
    }

    /// The alignment of all tensors in its arena, in bytes.
    #[must_use]
    pub const fn alignment(self) -> Bytes {
        match self {
            Self::Micro => ALIGNMENT,
            Self::Interpreter => crate::baselines::tflite::cpu_arena::ALIGNMENT,
        }
    }
}

/// The value of this name.
fn by_name<T: Copy>(name: &str, all: &[T], name_of: fn(T) -> &'static str) -> Result<T, String> {
    let known = all.iter().copied().find(|&known| name_of(known) == name);
    let names: Vec<&str> = all.iter().map(|&known| name_of(known)).collect();
    known.ok_or_else(|| format!("'{name}' is not one of {}", names.join(", ")))
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Runtime {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        by_name(name, Self::ALL, Self::name)
    }
}

/// The kernels that TensorFlow Lite Micro is built with. They decide how much scratch memory an
/// operator takes, and whether it can work in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum KernelLibrary {
    /// TensorFlow Lite Micro's own kernels in C++.
    #[default]
    Reference,
    /// Arm's CMSIS-NN in plain C, as on a Cortex-M0 or M3.
    CmsisNn,
    /// CMSIS-NN for the DSP extension, as on a Cortex-M4, M7 or M33.
    CmsisNnDsp,
    /// CMSIS-NN for the vector extension (MVE), as on a Cortex-M55 or M85.
    CmsisNnMve,
}

impl KernelLibrary {
    /// All values.
    pub const ALL: &[Self] = &[Self::Reference, Self::CmsisNn, Self::CmsisNnDsp, Self::CmsisNnMve];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::CmsisNn => "cmsis-nn",
            Self::CmsisNnDsp => "cmsis-nn-dsp",
            Self::CmsisNnMve => "cmsis-nn-mve",
        }
    }
}

impl fmt::Display for KernelLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KernelLibrary {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        by_name(name, Self::ALL, Self::name)
    }
}

/// The scratch buffers of single operators, for kernels that memplan does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScratchSizes {
    kinds: BTreeMap<Box<str>, Vec<Bytes>>,
    places: BTreeMap<(usize, usize), Vec<Bytes>>,
}

impl ScratchSizes {
    /// Reads the lines of [`ImportOptions::read_scratch`](crate::import::ImportOptions::read_scratch).
    pub(crate) fn read(text: &str) -> Result<Self, ImportError> {
        let mut sizes = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split('#').next().unwrap_or("").split_whitespace();
            let Some(operator) = words.next() else { continue };
            let bytes = words.map(str::parse).collect::<Result<Vec<Bytes>, _>>();
            let bytes = bytes.ok().filter(|bytes| !bytes.is_empty());
            let malformed = || {
                let reason = format!(
                    "'{}' is not an operator with the bytes of its scratch buffers; write a line such as 'CONV_2D 2304' or '4 1024 16'",
                    text.trim()
                );
                ImportError::Entry { line, reason }
            };
            let bytes = bytes.ok_or_else(malformed)?;
            let first = match operator.split_once(':').unwrap_or(("0", operator)) {
                (subgraph, place) if place.starts_with(|first: char| first.is_ascii_digit()) => {
                    let number = |text: &str| text.parse().map_err(|_| malformed());
                    sizes.places.insert((number(subgraph)?, number(place)?), bytes)
                }
                _ => sizes.kinds.insert(operator.into(), bytes),
            };
            if first.is_some() {
                let reason = format!("'{operator}' has a line already; keep one of the two");
                return Err(ImportError::Entry { line, reason });
            }
        }
        Ok(sizes)
    }

    /// The scratch buffers of an operator in bytes, if they are stated.
    pub(crate) fn of(&self, kind: &str, subgraph: usize, place: usize) -> Option<&[Bytes]> {
        self.places.get(&(subgraph, place)).or_else(|| self.kinds.get(kind)).map(Vec::as_slice)
    }

    /// The places that have a line of their own.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.places.keys().copied()
    }

    /// The kinds that have a line.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::ScratchSizes;

    #[test]
    fn places_go_before_kinds() {
        let text = "CONV_2D 2304  # all of them\n4 1024 16\n1:0 0";
        let scratch = ScratchSizes::read(text).unwrap();
        assert_eq!(scratch.of("CONV_2D", 0, 7), Some(&[2304][..]));
        assert_eq!(scratch.of("SOFTMAX", 0, 4), Some(&[1024, 16][..]));
        assert_eq!(scratch.of("CONV_2D", 1, 0), Some(&[0][..]));
    }
}
