//! Element types and values of tensors that the user states.

use rten_onnx::onnx::DataType;

use crate::import::onnx::{
    OnnxError,
    read::{
        context::Context,
        element,
        fact::{Dims, Fact, Scalar, written},
    },
};

/// The largest number of elements of a value.
const MAX_ELEMENTS: usize = 4_096;

/// The element type of this name.
///
/// # Errors
///
/// If there is none.
pub(crate) fn element_type(tensor: &str, name: &str) -> Result<DataType, OnnxError> {
    element::of_name(name).ok_or_else(|| OnnxError::GivenType {
        tensor: tensor.to_owned(),
        given: name.to_owned(),
        why: format!("ONNX has the types {}", element::names().collect::<Vec<_>>().join(", ")),
    })
}

/// A value: one number, or a list, such as `[1,2]` or `1,2`, and its shape.
struct Value {
    elements: Vec<Scalar>,
    is_list: bool,
}

fn scalar(text: &str) -> Option<Scalar> {
    match text {
        "true" => Some(Scalar::Int(1)),
        "false" => Some(Scalar::Int(0)),
        _ => {
            let float = || text.parse().ok().filter(|float: &f64| float.is_finite());
            text.parse().ok().map(Scalar::Int).or_else(|| float().map(Scalar::Float))
        }
    }
}

fn value(text: &str) -> Option<Value> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let is_list = inner.is_some() || text.contains(',');
    let numbers = inner.unwrap_or(text).split(',').map(str::trim);
    let elements = numbers.filter(|number| !(is_list && number.is_empty())).map(scalar);
    let elements: Vec<Scalar> = elements.collect::<Option<_>>()?;
    (elements.len() <= MAX_ELEMENTS).then_some(Value { elements, is_list })
}

/// Checks that a text is a value.
///
/// # Errors
///
/// If it is none.
pub(crate) fn check_value(tensor: &str, text: &str) -> Result<(), OnnxError> {
    let why = "a value is one number, or a short list, such as [1,2]";
    value(text).map(drop).ok_or_else(|| wrong(tensor, text, why.to_owned()))
}

fn wrong(tensor: &str, given: &str, why: String) -> OnnxError {
    OnnxError::GivenValue { tensor: tensor.to_owned(), given: given.to_owned(), why }
}

/// Gives a tensor the value that the user states for it.
///
/// # Errors
///
/// If its shape or its element type rules the value out.
pub(crate) fn state(fact: &mut Fact, tensor: &str, context: &Context) -> Result<(), OnnxError> {
    let Some(text) = context.value(tensor) else { return Ok(()) };
    let Some(Value { mut elements, is_list }) = value(text) else { return Ok(()) };
    if fact.is_list() || fact.element == Some(DataType::STRING) {
        return Err(wrong(tensor, text, "it is not a tensor of numbers".to_owned()));
    }
    let count = elements.len() as u64;
    let own: Dims = if is_list { vec![Some(count)] } else { Vec::new() };
    let dims = fact.dims.get_or_insert(own);
    let known = dims.iter().copied().flatten().try_fold(1_u64, u64::checked_mul);
    let open = dims.iter().filter(|dim| dim.is_none()).count();
    let fits = match open {
        0 => known == Some(count),
        _ => known.is_some_and(|known| known > 0 && count.is_multiple_of(known)),
    };
    if !fits || open > 1 {
        return Err(wrong(tensor, text, format!("the shape of the tensor is {}", written(dims))));
    }
    if let (Some(dim), Some(known)) = (dims.iter_mut().find(|dim| dim.is_none()), known) {
        *dim = Some(count / known);
    }
    let is_float = matches!(
        fact.element,
        Some(DataType::FLOAT | DataType::DOUBLE | DataType::FLOAT16 | DataType::BFLOAT16)
    );
    for element in &mut elements {
        match *element {
            #[allow(clippy::cast_precision_loss, reason = "as the frameworks do")]
            Scalar::Int(number) if is_float => *element = Scalar::Float(number as f64),
            Scalar::Float(_) if !is_float && fact.element.is_some() => {
                return Err(wrong(tensor, text, "the tensor has whole numbers".to_owned()));
            }
            _ => {}
        }
    }
    fact.elements = Some(elements);
    Ok(())
}

/// The element type that is known, else the one that the user gives.
///
/// # Errors
///
/// If they differ.
pub(crate) fn known_or_given(
    known: Option<DataType>,
    tensor: &str,
    context: &Context,
) -> Result<Option<DataType>, OnnxError> {
    match (known, context.element(tensor)) {
        (Some(known), Some(given)) if known != given => Err(OnnxError::GivenType {
            tensor: tensor.to_owned(),
            given: element::name(given).into_owned(),
            why: format!("the model has {}", element::name(known)),
        }),
        (known, given) => Ok(known.or(given)),
    }
}
