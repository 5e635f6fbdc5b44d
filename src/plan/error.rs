//! Errors between an input and its plan.

use crate::{Bytes, ProblemError, SequenceError, Strategy, problem::constraints::Feature};

/// There is no plan, the search for one failed, or a plan cannot be used in this way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The sequence cannot be lowered.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// The sequence that an operator runs cannot be planned.
    #[error("the body of operator {operator} cannot be planned: {source}")]
    Body {
        /// The operator.
        operator: String,
        /// The reason.
        source: Box<PlanError>,
    },
    /// The strategy does not support a feature of the problem.
    #[error(
        "strategy {strategy} does not support {feature}{}; best, optimal and first-fit do",
        at(chunk.as_deref())
    )]
    Unsupported {
        /// The strategy.
        strategy: Strategy,
        /// The feature.
        feature: Feature,
        /// A chunk that has the feature; `None` if the feature is the pools.
        chunk: Option<String>,
    },
    /// Pools are given for a problem that lists its own.
    #[error("the problem lists its pools with their limits; give no others")]
    PoolsTwice,
    /// A pool given for an operator sequence has an alignment of its own.
    #[error("pool '{pool}' has an alignment of its own, which only problems support")]
    PoolOfProblem {
        /// Its name.
        pool: String,
    },
    /// A pin is given for a chunk that the problem pins itself.
    #[error("the problem pins '{name}' itself; omit the pin")]
    PinnedTwice {
        /// The chunk.
        name: String,
    },
    /// Pins put one chunk in two places.
    #[error("pins put '{name}' in two places; omit all but one")]
    PinsDiffer {
        /// The chunk.
        name: String,
    },
    /// A better order of the operators, or operators to run again, are requested together with pools.
    #[error(
        "orders and recomputation are searched for in one pool without limits only; give no pools and no largest buffer"
    )]
    OrderInPools,
    /// A pin names a pool that is not listed, or none of several.
    #[error("{}", match &**pool {
        "" => format!("a pin must name one of the pools {pools}"),
        pool => format!("there is no pool '{pool}'; the pools are {pools}"),
    })]
    UnknownPool {
        /// Its name.
        pool: String,
        /// The names of the pools.
        pools: String,
    },
    /// A pin names a tensor or chunk that the input does not have.
    #[error("there is no tensor or chunk '{name}' to pin")]
    UnknownName {
        /// Its name.
        name: String,
    },
    /// A pin names several chunks.
    #[error("several chunks are called '{name}'; give the one to pin a name of its own")]
    SharedName {
        /// Their name.
        name: String,
    },
    /// A text is not the name of a strategy.
    #[error("no strategy is called '{name}'; the strategies are {}", names())]
    UnknownStrategy {
        /// The text.
        name: String,
    },
    /// A pin names a tensor outside the pools, or without bytes.
    #[error("'{name}' cannot be pinned, because it does not lie in the pool")]
    NotInPool {
        /// Its name.
        name: String,
    },
    /// A pin would place the chunk around the tensor below the start of the pool.
    #[error("'{name}' lies {offset} B inside its chunk; pin it at that offset or above")]
    PinBelow {
        /// Its name.
        name: String,
        /// The bytes from the start of the chunk.
        offset: Bytes,
    },
    /// Chunks that move together found no place in any of their pools.
    #[error(
        "no plan was found: no pool had room left for '{chunk}' and what is joined to it, {size} B"
    )]
    NoPlace {
        /// One of the chunks.
        chunk: String,
        /// The bytes from the lowest to the highest of them.
        size: Bytes,
    },
    /// The caller cancelled a strategy that is not [anytime](Strategy::is_anytime), before it had a plan.
    #[error("strategy {strategy} was cancelled before it had a plan")]
    Cancelled {
        /// The strategy.
        strategy: Strategy,
    },
    /// The time limit was over before a strategy had a plan. [Anytime strategies](Strategy::is_anytime)
    /// have one soon and return it.
    #[error(
        "strategy {strategy} had no plan when the time limit was over; allow more time, or use best, \
         optimal or first-fit, which end with the best plan so far"
    )]
    OutOfTime {
        /// The strategy.
        strategy: Strategy,
    },
    /// No plan was found, although not every choice of views, overwrites and overlaps was tried.
    #[error(
        "no plan was found: the pools are too small for these chunks as memplan joins them; give a \
         pool more bytes"
    )]
    NoPlanFound,
    /// The sum of the costs of all operators, each counted twice, exceeds 64 bits, so that no recomputation can be
    /// looked for.
    #[error("twice the sum of the costs of all operators is more than 64 bits hold")]
    CostOverflow,
    /// The sum of the sizes of all tensors, each counted twice, is 2^63 bytes or more, so that no recomputation can be
    /// looked for.
    #[error(
        "twice the sizes of all tensors add up to 2^63 bytes or more, too many to look for operators to run again"
    )]
    TooLargeTwice,
    /// There are more or fewer offsets or places than chunks.
    #[error("there are {found} offsets, but the problem has {expected} chunks")]
    OffsetCount {
        /// The number of chunks.
        expected: usize,
        /// The number of offsets.
        found: usize,
    },
    /// A chunk does not end below 2^64 bytes at its offset.
    #[error("chunk '{chunk}' of {size} B does not end below 2^64 bytes at offset {offset}")]
    BeyondAddresses {
        /// The name of the chunk.
        chunk: String,
        /// Its size in bytes.
        size: Bytes,
        /// Its offset in bytes.
        offset: Bytes,
    },
    /// The plan has a tensor that the sequence does not have.
    #[error("the plan places tensor '{tensor}', which the sequence does not have")]
    UnknownTensor {
        /// Its name.
        tensor: String,
    },
    /// The plan has several pools, and an offset alone does not say in which.
    #[error("the plan has several pools; take the offsets from its tensors and chunks")]
    SeveralPools,
    /// The plan has several pools, and a [C header](crate::export::c_header) describes one.
    #[error("a C header describes one pool, but the plan has {pools} pools; plan for one")]
    PoolsOfHeader {
        /// Their number.
        pools: usize,
    },
    /// The plan does not place a tensor or workspace, or places it with too few bytes.
    #[error("'{name}' needs {size} B, but the plan places {found} B")]
    SizeDiffers {
        /// The tensor, or the workspace of an operator.
        name: String,
        /// The bytes needed.
        size: Bytes,
        /// The bytes placed; 0 if it is missing.
        found: Bytes,
    },
    /// A tensor or workspace ends outside the pool.
    #[error("'{name}' ends outside the pool of {pool_size} B")]
    OutsideThePool {
        /// The tensor, or the workspace of an operator.
        name: String,
        /// The size of the pool in bytes.
        pool_size: Bytes,
    },
    /// The pool is smaller than planned.
    #[error("the pool has {found} B, but the plan needs {pool_size} B")]
    PoolTooSmall {
        /// The bytes needed.
        pool_size: Bytes,
        /// The bytes supplied.
        found: Bytes,
    },
    /// A tensor or workspace does not consist of whole elements.
    #[error("'{name}' does not consist of whole elements of {element} B")]
    Elements {
        /// The tensor, or the workspace of an operator.
        name: String,
        /// The size of an element in bytes.
        element: usize,
    },
    /// A step writes to bytes that it also uses for something else.
    #[error("operator '{operator}' writes '{written}' into the bytes of '{other}'")]
    SharedBytes {
        /// The operator.
        operator: String,
        /// An output or a workspace.
        written: String,
        /// Another output, or an input that the output neither may be written over nor gathers.
        other: String,
    },
    /// The search proved that no plan exists.
    #[error("no plan exists: the pools are too small for these chunks (proven)")]
    Infeasible,
    /// The problem cannot be planned.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

impl PlanError {
    /// Returns whether the caller or a time limit stopped a strategy before it had a plan.
    pub(crate) const fn is_stop(&self) -> bool {
        matches!(self, Self::Cancelled { .. } | Self::OutOfTime { .. })
    }
}

fn names() -> String {
    let names: Vec<&str> = Strategy::ALL.iter().map(|strategy| strategy.name()).collect();
    names.join(", ")
}

fn at(chunk: Option<&str>) -> String {
    chunk.map(|chunk| format!(" (chunk '{chunk}')")).unwrap_or_default()
}
