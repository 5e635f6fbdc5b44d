//! Tensors that the file holds: initializers and constants.

use std::{cell::RefCell, rc::Rc};

use rten_onnx::onnx::{DataLocation, DataType, StringStringEntryProto, TensorProto};

use crate::import::onnx::read::fact::{Fact, MAX_RANK, Scalar, count};

/// The largest constant that is read; no shape arithmetic has more elements.
const MAX_CONSTANT: u64 = 4096;

/// Returns the facts about a stored tensor. Its elements are read if they are few and in the file;
/// external data is never opened.
pub(crate) fn stored(tensor: &TensorProto) -> Fact {
    let sizes: Option<Vec<u64>> =
        tensor.dims.iter().map(|&dim| u64::try_from(dim).ok()).collect::<Option<_>>();
    let sizes = sizes.filter(|sizes| sizes.len() <= MAX_RANK);
    let elements = sizes.as_deref().and_then(count).filter(|&count| count <= MAX_CONSTANT);
    let elements = elements.and_then(|count| {
        let external = tensor.data_location == Some(DataLocation::EXTERNAL);
        let elements = if external { None } else { scalars(tensor) };
        elements.filter(|elements| u64::try_from(elements.len()) == Ok(count))
    });
    Fact {
        element: tensor.data_type,
        dims: sizes.map(|sizes| sizes.into_iter().map(Some).collect()),
        elements,
        constant: true,
        external: external_file(tensor),
        ..Fact::default()
    }
}

/// The file that holds the elements, if they are not in the model.
fn external_file(tensor: &TensorProto) -> Option<Rc<str>> {
    if tensor.data_location != Some(DataLocation::EXTERNAL) {
        return None;
    }
    let is_location = |entry: &&StringStringEntryProto| entry.key.as_deref() == Some("location");
    let file = tensor.external_data.iter().find(is_location);
    Some(file.and_then(|entry| entry.value.as_deref()).unwrap_or("another file").into())
}

/// The stored elements, for the types that shape arithmetic uses.
fn scalars(tensor: &TensorProto) -> Option<Vec<Scalar>> {
    let raw = tensor.raw_data.as_ref().map(RefCell::borrow);
    let raw = raw.as_deref().filter(|raw| !raw.is_empty());
    let element = tensor.data_type?;
    Some(match (element, raw) {
        (DataType::INT64, Some(raw)) => fixed(raw, |b| Scalar::Int(i64::from_le_bytes(b))),
        (DataType::INT32, Some(raw)) => fixed(raw, |b| Scalar::Int(i32::from_le_bytes(b).into())),
        (DataType::BOOL | DataType::UINT8, Some(raw)) => {
            fixed(raw, |[byte]| Scalar::Int(byte.into()))
        }
        (DataType::FLOAT, Some(raw)) => fixed(raw, |b| Scalar::Float(f32::from_le_bytes(b).into())),
        (DataType::DOUBLE, Some(raw)) => fixed(raw, |b| Scalar::Float(f64::from_le_bytes(b))),
        (DataType::INT64, None) => tensor.int64_data.iter().map(|&i| Scalar::Int(i)).collect(),
        (DataType::INT32 | DataType::BOOL | DataType::UINT8, None) => {
            tensor.int32_data.iter().map(|&i| Scalar::Int(i.into())).collect()
        }
        (DataType::FLOAT, None) => {
            tensor.float_data.iter().map(|&f| Scalar::Float(f.into())).collect()
        }
        (DataType::DOUBLE, None) => tensor.double_data.iter().map(|&f| Scalar::Float(f)).collect(),
        _ => return None,
    })
}

fn fixed<const N: usize>(raw: &[u8], read: impl Fn([u8; N]) -> Scalar) -> Vec<Scalar> {
    let (chunks, _) = raw.as_chunks::<N>();
    chunks.iter().map(|&chunk| read(chunk)).collect()
}
