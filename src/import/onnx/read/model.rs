//! The parts of a parsed model.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    fmt,
};

use rten_onnx::onnx::{
    AttributeProto, DataLocation, DataType, GraphProto, ModelProto, NodeProto, TensorProto,
    TypeProtoTensor, ValueInfoProto,
};

use crate::import::onnx::{
    OnnxError, Unknown,
    read::{
        fact::{Dims, Fact, MAX_RANK, Scalar, count},
        findings::Findings,
    },
};
use crate::import::{ImportOptions, Kernels, Trust};

/// The largest constant that is read; no shape arithmetic has more elements.
const MAX_CONSTANT: u64 = 4096;

/// The version of the standard operators for each operator that came from a function, by its first
/// output.
pub(crate) type Opsets = HashMap<String, i64>;

/// The facts that hold for all graphs of a model.
pub(crate) struct Context<'a> {
    options: &'a ImportOptions,
    /// The names of sizes that are supplied to the model. All other sizes are found in the run.
    given_names: BTreeSet<&'a str>,
    /// The version of the standard operators.
    opset: i64,
    /// The version for operators that came from functions.
    opsets: &'a Opsets,
    unknown: Unknown,
    /// The questions for the user.
    pub(crate) findings: Findings,
}

/// A size as the model declares it.
pub(crate) enum DeclaredDim<'a> {
    Size,
    Name(&'a str),
}

impl<'a> Context<'a> {
    /// Checks that the given sizes belong to the model.
    pub(crate) fn new(
        model: &ModelProto,
        graph: &'a GraphProto,
        opsets: &'a Opsets,
        options: &'a ImportOptions,
        unknown: Unknown,
    ) -> Result<Self, OnnxError> {
        if let Some(name) = options.shapes.keys().find(|name| !has_tensor(graph, name)) {
            return Err(OnnxError::UnknownTensor { name: name.clone() });
        }
        let mut given_names = BTreeSet::new();
        graph.input.iter().for_each(|value| collect_value_dims(value, &mut given_names));
        let mut names = BTreeSet::new();
        collect_dims(graph, &mut names);
        if let Some(name) = options.dims.keys().find(|name| !names.contains(name.as_str())) {
            let known = names.iter().map(|&name| name.to_owned()).collect();
            return Err(OnnxError::UnknownDim { name: name.clone(), known });
        }
        let standard = |domain: &Option<String>| is_standard(domain.as_deref().unwrap_or(""));
        let opset = model.opset_import.iter().find(|opset| standard(&opset.domain));
        Ok(Self {
            options,
            given_names,
            opset: opset.and_then(|opset| opset.version).unwrap_or(i64::MAX),
            opsets,
            unknown,
            findings: Findings::default(),
        })
    }

    /// Returns whether tensors of unknown size are kept without asking the user.
    pub(crate) fn keeps_unknown(&self) -> bool {
        self.unknown == Unknown::Kept
    }

    /// The version of the standard operators that applies to an operator.
    pub(crate) fn opset(&self, node: Node) -> i64 {
        let brought = node.outputs().next().and_then(|(_, name)| self.opsets.get(name));
        brought.copied().unwrap_or(self.opset)
    }

    /// The in-place abilities of the runtime's kernels.
    pub(crate) fn kernels(&self) -> &'a Kernels {
        &self.options.kernels
    }

    /// The shape to use where a declared shape differs from the inferred one.
    pub(crate) fn trust(&self) -> Option<Trust> {
        self.options.trust
    }

    /// The shape that the user gives for a tensor.
    pub(crate) fn shape(&self, tensor: &str) -> Option<&Dims> {
        self.options.shapes.get(tensor)
    }

    /// The size that the user gives for a name.
    pub(crate) fn given(&self, name: &str) -> Option<u64> {
        self.options.dims.get(name).copied()
    }

    /// The size for everything that is neither known nor given.
    pub(crate) fn default_size(&self) -> Option<u64> {
        self.options.default_dim
    }

    /// Returns the facts in a tensor's declaration.
    pub(crate) fn declared(&self, value: &ValueInfoProto) -> Fact {
        self.declared_type(tensor_type(value))
    }

    /// Returns the facts that the declaration of a sequence states of each of its tensors.
    pub(crate) fn declared_item(&self, value: &ValueInfoProto) -> Option<Fact> {
        let item = value.r#type.as_ref()?.sequence.as_ref()?.elem_type.as_ref()?;
        Some(self.declared_type(item.tensor_type.as_ref()))
    }

    fn declared_type(&self, tensor: Option<&TypeProtoTensor>) -> Fact {
        let shape = tensor.and_then(|tensor| tensor.shape.as_ref());
        let dims = shape.filter(|shape| shape.dim.len() <= MAX_RANK).map(|shape| {
            let dims = shape.dim.iter().map(|dim| match (&dim.dim_param, dim.dim_value) {
                // For sizes known only in the run, the largest size is given, not the exact one.
                (Some(name), None) if !self.given_names.contains(name.as_str()) => None,
                (Some(name), None) => self.given(name).or(self.default_size()),
                (_, Some(value)) => u64::try_from(value).ok(),
                (None, None) => None,
            });
            dims.collect()
        });
        let element = tensor.and_then(|tensor| tensor.elem_type).filter(|of| of.0 != 0);
        Fact { element, dims, ..Fact::default() }
    }
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

