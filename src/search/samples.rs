//! Random problems and partial packings for the tests of the search.

use std::ops::Range;

use arbitrary::{Result, Unstructured};

use crate::{
    Bytes, Limits, Observer, Plan, Problem, Step,
    monitor::Monitor,
    plan::Layout,
    problem::{ChunkId, ProblemBuilder, Segment},
    search::{
        control::{meter::Meter, restarts::Restarts},
        effort::Verdict,
        state::{
            fingerprint::scramble,
            instance::{Instance, Item, Outline, Part, Span},
            skyline::Skyline,
        },
    },
    seeds::times,
    verify::verify,
};

/// A random problem of a few chunks, some overwritten once or twice; sometimes aligned and padded.
pub fn random_problem(random: &mut Unstructured<'_>) -> Result<Problem> {
    let alignment = *random.choose(&[1, 1, 2, 4])?;
    let padding = *random.choose(&[0, 0, 1])?;
    let mut problem = Problem::builder().alignment(alignment).padding(padding);
    for _ in 0..random.int_in_range(0..=9)? {
        let mut begin = random.int_in_range(0..=11)?;
        let mut end = begin + random.int_in_range(1..=5)?;
        let mut size: u64 = random.int_in_range(1..=9)?;
        let mut chunk = problem.chunk(begin..end, size);
        for _ in 0..random.int_in_range(0..=2)? {
            (begin, end) = (end - 1, end + random.int_in_range(0..=3)?);
            let offset = random.int_in_range(0..=size - 1)?;
            size = random.int_in_range(1..=size - offset)?;
            let overwriter = problem.chunk(begin..end, size);
            problem.overwrite(overwriter, chunk, offset);
            chunk = overwriter;
        }
    }
    Ok(problem.build().unwrap())
}

/// Adds the chunks of a problem from a step on, with links, their sizes shifted by some bits.
pub fn add_problem(to: &mut ProblemBuilder, problem: &Problem, from: Step, shift: u32) {
    let new = |id| {
        let chunk = problem.chunk(id);
        to.chunk(from + chunk.begin..from + chunk.end, chunk.size << shift)
    };
    let ids: Vec<ChunkId> = problem.ids().map(new).collect();
    for id in problem.ids() {
        if let Some(link) = problem.link(id) {
            let overwritten = ids[link.overwritten.index()];
            to.overwrite(ids[id.index()], overwritten, link.offset << shift);
        }
    }
}

pub fn instance(problem: &Problem) -> Instance {
    let monitor = Monitor::new(&Limits::default(), Observer::default());
    Instance::new(problem, &problem.roots().collect::<Vec<_>>(), &monitor).unwrap()
}

/// A body that is one rectangle.
pub fn rectangle(at: usize, [begin, end]: [Step; 2], high: Bytes, fixed: Option<Bytes>) -> Outline {
    let root = ChunkId::from_index(at);
    Outline { root, segments: vec![Segment { chunk: root, begin, end, low: 0, high }], fixed }
}

/// The items of an instance, some of them fixed at their offsets in a packing.
pub fn fixed_at(inst: &Instance, offsets: &[u64], is_fixed: impl Fn(usize) -> bool) -> Instance {
    let outline = |(at, (item, &offset)): (usize, (&Item, &u64))| {
        let steps = [item.first, item.end].map(Step::from);
        rectangle(at, steps, item.size, is_fixed(at).then_some(offset))
    };
    let bodies = inst.items.iter().zip(offsets).enumerate();
    let outlines: Vec<Outline> = bodies.map(outline).collect();
    Instance::of_outlines(&outlines, inst.align)
}

/// Checks a search on random rectangles, every third of which is fixed where a packing has it, below a limit of that
/// packing. `pack` returns the height and the offsets, or `None` if the search does not apply.
pub fn check_around_fixed(pack: impl Fn(Instance, u64) -> Option<(u64, Vec<u64>)>) {
    let (mut packed, mut fixed) = (0, 0);
    times(2000, |random| {
        let inst = instance(&random_problem(random)?);
        let limit = inst.bound() + random.int_in_range(0..=4)? * inst.align;
        let mut search = Restarts::new(&inst, 0);
        let verdict = search.decide(limit, 100, &mut Meter::unwatched());
        if !inst.staircases.is_empty() || verdict != Verdict::Packed {
            return Ok(());
        }
        let around = fixed_at(&inst, search.offsets(), |at| at.is_multiple_of(3));
        let limit = limit / around.unit;
        if let Some((height, offsets)) = pack(around.clone(), limit) {
            check_places(&around, limit, &offsets);
            assert!((around.bound()..=limit).contains(&height));
            packed += 1;
            fixed += around.fixed.len();
        }
        Ok(())
    });
    assert!(packed > 0 && fixed > 0, "{packed} {fixed}");
}

