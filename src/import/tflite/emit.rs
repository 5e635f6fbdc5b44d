//! From a model to an operator sequence.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::{
    Bytes, OpSequence, Operator, Output,
    import::{
        InPlace, Kernels, NotInPlace,
        tflite::{
            ALIGNMENT, KernelLibrary, TfliteError,
            arena::{Arena, ArenaBuffer, Names, step_name},
            interpreter::Share,
            model::{Model, OperatorAt, Tensor, tensor_place, wrong},
            ops::{self, Memory, Op},
            walk::{Call, Event},
        },
    },
    sequence::SequenceBuilder,
};

/// The reasons why outputs are not written over an input, by name.
pub(super) type Reasons = BTreeMap<Box<str>, NotInPlace>;

pub(super) struct Emitter<'m, 'a> {
    pub(super) model: &'m Model<'a>,
    pub(super) names: &'m Names,
    pub(super) library: KernelLibrary,
    pub(super) kernels: &'m Kernels,
    /// True if outputs may begin below an input.
    pub(super) overlap: bool,
    /// For the interpreter, the outputs of subgraph 0 that take the memory of an input.
    pub(super) shares: Option<Vec<Option<Share>>>,
    pub(super) builder: SequenceBuilder,
    pub(super) reasons: Reasons,
    /// Tensors that are defined, by their place among those of all subgraphs.
    pub(super) defined: Vec<bool>,
    pub(super) steps: Steps,
}

/// A sequence, with facts about its tensors and steps.
pub(super) struct Emitted {
    pub(super) sequence: OpSequence,
    pub(super) reasons: Reasons,
    /// The operator of subgraph 0 that runs in each step.
    pub(super) operators: Vec<Option<usize>>,
}

/// The steps that later ones must run after.
#[derive(Default)]
pub(super) struct Steps {
    count: usize,
    /// The operator of subgraph 0 of each step.
    operators: Vec<Option<usize>>,
    /// The step that makes the inputs of the model.
    inputs: usize,
    /// The last step of an operator with a state.
    last_with_state: Option<usize>,
    /// True if subgraphs are called; then all steps keep their order.
    are_fixed: bool,
}

const INPUT: &str = "it is an input, which is written before the operators run";
const OWN: &str = "the interpreter gives it memory of its own";
const SCRATCH: &str = "it is scratch memory of the kernel";

/// Returns whether operators of a kind depend on earlier operators, besides those that read variables.
fn has_state(kind: &str) -> bool {
    matches!(kind, "ASSIGN_VARIABLE" | "CALL_ONCE" | "MULTINOMIAL" | "READ_VARIABLE" | "VAR_HANDLE")
        || kind.starts_with("RANDOM_")
}

impl Emitter<'_, '_> {
    pub(super) fn emit(mut self, arena: &Arena, events: &[Event]) -> Result<Emitted, TfliteError> {
        // Unused tensors take room as well, each in a step of its own.
        for buffer in arena.buffers.iter().filter(|buffer| buffer.first == 0) {
            if let Some(tensor) = buffer.tensor {
                self.defined[tensor] = true;
            }
            let output = Output::new(buffer.name.clone(), buffer.size);
            self.add(Operator::new("unused").kind("UNUSED").output(output));
        }
        self.steps.inputs = self.steps.count;
        self.steps.are_fixed = self.model.subgraphs.len() > 1;
        let mut scratch: BTreeMap<OperatorAt, Vec<&ArenaBuffer>> = BTreeMap::new();
        for buffer in &arena.buffers {
            if let Some(at) = buffer.operator {
                scratch.entry(at).or_default().push(buffer);
            }
        }
        let mut seen = BTreeSet::new();
        for event in events {
            match *event {
                Event::Enter(call) => self.enter(call),
                Event::Operator(at) => {
                    let scratch = scratch.get(&at).map_or(&[][..], Vec::as_slice);
                    self.operator(at, seen.insert(at), scratch)?;
                }
                Event::Leave(call) => self.leave(call),
            }
        }
        let main = &self.model.subgraphs[0];
        // The interpreter keeps inputs and unread tensors to the end, like outputs.
        let mut ends = main.outputs.clone();
        if let Some(shares) = &self.shares {
            let read: HashSet<usize> = main
                .operators
                .iter()
                .flat_map(|one| one.inputs.iter().flatten().copied())
                .collect();
            let made = main.operators.iter().flat_map(|one| &one.outputs).copied();
            ends.extend(&main.inputs);
            ends.extend(made.filter(|tensor| !read.contains(tensor) && shares[*tensor].is_none()));
        }
        let mut outputs = HashSet::new();
        for output in ends.into_iter().filter(|&output| outputs.insert(output)) {
            let place = tensor_place(0, output, &main.tensors[output].name);
            if main.tensors[output].is_planned() {
                if !self.defined[output] {
                    return Err(wrong(place, "it is an output, but no operator makes it"));
                }
                self.builder.output(self.names.tensor(output));
            }
        }
        self.steps.operators.resize(self.steps.count, None);
        let (reasons, operators) = (self.reasons, self.steps.operators);
        Ok(Emitted { sequence: self.builder.build()?, reasons, operators })
    }

