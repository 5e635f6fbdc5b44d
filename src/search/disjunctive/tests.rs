use crate::search::{
    control::restarts::Restarts,
    samples::{instance, interlocking, random_problem},
};
use crate::{search::disjunctive::*, seeds::times};

/// The alignment, which all bodies of an unconstrained problem have.
fn align(search: &Disjunctive) -> i64 {
    search.offered[0].0.modulus
}

/// Returns whether two bodies are disjoint if the second lies this far above the first.
fn keep_apart(search: &Disjunctive, [a, b]: [usize; 2], above: i64) -> bool {
    search.sections.iter().all(|section| {
        let on = |body| section.iter().find(|slice| slice.body == body);
        on(a).zip(on(b)).is_none_or(|(a, b)| a.high <= b.low + above || b.high + above <= a.low)
    })
}

/// Chains of few bytes, but each at a multiple of an alignment, so that the pool overflows.
#[test]
fn offsets_that_could_overflow_are_left_to_the_valleys() {
    for (shift, used) in [(50, true), (57, false)] {
        let mut problem = crate::Problem::builder().alignment(1 << shift);
        for _ in 0..12 {
            let whole = problem.chunk(0..2, 100);
            let part = problem.chunk(1..3, 50);
            problem.overwrite(part, whole, 1);
        }
        let problem = problem.build().unwrap();
        let inst = instance(&problem);
        let search = Disjunctive::new(&inst);
        assert_eq!(search.is_some(), used, "2^{shift}");
        if let Some(mut search) = search {
            assert_eq!(search.decide(u64::MAX, UNIT, &mut Meter::unwatched()), Verdict::Packed);
            assert_eq!(
                search.decide((12 << shift) - 1, UNIT, &mut Meter::unwatched()),
                Verdict::Packed
            );
        }
        let planner = crate::Planner::new().strategy(crate::Strategy::Optimal);
        let plan = planner.plan(&problem).unwrap();
        assert_eq!((plan.pool_size, plan.lower_bound), (12 << shift, 12 << shift));
    }
}

#[test]
fn gaps_are_the_differences_that_keep_two_bodies_apart() {
    times(500, |random| {
        let problem = random_problem(random)?;
        let Some(search) = Disjunctive::new(&instance(&problem)) else { return Ok(()) };
        for pair in &search.pairs {
            for above in (-40..=40).map(|above| above * align(&search)) {
                let gap = pair.gaps.iter().any(|gap| (gap.least..=gap.most).contains(&above));
                assert_eq!(gap, keep_apart(&search, pair.bodies, above), "{problem:#?}");
            }
            let rising = pair.gaps.is_sorted_by(|a, b| a.most < b.least);
            assert!(rising && pair.gaps.iter().all(|gap| gap.least <= gap.most));
        }
        for (body, pairs) in search.pairs_of.iter().enumerate() {
            assert!(pairs.iter().all(|&at| search.pairs[at].bodies.contains(&body)));
        }
        let pairs: usize = search.pairs_of.iter().map(Vec::len).sum();
        assert_eq!(pairs, 2 * search.pairs.len());
        Ok(())
    });
}

/// Every difference that a gap allows remains, and no range is wider than the reachable gaps.
#[test]
fn pairs_narrow_ranges_exactly_to_their_gaps() {
    times(1500, |random| {
        let problem = random_problem(random)?;
        let Some(mut search) = Disjunctive::new(&instance(&problem)) else { return Ok(()) };
        search.run(1000, &mut Meter::unwatched().part(0, 0));
        for at in 0..search.pairs.len() {
            let [a, b] = search.pairs[at].bodies;
            // Steps of one pair do not count for the next.
            search.steps.fill(0);
            for body in [a, b] {
                search.low[body] = random.int_in_range(0..=12)? * align(&search);
                search.high[body] =
                    search.low[body] + random.int_in_range(0..=12)? * align(&search);
            }
            let (last, range) = (search.pairs[at].gaps.len() - 1, |search: &Disjunctive, body| {
                let all = search.low[body]..=search.high[body];
                all.step_by(usize::try_from(align(search)).unwrap()).collect::<Vec<i64>>()
            });
            let first = random.int_in_range(0..=last)?;
            search.open[at] = Open { first, last: random.int_in_range(first..=last)? };
            let gaps = search.pairs[at].gaps[first..=search.open[at].last].to_vec();
            let (of_a, of_b) = (range(&search, a), range(&search, b));
            let all: Vec<(i64, i64)> =
                of_a.iter().flat_map(|&x| of_b.iter().map(move |&y| (x, y))).collect();
            let allowed = |(x, y): (i64, i64)| {
                gaps.iter().find(|gap| (gap.least..=gap.most).contains(&(y - x))).copied()
            };
            let used: Vec<Gap> = all.iter().filter_map(|&xy| allowed(xy)).collect();
            let before = search.pairs[at].faults;
            let stands = search.narrow_pair(at);
            assert_eq!(stands, !used.is_empty());
            assert_eq!(search.pairs[at].faults, before + u64::from(!stands));
            if stands {
                let least = used.iter().map(|gap| gap.least).min().unwrap();
                let most = used.iter().map(|gap| gap.most).max().unwrap();
                let hull: Vec<(i64, i64)> =
                    all.into_iter().filter(|(x, y)| (least..=most).contains(&(y - x))).collect();
                let ends = |of: fn(&(i64, i64)) -> i64| {
                    (hull.iter().map(of).min().unwrap(), hull.iter().map(of).max().unwrap())
                };
                let now = |body: usize| (search.low[body], search.high[body]);
                assert_eq!((now(a), now(b)), (ends(|xy| xy.0), ends(|xy| xy.1)), "{gaps:?}");
            }
        }
        Ok(())
    });
}

