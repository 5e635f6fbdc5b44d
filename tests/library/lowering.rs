//! Lowering decides from dependencies which tensors share memory, which chunks overwrite which, and
//! how long each lives.

use memplan::{
    OpSequence, Operator, Output, Plan, PlannedLink, Planner, TensorPlace, lower::LoweringOptions,
    sequence::SequenceBuilder, verify::verify,
};
use rstest::rstest;

fn operator(name: &str, inputs: &[&str], outputs: impl IntoIterator<Item = Output>) -> Operator {
    outputs.into_iter().fold(Operator::new(name).inputs(inputs.iter().copied()), Operator::output)
}

fn plan_with(declare: impl FnOnce(&mut SequenceBuilder), options: LoweringOptions) -> Plan {
    let mut sequence = OpSequence::builder();
    declare(&mut sequence);
    let sequence = sequence.build().unwrap();
    let plan = Planner::new().lowering(options).plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    plan
}

fn plan(declare: impl FnOnce(&mut SequenceBuilder)) -> Plan {
    plan_with(declare, LoweringOptions::default())
}

/// Name, lifetime and what it overwrites, for every chunk.
fn chunks(plan: &Plan) -> Vec<(&str, u64, u64, Option<&str>)> {
    plan.chunks()
        .iter()
        .map(|c| {
            (&*c.name, c.begin, c.end, c.overwrites.map(|link| &*plan.chunks()[link.chunk].name))
        })
        .collect()
}

#[test]
fn every_view_prolongs_the_chunk_it_shares() {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 8)]))
            .operator(operator("reshape", &["x"], [Output::new("v", 8).reads("x")]))
            .operator(operator("slice", &["v"], [Output::new("w", 4).reads_at("v", 4)]))
            .operator(operator("b", &[], [Output::new("y", 8)]))
            .operator(operator("c", &["w", "y"], [Output::new("z", 8)]));
    });
    assert_eq!(chunks(&plan), [("x", 0, 5, None), ("y", 3, 5, None), ("z", 4, 5, None)]);
    assert_eq!(plan.offset("w"), plan.offset("x").map(|offset| offset + 4));
}

#[test]
fn without_views_each_is_a_chunk() {
    let options = LoweringOptions::default().views(false);
    let plan = plan_with(
        |s| {
            s.operator(operator("a", &[], [Output::new("x", 8)])).operator(operator(
                "reshape",
                &["x"],
                [Output::new("v", 8).reads("x")],
            ));
        },
        options,
    );
    assert_eq!(chunks(&plan), [("x", 0, 2, None), ("v", 1, 2, None)]);
}

#[test]
fn the_last_reader_may_write_in_place() {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 8)])).operator(operator(
            "relu",
            &["x"],
            [Output::new("y", 8).overwrites("x")],
        ));
    });
    assert_eq!(chunks(&plan), [("x", 0, 2, None), ("y", 1, 2, Some("x"))]);
    assert_eq!(plan.pool_size(), 8);
}

#[rstest]
#[case::a_later_reader(|s: &mut SequenceBuilder| { s.operator(operator("late", &["x"], [Output::new("z", 1)])); })]
#[case::a_graph_output(|s: &mut SequenceBuilder| { s.output("x"); })]
fn an_earlier_reader_may_not(#[case] spoil: fn(&mut SequenceBuilder)) {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 8)])).operator(operator(
            "relu",
            &["x"],
            [Output::new("y", 8).overwrites("x")],
        ));
        spoil(s);
    });
    assert_eq!(plan.chunks()[1].overwrites, None);
    assert_eq!(plan.pool_size(), 16);
}

/// A view that is read later is a reader of the chunk as well: reshape, reshape, in-place add.
#[test]
fn a_chunk_is_not_overwritten_while_a_view_of_it_is_read() {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 8)]))
            .operator(operator("reshape1", &["x"], [Output::new("v", 8).reads("x")]))
            .operator(operator("reshape2", &["v"], [Output::new("w", 8).reads("v")]))
            .operator(operator("add", &["w"], [Output::new("y", 8).overwrites("w")]))
            .operator(operator("late", &["v", "y"], [Output::new("z", 1)]));
    });
    assert_eq!(chunks(&plan)[1], ("y", 3, 5, None));
}

