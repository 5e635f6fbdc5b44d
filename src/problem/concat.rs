//! Problems one after the other in time, for models, phases or shapes that share an arena.

use std::collections::BTreeSet;

use crate::{
    Step,
    problem::{
        Chunk, ChunkId, Ids, Labels, Problem, ProblemError, Request,
        constraints::{ChunkConstraints, Clock, Life, Part, Pool, known},
    },
    sets::{find, join},
};

impl Problem {
    /// Puts the chunks of another problem after these in time. A plan of the result holds for both
    /// problems: no chunk of one is alive while the other runs, except the shared ones.
    ///
    /// `shared` lists pairs of a chunk of this problem and a chunk of the other that are the same
    /// memory, such as a cache of keys and values. A shared chunk is alive from the first step to the
    /// last, so it has one place, keeps its content, and needs all of its bytes all the time. A shared
    /// chunk is a state: required overwrites of it or by it are its updates, and become parts, as do
    /// updates of these. Other overwrites of it are not accepted, and its optional parts are copied.
    ///
    /// The alignment and the padding are the larger ones. If both problems list pools, they must list
    /// the same. Ids count from 0, through the chunks of this problem and then through the other's chunks that are
    /// not shared. Names stay; a shared chunk has its earlier name.
    ///
    /// ```
    /// use memplan::{Planner, Problem};
    ///
    /// let mut prefill = Problem::builder();
    /// let (cache, _) = (prefill.chunk(0..2, 64), prefill.chunk(0..1, 400));
    /// let mut decode = Problem::builder();
    /// let (_, same_cache) = (decode.chunk(0..1, 100), decode.chunk(0..2, 64));
    /// let shared = [(cache, same_cache)];
    /// let both = prefill.build()?.concat(&decode.build()?, &shared)?;
    /// assert_eq!((both.len(), both.steps()), (3, 4));
    /// assert_eq!(Planner::new().plan(&both)?.pool_size(), 464);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a shared chunk is unknown, shared twice, or of another size in the other problem; if the
    /// pools differ; or if the result is not a valid problem, for example because two pins clash.
    pub fn concat(self, other: &Self, shared: &[(ChunkId, ChunkId)]) -> Result<Self, ProblemError> {
        self.check_shared(other, shared)?;
        let shift = self.steps;
        let steps = shift.checked_add(other.steps).ok_or(ProblemError::TooManySteps)?;
        let streams = self.streams().max(other.streams());
        let lives = both_lives(&self, other, streams)?;
        let pools = common_pools(&self, other)?;
        let own: Vec<(ChunkId, ChunkConstraints)> = constraints_of_both(&self, other, shared)?;

        let earlier_chunks = self.len();
        let mut is_shared = vec![false; earlier_chunks + other.len()];
        for pair in shared {
            is_shared[pair.0.index()] = true;
        }
        let names = self.ids().map(|chunk| given_name(&self.labels, chunk)).collect();
        let mut builder = self.into_builder();
        builder.labels = Labels { ids: Ids::Positions, names };
        builder.alignment = builder.alignment.max(other.alignment);
        builder.padding = builder.padding.max(other.padding);
        builder.at_least_steps(steps);
        let mut ids: Vec<Option<ChunkId>> = vec![None; other.len()];
        for pair in shared {
            ids[pair.1.index()] = Some(pair.0);
            let chunk = &mut builder.chunks[pair.0.index()];
            (chunk.begin, chunk.end) = (0, steps);
        }
        let ids: Vec<ChunkId> = ids
            .into_iter()
            .zip(other.ids())
            .map(|(id, chunk)| {
                let &Chunk { begin, end, size } = other.chunk(chunk);
                let name = given_name(&other.labels, chunk);
                id.unwrap_or_else(|| builder.named_chunk(name, begin + shift..end + shift, size))
            })
            .collect();
        if builder.labels.names.iter().all(|name| name.is_empty()) {
            builder.labels.names.clear();
        }
        if let Some(pools) = pools {
            builder.pools(pools);
        }
        for (chunk, constraints) in own {
            builder.constrain(chunk, constraints);
        }
        for (later, own) in other.ids().zip(&other.all_constraints().own) {
            // A shared chunk has the constraints of both problems.
            if ids[later.index()].index() >= earlier_chunks {
                builder.constrain(ids[later.index()], own.clone().later(shift));
            }
        }
        if let Some((lives, end)) = lives {
            builder.streams(streams);
            let earlier = (0..earlier_chunks).map(ChunkId::from_index);
            for (chunk, Life { begin, end }) in earlier.chain(ids.iter().copied()).zip(lives) {
                let stream = builder.constraints.as_ref().map_or(0, |all| all.of(chunk).stream);
                builder.life(chunk, begin, end, stream);
            }
            let start: Clock = vec![0; streams].into();
            for pair in shared {
                builder.life(pair.0, start.clone(), end.clone(), 0);
            }
        }
        let id = |chunk: ChunkId| ids[chunk.index()];
        let mapped = other.requests.iter().map(|request| Request {
            overwriter: id(request.overwriter),
            overwritten: id(request.overwritten),
            ..*request
        });
        let requests: Vec<Request> =
            std::mem::take(&mut builder.requests).into_iter().chain(mapped).collect();
        let is_state = states(&requests, is_shared.clone());
        let mut parts: Vec<Part> = Vec::new();
        for request in requests {
            let Request { overwriter, overwritten, offset, below, required } = request;
            if required
                && below == 0
                && (is_state[overwriter.index()] || is_state[overwritten.index()])
            {
                parts.push(Part::new(overwriter, overwritten, offset));
            } else {
                builder.request(request);
            }
        }
        let later = |part: &Part| Part::new(id(part.part), id(part.whole), part.offset);
        parts.extend(other.parts().iter().map(later));
        for group in &other.all_constraints().apart {
            builder.apart(group.iter().map(|&chunk| id(chunk)).collect::<Vec<_>>());
        }
        let known = builder.constraints.iter().flat_map(|all| &all.parts);
        for Part { part, whole, offset } in new_parts(known, parts) {
            builder.part(part, whole, offset);
        }
        let optional = other.optional_parts.iter().map(later).collect();
        let optional = new_parts(&builder.optional_parts, optional);
        builder.optional_parts.extend(optional);
        // All bytes of a shared chunk are needed before its parts are there.
        builder.optional_parts.retain(|part| !is_shared[part.whole.index()]);
        builder.finish()
    }

