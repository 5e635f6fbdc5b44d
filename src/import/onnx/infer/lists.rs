//! Outputs that are sequences or optionals, and outputs that are a tensor of one.

use std::rc::Rc;

use crate::import::onnx::{
    infer::{open::SHAPE_SAMPLES, shape_samples},
    ops::{
        lists,
        op::{Op, Reason},
        row::{Row, Size, View},
    },
    read::fact::{Fact, List, Sample},
};

/// The tensors of the first output, if it is a sequence.
pub(super) fn output(op: &Op, row: Option<&Row>) -> Option<Result<List, Reason>> {
    let row = row?;
    match row.shapes {
        Size::List(rule) => Some(rule(op).and_then(|items| in_samples(op, rule, items))),
        // An optional without an input holds nothing.
        _ if row.view == Some(View::Whole) && op.node.input(0).is_none() => {
            Some(Ok(List::default()))
        }
        _ if row.view == Some(View::Whole) => op.input(0)?.items.clone().map(Ok),
        _ => None,
    }
}

/// The tensor of a sequence that is the first output, if it is known which one.
pub(super) fn chosen(op: &Op, row: Option<&Row>) -> Option<Fact> {
    let takes_one = row.is_some_and(|row| row.view == Some(View::Element));
    lists::chosen(op).ok().flatten().filter(|_| takes_one).cloned()
}

/// Adds the sizes in each shape sample where a size of a tensor is open.
fn in_samples(op: &Op, rule: fn(&Op) -> Result<List, Reason>, items: List) -> Result<List, Reason> {
    let is_unsettled = |item: &Fact| item.bytes().is_none() && item.dims.is_some();
    if !items.iter().any(is_unsettled) {
        return Ok(items);
    }
    let in_sample = |nth| rule(&shape_samples::guessed(op, &shape_samples::inputs(op, nth)));
    let samples: Vec<List> = (0..SHAPE_SAMPLES).map(in_sample).collect::<Result<_, _>>()?;
    if samples.iter().any(|list| list.len() != items.len()) {
        return Err("how many tensors there are is known only at run time".to_owned());
    }
    let settled = |(at, item): (usize, &Fact)| {
        let sample = |list: &List| Some(Sample { sizes: list[at].sizes()?, elements: None });
        let samples: Option<Rc<[Sample]>> = samples.iter().map(sample).collect();
        let samples = samples.filter(|_| is_unsettled(item));
        Fact { samples: samples.unwrap_or_else(|| Rc::clone(&item.samples)), ..item.clone() }
    };
    Ok(items.iter().enumerate().map(settled).collect())
}
