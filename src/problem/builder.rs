//! Building and checking a problem.

use std::{ops::Range, sync::Arc};

use tracing::trace;

use crate::{
    Bytes, Step,
    bodies::{BodyBuilder, JoinError, Resolved, View, clash_of_pins, single_bodies},
    problem::{
        Chunk, ChunkId, Constrained, Ids, Labels, Problem, ProblemError, Request,
        constraints::{
            self, ChunkConstraints, Clock, Constraints, Life, Part, Place, Pool, PoolId, REQUEST,
            Window,
        },
        links::Links,
    },
};

/// Collects chunks and requests; [`build`](Self::build) checks them.
///
/// Alignment and padding apply to the whole problem. Their methods take the builder by value, so
/// that they can follow its creation; all others borrow it.
///
/// ```
/// use memplan::Problem;
///
/// let mut problem = Problem::builder().alignment(64);
/// let a = problem.chunk(0..2, 4096);
/// let b = problem.chunk(1..3, 4096);
/// let problem = problem.overwrite(b, a, 0).build()?;
/// # assert_eq!(problem.links_taken(), 1);
/// let empty = Problem::builder().alignment(64).padding(8).at_least_steps(7).build()?;
/// # assert_eq!(empty.steps(), 7);
/// # Ok::<(), memplan::ProblemError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProblemBuilder {
    pub(super) chunks: Vec<Chunk>,
    pub(super) requests: Vec<Request>,
    pub(crate) labels: Labels,
    pub(super) alignment: Bytes,
    pub(super) padding: Bytes,
    pub(super) steps: Step,
    /// `None` if the problem is unconstrained so far.
    pub(super) constraints: Option<Box<Constraints>>,
    pub(super) optional_parts: Vec<Part>,
}

impl Default for ProblemBuilder {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            requests: Vec::new(),
            labels: Labels::default(),
            alignment: 1,
            padding: 0,
            steps: 0,
            constraints: None,
            optional_parts: Vec::new(),
        }
    }
}

impl ProblemBuilder {
    /// Adds a chunk that lives in a half-open range of steps and has a size in bytes. Ids count
    /// from 0.
    ///
    /// # Panics
    ///
    /// If there are 2^32 chunks already.
    #[allow(clippy::needless_pass_by_value, reason = "a literal range reads best")]
    pub fn chunk(&mut self, lifetime: Range<Step>, size: Bytes) -> ChunkId {
        let id = ChunkId::from_index(self.chunks.len());
        self.chunks.push(Chunk { begin: lifetime.start, end: lifetime.end, size });
        if !self.labels.names.is_empty() {
            self.labels.names.push("".into());
        }
        id
    }

    /// Adds a chunk with a name for messages, maps and files.
    ///
    /// # Panics
    ///
    /// If there are 2^32 chunks already.
    pub fn named_chunk(
        &mut self,
        name: impl Into<Box<str>>,
        lifetime: Range<Step>,
        size: Bytes,
    ) -> ChunkId {
        let id = self.chunk(lifetime, size);
        self.labels.names.resize(self.chunks.len(), "".into());
        self.labels.names[id.index()] = name.into();
        id
    }

    /// Requests that `overwriter` be written over `overwritten`, `offset` bytes from its start.
    /// Requests are resolved in the order given, those that are required before all others.
    pub fn overwrite(
        &mut self,
        overwriter: ChunkId,
        overwritten: ChunkId,
        offset: Bytes,
    ) -> &mut Self {
        self.request(Request::new(overwriter, overwritten, offset))
    }

    /// Requests that `overwriter` be written over `overwritten`, beginning `below` bytes below its
    /// start: a partial overlap, for an operator that writes each byte only after it has read the
    /// input there. In the step that both share, the bytes of both are in use; from the next step
    /// on, only the overwriter's. The overwriter may extend beyond `overwritten` at both ends.
    ///
    /// ```
    /// use memplan::{Planner, Problem};
    ///
    /// let mut problem = Problem::builder();
    /// let input = problem.chunk(0..2, 96);
    /// let output = problem.chunk(1..3, 96);
    /// let problem = problem.overlap(output, input, 16).build()?;
    /// let plan = Planner::new().plan(&problem)?;
    /// assert_eq!(plan.pool_size(), 96 + 16);
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    pub fn overlap(
        &mut self,
        overwriter: ChunkId,
        overwritten: ChunkId,
        below: Bytes,
    ) -> &mut Self {
        self.request(Request::overlap(overwriter, overwritten, below))
    }

