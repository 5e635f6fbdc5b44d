//! Operators in execution order, from which memplan derives the lifetimes.

use std::{collections::HashSet, ffi::c_char, mem, sync::Arc};

use library::{OpSequence, Operator, sequence::SequenceBuilder};

use crate::{
    array::{exclusive, fill, free, give, give_shared, reference, slice, text},
    error::{Failure, Status, guard},
    options::Options,
    plan::{NO_CHUNK, Plan, planned},
};

/// The size of a weight that stays outside the pool and whose size does not matter.
pub const UNKNOWN_SIZE: u64 = u64::MAX;

/// The way in which an output depends on an input's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// It may be a view of the input. Where that makes the pool smaller, or where an update would destroy its bytes, it is
    /// a copy instead.
    Reads = 0,
    /// It may be written over the input.
    Overwrites = 1,
    /// It must be written over the input: a state that is updated.
    Updates = 2,
    /// It holds a copy of the input, at an offset from its own start. Where the input already lies there,
    /// nothing needs to be copied.
    Gathers = 3,
    /// It may begin below the input and overlap it, at least as many bytes below as `offset` says. The
    /// operator never writes a byte of the input that it has yet to read.
    Overlaps = 4,
    /// It is a view of the input, never a copy.
    Views = 5,
    /// The input lies inside it, at an offset from its own start, and is never copied.
    Holds = 6,
}

/// A dependency of an output on an input of the same operator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dependency {
    /// A `memplan_dependency_kind`.
    pub kind: u32,
    /// The input's number.
    pub tensor: u32,
    /// Bytes from its start, or as the kind says.
    pub offset: u64,
}

/// An output of an operator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Its name in messages, unique, in UTF-8; may be null.
    pub name: *const c_char,
    /// Its size in bytes.
    pub size: u64,
    /// Its dependencies on the memory of inputs: none; one input that it is a view of; several that it may or
    /// must be written over, or may overlap, of which the first possible one is accepted; or several that it
    /// gathers or holds.
    pub dependencies: *const Dependency,
    /// The number of dependencies.
    pub dependency_count: usize,
}

/// Operators and tensors. One thread at a time may use it.
#[derive(Default)]
pub struct Sequence {
    pub(crate) builder: SequenceBuilder,
    /// The names of the tensors, by number.
    names: Vec<Box<str>>,
    taken: HashSet<Box<str>>,
    operators: usize,
    /// The stream of the operators to come.
    stream: usize,
    /// The operators that the next one runs after.
    after: Vec<usize>,
    /// The sequences that the next operator runs.
    bodies: Vec<OpSequence>,
    /// The first weight that was declared without a name.
    unnamed_weight: Option<u32>,
}

impl Sequence {
    /// Returns the number and the name of a tensor that is new, `ahead` places from the next.
    fn next(&self, ahead: usize, name: Option<String>) -> Result<(u32, Box<str>), Failure> {
        let number = u32::try_from(self.names.len() + ahead)
            .ok()
            .filter(|&number| number < NO_CHUNK)
            .ok_or_else(|| Failure::invalid("a sequence holds fewer than 2^32 tensors"))?;
        let name = name.unwrap_or_else(|| format!("tensor {number}")).into_boxed_str();
        if self.taken.contains(&name) {
            return Err(twice(&name));
        }
        Ok((number, name))
    }

    /// Adds the tensor, so that the built sequence gives it the same number.
    fn take(&mut self, name: Box<str>) {
        self.builder.id(name.clone());
        self.taken.insert(name.clone());
        self.names.push(name);
    }

    fn name(&self, tensor: u32) -> Result<Box<str>, Failure> {
        let name = self.names.get(tensor as usize).cloned();
        name.ok_or_else(|| Failure::invalid(format!("there is no tensor {tensor} yet")))
    }

    fn output(&self, name: &str, output: &Output) -> Result<library::Output, Failure> {
        // SAFETY: the caller promises it with the output.
        let dependencies =
            unsafe { slice(output.dependencies, output.dependency_count, "dependencies") }?;
        let mut declared = library::Output::new(name, output.size);
        for &Dependency { kind, tensor, offset } in dependencies {
            let input = self.name(tensor)?;
            declared = match kind {
                0 | 5 if dependencies.len() > 1 => {
                    return Err(Failure::invalid(format!(
                        "'{name}' can be a view of one input only"
                    )));
                }
                0 => declared.reads_at(input, offset),
                1 => declared.overwrites_at(input, offset),
                2 => declared.updates(input, offset),
                3 => declared.gathers(input, offset),
                4 => declared.overlaps(input, offset),
                5 => declared.reads_at(input, offset).required(),
                6 => declared.holds(input, offset),
                _ => return Err(Failure::invalid(format!("no dependency has kind {kind}"))),
            };
        }
        Ok(declared)
    }

