//! The model counts the bytes that lowering counts.

use super::{Recompute, expand, found::later_runs, model::Model, sweep::Sweep};
use crate::{
    Limits, Observer, OpSequence, Operator, Output, lower::LoweringOptions, lower::Placing,
};

/// A forward and a backward pass with views, overwrites, several outputs, and results on the way.
fn step(random: &mut impl FnMut(u64) -> u64) -> OpSequence {
    let mut step = OpSequence::builder();
    step.input("t0", 4);
    let layers = 12;
    for layer in 1..=layers {
        let below = format!("t{}", layer - 1);
        let output = Output::new(format!("t{layer}"), 4);
        let output = match random(4) {
            0 if layer > 1 => output.reads(below.clone()),
            1 if layer > 1 => output.overwrites(below.clone()),
            _ => output,
        };
        let side = Output::new(format!("s{layer}"), 1 + random(3));
        step.operator(
            Operator::new(format!("f{layer}"))
                .inputs([below])
                .workspace(random(3))
                .output(output)
                .output(side),
        );
        if random(5) == 0 {
            step.output(format!("s{layer}"));
        }
    }
    let mut above = format!("t{layers}");
    for layer in (1..=layers).rev() {
        let mut inputs = vec![above, format!("t{}", layer - 1)];
        inputs.extend((random(2) == 0).then(|| format!("s{layer}")));
        above = format!("g{layer}");
        let output = Output::new(above.clone(), 4);
        step.operator(Operator::new(format!("b{layer}")).inputs(inputs).output(output));
        if random(4) == 0 {
            step.output(above.clone());
        }
    }
    step.output(above).build().unwrap()
}

#[test]
fn walks_count_the_bytes_that_lowering_counts() {
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let placing = Placing { alignment: 4, padding: 1 };
    let count = Recompute {
        capacity: u64::MAX,
        lowering: LoweringOptions::default(),
        placing,
        limits: Limits::default(),
        observer: Observer::default(),
    };
    for _ in 0..50 {
        let sequence = step(&mut random);
        let model = Model::new(&sequence, &sequence, LoweringOptions::default(), placing);
        let mut sweep = Sweep::new(&model);
        for _ in 0..20 {
            let mut thresholds = vec![0; model.operators()];
            for operator in model.candidates() {
                if random(3) == 0 {
                    thresholds[operator as usize] =
                        operator + 1 + u32::try_from(random(12)).unwrap();
                }
            }
            let score = sweep.score(&thresholds);
            let expanded = expand(&sequence, &later_runs(&model, &thresholds)).unwrap();
            assert_eq!(score.peak, count.peak(&expanded).unwrap(), "{sequence:?} {thresholds:?}");
        }
    }
}
