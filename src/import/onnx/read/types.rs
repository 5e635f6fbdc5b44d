//! Element types: their widths, and which type an operator's outputs have.

use rten_onnx::onnx::DataType;

use crate::{
    Bytes,
    import::onnx::{read::fact::Fact, read::op::Op},
};

/// Bits per element. Strings have none.
const BITS: &[(DataType, u64)] = &[
    (DataType::FLOAT, 32),
    (DataType::UINT8, 8),
    (DataType::INT8, 8),
    (DataType::UINT16, 16),
    (DataType::INT16, 16),
    (DataType::INT32, 32),
    (DataType::INT64, 64),
    (DataType::BOOL, 8),
    (DataType::FLOAT16, 16),
    (DataType::DOUBLE, 64),
    (DataType::UINT32, 32),
    (DataType::UINT64, 64),
    (DataType::COMPLEX64, 64),
    (DataType::COMPLEX128, 128),
    (DataType::BFLOAT16, 16),
    (DataType::FLOAT8E4M3FN, 8),
    (DataType::FLOAT8E4M3FNUZ, 8),
    (DataType::FLOAT8E5M2, 8),
    (DataType::FLOAT8E5M2FNUZ, 8),
    (DataType::UINT4, 4),
    (DataType::INT4, 4),
    (DataType::FLOAT4E2M1, 4),
    (DataType::FLOAT8E8M0, 8),
    // UINT2 and INT2.
    (DataType(25), 2),
    (DataType(26), 2),
];

/// Bits per element.
pub(crate) fn bits(element: DataType) -> Option<u64> {
    BITS.iter().find(|(known, _)| *known == element).map(|(_, bits)| *bits)
}

/// Bytes of so many elements, packed and rounded up; `None` if that does not fit 64 bits or the
/// type has no size.
pub(crate) fn bytes(element: DataType, count: u64) -> Option<Bytes> {
    let bits = u128::from(count) * u128::from(bits(element)?);
    bits.div_ceil(8).try_into().ok()
}

/// How the type of an output follows.
#[derive(Clone, Copy)]
enum Rule {
    /// That of an input.
    Input(usize),
    /// Always this.
    Is(DataType),
    /// The number of a type in an attribute, else as the next rule says.
    Attribute(&'static str, &'static Rule),
    /// The type of the tensor in an attribute, else as the next rule says.
    TensorAttribute(&'static str, &'static Rule),
    /// That of an input if it is present, else as the next rule says.
    InputOr(usize, &'static Rule),
}

const FLOAT: Rule = Rule::Is(DataType::FLOAT);
const BOOL: Rule = Rule::Is(DataType::BOOL);
const INT64: Rule = Rule::Is(DataType::INT64);
const INT32: Rule = Rule::Is(DataType::INT32);
const UINT8: Rule = Rule::Is(DataType::UINT8);
const FIRST: Rule = Rule::Input(0);

/// Operators whose outputs do not all have the type of the first input. The last rule of a list
/// holds for all further outputs.
const RULES: &[(&[&str], &[Rule])] = &[
    (
        &[
            "And",
            "Equal",
            "Greater",
            "GreaterOrEqual",
            "IsInf",
            "IsNaN",
            "Less",
            "LessOrEqual",
            "Not",
            "Or",
            "Xor",
        ],
        &[BOOL],
    ),
    (&["ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Shape", "Size"], &[INT64]),
    (&["CastLike", "Where"], &[Rule::Input(1)]),
    (&["Cast"], &[Rule::Attribute("to", &FIRST)]),
    (&["OneHot"], &[Rule::Input(2)]),
    (&["MaxPool", "TopK", "Unique"], &[FIRST, INT64]),
    (&["Dropout"], &[FIRST, BOOL]),
    (&["BatchNormalization"], &[FIRST, Rule::Input(3)]),
    (
        &["LayerNormalization", "SimplifiedLayerNormalization"],
        &[FIRST, Rule::Attribute("stash_type", &FLOAT)],
    ),
    (
        &["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"],
        &[FIRST, FLOAT, FLOAT, FIRST],
    ),
    (&["EmbedLayerNormalization"], &[Rule::Input(2), INT32, Rule::Input(2)]),
    (&["QuantizeLinear"], &[Rule::InputOr(2, &Rule::Attribute("output_dtype", &UINT8))]),
    (&["DequantizeLinear"], &[Rule::Attribute("output_dtype", &Rule::Input(1))]),
    (&["DynamicQuantizeLinear"], &[UINT8, FLOAT, UINT8]),
    (&["ConvInteger", "MatMulInteger"], &[INT32]),
    (&["DynamicQuantizeMatMul", "MatMulIntegerToFloat"], &[FLOAT]),
    (&["QLinearConv", "QLinearMatMul"], &[Rule::Input(7)]),
    (&["ConstantOfShape"], &[Rule::TensorAttribute("value", &FLOAT)]),
    (
        &["Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"],
        &[Rule::Attribute("dtype", &FIRST)],
    ),
    (&["RandomNormal", "RandomUniform"], &[Rule::Attribute("dtype", &FLOAT)]),
    (&["Multinomial"], &[Rule::Attribute("dtype", &INT32)]),
    (
        &["BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"],
        &[Rule::Attribute("output_datatype", &FLOAT)],
    ),
    (&["TfIdfVectorizer"], &[FLOAT]),
];

/// Before this opset the mask of `Dropout` had the type of the data.
const DROPOUT_MASK_IS_BOOL: i64 = 10;

/// The type of an operator's output.
pub(crate) fn infer(op: &Op, output: usize) -> Option<DataType> {
    let rules = RULES.iter().find(|(kinds, _)| kinds.contains(&op.node.kind()));
    let rules = rules.map_or(&[FIRST][..], |(_, rules)| rules);
    let early_dropout = op.node.kind() == "Dropout" && op.opset < DROPOUT_MASK_IS_BOOL;
    let rule = if early_dropout { FIRST } else { *rules.get(output).or(rules.last())? };
    apply(rule, op)
}

fn apply(rule: Rule, op: &Op) -> Option<DataType> {
    let input = |index: usize| op.input(index).and_then(|fact: &Fact| fact.element);
    match rule {
        Rule::Input(index) => input(index),
        Rule::Is(element) => Some(element),
        Rule::Attribute(name, otherwise) => match op.node.int(name) {
            Some(number) if number != 0 => i32::try_from(number).ok().map(DataType),
            _ => apply(*otherwise, op),
        },
        Rule::TensorAttribute(name, otherwise) => match op.node.tensor(name) {
            Some(tensor) => tensor.data_type,
            None => apply(*otherwise, op),
        },
        Rule::InputOr(index, otherwise) => match op.input(index) {
            Some(_) => input(index),
            None => apply(*otherwise, op),
        },
    }
}
