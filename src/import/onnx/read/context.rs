//! The facts that hold for a whole model: the caller's options, the names of its sizes, its version.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use rten_onnx::onnx::{DataType, GraphProto, TypeProtoTensor, ValueInfoProto};

use crate::Bytes;
use crate::import::{
    ImportOptions, Kernels, Trust,
    onnx::{
        OnnxError, Reader,
        read::{
            declared::{collect_value_dims, tensor_type},
            expression::Expression,
            fact::{Dims, Fact, MAX_RANK},
            findings::Findings,
            functions::Opsets,
            given::{check_value, element_type},
            node::{Node, is_standard},
        },
    },
};

/// The treatment of tensors of unknown size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Refused,
    Kept,
}

/// The facts that hold for all graphs of a model.
pub(crate) struct Context<'a> {
    options: &'a ImportOptions,
    /// The names of sizes that are supplied to the model. All other sizes are found at run time.
    given_names: BTreeSet<&'a str>,
    /// Names of sizes that follow from others.
    related: BTreeMap<&'a str, Expression>,
    /// The version of the standard operators.
    opset: i64,
    /// The version for operators that came from functions.
    opsets: &'a Opsets,
    unknown: Unknown,
    /// The number of branches around the operator that is read, of which it is not known whether they run.
    pub(crate) undecided: Cell<u32>,
    /// The questions for the user.
    pub(crate) findings: Findings,
}

impl<'a> Context<'a> {
    /// Checks that the given sizes belong to the model.
    pub(crate) fn new(reader: &Reader<'a>, options: &'a ImportOptions) -> Result<Self, OnnxError> {
        let &Reader { model, graph, opsets, unknown } = reader;
        let tensors = options.kept.iter().chain(options.states.values());
        let given = options.shapes.keys().chain(options.types.keys()).chain(options.values.keys());
        let mut given = given.chain(options.states.keys()).chain(tensors);
        if let Some(name) = given.find(|name| !has_tensor(graph, name)) {
            let is_weight = |name: &&str| {
                graph.initializer.iter().any(|tensor| tensor.name.as_deref() == Some(name))
            };
            let names = graph.input.iter().filter_map(|value| value.name.as_deref());
            let inputs = names.filter(|name| !is_weight(name)).map(str::to_owned).collect();
            return Err(OnnxError::UnknownTensor { name: name.clone(), inputs });
        }
        if let Some(name) = options.workspaces.keys().find(|name| !has_operator(graph, name)) {
            return Err(OnnxError::UnknownOperator { name: name.to_string() });
        }
        for (tensor, name) in &options.types {
            element_type(tensor, name)?;
        }
        for (tensor, text) in &options.values {
            check_value(tensor, text)?;
        }
        let given_names = given_names(graph);
        let mut names = BTreeSet::new();
        collect_dims(graph, &mut names);
        if let Some(name) = options.dims.keys().find(|name| !names.contains(name.as_str())) {
            let known = names.iter().map(|&name| name.to_owned()).collect();
            return Err(OnnxError::UnknownDim { name: name.clone(), known });
        }
        for (name, &sizes) in &options.dims {
            sizes.check(name)?;
            if !sizes.is_exact() && !given_names.contains(name.as_str()) {
                return Err(OnnxError::RangeFound { name: name.clone(), most: sizes.most });
            }
        }
        let standard = |domain: &Option<String>| is_standard(domain.as_deref().unwrap_or(""));
        let opset = model.opset_import.iter().find(|opset| standard(&opset.domain));
        Ok(Self {
            options,
            related: related(&names, &given_names),
            given_names,
            opset: opset.and_then(|opset| opset.version).unwrap_or(i64::MAX),
            opsets,
            unknown,
            undecided: Cell::new(0),
            findings: Findings::default(),
        })
    }

    /// Returns whether tensors of unknown size are kept without asking the user.
    pub(crate) fn keeps_unknown(&self) -> bool {
        self.unknown == Unknown::Kept
    }

    /// Returns whether an output is a copy, even if it could be a view.
    pub(crate) fn is_copy(&self, output: &str) -> bool {
        self.options.copies.contains(output)
    }

    /// The version of the standard operators that applies to an operator.
    pub(crate) fn opset(&self, node: Node) -> i64 {
        let brought = node.outputs().next().and_then(|(_, name)| self.opsets.get(name));
        brought.copied().unwrap_or(self.opset)
    }

    /// Returns whether the model names no size that the user supplies.
    pub(crate) fn is_fixed(&self) -> bool {
        self.given_names.is_empty()
    }

