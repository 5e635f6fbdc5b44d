//! The smallest pool over all orders of the operators and all choices of ties.

use super::{
    model::{Model, Steps},
    packing::TooMany,
    ties::{Kind, Link, Questions},
    truth::{Best, one_pool},
};

/// The most orders that are tried.
const MAX_ORDERS: usize = 1_000;

/// The best order of the operators and its plan.
pub struct BestOrder {
    pub order: Vec<usize>,
    pub best: Best,
}

pub fn best_order(
    model: &mut Model,
    questions: &Questions,
    choices: &[Vec<Link>],
) -> Result<Option<BestOrder>, TooMany> {
    let orders = orders(model).ok_or(TooMany)?;
    let contents = Contents::of(model, questions);
    let mut bounded: Vec<(i64, Vec<usize>)> = Vec::new();
    for order in orders {
        model.run_in(&order);
        bounded.push((contents.alive(model), order));
    }
    bounded.sort();
    let (mut found, mut below) = (None, i64::MAX);
    for (least, order) in bounded {
        if least >= below {
            break;
        }
        model.run_in(&order);
        if let Some(best) = one_pool(model, choices, below)? {
            below = best.pool() as i64;
            found = Some(BestOrder { order, best });
        }
    }
    Ok(found)
}

impl Model {
    /// Runs the operators one after another in this order.
    pub fn run_in(&mut self, order: &[usize]) {
        let mut over: Steps = 0;
        for &step in order {
            self.before[step] = over;
            over |= 1 << step;
        }
        self.first = order.first().copied().unwrap_or(0);
    }
}

/// All orders; `None` if there are too many.
pub fn orders(model: &Model) -> Option<Vec<Vec<usize>>> {
    let mut orders = Vec::new();
    extend(model, &mut Vec::new(), &mut orders).then_some(orders)
}

fn extend(model: &Model, order: &mut Vec<usize>, orders: &mut Vec<Vec<usize>>) -> bool {
    if order.len() == model.operators.len() {
        orders.push(order.clone());
        return orders.len() <= MAX_ORDERS;
    }
    let over = order.iter().fold(0, |over: Steps, &step| over | 1 << step);
    for step in 0..model.operators.len() {
        if over >> step & 1 == 0 && model.needs[step] & !over == 0 {
            order.push(step);
            let is_done = extend(model, order, orders);
            order.pop();
            if !is_done {
                return false;
            }
        }
    }
    true
}

/// The distinct values of a graph, each of as many bytes as the unit, whatever the choice: a view has the values of
/// its base, and an output those that it gathers.
struct Contents {
    /// The step that writes each value, and its uses.
    values: Vec<(Option<usize>, Steps)>,
}

impl Contents {
    fn of(model: &Model, questions: &Questions) -> Self {
        let mut firsts = Vec::new();
        let mut count = 0;
        for tensor in &model.tensors {
            firsts.push(count);
            count += (tensor.size / model.unit) as usize;
        }
        let mut same: Vec<usize> = (0..count).collect();
        for link in questions.iter().flatten().flatten() {
            if matches!(link.kind, Kind::View | Kind::Part) {
                let distance = (link.distance / model.unit) as usize;
                for at in 0..(model.tensors[link.tensor].size / model.unit) as usize {
                    let one = find(&same, firsts[link.tensor] + at);
                    let other = find(&same, firsts[link.to] + distance + at);
                    same[one] = other;
                }
            }
        }
        let outside = outside(model, questions);
        let mut values: Vec<Value> = vec![Value::default(); count];
        for (tensor, first) in firsts.iter().enumerate() {
            for at in 0..(model.tensors[tensor].size / model.unit) as usize {
                let value = &mut values[find(&same, first + at)];
                value.steps.push(model.tensors[tensor].step);
                value.uses |= model.uses(tensor, |output| model.may_be_view(output));
                value.is_outside |= outside[tensor];
            }
        }
        let inside = values.iter().filter(|value| !value.steps.is_empty() && !value.is_outside);
        let value = |value: &Value| (first_of(model, &value.steps), value.uses);
        Self { values: inside.map(value).collect() }
    }

    /// The most bytes that are needed after a step or made by it.
    fn alive(&self, model: &Model) -> i64 {
        let needed = |step: usize| {
            let is_needed = |&&(writer, uses): &&(Option<usize>, Steps)| {
                let is_written = writer
                    .is_none_or(|writer| writer == step || model.before[step] >> writer & 1 == 1);
                let later = uses & !(model.before[step] | 1 << step);
                is_written && (later != 0 || writer == Some(step))
            };
            self.values.iter().filter(is_needed).count() as i64 * model.unit
        };
        (0..model.operators.len()).map(needed).max().unwrap_or(0)
    }
}

/// A value while it is collected from the tensors that have it.
#[derive(Clone, Default)]
struct Value {
    /// The steps of these tensors.
    steps: Vec<Option<usize>>,
    uses: Steps,
    is_outside: bool,
}

fn find(same: &[usize], mut at: usize) -> usize {
    while same[at] != at {
        at = same[at];
    }
    at
}

/// By tensor: whether it lies outside the pool in every plan.
fn outside(model: &Model, questions: &Questions) -> Vec<bool> {
    let mut outside: Vec<bool> = model.tensors.iter().map(|tensor| tensor.is_outside).collect();
    for _ in 0..model.tensors.len() {
        for link in questions.iter().flatten().flatten() {
            let lies_there = matches!(link.kind, Kind::View | Kind::Over) && !link.is_optional;
            outside[link.tensor] |= lies_there && outside[link.to];
        }
    }
    outside
}

/// The step of the tensor that others view or gather, which needs no other of these steps; `None` if it is supplied.
fn first_of(model: &Model, steps: &[Option<usize>]) -> Option<usize> {
    let made: Option<Vec<usize>> = steps.iter().copied().collect();
    let made = made?;
    let is_first =
        |step: &usize| made.iter().all(|other| other == step || !reaches(model, *step, *other));
    made.iter().copied().find(is_first)
}

/// Returns whether a step needs another, directly or through others.
fn reaches(model: &Model, step: usize, other: usize) -> bool {
    let needs = model.needs[step];
    needs >> other & 1 == 1
        || (0..model.operators.len())
            .any(|next| needs >> next & 1 == 1 && reaches(model, next, other))
}
