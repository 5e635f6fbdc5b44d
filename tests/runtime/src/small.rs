//! A small network with the features of large ones: views at inner offsets, operators in place,
//! constants computed from shapes, `int64` and `bool`.

use std::cell::RefCell;

use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataType, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};

/// The network as an ONNX model.
///
/// # Panics
///
/// Never: this model can always be encoded.
#[must_use]
pub fn small_network() -> Vec<u8> {
    let graph = GraphProto {
        input: vec![value("image", DataType::FLOAT, &[1, 4, 8, 8])],
        initializer: vec![
            floats("kernel", &[8, 4, 3, 3]),
            floats("bias", &[8]),
            floats("matrix", &[64, 16]),
            int64s("axis 0", &[0]),
            int64s("axis 1", &[1]),
            int64s("rows", &[8, -1]),
            int64s("from", &[0]),
            int64s("to", &[4]),
        ],
        output: vec![
            value("scores", DataType::FLOAT, &[8, 16]),
            value("best", DataType::INT64, &[8, 1]),
            value("part", DataType::FLOAT, &[1, 4, 8, 8]),
            value("plane", DataType::FLOAT, &[4, 8, 8]),
        ],
        node: vec![
            node(
                "Conv",
                &["image", "kernel", "bias"],
                &["a"],
                &[("pads", &[1, 1, 1, 1]), ("strides", &[1, 1]), ("dilations", &[1, 1])],
            ),
            node("Relu", &["a"], &["b"], &[]),
            node("Split", &["b"], &["low", "high"], &[("axis", &[1])]),
            node("Sigmoid", &["low"], &["gate"], &[]),
            node("Mul", &["image", "gate"], &["gated"], &[]),
            // Over the second half of b, after the last reader of the first.
            node("Add", &["high", "gated"], &["sum"], &[]),
            node("Concat", &["sum", "gated"], &["joined"], &[("axis", &[1])]),
            // An output that is a view, and another view of the same tensor.
            node("Slice", &["joined", "from", "to", "axis 1"], &["part"], &[]),
            node("Reshape", &["joined", "rows"], &["matrix of joined"], &[]),
            // Known before the run: 8, the number of rows.
            node("Shape", &["matrix of joined"], &["shape"], &[]),
            node("Gather", &["shape", "axis 0"], &["number of rows"], &[]),
            node("Cast", &["number of rows"], &["offset"], &[("to", &[1])]),
            node("Tanh", &["matrix of joined"], &["bent"], &[]),
            node("Sub", &["bent", "offset"], &["moved"], &[]),
            node("Greater", &["matrix of joined", "bent"], &["is steep"], &[]),
            node("Where", &["is steep", "moved", "matrix of joined"], &["chosen"], &[]),
            node("MatMul", &["chosen", "matrix"], &["scores"], &[]),
            node("ArgMax", &["scores"], &["best"], &[("axis", &[1])]),
            // In the memory of an input.
            node("Squeeze", &["image", "axis 0"], &["plane"], &[]),
        ],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        ..ModelProto::default()
    };
    model.write_buf().expect("a model that can be written")
}

/// A node whose attributes are integers or lists of integers.
fn node(kind: &str, inputs: &[&str], outputs: &[&str], numbers: &[(&str, &[i64])]) -> NodeProto {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let attribute = |&(name, numbers): &(&str, &[i64])| {
        let name = Some(name.to_owned());
        match numbers {
            &[number] => AttributeProto {
                name,
                i: Some(number),
                r#type: Some(AttributeType::INT),
                ..AttributeProto::default()
            },
            _ => AttributeProto {
                name,
                ints: numbers.to_vec(),
                r#type: Some(AttributeType::INTS),
                ..AttributeProto::default()
            },
        }
    };
    NodeProto {
        name: Some(format!("{kind} of {}", outputs[0])),
        op_type: Some(kind.to_owned()),
        input: names(inputs),
        output: names(outputs),
        attribute: numbers.iter().map(attribute).collect(),
        ..NodeProto::default()
    }
}

fn value(name: &str, of: DataType, shape: &[i64]) -> ValueInfoProto {
    let size = |&size: &i64| Dimension { dim_value: Some(size), dim_param: None };
    let tensor_type = Some(TypeProtoTensor {
        elem_type: Some(of),
        shape: Some(TensorShapeProto { dim: shape.iter().map(size).collect() }),
    });
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }),
    }
}

/// A weight that is still to be filled.
fn floats(name: &str, shape: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: shape.to_vec(),
        data_type: Some(DataType::FLOAT),
        ..TensorProto::default()
    }
}

fn int64s(name: &str, numbers: &[i64]) -> TensorProto {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    TensorProto {
        name: Some(name.to_owned()),
        dims: vec![i64::try_from(numbers.len()).expect("a short list")],
        data_type: Some(DataType::INT64),
        raw_data: Some(RefCell::new(bytes)),
        ..TensorProto::default()
    }
}
