use super::*;
use crate::planner::search::control::descent::{Attempts, descend_from};
use crate::planner::search::samples::{instance, interlocking, random_problem};

/// Packs lower and lower; returns the height of the last packing and its offsets.
fn descend(
    separation: &mut Separation,
    bound: u64,
    best: u64,
    last: u64,
    stop: &mut impl FnMut(u64, u64) -> bool,
) -> Option<(u64, Vec<u64>)> {
    let attempts = Attempts { rungs: &RUNGS, share: separation.share(), nodes: last };
    let offsets = descend_from(bound, best, attempts, separation, stop)?;
    let tops =
        offsets.iter().zip(&separation.tops).map(|(offset, top)| offset + top.unsigned_abs());
    let height = tops.max().unwrap_or(0).next_multiple_of(separation.align.unsigned_abs());
    Some((height.max(bound), offsets))
}

/// Returns whether any two bodies share heights over a section.
fn overlaps(inst: &Instance, offsets: &[u64]) -> bool {
    let bodies: Vec<Vec<Part>> = parts(inst).collect();
    (0..bodies.len()).any(|a| {
        (0..a).any(|b| {
            bodies[a].iter().any(|part| {
                bodies[b].iter().any(|other| {
                    let meets = part.first < other.end && other.first < part.end;
                    meets && !part.at(offsets[a]).is_clear_of(other.at(offsets[b]))
                })
            })
        })
    })
}

#[test]
fn packed_bodies_lie_apart_below_the_limit_at_aligned_offsets() {
    let mut packed = 0;
    arbtest::arbtest(|random| {
        let problem = random_problem(random)?;
        let inst = instance(&problem);
        let Some(mut separation) = Separation::new(&inst) else { return Ok(()) };
        let stack: u64 = separation.tops.iter().map(|&top| top.unsigned_abs()).sum();
        let stack = (stack + inst.align * inst.bodies() as u64).next_multiple_of(inst.align);
        let found = descend(&mut separation, inst.bound(), stack, 2000, &mut |_, _| false);
        if let Some((height, offsets)) = found {
            packed += 1;
            assert!((inst.bound()..stack).contains(&height));
            assert!(!overlaps(&inst, &offsets), "{problem:#?} {offsets:?}");
            for (offset, &top) in offsets.iter().zip(&separation.tops) {
                assert!(offset + top.unsigned_abs() <= height);
                assert!(offset.is_multiple_of(inst.align));
            }
        }
        Ok(())
    })
    .budget_ms(500);
    assert!(packed > 0, "no problem has been packed");
}

/// The cost at the place that is found is the least at any aligned offset.
#[test]
fn the_best_place_is_found_among_all() {
    arbtest::arbtest(|random| {
        let problem = random_problem(random)?;
        let inst = instance(&problem);
        let Some(mut separation) = Separation::new(&inst) else { return Ok(()) };
        let tallest = separation.tops.iter().copied().max().unwrap_or(0);
        separation.begin(tallest.unsigned_abs() + random.int_in_range(0..=9)?, 1);
        for at in 0..separation.meetings.len() {
            separation.set_weight(at, LIGHT * random.int_in_range(1..=3)?);
        }
        for body in 0..inst.bodies() {
            let most = (separation.limit - separation.tops[body]) / separation.align;
            separation.offsets[body] = random.int_in_range(0..=most)? * separation.align;
            separation.is_placed[body] = random.ratio(3, 4)?;
        }
        for body in 0..inst.bodies() {
            let cost = |offset: i64| -> i128 {
                let meetings = &separation.meetings[separation.of(body)];
                let placed = meetings.iter().filter(|m| separation.is_placed[m.other as usize]);
                let costs = placed.map(|meeting| {
                    let difference = offset - separation.offsets[meeting.other as usize];
                    i128::from(meeting.weight) * i128::from(meeting.depth(difference))
                });
                costs.sum()
            };
            let most = separation.limit - separation.tops[body];
            let offsets = (0..=most).step_by(usize::try_from(separation.align).unwrap());
            let least = offsets.map(|offset| (cost(offset), offset)).min().unwrap();
            let now = cost(separation.offsets[body]);
            let costs = |place: &Place| cost(place.offset);
            let lowest = separation.clone().best_place(body, true);
            assert_eq!((lowest.cost, lowest.now), (least.0, now));
            assert_eq!(costs(&lowest), lowest.cost);
            if lowest.cost == 0 {
                assert_eq!(lowest.offset, least.1);
            }
            let any = separation.clone().best_place(body, false);
            assert_eq!((any.cost, costs(&any)), (least.0, least.0));
        }
        Ok(())
    })
    .budget_ms(500);
}

#[test]
fn staircases_that_interlock_are_separated_within_the_nodes() {
    let inst = instance(&interlocking(60));
    let mut separation = Separation::new(&inst).unwrap();
    let mut asked = Vec::new();
    let mut stop = |nodes, best| {
        asked.push((nodes, best));
        false
    };
    let stack = 100 * inst.bound();
    let (height, _) = descend(&mut separation, inst.bound(), stack, 60_000, &mut stop).unwrap();
    assert!(height * 100 <= inst.bound() * 139, "{height} for a bound of {}", inst.bound());
    let nodes = separation.nodes();
    assert!(nodes < 60_000 + 1000, "{nodes}");
    assert!(asked.is_sorted_by(|a, b| a.0 <= b.0 && a.1 >= b.1) && asked.len() > 10);
    // Stopped at once, it packs nothing.
    let mut stopped = Separation::new(&inst).unwrap();
    assert_eq!(descend(&mut stopped, inst.bound(), stack, 20_000, &mut |_, _| true), None);
}

#[test]
fn meetings_are_the_differences_at_which_bodies_overlap() {
    arbtest::arbtest(|random| {
        let inst = instance(&random_problem(random)?);
        let Some(separation) = Separation::new(&inst) else { return Ok(()) };
        for body in 0..inst.bodies() {
            for at in separation.of(body) {
                let meeting = &separation.meetings[at];
                let twin = &separation.meetings[meeting.twin as usize];
                assert_eq!((twin.twin as usize, twin.other as usize), (at, body));
                assert_eq!((twin.low, twin.high), (-meeting.high, -meeting.low));
            }
        }
        Ok(())
    })
    .budget_ms(200);
}
