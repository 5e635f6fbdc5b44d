//! The kernels of TensorFlow Lite Micro: the operators that it has, and the types that they compute.
//!
//! Measured with one-operator models in the release 0.dev20261023182759 of its package for Python, with its
//! reference kernels: what is here loads and runs. Many kernels of other types load, but fail when they run.

use crate::{
    import::tflite::{element::Element, model::Tensor, ops::Op},
    printable::printable,
};

const F32: &[Element] = &[Element::FLOAT32];
const F32_I8: &[Element] = &[Element::FLOAT32, Element::INT8];
const F32_I8_I16: &[Element] = &[Element::FLOAT32, Element::INT8, Element::INT16];
const F32_I8_I16_I32: &[Element] =
    &[Element::FLOAT32, Element::INT8, Element::INT16, Element::INT32];
const F32_I8_I32: &[Element] = &[Element::FLOAT32, Element::INT8, Element::INT32];
const F32_I8_I32_I64: &[Element] =
    &[Element::FLOAT32, Element::INT8, Element::INT32, Element::INT64];
const MOST: &[Element] =
    &[Element::FLOAT32, Element::INT8, Element::INT16, Element::INT32, Element::INT64];
const MAX_AND_BOOL: &[Element] = &[
    Element::FLOAT32,
    Element::INT8,
    Element::INT16,
    Element::INT32,
    Element::INT64,
    Element::BOOL,
];
const BOOL: &[Element] = &[Element::BOOL];