#[test]
fn overwriting_a_view_adds_its_offset() {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 20)]))
            .operator(operator("slice", &["x"], [Output::new("v", 12).reads_at("x", 4)]))
            .operator(operator("relu", &["v"], [Output::new("y", 10).overwrites_at("v", 2)]));
    });
    assert_eq!(plan.chunks()[1].overwrites, Some(PlannedLink::new(0, 6)));
}

#[test]
fn of_several_inputs_the_first_that_can_be_overwritten_is() {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 8)]))
            .operator(operator("b", &[], [Output::new("y", 8)]))
            .operator(operator(
                "add",
                &["x", "y"],
                [Output::new("z", 8).overwrites("x").overwrites("y")],
            ))
            .operator(operator("late", &["x"], [Output::new("w", 1)]));
    });
    assert_eq!(chunks(&plan)[2], ("z", 2, 3, Some("y")));
}

/// Rule c: a strictly larger overwriter takes the place of the present one.
#[rstest]
#[case::larger(6, "q")]
#[case::equal(4, "p")]
fn of_two_overwriters_the_larger_wins(#[case] second: u64, #[case] winner: &str) {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 8)])).operator(operator(
            "b",
            &["x"],
            [Output::new("p", 4).overwrites("x"), Output::new("q", second).overwrites("x")],
        ));
    });
    let overwriter = plan.chunks().iter().find(|chunk| chunk.overwrites.is_some()).unwrap();
    assert_eq!(&*overwriter.name, winner);
}

#[test]
fn without_inplace_only_required_overwrites_remain() {
    let options = LoweringOptions::default().inplace(false);
    let plan = plan_with(
        |s| {
            s.operator(operator("a", &[], [Output::new("x", 8)]))
                .operator(operator("relu", &["x"], [Output::new("y", 8).overwrites("x")]))
                .operator(operator("update", &["y"], [Output::new("z", 4).updates("y", 2)]));
        },
        options,
    );
    let overwrites: Vec<_> = plan.chunks().iter().map(|chunk| chunk.overwrites).collect();
    assert_eq!(overwrites, [None, None, Some(PlannedLink::new(1, 2))]);
}

#[test]
fn workspace_lives_for_its_own_step_and_an_unread_output_too() {
    let plan = plan(|s| {
        s.operator(
            operator("a", &[], [Output::new("x", 8), Output::new("unread", 2)]).workspace(5),
        )
        .operator(operator("b", &["x"], [Output::new("y", 8)]));
    });
    assert_eq!(
        chunks(&plan),
        [("x", 0, 2, None), ("unread", 0, 1, None), ("a.workspace", 0, 1, None), ("y", 1, 2, None)]
    );
}

#[test]
fn graph_outputs_live_to_the_end() {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 8)]))
            .operator(operator("b", &[], [Output::new("y", 8)]))
            .operator(operator("c", &[], [Output::new("z", 8)]))
            .output("x");
    });
    assert_eq!(chunks(&plan)[0], ("x", 0, 3, None));
}

#[test]
fn tensors_without_bytes_get_no_chunk() {
    let plan = plan(|s| {
        s.operator(operator("a", &[], [Output::new("x", 0)])).operator(operator(
            "b",
            &["x"],
            [Output::new("y", 0).overwrites("x")],
        ));
    });
    assert_eq!(plan.chunks(), []);
    assert_eq!(plan.tensor("y").unwrap().place, TensorPlace::Nowhere);
}