    /// Adds a request, or a requirement, to overwrite.
    pub fn request(&mut self, request: Request) -> &mut Self {
        if request.below > 0 {
            // In unconstrained problems, every overwriter lies inside the overwritten chunk.
            self.constraints();
        }
        self.requests.push(request);
        self
    }

    fn constraints(&mut self) -> &mut Constraints {
        self.constraints.get_or_insert_with(|| Box::new(Constraints::none()))
    }

    fn of_chunk(&mut self, chunk: ChunkId) -> &mut ChunkConstraints {
        assert!(chunk.index() < self.chunks.len(), "{chunk:?} is unknown");
        let own = &mut self.constraints().own;
        own.resize_with(own.len().max(chunk.index() + 1), ChunkConstraints::default);
        &mut own[chunk.index()]
    }

    /// Adds a pool, which is less preferred than all pools added before. A problem to which none is
    /// added has a single pool without limits.
    pub fn pool(&mut self, pool: Pool) -> PoolId {
        let constraints = self.constraints();
        if !std::mem::replace(&mut constraints.has_pools, true) {
            constraints.pools.clear();
        }
        constraints.pools.push(pool);
        PoolId::from_index(constraints.pools.len() - 1)
    }

    /// Replaces the pools.
    pub(crate) fn pools(&mut self, pools: Vec<Pool>) {
        let constraints = self.constraints();
        (constraints.pools, constraints.has_pools) = (pools, true);
    }

    /// Replaces all constraints on a chunk.
    pub(crate) fn constrain(&mut self, chunk: ChunkId, constraints: ChunkConstraints) {
        let is_known = match &self.constraints {
            Some(all) => constraints == *all.of(chunk),
            None => constraints == ChunkConstraints::default(),
        };
        if !is_known {
            *self.of_chunk(chunk) = constraints;
        }
    }

    /// Aligns the offset of a chunk to a power of two, in bytes.
    ///
    /// # Panics
    ///
    /// If the chunk is unknown, as in all methods below.
    pub fn align(&mut self, chunk: ChunkId, bytes: Bytes) -> &mut Self {
        self.of_chunk(chunk).alignment = bytes;
        self
    }

    /// States that a chunk needs none of its bytes in some steps.
    pub fn hole(&mut self, chunk: ChunkId, steps: Range<Step>) -> &mut Self {
        self.of_chunk(chunk).holes.push(steps);
        self
    }

    /// States that a chunk needs only some of its bytes in some steps.
    pub fn window(&mut self, chunk: ChunkId, steps: Range<Step>, bytes: Range<Bytes>) -> &mut Self {
        self.of_chunk(chunk).windows.push(Window { steps, bytes });
        self
    }

    /// Lets a chunk lie in these pools only.
    pub fn only_in(&mut self, chunk: ChunkId, pools: impl Into<Vec<PoolId>>) -> &mut Self {
        self.of_chunk(chunk).pools = Some(pools.into());
        self
    }

    /// Fixes the place of a chunk.
    pub fn pin(&mut self, chunk: ChunkId, pool: PoolId, offset: Bytes) -> &mut Self {
        self.of_chunk(chunk).pin = Some(Place::new(pool, offset));
        self
    }

    /// Sets the bytes that operators move to and from a chunk; its size by default.
    pub fn traffic(&mut self, chunk: ChunkId, bytes: Bytes) -> &mut Self {
        self.of_chunk(chunk).traffic = Some(bytes);
        self
    }

    /// States that a chunk lies inside a larger one, `offset` bytes from its start, and shares its
    /// bytes there.
    pub fn part(&mut self, part: ChunkId, whole: ChunkId, offset: Bytes) -> &mut Self {
        self.constraints().parts.push(Part { part, whole, offset });
        self
    }

