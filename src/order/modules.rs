//! Modules: joins parts of a graph that can run without interruption, such as an expert or a head, into one operator
//! each.
//!
//! A part is a set of operators with an *exit*, one of them: only the exit has successors outside. At most one
//! operator outside has successors in the part, and it comes before all of them. So each other operator runs before
//! all of the part, after all of it, or may run in between. The part's *entries* are the chunks that it reads
//! and does not make. An entry with readers outside dies in the part or does not, depending on what else has
//! run. Take the part alone in two variants: in the *kept* one, such an entry never dies; in the *mortal* one it
//! does, unless one of its readers runs after the exit. Whatever runs in between, the bytes that the part keeps
//! live and those of its steps are at least those of the mortal variant and at most those of the kept one.
//!
//! A part becomes one operator under three conditions, with bytes counted above those live before it:
//!
//! 1. an order of it has the same peak in the kept variant, the *hill*, as the best one in the mortal
//!    variant, and the hill is no lower than what the part produces, as with any operator;
//! 2. in the mortal variant, it never adds less than nothing;
//! 3. in the kept variant, from its first step on, it never adds less than when it is complete.
//!
//! *Proof that no peak is lost.* By the first condition, some operator of the part has, in any order, a step that is
//! as high as the hill above what would be live without the part. Run the whole part there; its steps are no higher.
//! The states before it lose what they had of the part, so by the second condition they are no higher. The states
//! after it contain the whole part, so by the third condition they are no higher, and no operator there overwrites
//! less. An operator before it may no longer overwrite entries, because the part now reads them later. Suppose that it
//! could overwrite entries of some bytes. After its step these entries were dead, and the part still added no less than
//! nothing, so before its step the part added at least these bytes. Now the part adds nothing there, and an output
//! saves at most the bytes of the chunk that it overwrites.
//!
//! Modules that are joined at once have no operator in common, and each lies before, after or beside every
//! other one as a whole.

use crate::effort::Effort;
use crate::{
    Bytes,
    order::{
        budgets::{self, Best},
        cut::{Cutter, Range},
        fuse::Fused,
        model::{Model, Parts},
        mutations::{Mutation, has_mutation},
        overwrites::Overwrite,
        sets::{Lists, NOBODY, difference, full, has, insert, narrow, remove, words},
    },
};

/// The most operators of a module.
const MOST: usize = 100;

/// The search for modules may take this fraction of the remaining effort: 1 / `SHARE`.
const SHARE: u64 = 8;

/// The search for the order of one module may take this fraction of what is left of that: 1 / `PART`.
const PART: u64 = 16;

/// A part with its best order and the bytes that this needs.
struct Module {
    order: Vec<u32>,
    hill: Bytes,
}

/// Returns the model with each module that is found as one operator, and so on with modules of these;
/// `None` if there is none.
pub(super) fn joined(model: &Model, effort: &mut Effort) -> Option<Fused> {
    // Unread inputs are live in the step of the first operator, and any operator may be the first.
    if !model.exact || model.unread > 0 {
        return None;
    }
    let mut all: Option<Fused> = None;
    effort.share(SHARE, |effort| {
        while let Some(next) = join_all(all.as_ref().map_or(model, |all| &all.model), effort) {
            all = Some(match &all {
                None => next,
                Some(all) => {
                    Fused { runs: next.runs.iter().map(|run| all.expanded(run)).collect(), ..next }
                }
            });
        }
    });
    all
}

/// Joins the operators of the smallest module of each exit.
fn join_all(model: &Model, effort: &mut Effort) -> Option<Fused> {
    let dominators = dominators(model, effort)?;
    let mut is_joined = vec![false; model.operators()];
    let mut modules: Vec<Option<Module>> = Vec::new();
    for exit in 0..narrow(model.operators()) {
        let module = if effort.is_spent() {
            None
        } else {
            smallest(model, &dominators, &is_joined, exit, effort)
        };
        for &operator in module.iter().flat_map(|module| &module.order) {
            is_joined[operator as usize] = true;
        }
        modules.push(module);
    }
    is_joined.contains(&true).then(|| join(model, &is_joined, modules))
}

