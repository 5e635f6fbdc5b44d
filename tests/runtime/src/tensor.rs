//! Tensors as memplan counts their bytes, and as the runtime sees them.
//!
//! The runtime computes `int64` and `bool` in 32 bits. They are therefore converted where they
//! leave and enter the pool; all others are borrowed.

use bytemuck::{Pod, cast_slice};
use rten::{Value, ValueOrView, ValueView};
use rten_tensor::{AsView, Layout, TensorView};

/// The facts about a tensor that the runtime needs besides its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Form {
    pub(crate) shape: Vec<usize>,
    pub(crate) element: Element,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Element {
    Float,
    Int32,
    Int64,
    Bool,
    Int8,
    UInt8,
}

impl Element {
    /// The element of a tensor whose runtime type and width in bytes are known.
    pub(crate) fn new(of: rten::ValueType, width: usize) -> Self {
        use rten::{DataType, ValueType::Tensor};
        match (of, width) {
            (Tensor(DataType::Float), 4) => Self::Float,
            (Tensor(DataType::Int32), 4) => Self::Int32,
            (Tensor(DataType::Int32), 8) => Self::Int64,
            (Tensor(DataType::Int32), 1) => Self::Bool,
            (Tensor(DataType::Int8), 1) => Self::Int8,
            (Tensor(DataType::UInt8), 1) => Self::UInt8,
            _ => panic!("memplan counts {width} B for an element of {of:?}"),
        }
    }
}

impl Form {
    /// The bytes of a tensor as the runtime's input.
    pub(crate) fn view<'b>(&self, bytes: &'b [u8]) -> ValueOrView<'b> {
        match self.element {
            Element::Float => self.borrow::<f32>(bytes),
            Element::Int32 => self.borrow::<i32>(bytes),
            Element::Int8 => self.borrow::<i8>(bytes),
            Element::UInt8 => self.borrow::<u8>(bytes),
            Element::Int64 => self.convert(
                cast_slice(bytes)
                    .iter()
                    .map(|&i: &i64| i32::try_from(i).expect("the runtime keeps int64 in 32 bits")),
            ),
            Element::Bool => self.convert(bytes.iter().copied().map(i32::from)),
        }
    }

    fn borrow<'b, T: Pod>(&self, bytes: &'b [u8]) -> ValueOrView<'b>
    where
        ValueView<'b>: From<TensorView<'b, T>>,
    {
        let view = ValueView::from_shape(&self.shape, cast_slice::<u8, T>(bytes));
        ValueOrView::View(view.expect("the bytes of a tensor fill its shape"))
    }

    fn convert(&self, elements: impl Iterator<Item = i32>) -> ValueOrView<'static> {
        let value = Value::from_shape(&self.shape, elements.collect::<Vec<i32>>());
        ValueOrView::Value(value.expect("the bytes of a tensor fill its shape"))
    }

    /// Writes a value that the runtime computed.
    pub(crate) fn store(&self, value: &Value, bytes: &mut [u8]) {
        assert_eq!(value.shape().as_slice(), self.shape, "a shape is the same in every run");
        match (self.element, value) {
            (Element::Float, Value::FloatTensor(from)) => {
                put(bytes, from.iter().map(|x| x.to_ne_bytes()));
            }
            (Element::Int32, Value::Int32Tensor(from)) => {
                put(bytes, from.iter().map(|x| x.to_ne_bytes()));
            }
            (Element::Int64, Value::Int32Tensor(from)) => {
                put(bytes, from.iter().map(|&x| i64::from(x).to_ne_bytes()));
            }
            (Element::Bool, Value::Int32Tensor(from)) => {
                put(bytes, from.iter().map(|&x| [u8::from(x != 0)]));
            }
            (Element::Int8, Value::Int8Tensor(from)) => {
                put(bytes, from.iter().map(|x| x.to_ne_bytes()));
            }
            (Element::UInt8, Value::UInt8Tensor(from)) => put(bytes, from.iter().map(|&x| [x])),
            (element, _) => panic!("{element:?} came as {:?}", value.dtype()),
        }
    }
}

fn put<const N: usize>(bytes: &mut [u8], elements: impl ExactSizeIterator<Item = [u8; N]>) {
    let (places, rest) = bytes.as_chunks_mut::<N>();
    assert!(places.len() == elements.len() && rest.is_empty(), "a value fills its bytes");
    for (place, element) in places.iter_mut().zip(elements) {
        *place = element;
    }
}
