//! The memory around a body. What a body reads there must be kept whole while its operator runs, and what it
//! writes there must be what the operator writes.
//!
//! The plan of the enclosing sequence keeps the inputs of an operator whole, and takes into account that its outputs
//! are written. A weight of a body is the tensor of the same name in the nearest enclosing sequence that has one.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use crate::{
    Bytes, OpSequence, Plan, TensorPlace,
    sequence::{Dependency, OperatorNode, Origin, Tensor, TensorId},
    verify::Violation,
};

/// The use that a body makes of the memory around it, in bytes from the start of a tensor.
struct Use {
    /// The end of the bytes that it reads.
    reads: Bytes,
    /// The bytes from the first to the last that it writes.
    writes: Option<Range<Bytes>>,
    /// The moment of the first read; `first_write` is that of the first write. Both are `usize::MAX` if there is none.
    /// Each operator of the body has two moments: its own bodies run in the first, and the operator itself in the
    /// second.
    first_read: usize,
    first_write: usize,
}

impl Default for Use {
    fn default() -> Self {
        Self { reads: 0, writes: None, first_read: usize::MAX, first_write: usize::MAX }
    }
}

impl Use {
    fn read(&mut self, end: Bytes, when: usize) {
        self.reads = self.reads.max(end);
        self.first_read = self.first_read.min(when);
    }

    fn write(&mut self, bytes: Range<Bytes>, when: usize) {
        let old = self.writes.take().unwrap_or_else(|| bytes.clone());
        self.writes = Some(old.start.min(bytes.start)..old.end.max(bytes.end));
        self.first_write = self.first_write.min(when);
    }

    /// Returns whether the body reads from the tensor before it writes to it, or never writes to it.
    const fn reads_unwritten(&self) -> bool {
        self.first_read < self.first_write || self.first_write == usize::MAX
    }

    /// The end of the bytes that it uses.
    fn end(&self) -> Bytes {
        self.reads.max(self.writes.as_ref().map_or(0, |writes| writes.end))
    }
}

/// A memory (the pool, or a supplied tensor) and a byte of it.
type At<'p> = (Option<&'p str>, Bytes);

/// By memory: ranges of it in ascending order, with gaps between them.
type Ranges<'p> = HashMap<Option<&'p str>, Vec<Range<Bytes>>>;

/// A sequence, and the places of its tensors in a plan.
pub(super) struct Around<'s> {
    sequence: &'s OpSequence,
    places: HashMap<&'s str, At<'s>>,
}

impl<'s> Around<'s> {
    pub(super) fn new(sequence: &'s OpSequence, plan: &'s Plan) -> Self {
        let mut places = if sequence.has_bodies() { places(plan) } else { HashMap::new() };
        if sequence.has_bodies() {
            // A plan does not list supplied tensors outside the pool; each has memory of its own.
            let supplied = |tensor: &&Tensor| !matches!(tensor.origin, Origin::Output { .. });
            for tensor in sequence.tensors().iter().filter(supplied) {
                places.entry(&*tensor.name).or_insert((Some(&*tensor.name), 0));
            }
        }
        Self { sequence, places }
    }

    /// The declarations of an operator with bodies.
    pub(super) fn of(&self, operator: &OperatorNode) -> Declared<'_, 's> {
        Declared {
            around: self,
            inputs: operator.inputs.iter().copied().collect(),
            outputs: operator.outputs.iter().copied().collect(),
            updated: self.updated(operator),
        }
    }

    /// The bytes that an operator must overwrite.
    fn updated(&self, operator: &OperatorNode) -> Ranges<'s> {
        let mut ranges: Vec<(Option<&str>, Bytes, Bytes)> = Vec::new();
        for &output in &operator.outputs {
            let tensor = self.sequence.tensor(output);
            if let Origin::Output { dependency: Dependency::Overwrites(over), .. } = &tensor.origin
                && over.iter().any(|over| over.required)
                && let Some(&(memory, low)) = self.places.get(&*tensor.name)
            {
                ranges.push((memory, low, low.saturating_add(tensor.size.unwrap_or(0))));
            }
        }
        ranges.sort_unstable();
        let mut updated = Ranges::new();
        for (memory, low, high) in ranges {
            let joined = updated.entry(memory).or_default();
            match joined.last_mut() {
                Some(last) if low <= last.end => last.end = last.end.max(high),
                _ => joined.push(low..high),
            }
        }
        updated
    }
}

