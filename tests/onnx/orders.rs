//! A model in another order is the same model: its nodes, byte for byte, each after what it reads.

use std::collections::{BTreeMap, HashSet};

use crate::{
    common::seeds::bytes_of,
    onnx_text::{OPSET, graph, model, with_body},
    wire::field,
};
use arbitrary::Unstructured;
use memplan::{
    OpSequence, Planner, export,
    import::{
        ImportOptions,
        onnx::{OnnxError, Survey, read_with_nodes},
    },
    order::default_limits,
};
use rstest::rstest;
use rten_onnx::onnx::{GraphProto, ModelProto, NodeProto};

fn read(bytes: &[u8]) -> Survey {
    read_with_nodes(bytes, &ImportOptions::default().default_dim(1)).unwrap()
}

fn graph_of(bytes: &[u8]) -> GraphProto {
    ModelProto::parse_buf(bytes).unwrap().graph.unwrap()
}

/// The names that a node reads that its graph, or a graph around it, makes.
fn reads(node: &NodeProto) -> Vec<String> {
    let mut names: Vec<String> = node.input.clone();
    for body in node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()) {
        let own: HashSet<&String> = body
            .node
            .iter()
            .flat_map(|node| &node.output)
            .chain(body.input.iter().filter_map(|value| value.name.as_ref()))
            .chain(body.initializer.iter().filter_map(|tensor| tensor.name.as_ref()))
            .collect();
        let outputs = body.output.iter().filter_map(|value| value.name.clone());
        let inner = body.node.iter().flat_map(reads).chain(outputs);
        names.extend(inner.filter(|name| !own.contains(name)));
    }
    names
}

/// The nodes of the main graph as text, and how often each occurs.
fn nodes(bytes: &[u8]) -> BTreeMap<String, usize> {
    let mut nodes = BTreeMap::new();
    for node in graph_of(bytes).node {
        *nodes.entry(format!("{node:?}")).or_default() += 1;
    }
    nodes
}

/// Checks a model in another order by its parsed form alone.
fn check(model: &[u8], permuted: &[u8], name: &str) {
    assert_eq!(model.len(), permuted.len(), "{name}");
    let (mut before, mut after) =
        (ModelProto::parse_buf(model).unwrap(), ModelProto::parse_buf(permuted).unwrap());
    assert_eq!(nodes(model), nodes(permuted), "{name}: the nodes");
    let graph = after.graph.as_ref().unwrap();
    let mut made: HashSet<&str> = HashSet::new();
    let makes: HashSet<&String> = graph.node.iter().flat_map(|node| &node.output).collect();
    for node in &graph.node {
        for input in reads(node).iter().filter(|input| makes.contains(input)) {
            assert!(
                input.is_empty() || made.contains(&**input),
                "{name}: {input} is not there yet"
            );
        }
        made.extend(node.output.iter().map(String::as_str));
    }
    before.graph.as_mut().unwrap().node.clear();
    after.graph.as_mut().unwrap().node.clear();
    assert_eq!(before.write_buf().unwrap(), after.write_buf().unwrap(), "{name}: all else");
}

/// A model with its operators in another order.
fn permuted(model: &[u8], order: &[usize], name: &str) -> Vec<u8> {
    let survey = read(model);
    let sequence = &survey.sequence;
    let file = export::onnx::permuted(model, &survey.node_order(order)).unwrap();
    check(model, &file, name);
    let (written, expected) = (read(&file).sequence, sequence.permuted(order).unwrap());
    assert!(written.has_same_operators(&expected), "{name}: {written:?}\n{expected:?}");
    assert_eq!(sequence.has_same_operators(&expected), order.is_sorted(), "{name}");
    file
}

/// An order in which the operators can run, taken at random.
fn random_order(sequence: &OpSequence, random: &mut Unstructured<'_>) -> Vec<usize> {
    let predecessors = sequence.predecessors();
    let mut order = Vec::new();
    let mut left: Vec<usize> = (0..predecessors.len()).collect();
    while !left.is_empty() {
        let ready: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&step| predecessors[step].iter().all(|first| order.contains(first)))
            .collect();
        let next = ready[random.choose_index(ready.len()).unwrap()];
        left.retain(|&step| step != next);
        order.push(next);
    }
    order
}

const BRANCHES: &str = "in x:f32[1,1000]
    weight shape=[1000,1]
    a1 = Tanh(x)
    b1 = Sigmoid(x)
    a2 = ReduceSum(a1, axes) keepdims=1
    axes = Constant() value_ints=[1]
    b2 = ReduceSum(b1, axes) keepdims=1
    y = Add(a2, b2)
    out y";

