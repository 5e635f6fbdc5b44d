//! Sequences in several pools, and their verification.

use memplan::{
    Limits, OpSequence, Operator, Output, Plan, PlanError, Planner, Problem, Strategy, TensorPlace,
    networks,
    problem::Pool,
    report::traffic_json,
    verify::{Violation, execute, verify},
};
use rstest::rstest;

/// A short search.
fn planner() -> Planner<'static> {
    Planner::new().alignment(64).limits(Limits::default().nodes(2000))
}

fn pools() -> [Pool; 2] {
    [Pool::new("sram").capacity(4 << 20).cost(1), Pool::new("psram").cost(20)]
}

fn mobilenet() -> (OpSequence, Plan) {
    let sequence = networks::mobilenet_v2(1).unwrap();
    let plan = planner().pools(pools()).plan(&sequence).unwrap();
    (sequence, plan)
}

/// The largest tensors do not fit into the fast pool; everything else does.
#[test]
fn a_network_spills_little() {
    let (sequence, plan) = mobilenet();
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(execute(&sequence, &plan), []);
    assert!(plan.pools()[0].size <= 4 << 20);
    let only_slow = planner().pools([Pool::new("psram").cost(20)]);
    let only_slow = only_slow.plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &only_slow), []);
    assert!(plan.traffic() < only_slow.traffic() / 2, "{} {}", plan.traffic(), only_slow.traffic());
    assert_eq!(plan.placement(&sequence).unwrap_err(), PlanError::SeveralPools);
}

#[test]
fn buffers_begin_at_multiples_of_the_alignment() {
    let sequence = networks::mobilenet_v2(1).unwrap();
    let row = Pool::new("row").largest(8 << 20);
    let mut plan = planner().pools([row]).plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    plan.pools_mut()[0].largest = Some((8 << 20) + 1);
    let expected = Violation::MisalignedBuffers {
        pool: "row".to_owned(),
        largest: (8 << 20) + 1,
        alignment: 64,
    };
    assert!(verify(&sequence, &plan).contains(&expected));
}

/// A view in the middle of a tensor.
fn with_a_view(view: impl FnOnce(Output) -> Output) -> OpSequence {
    let view = view(Output::new("view", 64).reads_at("whole", 128));
    let mut sequence = OpSequence::builder();
    sequence
        .operator(Operator::new("a").output(Output::new("whole", 256)))
        .operator(Operator::new("b").inputs(["whole"]).output(view))
        .operator(Operator::new("c").inputs(["view"]).output(Output::new("end", 64)))
        .output("end");
    sequence.build().unwrap()
}

/// A pin fixes the tensor, not only its chunk.
#[test]
fn a_pinned_tensor_lies_where_it_must() {
    let sequence = with_a_view(Output::required);
    let plan = Planner::new().pin("view", "", 1152).plan(&sequence).unwrap();
    assert_eq!(plan.offset("whole"), Some(1024));
    assert_eq!(verify(&sequence, &plan), []);
    let below = Planner::new().pin("view", "", 64).plan(&sequence).unwrap_err();
    assert_eq!(
        below.to_string(),
        "'view' lies 128 B inside its chunk; pin it at that offset or above"
    );
    let unknown = Planner::new().pin("x", "", 0).plan(&sequence).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no tensor or chunk 'x' to pin");
    let unknown = Planner::new().pin("end", "sram", 0).plan(&sequence).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no pool 'sram'; the pools are not listed");
    let pools = Planner::new().pools(["a", "b"].map(Pool::new));
    let unnamed = pools.pin("end", "", 0).plan(&sequence).unwrap_err();
    assert_eq!(unnamed.to_string(), "a pin must name one of the pools a, b");
}

#[test]
fn a_pin_names_one_chunk() {
    let mut problem = Problem::builder();
    for (name, size) in [("a", 8), ("b", 16), ("a", 32)] {
        problem.named_chunk(name, 0..2, size);
    }
    let problem = problem.build().unwrap();
    assert_eq!(Planner::new().pin("b", "", 64).plan(&problem).unwrap().pool_size(), 80);
    let shared = Planner::new().pin("a", "", 64).plan(&problem).unwrap_err();
    let words = "several chunks are called 'a'; give the one to pin a name of its own";
    assert_eq!(shared.to_string(), words);
}

