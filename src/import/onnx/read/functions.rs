//! A model's own functions. A call is replaced by the function's body, even if an operator has the
//! same name. The parser skips functions, so they are read here.

use std::collections::HashMap;

use rten_onnx::{
    onnx::{AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto},
    protobuf::{DecodeMessage, Fields, OwnedValues, ProtobufError, ReadValue, ValueReader},
};

use crate::import::onnx::{OnnxError, read::node::is_standard};

/// The version of the standard operators for each operator that came from a function, by its first
/// output.
pub(crate) type Opsets = HashMap<String, i64>;

/// The largest depth of nested calls and sub-graphs.
const MAX_DEPTH: usize = 64;
/// The largest number of operators after replacing calls; far more than any model has.
const MAX_OPERATORS: usize = 1_000_000;

/// Replaces the calls in the model's graph.
///
/// # Errors
///
/// If the functions are damaged, recursive or ambiguous.
pub(crate) fn inline(bytes: &[u8], model: &mut ModelProto) -> Result<Inlined, OnnxError> {
    let functions = Functions::decode(ValueReader::from_buf(bytes))
        .map_err(|error| OnnxError::NotOnnx { reason: error.to_string() })?
        .functions;
    let mut inliner = Inliner { functions: &functions, operators: 0, opsets: Opsets::new() };
    let mut file_places = Vec::new();
    if let Some(graph) = model.graph.as_mut() {
        let mut nodes = Vec::with_capacity(graph.node.len());
        for (place, node) in graph.node.drain(..).enumerate() {
            inliner.node(node, 0, &mut nodes)?;
            file_places.resize(nodes.len(), place);
        }
        graph.node = nodes;
    }
    Ok(Inlined { opsets: inliner.opsets, file_places })
}

/// A model without calls.
pub(crate) struct Inlined {
    pub(crate) opsets: Opsets,
    /// By node of the main graph: the place of the node in the file that it comes from.
    pub(crate) file_places: Vec<usize>,
}

#[derive(Default)]
struct Functions {
    functions: Vec<Function>,
}

impl DecodeMessage for Functions {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut functions = Vec::new();
        while let Some(mut field) = fields.next()? {
            match field.number() {
                25 => functions.push(Function::decode_field(&mut field)?),
                _ => field.skip()?,
            }
        }
        Ok(Self { functions })
    }
}

#[derive(Default)]
struct Function {
    domain: String,
    name: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    nodes: Vec<FunctionNode>,
    /// The attributes that a call may omit.
    defaults: Vec<AttributeProto>,
    opsets: Vec<OperatorSetIdProto>,
}

impl DecodeMessage for Function {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut function = Self::default();
        while let Some(mut field) = fields.next()? {
            match field.number() {
                1 => function.name = field.read_string()?,
                4 => function.inputs.push(field.read_string()?),
                5 => function.outputs.push(field.read_string()?),
                7 => {
                    let bytes = field.read_bytes()?;
                    function.nodes.push(FunctionNode {
                        node: NodeProto::decode(ValueReader::from_buf(&bytes[..]))?,
                        references: References::decode(ValueReader::from_buf(&bytes[..]))?,
                    });
                }
                9 => function.opsets.push(OperatorSetIdProto::decode_field(&mut field)?),
                10 => function.domain = field.read_string()?,
                11 => function.defaults.push(AttributeProto::decode_field(&mut field)?),
                _ => field.skip()?,
            }
        }
        Ok(function)
    }
}

/// An operator of a function's body.
struct FunctionNode {
    node: NodeProto,
    references: References,
}

/// The attributes of an operator that take the value of an attribute of the function.
#[derive(Default)]
struct References {
    /// Pairs of an operator's attribute and a function's.
    own: Vec<Reference>,
    /// True if operators in sub-graphs have such attributes as well.
    inside: bool,
}

#[derive(Default)]
struct Reference {
    name: String,
    of: Option<String>,
    inside: bool,
}

impl DecodeMessage for References {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut references = Self::default();
        while let Some(mut field) = fields.next()? {
            match field.number() {
                5 => {
                    let reference = Reference::decode_field(&mut field)?;
                    references.inside |= reference.inside;
                    references.own.extend(reference.of.is_some().then_some(reference));
                }
                _ => field.skip()?,
            }
        }
        Ok(references)
    }
}

impl DecodeMessage for Reference {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut reference = Self::default();
        while let Some(mut field) = fields.next()? {
            match field.number() {
                1 => reference.name = field.read_string()?,
                6 => reference.inside |= GraphReferences::decode_field(&mut field)?.any,
                21 => {
                    reference.of = Some(field.read_string()?).filter(|name| !name.is_empty());
                }
                _ => field.skip()?,
            }
        }
        Ok(reference)
    }
}

#[derive(Default)]
struct GraphReferences {
    any: bool,
}

impl DecodeMessage for GraphReferences {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut any = false;
        while let Some(mut field) = fields.next()? {
            match field.number() {
                1 => {
                    let node = References::decode_field(&mut field)?;
                    any |= node.inside || !node.own.is_empty();
                }
                _ => field.skip()?,
            }
        }
        Ok(Self { any })
    }
}

struct Inliner<'f> {
    functions: &'f [Function],
    /// The number of operators that calls have become.
    operators: usize,
    opsets: Opsets,
}

impl<'f> Inliner<'f> {
    fn graph(&mut self, graph: &mut GraphProto, depth: usize) -> Result<(), OnnxError> {
        let mut nodes = Vec::with_capacity(graph.node.len());
        for node in graph.node.drain(..) {
            self.node(node, depth, &mut nodes)?;
        }
        graph.node = nodes;
        Ok(())
    }

