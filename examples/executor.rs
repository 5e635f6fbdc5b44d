//! A small executor: a residual network with concatenations, one inside the other, run twice: once
//! with a buffer for every tensor and once in the pool that memplan planned, where most inputs of a
//! concatenation lie inside its output from the beginning. Both give the same bits.
//!
//! ```sh
//! cargo run --example executor
//! ```

use std::{collections::HashMap, error::Error, ops::Range};

use memplan::{
    InputMemory, OpSequence, Operator, Output, OutputMemory, Planner, sequence::TensorId,
};

/// Images are squares whose sides have this many pixels.
const SIDE: usize = 8;
const PIXELS: usize = SIDE * SIDE;

/// The computation of an operator.
enum Kernel {
    /// A 3 x 3 convolution with padding 1, as a product with patches that are copied together.
    Conv {
        weights: Vec<f32>,
    },
    Relu,
    Add,
    /// The channels of all inputs, one after another.
    Concat,
}

impl Kernel {
    /// Computes an output that shares memory with no input.
    fn run(&self, inputs: &[&[f32]], output: &mut [f32], workspace: &mut [f32]) {
        match self {
            Self::Conv { weights } => convolve(inputs[0], weights, output, workspace),
            Self::Relu => {
                output.copy_from_slice(inputs[0]);
                relu(output);
            }
            Self::Add => {
                output.copy_from_slice(inputs[0]);
                add(output, inputs[1]);
            }
            Self::Concat => {
                let mut rest = output;
                for input in inputs {
                    let (part, behind) = rest.split_at_mut(input.len());
                    part.copy_from_slice(input);
                    rest = behind;
                }
            }
        }
    }

    /// Computes an output over an input; `other` is the input that lies elsewhere, if there is one.
    fn run_in_place(&self, memory: &mut [f32], other: Option<&[f32]>) {
        match (self, other) {
            (Self::Relu, _) => relu(memory),
            (Self::Add, Some(other)) => add(memory, other),
            // x + x
            (Self::Add, None) => memory.iter_mut().for_each(|x| *x += *x),
            (Self::Conv { .. } | Self::Concat, _) => unreachable!("they never ask to overwrite"),
        }
    }
}

