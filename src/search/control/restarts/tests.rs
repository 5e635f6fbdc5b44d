use arbitrary::{Result, Unstructured};

use crate::search::control::restarts::*;
use crate::{
    Limits, Observer, Problem, Step, Strategy,
    problem::{ChunkId, Segment, constraints::PoolId},
    search::{
        control::descent::Packer,
        ejection::Ejection,
        samples::{check_places, instance, interlocking},
        state::{fingerprint::scramble, instance::Outline},
    },
    seeds::times,
};

/// Neither search waits long for its turn, and the disjunctive one begins.
#[test]
fn both_searches_take_turns() {
    let inst = instance(&interlocking(30));
    let mut restarts = Restarts::new(&inst, 0);
    let (mut reported, mut last, mut spent) = (Vec::new(), NodeCounts::default(), 0);
    for limit in (inst.bound()..).step_by(60) {
        let verdict = restarts.decide(
            limit,
            4,
            &mut Meter::new(&mut |nodes| {
                reported.push(nodes);
                false
            }),
        );
        let now = restarts.spent();
        let in_disjunctive = now.in_disjunctive - last.in_disjunctive;
        let in_valleys = now.in_valleys - last.in_valleys;
        last = now;
        match verdict {
            Verdict::Packed => break,
            Verdict::Refuted => {}
            // All bodies are staircases.
            Verdict::NodeLimit => {
                spent += 1;
                assert!(in_valleys > 4 * UNIT && in_disjunctive > 2 * in_valleys, "{now:?}");
                assert!(in_disjunctive < 16 * in_valleys, "{now:?}");
            }
        }
    }
    assert!(spent > 0 && reported.is_sorted(), "{reported:?}");
}

/// A rectangle in steps and units.
#[derive(Clone, Copy, Debug)]
struct Rect {
    steps: [Step; 2],
    units: [u64; 2],
}

impl Rect {
    fn random(random: &mut Unstructured<'_>, low: u64) -> Result<Self> {
        let begin = random.int_in_range(0..=6)?;
        let end = (begin + random.int_in_range(1..=4)?).min(8);
        Ok(Self { steps: [begin, end], units: [low, low + random.int_in_range(1..=5)?] })
    }

    fn lifted(self, by: u64) -> Self {
        Self { units: self.units.map(|at| at + by), ..self }
    }

    fn meets(&self, other: &Self) -> bool {
        let meet = |a: [u64; 2], b: [u64; 2]| a[0] < b[1] && b[0] < a[1];
        meet(self.steps, other.steps) && meet(self.units, other.units)
    }
}

/// A body that can move: a rectangle or, now and then, a staircase of two.
fn random_body(random: &mut Unstructured<'_>) -> Result<Vec<Rect>> {
    let first = Rect::random(random, 0)?;
    let low = random.int_in_range(0..=first.units[1] - 1)?;
    let mut second = Rect::random(random, low)?;
    second.steps = [first.steps[1], first.steps[1] + 1];
    let is_staircase = random.ratio(1, 6)? && first.steps[1] < 8;
    Ok(if is_staircase { vec![first, second] } else { vec![first] })
}

fn outline(body: &[Rect], fixed: Option<u64>) -> Outline {
    let root = ChunkId::from_index(0);
    let segment = |&Rect { steps: [begin, end], units: [low, high] }: &Rect| {
        let (low, high) = (low - fixed.unwrap_or(0), high - fixed.unwrap_or(0));
        Segment { chunk: root, begin, end, low, high }
    };
    Outline { root, segments: body.iter().map(segment).collect(), fixed }
}

