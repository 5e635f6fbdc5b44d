//! Executes a plan: the operators run, in order, on a shadow of the memory, which follows every
//! byte from its writer to its readers.
//!
//! The shadow stores one value for each byte: the stamp of the tensor that was last written there.
//! Every tensor is written at most once, so its id is also the version. A step
//!
//! 1. reads its inputs: every byte of an input must still carry the stamp of that input. An operator whose outputs are
//!    all views in place reads only the bytes that these views show;
//! 2. overwrites its workspace;
//! 3. writes its outputs. A view that lies where its input does moves no bytes: it *is* those bytes.
//!    An output may destroy an input of its own operator only if it is declared to overwrite that
//!    input and lies at the declared place, or at least as far below the input as is declared. Other
//!    inputs survive, unless they have exactly the bytes of the output. An output that gathers inputs
//!    does not write the bytes that already lie in their places;
//! 4. leaves its outputs, views included, and its workspace whole: they do not overlap.
//!
//! A required overwrite must lie in its variable, also where it goes through views of it. After the last step, the
//! graph outputs and the state of variables in the pool must be whole.
//!
//! Operators on several streams run in the order of the list, which is only one of the possible orders. Any two
//! accesses to a byte must be ordered by waits, unless both are reads. If they are, every other order has the same
//! result.
//!
//! This needs only the operators and the offsets of tensors, which a framework uses: no lifetimes,
//! no links, and no chunks except those of workspaces, which hold no tensor. So it checks lowering
//! as well as planning. Bytes are kept as intervals: O(n log n) for n reads and writes, for a pool
//! of any size.

use crate::{
    Bytes, OpSequence, Plan,
    sequence::{Dependency, OperatorNode, Origin},
    verify::{
        Violation,
        gathered::Gathered,
        places::{self, Interval, Memory, Place, Workspace},
        required,
        shadow::{Shadow, Stamp},
        streams::{Order, Race, Races},
    },
};

pub(super) fn run(sequence: &OpSequence, plan: &Plan, waits: &[Vec<usize>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let places = places::of_tensors(sequence, plan, &mut violations);
    let workspaces = places::workspaces(sequence, plan, &places, &mut violations);
    // Running the operators does not use the chunk table.
    violations.retain(|violation| !matches!(violation, Violation::TensorOutsideChunk { .. }));
    let tensors = sequence.tensors();
    let mut machine = Machine {
        sequence,
        plan,
        places: places.of,
        workspaces,
        content_of: (0..tensors.len()).collect(),
        viewed: places::viewed(sequence),
        state: tensors.iter().map(|tensor| tensor.origin == Origin::Weight).collect(),
        overwritten: vec![Vec::new(); tensors.len()],
        overlapped: vec![Vec::new(); tensors.len()],
        destroyed: vec![None; tensors.len()],
        gathered: Gathered::none(tensors.len()),
        shadow: Shadow::default(),
        races: (sequence.streams() > 1).then(|| Races::of(Order::of(sequence, waits))),
        violations,
    };
    required::check(sequence, &machine.places, &mut machine.violations);
    machine.supply();
    let mut workspaces = 0..machine.workspaces.len();
    let mut workspace = workspaces.next();
    for (step, operator) in sequence.operators().iter().enumerate() {
        let own = workspace.filter(|&at| machine.workspaces[at].step == step);
        machine.step(step, operator, own);
        if own.is_some() {
            workspace = workspaces.next();
        }
    }
    machine.end();
    machine.violations
}

/// The time at which a tensor must be whole.
#[derive(Clone, Copy, Debug)]
enum When {
    Reads(usize),
    Ends(usize),
    AfterTheLastStep,
}

struct Machine<'a> {
    sequence: &'a OpSequence,
    plan: &'a Plan,
    places: Vec<Place>,
    workspaces: Vec<Workspace>,
    /// The tensor that was written in the place of each tensor: itself, unless it is a view in
    /// place.
    content_of: Vec<usize>,
    /// By tensor: the tensor that it is a view of, through other views, wherever the plan puts it.
    viewed: Vec<usize>,
    /// By written tensor: true if it is the current state of a variable.
    state: Vec<bool>,
    /// The inputs that each output is declared to overwrite in its place, sorted.
    overwritten: Vec<Vec<usize>>,
    /// The inputs that each output begins below, at least as far as declared.
    overlapped: Vec<Vec<usize>>,
    /// The input with other bytes than its own that each output destroys. There is at most one, and
    /// it is declared.
    destroyed: Vec<Option<usize>>,
    gathered: Gathered,
    shadow: Shadow,
    /// `None` if there is one stream.
    races: Option<Races>,
    violations: Vec<Violation>,
}