    /// The same chunks with names that begin with a prefix, such as the name of a model. A chunk without a
    /// name gets its id as one.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        let names = self.ids().map(|chunk| format!("{prefix}{}", self.labels.name(chunk)).into());
        self.labels.names = names.collect();
        self
    }

    fn check_shared(
        &self,
        other: &Self,
        shared: &[(ChunkId, ChunkId)],
    ) -> Result<(), ProblemError> {
        let mut seen = [vec![false; self.len()], vec![false; other.len()]];
        for &(earlier, later) in shared {
            known(&self.chunks, earlier, "a shared chunk")?;
            known(&other.chunks, later, "a shared chunk")?;
            let error = |reason: String| ProblemError::Shared {
                earlier: self.labels.name(earlier),
                later: other.labels.name(later),
                reason,
            };
            let is_repeated = [earlier, later]
                .into_iter()
                .zip(&mut seen)
                .any(|(chunk, seen)| std::mem::replace(&mut seen[chunk.index()], true));
            if is_repeated {
                return Err(error("one of them is shared already".to_owned()));
            }
            let sizes = (self.chunk(earlier).size, other.chunk(later).size);
            if sizes.0 != sizes.1 {
                return Err(error(format!("they have {} and {} B", sizes.0, sizes.1)));
            }
        }
        Ok(())
    }

    /// The lifetimes of all chunks in clocks of `streams` entries; missing entries are 0.
    fn lives(&self, streams: usize) -> Vec<Life> {
        let wide = |clock: &[Step]| -> Clock {
            let rest = std::iter::repeat(0);
            clock.iter().copied().chain(rest).take(streams).collect()
        };
        let view = self.view();
        let lives = self.ids().map(|chunk| view.life(chunk));
        lives.map(|(begin, end)| Life { begin: wide(begin), end: wide(end) }).collect()
    }
}