#[test]
fn views_and_updates_of_an_outside_tensor_lie_in_its_memory() {
    let plan = plan(|s| {
        s.input("x", 8)
            .weight("state", Some(8))
            .operator(operator("slice", &["x"], [Output::new("v", 4).reads_at("x", 4)]))
            .operator(operator("relu", &["v"], [Output::new("y", 4).overwrites("v")]))
            .operator(operator(
                "update",
                &["state", "y"],
                [Output::new("new", 4).updates("state", 2)],
            ))
            .operator(operator("relu2", &["new"], [Output::new("z", 4).overwrites("new")]));
    });
    let place = |name| plan.tensor(name).unwrap().place.clone();
    assert_eq!(place("v"), TensorPlace::Supplied { tensor: "x".into(), offset: 4 });
    assert_eq!(place("new"), TensorPlace::Supplied { tensor: "state".into(), offset: 2 });
    // Neither an input nor the new state of a variable is written over unnecessarily.
    assert_eq!(chunks(&plan), [("y", 1, 3, None), ("z", 3, 4, None)]);
}

/// Chunks outside the pool take no ids from the chunks of the pool.
#[test]
fn in_place_operators_work_beside_tensors_outside_the_pool() {
    let plan = plan(|s| {
        s.input("image", 8)
            .weight("w", Some(8))
            .operator(operator("a", &["image"], [Output::new("x", 8)]))
            .operator(operator("b", &["w"], [Output::new("y", 6)]))
            .operator(operator("c", &["y"], [Output::new("z", 4).overwrites_at("y", 2)]))
            .operator(operator("d", &["x", "z"], [Output::new("u", 2)]));
    });
    assert_eq!(
        chunks(&plan),
        [("x", 0, 4, None), ("y", 1, 3, None), ("z", 2, 4, Some("y")), ("u", 3, 4, None)]
    );
    assert_eq!(plan.offset("z"), plan.offset("y").map(|offset| offset + 2));
}

#[test]
fn a_weight_of_unknown_size_lies_outside_with_whatever_views_it() {
    let plan = plan(|s| {
        s.weight("w", None)
            .operator(operator("slice", &["w"], [Output::new("v", 4).reads_at("w", 1000)]))
            .operator(operator("a", &["v"], [Output::new("x", 4)]));
    });
    let place = TensorPlace::Supplied { tensor: "w".into(), offset: 1000 };
    assert_eq!(plan.tensor("v").unwrap().place, place);
    assert_eq!(chunks(&plan), [("x", 1, 2, None)]);
}

#[test]
fn inputs_and_weights_may_lie_in_the_pool() {
    let options = LoweringOptions::default().inputs_in_pool(true).weights_in_pool(true);
    let plan = plan_with(
        |s| {
            s.input("x", 8)
                .weight("w", Some(16))
                .operator(operator("a", &["x", "w"], [Output::new("y", 8).overwrites("x")]))
                .operator(operator("b", &["y"], [Output::new("z", 8)]))
                .operator(operator("c", &["z"], [Output::new("u", 8)]));
        },
        options,
    );
    assert_eq!(
        chunks(&plan),
        [
            ("x", 0, 1, None),
            ("w", 0, 3, None),
            ("y", 0, 2, Some("x")),
            ("z", 1, 3, None),
            ("u", 2, 3, None)
        ]
    );
}

/// A variable in the pool that is updated: the new state lives on, the old one does not.
#[test]
fn an_update_takes_over_the_state_of_a_variable_in_the_pool() {
    let options = LoweringOptions::default().weights_in_pool(true);
    let plan = plan_with(
        |s| {
            s.weight("w", Some(16))
                .operator(operator("a", &["w"], [Output::new("g", 16)]))
                .operator(operator("update", &["w", "g"], [Output::new("w2", 16).updates("w", 0)]))
                .operator(operator("b", &[], [Output::new("y", 8)]));
        },
        options,
    );
    assert_eq!(chunks(&plan)[0], ("w", 0, 2, None));
    assert_eq!(chunks(&plan)[2], ("w2", 1, 3, Some("w")));
}

