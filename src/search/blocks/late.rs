//! The time that packing in blocks needs, and the problems for which there is no time for more.

use std::time::Duration;

use crate::{
    Limits, Observer, Problem,
    monitor::Monitor,
    plan::Layout,
    search::blocks::{BlockPool, layout},
};

/// Packing more bodies in blocks takes as long as the grace of a first layout.
const MANY: u32 = 250_000;

/// The time that packing in blocks, and all that follows, takes for each body.
const TIME: Duration = Duration::from_nanos(400);

/// All that is better than blocks takes at least this long for each body.
const MIN_TIME: Duration = Duration::from_nanos(500);

/// The monitor of a packing that ends in blocks if it is late. With many bodies, the time for these is kept.
pub(crate) fn monitor<'a>(
    problem: &Problem,
    within: Option<BlockPool>,
    limits: &Limits,
    observer: Observer<'a>,
) -> Monitor<'a> {
    let bodies = count(problem);
    if bodies <= MANY || within.is_none() {
        return Monitor::new(limits, observer);
    }
    Monitor::new(limits, observer).keeping(bodies * TIME).without_grace()
}

fn count(problem: &Problem) -> u32 {
    u32::try_from(problem.bodies().len()).unwrap_or(u32::MAX)
}

/// Packs all bodies in blocks, if there is no time for more, and the problem allows it.
pub(crate) fn layout_if_late(
    problem: &Problem,
    within: Option<BlockPool>,
    monitor: &Monitor<'_>,
) -> Option<Layout> {
    let is_short = || monitor.left().is_some_and(|left| left < count(problem) * MIN_TIME);
    if !monitor.is_overdue() && !is_short() {
        return None;
    }
    layout(problem, within?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::blocks::tests::add;

    /// With many bodies, a packing ends so early that packing the rest in blocks keeps the limit, and does not begin
    /// where there is hardly any time.
    #[test]
    fn time_is_kept_for_packing_many_bodies_in_blocks() {
        let mut problem = Problem::builder();
        problem.streams(2);
        add(&mut problem, 8, [0, 0]..[1, 7]);
        for at in 0..u64::from(MANY) {
            add(&mut problem, 8, [at, 0]..[at + 1, 0]);
        }
        let problem = problem.build().unwrap();
        let within = |time| {
            let (within, limits) = (BlockPool::of(&problem), Limits::default().time(time));
            let monitor = monitor(&problem, within, &limits, Observer::default());
            (monitor.left().unwrap(), layout_if_late(&problem, within, &monitor).is_some())
        };
        let (hour, kept) = (Duration::from_hours(1), MANY * TIME);
        let (left, in_blocks) = within(hour);
        assert!(left + kept <= hour && !in_blocks);
        assert_eq!(within(kept / 2), (Duration::ZERO, true));
        assert!(within(kept + MANY * MIN_TIME).1);
    }
}
