//! Gathers parts: puts chunks inside others where that costs no memory.
//!
//! All parts of one whole are tried together and, if that fails, one by one in their order. A trial only affects
//! chunks that overwrites and parts join to the chunks tried, so only these are joined and counted again.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    num::Wrapping,
    ops::Range,
};

use tracing::debug;

use crate::{
    Bytes, Problem, ProblemError, Step,
    bound::{LiveWeight, Weight},
    problem::{
        ChunkId, RejectReason, Request,
        constraints::{Part, Place},
    },
};

/// The most pairs of joined chunks that the trials for one problem may examine. Beyond that, the
/// remaining parts are refused.
const MAX_PAIRS: usize = 50_000_000;

/// Computing the bound of a problem on several streams costs this many times the pairs of all its chunks.
const PAIRS_OF_A_BOUND: usize = 16;

/// The most steps of a problem whose live bytes are counted step by step. In longer ones, all parts
/// are refused.
const MAX_STEPS: Step = 1 << 26;

/// The result of [`Problem::gather_together`].
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    /// The problem with the parts that cost no memory.
    pub(crate) problem: Problem,
    /// The other parts, with the reasons.
    pub(crate) refused: Vec<(Part, RejectReason)>,
    /// The overwrites of the problem that the parts have made impossible.
    pub(crate) lost: Vec<(Request, RejectReason)>,
}

impl Problem {
    /// Puts chunks inside larger ones, such as the inputs of a concatenation inside its output. A part is
    /// accepted if no chunk then needs two places, no two chunks need the same bytes for different
    /// contents, and the [lower bound](Self::lower_bound) does not rise.
    ///
    /// Each list holds the parts of one whole. Lists are tried in the order given; the parts of a list are
    /// tried together first, then one by one. Returns the problem with the accepted parts, and the rejected
    /// parts with the reasons.
    ///
    /// ```
    /// use memplan::{Problem, problem::Part};
    ///
    /// let mut problem = Problem::builder();
    /// let (a, b) = (problem.chunk(0..3, 64), problem.chunk(1..3, 32));
    /// let whole = problem.chunk(2..4, 96);
    /// let problem = problem.build()?;
    /// let (problem, rejected) = problem.gather(&[vec![Part::new(a, whole, 0), Part::new(b, whole, 64)]]);
    /// assert_eq!((problem.lower_bound(), rejected.len()), (96, 0));
    /// # Ok::<(), memplan::ProblemError>(())
    /// ```
    #[must_use]
    pub fn gather(self, wholes: &[Vec<Part>]) -> (Self, Vec<(Part, RejectReason)>) {
        let Gathered { problem, refused, .. } = self.gather_lists(wholes);
        (problem, refused)
    }

    fn gather_lists(self, wholes: &[Vec<Part>]) -> Gathered {
        let one_by_one = |list: &Vec<Part>| list.iter().map(|&part| vec![part]).collect();
        self.gather_together(&wholes.iter().map(one_by_one).collect::<Vec<_>>())
    }

    /// Puts optional parts inside their wholes, the largest whole first, as [`gather`](Self::gather) does.
    pub(crate) fn gather_optional(self) -> Gathered {
        let size = |part: &Part| self.chunk(part.whole).size;
        let mut parts = self.optional_parts().to_vec();
        parts.sort_by_key(|part| (std::cmp::Reverse(size(part)), part.whole));
        let wholes = parts.chunk_by(|a, b| a.whole == b.whole).map(<[Part]>::to_vec);
        let wholes: Vec<Vec<Part>> = wholes.collect();
        self.gather_lists(&wholes)
    }

