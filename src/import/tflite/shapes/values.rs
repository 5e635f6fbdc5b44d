//! The values of small tensors of integers that follow from shapes and constants.

use super::{
    layout_values::{Dimension, strided},
    node::{MAX_VALUES, Node, elements},
};
use crate::import::tflite::element::Element;

/// The values of an output of this shape, if they follow from what is known.
pub(super) fn values(node: &Node, output: usize, shape: &[u64]) -> Option<Vec<i64>> {
    let element = node.op.output(output)?.element;
    let count = usize::try_from(elements(shape)).ok().filter(|&count| count <= MAX_VALUES)?;
    let limits = match (element.integer_width(), element) {
        (Some(4), _) => i64::from(i32::MIN)..=i64::from(i32::MAX),
        (Some(_), _) => i64::MIN..=i64::MAX,
        (None, Element::BOOL) => 0..=1,
        (None, _) => return None,
    };
    let found = found(node, output, count)?;
    (found.len() == count && found.iter().all(|value| limits.contains(value))).then_some(found)
}

fn found(node: &Node, output: usize, count: usize) -> Option<Vec<i64>> {
    let kind = node.op.model.kind(node.op.operator);
    let list = |input| node.shape(input).filter(|shape| shape.len() <= 1).and(node.values(input));
    let signed = |number: u64| i64::try_from(number).ok();
    match kind {
        "SHAPE" => exact_shape(node)?.iter().map(|&size| signed(size)).collect(),
        "RANK" => Some(vec![i64::try_from(exact_shape(node)?.len()).ok()?]),
        "CAST" | "EXPAND_DIMS" | "RESHAPE" | "SQUEEZE" => Some(node.values(0)?.to_vec()),
        "CONCATENATION" | "PACK" => {
            let lists = (0..node.op.operator.inputs.len()).map(list);
            Some(lists.collect::<Option<Vec<_>>>()?.concat())
        }
        "UNPACK" => Some(vec![*list(0)?.get(output)?]),
        "SPLIT" => Some(list(1)?.chunks(count.max(1)).nth(output)?.to_vec()),
        "SPLIT_V" => {
            let before = node.op.operator.outputs.get(..output)?.iter();
            let before = before.map(|&at| node.facts[at].shape.as_ref()?.first().copied());
            let begin = usize::try_from(before.sum::<Option<u64>>()?).ok()?;
            Some(list(0)?.get(begin..begin.checked_add(count)?)?.to_vec())
        }
        "SLICE" => {
            let begin = usize::try_from(*node.values(1)?.first()?).ok()?;
            Some(list(0)?.get(begin..begin.checked_add(count)?)?.to_vec())
        }
        "STRIDED_SLICE" => sliced(list(0)?, &strided(node).ok()??),
        "GATHER" => {
            let from = list(0)?;
            let chosen = node.values(1)?.iter();
            chosen.map(|&at| from.get(usize::try_from(at).ok()?).copied()).collect()
        }
        "BROADCAST_TO" | "FILL" => {
            let source = usize::from(kind == "FILL");
            let &[value] = node.values(source)? else { return None };
            Some(vec![value; count])
        }
        "RANGE" => {
            let (&[start], &[step]) = (node.values(0)?, node.values(2)?) else { return None };
            (0..).take(count).map(|at: i64| start.checked_add(step.checked_mul(at)?)).collect()
        }
        "BROADCAST_ARGS" => {
            let (a, b) = (node.sizes(0).ok()??, node.sizes(1).ok()??);
            super::node::broadcast(&a, &b).ok()?.into_iter().map(signed).collect()
        }
        "REDUCE_MAX" | "REDUCE_MIN" | "REDUCE_PROD" | "SUM" => {
            let list = list(0).filter(|_| count == 1)?;
            let all: fn(i64, i64) -> Option<i64> = match kind {
                "REDUCE_MAX" => |a, b| Some(a.max(b)),
                "REDUCE_MIN" => |a, b| Some(a.min(b)),
                "REDUCE_PROD" => i64::checked_mul,
                _ => i64::checked_add,
            };
            let (&first, others) = list.split_first()?;
            Some(vec![others.iter().try_fold(first, |a, &b| all(a, b))?])
        }
        "SELECT" | "SELECT_V2" => {
            let [condition, a, b] = [node.values(0)?, node.values(1)?, node.values(2)?];
            (0..count)
                .map(|at| Some(if of(condition, at)? != 0 { of(a, at)? } else { of(b, at)? }))
                .collect()
        }
        "NEG" => node.values(0)?.iter().map(|value| value.checked_neg()).collect(),
        "ABS" => node.values(0)?.iter().map(|value| value.checked_abs()).collect(),
        "LOGICAL_NOT" => Some(node.values(0)?.iter().map(|&value| i64::from(value == 0)).collect()),
        _ => {
            let combine = arithmetic(kind)?;
            let (a, b) = (node.values(0)?, node.values(1)?);
            (0..count).map(|at| combine(of(a, at)?, of(b, at)?)).collect()
        }
    }
}

fn exact_shape<'n>(node: &Node<'n, '_, '_>) -> Option<&'n [u64]> {
    node.fact(0).filter(|fact| !fact.is_bound)?.shape.as_deref()
}

/// The value at a place; a single value is at all places.
fn of(values: &[i64], at: usize) -> Option<i64> {
    if let &[value] = values { Some(value) } else { values.get(at).copied() }
}

fn sliced(list: &[i64], dimensions: &[Dimension]) -> Option<Vec<i64>> {
    let taken = dimensions.iter().find_map(|dimension| match dimension {
        Dimension::Taken(taken) => Some(*taken),
        Dimension::New => None,
    });
    let taken = taken?;
    let place =
        |at: i64| usize::try_from(taken.begin.checked_add(taken.stride.checked_mul(at)?)?).ok();
    (0..i64::try_from(taken.count).ok()?).map(|at| list.get(place(at)?).copied()).collect()
}

/// How an operator combines two integers.
fn arithmetic(kind: &str) -> Option<fn(i64, i64) -> Option<i64>> {
    Some(match kind {
        "ADD" => i64::checked_add,
        "SUB" => i64::checked_sub,
        "MUL" => i64::checked_mul,
        "DIV" => i64::checked_div,
        "FLOOR_DIV" => |a, b| {
            let quotient = a.checked_div(b)?;
            Some(quotient - i64::from(a % b != 0 && (a < 0) != (b < 0)))
        },
        "FLOOR_MOD" => |a, b| {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        },
        "MAXIMUM" => |a, b| Some(a.max(b)),
        "MINIMUM" => |a, b| Some(a.min(b)),
        "EQUAL" => |a, b| Some((a == b).into()),
        "NOT_EQUAL" => |a, b| Some((a != b).into()),
        "GREATER" => |a, b| Some((a > b).into()),
        "GREATER_EQUAL" => |a, b| Some((a >= b).into()),
        "LESS" => |a, b| Some((a < b).into()),
        "LESS_EQUAL" => |a, b| Some((a <= b).into()),
        "LOGICAL_AND" => |a, b| Some((a != 0 && b != 0).into()),
        "LOGICAL_OR" => |a, b| Some((a != 0 || b != 0).into()),
        _ => return None,
    })
}
