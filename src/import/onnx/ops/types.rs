//! The element types of an operator's outputs.

use rten_onnx::onnx::DataType;

use crate::import::onnx::{ops::op::Op, read::fact::Fact};

/// The rule for the type of an output.
#[derive(Clone, Copy)]
pub(crate) enum TypeRule {
    /// The type of an input.
    Input(usize),
    /// The type of the tensors in a sequence, the first input.
    Items,
    /// A fixed type.
    Is(DataType),
    /// The type whose number is in an attribute, otherwise by the next rule.
    Attribute(&'static str, &'static TypeRule),
    /// The type of the tensor in an attribute, otherwise by the next rule.
    TensorAttribute(&'static str, &'static TypeRule),
    /// The type of an input if it is present, otherwise by the next rule.
    InputOr(usize, &'static TypeRule),
    /// The type that belongs to the first of these attributes that is present, otherwise by the next rule.
    ByAttribute(&'static [(&'static str, DataType)], &'static TypeRule),
    /// The first rule, unless it is the type of the first input; then the second.
    Other(&'static TypeRule, &'static TypeRule),
    /// The first rule from an opset on, the second before it.
    Since(i64, &'static TypeRule, &'static TypeRule),
}

pub(crate) const FIRST: TypeRule = TypeRule::Input(0);
pub(crate) const BOOL: TypeRule = TypeRule::Is(DataType::BOOL);
pub(crate) const FLOAT: TypeRule = TypeRule::Is(DataType::FLOAT);
pub(crate) const INT32: TypeRule = TypeRule::Is(DataType::INT32);
pub(crate) const INT64: TypeRule = TypeRule::Is(DataType::INT64);
pub(crate) const STRING: TypeRule = TypeRule::Is(DataType::STRING);
pub(crate) const UINT8: TypeRule = TypeRule::Is(DataType::UINT8);

impl TypeRule {
    /// Returns the type for an operator, if it is known.
    pub(crate) fn apply(self, op: &Op) -> Option<DataType> {
        let input = |index: usize| op.input(index).and_then(|fact: &Fact| fact.element);
        match self {
            Self::Input(index) => input(index),
            Self::Items => op.input(0)?.items.as_ref()?.first()?.element,
            Self::Is(element) => Some(element),
            Self::Attribute(name, otherwise) => match op.node.int(name) {
                Some(number) if number != 0 => i32::try_from(number).ok().map(DataType),
                _ => otherwise.apply(op),
            },
            Self::TensorAttribute(name, otherwise) => match op.node.tensor(name) {
                Some(tensor) => tensor.data_type,
                None => otherwise.apply(op),
            },
            Self::InputOr(index, otherwise) => match op.input(index) {
                Some(_) => input(index),
                None => otherwise.apply(op),
            },
            Self::ByAttribute(types, otherwise) => {
                match types.iter().find(|(name, _)| op.node.length(name).is_some()) {
                    Some(&(_, of)) => Some(of),
                    None => otherwise.apply(op),
                }
            }
            Self::Other(one, other) => {
                let first = input(0)?;
                one.apply(op).filter(|&one| one != first).or_else(|| other.apply(op))
            }
            Self::Since(opset, new, old) => {
                if op.opset >= opset {
                    new.apply(op)
                } else {
                    old.apply(op)
                }
            }
        }
    }
}
