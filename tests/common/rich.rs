//! Random sequences with everything that a sequence can say: views of views, overwrites of whole tensors and of
//! parts, partial overlaps, required updates of variables and through views, concatenations, several streams,
//! workspaces, and bodies that read, update and make tensors around them.

use arbitrary::{Result, Unstructured};
use memplan::{OpSequence, Operator, Output, SequenceError};

/// A tensor to which an operator can refer.
#[derive(Clone)]
struct Drawn {
    name: String,
    size: u64,
    /// The bytes from its start to the end of the chunk in which it lies if views share memory.
    room: u64,
    /// The tensor with memory of its own in which it lies.
    home: usize,
    /// True for the newest state of a variable, and for its views.
    is_state: bool,
}

/// A tensor around a body that it uses.
struct Captured {
    name: String,
    size: u64,
    role: Role,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Read,
    /// An output of the operator updates it.
    Updated,
    /// It is an output, which the body makes.
    Made,
}

/// Draws a sequence. Many require the impossible, and some cannot be built.
pub fn rich_sequence(
    random: &mut Unstructured<'_>,
) -> Result<std::result::Result<OpSequence, SequenceError>> {
    let streams = if random.ratio(1, 4)? { random.int_in_range(2..=3)? } else { 1 };
    let mut draw = Draw { random, tensors: Vec::new(), names: &mut 0, streams };
    draw.sequence(Vec::new(), 9, 2)
}

struct Draw<'d, 'r> {
    random: &'d mut Unstructured<'r>,
    tensors: Vec<Drawn>,
    /// The number of names given.
    names: &'d mut usize,
    streams: usize,
}

impl Draw<'_, '_> {
    fn name(&mut self) -> String {
        *self.names += 1;
        format!("t{}", *self.names - 1)
    }

    fn size(&mut self) -> Result<u64> {
        Ok(if self.random.ratio(1, 16)? { 0 } else { self.random.int_in_range(1..=24)? })
    }

    fn add(&mut self, name: String, size: u64, is_state: bool) {
        let home = self.tensors.len();
        self.tensors.push(Drawn { name, size, room: size, home, is_state });
    }

    fn sequence(
        &mut self,
        captured: Vec<Captured>,
        operators: usize,
        depth: usize,
    ) -> Result<std::result::Result<OpSequence, SequenceError>> {
        let mut sequence = OpSequence::builder();
        for _ in 0..self.random.int_in_range(u8::from(captured.is_empty())..=3)? {
            let (name, size) = (self.name(), self.size()?);
            let is_state = self.random.ratio(1, 2)?;
            if is_state {
                sequence.weight(&*name, Some(size));
            } else {
                sequence.input(&*name, size);
            }
            self.add(name, size, is_state);
        }
        for Captured { name, size, role } in captured {
            sequence.weight(&*name, Some(size));
            if role == Role::Made {
                // The body makes it before anything else reads it.
                let made = self.name();
                let make = Operator::new(format!("make {made}")).inputs([&*name]);
                sequence.operator(make.output(Output::new(&*made, size).updates(name, 0)));
                self.add(made, size, false);
            } else {
                self.add(name, size, role == Role::Updated);
            }
        }
        let mut list = Vec::new();
        for _ in 0..self.random.int_in_range(1..=operators)? {
            list.push(self.operator(list.len(), depth)?);
        }
        for operator in list {
            sequence.operator(operator);
        }
        for _ in 0..self.random.int_in_range(0..=2)? {
            let at = self.random.choose_index(self.tensors.len())?;
            sequence.output(&*self.tensors[at].name);
        }
        Ok(sequence.build())
    }

