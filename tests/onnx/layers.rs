//! Models of one operator that ONNX Runtime ran, with the bytes of each output, and models that it refused.

use crate::onnx_text::{graph, model, one_operator};
use memplan::{
    OpSequence,
    import::{ImportOptions, onnx::read},
};

/// The bytes of each output, separated by commas, or both sizes of the error after `!`.
fn outcome(line: &str) -> (String, String) {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [opset, kind, inputs, attributes, expected] = fields[..] else { panic!("{line}") };
    let outputs = expected.split(',').count();
    let outputs = if expected.starts_with('!') { 1 } else { outputs };
    let text = one_operator(kind, inputs, attributes, outputs);
    let model = model(graph(&text), opset.parse().unwrap());
    let found = match read(&model, &ImportOptions::default()) {
        Ok(sequence) => sizes(&sequence, outputs),
        Err(error) => {
            let error = error.to_string();
            let sizes = error.split_once("cannot run: ").map_or(&*error, |(_, sizes)| sizes);
            format!("! {}", sizes.split(';').next().unwrap())
        }
    };
    (expected.to_owned(), found)
}

fn sizes(sequence: &OpSequence, outputs: usize) -> String {
    let size = |index| {
        let id = sequence.tensor_id(&format!("o{index}"));
        id.and_then(|id| sequence.tensor(id).size).map_or("?".to_owned(), |size| size.to_string())
    };
    (0..outputs).map(size).collect::<Vec<_>>().join(", ")
}

#[test]
fn operators_are_sized_and_refused_as_in_the_runtime() {
    let lines = include_str!("layers.txt").lines().filter(|line| !line.starts_with('#'));
    let mut wrong = Vec::new();
    for line in lines {
        let (expected, found) = outcome(line);
        if expected != found {
            wrong.push(format!("{line}\n  found {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