impl Machine<'_> {
    fn name(&self, tensor: usize) -> String {
        self.sequence.tensors()[tensor].name.to_string()
    }

    fn step_name(&self, step: usize) -> String {
        format!("step {step} ('{}')", self.sequence.operator_name(step))
    }

    /// Returns the bytes of a tensor, if it has any. Memory of unknown size has as many as
    /// possible.
    fn interval(&self, tensor: usize) -> Option<Interval> {
        self.places[tensor].interval(self.sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX))
    }

    /// Writes the inputs and weights before the first step.
    fn supply(&mut self) {
        for tensor in 0..self.places.len() {
            if !matches!(self.sequence.tensors()[tensor].origin, Origin::Output { .. }) {
                self.write(tensor);
            }
        }
    }

    fn step(&mut self, step: usize, operator: &OperatorNode, workspace: Option<usize>) {
        let mut inputs: Vec<usize> = operator.inputs.iter().map(|input| input.index()).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let only_shown = places::only_shown(self.sequence, &self.places, operator);
        inputs.retain(|input| only_shown.binary_search(input).is_err());
        for &input in &inputs {
            self.interval(input).into_iter().for_each(|bytes| self.record(step, bytes, false));
        }
        // An input that is not whole is reported here, and not again below.
        inputs.retain(|&input| self.is_whole(input, When::Reads(step)));
        let mut whole = inputs.clone();
        if !only_shown.is_empty() {
            let outputs = operator.outputs.iter().map(|output| output.index());
            whole.extend(outputs.filter(|&output| self.can_show(output, step)));
            whole.sort_unstable();
        }
        if let Some(workspace) = workspace {
            let interval = self.workspaces[workspace].interval;
            if interval.high > self.plan.pool_size {
                self.outside(self.workspaces[workspace].name.clone(), interval);
            }
            self.record(step, interval, true);
            self.shadow.write(interval, Stamp::Workspace(workspace));
        }
        let mut put_out = Vec::with_capacity(operator.outputs.len());
        for output in &operator.outputs {
            if self.produce(output.index(), &whole) {
                put_out.push(output.index());
            }
        }
        for input in inputs {
            self.check_destroyed(step, input);
        }
        for output in put_out {
            self.is_whole(output, When::Ends(step));
        }
        if let Some(workspace) = workspace {
            let interval = self.workspaces[workspace].interval;
            let name = self.workspaces[workspace].name.clone();
            self.holds(interval, Stamp::Workspace(workspace), || name, When::Ends(step));
        }
    }

    /// Records that an operator shows bytes of its input, and returns whether they are whole.
    fn can_show(&mut self, view: usize, step: usize) -> bool {
        let Origin::Output { dependency: Dependency::Reads { input, .. }, .. } =
            self.sequence.tensors()[view].origin
        else {
            return false;
        };
        let Some(bytes) = self.interval(view) else { return true };
        self.record(step, bytes, false);
        self.are_whole(input.index(), bytes, When::Reads(step))
    }

    /// Records that an operator writes an output or passes on a view of an input. Returns whether
    /// the output must be whole when the operator ends; a view of lost bytes cannot be. The inputs that are whole are
    /// sorted, with the views of them that are, if the operator only shows them.
    fn produce(&mut self, tensor: usize, whole: &[usize]) -> bool {
        let sequence = self.sequence;
        let Origin::Output { dependency, .. } = &sequence.tensors()[tensor].origin else {
            return false;
        };
        let mut may_be_supplied = false;
        match dependency {
            Dependency::Fresh => {}
            Dependency::Gathers(_) => {
                let found = Gathered::in_place(sequence, &self.places, tensor).into_iter();
                let found = found.filter(|(input, _)| whole.binary_search(input).is_ok());
                let from = found.map(|(input, interval)| (interval, self.content_of[input]));
                self.gathered.gather(tensor, from.collect());
            }
            Dependency::Reads { input, offset, .. } => {
                let input = input.index();
                if self.places[tensor].is_at(self.places[input], *offset) {
                    self.content_of[tensor] = self.content_of[input];
                    return [input, tensor].iter().any(|one| whole.binary_search(one).is_ok());
                }
            }
            Dependency::Overwrites(overwrites) => {
                for overwrite in overwrites {
                    let input = overwrite.input.index();
                    if overwrite.below > 0 {
                        if self.places[tensor].is_below(self.places[input], overwrite.below) {
                            self.overlapped[tensor].push(input);
                        }
                        continue;
                    }
                    let in_place = self.places[tensor].is_at(self.places[input], overwrite.offset);
                    if in_place {
                        self.overwritten[tensor].push(input);
                        may_be_supplied |= overwrite.required;
                    }
                    // The update of a copy is no update of the tensor that it is a copy of.
                    let viewed = self.viewed[input];
                    let is_copied = self.content_of[input] != self.content_of[viewed];
                    if overwrite.required && in_place && !is_copied {
                        self.move_state(self.content_of[input], tensor);
                    } else if overwrite.required && self.interval(tensor).is_some() {
                        self.violations.push(Violation::RequiredOverwriteMissing {
                            overwriter: self.name(tensor),
                            overwritten: self.name(if in_place { viewed } else { input }),
                        });
                    }
                }
            }
        }
        self.overwritten[tensor].sort_unstable();
        if let (Place::Supplied(supplied, offset), false) = (self.places[tensor], may_be_supplied) {
            self.violations.push(Violation::NotSupplied {
                tensor: self.name(tensor),
                supplied: self.name(supplied.index()),
                offset,
            });
            return false;
        }
        self.write(tensor);
        true
    }

    /// Makes an update of a whole variable its new state.
    fn move_state(&mut self, variable: usize, update: usize) {
        let size = |tensor: usize| self.sequence.tensors()[tensor].size;
        if self.state[variable] && size(variable) == size(update) {
            self.state[variable] = false;
            self.state[update] = true;
        }
    }

    /// Records that an operator reads or writes bytes, and finds the operators that race with it.
    fn record(&mut self, step: usize, bytes: Interval, is_write: bool) {
        let Some(races) = &mut self.races else { return };
        for Race { first, second, bytes: Interval { memory, low, high } } in
            races.record(step, bytes, is_write)
        {
            let (first, second) = (self.step_name(first), self.step_name(second));
            let memory = self.memory_name(memory);
            self.violations.push(Violation::Race { first, second, memory, low, high });
        }
    }

    fn memory_name(&self, memory: Memory) -> String {
        match memory {
            Memory::Pool => "the pool".to_owned(),
            Memory::Supplied(supplied) => format!("'{}'", self.name(supplied.index())),
        }
    }

    fn write(&mut self, tensor: usize) {
        let Some(interval) = self.interval(tensor) else { return };
        if interval.memory == Memory::Pool && interval.high > self.plan.pool_size {
            self.outside(self.name(tensor), interval);
        }
        // Inputs that lie in their places are not copied.
        let mut low = interval.low;
        let gathered: Vec<Interval> =
            self.gathered.from(tensor).iter().map(|&(from, _)| from).collect();
        for from in gathered {
            if low < from.low {
                self.put(tensor, Interval { low, high: from.low, ..interval });
            }
            low = from.high;
        }
        if low < interval.high {
            self.put(tensor, Interval { low, ..interval });
        }
    }

    /// Writes bytes of a tensor.
    fn put(&mut self, tensor: usize, bytes: Interval) {
        if let Origin::Output { step, .. } = self.sequence.tensors()[tensor].origin {
            self.record(step, bytes, true);
        }
        self.shadow.write(bytes, Stamp::Tensor(tensor));
    }

    fn outside(&mut self, chunk: String, Interval { low, high, .. }: Interval) {
        let pool_size = self.plan.pool_size;
        let (offset, size) = (low, high - low);
        self.violations.push(Violation::OutsideThePool { chunk, offset, size, pool_size });
    }

    /// Returns whether every byte of a tensor carries its stamp; if not, adds a violation.
    fn is_whole(&mut self, tensor: usize, when: When) -> bool {
        self.interval(tensor).is_none_or(|bytes| self.are_whole(tensor, bytes, when))
    }

    /// As [`is_whole`](Self::is_whole), for some bytes of the tensor.
    fn are_whole(&mut self, tensor: usize, bytes: Interval, when: When) -> bool {
        let sequence = self.sequence;
        let name = || sequence.tensors()[tensor].name.to_string();
        let owners = self.gathered.owners(self.content_of[tensor], bytes);
        owners.into_iter().all(|(bytes, owner)| self.holds(bytes, Stamp::Tensor(owner), name, when))
    }

    fn holds(
        &mut self,
        interval: Interval,
        stamp: Stamp,
        name: impl FnOnce() -> String,
        when: When,
    ) -> bool {
        let Some((Interval { memory, low, high }, holder)) =
            self.shadow.first(interval, |found| found != Some(stamp))
        else {
            return true;
        };
        let when = match when {
            When::Reads(step) => format!("when {} reads it", self.step_name(step)),
            When::Ends(step) => format!("when {} ends", self.step_name(step)),
            When::AfterTheLastStep => "after the last step".to_owned(),
        };
        let memory = self.memory_name(memory);
        let holder = holder.map_or_else(|| "nothing".to_owned(), |stamp| self.holder(stamp));
        self.violations.push(Violation::Lost { tensor: name(), when, memory, low, high, holder });
        false
    }

    fn holder(&self, stamp: Stamp) -> String {
        match stamp {
            Stamp::Tensor(tensor) => format!("'{}'", self.name(tensor)),
            Stamp::Workspace(workspace) => format!("'{}'", self.workspaces[workspace].name),
        }
    }

    /// Checks an input that was whole before its operator wrote: an output that destroyed it must
    /// be declared to.
    fn check_destroyed(&mut self, step: usize, input: usize) {
        let Some(interval) = self.interval(input) else { return };
        let mut destroyers = Vec::new();
        let mut owners = self.gathered.owners(self.content_of[input], interval).into_iter();
        let destroyed = owners.find_map(|(bytes, owner)| {
            self.shadow.first(bytes, |stamp| match stamp {
                Some(Stamp::Tensor(writer)) if writer != owner => {
                    destroyers.push(writer);
                    !self.may_destroy(writer, input, interval)
                }
                Some(Stamp::Tensor(_)) => false,
                _ => true,
            })
        });
        if let Some((Interval { low, high, .. }, Some(stamp))) = destroyed {
            self.violations.push(Violation::WrittenOverInput {
                operator: self.step_name(step),
                output: self.holder(stamp),
                input: self.name(input),
                low,
                high,
            });
            return;
        }
        for writer in destroyers {
            if self.interval(writer) != Some(interval) {
                self.destroyed[writer] = Some(input);
            }
        }
    }

    /// Returns whether an output may destroy an input. It may if it has exactly the input's bytes
    /// and is declared to overwrite any input in that place, or if it is declared to overwrite the
    /// input and destroys no other.
    fn may_destroy(&self, writer: usize, input: usize, interval: Interval) -> bool {
        let declared = &self.overwritten[writer];
        if self.interval(writer) == Some(interval) {
            return !declared.is_empty();
        }
        let is_first = self.destroyed[writer].is_none_or(|first| first == input);
        let is_overlap = self.overlapped[writer].contains(&input);
        is_first && (is_overlap || declared.binary_search(&input).is_ok())
    }

    /// Checks graph outputs and the state of variables in the pool after the last step.
    fn end(&mut self) {
        let in_pool = |&at: &usize| matches!(self.places[at], Place::Pool(_));
        let kept: Vec<usize> =
            (0..self.places.len()).filter(|&at| self.state[at]).filter(in_pool).collect();
        let outputs = self.sequence.outputs().iter().map(|output| output.index());
        for tensor in kept.into_iter().chain(outputs) {
            self.is_whole(tensor, When::AfterTheLastStep);
        }
    }
}
