use crate::search::state::skyline::*;
use crate::{
    search::samples::{Change, apply, ceiling, instance, random_change, random_problem},
    seeds::times,
};

/// Recounts everything that the skyline counts.
fn check(sky: &Skyline<'_>) {
    let inst = sky.inst;
    let left = |body: &usize| sky.offsets[*body] == UNPLACED;
    let items = || (0..inst.items.len()).filter(left).map(|i| (i, inst.items[i]));
    let staircases = || {
        (0..inst.staircases.len())
            .map(|staircase| (staircase + inst.items.len(), &inst.staircases[staircase]))
    };
    for x in 0..inst.sections {
        let covers = |first: u32, end: u32| (first as usize..end as usize).contains(&x);
        let parts = || {
            staircases()
                .flat_map(|(body, staircase)| staircase.parts.iter().map(move |part| (body, part)))
                .filter(|(_, part)| covers(part.first, part.end))
        };
        let size: u64 = items().filter(|(_, i)| covers(i.first, i.end)).map(|(_, i)| i.size).sum();
        assert_eq!(sky.items_left[x], size);
        assert_eq!(sky.staircases_left[x] as usize, parts().filter(|(body, _)| left(body)).count());
        assert_eq!(sky.live(x), size > 0 || sky.staircases_left[x] > 0);
        let mut reserved: Vec<Span> = parts()
            .filter(|(body, _)| !left(body))
            .map(|(body, part)| part.at(sky.offsets[body]))
            .filter(|part| part.low >= sky.floor[x])
            .collect();
        reserved.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(sky.reserved[x], reserved);
        assert!(ceiling(sky, x) > sky.floor[x] && sky.base[x] <= sky.floor[x]);
        let above: u64 = parts().filter(|(body, _)| left(body)).map(|(_, p)| p.high - p.low).sum();
        let above = above + reserved.iter().map(|part| part.high - part.low).sum::<u64>();
        assert_eq!(sky.above[x], above);
        assert_eq!(sky.slack(x), sky.limit - sky.floor[x] - size - above);
        let listed: Vec<usize> = sky.items_from(x).map(|id| id as usize).collect();
        let begins = items().filter(|(_, i)| i.first as usize == x).map(|(id, _)| id);
        assert_eq!(listed, begins.collect::<Vec<_>>());
    }
    for x in 0..=inst.sections {
        let crosses = |first: usize, end: usize| first < x && x < end;
        let items = items().filter(|(_, i)| crosses(i.first as usize, i.end as usize)).count();
        let staircases = staircases()
            .filter(|(b, staircase)| {
                left(b) && crosses(staircase.sections().start, staircase.sections().end)
            })
            .count();
        assert_eq!(
            (sky.item_crossings[x] as usize, sky.staircase_crossings[x] as usize),
            (items, staircases)
        );
    }
}

/// All state that a search reads.
fn state(sky: &mut Skyline<'_>) -> impl PartialEq + std::fmt::Debug + use<> {
    let fingerprints = fingerprints(sky);
    (sky.floor.clone(), sky.base.clone(), sky.reserved.clone(), sky.offsets.clone(), fingerprints)
}

fn fingerprints(sky: &mut Skyline<'_>) -> Vec<Fingerprint> {
    (0..sky.inst.sections).map(|x| sky.fingerprint(x..x + 1)).collect()
}

#[test]
fn a_skyline_counts_right_and_undoes_every_change() {
    times(1500, |random| {
        let inst = instance(&random_problem(random)?);
        if inst.sections == 0 {
            return Ok(());
        }
        let limit = 100;
        let mut sky = Skyline::new(&inst, limit);
        check(&sky);
        let mut past = Vec::new();
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..random.int_in_range(0..=30)? {
            if random.ratio(1, 8)? && !past.is_empty() {
                let back = random.choose_index(past.len())?;
                let (mark, was) = past.swap_remove(back);
                past.truncate(back);
                changes.truncate(back);
                sky.undo(mark);
                assert_eq!(state(&mut sky), was);
            } else if let Some(change) = random_change(random, &sky)? {
                let before = fingerprints(&mut sky);
                past.push((sky.mark(), state(&mut sky)));
                changes.push(change);
                apply(&mut sky, change);
                // The fingerprint of a section depends on nothing outside.
                let over = match change {
                    Change::Raise(x, _) => x..x + 1,
                    Change::Place(body) | Change::Hang(body, _) => {
                        Item::around(&inst.parts().nth(body as usize).unwrap()).sections()
                    }
                };
                for (x, (before, now)) in before.iter().zip(fingerprints(&mut sky)).enumerate() {
                    assert_eq!(*before != now, over.contains(&x), "{x} after {change:?}");
                }
            }
            check(&sky);
        }
        // Neither changes that were undone nor an earlier limit make a difference.
        let mut fresh = Skyline::new(&inst, limit + 1);
        let start = state(&mut fresh);
        for &change in &changes {
            apply(&mut fresh, change);
        }
        fresh.reset(limit);
        assert_ne!(state(&mut fresh), start);
        for &change in &changes {
            apply(&mut fresh, change);
        }
        assert_eq!(state(&mut fresh), state(&mut sky));
        let left = random.choose_index(inst.sections)?;
        let some = left..inst.sections;
        assert_eq!(fresh.fingerprint(some.clone()), sky.fingerprint(some.clone()));
        let all = fresh.fingerprint(0..inst.sections);
        assert!(left == 0 || fresh.fingerprint(some) != all);
        Ok(())
    });
}

