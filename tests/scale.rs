//! A million chunks in every awkward arrangement can be planned on a stack of 1 MiB: nothing
//! recurses on data.

use memplan::{Plan, Planner, Problem, verify::verify};
use rstest::rstest;

const MILLION: u64 = 1_000_000;

fn chain() -> Problem {
    let mut problem = Problem::builder();
    let mut last = problem.chunk(0..2, MILLION);
    for step in 1..MILLION {
        let next = problem.chunk(step..step + 2, MILLION - step);
        problem.overwrite(next, last, u64::from(step % 2 == 0));
        last = next;
    }
    problem.build().unwrap()
}

fn tower() -> Problem {
    let mut problem = Problem::builder();
    for step in 0..MILLION {
        problem.chunk(step..MILLION, 1 + step % 7);
    }
    problem.build().unwrap()
}

fn short_lives() -> Problem {
    let mut problem = Problem::builder();
    for step in 0..MILLION {
        problem.chunk(step..step + 1 + step % 5, 1 + step * 7919 % 4096);
    }
    problem.build().unwrap()
}

#[rstest]
#[case::one_chain(chain, Some(MILLION))]
#[case::each_above_the_other(tower, None)]
#[case::short_lives(short_lives, None)]
fn a_million_chunks_plan_on_a_small_stack(
    #[case] make: fn() -> Problem,
    #[case] pool: Option<u64>,
) {
    let plan_and_verify = move || -> Plan {
        let problem = make();
        let plan = Planner::new().plan(&problem).unwrap();
        assert_eq!(verify(&problem, &plan), []);
        plan
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(plan_and_verify).unwrap();
    let plan = thread.join().unwrap();
    assert_eq!(plan.chunks().len() as u64, MILLION);
    if let Some(pool) = pool {
        assert_eq!(plan.pool_size(), pool);
    }
}
