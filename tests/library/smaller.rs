//! A plan for several sizes, checked for one of them.

use memplan::{
    OpSequence, Operator, Output, Plan, Planner, TensorPlace,
    lower::LoweringOptions,
    order::default_limits,
    problem::Pool,
    sequence::DimRange,
    verify::{Verifier, copied_views, verify, verify_smaller},
};
use rstest::rstest;

/// Operators with the sizes of `n` rows, and an output that depends on its input in this way.
fn sequence(n: u64, output: fn(Output, u64) -> Output) -> OpSequence {
    OpSequence::builder()
        .operator(Operator::new("a").output(Output::new("x", 16 * n)))
        .operator(Operator::new("b").inputs(["x"]).output(Output::new("y", 8 * n)))
        .operator(Operator::new("c").inputs(["x"]).output(output(Output::new("z", 8 * n), n)))
        .operator(Operator::new("d").inputs(["y", "z"]).output(Output::new("w", 4 * n)))
        .output("w")
        .build()
        .unwrap()
}

fn plan(sequence: &OpSequence) -> Plan {
    Planner::new().plan(sequence).unwrap()
}

#[rstest]
// What one reading allows and the other does not.
#[case::a_copy(|z: Output, _| z, |z: Output, _| z.reads_at("x", 8), true)]
#[case::a_view(|z: Output, _| z.reads_at("x", 8), |z: Output, _| z, false)]
#[case::a_view_elsewhere(|z: Output, n| z.reads_at("x", 8 * n), |z: Output, n| z.reads_at("x", 8 * n), true)]
#[case::fresh(|z: Output, _| z, |z: Output, _| z.overwrites("x"), true)]
#[case::overwriter(|z: Output, _| z.overwrites("x"), |z: Output, _| z, false)]
#[case::overwriter_elsewhere(|z: Output, _| z.overwrites_at("x", 16), |z: Output, n| z.overwrites_at("x", 8 * n - 8), false)]
fn a_smaller_run_is_right_if_its_bytes_are(
    #[case] planned: fn(Output, u64) -> Output,
    #[case] run: fn(Output, u64) -> Output,
    #[case] is_right: bool,
) {
    let large = sequence(4, planned);
    let plan = plan(&large);
    assert_eq!(verify(&large, &plan), []);
    assert_eq!(verify_smaller(&large, &plan), []);
    let small = sequence(2, run);
    let violations = verify_smaller(&small, &plan);
    assert_eq!(violations.is_empty(), is_right, "{violations:?}");
    assert!(!verify(&small, &plan).is_empty());
    // More bytes than planned are wrong.
    assert!(!verify_smaller(&sequence(5, planned), &plan).is_empty());
}

#[test]
fn every_place_counts() {
    let (large, small) = (sequence(4, |z, _| z), sequence(3, |z, _| z));
    let plan = plan(&large);
    for at in 0..plan.tensors().len() {
        let mut moved = plan.clone();
        let TensorPlace::Pool { chunk, .. } = moved.tensors()[at].place else { continue };
        // The bytes of another tensor that is alive at the same time.
        let other = plan.chunks().iter().enumerate().find(|&(other, one)| {
            let mine = &plan.chunks()[chunk];
            other != chunk && one.begin < mine.end && mine.begin < one.end
        });
        let Some((other, _)) = other else { continue };
        let offset = plan.chunks()[other].offset;
        moved.chunks_mut()[chunk].offset = offset;
        moved.tensors_mut()[at].place = TensorPlace::Pool { chunk, offset };
        assert!(!verify_smaller(&small, &moved).is_empty(), "{:?}", moved.tensors()[at]);
    }
    let mut missing = plan.clone();
    missing.tensors_mut().retain(|tensor| &*tensor.name != "z");
    assert!(!verify_smaller(&small, &missing).is_empty());
    let verifier = Verifier::new().smaller(true);
    assert_eq!(verifier.verify(&small, &plan).unwrap(), []);
    assert_ne!(verifier.alignment(1 << 40).verify(&small, &plan).unwrap(), []);
}

