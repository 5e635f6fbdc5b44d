//! Element types and their widths.

use rten_onnx::onnx::DataType;

use crate::Bytes;

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

/// Returns the bytes of `count` packed elements, rounded up; `None` if that does not fit in 64 bits
/// or the type has no size.
pub(crate) fn bytes(element: DataType, count: u64) -> Option<Bytes> {
    let bits = u128::from(count) * u128::from(bits(element)?);
    bits.div_ceil(8).try_into().ok()
}
