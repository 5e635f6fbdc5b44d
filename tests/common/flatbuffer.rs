//! Writes small TensorFlow Lite models, for tests.

#![allow(dead_code, reason = "each test file uses its own part")]

/// A field of a table.
#[derive(Clone, Debug)]
pub enum Field {
    /// Not in the table.
    Absent,
    /// A byte, such as an enumeration or a truth value.
    Byte(u8),
    /// A number of 32 bits.
    Int(i32),
    /// A number of 64 bits.
    Long(u64),
    /// A table, stored after this one.
    Table(Vec<Field>),
    /// Tables.
    Tables(Vec<Vec<Field>>),
    /// This many references to one table.
    Repeated(usize, Vec<Field>),
    /// Numbers of 32 bits.
    Ints(Vec<i32>),
    /// Bytes, such as data or text.
    Bytes(Vec<u8>),
}

use Field::{Absent, Byte, Bytes, Int, Ints, Table, Tables};

/// Writes a file whose root is this table.
pub fn file(root: &[Field]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(b"TFL3");
    let at = table(&mut bytes, root);
    bytes[0..4].copy_from_slice(&u32::try_from(at).unwrap().to_le_bytes());
    bytes
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// Writes a reference from one place to another.
fn refer(bytes: &mut [u8], from: usize, to: usize) {
    let distance = u32::try_from(to - from).unwrap();
    bytes[from..from + 4].copy_from_slice(&distance.to_le_bytes());
}

/// Writes a table, its layout in front of it, and all that it refers to; returns its place.
fn table(bytes: &mut Vec<u8>, fields: &[Field]) -> usize {
    align(bytes, 4);
    let vtable = bytes.len();
    let length = 4 + 2 * fields.len();
    bytes.resize(vtable + length, 0);
    align(bytes, 4);
    let at = bytes.len();
    let width = |field: &Field| if matches!(field, Field::Long(_)) { 8 } else { 4 };
    let size = 4 + fields.iter().map(width).sum::<usize>();
    bytes.resize(at + size, 0);
    let short = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
    bytes[vtable..vtable + 2].copy_from_slice(&short(length));
    bytes[vtable + 2..vtable + 4].copy_from_slice(&short(size));
    bytes[at..at + 4].copy_from_slice(&i32::try_from(at - vtable).unwrap().to_le_bytes());
    let mut next = at + 4;
    for (slot, field) in fields.iter().enumerate() {
        let place = next;
        next += width(field);
        if !matches!(field, Absent) {
            let entry = vtable + 4 + 2 * slot;
            bytes[entry..entry + 2].copy_from_slice(&short(place - at));
        }
        match field {
            Absent => {}
            Byte(byte) => bytes[place] = *byte,
            Int(number) => bytes[place..place + 4].copy_from_slice(&number.to_le_bytes()),
            Field::Long(number) => bytes[place..place + 8].copy_from_slice(&number.to_le_bytes()),
            Table(fields) => {
                let target = table(bytes, fields);
                refer(bytes, place, target);
            }
            Tables(tables) => {
                let start = vector(bytes, place, tables.len(), &vec![0; 4 * tables.len()]);
                for (index, fields) in tables.iter().enumerate() {
                    let target = table(bytes, fields);
                    refer(bytes, start + 4 * index, target);
                }
            }
            Field::Repeated(count, fields) => {
                let start = vector(bytes, place, *count, &vec![0; 4 * count]);
                let target = table(bytes, fields);
                (0..*count).for_each(|index| refer(bytes, start + 4 * index, target));
            }
            Ints(numbers) => {
                let data: Vec<u8> =
                    numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                vector(bytes, place, numbers.len(), &data);
            }
            Bytes(data) => {
                vector(bytes, place, data.len(), data);
            }
        }
    }
    at
}

/// Writes a vector, and the reference to it; returns the place of its first element.
fn vector(bytes: &mut Vec<u8>, from: usize, length: usize, data: &[u8]) -> usize {
    align(bytes, 4);
    let at = bytes.len();
    refer(bytes, from, at);
    bytes.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    bytes.extend_from_slice(data);
    at + 4
}

/// Types of elements, by their numbers in the schema.
pub const FLOAT32: u8 = 0;
pub const INT32: u8 = 2;
pub const STRING: u8 = 5;
pub const INT8: u8 = 9;

/// A tensor of a subgraph.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: &'static str,
    pub shape: Vec<i32>,
    pub element: u8,
    pub data: Vec<u8>,
    pub is_variable: bool,
    /// The shape with -1 for open sizes; empty if it has none.
    pub signature: Vec<i32>,
}

/// A tensor that is computed at run time.
pub fn tensor(name: &'static str, element: u8, shape: &[i32]) -> Tensor {
    let (data, signature) = (Vec::new(), Vec::new());
    Tensor { name, shape: shape.to_vec(), element, data, is_variable: false, signature }
}

/// A tensor whose shape the file leaves open where the signature has -1, and states otherwise.
pub fn open(name: &'static str, shape: &[i32], signature: &[i32]) -> Tensor {
    Tensor { signature: signature.to_vec(), ..tensor(name, FLOAT32, shape) }
}

