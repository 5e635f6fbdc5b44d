//! The memory of one step as slices of the pool, for an executor that runs it.

use std::{mem, ops::Range};

use crate::{
    Bytes, PlanError,
    plan::placement::{Placement, RuntimePlace},
    sequence::{Dependency, Gather, Origin, TensorId},
};

/// The memory of one step, in the order of its operator's inputs and outputs.
#[derive(Debug)]
#[non_exhaustive]
pub struct StepMemory<'p, T> {
    /// The inputs that the operator reads. If it only makes views, bytes that these do not show may be gone.
    pub inputs: Vec<InputMemory<'p, T>>,
    /// The outputs that it writes.
    pub outputs: Vec<OutputMemory<'p, T>>,
    /// Its scratch memory; empty if it needs none.
    pub workspace: &'p mut [T],
}

/// The memory of an input. No variant will be added, because an executor must handle every case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputMemory<'p, T> {
    /// In the pool, apart from everything that the operator writes.
    Slice(&'p [T]),
    /// In the memory of an output that is written over it, at these elements of that memory.
    InOutput {
        /// The index of the output in the list of outputs.
        output: usize,
        /// The elements.
        range: Range<usize>,
    },
    /// Outside the pool, in the memory of a supplied tensor.
    Supplied {
        /// The input or weight.
        tensor: TensorId,
        /// The offset in bytes from its start.
        offset: Bytes,
    },
}

/// The memory of an output. No variant will be added, because an executor must handle every case.
#[derive(Debug, PartialEq, Eq)]
pub enum OutputMemory<'p, T> {
    /// Memory that no input shares.
    Fresh(&'p mut [T]),
    /// Memory that holds inputs when the step begins, each of which refers to [this
    /// output](InputMemory::InOutput), and the output when the step ends. A concatenation that
    /// [gathers](crate::Output::gathers) inputs may find some of them at their places already; then
    /// only the others are to be copied.
    InPlace {
        /// The memory of the inputs and the output.
        memory: &'p mut [T],
        /// The elements of the output.
        range: Range<usize>,
    },
    /// In the memory of another output, at these elements of it: both are written over parts of one input, or hold
    /// it.
    InOutput {
        /// The index of the other output in the list of outputs.
        output: usize,
        /// The elements.
        range: Range<usize>,
    },
    /// Nothing to write. The output is a view, which shows bytes of an input or none, or a concatenation whose inputs
    /// all lie inside it already.
    View,
    /// Outside the pool, in the memory of a supplied tensor that it updates or is a view of.
    Supplied {
        /// The input or weight.
        tensor: TensorId,
        /// The offset in bytes from its start.
        offset: Bytes,
    },
}

/// Elements of the pool that a step may write.
struct Region {
    /// The elements of the output and of the inputs that it is written over.
    range: Range<usize>,
    /// The elements of the output or workspace alone.
    written: Range<usize>,
    /// The index in the list of outputs; `None` for the workspace.
    output: Option<usize>,
    /// Further outputs in this range, each with its elements.
    beside: Vec<(usize, Range<usize>)>,
}

impl Region {
    const fn new(written: Range<usize>, output: Option<usize>) -> Self {
        let range = written.start..written.end;
        Self { range, written, output, beside: Vec::new() }
    }
}