    /// Like [`gather`](Self::gather), with groups of parts of which all or none are accepted. A group is refused with
    /// its first part.
    pub(crate) fn gather_together(self, wholes: &[Vec<Vec<Part>>]) -> Gathered {
        let mut refused = Vec::new();
        let first = |group: &Vec<Part>| group.first().copied();
        if self.streams() == 1 && self.steps > MAX_STEPS {
            let firsts = wholes.iter().flatten().filter_map(first);
            let refused = firsts.map(|part| (part, RejectReason::TooManyJoined)).collect();
            return Gathered { refused, problem: self, lost: Vec::new() };
        }
        let known = |part: &Part| part.part.index().max(part.whole.index()) < self.len();
        let mut trials = Trials::new(&self);
        for list in wholes {
            if !list.iter().flatten().all(known) {
                let firsts = list.iter().filter_map(first);
                refused.extend(firsts.map(|part| (part, RejectReason::NotAllOfItsChunk)));
            } else if list.len() < 2 || trials.attempt(&list.concat()).is_err() {
                for group in list {
                    if let Err(reason) = trials.attempt(group) {
                        refused.extend(first(group).map(|part| (part, reason)));
                    }
                }
            }
        }
        let parts = trials.parts;
        if parts.is_empty() {
            return Gathered { problem: self, refused, lost: Vec::new() };
        }
        debug!(target: "memplan::lower", parts = parts.len(), "gathered");
        let before = self.lost_requests();
        // Each part was tried with all chunks that it is joined to, so all parts are possible
        // together.
        let problem = match self.with_parts(&parts) {
            Ok(problem) => problem,
            Err(error) => {
                let reason = RejectReason::of(&error);
                refused.extend(parts.into_iter().map(|part| (part, reason)));
                return Gathered { problem: self, refused, lost: Vec::new() };
            }
        };
        let lost = problem.lost_since(&before);
        Gathered { problem, refused, lost }
    }

    /// The places of the requests that are not accepted.
    pub(crate) fn lost_requests(&self) -> BTreeSet<usize> {
        self.refused().into_iter().map(|(request, _)| request).collect()
    }

    /// The requests that are not accepted, but were before.
    pub(crate) fn lost_since(&self, before: &BTreeSet<usize>) -> Vec<(Request, RejectReason)> {
        let now = self.refused().into_iter().filter(|(request, _)| !before.contains(request));
        now.map(|(request, reason)| (self.requests()[request], reason)).collect()
    }

    /// The problem with those optional parts required that lie inside their wholes at these places; the unchanged
    /// problem if that is impossible.
    pub(crate) fn with_parts_at(&self, place: impl Fn(ChunkId) -> Place) -> Cow<'_, Self> {
        let is_inside = |part: &&Part| {
            let (inner, whole) = (place(part.part), place(part.whole));
            let expected = whole.offset.checked_add(part.offset);
            inner.pool == whole.pool && expected == Some(inner.offset)
        };
        let parts: Vec<&Part> = self.optional_parts().iter().filter(is_inside).collect();
        if parts.is_empty() {
            return Cow::Borrowed(self);
        }
        self.with_parts(parts).map_or(Cow::Borrowed(self), Cow::Owned)
    }

    /// The problem with more chunks inside others.
    pub(crate) fn with_parts<'p>(
        &self,
        parts: impl IntoIterator<Item = &'p Part>,
    ) -> Result<Self, ProblemError> {
        let mut builder = self.clone().into_builder();
        for &Part { part, whole, offset } in parts {
            builder.part(part, whole, offset);
        }
        builder.finish()
    }
}

/// Chunks that overwrites and parts may join, directly or through others. Nothing outside depends on
/// how they are joined.
#[derive(Clone, Default)]
struct Group {
    chunks: Vec<ChunkId>,
    /// The parts of the problem and the accepted ones among them.
    parts: Vec<Part>,
    /// The bytes that they need, once they have been counted.
    weights: Option<Vec<LiveWeight>>,
}

/// Tries parts and accepts those that are possible and cost no memory.
struct Trials<'p> {
    problem: &'p Problem,
    /// The requests of each overwriter, by their places in the problem's list.
    requests: HashMap<ChunkId, Vec<usize>>,
    groups: Vec<Group>,
    /// By chunk: its group.
    of: Vec<u32>,
    parts: Vec<Part>,
    /// `None` if there are several streams, for which bytes cannot be counted by step.
    live: Option<Live>,
    /// The lower bound with all copies, once it is needed.
    bound: Option<Bytes>,
    pairs: usize,
}

impl<'p> Trials<'p> {
    fn new(problem: &'p Problem) -> Self {
        let group = |chunk| Group { chunks: vec![chunk], ..Group::default() };
        let mut trials = Self {
            problem,
            requests: HashMap::new(),
            groups: problem.ids().map(group).collect(),
            of: (0..).take(problem.len()).collect(),
            parts: Vec::new(),
            live: (problem.streams() == 1).then(|| Live::of(problem)),
            bound: None,
            pairs: 0,
        };
        for (at, request) in problem.requests().iter().enumerate() {
            trials.requests.entry(request.overwriter).or_default().push(at);
            trials.merge(request.overwriter, request.overwritten);
        }
        for &part in problem.parts() {
            trials.merge(part.part, part.whole);
            trials.groups[trials.of[part.whole.index()] as usize].parts.push(part);
        }
        trials
    }