#[test]
fn the_nodes_move_and_nothing_else() {
    // Branches stage by stage, a node behind its reader, and unknown fields.
    let mut bytes = model(graph(BRANCHES), OPSET);
    bytes.splice(0..0, field(99, b"in front"));
    bytes.extend(field(98, b"behind"));
    let survey = read(&bytes);
    let given: Vec<usize> = (0..survey.sequence.operators().len()).collect();
    let sorted = export::onnx::permuted(&bytes, &survey.node_order(&given)).unwrap();
    check(&bytes, &sorted, "sorted");
    let file = permuted(&bytes, &[0, 2, 1, 3, 4], "branches");
    let names: Vec<String> =
        graph_of(&file).node.iter().map(|node| node.output[0].clone()).collect();
    assert_eq!(names, ["a1", "axes", "a2", "b1", "b2", "y"]);
    assert!(file.starts_with(&field(99, b"in front")) && file.ends_with(&field(98, b"behind")));
    // Nodes in order stay where they are.
    let nodes = read(&file).node_order(&given);
    assert_eq!(export::onnx::permuted(&file, &nodes).unwrap(), file);
    for wrong in [&[0, 1][..], &[0, 0, 1, 2, 3, 4], &[1, 2, 3, 4, 5, 6]] {
        let error = export::onnx::permuted(&bytes, wrong).unwrap_err();
        assert_eq!(error, OnnxError::NotAPermutation { nodes: 6 });
    }
}

/// The operators that must run after others whose outputs they do not read.
#[rstest]
// The shape of `a` is known, and its node is folded; `b` and `y` wait for it all the same.
#[case("in x:f32[2,3]\n a = Relu(x)\n s = Shape(a)\n b = ConstantOfShape(s)\n c = Neg(x)
    t = Shape(c)\n u = Max(s, t)\n y = Expand(x, u)\n z = Add(y, a)\n out z\n out c\n out b",
    &[("Expand", "Relu Neg")])]
#[case("in x:f32[2]\n a = RandomNormalLike(x)\n b = Relu(x)\n c = RandomUniformLike(x)
    d = Bernoulli(a)\n out c\n out d\n out b",
    &[("RandomUniformLike", "RandomNormalLike"), ("Bernoulli", "RandomUniformLike")])]
// Outside training, nothing is dropped.
#[case("in x:f32[2]\n a, = Dropout(x)\n b, = Dropout(x)\n out a\n out b", &[])]
#[case("in x:f32[2]\n info a:f32[2]\n info b:f32[2]\n a = lab/Log(x)\n b = lab/Log(x)\n out a\n out b",
    &[("Log", "Log")])]
fn operators_wait_for_others(#[case] text: &str, #[case] expected: &[(&str, &str)]) {
    let sequence = read(&model(graph(text), OPSET)).sequence;
    let operators = sequence.operators();
    let kinds = |steps: &[usize]| {
        steps.iter().map(|&step| &*operators[step].kind).collect::<Vec<_>>().join(" ")
    };
    let waiting = operators.iter().filter(|operator| !operator.after.is_empty());
    let found: Vec<(&str, String)> =
        waiting.map(|operator| (&*operator.kind, kinds(&operator.after))).collect();
    let expected: Vec<(&str, String)> =
        expected.iter().map(|&(kind, after)| (kind, after.to_owned())).collect();
    assert_eq!(found, expected);
}

/// If shapes depend on the shapes of all operators so far, the last operators stay where they are.
#[test]
fn edges_without_end_are_cut_short() {
    let mut text = "in x:f32[2,3]\n c0 = Shape(x)".to_owned();
    for at in 1..=1500 {
        let before = at - 1;
        let nodes = format!(
            "\na{at} = Relu(x)\n s{at} = Shape(a{at})\n c{at} = Max(c{before}, s{at})\n y{at} = Expand(x, c{at})\n out y{at}"
        );
        text.push_str(&nodes);
    }
    let sequence = read(&model(graph(&text), OPSET)).sequence;
    let operators = sequence.operators();
    assert_eq!(operators.len(), 3000);
    let edges: usize = operators.iter().map(|operator| operator.after.len()).sum();
    assert!(edges < 1 << 21, "{edges}");
    // Every reader of a shape still runs after all that the shape comes from.
    let predecessors = sequence.predecessors();
    let mut reached: HashSet<usize> = HashSet::from([operators.len() - 1]);
    for step in (0..operators.len()).rev() {
        if reached.contains(&step) {
            reached.extend(&predecessors[step]);
        }
    }
    let shaped = (0..operators.len()).filter(|&step| &*operators[step].kind == "Relu");
    assert!(
        shaped.clone().count() == 1500 && shaped.into_iter().all(|step| reached.contains(&step))
    );
}