/// Chunks whose sizes form a sawtooth. Some chunk crosses every boundary between sections, so that the problem does not
/// fall into components.
pub fn sawtooth(lives: u64) -> Problem {
    let mut problem = Problem::builder();
    for at in 0..lives {
        problem.chunk(at..at + 3 + at * 7 % 11, 20 + at * 31 % 50);
    }
    problem.build().unwrap()
}

/// A problem of staircases that can be packed in many orders.
pub fn interlocking(chains: u64) -> Problem {
    let mut problem = Problem::builder();
    for at in 0..chains {
        let size = 100 + at * 37 % 60;
        let whole = problem.chunk(at..at + 3 + at % 4, size);
        let part = problem.chunk(at + 2 + at % 4..at + 9, size / 2 + at % 9);
        problem.overwrite(part, whole, at * 7 % 20);
    }
    problem.build().unwrap()
}

/// A change of a skyline.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Place(u32),
    Hang(u32, u64),
    Raise(usize, u64),
}

pub fn apply(sky: &mut Skyline<'_>, change: Change) {
    match change {
        Change::Place(item) => sky.place(item),
        Change::Hang(body, offset) => sky.hang(body, offset),
        Change::Raise(x, to) => sky.raise(x, to),
    }
}

/// The lowest height over a section that is reserved.
pub fn ceiling(sky: &Skyline<'_>, x: usize) -> u64 {
    sky.lowest_reserved(x).map_or(u64::MAX, |part| part.low)
}

/// A random change; `None` if it is not allowed.
pub fn random_change(random: &mut Unstructured<'_>, sky: &Skyline<'_>) -> Result<Option<Change>> {
    let inst = sky.inst;
    if random.ratio(1, 4)? {
        let x = random.choose_index(inst.sections)?;
        let to = sky.floor(x) + random.int_in_range(1..=3)?;
        return Ok(
            (sky.live(x) && to <= sky.floor(x) + sky.slack(x)).then_some(Change::Raise(x, to))
        );
    }
    let body = random.choose_index(inst.bodies())?;
    let id = u32::try_from(body).unwrap();
    if sky.is_placed(id) {
        return Ok(None);
    }
    if let Some(item) = inst.items.get(body) {
        let mut over = item.sections();
        let floor = sky.floor(over.start);
        let rests = over.all(|x| sky.floor(x) == floor && floor + item.size <= ceiling(sky, x));
        return Ok(rests.then_some(Change::Place(id)));
    }
    let offset = random.int_in_range(0..=20)?;
    Ok(is_free(sky, &inst.staircase(id).parts, offset).then_some(Change::Hang(id, offset)))
}

/// Returns whether the parts of a body at an offset are clear of everything placed.
pub fn is_free(sky: &Skyline<'_>, parts: &[Part], offset: u64) -> bool {
    parts.iter().all(|part| {
        let span = part.at(offset);
        let clear = |x| sky.reserved(x).iter().all(|&other| span.is_clear_of(other));
        part.sections().all(|x| sky.floor(x) <= span.low && clear(x))
    })
}

/// A skyline with some random changes.
pub fn random_sky<'a>(random: &mut Unstructured<'_>, inst: &'a Instance) -> Result<Skyline<'a>> {
    let mut sky = Skyline::new(inst, inst.bound() + random.int_in_range(0..=20)?);
    for _ in 0..random.int_in_range(0..=12)? {
        if let Some(change) = random_change(random, &sky)? {
            let mark = sky.mark();
            apply(&mut sky, change);
            if !(0..inst.sections).all(|x| sky.fits(x)) {
                sky.undo(mark);
            }
        }
    }
    Ok(sky)
}

/// Bodies lie apart below the limit, and those that cannot move lie where they must.
pub fn check_places(inst: &Instance, limit: u64, offsets: &[u64]) {
    for fixed in &inst.fixed {
        assert_eq!(offsets[fixed.body as usize], fixed.offset, "{fixed:?}");
    }
    let mut taken: Vec<(Range<usize>, Span)> = Vec::new();
    for (parts, &offset) in inst.parts().zip(offsets) {
        let own = taken.len();
        for part in parts {
            let (sections, span) = (part.sections(), part.at(offset));
            assert!(span.high <= limit, "{span:?} exceeds {limit}");
            let is_apart = |(other, at): &(Range<usize>, Span)| {
                at.is_clear_of(span) || other.end <= sections.start || sections.end <= other.start
            };
            assert!(taken[..own].iter().all(is_apart), "{span:?} in {sections:?}");
            taken.push((sections, span));
        }
    }
}

/// The plan of a layout, after the verifier has found nothing wrong with it.
pub fn right_plan(problem: &Problem, layout: &Layout) -> Plan {
    let places = problem.ids().map(|chunk| (layout.pool(chunk), layout.offset(chunk)));
    let plan = Plan::from_places(problem, &places.collect::<Vec<_>>()).unwrap();
    assert_eq!(verify(problem, &plan), [], "{problem:?}");
    plan
}

/// Random numbers, each below a number of sides.
pub fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut turn = seed << 32;
    move |sides| {
        turn += 1;
        scramble(turn) % sides
    }
}