/// A place that no run may use is wrong for small sizes, too: beyond the pool, its capacity or its size.
#[rstest]
#[case::one_pool(&[])]
#[case::size(&[Pool::new("fast")])]
#[case::two_pools(&[Pool::new("fast").capacity(128).cost(1), Pool::new("slow").cost(9)])]
#[case::last_pool(&[Pool::new("slow").cost(9), Pool::new("fast").capacity(128).cost(1)])]
fn nothing_lies_beyond_its_pool(#[case] pools: &[Pool]) {
    let (large, small) = (sequence(4, |z, _| z), sequence(3, |z, _| z));
    let planned = Planner::new().pools(pools).plan(&large).unwrap();
    assert_eq!(verify(&large, &planned), []);
    assert_eq!(verify_smaller(&small, &planned), []);
    for at in 0..planned.tensors().len() {
        for offset in [1 << 16, planned.pool_size()] {
            let mut moved = planned.clone();
            let TensorPlace::Pool { chunk, .. } = moved.tensors()[at].place else { continue };
            moved.chunks_mut()[chunk].offset = offset;
            moved.tensors_mut()[at].place = TensorPlace::Pool { chunk, offset };
            assert!(!verify_smaller(&small, &moved).is_empty(), "{offset}: {:?}", moved.tensors());
        }
    }
    for at in 0..planned.pools().len() {
        let mut larger = planned.clone();
        larger.pools_mut()[at].size += 1;
        assert!(!verify_smaller(&small, &larger).is_empty(), "{:?}", larger.pools());
    }
}

/// The plans of bodies keep to their pools as well.
#[test]
fn nothing_in_a_body_lies_beyond_its_pool() {
    let with_body = |n: u64| {
        let body = sequence(n, |z, _| z);
        let run = Operator::new("if").body(body).output(Output::new("v", 4 * n));
        OpSequence::builder().operator(run).output("v").build().unwrap()
    };
    let mut plan = plan(&with_body(4));
    assert_eq!(verify_smaller(&with_body(3), &plan), []);
    let body = &mut plan.bodies_mut()[0].plan;
    let TensorPlace::Pool { chunk, .. } = body.tensors()[0].place else {
        panic!("not in the pool")
    };
    let offset = 1 << 16;
    body.chunks_mut()[chunk].offset = offset;
    body.tensors_mut()[0].place = TensorPlace::Pool { chunk, offset };
    assert!(!verify_smaller(&with_body(3), &plan).is_empty());
}

/// An operator that is known before the run for smaller sizes takes no part.
#[test]
fn operators_may_be_missing() {
    let large = sequence(4, |z, _| z);
    let plan = plan(&large);
    let small = OpSequence::builder()
        .operator(Operator::new("a").output(Output::new("x", 16)))
        .weight("z", Some(8))
        .operator(Operator::new("b").inputs(["x"]).output(Output::new("y", 8)))
        .operator(Operator::new("d").inputs(["y", "z"]).output(Output::new("w", 4)))
        .output("w")
        .build()
        .unwrap();
    assert_eq!(verify_smaller(&small, &plan), []);
    // The other way round, there is no place for it.
    let plan = Planner::new().plan(&small).unwrap();
    assert!(!verify_smaller(&large, &plan).is_empty());
}

/// Nor do its bodies and its workspace, although another operator now has its step.
#[test]
fn operators_with_bodies_and_workspaces_may_be_missing() {
    let of = |n: u64, is_whole: bool| {
        let body = sequence(n, |z, _| z);
        let mut builder = OpSequence::builder();
        builder.operator(Operator::new("a").output(Output::new("x", 16 * n)));
        if is_whole {
            let run = Operator::new("if").inputs(["x"]).workspace(8).body(body);
            builder.operator(run.output(Output::new("v", 8 * n)));
        } else {
            builder.weight("v", Some(8 * n));
        }
        // It makes nothing but a view.
        let view = Output::new("y", 8 * n).reads("x");
        builder.operator(Operator::new("b").inputs(["x"]).output(view).workspace(24 * n));
        let last = Operator::new("d").inputs(["y", "v"]).output(Output::new("w", 4 * n));
        builder.operator(last).output("w");
        builder.build().unwrap()
    };
    let plan = plan(&of(4, true));
    for small in [of(4, true), of(3, true), of(3, false)] {
        assert_eq!(verify_smaller(&small, &plan), []);
        // The workspace counts, too.
        let step = small.operators().iter().position(|operator| &*operator.name == "b").unwrap();
        let mut moved = plan.clone();
        let chunk =
            moved.chunks_mut().iter_mut().find(|chunk| &*chunk.name == "b.workspace").unwrap();
        chunk.offset = plan.offset("x").unwrap();
        assert!(!verify_smaller(&small, &moved).is_empty(), "step {step}");
    }
    // A body that runs needs its plan.
    let mut without = plan.clone();
    without.bodies_mut().clear();
    assert_eq!(verify_smaller(&of(3, false), &without), []);
    assert!(!verify_smaller(&of(3, true), &without).is_empty());
}