    /// Merges the groups of two chunks.
    fn merge(&mut self, a: ChunkId, b: ChunkId) {
        let (a, b) = (self.of[a.index()], self.of[b.index()]);
        if a == b {
            return;
        }
        let len = |group: u32| self.groups[group as usize].chunks.len();
        let (keep, drop) = if len(a) >= len(b) { (a, b) } else { (b, a) };
        let Group { chunks, parts, .. } = std::mem::take(&mut self.groups[drop as usize]);
        for chunk in &chunks {
            self.of[chunk.index()] = keep;
        }
        let group = &mut self.groups[keep as usize];
        group.chunks.extend(chunks);
        group.parts.extend(parts);
        group.weights = None;
    }

    /// Accepts parts together, or changes nothing and returns the reason.
    fn attempt(&mut self, new: &[Part]) -> Result<(), RejectReason> {
        let chunks = new.iter().flat_map(|part| [part.part, part.whole]);
        let groups: BTreeSet<u32> = chunks.map(|chunk| self.of[chunk.index()]).collect();
        let of = |group: &u32| &self.groups[*group as usize];
        let count: usize = groups.iter().map(|group| of(group).chunks.len()).sum();
        self.pairs = self.pairs.saturating_add(count.saturating_mul(count));
        if self.pairs > MAX_PAIRS {
            return Err(RejectReason::TooManyJoined);
        }
        let mut before = Vec::new();
        if self.live.is_some() {
            for &group in &groups {
                before.extend(self.weights(group)?);
            }
        }
        let of = |group: &u32| &self.groups[*group as usize];
        let mut chunks: Vec<ChunkId> =
            groups.iter().flat_map(|group| of(group).chunks.iter().copied()).collect();
        chunks.sort_unstable();
        let old: Vec<Part> =
            groups.iter().flat_map(|group| of(group).parts.iter().copied()).collect();
        let joined = self.joined(&chunks, &[&old, new].concat())?;
        let end = joined.pinned_end();
        if end > 0 && end > self.bound() && end > self.joined(&chunks, &old)?.pinned_end() {
            return Err(RejectReason::LargerBound);
        }
        let mut weights = None;
        if let Some(live) = &mut self.live {
            let after = joined.live_weights();
            live.replace(&before, &after)?;
            weights = Some(after);
        } else if !keeps_overwrites(&self.joined(&chunks, &old)?, &joined) {
            self.check_bound(new)?;
        }
        for part in new {
            self.merge(part.part, part.whole);
        }
        if let Some(part) = new.first() {
            let group = &mut self.groups[self.of[part.whole.index()] as usize];
            group.parts.extend(new);
            group.weights = weights;
        }
        self.parts.extend(new);
        Ok(())
    }

    /// The lower bound of the problem before any part is accepted.
    fn bound(&mut self) -> Bytes {
        *self.bound.get_or_insert_with(|| self.problem.lower_bound())
    }

    /// On several streams, checks that the bound of the whole problem does not rise with more parts.
    fn check_bound(&mut self, new: &[Part]) -> Result<(), RejectReason> {
        let count = self.problem.len();
        let pairs = count.saturating_mul(count).saturating_mul(PAIRS_OF_A_BOUND);
        if self.pairs.saturating_add(pairs) > MAX_PAIRS {
            return Err(RejectReason::TooManyJoined);
        }
        self.pairs += pairs;
        let bound = |parts: &[Part]| {
            let problem =
                self.problem.with_parts(parts).map_err(|error| RejectReason::of(&error))?;
            Ok(problem.lower_bound())
        };
        let is_larger = bound(&[&self.parts, new].concat())? > bound(&self.parts)?;
        if is_larger { Err(RejectReason::LargerBound) } else { Ok(()) }
    }

    /// The bytes that the chunks of a group need with the parts that are accepted.
    fn weights(&mut self, group: u32) -> Result<Vec<LiveWeight>, RejectReason> {
        let Group { chunks, parts, weights } = &self.groups[group as usize];
        if let Some(weights) = weights {
            return Ok(weights.clone());
        }
        let mut chunks = chunks.clone();
        chunks.sort_unstable();
        let weights = self.joined(&chunks, parts)?.live_weights();
        self.groups[group as usize].weights = Some(weights.clone());
        Ok(weights)
    }

