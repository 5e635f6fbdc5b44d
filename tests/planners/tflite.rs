//! The planners of TFLite on the small cases of the original tests.

use memplan::baselines::{
    RecordError,
    tflite::{
        Objects, ReallocationGraph, Record, RecordSize, Records, cpu_arena, equality,
        greedy_by_breadth, greedy_by_size, greedy_in_order, micro, min_cost_flow, naive,
        offsets_bound, offsets_by_size, positional_maxima, shared_objects_bound, task_profile,
    },
};
use memplan::{Planner, Problem};
use rstest::rstest;

/// `(size, first, last)`.
type Row<S> = (S, u64, u64);

const NONE: &[Row<u64>] = &[];
const ONE: &[Row<u64>] = &[(16, 0, 1)];
const CHAIN: &[Row<u64>] = &[(16, 0, 1), (8, 1, 2), (64, 2, 3), (32, 3, 4), (8, 4, 5)];
const COMPLEX: &[Row<u64>] = &[
    (32, 0, 1),
    (32, 1, 4),
    (8, 2, 5),
    (16, 3, 5),
    (8, 4, 5),
    (64, 5, 7),
    (8, 6, 8),
    (8, 7, 8),
    (16, 8, 9),
];
const BHWC: &[Row<[u32; 4]>] = &[
    ([1, 1, 2, 8], 0, 1),
    ([1, 1, 2, 8], 1, 2),
    ([1, 1, 1, 16], 2, 4),
    ([1, 1, 2, 8], 3, 5),
    ([1, 1, 8, 2], 4, 5),
    ([1, 1, 2, 8], 5, 7),
    ([1, 16, 1, 1], 6, 8),
    ([16, 1, 1, 1], 7, 8),
    ([1, 1, 1, 16], 8, 9),
];
const FLAT: &[Row<[u32; 2]>] = &[
    ([2, 8], 0, 1),
    ([2, 8], 1, 2),
    ([1, 12], 2, 4),
    ([2, 8], 3, 5),
    ([8, 2], 4, 5),
    ([2, 8], 5, 7),
    ([1, 8], 6, 8),
    ([2, 8], 7, 8),
    ([4, 1], 8, 9),
];
const DEEP: &[Row<[u32; 3]>] = &[
    ([1, 2, 8], 0, 1),
    ([4, 3, 2], 1, 2),
    ([1, 1, 1], 2, 4),
    ([2, 4, 1], 3, 5),
    ([2, 2, 2], 4, 5),
    ([8, 1, 2], 5, 7),
    ([1, 2, 1], 6, 8),
    ([1, 1, 1], 7, 8),
    ([2, 2, 2], 8, 9),
];

fn records<S: RecordSize>(rows: &[Row<S>]) -> Records<S> {
    let record =
        |(size, first, last): &Row<S>| Record { size: size.clone(), first: *first, last: *last };
    Records::new(rows.iter().map(record).collect()).unwrap()
}

fn expect<S: RecordSize + std::fmt::Debug>(objects: &Objects<S>, ids: &[usize], sizes: &[S]) {
    assert_eq!(objects.ids(), ids);
    assert_eq!(objects.sizes(), sizes);
}

#[rstest]
#[case::none(NONE, &[], &[])]
#[case::one(ONE, &[0], &[16])]
#[case::chain(CHAIN, &[0, 1, 2, 3, 4], &[16, 8, 64, 32, 8])]
#[case::complex(COMPLEX, &[0, 1, 2, 3, 4, 5, 6, 7, 8], &[32, 32, 8, 16, 8, 64, 8, 8, 16])]
fn naive_gives_every_record_an_object(
    #[case] rows: &[Row<u64>],
    #[case] ids: &[usize],
    #[case] sizes: &[u64],
) {
    expect(&naive::objects(&records(rows)), ids, sizes);
}

#[rstest]
#[case::none(NONE, &[], &[])]
#[case::one(ONE, &[0], &[16])]
#[case::chain(CHAIN, &[0, 1, 2, 3, 1], &[16, 8, 64, 32])]
#[case::complex(COMPLEX, &[0, 1, 2, 3, 4, 5, 4, 2, 3], &[32, 32, 8, 16, 8, 64])]
fn equality_shares_among_equal_sizes(
    #[case] rows: &[Row<u64>],
    #[case] ids: &[usize],
    #[case] sizes: &[u64],
) {
    expect(&equality::objects(&records(rows)), ids, sizes);
}

