//! Reading files: each format becomes an operator sequence or a problem. Nothing here depends on
//! planning.

#[cfg(feature = "files")]
mod addresses;
#[cfg(feature = "files")]
mod csv;
mod error;
mod in_place;
#[cfg(feature = "files")]
mod json;
mod kernels;
#[cfg(feature = "onnx")]
pub mod onnx;
#[cfg(any(feature = "onnx", feature = "tflite"))]
mod open_size;
#[cfg(feature = "files")]
pub mod recording;
#[cfg(feature = "tflite")]
pub mod tflite;
mod workspaces;

#[cfg(feature = "files")]
pub(crate) use addresses::Addresses;
pub use error::ImportError;
pub use in_place::InPlace;
#[cfg(any(feature = "onnx", feature = "tflite"))]
pub(crate) use in_place::NotInPlace;
pub(crate) use kernels::Kernels;
#[cfg(any(feature = "onnx", feature = "tflite"))]
pub use open_size::OpenSize;

use std::collections::{BTreeMap, BTreeSet};

use crate::sequence::DimRange;
#[cfg(feature = "files")]
use crate::{Input, Problem};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// An ONNX model.
    Onnx,
    /// A TensorFlow Lite model.
    Tflite,
    /// memplan's own JSON: an operator sequence, a problem or a plan.
    Json,
    /// MiniMalloc's CSV: a problem or a plan.
    Csv,
    /// PyTorch's memory snapshot.
    Pickle,
    /// XLA's buffer assignment.
    Xla,
    /// ExecuTorch's program.
    Pte,
}

impl Format {
    /// Returns the format that a file name's extension implies, if any.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "onnx" => Some(Self::Onnx),
            "tflite" => Some(Self::Tflite),
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "pickle" | "pkl" => Some(Self::Pickle),
            "pte" => Some(Self::Pte),
            "txt" if name.contains("buffer-assignment") => Some(Self::Xla),
            _ => None,
        }
    }
}

/// The options of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The sizes of symbolic dimensions, by name: exact for the model's inputs, or a range of sizes that runs
    /// may have; upper limits for sizes that the model finds at run time.
    pub dims: BTreeMap<String, DimRange>,
    /// Size of every dimension that is neither known nor given.
    pub default_dim: Option<u64>,
    /// The shapes of tensors, by name, with `None` for open sizes: exact for an input, the largest
    /// for any other tensor.
    pub shapes: BTreeMap<String, Vec<Option<u64>>>,
    /// The element types of tensors, by name, as ONNX writes them, such as `float`, where the model does not state
    /// them.
    pub types: BTreeMap<String, String>,
    /// The values of tensors that are known before the run, by name: a number, or a short list such as `[1,2]`.
    pub values: BTreeMap<String, String>,
    /// Caches, by the name of the model's input: the tensor that is the cache after the run. It is made in the
    /// memory of the input.
    pub states: BTreeMap<String, String>,
    /// Tensors, by name, that keep their memory to the end, as outputs do.
    pub kept: BTreeSet<String>,
    /// The scratch memory of operators of an ONNX model in bytes, by their names, or by types for all operators of that
    /// type that are not named.
    pub workspaces: BTreeMap<Box<str>, u64>,
    /// The shape to use where a declared shape differs from the one that follows from the inputs;
    /// `None` rejects such a model.
    pub(crate) trust: Option<Trust>,
    /// The outputs of operators, by name, that are copies even if they could be views of an input, as in a plan
    /// that holds for several shapes; see [`copied_views`](crate::verify::copied_views).
    pub copies: BTreeSet<String>,
    /// The in-place abilities of the kernels that will run a model.
    pub(crate) kernels: Kernels,
    /// The device of a recording whose allocations are read, such as `cuda:0`; `None` for the one that needs the most
    /// bytes.
    pub device: Option<String>,
    /// The runtime of a TensorFlow Lite model. For the interpreter, the library, the pointer size and overlaps have no
    /// effect.
    #[cfg(feature = "tflite")]
    pub runtime: tflite::Runtime,
    /// The kernels that will run a TensorFlow Lite model.
    #[cfg(feature = "tflite")]
    pub library: tflite::KernelLibrary,
    /// The bytes of a pointer where a TensorFlow Lite model runs, because some kernels keep pointers in scratch memory;
    /// `None` for 4, as on a 32-bit processor.
    #[cfg(feature = "tflite")]
    pub pointer_size: Option<u64>,
    /// True if outputs of a TensorFlow Lite model may begin below an input and overlap it, as far as the loops of the
    /// kernels allow. A plan then works with these kernels only.
    #[cfg(feature = "tflite")]
    pub overlap: bool,
    /// The scratch memory of single operators, which replaces the known needs of the kernels.
    #[cfg(feature = "tflite")]
    scratch: tflite::ScratchSizes,
}

