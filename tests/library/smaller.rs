//! A plan for several sizes, checked for one of them.

use memplan::{
    OpSequence, Operator, Output, Plan, Planner,
    lower::LoweringOptions,
    plan::PlanFile,
    sequence::{DimRange, SequenceFile},
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
    for at in 0..plan.tensors.len() {
        let mut moved = plan.clone();
        let memplan::TensorPlace::Pool { chunk, .. } = moved.tensors[at].place else { continue };
        // The bytes of another tensor that is alive at the same time.
        let other = plan.chunks.iter().enumerate().find(|&(other, one)| {
            let mine = &plan.chunks[chunk];
            other != chunk && one.begin < mine.end && mine.begin < one.end
        });
        let Some((other, _)) = other else { continue };
        let offset = plan.chunks[other].offset;
        moved.chunks[chunk].offset = offset;
        moved.tensors[at].place = memplan::TensorPlace::Pool { chunk, offset };
        assert!(!verify_smaller(&small, &moved).is_empty(), "{:?}", moved.tensors[at]);
    }
    let mut missing = plan.clone();
    missing.tensors.retain(|tensor| &*tensor.name != "z");
    assert!(!verify_smaller(&small, &missing).is_empty());
    let verifier = Verifier::new().smaller(true);
    assert!(verifier.verify(&small, &plan).unwrap().is_right());
    assert!(!verifier.alignment(1 << 40).verify(&small, &plan).unwrap().is_right());
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

#[test]
fn views_that_are_copied_are_named() {
    let apart = LoweringOptions::default().views(false);
    let viewing = sequence(2, |z, _| z.reads_at("x", 8));
    let copying = Planner::new().lowering(apart).plan(&viewing).unwrap();
    assert_eq!(copied_views(&viewing, &copying), ["z".to_owned()].into());
    assert_eq!(copied_views(&viewing, &plan(&viewing)), [].into());
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
        plan.dims,
        [("n".into(), DimRange::from(1..=4)), ("m".into(), DimRange::from(7))].into()
    );
    let json = serde_json::to_string(&SequenceFile::from(sequence.clone())).unwrap();
    assert!(json.contains(r#""dims":{"m":[7,7],"n":[1,4]}"#), "{json}");
    assert_eq!(serde_json::from_str::<OpSequence>(&json).unwrap(), sequence);
    let json = serde_json::to_string(&PlanFile::from(plan.clone())).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap().dims, plan.dims);
    assert_eq!(sequence.permuted(&[0]).unwrap().dims(), sequence.dims());
}
