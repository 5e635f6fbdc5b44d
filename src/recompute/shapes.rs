//! Costs of the operators of a model, from the shapes of their tensors.

use crate::{
    OpSequence,
    sequence::{OperatorNode, TensorId},
};

/// Kinds of operators that draw random numbers.
const RANDOM: [&str; 7] = [
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
    "Dropout",
];

/// Returns the sequence with costs from shapes: the multiplications and additions, each pair counted as one, of
/// convolutions and matrix products whose shapes are known, and the bytes that all other operators read and
/// write. Operators that draw random numbers must not run twice.
#[must_use]
pub fn with_costs_from_shapes(sequence: &OpSequence) -> OpSequence {
    let of = |operator: &OperatorNode| {
        let bytes = || {
            let tensors = operator.inputs.iter().chain(&operator.outputs);
            let sizes = tensors.map(|&id| sequence.tensor(id).size.unwrap_or(0));
            sizes.fold(0, u64::saturating_add)
        };
        let cost = products(sequence, operator).unwrap_or_else(bytes);
        // Sums of them, with every operator twice, have to stay within 64 bits.
        let cost = cost.min(1 << 40);
        (cost, operator.once || RANDOM.contains(&&*operator.kind))
    };
    let costs: Vec<(u64, bool)> = sequence.operators().iter().map(of).collect();
    sequence.with_costs(&costs)
}

/// The multiplications of a convolution or a matrix product, if the shapes are known.
fn products(sequence: &OpSequence, operator: &OperatorNode) -> Option<u64> {
    let shape = |tensor: Option<&TensorId>| -> Option<&[u64]> {
        Some(&sequence.tensor(*tensor?).elements.as_ref()?.shape)
    };
    let elements =
        |shape: &[u64]| shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size));
    let output = elements(shape(operator.outputs.first())?)?;
    let per_element = match &*operator.kind {
        // The weights have a row for each output channel: its inputs.
        "Conv" => elements(shape(operator.inputs.get(1))?.get(1..)?)?,
        "MatMul" => *shape(operator.inputs.first())?.last()?,
        // The first matrix has as many rows as the output, or as many columns if it is transposed.
        "Gemm" => {
            let rows = *shape(operator.outputs.first())?.first()?;
            elements(shape(operator.inputs.first())?)?.checked_div(rows)?
        }
        _ => return None,
    };
    output.checked_mul(per_element)
}