#[rstest]
#[case::none(NONE, &[], &[])]
#[case::one(ONE, &[0], &[16])]
#[case::chain(CHAIN, &[0, 1, 0, 1, 0], &[64, 32])]
#[case::complex(COMPLEX, &[0, 1, 0, 2, 3, 1, 3, 2, 0], &[32, 64, 16, 8])]
fn greedy_in_order_takes_the_nearest_size(
    #[case] rows: &[Row<u64>],
    #[case] ids: &[usize],
    #[case] sizes: &[u64],
) {
    expect(&greedy_in_order::objects(&records(rows)), ids, sizes);
}

#[rstest]
#[case::none(NONE, &[], &[])]
#[case::one(ONE, &[0], &[16])]
#[case::chain(CHAIN, &[0, 1, 0, 1, 0], &[64, 32])]
#[case::complex(COMPLEX, &[0, 4, 2, 1, 3, 0, 2, 3, 1], &[64, 16, 8, 8, 32])]
fn greedy_by_breadth_takes_the_busiest_step_first(
    #[case] rows: &[Row<u64>],
    #[case] ids: &[usize],
    #[case] sizes: &[u64],
) {
    expect(&greedy_by_breadth::objects(&records(rows)), ids, sizes);
}

#[rstest]
#[case::none(NONE, &[], &[])]
#[case::one(ONE, &[0], &[16])]
#[case::chain(CHAIN, &[0, 1, 0, 1, 0], &[64, 32])]
#[case::complex(COMPLEX, &[1, 0, 2, 1, 3, 0, 1, 2, 0], &[64, 32, 8, 8])]
fn greedy_by_size_takes_large_records_first(
    #[case] rows: &[Row<u64>],
    #[case] ids: &[usize],
    #[case] sizes: &[u64],
) {
    expect(&greedy_by_size::objects(&records(rows)), ids, sizes);
}

#[rstest]
#[case::none(NONE, &[], &[])]
#[case::one(ONE, &[0], &[16])]
#[case::chain(CHAIN, &[0, 1, 0, 1, 0], &[64, 32])]
#[case::complex(COMPLEX, &[0, 1, 2, 0, 3, 1, 3, 2, 0], &[32, 64, 8, 8])]
fn min_cost_flow_grows_least_in_sum(
    #[case] rows: &[Row<u64>],
    #[case] ids: &[usize],
    #[case] sizes: &[u64],
) {
    expect(&min_cost_flow::objects(&records(rows)), ids, sizes);
}

#[rstest]
#[case::none(NONE, 1, &[], 0)]
#[case::one(ONE, 1, &[0], 16)]
#[case::chain(CHAIN, 1, &[0, 64, 0, 64, 0], 96)]
#[case::chain_aligned(CHAIN, 128, &[0, 128, 0, 128, 0], 160)]
#[case::complex(COMPLEX, 1, &[0, 32, 80, 64, 88, 0, 64, 72, 0], 96)]
fn offsets_by_size_take_the_tightest_gap(
    #[case] rows: &[Row<u64>],
    #[case] alignment: u64,
    #[case] offsets: &[u64],
    #[case] total: u64,
) {
    let answer = offsets_by_size::offsets(&records(rows), alignment).unwrap();
    assert_eq!((&*answer.offsets, answer.total), (offsets, total));
    assert!(answer.total >= offsets_bound(&records(rows)));
}

#[test]
fn four_dimensions_share_by_equal_shape() {
    let sizes: Vec<[u32; 4]> = BHWC.iter().map(|row| row.0).collect();
    expect(&naive::objects(&records(BHWC)), &[0, 1, 2, 3, 4, 5, 6, 7, 8], &sizes);
    let distinct =
        [[1, 1, 2, 8], [1, 1, 2, 8], [1, 1, 1, 16], [1, 1, 8, 2], [1, 16, 1, 1], [16, 1, 1, 1]];
    expect(&equality::objects(&records(BHWC)), &[0, 1, 2, 1, 3, 0, 4, 5, 2], &distinct);
}

