//! ONNX Runtime's memory pattern: buffers that are passed on, then the best gap in order of time.
//!
//! **Idea.** In two passes over the operators. `reuse` gives each output a buffer: that of the input it is a view
//! of; that of an input which it may be written over and that nothing else reads any more; the free buffer of the
//! same shape and element width that was freed last; or a new one. `pattern` then places each new buffer in the
//! smallest gap between the live ones that holds it, or behind the last. A buffer that is used again stays alive in
//! between.
//!
//! **Cost.** O(n k) for n tensors and k free or live buffers.
//!
//! **When.** It shows the block that ONNX Runtime allocates for a run once it has seen one with the same shapes. The
//! sequence must have the order, the views and the requests of that runtime:
//! [`ImportOptions::onnxruntime`](crate::import::ImportOptions::onnxruntime).
//!
//! **Source.** ONNX Runtime, `allocation_planner`, `mem_pattern_planner` and `execution_frame` (2018 to 2025). Graph
//! inputs, weights and graph outputs lie outside the pattern; scratch memory of kernels, and bodies of control flow,
//! are not in it. The original compares shapes with named sizes by name.

mod pattern;
mod reuse;

use crate::{
    Bytes, OpSequence,
    sequence::{Origin, TensorId},
};
use reuse::Buffer;

/// The unit of the sizes in a pattern, in bytes.
pub const ALIGNMENT: Bytes = 256;

/// The memory pattern of ONNX Runtime for an operator sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPattern {
    /// The offset of each tensor in bytes, by its id; `None` if it lies outside the pattern.
    pub offsets: Vec<Option<Bytes>>,
    /// The size of the pattern in bytes.
    pub size: Bytes,
    /// The sum of the sizes of the graph outputs in bytes, which the runtime allocates one by one.
    pub outputs: Bytes,
    /// True if operators run bodies, whose tensors are not in these figures.
    pub has_bodies: bool,
}

impl MemoryPattern {
    /// Computes the pattern of a sequence. Tensors without a [type](crate::sequence::Tensor::dtype) count as of the same
    /// shape if their sizes in bytes are the same.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, baselines::onnxruntime::MemoryPattern};
    ///
    /// let sequence = OpSequence::builder()
    ///     .input("x", 1000)
    ///     .operator(Operator::new("a").inputs(["x"]).output(Output::new("a", 1000)))
    ///     .operator(Operator::new("b").inputs(["a"]).output(Output::new("b", 600)))
    ///     .operator(Operator::new("c").inputs(["b"]).output(Output::new("c", 1000)))
    ///     .operator(Operator::new("y").inputs(["c"]).output(Output::new("y", 8)))
    ///     .output("y")
    ///     .build()?;
    /// let pattern = MemoryPattern::of(&sequence);
    /// // c has the buffer of a, which therefore stays alive beside b.
    /// assert_eq!(pattern.offsets, [None, Some(0), Some(1024), Some(0), None]);
    /// assert_eq!((pattern.size, pattern.outputs), (1792, 8));
    /// # Ok::<(), memplan::SequenceError>(())
    /// ```
    #[must_use]
    pub fn of(sequence: &OpSequence) -> Self {
        let buffers = reuse::buffers(sequence);
        let (of_buffers, size) = pattern::place(sequence, &buffers);
        let offset = |buffer: &Buffer| Some(of_buffers[buffer.owner.index()]? + buffer.start);
        let offsets = buffers.iter().map(offset).collect();
        let is_made =
            |id: &&TensorId| matches!(sequence.tensor(**id).origin, Origin::Output { .. });
        let outputs = sequence.outputs().iter().filter(is_made);
        let outputs = outputs.map(|&id| sequence.tensor(id).size.unwrap_or(0));
        Self {
            offsets,
            size,
            outputs: outputs.fold(0, Bytes::saturating_add),
            has_bodies: sequence.operators().iter().any(|operator| !operator.bodies.is_empty()),
        }
    }

    /// The bytes of the pattern and the outputs together.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.size.saturating_add(self.outputs)
    }
}
