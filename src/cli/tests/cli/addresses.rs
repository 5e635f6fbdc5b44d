//! Audits of the addresses that another runtime gave to tensors.

use std::fs;

use rstest::rstest;
use serde_json::{Value, json};

use crate::command::memplan;

const MODEL: &str = "tests/models/mobilenet_v3_se_64_i8.tflite";
const BASE: u64 = 0x7f12_3400_0000;

/// The addresses that a runtime with memplan's plan gives to the tensors of a model.
fn addresses(model: &str) -> Vec<(String, u64)> {
    let plan: Value = serde_json::from_str(&memplan(&["plan", model, "--json"]).out).unwrap();
    let tensors = plan["tensors"].as_array().unwrap().iter();
    tensors
        .filter_map(|tensor| {
            let offset = tensor["offset"].as_u64().filter(|_| !tensor["chunk"].is_null())?;
            Some((tensor["name"].as_str().unwrap().to_owned(), BASE + offset))
        })
        .collect()
}

fn json_object(addresses: &[(String, u64)]) -> String {
    let entries = addresses.iter().map(|(name, address)| (name.clone(), json!(address)));
    Value::Object(entries.collect()).to_string()
}

fn json_list(addresses: &[(String, u64)]) -> String {
    let entry =
        |(name, address): &(String, u64)| json!({"name": name, "address": format!("{address:#x}")});
    Value::Array(addresses.iter().map(entry).collect()).to_string()
}

fn csv(addresses: &[(String, u64)]) -> String {
    let lines = addresses.iter().map(|(name, address)| format!("\"{name}\",{address},\n"));
    std::iter::once("name,address,size\n".to_owned()).chain(lines).collect()
}

#[rstest]
#[case("a.json", json_object)]
#[case("a.json", json_list)]
#[case("a.csv", csv)]
fn a_right_run_is_correct_and_a_planted_fault_is_named(
    #[case] file: &str,
    #[case] write: fn(&[(String, u64)]) -> String,
    #[values(MODEL, "tests/models/encoder.onnx")] model: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    let file = path.to_str().unwrap();
    let right = addresses(model);
    fs::write(&path, write(&right)).unwrap();
    let run = memplan(&["verify", model, "--addresses", file]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.starts_with("correct: no operator overwrites what is still needed"));
    // Every tensor lies at one address: some operator destroys what another needs.
    let wrong: Vec<_> = right.iter().map(|(name, _)| (name.clone(), BASE)).collect();
    fs::write(&path, write(&wrong)).unwrap();
    let run = memplan(&["verify", model, "--addresses", file]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.out.contains("wrong: ") && run.out.contains("bytes count from address 0x7f1234000000")
    );
    assert!(right.iter().filter(|(name, _)| run.out.contains(&**name)).count() >= 2, "{}", run.out);
}

#[test]
fn what_has_no_address_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let mut some = addresses(MODEL);
    some.truncate(some.len() / 2);
    some.push(("scratch of a kernel".to_owned(), BASE));
    fs::write(&path, json_object(&some)).unwrap();
    let run = memplan(&["verify", MODEL, "--addresses", path.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{run:?}");
    for text in ["without an address", "not seen: 1 name in the file without a tensor"] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
}

#[rstest]
#[case("a.json", "[]", "none of these names is a tensor")]
#[case("a.json", "{\"x\": 5}", "the first is 'x'")]
#[case("a.json", "5", "the file: expected an object with an address for each tensor")]
#[case("a.json", "{\"x\": \"soon\"}", "'x': expected an address in bytes, such as 4096")]
#[case("a.json", "[{\"address\": 5}]", "entry 0: expected an object")]
#[case(
    "a.json",
    "[{\"name\": \"x\", \"address\": 5}, {\"name\": \"x\", \"address\": 6}]",
    "'x' has two addresses"
)]
#[case("a.csv", "tensor,place\n", "line 1: expected the columns name and address")]
#[case("a.csv", "name,address\nx,-1\n", "line 2: expected an address")]
#[case("a.csv", "name,address,size\nx,1,many\n", "line 2: expected a size")]
#[case("a.txt", "", "a plan must end in .json or .csv")]
fn a_wrong_file_is_an_error_that_names_the_place(
    #[case] file: &str,
    #[case] text: &str,
    #[case] words: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    fs::write(&path, text).unwrap();
    let run = memplan(&["verify", MODEL, "--addresses", path.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains(words), "{}", run.err);
}

#[test]
fn a_plan_or_addresses_are_needed_but_not_both() {
    for args in [&["verify", MODEL][..], &["verify", MODEL, "plan.json", "--addresses", "a.json"]] {
        assert_eq!(memplan(args).code, 2, "{args:?}");
    }
}
