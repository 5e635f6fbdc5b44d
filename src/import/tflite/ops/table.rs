//! The table of operators. An operator that is not in it gets new memory for its outputs.

use crate::{
    Bytes,
    import::{
        InPlace,
        tflite::{
            KernelLibrary, TfliteError,
            model::OperatorAt,
            ops::{
                Op, overlap,
                scratch::{self, Sizes},
                views,
            },
        },
    },
};

/// The facts about an operator.
pub(crate) struct Row {
    /// Its name in the schema, or in the file for one that is not built in.
    pub(crate) kind: &'static str,
    pub(crate) memory: Memory,
    scratch: scratch::Rule,
    overlap: overlap::Rule,
}

/// The memory that the outputs of an operator may have.
pub(crate) enum Memory {
    /// In memory of their own, for this reason.
    New(&'static str),
    /// The memory of an input.
    View(views::Rule),
    /// The first output over one of the first inputs, as many as stated, that it matches.
    Over {
        /// The ability that the kernel needs.
        kernel: InPlace,
        inputs: usize,
    },
}

impl Row {
    const fn new(kind: &'static str, why: &'static str) -> Self {
        Self { kind, memory: Memory::New(why), scratch: scratch::none, overlap: overlap::none }
    }

    const fn view(kind: &'static str, rule: views::Rule) -> Self {
        Self { kind, memory: Memory::View(rule), scratch: scratch::none, overlap: overlap::none }
    }

    /// One input, read and written element by element.
    const fn unary(kind: &'static str) -> Self {
        let memory = Memory::Over { kernel: InPlace::Elementwise, inputs: 1 };
        Self { kind, memory, scratch: scratch::none, overlap: overlap::none }
    }

    const fn binary(kind: &'static str) -> Self {
        let memory = Memory::Over { kernel: InPlace::Elementwise, inputs: 2 };
        Self { kind, memory, scratch: scratch::none, overlap: overlap::none }
    }

    const fn rows(kind: &'static str) -> Self {
        let memory = Memory::Over { kernel: InPlace::Rows, inputs: 1 };
        Self { kind, memory, scratch: scratch::none, overlap: overlap::none }
    }

    const fn scratch(mut self, rule: scratch::Rule) -> Self {
        self.scratch = rule;
        self
    }

    const fn overlap(mut self, rule: overlap::Rule) -> Self {
        self.overlap = rule;
        self
    }

    /// The bytes by which the first output may begin below the first input and overlap it.
    pub(crate) fn overlap_of(
        &self,
        op: &Op,
        kernels: KernelLibrary,
    ) -> Result<Option<Bytes>, TfliteError> {
        (self.overlap)(op, kernels)
    }

    /// The scratch buffers of an operator, in the order in which its kernel requests them.
    pub(crate) fn scratch_of(
        &self,
        op: &Op,
        kernels: KernelLibrary,
        pointer_size: u64,
    ) -> Result<Sizes, TfliteError> {
        (self.scratch)(op, scratch::Target { kernels, pointer_size })
    }
}

/// The row of a kind.
pub(crate) fn find(op: &Op) -> Option<&'static Row> {
    let kind = op.model.kind(op.operator);
    let is_custom = op.model.is_custom(op.operator);
    ROWS.iter().find(|row| row.kind == kind && is_custom == CUSTOM.contains(&row.kind))
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind)
    }
}

/// The rows of operators that are not built in.
const CUSTOM: &[&str] = &["SignalRfft"];

const WINDOW: &str = "its kernel reads an input for several outputs";
const MOVES: &str = "its kernel moves elements to other places";
const REDUCES: &str = "its kernel adds up in scratch memory or in the output";
const CALLS: &str = "it runs subgraphs";

