//! Ejection for bodies that clash in pairs: on several streams, where no steps show which bodies are alive together,
//! and with holes, windows or parts. [`Ejection`] packs them; this finds the clashes, the bound and the nodes.

use std::borrow::Cow;

use crate::{
    Bytes, Limits,
    bodies::Body,
    budget::Budget,
    monitor::Monitor,
    plan::Layout,
    problem::constraints::Place,
    search::{
        clashes::{Clash, Clashes, HIGHEST},
        control::{
            descent::{self, Attempts, Packer},
            meter::{Meter, watch},
        },
        effort::{MAX_ON_TOP, on_top},
        ejection::Ejection,
        first_fit::Packed,
        incumbent::Incumbent,
        pool_instance::{OverlapFinder, PoolInstance},
        pools::cliques::Graph,
        ranges::Grid,
        sizes::WORK_PER_NODE,
        solution::near,
    },
};

/// On one stream, the nodes on top of the effort are spent until the pool exceeds the bound by at most the bound
/// divided by this. With 100, 28 problems with holes are 0.1 % larger.
const NEAR: Bytes = 400;

/// The limits to try, in 64ths of the gap between the bound and the best packing. With the levels of ejection, 4 of 57
/// proofs of problems with holes or streams are lost.
const LEVELS: [u64; 4] = [32, 48, 56, 60];

/// A first attempt gets this many times the nodes that it takes to place all bodies.
const PLACINGS: u64 = 100;

/// The bodies of one pool, each of which may clash with some others.
pub struct Pairwise<'a> {
    instance: &'a PoolInstance<'a>,
    clashes: Cow<'a, Clashes>,
    /// The nodes that finding the clashes took.
    nodes: u64,
}

impl<'a> Pairwise<'a> {
    /// Returns `None` if there are several pools, buffers, reserved ranges or chunks kept apart, if bodies are too
    /// large, or if the budget does not suffice to find the clashes.
    pub fn new(instance: &'a PoolInstance<'a>, mut budget: Budget<'_>) -> Option<Self> {
        let ([pool], bodies) = (instance.pools, instance.bodies) else { return None };
        let has_pool = bodies.iter().all(|body| body.pools.len() == 1);
        let is_simple = pool.largest.is_none() && pool.reserved.is_empty();
        // Each pair of bodies would look for its members in all groups.
        let has_groups = !instance.apart().is_empty();
        if !has_pool || !is_simple || has_groups {
            return None;
        }
        // No packing is higher than this above the highest pin.
        let highest = bodies.iter().fold(0, |sum: Bytes, body| {
            sum.saturating_add(body.extent).saturating_add(body.pools[0].modulus)
        });
        let pins = bodies.iter().filter_map(|body| body.fixed.map(|place| place.offset));
        let highest = highest.saturating_add(pins.max().unwrap_or(0));
        if highest >= HIGHEST {
            return None;
        }
        if let OverlapFinder::Pairs(clashes) = &instance.overlaps {
            return Some(Self { instance, clashes: Cow::Borrowed(clashes), nodes: 0 });
        }
        let clashes = Cow::Owned(Clashes::of(&instance.boxes, &mut budget)?);
        Some(Self { instance, clashes, nodes: budget.spent() / WORK_PER_NODE as u64 })
    }

    /// A lower bound of the pool, in bytes: `bound`, or if more, the bytes of bodies any two of which lie side by side.
    pub fn bound(&self, bound: Bytes) -> Bytes {
        let bodies = self.instance.bodies;
        // The graph has two bits for each pair of bodies: 128 MiB for this many.
        if bodies.len() > 1 << 15 {
            return bound;
        }
        // The bytes that no other body can use, and the bytes of the cells of the alignment that this body alone touches.
        let bytes = |body: &Body| {
            (body.extent, self.instance.problem.aligned_bytes(body, &(0..body.extent)))
        };
        let sizes: Vec<(Bytes, Bytes)> = bodies.iter().map(bytes).collect();
        let extent = |body: usize| bodies[body].extent.cast_signed();
        let beside = |body: usize| {
            let clashes = self.clashes.0[body].iter();
            let is_whole = move |clash: &&Clash| {
                clash.other < body
                    && clash.low <= -extent(body)
                    && clash.high >= extent(clash.other)
            };
            clashes.filter(is_whole).map(move |clash| (clash.other, body))
        };
        // The set that is heaviest in bytes need not be the one that is heaviest in cells of the alignment.
        let heaviest = |size: fn(&(Bytes, Bytes)) -> Bytes| {
            let weights: Vec<Bytes> = sizes.iter().map(size).collect();
            Graph::new(&weights, (0..bodies.len()).flat_map(beside)).heaviest(0)
        };
        let plain = heaviest(|size| size.0);
        let is_aligned = sizes.iter().any(|&(plain, aligned)| aligned > plain);
        let aligned = if is_aligned { heaviest(|size| size.1) } else { 0 };
        bound.max(self.instance.problem.bytes_beside(plain, aligned))
    }