    pub(crate) fn build(&self) -> Result<OpSequence, Failure> {
        let pending = [(!self.bodies.is_empty(), "body"), (!self.after.is_empty(), "after")];
        if let Some((_, call)) = pending.into_iter().find(|(is_pending, _)| *is_pending) {
            return Err(Failure::invalid(format!(
                "memplan_sequence_{call} was called for a next operator, but none was added"
            )));
        }
        Ok(self.builder.build()?)
    }
}

fn twice(name: &str) -> Failure {
    Failure::invalid(format!("two tensors are called '{name}'"))
}

/// Creates an empty sequence.
///
/// # Safety
///
/// `out` points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_new(out: *mut *mut Sequence) -> Status {
    // SAFETY: promised by the caller.
    guard(|| unsafe { give(out, Sequence::default()) })
}

/// Declares a tensor that is supplied for each run. `name` may be null. `out` gets the number of the
/// tensor and may be null.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`, `name` ends with a NUL, and `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_input(
    sequence: *mut Sequence,
    name: *const c_char,
    size: u64,
    out: *mut u32,
) -> Status {
    // SAFETY: promised by the caller.
    guard(|| unsafe {
        supplied(sequence, name, out, |sequence, _, name| {
            sequence.builder.input(name, size);
        })
    })
}

/// Declares a tensor that is the same in every run. Its size may be `MEMPLAN_UNKNOWN_SIZE` if it stays
/// outside the pool. `name` may be null. `out` gets the number of the tensor and may be null.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`, `name` ends with a NUL, and `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_weight(
    sequence: *mut Sequence,
    name: *const c_char,
    size: u64,
    out: *mut u32,
) -> Status {
    // SAFETY: promised by the caller.
    guard(|| unsafe {
        let is_unnamed = name.is_null();
        supplied(sequence, name, out, |sequence, number, name| {
            sequence.builder.weight(name, (size != UNKNOWN_SIZE).then_some(size));
            if is_unnamed {
                sequence.unnamed_weight.get_or_insert(number);
            }
        })
    })
}

/// # Safety
///
/// As the two functions above.
unsafe fn supplied(
    sequence: *mut Sequence,
    name: *const c_char,
    out: *mut u32,
    declare: impl FnOnce(&mut Sequence, u32, Box<str>),
) -> Result<(), Failure> {
    // SAFETY: promised by the caller.
    let sequence = unsafe { exclusive(sequence, "sequence") }?;
    // SAFETY: promised by the caller.
    let (number, name) = sequence.next(0, unsafe { text(name, "name") }?)?;
    if !out.is_null() {
        // SAFETY: promised by the caller.
        unsafe { fill(out, 1, std::iter::once(number), "tensors") }?;
    }
    declare(sequence, number, name.clone());
    sequence.take(name);
    Ok(())
}

/// Adds the next operator. It reads `inputs` and produces `outputs`, and needs `workspace` bytes while
/// it runs, which begin after the largest of its bodies. `name` and `kind` are for messages and may be
/// null. `out` gets the numbers of the outputs, one for each, and may be null. Operators are numbered
/// from 0 as they are added. After a failure the sequence is as it was, except that the calls of
/// `memplan_sequence_body` and `memplan_sequence_after` for this operator must be repeated.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`, texts end with a NUL, arrays have as many elements as
/// follow them, and `out` points to `output_count` numbers that may be written.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "C has no slices")]
pub unsafe extern "C" fn memplan_sequence_operator(
    sequence: *mut Sequence,
    name: *const c_char,
    kind: *const c_char,
    inputs: *const u32,
    input_count: usize,
    outputs: *const Output,
    output_count: usize,
    workspace: u64,
    out: *mut u32,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let sequence = unsafe { exclusive(sequence, "sequence") }?;
        // A failed call takes them as well, or the next operator would get them.
        let (after, bodies) = (mem::take(&mut sequence.after), mem::take(&mut sequence.bodies));
        // SAFETY: promised by the caller.
        let (name, kind) = unsafe { (text(name, "name")?, text(kind, "kind")?) };
        // SAFETY: promised by the caller.
        let inputs = unsafe { slice(inputs, input_count, "inputs") }?;
        // SAFETY: promised by the caller.
        let outputs = unsafe { slice(outputs, output_count, "outputs") }?;
        let inputs = inputs.iter().map(|&input| sequence.name(input));
        let mut operator = Operator::new(name.unwrap_or_default())
            .kind(kind.unwrap_or_default())
            .inputs(inputs.collect::<Result<Vec<_>, _>>()?)
            .workspace(workspace)
            .on_stream(sequence.stream);
        for earlier in after {
            operator = operator.after_place(earlier);
        }
        for body in bodies {
            operator = operator.body(body);
        }
        let mut taken = Vec::with_capacity(outputs.len());
        for (at, output) in outputs.iter().enumerate() {
            // SAFETY: promised by the caller.
            let (number, name) = sequence.next(at, unsafe { text(output.name, "name") }?)?;
            if taken.iter().any(|(_, other)| *other == name) {
                return Err(twice(&name));
            }
            operator = operator.output(sequence.output(&name, output)?);
            taken.push((number, name));
        }
        if !out.is_null() {
            let numbers = taken.iter().map(|&(number, _)| number);
            // SAFETY: promised by the caller.
            unsafe { fill(out, output_count, numbers, "outputs") }?;
        }
        sequence.builder.operator(operator);
        sequence.operators += 1;
        for (_, name) in taken {
            sequence.take(name);
        }
        Ok(())
    })
}

