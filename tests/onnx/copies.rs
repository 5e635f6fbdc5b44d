//! A model with copies computes the same values, and is read as the sequence that was planned.

use std::collections::{BTreeMap, HashMap};

use memplan::{
    Limits, Planner, export,
    import::{
        ImportOptions,
        onnx::{OnnxError, Survey, read_with_nodes},
    },
    order::default_limits,
    planner::Replanned,
    recompute::{Recomputation, Recomputed, with_costs_from_shapes},
};
use rten_onnx::onnx::{GraphProto, ModelProto, NodeProto};

use crate::{
    onnx_text::{OPSET, graph, model, with_body},
    wire::field,
};

fn read(bytes: &[u8]) -> Survey {
    read_with_nodes(bytes, &ImportOptions::default().default_dim(1)).unwrap()
}

fn graph_of(bytes: &[u8]) -> GraphProto {
    ModelProto::parse_buf(bytes).unwrap().graph.unwrap()
}

/// Finds operators to run later so that a model needs this part of its pool.
fn fit(survey: &Survey, percent: u64, reorder: bool) -> Option<Box<Replanned<Recomputation>>> {
    let sequence = with_costs_from_shapes(&survey.sequence);
    let pool = Planner::new().plan(&sequence).unwrap().pool_size();
    let limits = Limits::default().nodes(20_000);
    let (capacity, orders) = (pool * percent / 100, reorder.then(default_limits));
    match Planner::new().plan_recomputed(&sequence, capacity, limits, orders).unwrap() {
        Recomputed::Found(fit) => Some(fit),
        _ => None,
    }
}

/// A node without the names of values: all that its results depend on besides its inputs.
fn essence(node: &NodeProto) -> String {
    let nameless = NodeProto { name: None, input: vec![], output: vec![], ..node.clone() };
    format!("{nameless:?}")
}

/// By name: the number of what a value is computed from. Every node must read values that are there, and no value is
/// made twice.
fn terms(graph: &GraphProto, numbers: &mut HashMap<String, usize>) -> BTreeMap<String, usize> {
    let mut terms: BTreeMap<String, usize> = BTreeMap::new();
    let mut number = |text: String| {
        let next = numbers.len();
        *numbers.entry(text).or_insert(next)
    };
    let supplied = graph.input.iter().filter_map(|value| value.name.clone());
    let weights = graph.initializer.iter().filter_map(|weight| weight.name.clone());
    for name in supplied.chain(weights) {
        let term = number(format!("given {name}"));
        terms.insert(name, term);
    }
    let makes: Vec<&String> = graph.node.iter().flat_map(|node| &node.output).collect();
    for node in &graph.node {
        let inputs = node.input.iter().filter(|name| !name.is_empty());
        let read: Vec<Option<usize>> = inputs
            .map(|name| {
                let term = terms.get(name).copied();
                assert!(term.is_some() || !makes.contains(&name), "{name} is not there yet");
                term
            })
            .collect();
        for (at, output) in node.output.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let term = number(format!("{at} of {} {read:?}", essence(node)));
            assert!(terms.insert(output.clone(), term).is_none(), "{output} is made twice");
        }
    }
    terms
}

/// Checks a model with copies by its parsed form alone; returns the number of copies.
fn check(given: &[u8], written: &[u8], name: &str) -> usize {
    let (mut before, mut after) =
        (ModelProto::parse_buf(given).unwrap(), ModelProto::parse_buf(written).unwrap());
    let (old, new) = (before.graph.as_mut().unwrap(), after.graph.as_mut().unwrap());
    let mut numbers = HashMap::new();
    let (old_terms, new_terms) = (terms(old, &mut numbers), terms(new, &mut numbers));
    for (value, term) in &old_terms {
        assert_eq!(new_terms.get(value), Some(term), "{name}: {value}");
    }
    let names: Vec<&Option<String>> =
        new.node.iter().map(|node| &node.name).filter(|name| name.is_some()).collect();
    let mut distinct = names.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(names.len(), distinct.len(), "{name}: names of nodes");
    let copies = new.node.len() - old.node.len();
    // Values that are stated keep their places; statements about copies follow.
    new.value_info.truncate(old.value_info.len());
    old.node.clear();
    new.node.clear();
    assert_eq!(before.write_buf().unwrap(), after.write_buf().unwrap(), "{name}: all else");
    copies
}

/// Expands a model at several capacities; returns the number of copies in all.
fn expand_all(bytes: &[u8], name: &str) -> usize {
    let survey = read(bytes);
    let mut copies = 0;
    for reorder in [false, true] {
        for percent in [90, 80, 70, 60] {
            let Some(fit) = fit(&survey, percent, reorder) else { continue };
            let written = export::onnx::expanded(bytes, &survey, &fit).unwrap();
            let found = check(bytes, &written, name);
            assert_eq!(found, fit.change.runs_twice().count(), "{name}");
            let again = read(&written).sequence;
            assert!(again.has_same_operators(&fit.sequence), "{name} {percent} {reorder}");
            assert_eq!(Planner::new().plan(&again).unwrap().pool_size(), fit.plan.pool_size());
            copies += found;
        }
    }
    copies
}