/// The bodies of operators that need no bytes are known by their order between other operators.
#[test]
fn bodies_may_need_no_bytes() {
    let of = |n: u64, is_whole: bool| {
        let body = |name: &str| {
            let operator = Operator::new("b").output(Output::new(name, 0));
            OpSequence::builder().operator(operator).output(name).build().unwrap()
        };
        let mut builder = OpSequence::builder();
        builder.operator(Operator::new("a").output(Output::new("x", 8 * n)));
        for name in ["first", "second"] {
            let run = Operator::new("").inputs(["x"]).body(body(name));
            builder.operator(run.output(Output::new(format!("{name}.y"), 0)));
        }
        builder.operator(Operator::new("c").inputs(["x"]).output(Output::new("z", 8 * n)));
        if is_whole {
            builder.operator(Operator::new("").inputs(["z"]).body(body("third")));
        }
        builder.output("z").build().unwrap()
    };
    let planned = of(4, true);
    let plan = plan(&planned);
    assert_eq!(verify(&planned, &plan), []);
    for small in [of(4, true), of(3, true), of(3, false)] {
        assert_eq!(verify_smaller(&small, &plan), []);
    }
    // Each body needs its plan.
    for missing in 0..3 {
        let mut without = plan.clone();
        without.bodies_mut().remove(missing);
        assert!(!verify_smaller(&of(3, true), &without).is_empty(), "{missing}");
    }
}

/// Weights may lie in the pool, where updates take over their memory. They are not outputs of the first operator.
#[test]
fn weights_may_lie_in_the_pool() {
    let of = |n: u64| {
        let view = Output::new("v", 4 * n).reads("state");
        let next = Output::new("next", 4 * n).updates("v", 0);
        let last = Operator::new("b").inputs(["w", "next"]);
        OpSequence::builder()
            .weight("w", Some(8 * n))
            .weight("state", Some(4 * n))
            .operator(Operator::new("log").inputs(["w"]).workspace(16 * n))
            .operator(Operator::new("view").inputs(["state"]).output(view))
            .operator(Operator::new("a").inputs(["v"]).output(next))
            .operator(last.output(Output::new("y", 2 * n)))
            .output("y")
            .build()
            .unwrap()
    };
    let lowering = LoweringOptions::default().weights_in_pool(true);
    let plan = Planner::new().lowering(lowering).plan(&of(4)).unwrap();
    for n in [4, 3] {
        assert_eq!(verify_smaller(&of(n), &plan), []);
    }
    for name in ["state", "log.workspace"] {
        let mut without = plan.clone();
        let other = without.chunks().iter().find(|chunk| &*chunk.name == "w").unwrap().offset;
        let chunks = without.chunks_mut();
        chunks.iter_mut().find(|chunk| &*chunk.name == name).unwrap().offset = other;
        assert!(!verify_smaller(&of(3), &without).is_empty(), "{name}");
    }
}

/// Operators of one name, and operators without names, are known by their order between others.
#[rstest]
#[case::all_run("", true)]
#[case::all_before_another("ab", true)]
#[case::all_after_it("de", true)]
#[case::one_of_two_before_it("a", false)]
#[case::one_of_two_after_it("e", false)]
#[case::one_without_name("f", true)]
fn operators_may_share_a_name(
    #[values("log", "")] name: &str,
    #[case] missing: &str,
    #[case] is_right: bool,
) {
    let of = |n: u64, missing: &str| {
        let mut builder = OpSequence::builder();
        builder.operator(Operator::new("load").output(Output::new("x", 8 * n)));
        for id in "abcdef".chars().filter(|&id| !missing.contains(id)) {
            match id {
                'c' => {
                    let c = Operator::new("c").inputs(["x"]).output(Output::new("y", 16 * n));
                    builder.operator(c.workspace(4 * n));
                }
                'f' => {
                    builder.operator(Operator::new("").inputs(["x"]).workspace(16 * n));
                }
                _ => {
                    let log = Operator::new(name).kind("Log").inputs(["x"]);
                    builder.operator(log.workspace(u64::from(u32::from(id)) * n));
                }
            }
        }
        let end = Operator::new("end").inputs(["x", "y"]);
        builder.operator(end.output(Output::new("z", 8 * n))).output("z").build().unwrap()
    };
    let (planned, small) = (of(4, ""), of(3, missing));
    let plan = plan(&planned);
    assert_eq!(verify(&planned, &plan), []);
    let found = verify_smaller(&small, &plan);
    assert_eq!(found.is_empty(), is_right, "{found:?}");
    if !is_right {
        return;
    }
    // Each workspace counts, if its operator runs.
    for (step, id) in (1..).zip("abcdef".chars()) {
        let mut short = plan.clone();
        short.chunks_mut()[plan.workspaces(&planned)[step].unwrap()].size = 1;
        assert_eq!(verify_smaller(&small, &short).is_empty(), missing.contains(id), "{id}");
    }
}

