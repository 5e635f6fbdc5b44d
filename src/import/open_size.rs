//! Sizes that a model leaves open.

/// A size that is known only at run time. The caller may state it, or an upper bound of it:
/// [`ImportOptions::shape`](crate::import::ImportOptions::shape) takes a shape with it, and
/// [`ImportOptions::dims`](crate::import::ImportOptions::dims) a size by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenSize {
    /// The tensor.
    pub tensor: String,
    /// The origin of the tensor.
    pub maker: String,
    /// The index of the dimension, from 0; `None` if the number of dimensions is unknown.
    pub axis: Option<usize>,
    /// The name that the model gives the size.
    pub dim: Option<String>,
    /// The known part of the shape.
    pub shape: Option<Vec<Option<u64>>>,
    /// The reason why it is not known.
    pub reason: String,
    /// The inputs of the model whose value decides which branch makes the tensor, and so its shape.
    pub deciding: Vec<String>,
}
