use arbitrary::{Result, Unstructured};

use crate::search::ejection::*;
use crate::{
    Problem,
    search::{
        control::descent::{Attempts, descend},
        incumbent::Incumbent,
        samples::{check_places, instance, interlocking, random_problem, rectangle},
        state::fingerprint::scramble,
    },
    seeds::times,
};

/// A run of lives in which many steps are crowded: begins, lives and sizes are pseudo-random.
fn run_of_lives(bodies: u64) -> Problem {
    let mut problem = Problem::builder();
    for at in 0..bodies {
        let random = |salt: u64, end: u64| scramble(at * 4 + salt) % end;
        let begin = random(0, 2 * bodies);
        problem.chunk(begin..begin + 1 + random(1, 60) * random(2, 60), 1 + random(3, 100));
    }
    problem.build().unwrap()
}

#[test]
fn packed_bodies_lie_apart_below_the_limit_at_aligned_offsets() {
    let (mut above, mut staircases) = (0, 0);
    times(2000, |random| {
        let inst = instance(&random_problem(random)?);
        let Some(mut ejection) = Ejection::new(&inst) else { return Ok(()) };
        let limit = inst.bound() + random.int_in_range(0..=3)? * inst.align;
        let seed = random.int_in_range(0..=9)?;
        if let Some((height, offsets)) = ejection.pack_alone(limit, seed, 100) {
            check_places(&inst, height, &offsets);
            assert!((inst.bound()..=limit).contains(&height));
            assert!(offsets.iter().all(|offset| offset.is_multiple_of(inst.align)));
            staircases += inst.staircases.len();
            // The next attempt begins with this packing.
            assert_eq!(ejection.pack_alone(height, seed + 1, 1), Some((height, offsets)));
            above += usize::from(height > inst.bound());
        }
        Ok(())
    });
    assert!(above > 0 && staircases > 0, "{above} {staircases}");
}

/// An ejection for a random problem, in which some bodies are placed below a low limit, and the numbers that the
/// instance gives to them.
fn placed(random: &mut Unstructured<'_>) -> Result<Option<(Instance, Ejection)>> {
    let inst = instance(&random_problem(random)?);
    let Some(mut ejection) = Ejection::new(&inst) else { return Ok(None) };
    let limit = inst.height_of(&vec![0; inst.bodies()]) + inst.align * 2;
    ejection.limit = limit.cast_signed();
    for body in 0..inst.bodies() {
        let by = *random.choose(&[Match::Begins, Match::Ends, Match::Either])?;
        ejection.place(body, by, random.arbitrary()?);
    }
    Ok(Some((inst, ejection)))
}

/// The bodies in the way of a body at an offset.
fn in_way(inst: &Instance, ejection: &Ejection, body: usize, at: i64) -> Vec<usize> {
    let parts: Vec<Vec<Part>> = inst.parts().collect();
    let parts = |body: usize, offset: i64| {
        let parts = parts[ejection.numbers[body]].iter();
        parts.map(move |part| (part.sections(), part.at(offset.unsigned_abs())))
    };
    let blocks = |&other: &usize| {
        let offset = ejection.strip.offsets[other].filter(|_| other != body);
        offset.is_some_and(|offset| {
            parts(body, at).any(|(own, span)| {
                parts(other, offset).any(|(sections, there)| {
                    let in_time = own.start < sections.end && sections.start < own.end;
                    in_time && !span.is_clear_of(there)
                })
            })
        })
    };
    (0..inst.bodies()).filter(blocks).collect()
}