/// Instances without staircases have no disjunctive search. With staircases, each run gives the right answer, the same
/// as the search of valleys, and undoing a run restores the initial state.
#[test]
fn packings_are_right_and_runs_leave_no_state() {
    times(400, |random| {
        let inst = instance(&random_problem(random)?);
        let search = Disjunctive::new(&inst);
        assert_eq!(search.is_none(), inst.staircases.is_empty());
        let Some(mut search) = search else { return Ok(()) };
        let mut valleys = Restarts::new(&inst, 0);
        valleys.disjunctive = None;
        let mut verdicts = Vec::new();
        for limit in inst.bound()..inst.bound() + 6 {
            let end = search.decide(limit, 1_000_000, &mut Meter::unwatched());
            verdicts.push(end);
            let other = valleys.decide(limit, 8, &mut Meter::unwatched());
            assert!(other == Verdict::NodeLimit || other == end, "{inst:#?}");
            if end == Verdict::Packed {
                let at = |body: usize| i64::try_from(search.offsets()[body]).unwrap();
                for (body, top) in search.tops.iter().enumerate() {
                    assert!(at(body) % align(&search) == 0);
                    assert!(at(body) + top <= i64::try_from(limit).unwrap());
                }
                for pair in &search.pairs {
                    let [a, b] = pair.bodies;
                    assert!(keep_apart(&search, pair.bodies, at(b) - at(a)));
                }
            }
            search.undo(0);
            let open = |(at, open): (usize, &Open)| {
                *open == Open { first: 0, last: search.pairs[at].gaps.len() - 1 }
            };
            assert!(search.low.iter().all(|&low| low == 0));
            assert!(search.open.iter().enumerate().all(open));
            assert!(search.changed.is_empty() && !search.is_changed.contains(&true));
            assert!(!search.stale.contains(&true));
            assert!(search.steps.iter().all(|&steps| steps == 0));
        }
        // Everything that fits under a limit fits under a higher one.
        let refuted = verdicts.iter().filter(|&&end| end == Verdict::Refuted).count();
        let (refuted, packed) = verdicts.split_at(refuted);
        assert!(refuted.iter().all(|&end| end == Verdict::Refuted), "{verdicts:?}");
        assert!(packed.iter().all(|&end| end == Verdict::Packed), "{verdicts:?}");
        Ok(())
    });
}

/// Three bodies, each of which must lie above another, are refuted without narrowing ranges byte by
/// byte.
#[test]
fn cycles_are_refuted_at_once() {
    let mut problem = crate::Problem::builder();
    let whole = problem.chunk(0..1, 9);
    let part = problem.chunk(0..2, 2);
    problem.overwrite(part, whole, 7);
    problem.chunk(0..2, 3);
    problem.chunk(1..2, 4);
    let inst = instance(&problem.build().unwrap());
    let mut search = Disjunctive::new(&inst).unwrap();
    let limit = 1_000_000_000;
    assert_eq!(search.decide(limit, UNIT, &mut Meter::unwatched()), Verdict::Packed);
    // Each of the three above the next.
    search.trail.clear();
    search.low.fill(0);
    search.high.fill(1_000_000_000);
    for (at, pair) in search.pairs.iter().enumerate() {
        let [a, b] = pair.bodies;
        let last = pair.gaps.len() - 1;
        search.open[at] =
            if (a, b) == (0, 2) { Open { first: 0, last: 0 } } else { Open { first: last, last } };
    }
    (0..search.tops.len()).for_each(|body| search.change(body));
    let before = search.work;
    assert!(!search.narrow(true));
    assert!(search.work - before < 100, "{} pairs looked at", search.work - before);
}

#[test]
fn a_run_spends_its_nodes() {
    for (chains, first) in [(20, 5 * UNIT), (21, PROBE)] {
        let inst = instance(&interlocking(chains));
        let mut search = Disjunctive::new(&inst).unwrap();
        assert_eq!(search.first_run(5), first);
        for runs in 1..4 {
            let mut last = 0;
            let mut caller = |nodes| {
                last = nodes;
                false
            };
            let end = search.decide(inst.bound(), first, &mut Meter::new(&mut caller));
            let nodes = search.nodes();
            assert!(end == Verdict::NodeLimit && last < nodes, "{last} of {nodes}");
            // A node may count for several.
            assert!((runs * first..runs * (first + 20)).contains(&nodes), "{nodes} of {first}");
        }
    }
}

#[test]
fn a_search_ends_when_its_caller_ends_it() {
    let inst = instance(&interlocking(9));
    let mut search = Disjunctive::new(&inst).unwrap();
    let mut asked = Vec::new();
    let mut caller = |nodes| {
        asked.push(nodes);
        asked.len() == 3
    };
    let end = search.decide(inst.bound(), 9000, &mut Meter::new(&mut caller));
    assert_eq!((end, search.nodes), (Verdict::NodeLimit, 3));
    assert!(asked.is_sorted_by(|a, b| a < b) && asked[0] > 0 && asked[2] == search.nodes());
    assert!(search.work > 0);
}
