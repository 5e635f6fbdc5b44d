//! Partial overlap: how far below its input an output may begin.
//!
//! A kernel that reads its input from front to back and writes its output in the same order may write over
//! what it has read for the last time. With the output `K` bytes below the input, no byte is lost if `K` is
//! at least the end of every write, counted from the output's start, less the first byte of the input that is
//! read after that write. `K` therefore belongs to the loops of a kernel. Those of the reference kernels and
//! of CMSIS-NN without vectors are below; for other kernels they are unknown, so there is no overlap.
//!
//! Along a row of windows, and from row to row, the write advances by a constant and the read by
//! another, except where padding holds the read back. So `K` is reached at an end of a row or where
//! padding ends, and only those places are examined, whatever the size of the image.

#![allow(clippy::unnecessary_wraps, reason = "all rules have one type")]

use crate::{
    Bytes,
    import::tflite::{
        KernelLibrary, TfliteError,
        element::Element,
        model::Tensor,
        ops::{
            Op,
            scratch::{Dims, Stride, Windows},
        },
    },
};

/// The rule of an operator: the bytes by which its first output must begin below its first input;
/// `None` if its kernel may write anywhere before it reads.
pub(crate) type Rule = fn(&Op, KernelLibrary) -> Result<Option<Bytes>, TfliteError>;

pub(super) fn none(_: &Op, _: KernelLibrary) -> Result<Option<Bytes>, TfliteError> {
    Ok(None)
}

pub(super) fn convolution(op: &Op, library: KernelLibrary) -> Result<Option<Bytes>, TfliteError> {
    let (Some(element), Some(weights)) = (element(op), op.input(1)) else { return Ok(None) };
    let Windows { image, kernel, output, moves } = Windows::of_weights(op, [[2, 1], [5, 4]])?;
    if !is_reference(library, element) {
        // The loops differ for 1 x 1 windows (channels outside, pixels inside), for groups (one after
        // another) and for images of one row, which have other kernels.
        let is_known = kernel.area() > 1 && image.height > 1 && image.channels == kernel.channels;
        if !is_known || !has_int8_kernel(library, element, weights) {
            return Ok(None);
        }
    }
    Ok(Loops { image, output, moves, width: element.bytes, order: Order::Windows }.distance())
}

pub(super) fn depthwise(op: &Op, library: KernelLibrary) -> Result<Option<Bytes>, TfliteError> {
    let (Some(element), Some(weights)) = (element(op), op.input(1)) else { return Ok(None) };
    let Windows { image, output, moves, .. } = Windows::of_weights(op, [[2, 1], [6, 5]])?;
    if !is_reference(library, element) && !has_int8_kernel(library, element, weights) {
        return Ok(None);
    }
    let Some(order) = by_channel(image, output) else { return Ok(None) };
    Ok(Loops { image, output, moves, width: element.bytes, order }.distance())
}

pub(super) fn pool(op: &Op, library: KernelLibrary) -> Result<Option<Bytes>, TfliteError> {
    let Some(element) = element(op) else { return Ok(None) };
    let Windows { image, output, moves, .. } = Windows::of_pool(op)?;
    let order = match library {
        KernelLibrary::CmsisNnMve => return Ok(None),
        KernelLibrary::Reference => by_channel(image, output),
        // A maximum is taken in the output, a pixel at a time.
        KernelLibrary::CmsisNn | KernelLibrary::CmsisNnDsp => Some(Order::Pixels),
    };
    let Some(order) = order.filter(|_| image.channels == output.channels) else { return Ok(None) };
    Ok(Loops { image, output, moves, width: element.bytes, order }.distance())
}