/// The bodies that are ejected weigh no more than those in the way at any other offset.
#[test]
fn a_body_ejects_those_that_weigh_least() {
    let mut forced = 0;
    times(3000, |random| {
        let Some((inst, mut ejection)) = placed(random)? else { return Ok(()) };
        let mut weights = Vec::new();
        for _ in 0..inst.bodies() {
            weights.push(random.int_in_range(1..=5)?);
        }
        let weight = |bodies: &[usize]| bodies.iter().map(|&body| weights[body]).sum::<u64>();
        for body in 0..inst.bodies() {
            let is_placed = ejection.strip.offsets[body].is_some();
            if is_placed || ejection.place(body, Match::Either, random.arbitrary()?) {
                continue;
            }
            forced += 1;
            let highest = ejection.limit - ejection.strip.aligned(ejection.strip.items[body].size);
            let steps = (0..=highest).step_by(usize::try_from(inst.align).unwrap());
            let least = steps.map(|at| weight(&in_way(&inst, &ejection, body, at))).min().unwrap();
            let before = ejection.strip.offsets.clone();
            let mut ejected = ejection.force(body, &weights).unwrap();
            ejected.sort_unstable();
            let at = ejection.strip.offsets[body].unwrap();
            let after = std::mem::replace(&mut ejection.strip.offsets, before.clone());
            assert_eq!(ejected, in_way(&inst, &ejection, body, at));
            assert_eq!(weight(&ejected), least);
            assert!(
                (0..inst.bodies())
                    .all(|b| b == body || after[b] == before[b].filter(|_| !ejected.contains(&b)))
            );
            ejection.strip.offsets = after;
        }
        Ok(())
    });
    assert!(forced > 0, "no body has been forced");
}

#[test]
fn a_limit_below_the_only_place_of_a_body_is_not_tried_again() {
    // The fixed body leaves 2 units below it, and the items need 3.
    let body = |end, high, fixed| rectangle(0, [0, end], high, fixed);
    let bodies = [body(4, 5, Some(2)), body(4, 3, None), body(2, 1, None)];
    let inst = Instance::of_outlines(&bodies, 1);
    let mut ejection = Ejection::new(&inst).unwrap();
    assert_eq!((inst.bound(), ejection.floor()), (9, 7));
    assert_eq!(ejection.pack_alone(9, 0, 1000), None);
    assert_eq!(ejection.floor(), 10);
    let before = ejection.nodes();
    assert_eq!(ejection.pack_alone(9, 0, 1000), None);
    assert_eq!(ejection.nodes(), before + 1);
    assert!(ejection.pack_alone(10, 0, 1000).is_some());
    // No lower limit is tried.
    let attempts = Attempts { levels: &LEVELS, share: 1000, enough: 0 };
    let before = ejection.nodes();
    let incumbent = Incumbent::new(9, 10);
    let mut meter = Meter::unwatched();
    descend(&incumbent, attempts, &mut ejection, &mut meter.part(0, 1_000_000));
    assert_eq!(incumbent.into_offsets(), None);
    assert_eq!(ejection.nodes(), before);
}

/// Each body then lies on another or on the floor, or below another or the limit. Staircases that interlock may be
/// able to move further, and so may all if they are stopped.
#[test]
fn bodies_settle_as_far_as_the_others_allow() {
    let (mut moved, mut stopped, mut interlocked) = ([0, 0], 0, 0);
    times(4000, |random| {
        let Some((inst, mut ejection)) = placed(random)? else { return Ok(()) };
        for up in [true, false] {
            let before = ejection.strip.offsets.clone();
            let mut left = *random.choose(&[2, usize::MAX])?;
            let mut stop = |_| {
                left -= 1;
                left == 0
            };
            ejection.settle(up, &mut Meter::new(&mut stop));
            let is_stopped = left == 0;
            stopped += u32::from(is_stopped);
            moved[usize::from(up)] += u32::from(ejection.strip.offsets != before);
            for (body, offset) in before.iter().enumerate() {
                assert_eq!(ejection.strip.offsets[body].is_some(), offset.is_some());
                let Some((at, before)) = ejection.strip.offsets[body].zip(*offset) else {
                    continue;
                };
                let highest =
                    ejection.limit - ejection.strip.aligned(ejection.strip.items[body].size);
                assert!((0..=highest).contains(&at) && at % ejection.align == 0);
                assert!(if up { at >= before } else { at <= before });
                assert!(in_way(&inst, &ejection, body, at).is_empty());
                let next = if up { at + ejection.align } else { at - ejection.align };
                let is_free = (0..=highest).contains(&next)
                    && in_way(&inst, &ejection, body, next).is_empty();
                assert!(!is_free || is_stopped || !inst.staircases.is_empty(), "{body} to {next}");
                interlocked += u32::from(is_free && !is_stopped);
            }
        }
        Ok(())
    });
    assert!(moved.iter().all(|&moved| moved > 0) && stopped > 0, "{moved:?}, {stopped}");
    assert!(interlocked > 0);
}

