use std::collections::{BTreeMap, BTreeSet};

use arbitrary::{Result, Unstructured};

use crate::bodies::builder::*;
use crate::{
    Problem,
    bodies::join_error::PinConflict,
    problem::{
        ProblemBuilder,
        constraints::{Constraints, Place, Pool, PoolId},
    },
    seeds::bytes_of,
};

/// The needs of the chunks of a body, and the pairs of them that clash, by looking at all of them.
impl BodyBuilder<'_> {
    fn overwrite_slowly(&mut self, request: Request) -> std::result::Result<(), JoinError> {
        let (new, old) = (request.overwriter, request.overwritten);
        let link = request.link();
        let before = (self.groups.clone(), self.of.clone());
        self.links[new.index()] = Some(link);
        let (first, second) = (self.of[old.index()].0, self.of[new.index()].0);
        let of_first = self.groups[first as usize].members.len();
        let result = self.join(old, new, link.distance()).and_then(|()| {
            let (group, _) = self.of[new.index()];
            let members = self.groups[group as usize].members.clone();
            if first != second {
                // The chunks of the larger group are the first ones.
                let (a, b) = members.split_at(of_first.max(members.len() - of_first));
                a.iter().try_for_each(|&x| b.iter().try_for_each(|&y| self.check_pair(x, y)))?;
            }
            let body = self.body(&members)?;
            self.check_written(new, old, link)?;
            if let Some(place) = body.fixed {
                self.check_pins_slowly(&body, place, group)?;
            }
            // The body is no longer one of those before.
            self.prepare(group)
        });
        if result.is_err() {
            self.links[new.index()] = None;
            (self.groups, self.of) = before;
        }
        result
    }

    /// Compares the chunks of a body that were not pinned before with all that are.
    fn check_pins_slowly(
        &mut self,
        body: &Body,
        place: Place,
        group: u32,
    ) -> std::result::Result<(), JoinError> {
        let offset = |at: Bytes| i128::from(at) + i128::from(place.offset);
        let chunks = || body.members.iter().map(|&(chunk, at)| (chunk, offset(at)));
        let fresh: Vec<(ChunkId, i128)> =
            chunks().filter(|&(chunk, _)| self.pinned.place(chunk).is_none()).collect();
        for &x in &fresh {
            for y in (0..self.view.chunks.len()).map(ChunkId::from_index) {
                let Some((pool, of_y)) = self.pinned.place(y) else { continue };
                let is_other = self.of[y.index()].0 != group && pool == place.pool;
                if is_other && self.needs_same_bytes(x, (y, of_y)) {
                    return Err(JoinError::Pins(x.0, PinConflict::Pinned));
                }
            }
        }
        for (chunk, at) in fresh {
            self.pin(chunk, place.pool, at);
        }
        Ok(())
    }
}

/// A pool that may be too small for some chunks, or have reserved bytes.
fn random_pool(random: &mut Unstructured<'_>, at: u32) -> Result<Pool> {
    let mut pool = Pool::new(format!("p{at}")).alignment(1 << (3 * at));
    if random.ratio(1, 4)? {
        pool = pool.capacity(4 * random.int_in_range(9..=20)?);
    }
    if random.ratio(1, 4)? {
        let low = 4 * random.int_in_range(0..=3)?;
        pool = pool.reserved(low..low + 4);
    }
    Ok(pool)
}

/// Chunks that are made over others, parts of larger ones and chunks with constraints of their own.
fn random_problem(random: &mut Unstructured<'_>) -> Result<Problem> {
    let mut problem = Problem::builder().alignment(1 << random.int_in_range(0..=2)?);
    let mut pools: Vec<PoolId> = Vec::new();
    for at in 0..random.int_in_range(1..=2)? {
        pools.push(problem.pool(random_pool(random, at)?));
    }
    // On two streams, the second one does a step for each few of the first, or is now and then ahead.
    let others = random.choose(&[None, None, Some(2), Some(9)])?;
    let ahead = random.int_in_range(0..=2)?;
    let second = |step: Step| others.map_or(0, |few| step / few + step % 3 * ahead);
    let clocks = |problem: &mut ProblemBuilder, chunk, begin, end| {
        let life = [second(begin), second(end).max(second(begin))];
        problem.clocks(chunk, [begin, life[0]], [end, life[1]], 0);
    };
    if others.is_some() {
        problem.streams(2);
    }
    let count = random.int_in_range(2..=30)?;
    let mut ends = Vec::new();
    for at in 0..count {
        let begin = at + random.int_in_range(0..=1)?;
        let end = begin + random.int_in_range(1..=3)?;
        let size = 4 * random.int_in_range(1..=3)?;
        let chunk = problem.chunk(begin..end, size);
        if others.is_some() {
            clocks(&mut problem, chunk, begin, end);
        }
        ends.push((chunk, begin, end, size));
        if random.ratio(1, 8)? {
            problem.align(chunk, 1 << random.int_in_range(1..=3)?);
        }
        if random.ratio(1, 20)? {
            problem.only_in(chunk, [pools[random.int_in_range(0..=pools.len() - 1)?]]);
        }
        if random.ratio(1, 20)? {
            problem.pin(chunk, pools[0], 4 * random.int_in_range(0..=8)?);
        }
    }
    let mut whole = 0;
    while whole + 3 < ends.len() && random.ratio(2, 3)? {
        let size = 12 * 3;
        let (begin, end) = (ends[whole].1, ends[whole + 2].2.max(ends[whole].2));
        let around = problem.chunk(begin..end, size);
        if others.is_some() {
            clocks(&mut problem, around, begin, end);
        }
        for part in 0..3 {
            problem.part(ends[whole + part].0, around, 12 * part as u64);
        }
        whole += random.int_in_range(3..=5)?;
    }
    if random.ratio(1, 4)? {
        let last = ends.len() - 1;
        let [a, b] = [random.int_in_range(0..=last)?, random.int_in_range(0..=last)?];
        problem.apart(BTreeSet::from([ends[a].0, ends[b].0]).into_iter().collect::<Vec<_>>());
    }
    for &(new, begin, _, size) in &ends {
        let over = ends.iter().filter(|old| old.2 == begin + 1 && old.0 < new && size <= old.3);
        for old in over.take(2) {
            problem.overwrite(new, old.0, random.int_in_range(0..=(old.3 - size) / 4)? * 4);
        }
    }
    problem.build().map_err(|_| arbitrary::Error::IncorrectFormat)
}