/// A wide value that is read at the start and at the end, while another one is wide in between.
const SKIP: &str = "in x:f32[1000]
    weight k=[2.0]
    info c:f32[1]
    a = Relu(x)
    b = lab/Narrow(a)
    c = lab/Narrow(b)
    d = Expand(c, wide)
    weight wide=[1800]
    s = Shape(x)
    e = lab/Narrow(d)
    f = Expand(e, s)
    y = Add(a, f)
    info b:f32[100]
    info e:f32[1]
    out y";

#[test]
fn a_value_is_made_again_from_the_input() {
    let mut bytes = model(graph(SKIP), OPSET);
    bytes.splice(0..0, field(99, b"in front"));
    bytes.extend(field(98, b"behind"));
    let survey = read(&bytes);
    let fit = fit(&survey, 80, false).unwrap();
    let written = export::onnx::expanded(&bytes, &survey, &fit).unwrap();
    assert_eq!(check(&bytes, &written, "skip"), 1);
    assert!(written.starts_with(&field(99, b"in front")));
    assert!(written.ends_with(&field(98, b"behind")));
    let graph = graph_of(&written);
    let copy = graph.node.iter().position(|node| node.output == ["a~1"]).unwrap();
    assert_eq!(graph.node[copy].input, ["x"]);
    assert_eq!(graph.node.last().unwrap().input, ["a~1", "f"]);
    // A node that is known before the run stays.
    assert!(graph.node.iter().any(|node| node.input == ["x"] && node.output == ["s"]));
    // The file with copies is a model like any other, and gets other names the next time.
    expand_all(&written, "again");
}

#[test]
fn models_keep_their_values_and_all_else() {
    let captures = with_body(
        "in c:bool[]\n in x:f32[400]\n a = Relu(x)\n b = ReduceMax(a)\n d = Expand(b, w)
        weight w=[700]\n e = ReduceMax(d)\n k = If(c)\n f = Expand(e, v)\n weight v=[400]
        g = Add(f, k)\n y = Add(g, a)\n out y",
        "If",
        &[("then_branch", "t = Neg(e)\n out t"), ("else_branch", "u = Abs(e)\n out u")],
    );
    let mut models = vec![
        ("skip".to_owned(), model(graph(SKIP), OPSET)),
        ("captures".to_owned(), model(captures, OPSET)),
    ];
    for name in ["models/encoder", "models/unet_block", "models/heads", "fixtures/detection"] {
        let path = format!("{}/tests/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
        models.push((name.to_owned(), std::fs::read(path).unwrap()));
    }
    let copies: usize = models.iter().map(|(name, model)| expand_all(model, name)).sum();
    assert!(copies > 5, "only {copies} copies");
}

#[test]
fn a_name_in_a_sub_graph_is_not_taken_twice() {
    let text = format!("{SKIP}\n in o:bool[]\n z = If(o)\n out z");
    let branches =
        [("then_branch", "a~1 = Neg(k)\n out a~1"), ("else_branch", "u = Abs(k)\n out u")];
    let bytes = model(with_body(&text, "If", &branches), OPSET);
    let survey = read(&bytes);
    let fit = fit(&survey, 80, false).unwrap();
    let written = export::onnx::expanded(&bytes, &survey, &fit).unwrap();
    assert_eq!(check(&bytes, &written, "sub-graph"), 1);
    assert!(graph_of(&written).node.iter().any(|node| node.output == ["a~1~1"]));
}

#[test]
fn a_call_of_several_operators_cannot_stand_beside_copies() {
    let text = format!("{SKIP}\n info z:f32[1]\n z = own/Both(f)\n out z");
    let node = |kind: &[u8], input: &[u8], output: &[u8]| {
        field(7, &[field(1, input), field(2, output), field(4, kind)].concat())
    };
    let function = [
        field(1, b"Both"),
        field(4, b"v"),
        field(5, b"w"),
        node(b"Neg", b"v", b"u"),
        node(b"ReduceMean", b"u", b"w"),
        field(9, &[16, 13]),
        field(10, b"own"),
    ]
    .concat();
    let mut bytes = model(graph(&text), OPSET);
    bytes.extend(field(25, &function));
    let survey = read(&bytes);
    let fit = fit(&survey, 80, false).unwrap();
    let error = export::onnx::expanded(&bytes, &survey, &fit).unwrap_err().to_string();
    assert!(error.contains("the call of a function") && error.contains("inline"), "{error}");
}

#[test]
fn a_plan_of_another_model_is_refused() {
    let bytes = model(graph(SKIP), OPSET);
    let survey = read(&bytes);
    let found = fit(&survey, 80, false).unwrap();
    let other = model(graph("in x:f32[8]\n y = Relu(x)\n out y"), OPSET);
    let error = export::onnx::expanded(&other, &survey, &found).unwrap_err();
    assert!(matches!(error, OnnxError::NotAPermutation { nodes: 1 }), "{error}");
    let error = export::onnx::expanded(&other, &read(&other), &found).unwrap_err();
    assert!(matches!(error, OnnxError::Sequence(_) | OnnxError::NotAPermutation { .. }), "{error}");
}