    /// Draws an operator that reads some of the tensors, preferably new ones.
    fn operator(&mut self, step: usize, depth: usize) -> Result<Operator> {
        let mut inputs: Vec<usize> = Vec::new();
        for _ in 0..self.random.int_in_range(0..=3)? {
            let first =
                if self.random.ratio(3, 4)? { self.tensors.len().saturating_sub(4) } else { 0 };
            let input = self.random.int_in_range(first..=self.tensors.len() - 1)?;
            inputs.push(input);
            if self.random.ratio(1, 6)? {
                let home = self.tensors[input].home;
                let aliases: Vec<usize> =
                    (0..self.tensors.len()).filter(|&at| self.tensors[at].home == home).collect();
                inputs.push(aliases[self.random.choose_index(aliases.len())?]);
            }
        }
        let name = self.name();
        let mut operator = Operator::new(format!("op {name}"))
            .inputs(inputs.iter().map(|&input| &*self.tensors[input].name));
        if self.random.ratio(1, 5)? {
            operator = operator.workspace(self.random.int_in_range(1..=16)?);
        }
        if self.streams > 1 {
            operator = operator.on_stream(self.random.int_in_range(0..=self.streams - 1)?);
            if step > 0 && self.random.ratio(1, 3)? {
                operator = operator.after_place(self.random.choose_index(step)?);
            }
        }
        let has_bodies = depth > 0 && self.random.ratio(1, 6)?;
        let mut captured: Vec<Captured> = Vec::new();
        for &input in &inputs {
            let Drawn { name, size, .. } = self.tensors[input].clone();
            if captured.iter().all(|one| one.name != name) && self.random.ratio(3, 4)? {
                captured.push(Captured { name, size, role: Role::Read });
            }
        }
        for _ in 0..[0, 1, 1, 1, 1, 2, 3][self.random.choose_index(7)?] {
            let (output, updated) = self.output(&inputs)?;
            let made = self.tensors.last().unwrap().clone();
            if let Some(updated) = updated {
                let name = &self.tensors[updated].name;
                if let Some(one) = captured.iter_mut().find(|one| one.name == *name) {
                    (one.role, one.size) = (Role::Updated, one.size.min(made.size));
                }
            } else if has_bodies
                && made.home + 1 == self.tensors.len()
                && self.random.ratio(1, 2)?
            {
                captured.push(Captured { name: made.name, size: made.size, role: Role::Made });
            }
            operator = operator.output(output);
        }
        if has_bodies {
            for _ in 0..self.random.int_in_range(1..=2)? {
                let of_body = captured.iter().map(|one| Captured {
                    name: one.name.clone(),
                    size: one.size,
                    role: one.role,
                });
                let of_body = of_body.collect();
                let mut inner = Draw {
                    random: &mut *self.random,
                    tensors: Vec::new(),
                    names: &mut *self.names,
                    streams: 1,
                };
                if let Ok(body) = inner.sequence(of_body, 3, depth - 1)? {
                    operator = operator.body(body);
                }
            }
        }
        Ok(operator)
    }

    /// Draws an output, and returns the input that it must update, if any.
    fn output(&mut self, inputs: &[usize]) -> Result<(Output, Option<usize>)> {
        let (name, size) = (self.name(), self.size()?);
        let choice = if inputs.is_empty() { 0 } else { self.random.int_in_range(0..=13)? };
        if choice < 3 {
            self.add(name.clone(), size, false);
            return Ok((Output::new(name, size), None));
        }
        let input = inputs[self.random.choose_index(inputs.len())?];
        let of = self.tensors[input].clone();
        if choice < 5 {
            let (mut output_size, mut places) = (0, Vec::new());
            for &input in inputs {
                if self.random.ratio(4, 5)? {
                    output_size += if self.random.ratio(1, 6)? { 3 } else { 0 };
                    places.push((input, output_size));
                    output_size += self.tensors[input].size;
                }
            }
            let mut output = Output::new(&*name, output_size);
            for (input, at) in places {
                output = output.gathers(&*self.tensors[input].name, at);
                // Those before it as well.
                if self.random.ratio(1, 8)? {
                    output = output.required();
                }
            }
            self.add(name, output_size, false);
            return Ok((output, None));
        }
        if choice < 8 {
            let is_whole = self.random.ratio(1, 2)?;
            let offset = if is_whole { 0 } else { self.random.int_in_range(0..=of.size)? };
            let rest = of.size - offset;
            let size = if is_whole { rest } else { self.random.int_in_range(0..=rest)? };
            let room = of.room - offset;
            let drawn = Drawn { name: name.clone(), size, room, ..of.clone() };
            self.tensors.push(drawn);
            let view = Output::new(name, size).reads_at(of.name, offset);
            let view = if self.random.ratio(1, 4)? { view.required() } else { view };
            return Ok((view, None));
        }
        if choice < 11 && self.random.ratio(1, 2)? {
            let size = self.random.int_in_range(0..=of.size + 4)?;
            let below = self.random.int_in_range(1..=6)?;
            self.add(name.clone(), size, false);
            return Ok((Output::new(name, size).overlaps(of.name, below), None));
        }
        let is_required = self.random.ratio(if of.is_state { 9 } else { 1 }, 10)?;
        let end = if self.random.ratio(1, 8)? { of.room } else { of.size };
        let is_whole = self.random.ratio(2, 3)?;
        let offset = if is_whole { 0 } else { self.random.int_in_range(0..=end)? };
        let size = if is_whole { of.size } else { self.random.int_in_range(0..=end - offset)? };
        self.add(name.clone(), size, is_required && of.is_state);
        let output = Output::new(&*name, size);
        if is_required {
            // Only the update is the newest state.
            let home = of.home;
            let newest = self.tensors.len() - 1;
            for (at, tensor) in self.tensors.iter_mut().enumerate() {
                tensor.is_state &= tensor.home != home || at == newest;
            }
            return Ok((output.updates(of.name, offset), Some(input)));
        }
        let mut output = output.overwrites_at(of.name, offset);
        let other = &self.tensors[inputs[self.random.choose_index(inputs.len())?]];
        if other.size >= size && self.random.ratio(1, 4)? {
            output = output.overwrites(&*other.name);
        }
        Ok((output, None))
    }
}
