//! The rule of each kind of operator that gives the shapes of its outputs.

use super::{
    layout, layout_values, lists,
    node::{Node, Shape, broadcast},
    reduce, windows,
};

/// A rule: the shape of an output, by its place in the list.
pub(super) type Rule = fn(&Node<'_, '_, '_>, usize) -> Shape;

/// The rule of a kind of built-in operator. Without one, nothing but the file states the shapes.
pub(super) fn find(kind: &str) -> Option<Rule> {
    RULES.iter().find(|(kinds, _)| kinds.contains(&kind)).map(|&(_, rule)| rule)
}

/// The first output has the shape of the first input.
#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
fn same(node: &Node, output: usize) -> Shape {
    Ok(node.shape(0).filter(|_| output == 0).map(<[u64]>::to_vec))
}

fn binary(node: &Node, _: usize) -> Shape {
    let (Some(a), Some(b)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    broadcast(a, b).map(Some)
}

/// The condition chooses between two operands, and all three broadcast.
fn select_v2(node: &Node, _: usize) -> Shape {
    let (Some(condition), Some(a), Some(b)) = (node.shape(0), node.shape(1), node.shape(2)) else {
        return Ok(None);
    };
    broadcast(&broadcast(condition, a)?, b).map(Some)
}

/// The condition chooses elements or whole rows of two operands of one shape.
#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
fn select(node: &Node, _: usize) -> Shape {
    Ok(node.shape(1).map(<[u64]>::to_vec))
}

/// The rules, from the sources of TensorFlow Lite's kernels (2026).
const RULES: &[(&[&str], Rule)] = &[
    (
        &[
            "ABS",
            "ADD_N",
            "BUCKETIZE",
            "CAST",
            "CEIL",
            "COMPLEX_ABS",
            "COS",
            "CUMSUM",
            "DENSIFY",
            "DEQUANTIZE",
            "DYNAMIC_UPDATE_SLICE",
            "ELU",
            "EXP",
            "FAKE_QUANT",
            "FLOOR",
            "GELU",
            "HARD_SWISH",
            "IMAG",
            "L2_NORMALIZATION",
            "LEAKY_RELU",
            "LOCAL_RESPONSE_NORMALIZATION",
            "LOG",
            "LOGICAL_NOT",
            "LOGISTIC",
            "LOG_SOFTMAX",
            "MATRIX_SET_DIAG",
            "NEG",
            "QUANTIZE",
            "REAL",
            "RELU",
            "RELU6",
            "RELU_0_TO_1",
            "RELU_N1_TO_1",
            "REVERSE_SEQUENCE",
            "REVERSE_V2",
            "ROUND",
            "RSQRT",
            "SIGN",
            "SIN",
            "SOFTMAX",
            "SQRT",
            "SQUARE",
            "TANH",
            "ZEROS_LIKE",
        ],
        same,
    ),
    (
        &[
            "ADD",
            "ATAN2",
            "BITWISE_XOR",
            "DIV",
            "EQUAL",
            "FLOOR_DIV",
            "FLOOR_MOD",
            "GREATER",
            "GREATER_EQUAL",
            "LESS",
            "LESS_EQUAL",
            "LOGICAL_AND",
            "LOGICAL_OR",
            "MAXIMUM",
            "MINIMUM",
            "MUL",
            "NOT_EQUAL",
            "POW",
            "PRELU",
            "RIGHT_SHIFT",
            "SQUARED_DIFFERENCE",
            "SUB",
        ],
        binary,
    ),
    (&["SELECT"], select),
    (&["SELECT_V2"], select_v2),
    (&["AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"], windows::pool),
    (&["BATCH_MATMUL"], windows::batch_matmul),
    (&["CONV_2D"], windows::convolution),
    (&["CONV_3D"], windows::convolution_3d),
    (&["DEPTHWISE_CONV_2D"], windows::depthwise),
    (&["FULLY_CONNECTED"], windows::fully_connected),
    (&["RFFT2D"], windows::rfft),
    (&["SVDF"], windows::svdf),
    (&["UNIDIRECTIONAL_SEQUENCE_LSTM"], windows::lstm),
    (
        &[
            "CONV_3D_TRANSPOSE",
            "FILL",
            "RANDOM_STANDARD_NORMAL",
            "RANDOM_UNIFORM",
            "TRANSPOSE_CONV",
        ],
        |node, _| node.sizes(0),
    ),
    (&["BROADCAST_TO"], layout_values::broadcast_to),
    (&["SPARSE_TO_DENSE"], |node, _| node.sizes(1)),
    (&["SCATTER_ND"], |node, _| node.sizes(2)),
    (&["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"], layout_values::resize),
    (&["BATCH_TO_SPACE_ND"], layout_values::batch_to_space),
    (&["SPACE_TO_BATCH_ND"], layout_values::space_to_batch),
    (&["MIRROR_PAD", "PAD", "PADV2"], layout_values::pad),
    (&["SLICE"], layout_values::slice),
    (&["STRIDED_SLICE"], layout_values::strided_slice),
    (&["TILE"], layout_values::tile),
    (&["TRANSPOSE"], layout_values::transpose),
    (&["CONCATENATION"], layout::concatenation),
    (&["DEPTH_TO_SPACE"], layout::depth_to_space),
    (&["EXPAND_DIMS"], layout::expand_dims),
    (&["MATRIX_DIAG"], layout::matrix_diag),
    (&["PACK"], layout::pack),
    (&["RESHAPE"], layout::reshape),
    (&["SPACE_TO_DEPTH"], layout::space_to_depth),
    (&["SPLIT"], layout::split),
    (&["SPLIT_V"], layout::split_v),
    (&["SQUEEZE"], layout::squeeze),
    (&["UNPACK"], layout::unpack),
    (&["BROADCAST_ARGS", "RANK", "SHAPE"], lists::of_shapes),
    (&["EMBEDDING_LOOKUP"], lists::embedding_lookup),
    (&["GATHER"], lists::gather),
    (&["GATHER_ND"], lists::gather_nd),
    (&["MULTINOMIAL"], lists::multinomial),
    (&["NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"], lists::non_max_suppression),
    (&["ONE_HOT"], lists::one_hot),
    (&["RANGE"], lists::range),
    (&["TOPK_V2"], lists::top_k),
    (&["UNIQUE"], lists::unique),
    (&["WHERE"], lists::coordinates),
    (&["ARG_MAX", "ARG_MIN"], reduce::arg),
    (
        &["MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"],
        reduce::reduce,
    ),
];

/// Returns whether a rule gives the largest shape of an output, because the kernel finds the number
/// of elements in each run.
pub(super) fn is_bound(kind: &str, output: usize) -> bool {
    matches!((kind, output), ("UNIQUE", 0) | ("WHERE", _))
}

/// Returns whether the rule of a kind gives the shapes of all outputs, not of the first one alone.
pub(super) fn has_several_outputs(kind: &str) -> bool {
    matches!(
        kind,
        "NON_MAX_SUPPRESSION_V4"
            | "NON_MAX_SUPPRESSION_V5"
            | "SPLIT"
            | "SPLIT_V"
            | "TOPK_V2"
            | "UNIQUE"
            | "UNPACK"
    )
}
