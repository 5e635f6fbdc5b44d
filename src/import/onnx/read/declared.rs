//! The types and shapes that a model declares for its tensors.

use std::{collections::BTreeSet, fmt};

use rten_onnx::onnx::{TypeProtoTensor, ValueInfoProto};

use crate::import::onnx::read::fact::MAX_RANK;

/// A size as the model declares it.
pub(crate) enum DeclaredDim<'a> {
    Size,
    Name(&'a str),
}

/// A size as the model declares it; `None` if it is open and has no name.
pub(crate) fn declared_dim(value: &ValueInfoProto, axis: usize) -> Option<DeclaredDim<'_>> {
    let dim = tensor_type(value)?.shape.as_ref()?.dim.get(axis)?;
    match (dim.dim_param.as_deref(), dim.dim_value) {
        (_, Some(_)) => Some(DeclaredDim::Size),
        (Some(name), None) if !name.is_empty() => Some(DeclaredDim::Name(name)),
        _ => None,
    }
}

pub(crate) fn declared_rank(value: &ValueInfoProto) -> Option<usize> {
    Some(tensor_type(value)?.shape.as_ref()?.dim.len()).filter(|&rank| rank <= MAX_RANK)
}

/// The kind of a declared value that is not a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTensor {
    Sequence,
    Other,
}

impl NoTensor {
    pub(crate) fn is_sequence(self) -> bool {
        self == Self::Sequence
    }
}

impl fmt::Display for NoTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sequence => "a sequence",
            Self::Other => "a map, an optional or a sparse tensor",
        })
    }
}

/// Returns the kind of a declared value that is not a tensor.
pub(crate) fn not_a_tensor(value: &ValueInfoProto) -> Option<NoTensor> {
    let declared = value.r#type.as_ref()?;
    match (&declared.tensor_type, &declared.sequence) {
        (Some(_), _) => None,
        (None, Some(_)) => Some(NoTensor::Sequence),
        (None, None) => Some(NoTensor::Other),
    }
}

pub(crate) fn tensor_type(value: &ValueInfoProto) -> Option<&TypeProtoTensor> {
    value.r#type.as_ref()?.tensor_type.as_ref()
}

pub(crate) fn has_shape(value: &ValueInfoProto) -> bool {
    tensor_type(value).is_some_and(|tensor| tensor.shape.is_some())
}

/// Formats a declared shape with its names.
pub(crate) fn display_declared(value: &ValueInfoProto) -> String {
    let tensor = tensor_type(value);
    let Some(shape) = tensor.and_then(|tensor| tensor.shape.as_ref()) else {
        return "not declared".to_owned();
    };
    let dims: Vec<String> = shape
        .dim
        .iter()
        .map(|dim| match (&dim.dim_param, dim.dim_value) {
            (Some(name), None) => name.clone(),
            (_, Some(value)) if value >= 0 => value.to_string(),
            _ => "?".to_owned(),
        })
        .collect();
    format!("[{}]", dims.join(", "))
}

/// Collects the names of a value's sizes.
pub(crate) fn collect_value_dims<'a>(value: &'a ValueInfoProto, names: &mut BTreeSet<&'a str>) {
    let tensor = tensor_type(value);
    let shape = tensor.and_then(|tensor| tensor.shape.as_ref());
    let dims = shape.map_or(&[][..], |shape| &shape.dim);
    names.extend(dims.iter().filter_map(|dim| dim.dim_param.as_deref()).filter(|n| !n.is_empty()));
}
