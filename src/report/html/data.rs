//! The data that the page's scripts read. Tables are stored by column, which keeps the page of
//! 20 000 chunks below 3 MB.

use std::{borrow::Cow, collections::HashMap};

use serde::Serialize;

use crate::{
    Bytes, OpSequence, Plan, PlannedChunk, PlannedLink, Problem, Step, Strategy,
    baselines::pushdown::{Action, Event, Holder, events},
    plan::{PlannedPool, TensorPlace},
    problem::ChunkId,
    report::{
        MapSheet,
        alive::{Peak, live_bytes},
        bound_name, by_pool,
        html::tables::{Parts, TimeBuckets},
        printable,
        profile::views,
        scoped,
        times::Times,
    },
    sequence::{Origin, TensorId, TensorType},
};

#[derive(Serialize)]
pub(super) struct Page<'a> {
    pub(super) title: Cow<'a, str>,
    pub(super) sheets: Vec<Sheet<'a>>,
}

/// Plans of the same chunks. Lists without a comment have an entry per chunk; names are printable.
#[derive(Serialize)]
pub(super) struct Sheet<'a> {
    label: Cow<'a, str>,
    /// The unit of time: a step, or a sum of clocks if there are several streams.
    unit: &'static str,
    steps: Step,
    padding: Bytes,
    peak_step: Step,
    operators: Operators<'a>,
    names: Vec<Cow<'a, str>>,
    sizes: Vec<Bytes>,
    begins: Vec<Step>,
    ends: Vec<Step>,
    supplied: Supplied,
    links: Links,
    windows: TimeBuckets,
    boxes: TimeBuckets,
    parts: Parts,
    pinned: &'a [usize],
    views: Views<'a>,
    types: Types<'a>,
    /// Empty if the plans have pools, each with its own.
    live: Live,
    /// The plans to choose from.
    plans: Vec<PagePlan<'a>>,
    simulation: Simulation,
}

/// The operator of each step; empty if the operators are unknown.
#[derive(Default, Serialize)]
struct Operators<'a> {
    name: Vec<Cow<'a, str>>,
    /// An index into the kinds.
    kind: Vec<usize>,
    /// The tensors that it reads. Chunks are numbered first, then views, then tensors outside the pool.
    inputs: Vec<Vec<usize>>,
    /// The kinds, each once.
    kinds: Vec<Cow<'a, str>>,
    /// The names of the tensors outside the pool that operators read.
    outside: Vec<Cow<'a, str>>,
}

/// The chunks that no operator made, with a description such as `a weight`.
#[derive(Default, Serialize)]
struct Supplied {
    chunk: Vec<usize>,
    kind: Vec<&'static str>,
}

/// The overwrite links.
#[derive(Default, Serialize)]
struct Links {
    overwriter: Vec<usize>,
    overwritten: Vec<usize>,
    /// The place in the overwritten chunk, in bytes from its start; or below its start.
    offset: Vec<Bytes>,
    below: Vec<Bytes>,
}

/// The views, by chunk.
#[derive(Default, Serialize)]
struct Views<'a> {
    chunk: Vec<usize>,
    name: Vec<Cow<'a, str>>,
    /// The place in the chunk, in bytes from its start.
    offset: Vec<Bytes>,
    size: Vec<Bytes>,
    begin: Vec<Step>,
}

/// The element types and shapes of the chunks, then of the views; empty if none is known.
#[derive(Default, Serialize)]
struct Types<'a> {
    /// An index into the types.
    of: Vec<Option<usize>>,
    /// The element types and shapes that occur together, each pair once.
    dtypes: Vec<Cow<'a, str>>,
    shapes: Vec<&'a [u64]>,
}

/// The live bytes from each step on at which they change.
#[derive(Default, Serialize)]
struct Live {
    /// Each step as the difference to the one before, because small numbers make a small page.
    step: Vec<Step>,
    bytes: Vec<Bytes>,
}

#[derive(Serialize)]
struct PagePlan<'a> {
    strategy: &'a str,
    winner: Option<&'a str>,
    pool: Bytes,
    bound: Bytes,
    /// The name of the bound, and of the line at it.
    bound_name: &'static str,
    bound_line: &'static str,
    naive: Bytes,
    /// The plans that are proven not to be smaller; empty if nothing is proven.
    proof: &'static str,
    offsets: Vec<Bytes>,
    /// Empty if the problem is unconstrained.
    pools: Vec<PagePool<'a>>,
    /// The pool of each chunk; empty if there is one.
    pool_of: Vec<usize>,
    /// The shared object of each chunk; empty if the strategy made none.
    objects: Vec<Option<usize>>,
}

/// A pool of a plan.
#[derive(Serialize)]
struct PagePool<'a> {
    name: Cow<'a, str>,
    size: Bytes,
    capacity: Option<Bytes>,
    bound: Bytes,
    bound_line: &'static str,
    peak_step: Step,
    /// Half-open ranges.
    reserved: Vec<[Bytes; 2]>,
    live: Live,
}