/// Rows of the input are turned into rows of the output, one after another.
pub(super) fn fully_connected(
    op: &Op,
    library: KernelLibrary,
) -> Result<Option<Bytes>, TfliteError> {
    let (Some(element), Some(weights)) = (element(op), op.input(1)) else { return Ok(None) };
    let (Some(input), Some(output)) = (op.input(0), op.output(0)) else { return Ok(None) };
    let [columns, depth] = weights.shape[..] else { return Ok(None) };
    if !is_reference(library, element) || columns == 0 || depth == 0 {
        return Ok(None);
    }
    let rows = output.elements() / columns;
    if rows.checked_mul(depth) != Some(input.elements()) {
        return Ok(None);
    }
    let point = Stride { step: 1, dilation: 1, padding: 0 };
    let image = Dims { batch: 1, height: 1, width: rows, channels: depth };
    let output = Dims { channels: columns, ..image };
    let (moves, order) = ([point, point], Order::Windows);
    Ok(Loops { image, output, moves, width: element.bytes, order }.distance())
}

/// Each element becomes a wider one.
pub(super) fn widened(op: &Op, library: KernelLibrary) -> Result<Option<Bytes>, TfliteError> {
    let (Some(input), Some(output)) = (op.input(0), op.output(0)) else { return Ok(None) };
    let bytes = |tensor: &Tensor| tensor.element.bits().filter(|bits| bits % 8 == 0);
    let (Some(from), Some(to)) = (bytes(input), bytes(output)) else { return Ok(None) };
    // A compiler may assume that numbers of two types share no bytes, unless one of them is a byte.
    let is_known = library != KernelLibrary::CmsisNnMve && from == 8 && to >= from;
    if !is_known || input.elements() != output.elements() {
        return Ok(None);
    }
    let last = input.elements().saturating_sub(1);
    Ok(last.checked_mul((to - from) / 8))
}

/// The elements of the first input and the first output of an operator.
#[derive(Clone, Copy)]
struct Elements {
    of: Element,
    bytes: Bytes,
}

/// Returns `None` if their types differ, or an element is not a whole number of bytes.
fn element(op: &Op) -> Option<Elements> {
    let of = op.input(0)?.element;
    let bits = of.bits().filter(|bits| bits % 8 == 0)?;
    (op.output(0)?.element == of).then_some(Elements { of, bytes: bits / 8 })
}

/// Returns whether the kernel is the reference kernel. CMSIS-NN has none for floating point.
fn is_reference(library: KernelLibrary, element: Elements) -> bool {
    let has_float = library != KernelLibrary::CmsisNnMve && element.of == Element::FLOAT32;
    library == KernelLibrary::Reference || has_float
}

/// Returns whether CMSIS-NN's kernel for 8 bits runs, without vectors.
fn has_int8_kernel(library: KernelLibrary, element: Elements, weights: &Tensor) -> bool {
    let is_known = matches!(library, KernelLibrary::CmsisNn | KernelLibrary::CmsisNnDsp);
    is_known && element.of == Element::INT8 && weights.element == Element::INT8
}

/// The order of a kernel that computes this many output channels from each input channel.
fn by_channel(image: Dims, output: Dims) -> Option<Order> {
    let multiplier = output.channels.checked_div(image.channels)?;
    let is_whole =
        multiplier > 0 && multiplier.checked_mul(image.channels) == Some(output.channels);
    is_whole.then_some(Order::Channels { multiplier })
}

/// The reads and writes for one pixel of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// For each output channel, all channels of the window are read, then the element is written.
    Windows,
    /// For each output channel, one channel of the window is read, then the element is written; the
    /// next channel is read after `multiplier` elements.
    Channels { multiplier: u64 },
    /// All channels may be written before the window is read to its end.
    Pixels,
}

/// The loops of a kernel: images, rows, columns, then as in [`Order`].
#[derive(Clone, Copy, Debug)]
struct Loops {
    image: Dims,
    output: Dims,
    /// The strides of the windows, down and right.
    moves: [Stride; 2],
    /// The bytes of an element.
    width: Bytes,
    order: Order,
}

impl Loops {
    /// The least distance; `None` if nothing is written.
    fn distance(&self) -> Option<Bytes> {
        let Dims { batch, height, width, channels } = self.output;
        if [batch, height, width, channels, self.image.channels].contains(&0) {
            return None;
        }
        let [down, right] = self.moves;
        let mut distance = 0;
        for image in places(batch, None) {
            for row in places(height, Some(down)) {
                for column in places(width, Some(right)) {
                    distance = self.at(image, row, column).max(distance);
                }
            }
        }
        Bytes::try_from(distance).ok()
    }