#[test]
fn textures_of_two_dimensions() {
    let sizes: Vec<[u32; 2]> = FLAT.iter().map(|row| row.0).collect();
    expect(&naive::objects(&records(FLAT)), &[0, 1, 2, 3, 4, 5, 6, 7, 8], &sizes);
    let distinct = [[2, 8], [2, 8], [1, 12], [8, 2], [1, 8], [4, 1]];
    expect(&equality::texture_objects(&records(FLAT)), &[0, 1, 2, 0, 3, 1, 4, 0, 5], &distinct);
    let fitting = [[2, 8], [2, 8], [1, 12], [8, 2]];
    let objects = greedy_in_order::texture_objects(&records(FLAT));
    expect(&objects, &[0, 1, 2, 0, 3, 1, 2, 0, 3], &fitting);
}

#[test]
fn textures_of_three_dimensions() {
    let sizes: Vec<[u32; 3]> = DEEP.iter().map(|row| row.0).collect();
    expect(&naive::objects(&records(DEEP)), &[0, 1, 2, 3, 4, 5, 6, 7, 8], &sizes);
    let distinct = [[1, 2, 8], [4, 3, 2], [1, 1, 1], [2, 4, 1], [2, 2, 2], [8, 1, 2], [1, 2, 1]];
    expect(&equality::texture_objects(&records(DEEP)), &[0, 1, 2, 3, 4, 5, 6, 2, 4], &distinct);
    let fitting = [[1, 2, 8], [4, 3, 2], [2, 4, 1], [8, 1, 2]];
    let objects = greedy_in_order::texture_objects(&records(DEEP));
    expect(&objects, &[0, 1, 0, 2, 1, 3, 2, 0, 1], &fitting);
}

#[rstest]
#[case::none(vec![], vec![], &[], 0)]
#[case::one(vec![0], vec![16], &[0], 16)]
#[case::one_of_three(vec![0, 0, 0], vec![16], &[0, 0, 0], 16)]
#[case::many(
    vec![2, 0, 2, 1, 3, 3, 1, 5], vec![16, 8, 32, 32, 4, 16],
    &[24, 0, 24, 16, 56, 56, 16, 92], 108,
)]
fn objects_lie_one_after_another(
    #[case] ids: Vec<usize>,
    #[case] sizes: Vec<u64>,
    #[case] offsets: &[u64],
    #[case] total: u64,
) {
    let answer = Objects::new(ids, sizes).unwrap().offsets();
    assert_eq!((&*answer.offsets, answer.total), (offsets, total));
}

#[rstest]
#[case::none(NONE, vec![], &[])]
#[case::one(ONE, vec![vec![0]; 2], &[16])]
#[case::chain(CHAIN, vec![vec![0], vec![0, 1], vec![2, 1], vec![2, 3], vec![3, 4], vec![4]], &[64, 32])]
#[case::complex(
    COMPLEX,
    vec![
        vec![0], vec![0, 1], vec![1, 2], vec![1, 3, 2], vec![1, 3, 2, 4], vec![5, 3, 2, 4], vec![5, 6], vec![5, 6, 7],
        vec![8, 6, 7], vec![8],
    ],
    &[64, 32, 8, 8],
)]
fn task_profiles_and_positional_maxima(
    #[case] rows: &[Row<u64>],
    #[case] profiles: Vec<Vec<usize>>,
    #[case] maxima: &[u64],
) {
    let records = records(rows);
    for (task, profile) in (0..).zip(&profiles) {
        assert_eq!(task_profile(&records, task), *profile, "task {task}");
    }
    assert!(task_profile(&records, profiles.len() as u64).is_empty());
    assert_eq!(positional_maxima(&records), maxima);
    assert_eq!(shared_objects_bound(&records), maxima.iter().sum::<u64>());
}

