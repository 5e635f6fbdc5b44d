//! The entry point of the crate: a [`Planner`] takes a sequence or a [`Problem`], lays it out with a [`Strategy`], and
//! returns a plan.

mod bodies;
mod cache;
mod choices;
mod compare;
mod fit;
mod memories;
mod passes;
mod recomputed;
mod reordered;
mod replanned;
mod run;
mod stored;
mod traffic_baseline;

use std::{
    iter,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use tracing::{debug, info};

pub use crate::search::Conflict;
pub use cache::PlanCache;
pub use compare::{Comparison, Measurement};
pub use replanned::Replanned;
pub(crate) use traffic_baseline::TrafficReference;

use crate::{
    Bytes, InputRef, Limits, Observer, OpSequence, Plan, PlanError, PlannedChunk, Problem,
    ProblemError, Progress, SequenceError, Strategy,
    lower::{self, Grain, Lowered, LoweringOptions, Placing, lower_apart},
    plan::{Layout, PlannedBody, PlannedCopy, Scope},
    planner::{
        bodies::Flattened,
        choices::{Choices, Source},
        memories::{Memories, Pin},
        passes::in_passes,
    },
    problem::constraints::Pool,
};

/// Plans with a set of options. Each has a default; a planner has no state and can be reused.
///
/// ```
/// use memplan::{Planner, Problem};
///
/// let mut problem = Problem::builder();
/// problem.chunk(0..2, 10);
/// problem.chunk(1..3, 20);
/// problem.chunk(2..4, 10);
/// let plan = Planner::new().plan(&problem.build()?)?;
/// assert_eq!(plan.pool_size(), 30);
/// # Ok::<(), memplan::PlanError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Planner<'a> {
    strategy: Strategy,
    alignment: Option<Bytes>,
    padding: Option<Bytes>,
    lowering: LoweringOptions,
    memories: Memories,
    limits: Limits,
    observer: Observer<'a>,
}

/// The largest number of overlap limits that are tried.
const MAX_LIMITS: usize = 16;

/// The default effort of `best`, in nodes, for a plan with gathered inputs inside their outputs. If such a
/// plan does not meet the lower bound, the plan with all copies is often smaller and always found sooner.
const GATHERED_NODES: u64 = 20_000;

/// An input that is ready to be laid out.
#[derive(Clone)]
struct Prepared<'a> {
    lowered: Lowered,
    /// The same problem with inputs inside the outputs that gather them, if there are any.
    gathered: Option<Lowered>,
    /// True if some gathered input does not lie inside its output. Requiring all of them may still be possible, and
    /// better.
    is_partial: bool,
    bodies: Vec<PlannedBody>,
    /// The planner, with its time limit reduced by the time that planning the bodies and lowering took.
    planner: Planner<'a>,
}

impl Prepared<'_> {
    fn plan(&self, input: InputRef<'_>, lowered: &Lowered, layout: &Layout) -> Plan {
        let Planner { strategy, lowering, .. } = self.planner;
        let plan = Plan::new(input, lowered, strategy, layout);
        let scope = Scope::of(input, lowering).with_bodies(&self.bodies);
        // Other strategies put inputs where an output gathers them.
        let copies_all = lowering.gathers && !strategy.supports_parts();
        let is_least = !copies_all || !input.has_gathers();
        let proven_optimal = plan.proven_optimal && is_least;
        let of_views = lowered.copied.iter();
        let copies = of_views.filter_map(|&tie| PlannedCopy::of(input.sequence()?, tie)).collect();
        let plan = plan.with_copies(copies, 0);
        Plan { bodies: self.bodies.clone(), proven_optimal, scope, ..plan }
    }

    /// Plans with gathered inputs inside their outputs. If that does not meet the lower bound, also plans
    /// with all copies, and returns the smaller plan.
    fn best(&self, input: InputRef<'_>) -> Result<Plan, PlanError> {
        let plan_of = |planner: &Planner<'_>, lowered: &Lowered| {
            let layout = planner.layout(&lowered.problem)?;
            Ok(self.plan(input, lowered, &layout))
        };
        let supports_parts = self.planner.strategy.supports_parts();
        let Some(gathered) = self.gathered.as_ref().filter(|_| supports_parts) else {
            return plan_of(&self.planner, &self.lowered);
        };
        let start = Instant::now();
        let bound = self.lower_bound();
        let inside = match plan_of(&self.of_gathered(), gathered) {
            Ok(plan) if plan.pools.len() == 1 && plan.pool_size == bound => return Ok(plan),
            inside => inside,
        };
        let apart = plan_of(&self.planner.after(start), &self.lowered);
        match (inside, apart) {
            (Ok(inside), Ok(apart)) if smaller(&apart, &inside) => Ok(apart),
            (Ok(inside), _) => Ok(inside),
            (Err(_), apart) => apart,
        }
    }

    /// A lower bound in bytes for plans with gathered inputs inside their outputs and for plans with all copies. With
    /// pins, either bound may be the larger one.
    fn lower_bound(&self) -> Bytes {
        let problems = iter::once(&self.lowered).chain(&self.gathered);
        problems.map(|lowered| lowered.problem.lower_bound()).min().unwrap_or(0)
    }

    /// The planner for gathered inputs inside their outputs.
    fn of_gathered(&self) -> Planner<'_> {
        let mut planner = self.planner.clone();
        if planner.strategy == Strategy::Best {
            let nodes = GATHERED_NODES.saturating_mul(planner.limits.times);
            planner.limits.nodes = planner.limits.nodes.or(Some(nodes));
        }
        planner
    }
}

