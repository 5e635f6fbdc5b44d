//! A slow checker of plans that follows the definition step by step and byte by byte. It checks
//! `memplan::verify` and every plan that it accepts, for small sizes, lifetimes and pools only.

use std::collections::{BTreeMap, BTreeSet};

use memplan::{
    OpSequence, Plan, PlannedChunk, PlannedLink, Problem, TensorPlace,
    problem::{ChunkId, Request},
    sequence::{Dependency, Origin},
};

/// Bytes of memories, one by one.
type Bytes = BTreeSet<(Memory, u64)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Memory {
    Pool,
    Supplied(usize),
}

/// A chunk, workspace or content that occupies bytes for some steps.
#[derive(Clone, Debug)]
struct Occupant {
    begin: u64,
    end: u64,
    low: u64,
    size: u64,
    /// The index of the occupant that it is written over, whose bytes it shares in its first step.
    over: Option<usize>,
    bytes: Bytes,
    /// By byte from `low` on: the step after the last in which it is needed. Padding has the end of the last byte.
    ends: Vec<u64>,
    /// True if it must survive the last step, by byte.
    kept: Vec<bool>,
}

impl Occupant {
    fn new(plan: &Plan, memory: Memory, steps: (u64, u64), low: u64, size: u64) -> Self {
        let padding = if memory == Memory::Pool && size > 0 { plan.padding() } else { 0 };
        let bytes = (low..low + size + padding).map(|byte| (memory, byte)).collect();
        let count = usize::try_from(size).unwrap();
        let (ends, kept) = (vec![steps.1; count], vec![false; count]);
        Self { begin: steps.0, end: steps.1, low, size, over: None, bytes, ends, kept }
    }

    /// The step after the last in which it needs a byte of its own.
    fn end_of(&self, (_, byte): (Memory, u64)) -> u64 {
        let at = usize::try_from(byte - self.low).unwrap();
        self.ends.get(at).or(self.ends.last()).copied().unwrap_or(self.end)
    }

    /// Returns whether it needs its bytes for itself in a step.
    fn owns(&self, step: u64) -> bool {
        self.begin + u64::from(self.over.is_some()) <= step && step < self.end
    }
}

/// Returns whether no two occupants share a byte in a step, except an overwriter in its first step.
fn no_occupant_is_disturbed(occupants: &[Occupant], steps: u64) -> bool {
    for new in occupants {
        let Some(old) = new.over.map(|over| &occupants[over]) else { continue };
        let shared = (new.low.max(old.low)..(new.low + new.size).min(old.low + old.size))
            .map(|byte| usize::try_from(byte - old.low).unwrap());
        let is_lost = |byte: usize| {
            old.ends[byte] > new.begin + 1 || old.kept[byte] && new.begin + 1 == steps
        };
        if shared.into_iter().any(is_lost) {
            return false;
        }
    }
    for step in 0..steps {
        let mut holders: BTreeMap<(Memory, u64), Vec<usize>> = BTreeMap::new();
        for (at, occupant) in occupants.iter().enumerate() {
            if occupant.begin <= step {
                for &byte in occupant.bytes.iter().filter(|&&byte| step < occupant.end_of(byte)) {
                    holders.entry(byte).or_default().push(at);
                }
            }
        }
        // In one step a chunk may be written over, and its overwriter as well.
        let over = |at: &usize| occupants[*at].over.filter(|_| occupants[*at].begin == step);
        let chain = |at: usize| std::iter::successors(Some(at), over);
        for (&(_, byte), holders) in &holders {
            for (&a, &b) in holders.iter().flat_map(|a| holders.iter().map(move |b| (a, b))) {
                let writes_over = |new: usize, old: usize| chain(new).any(|at| at == old);
                // Two may be written over one, in different bytes. Nothing is written to padding, so that of one may
                // then lie over the other.
                let is_padding = |at: usize| byte >= occupants[at].low + occupants[at].size;
                let is_beside =
                    chain(a).last() == chain(b).last() && (is_padding(a) || is_padding(b));
                if !writes_over(a, b) && !writes_over(b, a) && !is_beside {
                    return false;
                }
            }
        }
    }
    true
}

