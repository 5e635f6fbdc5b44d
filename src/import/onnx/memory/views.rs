//! Read dependencies: outputs that are only a view of an input.

use crate::{
    Bytes,
    import::{
        Kernels,
        onnx::{
            memory::onnxruntime,
            ops::{
                layout, lists,
                op::Op,
                row::{Row, View},
                slices,
            },
            read::{
                element,
                fact::{Fact, count},
            },
        },
    },
};

/// The input that an output is a view of, and the offset there in bytes.
pub(crate) type Place = Option<(usize, Bytes)>;

/// Returns, for each output of an operator, the place that it is a view of, if any. All shapes are
/// known.
pub(crate) fn views(op: &Op, row: Option<&Row>, outputs: &[Fact], kernels: &Kernels) -> Vec<Place> {
    let mut views = vec![None; outputs.len()];
    let ([first, ..], Some(input)) = (outputs, op.input(0)) else { return views };
    if kernels.is_onnxruntime() {
        views[0] = whole(input, first).filter(|_| onnxruntime::is_view(op.node));
        return views;
    }
    let Some(view) = row.and_then(|row| row.view) else { return views };
    if view == View::Bits {
        views[0] = whole(input, first);
        return views;
    }
    if view == View::Element {
        let offset = lists::offset(op).filter(|_| first.bytes().is_some());
        views[0] = offset.map(|offset| (0, offset));
        return views;
    }
    if input.element != first.element {
        return views;
    }
    match view {
        View::Whole => views[0] = whole(input, first),
        View::SameShape if input.sizes().is_some() && input.sizes() == first.sizes() => {
            views[0] = whole(input, first);
        }
        View::Passed if !row.is_some_and(|row| row.is_random(op)) => views[0] = whole(input, first),
        View::KeptOrder if keeps_order(op, input) => views[0] = whole(input, first),
        View::Run => views[0] = slice(op, input),
        View::Runs => split(op, input, outputs, &mut views),
        View::SameShape | View::Passed | View::KeptOrder | View::Bits | View::Element => {}
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

fn whole(input: &Fact, output: &Fact) -> Place {
    (input.bytes() == output.bytes()).then_some((0, 0))
}

/// Returns whether a `Transpose` moves only dimensions of size 1.
fn keeps_order(op: &Op, input: &Fact) -> bool {
    let Some(sizes) = input.sizes() else { return false };
    let Ok(permutation) = layout::permutation(op, sizes.len()) else { return false };
    permutation.into_iter().filter(|&from| sizes[from] != 1).is_sorted()
}

/// A slice is a run of bytes if, from outside in, it takes one index of each dimension, then a run
/// of indices of one, then all of the others.
fn slice(op: &Op, input: &Fact) -> Place {
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

fn split(op: &Op, input: &Fact, outputs: &[Fact], views: &mut [Place]) {
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

/// Returns the offset of an element in a tensor, in bytes, if it starts at a byte.
fn offset(input: &Fact, place: u64) -> Option<Bytes> {
    let bits = u128::from(place) * u128::from(element::bits(input.element?)?);
    bits.is_multiple_of(8).then(|| Bytes::try_from(bits / 8).ok())?
}
