//! The search against brute force over all downsets, on thousands of small graphs.

mod built;
mod joined;
mod near;

use crate::effort::Effort;
use std::collections::BTreeMap;

use arbitrary::Unstructured;
use rstest::rstest;

use super::{
    bound,
    fuse::Fused,
    joins,
    lazy::Waits,
    model::Model,
    modules,
    mutations::{self, Mutation},
    search::{Answer, Question, TURNS, Turn},
    sets::{full, has, insert},
    symmetry::Symmetry,
    trees, windows,
};
use crate::{
    Bytes, Limits, Observer, OpSequence, Operator, Output,
    lower::{Grain, LoweringOptions, Placing, chunk_graph, lower_apart},
    seeds::bytes_of,
};
use built::{
    best_between_two, equal_chains, gated_graphs, half_overwritten, idle_branch, module_graphs,
    off_the_alignment, small_death_saves_much, sum_in_tree, symmetric_graphs, tree_graphs,
    two_ways_to_overwrite,
};

/// A graph with every feature: shared readers, requests to overwrite, several outputs that request
/// one chunk, at an offset or below it, required updates, views of all or some bytes, workspaces, dead outputs, graph
/// outputs, chunks from the start, operators that only supply something, control edges, alignment and
/// padding. Of ten requests to overwrite, `overlaps` are partial overlaps.
fn graph(
    random: &mut Unstructured<'_>,
    most: usize,
    overlaps: usize,
) -> arbitrary::Result<Option<Model>> {
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
    let padding = if random.ratio(1, 4)? { 3 } else { 0 };
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
            operator = operator.after_place(random.int_in_range(0..=step - 1)?);
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
                    // A view of the whole input or of a slice of it.
                    let size = if random.ratio(1, 2)? { room } else { size.min(room) };
                    let offset = random.int_in_range(0..=room - size)?;
                    output = Output::new(name.clone(), size).reads_at(input, offset);
                    tensors.push((name, size));
                    operator = operator.output(output);
                    continue;
                }
                Some((input, room)) if room >= size && random.ratio(1, 10)? => {
                    let offset = random.int_in_range(0..=room - size)?;
                    output = output.updates(input, if random.ratio(1, 3)? { offset } else { 0 });
                }
                _ => {
                    for (input, room) in &inputs {
                        if *room >= size && random.ratio(1, 2)? {
                            output = match random.int_in_range(0..=9)? {
                                at if at < overlaps => {
                                    let below = [size / 2, size - 1, 1][at % 3];
                                    output.overlaps(input.as_str(), below)
                                }
                                1 => output.overwrites_at(input.as_str(), room - size),
                                _ => output.overwrites(input.as_str()),
                            };
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
    if graph.has_copies {
        return Ok(None);
    }
    let placing = Placing { alignment, padding };
    let model = Model::of(&graph.counted(placing), &sequence.predecessors());
    let given = (0..u32::try_from(operators).unwrap()).collect();
    for order in [given, any_order(&model, operators as u64)] {
        let steps: Vec<usize> = order.iter().map(|&step| step as usize).collect();
        let permuted = sequence.permuted(&steps).unwrap();
        if let Some(planned) = planned(&permuted, options, placing) {
            assert!(model.peak(&order) <= planned, "no more than the bound of a plan");
            assert!(!model.exact || model.peak(&order) == planned, "the bound of a plan");
        } else {
            assert!(!model.exact, "no order that cannot be lowered");
        }
    }
    Ok(Some(model))
}

/// Returns the bound of a plan, if the sequence can be lowered with all views.
fn planned(sequence: &OpSequence, options: LoweringOptions, placing: Placing) -> Option<Bytes> {
    let lowered = lower_apart(sequence, options, placing, Grain::Chunks).ok()?;
    let lowered = Some(lowered).filter(|lowered| lowered.copied.is_empty())?;
    let aligned = lowered.problem.with_alignment(placing.alignment).unwrap();
    Some(aligned.with_padding(placing.padding).unwrap().lower_bound())
}

/// The bytes of unread inputs in the step after a downset.
fn unread(model: &Model, set: &[u64]) -> Bytes {
    if set.iter().all(|&word| word == 0) { model.unread } else { 0 }
}

/// Returns the least peak of all orders: over all downsets, the least of the largest step on a path
/// there.
fn least_peak(model: &Model) -> Bytes {
    let mut layer: BTreeMap<Vec<u64>, Bytes> =
        BTreeMap::from([(vec![0; model.words()], model.live_at_start())]);
    for _ in 0..model.operators() {
        let mut next: BTreeMap<Vec<u64>, Bytes> = BTreeMap::new();
        for (set, peak) in &layer {
            let live = model.live_after(set) + unread(model, set);
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
    super::effort(&Limits::default().nodes(1_000_000), Observer::default())
}

/// The model's peak is compared with the bound of plans in each graph that is drawn.
#[rstest]
#[case::padding_makes_an_overlap_useless(225_370, 1)]
#[case::only_other_overlaps_of_the_same_step_are_dropped(3_224, 6)]
#[case::an_overlap_off_the_alignment_counts_no_bytes(23_213, 6)]
#[case::an_overlap_that_shares_nothing_is_no_request(216, 6)]
fn overlaps_count_as_in_a_plan(#[case] seed: u64, #[case] overlaps: usize) {
    let drawn = graph(&mut Unstructured::new(&bytes_of(seed)), 12, overlaps);
    assert!(drawn.is_ok_and(|model| model.is_some()));
}

#[test]
fn a_share_of_the_effort_ends_early_and_leaves_the_rest() {
    let mut effort = effort();
    let left = effort.part(1);
    effort.share(4, |effort| {
        assert_eq!(effort.part(1), left / 4);
        effort.spend(left / 4);
        assert!(effort.is_spent());
    });
    assert!(!effort.is_spent());
    assert_eq!(effort.part(1), left - left / 4);
}

/// Creates random graphs, from fixed seeds so that each run tests the same ones.
fn graphs(count: u64, most: usize) -> impl Iterator<Item = (u64, Model)> {
    (0..count).filter_map(move |seed| {
        Some((seed, graph(&mut Unstructured::new(&bytes_of(seed)), most, 1).ok()??))
    })
}

/// Checks every bound and every answer of the search against the least peak.
fn check(model: &Model, least: Bytes) -> Result<(), String> {
    let given: Vec<u32> = (0..u32::try_from(model.operators()).unwrap()).collect();
    let steps: Vec<(u32, Bytes)> = given.iter().copied().zip(model.steps(&given)).collect();
    let bounds =
        [model.operands(), bound::cuts(model, &steps, 0, &mut effort())].map(|b| b <= least);
    if bounds != [true; 2] {
        return Err(format!("bounds {bounds:?}"));
    }
    let waits = Waits::new(model);
    let symmetry = Symmetry::new(model, &mut effort());
    for (one, other) in symmetry
        .families
        .iter()
        .flat_map(|family| family[1..].iter().map(|other| (&family[0], other)))
    {
        let exchanged = given.iter().map(|operator| {
            let place = |branch: &[u32]| branch.iter().position(|o| o == operator);
            match (place(one), place(other)) {
                (Some(at), _) => other[at],
                (_, Some(at)) => one[at],
                _ => *operator,
            }
        });
        if model.steps(&exchanged.collect::<Vec<_>>()) != model.steps(&given) {
            return Err("an exchange of symmetric branches".to_owned());
        }
    }
    for (budget, width) in [
        (least, usize::MAX),
        (least - 1, usize::MAX),
        // A budget that is far too small gives a bound that is not too large.
        (least / 2, usize::MAX),
        (least, 1),
        (least, 2),
        (least - 1, 2),
    ] {
        // By default, the back alone decides graphs as small as these.
        let all = Turn { backwards: 0, forwards: u64::MAX };
        let few = Turn { backwards: 1, forwards: 200 };
        for turns in [&TURNS[..], &[all], &[few, few, all]] {
            let question =
                Question { model, waits: &waits, symmetry: &symmetry, budget, width, turns };
            let is_right = match question.answer(&mut effort()) {
                Answer::Order(order) => model.peak(&order) <= budget && budget >= least,
                Answer::AtLeast(bound) => budget < bound && bound <= least,
                Answer::UnknownBelow(_) => !model.exact || width < usize::MAX,
            };
            if !is_right {
                return Err(format!("a budget of {budget} and a width of {width}"));
            }
        }
    }
    let modules = modules::joined(model, &mut effort()).map(|joined| least_peak(&joined.model));
    if modules.is_some_and(|joined| joined != least) {
        return Err(format!("{modules:?} with modules joined, not {least}"));
    }
    let found = joins::best_order(model, &mut effort());
    if model.exact && (found.peak, found.lower_bound) != (least, least) {
        return Err(format!("peak {}, bound {}", found.peak, found.lower_bound));
    }
    if model.peak(&found.order) != found.peak || found.lower_bound > least {
        let (order, peak) = (&found.order, model.peak(&found.order));
        let (claim, bound) = (found.peak, found.lower_bound);
        return Err(format!("{order:?} needs {peak}, not {claim}; bound {bound}, least {least}"));
    }
    Ok(())
}

#[test]
fn a_search_finds_the_least_peak_and_proves_it() {
    let (mut exact, mut symmetry) = (0, 0);
    for (seed, model) in graphs(3_000, 11)
        .chain(symmetric_graphs(300))
        .chain(equal_chains(100))
        .chain(gated_graphs(300))
        .chain(module_graphs(500))
        .chain([(0, sum_in_tree()), (0, best_between_two())])
    {
        let least = least_peak(&model);
        if least > 0 {
            assert_eq!(check(&model, least), Ok(()), "graph {seed}");
            exact += u32::from(model.exact);
            symmetry += u32::from(!Symmetry::new(&model, &mut effort()).is_empty());
        }
    }
    assert!(exact > 1_500 && symmetry > 150, "{exact} exact graphs, {symmetry} with symmetry");
}

#[test]
fn branches_are_not_symmetric_if_only_one_may_be_overwritten() {
    for model in half_overwritten() {
        let least = least_peak(&model);
        let found = joins::best_order(&model, &mut effort());
        assert_eq!((found.peak, found.lower_bound, least), (29, 29, 29));
        assert_eq!(check(&model, least), Ok(()));
    }
}

#[test]
fn chunks_off_the_alignment_need_no_more_than_in_a_plan() {
    for sequence in off_the_alignment() {
        let placing = Placing { alignment: 4, padding: 0 };
        let options = LoweringOptions::default();
        let graph = chunk_graph(&sequence, options).unwrap();
        let model = Model::of(&graph.counted(placing), &sequence.predecessors());
        let given: Vec<u32> = (0..u32::try_from(model.operators()).unwrap()).collect();
        assert!(Some(model.peak(&given)) <= planned(&sequence, options, placing));
        assert!(!model.exact);
    }
}

#[test]
fn bounds_count_the_most_that_an_output_can_save() {
    let model = two_ways_to_overwrite();
    let least = least_peak(&model);
    assert_eq!((least, model.operands()), (16, 16));
    assert_eq!(check(&model, least), Ok(()));
}

/// The search from the end takes it that a chunk that dies saves no more than its own bytes.
#[test]
fn a_model_in_which_a_small_death_saves_much_is_not_exact() {
    assert!(!small_death_saves_much().exact);
}

/// With any of these rules wrong, some graph has a wrong answer.
#[test]
fn a_wrong_rule_is_noticed() {
    let mut missed = Vec::new();
    for mutation in [
        Mutation::RaisingMove,
        Mutation::LooseBudget,
        Mutation::LazyWithHill,
        Mutation::ConsumerWithHill,
        Mutation::RaiseWithHill,
        Mutation::BlockWithoutReaders,
        Mutation::HighValley,
        Mutation::ProofWithGaps,
        Mutation::HighRefusal,
        Mutation::CutWithoutOverwriting,
        Mutation::TreeByHill,
        Mutation::RewriteWithHill,
        Mutation::UpdateBesideReaders,
        Mutation::ReadAboveParent,
        Mutation::ModuleBelowStart,
        Mutation::ModuleAboveEnd,
        Mutation::ModuleByMortalEntries,
        Mutation::SymmetryByColour,
        Mutation::SymmetryInAnyGoal,
        Mutation::ValleyWithoutCut,
        Mutation::UnreadIsNoPeak,
        Mutation::FreeFirstStep,
    ] {
        let is_noticed = |(_, model): (u64, Model)| {
            let least = least_peak(&model);
            if least == 0 {
                return false;
            }
            // A search that breaks its budget panics.
            let check = std::panic::AssertUnwindSafe(|| check(&model, least));
            !matches!(std::panic::catch_unwind(check), Ok(Ok(())))
        };
        let built = symmetric_graphs(200)
            .chain(tree_graphs(100))
            .chain(equal_chains(100))
            .chain(gated_graphs(100))
            .chain(module_graphs(200));
        let mut graphs = built
            .chain([idle_branch(), sum_in_tree(), best_between_two()].map(|model| (0, model)))
            .chain(graphs(2_000, 10));
        // The mutation is on where the models are created as well.
        if !mutations::with(Some(mutation), || graphs.any(is_noticed)) {
            missed.push(mutation);
        }
    }
    assert_eq!(missed, []);
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
    for (seed, model) in graphs(3_000, 11).chain(tree_graphs(1_000)).chain(gated_graphs(1_000)) {
        let fused = Fused::new(&model).map(|fused| fused.model);
        for model in [Some(model), fused].into_iter().flatten() {
            if let Some(chain) = trees::chained(&model).filter(|_| model.exact) {
                assert_eq!(least_peak(&chain), least_peak(&model), "graph {seed}");
                chained += 1;
            }
        }
    }
    assert!(chained > 1_200, "{chained} graphs");
}

#[test]
fn a_whole_tree_is_one_chain_of_the_least_peak() {
    for (seed, model) in tree_graphs(500) {
        let chain = trees::chained(&model).unwrap();
        let (one, other) = (any_order(&chain, seed), any_order(&chain, seed + 1));
        assert_eq!(one, other, "graph {seed}");
        let least = least_peak(&model);
        assert_eq!(model.peak(&one), least, "graph {seed}");
        assert_eq!(trees::only_order(&chain), Some(one), "graph {seed}");
        let found = joins::best_order(
            &model,
            &mut super::effort(&Limits::default().nodes(1), Observer::default()),
        );
        assert_eq!((found.peak, found.lower_bound), (least, least), "graph {seed}: one node");
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
fn windows_never_make_an_order_worse() {
    let mut better = 0;
    for (seed, model) in graphs(1_000, 11) {
        let order = any_order(&model, seed);
        let peak = model.peak(&order);
        let found = windows::improve(&model, order, model.operands(), 1, &mut effort());
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
