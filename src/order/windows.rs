//! Improves long sequences around their peaks, a window at a time.
//!
//! The operators around a peak are reordered while the states before and after them stay the same.
//! Steps outside the window keep their bytes, so the order never gets worse.

use crate::effort::Effort;
use crate::{
    Bytes,
    order::{
        lazy::Waits,
        model::Model,
        search::{Answer, Question, TURNS},
        sets::insert,
        symmetry::Symmetry,
    },
};

/// The number of operators on either side of a peak.
const REACHES: [usize; 3] = [25, 100, 250];

/// The width of a layer inside a window.
const WIDTH: usize = 64;

/// Improves an order around its peaks, until one of them stays or `bound` is reached.
pub(super) fn improve(
    model: &Model,
    mut order: Vec<u32>,
    bound: Bytes,
    unit: Bytes,
    effort: &mut Effort,
) -> Vec<u32> {
    for reach in REACHES {
        while !effort.is_spent() {
            let steps = model.steps(&order);
            effort.spend((model.reads.entries() + 4 * model.operators()) as u64);
            let peak = steps.iter().copied().max().unwrap_or(0);
            if peak <= bound {
                return order;
            }
            let Some(better) = round(model, &order, (&steps, peak), (reach, unit), effort) else {
                break;
            };
            order = better;
        }
    }
    order
}

/// Returns the order with all peaks lowered, if windows of this reach can do so.
fn round(
    model: &Model,
    order: &[u32],
    (steps, peak): (&[Bytes], Bytes),
    (reach, unit): (usize, Bytes),
    effort: &mut Effort,
) -> Option<Vec<u32>> {
    // The same pass lowers steps slightly below the peak.
    let high = peak - peak / 64;
    let mut order = order.to_vec();
    let mut set = vec![0; model.words()];
    let (mut live, mut done) = (model.live_at_start(), 0);
    let mut next = 0;
    while let Some(at) = (next..steps.len()).find(|&at| steps[at] >= high) {
        let window = at.saturating_sub(reach).max(next)..(at + reach + 1).min(order.len());
        for &operator in &order[done..window.start] {
            live = live + model.produced[operator as usize] - model.frees(operator, &set);
            insert(&mut set, operator);
        }
        done = window.start;
        let part = model.part(&order[window.clone()], &set, live);
        let worst = steps[window.clone()].iter().copied().max().unwrap_or(0);
        let (waits, symmetry) = (Waits::new(&part), Symmetry::default());
        effort.spend(8 * window.len() as u64);
        let better = [peak - peak / 32, worst - unit].into_iter().find_map(|budget| {
            let budget = budget.min(worst.checked_sub(unit)?);
            let question = Question {
                model: &part,
                waits: &waits,
                symmetry: &symmetry,
                budget,
                width: WIDTH,
                turns: &TURNS,
            };
            match question.answer(effort) {
                Answer::Order(found) => Some(found),
                Answer::AtLeast(_) | Answer::UnknownBelow(_) => None,
            }
        });
        match better {
            Some(found) => {
                let old = order[window.clone()].to_vec();
                for (place, operator) in window.clone().zip(found) {
                    order[place] = old[operator as usize];
                }
            }
            None if worst == peak => return None,
            None => {}
        }
        next = window.end;
    }
    Some(order)
}