/// Returns the figures that a plan must state: the bytes with one buffer per chunk, the bytes alive
/// at the peak, and the first step of the peak, if each byte counts until its own end.
fn figures_by_byte(plan: &Plan, occupants: &[Occupant], steps: u64) -> (u64, u64, u64) {
    let align = |bytes: u64| bytes.next_multiple_of(plan.alignment());
    // Memory of supplied tensors counts in no figure.
    let in_pool = |one: &&Occupant| one.bytes.iter().all(|byte| byte.0 == Memory::Pool);
    let of_pool: Vec<Occupant> = occupants.iter().filter(in_pool).cloned().collect();
    let (one_each, ..) = figures(plan, &of_pool, steps);
    let (mut most, mut peak) = (0, 0);
    for step in 0..steps {
        let (mut plain, mut cells) = (0, 0);
        for one in occupants.iter().filter(in_pool).filter(|one| one.begin <= step) {
            // In its first step, the bytes of both count for the one below.
            let under = one.over.filter(|_| one.begin == step).map(|over| &occupants[over]);
            let is_shared = |byte| {
                under.is_some_and(|old| old.bytes.contains(&byte) && old.end_of(byte) > step)
            };
            let needed = one.bytes.iter().copied();
            let needed: Vec<u64> = needed
                .filter(|&byte| one.end_of(byte) > step && !is_shared(byte))
                .map(|(_, byte)| byte)
                .collect();
            plain += needed.len() as u64;
            for run in needed.chunk_by(|a, b| a + 1 == *b) {
                cells += align(run[run.len() - 1] + 1) - align(run[0]);
            }
        }
        let needed = align(plain).max(cells);
        if needed > most {
            (most, peak) = (needed, step);
        }
    }
    (one_each, most, peak)
}

/// As [`figures_by_byte`], but each occupant counts as a whole.
fn figures(plan: &Plan, occupants: &[Occupant], steps: u64) -> (u64, u64, u64) {
    let align = |bytes: u64| bytes.next_multiple_of(plan.alignment());
    let in_pool = occupants.iter().filter(|one| one.size > 0);
    let one_each = in_pool.clone().map(|one| align(one.size + plan.padding())).sum();
    let (mut most, mut peak) = (0, 0);
    for step in 0..steps {
        let alive = in_pool.clone().filter(|one| one.owns(step));
        let plain: u64 = alive.clone().map(|one| one.size + plan.padding()).sum();
        let cells: u64 =
            alive.map(|one| align(one.low + one.size + plan.padding()) - align(one.low)).sum();
        let needed = align(plain).max(cells);
        if needed > most {
            (most, peak) = (needed, step);
        }
    }
    (one_each, most, peak)
}

/// Returns whether the pool, the alignment, the links and the objects of the chunk table are right.
fn table_is_right(plan: &Plan, is_of_sequence: bool) -> bool {
    let mut top = 0;
    for (at, chunk) in plan.chunks().iter().enumerate() {
        let padded = if chunk.size > 0 { chunk.size + plan.padding() } else { 0 };
        let Some(end) = chunk.offset.checked_add(padded) else { return false };
        if chunk.size > 0 && end > plan.pool_size() {
            return false;
        }
        match chunk.overwrites {
            None if chunk.size == 0 => {}
            None if !chunk.offset.is_multiple_of(plan.alignment()) => return false,
            None => top = top.max(end),
            Some(PlannedLink { chunk: old, offset, .. }) => {
                let Some(overwritten) = plan.chunks().get(old) else { return false };
                let inside = offset.saturating_add(chunk.size) <= overwritten.size;
                let placed = chunk.offset == overwritten.offset.saturating_add(offset);
                // Other bytes of the chunk of a sequence may live on.
                let is_early =
                    chunk.begin + 1 < overwritten.end && chunk.begin >= overwritten.begin;
                let in_time = chunk.begin + 1 == overwritten.end || is_of_sequence && is_early;
                let is_twice = plan.chunks()[..at].iter().any(|first| {
                    let shares = chunk.offset.max(first.offset)
                        < (chunk.offset + chunk.size).min(first.offset + first.size);
                    first.overwrites.is_some_and(|link| link.chunk == old)
                        && (!is_of_sequence || shares)
                });
                if !inside || !placed || !in_time || old == at || is_twice {
                    return false;
                }
            }
        }
    }
    // No chain is a cycle.
    let mut in_chains = 0;
    let roots = (0..plan.chunks().len()).filter(|&at| plan.chunks()[at].overwrites.is_none());
    let mut open: Vec<usize> = roots.collect();
    while let Some(at) = open.pop() {
        in_chains += 1;
        let overwrites = |new: &usize| plan.chunks()[*new].overwrites.map(|link| link.chunk);
        open.extend((0..plan.chunks().len()).filter(|new| overwrites(new) == Some(at)));
    }
    in_chains == plan.chunks().len()
        && top.next_multiple_of(plan.alignment()) == plan.pool_size()
        && plan.lower_bound() <= plan.pool_size()
        && (!plan.proven_optimal() || plan.lower_bound() == plan.pool_size())
        && objects_are_right(plan)
}