/// The shape to use where two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The shape that follows from the operator and its inputs.
    Inference,
    /// The shape that the model declares.
    Declared,
}

impl ImportOptions {
    /// Sets the sizes of symbolic dimensions: one size, such as `8`, or all sizes of a range, such as `1..=128`.
    /// The sequence is then planned for the largest shape, and the plan holds for every smaller one.
    #[must_use]
    pub fn dims<N: Into<String>, S: Into<DimRange>>(
        mut self,
        dims: impl IntoIterator<Item = (N, S)>,
    ) -> Self {
        self.dims.extend(dims.into_iter().map(|(name, sizes)| (name.into(), sizes.into())));
        self
    }

    /// Sets the runtime of a TensorFlow Lite model.
    #[cfg(feature = "tflite")]
    #[must_use]
    pub fn runtime(mut self, runtime: tflite::Runtime) -> Self {
        self.runtime = runtime;
        self
    }

    /// Sets the kernels that will run a TensorFlow Lite model.
    #[cfg(feature = "tflite")]
    #[must_use]
    pub fn library(mut self, library: tflite::KernelLibrary) -> Self {
        self.library = library;
        self
    }

    /// Sets the bytes of a pointer where a TensorFlow Lite model runs.
    #[cfg(feature = "tflite")]
    #[must_use]
    pub fn pointer_size(mut self, bytes: u64) -> Self {
        self.pointer_size = Some(bytes);
        self
    }

    /// Lets outputs of a TensorFlow Lite model begin below an input and overlap it.
    #[cfg(feature = "tflite")]
    #[must_use]
    pub fn overlap(mut self, overlap: bool) -> Self {
        self.overlap = overlap;
        self
    }

    /// Reads the scratch memory of single operators of a TensorFlow Lite model from a file with a line for each: the
    /// operator, then the bytes of each of its scratch buffers. The operator is its place in subgraph 0, such as `4`,
    /// its subgraph and place, such as `1:4`, or a kind, such as `CONV_2D`, for all operators of that kind that have no
    /// line of their own. Text after a `#` is a comment.
    ///
    /// ```
    /// use memplan::import::ImportOptions;
    ///
    /// let options = ImportOptions::default().read_scratch("CONV_2D 2304  # all of them\n4 1024 16\n1:0 0")?;
    /// assert!(ImportOptions::default().read_scratch("CONV_2D").is_err());
    /// # Ok::<(), memplan::import::ImportError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a line is not an operator with sizes, or repeats an operator.
    #[cfg(feature = "tflite")]
    pub fn read_scratch(mut self, text: &str) -> Result<Self, ImportError> {
        self.scratch = tflite::ScratchSizes::read(text)?;
        Ok(self)
    }

    /// Sets the in-place abilities of the kernels that will run a model. [`kernel`](Self::kernel) sets the abilities of
    /// one operator.
    #[must_use]
    pub fn inplace(mut self, profile: InPlace) -> Self {
        (self.kernels.profile, self.kernels.is_onnxruntime) = (profile, false);
        self
    }