    /// Lets a chunk lie inside a larger one, `offset` bytes from its start, such as the input of a concatenation inside
    /// its output. If the chunk lies elsewhere, the operator that writes the larger one copies it, so the chunk must be
    /// alive in that step.
    ///
    /// ```
    /// use memplan::{Planner, Problem};
    ///
    /// let mut problem = Problem::builder();
    /// let (a, b) = (problem.chunk(0..3, 64), problem.chunk(1..3, 32));
    /// let whole = problem.chunk(2..4, 96);
    /// problem.optional_part(a, whole, 0).optional_part(b, whole, 64);
    /// let plan = Planner::new().plan(&problem.build()?)?;
    /// assert_eq!((plan.pool_size(), plan.parts().len()), (96, 2));
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    pub fn optional_part(&mut self, part: ChunkId, whole: ChunkId, offset: Bytes) -> &mut Self {
        self.optional_parts.push(Part { part, whole, offset });
        self
    }

    /// Keeps chunks from sharing bytes of one pool, even if they are never alive together.
    pub fn apart(&mut self, chunks: impl Into<Vec<ChunkId>>) -> &mut Self {
        self.constraints().apart.push(chunks.into());
        self
    }

    /// Runs the operators on several streams. Every chunk then needs a lifetime [in clocks](Self::clocks).
    pub fn streams(&mut self, streams: usize) -> &mut Self {
        self.constraints().streams = streams;
        self
    }

    /// Sets the lifetime of a chunk in vector clocks, and the stream of its producer. A clock states, for each stream,
    /// the number of its steps that are over.
    ///
    /// ```
    /// use memplan::{Planner, Problem};
    ///
    /// let mut problem = Problem::builder();
    /// let (a, b) = (problem.chunk(0..1, 64), problem.chunk(0..1, 64));
    /// // Each lives for the first step of its own stream, so both may be alive at once.
    /// problem.streams(2).clocks(a, [0, 0], [1, 0], 0).clocks(b, [0, 0], [0, 1], 1);
    /// assert_eq!(Planner::new().plan(&problem.build()?)?.pool_size(), 128);
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    pub fn clocks(
        &mut self,
        chunk: ChunkId,
        begin: impl AsRef<[Step]>,
        end: impl AsRef<[Step]>,
        stream: usize,
    ) -> &mut Self {
        let [begin, end] = [begin.as_ref(), end.as_ref()].map(Clock::from);
        let entry = &mut self.chunks[chunk.index()];
        (entry.begin, entry.end) = (constraints::sum(&begin), constraints::sum(&end));
        self.life(chunk, begin, end, stream);
        self
    }

    /// Sets the same as [`clocks`](Self::clocks), but keeps the steps of the chunk, which must come
    /// from an order in which all operators can run.
    pub(crate) fn life(&mut self, chunk: ChunkId, begin: Clock, end: Clock, stream: usize) {
        let chunks = self.chunks.len();
        let constraints = self.constraints();
        let none = || Life { begin: Clock::default(), end: Clock::default() };
        constraints.lives.resize_with(chunks, none);
        constraints.lives[chunk.index()] = Life { begin, end };
        if stream != constraints.of(chunk).stream {
            self.of_chunk(chunk).stream = stream;
        }
    }

    /// Sets the numbers by which files and messages identify the chunks, one for each chunk. Without them, each chunk
    /// is identified by its position, from 0.
    pub fn with_ids(&mut self, numbers: Vec<u64>) -> &mut Self {
        self.label(Ids::numbers(numbers));
        self
    }

    /// Sets the ids by which files and messages name the chunks.
    pub(crate) fn label(&mut self, ids: Ids) {
        self.labels.ids = ids;
    }

    /// Extends the sequence to at least this many steps, even if no chunk lives in the last ones.
    pub fn at_least_steps(&mut self, steps: Step) -> &mut Self {
        self.steps = self.steps.max(steps);
        self
    }

    /// Aligns the offsets of roots to a power of two, in bytes; 1 by default.
    #[must_use]
    pub fn alignment(mut self, alignment: Bytes) -> Self {
        self.alignment = alignment;
        self
    }

    /// Adds bytes behind every chunk, for kernels that read, but do not write, past the end of a tensor; 0 by default.
    #[must_use]
    pub fn padding(mut self, padding: Bytes) -> Self {
        self.padding = padding;
        self
    }

