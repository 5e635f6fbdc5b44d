//! The search against brute force over all downsets, on thousands of small graphs.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};

use super::{
    bound,
    effort::Effort,
    ladder,
    lazy::Lazies,
    model::{Model, Placing},
    nearest,
    search::{Answer, Question},
    sets::{full, has, insert},
    trees, windows,
};
use crate::{
    Bytes, Limits, Observer, OpSequence, Operator, Output,
    lower::{LoweringOptions, chunk_graph},
};

/// A graph with every feature: shared readers, requests to overwrite, several outputs that request
/// one chunk, required updates, views, workspaces, dead outputs, graph outputs, chunks from the
/// start, operators that only supply something, and control edges.
fn graph(random: &mut Unstructured<'_>, most: usize) -> Result<Option<Model>> {
    let mut sequence = OpSequence::builder();
    let mut tensors: Vec<(String, Bytes)> = Vec::new();
    for at in 0..random.int_in_range(0..=3)? {
        let size = random.int_in_range(1..=9)?;
        tensors.push((format!("in{at}"), size));
        if random.ratio(1, 3)? {
            sequence.weight(format!("in{at}"), Some(size));
        } else {
            sequence.input(format!("in{at}"), size);
        }
    }
    let operators = random.int_in_range(3..=most)?;
    let near = random.ratio(1, 2)?;
    for step in 0..operators {
        let mut operator = Operator::new(format!("op{step}"));
        let mut inputs: Vec<(String, Bytes)> = Vec::new();
        for _ in 0..random.int_in_range(0..=3)?.min(tensors.len()) {
            let first = if near { tensors.len().saturating_sub(5) } else { 0 };
            inputs.push(tensors[random.int_in_range(first..=tensors.len() - 1)?].clone());
        }
        operator = operator.inputs(inputs.iter().map(|(name, _)| name.as_str()));
        if step > 0 && random.ratio(1, 8)? {
            operator = operator.after(random.int_in_range(0..=step - 1)?);
        }
        if random.ratio(1, 5)? {
            operator = operator.workspace(random.int_in_range(1..=12)?);
        }
        for at in 0..[1, 1, 1, 1, 2, 3, 0][random.choose_index(7)?] {
            let name = format!("t{step}.{at}");
            let size = random.int_in_range(1..=9)?;
            let mut output = Output::new(name.clone(), size);
            match inputs.first().cloned() {
                Some((input, room)) if random.ratio(1, 8)? => {
                    output = Output::new(name.clone(), room).reads(input);
                    tensors.push((name, room));
                    operator = operator.output(output);
                    continue;
                }
                Some((input, room)) if room >= size && random.ratio(1, 10)? => {
                    output = output.updates(input, 0);
                }
                _ => {
                    for (input, room) in &inputs {
                        if *room >= size && random.ratio(1, 2)? {
                            output = output.overwrites(input.as_str());
                        }
                    }
                }
            }
            tensors.push((name, size));
            operator = operator.output(output);
        }
        sequence.operator(operator);
    }
    for _ in 0..random.int_in_range(0..=2)?.min(tensors.len()) {
        sequence.output(tensors[random.choose_index(tensors.len())?].0.as_str());
    }
    let options = LoweringOptions {
        inputs_in_pool: random.ratio(1, 2)?,
        weights_in_pool: random.ratio(1, 4)?,
        ..LoweringOptions::default()
    };
    let alignment = if random.ratio(1, 4)? { 4 } else { 1 };
    let (Ok(sequence),) = (sequence.build(),) else { return Ok(None) };
    let Ok(graph) = chunk_graph(&sequence, options) else { return Ok(None) };
    let placing = Placing { alignment, padding: 0 };
    Ok(Some(Model::new(&graph, &sequence.predecessors(), placing)))
}

/// Returns the least peak of all orders: over all downsets, the least of the largest step on a path
/// there.
fn least_peak(model: &Model) -> Bytes {
    let mut layer: BTreeMap<Vec<u64>, Bytes> =
        BTreeMap::from([(vec![0; model.words()], model.live_at_start())]);
    for _ in 0..model.operators() {
        let mut next: BTreeMap<Vec<u64>, Bytes> = BTreeMap::new();
        for (set, peak) in &layer {
            let live = model.live_after(set);
            for operator in 0..u32::try_from(model.operators()).unwrap() {
                let predecessors = model.predecessors.get(operator as usize);
                if has(set, operator) || !predecessors.iter().all(|&first| has(set, first)) {
                    continue;
                }
                let peak = (*peak).max(live + model.step_adds(operator, set));
                let mut set = set.clone();
                insert(&mut set, operator);
                let least = next.entry(set).or_insert(Bytes::MAX);
                *least = (*least).min(peak);
            }
        }
        layer = next;
    }
    layer[&full(model.operators())]
}

