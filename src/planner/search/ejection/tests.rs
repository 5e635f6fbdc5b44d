use super::*;
use crate::{
    Problem,
    planner::search::{
        control::descent::{Attempts, descend_from},
        samples::{instance, random_problem},
        state::fingerprint::scramble,
    },
};

/// Returns whether two of these bodies share heights over a section.
fn overlap(inst: &Instance, offsets: &[u64]) -> bool {
    let bodies: Vec<(&Item, u64)> = inst.items.iter().zip(offsets.iter().copied()).collect();
    bodies.iter().enumerate().any(|(at, &(a, low))| {
        bodies[..at].iter().any(|&(b, other)| {
            let in_time = a.first < b.end && b.first < a.end;
            in_time && low < other + b.size && other < low + a.size
        })
    })
}

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
    let mut packed = 0;
    arbtest::arbtest(|random| {
        let inst = instance(&random_problem(random)?);
        let Some(mut ejection) = Ejection::new(&inst) else { return Ok(()) };
        let limit = inst.bound() + random.int_in_range(0..=3)? * inst.align;
        let attempt = Attempt { limit, seed: random.int_in_range(0..=9)?, nodes: 100 };
        if ejection.pack(attempt, &mut |_| false) {
            packed += 1;
            let offsets = ejection.offsets();
            assert!(!overlap(&inst, &offsets), "{inst:?} {offsets:?}");
            assert!((inst.bound()..=limit).contains(&ejection.height()));
            for (offset, item) in offsets.iter().zip(&inst.items) {
                assert!(offset + item.size <= ejection.height());
                assert!(offset.is_multiple_of(inst.align));
            }
        }
        Ok(())
    })
    .budget_ms(500);
    assert!(packed > 0, "no problem has been packed");
}

/// The bodies that are ejected weigh no more than those in the way at any other offset.
#[test]
fn a_body_ejects_those_that_weigh_least() {
    let mut forced = 0;
    arbtest::arbtest(|random| {
        let inst = instance(&random_problem(random)?);
        let Some(mut ejection) = Ejection::new(&inst) else { return Ok(()) };
        let largest = inst.items.iter().map(|item| item.size).max().unwrap_or(0);
        let limit = largest.next_multiple_of(inst.align) + inst.align * 2;
        ejection.limit = limit.cast_signed();
        let mut weights = Vec::new();
        for body in 0..inst.items.len() {
            weights.push(random.int_in_range(1..=5)?);
            ejection.place(body, Match::Either);
        }
        for body in 0..inst.items.len() {
            if ejection.strip.offsets[body].is_some() {
                continue;
            }
            forced += 1;
            let before = ejection.strip.offsets.clone();
            let highest = ejection.limit - ejection.strip.aligned(inst.items[body].size);
            let steps = (0..=highest).step_by(usize::try_from(inst.align).unwrap());
            let in_way = |at: i64| -> u64 {
                let in_way = |other: usize| {
                    let (a, b) = (inst.items[body], inst.items[other]);
                    let in_time = a.first < b.end && b.first < a.end;
                    before[other].is_some_and(|offset| {
                        let above = offset + b.size.cast_signed();
                        in_time && at < above && offset < at + a.size.cast_signed()
                    })
                };
                let others = (0..inst.items.len()).filter(|&other| in_way(other));
                others.map(|other| weights[other]).sum()
            };
            let ejected = ejection.force(body, &weights).unwrap();
            let at = ejection.strip.offsets[body].unwrap();
            assert_eq!(Some(in_way(at)), steps.map(in_way).min());
            assert_eq!(ejected.iter().map(|&other| weights[other]).sum::<u64>(), in_way(at));
            let offsets = &ejection.strip.offsets;
            assert!((0..inst.items.len()).all(|b| b == body
                || offsets[b] == before[b].filter(|_| !ejected.contains(&b))));
        }
        Ok(())
    })
    .budget_ms(500);
    assert!(forced > 0, "no body has been forced");
}

/// Without ejection, the default effort leaves this problem at 1.047 times the bound.
#[test]
fn a_long_run_is_packed_close_to_the_bound_within_the_nodes() {
    let inst = instance(&run_of_lives(3000));
    let bound = inst.bound();
    let mut ejection = Ejection::new(&inst).unwrap();
    let mut asked = Vec::new();
    let mut stop = |nodes, best| {
        asked.push((nodes, best));
        false
    };
    let nodes = 200_000;
    let attempts = Attempts { rungs: &RUNGS, share: ejection.share(), nodes };
    let found = descend_from(bound, bound * 11 / 10, attempts, &mut ejection, &mut stop);
    let tops = found.unwrap().into_iter().zip(&inst.items).map(|(offset, item)| offset + item.size);
    let height = tops.max().unwrap();
    assert!(height * 1000 <= bound * 1025, "{height} for a bound of {bound}");
    assert!(ejection.nodes() < nodes + 1000, "{}", ejection.nodes());
    assert!(asked.is_sorted_by(|a, b| a.0 <= b.0 && a.1 >= b.1));
    // Stopped at once, it packs nothing.
    let mut stopped = Ejection::new(&inst).unwrap();
    assert_eq!(descend_from(bound, bound * 2, attempts, &mut stopped, &mut |_, _| true), None);
}

#[test]
fn staircases_are_left_to_other_searches() {
    let inst = instance(&crate::planner::search::samples::interlocking(10));
    assert!(Ejection::new(&inst).is_none());
}

#[test]
fn events_are_sorted_by_height_and_ends_come_first() {
    let events = [(-5, true, 3), (-1, true, 4), (0, false, 9), (0, true, 1), (7, false, 0)];
    let packed = events.map(|(at, begins, block)| Event::new(at, begins, block));
    assert!(packed.is_sorted());
    for (event, (at, begins, block)) in packed.into_iter().zip(events) {
        let block = usize::try_from(block).unwrap();
        assert_eq!((event.at(), event.begins(), event.block()), (at.max(-1), begins, block));
    }
}
