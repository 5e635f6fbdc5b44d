//! Operators of ONNX itself; those that `com.microsoft` has as well are here, too.

use crate::import::onnx::ops::{
    arithmetic::{
        ABS, ADD, AND, CEIL, DIV, EQUAL, FLOOR, GREATER, GREATER_OR_EQUAL, LESS, LESS_OR_EQUAL,
        MAX, MIN, MUL, NEG, NOT, OR, POW, RECIPROCAL, ROUND, SIGN, SQRT, SUB, XOR,
    },
    channels,
    checks::{
        attention, choices, elements, layouts, models as layers, products, signals,
        windows as slides,
    },
    fold::{self, Fold},
    images, layout, limits, lists, models,
    row::{Body, Kernel, Operands, Row, Size, Unless, View},
    symbolic,
    table::{
        DROPOUT_MASK_IS_BOOL, EXCLUSIVE, MAKES, MOVES, READS_AGAIN, RESIZES, SPARSE, TEXT, VIEW,
        always, compare, global_pool, layer_normalization, list, nary, random, random_like, reduce,
        refused, same, same_twice, unary, unknown, variadic, window,
    },
    types::{BOOL, FIRST, FLOAT, INT32, INT64, STRING, TypeRule, UINT8},
    windows,
};

/// The operators of `ai.onnx`.
pub(super) const TABLE: &[Row] = &[
    // Element by element.
    unary("Abs").fold(Fold::Unary(ABS)),
    unary("Acos"),
    unary("Acosh"),
    unary("Asin"),
    unary("Asinh"),
    unary("Atan"),
    unary("Atanh"),
    unary("BitCast").types(&[TypeRule::Attribute("to", &FIRST)]).view(View::Bits),
    unary("BitwiseNot"),
    unary("Cast")
        .types(&[TypeRule::Attribute("to", &FIRST)])
        .fold(Fold::Elements(fold::cast_all))
        .view(View::Whole),
    unary("CastLike")
        .types(&[TypeRule::Input(1)])
        .fold(Fold::Elements(fold::cast_all))
        .view(View::Whole),
    unary("Ceil").fold(Fold::Unary(CEIL)),
    unary("Celu"),
    unary("Clip").checks(elements::limits),
    unary("Cos"),
    unary("Cosh"),
    unary("Elu"),
    unary("Erf"),
    unary("Exp"),
    unary("Floor").fold(Fold::Unary(FLOOR)),
    unary("Gelu").also_microsoft(),
    unary("HardSigmoid"),
    unary("HardSwish"),
    unary("IsInf").types(&[BOOL]),
    unary("IsNaN").types(&[BOOL]),
    unary("LeakyRelu"),
    unary("Log"),
    unary("Mish"),
    unary("Neg").fold(Fold::Unary(NEG)),
    unary("Not").types(&[BOOL]).fold(Fold::Unary(NOT)),
    unary("Reciprocal").fold(Fold::Unary(RECIPROCAL)),
    unary("Relu"),
    unary("Round").fold(Fold::Unary(ROUND)),
    unary("Selu"),
    unary("Shrink"),
    unary("Sigmoid"),
    unary("Sign").fold(Fold::Unary(SIGN)),
    unary("Sin"),
    unary("Sinh"),
    unary("Softplus"),
    unary("Softsign"),
    unary("Sqrt").fold(Fold::Unary(SQRT)),
    unary("Swish"),
    unary("Tan"),
    unary("Tanh"),
    unary("ThresholdedRelu"),
    nary("Add").fold(Fold::Binary(ADD)),
    compare("And").fold(Fold::Binary(AND)),
    nary("BitShift"),
    nary("BitwiseAnd"),
    nary("BitwiseOr"),
    nary("BitwiseXor"),
    nary("Div").fold(Fold::Binary(DIV)),
    compare("Equal").fold(Fold::Binary(EQUAL)),
    compare("Greater").fold(Fold::Binary(GREATER)),
    compare("GreaterOrEqual").fold(Fold::Binary(GREATER_OR_EQUAL)),
    compare("Less").fold(Fold::Binary(LESS)),
    compare("LessOrEqual").fold(Fold::Binary(LESS_OR_EQUAL)),
    variadic("Max").fold(Fold::Binary(MAX)),
    variadic("Mean"),
    variadic("Min").fold(Fold::Binary(MIN)),
    nary("Mod").fold(Fold::Elements(fold::modulo)),
    nary("Mul").fold(Fold::Binary(MUL)),
    compare("Or").fold(Fold::Binary(OR)),
    nary("PRelu").checks(elements::slope),
    nary("Pow").fold(Fold::Binary(POW)),
    nary("Sub").fold(Fold::Binary(SUB)),
    variadic("Sum"),
    Row::new("SwiGLU", layout::broadcast_all)
        .checks(elements::all)
        .never("kernels may compute it in passes that read its inputs again"),
    nary("Where").types(&[TypeRule::Input(1)]).fold(Fold::Elements(fold::choose)),
    compare("Xor").fold(Fold::Binary(XOR)),
    Row::new("QuantizeLinear", same)
        .checks(elements::quantization)
        .types(&[TypeRule::InputOr(2, &TypeRule::Attribute("output_dtype", &UINT8))])
        .never(RESIZES)
        .also_microsoft(),
    Row::new("DequantizeLinear", same)
        .checks(elements::quantization)
        .types(&[TypeRule::Attribute("output_dtype", &TypeRule::Input(1))])
        .never(RESIZES)
        .also_microsoft(),
    Row::new("DynamicQuantizeLinear", symbolic::dynamic_quantize)
        .types(&[UINT8, FLOAT, UINT8])
        .never(RESIZES),
    Row::new("Dropout", same_twice)
        .types(&[FIRST, TypeRule::Since(DROPOUT_MASK_IS_BOOL, &BOOL, &FIRST)])
        .view(View::Passed)
        .random(models::drops)
        .skips_unread(|op| !models::drops(op))
        .never("it also computes a mask"),
    // Layout.
    Row::new("CenterCropPad", images::center_crop_pad)
        .checks(layouts::center_crop_pad)
        .never(RESIZES),
    Row::new("Col2Im", images::column_to_image).checks(slides::column_to_image).never(RESIZES),
    Row::new("Concat", |op| layout::concat_of(op, 0, 1))
        .checks(|op| elements::concat(op, 0, 1))
        .fold(Fold::Elements(fold::concat))
        .gathers()
        .never("it holds copies of its inputs"),
    Row::new("DepthToSpace", symbolic::depth_to_space).checks(layouts::depth_to_space).never(MOVES),
    Row::new("Expand", layout::expand)
        .checks(elements::expand)
        .fold(Fold::Elements(fold::expand))
        .view(View::SameShape)
        .never(RESIZES),
    Row::new("Flatten", layout::flatten)
        .checks(layouts::flatten)
        .fold(Fold::Elements(fold::same))
        .view(View::Whole)
        .never(VIEW),
    Row::new("Identity", same).fold(Fold::Elements(fold::same)).view(View::Whole).never(VIEW),
    Row::new("Pad", symbolic::pad).checks(layouts::pad).never(RESIZES).also_microsoft(),
    Row::new("Reshape", layout::reshape)
        .checks(layouts::reshape)
        .fold(Fold::Elements(fold::same))
        .view(View::Whole)
        .never(VIEW),
    Row::new("Resize", layout::resize).checks(layouts::resize),
    Row::new("ReverseSequence", same).checks(layouts::reverse_sequence).never(MOVES),
    Row::new("Slice", layout::slice)
        .checks(layouts::slice)
        .most(limits::slice)
        .fold(Fold::Elements(fold::slice))
        .view(View::Run)
        .never(RESIZES),
    Row::new("SpaceToDepth", layout::space_to_depth).checks(layouts::space_to_depth).never(MOVES),
    Row::new("Split", layout::split)
        .checks(layouts::split)
        .most(limits::split)
        .fold(Fold::Parts)
        .view(View::Runs)
        .never(RESIZES),
    Row::new("Squeeze", layout::squeeze)
        .checks(layouts::squeeze)
        .fold(Fold::Elements(fold::same))
        .view(View::Whole)
        .never(VIEW),
    Row::new("Tile", symbolic::tile).checks(layouts::tile).never(RESIZES),
    Row::new("Transpose", layout::transpose)
        .checks(layouts::transpose)
        .fold(Fold::Elements(fold::transpose))
        .view(View::KeptOrder)
        .never(MOVES),
    Row::new("Unsqueeze", layout::unsqueeze)
        .checks(layouts::unsqueeze)
        .fold(Fold::Elements(fold::same))
        .view(View::Whole)
        .never(VIEW),
    Row::new("Upsample", layout::resize).checks(layouts::resize),
    // Shapes as values, values as shapes.
    Row::sized("Constant", Size::Stored).never(MAKES),
    Row::new("ConstantOfShape", layout::constant_of_shape)
        .types(&[TypeRule::TensorAttribute("value", &FLOAT)])
        .fold(Fold::Elements(fold::constant_of_shape))
        .never(MAKES),
    Row::new("EyeLike", same)
        .checks(choices::matrix)
        .types(&[TypeRule::Attribute("dtype", &FIRST)])
        .never(MAKES),
    Row::new("Range", layout::range)
        .checks(choices::range)
        .fold(Fold::Elements(fold::range))
        .never(MAKES)
        .also_microsoft(),
    Row::new("Shape", layout::shape).types(&[INT64]).fold(Fold::Elements(fold::shape)).never(MAKES),
    Row::new("Size", layout::scalar)
        .types(&[INT64])
        .fold(Fold::Elements(fold::number_of_elements))
        .never(MAKES),
    window("BlackmanWindow"),
    window("HammingWindow"),
    window("HannWindow"),
    // Random numbers.
    random_like("Bernoulli"),
    Row::new("Multinomial", symbolic::multinomial)
        .checks(choices::matrix)
        .types(&[TypeRule::Attribute("dtype", &INT32)])
        .random(always)
        .never(RESIZES),
    random("RandomNormal"),
    random_like("RandomNormalLike"),
    random("RandomUniform"),
    random_like("RandomUniformLike"),
    // Convolution and pooling.
    Row::new("AffineGrid", images::affine_grid).checks(choices::affine_grid).never(RESIZES),
    Row::new("AveragePool", windows::pool).checks(slides::pool).most(windows::pool_at_most),
    Row::new("CausalConvWithState", models::convolution_with_state)
        .checks(layers::convolution_with_state),
    Row::new("Conv", |op| windows::conv(op, 1)).checks(|op| slides::conv(op, 1, 2)),
    Row::new("ConvInteger", |op| windows::conv(op, 1))
        .checks(|op| slides::conv(op, 1, usize::MAX))
        .types(&[INT32]),
    Row::new("ConvTranspose", windows::conv_transpose).checks(slides::conv_transpose),
    Row::new("DeformConv", |op| windows::conv(op, 1)).checks(slides::deform_conv),
    global_pool("GlobalAveragePool"),
    global_pool("GlobalLpPool"),
    global_pool("GlobalMaxPool"),
    Row::new("GridSample", symbolic::grid_sample).checks(slides::grid_sample).also_microsoft(),
    Row::new("LpPool", windows::pool).checks(slides::pool).most(windows::pool_at_most),
    Row::new("MaxPool", windows::pool)
        .checks(slides::pool)
        .most(windows::pool_at_most)
        .types(&[FIRST, INT64]),
    Row::new("MaxRoiPool", windows::roi).checks(slides::roi_pool),
    Row::new("MaxUnpool", images::max_unpool).checks(slides::unpool).never(RESIZES),
    Row::new("QLinearConv", |op| channels::by_attribute(op, |op| windows::conv(op, 3)))
        .checks(|op| channels::check_by_attribute(op, |op| slides::conv(op, 3, 8)))
        .types(&[TypeRule::Input(7)])
        .also_microsoft(),
    Row::new("RoiAlign", windows::roi).checks(slides::roi_align),
    // Products.
    Row::new("Det", images::determinant).checks(products::determinant),
    Row::new("Einsum", symbolic::einsum).checks(products::einsum),
    Row::new("Gemm", |op| symbolic::gemm(op, 1)).checks(|op| products::gemm(op, 1, 2)),
    Row::new("MatMul", |op| symbolic::matmul(op, 1)).checks(|op| products::matmul(op, 1)),
    Row::new("MatMulInteger", |op| symbolic::matmul(op, 1))
        .checks(|op| products::matmul(op, 1))
        .types(&[INT32]),
    Row::new("QLinearMatMul", |op| symbolic::matmul(op, 3))
        .checks(|op| products::matmul(op, 3))
        .types(&[TypeRule::Input(7)]),
    // Reductions and choices.
    Row::new("ArgMax", symbolic::arg_reduce).checks(choices::arg_reduce).types(&[INT64]),
    Row::new("ArgMin", symbolic::arg_reduce).checks(choices::arg_reduce).types(&[INT64]),
    Row::sized("Compress", Size::Run(unknown))
        .checks(choices::optional_axis)
        .most(limits::compress)
        .never(RESIZES),
    Row::new("CumProd", same).checks(choices::cumulate).never(EXCLUSIVE),
    Row::new("CumSum", same).checks(choices::cumulate).never(EXCLUSIVE),
    Row::new("Gather", symbolic::gather)
        .checks(choices::gather)
        .fold(Fold::Elements(fold::gather))
        .never(MOVES),
    Row::new("GatherElements", symbolic::gather_elements)
        .checks(choices::gather_elements)
        .never(MOVES),
    Row::new("GatherND", symbolic::gather_nd)
        .checks(choices::gather_nd)
        .never(MOVES)
        .also_microsoft(),
    Row::new("Hardmax", same)
        .checks(|op| layouts::axis(op, -1))
        .never("kernels clear the output before they look for the largest"),
    Row::sized("NonMaxSuppression", Size::Run(symbolic::non_max_suppression))
        .checks(choices::non_max_suppression)
        .most(limits::non_max_suppression)
        .types(&[INT64]),
    Row::sized("NonZero", Size::Run(symbolic::non_zero)).most(limits::non_zero).types(&[INT64]),
    Row::new("OneHot", symbolic::one_hot).checks(choices::one_hot).types(&[TypeRule::Input(2)]),
    reduce("ReduceL1"),
    reduce("ReduceL2"),
    reduce("ReduceLogSum"),
    reduce("ReduceLogSumExp"),
    reduce("ReduceMax").fold(Fold::Reduce(MAX)),
    reduce("ReduceMean"),
    reduce("ReduceMin").fold(Fold::Reduce(MIN)),
    reduce("ReduceProd").fold(Fold::Reduce(MUL)),
    reduce("ReduceSum").fold(Fold::Reduce(ADD)),
    reduce("ReduceSumSquare"),
    Row::new("NegativeLogLikelihoodLoss", models::loss).checks(choices::loss),
    Row::new("SoftmaxCrossEntropyLoss", models::loss).checks(choices::loss),
    Row::new("Scatter", same).checks(choices::scatter_elements).never(SPARSE),
    Row::new("ScatterElements", same).checks(choices::scatter_elements).never(SPARSE),
    Row::new("ScatterND", same).checks(choices::scatter_nd).never(SPARSE),
    Row::new("TensorScatter", same).checks(choices::tensor_scatter).never(SPARSE),
    Row::new("TopK", symbolic::top_k)
        .checks(choices::top_k)
        .most(limits::top_k)
        .types(&[FIRST, INT64]),
    Row::new("Trilu", same).checks(choices::trilu).never(READS_AGAIN).also_microsoft(),
    Row::sized("Unique", Size::Run(unknown))
        .checks(choices::optional_axis)
        .most(limits::unique)
        .types(&[FIRST, INT64])
        .also_microsoft(),
    // Signals.
    Row::sized("ImageDecoder", Size::Run(images::decoded)).types(&[UINT8]).never(RESIZES),
    Row::new("MelWeightMatrix", images::mel_weights)
        .types(&[TypeRule::Attribute("output_datatype", &FLOAT)])
        .never(MAKES),
    Row::new("DFT", symbolic::dft).checks(signals::dft),
    Row::new("STFT", symbolic::stft).checks(signals::stft),
    // Normalizations.
    Row::new("BatchNormalization", models::batch_normalization)
        .checks(layers::batch_normalization)
        .types(&[FIRST, TypeRule::Input(3)])
        .operands(Operands {
            kernel: Kernel::Elementwise,
            outputs: &[0],
            inputs: Some(&[0]),
            unless: Some(Unless {
                when: models::trains,
                reason: "in training, it reads its input again for the statistics",
            }),
        }),
    Row::new("GroupNormalization", same).checks(layers::group_normalization).rows(),
    Row::new("InstanceNormalization", same).checks(layers::instance_normalization).rows(),
    Row::new("LRN", same).checks(layers::local_response_normalization),
    layer_normalization("LayerNormalization"),
    Row::new("LogSoftmax", same).checks(|op| layouts::axis(op, -1)).rows(),
    Row::new("LpNormalization", same).checks(|op| layouts::axis(op, -1)).rows(),
    Row::new("MeanVarianceNormalization", same).rows(),
    Row::new("RMSNormalization", same).checks(layers::layer_normalization).rows(),
    layer_normalization("SimplifiedLayerNormalization"),
    Row::new("Softmax", same).checks(|op| layouts::axis(op, -1)).rows(),
    // Parts of models.
    Row::new("Attention", models::attention).checks(attention::attention),
    Row::new("GRU", |op| models::recurrent(op, 2)).checks(layers::gru),
    Row::new("LSTM", |op| models::recurrent(op, 2)).checks(layers::lstm),
    Row::new("LinearAttention", models::linear_attention)
        .checks(attention::linear_attention)
        .types(&[FIRST, TypeRule::InputOr(3, &FIRST)]),
    Row::new("RNN", |op| models::recurrent(op, 2)).checks(layers::rnn),
    Row::new("RotaryEmbedding", same)
        .checks(attention::rotary_embedding)
        .never("kernels write one element of a pair, then read it for the other")
        .also_microsoft(),
    // Operators that hold graphs.
    Row::sized("If", Size::Body(Body::If))
        .checks(layers::condition)
        .never("its branches make it in fresh memory"),
    Row::sized("Loop", Size::Body(Body::Loop))
        .checks(layers::iterations)
        .never("its state is copied"),
    Row::sized("Scan", Size::Body(Body::Scan)).checks(layers::scan).never("its state is copied"),
    // Text. Strings have no fixed size, so they stay outside the pool.
    Row::new("RegexFullMatch", same).types(&[BOOL]).never(TEXT),
    Row::new("StringConcat", layout::broadcast_all)
        .checks(elements::all)
        .types(&[STRING])
        .never(TEXT),
    Row::sized("StringNormalizer", Size::Run(unknown)).types(&[STRING]).never(TEXT),
    Row::sized("StringSplit", Size::Run(models::split_strings)).types(&[STRING, INT64]).never(TEXT),
    Row::new("TfIdfVectorizer", images::n_grams).types(&[FLOAT]),
    // Sequences, optionals and maps.
    Row::new("ConcatFromSequence", lists::concat)
        .checks(elements::items)
        .types(&[TypeRule::Items])
        .never(RESIZES),
    Row::new("Optional", same).view(View::Whole).never(VIEW),
    Row::new("OptionalGetElement", same).view(View::Whole).never(VIEW),
    Row::new("OptionalHasElement", layout::scalar).types(&[BOOL]).never(MAKES),
    Row::new("SequenceAt", lists::at)
        .most(lists::at_most)
        .types(&[TypeRule::Items])
        .view(View::Element)
        .never(VIEW),
    list("SequenceConstruct", lists::construct),
    list("SequenceEmpty", lists::empty),
    list("SequenceErase", lists::erase),
    list("SequenceInsert", lists::insert),
    Row::new("SequenceLength", layout::scalar)
        .types(&[INT64])
        .fold(Fold::Elements(lists::length))
        .never(MAKES),
    refused("SequenceMap", "a sequence"),
    list("SplitToSequence", lists::split),
];
