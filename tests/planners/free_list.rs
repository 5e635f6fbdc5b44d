//! The linked list with growth.

use memplan::baselines::{Record, Records, free_list};
use rstest::rstest;

/// `(size, first, last)`, offsets, pool.
#[rstest]
#[case::nothing(&[], &[], 0)]
#[case::the_worked_example(
    &[(2048, 0, 2), (2048, 1, 4), (1024, 2, 3), (2048, 3, 4), (1024, 4, 5), (4096, 5, 5)],
    &[0, 2048, 4096, 0, 4096, 0],
    5120
)]
#[case::the_smallest_block_that_holds_it(
    &[(3, 0, 0), (1, 0, 9), (2, 0, 0), (1, 0, 9), (2, 1, 1)],
    &[0, 3, 4, 6, 4],
    7
)]
#[case::the_lowest_of_equal_blocks(
    &[(2, 0, 0), (1, 0, 9), (2, 0, 0), (1, 0, 9), (2, 1, 1)],
    &[0, 2, 3, 5, 0],
    6
)]
#[case::neighbours_join(&[(1, 0, 0), (2, 0, 0), (1, 0, 0), (4, 1, 1)], &[0, 1, 3, 0], 4)]
#[case::the_largest_grows_and_lifts_what_is_above(
    &[(1, 0, 0), (1, 0, 9), (2, 0, 0), (1, 0, 9), (5, 1, 1)],
    &[0, 1, 2, 4 + 3, 2],
    8
)]
#[case::the_dead_are_lifted_too(
    &[(2, 0, 1), (3, 0, 0), (4, 0, 9), (4, 1, 1), (3, 2, 2)],
    &[0, 2, 6, 2, 0],
    10
)]
fn chunks_take_and_grow_available_blocks(
    #[case] rows: &[(u64, u64, u64)],
    #[case] offsets: &[u64],
    #[case] pool: u64,
) {
    let record = |&(size, first, last)| Record { size, first, last };
    let records = Records::new(rows.iter().map(record).collect()).unwrap();
    let answer = free_list::offsets(&records);
    assert_eq!((&*answer.offsets, answer.total), (offsets, pool));
}
