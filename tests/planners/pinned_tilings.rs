//! Perfect packings in one pool, a few chunks of which cannot move.

use arbitrary::{Result, Unstructured};

use crate::common::{problems::from_csv, seeds::times, shared::shared};
use memplan::{
    Bytes, Limits, Planner, Problem, Step,
    problem::{Pool, PoolId, ProblemBuilder},
    verify::verify,
};

/// A tile to cut, in steps and bytes.
#[derive(Clone, Copy)]
struct Tile {
    steps: [Step; 2],
    bytes: [Bytes; 2],
}

/// Cuts a tile into at least one piece, some of them pinned where they lie.
fn cut(
    random: &mut Unstructured<'_>,
    problem: &mut ProblemBuilder,
    Tile { steps: [begin, end], bytes: [low, high] }: Tile,
    depth: u32,
) -> Result<()> {
    let is_high = high - low > 8 && random.ratio(1, 2)?;
    if depth > 0 && (is_high || end - begin > 4) {
        let mut halves = [Tile { steps: [begin, end], bytes: [low, high] }; 2];
        if is_high {
            let at = low + random.int_in_range(1..=(high - low) / 4 - 1)? * 4;
            (halves[0].bytes[1], halves[1].bytes[0]) = (at, at);
        } else {
            let at = begin + random.int_in_range(1..=end - begin - 1)?;
            (halves[0].steps[1], halves[1].steps[0]) = (at, at);
        }
        for half in halves {
            cut(random, problem, half, depth - 1)?;
        }
    } else {
        let chunk = problem.chunk(begin..end, high - low);
        if random.ratio(1, 8)? {
            problem.pin(chunk, PoolId::default(), low);
        }
    }
    Ok(())
}

/// Perfect packings above and below a reserved range, a few chunks of which are pinned.
#[test]
fn perfect_packings_around_pins_and_reserved_ranges_are_found_and_proven() {
    let (mut tilings, mut proven) = (0, 0);
    times(300, |random| {
        let mut problem = Problem::builder().alignment(*random.choose(&[1, 4])?);
        let mut pool = Pool::new("pool");
        pool.reserved.push(80..96);
        if random.arbitrary()? {
            // Ranges may overlap.
            pool.reserved.push(88..96);
        }
        problem.pool(pool);
        for bytes in [[0, 80], [96, 200]] {
            cut(random, &mut problem, Tile { steps: [0, 60], bytes }, 5)?;
        }
        let problem = problem.build().unwrap();
        let plan = Planner::new().plan(&problem).unwrap();
        assert_eq!(verify(&problem, &plan), []);
        assert!(plan.pool_size() >= 200 && plan.lower_bound() <= 200);
        tilings += 1;
        proven += u32::from(plan.pool_size() == 200 && plan.proven_optimal());
        Ok(())
    });
    assert!(proven * 10 > tilings * 8, "{proven} of {tilings}");
}

/// A chunk lies in no reserved bytes, even where it needs none of its own. The other chunks keep the problem
/// from being searched as one of few bodies.
#[test]
fn bytes_that_are_never_needed_are_not_reserved_either() {
    let mut problem = Problem::builder();
    problem.pool(Pool::new("pool").reserved(0..4));
    let chunk = problem.chunk(0..2, 8);
    problem.window(chunk, 0..2, 4..8);
    for step in 2..22 {
        problem.chunk(step..step + 1, 4);
    }
    let problem = problem.build().unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    assert_eq!((plan.pool_size(), plan.lower_bound() <= 12), (12, true));
}

/// One chunk in 23 is pinned where a packing at the bound has it. With these nodes, the search without repaired pins
/// stays a fifth above the bound.
#[test]
fn pins_are_repaired_in_a_hard_problem() {
    let Some(csv) = shared("data/problems/challenging/E.1048576.csv") else { return };
    let plain = from_csv(&csv);
    let packing = Planner::new().plan(&plain).unwrap();
    assert!(packing.proven_optimal());
    let mut problem = Problem::builder();
    for chunk in packing.chunks() {
        let pinned = problem.chunk(chunk.begin..chunk.end, chunk.size);
        if pinned.index() * 11 % 23 == 5 {
            problem.pin(pinned, PoolId::default(), chunk.offset);
        }
    }
    let problem = problem.build().unwrap();
    let plan = Planner::new().limits(Limits::default().nodes(400_000)).plan(&problem).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (packing.pool_size(), true));
}