/// Returns whether no two chunks of a sequence share a byte in a step. From the step after it begins, an overwriter has
/// its bytes instead of the chunk under it.
fn table_is_disjoint(plan: &Plan, steps: u64) -> bool {
    let occupant = |chunk: &PlannedChunk| {
        let steps = (chunk.begin, chunk.end);
        let mut one = Occupant::new(plan, Memory::Pool, steps, chunk.offset, chunk.size);
        one.over = chunk.overwrites.map(|link| link.chunk);
        one
    };
    let mut occupants: Vec<Occupant> = plan.chunks().iter().map(occupant).collect();
    for chunk in plan.chunks() {
        let Some(link) = chunk.overwrites else { continue };
        let old = &mut occupants[link.chunk];
        for byte in 0..chunk.size {
            let end = &mut old.ends[usize::try_from(link.offset + byte).unwrap()];
            *end = (*end).min(chunk.begin + 1);
        }
    }
    no_occupant_is_disturbed(&occupants, steps)
}

fn objects_are_right(plan: &Plan) -> bool {
    let begin = |object: usize| plan.objects()[..object].iter().sum::<u64>();
    let of_chunk = plan.chunks().iter().all(|chunk| match (chunk.object, chunk.overwrites) {
        (None, _) => plan.objects().is_empty() || chunk.size == 0,
        (Some(_), _) if chunk.size == 0 => false,
        (Some(object), Some(link)) => {
            object < plan.objects().len() && plan.chunks()[link.chunk].object == Some(object)
        }
        (Some(object), None) => object < plan.objects().len() && chunk.offset == begin(object),
    });
    let size = |object: usize| {
        let roots = plan.chunks().iter().filter(|c| c.overwrites.is_none() && c.size > 0);
        let inside = roots.filter(|chunk| chunk.object == Some(object));
        inside
            .map(|c| (c.size + plan.padding()).next_multiple_of(plan.alignment()))
            .max()
            .unwrap_or(0)
    };
    of_chunk && (0..plan.objects().len()).all(|object| plan.objects()[object] == size(object))
}