#[rstest]
#[case::none(vec![], vec![])]
#[case::one(vec![vec![1], vec![]], vec![vec![], vec![]])]
#[case::chain(
    vec![vec![1], vec![2], vec![3], vec![4], vec![]],
    vec![vec![2, 3, 4], vec![3, 4], vec![0, 4], vec![0, 1], vec![0, 1, 2]],
)]
#[case::complex(
    vec![vec![1], vec![2, 3, 4], vec![7], vec![5], vec![7], vec![6], vec![7], vec![8, 9], vec![10], vec![10], vec![11], vec![]],
    vec![
        vec![2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        vec![7, 8, 9, 10, 11],
        vec![0, 8, 9, 10, 11],
        vec![0, 6, 7, 8, 9, 10, 11],
        vec![0, 8, 9, 10, 11],
        vec![0, 7, 8, 9, 10, 11],
        vec![0, 3, 8, 9, 10, 11],
        vec![0, 1, 3, 5, 10, 11],
        vec![0, 1, 2, 3, 4, 5, 6, 11],
        vec![0, 1, 2, 3, 4, 5, 6, 11],
        vec![0, 1, 2, 3, 4, 5, 6, 7],
        vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    ],
)]
fn reallocation_graphs_follow_from_dependencies(
    #[case] consumers: Vec<Vec<usize>>,
    #[case] neighbours: Vec<Vec<usize>>,
) {
    let graph = ReallocationGraph::from_dependencies(&consumers).unwrap();
    assert_eq!(graph.neighbours(), neighbours);
}

type Strategy = fn(&Records) -> Objects;

/// The originals silently give wrong answers here.
#[rstest]
fn records_need_not_be_sorted(
    #[values(
        equality::objects,
        equality::texture_objects,
        greedy_in_order::objects,
        greedy_by_breadth::objects,
        greedy_by_size::objects,
        greedy_by_size::best_objects,
        min_cost_flow::objects
    )]
    strategy: Strategy,
) {
    let mut rows = COMPLEX.to_vec();
    rows.reverse();
    let records = records(&rows);
    let objects = strategy(&records);
    for (a, first) in records.iter().enumerate() {
        for (b, second) in records.iter().enumerate().skip(a + 1) {
            assert!(objects.ids()[a] != objects.ids()[b] || !first.conflicts(second), "{a}, {b}");
        }
        assert!(objects.sizes()[objects.ids()[a]] >= first.size);
    }
}

#[test]
fn costs_beyond_32_bits_do_not_wrap() {
    let large = 1 << 62;
    let rows = [(large, 0, 1), (large - 1, 1, 2), (large + 5, 2, 3), (3, 3, 4)];
    let objects = min_cost_flow::objects(&records(&rows));
    expect(&objects, &[0, 1, 0, 1], &[large + 5, large - 1]);
}

#[test]
fn volumes_beyond_64_bits_are_refused() {
    let record = Record { size: [u32::MAX; 3], first: 0, last: 1 };
    assert_eq!(Records::new(vec![record]), Err(RecordError::SizeOverflow { record: 0 }));
}

#[rstest]
#[case::ends_before_it_begins(2, 1)]
#[case::in_the_last_of_all_steps(0, u64::MAX)]
fn lives_that_no_step_follows_are_refused(#[case] first: u64, #[case] last: u64) {
    let refused = Records::new(vec![Record { size: 1_u64, first, last }]);
    assert_eq!(refused, Err(RecordError::Lifetime { record: 0, first, last }));
}

#[test]
fn sizes_whose_sum_exceeds_64_bits_are_refused() {
    let row = Record { size: 1_u64 << 63, first: 0, last: 0 };
    assert_eq!(Records::new(vec![row, row]), Err(RecordError::SizeOverflow { record: 1 }));
    let one = Records::new(vec![row]).unwrap();
    let overflow = Err(RecordError::SizeOverflow { record: 0 });
    assert_eq!(offsets_by_size::offsets(&one, 1 << 63), overflow);
    assert_eq!(offsets_by_size::offsets(&one, 0), Err(RecordError::Alignment));
    assert_eq!(
        Objects::new(vec![0], vec![u64::MAX, 1]).unwrap_err(),
        RecordError::SizeOverflow { record: 1 }
    );
    assert_eq!(
        Objects::new(vec![1], vec![4_u64]).unwrap_err(),
        RecordError::UnknownObject { object: 1 }
    );
}

#[test]
fn graphs_of_other_records_are_refused() {
    let graph = ReallocationGraph::new(vec![vec![1], vec![0]]).unwrap();
    let refused = greedy_in_order::objects_in_parallel(&records(CHAIN), &graph);
    assert_eq!(refused, Err(RecordError::Count { records: 5, entries: 2 }));
    let unknown = RecordError::UnknownRecord { record: 3 };
    assert_eq!(ReallocationGraph::new(vec![vec![3]]), Err(unknown.clone()));
    assert_eq!(ReallocationGraph::from_dependencies(&[vec![3]]), Err(unknown));
}

