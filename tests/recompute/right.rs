//! What is found is an expansion of the given sequence, is within its capacity, and states its cost and peak.

use arbitrary::Unstructured;
use memplan::{
    Bytes, Limits, OpSequence, Planner, Strategy,
    lower::{LoweringOptions, lower},
    recompute::{LaterRun, Recomputation, Recomputed, expand},
    verify::verify,
};

use super::steps::{chain, random_step};
use crate::common::{
    constraints::Dice, expansion, machine, random::random_sequence, seeds::bytes_of,
};

/// The peak that lowering counts, with all gathered inputs copied.
fn peak(sequence: &OpSequence) -> Bytes {
    let options = LoweringOptions::default().gathers(false);
    lower(sequence, options).unwrap().problem.lower_bound()
}

/// Checks an answer for a capacity; returns the extra cost.
fn check(given: &OpSequence, capacity: Bytes, found: &Recomputed<Recomputation>) -> Option<u64> {
    match found {
        Recomputed::Found(found) => {
            let cost = expansion::check(given, &found.sequence)
                .unwrap_or_else(|reason| panic!("{reason}"));
            let whole: u64 = given.operators().iter().map(|operator| operator.cost).sum();
            assert_eq!((found.extra_cost, found.cost), (cost, whole + cost));
            assert_eq!((found.peak, found.given_peak), (peak(&found.sequence), peak(given)));
            assert!(found.peak_bound <= found.peak && found.peak <= capacity);
            assert!(found.cost_bound <= found.extra_cost);
            assert_eq!(found.sequence, expand(given, &found.later).unwrap());
            Some(cost)
        }
        Recomputed::Impossible { peak_bound } => {
            assert!(*peak_bound > capacity && *peak_bound <= peak(given));
            None
        }
        Recomputed::NotFound { least, peak_bound } => {
            assert!(*peak_bound <= capacity && *least > capacity);
            None
        }
        other => panic!("{other:?}"),
    }
}

/// Searches at several parts of the given peak.
fn check_at_all_parts(given: &OpSequence, effort: u64) -> u64 {
    let full = peak(given);
    let mut found_some = 0;
    for part in [10, 8, 7, 6, 5, 3] {
        let capacity = full * part / 10;
        let found =
            Planner::new().recompute(given, capacity, Limits::default().nodes(effort)).unwrap();
        if check(given, capacity, &found).is_some_and(|cost| cost > 0) {
            found_some += 1;
        }
        if let Recomputed::Found(found) = found {
            let plan = Planner::new().plan(&found.sequence).unwrap();
            assert!(verify(&found.sequence, &plan).is_empty());
        }
    }
    found_some
}

#[test]
fn random_steps_are_expanded_rightly() {
    let mut dice = Dice(3);
    let found: u64 = (0..40)
        .map(|_| {
            let step = random_step(&mut dice, 12);
            check_at_all_parts(&step, 5_000)
        })
        .sum();
    assert!(found > 60, "only {found} of 240 searches made anything again");
}

/// Sequences with views, updates, gathers, bodies without names and all that a sequence may have.
#[test]
fn random_sequences_are_expanded_rightly() {
    for seed in 0..150 {
        let bytes = bytes_of(seed);
        let Ok(Ok(sequence)) = random_sequence(&mut Unstructured::new(&bytes), 10) else {
            continue;
        };
        if lower(&sequence, LoweringOptions::default()).is_ok() && sequence.streams() == 1 {
            assert_eq!(expansion::check(&sequence, &sequence), Ok(0), "seed {seed}");
            check_at_all_parts(&sequence, 2_000);
        }
    }
}

/// A machine runs the plan of an expanded sequence, and no value is lost.
#[test]
fn expanded_sequences_run_in_their_pool() {
    let mut dice = Dice(5);
    let mut runs = 0;
    for _ in 0..40 {
        let step = random_step(&mut dice, 10);
        let capacity = peak(&step) * 6 / 10;
        let found =
            Planner::new().recompute(&step, capacity, Limits::default().nodes(3_000)).unwrap();
        let Recomputed::Found(found) = found else { continue };
        let plan = Planner::new().strategy(Strategy::Pushdown).plan(&found.sequence).unwrap();
        let bytes = vec![7; 4096];
        let outcome = machine::run(&found.sequence, &plan, &mut Unstructured::new(&bytes)).unwrap();
        outcome.unwrap_or_else(|reason| panic!("{reason:?}"));
        runs += 1;
    }
    assert!(runs > 10, "only {runs} of 40 fit");
}

/// What was recomputed before has names that end like those of copies.
#[test]
fn an_expanded_sequence_is_expanded_again() {
    let step = chain(6, 10);
    let once = expand(&step, &[LaterRun::again(0, 8), LaterRun::again(1, 8)]).unwrap();
    let twice = expand(&once, &[LaterRun::again(0, 11), LaterRun::again(8, 12)]).unwrap();
    assert_eq!(expansion::check(&once, &twice), Ok(2));
    let names: Vec<String> = [11, 13].map(|step| twice.operator_name(step)).into();
    assert_eq!(names, ["f1~1~1", "f1~1~1~1"]);
}

/// Checkpoints at every square root of n layers need 8 + 8 slots for 64 layers; segments that shrink towards the
/// end need fewer.
#[test]
fn a_chain_needs_fewer_slots_than_checkpoints_at_square_roots() {
    let step = chain(64, 100);
    assert_eq!(peak(&step), 6500);
    let found = Planner::new().recompute(&step, 1300, Limits::default()).unwrap();
    let cost = check(&step, 1300, &found).expect("13 slots suffice");
    assert!(cost <= 63, "{cost} layers run twice");
}

#[test]
fn the_answer_is_always_the_same() {
    let step = random_step(&mut Dice(9), 30);
    let capacity = peak(&step) * 7 / 10;
    let run = || Planner::new().recompute(&step, capacity, Limits::default().nodes(20_000));
    assert_eq!(run().unwrap(), run().unwrap());
}