/// Returns whether a plan is right for a problem whose ids are positions.
pub fn is_right_for_problem(problem: &Problem, plan: &Plan) -> bool {
    if !plan.alignment().is_power_of_two()
        || plan.alignment() < problem.alignment()
        || plan.padding() < problem.padding()
        || plan.chunks().len() != problem.len()
    {
        return false;
    }
    // The index in the plan of each chunk of the problem.
    let mut planned = BTreeMap::new();
    for (at, chunk) in plan.chunks().iter().enumerate() {
        if planned.insert(chunk.id, at).is_some() {
            return false;
        }
    }
    for id in problem.ids() {
        let real = problem.chunk(id);
        let Some(&at) = planned.get(&u64::from(id.0)) else { return false };
        let chunk = &plan.chunks()[at];
        if (chunk.begin, chunk.end, chunk.size) != (real.begin, real.end, real.size) {
            return false;
        }
    }
    if !table_is_right(plan, false) {
        return false;
    }
    let link = |id: ChunkId| {
        let link = plan.chunks()[planned[&u64::from(id.0)]].overwrites?;
        Some((plan.chunks()[link.chunk].id, link.offset))
    };
    let wish = |request: &Request| Some((u64::from(request.overwritten.0), request.offset));
    let wanted =
        |id: ChunkId| problem.requests().iter().any(|r| r.overwriter == id && wish(r) == link(id));
    let written = |request: &&Request| problem.chunk(request.overwriter).size > 0;
    let mut required = problem.requests().iter().filter(|r| r.required).filter(written);
    if problem.ids().any(|id| link(id).is_some() && !wanted(id))
        || !required.all(|request| link(request.overwriter) == wish(request))
    {
        return false;
    }
    let occupant = |at: usize| {
        let chunk = &plan.chunks()[at];
        let steps = (chunk.begin, chunk.end);
        let mut occupant = Occupant::new(plan, Memory::Pool, steps, chunk.offset, chunk.size);
        occupant.over = chunk.overwrites.map(|link| link.chunk);
        occupant
    };
    let occupants: Vec<Occupant> = (0..plan.chunks().len()).map(occupant).collect();
    // The problem's accepted links count as well as the plan's own.
    let mut accepted: Vec<Occupant> = occupants.clone();
    for id in problem.ids() {
        let one = &mut accepted[planned[&u64::from(id.0)]];
        one.over = problem.overwritten(id).map(|(old, _)| planned[&u64::from(old.0)]);
        one.low = problem.place_in_chain(id).1;
    }
    let steps = problem.steps();
    let counted = [figures(plan, &accepted, steps), figures(plan, &occupants, steps)];
    plan.steps() == steps
        && counted.iter().any(|&(one_each, ..)| one_each == plan.naive_size())
        && counted.iter().any(|&(_, most, _)| most <= plan.lower_bound())
        && counted.iter().any(|&(.., peak)| peak == plan.peak_step())
        && no_occupant_is_disturbed(&occupants, steps)
}

/// The place of a tensor: its memory, its offset there, and its chunk.
type Place = Option<(Memory, u64, Option<usize>)>;

/// Returns the place of every tensor, if the plan places all of them.
fn places(sequence: &OpSequence, plan: &Plan) -> Option<Vec<Place>> {
    let tensors = sequence.tensors();
    let find = |name: &str| tensors.iter().position(|tensor| &*tensor.name == name);
    let mut places: Vec<Option<Place>> = vec![None; tensors.len()];
    for planned in plan.tensors() {
        let at = find(&planned.name)?;
        let place = match &planned.place {
            TensorPlace::Pool { chunk, .. } if *chunk >= plan.chunks().len() => return None,
            _ if planned.size == 0 => None,
            TensorPlace::Pool { chunk, offset } => Some((Memory::Pool, *offset, Some(*chunk))),
            TensorPlace::Supplied { tensor, offset } => {
                Some((Memory::Supplied(find(tensor)?), *offset, None))
            }
            _ => return None,
        };
        if tensors[at].size != Some(planned.size) || places[at].replace(place).is_some() {
            return None;
        }
    }
    let mut all = Vec::new();
    for (at, place) in places.into_iter().enumerate() {
        let supplied = !matches!(tensors[at].origin, Origin::Output { .. });
        let own = Some((Memory::Supplied(at), 0, None));
        all.push(match place {
            Some(Some((Memory::Supplied(_), ..))) if supplied && place != Some(own) => return None,
            Some(place) => place,
            None if tensors[at].size == Some(0) => None,
            None if supplied => own,
            None => return None,
        });
    }
    Some(all)
}

