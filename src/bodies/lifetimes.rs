//! Lifetimes on several streams, in one allocation.
//!
//! On each stream, steps are replaced by 32-bit numbers in the same order. So a clock is over at another one if none of
//! its numbers is larger, and tables with an entry for each number stay short.

use crate::{
    Step,
    bodies::{TimedBox, by_sum},
    problem::Problem,
    sets::distinct,
};

/// Steps serve as their own numbers if no stream has more than this many steps per clock.
const STEPS_PER_CLOCK: usize = 4;

/// The function that a list of lives is visited with, which receives the begin and the end of each.
type Visit<'a> = dyn FnMut(&[Step], &[Step]) + 'a;

/// Lifetimes, each from a clock to a clock.
#[derive(Clone, Debug)]
pub(crate) struct Lifetimes {
    streams: usize,
    /// The numbers of each begin, followed by those of the end.
    numbers: Vec<u32>,
    /// By stream: an exclusive upper limit of its numbers.
    limits: Vec<usize>,
}

impl Lifetimes {
    /// Collects the lifetimes with which `visit_all` calls its argument, in that order. `visit_all` may be called
    /// several times and must give the same lifetimes each time. `count` is an estimate of their number, which must be
    /// below 2^31.
    pub(crate) fn of(
        streams: usize,
        count: usize,
        mut visit_all: impl FnMut(&mut Visit<'_>),
    ) -> Self {
        let mut lives = Self::with_capacity(streams, count);
        let mut fits = true;
        visit_all(&mut |begin, end| {
            let steps = begin.iter().chain(end);
            lives.numbers.extend(steps.map(|&step| {
                u32::try_from(step).unwrap_or_else(|_| {
                    fits = false;
                    u32::MAX
                })
            }));
        });
        lives.set_limits();
        let clocks = 2 * lives.len();
        if fits && lives.limits.iter().all(|limit| limit / STEPS_PER_CLOCK <= clocks) {
            return lives;
        }
        // If steps are far apart, each distinct step is numbered by its rank.
        let mut steps_of: Vec<Vec<Step>> = vec![Vec::with_capacity(clocks); streams];
        visit_all(&mut |begin, end| {
            for (steps, of_stream) in steps_of.iter_mut().zip(begin.iter().zip(end)) {
                steps.extend([of_stream.0, of_stream.1]);
            }
        });
        let steps_of: Vec<Vec<Step>> = steps_of.into_iter().map(distinct).collect();
        lives.numbers.clear();
        visit_all(&mut |begin, end| {
            for clock in [begin, end] {
                let places = steps_of.iter().zip(clock).map(|(steps, &step)| {
                    let place = steps.partition_point(|&other| other < step);
                    u32::try_from(place).unwrap_or(u32::MAX)
                });
                lives.numbers.extend(places);
            }
        });
        lives.set_limits();
        lives
    }

    fn with_capacity(streams: usize, lives: usize) -> Self {
        let numbers = Vec::with_capacity(2 * streams * lives);
        Self { streams, numbers, limits: vec![0; streams] }
    }

    fn set_limits(&mut self) {
        self.limits.fill(0);
        for clock in self.numbers.chunks_exact(self.streams) {
            for (limit, &number) in self.limits.iter_mut().zip(clock) {
                *limit = (number as usize).saturating_add(1).max(*limit);
            }
        }
    }

    pub(crate) fn streams(&self) -> usize {
        self.streams
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len() / (2 * self.streams)
    }

    /// By stream: an exclusive upper limit of its numbers.
    pub(crate) fn limits(&self) -> &[usize] {
        &self.limits
    }

    pub(crate) fn begin(&self, at: usize) -> &[u32] {
        &self.numbers[2 * at * self.streams..][..self.streams]
    }

    pub(crate) fn end(&self, at: usize) -> &[u32] {
        &self.numbers[(2 * at + 1) * self.streams..][..self.streams]
    }

    pub(crate) fn begins(&self) -> impl ExactSizeIterator<Item = &[u32]> + Clone {
        self.numbers.chunks_exact(2 * self.streams).map(|life| &life[..self.streams])
    }

    /// The indices of the lives in order of the sums of their begins, and the lives in this order.
    pub(crate) fn sorted(self) -> (Vec<u32>, Self) {
        let order = by_sum(self.begins());
        let sorted = self.in_order(&order);
        (order, sorted)
    }

    /// Some of the lives, in an order given by index.
    fn in_order(self, order: &[u32]) -> Self {
        if order.len() == self.len() && order.is_sorted() {
            return self;
        }
        let mut sorted = Self::with_capacity(self.streams, order.len());
        for &at in order {
            let life = &self.numbers[2 * self.streams * at as usize..][..2 * self.streams];
            // Faster than copying a short slice.
            sorted.numbers.extend(life.iter());
        }
        Self { limits: self.limits, ..sorted }
    }
}

/// The lives of the bodies of a constrained problem, in the order in which they begin.
#[derive(Clone, Debug)]
pub(crate) struct BodyLifetimes {
    /// One for each body, in order of the sums of their begins and not of the bodies, so that memory is read in order.
    /// The lifetime of a body's only chunk, holes included, or else from the earliest begin of its boxes to their
    /// latest end, stream by stream.
    pub(crate) lives: Lifetimes,
    /// By life: its body. A body that needs no bytes at any time has no life.
    pub(crate) bodies: Vec<u32>,
    /// True if each body is one chunk, and none overwrites another.
    pub(crate) are_single: bool,
}

impl BodyLifetimes {
    pub(crate) fn of(problem: &Problem) -> Self {
        let bodies = problem.bodies();
        let streams = problem.streams();
        let (mut idle, mut are_single) = (Vec::new(), true);
        let lives = Lifetimes::of(streams, bodies.len(), |visit| {
            idle.clear();
            for (at, body) in (0..).zip(bodies) {
                if let Some((begin, end)) = problem.one_life(body) {
                    visit(begin, end);
                    continue;
                }
                are_single = false;
                if let Some(life) = TimedBox::around(problem.boxes_of(body)) {
                    visit(&life.begin, &life.end);
                } else {
                    idle.push(at);
                    let never = vec![0; streams];
                    visit(&never, &never);
                }
            }
        });
        let mut bodies = by_sum(lives.begins());
        if !idle.is_empty() {
            bodies.retain(|at| idle.binary_search(at).is_err());
        }
        Self { lives: lives.in_order(&bodies), bodies, are_single }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use arbitrary::{Result, Unstructured};

    use super::*;
    use crate::{bodies::happens_before, problem::constraints::Clock, seeds::times};

    /// Ten begins and ends with steps at a distance from each other, and the lives made of them.
    pub(crate) fn ten_lives(
        random: &mut Unstructured<'_>,
        streams: usize,
        distance: Step,
    ) -> Result<([[Clock; 2]; 10], Lifetimes)> {
        let mut all = [const { [const { Vec::new() }; 2] }; 10];
        for clock in all.as_flattened_mut() {
            for _ in 0..streams {
                clock.push(random.int_in_range(0..=9)? * distance);
            }
        }
        let all = all.map(|clocks| clocks.map(Clock::from));
        let lives = Lifetimes::of(streams, all.len(), |visit| {
            for [begin, end] in &all {
                visit(begin, end);
            }
        });
        Ok((all, lives))
    }

    /// Steps that are far apart are sorted, others number themselves.
    #[test]
    fn numbers_are_in_the_order_of_the_steps_and_small() {
        let one = |random: &mut Unstructured<'_>| {
            let (streams, distance) =
                (random.int_in_range(1..=3)?, *random.choose(&[1, 1 << 30, 1 << 60])?);
            let (all, lives) = ten_lives(random, streams, distance)?;
            assert_eq!((lives.len(), lives.begins().len()), (10, 10));
            for (a, [begin, _]) in all.iter().enumerate() {
                for (b, [_, end]) in all.iter().enumerate() {
                    assert_eq!(
                        happens_before(lives.end(b), lives.begin(a)),
                        happens_before(end, begin)
                    );
                    assert_eq!(
                        happens_before(lives.begin(a), lives.end(b)),
                        happens_before(begin, end)
                    );
                }
            }
            for clock in (0..10).flat_map(|at| [lives.begin(at), lives.end(at)]) {
                assert!(
                    clock.iter().zip(lives.limits()).all(|(&at, &limit)| (at as usize) < limit)
                );
            }
            assert!(lives.limits().iter().all(|&limit| limit <= 10), "{lives:?}");
            let (order, sorted) = lives.clone().sorted();
            let sum = |clock: &[u32]| clock.iter().sum::<u32>();
            assert!(sorted.begins().map(sum).is_sorted());
            for (new, &old) in order.iter().enumerate() {
                let of = |lives: &Lifetimes, at| [lives.begin(at).to_vec(), lives.end(at).to_vec()];
                assert_eq!(of(&sorted, new), of(&lives, old as usize));
            }
            Ok(())
        };
        times(1000, one);
    }
}