/// Returns whether bodies fit below a limit beside what is placed, by trying all places.
fn fits(placed: &mut Vec<Rect>, bodies: &[Vec<Rect>], limit: u64) -> bool {
    let Some((body, others)) = bodies.split_first() else { return true };
    (0..limit).any(|offset| {
        let parts: Vec<Rect> = body.iter().map(|part| part.lifted(offset)).collect();
        let is_free =
            |part: &Rect| part.units[1] <= limit && !placed.iter().any(|other| part.meets(other));
        let is_free = parts.iter().all(is_free);
        let count = placed.len();
        placed.extend(parts);
        let is_packed = is_free && fits(placed, others, limit);
        placed.truncate(count);
        is_packed
    })
}

/// Some bodies cannot move; they may cover all steps, as a reserved range does. The valleys
/// decide alone, from each side, in turns, and in turns with pinned items. Ejection proves nothing.
#[test]
fn packings_around_fixed_bodies_are_those_of_trying_all_places() {
    let (mut packed, mut refuted, mut ejected, mut pinned) = (0, 0, 0, 0);
    times(400, |random| {
        let mut fixed: Vec<Rect> = Vec::new();
        for _ in 0..random.int_in_range(1..=4)? {
            let low = random.int_in_range(0..=7)?;
            let mut rect = Rect::random(random, low)?;
            if random.ratio(1, 6)? {
                rect.steps = [0, 8];
            }
            if !fixed.iter().any(|other| rect.meets(other)) {
                fixed.push(rect);
            }
        }
        let mut bodies = Vec::new();
        for _ in 0..random.int_in_range(1..=6)? {
            bodies.push(random_body(random)?);
        }
        let immobile = fixed.iter().map(|rect| outline(&[*rect], Some(rect.units[0])));
        let outlines: Vec<Outline> =
            immobile.chain(bodies.iter().map(|body| outline(body, None))).collect();
        let inst = Instance::of_outlines(&outlines, 1).with_pins();
        let is_packed = |limit: u64| fits(&mut fixed.clone(), &bodies, limit * inst.unit);
        let tops = fixed.iter().map(|rect| rect.units[1] / inst.unit);
        let least = tops.max().unwrap_or(0).max(inst.bound());
        let limit = (least..=least + 50).find(|&limit| is_packed(limit)).unwrap();
        for inst in [Instance { pinned: None, ..inst.clone() }, inst.clone()] {
            let mut restarts = Restarts { disjunctive: None, ..Restarts::new(&inst, 0) };
            for limit in (least..=limit).rev() {
                let verdict = restarts.decide(limit, 1000, &mut Meter::unwatched());
                let is_packed = is_packed(limit);
                let expected = if is_packed { Verdict::Packed } else { Verdict::Refuted };
                assert_eq!(verdict, expected, "{fixed:?} {bodies:?} under {limit}");
                if is_packed {
                    check_places(&inst, limit, restarts.offsets());
                }
                pinned += u32::from(is_packed && is_found_pinned(&restarts));
                packed += u32::from(is_packed);
                refuted += u32::from(!is_packed);
            }
        }
        if let Some(mut ejection) = Ejection::new(&inst) {
            for (seed, limit) in (0..).zip(least..=limit) {
                if let Some((_, offsets)) = ejection.pack_alone(limit, seed, 20) {
                    assert!(is_packed(limit), "{fixed:?} {bodies:?} under {limit}");
                    check_places(&inst, limit, &offsets);
                    ejected += 1;
                }
            }
        }
        Ok(())
    });
    let counts = [packed, refuted, ejected, pinned];
    assert!(!counts.contains(&0), "{counts:?}");
}

/// Cuts a tile into pieces of at least 2 steps and 6 units.
fn cut(Rect { steps, units }: Rect, depth: u32, into: &mut Vec<Rect>, draws: &mut u64) {
    let mut draw = |range: [u64; 2], least: u64| {
        *draws += 1;
        range[0] + least + scramble(*draws) % (range[1] - range[0] + 1 - 2 * least)
    };
    let (is_high, is_long) = (units[1] - units[0] > 12, steps[1] - steps[0] > 4);
    let mut halves = [Rect { steps, units }; 2];
    if depth == 0 || !(is_high || is_long) {
        into.push(halves[0]);
        return;
    }
    if is_high && (!is_long || draw([0, 1], 0) == 0) {
        let at = draw(units, 6);
        (halves[0].units[1], halves[1].units[0]) = (at, at);
    } else {
        let at = draw(steps, 2);
        (halves[0].steps[1], halves[1].steps[0]) = (at, at);
    }
    for half in halves {
        cut(half, depth - 1, into, draws);
    }
}