/// Returns whether a plan is right for a sequence with known sizes.
pub fn is_right_for_sequence(sequence: &OpSequence, plan: &Plan) -> bool {
    if !plan.alignment().is_power_of_two() || !table_is_right(plan, true) {
        return false;
    }
    let Some(places) = places(sequence, plan) else { return false };
    let mut run = Run { sequence, plan, places, shown: Vec::new() };
    run.shown = run.shown();
    let Some(over) = run.over() else { return false };
    let Some((occupants, holds)) = run.occupants(&over) else { return false };

    // The table repeats the content of the chunks.
    let mut ids = BTreeSet::new();
    let holds_so = plan.chunks().iter().zip(&holds).all(|(chunk, holds)| {
        let over = chunk.overwrites.map(|link| link.chunk);
        let (name, size, steps) = (chunk.name.to_string(), chunk.size, (chunk.begin, chunk.end));
        *holds == [Held { name, size, steps, over }] && ids.insert(chunk.id)
    });
    // Memory of supplied tensors counts in no figure.
    let in_pool = |one: &&Occupant| one.bytes.iter().all(|byte| byte.0 == Memory::Pool);
    let of_pool: Vec<Occupant> = occupants.iter().filter(in_pool).cloned().collect();
    let steps = sequence.operators().len() as u64;
    let counted =
        [figures(plan, &of_pool, steps.max(1)), figures_by_byte(plan, &occupants, steps.max(1))];
    let is_counted = |&(one_each, most, peak): &(u64, u64, u64)| {
        one_each == plan.naive_size() && most <= plan.lower_bound() && peak == plan.peak_step()
    };
    holds_so
        && run.tensors_are_in_their_chunks()
        && plan.steps() == steps
        && counted.iter().any(is_counted)
        && no_occupant_is_disturbed(&occupants, steps.max(1))
        && table_is_disjoint(plan, steps.max(1))
}

/// The content of a chunk.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    name: String,
    size: u64,
    steps: (u64, u64),
    /// The chunk that it is written over.
    over: Option<usize>,
}

/// A sequence that runs in the places of a plan.
struct Run<'a> {
    sequence: &'a OpSequence,
    plan: &'a Plan,
    places: Vec<Place>,
    /// The tensor that was written in the place of each tensor.
    shown: Vec<usize>,
}

