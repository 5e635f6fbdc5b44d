//! Networks that run in one pool give the bits that the runtime gives in its own memory.

use memplan::{
    OpSequence, Plan, Planner, Strategy, TensorPlace, export,
    import::{ImportOptions, onnx::read_with_nodes},
    lower::LoweringOptions,
    verify::{Violation, execute},
};
use memplan_runtime::{Inputs, Network, Pool, model, small_network};
use rstest::rstest;
use rten::Value;
use rten_tensor::AsView;

/// Lowering options with or without shared views and operators in place.
fn options(views: bool, inplace: bool) -> LoweringOptions {
    LoweringOptions::default().views(views).inplace(inplace)
}

fn plan(network: &Network, strategy: Strategy, options: LoweringOptions) -> Plan {
    let planner = Planner::new().strategy(strategy).lowering(options).alignment(64);
    planner.plan(network.sequence()).unwrap()
}

fn run_in_pool(network: &Network, plan: &Plan, inputs: &Inputs) -> Vec<Vec<u8>> {
    let mut pool = Pool::new(usize::try_from(plan.pool_size()).unwrap());
    network.run_in_pool(plan, inputs, &mut pool);
    network.outputs_in_pool(plan, inputs, &pool)
}

/// The outputs of the runtime's own run, which must not be trivial.
fn expected(network: &Network, inputs: &Inputs) -> Vec<Vec<u8>> {
    let values = network.run(inputs);
    for value in &values {
        if let Value::FloatTensor(tensor) = value {
            let first = tensor.iter().next().unwrap().to_bits();
            assert!(tensor.iter().all(|number| number.is_finite()), "a number is none");
            assert!(tensor.iter().any(|number| number.to_bits() != first), "all are equal");
        }
    }
    let outputs = network.outputs(&values);
    assert_ne!(network.outputs(&network.run(&network.inputs(3))), outputs, "inputs do not matter");
    outputs
}

/// Moves a chunk onto another one.
fn moved(plan: &Plan, chunk: usize, onto: usize) -> Plan {
    let mut plan = plan.clone();
    let (from, to) = (plan.chunks()[chunk].offset, plan.chunks()[onto].offset);
    plan.chunks_mut()[chunk].offset = to;
    *plan.pool_size_mut() += plan.chunks()[chunk].size;
    for tensor in plan.tensors_mut() {
        if let TensorPlace::Pool { chunk: of, offset } = &mut tensor.place
            && *of == chunk
        {
            *offset = *offset - from + to;
        }
    }
    plan
}

/// Pairs of chunks of which the first, if it were moved onto the second, would overwrite bytes that
/// are still to be read.
fn clashes(plan: &Plan) -> Vec<(usize, usize)> {
    let chunks = || plan.chunks().iter().enumerate();
    let pairs = chunks().flat_map(|(a, chunk)| {
        let waits = move |(_, other): &(usize, &memplan::PlannedChunk)| {
            other.begin < chunk.begin && chunk.begin + 1 < other.end
        };
        chunks().filter(waits).map(move |(b, _)| (a, b))
    });
    pairs.collect()
}

#[test]
fn the_small_network_has_all_that_a_plan_can_do() {
    let network = Network::load(&small_network());
    let plan = plan(&network, Strategy::Pushdown, options(true, true));
    let size = |name| plan.tensor(name).map(|tensor| tensor.size);
    let overwrites = |inner: bool| {
        plan.chunks()
            .iter()
            .any(|chunk| chunk.overwrites.is_some_and(|link| (link.offset > 0) == inner))
    };
    assert!(overwrites(true) && overwrites(false), "{plan:#?}");
    assert_eq!(plan.offset("high"), plan.offset("low").map(|low| low + 1024), "an inner offset");
    assert!(matches!(plan.tensor("plane").unwrap().place, TensorPlace::Supplied { .. }));
    assert_eq!(size("is steep"), Some(8 * 64), "a byte for a bool");
    assert_eq!(size("best"), Some(8 * 8), "eight bytes for an int64");
    assert_eq!(size("offset"), None, "known before the run");
}

#[rstest]
fn the_small_network_gives_the_same_bits_in_one_pool(
    #[values(true, false)] views: bool,
    #[values(true, false)] inplace: bool,
    #[values(true, false)] inputs_in_pool: bool,
) {
    let network = Network::load(&small_network());
    let inputs = network.inputs(2);
    let expected = expected(&network, &inputs);
    let options = options(views, inplace).inputs_in_pool(inputs_in_pool);
    for &strategy in Strategy::ALL {
        let plan = plan(&network, strategy, options);
        assert!(run_in_pool(&network, &plan, &inputs) == expected, "{strategy}: {plan:#?}");
    }
}

#[rstest]
#[case("mobilenet_v2_b1")]
#[case("resnet50_b1")]
#[case("vgg16_b1")]
#[case("densenet121_b1")]
#[case("efficientnet_b0_b1")]
#[case("inception_v3_b1")]
#[case("bert_base_b1_s128")]
#[case("gpt2_b1_s128")]
#[case("vit_b_16_b1")]
fn a_real_network_gives_the_same_bits_in_one_pool(#[case] name: &str) {
    let Some(onnx) = model(name) else { return eprintln!("skipped: {name} is not there") };
    let network = Network::load(&onnx);
    let inputs = network.inputs(2);
    let expected = expected(&network, &inputs);
    for (strategy, options) in [
        (Strategy::Best, options(true, true)),
        (Strategy::Pushdown, options(true, true)),
        (Strategy::TfliteGreedyBySize, options(true, false)),
        (Strategy::Pushdown, options(false, true)),
        (Strategy::Nnvm, options(false, false)),
    ] {
        let plan = plan(&network, strategy, options);
        assert!(
            run_in_pool(&network, &plan, &inputs) == expected,
            "{name}, {strategy}, {options:?}"
        );
    }
}