/// Two pins may exclude a view, which is then a copy unless it is required.
#[test]
fn pins_apart_make_a_view_a_copy() {
    let planner = Planner::new().pin("whole", "", 0).pin("view", "", 512);
    let sequence = with_a_view(|view| view);
    let plan = planner.plan(&sequence).unwrap();
    assert_eq!((plan.offset("whole"), plan.offset("view")), (Some(0), Some(512)));
    let copied: u64 = plan.copies().map(|(.., size)| size).sum();
    assert_eq!(copied, 64);
    assert_eq!(verify(&sequence, &plan), []);
    let error = planner.plan(&with_a_view(Output::required)).unwrap_err();
    assert_eq!(error.to_string(), "pins put 'whole' in two places; omit all but one");
}

#[rstest]
#[case::other_pool(|plan: &mut Plan| {
    let at = plan.chunks().iter().position(|chunk| chunk.pool == 0 && chunk.size > 0).unwrap();
    plan.chunks_mut()[at].pool = 1;
}, "traffic")]
#[case::no_pool(|plan: &mut Plan| plan.chunks_mut()[3].pool = 7, "pool")]
#[case::traffic(|plan: &mut Plan| *plan.traffic_mut() += 1, "traffic")]
#[case::size(|plan: &mut Plan| plan.pools_mut()[1].size += 64, "pool 'psram'")]
#[case::capacity(|plan: &mut Plan| plan.pools_mut()[0].capacity = Some(64), "'sram'")]
#[case::sum(|plan: &mut Plan| *plan.pool_size_mut() += 64, "the pool size is")]
fn a_change_is_noticed(#[case] change: fn(&mut Plan), #[case] words: &str) {
    let (sequence, mut plan) = mobilenet();
    change(&mut plan);
    let violations: Vec<String> =
        verify(&sequence, &plan).iter().map(Violation::to_string).collect();
    assert!(violations.iter().any(|v| v.contains(words)), "{violations:#?}");
}

/// Every strategy that supports pools gives right plans, whichever tensors fit into which pool.
#[rstest]
fn plans_in_pools_are_right(
    #[values(Strategy::Best, Strategy::FirstFit)] strategy: Strategy,
    #[values(1, 2, 5, 100)] capacity: u64,
) {
    let sequence = networks::mobilenet_v2(1).unwrap();
    let fast = Pool::new("fast").capacity(capacity << 20).cost(1);
    let pools = [fast, Pool::new("middle").capacity(3 << 20).cost(4), Pool::new("slow").cost(9)];
    let plan = planner().strategy(strategy).pools(pools).plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(execute(&sequence, &plan), []);
    let in_pool = |place: &TensorPlace| matches!(place, TensorPlace::Pool { .. });
    assert!(plan.tensors().iter().any(|tensor| in_pool(&tensor.place)));
}

/// Two chunks of 8 bytes at one time and one of 4 later, in a fast pool of 8: the greedy rule gives the
/// first its object, and the third, which then fits, shares it.
#[test]
fn the_traffic_is_counted_for_simple_rules() {
    let mut problem = Problem::builder();
    problem.pool(Pool::new("fast").capacity(8).cost(1));
    problem.pool(Pool::new("slow").cost(10));
    for (lifetime, size) in [(0..2, 8), (1..3, 8), (2..3, 4)] {
        problem.chunk(lifetime, size);
    }
    let problem = problem.build().unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    let rules = traffic_json(&plan, &problem);
    assert_eq!((&rules["all_slow"], &rules["banked_greedy"]), (&200.into(), &(8 + 80 + 4).into()));
    assert!(plan.traffic() <= 92);
    let mut tight = Problem::builder();
    tight.pool(Pool::new("a").capacity(12));
    tight.pool(Pool::new("b").capacity(4));
    for lifetime in [0..1, 0..2, 1..2] {
        tight.chunk(lifetime, 6);
    }
    // Greedily, the first two have an object each, and the third fits into that of the first.
    let tight = tight.build().unwrap();
    assert_eq!(traffic_json(&plan, &tight)["banked_greedy"], 0);
    let mut one = Problem::builder();
    one.pool(Pool::new("a"));
    assert!(traffic_json(&plan, &one.build().unwrap())["all_slow"].is_null());
}