impl Run<'_> {
    fn size(&self, tensor: usize) -> u64 {
        self.sequence.tensors()[tensor].size.unwrap()
    }

    fn is_at(&self, tensor: usize, input: usize, offset: u64) -> bool {
        match (self.places[tensor], self.places[input]) {
            (Some((memory, at, _)), Some((other, base, _))) => {
                (memory, at) == (other, base.saturating_add(offset))
            }
            _ => false,
        }
    }

    fn is_in(&self, tensor: usize, pool: bool) -> bool {
        self.places[tensor].is_some_and(|place| (place.0 == Memory::Pool) == pool)
    }

    fn bytes(&self, tensor: usize) -> Bytes {
        let Some((memory, low, _)) = self.places[tensor] else { return Bytes::new() };
        (low..low + self.size(tensor)).map(|byte| (memory, byte)).collect()
    }

    fn shown(&self) -> Vec<usize> {
        let tensors = self.sequence.tensors();
        let mut shown: Vec<usize> = (0..tensors.len()).collect();
        for output in self.sequence.operators().iter().flat_map(|operator| &operator.outputs) {
            if let Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. } =
                &tensors[output.index()].origin
                && self.is_at(output.index(), input.index(), *offset)
            {
                shown[output.index()] = shown[input.index()];
            }
        }
        shown
    }

    /// Returns whether each tensor lies inside its chunk, which is that of the tensor it shows.
    fn tensors_are_in_their_chunks(&self) -> bool {
        (0..self.places.len()).all(|at| match self.places[at] {
            Some((Memory::Pool, offset, Some(chunk))) => {
                let shown = self.places[self.shown[at]].and_then(|place| place.2);
                let holder = &self.plan.chunks()[chunk];
                shown == Some(chunk)
                    && holder.offset <= offset
                    && offset + self.size(at) <= holder.offset + holder.size
            }
            _ => true,
        })
    }

    /// Returns the tensor that each output is declared to be written over; `None` if an output lies
    /// where it must not.
    fn over(&self) -> Option<Vec<Option<usize>>> {
        let mut over: Vec<Option<usize>> = vec![None; self.places.len()];
        for operator in self.sequence.operators() {
            for output in operator.outputs.iter().map(|output| output.index()) {
                let Origin::Output { dependency, .. } = &self.sequence.tensors()[output].origin
                else {
                    return None;
                };
                if let Dependency::Reads { input, offset, required: true } = dependency
                    && self.size(output) > 0
                    && !self.is_at(output, input.index(), *offset)
                {
                    return None;
                }
                let mut declared = Vec::new();
                if let Dependency::Overwrites(overwrites) = dependency {
                    for overwrite in overwrites {
                        let input = overwrite.input.index();
                        let in_place = self.is_at(output, input, overwrite.offset);
                        if in_place && (overwrite.required || self.is_in(output, true)) {
                            declared.push(input);
                        }
                        let is_lost = !in_place || !self.shows_all_it_views(input);
                        if overwrite.required && is_lost && self.size(output) > 0 {
                            return None;
                        }
                    }
                }
                if declared.is_empty() {
                    if self.is_in(output, false) && self.shown[output] == output {
                        return None;
                    }
                    continue;
                }
                // Rule d covers everything else that the operator uses.
                let written = self.bytes(output);
                let is_harmless = |input: usize| {
                    let others = operator.inputs.iter().map(|other| other.index());
                    let mut others = others.filter(|&other| other != input);
                    let views = operator.outputs.iter().map(|view| view.index());
                    let mut views = views.filter(|&view| self.shown[view] != view);
                    others.all(|other| {
                        let bytes = self.bytes(other);
                        bytes == written || bytes.is_disjoint(&written)
                    }) && views.all(|view| self.bytes(view).is_disjoint(&written))
                };
                if !declared.iter().any(|&input| is_harmless(input)) {
                    return None;
                }
                over[output] = Some(self.shown[declared[0]]);
            }
        }
        Some(over)
    }

    /// Returns whether a tensor lies in the memory of the tensor that it is a view of, through other views.
    fn shows_all_it_views(&self, tensor: usize) -> bool {
        match &self.sequence.tensors()[tensor].origin {
            Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. } => {
                self.is_at(tensor, input.index(), *offset) && self.shows_all_it_views(input.index())
            }
            _ => true,
        }
    }

    /// Returns the newest state of variables in the pool.
    fn states(&self) -> Vec<usize> {
        let tensors = self.sequence.tensors();
        let mut state: Vec<bool> = tensors.iter().map(|t| t.origin == Origin::Weight).collect();
        for output in self.sequence.operators().iter().flat_map(|operator| &operator.outputs) {
            let output = output.index();
            let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
                &tensors[output].origin
            else {
                continue;
            };
            for overwrite in overwrites.iter().filter(|overwrite| overwrite.required) {
                let variable = self.shown[overwrite.input.index()];
                if state[variable] && self.size(variable) == self.size(output) {
                    state[variable] = false;
                    state[output] = true;
                }
            }
        }
        (0..tensors.len()).filter(|&at| state[at] && self.is_in(at, true)).collect()
    }

    /// Returns the written tensors that must last to the end, or some of whose bytes must.
    fn kept(&self) -> Vec<usize> {
        let mut kept = self.states();
        kept.extend(self.sequence.outputs().iter().map(|output| self.shown[output.index()]));
        kept
    }

    /// Returns the first step of a written tensor, and the step after the last in which an operator
    /// uses it or a view of it.
    fn steps(&self, written: usize, kept: &[usize]) -> (u64, u64) {
        let operators = self.sequence.operators();
        let begin = match self.sequence.tensors()[written].origin {
            Origin::Output { step, .. } => step,
            _ => 0,
        };
        let uses = |step: &usize| {
            let mut used = operators[*step].inputs.iter().chain(&operators[*step].outputs);
            used.any(|used| self.shown[used.index()] == written)
        };
        let last = (0..operators.len()).filter(uses).max().unwrap_or(begin);
        let end = if kept.contains(&written) { (last + 1).max(operators.len()) } else { last + 1 };
        (begin as u64, end as u64)
    }

    /// Follows each byte of a written tensor to its last reader.
    fn follow_bytes(&self, written: usize, new: &mut Occupant) {
        let operators = self.sequence.operators();
        new.ends.fill(new.begin + 1);
        let low = new.low;
        let mut read = |tensor: usize, end: u64, is_kept: bool| {
            let Some((_, at, _)) = self.places[tensor].filter(|_| self.shown[tensor] == written)
            else {
                return;
            };
            let first = usize::try_from(at - low).unwrap();
            for byte in first..first + usize::try_from(self.size(tensor)).unwrap() {
                new.ends[byte] = new.ends[byte].max(end);
                new.kept[byte] |= is_kept;
            }
        };
        let viewed = |output: usize| match self.sequence.tensors()[output].origin {
            Origin::Output { dependency: Dependency::Reads { input, .. }, .. } => {
                Some(input.index())
            }
            _ => None,
        };
        for (step, operator) in operators.iter().enumerate() {
            let end = step as u64 + 1;
            let outputs = || operator.outputs.iter().map(|output| output.index());
            let is_shown = |output: usize| {
                viewed(output).is_some() && (self.shown[output] != output || self.size(output) == 0)
            };
            let only_shows =
                !operator.outputs.is_empty() && operator.workspace == 0 && outputs().all(is_shown);
            for input in operator.inputs.iter().map(|input| input.index()) {
                if !only_shows || outputs().all(|output| viewed(output) != Some(input)) {
                    read(input, end, false);
                }
            }
            outputs()
                .filter(|&output| self.shown[output] != output)
                .for_each(|view| read(view, end, false));
        }
        let steps = operators.len() as u64;
        for output in self.sequence.outputs() {
            read(output.index(), steps, true);
        }
        if self.states().contains(&written) {
            read(written, steps, true);
        }
    }

    /// Returns everything that occupies memory, and the contents of each chunk.
    fn occupants(&self, over: &[Option<usize>]) -> Option<(Vec<Occupant>, Vec<Vec<Held>>)> {
        let kept = self.kept();
        let mut occupants: Vec<Occupant> = Vec::new();
        let mut of_tensor: Vec<Option<usize>> = vec![None; self.places.len()];
        let mut holds: Vec<Vec<Held>> = vec![Vec::new(); self.plan.chunks().len()];
        for at in (0..self.places.len()).filter(|&at| self.shown[at] == at) {
            let Some((memory, low, chunk)) = self.places[at] else { continue };
            let steps = self.steps(at, &kept);
            let mut new = Occupant::new(self.plan, memory, steps, low, self.size(at));
            self.follow_bytes(at, &mut new);
            let old = over[at].and_then(|old| Some((old, of_tensor[old]?)));
            let old = old.filter(|&(_, old)| new.bytes.is_subset(&occupants[old].bytes));
            new.over = old.map(|(_, old)| old);
            if let Some(chunk) = chunk {
                if new.over.is_none() && !low.is_multiple_of(self.plan.alignment()) {
                    return None;
                }
                let name = self.sequence.tensors()[at].name.to_string();
                let over = old.and_then(|(old, _)| self.places[old]?.2);
                holds[chunk].push(Held { name, size: self.size(at), steps, over });
            }
            of_tensor[at] = Some(occupants.len());
            occupants.push(new);
        }
        let mut workspaces = self.sequence.workspace_names();
        for (step, operator) in self.sequence.operators().iter().enumerate() {
            if operator.workspace == 0 {
                continue;
            }
            let name = workspaces[step].take()?.to_string();
            let (step, size) = (step as u64, operator.workspace);
            let holds_tensor = |at: usize| self.places.iter().flatten().any(|p| p.2 == Some(at));
            let is_it = |at: &usize| {
                let chunk = &self.plan.chunks()[*at];
                (&*chunk.name, chunk.begin) == (&*name, step) && !holds_tensor(*at)
            };
            let at = (0..self.plan.chunks().len()).rev().find(is_it)?;
            let (low, steps) = (self.plan.chunks()[at].offset, (step, step + 1));
            occupants.push(Occupant::new(self.plan, Memory::Pool, steps, low, size));
            holds[at].push(Held { name, size, steps, over: None });
        }
        Some((occupants, holds))
    }
}
