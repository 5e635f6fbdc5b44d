//! The bytes taken at a few moments, for bodies that live long.
//!
//! First fit compares a new body with the boxes that are alive together with it, which are thousands if bodies live
//! long. So the bytes taken at a few moments are kept as runs, by all placed boxes that are alive then. In a good packing
//! these are few, however many boxes they come from. A new body is lifted to where it is clear of the runs of all of its
//! moments before it is compared with boxes.

use crate::{
    Bytes, Step,
    problem::demands::{TimedBox, TimedBoxes},
    search::runs::Runs,
};

/// The number of moments; each is a bit of a word. With 64, first fit takes longer.
const MOMENTS: usize = 16;

/// Moments do not pay if boxes are alive at fewer of them on average.
const FEW: usize = 2;

/// Moments do not pay with fewer boxes.
const MANY_BOXES: usize = if cfg!(test) { 8 } else { 4096 };

/// The boxes at whose begins moments are chosen, and that are looked at to find that average.
const SAMPLES: usize = 256;

/// The moments at which boxes are alive.
pub(super) struct SampledOccupancy {
    /// By body and box: a bit for each moment.
    alive: Vec<Vec<u64>>,
}

impl SampledOccupancy {
    /// Chooses moments at which boxes begin; `None` if boxes are alive at few of them.
    pub(super) fn of(boxes: &[TimedBoxes]) -> Option<Self> {
        let all = || boxes.iter().flatten();
        let count = all().count();
        if count < MANY_BOXES {
            return None;
        }
        let sum = |clock: &[Step]| clock.iter().map(|&step| u128::from(step)).sum::<u128>();
        let samples = || all().step_by(count.div_ceil(SAMPLES));
        let mut begins: Vec<&[Step]> = samples().map(|one| &*one.begin).collect();
        begins.sort_unstable_by_key(|begin| (sum(begin), *begin));
        let moments: Vec<&[Step]> =
            (0..MOMENTS).map(|at| begins[at * begins.len() / MOMENTS]).collect();
        let alive = |one: &TimedBox| {
            let bits = moments
                .iter()
                .enumerate()
                .map(|(at, moment)| u64::from(one.is_alive_at(moment)) << at);
            bits.fold(0, |word, bit| word | bit)
        };
        let moments_of_samples: u32 = samples().map(|one| alive(one).count_ones()).sum();
        if (moments_of_samples as usize) < FEW * begins.len() {
            return None;
        }
        let alive = boxes.iter().map(|boxes| boxes.iter().map(alive).collect()).collect();
        Some(Self { alive })
    }
}

/// The bytes that are taken at each moment in one pool.
pub(super) struct AtMoments<'a> {
    moments: &'a SampledOccupancy,
    taken: Vec<Runs>,
}

impl<'a> AtMoments<'a> {
    pub(super) fn new(moments: &'a SampledOccupancy) -> Self {
        Self { moments, taken: vec![Runs::default(); MOMENTS] }
    }

    /// Takes the bytes of a body that lies at an offset.
    pub(super) fn take(&mut self, body: usize, boxes: &[TimedBox], offset: Bytes) {
        for (one, alive) in boxes.iter().zip(&self.moments.alive[body]) {
            for moment in bits(*alive) {
                self.taken[moment].add(offset + one.bytes.start, offset + one.bytes.end);
            }
        }
    }

    /// The lowest offset from `offset` on at which a body is clear of what is taken at its moments. `round_up` raises an
    /// offset to the next allowed one; `None` if there is none.
    pub(super) fn lowest_from(
        &self,
        body: usize,
        boxes: &[TimedBox],
        offset: Bytes,
        round_up: impl Fn(Bytes) -> Option<Bytes>,
    ) -> Option<Bytes> {
        let mut offset = round_up(offset)?;
        loop {
            let before = offset;
            for (one, alive) in boxes.iter().zip(&self.moments.alive[body]) {
                let (start, size) = (one.bytes.start, one.bytes.end - one.bytes.start);
                for moment in bits(*alive) {
                    let low = offset + start;
                    let free = self.taken[moment].free_from(low, size);
                    if free > low {
                        offset = round_up(free - start)?;
                    }
                }
            }
            if offset == before {
                return Some(offset);
            }
        }
    }
}

/// The numbers of the bits that are set.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (at < 64).then_some(at as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Limits, Observer, Problem,
        monitor::Monitor,
        search::{first_fit::packed, statement::Statement},
    };

    #[test]
    fn bodies_lie_where_they_lie_without_moments() {
        let (mut some, mut none) = (0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let streams = random.int_in_range(1..=3)?;
            let mut problem = Problem::builder();
            problem.streams(streams);
            let last = random.int_in_range(2..=20)?;
            for _ in 0..random.int_in_range(5..=30)? {
                let (mut begin, mut end) = (Vec::new(), Vec::new());
                for _ in 0..streams {
                    begin.push(random.int_in_range(0..=20)?);
                    end.push(begin[begin.len() - 1] + random.int_in_range(1..=last)?);
                }
                let size = random.int_in_range(1..=20)?;
                let chunk = problem.chunk(begin[0]..end[0], size);
                problem.align(chunk, 1 << random.int_in_range(0..=2)?);
                if streams > 1 {
                    problem.clocks(chunk, begin.into(), end.into(), 0);
                }
            }
            let problem = problem.build().unwrap();
            let places = |statement: &Statement<'_>| {
                let mut monitor = Monitor::new(&Limits::default(), Observer::default());
                packed(statement, &mut monitor).map(|packed| packed.places).unwrap()
            };
            let mut statement = Statement::of(&problem);
            let with_moments = places(&statement);
            *(if statement.moments.take().is_some() { &mut some } else { &mut none }) += 1;
            assert_eq!(with_moments, places(&statement));
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(400);
        assert!(some > 0 && none > 0, "{some} {none}");
    }

    /// Ten boxes of 8 bytes, all of them alive at the moment when the last one begins.
    #[test]
    fn what_is_taken_at_the_moments_of_a_body_is_passed_at_once() {
        let timed = |step: Step, size| TimedBox {
            begin: [step].into(),
            end: [step + 10].into(),
            bytes: 0..size,
        };
        let boxes: Vec<TimedBoxes> = (0..10).map(|at| [timed(at, 8)].into()).collect();
        let moments = SampledOccupancy::of(&boxes).unwrap();
        let mut taken = AtMoments::new(&moments);
        for (at, offset) in [(0, 0), (1, 8), (2, 24), (3, 32), (4, 48), (5, 56)] {
            taken.take(at, &boxes[at], offset);
        }
        let lowest = |from: Bytes, modulus: Bytes| {
            taken.lowest_from(6, &boxes[6], from, |at| at.checked_next_multiple_of(modulus))
        };
        assert_eq!([0, 16, 17, 41].map(|from| lowest(from, 1)), [16, 16, 40, 64].map(Some));
        assert_eq!([lowest(0, 20), lowest(0, 32)], [Some(40), Some(64)]);
        assert_eq!(SampledOccupancy::of(&boxes[..7]).map(|_| ()), None);
    }
}
