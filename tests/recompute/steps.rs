//! Training steps for the tests.

use memplan::{OpSequence, Operator, Output};

use crate::common::constraints::Dice;

/// A chain of layers of equal size and cost, and its backward pass: `b7` reads the activation below layer 7 and
/// the gradient above it. The input and the last gradient lie outside the pool.
pub fn chain(layers: usize, bytes: u64) -> OpSequence {
    let mut step = OpSequence::builder();
    step.input("a0", bytes);
    for layer in 1..=layers {
        step.operator(
            Operator::new(format!("f{layer}"))
                .inputs([format!("a{}", layer - 1)])
                .output(Output::new(format!("a{layer}"), bytes)),
        );
    }
    let mut above = format!("a{layers}");
    for layer in (1..=layers).rev() {
        let gradient = format!("g{layer}");
        step.operator(
            Operator::new(format!("b{layer}"))
                .inputs([format!("a{}", layer - 1), above])
                .output(Output::new(gradient.clone(), bytes)),
        );
        above = gradient;
    }
    step.output("g1").build().unwrap()
}

/// A random step: a forward pass with branches and skips, views and overwrites, and a backward pass in
/// reverse that reads some of it.
pub fn random_step(dice: &mut Dice, forward: u64) -> OpSequence {
    let mut step = OpSequence::builder();
    step.input("x", 8).weight("w", Some(8));
    let mut values = vec!["x".to_owned()];
    let mut sizes = vec![8];
    for at in 0..forward {
        let near =
            values.len() - 1 - usize::try_from(dice.roll(values.len().min(3) as u64)).unwrap();
        let mut inputs = vec![values[near].clone()];
        if dice.roll(3) == 0 {
            inputs.push(values[values.len() - 1].clone());
            inputs.dedup();
        }
        let (name, size) = (format!("t{at}"), 1 + dice.roll(9));
        let output = Output::new(name.clone(), size);
        let output = match dice.roll(6) {
            0 if near > 0 && sizes[near] >= size => output.reads(inputs[0].clone()),
            1 if near > 0 && sizes[near] >= size => output.overwrites(inputs[0].clone()),
            _ => output,
        };
        let mut operator =
            Operator::new(format!("f{at}")).inputs(inputs).output(output).cost(1 + dice.roll(6));
        if dice.roll(8) == 0 {
            operator = operator.once();
        }
        if dice.roll(6) == 0 {
            operator = operator.output(Output::new(format!("s{at}"), 1));
        }
        step.operator(operator.workspace(dice.roll(2)));
        values.push(name);
        sizes.push(size);
    }
    let mut above = values[values.len() - 1].clone();
    for at in (0..values.len() - 1).rev() {
        let mut inputs = vec![above.clone()];
        if dice.roll(4) > 0 {
            inputs.push(values[at].clone());
        }
        above = format!("g{at}");
        step.operator(
            Operator::new(format!("b{at}"))
                .inputs(inputs)
                .output(Output::new(above.clone(), 1 + dice.roll(4)))
                .cost(1 + dice.roll(6)),
        );
        if dice.roll(3) == 0 {
            step.output(above.clone());
        }
    }
    step.output(above).build().unwrap()
}

/// A random graph of a few operators, each of which reads some earlier tensors or none. Half of the operators run once.
pub fn random_graph(dice: &mut Dice) -> OpSequence {
    let mut graph = OpSequence::builder();
    let operators = 3 + dice.roll(4);
    for at in 0..operators {
        let inputs = (0..at).filter(|_| dice.roll(3) == 0).map(|input| format!("t{input}"));
        let operator = Operator::new(format!("o{at}")).inputs(inputs.collect::<Vec<_>>());
        let output = Output::new(format!("t{at}"), 1 + dice.roll(9));
        let operator = operator.output(output).workspace(dice.roll(3)).cost(1 + dice.roll(6));
        graph.operator(if dice.roll(2) == 0 { operator } else { operator.once() });
        if dice.roll(5) == 0 {
            graph.output(format!("t{at}"));
        }
    }
    graph.output(format!("t{}", operators - 1)).build().unwrap()
}
