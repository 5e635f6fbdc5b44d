//! Properties of planners and plans that hold for every input.

use memplan::{
    Input, Plan, Planner, Problem, SequenceError, Strategy, lower::LoweringOptions,
    networks::mobilenet_v2, verify::verify,
};
use rstest::rstest;

#[test]
fn inputs_and_plans_go_from_thread_to_thread() {
    fn check<T: Clone + std::fmt::Debug + Send + Sync + 'static>() {}
    check::<Input>();
    check::<Planner<'static>>();
    check::<Plan>();
}

#[test]
fn a_planner_used_again_gives_the_same_plan() {
    let (small, large) = (mobilenet_v2(1).unwrap(), mobilenet_v2(128).unwrap());
    for &strategy in Strategy::ALL {
        let planner = Planner::new().strategy(strategy).alignment(64);
        let first = planner.plan(&small).unwrap();
        planner.plan(&large).unwrap();
        assert_eq!(planner.plan(&small).unwrap(), first, "{strategy}");
        assert_eq!(planner.clone().plan(&small).unwrap(), first, "{strategy}");
    }
}

#[test]
fn the_built_in_network_is_the_real_one() {
    for (batch, bound) in [(1, 6_021_120), (128, 770_703_360)] {
        let sequence = mobilenet_v2(batch).unwrap();
        let plan = Planner::new().plan(&sequence).unwrap();
        assert_eq!((plan.pool_size(), plan.lower_bound()), (bound, bound));
        assert_eq!(sequence.operators().len(), 100);
        let options = LoweringOptions::default().views(false).inplace(false);
        let plain = Planner::new().lowering(options).plan(&sequence).unwrap();
        assert_eq!(
            (plain.naive_size(), plain.lower_bound()),
            (52_015_392 * batch, 9_633_792 * batch)
        );
    }
    assert!(matches!(mobilenet_v2(u64::MAX), Err(SequenceError::SizeOverflow { .. })));
}

#[rstest]
fn options_of_lowering_never_make_a_wrong_plan(
    #[values(false, true)] views: bool,
    #[values(false, true)] inplace: bool,
    #[values(false, true)] inputs_in_pool: bool,
    #[values(1, 4096)] alignment: u64,
    #[values(0, 32)] padding: u64,
) {
    let sequence = mobilenet_v2(1).unwrap();
    let options = LoweringOptions::default()
        .views(views)
        .inplace(inplace)
        .inputs_in_pool(inputs_in_pool)
        .weights_in_pool(true);
    let planner = Planner::new().lowering(options).alignment(alignment).padding(padding);
    for &strategy in Strategy::ALL {
        let plan = planner.clone().strategy(strategy).plan(&sequence).unwrap();
        assert_eq!(verify(&sequence, &plan), [], "{strategy}");
        assert!(
            plan.pool_size().is_multiple_of(alignment) && plan.lower_bound() <= plan.pool_size()
        );
    }
}

/// A problem's alignment and padding apply unless the planner has its own.
#[test]
fn alignment_and_padding_of_the_planner_win() {
    let mut problem = Problem::builder();
    problem.chunk(0..1, 10);
    problem.chunk(0..1, 10);
    let problem = problem.alignment(16).padding(8).build().unwrap();
    let pool = |planner: Planner<'_>| {
        let plan = planner.plan(&problem).unwrap();
        let asked = problem
            .clone()
            .with_alignment(plan.alignment())
            .unwrap()
            .with_padding(plan.padding())
            .unwrap();
        assert_eq!(verify(&asked, &plan), []);
        plan.pool_size()
    };
    assert_eq!(pool(Planner::new()), 64);
    assert_eq!(pool(Planner::new().alignment(1)), 36);
    assert_eq!(pool(Planner::new().padding(0)), 32);
    assert_eq!(pool(Planner::new().alignment(1).padding(0)), 20);
}
