//! Graphs of a few operators, written as text, and sequences described in text.

#![allow(dead_code, reason = "no test file uses all of it")]

use std::{cell::RefCell, fmt::Write as _};

use memplan::{
    OpSequence, Planner,
    lower::LoweringOptions,
    sequence::{Dependency, Origin},
};
use rten_onnx::onnx::{
    AttributeProto, DataLocation, DataType, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoSequence,
    TypeProtoTensor, ValueInfoProto,
};

const TYPES: &[(&str, DataType)] = &[
    ("f32", DataType::FLOAT),
    ("f16", DataType::FLOAT16),
    ("f64", DataType::DOUBLE),
    ("f4", DataType::FLOAT4E2M1),
    ("i64", DataType::INT64),
    ("i32", DataType::INT32),
    ("i8", DataType::INT8),
    ("u8", DataType::UINT8),
    ("i4", DataType::INT4),
    ("u4", DataType::UINT4),
    ("bool", DataType::BOOL),
    ("str", DataType::STRING),
];

fn element(name: &str) -> DataType {
    TYPES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("type {name}")).1
}

/// `f32[1,batch,?]` or just `f32`, of unknown shape; `seq(f32[2])`, a sequence of such tensors.
pub fn tensor_type(text: &str) -> TypeProto {
    if let Some(item) = text.strip_prefix("seq(") {
        let elem_type = Some(tensor_type(item.trim_end_matches(')')));
        let sequence = Some(Box::new(TypeProtoSequence { elem_type }));
        return TypeProto { tensor_type: None, sequence };
    }
    let (name, dims) = match text.split_once('[') {
        Some((name, dims)) => (name, Some(dims.trim_end_matches(']'))),
        None => (text, None),
    };
    let dim = |text: &str| match text.parse() {
        _ if text == "?" => Dimension { dim_value: None, dim_param: None },
        Ok(size) => Dimension { dim_value: Some(size), dim_param: None },
        Err(_) => Dimension { dim_value: None, dim_param: Some(text.to_owned()) },
    };
    let dims = dims.map(|dims| TensorShapeProto {
        dim: dims.split(',').filter(|dim| !dim.is_empty()).map(dim).collect(),
    });
    let tensor = TypeProtoTensor { elem_type: Some(element(name)), shape: dims };
    TypeProto { tensor_type: Some(tensor), sequence: None }
}

/// `name:f32[1,batch]`, or just a name.
pub fn value(text: &str) -> ValueInfoProto {
    let (name, of) = text.split_once(':').map_or((text, None), |(name, of)| (name, Some(of)));
    ValueInfoProto { name: Some(name.to_owned()), r#type: of.map(tensor_type) }
}

fn numbers<T: std::str::FromStr>(text: &str) -> Vec<T> {
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    let number = |n: &str| n.parse().unwrap_or_else(|_| panic!("number {n}"));
    inner.split(',').filter(|n| !n.is_empty()).map(number).collect()
}

/// `name=[1,2]`, `name=3` (64-bit integers), `name=[1.5,2.0]` (floats), `name:f32[3,3]` (external).
pub fn weight(text: &str) -> TensorProto {
    if let Some((name, of)) = text.split_once(':') {
        let of = tensor_type(of).tensor_type.unwrap();
        let dims = of.shape.unwrap().dim.iter().map(|dim| dim.dim_value.unwrap()).collect();
        return TensorProto {
            name: Some(name.to_owned()),
            dims,
            data_type: of.elem_type,
            data_location: Some(DataLocation::EXTERNAL),
            ..TensorProto::default()
        };
    }
    let (name, text) = text.split_once('=').unwrap();
    let name = Some(name.to_owned());
    let dims = |length: usize| {
        if text.starts_with('[') { vec![i64::try_from(length).unwrap()] } else { vec![] }
    };
    if text.contains('.') {
        let floats: Vec<f32> = numbers(text);
        let (dims, data_type) = (dims(floats.len()), Some(DataType::FLOAT));
        return TensorProto { name, dims, data_type, float_data: floats, ..TensorProto::default() };
    }
    let ints: Vec<i64> = numbers(text);
    let raw = ints.iter().flat_map(|int| int.to_le_bytes()).collect();
    let (dims, data_type) = (dims(ints.len()), Some(DataType::INT64));
    TensorProto {
        name,
        dims,
        data_type,
        raw_data: Some(RefCell::new(raw)),
        ..TensorProto::default()
    }
}

/// `axis=1`, `perm=[1,0]`, `mode='linear'`, `scales=[1.0,2.0]`, separated by blanks.
pub fn attribute(text: &str) -> AttributeProto {
    let (name, text) = text.split_once('=').unwrap();
    let mut attribute = AttributeProto { name: Some(name.to_owned()), ..Default::default() };
    match text.chars().next() {
        Some('[') if text.contains('.') => attribute.floats = numbers(text),
        Some('[') => attribute.ints = numbers(text),
        Some('\'') => attribute.s = Some(text.trim_matches('\'').to_owned()),
        _ if text.contains('.') => attribute.f = Some(text.parse().unwrap()),
        _ => attribute.i = Some(text.parse().unwrap()),
    }
    attribute
}

/// `y, z = Kind(x, , w) axis=1`.
pub fn node(text: &str) -> NodeProto {
    let names = |text: &str| text.split(',').map(|name| name.trim().to_owned()).collect();
    let (outputs, rest) = text.split_once(" = ").unwrap();
    let (kind, rest) = rest.split_once('(').unwrap();
    let (inputs, attributes) = rest.split_once(')').unwrap();
    let (domain, kind) = kind.rsplit_once('/').unwrap_or(("", kind));
    NodeProto {
        domain: Some(domain.to_owned()),
        op_type: Some(kind.to_owned()),
        input: if inputs.is_empty() { Vec::new() } else { names(inputs) },
        output: names(outputs),
        attribute: attributes.split_whitespace().map(attribute).collect(),
        ..NodeProto::default()
    }
}

/// Lines: `in x:f32[2]`, `weight w=[1]`, `info y:f32[2]`, `out y`, else a node.
pub fn graph(text: &str) -> GraphProto {
    let mut graph = GraphProto::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.split_once(' ').unwrap() {
            ("in", rest) => graph.input.push(value(rest)),
            ("weight", rest) => graph.initializer.push(weight(rest)),
            ("info", rest) => graph.value_info.push(value(rest)),
            ("out", rest) => graph.output.push(value(rest)),
            _ => graph.node.push(node(line)),
        }
    }
    graph
}

