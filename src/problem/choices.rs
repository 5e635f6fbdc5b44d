//! Optional requests as choices: problems without some of them, and a bound that holds for all.

use std::collections::HashMap;

use crate::{
    Bytes, Problem, ProblemError,
    problem::{ChunkId, Request, align_up},
};

impl Problem {
    /// The same problem without some of its requests, by their places in the list.
    pub(crate) fn without_requests(
        &self,
        is_given_up: impl Fn(usize) -> bool,
    ) -> Result<Self, ProblemError> {
        let mut builder = self.clone().into_builder();
        let mut at = 0;
        builder.requests.retain(|_| {
            at += 1;
            !is_given_up(at - 1)
        });
        builder.finish()
    }

    /// The bytes that every plan needs, whichever requests are accepted; `None` if the problem is not plain.
    ///
    /// In each step, all chunks alive need their bytes. An overwriter may save the bytes of one chunk that it may
    /// overwrite in its first step. Bytes count in multiples of the alignment, except in chunks that requests may put
    /// off it.
    pub(crate) fn bound_over_requests(&self, alignment: Bytes, padding: Bytes) -> Option<Bytes> {
        if !self.is_plain() {
            return None;
        }
        let exact = self.off_the_alignment(alignment);
        // The bytes, and the cells of the alignment that they take from all others.
        let count = |chunk: ChunkId, size: Bytes| -> (i128, i128) {
            let size = if size == 0 { 0 } else { size.saturating_add(padding) };
            let floor = size & !(alignment - 1);
            let cells = if exact[chunk.index()] { floor } else { align_up(size, alignment) };
            (size.into(), cells.into())
        };
        // The change of both at each step at which they change.
        let mut changes: Vec<(u64, (i128, i128))> = Vec::with_capacity(2 * self.len());
        for id in self.ids() {
            let chunk = self.chunk(id);
            let (plain, cells) = count(id, chunk.size);
            changes.extend([(chunk.begin, (plain, cells)), (chunk.end, (-plain, -cells))]);
        }
        // What each overwriter saves at most, in its first step.
        let mut saved: HashMap<ChunkId, (i128, i128)> = HashMap::new();
        for &Request { overwriter, overwritten, below, .. } in self.requests() {
            let [new, old] = [overwriter, overwritten].map(|chunk| self.chunk(chunk));
            if old.end == new.begin + 1 && below < new.size {
                let (plain, cells) = count(overwriter, old.size.min(new.size - below));
                let whole = count(overwriter, new.size);
                // Off the alignment, it may hold the first byte of no cell but what it destroys.
                let cells = if exact[overwriter.index()] { whole.1 } else { cells };
                let best = saved.entry(overwriter).or_default();
                *best = (best.0.max(plain), best.1.max(cells));
            }
        }
        for (chunk, (plain, cells)) in saved {
            let begin = self.chunk(chunk).begin;
            changes.extend([(begin, (-plain, -cells)), (begin + 1, (plain, cells))]);
        }
        changes.sort_unstable();
        let (mut alive, mut most) = ((0, 0), 0);
        for now in changes.chunk_by(|a, b| a.0 == b.0) {
            for (_, (plain, cells)) in now {
                alive = (alive.0 + plain, alive.1 + cells);
            }
            most = most.max(alive.0).max(alive.1);
        }
        let most = most.cast_unsigned().next_multiple_of(alignment.into());
        Some(Bytes::try_from(most).unwrap_or(Bytes::MAX))
    }

    /// By chunk: true if it may share a cell of the alignment with another chunk, as one that lies off the alignment
    /// in a chunk that it is written over does, and all that are joined to those.
    fn off_the_alignment(&self, alignment: Bytes) -> Vec<bool> {
        let mut group: Vec<usize> = (0..self.len()).collect();
        let mut exact = vec![false; self.len()];
        for &Request { overwriter, overwritten, offset, below, .. } in self.requests() {
            let is_aligned = offset.is_multiple_of(alignment) && below.is_multiple_of(alignment);
            let (a, b) =
                (find(&mut group, overwriter.index()), find(&mut group, overwritten.index()));
            exact[a] |= exact[b] || !is_aligned;
            group[b] = a;
        }
        (0..self.len()).map(|at| exact[find(&mut group, at)]).collect()
    }
}

/// The first of the chunks that a chunk is joined to.
fn find(group: &mut [usize], mut at: usize) -> usize {
    while group[at] != at {
        group[at] = group[group[at]];
        at = group[at];
    }
    at
}

#[cfg(test)]
mod tests {
    use crate::Problem;

    #[test]
    fn the_bound_over_requests_saves_what_the_best_of_them_saves() {
        let mut problem = Problem::builder();
        let a = problem.chunk(0..2, 96);
        problem.chunk(0..2, 64);
        let c = problem.chunk(1..3, 80);
        problem.overwrite(c, a, 0);
        // Rule a: it does not begin in the last step of this one.
        let d = problem.chunk(2..4, 32);
        problem.overwrite(d, a, 0);
        let problem = problem.build().expect("the problem is right");
        assert_eq!(problem.bound_over_requests(1, 0), Some(96 + 64));
        assert_eq!(problem.bound_over_requests(64, 0), Some(128 + 64));
        let without = problem.without_requests(|at| at == 0).expect("the problem is right");
        assert_eq!(without.bound_over_requests(1, 0), Some(96 + 64 + 80));
    }
}
