//! The worked examples of the specification come out exactly.

use memplan::{Plan, Planner, Problem};
use rstest::rstest;

fn plan(problem: &Problem) -> Plan {
    Planner::new().plan(problem).unwrap()
}

/// A chunk of 20, overwritten at 6 by 10: the head of 6 and the tail of 4 are free from the next
/// step on.
#[test]
fn head_and_tail_of_an_overwritten_chunk_become_free() {
    let mut problem = Problem::builder();
    let whole = problem.chunk(0..2, 20);
    let middle = problem.chunk(1..4, 10);
    problem.overwrite(middle, whole, 6);
    let head = problem.chunk(2..4, 6);
    let tail = problem.chunk(2..4, 4);
    let plan = plan(&problem.build().unwrap());
    assert_eq!(plan.pool_size(), 20);
    let offset = |chunk| plan.chunk_offset(chunk);
    assert_eq!((offset(whole), offset(middle)), (0, 6));
    assert_eq!((offset(head), offset(tail)), (0, 16));
}

/// In the step of the overwriting itself, head and tail are not free yet.
#[test]
fn head_and_tail_are_not_free_in_the_step_of_the_overwriting() {
    let mut problem = Problem::builder();
    let whole = problem.chunk(0..2, 20);
    let middle = problem.chunk(1..4, 10);
    problem.overwrite(middle, whole, 6);
    problem.chunk(1..4, 6);
    assert_eq!(plan(&problem.build().unwrap()).pool_size(), 26);
}

#[test]
fn a_staircase_of_lifetimes_meets_the_bound() {
    let mut problem = Problem::builder();
    for i in 0..5 {
        problem.chunk(i..i + 2, i + 1);
    }
    let plan = plan(&problem.build().unwrap());
    assert_eq!((plan.pool_size(), plan.lower_bound()), (9, 9));
}

#[rstest]
fn two_small_chunks_then_a_large_one(#[values(1, 2)] alignment: u64, #[values(1, 2)] padding: u64) {
    let mut problem = Problem::builder();
    problem.chunk(0..1, 1);
    problem.chunk(0..1, 1);
    problem.chunk(1..2, 2);
    let plan = plan(&problem.alignment(alignment).padding(padding).build().unwrap());
    let align = |bytes: u64| bytes.next_multiple_of(alignment);
    let expected = align(2 + padding).max(2 * align(1 + padding));
    assert_eq!((plan.pool_size(), plan.lower_bound()), (expected, expected));
}

#[rstest]
fn a_chain_of_three_needs_its_root_alone(
    #[values(1, 2, 8)] alignment: u64,
    #[values(0, 1, 2)] padding: u64,
) {
    let mut problem = Problem::builder();
    let root = problem.chunk(0..2, 3);
    let second = problem.chunk(1..3, 1);
    let third = problem.chunk(2..4, 1);
    problem.overwrite(second, root, 1).overwrite(third, second, 0);
    let plan = plan(&problem.alignment(alignment).padding(padding).build().unwrap());
    let expected = (3 + padding).next_multiple_of(alignment);
    assert_eq!((plan.pool_size(), plan.lower_bound()), (expected, expected));
    assert_eq!(plan.chunk_offset(third), 1);
}

#[test]
fn an_empty_problem_needs_no_pool() {
    let plan = plan(&Problem::builder().build().unwrap());
    assert_eq!((plan.pool_size(), plan.lower_bound(), plan.naive_size()), (0, 0, 0));
}

#[test]
fn chunks_without_bytes_take_no_part() {
    let mut problem = Problem::builder();
    problem.chunk(0..4, 0);
    let some = problem.chunk(0..4, 7);
    let plan = plan(&problem.padding(3).build().unwrap());
    assert_eq!((plan.pool_size(), plan.chunk_offset(some)), (10, 0));
}