    /// The in-place abilities of the runtime's kernels.
    pub(crate) fn kernels(&self) -> &'a Kernels {
        &self.options.kernels
    }

    /// The scratch memory of an operator.
    pub(crate) fn workspace(&self, node: Node) -> Bytes {
        let stated = &self.options.workspaces;
        stated.get(node.name()).or_else(|| stated.get(node.kind())).copied().unwrap_or(0)
    }

    /// The shape to use where a declared shape differs from the inferred one.
    pub(crate) fn trust(&self) -> Option<Trust> {
        self.options.trust
    }

    /// The shape that the user gives for a tensor.
    pub(crate) fn shape(&self, tensor: &str) -> Option<&Dims> {
        self.options.shapes.get(tensor)
    }

    /// The input of the model whose next state a tensor is.
    pub(crate) fn input_of_state(&self, next: &str) -> Option<&'a str> {
        let (input, _) = self.options.states.iter().find(|(_, known)| *known == next)?;
        Some(input)
    }

    /// The caches that are given, with their next states.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.options.states.iter().map(|(input, next)| (&**input, &**next))
    }

    /// The tensors to keep to the end.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &'a str> {
        self.options.kept.iter().map(String::as_str)
    }

    /// The element type that the user gives for a tensor.
    pub(crate) fn element(&self, tensor: &str) -> Option<DataType> {
        element_type(tensor, self.options.types.get(tensor)?).ok()
    }

    /// The value that the user gives for a tensor.
    pub(crate) fn value(&self, tensor: &str) -> Option<&str> {
        self.options.values.get(tensor).map(String::as_str)
    }

    /// The size that the user gives for a name, or that follows from such sizes.
    pub(crate) fn given(&self, name: &str) -> Option<u64> {
        self.followed(name).or_else(|| self.options.dims.get(name).map(|sizes| sizes.most))
    }

    /// The size that follows from others, if these are given.
    fn followed(&self, name: &str) -> Option<u64> {
        let expression = self.related.get(name)?;
        let of_name = |name: &str| {
            let given = self.options.dims.get(name).map(|sizes| sizes.most);
            given.or(self.options.default_dim)
        };
        expression.size(&of_name)
    }

    /// Returns whether a size follows from one that is not given, which the user is asked for.
    pub(crate) fn will_follow(&self, name: &str) -> bool {
        let is_missing = |name: &&str| !self.options.dims.contains_key(*name);
        self.options.default_dim.is_none()
            && self.related.get(name).is_some_and(|of| of.names().iter().any(is_missing))
    }

    /// Checks that the user gives no other size for a name that follows from the others.
    ///
    /// # Errors
    ///
    /// If a given size differs.
    pub(crate) fn check_related(&self) -> Result<(), OnnxError> {
        for &name in self.related.keys() {
            let (Some(size), Some(&given)) = (self.followed(name), self.options.dims.get(name))
            else {
                continue;
            };
            if !given.contains(size.into()) {
                return Err(OnnxError::RelatedSize { name: name.to_owned(), size, given });
            }
        }
        Ok(())
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
                // For sizes known only at run time, the largest size is given, not the exact one.
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

/// The names of sizes that follow from those that are supplied to the model.
fn related<'a>(
    names: &BTreeSet<&'a str>,
    given_names: &BTreeSet<&'a str>,
) -> BTreeMap<&'a str, Expression> {
    let read = |&name: &&'a str| {
        let expression = Expression::parse(name)?;
        let parts = expression.names();
        let is_related = !parts.is_empty() && parts.iter().all(|part| given_names.contains(part));
        is_related.then(|| (name, expression.clone()))
    };
    names.iter().filter_map(read).collect()
}

/// The names of sizes in ranges that follow from others, so that they have no range of their own.
pub(crate) fn follow<'o>(graph: &GraphProto, options: &'o ImportOptions) -> BTreeSet<&'o str> {
    let given_names = given_names(graph);
    let is_given = |name: &str| options.dims.contains_key(name) || options.default_dim.is_some();
    let names = options.dims.keys().map(String::as_str);
    let follows = |name: &&str| {
        Expression::parse(name).is_some_and(|of| {
            let parts = of.names();
            !parts.is_empty()
                && parts.iter().all(|&part| given_names.contains(part) && is_given(part))
        })
    };
    names.filter(follows).collect()
}

/// The names of sizes that are supplied to a model.
pub(crate) fn given_names(graph: &GraphProto) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    graph.input.iter().for_each(|value| collect_value_dims(value, &mut names));
    names
}

/// Returns whether a tensor of this name is an input of the graph, or made in it or in a sub-graph.
fn has_tensor(graph: &GraphProto, name: &str) -> bool {
    let mut nodes = graph.node.iter().map(Node);
    graph.input.iter().any(|value| value.name.as_deref() == Some(name))
        || graph.initializer.iter().any(|tensor| tensor.name.as_deref() == Some(name))
        || nodes.any(|node| {
            node.outputs().any(|(_, output)| output == name)
                || node.bodies().any(|body| has_tensor(body, name))
        })
}

/// Returns whether an operator has this name or type.
fn has_operator(graph: &GraphProto, name: &str) -> bool {
    graph.node.iter().map(Node).any(|node| {
        node.name() == name
            || node.kind() == name
            || node.bodies().any(|body| has_operator(body, name))
    })
}

fn collect_dims<'a>(graph: &'a GraphProto, names: &mut BTreeSet<&'a str>) {
    for value in graph.input.iter().chain(&graph.output).chain(&graph.value_info) {
        collect_value_dims(value, names);
    }
    for body in graph.node.iter().flat_map(|node| Node(node).bodies()) {
        collect_dims(body, names);
    }
}