/// The facts, measured with one-operator models, except those marked as read from the source.
const ROWS: &[Row] = &[
    Row::view("EXPAND_DIMS", views::whole),
    Row::view("RESHAPE", views::whole),
    Row::view("SLICE", views::slice),
    Row::view("SPLIT", views::split),
    Row::view("SPLIT_V", views::split_v),
    Row::view("SQUEEZE", views::whole),
    Row::view("STRIDED_SLICE", views::strided_slice),
    Row::view("UNPACK", views::unpack),
    Row::unary("ABS"),
    Row::unary("CEIL"),
    Row::unary("COS"),
    Row::unary("ELU"),
    Row::unary("EXP"),
    Row::unary("FLOOR"),
    Row::unary("HARD_SWISH"),
    Row::unary("LEAKY_RELU"),
    Row::unary("LOG"),
    Row::unary("LOGISTIC"),
    Row::unary("NEG"),
    Row::unary("QUANTIZE").overlap(overlap::widened),
    Row::unary("RELU"),
    Row::unary("RELU6"),
    Row::unary("ROUND"),
    Row::unary("RSQRT"),
    Row::unary("SIN"),
    Row::unary("SQRT"),
    Row::unary("SQUARE"),
    Row::unary("TANH"),
    // Read from the source: element by element.
    Row::unary("CAST").overlap(overlap::widened),
    Row::unary("LOGICAL_NOT"),
    Row::unary("PRELU"),
    Row::rows("CUMSUM"),
    Row::rows("L2_NORMALIZATION"),
    Row::rows("LOG_SOFTMAX"),
    Row::rows("SOFTMAX"),
    Row::binary("ADD"),
    Row::binary("DIV"),
    Row::binary("EQUAL"),
    Row::binary("GREATER"),
    Row::binary("GREATER_EQUAL"),
    Row::binary("LESS"),
    Row::binary("LESS_EQUAL"),
    Row::binary("MAXIMUM"),
    Row::binary("MINIMUM"),
    Row::binary("MUL"),
    Row::binary("NOT_EQUAL"),
    Row::binary("SQUARED_DIFFERENCE"),
    Row::binary("SUB"),
    // Read from the source: element by element.
    Row::binary("FLOOR_DIV"),
    Row::binary("FLOOR_MOD"),
    Row::binary("LOGICAL_AND"),
    Row::binary("LOGICAL_OR"),
    Row::new("ADD_N", "its kernel is not tested in place").scratch(scratch::add_n),
    Row::new("AVERAGE_POOL_2D", WINDOW).scratch(scratch::average_pool).overlap(overlap::pool),
    Row::new("BATCH_MATMUL", WINDOW).scratch(scratch::batch_matmul),
    Row::new(
        "CONCATENATION",
        "its inputs lie one after another in it only if they are placed there",
    ),
    Row::new("CONV_2D", WINDOW).scratch(scratch::convolution).overlap(overlap::convolution),
    Row::new("DEPTHWISE_CONV_2D", WINDOW).scratch(scratch::depthwise).overlap(overlap::depthwise),
    Row::new("DEPTH_TO_SPACE", MOVES),
    Row::new("DEQUANTIZE", "its elements are wider than those it reads").overlap(overlap::widened),
    Row::new("FULLY_CONNECTED", WINDOW)
        .scratch(scratch::fully_connected)
        .overlap(overlap::fully_connected),
    Row::new("IF", CALLS),
    Row::new("MAX_POOL_2D", WINDOW).overlap(overlap::pool),
    Row::new("MEAN", REDUCES).scratch(scratch::sum),
    Row::new("MIRROR_PAD", MOVES).scratch(scratch::mirror_pad),
    Row::new("PACK", "its inputs lie one after another in it only if they are placed there"),
    Row::new("PAD", MOVES),
    Row::new("PADV2", MOVES),
    Row::new("REDUCE_ALL", REDUCES).scratch(scratch::reduce),
    Row::new("REDUCE_MAX", REDUCES).scratch(scratch::reduce),
    Row::new("REDUCE_MIN", REDUCES).scratch(scratch::reduce),
    Row::new("RESIZE_BILINEAR", MOVES),
    Row::new("RESIZE_NEAREST_NEIGHBOR", MOVES),
    Row::new("REVERSE_V2", MOVES),
    Row::new("SPACE_TO_DEPTH", MOVES),
    Row::new("SUM", REDUCES).scratch(scratch::sum),
    Row::new("SVDF", WINDOW).scratch(scratch::svdf),
    Row::new("TRANSPOSE", MOVES),
    Row::new("TRANSPOSE_CONV", WINDOW).scratch(scratch::transpose_convolution),
    Row::new("UNIDIRECTIONAL_SEQUENCE_LSTM", WINDOW).scratch(scratch::lstm),
    Row::new("WHILE", CALLS),
    Row::new("SignalRfft", MOVES).scratch(scratch::rfft),
];

/// Returns whether a kernel of a kind that otherwise works in place writes too early.
pub(crate) fn writes_early(op: &Op) -> Result<bool, TfliteError> {
    // An exclusive sum is written before the element at the same place is read.
    Ok(op.model.kind(op.operator) == "CUMSUM" && op.operator.option_byte(0)? != 0)
}

impl OperatorAt {
    /// Its place in messages and in a file of scratch sizes.
    pub(crate) fn written(self) -> String {
        match self.subgraph {
            0 => self.operator.to_string(),
            subgraph => format!("{subgraph}:{}", self.operator),
        }
    }
}