    fn add(&mut self, mut operator: Operator) {
        if self.steps.are_fixed && self.steps.count > self.steps.inputs {
            operator = operator.after_place(self.steps.count - 1);
        }
        self.builder.operator(operator);
        self.steps.count += 1;
    }

    fn state_type(&mut self, name: &str, tensor: &Tensor) {
        if let Some(of) = tensor.tensor_type() {
            self.builder.typed(name, of);
        }
    }

    /// Adds the step in which a subgraph gets its inputs.
    fn enter(&mut self, call: Call) {
        let subgraph = &self.model.subgraphs[call.subgraph];
        let mut operator = match call.caller {
            None => Operator::new("inputs").kind("INPUTS"),
            Some(at) => {
                let kind = self.model.kind(self.model.operator(at));
                let name = format!("{} calls subgraph {}", step_name(kind, at), call.subgraph);
                Operator::new(name).kind("CALL")
            }
        };
        let mut inputs = HashSet::new();
        for &input in subgraph.inputs.iter().filter(|&&input| inputs.insert(input)) {
            let tensor = &subgraph.tensors[input];
            let (true, Some(bytes)) = (tensor.is_planned(), tensor.bytes) else { continue };
            let index = subgraph.first_tensor + input;
            let name = self.names.tensor(index);
            if std::mem::replace(&mut self.defined[index], true) {
                operator = operator.inputs([name]);
            } else {
                self.state_type(name, tensor);
                operator = operator.output(Output::new(name, bytes));
                self.reasons.insert(name.into(), NotInPlace::Kernel(INPUT));
            }
        }
        self.add(operator);
    }

    /// Adds a step that keeps the tensors that must be whole when a subgraph ends. All of them are
    /// live in the step before as well, so it changes no plan.
    fn leave(&mut self, call: Call) {
        let Some(at) = call.caller else { return };
        let kept = |subgraph: usize, tensor: usize| {
            let of = &self.model.subgraphs[subgraph];
            let index = of.first_tensor + tensor;
            (of.tensors[tensor].is_planned() && self.defined[index])
                .then(|| self.names.tensor(index))
        };
        let ends = self.model.subgraphs[call.subgraph].outputs.iter();
        let ends = ends.filter_map(|&output| kept(call.subgraph, output));
        let caller = self.model.operator(at);
        let callers = caller.inputs.iter().flatten().chain(&caller.outputs);
        let callers = callers.filter(|_| call.is_last).filter_map(|&t| kept(at.subgraph, t));
        let name = format!("subgraph {} returns", call.subgraph);
        let mut seen = HashSet::new();
        let inputs: Vec<&str> = ends.chain(callers).filter(|&name| seen.insert(name)).collect();
        self.add(Operator::new(name).kind("RETURN").inputs(inputs));
    }

    /// Adds the step of an operator, which makes its outputs when it runs for the first time.
    fn operator(
        &mut self,
        at: OperatorAt,
        is_first: bool,
        scratch: &[&ArenaBuffer],
    ) -> Result<(), TfliteError> {
        let op = Op::new(self.model, at);
        let first_tensor = self.model.subgraphs[at.subgraph].first_tensor;
        let place = || self.model.operator_place(at);
        let kind = self.model.kind(op.operator);
        let mut operator = Operator::new(step_name(kind, at)).kind(kind);
        let mut seen = HashSet::new();
        for &input in op.operator.inputs.iter().flatten().filter(|&&input| seen.insert(input)) {
            let (tensor, index) = (op.tensor(input), first_tensor + input);
            let name = self.names.tensor(index);
            if tensor.bytes == Some(0) && !tensor.is_constant && !tensor.is_variable {
                continue;
            }
            if !tensor.is_planned() {
                if !std::mem::replace(&mut self.defined[index], true) {
                    self.builder.weight(name, tensor.bytes);
                    self.state_type(name, tensor);
                }
            } else if !self.defined[index] {
                return Err(wrong(
                    place(),
                    format!("it reads '{name}', which no earlier operator makes"),
                ));
            }
            operator = operator.inputs([name]);
        }
        let mut made = HashSet::new();
        for (index, &output) in op.operator.outputs.iter().enumerate() {
            let tensor = op.tensor(output);
            let (true, Some(bytes)) = (tensor.is_planned(), tensor.bytes) else { continue };
            let flat = first_tensor + output;
            let name = self.names.tensor(flat);
            if !is_first {
                operator = operator.inputs([name]);
            } else if !made.insert(output) || std::mem::replace(&mut self.defined[flat], true) {
                return Err(wrong(place(), format!("'{name}' is made twice, or is an input")));
            } else {
                self.state_type(name, tensor);
                let output = Output::new(name, bytes).basis(tensor.basis);
                operator = operator.output(self.with_memory(&op, index, output)?);
            }
        }
        for buffer in scratch {
            operator = if is_first {
                self.reasons.insert(buffer.name.clone(), NotInPlace::Kernel(SCRATCH));
                operator.output(Output::new(buffer.name.clone(), buffer.size))
            } else {
                operator.inputs([buffer.name.clone()])
            };
        }
        if !self.steps.are_fixed {
            operator = operator.after_place(self.steps.inputs);
            let reads_state = op.operator.inputs.iter().flatten();
            if has_state(kind) || reads_state.into_iter().any(|&t| op.tensor(t).is_variable) {
                let last = self.steps.last_with_state.replace(self.steps.count);
                operator = last.into_iter().fold(operator, Operator::after_place);
            }
        }
        if at.subgraph == 0 {
            self.steps.operators.resize(self.steps.count, None);
            self.steps.operators.push(Some(at.operator));
        }
        self.add(operator);
        Ok(())
    }