/// The tensors outside of its bodies that an operator declares to read and to write, and the bytes that it updates.
pub(super) struct Declared<'a, 's> {
    around: &'a Around<'s>,
    inputs: HashSet<TensorId>,
    outputs: HashSet<TensorId>,
    /// The bytes that it must overwrite.
    updated: Ranges<'s>,
}

impl Declared<'_, '_> {
    /// Compares what a body of the operator uses with what the operator declares.
    pub(super) fn check(&self, body: &OpSequence, plan: &Plan) -> Vec<Violation> {
        let uses = uses(body, plan);
        let sequence = self.around.sequence;
        let mut violations = Vec::new();
        for (&name, of) in &uses {
            let Some(around) = sequence.tensor_id(name) else { continue };
            let tensor = || name.to_owned();
            let is_output = self.outputs.contains(&around);
            if !is_output && !self.inputs.contains(&around) {
                violations.push(Violation::NotKept { tensor: tensor() });
            }
            if is_output && of.reads_unwritten() {
                violations.push(Violation::ReadsUnwritten { tensor: tensor() });
            }
            let end = of.writes.as_ref().map_or(0, |writes| writes.end);
            match sequence.tensor(around).size {
                Some(size) if size.max(end) < of.reads => {
                    let (tensor, reads) = (tensor(), of.reads);
                    violations.push(Violation::ReadsBeyond { tensor, size, reads });
                }
                _ => {}
            }
            if let Some(Range { start: low, end: high }) = of.writes.clone() {
                let is_written = if is_output {
                    sequence.tensor(around).size.is_some_and(|size| high <= size)
                } else {
                    low == high || self.is_written(name, low..high)
                };
                if !is_written {
                    let tensor = tensor();
                    violations.push(Violation::ChangesKept { tensor, low, high });
                }
            }
        }
        violations.extend(self.destroyed(&uses));
        violations
    }

    /// Returns whether these bytes of a tensor are all among those that an operator updates.
    fn is_written(&self, tensor: &str, bytes: Range<Bytes>) -> bool {
        let Some(&(memory, start)) = self.around.places.get(tensor) else { return false };
        let (low, high) = (start.saturating_add(bytes.start), start.saturating_add(bytes.end));
        let mut ranges = self.updated.get(&memory).into_iter().flatten();
        ranges.any(|range| range.start <= low && high <= range.end)
    }

    /// Finds a tensor that a body writes while another that it uses lies there.
    fn destroyed(&self, uses: &BTreeMap<&str, Use>) -> Option<Violation> {
        let spans = uses.iter().filter_map(|(&name, of)| {
            let &(memory, low) = self.around.places.get(name)?;
            let size = self.around.sequence.tensor(self.around.sequence.tensor_id(name)?).size;
            let high = low.saturating_add(size.unwrap_or(Bytes::MAX).max(of.end()));
            (low < high).then_some((memory, low, high, name, of.writes.is_some()))
        });
        let mut spans: Vec<_> = spans.collect();
        spans.sort_unstable();
        // The spans that reach highest so far: among all spans, and among the written ones.
        let mut highest: [Option<(Option<&str>, Bytes, &str)>; 2] = [None; 2];
        for (memory, low, high, name, is_written) in spans {
            let other = highest[usize::from(!is_written)];
            if let Some((_, _, other)) = other.filter(|&(of, end, _)| of == memory && low < end) {
                let (written, other) = if is_written { (name, other) } else { (other, name) };
                let (tensor, other) = (written.to_owned(), other.to_owned());
                return Some(Violation::ChangesOther { tensor, other });
            }
            for highest in &mut highest[..=usize::from(is_written)] {
                *highest = (*highest).max(Some((memory, high, name)));
            }
        }
        None
    }
}

/// The places of the tensors of a plan.
fn places(plan: &Plan) -> HashMap<&str, At<'_>> {
    let place = |place| match place {
        &TensorPlace::Pool { offset, .. } => Some((None, offset)),
        TensorPlace::Supplied { tensor, offset } => Some((Some(&**tensor), *offset)),
        TensorPlace::Nowhere => None,
    };
    let tensors = plan.tensors.iter();
    tensors.filter_map(|tensor| Some((&*tensor.name, place(&tensor.place)?))).collect()
}

