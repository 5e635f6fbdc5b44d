//! Element types and their widths.

use std::borrow::Cow;

use rten_onnx::onnx::DataType;

use crate::Bytes;

/// Bits per element, and the name in the standard. Strings have no size.
const TYPES: &[(DataType, u64, &str)] = &[
    (DataType::FLOAT, 32, "float"),
    (DataType::UINT8, 8, "uint8"),
    (DataType::INT8, 8, "int8"),
    (DataType::UINT16, 16, "uint16"),
    (DataType::INT16, 16, "int16"),
    (DataType::INT32, 32, "int32"),
    (DataType::INT64, 64, "int64"),
    (DataType::BOOL, 8, "bool"),
    (DataType::FLOAT16, 16, "float16"),
    (DataType::DOUBLE, 64, "double"),
    (DataType::UINT32, 32, "uint32"),
    (DataType::UINT64, 64, "uint64"),
    (DataType::COMPLEX64, 64, "complex64"),
    (DataType::COMPLEX128, 128, "complex128"),
    (DataType::BFLOAT16, 16, "bfloat16"),
    (DataType::FLOAT8E4M3FN, 8, "float8e4m3fn"),
    (DataType::FLOAT8E4M3FNUZ, 8, "float8e4m3fnuz"),
    (DataType::FLOAT8E5M2, 8, "float8e5m2"),
    (DataType::FLOAT8E5M2FNUZ, 8, "float8e5m2fnuz"),
    (DataType::UINT4, 4, "uint4"),
    (DataType::INT4, 4, "int4"),
    (DataType::FLOAT4E2M1, 4, "float4e2m1"),
    (DataType::FLOAT8E8M0, 8, "float8e8m0"),
    (DataType(25), 2, "uint2"),
    (DataType(26), 2, "int2"),
];

/// Bits per element.
pub(crate) fn bits(element: DataType) -> Option<u64> {
    TYPES.iter().find(|(known, ..)| *known == element).map(|(_, bits, _)| *bits)
}

/// The type of this name, in the standard or in `NumPy`.
pub(crate) fn of_name(name: &str) -> Option<DataType> {
    let names = |(of, ..): &&(DataType, u64, &str)| element_names(*of).contains(&name);
    TYPES.iter().find(names).map(|(of, ..)| *of)
}

fn element_names(of: DataType) -> [&'static str; 2] {
    let standard = TYPES.iter().find(|(known, ..)| *known == of).map_or("", |(.., name)| name);
    let other = match of {
        DataType::FLOAT => "float32",
        DataType::DOUBLE => "float64",
        _ => standard,
    };
    [standard, other]
}

/// The names of all types that have a size.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|(.., name)| *name)
}

/// The name of a type in messages.
pub(crate) fn name(element: DataType) -> Cow<'static, str> {
    match TYPES.iter().find(|(known, ..)| *known == element) {
        Some((.., name)) => (*name).into(),
        None if element == DataType::STRING => "string".into(),
        None => format!("number {}", element.0).into(),
    }
}

/// The name of a type in `NumPy`, if it has one there.
pub(crate) fn dtype(element: DataType) -> Cow<'static, str> {
    match element {
        DataType::FLOAT => "float32".into(),
        DataType::DOUBLE => "float64".into(),
        _ => name(element),
    }
}

/// Returns the bytes of `count` packed elements, rounded up; `None` if that does not fit in 64 bits
/// or the type has no size.
pub(crate) fn bytes(element: DataType, count: u64) -> Option<Bytes> {
    let bits = u128::from(count) * u128::from(bits(element)?);
    bits.div_ceil(8).try_into().ok()
}