/// Adds the operators from now on to this stream, below 64; without a call, it is stream 0. Operators of
/// one stream run one after another. Those of different streams may run at the same time, unless one reads
/// an output of the other or runs after it; `memplan_plan_waits` lists the waits that a runtime needs.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_stream(sequence: *mut Sequence, stream: u32) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let sequence = unsafe { exclusive(sequence, "sequence") }?;
        let most = OpSequence::MAX_STREAMS;
        let stream = usize::try_from(stream).ok().filter(|&stream| stream < most);
        sequence.stream = stream.ok_or_else(|| {
            Failure::invalid(format!("streams are numbered from 0 to {}", most - 1))
        })?;
        Ok(())
    })
}

/// Makes the next operator run after this earlier one, even if it reads none of its outputs. It may be
/// called several times for one operator. If no operator is added, that is an error when the sequence is planned.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_after(sequence: *mut Sequence, earlier: u32) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let sequence = unsafe { exclusive(sequence, "sequence") }?;
        let known = usize::try_from(earlier).ok().filter(|&earlier| earlier < sequence.operators);
        let unknown = || Failure::invalid(format!("there is no operator {earlier} yet"));
        sequence.after.push(known.ok_or_else(unknown)?);
        Ok(())
    })
}

/// Makes the next operator run this sequence as its body: the body of a loop, or one of the branches of a
/// condition, for which it is called several times. Only one body of an operator runs at a time, and all of
/// them share its workspace. `body` is copied; it may be freed afterwards.
///
/// A weight of a body with the name of a tensor around it is that tensor, and the operator must read it. A weight
/// may also have the name of an output of the operator: a result that updates it is made there, so nothing is
/// left to copy. So all weights of a body need names. If no operator is added, that is an error when the sequence
/// is planned.
///
/// # Safety
///
/// `sequence` and `body` come from `memplan_sequence_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_body(
    sequence: *mut Sequence,
    body: *const Sequence,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let body = unsafe { reference(body, "body") }?;
        if let Some(weight) = body.unnamed_weight {
            return Err(Failure::invalid(format!(
                "weight {weight} of the body has no name, but needs that of a tensor around it"
            )));
        }
        let body = body.build()?;
        // SAFETY: promised by the caller. `body` is a copy by now, even if it is the same sequence.
        let sequence = unsafe { exclusive(sequence, "sequence") }?;
        sequence.bodies.push(body);
        Ok(())
    })
}

/// Marks a tensor as an output of the graph: it lives to the end.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_output(sequence: *mut Sequence, tensor: u32) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let sequence = unsafe { exclusive(sequence, "sequence") }?;
        let name = sequence.name(tensor)?;
        sequence.builder.output(name);
        Ok(())
    })
}

/// Plans a sequence, as `memplan_plan_problem` does a problem. The sequence may grow and be planned
/// again.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`, `options` is null or points to options, and `out`
/// points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_sequence(
    sequence: *const Sequence,
    options: *const Options,
    out: *mut *mut Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let sequence = unsafe { reference(sequence, "sequence") }?.build()?;
        // SAFETY: promised by the caller.
        let options = unsafe { Options::read(options) }?;
        let (plan, fits) = planned(&sequence, &options)?;
        // SAFETY: promised by the caller.
        unsafe { give_shared(out, Arc::new(Plan::of_sequence(plan, &sequence)?)) }?;
        fits
    })
}

/// Frees a sequence; null is ignored.
///
/// # Safety
///
/// `sequence` is null or comes from `memplan_sequence_new`, and nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_free(sequence: *mut Sequence) {
    guard(|| {
        // SAFETY: promised by the caller.
        unsafe { free(sequence) };
        Ok(())
    });
}
