//! The pass before parsing: checks that the bytes are a well-formed protocol buffer that is not
//! nested too deep.
//!
//! The parser recurses once per nested message and trusts lengths. So this pass walks over the
//! bytes once with its own stack: every field must end inside its message, and the nesting is
//! limited. Contents are skipped, so the walk costs a few reads per field.

use std::ops::Range;

use crate::import::onnx::OnnxError;

/// The largest depth of nested graphs: `If` in `Loop` in `If`.
const MAX_GRAPHS: usize = 64;
/// The largest depth of nested messages: a graph lies in an attribute in a node, which makes three
/// per graph, and the types of values need a few.
const MAX_MESSAGES: usize = 3 * MAX_GRAPHS + 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    Model,
    Function,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    SequenceType,
    OptionalType,
    Shape,
    Flat,
}

/// The fields that hold messages: the outer message, the field number, the inner message. All other
/// fields are skipped.
const NESTED: &[(Message, u64, Message)] = &[
    (Message::Model, 7, Message::Graph),
    (Message::Model, 8, Message::Flat),
    (Message::Model, 14, Message::Flat),
    (Message::Model, 25, Message::Function),
    (Message::Function, 7, Message::Node),
    (Message::Function, 9, Message::Flat),
    (Message::Function, 11, Message::Attribute),
    (Message::Graph, 1, Message::Node),
    (Message::Graph, 5, Message::Tensor),
    (Message::Graph, 11, Message::ValueInfo),
    (Message::Graph, 12, Message::ValueInfo),
    (Message::Graph, 13, Message::ValueInfo),
    (Message::Node, 5, Message::Attribute),
    (Message::Attribute, 5, Message::Tensor),
    (Message::Attribute, 6, Message::Graph),
    (Message::Tensor, 13, Message::Flat),
    (Message::ValueInfo, 2, Message::Type),
    (Message::Type, 1, Message::TensorType),
    (Message::Type, 4, Message::SequenceType),
    (Message::Type, 9, Message::OptionalType),
    (Message::SequenceType, 1, Message::Type),
    (Message::OptionalType, 1, Message::Type),
    (Message::TensorType, 2, Message::Shape),
    (Message::Shape, 1, Message::Flat),
];

/// The packed numbers in a tensor: the field number, and the packing.
const PACKED: &[(u64, Packing)] =
    &[(4, Packing::Fixed(4)), (5, Packing::Varint), (7, Packing::Varint), (10, Packing::Fixed(8))];

#[derive(Clone, Copy)]
enum Packing {
    Fixed(usize),
    Varint,
}

/// A graph's field for sparse initializers, which the parser ignores.
const SPARSE_INITIALIZER: u64 = 15;
/// A node attribute's fields for several graphs or a sparse tensor.
const SPARSE_ATTRIBUTE: u64 = 22;
/// A model's field for its graph.
const GRAPH: u64 = 7;
/// A graph's field for a node.
pub(crate) const NODE: u64 = 1;

/// Walks over all fields of a model.
///
/// # Errors
///
/// If a field does not end inside its message, or messages are nested too deep, or weights are
/// sparse.
pub(crate) fn check(bytes: &[u8]) -> Result<(), OnnxError> {
    let mut reader = Reader { bytes, at: 0 };
    let mut open = vec![(Message::Model, bytes.len())];
    let mut graphs = 0;
    let mut graph_seen = false;
    while let Some(&(message, end)) = open.last() {
        if reader.at == end {
            graphs -= usize::from(message == Message::Graph);
            open.pop();
            continue;
        }
        let Some((inner, inner_end)) = reader.field(message, end)? else {
            continue;
        };
        graphs += usize::from(inner == Message::Graph);
        graph_seen |= inner == Message::Graph;
        open.push((inner, inner_end));
        if graphs > MAX_GRAPHS || open.len() > MAX_MESSAGES {
            return Err(OnnxError::TooDeep { limit: MAX_GRAPHS });
        }
    }
    if graph_seen { Ok(()) } else { Err(not_onnx("it holds no graph".to_owned())) }
}

/// A field of a message, as it stands in the bytes of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: u64,
    /// The bytes of the field, its head included.
    pub(crate) whole: Range<usize>,
    /// The bytes of its content, if it has a length; otherwise empty.
    pub(crate) content: Range<usize>,
}

/// The fields of the message that lies in a part of the bytes.
///
/// # Errors
///
/// If the bytes are not a message.
pub(crate) fn fields(bytes: &[u8], message: Range<usize>) -> Result<Vec<Field>, OnnxError> {
    let mut reader = Reader { bytes, at: message.start };
    let mut fields = Vec::new();
    while reader.at < message.end {
        let start = reader.at;
        let (number, content) = reader.step(message.end)?;
        let whole = start..reader.at;
        fields.push(Field { number, content: content.unwrap_or(start..start), whole });
    }
    Ok(fields)
}

