//! A graph as the oracle sees it: tensors with bytes, operators, and what is over before each.

use memplan::{
    OpSequence,
    sequence::{Dependency, Origin, TensorId},
};

/// A set of steps, by bits. The bit after the last step stands for the end.
pub type Steps = u32;

/// What is asked about a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub alignment: u64,
    pub inputs_in_pool: bool,
    /// The fast pool and the slow one, if there are two.
    pub pools: Option<[Memory; 2]>,
}

impl Setting {
    /// The options of the command.
    pub fn options(&self) -> String {
        let pool = |(name, memory): (&str, &Memory)| {
            let capacity = memory.capacity.map(|bytes| bytes.to_string()).unwrap_or_default();
            format!(" --pool {name}:{capacity}:{}", memory.cost)
        };
        let pools: String =
            ["fast", "slow"].into_iter().zip(self.pools.iter().flatten()).map(pool).collect();
        let inputs = if self.inputs_in_pool { " --inputs" } else { "" };
        format!("--alignment {}{inputs}{pools}", self.alignment)
    }
}

/// A pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub capacity: Option<u64>,
    /// The cost of a byte of traffic.
    pub cost: u64,
}

pub struct Tensor {
    pub size: i64,
    /// The step that makes it; `None` if it is supplied.
    pub step: Option<usize>,
    pub dependency: Dependency<TensorId>,
    /// True if it is supplied outside the pools.
    pub is_outside: bool,
}

pub struct Operator {
    /// Without repeats.
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
}

pub struct Model {
    /// The tensors of the sequence, and then the workspaces.
    pub tensors: Vec<Tensor>,
    /// The number of tensors of the sequence.
    pub named: usize,
    pub operators: Vec<Operator>,
    pub outputs: Vec<usize>,
    pub alignment: i64,
    /// By step: the steps that must be over before it in every order.
    pub needs: Vec<Steps>,
    /// By step: the steps that are over before it begins.
    pub before: Vec<Steps>,
    /// The step that runs first.
    pub first: usize,
    /// By step, on several streams: the first step on the same stream.
    pub first_on: Vec<usize>,
    /// All sizes and distances are multiples of it.
    pub unit: i64,
    /// By tensor: further steps in which its bytes are kept, although no byte of it need be.
    pub kept: Vec<Steps>,
}

impl Model {
    pub fn new(sequence: &OpSequence, setting: &Setting) -> Self {
        let mut tensors: Vec<Tensor> = Vec::new();
        for tensor in sequence.tensors() {
            let (step, dependency) = match &tensor.origin {
                Origin::Output { step, dependency } => (Some(*step), dependency.clone()),
                _ => (None, Dependency::Fresh),
            };
            let is_in_pool = tensor.origin == Origin::Input && setting.inputs_in_pool;
            tensors.push(Tensor {
                size: tensor.size.unwrap() as i64,
                step,
                dependency,
                is_outside: step.is_none() && !is_in_pool,
            });
        }
        let index = |ids: &[TensorId]| ids.iter().map(|id| id.index()).collect::<Vec<usize>>();
        let mut operators = Vec::new();
        for (step, operator) in sequence.operators().iter().enumerate() {
            let mut inputs = index(&operator.inputs);
            inputs.sort_unstable();
            inputs.dedup();
            let mut outputs = index(&operator.outputs);
            if operator.workspace > 0 {
                outputs.push(tensors.len());
                tensors.push(Tensor {
                    size: operator.workspace as i64,
                    step: Some(step),
                    dependency: Dependency::Fresh,
                    is_outside: false,
                });
            }
            operators.push(Operator { inputs, outputs });
        }
        let producer = |&input: &usize| tensors[input].step;
        let mut needs: Vec<Steps> = Vec::new();
        let mut before: Vec<Steps> = Vec::new();
        for (step, (of, operator)) in sequence.operators().iter().zip(&operators).enumerate() {
            let direct =
                of.after.iter().copied().chain(operator.inputs.iter().filter_map(producer));
            let direct: Vec<usize> = direct.collect();
            needs.push(direct.iter().fold(0, |all, &first| all | 1 << first));
            let in_stream =
                (0..step).filter(|&first| sequence.operators()[first].stream == of.stream);
            let all = direct.iter().copied().chain(in_stream);
            let all = all.fold(0, |all, first| all | 1 << first | before[first]);
            before.push(all);
        }
        let stream = |step: usize| sequence.operators()[step].stream;
        let first_on = |step| (0..=step).find(|&first| stream(first) == stream(step)).unwrap();
        let several = sequence.streams() > 1;
        let first_on = (0..operators.len()).filter(|_| several).map(first_on).collect();
        let mut model = Self {
            kept: vec![0; tensors.len()],
            named: sequence.tensors().len(),
            first: 0,
            first_on,
            tensors,
            operators,
            outputs: index(sequence.outputs()),
            alignment: setting.alignment as i64,
            needs,
            before,
            unit: 0,
        };
        model.unit = model.common_unit();
        model
    }