/// Copies the inputs of a concatenation that do not lie at their places in the output, the elements
/// `output` of the memory, already.
fn complete(
    inputs: &[InputMemory<'_, f32>],
    image: &[f32],
    memory: &mut [f32],
    output: Range<usize>,
) {
    let mut at = output.start;
    for input in inputs {
        at += match input {
            InputMemory::Slice(slice) => {
                memory[at..at + slice.len()].copy_from_slice(slice);
                slice.len()
            }
            InputMemory::Supplied { .. } => {
                memory[at..at + image.len()].copy_from_slice(image);
                image.len()
            }
            InputMemory::InOutput { range, .. } => {
                if range.start != at {
                    memory.copy_within(range.clone(), at);
                }
                range.len()
            }
        };
    }
}

fn relu(memory: &mut [f32]) {
    for x in memory {
        *x = x.max(0.0);
    }
}

fn add(memory: &mut [f32], other: &[f32]) {
    for (x, other) in memory.iter_mut().zip(other) {
        *x += other;
    }
}

fn convolve(input: &[f32], weights: &[f32], output: &mut [f32], patches: &mut [f32]) {
    let channels = input.len() / PIXELS;
    let patch = 9 * channels;
    for (at, patch) in patches.chunks_exact_mut(patch).enumerate() {
        let (row, column) = (at / SIDE, at % SIDE);
        for (k, value) in patch.iter_mut().enumerate() {
            let (channel, y, x) = (k / 9, row + k / 3 % 3, column + k % 3);
            let inside = (1..=SIDE).contains(&y) && (1..=SIDE).contains(&x);
            *value = if inside { input[channel * PIXELS + (y - 1) * SIDE + x - 1] } else { 0.0 };
        }
    }
    for (output, weights) in output.chunks_exact_mut(PIXELS).zip(weights.chunks_exact(patch)) {
        for (pixel, patch) in output.iter_mut().zip(patches.chunks_exact(patch)) {
            *pixel = patch.iter().zip(weights).map(|(a, b)| a * b).sum();
        }
    }
}

/// A network: the operators that memplan plans, and their kernels in the same order.
struct Network {
    sequence: OpSequence,
    kernels: Vec<Kernel>,
    image: TensorId,
    result: TensorId,
}

/// `count` numbers that repeat 0 to `period - 1`.
fn numbers(count: usize, period: u8) -> impl Iterator<Item = f32> {
    (0..period).map(f32::from).cycle().take(count)
}

fn network() -> Result<Network, Box<dyn Error>> {
    let bytes = |channels: usize| (4 * channels * PIXELS) as u64;
    let conv = |from: usize, to: usize| Kernel::Conv {
        weights: numbers(9 * from * to, 7).map(|x| 0.1 * x - 0.3).collect(),
    };
    let operator = |name: &str, inputs: &[&str], output: Output| {
        Operator::new(name).inputs(inputs.iter().copied()).output(output)
    };
    let four = bytes(4);
    let channels = |name: &str| match name {
        "image" => 3,
        "f" => 8,
        "h" => 12,
        _ => 4,
    };
    let concat = |name: &str, inputs: &[&str]| {
        let size = inputs.iter().map(|input| bytes(channels(input))).sum();
        let mut at = 0;
        inputs.iter().fold(Output::new(name, size), |output, &input| {
            let offset = at;
            at += bytes(channels(input));
            output.gathers(input, offset)
        })
    };
    let patches = |channels: usize| 9 * bytes(channels);
    let operators = [
        (operator("conv1", &["image"], Output::new("a", four)).workspace(patches(3)), conv(3, 4)),
        (operator("relu1", &["a"], Output::new("b", four).overwrites("a")), Kernel::Relu),
        (operator("conv2", &["b"], Output::new("c", four)).workspace(patches(4)), conv(4, 4)),
        (
            operator("add", &["b", "c"], Output::new("d", four).overwrites("c").overwrites("b")),
            Kernel::Add,
        ),
        (operator("relu2", &["d"], Output::new("e", four).overwrites("d")), Kernel::Relu),
        (operator("concat1", &["b", "e"], concat("f", &["b", "e"])), Kernel::Concat),
        (operator("conv3", &["f"], Output::new("g", four)).workspace(patches(8)), conv(8, 4)),
        (operator("concat2", &["f", "g"], concat("h", &["f", "g"])), Kernel::Concat),
        (
            operator("concat3", &["h", "image", "g"], concat("i", &["h", "image", "g"])),
            Kernel::Concat,
        ),
        (operator("conv4", &["i"], Output::new("y", four)).workspace(patches(19)), conv(19, 4)),
    ];
    let mut sequence = OpSequence::builder();
    sequence.input("image", bytes(3)).output("y");
    let (image, result) = (sequence.id("image"), sequence.id("y"));
    let mut kernels = Vec::new();
    for (operator, kernel) in operators {
        sequence.operator(operator);
        kernels.push(kernel);
    }
    Ok(Network { sequence: sequence.build()?, kernels, image, result })
}

/// A buffer for every tensor.
fn run_apart(network: &Network, image: &[f32]) -> Vec<f32> {
    let mut values: HashMap<TensorId, Vec<f32>> = HashMap::new();
    let elements = |bytes: u64| usize::try_from(bytes / 4).unwrap_or(usize::MAX);
    values.insert(network.image, image.to_vec());
    for (operator, kernel) in network.sequence.operators().iter().zip(&network.kernels) {
        let output = operator.outputs[0];
        let size = network.sequence.tensor(output).size.unwrap_or(0);
        let mut result = vec![0.0; elements(size)];
        let inputs: Vec<&[f32]> = operator.inputs.iter().map(|input| &*values[input]).collect();
        kernel.run(&inputs, &mut result, &mut vec![0.0; elements(operator.workspace)]);
        values.insert(output, result);
    }
    values.remove(&network.result).unwrap_or_default()
}

/// Everything in one pool.
fn run_in_pool(network: &Network, image: &[f32]) -> Result<(Vec<f32>, usize), Box<dyn Error>> {
    let plan = Planner::new().alignment(64).plan(&network.sequence)?;
    assert!(memplan::verify::verify(&network.sequence, &plan).is_empty());
    assert!(!plan.parts().is_empty());
    let placement = plan.placement(&network.sequence)?;
    let mut pool = vec![f32::NAN; usize::try_from(plan.pool_size())?.div_ceil(4)];
    for (step, kernel) in network.kernels.iter().enumerate() {
        let mut memory = placement.memory(step, &mut pool)?;
        if let (Kernel::Concat, OutputMemory::InPlace { memory: whole, range }) =
            (kernel, &mut memory.outputs[0])
        {
            complete(&memory.inputs, image, whole, range.clone());
            continue;
        }
        let inputs: Vec<&[f32]> = memory
            .inputs
            .iter()
            .filter_map(|input| match input {
                InputMemory::Slice(slice) => Some(*slice),
                InputMemory::Supplied { .. } => Some(image),
                InputMemory::InOutput { .. } => None,
            })
            .collect();
        match &mut memory.outputs[0] {
            OutputMemory::Fresh(output) => kernel.run(&inputs, output, memory.workspace),
            OutputMemory::InPlace { memory, .. } => {
                kernel.run_in_place(memory, inputs.first().copied());
            }
            // No operator of this network makes two tensors.
            OutputMemory::InOutput { .. } => unreachable!(),
            OutputMemory::View | OutputMemory::Supplied { .. } => {}
        }
    }
    let Some(range) = placement.bytes(network.result) else {
        return Err("the output lies outside the pool".into());
    };
    let (start, end) = (usize::try_from(range.start / 4)?, usize::try_from(range.end / 4)?);
    Ok((pool[start..end].to_vec(), pool.len()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let network = network()?;
    let image: Vec<f32> = numbers(3 * PIXELS, 11).map(|x| x - 5.0).collect();
    let apart = run_apart(&network, &image);
    let (in_pool, elements) = run_in_pool(&network, &image)?;
    assert_eq!(apart, in_pool);
    println!(
        "{} operators in a pool of {} bytes, bit for bit",
        network.kernels.len(),
        4 * elements
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_pool_holds_what_separate_buffers_hold() {
        super::main().unwrap();
    }
}
