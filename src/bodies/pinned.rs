//! Finds clashes between pinned bodies.

use crate::{
    bodies::{
        Body, ChainProjection,
        boxes::{Apart, View},
        builder::{ALL_STEPS, Index, life},
    },
    problem::{ChunkId, Links, constraints::Clocks},
};

/// A chunk of a pinned body.
#[derive(Clone, Copy)]
struct Pinned {
    body: usize,
    chunk: ChunkId,
    low: i128,
}

/// Returns two chunks of different pinned bodies that need the same bytes at the same time, if there are any. Only
/// chunks that are close in a pool or in time are compared.
pub(crate) fn clash_of_pins(
    view: View<'_>,
    bodies: &[Body],
    links: &Links,
) -> Option<(ChunkId, ChunkId)> {
    let fixed: Vec<_> = bodies.iter().filter_map(|body| Some((body, body.fixed?))).collect();
    if fixed.len() < 2 {
        return None;
    }
    let apart = Apart::of(view);
    let boxes = |chunk, _| view.boxes(chunk, links.get(chunk));
    let begins = || view.constraints.lives.iter().map(|life| &*life.begin).collect::<Clocks>();
    let line = (view.constraints.streams > 1).then(|| ChainProjection::of(&begins()));
    let life = |chunk| life(&view, line.as_ref(), chunk);
    let mut indices = vec![Index::default(); view.constraints.pools.len()];
    let mut earlier: Vec<Pinned> = Vec::new();
    for (body, &(pinned, place)) in fixed.iter().enumerate() {
        let index = &mut indices[place.pool.index()];
        let own = pinned.members.iter().map(|&(chunk, at)| Pinned {
            body,
            chunk,
            low: i128::from(place.offset + at),
        });
        let mut clashes = Vec::new();
        for (at, new) in own.clone().enumerate() {
            let steps = if apart.is_free(new.chunk) { life(new.chunk) } else { ALL_STEPS };
            for old in index.near(&view.bytes_at(new.chunk, new.low), &steps) {
                let clash = earlier[old];
                let (x, y) = ((clash.chunk, clash.low), (new.chunk, new.low));
                if apart.need_same_bytes(view, x, y, boxes) {
                    clashes.push((clash.body, old, at, clash.chunk, new.chunk));
                }
            }
        }
        if let Some(&(.., old, new)) = clashes.iter().min() {
            return Some((old, new));
        }
        for new in own {
            index.add(earlier.len(), view.bytes_at(new.chunk, new.low), life(new.chunk));
            earlier.push(new);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use arbitrary::{Result, Unstructured};

    use crate::{Problem, ProblemError, problem::constraints::PoolId, seeds::times};

    /// A pinned chunk: begin, end, size and offset, and whether it is kept apart from others of which this is true.
    type Row = (u64, u64, u64, u64, bool);

    fn rows(random: &mut Unstructured<'_>) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for _ in 0..random.int_in_range(2..=7)? {
            let begin = random.int_in_range(0..=12)?;
            let end = begin + random.int_in_range(1..=4)?;
            let (size, offset) = (random.int_in_range(1..=6)?, random.int_in_range(0..=30)?);
            rows.push((begin, end, size, offset, random.ratio(1, 4)?));
        }
        Ok(rows)
    }

    /// On one stream, or on two of which the second is a step ahead.
    fn built(rows: &[Row], streams: usize) -> std::result::Result<Problem, ProblemError> {
        let mut problem = Problem::builder();
        let mut apart = Vec::new();
        for &(begin, end, size, offset, is_apart) in rows {
            let chunk = problem.chunk(begin..end, size);
            problem.pin(chunk, PoolId(0), offset);
            apart.extend(is_apart.then_some(chunk));
            if streams > 1 {
                let clock = |at: u64| [at, at + 1];
                problem.clocks(chunk, clock(begin), clock(end), 0);
            }
        }
        if apart.len() > 1 {
            problem.apart(apart);
        }
        problem.streams(streams);
        problem.build()
    }

    #[test]
    fn pins_clash_as_all_pairs_do() {
        let (mut right, mut clashing) = (0, 0);
        times(1500, |random| {
            let rows = rows(random)?;
            let clash = |p: &Row, q: &Row| {
                let in_time = p.0.max(q.0) < p.1.min(q.1) || p.4 && q.4;
                in_time && p.3.max(q.3) < (p.3 + p.2).min(q.3 + q.2)
            };
            let mut pairs = (0..rows.len()).flat_map(|q| (0..q).map(move |p| (p, q)));
            let first = pairs.find(|&(p, q)| clash(&rows[p], &rows[q]));
            let expected = first
                .map(|(p, q)| format!("the pins of '{p}' and '{q}' put them on the same bytes"));
            for streams in [1, 2] {
                let found = match built(&rows, streams) {
                    Ok(_) => None,
                    Err(ProblemError::Pins { reason, .. }) => Some(reason),
                    Err(other) => panic!("{other}"),
                };
                assert_eq!(found, expected, "{rows:?} on {streams}");
            }
            right += u32::from(expected.is_none());
            clashing += u32::from(expected.is_some());
            Ok(())
        });
        assert!(right.min(clashing) > 50, "{right} right, {clashing} clashing");
    }

    /// 80 000 pins on distinct bytes of one step, 80 000 in one place one after another, and 80 000 parts, each in
    /// the next one: comparing all pairs takes minutes.
    #[test]
    fn many_pins_and_parts_are_not_compared_with_all_others() {
        let count = 80_000;
        for is_in_a_row in [false, true] {
            let mut pins = Problem::builder();
            for at in 0..count {
                let (begin, offset) = if is_in_a_row { (at, 0) } else { (0, 3 * at) };
                let chunk = pins.chunk(begin..begin + 1, 2);
                pins.pin(chunk, PoolId(0), offset);
            }
            assert!(pins.build().is_ok());
        }
        let mut parts = Problem::builder();
        let mut last = None;
        for at in 0..count {
            let chunk = parts.chunk(at..at + 2, 1 + at);
            if let Some(last) = last.replace(chunk) {
                parts.part(last, chunk, 0);
            }
        }
        assert!(parts.build().is_ok());
    }
}