/// The error, with the operator whose output must overwrite a tensor and cannot.
fn of_operator(input: InputRef<'_>, error: ProblemError) -> PlanError {
    let operator = |overwriter: &str| {
        let sequence = input.sequence()?;
        let producer = sequence.tensor(sequence.tensor_id(overwriter)?).producer();
        producer.map(|step| sequence.operator_name(step))
    };
    match &error {
        ProblemError::RequiredOverwrite { overwriter, overwritten, reason } => {
            let Some(operator) = operator(overwriter) else { return error.into() };
            let (output, input) = (overwriter.clone(), overwritten.clone());
            SequenceError::RequiredOverwrite { operator, output, input, reason: *reason }.into()
        }
        _ => error.into(),
    }
}

/// The better of two plans of the same input, with what both have proven.
fn better(
    plan: Result<Plan, PlanError>,
    other: Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    let (plan, other) = match (plan, other) {
        (Ok(plan), Ok(other)) if smaller(&other, &plan) => (other, plan),
        (Ok(plan), Ok(other)) => (plan, other),
        (Ok(plan), Err(_)) => return Ok(plan),
        (Err(_), other) => return other,
    };
    let is_bound = plan.pools.len() < 2 && plan.scope == other.scope;
    if !is_bound || other.lower_bound <= plan.lower_bound {
        return Ok(plan);
    }
    let lower_bound = other.lower_bound.min(plan.pool_size);
    let proven_optimal = plan.proven_optimal || plan.pool_size == lower_bound;
    Ok(Plan { lower_bound, proven_optimal, ..plan })
}

/// Returns whether a plan is better than another of the same input.
fn smaller(plan: &Plan, than: &Plan) -> bool {
    let sizes = |plan: &Plan| match &*plan.pools {
        [] => vec![plan.pool_size],
        pools => pools.iter().rev().map(|pool| pool.size).collect(),
    };
    (plan.traffic, sizes(plan)) < (than.traffic, sizes(than))
}

impl<'a> Planner<'a> {
    /// Creates a planner with the default options: the default [`Strategy`], the alignment and
    /// padding of the problem (1 and 0 for a sequence), and the default [`LoweringOptions`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans with this strategy.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Aligns the offsets of roots to a power of two in bytes.
    #[must_use]
    pub fn alignment(mut self, bytes: Bytes) -> Self {
        self.alignment = Some(bytes);
        self
    }

    /// Adds bytes behind every chunk, for kernels that read, but do not write, past the end of a tensor.
    #[must_use]
    pub fn padding(mut self, bytes: Bytes) -> Self {
        self.padding = Some(bytes);
        self
    }

    /// Lowers sequences with these options.
    #[must_use]
    pub fn lowering(mut self, options: LoweringOptions) -> Self {
        self.lowering = options;
        self
    }

