//! Operators on several streams: those that may run at the same time share no bytes.

use arbitrary::{Result, Unstructured};
use memplan::{
    OpSequence, Operator, Output, Plan, PlanError, PlannedChunk, Planner, SequenceError, Strategy,
    TensorPlace,
    lower::{LoweringOptions, lower},
    problem::{Feature, RejectReason},
    sequence::{Dependency, Origin},
    verify::{Violation, execute, execute_with_waits, verify},
};
use rstest::rstest;

use crate::common::seeds::times;

fn operator(name: &str, stream: usize, inputs: &[&str]) -> Operator {
    Operator::new(name).on_stream(stream).inputs(inputs.iter().copied())
}

/// `x` is read on stream 0, then a signal lets stream 1 make `z`, in bytes that `x` no longer needs.
fn with_a_signal(is_sent: bool) -> OpSequence {
    let mut last = operator("last", 1, &[]).output(Output::new("z", 64));
    if is_sent {
        last = last.after("read");
    }
    OpSequence::builder()
        .operator(operator("make", 0, &[]).output(Output::new("x", 64)))
        .operator(operator("read", 0, &["x"]).output(Output::new("y", 8)))
        .operator(last)
        .output("y")
        .output("z")
        .build()
        .unwrap()
}

fn races(violations: &[Violation]) -> Vec<(&str, &str)> {
    violations
        .iter()
        .filter_map(|violation| match violation {
            Violation::Race { first, second, .. } => Some((&**first, &**second)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_race_is_found_once_the_wait_that_orders_it_is_gone() {
    let sequence = with_a_signal(true);
    assert_eq!(sequence.waits(), [vec![], vec![], vec![1]]);
    let plan = Planner::new().plan(&sequence).unwrap();
    // Bytes are shared only because the signal orders their uses.
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (72, true));
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(execute(&sequence, &plan), []);

    let found = execute_with_waits(&sequence, &plan, &[]);
    let expected = [("step 0 ('make')", "step 2 ('last')"), ("step 1 ('read')", "step 2 ('last')")];
    assert_eq!(races(&found), expected);
    assert_eq!(found.len(), 2, "{found:?}");

    let without = with_a_signal(false);
    assert_eq!(races(&execute(&without, &plan)), expected);
    let overlap =
        Violation::ClockOverlap { first: "x".to_owned(), second: "z".to_owned(), low: 0, high: 64 };
    assert!(verify(&without, &plan).contains(&overlap));
    assert_eq!(Planner::new().plan(&without).unwrap().pool_size(), 136);
}

/// A supplied tensor waits for no operator that has nothing to do with it.
#[test]
fn a_variable_is_updated_on_another_stream_than_the_first_operator() {
    let sequence = OpSequence::builder()
        .weight("v", Some(64))
        .operator(operator("a", 0, &[]).output(Output::new("x", 8)))
        .operator(operator("w", 1, &["v"]).output(Output::new("u", 64).updates("v", 0)))
        .output("x")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(execute(&sequence, &plan), []);
}

/// The other stream may need its bytes while an output begins below its input, whatever the order of the list.
#[test]
fn overlaps_are_chosen_by_what_may_be_alive_on_all_streams() {
    let sequence = OpSequence::builder()
        .operator(operator("make", 0, &[]).output(Output::new("x", 64)))
        .operator(operator("write", 0, &["x"]).output(Output::new("y", 64).overlaps("x", 8)))
        .operator(operator("read", 0, &["y"]).output(Output::new("z", 1)))
        .operator(operator("other", 1, &[]).output(Output::new("a", 100)))
        .operator(operator("last", 1, &["a"]).output(Output::new("b", 100)))
        .output("z")
        .output("b")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (272, true));
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(execute(&sequence, &plan), []);
    // One byte nearer, the operator destroys bytes that it has not read.
    let mut nearer = sequence.clone();
    let text = serde_json::to_string(&nearer).unwrap().replace(r#""below":8"#, r#""below":9"#);
    nearer = serde_json::from_str(&text).unwrap();
    assert_ne!(execute(&nearer, &plan), []);
    assert_ne!(verify(&nearer, &plan), []);
}

/// An unread output needs the bytes below its input while its operator runs, on every stream.
#[test]
fn an_overlap_that_another_stream_still_reads_is_found() {
    let sequence = |stream: usize| {
        OpSequence::builder()
            .operator(operator("make", 0, &[]).output(Output::new("x", 64)))
            .operator(operator("mz", stream, &[]).output(Output::new("z", 8)))
            .operator(operator("rz", stream, &["z"]))
            .operator(operator("write", 0, &["x"]).output(Output::new("y", 64).overlaps("x", 8)))
            .build()
            .unwrap()
    };
    let plan = Planner::new().alignment(8).plan(&sequence(0)).unwrap();
    assert_eq!((plan.pool_size(), verify(&sequence(0), &plan)), (72, vec![]));
    let found = verify(&sequence(1), &plan);
    let overlap =
        Violation::ClockOverlap { first: "z".to_owned(), second: "y".to_owned(), low: 0, high: 8 };
    let other =
        Violation::ClockOverlap { first: "y".to_owned(), second: "z".to_owned(), low: 0, high: 8 };
    assert!(found.contains(&overlap) || found.contains(&other), "{found:?}");
}

#[test]
fn each_wait_of_two_branches_that_meet_is_needed() {
    let sequence = OpSequence::builder()
        .operator(operator("stem", 0, &[]).output(Output::new("x", 64)))
        .operator(operator("left", 0, &["x"]).output(Output::new("a", 32)))
        .operator(operator("right", 1, &["x"]).output(Output::new("b", 32)).workspace(16))
        .operator(operator("join", 1, &["a", "b"]).output(Output::new("y", 64)))
        .operator(operator("back", 0, &["y"]).output(Output::new("w", 8)))
        .output("w")
        .build()
        .unwrap();
    let waits = sequence.waits();
    assert_eq!(waits, [vec![], vec![], vec![0], vec![1], vec![3]]);
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(execute_with_waits(&sequence, &plan, &waits), []);
    for step in [2, 3, 4] {
        let mut fewer = waits.clone();
        fewer[step].clear();
        let found = execute_with_waits(&sequence, &plan, &fewer);
        let racing = format!("step {step} ");
        assert!(
            races(&found).iter().any(|(_, second)| second.starts_with(&racing)),
            "without the waits of step {step}: {found:?}"
        );
    }
}

/// An operator is written over an input only if every other reader is over before it.
#[rstest]
#[case::same_stream(0, None, None)]
#[case::other_stream(1, None, Some(RejectReason::Unordered))]
#[case::other_stream_waited_for(1, Some("read"), None)]
fn an_input_that_another_stream_reads_is_not_overwritten(
    #[case] stream: usize,
    #[case] after: Option<&str>,
    #[case] refusal: Option<RejectReason>,
) {
    for required in [false, true] {
        let output = Output::new("y", 64);
        let output = if required { output.updates("x", 0) } else { output.overwrites("x") };
        let mut write = operator("write", 0, &["x"]).output(output);
        if let Some(after) = after {
            write = write.after(after);
        }
        let sequence = OpSequence::builder()
            .operator(operator("make", 0, &[]).output(Output::new("x", 64)))
            .operator(operator("read", stream, &["x"]).output(Output::new("z", 8)))
            .operator(write)
            .operator(operator("other", 1, &["z"]).output(Output::new("w", 8)))
            .output("y")
            .build()
            .unwrap();
        let lowered = lower(&sequence, LoweringOptions::default());
        if let (true, Some(expected)) = (required, refusal) {
            let error = lowered.unwrap_err();
            assert!(
                matches!(error, SequenceError::RequiredOverwrite { reason, .. } if reason == expected),
                "{error}"
            );
            continue;
        }
        let refused: Vec<RejectReason> =
            lowered.unwrap().refused().map(|(.., reason)| reason).collect();
        assert_eq!(refused, refusal.into_iter().collect::<Vec<_>>());
        let plan = Planner::new().plan(&sequence).unwrap();
        assert_eq!(verify(&sequence, &plan), []);
        assert_eq!(execute(&sequence, &plan), []);
    }
}

/// A plan made for one stream lets an unread output destroy what another stream still reads.
#[test]
fn an_unread_overwriter_must_wait_for_readers_on_other_streams() {
    let sequence = |stream| {
        OpSequence::builder()
            .operator(operator("make", 0, &[]).output(Output::new("x", 64)))
            .operator(operator("read", stream, &["x"]).output(Output::new("z", 8)))
            .operator(operator("write", 0, &["x"]).output(Output::new("y", 64).overwrites("x")))
            .output("z")
            .build()
            .unwrap()
    };
    let plan = Planner::new().plan(&sequence(0)).unwrap();
    assert_eq!(plan.pool_size(), 72);
    let found = verify(&sequence(1), &plan);
    let (overwriter, overwritten) = ("y".to_owned(), "x".to_owned());
    assert!(
        found.contains(&Violation::OverwriteUnordered { overwriter, overwritten }),
        "{found:?}"
    );
    let found = execute(&sequence(1), &plan);
    assert_eq!(races(&found), [("step 1 ('read')", "step 2 ('write')")]);
}

/// `a` and `b`, made on two streams, lie inside `c`. `read` keeps `a` alive beyond `c`, and `write`, with some
/// workspace, would overwrite `c`, which shares its bytes with `a`.
fn concat_on_two_streams(read: bool, write: Option<u64>) -> OpSequence {
    let gathered = Output::new("c", 96).gathers("a", 0).gathers("b", 64);
    let mut sequence = OpSequence::builder();
    sequence
        .operator(operator("left", 0, &[]).output(Output::new("a", 64)))
        .operator(operator("right", 1, &[]).output(Output::new("b", 32)))
        .operator(operator("concat", 0, &["a", "b"]).output(gathered));
    if let Some(workspace) = write {
        let output = Output::new("w", 96).overwrites("c");
        sequence.operator(operator("write", 0, &["c"]).output(output).workspace(workspace));
    } else {
        sequence.operator(operator("use", 1, &["c"]).output(Output::new("w", 8)));
    }
    if read {
        sequence.operator(operator("read", 0, &["a"]).output(Output::new("r", 8)));
    }
    sequence.output("w").build().unwrap()
}

#[rstest]
#[case::plain(false, None, 2, &[], 104)]
#[case::read_later(true, None, 2, &[], 112)]
#[case::overwritten(false, Some(0), 2, &[], 96)]
#[case::overwrite_is_lost(true, Some(0), 2, &[RejectReason::Clash], 192)]
#[case::bound_would_rise(true, Some(40), 1, &[RejectReason::LargerBound], 200)]
fn inputs_made_on_two_streams_are_gathered_in_place(
    #[case] read: bool,
    #[case] write: Option<u64>,
    #[case] parts: usize,
    #[case] refusals: &[RejectReason],
    #[case] pool: u64,
) {
    let sequence = concat_on_two_streams(read, write);
    let lowered = lower(&sequence, LoweringOptions::default()).unwrap();
    let refused: Vec<RejectReason> = lowered.refused().map(|(.., reason)| reason).collect();
    let expected: Vec<RejectReason> = refusals.to_vec();
    assert_eq!(refused, expected);
    assert_eq!(lowered.problem.parts().len(), parts);
    assert_eq!(lowered.problem.lower_bound(), pool);
    // Without a tie, the pool may be smaller.
    let plan = Planner::new().plan(&sequence).unwrap();
    assert!(plan.pool_size() <= pool && plan.proven_optimal());
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(execute(&sequence, &plan), []);
    // What reads the whole must wait for those that make its parts, although nothing is copied.
    let found = execute_with_waits(&sequence, &plan, &[]);
    assert!(races(&found).contains(&("step 1 ('right')", "step 2 ('concat')")), "{found:?}");
}

/// Two operators on each of two streams, without a wait: no order of the four lives is that of steps.
#[test]
fn planners_of_plain_problems_refuse_streams_that_are_no_line() {
    let chain = |stream: usize| {
        let name = move |kind: &str| format!("{kind}{stream}");
        let first = operator(&name("make"), stream, &[]).output(Output::new(name("x"), 8));
        let second =
            operator(&name("use"), stream, &[&name("x")]).output(Output::new(name("y"), 8));
        [first, second, operator(&name("end"), stream, &[&name("y")])]
    };
    let mut sequence = OpSequence::builder();
    for operator in chain(0).into_iter().chain(chain(1)) {
        sequence.operator(operator);
    }
    // The third lives tell the streams apart: each is after the first of its own stream only.
    for stream in [0, 1] {
        let name = format!("last{stream}");
        sequence
            .operator(operator(&name, stream, &[]).output(Output::new(format!("z{stream}"), 8)));
    }
    let sequence = sequence.build().unwrap();
    let error = Planner::new().strategy(Strategy::Pushdown).plan(&sequence).unwrap_err();
    assert!(matches!(error, PlanError::Unsupported { feature: Feature::Streams, .. }), "{error}");
    assert_eq!(
        lower(&sequence, LoweringOptions::default()).unwrap().problem.collapse_streams(),
        None
    );
}

/// Lives on streams that are as in one line of time are planned by all: the signal puts `z` after `x`.
#[test]
fn every_planner_plans_streams_that_are_a_line() {
    let sequence = with_a_signal(true);
    for &strategy in Strategy::ALL {
        let plan = Planner::new().strategy(strategy).plan(&sequence).unwrap();
        assert_eq!(verify(&sequence, &plan), [], "{strategy}");
        assert_eq!(execute(&sequence, &plan), [], "{strategy}");
    }
    let plan = Planner::new().strategy(Strategy::Pushdown).plan(&sequence).unwrap();
    assert_eq!(plan.pool_size(), 72);
}

#[test]
fn orders_refuse_streams() {
    let sequence = with_a_signal(true);
    let error = Planner::new().plan_reordered(&sequence, memplan::Limits::default()).unwrap_err();
    assert_eq!(error, PlanError::Sequence(SequenceError::SeveralStreams));
    let far = OpSequence::builder().operator(operator("a", 64, &[])).build().unwrap_err();
    let text = "operator 'a' runs on stream 64; streams are numbered from 0 to 63";
    assert_eq!(far.to_string(), text);
}

#[test]
fn streams_are_written_and_read_again() {
    let sequence = with_a_signal(true);
    let mut file = serde_json::to_value(&sequence).unwrap();
    assert_eq!(file["format"], "memplan-sequence/2");
    assert_eq!(file["operators"][2]["stream"], 1);
    assert_eq!(file["operators"][0].get("stream"), None);
    assert_eq!(serde_json::from_value::<OpSequence>(file.clone()).unwrap(), sequence);
    file["format"] = "memplan-sequence/1".into();
    let error = serde_json::from_value::<OpSequence>(file).unwrap_err().to_string();
    assert!(error.contains("'stream' is a key of \"memplan-sequence/2\""), "{error}");
}

/// Creates operators on up to three streams, with views, overwriters, concatenations, workspaces and signals.
fn random_streams(random: &mut Unstructured<'_>) -> Result<OpSequence> {
    let mut sequence = OpSequence::builder();
    let streams = random.int_in_range(2..=3)?;
    let mut tensors: Vec<(String, u64)> = Vec::new();
    for step in 0..random.int_in_range(2..=9)? {
        let mut inputs: Vec<usize> = Vec::new();
        for _ in 0..random.int_in_range(0..=2.min(tensors.len()))? {
            inputs.push(random.choose_index(tensors.len())?);
        }
        inputs.dedup();
        let name = format!("t{step}");
        let first = inputs.first().map(|&at| tensors[at].clone());
        let other = inputs.get(1).map(|&at| tensors[at].clone());
        let (output, size) = match (first, other, random.int_in_range(0..=3)?) {
            (Some((input, size)), Some((second, more)), 0 | 1) => {
                let output = Output::new(&*name, size + more).gathers(input, 0);
                (output.gathers(second, size), size + more)
            }
            (Some((input, size)), _, 0) => (Output::new(&*name, size).reads(input), size),
            (Some((input, size)), _, 1) => (Output::new(&*name, size).overwrites(input), size),
            (Some((input, _)), _, 2) => {
                let size = random.int_in_range(1..=6)?;
                (Output::new(&*name, size).overlaps(input, random.int_in_range(1..=3)?), size)
            }
            _ => {
                let size = random.int_in_range(1..=6)?;
                (Output::new(&*name, size), size)
            }
        };
        let mut operator = Operator::new(format!("op{step}"))
            .on_stream(random.int_in_range(0..=streams - 1)?)
            .inputs(inputs.iter().map(|&at| &*tensors[at].0))
            .output(output);
        if random.ratio(1, 4)? {
            operator = operator.workspace(random.int_in_range(1..=4)?);
        }
        if step > 0 && random.ratio(1, 3)? {
            operator = operator.after_place(random.choose_index(step)?);
        }
        sequence.operator(operator);
        tensors.push((name, size));
    }
    for (name, _) in &tensors {
        if random.ratio(1, 3)? {
            sequence.output(&**name);
        }
    }
    Ok(sequence.build().unwrap())
}

/// The bytes of the graph outputs after the operators ran in some order.
fn run(sequence: &OpSequence, plan: &Plan, order: &[usize]) -> Vec<u64> {
    let mut pool = vec![0_u64; usize::try_from(plan.pool_size()).unwrap()];
    let place = |tensor: memplan::sequence::TensorId| {
        let planned = plan.tensor(&sequence.tensor(tensor).name);
        match planned.map(|tensor| (&tensor.place, tensor.size)) {
            Some((TensorPlace::Pool { offset, .. }, size)) => {
                usize::try_from(*offset).unwrap()..usize::try_from(offset + size).unwrap()
            }
            _ => 0..0,
        }
    };
    let turn =
        |state: u64, value: u64| (state ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (state >> 9);
    for &step in order {
        let operator = &sequence.operators()[step];
        let read = operator.inputs.iter().flat_map(|&input| &pool[place(input)]);
        let value = read.fold(turn(7, step as u64), |state, &value| turn(state, value));
        if let Some(chunk) = plan.workspace(step as u64) {
            let low = usize::try_from(chunk.offset).unwrap();
            pool[low..low + usize::try_from(chunk.size).unwrap()].fill(value);
        }
        for &output in &operator.outputs {
            let Origin::Output { dependency, .. } = &sequence.tensor(output).origin else {
                continue;
            };
            match dependency {
                Dependency::Reads { .. } => {}
                Dependency::Gathers(gathers) => {
                    // All inputs are read before the first is written, as if they were copied.
                    let whole = place(output);
                    let copied: Vec<Vec<u64>> =
                        gathers.iter().map(|one| pool[place(one.input)].to_vec()).collect();
                    for (one, bytes) in gathers.iter().zip(copied) {
                        let low = whole.start + usize::try_from(one.offset).unwrap();
                        pool[low..low + bytes.len()].copy_from_slice(&bytes);
                    }
                }
                _ => {
                    for (at, byte) in pool[place(output)].iter_mut().enumerate() {
                        *byte = turn(value, at as u64);
                    }
                }
            }
        }
    }
    sequence.outputs().iter().flat_map(|&output| pool[place(output)].to_vec()).collect()
}

/// An order in which the streams may run, chosen at random.
fn random_order(
    random: &mut Unstructured<'_>,
    sequence: &OpSequence,
    waits: &[Vec<usize>],
) -> Result<Vec<usize>> {
    let stream = |step: usize| sequence.operators()[step].stream;
    let mut order: Vec<usize> = Vec::new();
    while order.len() < waits.len() {
        let is_ready = |step: &usize| {
            let mut before = (0..*step).filter(|&first| stream(first) == stream(*step));
            !order.contains(step)
                && before.all(|first| order.contains(&first))
                && waits[*step].iter().all(|first| order.contains(first))
        };
        let ready: Vec<usize> = (0..waits.len()).filter(is_ready).collect();
        order.push(*random.choose(&ready)?);
    }
    Ok(order)
}

/// Checks that the outputs are the same in the order of the list and in four random ones.
fn check_orders(
    random: &mut Unstructured<'_>,
    sequence: &OpSequence,
    plan: &Plan,
    waits: &[Vec<usize>],
) -> Result<()> {
    let in_order: Vec<usize> = (0..waits.len()).collect();
    let expected = run(sequence, plan, &in_order);
    for _ in 0..4 {
        let order = random_order(random, sequence, waits)?;
        assert_eq!(run(sequence, plan, &order), expected, "{order:?} of {sequence:?}");
    }
    Ok(())
}

/// The number of outputs that begin below their inputs.
fn overlaps(plan: &Plan) -> usize {
    let is_below = |chunk: &&PlannedChunk| chunk.overwrites.is_some_and(|link| link.below > 0);
    plan.chunks().iter().filter(is_below).count()
}

#[test]
fn plans_for_streams_are_right_in_every_order() {
    let (mut shared, mut gathered, mut below) = (0, 0, 0);
    let one = |random: &mut Unstructured<'_>| {
        let sequence = random_streams(random)?;
        let waits = sequence.waits();
        let bound = |options| lower(&sequence, options).unwrap().problem.lower_bound();
        let apart = LoweringOptions::default().gathers(false);
        assert!(bound(LoweringOptions::default()) <= bound(apart), "{sequence:?}");
        for strategy in [Strategy::FirstFit, Strategy::Best] {
            let plan = Planner::new().strategy(strategy).plan(&sequence).unwrap();
            assert_eq!(verify(&sequence, &plan), [], "{sequence:?}");
            assert_eq!(execute(&sequence, &plan), [], "{sequence:?}");
            shared += u32::from(plan.pool_size() < plan.naive_size());
            gathered += plan.parts().len();
            below += overlaps(&plan);
            check_orders(random, &sequence, &plan, &waits)?;
        }
        Ok(())
    };
    times(50, one);
    assert!(shared > 5 && gathered > 3, "{shared} plans share bytes, {gathered} parts");
    assert!(below > 3, "{below} overlaps");
}

/// Chunks are moved and waits are dropped: plans that the race detector accepts give equal bytes in every
/// order, and the detector accepts all plans that `verify` accepts.
#[test]
fn plans_that_the_race_detector_accepts_are_right_in_every_order() {
    let (mut right, mut racing) = (0, 0);
    let one = |random: &mut Unstructured<'_>| {
        let sequence = random_streams(random)?;
        let mut plan = Planner::new().strategy(Strategy::FirstFit).plan(&sequence).unwrap();
        if !plan.chunks().is_empty() && random.ratio(2, 3)? {
            let at = random.choose_index(plan.chunks().len())?;
            let most = plan.pool_size() - plan.chunks()[at].size;
            let offset = random.int_in_range(0..=most)?;
            let before = std::mem::replace(&mut plan.chunks_mut()[at].offset, offset);
            for tensor in plan.tensors_mut() {
                if let TensorPlace::Pool { chunk, offset: place } = &mut tensor.place
                    && *chunk == at
                {
                    *place = *place - before + offset;
                }
            }
        }
        let mut waits = sequence.waits();
        let is_whole = waits.is_empty() || random.ratio(1, 2)?;
        if !is_whole {
            let at = random.choose_index(waits.len())?;
            waits[at].clear();
        }
        let found = execute_with_waits(&sequence, &plan, &waits);
        if is_whole && verify(&sequence, &plan).is_empty() {
            assert_eq!(found, [], "{plan:?} of {sequence:?}");
        }
        racing += u32::from(!races(&found).is_empty());
        if !found.is_empty() {
            return Ok(());
        }
        right += 1;
        check_orders(random, &sequence, &plan, &waits)
    };
    times(50, one);
    assert!(right > 5 && racing > 5, "{right} right, {racing} racing");
}