/// A constant of integers.
pub fn constant(name: &'static str, numbers: &[i32]) -> Tensor {
    let shape = vec![i32::try_from(numbers.len()).unwrap()];
    let data = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Tensor { data, ..tensor(name, INT32, &shape) }
}

/// An operator: its code in the schema, inputs, outputs and the fields of its options.
pub type Operator = (i32, Vec<i32>, Vec<i32>, Vec<Field>);

/// A subgraph.
#[derive(Clone, Debug, Default)]
pub struct Subgraph {
    pub tensors: Vec<Tensor>,
    pub inputs: Vec<i32>,
    pub outputs: Vec<i32>,
    pub operators: Vec<Operator>,
}

/// The codes of some operators.
pub mod code {
    pub const ADD: i32 = 0;
    pub const CONV_2D: i32 = 3;
    pub const MUL: i32 = 18;
    pub const RELU: i32 = 19;
    pub const RESHAPE: i32 = 22;
    pub const SOFTMAX: i32 = 25;
    pub const CUSTOM: i32 = 32;
    pub const STRIDED_SLICE: i32 = 45;
    pub const SPLIT: i32 = 49;
    pub const EXP: i32 = 47;
    pub const IF: i32 = 118;
    pub const CUMSUM: i32 = 128;
    pub const CALL_ONCE: i32 = 129;
}

/// The fields of a model, with metadata entries of a name and their data.
pub fn model_fields(subgraphs: &[Subgraph], metadata: &[(&str, Vec<u8>)]) -> Vec<Field> {
    let mut codes: Vec<i32> = Vec::new();
    let mut buffers = vec![Vec::new()];
    let mut tables = Vec::new();
    for subgraph in subgraphs {
        let mut tensors = Vec::new();
        for tensor in &subgraph.tensors {
            let mut buffer = 0;
            if !tensor.data.is_empty() {
                buffer = i32::try_from(buffers.len()).unwrap();
                buffers.push(vec![Bytes(tensor.data.clone())]);
            }
            tensors.push(vec![
                Ints(tensor.shape.clone()),
                Byte(tensor.element),
                Int(buffer),
                Bytes(tensor.name.into()),
                Absent,
                Byte(u8::from(tensor.is_variable)),
                Absent,
                if tensor.signature.is_empty() { Absent } else { Ints(tensor.signature.clone()) },
            ]);
        }
        let operators = subgraph.operators.iter().map(|(code, inputs, outputs, options)| {
            let at = codes.iter().position(|known| known == code).unwrap_or_else(|| {
                codes.push(*code);
                codes.len() - 1
            });
            let index = Int(i32::try_from(at).unwrap());
            vec![
                index,
                Ints(inputs.clone()),
                Ints(outputs.clone()),
                Byte(1),
                Table(options.clone()),
            ]
        });
        let operators = operators.collect();
        let (inputs, outputs) = (subgraph.inputs.clone(), subgraph.outputs.clone());
        tables.push(vec![Tables(tensors), Ints(inputs), Ints(outputs), Tables(operators)]);
    }
    let codes = codes.iter().map(|&code| {
        let custom = if code == code::CUSTOM { Bytes(b"TheirOperator".to_vec()) } else { Absent };
        vec![Byte(u8::try_from(code.min(127)).unwrap()), custom, Int(1), Int(code)]
    });
    let mut entries = Vec::new();
    for (name, data) in metadata {
        entries.push(vec![Bytes((*name).into()), Int(i32::try_from(buffers.len()).unwrap())]);
        buffers.push(vec![Bytes(data.clone())]);
    }
    vec![
        Int(3),
        Tables(codes.collect()),
        Tables(tables),
        Bytes(b"made by a test".to_vec()),
        Tables(buffers),
        Absent,
        Tables(entries),
    ]
}

/// A model as a file.
pub fn model(subgraphs: &[Subgraph]) -> Vec<u8> {
    file(&model_fields(subgraphs, &[]))
}

/// Two convolutions with element-wise operators and a view between them, where the runtime's own
/// planner takes more than needed.
pub fn chain() -> Subgraph {
    let image = |name| tensor(name, INT8, &[1, 8, 8, 4]);
    Subgraph {
        tensors: vec![
            image("x"),
            Tensor { data: vec![1; 16], ..tensor("weights", INT8, &[4, 1, 1, 4]) },
            image("a"),
            image("b"),
            image("c"),
            tensor("d", INT8, &[1, 256]),
            tensor("y", INT8, &[1, 256]),
        ],
        inputs: vec![0],
        outputs: vec![6],
        operators: vec![
            (code::CONV_2D, vec![0, 1, -1], vec![2], convolution()),
            (code::RELU, vec![2], vec![3], vec![]),
            (code::ADD, vec![3, 2], vec![4], vec![]),
            (code::RESHAPE, vec![4], vec![5], vec![]),
            (code::SOFTMAX, vec![5], vec![6], vec![]),
        ],
    }
}

/// Options of a convolution with padding `VALID` and steps of 1.
pub fn convolution() -> Vec<Field> {
    vec![Byte(1), Int(1), Int(1)]
}
