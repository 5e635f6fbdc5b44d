//! Random weights: the models have none.

use rten_onnx::onnx::{DataLocation, DataType, ModelProto, StringStringEntryProto, TensorProto};

/// The name under which the runtime finds the weights.
pub(crate) const FILE: &str = "weights.data";

/// Bytes to which the start of every weight is aligned.
const ALIGNMENT: usize = 64;

/// Moves the weights of a model to an external file, which is returned. Floats of more than one
/// element, and all external weights, become random; everything else in the model stays.
pub(crate) fn fill(model: &mut ModelProto, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut file = Vec::new();
    let graph = model.graph.as_mut().expect("a model holds a graph");
    for weight in &mut graph.initializer {
        let is_float = weight.data_type == Some(DataType::FLOAT);
        let is_external = weight.data_location == Some(DataLocation::EXTERNAL);
        let elements: usize = weight.dims.iter().map(|&dim| size(dim)).product();
        if !(is_external || is_float && elements > 1) {
            continue;
        }
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        let start = file.len();
        match weight.data_type {
            Some(DataType::FLOAT) => {
                let (low, high) = range(&weight.dims, elements);
                file.reserve(elements * size_of::<f32>());
                for _ in 0..elements {
                    let value = low + (high - low) * random.f32();
                    file.extend_from_slice(&value.to_le_bytes());
                }
            }
            Some(DataType::BOOL) => file.extend((0..elements).map(|_| random.u8(0..=1))),
            other => panic!("no random weights of type {other:?}"),
        }
        refer(weight, start, file.len() - start);
    }
    file
}

/// Values that keep the activations of a deep network from vanishing or exploding: those of
/// He et al., 2015, and for vectors (biases, scales, means, variances) values around 1.
fn range(dims: &[i64], elements: usize) -> (f32, f32) {
    let summed = match dims {
        [] | [_] => return (0.5, 1.5),
        [rows, columns] => size(*rows).max(size(*columns)),
        [first, ..] => elements / size(*first),
    };
    #[allow(clippy::cast_precision_loss, reason = "a scale")]
    let bound = (6.0 / summed as f32).sqrt();
    (-bound, bound)
}

/// Makes a weight refer to the external file.
fn refer(weight: &mut TensorProto, offset: usize, length: usize) {
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value),
    };
    weight.data_location = Some(DataLocation::EXTERNAL);
    weight.external_data = vec![
        entry("location", FILE.to_owned()),
        entry("offset", offset.to_string()),
        entry("length", length.to_string()),
    ];
    weight.raw_data = None;
    weight.float_data.clear();
}

fn size(dim: i64) -> usize {
    usize::try_from(dim).expect("a weight has sizes of 0 or more")
}
