//! Families of graphs: each draws relatives of one kind of network, of random size, shape and
//! wiring.
//!
//! Sizes are in bytes. Weights lie outside the pool, and element-wise operators may write their
//! result over an operand of the same size. Most graphs are listed stage by stage, as by a breadth
//! first walk; training steps run forwards, backwards, and then apply their updates.

use std::collections::BTreeMap;

use memplan::{Bytes, OpSequence, SequenceError};

use crate::net::{Net, Tensor};

/// A kind of graph.
#[derive(Clone, Copy)]
pub struct Family {
    pub name: &'static str,
    build: fn(&mut Net),
    listing: Listing,
}

/// The order in which the operators of a graph are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    AsBuilt,
    /// By the number of operators that must run one after another before.
    ByStage,
}

pub const FAMILIES: [Family; 18] = [
    by_stage("experts", experts_summed),
    by_stage("experts-chained", experts_chained),
    by_stage("heads", heads_joined),
    by_stage("heads-chained", heads_chained),
    by_stage("ensemble", ensemble),
    by_stage("inception", inception),
    by_stage("tree", tree),
    by_stage("series-parallel", series_parallel),
    by_stage("ladder", ladder),
    by_stage("nas-cell", nas_cell),
    by_stage("nas-net", nas_net),
    by_stage("randwire", randwire),
    by_stage("randwire-weighted", randwire_weighted),
    by_stage("strassen", strassen),
    as_built("u-net", u_net),
    as_built("training", training),
    as_built("training-sgd", training_sgd),
    as_built("training-adam", training_adam),
];

const fn by_stage(name: &'static str, build: fn(&mut Net)) -> Family {
    Family { name, build, listing: Listing::ByStage }
}

const fn as_built(name: &'static str, build: fn(&mut Net)) -> Family {
    Family { name, build, listing: Listing::AsBuilt }
}

impl Family {
    pub fn draw(&self, seed: u64) -> Result<OpSequence, SequenceError> {
        let mut net = Net::new(seed);
        (self.build)(&mut net);
        let built = net.build()?;
        if self.listing == Listing::AsBuilt {
            return Ok(built);
        }
        let mut stages: Vec<usize> = Vec::new();
        for before in built.predecessors() {
            stages.push(before.iter().map(|&first| stages[first] + 1).max().unwrap_or(0));
        }
        let mut order: Vec<usize> = (0..stages.len()).collect();
        order.sort_by_key(|&step| stages[step]);
        built.permuted(&order)
    }
}

fn experts_summed(net: &mut Net) {
    experts(net, Net::map);
}

fn experts_chained(net: &mut Net) {
    experts(net, Net::chain);
}

/// A layer of experts of equal or different widths, each weighted by a gate.
fn experts(net: &mut Net, join: fn(&mut Net, &[Tensor]) -> Tensor) {
    let rows = net.draw(16..=256);
    let columns = net.draw(128..=1024);
    let mut x = net.input(rows * columns);
    let (equal, gated, residual) = (net.chance(50), net.chance(50), net.chance(50));
    for _ in 0..net.draw(1..=3) {
        let normal = net.make(&[x], x.size);
        let count = net.draw(4..=64);
        let logits = net.make(&[normal], rows * count);
        let shares = net.map(&[logits]);
        let common = net.draw(128..=4096);
        let mut results = Vec::new();
        for _ in 0..count {
            let width = rows * if equal { common } else { net.draw(64..=4096) };
            let mut hidden = net.make(&[normal], width);
            hidden = net.map(&[hidden]);
            if gated {
                let other = net.make(&[normal], width);
                hidden = net.map(&[hidden, other]);
            }
            let result = net.make(&[hidden], x.size);
            let gate = net.make(&[shares], rows);
            results.push(net.add(&[result, gate], x.size, &[result]));
        }
        let sum = join(net, &results);
        x = if residual { net.map(&[x, sum]) } else { net.map(&[sum]) };
    }
    net.output(x);
}

fn heads_joined(net: &mut Net) {
    heads(net, |net, results, width| {
        let joined = net.make(results, results.iter().map(|head| head.size).sum());
        net.make(&[joined], width)
    });
}

fn heads_chained(net: &mut Net) {
    heads(net, |net, results, width| {
        let projected: Vec<Tensor> = results.iter().map(|&head| net.make(&[head], width)).collect();
        net.chain(&projected)
    });
}

