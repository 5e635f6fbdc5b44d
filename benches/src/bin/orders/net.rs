//! A graph that is being built from random numbers.

use memplan::{Bytes, OpSequence, Operator, Output, SequenceError, sequence::SequenceBuilder};

/// A tensor of a graph that is being built.
#[derive(Clone, Copy)]
pub struct Tensor {
    pub id: usize,
    pub size: Bytes,
}

impl Tensor {
    fn name(self) -> String {
        format!("t{}", self.id)
    }
}

/// A graph that is being built, and the random numbers that it is drawn from.
pub struct Net {
    sequence: SequenceBuilder,
    tensors: usize,
    random: u64,
}

impl Net {
    pub fn new(seed: u64) -> Self {
        Self { sequence: OpSequence::builder(), tensors: 0, random: seed }
    }

    pub fn build(self) -> Result<OpSequence, SequenceError> {
        self.sequence.build()
    }

    /// Draws a number from a range.
    pub fn draw(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        range.start() + (mixed ^ mixed >> 31) % (range.end() - range.start() + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.draw(1..=100) <= percent
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }

    /// Draws an index into so many items.
    pub fn index(&mut self, items: usize) -> usize {
        usize::try_from(self.draw(0..=items as u64 - 1)).unwrap_or(0)
    }

    fn tensor(&mut self, size: Bytes) -> Tensor {
        self.tensors += 1;
        Tensor { id: self.tensors, size }
    }

    pub fn input(&mut self, size: Bytes) -> Tensor {
        let input = self.tensor(size);
        self.sequence.input(input.name(), size);
        input
    }

    pub fn add(&mut self, inputs: &[Tensor], size: Bytes, over: &[Tensor]) -> Tensor {
        let made = self.tensor(size);
        let mut output = Output::new(made.name(), size);
        for tensor in over.iter().filter(|tensor| tensor.size == size) {
            output = output.overwrites(tensor.name());
        }
        let inputs = inputs.iter().map(|tensor| tensor.name());
        let operator = Operator::new(format!("op{}", made.id)).inputs(inputs).output(output);
        self.sequence.operator(operator);
        made
    }

    /// Adds an operator that makes a tensor of its own.
    pub fn make(&mut self, inputs: &[Tensor], size: Bytes) -> Tensor {
        self.add(inputs, size, &[])
    }

    /// Adds an element-wise operator.
    pub fn map(&mut self, inputs: &[Tensor]) -> Tensor {
        self.add(inputs, inputs[0].size, inputs)
    }

    /// Adds an operator whose result lies outside the pool.
    pub fn consume(&mut self, inputs: &[Tensor]) {
        let inputs = inputs.iter().map(|tensor| tensor.name());
        self.sequence.operator(Operator::new("update").inputs(inputs));
    }

    pub fn output(&mut self, tensor: Tensor) {
        self.sequence.output(tensor.name());
    }

    /// Joins tensors one by one.
    pub fn chain(&mut self, tensors: &[Tensor]) -> Tensor {
        tensors[1..].iter().fold(tensors[0], |sum, &next| self.map(&[sum, next]))
    }
}