    /// The problem of some chunks alone, in ascending order, with parts.
    fn joined(&self, chunks: &[ChunkId], parts: &[Part]) -> Result<Problem, RejectReason> {
        let mut requests: Vec<usize> =
            chunks.iter().filter_map(|chunk| self.requests.get(chunk)).flatten().copied().collect();
        requests.sort_unstable();
        let requests = requests.into_iter().map(|at| self.problem.requests()[at]);
        let parts = parts.iter().copied();
        self.problem.subset(chunks, requests, parts).map_err(|error| RejectReason::of(&error))
    }
}

/// Returns whether every overwrite that `before` accepts is the same in `after`, which has more parts. Then every
/// chunk has the same boxes as before, some with shared bytes, so the bound does not rise.
fn keeps_overwrites(before: &Problem, after: &Problem) -> bool {
    let is_kept = |chunk| before.link(chunk).is_none() || before.link(chunk) == after.link(chunk);
    before.ids().all(is_kept)
}

/// The bytes alive in every step.
struct Live {
    plain: Vec<Wrapping<Bytes>>,
    aligned_bytes: Vec<Wrapping<Bytes>>,
    alignment: Bytes,
    /// The most bytes needed in one step.
    bound: Bytes,
}

impl Live {
    fn of(problem: &Problem) -> Self {
        let steps = usize::try_from(problem.steps()).unwrap_or(0);
        // Zeros that stay take no memory.
        let (plain, aligned_bytes) = (vec![Wrapping(0); steps], vec![Wrapping(0); steps]);
        let mut live =
            Self { plain, aligned_bytes, alignment: problem.alignment(), bound: Bytes::MAX };
        live.apply(&changes(&[], &problem.live_weights()));
        live.bound = live.most();
        live
    }

    fn most(&self) -> Bytes {
        let bytes = |step: usize| self.alive(step).bytes_alive(self.alignment);
        (0..self.plain.len()).map(bytes).max().unwrap_or(0)
    }

    fn alive(&self, step: usize) -> Weight {
        Weight { plain: self.plain[step], aligned_bytes: self.aligned_bytes[step] }
    }

    /// Replaces the bytes that some chunks need, unless the bound would rise.
    fn replace(&mut self, before: &[LiveWeight], after: &[LiveWeight]) -> Result<(), RejectReason> {
        let changes = changes(before, after);
        let mut was_at_bound = false;
        for (steps, change) in &changes {
            for step in steps.clone() {
                let mut alive = self.alive(step);
                was_at_bound |= alive.bytes_alive(self.alignment) == self.bound;
                alive += *change;
                if alive.bytes_alive(self.alignment) > self.bound {
                    return Err(RejectReason::LargerBound);
                }
            }
        }
        self.apply(&changes);
        if was_at_bound {
            self.bound = self.most();
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[(Range<usize>, Weight)]) {
        for (steps, change) in changes {
            for step in steps.clone() {
                self.plain[step] += change.plain;
                self.aligned_bytes[step] += change.aligned_bytes;
            }
        }
    }
}

/// The changes that turn the live bytes before into those after, each with its steps.
fn changes(before: &[LiveWeight], after: &[LiveWeight]) -> Vec<(Range<usize>, Weight)> {
    let before = before.iter().map(|one| (one.begin, one.end, -one.weight));
    let after = after.iter().map(|one| (one.begin, one.end, one.weight));
    let events = before.chain(after);
    let mut events: Vec<(Step, Weight)> =
        events.flat_map(|(begin, end, weight)| [(begin, weight), (end, -weight)]).collect();
    events.sort_unstable_by_key(|&(step, _)| step);
    let mut change = Weight::default();
    let mut changes = Vec::new();
    for pair in events.windows(2) {
        let (begin, end) = (pair[0].0, pair[1].0);
        change += pair[0].1;
        if begin < end && change != Weight::default() {
            let at = |step: Step| usize::try_from(step).unwrap_or(usize::MAX);
            changes.push((at(begin)..at(end), change));
        }
    }
    changes
}

impl RejectReason {
    /// The reason why chunks cannot be joined.
    pub(crate) const fn of(error: &ProblemError) -> Self {
        match error {
            ProblemError::TwoPlaces { .. } => Self::TwoPlaces,
            ProblemError::Misaligned { .. } => Self::Misaligned,
            ProblemError::NoCommonPool { .. } => Self::NoCommonPool,
            ProblemError::TwoPins { .. } => Self::TwoPins,
            ProblemError::Pins { .. } => Self::Pins,
            ProblemError::TooLarge { .. } => Self::TooLarge,
            _ => Self::Clash,
        }
    }
}