impl Placement<'_> {
    /// The memory of one step: slices of the pool for its inputs, its outputs and its workspace.
    /// The pool may consist of any elements, such as `f32`, if all offsets and sizes are multiples
    /// of their size. Offsets count from the start of the pool, so the caller must align the pool
    /// itself.
    ///
    /// An output that is written over inputs gets one slice with them, since no two can borrow the
    /// same bytes; if several outputs are written over one input, one of them gets it, and the others are [in
    /// it](OutputMemory::InOutput). A concatenation gets one slice with the inputs that lie inside it, or nothing to
    /// write if all of them do.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, OutputMemory, Planner};
    ///
    /// let sequence = OpSequence::builder()
    ///     .operator(Operator::new("conv").output(Output::new("a", 8)))
    ///     .operator(Operator::new("relu").inputs(["a"]).output(Output::new("b", 8).overwrites("a")))
    ///     .output("b")
    ///     .build()?;
    /// let plan = Planner::new().plan(&sequence)?;
    /// let placement = plan.placement(&sequence)?;
    /// let mut pool = [-1.0_f32; 2];
    /// let mut relu = placement.memory(1, &mut pool)?;
    /// let OutputMemory::InPlace { memory, .. } = &mut relu.outputs[0] else { panic!() };
    /// memory.iter_mut().for_each(|x| *x = x.max(0.0));
    /// assert_eq!(pool, [0.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the pool is smaller than planned, a tensor does not consist of whole elements, or the
    /// operator writes to the bytes of an input that it may not overwrite, or to the same bytes twice.
    ///
    /// # Panics
    ///
    /// If the sequence has no such step.
    pub fn memory<'p, T>(
        &self,
        step: usize,
        pool: &'p mut [T],
    ) -> Result<StepMemory<'p, T>, PlanError> {
        let found = mem::size_of_val(pool) as Bytes;
        if found < self.pool_size {
            return Err(PlanError::PoolTooSmall { pool_size: self.pool_size, found });
        }
        let operator = &self.sequence.operators()[step];
        let inputs: Vec<Option<Range<usize>>> = operator
            .inputs
            .iter()
            .map(|&input| self.in_elements::<T>(input))
            .collect::<Result<_, _>>()?;
        let mut regions = self.regions::<T>(step)?;
        for region in &mut regions {
            self.take_inputs(step, &inputs, region)?;
        }
        let regions = self.merged(step, regions)?;
        let split = Split::of(pool, &regions);
        let inputs = operator.inputs.iter().zip(inputs).map(|(&input, range)| match range {
            Some(range) => split.input(&regions, range),
            None => match *self.tensor(input) {
                RuntimePlace::Supplied { tensor, offset } => {
                    InputMemory::Supplied { tensor, offset }
                }
                RuntimePlace::Pool(_) | RuntimePlace::Nowhere => InputMemory::Slice(&[]),
            },
        });
        let inputs: Vec<InputMemory<'p, T>> = inputs.collect();
        let mut outputs: Vec<OutputMemory<'p, T>> = operator
            .outputs
            .iter()
            .map(|&output| match *self.tensor(output) {
                RuntimePlace::Supplied { tensor, offset } => {
                    OutputMemory::Supplied { tensor, offset }
                }
                RuntimePlace::Nowhere if self.sequence.tensor(output).viewed().is_none() => {
                    OutputMemory::Fresh(&mut [])
                }
                // Outputs that are written follow below.
                RuntimePlace::Pool(_) | RuntimePlace::Nowhere => OutputMemory::View,
            })
            .collect();
        let mut workspace: &mut [T] = &mut [];
        for (region, memory) in regions.iter().zip(split.written) {
            let Region { range, written, output, beside } = region;
            let of_range = |part: &Range<usize>| part.start - range.start..part.end - range.start;
            match *output {
                None => workspace = memory,
                Some(output) if range == written && beside.is_empty() => {
                    outputs[output] = OutputMemory::Fresh(memory);
                }
                Some(output) => {
                    outputs[output] = OutputMemory::InPlace { memory, range: of_range(written) };
                    for (other, written) in beside {
                        let range = of_range(written);
                        outputs[*other] = OutputMemory::InOutput { output, range };
                    }
                }
            }
        }
        for input in &inputs {
            // An output written over a whole input has the same elements.
            if let InputMemory::InOutput { output, .. } = input
                && let OutputMemory::Fresh(memory) = &mut outputs[*output]
            {
                let memory = mem::take(memory);
                let range = 0..memory.len();
                outputs[*output] = OutputMemory::InPlace { memory, range };
            }
        }
        Ok(StepMemory { inputs, outputs, workspace })
    }

    /// Finds the elements that the operator of a step writes, without the inputs that are written
    /// over.
    fn regions<T>(&self, step: usize) -> Result<Vec<Region>, PlanError> {
        let mut regions = Vec::new();
        for (at, &output) in self.sequence.operators()[step].outputs.iter().enumerate() {
            if let Some(written) = self.in_elements::<T>(output)?
                && !self.is_view(output)
                && self.gathered(output) < self.size(output)
            {
                regions.push(Region::new(written, Some(at)));
            }
        }
        if let Some(bytes) = self.workspace(step) {
            let name = || format!("the workspace of {}", self.sequence.operator_name(step));
            regions.push(Region::new(elements::<T>(&bytes, name)?, None));
        }
        Ok(regions)
    }

    /// Merges regions of outputs that are written over parts of one input or hold it, and sorts all by their ranges.
    fn merged(&self, step: usize, mut regions: Vec<Region>) -> Result<Vec<Region>, PlanError> {
        regions.sort_unstable_by_key(|region| (region.range.start, region.output));
        let outputs = &self.sequence.operators()[step].outputs;
        let mut merged: Vec<Region> = Vec::new();
        for region in regions {
            let Some(last) = merged.last_mut().filter(|last| last.range.end > region.range.start)
            else {
                merged.push(region);
                continue;
            };
            let holds = |output: usize| self.gathered(outputs[output]) > 0;
            let is_apart = |(other, written): (usize, &Range<usize>)| {
                let is_shared = overlaps(written, &region.written);
                !is_shared || holds(other) && region.output.is_some_and(holds)
            };
            let others = || last.beside.iter().map(|(output, written)| (*output, written));
            match (last.output, region.output) {
                (Some(first), Some(output))
                    if others().chain([(first, &last.written)]).all(is_apart) =>
                {
                    last.range.end = last.range.end.max(region.range.end);
                    last.beside.push((output, region.written));
                }
                _ => {
                    return Err(PlanError::SharedBytes {
                        operator: self.sequence.operator_name(step),
                        written: self.written(step, last),
                        other: self.written(step, &region),
                    });
                }
            }
        }
        Ok(merged)
    }

    /// The elements of a tensor with bytes in the pool.
    fn in_elements<T>(&self, id: TensorId) -> Result<Option<Range<usize>>, PlanError> {
        match self.tensor(id) {
            RuntimePlace::Pool(bytes) if bytes.is_empty() => Ok(None),
            RuntimePlace::Pool(bytes) => {
                elements::<T>(bytes, || self.sequence.tensor(id).name.to_string()).map(Some)
            }
            RuntimePlace::Supplied { .. } | RuntimePlace::Nowhere => Ok(None),
        }
    }

    /// Returns whether an output is a view that lies where its input does.
    fn is_view(&self, output: TensorId) -> bool {
        let Some((input, offset)) = self.sequence.tensor(output).viewed() else { return false };
        match (self.tensor(input), self.tensor(output)) {
            (RuntimePlace::Pool(input), RuntimePlace::Pool(output)) => {
                input.start.checked_add(offset) == Some(output.start)
            }
            _ => false,
        }
    }

    /// The bytes of an output that it gathers from inputs and that lie at their places in it already.
    fn gathered(&self, output: TensorId) -> Bytes {
        let Origin::Output { dependency: Dependency::Gathers(gathers), .. } =
            &self.sequence.tensor(output).origin
        else {
            return 0;
        };
        let at_its_place =
            |gather: &&Gather<TensorId>| match (self.tensor(output), self.tensor(gather.input)) {
                (RuntimePlace::Pool(output), RuntimePlace::Pool(input)) => {
                    output.start.checked_add(gather.offset) == Some(input.start)
                }
                _ => false,
            };
        // Gathered inputs share no bytes of the output.
        gathers.iter().filter(at_its_place).map(|gather| self.size(gather.input)).sum()
    }

    /// The size of a tensor in the pool, in bytes.
    fn size(&self, id: TensorId) -> Bytes {
        match self.tensor(id) {
            RuntimePlace::Pool(bytes) => bytes.end - bytes.start,
            RuntimePlace::Supplied { .. } | RuntimePlace::Nowhere => 0,
        }
    }

    /// Returns whether an output lies where it may be written over an input, or holds inputs that it gathers.
    fn is_in_place(&self, output: TensorId) -> bool {
        if self.gathered(output) > 0 {
            return true;
        }
        let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
            &self.sequence.tensor(output).origin
        else {
            return false;
        };
        overwrites.iter().any(|overwrite| {
            match (self.tensor(overwrite.input), self.tensor(output)) {
                (RuntimePlace::Pool(input), RuntimePlace::Pool(output)) => {
                    let over = input.start.checked_add(overwrite.offset);
                    over.is_some() && output.start.checked_add(overwrite.below) == over
                }
                _ => false,
            }
        })
    }

    /// Extends a region by the inputs that share bytes with it, if its output may be written over
    /// one or holds one.
    fn take_inputs(
        &self,
        step: usize,
        inputs: &[Option<Range<usize>>],
        region: &mut Region,
    ) -> Result<(), PlanError> {
        let operator = &self.sequence.operators()[step];
        let touched = |range: &Range<usize>| {
            inputs.iter().position(|i| i.as_ref().is_some_and(|input| overlaps(input, range)))
        };
        let Some(first) = touched(&region.written) else { return Ok(()) };
        let output = region.output.map(|output| operator.outputs[output]);
        let allowed = output.is_some_and(|output| self.is_in_place(output));
        if !allowed {
            return Err(PlanError::SharedBytes {
                operator: self.sequence.operator_name(step),
                written: self.written(step, region),
                other: self.sequence.tensor(operator.inputs[first]).name.to_string(),
            });
        }
        // Each added input may touch another.
        loop {
            let before = region.range.clone();
            for input in inputs.iter().flatten().filter(|input| overlaps(input, &before)) {
                region.range.start = region.range.start.min(input.start);
                region.range.end = region.range.end.max(input.end);
            }
            if region.range == before {
                return Ok(());
            }
        }
    }

    fn written(&self, step: usize, region: &Region) -> String {
        match region.output {
            Some(output) => {
                let output = self.sequence.operators()[step].outputs[output];
                self.sequence.tensor(output).name.to_string()
            }
            None => format!("the workspace of {}", self.sequence.operator_name(step)),
        }
    }
}

const fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn elements<T>(bytes: &Range<Bytes>, name: impl Fn() -> String) -> Result<Range<usize>, PlanError> {
    let element = size_of::<T>();
    let whole = |bytes: Bytes| {
        let bytes = usize::try_from(bytes).ok()?;
        bytes.checked_div(element).filter(|_| bytes.is_multiple_of(element))
    };
    match (whole(bytes.start), whole(bytes.end)) {
        (Some(start), Some(end)) => Ok(start..end),
        _ => Err(PlanError::Elements { name: name(), element }),
    }
}

/// The pool, cut at the regions.
struct Split<'p, T> {
    /// The parts that are not written, each with the index of its first element.
    read: Vec<(usize, &'p [T])>,
    /// The regions.
    written: Vec<&'p mut [T]>,
}

impl<'p, T> Split<'p, T> {
    /// Splits the pool at the regions, which are sorted and do not overlap.
    fn of(pool: &'p mut [T], regions: &[Region]) -> Self {
        let (mut read, mut written) = (Vec::new(), Vec::new());
        let (mut rest, mut at) = (pool, 0);
        for Region { range, .. } in regions {
            let (before, from) = rest.split_at_mut(range.start - at);
            let (own, behind) = from.split_at_mut(range.len());
            read.push((at, &*before));
            written.push(own);
            (rest, at) = (behind, range.end);
        }
        read.push((at, &*rest));
        Self { read, written }
    }

    fn input(&self, regions: &[Region], range: Range<usize>) -> InputMemory<'p, T> {
        let at = regions.partition_point(|region| region.range.end <= range.start);
        match regions.get(at) {
            Some(Region { range: region, output: Some(output), .. })
                if region.start <= range.start =>
            {
                let range = range.start - region.start..range.end - region.start;
                InputMemory::InOutput { output: *output, range }
            }
            _ => {
                let (start, slice) = self.read[at];
                InputMemory::Slice(&slice[range.start - start..range.end - start])
            }
        }
    }
}