    /// Improves a packing until the budget is spent, and then with more nodes on top while the pool is not
    /// near the bound; returns the nodes.
    pub fn improve(
        self,
        best: &mut Packed,
        bound: Bytes,
        (budget, limits): (u64, &Limits),
        monitor: &mut Monitor<'_>,
    ) -> u64 {
        let Self { instance, clashes, nodes } = self;
        let grid = |body: &Body| Grid {
            modulus: body.pools[0].modulus.cast_signed(),
            residue: body.pools[0].residue.cast_signed(),
        };
        let fixed = |body: &Body| body.fixed.map(|place| place.offset.cast_signed());
        let bodies = instance.bodies.iter();
        let bodies = bodies.map(|body| (body.extent, grid(body), fixed(body))).collect();
        let offsets: Vec<Bytes> = best.places.iter().map(|place| place.offset).collect();
        let mut ejection = Ejection::of_clashes(bodies, clashes.into_owned(), &offsets);
        let share = ejection.placing() * PLACINGS;
        // On several streams, the bound is seldom this close to the best pool.
        let near = match instance.streams() {
            1 => bound.saturating_add(bound / NEAR),
            _ => near(bound),
        };
        let incumbent = Incumbent::new(bound, ejection.height());
        let more = budget.saturating_add(on_top(share, MAX_ON_TOP, limits));
        for (most, enough) in [(budget, bound), (more, near)] {
            let attempts = Attempts { levels: &LEVELS, share, enough };
            let mut watch = watch(monitor, &incumbent, 1, (None, None));
            let (before, left) = (ejection.nodes(), most.saturating_sub(nodes + ejection.nodes()));
            let mut meter = Meter::new(&mut watch);
            descent::descend(&incumbent, attempts, &mut ejection, &mut meter.part(before, left));
        }
        if let Some(offsets) = incumbent.into_offsets() {
            let pools = best.places.iter().map(|place| place.pool);
            let places: Vec<Place> =
                pools.zip(offsets).map(|(pool, offset)| Place::new(pool, offset)).collect();
            let layout = Layout::from_bodies(instance.problem, instance.bodies, &places);
            (best.places, best.objective) = (places, layout.objective(instance.problem));
        }
        nodes + ejection.nodes()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{
        Limits, Observer, Problem, Step, Strategy,
        problem::ChunkId,
        search::{
            first_fit,
            samples::{dice, right_plan},
            sizes::LARGE,
        },
    };

    /// Operators on two streams that wait for each other now and then. Each makes a chunk that lives for a while, or
    /// until the next one of its stream is written over it.
    fn problem(operators: usize, seed: u64) -> Problem {
        let mut roll = dice(seed);
        let mut problem = Problem::builder().alignment(1 << (2 * (seed % 3)));
        problem.streams(2);
        let mut last: [[Step; 2]; 2] = [[0; 2]; 2];
        let mut waiting: [Option<(ChunkId, Bytes)>; 2] = [None; 2];
        for _ in 0..operators {
            let own = usize::try_from(roll(2)).unwrap();
            let old = waiting[own].take();
            let begin = match roll(4) {
                0 if old.is_none() => [last[0][0].max(last[1][0]), last[0][1].max(last[1][1])],
                _ => last[own],
            };
            let mut end = begin;
            end[own] += 1;
            last[own] = end;
            let size = 1 + roll(old.map_or(100, |(_, size)| size));
            let chunk = problem.chunk(0..1, size);
            let life = if roll(3) == 0 {
                waiting[own] = Some((chunk, size));
                end[own] += 1;
                end
            } else {
                [end[0] + roll(8), end[1] + roll(8)]
            };
            problem.clocks(chunk, begin, life, own);
            if let Some((old, _)) = old {
                problem.overwrite(chunk, old, 0);
            }
        }
        problem.build().unwrap()
    }

    #[test]
    fn bodies_with_an_alignment_of_almost_64_bits_are_left_alone() {
        for (alignment, is_taken) in [(1 << 50, true), (1 << 62, false)] {
            let mut problem = Problem::builder();
            problem.streams(2);
            for _ in 0..3 {
                let (whole, part) = (problem.chunk(0..1, 9), problem.chunk(0..1, 1));
                for chunk in [whole, part] {
                    problem.clocks(chunk, [0, 0], [1, 1], 0);
                }
                problem.align(part, alignment).part(part, whole, 4);
            }
            let problem = problem.build().unwrap();
            assert_eq!(
                Pairwise::new(&PoolInstance::of(&problem), Budget::default()).is_some(),
                is_taken,
                "{alignment}"
            );
        }
    }

    #[test]
    fn thousands_of_bodies_eject_others() {
        let problem = problem(2 * LARGE, 1);
        let instance = PoolInstance::of(&problem);
        let mut monitor = Monitor::new(&Limits::default(), Observer::default());
        let mut packed = first_fit::packed(&instance, &mut monitor).unwrap();
        let (first, bound) = (packed.objective[1], problem.lower_bound());
        assert!(matches!(instance.overlaps, OverlapFinder::Pairs(_)));
        let pairwise = Pairwise::new(&instance, Budget::default()).unwrap();
        pairwise.improve(&mut packed, bound, (100_000, &Limits::default()), &mut monitor);
        assert!(packed.objective[1] < first, "{first}");
    }

    /// By default, more nodes come on top of the budget. They make no pool larger, and some smaller.
    #[test]
    fn nodes_come_on_top_of_a_default_budget() {
        let mut gained = 0;
        for seed in 0..6 {
            let problem = problem(60, seed);
            let instance = PoolInstance::of(&problem);
            let mut monitor = Monitor::new(&Limits::default(), Observer::default());
            let first = first_fit::packed(&instance, &mut monitor).unwrap();
            let bound = problem.lower_bound();
            let given = Limits::default().nodes(2_000);
            let [given, default] = [given, Limits::default()].map(|limits| {
                let mut packed = first.clone();
                let pairwise = Pairwise::new(&instance, Budget::default()).unwrap();
                let nodes = pairwise.improve(&mut packed, bound, (2_000, &limits), &mut monitor);
                let most = if limits.is_default() { MAX_ON_TOP } else { 3_000 };
                assert!(nodes < most, "{nodes}");
                packed.objective[1]
            });
            assert!(default <= given, "{default} after {given}");
            gained += u32::from(default < given);
        }
        assert!(gained > 0);
    }

    /// The whole search gives them by default.
    #[test]
    fn the_default_effort_packs_lower_than_the_same_effort_when_it_is_given() {
        let problem = holes(300, 120, 1);
        let pool = |limits: Limits| {
            let layout = Strategy::Best.layout(&problem, &limits, Observer::default()).unwrap();
            layout.pool_size(&problem)
        };
        let given = pool(Limits::default().nodes(crate::search::pools::NODES));
        assert!(pool(Limits::default()) < given, "{given}");
    }

    /// This many chunks over the same number of steps, each with a life of up to `lives + 2` steps. One in three needs
    /// no bytes in the middle of its life.
    fn holes(chunks: u64, lives: u64, seed: u64) -> Problem {
        let mut roll = dice(seed);
        let mut problem = Problem::builder().alignment(1 << (2 * (seed % 3)));
        for _ in 0..chunks {
            let begin = roll(chunks);
            let end = begin + 3 + roll(lives);
            let chunk = problem.chunk(begin..end, 1 + roll(400));
            if roll(3) == 0 {
                problem.hole(chunk, begin + 1 + roll(end - begin - 2)..end - 1);
            }
        }
        problem.build().unwrap()
    }

    /// Chunks with holes, of which one in seven is pinned where first fit puts it.
    fn with_pins(seed: u64) -> Problem {
        let problem = holes(100, 20, seed);
        let layout = first_fit::layout(&problem).unwrap();
        let mut pinned = problem.clone().into_builder();
        for chunk in problem.ids().step_by(7) {
            pinned.pin(chunk, layout.pool(chunk), layout.offset(chunk));
        }
        pinned.build().unwrap()
    }

    #[rstest]
    #[case::streams(|seed| problem(60, seed))]
    #[case::holes(|seed| holes(100, 20, seed))]
    #[case::pins(with_pins)]
    fn ejection_packs_lower_than_first_fit_and_its_plans_are_right(
        #[case] make: fn(u64) -> Problem,
    ) {
        let (mut before, mut after, mut several) = (0, 0, 0);
        for seed in 0..6 {
            let problem = make(seed);
            let instance = PoolInstance::of(&problem);
            several += instance.boxes.iter().filter(|boxes| boxes.len() > 1).count();
            let mut monitor = Monitor::new(&Limits::default(), Observer::default());
            let mut packed = first_fit::packed(&instance, &mut monitor).unwrap();
            let bound = problem.lower_bound();
            before += packed.objective[1];
            let pairwise = Pairwise::new(&instance, Budget::default()).unwrap();
            let limits = Limits::default().nodes(20_000);
            let nodes = pairwise.improve(&mut packed, bound, (20_000, &limits), &mut monitor);
            assert!(nodes < 22_000, "{nodes}");
            after += packed.objective[1];
            right_plan(&problem, &Layout::from_bodies(&problem, instance.bodies, &packed.places));
        }
        // By more than a percent.
        assert!(after * 100 < before * 99, "{after} after {before}");
        assert!(several > 30, "{several} bodies of several boxes");
    }
}