/// The pieces of a tile, which is a perfect packing of them.
fn pieces(seed: u64) -> Vec<Rect> {
    let (mut pieces, mut draws) = (Vec::new(), seed);
    cut(Rect { steps: [0, 60], units: [0, 300] }, 8, &mut pieces, &mut draws);
    pieces
}

/// Pieces that can move, in their order.
fn free(pieces: &[Rect]) -> Vec<Outline> {
    let outline = |(at, &piece): (usize, &Rect)| {
        let piece = Rect { units: [0, piece.units[1] - piece.units[0]], ..piece };
        Outline { root: ChunkId::from_index(at), ..outline(&[piece], None) }
    };
    pieces.iter().enumerate().map(outline).collect()
}

/// Of a perfect packing, a tenth of the pieces cannot move.
#[rstest::rstest]
fn a_perfect_packing_around_fixed_pieces_is_found(#[values(0, 33_000, 48_000)] seed: u64) {
    let pieces = pieces(seed);
    let mut outlines = free(&pieces);
    for (at, outline) in outlines.iter_mut().enumerate() {
        let is_fixed = scramble(seed ^ at as u64).is_multiple_of(10);
        outline.fixed = is_fixed.then_some(pieces[at].units[0]);
    }
    let inst = Instance::of_outlines(&outlines, 1).with_pins();
    let mut restarts = Restarts::new(&inst, 0);
    let limit = 300 / inst.unit;
    let verdict = restarts.decide(limit, 100_000, &mut Meter::unwatched().part(0, 300_000));
    assert_eq!(verdict, Verdict::Packed, "{} nodes", restarts.nodes());
    check_places(&inst, limit, restarts.offsets());
}

/// Packings like these, as problems with pins, are proven by default, because pins are repaired.
#[rstest::rstest]
fn a_perfect_packing_with_pins_is_proven(#[values(6000, 18_000, 24_000)] seed: u64) {
    let mut problem = Problem::builder();
    for (at, &Rect { steps, units }) in pieces(seed).iter().enumerate() {
        let chunk = problem.chunk(steps[0]..steps[1], units[1] - units[0]);
        if scramble(seed ^ at as u64).is_multiple_of(10) {
            problem.pin(chunk, PoolId::default(), units[0]);
        }
    }
    let problem = problem.build().unwrap();
    let layout = Strategy::Best.layout(&problem, &Limits::default(), Observer::default());
    let layout = layout.unwrap();
    assert_eq!((layout.pool_size(&problem), problem.lower_bound()), (300, 300));
}

/// Returns whether the search with pinned items has found a packing.
fn is_found_pinned(restarts: &Restarts<'_>) -> bool {
    restarts.pinned.as_ref().is_some_and(|pinned| !pinned.search.offsets.is_empty())
}

/// An item on the floor and one upon it, both fixed; the lower one may lie too high for the upper one to rest on it.
fn two_fixed(low: u64) -> Instance {
    let fixed = |range: [u64; 2]| outline(&[Rect { steps: [0, 2], units: range }], Some(range[0]));
    let free = outline(&[Rect { steps: [0, 1], units: [0, 1] }], None);
    Instance::of_outlines(&[fixed([0, 3]), fixed([low, 9]), free], 1).with_pins()
}

