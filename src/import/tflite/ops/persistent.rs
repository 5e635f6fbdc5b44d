//! The memory that kernels keep in the tail of TensorFlow Lite Micro's arena while the model is loaded.
//!
//! Measured with one-operator models in the release 0.dev20261023182759 of its package for Python, which is for
//! 64 bits, with its reference kernels.

use crate::{
    Bytes,
    import::tflite::{element::Element, ops::Op},
};

/// The memory of an operator in the tail.
pub(crate) struct Persistent {
    /// Its options, parsed: the size and the alignment.
    pub(crate) options: (Bytes, Bytes),
    /// The state that its kernel creates; 0 for none.
    pub(crate) state: Bytes,
    /// The tables that its kernel computes, in the order of the requests.
    pub(crate) tables: Vec<Bytes>,
}

/// The sizes of parsed options, with alignments.
const OPTIONS: &[(&[&str], (Bytes, Bytes))] = &[
    (&["ADD", "CAST", "CONCATENATION", "GATHER", "IF", "PACK", "SUB", "UNPACK", "WHILE"], (8, 4)),
    (
        &[
            "ARG_MAX",
            "ARG_MIN",
            "CALL_ONCE",
            "DEPTH_TO_SPACE",
            "DIV",
            "L2_NORMALIZATION",
            "LEAKY_RELU",
            "MIRROR_PAD",
            "MUL",
            "SHAPE",
            "SOFTMAX",
            "SPACE_TO_DEPTH",
            "SPLIT",
            "SPLIT_V",
        ],
        (4, 4),
    ),
    (&["AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"], (40, 4)),
    (&["CONV_2D", "DEPTHWISE_CONV_2D"], (28, 4)),
    (&["TRANSPOSE_CONV"], (20, 4)),
    (&["FULLY_CONNECTED"], (32, 8)),
    (&["RESHAPE", "SQUEEZE"], (36, 4)),
    (&["STRIDED_SLICE"], (24, 4)),
    (&["UNIDIRECTIONAL_SEQUENCE_LSTM", "VAR_HANDLE"], (16, 8)),
    (&["SVDF"], (12, 4)),
    (&["BATCH_MATMUL"], (3, 1)),
    (&["CUMSUM", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"], (2, 1)),
    (&["MEAN", "REDUCE_ALL", "REDUCE_MAX", "REDUCE_MIN", "SUM"], (1, 1)),
];

/// The sizes of the states of kernels.
const STATES: &[(&[&str], Bytes)] = &[
    (&["SELECT_V2"], 1),
    (&["ASSIGN_VARIABLE", "L2_NORMALIZATION", "SPACE_TO_BATCH_ND", "VAR_HANDLE"], 4),
    (&["CALL_ONCE", "IF", "RELU6", "WHILE"], 8),
    (&["GATHER_ND"], 12),
    (&["LOGISTIC", "TANH"], 16),
    (&["DEPTH_TO_SPACE", "GATHER", "HARD_SWISH", "L2_POOL_2D", "MIRROR_PAD", "SPACE_TO_DEPTH"], 20),
    (&["LEAKY_RELU"], 24),
    (&["ABS", "DIV", "PRELU", "RELU", "RSQRT"], 28),
    (
        &[
            "AVERAGE_POOL_2D",
            "DEQUANTIZE",
            "EQUAL",
            "GREATER",
            "GREATER_EQUAL",
            "LESS",
            "LESS_EQUAL",
            "MAX_POOL_2D",
            "NOT_EQUAL",
            "QUANTIZE",
        ],
        32,
    ),
    (&["MUL", "SVDF"], 36),
    (&["MEAN", "REDUCE_ALL", "REDUCE_MAX", "REDUCE_MIN", "SUM"], 44),
    (&["BATCH_MATMUL"], 40),
    (&["SUB"], 52),
    (&["PAD", "PADV2"], 56),
    (&["ADD"], 60),
    (&["FULLY_CONNECTED"], 72),
    (&["CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "SOFTMAX"], 80),
    (&["STRIDED_SLICE"], 84),
    (&["TRANSPOSE_CONV"], 88),
    (&["SQUARED_DIFFERENCE"], 112),
    (&["ELU"], 256),
    (&["UNIDIRECTIONAL_SEQUENCE_LSTM"], 688),
];

/// The bytes of each of the two tables of the softmax of 16 bits.
const SOFTMAX_TABLE: Bytes = 2 * 513;

/// The memory of an operator; `None` if its kernel is not known.
pub(crate) fn persistent(op: &Op) -> Option<Persistent> {
    if op.model.is_custom(op.operator) {
        return None;
    }
    let kind = op.model.kind(op.operator);
    let options = OPTIONS.iter().find(|(kinds, _)| kinds.contains(&kind));
    let state = STATES.iter().find(|(kinds, _)| kinds.contains(&kind));
    let element = op.input(0).map(|input| input.element);
    let state = match (kind, element) {
        ("ADD_N" | "LOG_SOFTMAX", Some(Element::INT8)) => 40,
        ("CUMSUM", Some(Element::INT8)) => 36,
        _ => state.map_or(0, |&(_, size)| size),
    };
    let options = options.map_or((0, 1), |&(_, options)| options);
    Some(Persistent { options, state, tables: tables(op, kind)? })
}

fn tables(op: &Op, kind: &str) -> Option<Vec<Bytes>> {
    let per_channel = |channels: u64| vec![channels.saturating_mul(4); 2];
    Some(match kind {
        "CONV_2D" | "DEPTHWISE_CONV_2D" | "TRANSPOSE_CONV" => {
            per_channel(*op.output(0)?.shape.last()?)
        }
        "FULLY_CONNECTED" => {
            let weights = op.input(1)?;
            let is_float = weights.element == Element::FLOAT32;
            if weights.scales > 1 && !is_float {
                per_channel(weights.scales as u64)
            } else {
                Vec::new()
            }
        }
        "SOFTMAX" if op.input(0)?.element == Element::INT16 => vec![SOFTMAX_TABLE; 2],
        "EMBEDDING_LOOKUP" => vec![4, 24],
        "BATCH_MATMUL" => {
            // A matrix is transposed if it is not stored as the kernel reads it.
            let is_set = |slot| op.operator.option_byte(slot).ok().map(|byte| byte != 0);
            let turned = [(0, is_set(0)?), (1, !is_set(1)?)];
            let mut tables = vec![8];
            if op.input(0)?.element != Element::FLOAT32 {
                tables.push(28);
            }
            for (input, _) in turned.into_iter().filter(|&(_, is_turned)| is_turned) {
                let matrix = op.input(input)?;
                tables.extend([24, 4 + 4 * matrix.shape.len() as u64, matrix.bytes?]);
            }
            tables
        }
        _ => Vec::new(),
    })
}