    /// Places chunks in these memories, listed from the most preferred, usually the fastest. The first
    /// goal is the least cost of traffic, each byte counted at the cost of its pool. The second goal is
    /// the smallest pools, the last pool first. The traffic of an operator is the bytes of its inputs and
    /// outputs.
    ///
    /// ```
    /// use memplan::{Planner, networks, problem::Pool};
    ///
    /// let sram = Pool::new("sram").capacity(4 << 20).cost(1);
    /// let psram = Pool::new("psram").cost(20);
    /// let plan = Planner::new().pools([sram, psram]).plan(&networks::mobilenet_v2(1)?)?;
    /// assert!(plan.pools()[0].size <= 4 << 20 && plan.pools()[1].size > 0);
    /// let outside = plan.chunks().iter().filter(|chunk| chunk.pool == 1).count();
    /// assert!(outside < plan.chunks().len() / 10);
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    #[must_use]
    pub fn pools(mut self, pools: impl Into<Vec<Pool>>) -> Self {
        self.memories.pools = pools.into();
        self
    }

    /// Fixes the place of a tensor, or of a chunk of a problem: bytes from the start of a pool, by name.
    /// The name may be empty if there is one pool.
    #[must_use]
    pub fn pin(
        mut self,
        name: impl Into<Box<str>>,
        pool: impl Into<Box<str>>,
        offset: Bytes,
    ) -> Self {
        self.memories.pins.push(Pin { name: name.into(), pool: pool.into(), offset });
        self
    }

