//! The search for the least budget within which an order exists.

use crate::effort::Effort;
use crate::{
    Bytes,
    order::{
        bound, greedy,
        lazy::{Lazies, Waits},
        model::Model,
        search::{Answer, Question, TURNS},
        sets::narrow,
        symmetry::Symmetry,
        trees, windows,
    },
};

/// The best order so far.
pub(super) struct Best {
    pub(super) order: Vec<u32>,
    pub(super) peak: Bytes,
    /// A lower bound in bytes: no order needs fewer.
    pub(super) lower_bound: Bytes,
}

impl Best {
    /// The given order.
    pub(super) fn given(model: &Model) -> Self {
        let order: Vec<u32> = (0..narrow(model.operators())).collect();
        Self { peak: model.peak(&order), order, lower_bound: 0 }
    }

    pub(super) fn is_proven(&self) -> bool {
        self.peak <= self.lower_bound
    }

    /// Keeps an order if it is better.
    pub(super) fn better(&mut self, order: Vec<u32>, model: &Model, effort: &mut Effort) -> bool {
        let peak = model.peak(&order);
        let better = peak < self.peak;
        if better {
            (self.order, self.peak) = (order, peak);
            // With joined operators, a better order of the whole graph may already be known.
            effort.best = effort.best.min(peak);
        }
        better
    }

    pub(super) fn raise(&mut self, bound: Bytes, effort: &mut Effort) {
        self.lower_bound = self.lower_bound.max(bound.min(self.peak));
        effort.lower_bound = self.lower_bound;
    }
}

/// Searches for the order that needs the fewest bytes, starting with the given one, in a graph whose operators need not
/// be joined. `bound` is a lower bound in bytes for every order.
pub(super) fn least_budget(model: &Model, bound: Bytes, effort: &mut Effort) -> Best {
    let (mut best, chained) = set_out(model, bound, effort);
    if !best.is_proven() {
        search(model, chained.as_ref().unwrap_or(model), &mut best, effort);
    }
    best
}

/// Returns the best of the simple orders with a bound, and the model with its trees turned into
/// chains, if it has any.
pub(super) fn set_out(model: &Model, bound: Bytes, effort: &mut Effort) -> (Best, Option<Model>) {
    let mut best = Best::given(model);
    best.raise(bound, effort);
    let chained = trees::chained(model);
    let searched = chained.as_ref().unwrap_or(model);
    // If all operators are one tree, its order is the best one.
    if let Some(order) = trees::only_order(searched).filter(|_| model.exact) {
        let peak = model.peak(&order);
        best.better(order, model, effort);
        best.raise(peak, effort);
    }
    raise_by_cuts(searched, &mut best, effort);
    if !best.is_proven() {
        let mut orders = greedy::orders(model, &Lazies::new(model), effort);
        orders.extend(chained.as_ref().and_then(|chained| greedy::by_step(chained, effort)));
        for order in orders {
            best.better(order, model, effort);
        }
        raise_by_cuts(searched, &mut best, effort);
    }
    (best, chained)
}

fn raise_by_cuts(model: &Model, best: &mut Best, effort: &mut Effort) {
    let steps: Vec<(u32, Bytes)> =
        best.order.iter().copied().zip(model.steps(&best.order)).collect();
    let bound =
        effort.share(CUT_SHARE, |effort| bound::cuts(model, &steps, best.lower_bound, effort));
    best.raise(bound, effort);
}

/// Bounds by cuts take at most this fraction of the remaining effort: 1 / `CUT_SHARE`.
const CUT_SHARE: u64 = 8;

/// The widths of a layer, in the order in which they are tried.
const WIDTHS: [usize; 5] = [16, 256, 4096, 65_536, usize::MAX];

/// Larger graphs are searched by windows alone, because a state of the whole takes one bit per
/// operator.
pub(super) const MAX_OPERATORS: usize = 8192;

/// Each of the first searches without tiny chunks takes at most this fraction of the effort: 1 / `ROUGH_SHARE`.
const ROUGH_SHARE: u64 = 32;

/// Chunks are tiny if they are smaller than the bound divided by this. The first search omits the most
/// chunks; its bound and its order make the later searches easier.
const TINY: [Bytes; 3] = [50, 250, 2000];

