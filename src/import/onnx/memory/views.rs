//! Read dependencies: outputs that are only another view of an input.

use crate::{
    Bytes,
    import::onnx::{
        infer::layout,
        infer::slices,
        read::fact::{Fact, count},
        read::op::Op,
        read::types,
    },
};

/// The input that an output is a view of, and where in it, in bytes.
pub(crate) type View = Option<(usize, Bytes)>;

/// Operators that only give the same elements in the same order another shape.
const RENAMES: &[&str] = &["Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"];

/// The view that each output of an operator is, if it is one. The shapes of all are known.
pub(crate) fn views(op: &Op, outputs: &[Fact]) -> Vec<View> {
    let mut views = vec![None; outputs.len()];
    let ([first, ..], Some(input)) = (outputs, op.input(0)) else { return views };
    if !op.node.is_known() || input.element != first.element {
        return views;
    }
    match op.node.kind() {
        kind if RENAMES.contains(&kind) => views[0] = whole(input, first),
        "Cast" | "CastLike" => views[0] = whole(input, first),
        "Expand" if input.sizes() == first.sizes() => views[0] = whole(input, first),
        "Dropout" if !drops(op) => views[0] = whole(input, first),
        "Transpose" if keeps_order(op, input) => views[0] = whole(input, first),
        "Slice" => views[0] = slice(op, input),
        "Split" => split(op, input, outputs, &mut views),
        _ => {}
    }
    // A declared shape may contradict the operator.
    for (view, output) in views.iter_mut().zip(outputs) {
        let room = view.and_then(|(_, offset): (usize, Bytes)| input.bytes()?.checked_sub(offset));
        if room < output.bytes() {
            *view = None;
        }
    }
    views
}

fn whole(input: &Fact, output: &Fact) -> View {
    (input.bytes() == output.bytes()).then_some((0, 0))
}

/// A `Dropout` that passes its input on computes no mask unless somebody wants it.
pub(crate) fn leaves_out_unread(op: &Op) -> bool {
    op.node.kind() == "Dropout" && op.node.is_known() && !drops(op)
}

/// Whether this is a `Dropout` that trains, and so changes its input. Very old ones say so in an
/// attribute.
pub(crate) fn drops(op: &Op) -> bool {
    let attribute = op.opset < 7 && op.node.int("is_test").unwrap_or(0) == 0;
    let input = op.input(2).is_some_and(|training| training.int() != Some(0));
    op.node.kind() == "Dropout" && (attribute || input)
}

/// Whether a `Transpose` moves only dimensions of size 1.
fn keeps_order(op: &Op, input: &Fact) -> bool {
    let Some(sizes) = input.sizes() else { return false };
    let Ok(permutation) = layout::permutation(op, sizes.len()) else { return false };
    permutation.into_iter().filter(|&from| sizes[from] != 1).is_sorted()
}

/// A slice is a run of bytes if, from outside in, it takes one index of each dimension, then a run
/// of indices of one, then all of the others.
fn slice(op: &Op, input: &Fact) -> View {
    let sizes = input.sizes()?;
    let cuts = slices::slice_cuts(op, input.dims.as_ref()?).ok()?;
    let cuts: Vec<slices::Cut> = cuts.into_iter().collect::<Option<_>>()?;
    let outer = cuts.iter().take_while(|cut| cut.count == 1).count();
    let whole = |(cut, &size): (&slices::Cut, &u64)| cut.count == size && cut.step == 1;
    let inner = cuts.iter().zip(&sizes).skip(outer + 1).all(whole);
    let run = cuts.get(outer).is_none_or(|cut| cut.step == 1);
    if !inner || !run {
        return None;
    }
    let mut place = 0_u64;
    for (cut, &size) in cuts.iter().zip(&sizes) {
        place = place.checked_mul(size)?.checked_add(cut.start)?;
    }
    Some((0, offset(input, place)?))
}

fn split(op: &Op, input: &Fact, outputs: &[Fact], views: &mut [View]) {
    let Some(sizes) = input.sizes() else { return };
    let Ok(axis) = op.axis(0, sizes.len()) else { return };
    if sizes[..axis].iter().any(|&size| size != 1) {
        return;
    }
    let mut place = Some(0_u64);
    for (view, output) in views.iter_mut().zip(outputs) {
        *view = place.and_then(|place| Some((0, offset(input, place)?)));
        let length = output.sizes().as_deref().and_then(count);
        place = place.zip(length).and_then(|(place, length)| place.checked_add(length));
    }
}

/// Where an element lies in a tensor, in bytes, if it starts at a byte.
fn offset(input: &Fact, place: u64) -> Option<Bytes> {
    let bits = u128::from(place) * u128::from(types::bits(input.element?)?);
    bits.is_multiple_of(8).then(|| Bytes::try_from(bits / 8).ok())?
}