    /// The distance that the writes for a pixel need.
    fn at(&self, image: u64, row: u64, column: u64) -> i128 {
        let Dims { batch, height, width, channels } = self.output;
        let bytes = i128::from(self.width);
        let scaled = |elements: i128| elements.saturating_mul(bytes);
        let pixel = sum(sum(image, height, row), width, column);
        let written =
            |count: u64| scaled(pixel.saturating_mul(channels.into()).saturating_add(count.into()));
        // The reads for later pixels.
        let in_row = (column + 1 < width).then(|| self.first_read(image, row, column + 1));
        let in_image = (row + 1 < height).then(|| self.first_read(image, row + 1, 0));
        let later = in_row.into_iter().chain(in_image).min();
        let later = later.or_else(|| (image + 1 < batch).then(|| self.first_read(image + 1, 0, 0)));
        let later = later.map(scaled);
        let own = self.first_read(image, row, column);
        let whole = later.map(|read| written(channels).saturating_sub(read));
        let before = |count: u64, read: i128| {
            let read = later.into_iter().fold(scaled(read), i128::min);
            (count > 0).then(|| written(count).saturating_sub(read))
        };
        let within = match self.order {
            Order::Windows => before(channels - 1, own),
            Order::Channels { multiplier } => {
                before(channels - 1, own.saturating_add(((channels - 1) / multiplier).into()))
            }
            Order::Pixels => before(channels, own),
        };
        whole.into_iter().chain(within).fold(0, i128::max)
    }

    /// The first element that the window of a pixel reads, or one before it.
    fn first_read(&self, image: u64, row: u64, column: u64) -> i128 {
        let Dims { height, width, channels, .. } = self.image;
        let [down, right] = self.moves;
        let first = |at: u64, Stride { step, padding, .. }: Stride| {
            at.saturating_mul(step).saturating_sub(padding)
        };
        let pixel = sum(sum(image, height, first(row, down)), width, first(column, right));
        pixel.saturating_mul(channels.into())
    }
}

/// The index of an element after a number of rows of equal length.
fn sum(rows: impl Into<i128>, length: u64, at: u64) -> i128 {
    rows.into().saturating_mul(length.into()).saturating_add(at.into())
}