/// Returns whether a tensor of this name is an input of the graph, or made in it or in a sub-graph.
fn has_tensor(graph: &GraphProto, name: &str) -> bool {
    let mut nodes = graph.node.iter().map(Node);
    graph.input.iter().any(|value| value.name.as_deref() == Some(name))
        || nodes.any(|node| {
            node.outputs().any(|(_, output)| output == name)
                || node.bodies().any(|body| has_tensor(body, name))
        })
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

fn tensor_type(value: &ValueInfoProto) -> Option<&TypeProtoTensor> {
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
fn collect_value_dims<'a>(value: &'a ValueInfoProto, names: &mut BTreeSet<&'a str>) {
    let tensor = tensor_type(value);
    let shape = tensor.and_then(|tensor| tensor.shape.as_ref());
    let dims = shape.map_or(&[][..], |shape| &shape.dim);
    names.extend(dims.iter().filter_map(|dim| dim.dim_param.as_deref()).filter(|n| !n.is_empty()));
}

fn collect_dims<'a>(graph: &'a GraphProto, names: &mut BTreeSet<&'a str>) {
    for value in graph.input.iter().chain(&graph.output).chain(&graph.value_info) {
        collect_value_dims(value, names);
    }
    for body in graph.node.iter().flat_map(|node| Node(node).bodies()) {
        collect_dims(body, names);
    }
}

pub(crate) fn is_standard(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}

/// An operator of the model.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(pub(crate) &'a NodeProto);

impl<'a> Node<'a> {
    pub(crate) fn name(self) -> &'a str {
        self.0.name.as_deref().unwrap_or("")
    }

    pub(crate) fn kind(self) -> &'a str {
        self.0.op_type.as_deref().unwrap_or("")
    }

    /// The operator's label in messages: `'conv1' (Conv)`.
    pub(crate) fn label(self) -> String {
        match (self.name(), self.0.output.iter().find(|name| !name.is_empty())) {
            ("", Some(output)) => format!("{} (which makes '{output}')", self.kind()),
            ("", None) => self.kind().to_owned(),
            (name, _) => format!("'{name}' ({})", self.kind()),
        }
    }

    pub(crate) fn domain(self) -> &'a str {
        self.0.domain.as_deref().unwrap_or("")
    }

    /// The input at a position, unless it is absent.
    pub(crate) fn input(self, index: usize) -> Option<&'a str> {
        self.0.input.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    pub(crate) fn inputs(self) -> impl Iterator<Item = &'a str> {
        self.0.input.iter().map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The outputs that are present, with their positions.
    pub(crate) fn outputs(self) -> impl Iterator<Item = (usize, &'a str)> {
        self.0.output.iter().map(String::as_str).enumerate().filter(|(_, name)| !name.is_empty())
    }

    fn attribute(self, name: &str) -> Option<&'a AttributeProto> {
        self.0.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name))
    }

    pub(crate) fn int(self, name: &str) -> Option<i64> {
        self.attribute(name)?.i
    }

    pub(crate) fn ints(self, name: &str) -> Option<&'a [i64]> {
        self.attribute(name).map(|attribute| &attribute.ints[..])
    }

    pub(crate) fn float(self, name: &str) -> Option<f32> {
        self.attribute(name)?.f
    }

    pub(crate) fn floats(self, name: &str) -> Option<&'a [f32]> {
        self.attribute(name).map(|attribute| &attribute.floats[..])
    }

    pub(crate) fn string(self, name: &str) -> Option<&'a str> {
        self.attribute(name)?.s.as_deref()
    }

    pub(crate) fn has_strings(self) -> bool {
        self.attribute("value_string").or(self.attribute("value_strings")).is_some()
    }

    pub(crate) fn tensor(self, name: &str) -> Option<&'a TensorProto> {
        self.attribute(name)?.t.as_ref()
    }

    pub(crate) fn graph(self, name: &str) -> Option<&'a GraphProto> {
        self.attribute(name)?.g.as_ref()
    }

    /// The sub-graphs, in the order of the attributes.
    pub(crate) fn bodies(self) -> impl Iterator<Item = &'a GraphProto> {
        self.0.attribute.iter().filter_map(|attribute| attribute.g.as_ref())
    }
}

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
        ..Fact::default()
    }
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