    /// Limits planning. The effort and the threads apply to the strategies that search, [`Strategy::Best`] and
    /// [`Strategy::Optimal`]. The time limit applies to all strategies: when it is over,
    /// [anytime strategies](Strategy::is_anytime) return their best plan so far, and the others fail with
    /// [`PlanError::OutOfTime`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Ends planning soon after the flag is set, with any strategy. [Anytime strategies](Strategy::is_anytime) then
    /// return their best plan so far; the others fail with [`PlanError::Cancelled`].
    ///
    /// ```
    /// use std::{sync::atomic::AtomicBool, time::Duration};
    ///
    /// use memplan::{Limits, Planner, Strategy, networks};
    ///
    /// // Another thread or a signal handler can set this flag.
    /// let cancel = AtomicBool::new(false);
    /// let progress = |progress: &_| println!("{progress:?}");
    /// let plan = Planner::new()
    ///     .strategy(Strategy::Optimal)
    ///     .limits(Limits::default().nodes(u64::MAX).time(Duration::from_secs(60)))
    ///     .cancel(&cancel)
    ///     .progress(&progress)
    ///     .plan(&networks::mobilenet_v2(1)?)?;
    /// assert!(plan.proven_optimal());
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    #[must_use]
    pub fn cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.observer.cancel = Some(cancel);
        self
    }

    /// Reports the progress of searches. The function is called every few hundred nodes, by the thread that plans.
    #[must_use]
    pub fn progress(mut self, progress: &'a (dyn Fn(&Progress) + Sync)) -> Self {
        self.observer.progress = Some(progress);
        self
    }

    /// Plans an operator sequence, or chunks with known lifetimes.
    ///
    /// # Errors
    ///
    /// If a sequence cannot be lowered, the alignment is not a power of two, the sum of sizes exceeds 64
    /// bits, the strategy does not support a feature of the problem, no plan fits the pools, or a strategy
    /// that is not [anytime](Strategy::is_anytime) was cancelled or out of time.
    pub fn plan<'i>(&self, input: impl Into<InputRef<'i>>) -> Result<Plan, PlanError> {
        let plan = self.plan_within(input.into(), 0)?;
        plan.log_decisions();
        Ok(plan)
    }

    /// Plans an input. Other choices are tried only if the pool is larger than `target` bytes.
    fn plan_within(&self, input: InputRef<'_>, target: Bytes) -> Result<Plan, PlanError> {
        let searches = self.strategy.searches();
        let is_final = |plan: &Result<Plan, PlanError>| match plan {
            Ok(plan) => !searches || plan.proven_optimal || plan.pool_size <= target,
            Err(error) => !searches || !choices::may_be_cured(error),
        };
        let pass = |limits: Limits, observer: Observer<'_>| {
            Planner { limits, observer, ..self.clone() }.plan_pass(input, target)
        };
        in_passes(self.limits, self.observer, pass, is_final, better)
    }

    /// As [`plan_within`](Self::plan_within), in one pass.
    fn plan_pass(&self, input: InputRef<'_>, target: Bytes) -> Result<Plan, PlanError> {
        let start = Instant::now();
        let sequence = match input {
            InputRef::Sequence(sequence) => sequence,
            InputRef::Problem(problem) => {
                let plan = self.prepare(input)?.best(input);
                let source = Source::Problem(problem);
                return Choices { planner: self, start, source, target }.improve(plan);
            }
        };
        let flat = self.flatten(sequence)?;
        let planner = self.after(start);
        let prepared = planner.prepare_flat(input, &flat);
        if let Ok(prepared) = &prepared {
            prepared.lowered.log(sequence);
        }
        let plan = match prepared.and_then(|prepared| prepared.best(input)) {
            Ok(plan) if self.has_choice(&plan) => {
                self.after(start).with_fewer_overlaps(sequence, plan)
            }
            plan => plan,
        };
        let source = Source::Sequence(sequence, &flat);
        Choices { planner: self, start, source, target }.improve(plan)
    }

    /// The content bound: the bytes that every plan of an input needs, whatever it chooses (the book, What memplan
    /// chooses). `None` if they cannot be counted: for constrained problems, for large programs on several streams, and
    /// if a capacity is not a multiple of the alignment.
    ///
    /// ```
    /// use memplan::{Planner, networks};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let planner = Planner::new();
    /// assert_eq!(planner.content_bound(&sequence)?, Some(planner.plan(&sequence)?.pool_size()));
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the alignment is not a power of two, or a body cannot be planned.
    pub fn content_bound<'i>(
        &self,
        input: impl Into<InputRef<'i>>,
    ) -> Result<Option<Bytes>, PlanError> {
        if let Some(alignment) = self.alignment.filter(|bytes| !bytes.is_power_of_two()) {
            return Err(ProblemError::Alignment { alignment }.into());
        }
        Ok(match input.into() {
            InputRef::Sequence(sequence) => {
                Source::Sequence(sequence, &self.flatten(sequence)?).bound(self, &[])
            }
            InputRef::Problem(problem) => Source::Problem(problem).bound(self, &[]),
        })
    }

    /// The alignment and padding of a sequence.
    fn placing(&self) -> Placing {
        let (alignment, padding) = (self.alignment.unwrap_or(1), self.padding.unwrap_or(0));
        Placing { alignment, padding }
    }

    /// The planner with the time that is left of its limit.
    fn after(&self, start: Instant) -> Self {
        Self { limits: self.limits.after(start), ..self.clone() }
    }

    /// Returns whether other overlaps could lead to a smaller plan.
    fn has_choice(&self, plan: &Plan) -> bool {
        let is_below = |chunk: &PlannedChunk| chunk.overwrites.is_some_and(|link| link.below > 0);
        self.lowering.overlap_limit.is_none()
            && self.memories.pools.is_empty()
            && self.memories.pins.is_empty()
            && plan.bodies.is_empty()
            && plan.chunks.iter().any(is_below)
    }

    /// Plans with fewer overlaps as long as the pool may become smaller: an overlap saves bytes in one step,
    /// but ties two tensors together.
    fn with_fewer_overlaps(
        &self,
        sequence: &OpSequence,
        mut best: Plan,
    ) -> Result<Plan, PlanError> {
        let start = Instant::now();
        // There are none if the chunks cannot be lowered as wholes.
        let limits = lower::overlap_limits(sequence, self.lowering, self.placing());
        for limit in limits.unwrap_or_default().into_iter().take(MAX_LIMITS) {
            let limits = self.limits.after(start);
            if limit >= best.pool_size || limits.time == Some(Duration::ZERO) {
                break;
            }
            let lowering = self.lowering.overlap_limit(Some(limit));
            let planner = Planner { lowering, limits, ..self.clone() };
            let input = InputRef::Sequence(sequence);
            let plan = match planner.prepare(input).and_then(|prepared| prepared.best(input)) {
                Err(error) if error.is_stop() => break,
                plan => plan?,
            };
            if plan.pool_size < best.pool_size {
                best = plan;
            }
        }
        Ok(best)
    }

    /// Lowers the input to the chunks that are planned, with the requested alignment and padding. The
    /// bodies of operators are planned on the way.
    ///
    /// # Errors
    ///
    /// If a sequence cannot be lowered, a body cannot be planned, the alignment is not a power of
    /// two, or the sum of sizes exceeds 64 bits.
    pub fn lower<'i>(&self, input: impl Into<InputRef<'i>>) -> Result<Lowered, PlanError> {
        let prepared = self.prepare(input.into())?;
        Ok(prepared.gathered.unwrap_or(prepared.lowered))
    }

    /// Plans the bodies with the options of this planner.
    fn flatten<'s>(&self, sequence: &'s OpSequence) -> Result<Flattened<'s>, PlanError> {
        // Only the whole sequence reports progress, and the supplied tensors of a body are never in
        // its pool.
        let observer = Observer { progress: None, ..self.observer };
        let lowering = self.lowering.inputs_in_pool(false).weights_in_pool(false);
        let memories = Memories::default();
        let inner = Planner { lowering, memories, observer, ..self.clone() };
        bodies::flatten(sequence, self.limits, |body, limits| {
            inner.clone().limits(limits).plan_pass(body.into(), 0)
        })
    }

    /// Plans the bodies and lowers the input.
    fn prepare(&self, input: InputRef<'_>) -> Result<Prepared<'a>, PlanError> {
        let start = Instant::now();
        match input {
            InputRef::Sequence(sequence) => {
                let flat = self.flatten(sequence)?;
                self.after(start).prepare_flat(input, &flat)
            }
            InputRef::Problem(_) => {
                let lowered = input.lower(self.lowering)?;
                self.prepare_lowered(input, lowered, input, Vec::new())
            }
        }
    }

    /// Lowers a sequence without bodies, whose chunks make a plan of `input`.
    fn prepare_flat(
        &self,
        input: InputRef<'_>,
        flat: &Flattened<'_>,
    ) -> Result<Prepared<'a>, PlanError> {
        let sequence = &*flat.sequence;
        let lowered = lower_apart(sequence, self.lowering, self.placing(), Grain::Chunks)?;
        self.prepare_lowered(input, lowered, sequence.into(), flat.bodies.clone())
    }

    fn prepare_lowered(
        &self,
        input: InputRef<'_>,
        lowered: Lowered,
        flat: InputRef<'_>,
        bodies: Vec<PlannedBody>,
    ) -> Result<Prepared<'a>, PlanError> {
        let start = Instant::now();
        let lowered = self.memories.constrain(input, lowered)?;
        let problem = lowered.problem;
        let alignment = self.alignment.unwrap_or(problem.alignment());
        let padding = self.padding.unwrap_or(problem.padding());
        let problem = problem
            .with_alignment(alignment)
            .and_then(|problem| problem.with_padding(padding))
            .map_err(|error| of_operator(flat, error))?;
        let lowered = Lowered { problem, ..lowered };
        let gathers = self.lowering.gathers && self.strategy.supports_parts() && flat.has_gathers();
        let (gathered, is_partial) = gathers.then(|| flat.gather(lowered.clone())).unzip();
        let parts = |lowered: &Lowered| lowered.problem.parts().len();
        let gathered = gathered.filter(|gathered| parts(gathered) > parts(&lowered));
        let is_partial = is_partial.unwrap_or(false);
        let planner = self.after(start);
        Ok(Prepared { lowered, gathered, is_partial, bodies, planner })
    }

    fn layout(&self, problem: &Problem) -> Result<Layout, PlanError> {
        let layout = self.strategy.layout_in_pass(problem, &self.limits, self.observer)?;
        debug!(target: "memplan::plan", strategy = %self.strategy, chunks = problem.len(), "laid out");
        info!(
            target: "memplan::plan",
            strategy = %self.strategy,
            winner = layout.winner.map(Strategy::name),
            pool = layout.pool_size(problem),
            chunks = problem.len(),
            "planned",
        );
        Ok(layout)
    }
}
