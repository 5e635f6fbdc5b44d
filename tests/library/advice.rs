//! What would make the pool smaller: each size is that of a plan of the changed sequence.

use std::{collections::BTreeSet, ops::Range};

use arbitrary::Unstructured;
use memplan::{
    OpSequence, Operator, Output, Planner,
    report::{Change, advice, advice_text},
    sequence::{Origin, TensorId},
};

use crate::common::{random::random_sequence, seeds::bytes_of};

/// Operators with one output each, in memory of its own.
fn plain(seed: u64) -> OpSequence {
    let bytes = bytes_of(seed);
    let mut random = Unstructured::new(&bytes);
    let count: usize = random.int_in_range(4..=14).unwrap();
    let mut sequence = OpSequence::builder();
    for at in 0..count {
        let reads = if at == 0 { 0 } else { random.int_in_range(1..=2).unwrap() };
        let inputs: Vec<String> =
            (0..reads).map(|_| format!("t{}", random.choose_index(at).unwrap())).collect();
        let size = 64 * random.int_in_range(1..=40).unwrap();
        let operator = Operator::new(format!("op{at}")).inputs(inputs);
        sequence.operator(operator.output(Output::new(format!("t{at}"), size)));
    }
    sequence.output(format!("t{}", count - 1)).build().unwrap()
}

fn size(sequence: &OpSequence, id: TensorId) -> u64 {
    sequence.tensor(id).size.unwrap()
}

fn names(sequence: &OpSequence, ids: &[TensorId]) -> Vec<String> {
    ids.iter().map(|&id| sequence.tensor(id).name.to_string()).collect()
}

/// The tensors made in some steps that nothing else reads.
fn passed(sequence: &OpSequence, steps: &Range<usize>) -> BTreeSet<String> {
    let read_by = |step: &usize| names(sequence, &sequence.operators()[*step].inputs);
    let all = 0..sequence.operators().len();
    let inside: BTreeSet<String> = steps.clone().flat_map(|step| read_by(&step)).collect();
    let outside = all.filter(|step| !steps.contains(step)).flat_map(|step| read_by(&step));
    let outside: BTreeSet<String> = outside.chain(names(sequence, sequence.outputs())).collect();
    let made = steps.clone().flat_map(|step| names(sequence, &sequence.operators()[step].outputs));
    made.filter(|name| inside.contains(name) && !outside.contains(name)).collect()
}

/// The sequence of plain operators with one operator in place of some, with this much memory of its own.
fn fused(sequence: &OpSequence, steps: &Range<usize>, workspace: u64) -> OpSequence {
    let passed = passed(sequence, steps);
    let made_inside = |name: &String| {
        let origin = &sequence.tensor(sequence.tensor_id(name).unwrap()).origin;
        matches!(origin, Origin::Output { step, .. } if steps.contains(step))
    };
    let mut changed = OpSequence::builder();
    let mut one = Operator::new("one").workspace(workspace);
    for (step, node) in sequence.operators().iter().enumerate() {
        let is_inside = steps.contains(&step);
        let inputs = names(sequence, &node.inputs).into_iter();
        let inputs = inputs.filter(|name| !is_inside || !made_inside(name));
        let begun = if is_inside { std::mem::take(&mut one) } else { Operator::new("other") };
        let mut operator = begun.inputs(inputs);
        for &id in &node.outputs {
            let name = sequence.tensor(id).name.to_string();
            if !passed.contains(&name) {
                operator = operator.output(Output::new(name, size(sequence, id)));
            }
        }
        if is_inside && step + 1 < steps.end {
            one = operator;
        } else {
            changed.operator(operator);
        }
    }
    changed.output(names(sequence, sequence.outputs()).remove(0)).build().unwrap()
}

/// What the operators of some steps pass to each other, at half its size, and nothing else.
fn half(sequence: &OpSequence, steps: &Range<usize>) -> u64 {
    let passed = passed(sequence, steps);
    let mut alone = OpSequence::builder();
    for node in &sequence.operators()[steps.clone()] {
        let inputs = names(sequence, &node.inputs).into_iter();
        let mut operator =
            Operator::new("part").inputs(inputs.filter(|name| passed.contains(name)));
        for &id in &node.outputs {
            let name = sequence.tensor(id).name.to_string();
            if passed.contains(&name) {
                operator = operator.output(Output::new(name, size(sequence, id).div_ceil(2)));
            }
        }
        alone.operator(operator);
    }
    Planner::new().alignment(64).plan(&alone.build().unwrap()).unwrap().pool_size()
}