/// The simulation of *pushdown*; empty if the plans are not of the problem's chunks.
#[derive(Default, Serialize)]
struct Simulation {
    /// The names of the actions that events refer to.
    actions: Vec<&'static str>,
    events: Events,
    blocks: Blocks,
}

/// The events in order. Each happens at an end of its chunk's lifetime: a free at the end, all others
/// at the beginning.
#[derive(Default, Serialize)]
struct Events {
    /// An index into the names of the actions.
    action: Vec<usize>,
    chunk: Vec<u32>,
    /// The nearest used chunk below, as its difference to the event's chunk.
    below: Vec<Option<i64>>,
    /// The nearest used chunk above, as its difference to the event's chunk.
    above: Vec<Option<i64>>,
    /// The number of blocks between these two after the event.
    blocks: Vec<usize>,
}

/// The blocks of all events, one event after another. A used block holds the event's own chunk.
#[derive(Default, Serialize)]
struct Blocks {
    /// 0 if the block is used; it has the size of its chunk then.
    size: Vec<Bytes>,
    /// 0 if the block is used.
    stamp: Vec<Step>,
    /// 0 if the block is used.
    age: Vec<u64>,
}

impl<'a> Sheet<'a> {
    /// Collects the data of plans of the same chunks as `first`.
    pub(super) fn new(sheet: &MapSheet<'a>, first: &'a Plan) -> Self {
        let MapSheet { label, plans, steps, problem } = *sheet;
        let chunks = &first.chunks;
        Self {
            label: printable(label),
            unit: Times::of(first, steps).unit,
            steps: first.steps,
            padding: first.padding,
            peak_step: Peak::of(first).step,
            operators: Operators::of(first, steps),
            names: chunks.iter().map(|chunk| printable(&chunk.name)).collect(),
            sizes: chunks.iter().map(|chunk| chunk.size).collect(),
            begins: chunks.iter().map(|chunk| chunk.begin).collect(),
            ends: chunks.iter().map(|chunk| chunk.end).collect(),
            supplied: Supplied::of(chunks, steps),
            links: Links::of(chunks),
            windows: TimeBuckets::of_windows(first),
            boxes: TimeBuckets::of_pieces(first),
            parts: Parts::of(first),
            pinned: &first.pinned,
            views: Views::of(first, steps),
            types: Types::of(first, steps),
            live: if first.pools.is_empty() { Live::of(first) } else { Live::default() },
            plans: plans.iter().map(PagePlan::of).collect(),
            simulation: problem
                .filter(|problem| is_of(first, problem))
                .map(Simulation::of)
                .unwrap_or_default(),
        }
    }
}

impl<'a> Operators<'a> {
    fn of(plan: &'a Plan, steps: Option<&'a OpSequence>) -> Self {
        let Some(sequence) = steps else { return Self::default() };
        let views = views(plan, steps).into_iter().flatten().map(|view| view.name);
        let mut numbers: HashMap<&str, usize> = views.zip(plan.chunks.len()..).collect();
        let behind = plan.chunks.len() + numbers.len();
        for tensor in &plan.tensors {
            if let TensorPlace::Pool { chunk, .. } = tensor.place {
                numbers.entry(&tensor.name).or_insert(chunk);
            }
        }
        let mut kinds: HashMap<&str, usize> = HashMap::new();
        let mut table = Self::default();
        for (step, operator) in sequence.operators().iter().enumerate() {
            table.name.push(printable(&sequence.operator_name(step)).into_owned().into());
            let kind = *kinds.entry(&operator.kind).or_insert_with(|| {
                table.kinds.push(printable(&operator.kind));
                table.kinds.len() - 1
            });
            table.kind.push(kind);
            let outside = &mut table.outside;
            let mut number = |name: &'a str| {
                *numbers.entry(name).or_insert_with(|| {
                    outside.push(printable(name));
                    behind + outside.len() - 1
                })
            };
            let inputs = operator.inputs.iter();
            table.inputs.push(inputs.map(|&id| number(&sequence.tensor(id).name)).collect());
        }
        table
    }
}

impl Supplied {
    /// Finds the graph inputs and weights in the pool.
    fn of(chunks: &[PlannedChunk], steps: Option<&OpSequence>) -> Self {
        let tensors = steps.into_iter().flat_map(OpSequence::tensors);
        let kinds: HashMap<&str, &'static str> = tensors
            .filter_map(|tensor| match tensor.origin {
                Origin::Input => Some((&*tensor.name, "a graph input")),
                Origin::Weight => Some((&*tensor.name, "a weight")),
                Origin::Output { .. } => None,
            })
            .collect();
        let mut supplied = Self::default();
        for (at, chunk) in chunks.iter().enumerate() {
            if let Some(kind) = kinds.get(&*chunk.name) {
                supplied.chunk.push(at);
                supplied.kind.push(kind);
            }
        }
        supplied
    }
}

impl Links {
    fn of(chunks: &[PlannedChunk]) -> Self {
        let mut links = Self::default();
        for (at, chunk) in chunks.iter().enumerate() {
            if let Some(PlannedLink { chunk: overwritten, offset, below, .. }) = chunk.overwrites {
                links.overwriter.push(at);
                links.overwritten.push(overwritten);
                links.offset.push(offset);
                links.below.push(below);
            }
        }
        links
    }
}