/// The types of a kernel's operands.
enum Types {
    /// All types.
    Any,
    /// The types of the input at a place.
    Of(usize, &'static [Element]),
    /// The input at a place, weights at another, in these pairs of types.
    Weights([usize; 2], &'static [(Element, Element)]),
    /// The types of the first input and the first output.
    To(&'static [(&'static [Element], &'static [Element])]),
}

use Types::{Any, Of, To, Weights};

/// The pairs of types for a convolution.
const CONVOLUTION: &[(Element, Element)] = &[
    (Element::FLOAT32, Element::FLOAT32),
    (Element::INT8, Element::INT8),
    (Element::INT8, Element::INT4),
    (Element::INT16, Element::INT8),
];

const TRANSPOSE_CONVOLUTION: &[(Element, Element)] = &[
    (Element::FLOAT32, Element::FLOAT32),
    (Element::INT8, Element::INT8),
    (Element::INT16, Element::INT8),
];

const CAST: &[Element] = &[
    Element::BOOL,
    Element::FLOAT32,
    Element::INT8,
    Element::INT16,
    Element::INT32,
    Element::UINT32,
];

/// The kernels of built-in operators.
const KERNELS: &[(&[&str], Types)] = &[
    (
        &[
            "ASSIGN_VARIABLE",
            "BROADCAST_TO",
            "CALL_ONCE",
            "IF",
            "LOGICAL_AND",
            "LOGICAL_OR",
            "READ_VARIABLE",
            "RESHAPE",
            "SHAPE",
            "SQUEEZE",
            "VAR_HANDLE",
            "WHILE",
        ],
        Any,
    ),
    (
        &[
            "CEIL",
            "COS",
            "EXP",
            "FLOOR",
            "FLOOR_DIV",
            "FLOOR_MOD",
            "L2_POOL_2D",
            "LOG",
            "NEG",
            "ROUND",
            "SIN",
            "SQRT",
            "SQUARE",
        ],
        Of(0, F32),
    ),
    (
        &[
            "ADD_N",
            "ARG_MAX",
            "ARG_MIN",
            "BATCH_TO_SPACE_ND",
            "CUMSUM",
            "DEPTH_TO_SPACE",
            "ELU",
            "GATHER",
            "GATHER_ND",
            "HARD_SWISH",
            "L2_NORMALIZATION",
            "LOG_SOFTMAX",
            "MIRROR_PAD",
            "REDUCE_MAX",
            "REDUCE_MIN",
            "RESIZE_BILINEAR",
            "RSQRT",
            "SPACE_TO_BATCH_ND",
            "SPACE_TO_DEPTH",
            "SVDF",
        ],
        Of(0, F32_I8),
    ),
    (
        &[
            "ABS",
            "AVERAGE_POOL_2D",
            "BATCH_MATMUL",
            "EXPAND_DIMS",
            "LEAKY_RELU",
            "LOGISTIC",
            "MAX_POOL_2D",
            "MEAN",
            "PRELU",
            "RELU",
            "RELU6",
            "RESIZE_NEAREST_NEIGHBOR",
            "SOFTMAX",
            "SUM",
            "TANH",
            "TRANSPOSE",
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
        ],
        Of(0, F32_I8_I16),
    ),
    (
        &[
            "ADD",
            "DYNAMIC_UPDATE_SLICE",
            "MUL",
            "PAD",
            "PADV2",
            "SPLIT_V",
            "SQUARED_DIFFERENCE",
            "SUB",
            "UNPACK",
        ],
        Of(0, F32_I8_I16_I32),
    ),
    (&["SPLIT"], Of(1, F32_I8_I16_I32)),
    (&["SELECT_V2"], Of(1, F32_I8_I16)),
    (&["DIV"], Of(0, F32_I8_I32)),
    (&["FILL"], Of(1, F32_I8_I32)),
    (&["EMBEDDING_LOOKUP"], Of(1, F32_I8)),
    (&["GREATER"], Of(0, MOST)),
    (&["GREATER_EQUAL", "LESS", "LESS_EQUAL"], Of(0, F32_I8_I32_I64)),
    (
        &["EQUAL", "NOT_EQUAL"],
        Of(0, &[Element::FLOAT32, Element::INT8, Element::INT32, Element::INT64, Element::BOOL]),
    ),
    (&["MAXIMUM", "MINIMUM", "PACK"], Of(0, MOST)),
    (&["CONCATENATION"], Of(0, MAX_AND_BOOL)),
    (&["ZEROS_LIKE"], Of(0, F32_I8_I32_I64)),
    (&["BROADCAST_ARGS"], Of(0, &[Element::INT32, Element::INT64])),
    (&["LOGICAL_NOT", "REDUCE_ALL"], Of(0, BOOL)),
    (
        &["SLICE", "STRIDED_SLICE"],
        Of(0, &[Element::FLOAT32, Element::INT8, Element::INT16, Element::INT32, Element::BOOL]),
    ),
    (
        &["REVERSE_V2"],
        Of(
            0,
            &[
                Element::FLOAT32,
                Element::INT8,
                Element::UINT8,
                Element::INT16,
                Element::INT32,
                Element::INT64,
                Element::BOOL,
            ],
        ),
    ),
    (&["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"], Weights([0, 1], CONVOLUTION)),
    (&["TRANSPOSE_CONV"], Weights([2, 1], TRANSPOSE_CONVOLUTION)),
    (&["CAST"], To(&[(CAST, CAST)])),
    (&["DEQUANTIZE"], To(&[(&[Element::INT8, Element::UINT8, Element::INT16], F32)])),
    (
        &["QUANTIZE"],
        To(&[
            (F32, &[Element::INT8, Element::INT16]),
            (&[Element::INT16], &[Element::INT8, Element::INT16, Element::INT32]),
            (&[Element::INT32], &[Element::INT8, Element::INT16]),
            (&[Element::INT8], &[Element::INT8, Element::UINT8, Element::INT16, Element::INT32]),
            (&[Element::UINT8], &[Element::INT8]),
        ]),
    ),
];

/// The inputs that kernels read when the model is loaded, and that must therefore be constants.
const CONSTANTS: &[(&[&str], &[usize])] = &[
    (
        &[
            "BROADCAST_TO",
            "EXPAND_DIMS",
            "PAD",
            "PADV2",
            "RESIZE_BILINEAR",
            "RESIZE_NEAREST_NEIGHBOR",
            "TRANSPOSE",
        ],
        &[1],
    ),
    (&["FILL", "SPLIT"], &[0]),
    (&["SPLIT_V"], &[2]),
    (&["STRIDED_SLICE"], &[1, 2, 3]),
];

/// The operators that are not built in, but part of TensorFlow Lite Micro.
const CUSTOM: &[&str] = &[
    "CIRCULAR_BUFFER",
    "SignalDelay",
    "SignalEnergy",
    "SignalFftAutoScale",
    "SignalFilterBank",
    "SignalFilterBankLog",
    "SignalFilterBankSpectralSubtraction",
    "SignalFilterBankSquareRoot",
    "SignalFramer",
    "SignalIrfft",
    "SignalOverlapAdd",
    "SignalPCAN",
    "SignalRfft",
    "SignalStacker",
    "SignalWindow",
    "TFLM_DECODE",
    "TFLite_Detection_PostProcess",
    "ethos-u",
];

/// The reason why TensorFlow Lite Micro cannot run an operator; `None` if it can.
pub(crate) fn unsupported(op: &Op) -> Option<String> {
    let kind = op.model.kind(op.operator);
    if op.model.is_custom(op.operator) {
        return (!CUSTOM.contains(&kind)).then(|| "a custom operator".to_owned());
    }
    let Some((_, types)) = KERNELS.iter().find(|(kinds, _)| kinds.contains(&kind)) else {
        return Some("no kernel".to_owned());
    };
    let constants = CONSTANTS.iter().find(|(kinds, _)| kinds.contains(&kind));
    for &place in constants.map_or(&[][..], |(_, places)| places) {
        if let Some(input) =
            op.input(place).filter(|input| !input.is_constant && input.bytes != Some(0))
        {
            return Some(format!("'{}' must be a constant", printable(&input.name)));
        }
    }
    let name = |tensor: Option<&Tensor>| tensor.map(|tensor| tensor.element.name());
    let is_one_of = |tensor: Option<&Tensor>, types: &[Element]| {
        tensor.is_none_or(|tensor| types.contains(&tensor.element))
    };
    let words = match types {
        Any => return None,
        Of(place, types) => {
            let input = op.input(*place);
            (!is_one_of(input, types)).then(|| name(input))??
        }
        Weights([input, weights], pairs) => {
            let (input, weights) = (op.input(*input)?, op.input(*weights)?);
            if pairs.contains(&(input.element, weights.element)) {
                return None;
            }
            format!("{} with weights of {}", input.element.name(), weights.element.name())
        }
        To(pairs) => {
            let (input, output) = (op.input(0), op.output(0));
            if pairs.iter().any(|(from, to)| is_one_of(input, from) && is_one_of(output, to)) {
                return None;
            }
            format!("{} to {}", name(input)?, name(output)?)
        }
    };
    Some(format!("no kernel for {words}"))
}
