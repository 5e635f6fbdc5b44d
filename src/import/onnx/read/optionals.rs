//! The types of optionals, which the parser omits. An optional is planned as the value that it may
//! hold.

use std::collections::{HashMap, HashSet};

use rten_onnx::{
    onnx::{ModelProto, TypeProto},
    protobuf::{DecodeMessage, Fields, OwnedValues, ProtobufError, ReadValue, ValueReader},
};

use crate::import::onnx::{
    OnnxError,
    read::placeholders::{remove_empty_types, states_something},
};

/// Gives the optionals of the model's graph the type of the values that they may hold, and removes types that
/// state nothing.
///
/// # Errors
///
/// If a type is damaged.
pub(crate) fn unwrap(bytes: &[u8], model: &mut ModelProto) -> Result<(), OnnxError> {
    let decoded = Model::decode(ValueReader::from_buf(bytes))
        .map_err(|error| OnnxError::NotOnnx { reason: error.to_string() })?;
    let mut held: HashMap<String, TypeProto> = HashMap::new();
    let mut empty: HashSet<String> = HashSet::new();
    for value in decoded.0.into_iter().flat_map(|graph| graph.values) {
        if !value.types.is_empty() && value.types.iter().all(|of| of.is_empty) {
            empty.insert(value.name.clone());
        }
        let types = value.types.into_iter().flat_map(|of| of.held).flat_map(|optional| optional.0);
        held.extend(types.map(|of| (value.name.clone(), of)));
    }
    let Some(graph) = model.graph.as_mut() else { return Ok(()) };
    remove_empty_types(graph);
    let values = graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info);
    for value in values {
        if let Some(of) = value.name.as_ref().and_then(|name| held.get(name)) {
            value.r#type = Some(of.clone());
        }
        if value.name.as_ref().is_some_and(|name| empty.contains(name)) {
            value.r#type = value.r#type.take().filter(states_something);
        }
    }
    Ok(())
}

/// The messages in one field of a message.
struct Inner<const FIELD: u64, T>(Vec<T>);

type Model = Inner<7, Graph>;
type Optional = Inner<1, TypeProto>;

/// A type as far as the parser omits it.
struct Type {
    held: Vec<Optional>,
    /// True if it states nothing.
    is_empty: bool,
}

/// The field for words about a type.
const DENOTATION: u64 = 6;

impl DecodeMessage for Type {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut of = Self { held: Vec::new(), is_empty: true };
        while let Some(mut field) = fields.next()? {
            of.is_empty &= field.number() == DENOTATION;
            match field.number() {
                9 => of.held.push(Optional::decode_field(&mut field)?),
                _ => field.skip()?,
            }
        }
        Ok(of)
    }
}

impl<const FIELD: u64, T> DecodeMessage for Inner<FIELD, T>
where
    T: DecodeMessage<Types = OwnedValues>,
{
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut inner = Vec::new();
        while let Some(mut field) = fields.next()? {
            if field.number() == FIELD {
                inner.push(T::decode_field(&mut field)?);
            } else {
                field.skip()?;
            }
        }
        Ok(Self(inner))
    }
}

#[derive(Default)]
struct Graph {
    values: Vec<Value>,
}

impl DecodeMessage for Graph {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut graph = Self::default();
        while let Some(mut field) = fields.next()? {
            match field.number() {
                11..=13 => graph.values.push(Value::decode_field(&mut field)?),
                _ => field.skip()?,
            }
        }
        Ok(graph)
    }
}

#[derive(Default)]
struct Value {
    name: String,
    types: Vec<Type>,
}

impl DecodeMessage for Value {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = Self::Types>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut value = Self::default();
        while let Some(mut field) = fields.next()? {
            match field.number() {
                1 => value.name = field.read_string()?,
                2 => value.types.push(Type::decode_field(&mut field)?),
                _ => field.skip()?,
            }
        }
        Ok(value)
    }
}