/// Transformer layers with their heads apart.
fn heads(net: &mut Net, join: fn(&mut Net, &[Tensor], Bytes) -> Tensor) {
    let (rows, count) = (net.draw(16..=512), net.draw(2..=16));
    let equal = net.chance(50);
    let mut x = net.input(rows * count * 64);
    for _ in 0..net.draw(1..=4) {
        let normal = net.make(&[x], x.size);
        let mut results = Vec::new();
        for _ in 0..count {
            let head = rows * if equal { 64 } else { net.draw(16..=128) };
            let [query, key, value] = [(); 3].map(|()| net.make(&[normal], head));
            let turned = net.make(&[key], head);
            let scores = net.make(&[query, turned], rows * rows);
            let weights = net.map(&[scores]);
            results.push(net.make(&[weights, value], head));
        }
        let attention = join(net, &results, x.size);
        x = net.map(&[x, attention]);
        let normal = net.make(&[x], x.size);
        let wide = net.make(&[normal], 4 * x.size);
        let wide = net.map(&[wide]);
        let narrow = net.make(&[wide], x.size);
        x = net.map(&[x, narrow]);
    }
    net.output(x);
}

/// Networks of random depth side by side on one input.
fn ensemble(net: &mut Net) {
    let size = net.draw(1024..=5120);
    let x = net.input(size);
    let mut results = Vec::new();
    for _ in 0..net.draw(2..=12) {
        let mut state = x;
        for _ in 0..net.draw(2..=12) {
            let size = net.draw(64..=16_384);
            state = net.make(&[state], size);
            state = net.map(&[state]);
        }
        results.push(net.make(&[state], 1000));
    }
    let mean = if net.chance(50) { net.chain(&results) } else { net.map(&results) };
    net.output(mean);
}

/// Blocks of branches that read the same tensor and are concatenated.
fn inception(net: &mut Net) {
    let mut x = net.input(1 << 20);
    for _ in 0..net.draw(2..=8) {
        let cells = net.draw(50..=400);
        let mut results = Vec::new();
        for _ in 0..net.draw(2..=6) {
            let mut state = x;
            for _ in 0..net.draw(1..=4) {
                let channels = net.draw(16..=256);
                state = net.make(&[state], cells * channels);
                state = net.map(&[state]);
            }
            results.push(state);
        }
        x = net.make(&results, results.iter().map(|result| result.size).sum());
    }
    net.output(x);
}

/// A tree of operators.
fn tree(net: &mut Net) {
    let mut roots: Vec<Tensor> = Vec::new();
    for _ in 0..net.draw(50..=1000) {
        let children = net.draw(0..=3).min(roots.len() as u64);
        let mut inputs = Vec::new();
        for _ in 0..children {
            let at = net.index(roots.len());
            inputs.push(roots.swap_remove(at));
        }
        let size = net.draw(1..=2000);
        roots.push(net.make(&inputs, size));
    }
    let last = net.make(&roots, 1);
    net.output(last);
}

/// Series and parallel parts inside each other.
fn series_parallel(net: &mut Net) {
    fn part(net: &mut Net, x: Tensor, depth: u64) -> Tensor {
        let size = net.draw(1..=2000);
        if depth == 0 {
            return net.make(&[x], size);
        }
        if net.chance(40) {
            return (0..net.draw(2..=4)).fold(x, |state, _| part(net, state, depth - 1));
        }
        let results: Vec<Tensor> = (0..net.draw(2..=4)).map(|_| part(net, x, depth - 1)).collect();
        net.make(&results, size)
    }
    let x = net.make(&[], 1000);
    let depth = net.draw(2..=5);
    let y = part(net, x, depth);
    net.output(y);
}

/// Chains side by side, each of which reads the one before it at every rung.
fn ladder(net: &mut Net) {
    let (chains, rungs) = (2 + net.index(5), net.draw(4..=24));
    let noise = net.chance(50);
    let x = net.input(1000);
    let mut states = vec![x; chains];
    for _ in 0..rungs {
        for at in 0..states.len() {
            let size = if noise { net.draw(100..=2000) } else { 1000 };
            let mut inputs = vec![states[at]];
            if at > 0 {
                inputs.push(states[at - 1]);
            }
            states[at] = net.make(&inputs, size);
        }
    }
    let last = net.make(&states, 1000);
    net.output(last);
}