    /// Sets the in-place abilities of the kernel of one operator. Operators are named by their type, such as `Softmax`;
    /// those outside ONNX's own domain, `ai.onnx.ml` and `com.microsoft` with their domain, such as `my.domain/Swish`.
    #[must_use]
    pub fn kernel(mut self, operator: &str, profile: InPlace) -> Self {
        self.kernels = self.kernels.operator(operator, profile);
        self
    }

    /// Reads the in-place abilities of the kernels of single operators from a file with a line for each, such as
    /// `Softmax rows`. Text after a `#` is a comment.
    ///
    /// ```
    /// use memplan::import::{ImportOptions, InPlace};
    ///
    /// let options = ImportOptions::default().inplace(InPlace::Elementwise);
    /// assert_eq!(
    ///     options.clone().read_kernels("Softmax rows  # a pass for the sum, a pass to divide\nGelu none")?,
    ///     options.kernel("Softmax", InPlace::Rows).kernel("Gelu", InPlace::None)
    /// );
    /// # Ok::<(), memplan::import::ImportError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a line is not an operator with its profile, or repeats an operator.
    pub fn read_kernels(mut self, text: &str) -> Result<Self, ImportError> {
        self.kernels = self.kernels.read(text)?;
        Ok(self)
    }

    /// Reads an ONNX model for the kernels of ONNX Runtime on the CPU, as they are registered in release 1.32.
    ///
    /// The sequence has the order in which that runtime executes the model, only the views that it makes, and only the
    /// outputs over inputs that its kernels allow. As there, outputs of the model have memory of their own, and
    /// concatenations copy. The [memory pattern](crate::baselines::onnxruntime) is computed from such a sequence.
    #[must_use]
    pub fn onnxruntime(mut self) -> Self {
        self.kernels = Kernels::onnxruntime();
        self
    }

    /// Returns true if models are read for [the kernels of ONNX Runtime](Self::onnxruntime).
    #[must_use]
    pub fn is_for_onnxruntime(&self) -> bool {
        self.kernels.is_onnxruntime
    }

    /// Sets the size of every dimension that is neither known nor given.
    #[must_use]
    pub fn default_dim(mut self, size: u64) -> Self {
        self.default_dim = Some(size);
        self
    }

    /// Sets the shape of a tensor, with `None` for open sizes.
    #[must_use]
    pub fn shape(mut self, tensor: impl Into<String>, shape: impl Into<Vec<Option<u64>>>) -> Self {
        self.shapes.insert(tensor.into(), shape.into());
        self
    }

    /// Sets the element type of a tensor, such as `float`, where the model does not state it.
    #[must_use]
    pub fn element_type(mut self, tensor: impl Into<String>, name: impl Into<String>) -> Self {
        self.types.insert(tensor.into(), name.into());
        self
    }

    /// Sets the value of a tensor: a number, such as `16000`, or a short list, such as `[1,2]`.
    #[must_use]
    pub fn value(mut self, tensor: impl Into<String>, value: impl Into<String>) -> Self {
        self.values.insert(tensor.into(), value.into());
        self
    }

    /// Makes a tensor in the memory of an input of the model: a cache and its next state.
    #[must_use]
    pub fn state(mut self, input: impl Into<String>, next: impl Into<String>) -> Self {
        self.states.insert(input.into(), next.into());
        self
    }

    /// Keeps tensors to the end, as if the model returned them.
    #[must_use]
    pub fn keep<N: Into<String>>(mut self, tensors: impl IntoIterator<Item = N>) -> Self {
        self.kept.extend(tensors.into_iter().map(Into::into));
        self
    }

    /// Sets the scratch memory of an operator of an ONNX model, or of all operators of a type.
    #[must_use]
    pub fn workspace(mut self, operator: impl Into<Box<str>>, bytes: u64) -> Self {
        self.workspaces.insert(operator.into(), bytes);
        self
    }