impl<'a> Views<'a> {
    fn of(plan: &'a Plan, steps: Option<&OpSequence>) -> Self {
        let mut table = Self::default();
        for (at, views) in views(plan, steps).into_iter().enumerate() {
            for view in views {
                table.chunk.push(at);
                table.name.push(printable(view.name));
                table.offset.push(view.offset.saturating_sub(plan.chunks[at].offset));
                table.size.push(view.size);
                table.begin.push(view.begin);
            }
        }
        table
    }
}

impl<'a> Types<'a> {
    fn of(plan: &Plan, steps: Option<&'a OpSequence>) -> Self {
        let mut table = Self::default();
        let Some(sequence) = steps else { return table };
        let mut numbers: HashMap<&TensorType, usize> = HashMap::new();
        let chunks = plan.chunks.iter().map(|chunk| &*chunk.name);
        let views = views(plan, steps).into_iter().flatten().map(|view| view.name);
        let tensors = chunks.chain(views).map(|name| sequence.tensor_id(name));
        let number = |tensor: Option<TensorId>| {
            let of = sequence.tensor(tensor?).elements.as_ref()?;
            Some(*numbers.entry(of).or_insert_with(|| {
                table.dtypes.push(printable(&of.dtype));
                table.shapes.push(&of.shape);
                table.dtypes.len() - 1
            }))
        };
        table.of = tensors.map(number).collect();
        if table.dtypes.is_empty() {
            table.of.clear();
        }
        table
    }
}

impl Live {
    fn of(plan: &Plan) -> Self {
        let (mut step, bytes): (Vec<Step>, _) = live_bytes(plan).into_iter().unzip();
        for at in (1..step.len()).rev() {
            step[at] -= step[at - 1];
        }
        Self { step, bytes }
    }
}

impl<'a> PagePlan<'a> {
    fn of(plan: &'a Plan) -> Self {
        Self {
            strategy: plan.strategy_name(),
            winner: plan.winner.map(Strategy::name),
            pool: plan.pool_size,
            bound: plan.lower_bound,
            bound_name: bound_name(plan),
            bound_line: bound_name(plan),
            naive: plan.unshared_size(),
            proof: if plan.proven_optimal { scoped(plan) } else { "" },
            offsets: plan.chunks.iter().map(|chunk| chunk.offset).collect(),
            pools: plan.pools.iter().zip(by_pool(plan)).map(PagePool::of).collect(),
            pool_of: match plan.pools.len() {
                0 | 1 => Vec::new(),
                _ => plan.chunks.iter().map(|chunk| chunk.pool).collect(),
            },
            objects: match plan.objects.as_slice() {
                [] => Vec::new(),
                _ => plan.chunks.iter().map(|chunk| chunk.object).collect(),
            },
        }
    }
}

impl<'a> PagePool<'a> {
    /// Collects the data of a pool from the plan of its chunks.
    fn of((pool, own): (&'a PlannedPool, Plan)) -> Self {
        Self {
            name: printable(&pool.name),
            size: pool.size,
            capacity: pool.capacity,
            bound: own.lower_bound,
            bound_line: bound_name(&own),
            peak_step: Peak::of(&own).step,
            reserved: own.reserved(0).map(|bytes| [bytes.start, bytes.end]).collect(),
            live: Live::of(&own),
        }
    }
}

impl Simulation {
    fn of(problem: &Problem) -> Self {
        let mut simulation = Self::default();
        for event in events(problem) {
            let action = simulation.action(event.action);
            simulation.events.push(&event, action);
            for block in &event.blocks {
                let (size, stamp, age) = match block.holder {
                    Holder::Chunk(_) => (0, 0, 0),
                    Holder::Free { stamp, age } => (block.size, stamp, age),
                };
                let blocks = &mut simulation.blocks;
                blocks.size.push(size);
                blocks.stamp.push(stamp);
                blocks.age.push(age);
            }
        }
        simulation
    }

    /// Returns the index of an action's name.
    fn action(&mut self, action: Action) -> usize {
        let known = self.actions.iter().position(|name| *name == action.name());
        known.unwrap_or_else(|| {
            self.actions.push(action.name());
            self.actions.len() - 1
        })
    }
}

impl Events {
    fn push(&mut self, event: &Event, action: usize) {
        let relative = |chunk: ChunkId| i64::from(chunk.0) - i64::from(event.chunk.0);
        self.action.push(action);
        self.chunk.push(event.chunk.0);
        self.below.push(event.below.map(relative));
        self.above.push(event.above.map(relative));
        self.blocks.push(event.blocks.len());
    }
}

/// Returns whether a plan has exactly the problem's chunks and links.
fn is_of(plan: &Plan, problem: &Problem) -> bool {
    plan.pools.is_empty()
        && plan.chunks.len() == problem.len()
        && plan.chunks.iter().zip(problem.chunks()).zip(problem.ids()).all(|((a, b), id)| {
            let link = problem.link(id).map(PlannedLink::of);
            (a.begin, a.end, a.size, a.overwrites) == (b.begin, b.end, b.size, link)
        })
}