/// All inputs of the concatenations lie inside their outputs, and nothing computes these.
#[rstest]
#[case("densenet121_b1", 597, 42_198_016)]
#[case("inception_v3_b1", 46, 9_892_096)]
fn concatenations_need_no_copy(#[case] name: &str, #[case] inputs: usize, #[case] bytes: u64) {
    let Some(onnx) = model(name) else { return eprintln!("skipped: {name} is not there") };
    let network = Network::load(&onnx);
    let given = network.inputs(2);
    let expected = expected(&network, &given);
    let planner = Planner::new().alignment(64);
    let plan = planner.plan(network.sequence()).unwrap();
    assert_eq!((plan.parts().len(), plan.not_copied()), (inputs, bytes), "{name}");
    assert!(run_in_pool(&network, &plan, &given) == expected, "{name}");
}

/// Returns an order that is as unlike the given one as possible: of the operators that can run, it
/// always takes the last.
fn contrary_order(sequence: &OpSequence) -> Vec<usize> {
    let predecessors = sequence.predecessors();
    let mut waits: Vec<usize> = predecessors.iter().map(Vec::len).collect();
    let mut left: Vec<usize> = (0..waits.len()).rev().collect();
    let mut order = Vec::new();
    while let Some(at) = left.iter().position(|&step| waits[step] == 0) {
        let step = left.remove(at);
        order.push(step);
        for (other, before) in predecessors.iter().enumerate() {
            waits[other] -= usize::from(before.contains(&step));
        }
    }
    order
}

/// The nodes of the file are put in another order. The weights keep theirs, so both files get the
/// same ones.
#[rstest]
#[case::small("")]
#[case::inception("inception_v3_b1")]
fn a_network_with_its_nodes_in_another_order_gives_the_same_bits(#[case] name: &str) {
    let onnx = if name.is_empty() { Some(small_network()) } else { model(name) };
    let Some(onnx) = onnx else { return eprintln!("skipped: {name} is not there") };
    let network = Network::load(&onnx);
    let inputs = network.inputs(2);
    let expected = expected(&network, &inputs);
    let survey = read_with_nodes(&onnx, &ImportOptions::default()).unwrap();
    let order = contrary_order(&survey.sequence);
    assert!(!order.is_sorted(), "{name} has one order only");
    let nodes = survey.node_order(&order);
    let reordered = Network::load(&export::onnx::permuted(&onnx, &nodes).unwrap());
    let own = reordered.outputs(&reordered.run(&inputs));
    assert!(own == expected, "{name}: run by the runtime");
    let plan = plan(&reordered, Strategy::Best, options(true, true));
    let in_pool = run_in_pool(&reordered, &plan, &inputs);
    assert!(in_pool == expected, "{name}: in one pool, in this order");
}

/// Every chunk is moved onto every other one. Where execution on the shadow memory finds no fault, the bits
/// are the same; where it finds lost bytes, they differ. It also rejects an operator that writes over its
/// inputs, which does no harm here: the outputs are complete before they are copied.
#[rstest]
fn the_bits_are_right_where_execution_finds_no_fault(#[values(true, false)] inplace: bool) {
    let network = Network::load(&small_network());
    let inputs = network.inputs(2);
    let expected = expected(&network, &inputs);
    let plan = plan(&network, Strategy::Pushdown, options(true, inplace));
    let (mut right, mut wrong) = (0, 0);
    let chunks = 0..plan.chunks().len();
    for (chunk, onto) in chunks.clone().flat_map(|a| chunks.clone().map(move |b| (a, b))) {
        let moved = moved(&plan, chunk, onto);
        let violations = execute(network.sequence(), &moved);
        let harms =
            |violation: &Violation| !matches!(violation, Violation::WrittenOverInput { .. });
        let is_same = run_in_pool(&network, &moved, &inputs) == expected;
        let label = || format!("{} on {}", plan.chunks()[chunk].name, plan.chunks()[onto].name);
        assert_eq!(!violations.iter().any(harms), is_same, "{}: {violations:#?}", label());
        *(if is_same { &mut right } else { &mut wrong }) += 1;
    }
    assert!(right > 20 && wrong > 20, "{right} right, {wrong} wrong: {plan:#?}");
}

#[rstest]
#[case("mobilenet_v2_b1")]
#[case("bert_base_b1_s128")]
fn a_wrong_plan_of_a_real_network_gives_other_bits(#[case] name: &str) {
    let Some(onnx) = model(name) else { return eprintln!("skipped: {name} is not there") };
    let network = Network::load(&onnx);
    let inputs = network.inputs(2);
    let expected = expected(&network, &inputs);
    let plan = plan(&network, Strategy::Best, options(true, true));
    let clashes = clashes(&plan);
    for (chunk, onto) in [clashes[0], clashes[clashes.len() / 2], clashes[clashes.len() - 1]] {
        let wrong = moved(&plan, chunk, onto);
        let label = || format!("{} on {}", plan.chunks()[chunk].name, plan.chunks()[onto].name);
        assert!(run_in_pool(&network, &wrong, &inputs) != expected, "{}", label());
    }
}
