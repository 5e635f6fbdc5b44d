//! Random graphs with every feature, and the settings in which they are planned.

use memplan::{OpSequence, Operator, Output};

use crate::common::constraints::Dice;

use super::{
    model::{Memory, Model, Setting},
    ties::{Questions, choices, questions},
};

/// The kinds of graphs and questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    OneStream,
    /// Graphs with few orders.
    Orders,
    TwoStreams,
    TwoPools,
}

/// The most choices of a graph.
const MAX_CHOICES: usize = 512;

/// The ties that a graph has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mix {
    All,
    Overwrites,
    Gathers,
    GathersAndOverwrites,
    Views,
    ViewsAndOverwrites,
    Overlaps,
    /// Required overwrites, of views as well.
    Updates,
}

impl Mix {
    /// Half of the graphs have ties of all kinds.
    pub fn of(number: u64) -> Self {
        match number % 14 {
            0 => Self::Overwrites,
            1 => Self::Gathers,
            2 => Self::GathersAndOverwrites,
            3 => Self::Views,
            4 => Self::ViewsAndOverwrites,
            5 => Self::Overlaps,
            6 => Self::Updates,
            _ => Self::All,
        }
    }

    /// How often each kind of operator is drawn: one that makes new memory, may write in place, slices, splits,
    /// concatenates, may begin below its input, or updates it.
    fn weights(self, dice: &mut Dice) -> [u64; 7] {
        match self {
            Self::All => std::array::from_fn(|_| 1 + 3 * dice.roll(3) * dice.roll(2)),
            Self::Overwrites => [2, 4, 0, 0, 0, 0, 0],
            Self::Gathers => [3, 0, 0, 0, 3, 0, 0],
            Self::GathersAndOverwrites => [2, 2, 0, 0, 2, 0, 0],
            Self::Views => [3, 0, 2, 2, 0, 0, 0],
            Self::ViewsAndOverwrites => [2, 3, 2, 2, 0, 0, 0],
            Self::Overlaps => [2, 0, 0, 0, 0, 3, 0],
            Self::Updates => [2, 1, 1, 3, 0, 0, 3],
        }
    }
}

/// A graph and what is asked about it.
pub struct Case {
    pub sequence: OpSequence,
    pub setting: Setting,
}

impl Case {
    pub fn model(&self) -> Model {
        Model::new(&self.sequence, &self.setting)
    }
}

/// The graph with this number.
pub fn case(world: World, number: u64) -> Case {
    let mut dice = Dice((number << 3 | world as u64).wrapping_mul(0x1234_5678_9abc_def1));
    loop {
        if let Some(case) = attempt(world, Mix::of(number), &mut dice) {
            return case;
        }
    }
}

fn attempt(world: World, mix: Mix, dice: &mut Dice) -> Option<Case> {
    let alignment = [1, 1, 2, 64][at(dice, 4)];
    let unit = match alignment {
        1 => 8,
        2 => 1 + dice.roll(2),
        _ => 16,
    };
    let most = match world {
        World::OneStream | World::TwoStreams => 9,
        World::Orders | World::TwoPools => 8,
    };
    let streams = if world == World::TwoStreams { 2 } else { 1 };
    let weights = mix.weights(dice);
    let mut draw = Draw { dice, tensors: Vec::new(), unit, streams, weights, names: 0 };
    let operators = 2 + at(draw.dice, most - 1);
    let sequence = draw.sequence(operators)?;
    // Sometimes a capacity is no multiple of the alignment.
    let mut capacity = |most: u64| {
        let capacity = unit * (2 + draw.dice.roll(most));
        if draw.dice.roll(4) == 0 { capacity } else { capacity.next_multiple_of(alignment) }
    };
    let [fast, slow] = [Some(capacity(14)), Some(capacity(24))];
    let slow = slow.filter(|_| draw.dice.roll(4) == 0);
    let pools = [
        Memory { capacity: fast, cost: 1 + draw.dice.roll(2) },
        Memory { capacity: slow, cost: 3 + 17 * draw.dice.roll(2) },
    ];
    let setting = Setting {
        alignment,
        inputs_in_pool: draw.dice.roll(5) == 0,
        pools: (world == World::TwoPools).then_some(pools),
    };
    let case = Case { sequence, setting };
    let found: Questions = questions(&case.model());
    let is_small = choices(&found)?.len() <= MAX_CHOICES;
    let is_of_world = case.sequence.streams() == streams;
    (!found.is_empty() && is_small && is_of_world).then_some(case)
}