/// A pinned item that would rest on nothing is left to the search around fixed bodies. Above the highest limit for
/// pinned items, everything is.
#[rstest::rstest]
#[case::rests(3, 10, true)]
#[case::hangs(5, 10, false)]
#[case::above_the_highest_limit(3, 9, false)]
fn pinned_items_are_packed_where_they_rest(
    #[case] low: u64,
    #[case] most: u64,
    #[case] is_pinned: bool,
) {
    let inst = two_fixed(low);
    let mut restarts = Restarts { disjunctive: None, ..Restarts::new(&inst, 0) };
    restarts.pin_below(most);
    assert_eq!(restarts.decide(10, 1, &mut Meter::unwatched()), Verdict::Packed);
    check_places(&inst, 10, restarts.offsets());
    assert_eq!(is_found_pinned(&restarts), is_pinned);
}

#[test]
fn each_sweep_is_twice_as_long_as_the_one_before() {
    let places: Vec<u64> = (1..=ROUNDS_AT_BOUND * 7).map(in_sweep).collect();
    let sweep = |length: u64| 1..=length;
    let sweeps =
        sweep(ROUNDS_AT_BOUND).chain(sweep(2 * ROUNDS_AT_BOUND)).chain(sweep(4 * ROUNDS_AT_BOUND));
    assert_eq!(places, sweeps.collect::<Vec<_>>());
}

/// Pieces of a tile, some of them pinned where a search without pins has put them, are packed in the same round at
/// the latest, unless the search has come to rounds that prefer sections which have failed.
#[test]
fn what_packs_pieces_without_pins_packs_them_with_pins() {
    let (mut packed, mut last) = (0, 0);
    for seed in (0..60).map(|seed| seed * 500) {
        let pieces = pieces(seed);
        let mut outlines = free(&pieces);
        let inst = Instance::of_outlines(&outlines, 1);
        let limit = 300 / inst.unit;
        let mut search = Restarts::new(&inst, 0);
        let verdict = search.decide(limit, 4, &mut Meter::unwatched());
        if verdict != Verdict::Packed {
            continue;
        }
        for (root, offset) in inst.roots.iter().zip(search.offsets()) {
            let at = root.index();
            let is_fixed = scramble(seed ^ at as u64).is_multiple_of(5);
            outlines[at].fixed = is_fixed.then_some(offset * inst.unit);
        }
        let inst = Instance::of_outlines(&outlines, 1).with_pins();
        let Some(other) = &inst.pinned else { continue };
        let limit = 300 / inst.unit;
        let mut pinned = Restarts::new(&other.inst, 0);
        let verdict = pinned.decide(limit, 4, &mut Meter::unwatched());
        assert_eq!(verdict, Verdict::Packed);
        check_places(&inst, limit, &other.original_offsets(pinned.offsets()));
        assert!(pinned.round <= search.round, "{} > {}", pinned.round, search.round);
        packed += 1;
        last = pinned.round.max(last);
    }
    assert!(packed > 20 && last > 1, "{packed} {last}");
}

/// With its own offsets as a guide, a perfect packing is found again sooner than without.
#[test]
fn a_guide_leads_to_a_packing() {
    let (mut alone, mut guided) = (0, 0);
    for seed in (0..8).map(|seed| seed * 1000) {
        let pieces = pieces(seed);
        let inst = Instance::of_outlines(&free(&pieces), 1);
        let guide = inst.roots.iter().map(|root| Some(pieces[root.index()].units[0]));
        let guide = guide.map(|offset| offset.map(|offset| offset / inst.unit)).collect();
        let limit = 300 / inst.unit;
        let mut search = Restarts::new(&inst, 0);
        search.decide(limit, 1000, &mut Meter::unwatched().part(0, 20_000));
        alone += search.nodes();
        let mut search = Restarts::new(&inst, 0).guided_by(guide);
        let verdict = search.decide(limit, 1000, &mut Meter::unwatched().part(0, 20_000));
        assert_eq!(verdict, Verdict::Packed, "{} nodes", search.nodes());
        guided += search.nodes();
    }
    assert!(guided * 2 < alone, "{guided} {alone}");
}
