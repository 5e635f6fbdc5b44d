//! The scratch buffers that kernels request, from the sources of TensorFlow Lite Micro (August 2026)
//! and CMSIS-NN (July 2026).

use crate::{
    Bytes,
    import::tflite::{
        KernelLibrary, TfliteError,
        element::Element,
        model::{Tensor, wrong},
        ops::Op,
    },
};

/// The sizes of scratch buffers in bytes, in the order of the requests.
pub(crate) type Sizes = Vec<Bytes>;

/// The rule of an operator.
pub(super) type Rule = fn(&Op, Target) -> Result<Sizes, TfliteError>;

/// The target that an operator runs on.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) kernels: KernelLibrary,
    pub(super) pointer_size: Bytes,
}

impl Target {
    fn is_reference(self) -> bool {
        self.kernels == KernelLibrary::Reference
    }

    fn has_mve(self) -> bool {
        self.kernels == KernelLibrary::CmsisNnMve
    }

    fn has_dsp_only(self) -> bool {
        self.kernels == KernelLibrary::CmsisNnDsp
    }
}

/// Sizes of an image, or of a kernel that moves over one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dims {
    pub(super) batch: u64,
    pub(super) height: u64,
    pub(super) width: u64,
    pub(super) channels: u64,
}

impl Dims {
    pub(super) fn area(self) -> u64 {
        self.height.saturating_mul(self.width)
    }

    fn column(self, channels: u64) -> u64 {
        self.area().saturating_mul(channels)
    }
}

/// The steps of a kernel over an image, in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    pub(super) step: u64,
    pub(super) dilation: u64,
    /// The number of padding elements before the image.
    pub(super) padding: u64,
}

/// Windows that move over an image.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    pub(super) image: Dims,
    pub(super) kernel: Dims,
    pub(super) output: Dims,
    /// Down and right.
    pub(super) moves: [Stride; 2],
}

impl Stride {
    fn is_plain(self) -> bool {
        self.padding == 0 && self.dilation == 1
    }
}

/// Rounds a number of elements up to a multiple of `to`.
fn rounded_up(number: u64, to: u64) -> u64 {
    number.checked_next_multiple_of(to).unwrap_or(u64::MAX)
}

fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, &factor| product.saturating_mul(factor))
}

/// The input, or an error if it is missing.
fn input<'m>(op: &Op<'m, '_>, index: usize) -> Result<&'m Tensor, TfliteError> {
    op.input(index).ok_or_else(|| malformed(op, &format!("it has no input {index}")))
}

fn output<'m>(op: &Op<'m, '_>) -> Result<&'m Tensor, TfliteError> {
    op.output(0).ok_or_else(|| malformed(op, "it has no output"))
}

fn malformed(op: &Op, reason: &str) -> TfliteError {
    wrong(op.model.operator_place(op.at), reason)
}

fn rank(tensor: &Tensor) -> u64 {
    tensor.shape.len() as u64
}

fn image(op: &Op, tensor: &Tensor) -> Result<Dims, TfliteError> {
    match tensor.shape[..] {
        [batch, height, width, channels] => Ok(Dims { batch, height, width, channels }),
        _ => Err(malformed(op, &format!("'{}' does not have four dimensions", tensor.name))),
    }
}

fn is_integer(tensor: &Tensor) -> bool {
    matches!(tensor.element, Element::INT8 | Element::INT16)
}

#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
pub(super) fn none(_: &Op, _: Target) -> Result<Sizes, TfliteError> {
    Ok(Vec::new())
}

/// A pointer to each input.
pub(super) fn add_n(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    let takes = matches!(output(op)?.element, Element::FLOAT32 | Element::INT8);
    let pointers = (op.operator.inputs.len() as u64).saturating_mul(target.pointer_size);
    Ok(if takes { vec![pointers] } else { Vec::new() })
}

/// An index for each dimension and each axis.
pub(super) fn reduce(op: &Op, _: Target) -> Result<Sizes, TfliteError> {
    Ok(vec![product(&[4, rank(input(op, 0)?)]), product(&[4, input(op, 1)?.elements()])])
}

