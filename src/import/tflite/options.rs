//! The caller's options: the runtime and the kernels that will run a model.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::{Bytes, import::LineError};

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

/// The options of the reader of TensorFlow Lite models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TfliteOptions {
    /// The runtime. For the interpreter, the kernels, the pointer size and overlaps have no effect.
    pub runtime: Runtime,
    /// The kernels that will run the model.
    pub kernels: KernelLibrary,
    /// The bytes of a pointer where it runs; some kernels keep pointers in scratch memory.
    pub pointer_size: Bytes,
    /// The scratch memory of single operators, which replaces the known needs of the kernels.
    pub scratch: ScratchSizes,
    /// True if outputs may begin below an input and overlap it, as far as the loops of the kernels allow.
    pub overlap: bool,
}

impl Default for TfliteOptions {
    /// TensorFlow Lite Micro with the reference kernels, on a 32-bit processor.
    fn default() -> Self {
        Self {
            runtime: Runtime::default(),
            kernels: KernelLibrary::default(),
            pointer_size: 4,
            scratch: ScratchSizes::default(),
            overlap: false,
        }
    }
}

impl TfliteOptions {
    /// Sets the runtime.
    #[must_use]
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = runtime;
        self
    }

    /// Sets the kernels that will run the model.
    #[must_use]
    pub fn kernels(mut self, kernels: KernelLibrary) -> Self {
        self.kernels = kernels;
        self
    }

    /// Sets the bytes of a pointer.
    #[must_use]
    pub fn pointer_size(mut self, bytes: Bytes) -> Self {
        self.pointer_size = bytes;
        self
    }

    /// Lets outputs begin below an input and overlap it, as far as the loops of the kernels allow. A plan
    /// then works with these kernels only.
    #[must_use]
    pub fn overlap(mut self, overlap: bool) -> Self {
        self.overlap = overlap;
        self
    }

    /// Sets the scratch memory of single operators.
    #[must_use]
    pub fn scratch(mut self, scratch: ScratchSizes) -> Self {
        self.scratch = scratch;
        self
    }
}

/// The scratch buffers of single operators, for kernels that memplan does not know.
///
/// ```
/// use memplan::import::tflite::ScratchSizes;
///
/// let scratch = ScratchSizes::read("CONV_2D 2304  # all of them\n4 1024 16\n1:0 0")?;
/// assert_eq!(scratch.of("CONV_2D", 0, 7), Some(&[2304][..]));
/// assert_eq!(scratch.of("SOFTMAX", 0, 4), Some(&[1024, 16][..]));
/// assert_eq!(scratch.of("CONV_2D", 1, 0), Some(&[0][..]));
/// # Ok::<(), memplan::import::LineError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScratchSizes {
    kinds: BTreeMap<Box<str>, Vec<Bytes>>,
    places: BTreeMap<(usize, usize), Vec<Bytes>>,
}

impl ScratchSizes {
    /// Reads a file with a line for each operator: the operator, then the bytes of each of its
    /// scratch buffers. The operator is its place in subgraph 0, such as `4`, its subgraph and place,
    /// such as `1:4`, or a kind, such as `CONV_2D`, for all operators of that kind that have no line of
    /// their own. Text after a `#` is a comment.
    ///
    /// # Errors
    ///
    /// If a line is not an operator with sizes, or repeats an operator.
    pub fn read(text: &str) -> Result<Self, LineError> {
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
                LineError { line, reason }
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
                return Err(LineError { line, reason });
            }
        }
        Ok(sizes)
    }

    /// The scratch buffers of an operator in bytes, if they are stated.
    #[must_use]
    pub fn of(&self, kind: &str, subgraph: usize, place: usize) -> Option<&[Bytes]> {
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
