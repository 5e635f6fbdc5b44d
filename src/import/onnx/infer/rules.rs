//! The shapes of an operator's outputs, from what is known of its inputs: one table for all
//! operators.
//!
//! Rules that are formulas of their own, such as convolutions, come from `rten-shape-inference`
//! (see [`super::symbolic`]). It counts in 32 bits, so what multiplies or copies sizes, such as
//! `Reshape`, is done here in 64 bits.

use crate::import::onnx::{
    infer::elementwise,
    infer::layout,
    infer::models,
    infer::symbolic,
    infer::windows,
    read::fact::{Dims, MAX_RANK},
    read::op::{Op, Reason},
};

/// The shape of each output, `None` where it is unknown, for as many outputs as the rule knows.
pub(crate) type Shapes = Result<Vec<Option<Dims>>, Reason>;

type Rule = fn(&Op) -> Shapes;

/// All rules but those of [`elementwise`] operators.
const RULES: &[(&[&str], Rule)] = &[
    (
        &[
            "Bernoulli",
            "CumSum",
            "DequantizeLinear",
            "EyeLike",
            "GroupNorm",
            "GroupNormalization",
            "Hardmax",
            "InstanceNormalization",
            "LRN",
            "LogSoftmax",
            "LpNormalization",
            "MeanVarianceNormalization",
            "QuantizeLinear",
            "RMSNormalization",
            "RandomNormalLike",
            "RandomUniformLike",
            "ReverseSequence",
            "RotaryEmbedding",
            "Scatter",
            "ScatterElements",
            "ScatterND",
            "Softmax",
            "TensorScatter",
            "Trilu",
        ],
        same,
    ),
    (&["QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"], same),
    (&["QLinearAdd", "QLinearMul"], |op| layout::broadcast_two(op, 3)),
    (&["Dropout"], same_twice),
    (&["Compress", "Unique"], |_| Ok(Vec::new())),
    // Layout.
    (&["Concat"], layout::concat),
    (&["Expand"], layout::expand),
    (&["Flatten"], layout::flatten),
    (&["Identity"], same),
    (&["Reshape"], layout::reshape),
    (&["Slice"], layout::slice),
    (&["SpaceToDepth"], layout::space_to_depth),
    (&["Split"], layout::split),
    (&["Squeeze"], layout::squeeze),
    (&["Transpose"], layout::transpose),
    (&["Unsqueeze"], layout::unsqueeze),
    (&["Resize", "Upsample"], layout::resize),
    // Shapes as values, values as shapes.
    (&["ConstantOfShape"], layout::constant_of_shape),
    (&["RandomNormal", "RandomUniform"], layout::shape_attribute),
    (&["Range"], layout::range),
    (&["Shape"], layout::shape),
    (&["Size"], layout::size),
    (&["BlackmanWindow", "HammingWindow", "HannWindow"], layout::window),
    // Convolution and pooling.
    (&["Conv", "ConvInteger", "DeformConv", "FusedConv"], |op| windows::conv(op, 1)),
    (&["QLinearConv"], |op| windows::conv(op, 3)),
    (&["ConvTranspose"], windows::conv_transpose),
    (&["AveragePool", "LpPool", "MaxPool"], windows::pool),
    (&["GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"], symbolic::global_pool),
    (&["MaxRoiPool", "RoiAlign"], windows::roi),
    // Products.
    (&["FusedGemm", "Gemm"], symbolic::gemm),
    (
        &[
            "FusedMatMul",
            "MatMul",
            "MatMulInteger",
            "MatMulIntegerToFloat",
            "DynamicQuantizeMatMul",
        ],
        |op| symbolic::matmul(op, 1),
    ),
    (&["QLinearMatMul"], |op| symbolic::matmul(op, 3)),
    (&["MatMulNBits"], symbolic::matmul_n_bits),
    (&["Einsum"], symbolic::einsum),
    // Reductions and choices.
    (
        &[
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceMax",
            "ReduceMean",
            "ReduceMin",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
        ],
        symbolic::reduce,
    ),
    (&["ArgMax", "ArgMin"], symbolic::arg_reduce),
    (&["Gather"], symbolic::gather),
    (&["GatherElements"], symbolic::gather_elements),
    (&["GatherND"], symbolic::gather_nd),
    (&["OneHot"], symbolic::one_hot),
    (&["Pad"], symbolic::pad),
    (&["Tile"], symbolic::tile),
    (&["TopK"], symbolic::top_k),
    (&["DepthToSpace"], symbolic::depth_to_space),
    (&["NonZero"], symbolic::non_zero),
    (&["NonMaxSuppression"], symbolic::non_max_suppression),
    (&["Multinomial"], symbolic::multinomial),
    (&["GridSample"], symbolic::grid_sample),
    (&["DFT"], symbolic::dft),
    (&["STFT"], symbolic::stft),
    (&["DynamicQuantizeLinear"], symbolic::dynamic_quantize),
    // Parts of models.
    (&["BatchNormalization"], models::batch_normalization),
    (&["LayerNormalization", "SimplifiedLayerNormalization"], models::layer_normalization),
    (
        &["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"],
        models::skip_layer_normalization,
    ),
    (&["EmbedLayerNormalization"], models::embed_layer_normalization),
    (&["GRU", "LSTM", "RNN"], models::recurrent),
    (&["Attention"], models::attention),
    (&["MultiHeadAttention"], models::multi_head_attention),
    (&["GroupQueryAttention"], models::group_query_attention),
];

/// Infers the shapes of an operator's outputs.
pub(crate) fn infer(op: &Op) -> Shapes {
    let kind = op.node.kind();
    if !op.node.is_known() {
        return Err(format!(
            "memplan does not know the operators of '{}' (inline it if it is one of the model's own functions)",
            op.node.domain()
        ));
    }
    let shapes = if elementwise::NARY.contains(&kind) {
        layout::broadcast_all(op)
    } else if elementwise::UNARY.contains(&kind) {
        same(op)
    } else if let Some((_, rule)) = RULES.iter().find(|(kinds, _)| kinds.contains(&kind)) {
        rule(op)
    } else {
        Err(format!("memplan does not know operators of type {kind}"))
    }?;
    if shapes.iter().flatten().any(|dims| dims.len() > MAX_RANK) {
        return Err(format!("it has more than {MAX_RANK} dimensions"));
    }
    Ok(shapes)
}

/// The shape of the first input.
fn same(op: &Op) -> Shapes {
    Ok(vec![Some(op.dims(0)?.clone())])
}

fn same_twice(op: &Op) -> Shapes {
    Ok(vec![Some(op.dims(0)?.clone()); 2])
}