/// Buffers with offline offsets lie at them, the others around them.
#[test]
fn micro_plans_around_offline_offsets() {
    let records = records(&[(16, 0, 2), (32, 1, 2), (48, 0, 1), (16, 2, 3)]);
    let offline = [Some(64), None, None, Some(64 + 16)];
    let answer = micro::offsets_around(&records, &offline, 16).unwrap();
    assert_eq!(answer.offsets, [64, 80 + 16, 0, 80]);
    assert_eq!(answer.total, 128);
}

/// The original silently lets them overlap.
#[test]
fn offline_offsets_that_clash_are_an_error() {
    let rows = records(&[(16, 0, 2), (8, 3, 4), (20, 1, 2)]);
    let clash = micro::offsets_around(&rows, &[Some(8), Some(8), Some(16)], 1);
    assert_eq!(clash, Err(RecordError::Clash { records: (0, 2) }));
    assert!(micro::offsets_around(&rows, &[Some(8), Some(8), Some(24)], 1).is_ok());
    let beyond = micro::offsets_around(&rows, &[None, Some(u64::MAX), None], 1);
    assert_eq!(beyond, Err(RecordError::SizeOverflow { record: 1 }));
    let short = micro::offsets_around(&rows, &[None], 1);
    assert_eq!(short, Err(RecordError::Count { records: 3, entries: 1 }));
}

/// Tensors that live in the whole run go first, however small.
#[rstest]
#[case::whole_life_first(3, &[4, 0], 12)]
#[case::by_size(9, &[0, 8], 12)]
fn the_arena_places_tensors_of_the_whole_run_first(
    #[case] last_step: u64,
    #[case] offsets: &[u64],
    #[case] total: u64,
) {
    let records = records(&[(8, 1, 2), (4, 0, 3)]);
    let answer = cpu_arena::offsets(&records, last_step, 1).unwrap();
    assert_eq!((&*answer.offsets, answer.total), (offsets, total));
}

#[rstest]
#[case::best_fit(&[(9, 0, 0), (3, 0, 2), (8, 1, 1), (2, 0, 2), (2, 1, 1)], 1, &[0, 9, 0, 12, 14])]
#[case::aligned(&[(10, 0, 1), (5, 1, 2), (70, 0, 2)], 64, &[128, 192, 0])]
fn the_arena_takes_the_gap_that_leaves_least(
    #[case] rows: &[Row<u64>],
    #[case] alignment: u64,
    #[case] offsets: &[u64],
) {
    let answer = cpu_arena::offsets(&records(rows), u64::MAX, alignment).unwrap();
    assert_eq!(answer.offsets, offsets);
}

/// What a run places later cannot move what lies there already.
#[test]
fn the_arena_is_placed_in_stages() {
    let records = records(&[(64, 0, 1), (64, 0, 3), (4032, 2, 4)]);
    let staged = cpu_arena::offsets_in_stages(&records, &[0, 0, 1], 9, 64).unwrap();
    assert_eq!((staged.offsets, staged.total), (vec![0, 64, 128], 4160));
    let at_once = cpu_arena::offsets(&records, 9, 64).unwrap();
    assert_eq!((at_once.offsets, at_once.total), (vec![0, 4032, 0], 4096));
}

/// A problem's tensors are compared by their sizes, not by their aligned sizes.
#[test]
fn a_larger_tensor_comes_first_within_the_alignment() {
    let mut problem = Problem::builder().alignment(64);
    problem.chunk(0..2, 1);
    problem.chunk(1..3, 4);
    let plan = Planner::new().strategy(memplan::Strategy::TfliteCpuArena);
    let plan = plan.plan(&problem.build().unwrap()).unwrap();
    assert_eq!(plan.chunks().iter().map(|chunk| chunk.offset).collect::<Vec<_>>(), [64, 0]);
}

#[test]
fn micro_takes_the_last_added_of_equal_sizes_first_and_the_first_gap_that_fits() {
    let answer = micro::offsets(&records(&[(30, 0, 1), (32, 0, 1), (1, 0, 1)]), 16).unwrap();
    assert_eq!((answer.offsets, answer.total), (vec![32, 0, 64], 80));
}