/// Returns the smallest module with an exit.
fn smallest(
    model: &Model,
    dominators: &[u32],
    is_joined: &[bool],
    exit: u32,
    effort: &mut Effort,
) -> Option<Module> {
    let mut inside = vec![0; model.words()];
    effort.spend(1 + model.words() as u64 / 8);
    let mut part: Vec<u32> = Vec::new();
    let mut next = exit;
    while next != NOBODY && !effort.is_spent() {
        // The part grows by `next` and everything between it and its dominator.
        let before = dominators[next as usize];
        let mut at = part.len();
        insert(&mut inside, next);
        part.push(next);
        while let Some(&operator) = part.get(at) {
            at += 1;
            if is_joined[operator as usize] || part.len() > MOST {
                return None;
            }
            for &first in model.predecessors.get(operator as usize) {
                if first != before && !has(&inside, first) {
                    insert(&mut inside, first);
                    part.push(first);
                }
            }
        }
        let leads_out = |&operator: &u32| {
            effort.spend(1);
            let mut after = model.successors.get(operator as usize).iter();
            operator != exit && after.any(|&after| !has(&inside, after))
        };
        if part.iter().any(leads_out) {
            return None;
        }
        if part.len() > 1 {
            let mut part = part.clone();
            part.sort_unstable();
            if let Some(module) = module(model, &part, &inside, effort) {
                return Some(module);
            }
        }
        next = before;
    }
    None
}

/// Returns a part as a module if the three conditions hold. Its operators are ascending.
fn module(model: &Model, part: &[u32], inside: &[u64], effort: &mut Effort) -> Option<Module> {
    let entries = entries(model, part, inside);
    let live: Bytes = entries.iter().map(|&chunk| model.sizes[chunk as usize]).sum();
    let operators = full(part.len());
    let nothing = vec![0; words(part.len())];
    let kept = model.part(part, &vec![0; model.words()], live);
    effort.spend((model.words() + 16 * part.len()) as u64);
    let complete = kept.live_after(&operators);
    let sources = (0..narrow(part.len())).filter(|&o| kept.predecessors.get(o as usize).is_empty());
    for source in sources {
        let mut begun = nothing.clone();
        insert(&mut begun, source);
        if least_live(&kept, &begun, effort) < complete && !has_mutation(Mutation::ModuleAboveEnd) {
            return None;
        }
    }
    // As for any operator, the step must need at least what it produces, whatever dies.
    let produced = (0..kept.sizes.len()).filter(|&chunk| kept.kept[chunk]);
    let produced: Bytes = produced.map(|chunk| kept.sizes[chunk]).sum();
    let mortal = model.part(part, &not_behind(model, part, inside, effort), live);
    if least_live(&mortal, &nothing, effort) < live && !has_mutation(Mutation::ModuleBelowStart) {
        return None;
    }
    let best = best_of_part(&mortal, effort);
    let mut order = best.order;
    if best.peak > best.lower_bound || best.peak - live < produced {
        return None;
    }
    if kept.peak(&order) > best.peak {
        let lowest = best_of_part(&kept, effort);
        if lowest.peak > best.peak && !has_mutation(Mutation::ModuleByMortalEntries) {
            return None;
        }
        order = lowest.order;
    }
    let order = order.into_iter().map(|operator| part[operator as usize]).collect();
    Some(Module { order, hill: best.peak - live })
}