/// The uses that a body makes of the memory around it, by the name of the tensor.
fn uses<'s>(body: &'s OpSequence, plan: &'s Plan) -> BTreeMap<&'s str, Use> {
    let places = places(plan);
    // The weight in which a tensor lies, and its first byte and its end there.
    let in_weight = |id: TensorId| {
        let tensor = body.tensor(id);
        let (weight, low) = match places.get(&*tensor.name) {
            Some(&(weight, low)) => (weight?, low),
            None => (&*tensor.name, 0),
        };
        let is_weight = |id: TensorId| body.tensor(id).origin == Origin::Weight;
        let end = low.saturating_add(tensor.size.unwrap_or(0));
        // A tensor without bytes uses none.
        let lies_there = tensor.size != Some(0) && body.tensor_id(weight).is_some_and(is_weight);
        lies_there.then_some((weight, low, end))
    };
    let mut uses: BTreeMap<&str, Use> = BTreeMap::new();
    for (step, operator) in body.operators().iter().enumerate() {
        for (weight, _, end) in operator.inputs.iter().filter_map(|&input| in_weight(input)) {
            uses.entry(weight).or_default().read(end, 2 * step + 1);
        }
        for &output in &operator.outputs {
            let Some((weight, low, end)) = in_weight(output) else { continue };
            let of = uses.entry(weight).or_default();
            match &body.tensor(output).origin {
                Origin::Output { dependency: Dependency::Reads { .. }, .. } => {
                    of.read(end, 2 * step + 1);
                }
                _ => of.write(low..end, 2 * step + 1),
            }
        }
    }
    for (weight, _, end) in body.outputs().iter().filter_map(|&output| in_weight(output)) {
        uses.entry(weight).or_default().read(end, 2 * body.operators().len());
    }
    for inner in &plan.bodies {
        let step = usize::try_from(inner.step).ok();
        let operator = step.and_then(|step| body.operators().get(step));
        let sequence = operator.and_then(|operator| operator.bodies.get(inner.body));
        let (Some(step), Some(sequence)) = (step, sequence) else { continue };
        for (name, of) in self::uses(sequence, &inner.plan) {
            let (name, low) = match body.tensor_id(name).map(in_weight) {
                Some(Some((weight, low, _))) => (weight, low),
                Some(None) => continue,
                None => (name, 0),
            };
            let around = uses.entry(name).or_default();
            if of.reads_unwritten() {
                around.read(low.saturating_add(of.reads), 2 * step);
            }
            if let Some(writes) = &of.writes {
                let shift = |byte: Bytes| byte.saturating_add(low);
                around.write(shift(writes.start)..shift(writes.end), 2 * step);
                around.reads = around.reads.max(shift(of.reads));
            }
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{
        Operator, Output, Planner,
        verify::{execute, verify},
    };

    /// `if` runs a body that reads `x`, or one that runs such a body, and `n` is written over `x`.
    fn host(is_nested: bool, updates: bool) -> OpSequence {
        let n = Output::new("n", 8);
        let n = if updates { n.updates("x", 0) } else { n };
        let run = Operator::new("run").inputs(["x"]).output(n.clone());
        let mut body = OpSequence::builder();
        let mut body = body.weight("x", Some(8)).operator(run).output("n").build().unwrap();
        if is_nested {
            let inner = Operator::new("inner").output(Output::new("m", 8)).body(body);
            body = OpSequence::builder().operator(inner).build().unwrap();
        }
        let host = Operator::new("if").inputs(["w", "x"]).output(n).body(body);
        OpSequence::builder()
            .input("w", 8)
            .operator(Operator::new("load").output(Output::new("x", 8)))
            .operator(host)
            .operator(Operator::new("end").inputs(["n"]).output(Output::new("y", 8)))
            .output("y")
            .build()
            .unwrap()
    }

    /// The tensors `x` and `n` of the body that uses them.
    fn innermost(sequence: &mut OpSequence) -> &mut [Tensor] {
        let is_host = |operator: &OperatorNode| !operator.bodies.is_empty();
        match sequence.operators().iter().position(is_host) {
            Some(step) => innermost(&mut sequence.parts_mut().0[step].bodies[0]),
            None => sequence.parts_mut().1,
        }
    }

    /// Sequences that cannot be built.
    #[rstest]
    #[case::right(true, |_: &mut OpSequence| (), None)]
    #[case::not_an_input(false, |s: &mut OpSequence| { s.parts_mut().0[1].inputs.pop(); },
        Some("'x' is read by the body but is not an input of its operator, so other tensors may lie over it"))]
    #[case::an_output(false, |s: &mut OpSequence| {
        let (operators, _) = s.parts_mut();
        let x = operators[1].inputs.pop().unwrap();
        operators[1].outputs.push(x);
    }, Some("'x' is an output of the operator, and the body reads it before it writes anything there"))]
    #[case::too_small(false, |s: &mut OpSequence| s.parts_mut().1[1].size = Some(7),
        Some("'x' has 7 B, but the body reads 8 B of it"))]
    #[case::of_unknown_size(false, |s: &mut OpSequence| s.parts_mut().1[1].size = None, None)]
    #[case::not_updated(true, |s: &mut OpSequence| {
        if let Origin::Output { dependency, .. } = &mut s.parts_mut().1[2].origin {
            *dependency = Dependency::Fresh;
        }
    }, Some("bytes [0, 8) of 'x' are written by the body but not by its operator, so other tensors may lie or be read there"))]
    #[case::writes_beyond(true, |s: &mut OpSequence| {
        let tensors = innermost(s);
        (tensors[0].size, tensors[1].size) = (None, Some(64));
    }, Some("bytes [0, 64) of 'x' are written by the body but not by its operator, so other tensors may lie or be read there"))]
    #[case::views_beyond(true, |s: &mut OpSequence| {
        let tensors = innermost(s);
        (tensors[0].size, tensors[1].size) = (None, Some(64));
        if let Origin::Output { dependency, .. } = &mut tensors[1].origin {
            *dependency = Dependency::Reads { input: TensorId(0), offset: 0, required: false };
        }
    }, Some("'x' has 8 B, but the body reads 64 B of it"))]
    fn a_body_uses_what_its_operator_declares(
        #[values(false, true)] is_nested: bool,
        #[case] updates: bool,
        #[case] spoil: fn(&mut OpSequence),
        #[case] message: Option<&str>,
    ) {
        let mut sequence = host(is_nested, updates);
        let plan = Planner::new().plan(&sequence).unwrap();
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
        spoil(&mut sequence);
        let body = &plan.bodies[0];
        let operator = &sequence.operators()[1];
        let found =
            Around::new(&sequence, &plan).of(operator).check(&operator.bodies[0], &body.plan);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, Vec::from_iter(message.map(str::to_owned)));
        if let Some(message) = message {
            for found in [verify(&sequence, &plan), execute(&sequence, &plan)] {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                assert!(found.contains(&format!("in body 0 of if: {message}")), "{found:?}");
            }
        }
    }

    /// The body writes `x` and then reads `v`, which must lie elsewhere.
    #[test]
    fn a_body_does_not_read_what_it_has_overwritten() {
        let run = Operator::new("if").inputs(["x", "v"]);
        let update = Operator::new("u").inputs(["x"]);
        let late = Operator::new("late").inputs(["v", "r"]).output(Output::new("q", 8));
        let body = OpSequence::builder()
            .weight("x", Some(8))
            .weight("v", Some(8))
            .operator(update.output(Output::new("r", 8).updates("x", 0)))
            .operator(late)
            .output("q")
            .build()
            .unwrap();
        let sequence = OpSequence::builder()
            .operator(Operator::new("load").output(Output::new("x", 8)))
            .operator(Operator::new("other").output(Output::new("v", 8)))
            .operator(run.output(Output::new("y", 8).updates("x", 0)).body(body))
            .output("y")
            .build()
            .unwrap();
        let mut plan = Planner::new().plan(&sequence).unwrap();
        assert_eq!(verify(&sequence, &plan), []);
        let place = |plan: &Plan, name| plan.tensors.iter().position(|t| &*t.name == name).unwrap();
        let (x, v) = (place(&plan, "x"), place(&plan, "v"));
        plan.tensors[v].place = plan.tensors[x].place.clone();
        let operator = &sequence.operators()[2];
        let found = Around::new(&sequence, &plan)
            .of(operator)
            .check(&operator.bodies[0], &plan.bodies[0].plan);
        let (tensor, other) = ("x".to_owned(), "v".to_owned());
        assert_eq!(found, [Violation::ChangesOther { tensor, other }]);
    }
}