/// The places among `count` where the distance may be largest: both ends, and where padding ends.
fn places(count: u64, stride: Option<Stride>) -> impl Iterator<Item = u64> {
    let padded = stride.map_or(0, |stride| stride.padding.checked_div(stride.step).unwrap_or(0));
    let around = padded.saturating_sub(2)..=padded.saturating_add(2);
    let ends = [0, 1, count.saturating_sub(2), count - 1];
    ends.into_iter().chain(around).filter(move |&at| at < count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

    /// An access of a kernel to a byte of the input or of the output.
    #[derive(Clone, Copy)]
    enum Access {
        Read(u64),
        Write(u64),
    }

    /// All reads and writes of a kernel, element by element.
    fn accesses(loops: &Loops, kernel: [u64; 2]) -> Vec<Access> {
        let Loops { image, output, moves: [down, right], order, .. } = *loops;
        let mut accesses = Vec::new();
        for batch in 0..output.batch {
            for row in 0..output.height {
                for column in 0..output.width {
                    let mut window = Vec::new();
                    for y in 0..kernel[0] {
                        for x in 0..kernel[1] {
                            let y = (row * down.step + y * down.dilation).checked_sub(down.padding);
                            let x = (column * right.step + x * right.dilation)
                                .checked_sub(right.padding);
                            if let (Some(y), Some(x)) = (y, x)
                                && y < image.height
                                && x < image.width
                            {
                                window.push((batch * image.height + y) * image.width + x);
                            }
                        }
                    }
                    let pixel = (batch * output.height + row) * output.width + column;
                    let write = |channel| Access::Write(pixel * output.channels + channel);
                    let read = |channel: u64| {
                        let window = window.iter();
                        window.map(move |pixel| Access::Read(pixel * image.channels + channel))
                    };
                    match order {
                        Order::Windows => (0..output.channels).for_each(|channel| {
                            (0..image.channels).for_each(|from| accesses.extend(read(from)));
                            accesses.push(write(channel));
                        }),
                        Order::Channels { multiplier } => {
                            (0..output.channels).for_each(|channel| {
                                accesses.extend(read(channel / multiplier));
                                accesses.push(write(channel));
                            });
                        }
                        Order::Pixels => {
                            accesses.extend((0..output.channels).map(write));
                            (0..image.channels).for_each(|from| accesses.extend(read(from)));
                        }
                    }
                }
            }
        }
        accesses
    }

    /// Returns whether no element is read after another was written there.
    fn works(accesses: &[Access], distance: u64) -> bool {
        let mut written = std::collections::BTreeSet::new();
        accesses.iter().all(|access| match *access {
            Access::Write(at) => {
                written.insert(at);
                true
            }
            // The input begins `distance` elements above the output.
            Access::Read(at) => !written.contains(&(at + distance)),
        })
    }

    /// The least distance from which on every distance works.
    fn by_walking(accesses: &[Access]) -> u64 {
        let mut distance: i128 = 0;
        let mut unread = i128::MAX;
        for access in accesses.iter().rev() {
            match *access {
                Access::Read(at) => unread = unread.min(at.into()),
                Access::Write(at) => distance = distance.max(i128::from(at) + 1 - unread),
            }
        }
        u64::try_from(distance).unwrap()
    }

    #[test]
    fn distances_are_those_of_walking_all_reads_and_writes() {
        let mut counts = [0; 3];
        times(6000, |random| {
            let mut number = |from: u64, to: u64| random.int_in_range(from..=to);
            let (batch, channels) = (number(1, 2)?, number(1, 3)?);
            let size = [number(1, 6)?, number(1, 6)?];
            let kernel = [number(1, 4)?, number(1, 4)?];
            let (step, dilation) = ([number(1, 3)?, number(1, 3)?], number(0, 5)?.max(4) - 3);
            let is_same = number(0, 1)? == 0;
            let mut moves = [Stride { step: 1, dilation, padding: 0 }; 2];
            let mut made = [0; 2];
            for axis in 0..2 {
                let reach = (kernel[axis] - 1) * dilation + 1;
                if !is_same && reach > size[axis] {
                    return Ok(());
                }
                made[axis] = if is_same {
                    size[axis].div_ceil(step[axis])
                } else {
                    (size[axis] - reach) / step[axis] + 1
                };
                let covered = (made[axis] - 1) * step[axis] + reach;
                moves[axis].step = step[axis];
                moves[axis].padding =
                    if is_same { covered.saturating_sub(size[axis]) / 2 } else { 0 };
            }
            let multiplier = number(1, 3)?;
            let (order, to) = match number(0, 2)? {
                0 => (Order::Windows, number(1, 4)?),
                1 => (Order::Channels { multiplier }, channels * multiplier),
                _ => (Order::Pixels, channels),
            };
            let image = Dims { batch, height: size[0], width: size[1], channels };
            let output = Dims { batch, height: made[0], width: made[1], channels: to };
            let loops = Loops { image, output, moves, width: 1, order };
            let accesses = accesses(&loops, kernel);
            let (walked, found) = (by_walking(&accesses), loops.distance().unwrap());
            // With gaps in the windows, a row of padding may hide more than is counted.
            let is_exact = dilation == 1;
            assert!(found == walked || (!is_exact && found > walked), "{found} {walked} {loops:?}");
            assert!(works(&accesses, found) && works(&accesses, found + 1), "{loops:?}");
            assert!(!is_exact || found == 0 || !works(&accesses, found - 1), "{loops:?}");
            let wide = Loops { width: 4, ..loops };
            assert_eq!(wide.distance(), Some(4 * found));
            counts[0] += 1;
            counts[1] += u32::from(found > 0);
            counts[2] += u32::from(is_exact);
            Ok(())
        });
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    }
}