/// The text of a graph of one operator, `op`, that makes `o0`, `o1` and so on. The inputs, separated by blanks,
/// are `f32[2]`, `=[1]` for a weight or `-` for an absent one.
pub fn one_operator(kind: &str, inputs: &str, attributes: &str, outputs: usize) -> String {
    let mut lines = String::new();
    let mut names = Vec::new();
    for (index, input) in inputs.split_whitespace().enumerate() {
        match input.as_bytes()[0] {
            b'-' => {
                names.push(String::new());
                continue;
            }
            b'=' => writeln!(lines, "weight i{index}{input}").unwrap(),
            _ => writeln!(lines, "in i{index}:{input}").unwrap(),
        }
        names.push(format!("i{index}"));
    }
    let made: Vec<String> = (0..outputs).map(|index| format!("o{index}")).collect();
    writeln!(lines, "{} = {kind}({}) {attributes}", made.join(", "), names.join(", ")).unwrap();
    for output in made {
        writeln!(lines, "out {output}").unwrap();
    }
    lines
}

pub fn model(graph: GraphProto, opset: i64) -> Vec<u8> {
    let opset = OperatorSetIdProto { domain: None, version: Some(opset) };
    let model = ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        opset_import: vec![opset],
        ..ModelProto::default()
    };
    model.write_buf().unwrap()
}

pub const OPSET: i64 = 17;

/// One line per operator: `y:8 = Relu(x) over x`, or `y:8 = Slice(x, s) of x+4`.
pub fn describe(sequence: &OpSequence) -> String {
    let name = |id: &memplan::sequence::TensorId| &*sequence.tensor(*id).name;
    let mut text = String::new();
    let options = LoweringOptions::default().views(false).inplace(false);
    let plan = || Planner::new().alignment(64).lowering(options).plan(sequence).unwrap();
    let plan = sequence.has_bodies().then(plan);
    for (step, operator) in sequence.operators().iter().enumerate() {
        let mut suffix = String::new();
        let mut outputs = Vec::new();
        for output in &operator.outputs {
            let tensor = sequence.tensor(*output);
            outputs.push(format!("{}:{}", tensor.name, tensor.size.unwrap()));
            match &tensor.origin {
                Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. } => {
                    write!(suffix, " of {}+{offset}", name(input)).unwrap();
                }
                Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } => {
                    for overwrite in overwrites {
                        write!(suffix, " over {}", name(&overwrite.input)).unwrap();
                    }
                }
                _ => {}
            }
        }
        let inputs: Vec<&str> = operator.inputs.iter().map(name).collect();
        let workspace = match plan.as_ref().and_then(|plan| plan.workspace(step as u64)) {
            None => String::new(),
            Some(chunk) => format!(" workspace {}", chunk.size),
        };
        writeln!(
            text,
            "{} = {}({}){suffix}{workspace}",
            outputs.join(", "),
            operator.kind,
            inputs.join(", ")
        )
        .unwrap();
    }
    text.trim_end().to_owned()
}

/// A graph whose operator of a kind has these sub-graphs.
pub fn with_body(text: &str, kind: &str, bodies: &[(&str, &str)]) -> GraphProto {
    let mut outer = graph(text);
    let host = outer.node.iter_mut().find(|node| node.op_type.as_deref() == Some(kind)).unwrap();
    for (name, body) in bodies {
        host.attribute.push(AttributeProto {
            name: Some((*name).to_owned()),
            g: Some(graph(body)),
            ..AttributeProto::default()
        });
    }
    outer
}
