//! Damaged and enormous ONNX models.

use std::fs;

use memplan::import::{Format, ImportOptions, read_input};
use rstest::rstest;

use crate::{
    assert_refused,
    command::memplan,
    common::{properties, shared_path},
    file,
    wire::field,
};

/// Returns the next pseudo-random number.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// A model with an operator whose sub-graph has an operator whose sub-graph has ...
fn nested_model(levels: usize) -> Vec<u8> {
    let mut graph = Vec::new();
    for _ in 0..levels {
        let mut attribute = field(1, b"then_branch");
        attribute.extend(field(6, &graph));
        let mut node = field(4, b"If");
        node.extend(field(5, &attribute));
        graph = field(1, &node);
    }
    field(7, &graph)
}

/// x, relu(x), relu(relu(x)): a model so small that the tests can change every byte.
fn small_model() -> Vec<u8> {
    let dim = |size: u8| field(1, &[8, size]);
    let shape = field(2, &[dim(4), dim(8)].concat());
    let tensor = field(1, &[vec![8, 1], shape].concat());
    let value = |name: &[u8]| [field(1, name), field(2, &tensor)].concat();
    let relu = |from: &[u8], to: &[u8]| [field(1, from), field(2, to), field(4, b"Relu")].concat();
    let graph = [
        field(1, &relu(b"x", b"y")),
        field(1, &relu(b"y", b"z")),
        field(11, &value(b"x")),
        field(12, &value(b"z")),
    ]
    .concat();
    [vec![8, 8], field(8, &[16, 13]), field(7, &graph)].concat()
}

/// The available models; the first one belongs to the project.
fn models() -> Vec<Vec<u8>> {
    let mut models = vec![small_model()];
    for name in ["light_squeezenet_noshapes", "vgg16_b1", "bert_base_b1_s128"] {
        let path = shared_path(&format!("data/models/{name}.onnx"));
        models.extend(path.map(|path| fs::read(path).unwrap()));
    }
    models
}

#[test]
fn a_small_model_is_read() {
    assert!(read_input(&small_model(), Format::Onnx, &ImportOptions::default()).is_ok());
}

#[test]
fn truncated_models_are_refused_or_planned() {
    for model in models() {
        let stride = (model.len() / 200).max(1);
        for end in (0..model.len()).step_by(stride) {
            properties::bytes_are_read_or_refused(&model[..end], Format::Onnx);
        }
    }
    let model = small_model();
    let (_folder, path) = file("cut.onnx", &model[..model.len() - 9]);
    assert_refused(&memplan(&["plan", &path]), &path, "not an ONNX model, or a damaged one");
}

#[test]
fn models_with_flipped_bits_are_refused_or_planned() {
    let mut state = 1;
    for mut model in models() {
        let flips = if model.len() < 1_000 { model.len() * 8 } else { 300 };
        for flip in 0..flips {
            let bit = if flips == 300 { usize::try_from(next(&mut state)).unwrap() } else { flip };
            let bit = bit % (model.len() * 8);
            model[bit / 8] ^= 1 << (bit % 8);
            properties::bytes_are_read_or_refused(&model, Format::Onnx);
            model[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn ten_thousand_nested_sub_graphs_are_refused() {
    let (_folder, path) = file("deep.onnx", nested_model(10_000));
    assert_refused(&memplan(&["plan", &path]), &path, "nests deeper than");
}

/// An initializer with a packed list of numbers.
#[rstest]
#[case::eleven_bytes(&[0xff; 23], false)]
#[case::sixty_five_bits(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], false)]
#[case::cut(&[1, 0x80], false)]
#[case::largest(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], true)]
fn numbers_that_never_end_are_refused(#[case] numbers: &[u8], #[case] sound: bool) {
    let initializer = [vec![8, 2], field(5, numbers), field(8, b"w")].concat();
    let model = [small_model(), field(7, &field(5, &initializer))].concat();
    let (_folder, path) = file("numbers.onnx", model);
    let run = memplan(&["plan", &path]);
    if sound {
        assert!(!run.err.contains("the list of numbers"), "{}", run.err);
    } else {
        assert_refused(&run, &path, "ends in the middle of one, or holds one that is too long");
    }
}

#[test]
fn a_model_larger_than_memory_is_refused() {
    let dim = |size: u64| {
        let mut varint = vec![8];
        let mut rest = size;
        while rest >= 0x80 {
            varint.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        varint.push(u8::try_from(rest).unwrap());
        field(1, &varint)
    };
    let shape = field(2, &[dim(1 << 40), dim(1 << 40)].concat());
    let tensor = field(1, &[vec![8, 1], shape].concat());
    let value = |name: &[u8]| [field(1, name), field(2, &tensor)].concat();
    let relu = [field(1, b"x"), field(2, b"y"), field(4, b"Relu")].concat();
    let graph = [field(1, &relu), field(11, &value(b"x")), field(12, &value(b"y"))].concat();
    let model = [vec![8, 8], field(8, &[16, 13]), field(7, &graph)].concat();
    let (_folder, path) = file("large.onnx", model);
    assert_refused(&memplan(&["plan", &path]), &path, "has 2^64 bytes or more");
}
