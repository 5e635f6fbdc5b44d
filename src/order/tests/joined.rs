//! Joined operators lose no order with the least peak.

use super::{
    any_order,
    built::{gated_graphs, gated_unit, module_graphs, rewritten_before_update, tree_graphs},
    check, effort, graphs, least_peak,
};
use crate::order::{fuse::Fused, modules};

#[test]
fn joined_operators_lose_no_least_peak() {
    let mut joined = 0;
    for (seed, model) in graphs(3_000, 11).chain(gated_graphs(1_000)).chain(tree_graphs(200)) {
        let Some(fused) = Fused::new(&model) else { continue };
        let least = least_peak(&model);
        assert_eq!(least_peak(&fused.model), least, "graph {seed}");
        let order = any_order(&fused.model, seed);
        let (one, other) = (fused.model.peak(&order), model.peak(&fused.expanded(&order)));
        assert_eq!(one, other, "graph {seed}");
        if least > 0 {
            assert_eq!(check(&fused.model, least), Ok(()), "graph {seed}");
        }
        joined += 1;
    }
    assert!(joined > 1_000, "{joined} graphs");
}

#[test]
fn joined_modules_lose_no_least_peak() {
    let (mut joined, mut operators) = (0, 0);
    for (seed, model) in graphs(3_000, 11).chain(module_graphs(3_000)).chain(gated_graphs(1_000)) {
        let fused = Fused::new(&model).map(|fused| fused.model);
        for model in [Some(model), fused].into_iter().flatten() {
            let Some(modules) = modules::joined(&model, &mut effort()) else { continue };
            assert_eq!(least_peak(&modules.model), least_peak(&model), "graph {seed}");
            let order = any_order(&modules.model, seed);
            let (one, other) = (modules.model.peak(&order), model.peak(&modules.expanded(&order)));
            assert_eq!(one, other, "graph {seed}");
            joined += 1;
            operators += model.operators() - modules.model.operators();
        }
    }
    assert!(joined > 1_000, "{joined} graphs without {operators} operators");
}

#[test]
fn a_chunk_that_outlives_its_update_is_in_no_tree() {
    for (model, least) in [(rewritten_before_update(), 13), (gated_unit(), 21)] {
        assert_eq!(least_peak(&model), least);
        assert_eq!(check(&model, least), Ok(()));
        let fused = Fused::new(&model).unwrap().model;
        assert_eq!(least_peak(&fused), least);
        assert_eq!(check(&fused, least), Ok(()));
    }
}