/// Searches a model that has the same peaks as `model`, possibly with fewer orders.
pub(super) fn search(model: &Model, searched: &Model, best: &mut Best, effort: &mut Effort) {
    if model.operators() > MAX_OPERATORS {
        let order = std::mem::take(&mut best.order);
        let order = windows::improve(model, order, best.lower_bound, unit(model), effort);
        best.peak = model.peak(&order);
        best.order = order;
        return;
    }
    if effort.is_stopped() {
        return;
    }
    let waits = Waits::new(searched);
    let symmetry = Symmetry::new(searched, effort);
    let question = Question {
        model: searched,
        waits: &waits,
        symmetry: &symmetry,
        budget: 0,
        width: 0,
        turns: &TURNS,
    };
    // If branches differ only in tiny chunks, the search without them is far easier, and its bound helps.
    let (mut finest, mut omitted) = (None, None);
    for parts in TINY {
        if best.is_proven() || effort.is_spent() {
            return;
        }
        let least = best.lower_bound / parts;
        // With the same chunks omitted as before, the search would be the same.
        let bytes = bytes_below(searched, least);
        if omitted.replace(bytes) == Some(bytes) {
            continue;
        }
        finest = Coarse::new(searched, least, effort).filter(|coarse| {
            let width = WIDTHS[0];
            !effort.share(ROUGH_SHARE, |effort| coarse.least_budget(question, width, best, effort))
        });
    }
    for width in WIDTHS {
        if best.is_proven() || effort.is_spent() {
            return;
        }
        search_budgets(Question { width, ..question }, best, effort);
        finest = finest.filter(|coarse| {
            !best.is_proven() && !coarse.least_budget(question, width, best, effort)
        });
    }
}

/// The bytes of all chunks below `least` bytes.
fn bytes_below(model: &Model, least: Bytes) -> Bytes {
    model.sizes.iter().filter(|&&size| size < least).sum()
}

/// A model without its tiny chunks. Each chunk of a few bytes doubles the number of states; without
/// these chunks, the bounds still hold, and the orders are nearly as good.
struct Coarse {
    model: Model,
    symmetry: Symmetry,
    /// The bytes of the tiny chunks, by which a peak can be too low.
    omitted: Bytes,
}

impl Coarse {
    /// Omits chunks below `least` bytes, if there are any.
    fn new(model: &Model, least: Bytes, effort: &mut Effort) -> Option<Self> {
        let omitted = bytes_below(model, least);
        (omitted > 0).then(|| {
            let model = model.without_chunks_below(least);
            Self { symmetry: Symmetry::new(&model, effort), model, omitted }
        })
    }

    /// Improves the order and the bound of the full model of a question, and returns whether the
    /// search has ended.
    fn least_budget(
        &self,
        question: Question,
        width: usize,
        best: &mut Best,
        effort: &mut Effort,
    ) -> bool {
        let Self { model, symmetry, omitted } = self;
        let order = best.order.clone();
        let known = effort.best;
        let mut rough = Best { peak: model.peak(&order), order, lower_bound: 0 };
        rough.raise(best.lower_bound.saturating_sub(*omitted), effort);
        search_budgets(Question { model, symmetry, width, ..question }, &mut rough, effort);
        effort.best = known;
        best.raise(rough.lower_bound, effort);
        let is_proven = rough.is_proven();
        best.better(rough.order, question.model, effort);
        is_proven
    }
}

/// Tries budgets with one width until none is left: first the bound itself, then one in the middle
/// between the failed ones and the best order, and every third time the largest.
fn search_budgets(question: Question, best: &mut Best, effort: &mut Effort) {
    let Question { model, width, .. } = question;
    let unit = unit(model);
    // The least budget that has not failed with this width.
    let mut open = best.lower_bound;
    let mut budget = open;
    let mut tries = 0;
    // The distance of the next budget from the bound, while bounds are cheap.
    let mut stride: Bytes = 0;
    while !best.is_proven() && open < best.peak && !effort.is_spent() {
        match (Question { budget, ..question }).answer(effort) {
            Answer::Order(order) => {
                if !best.better(order, model, effort) {
                    return;
                }
            }
            Answer::AtLeast(bound) => {
                best.raise(bound, effort);
                if tries == 0 && !best.is_proven() {
                    // The bound was cheap so far, so try again, further above it each time.
                    stride = stride.saturating_mul(2).max(bound.saturating_sub(open));
                    open = open.max(bound);
                    let further = open.saturating_add(stride).saturating_sub(unit);
                    budget = further.min(best.peak - unit).max(open);
                    continue;
                }
                open = open.max(bound);
            }
            Answer::UnknownBelow(_) if tries == 0 && budget > open => {
                budget = open;
                tries = 1;
                continue;
            }
            Answer::UnknownBelow(same) => open = same,
        }
        tries += 1;
        let largest = best.peak.saturating_sub(unit);
        if largest < open {
            return;
        }
        let narrow = largest - open < best.peak / 1024;
        if narrow && tries > 24 && width != usize::MAX {
            return;
        }
        let middle = open + (largest - open) / 2;
        budget = if tries % 3 == 0 || narrow { largest } else { middle };
    }
}

/// Returns a size that divides all sizes; different peaks differ by at least this.
fn unit(model: &Model) -> Bytes {
    let gcd = |mut a: Bytes, mut b: Bytes| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let sizes = model.sizes.iter().chain(&model.adds).copied();
    // An output that begins below its input saves other bytes.
    let saved = model.overwrites.iter().flatten().map(|overwrite| overwrite.bytes);
    sizes.chain(saved).chain([model.base]).fold(0, gcd).max(1)
}
