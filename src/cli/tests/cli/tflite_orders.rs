//! TensorFlow Lite models with their operators in another order, and files above 2 GB.

use std::fs;

use memplan::export::tflite::ENTRY;
use serde_json::{Value, json};

use super::tflite::{Folder, with_plan};
use crate::{
    command::{Run, memplan},
    flatbuffer::{self, FLOAT32, Subgraph, Tensor, code, file, model_fields, tensor},
};

const FULLY_CONNECTED: i32 = 9;

/// A model that makes two large tensors before it makes either small: the other order needs less.
fn wide() -> Subgraph {
    let long = |name| tensor(name, FLOAT32, &[1, 64]);
    let short = |name| tensor(name, FLOAT32, &[1, 4]);
    let to_long = Tensor { data: vec![1; 64 * 4 * 4], ..tensor("w", FLOAT32, &[64, 4]) };
    let to_short = Tensor { data: vec![1; 64 * 4 * 4], ..tensor("v", FLOAT32, &[4, 64]) };
    Subgraph {
        tensors: vec![
            short("x"),
            to_long,
            to_short,
            long("a"),
            long("b"),
            short("c"),
            short("d"),
            short("y"),
        ],
        inputs: vec![0],
        outputs: vec![7],
        operators: vec![
            (FULLY_CONNECTED, vec![0, 1, -1], vec![3], vec![]),
            (FULLY_CONNECTED, vec![0, 1, -1], vec![4], vec![]),
            (FULLY_CONNECTED, vec![3, 2, -1], vec![5], vec![]),
            (FULLY_CONNECTED, vec![4, 2, -1], vec![6], vec![]),
            (code::ADD, vec![5, 6], vec![7], vec![]),
        ],
    }
}

#[test]
fn a_model_is_written_with_its_operators_moved() {
    let folder = Folder::of(&[wide()]);
    let better = folder.path("better.tflite");
    for runtime in ["tflite-micro", "tflite"] {
        let run =
            memplan(&["reorder", &folder.model, "-o", &better, "--json", "--runtime", runtime]);
        assert_eq!(run.code, 0, "{}", run.err);
        let found: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!((&found["better"], &found["proven"]), (&json!(true), &json!(true)));
        let plan = memplan(&["plan", &better, "--json", "--runtime", runtime]);
        let plan: Value = serde_json::from_str(&plan.out).unwrap();
        assert_eq!(plan["pool_size"], found["pool_size"]);
        // Four references to operators change places, and nothing else.
        let (before, after) = (fs::read(&folder.model).unwrap(), fs::read(&better).unwrap());
        assert_eq!(before.len(), after.len());
        let differing: Vec<_> = (0..before.len()).filter(|&at| before[at] != after[at]).collect();
        assert!(
            !differing.is_empty() && differing.last().unwrap() - differing[0] < 20,
            "{differing:?}"
        );
    }
    // An offline plan is for the order that the file has.
    let planned = folder.path("planned.tflite");
    assert_eq!(memplan(&["plan", &better, "-o", &planned]).code, 1, "its own planner is as good");
    let with_plan = with_plan(5, &[0, -1, -1, -1, -1, -1, -1]);
    assert_eq!(memplan(&["reorder", &with_plan.model]).code, 0);
}

/// The offsets of a plan in a model are for the order of its operators.
#[test]
fn a_model_with_a_plan_is_not_reordered() {
    let offsets = [0, -1, -1, 512, 1024, -1, -1, -1];
    let data = [1, 1, 8].into_iter().chain(offsets).flat_map(i32::to_le_bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("planned.tflite");
    fs::write(&path, file(&model_fields(&[wide()], &[(ENTRY, data.collect())]))).unwrap();
    let folder = Folder { model: path.display().to_string(), folder };
    let Run { code, err, .. } =
        memplan(&["reorder", &folder.model, "-o", &folder.path("b.tflite")]);
    assert!(code == 2 && err.contains("has an offline plan, which is for the order"), "{err}");
}

/// A file above 2 GB keeps its weights behind the tables, at places that the buffers state.
#[test]
fn weights_behind_the_tables_are_read_for_the_interpreter() {
    let mut fields = model_fields(&[wide()], &[]);
    let flatbuffer::Field::Tables(buffers) = &mut fields[4] else { panic!() };
    let weights = 64 * 4 * 4_u64;
    let offset = 1 << 13;
    for (index, buffer) in buffers.iter_mut().enumerate().skip(1) {
        let offset = offset + weights * (index as u64 - 1);
        *buffer = vec![
            flatbuffer::Field::Absent,
            flatbuffer::Field::Long(offset),
            flatbuffer::Field::Long(weights),
        ];
    }
    let mut bytes = file(&fields);
    let cut = bytes.clone();
    assert!(bytes.len() as u64 <= offset);
    bytes.resize(usize::try_from(offset + 2 * weights).unwrap(), 1);
    let folder = Folder::of(&[wide()]);
    let plain = memplan(&["plan", "--json", "--runtime", "tflite", &folder.model]).out;
    let pool = |text: &str| serde_json::from_str::<Value>(text).unwrap()["pool_size"].clone();
    let large = folder.with("large.tflite", &bytes);
    let found = memplan(&["plan", "--json", "--runtime", "tflite", &large]);
    assert_eq!((found.code, pool(&found.out)), (0, pool(&plain)), "{}", found.err);
    let better = folder.path("better.tflite");
    let run = memplan(&["reorder", &large, "-o", &better, "--runtime", "tflite"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let after = fs::read(&better).unwrap();
    assert!(after != bytes && after[cut.len()..] == bytes[cut.len()..]);
    let micro = memplan(&["plan", &large]);
    assert!(
        micro.code == 2 && micro.err.contains("where TensorFlow Lite Micro reads none"),
        "{}",
        micro.err
    );
    let cut = folder.with("cut.tflite", &cut);
    let cut = memplan(&["plan", "--runtime", "tflite", &cut]);
    assert!(cut.code == 2 && cut.err.contains("beyond the end of the file"), "{}", cut.err);
}
