//! Replays the corpus of the fuzzers.

use std::{fs, path::PathBuf};

use crate::common::properties;
use arbitrary::Unstructured;
use memplan::import::Format;
use rstest::rstest;

fn onnx(bytes: &[u8]) {
    properties::bytes_are_read_or_refused(bytes, Format::Onnx);
}

fn tflite(bytes: &[u8]) {
    properties::bytes_are_read_or_refused(bytes, Format::Tflite);
}

fn json(bytes: &[u8]) {
    properties::bytes_are_read_or_refused(bytes, Format::Json);
}

fn csv(bytes: &[u8]) {
    properties::bytes_are_read_or_refused(bytes, Format::Csv);
}

fn sequence(bytes: &[u8]) {
    let _ = properties::a_sequence_runs_as_planned(&mut Unstructured::new(bytes));
}

fn problem(bytes: &[u8]) {
    let _ = properties::problems_are_planned_rightly(&mut Unstructured::new(bytes));
}

#[rstest]
#[case("onnx", onnx)]
#[case("tflite", tflite)]
#[case("json", json)]
#[case("csv", csv)]
#[case("sequence", sequence)]
#[case("problem", problem)]
fn the_corpus_holds(#[case] target: &str, #[case] body: fn(&[u8])) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    // A published package comes without the corpus.
    let Ok(files) = fs::read_dir(folder) else { return };
    let mut count = 0;
    for file in files {
        let path = file.unwrap().path();
        body(&fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 0);
}