#[test]
fn random_numbers_in_a_body_keep_their_order() {
    let body = "r = RandomNormalLike(x)\n out r";
    let graph = with_body(
        "in c:bool[]\n in x:f32[2]\n a = RandomNormalLike(x)\n b = If(c)\n out a\n out b",
        "If",
        &[("then_branch", body), ("else_branch", "r = Neg(x)\n out r")],
    );
    let Survey { sequence, .. } = read(&model(graph, OPSET));
    assert_eq!(sequence.operators()[1].after, [0]);
}

/// Any order that the sequence allows can stand in the file.
#[test]
fn every_order_of_the_sequence_is_one_of_the_file() {
    let captures = with_body(
        "in c:bool[]\n in x:f32[4]\n a = Relu(x)\n b = Neg(x)\n k = Constant() value_float=1.0
        y = If(c)\n z = Abs(x)\n out y\n out z",
        "If",
        &[("then_branch", "t = Add(a, k)\n out t"), ("else_branch", "t = Mul(b, k)\n out t")],
    );
    let shapes = "in x:f32[2,6]\n a = Relu(x)\n s = Shape(a)\n i = Constant() value_int=0
        n = Gather(s, i)\n m = Constant() value_ints=[-1]\n o = Constant() value_ints=[0]
        p = Unsqueeze(n, o)\n q = Concat(p, m) axis=0\n b = Neg(x)\n v = Reshape(b, q)
        c = Abs(x)\n t = Shape(c)\n w = Reshape(c, t)\n y = Add(v, w)\n r = RandomNormalLike(x)
        d = Add(y, r)\n e = RandomUniformLike(b)\n out d\n out e";
    let mut models = vec![
        ("branches", model(graph(BRANCHES), OPSET)),
        ("captures", model(captures, OPSET)),
        ("shapes", model(graph(shapes), OPSET)),
    ];
    for name in ["models/encoder", "models/unet_block", "fixtures/detection"] {
        let path = format!("{}/tests/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
        models.push((name, std::fs::read(path).unwrap()));
    }
    for (name, model) in &models {
        let sequence = read(model).sequence;
        for seed in 0..20 {
            let order = random_order(&sequence, &mut Unstructured::new(&bytes_of(seed)));
            permuted(model, &order, &format!("{name} {seed}"));
        }
    }
}

#[test]
fn a_call_of_a_function_moves_as_a_whole() {
    // A function of two operators, called on either branch, stage by stage.
    let text = "in x:f32[1,1000]\n a1 = Tanh(x)\n b1 = Sigmoid(x)\n info a2:f32[1,1]
        a2 = own/Narrow(a1)\n b2 = own/Narrow(b1)\n y = Add(a2, b2)\n out y";
    let node = |kind: &[u8], input: &[u8], output: &[u8]| {
        field(7, &[field(1, input), field(2, output), field(4, kind)].concat())
    };
    let opset = field(9, &[16, 13]);
    let function = [
        field(1, b"Narrow"),
        field(4, b"v"),
        field(5, b"w"),
        node(b"Neg", b"v", b"u"),
        node(b"ReduceMean", b"u", b"w"),
        opset,
        field(10, b"own"),
    ];
    let mut bytes = model(graph(text), OPSET);
    bytes.extend(field(25, &function.concat()));
    let survey = read(&bytes);
    assert_eq!(survey.sequence.operators().len(), 7, "{:?}", survey.sequence);
    let found = Planner::new().plan_reordered(&survey.sequence, default_limits()).unwrap();
    assert!(found.change.is_better());
    let nodes = survey.node_order(&found.change.order);
    let file = export::onnx::permuted(&bytes, &nodes).unwrap();
    check(&bytes, &file, "calls");
    assert_eq!(nodes, [0, 2, 1, 3, 4]);
    let again = Planner::new().plan(&read(&file).sequence).unwrap();
    assert!(again.pool_size() < found.given.pool_size());
}

#[test]
fn a_graph_in_several_pieces_is_refused() {
    let mut bytes = model(graph(BRANCHES), OPSET);
    bytes.extend(field(7, b""));
    let error = export::onnx::permuted(&bytes, &[0, 1, 2, 3, 4, 5]).unwrap_err();
    assert!(error.to_string().contains("several pieces"), "{error}");
}

/// Many real models, random orders.
#[test]
fn real_models_can_be_reordered() {
    for name in ["light_inception_v1_noshapes", "light_squeezenet_noshapes", "gpt2_b1_s128"] {
        let Some(path) = crate::common::shared_path(&format!("data/models/{name}.onnx")) else {
            return;
        };
        let model = std::fs::read(path).unwrap();
        let sequence = read(&model).sequence;
        let order = random_order(&sequence, &mut Unstructured::new(&bytes_of(1)));
        permuted(&model, &order, name);
    }
}