/// The parts that are not in `known`: both problems may state the same part of a shared chunk.
fn new_parts<'p>(known: impl IntoIterator<Item = &'p Part>, mut parts: Vec<Part>) -> Vec<Part> {
    let key = |part: &Part| (part.part, part.whole, part.offset);
    let mut known: BTreeSet<_> = known.into_iter().map(key).collect();
    parts.retain(|part| known.insert(key(part)));
    parts
}

/// By chunk: true if it is a state, which is a shared chunk or one joined to a shared chunk by updates.
fn states(requests: &[Request], mut is_state: Vec<bool>) -> Vec<bool> {
    let mut joined: Vec<usize> = (0..is_state.len()).collect();
    for request in requests.iter().filter(|request| request.required && request.below == 0) {
        let (a, b) = join(&mut joined, request.overwriter.index(), request.overwritten.index());
        is_state[a] |= is_state[b];
    }
    (0..joined.len()).map(|chunk| is_state[find(&mut joined, chunk)]).collect()
}

/// The lives of the chunks of two problems, all clocks of the second after all of the first, and the clock at which
/// all of them are over. `None` if there is one stream.
fn both_lives(
    first: &Problem,
    second: &Problem,
    streams: usize,
) -> Result<Option<(Vec<Life>, Clock)>, ProblemError> {
    if streams == 1 {
        return Ok(None);
    }
    let latest = |lives: &[Life]| {
        lives.iter().fold(Clock::from(vec![0; streams]), |mut latest, life| {
            latest.merge(&life.end, Step::max);
            latest
        })
    };
    let mut lives = first.lives(streams);
    let middle = latest(&lives);
    let shifted = |clock: &Clock| -> Result<Clock, ProblemError> {
        let sums = clock.iter().zip(&middle).map(|(&at, &shift)| at.checked_add(shift));
        sums.collect::<Option<Clock>>().ok_or(ProblemError::TooManySteps)
    };
    for Life { begin, end } in second.lives(streams) {
        lives.push(Life { begin: shifted(&begin)?, end: shifted(&end)? });
    }
    let end = latest(&lives);
    Ok(Some((lives, end)))
}

/// The pools of both problems, if either lists some.
fn common_pools(first: &Problem, second: &Problem) -> Result<Option<Vec<Pool>>, ProblemError> {
    let listed =
        |problem: &Problem| problem.all_constraints().has_pools.then(|| problem.pools().to_vec());
    match (listed(first), listed(second)) {
        (Some(first), Some(second)) if first != second => Err(ProblemError::OtherPools),
        (Some(pools), _) | (None, Some(pools)) => Ok(Some(pools)),
        (None, None) => Ok(None),
    }
}

/// Merges the constraints of both problems on the shared chunks. Holes and windows are dropped, because they do not
/// hold while the other problem runs.
fn constraints_of_both(
    first: &Problem,
    second: &Problem,
    shared: &[(ChunkId, ChunkId)],
) -> Result<Vec<(ChunkId, ChunkConstraints)>, ProblemError> {
    if first.is_unconstrained() && second.is_unconstrained() {
        return Ok(Vec::new());
    }
    let merged = shared.iter().map(|pair| {
        let a = first.all_constraints().of(pair.0).clone();
        let b = second.all_constraints().of(pair.1).clone();
        if a.pin.zip(b.pin).is_some_and(|(a, b)| a != b) {
            return Err(ProblemError::TwoPins { chunk: first.labels.name(pair.0) });
        }
        let pools = match (a.pools, b.pools) {
            (Some(a), Some(b)) => Some(a.into_iter().filter(|pool| b.contains(pool)).collect()),
            (pools, None) | (None, pools) => pools,
        };
        let traffic = first.traffic(pair.0).saturating_add(second.traffic(pair.1));
        let constraints = ChunkConstraints {
            alignment: a.alignment.max(b.alignment),
            pools,
            pin: a.pin.or(b.pin),
            traffic: Some(traffic),
            ..ChunkConstraints::default()
        };
        Ok((pair.0, constraints))
    });
    merged.collect()
}

/// The name of a chunk, or the id that it was given, because two problems may give the same id; empty if it has neither.
fn given_name(labels: &Labels, chunk: ChunkId) -> Box<str> {
    match labels.own_name(chunk) {
        Some(name) => name.into(),
        None if labels.ids == Ids::Positions => "".into(),
        None => labels.id(chunk).into(),
    }
}
