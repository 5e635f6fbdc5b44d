//! Operators of ONNX Runtime: what its optimizer makes of a model.

use crate::import::onnx::ops::{
    channels,
    checks::{attention, choices, elements, models as layers, products, windows as slides},
    layout, models,
    row::{Kernel, Operands, Row, Size, View},
    runtime, symbolic,
    table::{MOVES, RESIZES, VIEW, global_pool, nary, same, same_twice, unary},
    types::{FIRST, FLOAT, INT32, TypeRule},
    windows,
};

/// Kernels of a convolution begin with the sum that they are given, and add to it.
const SUM: Operands =
    Operands { kernel: Kernel::Elementwise, outputs: &[0], inputs: Some(&[3]), unless: None };

const fn skip_normalization(name: &'static str) -> Row {
    // The fourth output is the sum of the two.
    Row::new(name, models::skip_layer_normalization)
        .checks(layers::skip_layer_normalization)
        .types(&[FIRST, FLOAT, FLOAT, FIRST])
        .operands(Operands {
            kernel: Kernel::Rows,
            outputs: &[0, 3],
            inputs: Some(&[0, 1]),
            unless: None,
        })
        .microsoft()
}

/// The operators of `com.microsoft` and `com.microsoft.nchwc`.
pub(super) const TABLE: &[Row] = &[
    unary("QuickGelu").never("kernels read their input again to multiply by it").microsoft(),
    nary("BiasGelu").checks(elements::bias).microsoft(),
    nary("FastGelu").checks(elements::bias).microsoft(),
    Row::new("QLinearLeakyRelu", same).elementwise(&[0]).microsoft(),
    Row::new("QLinearSigmoid", same).elementwise(&[0]).microsoft(),
    // Beside each of the two are its scale and its zero point.
    Row::new("QLinearAdd", |op| layout::broadcast_of(op, &[0, 3]))
        .checks(|op| elements::several(op, &[0, 3]))
        .elementwise(&[0, 3])
        .microsoft(),
    Row::new("QLinearMul", |op| layout::broadcast_of(op, &[0, 3]))
        .checks(|op| elements::several(op, &[0, 3]))
        .elementwise(&[0, 3])
        .microsoft(),
    Row::new("FusedConv", |op| windows::conv(op, 1))
        .checks(|op| slides::conv(op, 1, 2))
        .operands(SUM)
        .microsoft(),
    Row::new("DynamicQuantizeMatMul", |op| symbolic::matmul(op, 1))
        .checks(|op| products::matmul(op, 1))
        .types(&[FLOAT])
        .microsoft(),
    Row::new("FusedGemm", |op| symbolic::gemm(op, 1))
        .checks(|op| products::gemm(op, 1, 2))
        .microsoft(),
    Row::new("FusedMatMul", |op| symbolic::matmul(op, 1))
        .checks(|op| products::matmul(op, 1))
        .microsoft(),
    Row::new("MatMulIntegerToFloat", |op| symbolic::matmul(op, 1))
        .checks(|op| products::matmul(op, 1))
        .types(&[FLOAT])
        .microsoft(),
    Row::new("MatMulNBits", symbolic::matmul_n_bits).checks(products::matmul_n_bits).microsoft(),
    Row::new("GroupNorm", same).rows().microsoft(),
    Row::new("QLinearSoftmax", same).rows().microsoft(),
    skip_normalization("SkipLayerNormalization"),
    skip_normalization("SkipSimplifiedLayerNormalization"),
    Row::new("Attention", |op| models::packed_attention(op, 4))
        .checks(attention::packed_attention)
        .microsoft(),
    Row::new("EmbedLayerNormalization", models::embed_layer_normalization)
        .checks(layers::embed_layer_normalization)
        .types(&[TypeRule::Input(2), INT32, TypeRule::Input(2)])
        .microsoft(),
    Row::new("GroupQueryAttention", models::group_query_attention)
        .checks(attention::group_query_attention)
        .most(models::group_query_attention_at_most)
        .types(&[FIRST, TypeRule::InputOr(3, &FIRST), TypeRule::InputOr(4, &FIRST)])
        .microsoft(),
    Row::new("MultiHeadAttention", |op| models::multi_head_attention(op, 6))
        .checks(attention::multi_head_attention)
        .microsoft(),
    // Parts of models that the optimizer fuses.
    unary("ScaledSiLU").microsoft(),
    Row::new("BiasAdd", layout::broadcast_all)
        .checks(elements::all)
        .elementwise(&[0, 2])
        .microsoft(),
    Row::new("BiasSoftmax", same).rows().microsoft(),
    Row::new("BiasSplitGelu", runtime::halves).microsoft(),
    Row::new("CDist", runtime::distances).checks(products::distances).microsoft(),
    Row::new("CropAndResize", windows::crop).microsoft(),
    Row::new("DecoderMaskedMultiHeadAttention", |op| models::multi_head_attention(op, 5))
        .types(&[FIRST, TypeRule::InputOr(5, &FIRST), TypeRule::InputOr(6, &FIRST)])
        .microsoft(),
    Row::new("DecoderMaskedSelfAttention", |op| models::packed_attention(op, 4)).microsoft(),
    Row::new("ExpandDims", runtime::expand_dims).view(View::Whole).never(VIEW).microsoft(),
    Row::new("Inverse", same).checks(products::determinant).microsoft(),
    Row::new("MoE", same).microsoft(),
    Row::new("NGramRepeatBlock", |op| Ok(vec![Some(op.dims(1)?.clone())]))
        .types(&[TypeRule::Input(1)])
        .microsoft(),
    Row::new("PackedAttention", runtime::packed_tokens).microsoft(),
    Row::new("QMoE", same).microsoft(),
    // The second output is the sum of the inputs.
    Row::new("SkipGroupNorm", same_twice).microsoft(),
    Row::new("UnfoldTensor", runtime::unfold).microsoft(),
    // Products.
    Row::new("FusedMatMulActivation", |op| symbolic::matmul(op, 1))
        .checks(|op| products::matmul(op, 1))
        .microsoft(),
    Row::new("GemmFastGelu", |op| symbolic::matmul(op, 1))
        .checks(|op| products::matmul(op, 1))
        .microsoft(),
    Row::new("MatMulBnb4", runtime::matmul_bnb4).microsoft(),
    Row::new("MatMulInteger16", |op| symbolic::matmul(op, 1))
        .checks(|op| products::matmul(op, 1))
        .types(&[INT32])
        .microsoft(),
    Row::new("TransposeMatMul", |op| symbolic::matmul(op, 1))
        .checks(|op| products::matmul(op, 1))
        .microsoft(),
    // Quantized operators.
    Row::new("DynamicQuantizeLSTM", |op| models::recurrent(op, 1))
        .checks(layers::dynamic_quantize_lstm)
        .microsoft(),
    Row::new("GatherBlockQuantized", runtime::gather_quantized)
        .types(&[TypeRule::Input(2)])
        .never(MOVES)
        .microsoft(),
    Row::new("MulInteger", |op| layout::broadcast_of(op, &[0, 2]))
        .checks(|op| elements::several(op, &[0, 2]))
        .types(&[INT32])
        .never(RESIZES)
        .microsoft(),
    Row::new("QAttention", |op| models::packed_attention(op, 8))
        .types(&[TypeRule::Input(3)])
        .microsoft(),
    Row::new("QEmbedLayerNormalization", models::embed_layer_normalization)
        .types(&[TypeRule::Input(8), INT32])
        .microsoft(),
    Row::new("QGemm", |op| symbolic::gemm(op, 3))
        .checks(|op| products::gemm(op, 3, 6))
        .types(&[TypeRule::InputOr(8, &FLOAT)])
        .microsoft(),
    Row::new("QLinearAveragePool", |op| channels::by_attribute(op, windows::pool))
        .checks(|op| channels::check_by_attribute(op, slides::pool))
        .microsoft(),
    // Behind the scale and the zero point of the output, each input is followed by its own.
    Row::new("QLinearConcat", |op| layout::concat_of(op, 2, 3))
        .checks(|op| elements::concat(op, 2, 3))
        .types(&[TypeRule::Input(2)])
        .never("it scales its inputs")
        .microsoft(),
    Row::new("QLinearGlobalAveragePool", |op| channels::by_attribute(op, symbolic::global_pool))
        .checks(|op| channels::check_by_attribute(op, slides::global_pool))
        .microsoft(),
    Row::new("QLinearReduceMean", symbolic::reduce).checks(choices::reduce).microsoft(),
    Row::new("QLinearWhere", |op| layout::broadcast_of(op, &[0, 1, 4]))
        .checks(|op| elements::several(op, &[0, 1, 4]))
        .types(&[TypeRule::Input(1)])
        .elementwise(&[1, 4])
        .microsoft(),
    Row::new("ReduceSumInteger", symbolic::reduce)
        .checks(choices::reduce)
        .types(&[INT32])
        .microsoft(),
    // Channels last.
    Row::new("MaxpoolWithMask", windows::pool).checks(slides::pool).microsoft(),
    Row::new("NhwcFusedConv", |op| channels::last(op, |op| windows::conv(op, 1)))
        .checks(|op| channels::check_last(op, |op| slides::conv(op, 1, 2)))
        .operands(SUM)
        .microsoft(),
    Row::new("NhwcMaxPool", |op| channels::last(op, windows::pool))
        .checks(|op| channels::check_last(op, slides::pool))
        .most(|op| channels::last(op, windows::pool_at_most))
        .microsoft(),
    // Channels in blocks, as wide as a vector of the machine.
    Row::new("AveragePool", windows::pool).checks(slides::pool).nchwc(),
    Row::new("Conv", |op| windows::conv(op, 1)).operands(SUM).nchwc(),
    global_pool("GlobalAveragePool").nchwc(),
    global_pool("GlobalMaxPool").nchwc(),
    Row::new("MaxPool", windows::pool).checks(slides::pool).most(windows::pool_at_most).nchwc(),
    Row::sized("ReorderInput", Size::Run(channels::to_blocks))
        .most(channels::to_blocks_at_most)
        .never(MOVES)
        .nchwc(),
    Row::new("ReorderOutput", channels::from_blocks).never(MOVES).nchwc(),
    Row::new("Upsample", channels::upsample).never(RESIZES).nchwc(),
];