fn effort() -> Effort<'static> {
    Effort::new(&Limits::default().nodes(1_000_000), Observer::default())
}

/// Creates random graphs, from fixed seeds so that each run tests the same ones.
fn graphs(count: u64, most: usize) -> impl Iterator<Item = (u64, Model)> {
    (0..count).filter_map(move |seed| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
        let bytes: Vec<u8> = (0..4096)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[3]
            })
            .collect();
        Some((seed, graph(&mut Unstructured::new(&bytes), most).ok()??))
    })
}

#[test]
fn a_search_finds_the_least_peak_and_proves_it() {
    let mut exact = 0;
    for (seed, model) in graphs(4_000, 11) {
        let least = least_peak(&model);
        if least == 0 {
            continue;
        }
        let lazies = Lazies::new(&model);
        let ask = |budget, width| {
            Question { model: &model, lazies: &lazies, budget, width }.answer(&mut effort())
        };
        assert!(bound::operands(&model) <= least, "graph {seed}: operands");
        let given: Vec<u32> = (0..u32::try_from(model.operators()).unwrap()).collect();
        let steps: Vec<(u32, Bytes)> = given.iter().copied().zip(model.steps(&given)).collect();
        assert!(bound::cuts(&model, &steps, 0, &mut effort()) <= least, "graph {seed}: cuts");
        if let Answer::Order(order) = ask(least - 1, 2) {
            panic!("graph {seed}: {order:?} needs less than {least}");
        }
        if !model.exact {
            continue;
        }
        exact += 1;
        match ask(least, usize::MAX) {
            Answer::Order(order) => assert!(model.peak(&order) <= least),
            answer => panic!("graph {seed}: {least} is enough, found {answer:?}"),
        }
        match ask(least - 1, usize::MAX) {
            Answer::AtLeast(bound) => {
                assert!(least > bound - 1 && bound >= least, "graph {seed}: {bound}");
            }
            answer => panic!("graph {seed}: {} is too little, found {answer:?}", least - 1),
        }
        // A budget that is far too small gives a bound that is not too large.
        match ask(least / 2, usize::MAX) {
            Answer::AtLeast(bound) => assert!(bound <= least, "graph {seed}: {bound}"),
            answer => panic!("graph {seed}: {} is too little, found {answer:?}", least / 2),
        }
        let found = ladder::climb(&model, &mut effort());
        assert_eq!((found.peak, found.lower_bound), (least, least), "graph {seed}");
        assert_eq!(model.peak(&found.order), least, "graph {seed}");
    }
    assert!(exact > 2_000, "{exact} graphs");
}

/// Returns an order that runs any ready operator at each step.
fn any_order(model: &Model, mut seed: u64) -> Vec<u32> {
    let operators = u32::try_from(model.operators()).unwrap();
    let mut set = vec![0; model.words()];
    let mut order = Vec::new();
    while order.len() < model.operators() {
        let ready: Vec<u32> = (0..operators)
            .filter(|&o| !has(&set, o))
            .filter(|&o| model.predecessors.get(o as usize).iter().all(|&first| has(&set, first)))
            .collect();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = usize::try_from(seed >> 33).unwrap() % ready.len();
        insert(&mut set, ready[at]);
        order.push(ready[at]);
    }
    order
}

#[test]
fn chained_trees_lose_no_least_peak() {
    let mut chained = 0;
    for (seed, model) in graphs(3_000, 11).chain(tree_graphs(1_000)) {
        if let Some(chain) = trees::chained(&model).filter(|_| model.exact) {
            assert_eq!(least_peak(&chain), least_peak(&model), "graph {seed}");
            chained += 1;
        }
    }
    assert!(chained > 1_200, "{chained} graphs");
}