/// As [`reduce`], behind a sum for each output of an integer type.
pub(super) fn sum(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    let mut sizes = reduce(op, target)?;
    if is_integer(input(op, 0)?) {
        sizes.insert(0, product(&[4, output(op)?.elements()]));
    }
    Ok(sizes)
}

pub(super) fn mirror_pad(op: &Op, _: Target) -> Result<Sizes, TfliteError> {
    let size = product(&[4, rank(input(op, 0)?)]);
    Ok(vec![size, size])
}

/// Weights of 4 bits are unpacked.
fn unpacked(op: &Op) -> Result<Sizes, TfliteError> {
    let weights = input(op, 1)?;
    Ok(if weights.element == Element::INT4 { vec![weights.elements()] } else { Vec::new() })
}

/// Kernels built for speed, which is the default, keep further sums in the tail.
pub(super) fn svdf(op: &Op, _: Target) -> Result<Sizes, TfliteError> {
    let (batches, filters) = (input(op, 0)?.shape.first(), input(op, 1)?.shape.first());
    let (Some(&batches), Some(&filters)) = (batches, filters) else {
        return Err(malformed(op, "an input has no dimensions"));
    };
    let mut sizes = vec![product(&[4, batches, filters])];
    if input(op, 0)?.element == Element::INT8 {
        let units = output(op)?.shape.last().copied().unwrap_or(0);
        sizes.push(product(&[4, batches, units]));
    }
    Ok(sizes)
}

/// The input of an LSTM that is its cell state.
const CELL_STATE: usize = 19;

pub(super) fn lstm(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    let state = input(op, CELL_STATE)?;
    let size = state.bytes.ok_or_else(|| malformed(op, "its cell state has no size"))?;
    let is_quantized = is_integer(input(op, 0)?) && state.element == Element::INT16;
    let count = if is_quantized && !target.is_reference() { 3 } else { 4 };
    Ok(vec![size; count])
}

/// An output of complex numbers has as many elements as the transform is long, and two more.
pub(super) fn rfft(op: &Op, _: Target) -> Result<Sizes, TfliteError> {
    let output = output(op)?;
    let length = output.shape.last().and_then(|last| last.checked_sub(2));
    let width = output.element.bits().map(|bits| bits / 8);
    match (length, width) {
        (Some(length), Some(width)) => Ok(vec![product(&[length, width])]),
        _ => Err(malformed(op, "its output is not a row of complex numbers")),
    }
}

pub(super) fn average_pool(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    let tensor = input(op, 0)?;
    if !target.has_dsp_only() || !is_integer(tensor) {
        return Ok(Vec::new());
    }
    Ok(vec![product(&[4, image(op, tensor)?.channels])])
}

pub(super) fn batch_matmul(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    if !target.has_mve() || input(op, 0)?.element != Element::INT8 {
        return Ok(Vec::new());
    }
    Ok(vec![product(&[4, output(op)?.shape.last().copied().unwrap_or(1)])])
}

pub(super) fn fully_connected(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    let (activation, weights, output) = (input(op, 0)?, input(op, 1)?, output(op)?);
    if target.is_reference() {
        return unpacked(op);
    }
    if activation.element != Element::INT8 || weights.element == Element::INT4 {
        return Ok(Vec::new());
    }
    let columns = output.shape.last().copied().unwrap_or(1);
    let depth = weights.shape.last().copied().unwrap_or(1);
    if output.shape.len() > 2 && depth.is_multiple_of(4) {
        // It runs as a convolution, which needs a multiplier and a shift for each channel.
        let is_per_channel = weights.scales > 1;
        return Ok(if is_per_channel { Vec::new() } else { vec![product(&[8, columns])] });
    }
    // Kernels built for speed keep the sums of constant weights in the tail.
    let is_constant = weights.is_constant && op.input(2).is_none_or(|bias| bias.is_constant);
    Ok(if target.has_mve() && !is_constant { vec![product(&[4, columns])] } else { Vec::new() })
}