/// An order of the operators holds for those that run.
#[test]
fn operators_may_be_missing_in_an_order() {
    let of = |n: u64, is_whole: bool| {
        let mut builder = OpSequence::builder();
        for at in 0..4 {
            let wide = Operator::new(format!("wide{at}")).inputs(["x"]);
            builder.operator(wide.output(Output::new(format!("w{at}"), 64 * n)));
        }
        for at in 0..4 {
            let (wide, sum) = (format!("w{at}"), format!("s{at}"));
            let operator = Operator::new(format!("sum{at}")).inputs([wide]);
            if is_whole || at % 2 == 0 {
                builder.operator(operator.output(Output::new(sum, 4 * n)));
            } else {
                builder.weight(sum, Some(4 * n)).operator(operator);
            }
        }
        let last = Operator::new("join").inputs(["s0", "s1", "s2", "s3"]);
        builder.input("x", 8 * n).operator(last.output(Output::new("y", 4 * n))).output("y");
        builder.build().unwrap()
    };
    let found = Planner::new().plan_reordered(&of(4, true), default_limits()).unwrap();
    assert!(found.plan.pool_size() < found.given.pool_size());
    for small in [of(3, true), of(3, false)] {
        let ordered = small.in_order_of(&found.sequence).unwrap();
        assert_eq!(verify_smaller(&ordered, &found.plan), []);
        assert!(!verify_smaller(&small, &found.plan).is_empty());
    }
}

/// Operators without outputs are known by their names, and among equal names by their positions.
#[rstest]
#[case(&[0, 1, 2, 3, 4])]
#[case(&[0, 3, 1, 2, 4])]
#[case(&[0, 1, 3, 4, 2])]
fn operators_without_outputs_keep_their_places(#[case] order: &[usize]) {
    let mut builder = OpSequence::builder();
    builder.input("x", 8);
    builder.operator(Operator::new("a").inputs(["x"]).output(Output::new("y", 64)));
    builder.operator(Operator::new("log").inputs(["y"]));
    builder.operator(Operator::new("log").inputs(["x"]));
    builder.operator(Operator::new("b").inputs(["x"]).output(Output::new("z", 16)));
    builder.operator(Operator::new("send").inputs(["z"]).workspace(64));
    let given = builder.build().unwrap();
    let permuted = given.permuted(order).unwrap();
    assert!(given.in_order_of(&permuted).unwrap().has_same_operators(&permuted));
    let plan = plan(&permuted);
    assert_eq!(verify_smaller(&given.in_order_of(&permuted).unwrap(), &plan), []);
    assert!(given.in_order_of(&given).unwrap().has_same_operators(&given));
}

#[test]
fn views_that_are_copied_are_named() {
    let apart = LoweringOptions::default().views(false);
    let viewing = sequence(2, |z, _| z.reads_at("x", 8));
    let copying = Planner::new().lowering(apart).plan(&viewing).unwrap();
    assert_eq!(copied_views(&viewing, &copying), ["z".to_owned()].into());
    assert_eq!(copied_views(&viewing, &plan(&viewing)), [].into());
}

/// A range without sizes is refused wherever it is stated.
#[rstest]
#[case::backwards(
    5,
    0,
    "the sizes of 'n' begin at 5 and end at 0; give the smaller one first, as in n=0..5"
)]
fn wrong_ranges_are_refused(#[case] least: u64, #[case] most: u64, #[case] expected: &str) {
    let mut builder = OpSequence::builder();
    let error = builder.dim("n", [least, most]).build().unwrap_err();
    assert_eq!(error.to_string(), expected);
    let json = format!(
        r#"{{"format": "memplan-sequence/1", "operators": [], "outputs": [], "dims": {{"n": [{least}, {most}]}}}}"#
    );
    let error = serde_json::from_str::<OpSequence>(&json).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

/// A sequence and a plan keep the sizes that they hold for, in files as well.
#[test]
fn files_state_the_sizes() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("a").output(Output::new("x", 16)))
        .dim("n", 1..=4)
        .dim("m", 7)
        .build()
        .unwrap();
    let plan = plan(&sequence);
    assert_eq!(
        *plan.dims(),
        [("n".into(), DimRange::from(1..=4)), ("m".into(), DimRange::from(7))].into()
    );
    let json = serde_json::to_string(&sequence).unwrap();
    assert!(json.contains(r#""dims":{"m":[7,7],"n":[1,4]}"#), "{json}");
    assert_eq!(serde_json::from_str::<OpSequence>(&json).unwrap(), sequence);
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap().dims(), plan.dims());
    assert_eq!(sequence.permuted(&[0]).unwrap().dims(), sequence.dims());
}