/// One operator makes nothing, the next one byte, which lies above the bytes alive.
fn one_byte() -> OpSequence {
    OpSequence::builder()
        .operator(Operator::new("p"))
        .operator(Operator::new("q").output(Output::new("b", 1)))
        .build()
        .unwrap()
}

/// The peak step and the bytes alive do not depend on places; pins may raise the bound.
#[test]
fn pins_raise_the_bound_and_leave_the_bytes_alive() {
    let plan = Planner::new().pin("b", "", 1).plan(&one_byte()).unwrap();
    assert_eq!((plan.pool_size(), plan.lower_bound(), plan.peak_step()), (2, 2, 1));
    assert_eq!(verify(&one_byte(), &plan), []);
    let sequence = OpSequence::builder()
        .operator(Operator::new("p").output(Output::new("a", 1)))
        .operator(Operator::new("q").output(Output::new("b", 1)))
        .output("a")
        .build()
        .unwrap();
    let planner = Planner::new().alignment(16).pin("a", "", 0);
    for strategy in [Strategy::FirstFit, Strategy::Best, Strategy::Optimal] {
        let plan = planner.clone().strategy(strategy).plan(&sequence).unwrap();
        assert_eq!(
            (plan.pool_size(), plan.lower_bound(), plan.peak_step()),
            (32, 32, 1),
            "{strategy}"
        );
        assert_eq!(verify(&sequence, &plan), [], "{strategy}");
    }
}

/// A pool may end at its capacity, below a multiple of the alignment.
#[test]
fn capacities_that_are_no_multiples_cut_cells_off() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("p").output(Output::new("a", 5)))
        .build()
        .unwrap();
    let pools = [Pool::new("a").capacity(8).cost(1), Pool::new("b").capacity(7).cost(3)];
    let plan = Planner::new().alignment(4).pools(pools.clone()).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.lower_bound()), (8, 7));
    assert_eq!(verify(&sequence, &plan), []);
    let mut problem = Problem::builder();
    problem.chunk(0..2, 5);
    problem.chunk(1..3, 6);
    let problem = problem.build().unwrap();
    let plan = Planner::new().alignment(4).pools(pools).plan(&problem).unwrap();
    assert_eq!((plan.pool_size(), plan.lower_bound()), (15, 15));
    assert_eq!(verify(&problem, &plan), []);
}

/// What a plan lists beside a problem is the caller's, and the plan keeps to it.
#[test]
fn a_plan_keeps_to_the_memories_that_it_lists_beside_a_problem() {
    let mut problem = Problem::builder();
    let chunk = problem.chunk(0..2, 8);
    problem.chunk(1..3, 8);
    let problem = problem.build().unwrap();
    let pools = [Pool::new("a").capacity(32).alignment(8).reserved(16..20)];
    let mut plan = Planner::new().pools(pools).pin("0", "a", 8).plan(&problem).unwrap();
    assert_eq!((plan.chunk_offset(chunk), plan.pinned()), (8, &[0][..]));
    assert_eq!(verify(&problem, &plan), []);
    plan.chunks_mut()[0].offset = 16;
    let found: Vec<String> = verify(&problem, &plan).iter().map(ToString::to_string).collect();
    let message = "'0' lies at 16 with 8 B, in the reserved bytes [16, 20) of pool 'a'";
    assert!(found.contains(&message.to_owned()), "{found:?}");
}

/// Both cannot be pinned there.
#[test]
fn memories_beside_a_problem_that_contradict_each_other_are_reported() {
    let mut problem = Problem::builder();
    problem.chunk(0..2, 8);
    problem.chunk(1..3, 8);
    let problem = problem.build().unwrap();
    let mut plan = Planner::new().plan(&problem).unwrap();
    plan.chunks_mut()[1].offset = plan.chunks()[0].offset;
    *plan.pinned_mut() = vec![0, 1];
    let found = verify(&problem, &plan);
    let is_found = |one: &Violation| matches!(one, Violation::WrongMemories { .. });
    assert!(found.iter().any(is_found), "{found:?}");
}
