//! Real networks, written with the library's own API: something to plan without a model at hand,
//! and an example of how a framework supplies its operators.

use crate::{Bytes, OpSequence, Operator, Output, SequenceError};

/// MobileNetV2 for 224 x 224 images in `f32` (Sandler et al., 2018), as frameworks run it for
/// inference: batch normalisation folded into the convolutions, `Clip` as activation. 100
/// operators.
///
/// # Errors
///
/// If the batch is so large that the sum of sizes exceeds 64 bits.
///
/// ```
/// let sequence = memplan::networks::mobilenet_v2(1)?;
/// let plan = memplan::Planner::new().plan(&sequence)?;
/// assert_eq!(plan.lower_bound(), 6_021_120);
/// # Ok::<(), memplan::PlanError>(())
/// ```
pub fn mobilenet_v2(batch: u64) -> Result<OpSequence, SequenceError> {
    /// The expansion, output channels, repeats and first stride of each block.
    const BLOCKS: [(u64, u64, u64, u64); 7] = [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ];
    let mut network = Network { sequence: OpSequence::builder(), batch, operators: 0 };
    let image = network.image(3, 224);
    let mut x = network.convolution(&image, 32, 2);
    x = network.in_place("Clip", &[&x]);
    for (expansion, channels, repeats, first_stride) in BLOCKS {
        for repeat in 0..repeats {
            let stride = if repeat == 0 { first_stride } else { 1 };
            let block_input = x.clone();
            if expansion > 1 {
                x = network.convolution(&x, block_input.channels * expansion, 1);
                x = network.in_place("Clip", &[&x]);
            }
            x = network.convolution(&x, block_input.channels * expansion, stride);
            x = network.in_place("Clip", &[&x]);
            x = network.convolution(&x, channels, 1);
            if stride == 1 && block_input.channels == channels {
                x = network.in_place("Add", &[&block_input, &x]);
            }
        }
    }
    x = network.convolution(&x, 1280, 1);
    x = network.in_place("Clip", &[&x]);
    x = network.fresh("GlobalAveragePool", &x, 1280, 1);
    x = network.view("Flatten", &x);
    x = network.fresh("Gemm", &x, 1000, 1);
    network.sequence.output(x.name);
    network.sequence.build()
}

/// A small `LinkNet` for 64 x 64 images in `f32` (Chaurasia and Culurciello, 2017): an encoder, and a decoder that adds
/// what the encoder made at the same resolution. 15 operators, few enough to tell apart in a text map.
///
/// # Errors
///
/// If the batch is so large that the sum of sizes exceeds 64 bits.
///
/// ```
/// let sequence = memplan::networks::small_linknet(1)?;
/// let plan = memplan::Planner::new().plan(&sequence)?;
/// assert_eq!((plan.pool_size(), plan.naive_size()), (640 << 10, 2368 << 10));
/// # Ok::<(), memplan::PlanError>(())
/// ```
pub fn small_linknet(batch: u64) -> Result<OpSequence, SequenceError> {
    let mut network = Network { sequence: OpSequence::builder(), batch, operators: 0 };
    let image = network.image(3, 64);
    let mut x = network.convolution(&image, 16, 1);
    let fine = network.in_place("Relu", &[&x]);
    x = network.fresh("MaxPool", &fine, 16, 32);
    x = network.convolution(&x, 32, 1);
    let coarse = network.in_place("Relu", &[&x]);
    x = network.convolution(&coarse, 64, 2);
    x = network.in_place("Relu", &[&x]);
    for skipped in [coarse, fine] {
        x = network.fresh("Upsample", &x, skipped.channels, skipped.side);
        x = network.in_place("Add", &[&x, &skipped]);
    }
    x = network.convolution(&x, 16, 1);
    x = network.in_place("Relu", &[&x]);
    x = network.convolution(&x, 4, 1);
    x = network.in_place("Sigmoid", &[&x]);
    network.sequence.output(x.name);
    network.sequence.build()
}

/// A tensor of a network: `batch` x `channels` x `side` x `side`.
#[derive(Clone)]
struct Image {
    name: String,
    channels: u64,
    side: u64,
}

struct Network {
    sequence: crate::sequence::SequenceBuilder,
    batch: u64,
    operators: usize,
}

impl Network {
    /// The size in bytes in `f32`. If it does not fit in 64 bits, the largest number, which the
    /// sequence then rejects.
    fn size(&self, channels: u64, side: u64) -> Bytes {
        [channels, side, side, 4].into_iter().fold(self.batch, u64::saturating_mul)
    }

    fn image(&mut self, channels: u64, side: u64) -> Image {
        let size = self.size(channels, side);
        self.sequence.input("image", size);
        Image { name: "image".to_owned(), channels, side }
    }

    /// Adds an operator `kind` with one output; `declare` may make it depend on an input.
    fn add(
        &mut self,
        kind: &str,
        inputs: &[&Image],
        (channels, side): (u64, u64),
        declare: impl FnOnce(Output) -> Output,
    ) -> Image {
        let name = format!("{}_{}", kind.to_lowercase(), self.operators);
        self.operators += 1;
        let output = declare(Output::new(&*name, self.size(channels, side)));
        let inputs = inputs.iter().map(|input| &*input.name);
        self.sequence.operator(Operator::new(&*name).kind(kind).inputs(inputs).output(output));
        Image { name, channels, side }
    }

    fn fresh(&mut self, kind: &str, input: &Image, channels: u64, side: u64) -> Image {
        self.add(kind, &[input], (channels, side), |output| output)
    }

    fn convolution(&mut self, input: &Image, channels: u64, stride: u64) -> Image {
        self.fresh("Conv", input, channels, input.side / stride)
    }

    /// Adds an element-wise operator, which may be written over any of its inputs.
    fn in_place(&mut self, kind: &str, inputs: &[&Image]) -> Image {
        let shape = (inputs[0].channels, inputs[0].side);
        self.add(kind, inputs, shape, |output| {
            inputs.iter().fold(output, |output, input| output.overwrites(&*input.name))
        })
    }

    fn view(&mut self, kind: &str, input: &Image) -> Image {
        self.add(kind, &[input], (input.channels, input.side), |output| output.reads(&*input.name))
    }
}