/// A long chain of overwrites on each of two streams, which seldom wait for each other.
#[test]
fn a_chunk_is_compared_with_few_of_a_long_chain_on_any_stream() {
    let mut problem = Problem::builder();
    problem.streams(2);
    for stream in 0..2 {
        let mut last = None;
        for at in 0..300 {
            let chunk = problem.chunk(0..1, 8);
            let (mut begin, mut end) = ([at / 3; 2], [at / 3; 2]);
            (begin[stream], end[stream]) = (at, at + 2);
            problem.clocks(chunk, begin, end, stream);
            if let Some(last) = last.replace(chunk) {
                problem.overwrite(chunk, last, 0);
            }
        }
    }
    let problem = problem.build().unwrap();
    let mut joiner = BodyBuilder::new(problem.view(), problem.requests()).unwrap();
    let mut most = 0;
    for &request in problem.requests() {
        let (group, at) = joiner.of[request.overwritten.index()];
        let steps = joiner.steps(group, request.overwriter);
        most = joiner.sharing(group, at..at + 8, steps).count().max(most);
        assert!(joiner.overwrite(request).is_ok());
    }
    assert!((2..20).contains(&most), "{most}");
}

#[test]
fn requests_are_honoured_as_if_all_chunks_of_a_body_were_looked_at() {
    let (mut accepted, mut refused, mut large, mut drawn) = (0, BTreeMap::new(), 0, 0);
    for seed in 0..2000_u64 {
        let Ok(problem) = random_problem(&mut Unstructured::new(&bytes_of(seed))) else { continue };
        let view = problem.view();
        let mut slow = BodyBuilder::new(view, problem.requests()).unwrap();
        let mut expected = Vec::new();
        let (allowed, _) = slow.allowed(problem.requests(), &mut Vec::new());
        for &taken in &allowed {
            slow.set_pending(problem.requests()[taken], true);
        }
        for &taken in &allowed {
            if let Err(error) = slow.overwrite_slowly(problem.requests()[taken]) {
                expected.push((taken, error.reject_reason()));
            }
            slow.set_pending(problem.requests()[taken], false);
        }
        expected.sort_by_key(|&(request, _)| request);
        let mut found =
            BodyBuilder::new(view, problem.requests()).unwrap().accept(problem.requests()).unwrap();
        found.refused.retain(|(request, _)| allowed.contains(request));
        assert_eq!(found, slow.finish(expected).unwrap(), "{problem:?}");
        drawn += u32::from(!view.constraints.apart.is_empty() && view.constraints.streams == 2);
        accepted += found.links.count();
        large += found.bodies.iter().filter(|body| body.members.len() > 4).count();
        for (_, reason) in found.refused {
            *refused.entry(reason.to_string()).or_insert(0) += 1;
        }
    }
    // Clash, TwoPlaces, Misaligned, NoCommonPool, TwoPins, Pins or TooLarge.
    assert!(accepted > 1000 && large > 50 && drawn > 5, "{accepted} {large} {drawn}");
    assert!(refused.len() >= 6, "{refused:?}");
}

/// Chunks that nothing joins need not be looked at as groups.
#[test]
fn single_bodies_are_those_of_joining_nothing() {
    let (mut fixed, mut drawn) = (0, 0);
    for seed in 0..500_u64 {
        let Ok(problem) = random_problem(&mut Unstructured::new(&bytes_of(seed))) else { continue };
        let view = problem.view();
        let constraints = &Constraints { parts: Vec::new(), ..view.constraints.clone() };
        let view = View { constraints, ..view };
        let Ok(single) = single_bodies(view) else { continue };
        assert_eq!(single, BodyBuilder::new(view, &[]).unwrap().accept(&[]).unwrap().bodies);
        drawn += single.len();
        fixed += single.iter().filter(|body| body.fixed.is_some()).count();
    }
    assert!(drawn > 1000 && fixed > 10, "{drawn} {fixed}");
}