pub(super) fn convolution(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    let activation = input(op, 0)?;
    if target.is_reference() {
        return unpacked(op);
    }
    if !is_integer(activation) {
        return Ok(Vec::new());
    }
    let Windows { image, kernel, output, moves: [height, width] } =
        Windows::of_weights(op, [[2, 1], [5, 4]])?;
    let size = if activation.element == Element::INT16 {
        wide_column(target, image, kernel)
    } else {
        bytes_of_convolution(target, image, kernel, output, (height, width))
    };
    Ok(sized(size))
}

fn sized(size: Bytes) -> Sizes {
    if size > 0 { vec![size] } else { Vec::new() }
}

/// Columns of the image, of 16 bits.
fn wide_column(target: Target, image: Dims, kernel: Dims) -> Bytes {
    let column = kernel.column(image.channels);
    if target.has_mve() { product(&[8, rounded_up(column, 8)]) } else { product(&[4, column]) }
}

fn bytes_of_convolution(
    target: Target,
    image: Dims,
    kernel: Dims,
    output: Dims,
    (height, width): (Stride, Stride),
) -> Bytes {
    let is_point = kernel.area() == 1 && height.is_plain() && width.is_plain();
    if is_point && image.channels == kernel.channels {
        return 0;
    }
    let is_row = image.height == 1
        && width.dilation == 1
        && kernel.height == 1
        && width.step.saturating_mul(image.channels).is_multiple_of(4)
        && image.channels == kernel.channels;
    if is_row && target.has_mve() {
        return bytes_of_row(target, image, kernel, output, width);
    }
    bytes_of_columns(target, image, kernel)
}

/// Columns of the image, of 8 bits that are widened unless the vector unit takes them.
fn bytes_of_columns(target: Target, image: Dims, kernel: Dims) -> Bytes {
    let column = kernel.column(image.channels);
    if target.has_mve() {
        product(&[4, rounded_up(column, 16)])
    } else {
        product(&[4, rounded_up(column, 4)])
    }
}

/// A convolution along one row, on the vector unit: the columns that reach over an end.
fn bytes_of_row(target: Target, image: Dims, kernel: Dims, output: Dims, width: Stride) -> Bytes {
    let reach =
        output.width.saturating_sub(1).saturating_mul(width.step).saturating_add(kernel.width);
    let is_uneven = !reach.abs_diff(image.width).is_multiple_of(2);
    // As the original counts: an odd padding lies at the right.
    let odd = u64::from(is_uneven && reach > image.width);
    let columns_over = |padding: u64| match padding {
        0 => 0,
        padding => padding.div_ceil(width.step.max(1)).max(1),
    };
    let (left, right) = (columns_over(width.padding), columns_over(width.padding + odd));
    if left.saturating_add(right) > output.width {
        return bytes_of_columns(target, image, kernel);
    }
    let channels = image.channels;
    let left_padding = product(&[width.padding, channels]);
    let right_padding = if is_uneven { product(&[right, channels]) } else { left_padding };
    let whole = product(&[kernel.width, channels]);
    let at_left = whole.saturating_add(left_padding);
    at_left.max(whole.saturating_sub(channels).saturating_add(right_padding))
}

/// The number of channels that the vector unit processes at once.
const MVE_CHANNELS: u64 = 124;

pub(super) fn depthwise(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    let (activation, weights) = (input(op, 0)?, input(op, 1)?);
    if target.is_reference() {
        return unpacked(op);
    }
    if activation.element != Element::INT8 {
        return Ok(Vec::new());
    }
    let Windows { image, kernel, output, moves: [height, width] } =
        Windows::of_weights(op, [[2, 1], [6, 5]])?;
    let column = kernel.column(image.channels);
    let is_int4 = weights.element == Element::INT4;
    if target.has_mve() && !is_int4 && image.channels == 1 && output.channels > 1 {
        // It runs as a convolution whose weights are transposed.
        let turned = Dims { batch: output.channels, channels: 1, ..kernel };
        let size = bytes_of_convolution(target, image, turned, output, (height, width));
        return Ok(sized(size.saturating_add(kernel.column(output.channels))));
    }
    let is_plain = image.channels == output.channels
        && image.batch == 1
        && width.dilation == 1
        && height.dilation == 1;
    let is_small =
        kernel.height == 3 && kernel.width == 3 && height.padding <= 1 && width.padding <= 1;
    let size = match target.kernels {
        _ if !is_plain => 0,
        KernelLibrary::CmsisNnMve => product(&[4, MVE_CHANNELS, kernel.area()]),
        _ if is_int4 => product(&[2, column]),
        KernelLibrary::CmsisNnDsp if !is_small => product(&[2, column]),
        _ => 0,
    };
    Ok(sized(size))
}