/// A part of a variable cannot be updated in the pool: the rest would be freed.
#[test]
fn a_partial_update_of_a_variable_in_the_pool_is_refused() {
    let mut sequence = OpSequence::builder();
    sequence.weight("w", Some(16)).operator(operator(
        "update",
        &["w"],
        [Output::new("w2", 8).updates("w", 0)],
    ));
    let options = LoweringOptions::default().weights_in_pool(true);
    let error = memplan::lower::lower(&sequence.build().unwrap(), options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "operator 'update': 'w2' must overwrite 'w', but that chunk must be kept to the end"
    );
}

/// x 48, then an operator `add` with `inputs` that are x or views of it, and an output y.
fn add(inputs: &'static [(&str, u64, u64)], y: Output) -> impl FnOnce(&mut SequenceBuilder) {
    move |s| {
        let views = inputs.iter().filter(|(name, ..)| *name != "x");
        let views =
            views.map(|&(name, low, high)| Output::new(name, high - low).reads_at("x", low));
        let names: Vec<&str> = inputs.iter().map(|(name, ..)| *name).collect();
        s.operator(operator("p", &[], [Output::new("x", 48)]))
            .operator(operator("split", &["x"], views))
            .operator(operator("add", &names, [y]));
    }
}

/// Rule d, a regression test: `add(x[0:32], x[16:48])` over the second view destroyed the first
/// while it was read.
#[rstest]
#[case::a_part_of_another_input(&[("v", 0, 32), ("w", 16, 48)], Output::new("y", 32).overwrites("w"), None)]
#[case::the_whole_of_another_input(&[("x", 0, 48), ("w", 0, 4)], Output::new("y", 48).overwrites("x"), None)]
#[case::more_than_the_input(&[("v", 0, 8), ("w", 4, 40)], Output::new("y", 16).overwrites("v"), None)]
#[case::the_same_bytes(&[("v", 0, 32), ("w", 0, 32)], Output::new("y", 32).overwrites("w"), Some(0))]
#[case::the_same_tensor(&[("x", 0, 48), ("x", 0, 48)], Output::new("y", 48).overwrites("x"), Some(0))]
#[case::the_same_bytes_and_others(&[("v", 0, 32), ("w", 0, 32), ("u", 31, 33)],
    Output::new("y", 32).overwrites("w"), None)]
#[case::some_of_the_same_bytes(&[("v", 0, 32), ("w", 0, 32)], Output::new("y", 31).overwrites("w"), None)]
#[case::other_bytes(&[("v", 0, 16), ("w", 16, 48)], Output::new("y", 32).overwrites("w"), Some(16))]
#[case::a_part_that_no_other_input_has(&[("v", 0, 16), ("x", 0, 48)], Output::new("y", 32).overwrites_at("x", 16), Some(16))]
#[case::the_first_that_nobody_else_reads(&[("v", 0, 24), ("w", 16, 48), ("u", 16, 24)],
    Output::new("y", 8).overwrites_at("v", 16).overwrites_at("w", 16), Some(32))]
fn an_input_that_another_input_shares_is_not_overwritten(
    #[case] inputs: &'static [(&str, u64, u64)],
    #[case] y: Output,
    #[case] offset: Option<u64>,
) {
    let plan = plan(add(inputs, y));
    assert_eq!(plan.chunks()[1].overwrites, offset.map(|offset| PlannedLink::new(0, offset)));
}

/// Views that are chunks of their own share nothing.
#[test]
fn without_views_an_input_shares_no_bytes_with_another() {
    let declare = add(&[("v", 0, 32), ("w", 16, 48)], Output::new("y", 32).overwrites("w"));
    let plan = plan_with(declare, LoweringOptions::default().views(false));
    assert_eq!(chunks(&plan)[3], ("y", 2, 3, Some("w")));
}

/// A view that an operator outputs is whole when the operator ends, even if it is never read.
#[rstest]
#[case::over_the_view(0, None)]
#[case::beside_the_view(4, Some(PlannedLink::new(0, 4)))]
fn a_view_that_the_operator_outputs_is_not_overwritten(
    #[case] at: u64,
    #[case] overwrites: Option<PlannedLink>,
) {
    let plan = plan(|s| {
        let outputs = [Output::new("v", 4).reads("x"), Output::new("y", 4).overwrites_at("x", at)];
        s.operator(operator("a", &[], [Output::new("x", 8)])).operator(operator(
            "b",
            &["x"],
            outputs,
        ));
    });
    assert_eq!(plan.chunks()[1].overwrites, overwrites);
}