fn at(dice: &mut Dice, sides: usize) -> usize {
    dice.roll(sides as u64) as usize
}

/// A view of a tensor, sometimes a required one.
fn view(output: Output, (of, offset): (&str, u64), is_required: bool) -> Output {
    let output = output.reads_at(of, offset);
    if is_required { output.required() } else { output }
}

/// A tensor to which operators can refer.
struct Drawn {
    name: String,
    size: u64,
    is_outside: bool,
    /// True if an operator has updated it, so that nobody may read it.
    is_gone: bool,
}

struct Draw<'d> {
    dice: &'d mut Dice,
    tensors: Vec<Drawn>,
    unit: u64,
    streams: usize,
    /// How often each kind of operator is drawn.
    weights: [u64; 7],
    names: usize,
}

impl Draw<'_> {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names - 1)
    }

    fn size(&mut self) -> u64 {
        self.unit * (1 + self.dice.roll(8))
    }

    fn add(&mut self, size: u64, is_outside: bool) -> String {
        let name = self.name();
        self.tensors.push(Drawn { name: name.clone(), size, is_outside, is_gone: false });
        name
    }

    /// A tensor that may be read, usually a new one.
    fn pick(&mut self) -> Option<usize> {
        for _ in 0..8 {
            let count = self.tensors.len();
            let first = if self.dice.roll(3) > 0 { count.saturating_sub(3) } else { 0 };
            let found = first + at(self.dice, count - first);
            if !self.tensors[found].is_gone {
                return Some(found);
            }
        }
        None
    }

    fn sequence(&mut self, operators: usize) -> Option<OpSequence> {
        let mut sequence = OpSequence::builder();
        for _ in 0..=self.dice.roll(2) {
            let size = self.size();
            sequence.input(self.add(size, true), size);
        }
        for step in 0..operators {
            let mut operator = self.operator(step)?;
            if self.dice.roll(7) == 0 {
                operator = operator.workspace(self.size());
            }
            if self.streams > 1 {
                operator = operator.on_stream(at(self.dice, self.streams));
                if step > 0 && self.dice.roll(5) == 0 {
                    operator = operator.after_place(at(self.dice, step));
                }
            }
            sequence.operator(operator);
        }
        sequence.output(self.tensors.last()?.name.clone());
        if self.dice.roll(3) == 0 {
            let output = self.pick()?;
            sequence.output(self.tensors[output].name.clone());
        }
        sequence.build().ok()
    }

    fn operator(&mut self, step: usize) -> Option<Operator> {
        let operator = Operator::new(format!("o{step}"));
        let input = self.pick()?;
        let Drawn { name, size, is_outside, .. } = &self.tensors[input];
        let (name, size, is_outside) = (name.clone(), *size, *is_outside);
        let all: u64 = self.weights.iter().sum();
        let mut roll = self.dice.roll(all);
        let mut kind = 0;
        while roll >= self.weights[kind] {
            roll -= self.weights[kind];
            kind += 1;
        }
        // Another input, often the same or none.
        let mut inputs = vec![name.clone()];
        if self.dice.roll(3) == 0 {
            let other = self.pick()?;
            inputs.push(self.tensors[other].name.clone());
        }
        let units = size / self.unit;
        let operator = match kind {
            1 if !is_outside => self.in_place(operator, input, inputs),
            2 if units > 1 => {
                let of = self.dice.roll(units);
                let long = 1 + self.dice.roll(units - of);
                let output = self.add(long * self.unit, is_outside);
                let output = Output::new(output, long * self.unit);
                let is_required = self.dice.roll(3) == 0;
                operator.inputs([name.clone()]).output(view(
                    output,
                    (&name, of * self.unit),
                    is_required,
                ))
            }
            3 if units > 1 => {
                let first = (1 + self.dice.roll(units - 1)) * self.unit;
                let mut operator = operator.inputs([name.clone()]);
                let is_required = self.dice.roll(3) == 0;
                for (low, long) in [(0, first), (first, size - first)] {
                    let output = Output::new(self.add(long, is_outside), long);
                    operator = operator.output(view(output, (&name, low), is_required));
                }
                operator
            }
            4 => self.concat(operator, input)?,
            5 if !is_outside => {
                let long = self.unit * (1 + self.dice.roll(units + 1));
                let below = self.unit * (1 + self.dice.roll(3));
                let output = Output::new(self.add(long, false), long).overlaps(name, below);
                operator.inputs(inputs).output(output)
            }
            6 if self.dice.roll(2) == 0 => {
                let is_whole = self.dice.roll(2) == 0;
                let low = if is_whole { 0 } else { self.dice.roll(units) };
                let long = if is_whole { units } else { 1 + self.dice.roll(units - low) };
                self.tensors[input].is_gone = true;
                let output = Output::new(self.add(long * self.unit, is_outside), long * self.unit);
                operator.inputs(inputs).output(output.updates(name, low * self.unit))
            }
            _ => {
                let mut operator = operator.inputs(inputs);
                for _ in 0..=(self.dice.roll(4) / 3) {
                    let size = self.size();
                    operator = operator.output(Output::new(self.add(size, false), size));
                }
                operator
            }
        };
        if self.dice.roll(12) > 0 {
            return Some(operator);
        }
        let output = self.one_more(input);
        Some(operator.output(output))
    }

    /// An output that an operator has besides others: a view, an overwriter or a gatherer of an input, or none of them.
    fn one_more(&mut self, input: usize) -> Output {
        let Drawn { name, size, is_outside, .. } = &self.tensors[input];
        let (input, units, is_outside) = (name.clone(), size / self.unit, *is_outside);
        let low = self.dice.roll(units);
        let bytes = self.unit * (1 + self.dice.roll(units - low));
        let low = low * self.unit;
        match self.dice.roll(4) {
            0 => Output::new(self.add(bytes, is_outside), bytes).reads_at(input, low),
            1 if !is_outside => {
                Output::new(self.add(bytes, false), bytes).overwrites_at(input, low)
            }
            2 if !is_outside => {
                let size = low + units * self.unit;
                Output::new(self.add(size, false), size).gathers(input, low)
            }
            _ => Output::new(self.add(bytes, false), bytes),
        }
    }

    /// An output that may be written over one input, or over one of two, and sometimes another one. The two often share
    /// no bytes.
    fn in_place(&mut self, mut operator: Operator, input: usize, inputs: Vec<String>) -> Operator {
        let (name, units) =
            (self.tensors[input].name.clone(), self.tensors[input].size / self.unit);
        let mut low = if self.dice.roll(3) == 0 { self.dice.roll(units) } else { 0 };
        for at in 0..=(self.dice.roll(5) / 4) {
            let long =
                if self.dice.roll(3) == 0 { 1 + self.dice.roll(units - low) } else { units - low };
            let size = long * self.unit;
            let mut output = Output::new(self.add(size, false), size);
            let fits = |name: &&String| {
                self.tensors.iter().any(|one| one.name == **name && one.size >= size)
            };
            let second = inputs.get(1).filter(fits);
            if at == 0 || second.is_none() || self.dice.roll(2) == 0 {
                output = output.overwrites_at(name.clone(), low * self.unit);
            }
            if let Some(second) = second {
                output = output.overwrites(second.clone());
            }
            operator = operator.output(output);
            low = if low + long < units { low + long } else { self.dice.roll(units) };
        }
        operator.inputs(inputs)
    }

    fn concat(&mut self, operator: Operator, first: usize) -> Option<Operator> {
        let mut parts = vec![first];
        for _ in 0..=self.dice.roll(2) {
            parts.push(self.pick()?);
        }
        let sizes: Vec<u64> = parts.iter().map(|&part| self.tensors[part].size).collect();
        let names: Vec<String> =
            parts.iter().map(|&part| self.tensors[part].name.clone()).collect();
        let size: u64 = sizes.iter().sum();
        if size > 24 * self.unit {
            return None;
        }
        let mut output = Output::new(self.add(size, false), size);
        let mut end = 0;
        let is_required = self.dice.roll(6) == 0;
        for ((name, size), &part) in names.iter().zip(sizes).zip(&parts) {
            // Some bytes are not declared.
            if self.dice.roll(8) > 0 {
                // What lies outside the pool cannot lie inside an output.
                let is_possible = !self.tensors[part].is_outside || self.dice.roll(8) == 0;
                output = if is_required && is_possible {
                    output.holds(name.clone(), end)
                } else {
                    output.gathers(name.clone(), end)
                };
            }
            end += size;
        }
        Some(operator.inputs(names).output(output))
    }
}