/// Above this number of channels, CMSIS-NN runs a transposed convolution as a convolution.
const REVERSED_ABOVE: u64 = 16;

pub(super) fn transpose_convolution(op: &Op, target: Target) -> Result<Sizes, TfliteError> {
    let (weights, activation, output) = (input(op, 1)?, input(op, 2)?, output(op)?);
    match activation.element {
        Element::INT16 => {
            let mut sizes = vec![product(&[8, output.elements()])];
            if let Some(bias) = op.input(3).filter(|bias| bias.element == Element::INT16) {
                sizes.push(product(&[8, bias.elements()]));
            }
            return Ok(sizes);
        }
        Element::INT8 if target.is_reference() => {
            return Ok(vec![product(&[4, output.elements()])]);
        }
        Element::INT8 => {}
        _ => return Ok(Vec::new()),
    }
    let step = |slot| option(op, slot);
    let (width, height) = (step(1)?, step(2)?);
    let (image, kernel) = (image(op, activation)?, image(op, weights)?);
    if width <= 2 && height <= 2 && image.channels > REVERSED_ABOVE {
        let reversed = product(&[image.channels, kernel.area(), kernel.batch]);
        return Ok(vec![bytes_of_columns(target, image, kernel), reversed]);
    }
    let columns = image.width.saturating_sub(1).saturating_mul(width);
    let columns = columns.saturating_add(kernel.width.max(height));
    let rows = kernel.height.max(height);
    // The kernel requests the buffer for reversed weights even if it needs none.
    Ok(vec![product(&[4, columns, kernel.batch, rows]), 0])
}

/// A size among the options of an operator.
fn option(op: &Op, slot: usize) -> Result<u64, TfliteError> {
    let number = op.operator.option(slot, 0)?;
    u64::try_from(number).map_err(|_| malformed(op, &format!("a stride is {number}")))
}

impl Windows {
    /// The windows of weights, from the slots of the steps and of the dilations.
    pub(super) fn of_weights(
        op: &Op,
        [steps, dilations]: [[usize; 2]; 2],
    ) -> Result<Self, TfliteError> {
        let kernel = image(op, input(op, 1)?)?;
        let dilation = |slot| {
            let number = op.operator.option(slot, 1)?;
            u64::try_from(number).map_err(|_| malformed(op, &format!("a dilation is {number}")))
        };
        let dilations = [dilation(dilations[0])?, dilation(dilations[1])?];
        Self::new(op, kernel, steps, dilations)
    }

    /// The windows of a pool, which have no weights.
    pub(super) fn of_pool(op: &Op) -> Result<Self, TfliteError> {
        let (height, width) = (option(op, 4)?, option(op, 3)?);
        Self::new(op, Dims { batch: 1, height, width, channels: 1 }, [2, 1], [1, 1])
    }

    fn new(
        op: &Op,
        kernel: Dims,
        steps: [usize; 2],
        dilations: [u64; 2],
    ) -> Result<Self, TfliteError> {
        let (image, output) = (image(op, input(op, 0)?)?, image(op, output(op)?)?);
        let is_same = op.operator.option_byte(0)? == 0;
        let stride = |step, dilation: u64, image: u64, kernel: u64, output: u64| {
            let kernel = kernel.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
            let reach = output.saturating_sub(1).saturating_mul(step).saturating_add(kernel);
            let padding = if is_same { reach.saturating_sub(image) / 2 } else { 0 };
            Stride { step, dilation, padding }
        };
        let (down, right) = (option(op, steps[0])?, option(op, steps[1])?);
        let moves = [
            stride(down, dilations[0], image.height, kernel.height, output.height),
            stride(right, dilations[1], image.width, kernel.width, output.width),
        ];
        Ok(Self { image, kernel, output, moves })
    }
}