/// Applies an operation of a cell: a separable convolution, a pooling, or nothing.
fn operation(net: &mut Net, x: Tensor, size: Bytes) -> Tensor {
    match net.draw(0..=3) {
        0 if x.size == size => x,
        0 | 1 => net.make(&[x], size),
        _ => (0..net.draw(1..=2)).fold(x, |state, _| {
            let active = net.map(&[state]);
            let filtered = net.make(&[active], active.size);
            net.make(&[filtered], size)
        }),
    }
}

/// A cell of blocks that each add two operations on earlier states.
fn cell(net: &mut Net, before: [Tensor; 2], size: Bytes) -> Tensor {
    let mut states = before.map(|state| net.make(&[state], size)).to_vec();
    let mut used = vec![false; 2];
    for _ in 0..net.draw(4..=7) {
        let sides = [(); 2].map(|()| {
            let at = net.index(states.len());
            used[at] = true;
            operation(net, states[at], size)
        });
        states.push(net.map(&sides));
        used.push(false);
    }
    let ends: Vec<Tensor> =
        states.iter().zip(&used).filter(|(_, used)| !**used).map(|(state, _)| *state).collect();
    net.make(&ends, size * ends.len() as Bytes)
}

fn nas_cell(net: &mut Net) {
    let inputs = [(); 2].map(|()| net.input(9408));
    let y = cell(net, inputs, 9408);
    net.output(y);
}

fn nas_net(net: &mut Net) {
    let mut size = 1 << 18;
    let mut states = [net.input(size); 2];
    for _ in 0..net.draw(3..=9) {
        if net.chance(30) {
            size /= 2;
        }
        states = [states[1], cell(net, states, size)];
    }
    net.output(states[1]);
}

fn randwire(net: &mut Net) {
    wired(net, false);
}

fn randwire_weighted(net: &mut Net) {
    wired(net, true);
}

/// Stages of randomly wired nodes: a ring with edges to near nodes, some of which are rewired.
fn wired(net: &mut Net, weighted: bool) {
    let mut size = 8192;
    let mut x = net.input(size);
    let count = 12 + net.index(29);
    for _ in 0..net.draw(1..=3) {
        let mut edges = Vec::new();
        for from in 0..count {
            for step in 1..=2 {
                let to = (from + step) % count;
                let to = if net.chance(75) { net.index(count) } else { to };
                edges.push((from.min(to), from.max(to)));
            }
        }
        edges.retain(|(from, to)| from != to);
        edges.sort_unstable();
        edges.dedup();
        let mut states: Vec<Tensor> = Vec::new();
        for node in 0..count {
            let inputs: Vec<Tensor> =
                edges.iter().filter(|edge| edge.1 == node).map(|edge| states[edge.0]).collect();
            let sum = match &inputs[..] {
                [] => x,
                [only] => *only,
                several if weighted => {
                    let scaled: Vec<Tensor> =
                        several.iter().map(|&input| net.map(&[input])).collect();
                    net.map(&scaled)
                }
                several => net.map(several),
            };
            let active = net.map(&[sum]);
            let filtered = net.make(&[active], active.size);
            states.push(net.make(&[filtered], size));
        }
        let unread = |node: &usize| edges.iter().all(|edge| edge.0 != *node);
        let ends: Vec<Tensor> = (0..count).filter(unread).map(|node| states[node]).collect();
        x = net.map(&ends);
        size /= 2;
    }
    net.output(x);
}

/// Strassen's product of two matrices, with one or two levels.
fn strassen(net: &mut Net) {
    fn product(net: &mut Net, a: Tensor, b: Tensor, levels: u64) -> Tensor {
        if levels == 0 {
            return net.make(&[a, b], a.size);
        }
        let quarter = a.size / 4;
        let [a11, a12, a21, a22] = [(); 4].map(|()| net.make(&[a], quarter));
        let [b11, b12, b21, b22] = [(); 4].map(|()| net.make(&[b], quarter));
        let factors: [(&[Tensor], &[Tensor]); 7] = [
            (&[a11, a22], &[b11, b22]),
            (&[a21, a22], &[b11]),
            (&[a11], &[b12, b22]),
            (&[a22], &[b21, b11]),
            (&[a11, a12], &[b22]),
            (&[a21, a11], &[b11, b12]),
            (&[a12, a22], &[b21, b22]),
        ];
        let [m1, m2, m3, m4, m5, m6, m7] = factors.map(|(left, right)| {
            let [left, right] =
                [left, right].map(|side| if side.len() > 1 { net.map(side) } else { side[0] });
            product(net, left, right, levels - 1)
        });
        let parts: [&[Tensor]; 4] = [&[m1, m4, m5, m7], &[m3, m5], &[m2, m4], &[m1, m2, m3, m6]];
        let quarters = parts.map(|part| net.chain(part));
        net.make(&quarters, a.size)
    }
    let size = 1 << net.draw(12..=20);
    let [a, b] = [(); 2].map(|()| net.make(&[], size));
    let levels = net.draw(1..=2);
    let y = product(net, a, b, levels);
    net.output(y);
}