/// Without ejection, the default effort leaves this problem at 1.047 times the bound.
#[test]
fn a_long_run_is_packed_close_to_the_bound_within_the_nodes() {
    let inst = instance(&run_of_lives(3000));
    let bound = inst.bound();
    let mut ejection = Ejection::new(&inst).unwrap();
    let mut seen = Vec::new();
    let incumbent = Incumbent::new(bound, bound * 11 / 10);
    let mut caller = |nodes| {
        seen.push((nodes, incumbent.snapshot().best));
        false
    };
    let nodes = 200_000;
    let attempts = Attempts { levels: &LEVELS, share: ejection.share(), enough: 0 };
    let mut meter = Meter::new(&mut caller);
    descend(&incumbent, attempts, &mut ejection, &mut meter.part(0, nodes));
    let height = inst.height_of(&incumbent.into_offsets().unwrap());
    assert!(height * 1000 <= bound * 1025, "{height} for a bound of {bound}");
    assert!(ejection.nodes() < nodes + 1000, "{}", ejection.nodes());
    assert!(seen.is_sorted_by(|a, b| a.0 <= b.0 && a.1 >= b.1));
    // Stopped at once, it packs nothing.
    let mut stopped = Ejection::new(&inst).unwrap();
    let incumbent = Incumbent::new(bound, bound * 2);
    descend(&incumbent, attempts, &mut stopped, &mut Meter::new(&mut |_| true));
    assert_eq!(incumbent.into_offsets(), None);
}

#[test]
fn staircases_that_interlock_are_packed_close_to_the_bound() {
    let inst = instance(&interlocking(60));
    let mut ejection = Ejection::new(&inst).unwrap();
    let bound = inst.bound();
    let attempts = Attempts { levels: &LEVELS, share: ejection.share(), enough: 0 };
    let incumbent = Incumbent::new(bound, 2 * bound);
    let mut meter = Meter::unwatched();
    descend(&incumbent, attempts, &mut ejection, &mut meter.part(0, 60_000));
    let found = incumbent.into_offsets().unwrap();
    let height = inst.height_of(&found);
    check_places(&inst, height, &found);
    assert!(height * 100 <= bound * 139, "{height} for a bound of {bound}");
}

#[test]
fn offsets_are_sorted_by_insertion_or_as_usual() {
    times(500, |random| {
        let offsets: Vec<i16> = random.arbitrary()?;
        let numbered = offsets.into_iter().map(i64::from).zip(0..);
        let mut sorted: Vec<(i64, u32)> = numbered.collect();
        let mut expected = sorted.clone();
        expected.sort_unstable();
        strip::sort_by_insertion(&mut sorted);
        assert_eq!(sorted, expected);
        Ok(())
    });
    let mut backwards: Vec<(i64, u32)> = (0..1000).rev().zip(0..).collect();
    strip::sort_by_insertion(&mut backwards);
    assert!(backwards.is_sorted());
}

/// However the bodies have moved since the last look.
#[test]
fn kept_neighbours_block_a_body_as_new_ones_do() {
    let mut blocking = 0;
    times(2000, |random| {
        let Some((inst, ejection)) = placed(random)? else { return Ok(()) };
        let (limit, mut strip) = (ejection.limit, ejection.strip);
        for _ in 0..30 {
            let moved = random.choose_index(inst.bodies())?;
            let offset: Option<u8> = random.arbitrary()?;
            strip.offsets[moved] = offset.map(|offset| i64::from(offset) % limit);
            let body = random.choose_index(inst.bodies())?;
            let end = *random.choose(&[End::Low, End::High])?;
            let mut look = |again| {
                strip.look_at(body, limit, again);
                strip.sort(end);
                let blocks = strip.sorted(end);
                assert!(blocks.clone().is_sorted_by_key(|block| end.of(block)));
                let mut blocks: Vec<_> =
                    blocks.map(|block| (block.low, block.high, block.body)).collect();
                blocks.sort_unstable();
                blocks
            };
            let kept = look(true);
            assert_eq!(kept, look(false));
            blocking += kept.len();
        }
        Ok(())
    });
    assert!(blocking > 0, "nothing is in the way");
}