    /// Declares the inputs that an output may share memory with.
    fn with_memory(
        &mut self,
        op: &Op,
        index: usize,
        output: Output,
    ) -> Result<Output, TfliteError> {
        let first_tensor = self.model.subgraphs[op.at.subgraph].first_tensor;
        let Some(tensor) = op.output(index) else { return Ok(output) };
        if let Some(shares) = &self.shares {
            let place = op.operator.outputs[index];
            let name = |tensor: usize| self.names.tensor(first_tensor + tensor);
            return Ok(match shares[place] {
                Some(Share { input, is_view: true, .. }) => output.reads_at(name(input), 0),
                Some(Share { input, .. }) => output.overwrites(name(input)),
                None => {
                    let name = name(place).into();
                    self.reasons.insert(name, NotInPlace::Kernel(OWN));
                    output
                }
            });
        }
        let name = |input: usize| self.names.tensor(first_tensor + input);
        let planned = |at: usize| {
            let input = op.operator.inputs.get(at).copied().flatten()?;
            let of = op.tensor(input);
            of.is_planned().then_some((input, of))
        };
        let why = match ops::find(op).map(|row| &row.memory) {
            None => NotInPlace::Unknown,
            Some(Memory::New(why)) => NotInPlace::Kernel(why),
            Some(Memory::View(rule)) => {
                let place = if tensor.element.bits().is_some_and(|bits| bits >= 8) {
                    rule(op, index)?
                } else {
                    None
                };
                let fits = place.and_then(|place| {
                    let (input, of) = planned(place.input)?;
                    let end = place.offset.checked_add(tensor.bytes?)?;
                    (end <= of.bytes?).then_some((input, place.offset))
                });
                if let Some((input, offset)) = fits {
                    return Ok(output.reads_at(name(input), offset));
                }
                NotInPlace::Kernel(
                    "its bytes do not lie together in the input, or not at a multiple of 16",
                )
            }
            Some(&Memory::Over { kernel, inputs }) => {
                let kind = self.model.kind(op.operator);
                let profile = self.kernels.named(kind).unwrap_or(self.kernels.profile());
                if self.library == KernelLibrary::CmsisNnMve {
                    NotInPlace::Kernel("the kernels for MVE are not tested in place")
                } else if ops::writes_early(op)? {
                    NotInPlace::Kernel("an exclusive sum is written before its element is read")
                } else if profile < kernel {
                    match self.kernels.named(kind) {
                        Some(InPlace::None) => NotInPlace::Named,
                        _ => NotInPlace::Profile(kernel),
                    }
                } else {
                    let fits = (0..if index == 0 { inputs } else { 0 }).filter_map(planned);
                    let fits: Vec<usize> = fits
                        .filter(|(_, of)| {
                            of.elements() == tensor.elements() && tensor.bytes <= of.bytes
                        })
                        .map(|(input, _)| input)
                        .collect();
                    if !fits.is_empty() {
                        return Ok(fits
                            .into_iter()
                            .fold(output, |output, input| output.overwrites(name(input))));
                    }
                    NotInPlace::Shape
                }
            }
        };
        if let (Some((input, of)), Some(below)) = (planned(0), self.below(op, index)?) {
            // Without a distance, it would have to lie inside the input.
            let fits = below > 0 || tensor.bytes <= of.bytes;
            return Ok(output.overlaps(name(input), if fits { below } else { ALIGNMENT }));
        }
        self.reasons
            .insert(self.names.tensor(first_tensor + op.operator.outputs[index]).into(), why);
        Ok(output)
    }

    /// The bytes by which an output may begin below the first input, if fewer than it has.
    fn below(&self, op: &Op, index: usize) -> Result<Option<Bytes>, TfliteError> {
        let row = ops::find(op).filter(|_| self.overlap && index == 0);
        let below = row.map_or(Ok(None), |row| row.overlap_of(op, self.library))?;
        let below = below.and_then(|below| below.checked_next_multiple_of(ALIGNMENT));
        Ok(below
            .zip(op.output(0))
            .and_then(|(below, output)| (output.bytes? > below.max(ALIGNMENT)).then_some(below)))
    }
}