fn pool_size(sequence: &OpSequence) -> u64 {
    Planner::new().alignment(64).plan(sequence).unwrap().pool_size()
}

fn advice_for(sequence: &OpSequence) -> (u64, Vec<(Change, u64)>) {
    let planner = Planner::new().alignment(64);
    let plan = planner.plan(sequence).unwrap();
    (plan.pool_size(), advice(sequence, &plan, &planner).unwrap())
}

#[test]
fn each_size_is_that_of_a_plan_of_the_changed_sequence() {
    let mut kinds = BTreeSet::new();
    for seed in 0..40 {
        let sequence = plain(seed);
        let (given, advice) = advice_for(&sequence);
        for (change, stated) in &advice {
            let (kind, planned) = match change {
                Change::Order(order) => ("order", pool_size(&sequence.permuted(order).unwrap())),
                Change::OneOperator(steps) => ("one", pool_size(&fused(&sequence, steps, 0))),
                Change::Without { steps, .. } => {
                    ("without", pool_size(&fused(&sequence, steps, 0)))
                }
                Change::Halves(steps) => {
                    let room = half(&sequence, steps);
                    ("halves", pool_size(&fused(&sequence, steps, room)))
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(*stated, planned, "seed {seed}, {change:?}");
            assert!(*stated < given, "seed {seed}, {change:?}");
            kinds.insert(kind);
        }
        assert!(advice.is_sorted_by_key(|&(_, pool_size)| pool_size));
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[test]
fn sequences_with_views_overwrites_and_gathers_get_advice_too() {
    let mut given = 0;
    for seed in 0..80 {
        let bytes = bytes_of(seed);
        let Ok(Ok(sequence)) = random_sequence(&mut Unstructured::new(&bytes), 8) else {
            continue;
        };
        let planner = Planner::new().alignment(16);
        let Ok(plan) = planner.plan(&sequence) else { continue };
        let found = advice(&sequence, &plan, &planner).unwrap();
        assert!(found.iter().all(|&(_, pool_size)| pool_size < plan.pool_size()), "seed {seed}");
        given += found.len();
    }
    assert!(given > 20, "{given}");
}

/// `v` must become a copy of a part of `w`, which only a plan does, and no search for an order.
#[test]
fn without_an_order_there_is_other_advice() {
    let mut builder = OpSequence::builder();
    builder.weight("w", Some(64));
    let update =
        Operator::new("update").inputs(["w"]).output(Output::new("v", 32).reads_at("w", 16));
    let sequence = builder
        .operator(update.output(Output::new("y", 64).updates("w", 0)))
        .operator(Operator::new("expand").inputs(["v"]).output(Output::new("x", 1024)))
        .operator(Operator::new("reduce").inputs(["x"]).output(Output::new("z", 64)))
        .build()
        .unwrap();
    let (pool_size, advice) = advice_for(&sequence);
    assert_eq!((pool_size, advice.first()), (1088, Some(&(Change::OneOperator(0..3), 64))));
}

/// A kernel that does what two did, each of which works in place, works in place.
#[test]
fn a_fused_operator_keeps_what_its_parts_may_overwrite() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("u").output(Output::new("u", 1024)))
        .operator(
            Operator::new("v")
                .inputs(["u"])
                .output(Output::new("v", 1024).overwrites("u"))
                .output(Output::new("gate", 4096)),
        )
        .operator(
            Operator::new("w").inputs(["v", "gate"]).output(Output::new("w", 1024).overwrites("v")),
        )
        .output("w")
        .build()
        .unwrap();
    let (given, advice) = advice_for(&sequence);
    assert_eq!(given, 1024 + 4096);
    let best = advice.first().unwrap();
    assert_eq!(*best, (Change::OneOperator(1..3), 1024));
    let text = advice_text(&advice, Some(&sequence));
    assert!(text.contains("with one fused operator in place of steps 1..3 (v to w)"), "{text}");
}

#[test]
fn there_is_no_advice_without_a_peak_to_lower() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("a").output(Output::new("x", 64)))
        .output("x")
        .build()
        .unwrap();
    let (_, advice) = advice_for(&sequence);
    assert_eq!((advice.len(), advice_text(&advice, None)), (0, String::new()));
}