    /// Reads the scratch memory of operators of an ONNX model from a file with a line for each: its name, or a type for
    /// all operators of that type that have no line of their own, then its scratch memory in bytes. Text from a `#` at
    /// the beginning of a word on is a comment.
    ///
    /// ```
    /// use memplan::import::ImportOptions;
    ///
    /// let text = "Conv 2304  # all of them\n/layer1/Conv 4096";
    /// let options = ImportOptions::default().read_workspaces(text)?;
    /// assert_eq!((options.workspaces["Conv"], options.workspaces["/layer1/Conv"]), (2304, 4096));
    /// # Ok::<(), memplan::import::ImportError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a line is not an operator with a size, or repeats an operator.
    pub fn read_workspaces(mut self, text: &str) -> Result<Self, ImportError> {
        self.workspaces = workspaces::read(text)?;
        Ok(self)
    }

    /// Makes outputs copies that could be views of an input.
    #[must_use]
    pub fn copies<N: Into<String>>(mut self, outputs: impl IntoIterator<Item = N>) -> Self {
        self.copies.extend(outputs.into_iter().map(Into::into));
        self
    }

    /// Trusts inference: uses the shape that follows from an operator and its inputs where the model declares another
    /// one. Without this and [`trust_declared`](Self::trust_declared), such a model is an error.
    #[must_use]
    pub fn trust_inference(mut self) -> Self {
        self.trust = Some(Trust::Inference);
        self
    }

    /// Trusts the model: uses the shape that it declares where another one follows from an operator and its inputs.
    #[must_use]
    pub fn trust_declared(mut self) -> Self {
        self.trust = Some(Trust::Declared);
        self
    }
}

/// Reads an operator sequence or a problem.
///
/// # Errors
///
/// If the bytes are not in that format, or the content is invalid; the error names the place.
#[cfg(feature = "files")]
pub fn read_input(
    bytes: &[u8],
    format: Format,
    options: &ImportOptions,
) -> Result<Input, ImportError> {
    match format {
        #[cfg(feature = "onnx")]
        Format::Onnx => Ok(Input::Sequence(onnx::read(bytes, options)?)),
        #[cfg(not(feature = "onnx"))]
        Format::Onnx => {
            let _ = options;
            Err(ImportError::NoOnnx)
        }
        #[cfg(feature = "tflite")]
        Format::Tflite => Ok(Input::Sequence(tflite::read(bytes, options)?)),
        #[cfg(not(feature = "tflite"))]
        Format::Tflite => Err(ImportError::NoTflite),
        Format::Json | Format::Pickle | Format::Xla | Format::Pte
            if recording::is_recording(bytes, format) =>
        {
            let recorded = recording::read(bytes, format, options.device.as_deref())?;
            Ok(Input::Problem(recorded.problem))
        }
        Format::Csv => csv::read_problem(bytes).map(Input::Problem),
        _ => json::read_input(bytes),
    }
}

/// Reads a plan, to be verified against its input. A CSV file has only offsets: that
/// plan has the problem's alignment and padding, and those overwrite links that it keeps.
///
/// # Errors
///
/// If the bytes are not a plan in that format; the error names the place.
#[cfg(feature = "files")]
pub fn read_plan(
    bytes: &[u8],
    format: Format,
    problem: &Problem,
) -> Result<crate::Plan, ImportError> {
    match format {
        Format::Json => read_json_plan(bytes),
        Format::Csv => csv::read_plan(bytes, problem),
        Format::Onnx | Format::Tflite | Format::Pickle | Format::Xla | Format::Pte => {
            Err(ImportError::NotAPlan)
        }
    }
}

/// Reads a plan in memplan's JSON, which needs no problem.
///
/// # Errors
///
/// If the bytes are not a plan; the error names the place.
#[cfg(feature = "files")]
pub fn read_json_plan(bytes: &[u8]) -> Result<crate::Plan, ImportError> {
    json::read_plan(bytes)
}