/// Returns the chunks that a part reads and others make.
fn entries(model: &Model, part: &[u32], inside: &[u64]) -> Vec<u32> {
    let read = part.iter().flat_map(|&operator| model.reads.get(operator as usize));
    let is_made = |chunk: u32| {
        let producer = model.producers[chunk as usize];
        producer != NOBODY && has(inside, producer)
    };
    let mut entries: Vec<u32> = read.copied().filter(|&chunk| !is_made(chunk)).collect();
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// Returns the operators outside a part that need not run after its exit.
fn not_behind(model: &Model, part: &[u32], inside: &[u64], effort: &mut Effort) -> Vec<u64> {
    let mut rest = full(model.operators());
    for (word, inside) in rest.iter_mut().zip(inside) {
        *word &= !inside;
    }
    let mut stack = part.to_vec();
    while let Some(next) = stack.pop() {
        let successors = model.successors.get(next as usize);
        effort.spend(1 + successors.len() as u64);
        for &after in successors {
            if has(&rest, after) {
                remove(&mut rest, after);
                stack.push(after);
            }
        }
    }
    rest
}

/// Returns the fewest bytes that are live after a downset of a part that includes another.
fn least_live(part: &Model, begun: &[u64], effort: &mut Effort) -> Bytes {
    let mut cutter = Cutter::new(part);
    let free = difference(&full(part.operators()), begun);
    let least = cutter.least(part, &Range { inside: begun, free: &free }, None);
    effort.spend(cutter.work);
    part.live_after(begun) - least.touched_inside + least.touched
}

/// Searches for the best order of a module alone.
fn best_of_part(part: &Model, effort: &mut Effort) -> Best {
    effort.share_apart(PART, |effort| budgets::least_budget(part, part.operands(), effort))
}

/// Joins the operators of each module.
fn join(model: &Model, is_joined: &[bool], modules: Vec<Option<Module>>) -> Fused {
    let mut runs: Vec<Vec<u32>> = Vec::new();
    let mut hills: Vec<Option<Bytes>> = Vec::new();
    let mut run_of = vec![NOBODY; model.operators()];
    for (operator, module) in (0..).zip(modules) {
        let (run, hill) = match module {
            Some(module) => (module.order, Some(module.hill)),
            None if is_joined[operator as usize] => continue,
            None => (vec![operator], None),
        };
        for &operator in &run {
            run_of[operator as usize] = narrow(runs.len());
        }
        runs.push(run);
        hills.push(hill);
    }
    let run = |&operator: &u32| run_of[operator as usize];
    let mut parts = Parts::new(runs.len());
    parts.base = model.base;
    let mut numbers: Vec<u32> = Vec::with_capacity(model.sizes.len());
    for (chunk, &size) in model.sizes.iter().enumerate() {
        let producer = Some(model.producers[chunk]).filter(|&producer| producer != NOBODY);
        let producer = producer.map_or(NOBODY, |producer| run(&producer));
        let mut readers: Vec<u32> = model.readers.get(chunk).iter().map(run).collect();
        readers.retain(|&reader| reader != producer);
        readers.sort_unstable();
        readers.dedup();
        let number = parts.chunk(size, producer, model.kept[chunk], readers);
        numbers.push(number.unwrap_or(NOBODY));
    }
    for (at, operators) in runs.iter().enumerate() {
        let only = operators[0] as usize;
        if let Some(hill) = hills[at] {
            parts.adds[at] = hill;
        } else {
            parts.adds[at] = model.adds[only];
            let number = |chunk: u32| numbers[chunk as usize];
            let renumbered = |overwrite: &Overwrite| overwrite.renumbered(number);
            parts.overwrites[at] = model.overwrites[only].iter().map(renumbered).collect();
        }
    }
    let predecessors = runs.iter().enumerate().map(|(at, operators)| {
        let before = operators.iter().flat_map(|&o| model.predecessors.get(o as usize));
        let mut list: Vec<u32> = before.map(run).filter(|&run| run != narrow(at)).collect();
        list.sort_unstable();
        list.dedup();
        list
    });
    let model = parts.finish(Lists::new(predecessors));
    Fused { model, runs }
}

/// Returns the immediate dominator of each operator, the last operator that every path to it passes, or [`NOBODY`];
/// `None` if the effort is spent.
fn dominators(model: &Model, effort: &mut Effort) -> Option<Vec<u32>> {
    let mut dominators: Vec<u32> = Vec::with_capacity(model.operators());
    for operator in 0..model.operators() {
        let (mut before, mut climbed) = (model.predecessors.get(operator).iter().copied(), 1);
        let first = before.next().unwrap_or(NOBODY);
        let common = before.fold(first, |mut one, mut other| {
            while one != other {
                climbed += 1;
                // The later of the two cannot be common; nobody comes before all.
                if one == NOBODY || other == NOBODY {
                    return NOBODY;
                }
                if one > other {
                    one = dominators[one as usize];
                } else {
                    other = dominators[other as usize];
                }
            }
            one
        });
        dominators.push(common);
        effort.spend(climbed);
        if effort.is_spent() {
            return None;
        }
    }
    Some(dominators)
}
