//! Meters: a meter ends a search once its nodes are spent or its caller stops it.

use crate::{
    Bytes,
    monitor::Monitor,
    search::{incumbent::Incumbent, sizes::PAUSE},
};

/// The caller of a search: records the nodes so far, and returns whether the search must end.
type Caller<'a> = dyn FnMut(u64) -> bool + 'a;

/// Ends a search, or a part of one, at a number of nodes.
pub struct Meter<'a> {
    caller: &'a mut Caller<'a>,
    /// The nodes of the search less the nodes of the part; negative if the part had nodes before it began.
    before: i64,
    /// The search ends with this many nodes.
    last: u64,
}

impl<'a> Meter<'a> {
    pub fn new(caller: &'a mut Caller<'a>) -> Self {
        Self { caller, before: 0, last: u64::MAX }
    }

    /// A meter whose caller never ends the search.
    #[cfg(test)]
    pub fn unwatched() -> Self {
        Self::new(Box::leak(Box::new(|_| false)))
    }

    /// The meter of a part that starts at zero after `before` nodes, and ends at `last` nodes of its own.
    pub fn part(&mut self, before: u64, last: u64) -> Meter<'_> {
        self.shifted(self.before + before.cast_signed(), last)
    }

    /// The meter of a part that had counted these nodes before it began.
    pub fn since(&mut self, nodes: u64) -> Meter<'_> {
        self.shifted(self.before - nodes.cast_signed(), u64::MAX)
    }

    fn shifted(&mut self, before: i64, last: u64) -> Meter<'_> {
        let last = self.last.min(last.saturating_add_signed(before));
        Meter { caller: self.caller, before, last }
    }

    /// Returns whether the search must end with this many nodes.
    pub fn is_over(&mut self, nodes: u64) -> bool {
        let nodes = nodes.saturating_add_signed(self.before);
        nodes >= self.last || (self.caller)(nodes)
    }

    /// The nodes that are left after these ones.
    pub fn left(&self, nodes: u64) -> u64 {
        self.last.saturating_sub(nodes.saturating_add_signed(self.before))
    }
}

/// The caller of a search that reports an incumbent to the monitor. It ends the search when the monitor stops it, or
/// when nothing is left to search. `unit` is the unit of the incumbent in bytes. A bound or a pool, in bytes, is
/// reported in place of the incumbent's.
pub fn watch<'w>(
    monitor: &'w mut Monitor<'_>,
    incumbent: &'w Incumbent,
    unit: Bytes,
    (bound, pool): (Option<Bytes>, Option<Bytes>),
) -> impl FnMut(u64) -> bool {
    let mut next = 0;
    move |nodes| {
        if nodes >= next {
            next = nodes + PAUSE;
            let snapshot = incumbent.snapshot();
            let bound = bound.unwrap_or_else(|| snapshot.bound * unit);
            let pool = pool.unwrap_or_else(|| snapshot.best * unit);
            monitor.stop(nodes + incumbent.worker_nodes(), bound, pool);
        }
        monitor.stopped() || incumbent.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Observer, Progress};

    #[test]
    fn a_part_counts_on_top_and_ends_with_the_whole() {
        let mut seen = Vec::new();
        let mut caller = |nodes| {
            seen.push(nodes);
            nodes == 77
        };
        let mut meter = Meter::new(&mut caller);
        let mut whole = meter.part(0, 100);
        assert_eq!([whole.left(0), whole.left(30), whole.left(101)], [100, 70, 0]);
        let mut part = whole.part(60, 50);
        assert_eq!([part.left(0), part.part(5, 10).left(1)], [40, 9]);
        assert_eq!(
            [7, 17, 39, 40, 50].map(|nodes| part.is_over(nodes)),
            [false, true, false, true, true]
        );
        assert!(!whole.is_over(99) && whole.is_over(100));
        // One that begins with nodes of its own counts from there.
        let mut later = whole.since(1000);
        assert_eq!([later.left(1000), later.left(1090)], [100, 10]);
        assert!(!later.is_over(1099) && later.is_over(1100));
        assert!(!later.part(0, 1050).is_over(1049) && later.part(0, 1050).is_over(1050));
        assert!(!meter.is_over(100));
        // Once the nodes are spent, the caller is not called.
        assert_eq!(seen, [67, 77, 99, 99, 99, 49, 100]);
    }

    #[test]
    fn the_caller_sees_the_incumbent_or_other_figures_now_and_then() {
        let seen = std::sync::Mutex::new(Vec::new());
        let progress = |p: &Progress| seen.lock().unwrap().push((p.nodes, p.lower_bound, p.best));
        let incumbent = Incumbent::new(3, 10);
        incumbent.add_worker_nodes(1000);
        let mut monitor = Monitor::new(&Limits::default(), Observer::default().progress(&progress));
        assert!(
            ![0, 1, PAUSE - 1, PAUSE]
                .map(watch(&mut monitor, &incumbent, 8, (None, None)))
                .contains(&true)
        );
        incumbent.packed(7, &[]);
        {
            let mut ends = watch(&mut monitor, &incumbent, 8, (Some(1), None));
            assert!(!ends(1000));
            // A proof ends the search at once.
            incumbent.refuted(7);
            assert!(ends(1001));
        }
        assert!(watch(&mut monitor, &incumbent, 8, (Some(1), Some(2)))(2000));
        let expected = [(1000, 24, 80), (1000 + PAUSE, 24, 80), (2000, 1, 56), (3000, 1, 2)];
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}