/// Creates trees of operators that read each other's results, some in place, with workspaces.
fn tree_graphs(count: u64) -> impl Iterator<Item = (u64, Model)> {
    (0..count).map(|seed| {
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
            (state >> 33) % below
        };
        let mut sequence = OpSequence::builder();
        let mut roots: Vec<(String, Bytes)> = Vec::new();
        for step in 0..11 {
            let mut operator = Operator::new("op").workspace(draw(3) * draw(4));
            let mut output = Output::new(format!("t{step}"), 1 + draw(9));
            let size = output.size;
            for _ in 0..draw(3).min(roots.len() as u64) {
                let child = usize::try_from(draw(roots.len() as u64)).unwrap();
                let (name, room) = roots.swap_remove(child);
                if room >= size && draw(2) == 0 {
                    output = output.overwrites(name.as_str());
                }
                operator = operator.inputs([name]);
            }
            sequence.operator(operator.output(output));
            roots.push((format!("t{step}"), size));
        }
        let last = roots.iter().map(|(name, _)| name.as_str());
        sequence.operator(Operator::new("last").inputs(last).output(Output::new("y", 1)));
        let sequence = sequence.output("y").build().unwrap();
        let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
        let placing = Placing { alignment: 1, padding: 0 };
        (seed, Model::new(&graph, &sequence.predecessors(), placing))
    })
}

#[test]
fn a_whole_tree_is_one_chain_of_the_least_peak() {
    for (seed, model) in tree_graphs(500) {
        let chain = trees::chained(&model).unwrap();
        let (one, other) = (any_order(&chain, seed), any_order(&chain, seed + 1));
        assert_eq!(one, other, "graph {seed}");
        assert_eq!(model.peak(&one), least_peak(&model), "graph {seed}");
    }
}

#[test]
fn a_part_has_the_steps_of_the_whole() {
    for (seed, model) in graphs(1_000, 11) {
        let order = any_order(&model, seed);
        let steps = model.steps(&order);
        let (begin, end) = (order.len() / 3, order.len() - order.len() / 4);
        let mut before = vec![0; model.words()];
        order[..begin].iter().for_each(|&operator| insert(&mut before, operator));
        let live = model.live_after(&before);
        let part = model.part(&order[begin..end], &before, live);
        let same: Vec<u32> = (0..u32::try_from(end - begin).unwrap()).collect();
        assert_eq!(part.steps(&same), steps[begin..end], "graph {seed}");
        assert_eq!(part.live_at_start(), live, "graph {seed}");
    }
}

#[test]
fn a_model_without_small_chunks_never_needs_more() {
    for (seed, model) in graphs(1_000, 11) {
        let order = any_order(&model, seed);
        let coarse = model.without_chunks_below(4);
        let (all, some) = (model.steps(&order), coarse.steps(&order));
        assert!(all.iter().zip(&some).all(|(all, some)| all >= some), "graph {seed}");
    }
}

#[test]
fn a_nearer_order_needs_no_more_and_moves_no_more() {
    let mut nearer = 0;
    for (seed, model) in graphs(1_000, 11) {
        let order = any_order(&model, seed);
        let peak = model.peak(&order);
        let near = nearest::nearest(&model, order.clone(), peak, &mut effort());
        assert!(model.peak(&near) <= peak, "graph {seed}");
        let (before, after) = (nearest::moved(&order).len(), nearest::moved(&near).len());
        assert!(after <= before, "graph {seed}");
        nearer += usize::from(after < before);
        let mut set = vec![0; model.words()];
        for &operator in &near {
            let first = model.predecessors.get(operator as usize);
            assert!(first.iter().all(|&first| has(&set, first)), "graph {seed}");
            insert(&mut set, operator);
        }
    }
    assert!(nearer > 300, "{nearer} orders");
}

#[test]
fn windows_never_make_an_order_worse() {
    let mut better = 0;
    for (seed, model) in graphs(1_000, 11) {
        let order = any_order(&model, seed);
        let peak = model.peak(&order);
        let found = windows::improve(&model, order, bound::operands(&model), 1, &mut effort());
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..u32::try_from(model.operators()).unwrap()));
        assert!(model.peak(&found) <= peak, "graph {seed}");
        better += usize::from(model.peak(&found) < peak);
        if model.exact {
            assert_eq!(model.peak(&found), least_peak(&model), "graph {seed}: one window is all");
        }
    }
    assert!(better > 300, "{better} orders");
}