/// An encoder and a decoder, with a skip connection on each level.
fn u_net(net: &mut Net) {
    let mut x = net.input(3 << 16);
    let (levels, channels) = (net.draw(2..=5), net.draw(8..=64));
    let mut skips = Vec::new();
    let convolved = |net: &mut Net, x: Tensor, size: Bytes| {
        (0..net.draw(1..=3)).fold(x, |state, _| {
            let filtered = net.make(&[state], size);
            net.map(&[filtered])
        })
    };
    for level in 0..levels {
        x = convolved(net, x, channels << (16 - level));
        skips.push(x);
        x = net.make(&[x], x.size / 4);
    }
    x = convolved(net, x, channels << (16 - levels));
    while let Some(skip) = skips.pop() {
        let up = net.make(&[x], skip.size);
        let joined = if net.chance(50) {
            net.make(&[up, skip], 2 * skip.size)
        } else {
            net.map(&[up, skip])
        };
        x = convolved(net, joined, skip.size);
    }
    net.output(x);
}

fn training(net: &mut Net) {
    training_step(net, Net::output);
}

fn training_sgd(net: &mut Net) {
    training_step(net, |net, gradient| net.consume(&[gradient]));
}

/// Adam's update: the gradient is read for both moments, and the step is computed from their new
/// values.
fn training_adam(net: &mut Net) {
    training_step(net, |net, gradient| {
        net.consume(&[gradient]);
        let second = net.make(&[gradient], gradient.size);
        let root = net.map(&[second]);
        net.consume(&[root]);
    });
}

/// Layers with branches and skip connections, the gradients of all tensors and weights, and an
/// update of each weight at the end.
fn training_step(net: &mut Net, update: fn(&mut Net, Tensor)) {
    struct Layer {
        inputs: Vec<Tensor>,
        output: Tensor,
        weight: Option<Bytes>,
    }
    let rows = net.draw(1..=64);
    let columns = net.draw(100..=1000);
    let mut x = net.input(rows * columns);
    let mut layers: Vec<Layer> = Vec::new();
    let mut join = |net: &mut Net, inputs: &[Tensor], size: Bytes, weighted: bool| {
        let output = if weighted { net.make(inputs, size) } else { net.map(inputs) };
        let weight = weighted.then(|| inputs[0].size * size / (rows * rows));
        layers.push(Layer { inputs: inputs.to_vec(), output, weight });
        output
    };
    for _ in 0..net.draw(4..=20) {
        let size = rows * net.draw(50..=1000);
        let main = join(net, &[x], size, true);
        let mut state = join(net, &[main], size, false);
        for _ in 0..net.draw(0..=2) {
            let branch = join(net, &[x], size, true);
            state = join(net, &[state, branch], size, false);
        }
        x = state;
    }
    let loss = net.make(&[x], 4);
    let mut gradients: BTreeMap<usize, Tensor> = BTreeMap::new();
    gradients.insert(x.id, net.make(&[x, loss], x.size));
    let mut weights = Vec::new();
    for layer in layers.iter().rev() {
        let Some(gradient) = gradients.remove(&layer.output.id) else { continue };
        if let Some(size) = layer.weight {
            weights.push(net.make(&[gradient, layer.inputs[0]], size));
        }
        for &input in &layer.inputs {
            let mut of_input = match layer.weight {
                Some(_) => net.make(&[gradient], input.size),
                None => net.add(&[gradient, layer.output], input.size, &[gradient]),
            };
            if let Some(other) = gradients.remove(&input.id) {
                of_input = net.map(&[other, of_input]);
            }
            gradients.insert(input.id, of_input);
        }
    }
    if net.chance(50) {
        net.shuffle(&mut weights);
    }
    for gradient in weights {
        update(net, gradient);
    }
    net.output(loss);
}