fn refusal(declare: impl FnOnce(&mut SequenceBuilder)) -> String {
    let mut sequence = OpSequence::builder();
    declare(&mut sequence);
    let sequence = sequence.build().unwrap();
    memplan::lower::lower(&sequence, LoweringOptions::default()).unwrap_err().to_string()
}

#[rstest]
#[case::in_the_pool(|s: &mut SequenceBuilder| {
    s.operator(operator("p", &[], [Output::new("x", 48)]))
        .operator(operator("low", &["x"], [Output::new("v", 32).reads("x").required()]))
        .operator(operator("high", &["x"], [Output::new("w", 32).reads_at("x", 16)]))
        .operator(operator("add", &["v", "w"], [Output::new("y", 32).updates("w", 0)]));
}, "operator 'add': 'y' must overwrite 'w', but the operator also uses 'v', which shares some of those bytes")]
#[case::outside(|s: &mut SequenceBuilder| {
    s.weight("state", None)
        .operator(operator("split", &["state"], [Output::new("v", 8).reads_at("state", 4).required()]))
        .operator(operator("step", &["state", "v"], [Output::new("new", 8).updates("state", 0)]));
}, "operator 'step': 'new' must overwrite 'state', but the operator also uses 'v', which shares some of those bytes")]
#[case::a_view_put_out(|s: &mut SequenceBuilder| {
    let outputs = [Output::new("old", 8).reads("state").required(), Output::new("new", 8).updates("state", 0)];
    s.weight("state", Some(8)).operator(operator("step", &["state"], outputs));
}, "operator 'step': 'new' must overwrite 'state', but the operator also uses 'old', which shares some of those bytes")]
#[case::a_later_reader(|s: &mut SequenceBuilder| {
    s.weight("kv", Some(16))
        .operator(operator("u1", &["kv"], [Output::new("a", 8).updates("kv", 0)]))
        .operator(operator("u2", &["kv"], [Output::new("b", 8).updates("kv", 8)]));
}, "operator 'u1': 'a' must overwrite 'kv', but a later operator reads that chunk; update it after that operator, or let that operator read a copy")]
fn a_required_overwrite_of_a_tensor_that_is_still_read_is_an_error(
    #[case] declare: fn(&mut SequenceBuilder),
    #[case] message: &str,
) {
    assert_eq!(refusal(declare), message);
}

/// An update of zero bytes writes nothing. It was once rejected because one of the two has no
/// bytes.
#[rstest]
#[case::of_a_variable_without_bytes(0, LoweringOptions::default())]
#[case::of_nothing_in_a_variable(16, LoweringOptions::default())]
#[case::in_the_pool(16, LoweringOptions::default().weights_in_pool(true))]
fn a_required_update_of_zero_bytes_is_accepted(
    #[case] size: u64,
    #[case] options: LoweringOptions,
) {
    let plan = plan_with(
        |s| {
            s.weight("kv", Some(size))
                .operator(operator("append", &["kv"], [Output::new("kv2", 0).updates("kv", 0)]))
                .output("kv2");
        },
        options,
    );
    assert_eq!(plan.tensor("kv2").unwrap().place, TensorPlace::Nowhere);
}

/// In a problem, an overwriter without bytes writes nothing either.
#[test]
fn a_required_overwriter_without_bytes_is_accepted() {
    let mut problem = memplan::Problem::builder();
    let (old, new) = (problem.chunk(0..2, 8), problem.chunk(1..3, 0));
    problem.request(memplan::problem::Request::new(new, old, 4).required(true));
    let problem = problem.build().unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    assert_eq!(memplan::verify::verify(&problem, &plan), []);
}