    /// The greatest common divisor of all sizes and distances.
    fn common_unit(&self) -> i64 {
        let mut unit = 0;
        let mut add = |mut bytes: i64| {
            while bytes != 0 {
                (unit, bytes) = (bytes, unit % bytes);
            }
        };
        for tensor in &self.tensors {
            add(tensor.size);
            match &tensor.dependency {
                Dependency::Reads { offset, .. } => add(*offset as i64),
                Dependency::Overwrites(all) => {
                    for one in all {
                        add(one.offset as i64);
                        add(one.below as i64);
                    }
                }
                Dependency::Gathers(all) => {
                    for one in all {
                        add(one.offset as i64);
                    }
                }
                _ => {}
            }
        }
        unit.max(1)
    }

    /// The distance between places that need to be tried.
    pub const fn grid(&self) -> i64 {
        if self.unit % self.alignment == 0 { self.unit } else { self.alignment }
    }

    /// The bit that stands for the end.
    pub fn end(&self) -> Steps {
        1 << self.operators.len()
    }

    /// The steps that make or read a tensor, and the end if it is a graph output. An operator whose outputs are all
    /// views reads no byte that they do not show; `is_view` returns whether a tensor is one.
    pub fn uses(&self, tensor: usize, is_view: impl Fn(usize) -> bool) -> Steps {
        let made = self.tensors[tensor].step.map_or(0, |step| 1 << step);
        let mut uses = made | self.kept[tensor];
        for (step, operator) in self.operators.iter().enumerate() {
            let outputs = || operator.outputs.iter().copied();
            let is_shown = outputs().all(&is_view) && outputs().any(|one| self.shows(one, tensor));
            if operator.inputs.contains(&tensor) && !is_shown {
                uses |= 1 << step;
            }
        }
        if self.outputs.contains(&tensor) {
            uses |= self.end();
        }
        uses
    }

    /// The uses of bytes of a tensor: these, or if there are none, the operator that runs first, because what is
    /// supplied is there in the beginning. On several streams, that is the first one on the stream of an operator that
    /// has the tensor as an input.
    pub fn or_first(&self, uses: Steps, tensor: usize) -> Steps {
        let all = self.uses(tensor, |_| false);
        match uses {
            0 if all != 0 && !self.first_on.is_empty() => {
                1 << self.first_on[all.trailing_zeros() as usize]
            }
            0 => 1 << self.first,
            uses => uses,
        }
    }

    /// Returns whether a tensor may be a view of another one.
    fn shows(&self, tensor: usize, other: usize) -> bool {
        let dependency = &self.tensors[tensor].dependency;
        matches!(dependency, Dependency::Reads { input, .. } if input.index() == other)
    }

    /// Returns whether a tensor may be a view.
    pub fn may_be_view(&self, tensor: usize) -> bool {
        matches!(self.tensors[tensor].dependency, Dependency::Reads { .. })
    }

    /// Returns whether all of these steps are over before a tensor is written.
    pub fn are_over(&self, uses: Steps, writer: Option<usize>) -> bool {
        writer.is_some_and(|step| uses & !self.before[step] == 0)
    }

    pub fn round_up(&self, bytes: i64) -> i64 {
        (bytes + self.alignment - 1) / self.alignment * self.alignment
    }
}