#[test]
fn a_floor_rises_no_higher_than_the_lowest_reserved_part() {
    let mut problem = crate::Problem::builder();
    let whole = problem.chunk(0..2, 6);
    let part = problem.chunk(1..3, 2);
    problem.overwrite(part, whole, 4);
    problem.chunk(0..1, 1);
    problem.chunk(2..3, 1);
    let inst = instance(&problem.build().unwrap());
    let mut sky = Skyline::new(&inst, 8);
    assert_eq!((inst.sections, inst.items.len(), inst.staircases.len()), (2, 2, 1));
    assert!((0..2).all(|x| sky.fits(x)));
    sky.hang(2, 0);
    assert_eq!(
        (&sky.floor[..], &sky.reserved[1][..]),
        (&[6, 0][..], &[Span { low: 4, high: 6 }][..])
    );
    sky.raise(1, 3);
    assert_eq!((sky.floor[1], sky.base[1]), (3, 0));
    // The floor meets the reserved part and moves to its top.
    sky.raise(1, 5);
    assert_eq!((sky.floor[1], sky.base[1], sky.above[1]), (6, 6, 0));
    assert!(sky.reserved[1].is_empty());
    sky.reset(7);
    assert!((0..2).all(|x| sky.fits(x)));
    sky.reset(6);
    assert!(!(0..2).all(|x| sky.fits(x)));
}

/// A fingerprint stands for the state: the room below the limit, and the bodies left. Any difference
/// changes both halves; the limit alone changes neither.
#[test]
fn a_fingerprint_distinguishes_all_states_and_nothing_else() {
    let mut problem = crate::Problem::builder();
    for body in 0..4 {
        let whole = problem.chunk(0..2, 8 + body);
        let part = problem.chunk(1..3, 3);
        problem.overwrite(part, whole, body);
    }
    problem.chunk(0..1, 5);
    problem.chunk(2..3, 5);
    let inst = instance(&problem.build().unwrap());
    assert_eq!((inst.sections, inst.items.len(), inst.staircases.len()), (2, 2, 4));
    let fingerprints = |limit: u64, more: u64| {
        let mut by_state = std::collections::BTreeMap::new();
        let mut sky = Skyline::new(&inst, 0);
        for (floor, waste, hangs) in (0..20).flat_map(|floor| {
            (0..20).flat_map(move |waste| (0..20).map(move |hangs| (floor, waste, hangs)))
        }) {
            sky.reset(limit + more);
            // The rise of a floor is waste.
            for x in 0..2 {
                sky.raise(x, floor + waste + more);
            }
            sky.base.fill(floor + more);
            let body = u32::try_from(2 + hangs % 4).unwrap();
            sky.hang(body, floor + waste + more + hangs);
            let mut state = vec![u64::from(body)];
            for x in 0..2 {
                // The bases were changed without a stamp, so the hashes must be discarded.
                sky.hashes[x].1 = 0;
                let room = |height: u64| limit + more - height;
                state.extend([room(sky.floor[x]), room(sky.base[x])]);
                state.extend(sky.reserved[x].iter().flat_map(|r| [room(r.low), room(r.high)]));
            }
            by_state.insert(state, sky.fingerprint(0..2));
        }
        by_state
    };
    let (low, high) = (fingerprints(500, 0), fingerprints(500, 7));
    assert!(low == high && low.len() > 7000, "{} states", low.len());
    for half in [|f: &Fingerprint| f.sum, |f: &Fingerprint| f.xor] {
        let different: std::collections::BTreeSet<u64> = low.values().map(half).collect();
        assert_eq!(different.len(), low.len());
        // Each bit is set in about half of them.
        for bit in 0..64 {
            let set = different.iter().filter(|&&hash| hash >> bit & 1 == 1).count();
            let percent = 100 * set / low.len();
            assert!((45..55).contains(&percent), "bit {bit}: {percent} %");
        }
    }
}

/// An item of 4 bytes is pinned at 3, beside one of 5 bytes.
#[test]
fn pins_hold_until_an_item_or_a_floor_passes_them() {
    let mut problem = crate::Problem::builder();
    problem.chunk(0..2, 4);
    problem.chunk(1..2, 5);
    let problem = problem.build().unwrap();
    let plain = instance(&problem);
    let [four, five] = [4, 5].map(|size| plain.items.iter().position(|i| i.size == size).unwrap());
    let mut inst = plain.clone();
    inst.pins = vec![None; 2];
    inst.pins[four] = Some(3);
    let mut sky = Skyline::new(&inst, 12);
    let pinned = sky.inst.items[four].sections();
    let holds = |sky: &Skyline<'_>| pinned.clone().map(|x| sky.pins_hold(x)).collect::<Vec<_>>();
    assert!(sky.has_pins() && !Skyline::new(&plain, 12).has_pins());
    sky.raise(0, 3);
    assert_eq!(holds(&sky), [true]);
    sky.raise(0, 4);
    assert_eq!(holds(&sky), [false]);
    sky.undo(0);
    sky.place(u32::try_from(four).unwrap());
    assert_eq!(holds(&sky), [false]);
    sky.undo(0);
    sky.raise(0, 3);
    sky.place(u32::try_from(four).unwrap());
    assert_eq!(holds(&sky), [true]);
    sky.place(u32::try_from(five).unwrap());
    assert_eq!(holds(&sky), [true]);
    // The same room under another limit is not the same, because pins count from the bottom.
    let room = |inst: &Instance, limit: u64| {
        let mut sky = Skyline::new(inst, limit);
        sky.raise(0, limit - 9);
        sky.base[0] = sky.floor[0];
        sky.fingerprint(0..1)
    };
    assert_eq!(room(&plain, 12), room(&plain, 13));
    assert_ne!(room(&inst, 12), room(&inst, 13));
}