    /// Checks everything and resolves the requests into links. The builder keeps its contents and
    /// can be built again.
    ///
    /// # Errors
    ///
    /// If a lifetime is empty, ids repeat, a request names an unknown chunk or does not fit, a
    /// required overwrite cannot be accepted, the alignment is not a power of two, or the sum of
    /// the sizes exceeds 64 bits.
    pub fn build(&self) -> Result<Problem, ProblemError> {
        self.clone().finish()
    }

    /// Builds the problem without a copy.
    pub(crate) fn finish(mut self) -> Result<Problem, ProblemError> {
        self.check_chunks()?;
        self.check_ids()?;
        self.check_requests()?;
        let lives = self.constraints.as_ref().map_or(&[][..], |constraints| &constraints.lives);
        constraints::check_optional_parts(&self.optional_parts, &self.chunks, lives, &self.labels)?;
        if let Some(constraints) = &mut self.constraints {
            // Equal problems have equal lists.
            let last = constraints.own.iter().rposition(|own| *own != ChunkConstraints::default());
            constraints.own.truncate(last.map_or(0, |last| last + 1));
        }
        let Resolved { bodies, links, refused } = match self.constraints.as_deref() {
            None => {
                let (links, refused) = Links::resolve(&self.chunks, &self.requests);
                Resolved { bodies: Vec::new(), links, refused }
            }
            Some(constraints) => self.join(constraints)?,
        };
        for &(request, reason) in &refused {
            let request = self.requests[request];
            let Request { overwriter, overwritten, required, .. } = request;
            let writes = self.chunks[overwriter.index()].size > 0;
            let (overwriter, overwritten) =
                (self.labels.name(overwriter), self.labels.name(overwritten));
            // An update without bytes writes nothing, so it is always accepted. Of a request stated twice, one is
            // rejected, but the link exists.
            if required && writes && !links.is_accepted(&request) {
                return Err(ProblemError::RequiredOverwrite { overwriter, overwritten, reason });
            }
            trace!(target: "memplan::links", overwriter, overwritten, %reason, "request dropped");
        }
        let steps = self.chunks.iter().map(|c| c.end).max().unwrap_or(0);
        self.steps = self.steps.max(steps);
        Ok(Problem {
            chunks: self.chunks,
            requests: self.requests,
            links,
            labels: self.labels,
            alignment: self.alignment,
            padding: self.padding,
            steps: self.steps,
            extra: self.constraints.map(|constraints| {
                Arc::new(Constrained { constraints: *constraints, bodies, refused })
            }),
            derived: Arc::default(),
            optional_parts: self.optional_parts,
        })
    }

    /// Joins the chunks of a constrained problem into bodies.
    fn join(&self, constraints: &Constraints) -> Result<Resolved, ProblemError> {
        let (alignment, padding) = (self.alignment, self.padding);
        let view = View { chunks: &self.chunks, constraints, alignment, padding };
        constraints::check(view, &self.labels)?;
        let name = |chunk| self.labels.name(chunk);
        let error = |error: JoinError| match error {
            JoinError::TwoPlaces(chunk) => ProblemError::TwoPlaces { chunk: name(chunk) },
            JoinError::Clash(first, second) => {
                ProblemError::Clash { first: name(first), second: name(second) }
            }
            JoinError::NoCommonPool(chunk) => ProblemError::NoCommonPool { chunk: name(chunk) },
            JoinError::TwoPins(chunk) => ProblemError::TwoPins { chunk: name(chunk) },
            JoinError::Misaligned(chunk) => ProblemError::Misaligned { chunk: name(chunk) },
            JoinError::Pins(chunk, conflict) => {
                let reason = format!(
                    "chunk '{}' cannot lie where it is pinned: with all that is joined to it, {conflict}",
                    name(chunk)
                );
                ProblemError::Pins { chunk: name(chunk), reason }
            }
            JoinError::TooLarge(chunk, size) => ProblemError::TooLarge { chunk: name(chunk), size },
        };
        let resolved = if constraints.parts.is_empty() && self.requests.is_empty() {
            Resolved { bodies: single_bodies(view).map_err(error)?, ..Resolved::default() }
        } else {
            let joiner = BodyBuilder::new(view, &self.requests).map_err(error)?;
            joiner.accept(&self.requests).map_err(error)?
        };
        if let Some((first, second)) = clash_of_pins(view, &resolved.bodies, &resolved.links) {
            let (first, second) = (name(first), name(second));
            let reason = format!("the pins of '{first}' and '{second}' put them on the same bytes");
            return Err(ProblemError::Pins { chunk: second, reason });
        }
        Ok(resolved)
    }