/// The field of a model that holds its main graph.
///
/// # Errors
///
/// If the bytes are not a model, or the graph is stored in several pieces.
pub(crate) fn graph_field(bytes: &[u8]) -> Result<Field, OnnxError> {
    let fields = fields(bytes, 0..bytes.len())?.into_iter();
    let mut graph = fields.filter(|field| field.number == GRAPH);
    match (graph.next(), graph.next()) {
        (Some(graph), None) => Ok(graph),
        (None, _) => Err(not_onnx("it holds no graph".to_owned())),
        (Some(_), Some(_)) => Err(OnnxError::Unsupported {
            what: "a graph that is stored in several pieces".to_owned(),
            remedy: "load the model with onnx and save it anew".to_owned(),
        }),
    }
}

/// The fields of a model that hold the nodes of its main graph, in the order of the file.
///
/// # Errors
///
/// As [`graph_field`].
pub(crate) fn node_fields(bytes: &[u8]) -> Result<Vec<Range<usize>>, OnnxError> {
    let graph = fields(bytes, graph_field(bytes)?.content)?.into_iter();
    Ok(graph.filter(|field| field.number == NODE).map(|field| field.whole).collect())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Steps over a field; returns its number, and the range of its content if it has a length.
    fn step(&mut self, end: usize) -> Result<(u64, Option<Range<usize>>), OnnxError> {
        let start = self.at;
        let tag = self.varint(end)?;
        match tag & 7 {
            0 => {
                self.varint(end)?;
            }
            1 => self.skip(8, end)?,
            5 => self.skip(4, end)?,
            2 => {
                let content = self.length(end)?;
                self.at = content.end;
                return Ok((tag >> 3, Some(content)));
            }
            _ => return Err(not_onnx(format!("no field starts at byte {start}"))),
        }
        Ok((tag >> 3, None))
    }

    /// Reads a length and returns the range of the content that follows.
    fn length(&mut self, end: usize) -> Result<Range<usize>, OnnxError> {
        let length = self.varint(end)?;
        let start = self.at;
        let content_end = usize::try_from(length)
            .ok()
            .and_then(|length| start.checked_add(length))
            .filter(|&content_end| content_end <= end)
            .ok_or_else(|| {
                not_onnx(format!(
                    "the field at byte {start} claims {length} bytes, but the file ends before that"
                ))
            })?;
        Ok(start..content_end)
    }

    /// Reads a field's head and skips its content, unless that is a message to walk into.
    fn field(
        &mut self,
        message: Message,
        end: usize,
    ) -> Result<Option<(Message, usize)>, OnnxError> {
        let start = self.at;
        let tag = self.varint(end)?;
        let number = tag >> 3;
        match tag & 7 {
            0 => {
                self.varint(end)?;
            }
            1 => self.skip(8, end)?,
            5 => self.skip(4, end)?,
            2 => return self.content(message, number, end),
            _ => return Err(not_onnx(format!("no field starts at byte {start}"))),
        }
        Ok(None)
    }

    fn content(
        &mut self,
        message: Message,
        number: u64,
        end: usize,
    ) -> Result<Option<(Message, usize)>, OnnxError> {
        let Range { start, end: content_end } = self.length(end)?;
        if let Some(what) = sparse(message, number) {
            return Err(OnnxError::Unsupported {
                what: what.to_owned(),
                remedy: "store the weights as dense tensors".to_owned(),
            });
        }
        if let Some((.., inner)) = NESTED.iter().find(|(m, n, _)| (*m, *n) == (message, number)) {
            return Ok(Some((*inner, content_end)));
        }
        let packed = PACKED.iter().find(|(n, _)| message == Message::Tensor && *n == number);
        let numbers = &self.bytes[start..content_end];
        let sound = match packed {
            Some((_, Packing::Fixed(width))) => numbers.len().is_multiple_of(*width),
            Some((_, Packing::Varint)) => are_varints(numbers),
            None => true,
        };
        if !sound {
            return Err(not_onnx(format!(
                "the list of numbers at byte {start} ends in the middle of one, or holds one that is too long"
            )));
        }
        self.at = content_end;
        Ok(None)
    }

    fn varint(&mut self, end: usize) -> Result<u64, OnnxError> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes[..end].get(self.at) else {
                return Err(not_onnx(format!("it ends in the middle of a field, at byte {start}")));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(not_onnx(format!("the number at byte {start} is too long")))
    }

    fn skip(&mut self, length: usize, end: usize) -> Result<(), OnnxError> {
        let start = self.at;
        self.at += length;
        if self.at <= end {
            Ok(())
        } else {
            Err(not_onnx(format!("it ends in the middle of a field, at byte {start}")))
        }
    }
}

/// Returns whether the bytes are whole numbers of at most 64 bits each, one after another. The
/// parser would never finish with others.
fn are_varints(bytes: &[u8]) -> bool {
    let mut length = 0;
    for &byte in bytes {
        length += 1;
        // Nine bytes of seven bits leave one bit for the tenth.
        if length == 10 && byte > 1 {
            return false;
        }
        if byte & 0x80 == 0 {
            length = 0;
        }
    }
    length == 0
}

fn sparse(message: Message, number: u64) -> Option<&'static str> {
    match (message, number) {
        (Message::Graph, SPARSE_INITIALIZER) => Some("a sparse initializer"),
        (Message::Attribute, SPARSE_ATTRIBUTE) => Some("a sparse constant"),
        _ => None,
    }
}

fn not_onnx(reason: String) -> OnnxError {
    OnnxError::NotOnnx { reason }
}