    fn node(
        &mut self,
        mut node: NodeProto,
        depth: usize,
        nodes: &mut Vec<NodeProto>,
    ) -> Result<(), OnnxError> {
        if depth > MAX_DEPTH {
            return Err(OnnxError::TooDeep { limit: MAX_DEPTH });
        }
        let Some(function) = self.called(&node)? else {
            for graph in node.attribute.iter_mut().filter_map(|attribute| attribute.g.as_mut()) {
                self.graph(graph, depth + 1)?;
            }
            nodes.push(node);
            return Ok(());
        };
        let body = self.body(function, &node)?;
        for node in body {
            self.node(node, depth + 1, nodes)?;
        }
        Ok(())
    }

    fn called(&self, node: &NodeProto) -> Result<Option<&'f Function>, OnnxError> {
        let (name, domain) = (node.op_type.as_deref(), node.domain.as_deref().unwrap_or(""));
        let mut called = self.functions.iter().filter(|function| {
            Some(&*function.name) == name
                && (function.domain == domain
                    || is_standard(&function.domain) && is_standard(domain))
        });
        let first = called.next();
        if called.next().is_some() {
            return Err(unsupported(format!(
                "a second function '{}' beside the first",
                name.unwrap_or("")
            )));
        }
        Ok(first)
    }

    /// Returns the operators of a function's body, with the names and attributes of a call.
    fn body(
        &mut self,
        function: &'f Function,
        call: &NodeProto,
    ) -> Result<Vec<NodeProto>, OnnxError> {
        self.operators += function.nodes.len();
        if self.operators > MAX_OPERATORS {
            let what =
                format!("a model whose functions become more than {MAX_OPERATORS} operators");
            return Err(unsupported(what));
        }
        let Some(first) = call.output.iter().find(|name| !name.is_empty()) else {
            return Ok(Vec::new());
        };
        let absent = String::new();
        let mut names: HashMap<&str, &str> = HashMap::new();
        for (index, input) in function.inputs.iter().enumerate() {
            names.insert(input, call.input.get(index).unwrap_or(&absent));
        }
        // An output that is an input or another output becomes a copy of it.
        let mut copies = Vec::new();
        for (formal, output) in function.outputs.iter().zip(&call.output) {
            if output.is_empty() {
                continue;
            }
            match names.get(&**formal) {
                Some(&original) => copies.push(NodeProto {
                    op_type: Some("Identity".to_owned()),
                    input: vec![original.to_owned()],
                    output: vec![output.clone()],
                    ..NodeProto::default()
                }),
                None => {
                    names.insert(formal, output);
                }
            }
        }
        let names = Names { names, prefix: first };
        let standard =
            |opset: &&OperatorSetIdProto| is_standard(opset.domain.as_deref().unwrap_or(""));
        let opset = function.opsets.iter().find(standard).and_then(|opset| opset.version);
        let mut nodes = Vec::with_capacity(function.nodes.len() + copies.len());
        for FunctionNode { node, references } in &function.nodes {
            if references.inside {
                return Err(unsupported(format!(
                    "function '{}' with a sub-graph that takes an attribute of the function",
                    function.name
                )));
            }
            let mut node = node.clone();
            for Reference { name, of, .. } in &references.own {
                let given = |attribute: &&AttributeProto| attribute.name == *of;
                let value = call.attribute.iter().find(given);
                let value = value.or_else(|| function.defaults.iter().find(given)).cloned();
                node.attribute.retain(|attribute| attribute.name.as_ref() != Some(name));
                node.attribute.extend(
                    value.map(|value| AttributeProto { name: Some(name.clone()), ..value }),
                );
            }
            names.rename_node(&mut node);
            node.name = Some(join(call.name.as_deref(), node.name.as_deref()));
            if let Some(opset) = opset {
                self.mark(&node, opset);
            }
            nodes.push(node);
        }
        nodes.extend(copies);
        Ok(nodes)
    }

    /// Records the version of the operators of a body.
    fn mark(&mut self, node: &NodeProto, opset: i64) {
        if let Some(output) = node.output.iter().find(|name| !name.is_empty()) {
            self.opsets.insert(output.clone(), opset);
        }
        for graph in node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()) {
            graph.node.iter().for_each(|node| self.mark(node, opset));
        }
    }
}

/// The names of a function's body and those of a call.
struct Names<'a> {
    names: HashMap<&'a str, &'a str>,
    /// The prefix of the body's own tensor names, which distinguishes them from those of other
    /// calls.
    prefix: &'a str,
}

impl Names<'_> {
    fn rename(&self, name: &mut String) {
        if let Some(&given) = self.names.get(&**name) {
            given.clone_into(name);
        } else if !name.is_empty() {
            *name = format!("{}::{name}", self.prefix);
        }
    }

    fn rename_node(&self, node: &mut NodeProto) {
        node.input.iter_mut().chain(&mut node.output).for_each(|name| self.rename(name));
        for graph in node.attribute.iter_mut().filter_map(|attribute| attribute.g.as_mut()) {
            graph.node.iter_mut().for_each(|node| self.rename_node(node));
            let values = graph.input.iter_mut().chain(&mut graph.output);
            let values = values.chain(&mut graph.value_info).filter_map(|v| v.name.as_mut());
            let weights = graph.initializer.iter_mut().filter_map(|tensor| tensor.name.as_mut());
            values.chain(weights).for_each(|name| self.rename(name));
        }
    }
}

fn join(call: Option<&str>, own: Option<&str>) -> String {
    match (call.unwrap_or(""), own.unwrap_or("")) {
        ("", name) | (name, "") => name.to_owned(),
        (call, own) => format!("{call}/{own}"),
    }
}

fn unsupported(what: String) -> OnnxError {
    OnnxError::Unsupported { what, remedy: "inline the model's functions".to_owned() }
}