    fn check_chunks(&self) -> Result<(), ProblemError> {
        if !self.alignment.is_power_of_two() {
            return Err(ProblemError::Alignment { alignment: self.alignment });
        }
        if u32::try_from(self.chunks.len()).is_err() {
            return Err(ProblemError::TooManyChunks);
        }
        let mut sum: Bytes = 0;
        for (index, chunk) in self.chunks.iter().enumerate() {
            let name = || self.labels.name(ChunkId::from_index(index));
            if chunk.begin >= chunk.end {
                let Chunk { begin, end, .. } = *chunk;
                let reason = format!(
                    "it begins in step {begin}, and `end`, the last reading step + 1, is {end}"
                );
                return Err(ProblemError::EmptyLifetime { chunk: name(), reason });
            }
            if chunk.size > 0 {
                sum = chunk
                    .size
                    .checked_add(self.padding)
                    .and_then(|size| size.checked_next_multiple_of(self.alignment))
                    .and_then(|size| sum.checked_add(size))
                    // The sum must also fit after the pool is rounded up once more.
                    .filter(|sum| sum.checked_add(self.alignment).is_some())
                    .ok_or_else(|| ProblemError::SizeOverflow {
                        chunk: name(),
                        size: chunk.size,
                        alignment: self.alignment,
                        padding: self.padding,
                    })?;
            }
        }
        Ok(())
    }

    fn check_ids(&self) -> Result<(), ProblemError> {
        let (chunks, ids) = (self.chunks.len(), self.labels.ids.len());
        if ids.is_some_and(|ids| ids != chunks) {
            return Err(ProblemError::IdCount { chunks });
        }
        let duplicate = match &self.labels.ids {
            Ids::Positions => None,
            Ids::Numbers(numbers) => repeated(numbers).map(u64::to_string),
            Ids::Texts(texts) => repeated(texts).map(Box::to_string),
        };
        duplicate.map_or(Ok(()), |id| Err(ProblemError::DuplicateId { id }))
    }

    fn check_requests(&self) -> Result<(), ProblemError> {
        for request in &self.requests {
            let Request { overwriter, overwritten, offset, below, .. } = *request;
            constraints::known(&self.chunks, overwriter, REQUEST)?;
            constraints::known(&self.chunks, overwritten, REQUEST)?;
            let name = |chunk| self.labels.name(chunk);
            if overwriter == overwritten {
                return Err(ProblemError::OverwritesItself { chunk: name(overwriter) });
            }
            self.check_step(overwriter)?;
            if below > 0 {
                if offset > 0 {
                    return Err(ProblemError::OffsetAndBelow { overwriter: name(overwriter) });
                }
                continue;
            }
            let size = self.chunks[overwriter.index()].size;
            let room = self.chunks[overwritten.index()].size;
            if offset.checked_add(size).is_none_or(|end| end > room) {
                return Err(ProblemError::OverwriteDoesNotFit {
                    overwriter: name(overwriter),
                    overwritten: name(overwritten),
                    size,
                    offset,
                    room,
                });
            }
        }
        Ok(())
    }

    /// Checks that a chunk that overwrites another lives, on its stream, for the step that writes it.
    fn check_step(&self, overwriter: ChunkId) -> Result<(), ProblemError> {
        let Some(constraints) = &self.constraints else { return Ok(()) };
        let at = overwriter.index();
        let Some(life) = constraints.lives.get(at) else { return Ok(()) };
        let stream = constraints.of(overwriter).stream;
        match (life.begin.get(stream), life.end.get(stream)) {
            (Some(begin), Some(end)) if end <= begin => {
                let reason = format!(
                    "it begins at {:?} and ends at {:?}, before the step of stream {} that writes it over another chunk",
                    life.begin, life.end, stream
                );
                Err(ProblemError::EmptyLifetime { chunk: self.labels.name(overwriter), reason })
            }
            _ => Ok(()),
        }
    }
}

/// Returns an element that occurs twice.
fn repeated<T: Ord>(items: &[T]) -> Option<&T> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
