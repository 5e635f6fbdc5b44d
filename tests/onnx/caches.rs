//! Caches of language models: a state that a run updates in its own memory, and tensors that are kept.

use crate::onnx_text::{OPSET, graph, model};
use memplan::{
    OpSequence, Plan, Planner,
    import::{
        ImportOptions,
        onnx::{OnnxError, read},
    },
    lower::LoweringOptions,
    verify::verify,
};
use rstest::rstest;

const CACHE: &str = "in tok:f32[1,8]\nin cache:f32[64,8]\nin at:i64[1,1]\nk = Relu(tok)
    next = ScatterND(cache, at, k)\nt = Transpose(next)\ns = MatMul(k, t)\np = Softmax(s)
    y = MatMul(p, next)\nout y\nout next";

fn options() -> ImportOptions {
    ImportOptions::default()
}

fn import(text: &str, options: &ImportOptions) -> Result<OpSequence, OnnxError> {
    read(&model(graph(text), OPSET), options)
}

fn plan(options: &ImportOptions, inputs: bool) -> Plan {
    let sequence = import(CACHE, options).unwrap();
    let lowering = LoweringOptions::default().inputs_in_pool(inputs);
    let planner = Planner::new().alignment(64).lowering(lowering);
    let plan = planner.plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    plan
}

fn place(plan: &Plan, name: &str) -> Option<u64> {
    let chunk = plan.chunks().iter().find(|chunk| &*chunk.name == name)?;
    Some(chunk.offset)
}

#[test]
fn a_cache_and_its_next_state_are_one_place() {
    let apart = plan(&options(), true);
    assert_ne!(place(&apart, "cache"), place(&apart, "next"));
    let state = options().state("cache", "next");
    let together = plan(&state, true);
    assert!(place(&together, "cache").is_some());
    assert_eq!(place(&together, "cache"), place(&together, "next"));
    // The memory of the caller is updated, so the pool does not hold the cache.
    let (outside, copied) = (plan(&state, false), plan(&options(), false));
    assert_eq!(place(&outside, "next"), None);
    assert!(outside.pool_size() < copied.pool_size());
}

#[rstest]
#[case(
    "cache",
    "y",
    "the input has 2048 bytes, but the next state 32; a cache that grows needs room for its largest state"
)]
#[case("k", "p", "'k' is no input of the model")]
#[case("cache", "tok", "no operator that runs makes 'tok'")]
fn a_state_must_fit(#[case] input: &str, #[case] next: &str, #[case] why: &str) {
    let error = import(CACHE, &options().state(input, next)).unwrap_err().to_string();
    assert_eq!(error, format!("{input}={next} is no state: {why}"));
}

/// The old state is gone once the new one is made.
#[test]
fn nobody_reads_the_old_state_later() {
    let late =
        CACHE.replace("t = Transpose(next)", "t = Transpose(next)\nold = Neg(cache)\nout old");
    let sequence = import(&late, &options().state("cache", "next"));
    let planned = sequence.map_err(|error| error.to_string()).and_then(|sequence| {
        let lowering = LoweringOptions::default().inputs_in_pool(true);
        Planner::new().lowering(lowering).plan(&sequence).map_err(|error| error.to_string())
    });
    let error = planned.unwrap_err();
    assert!(error.contains("cache"), "{error}");
}

#[test]
fn a_kept_tensor_lives_to_the_end() {
    let end = |options: &ImportOptions| {
        let plan = plan(options, false);
        plan.chunks().iter().find(|chunk| &*chunk.name == "k").unwrap().end
    };
    assert_eq!((end(&options()), end(&options().keep(["k"]))), (4, 6));
    let error = import(CACHE, &options().keep(["w"])).unwrap_err().to_string();
    assert!(error.contains("is called 'w'; its input"), "{error}");
}

/// A cache that grows is copied by its concatenation, unless tokens are the first dimension: then it lies inside the
/// next one from the beginning.
#[rstest]
#[case("in past:f32[p,4,8]\nin new:f32[1,4,8]\npresent = Concat(past, k) axis=0", true)]
#[case("in past:f32[1,4,p,8]\nin new:f32[1,4,1,8]\npresent = Concat(past, k) axis=2", false)]
fn a_growing_cache_needs_no_copy_if_tokens_come_first(#[case] text: &str, #[case] inside: bool) {
    let text = text.replace("\npresent", "\nk = Relu(new)\npresent") + "\nout present";
    let sequence = import(&text, &options().dims([("p", 63)])).unwrap();
    let planner = Planner::new().alignment(64);
    let planner = planner.lowering(LoweringOptions::default().inputs_in_pool(true));
    let plan = planner.plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    let once = 64 * 4 * 8 * 4;
    assert_eq!(place(&plan, "past") == place(&plan, "present"), inside);
    assert_eq!(plan.pool_size() < 2 * once, inside, "{}", plan.pool_size());
}

/// By its name or, for all of a type that have no line of their own, by its type.
#[test]
fn operators_have_the_scratch_memory_that_is_stated() {
    let stated = options().workspace("MatMul", 4096).workspace("Softmax", 64);
    let sequence = import(CACHE, &stated).unwrap();
    let of = |kind: &str| {
        let of_kind = sequence.operators().iter().filter(|node| &*node.kind == kind);
        of_kind.map(|node| node.workspace).collect::<Vec<_>>()
    };
    assert_eq!((of("MatMul"), of("Softmax"), of("Relu")), (vec![4096; 2], vec![64], vec![0]));
    let error = import(CACHE, &options().workspace("Conv", 1)).unwrap_err().to_string();
    assert!(
        error.starts_with("no operator of the model has the name or the type 'Conv'"),
        "{error}"
    );
}
