//! The operators that must run before others, and a sequence in another order.

use memplan::{OpSequence, Operator, Output, Planner, SequenceError, sequence::SequenceBuilder};
use rstest::rstest;

fn build(declare: fn(&mut SequenceBuilder)) -> Result<OpSequence, SequenceError> {
    let mut sequence = OpSequence::builder();
    declare(&mut sequence);
    sequence.build()
}

fn operator(name: &str, inputs: &[&str]) -> Operator {
    Operator::new(name).inputs(inputs.iter().copied()).output(Output::new(format!("{name}.y"), 8))
}

#[rstest]
#[case::data(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[])).operator(operator("b", &["a.y", "a.y"])); },
    vec![vec![], vec![0]])]
#[case::declared(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[])).operator(operator("b", &[]).after("a").after_place(0)); },
    vec![vec![], vec![0]])]
#[case::update_after_readers_of_the_old_value(
    |s: &mut SequenceBuilder| {
        s.weight("w", Some(8)).operator(operator("read", &["w"])).operator(operator("other", &[]));
        s.operator(Operator::new("update").inputs(["w"]).output(Output::new("w1", 8).updates("w", 0)));
        s.operator(operator("new", &["w1"]));
    },
    vec![vec![], vec![], vec![0], vec![2]])]
#[case::update_after_readers_through_views(
    |s: &mut SequenceBuilder| {
        s.weight("w", Some(8));
        s.operator(Operator::new("t").inputs(["w"]).output(Output::new("v", 8).reads("w")));
        s.operator(Operator::new("slice").inputs(["v"]).output(Output::new("u", 4).reads_at("v", 4)));
        s.operator(operator("read", &["u"]));
        s.operator(Operator::new("update").inputs(["w"]).output(Output::new("w1", 8).updates("w", 0)));
    },
    vec![vec![], vec![0], vec![1], vec![0, 1, 2]])]
fn predecessors_are(#[case] declare: fn(&mut SequenceBuilder), #[case] expected: Vec<Vec<usize>>) {
    assert_eq!(build(declare).unwrap().predecessors(), expected);
}

#[rstest]
#[case::unknown_name(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[]).after("z")); },
    "operator 'a' must run after operator 'z', which does not exist")]
#[case::unknown_place(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[]).after_place(1)); },
    "operator 'a' must run after operator 1, which does not exist")]
#[case::ambiguous(
    |s: &mut SequenceBuilder| { s.operator(Operator::new("a")).operator(Operator::new("a")).operator(operator("b", &[]).after("a")); },
    "operator 'b' must run after 'a', but several operators have that name; give its place in the list instead")]
#[case::cycle(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[]).after("b")).operator(operator("b", &["a.y"])); },
    "the operators form a cycle: b -> a")]
#[case::itself(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[]).after("a")); },
    "the operators form a cycle: a")]
fn control_edges_are_checked(#[case] declare: fn(&mut SequenceBuilder), #[case] expected: &str) {
    assert_eq!(build(declare).unwrap_err().to_string(), expected);
}

#[test]
fn a_list_is_sorted_by_control_edges() {
    let sequence = build(|s| {
        s.operator(operator("a", &[]).after("c")).operator(operator("b", &[]).after_place(0));
        s.operator(operator("c", &[]));
    });
    let sequence = sequence.unwrap();
    let names: Vec<String> = (0..3).map(|step| sequence.operator_name(step)).collect();
    assert_eq!(names, ["c", "a", "b"]);
    assert_eq!(sequence.operators()[2].after, [1]);
}

#[test]
fn a_permuted_sequence_is_the_one_built_in_that_order() {
    let mut operators = vec![
        operator("a", &["x"]),
        operator("b", &["w", "x"]),
        operator("c", &["a.y", "v"]).after("b"),
    ];
    let sequence = |operators: &[Operator]| {
        let mut sequence = OpSequence::builder();
        sequence.input("x", 8).weight("w", Some(4)).weight("v", None).undeclared_are_weights();
        for operator in operators {
            sequence.operator(operator.clone());
        }
        sequence.output("c.y").output("b.y").build().unwrap()
    };
    let given = sequence(&operators);
    operators.swap(0, 1);
    assert_eq!(given.permuted(&[1, 0, 2]).unwrap(), sequence(&operators));
    assert_eq!(given.permuted(&[0, 1, 2]).unwrap(), given);
}

#[rstest]
#[case::missing(&[0], "an order must contain each step below 2 exactly once")]
#[case::repeated(&[0, 0], "an order must contain each step below 2 exactly once")]
#[case::unknown(&[0, 2], "an order must contain each step below 2 exactly once")]
#[case::too_early(&[1, 0], "operator 'b' would run before 'a', which must come first")]
fn wrong_orders_are_refused(#[case] order: &[usize], #[case] expected: &str) {
    let sequence = build(|s| {
        s.operator(operator("a", &[])).operator(operator("b", &["a.y"]));
    });
    assert_eq!(sequence.unwrap().permuted(order).unwrap_err().to_string(), expected);
}

#[test]
fn control_edges_survive_a_file() {
    let sequence = build(|s| {
        s.operator(operator("a", &[])).operator(Operator::new("")).operator(Operator::new("a"));
        s.operator(operator("d", &[]).after_place(0).after_place(1).after_place(2));
        s.operator(operator("e", &[]).after("d"));
    })
    .unwrap();
    let text = serde_json::to_string(&sequence).unwrap();
    assert!(text.contains(r#""after":[0,1,2]"#) && text.contains(r#""after":["d"]"#), "{text}");
    assert_eq!(serde_json::from_str::<OpSequence>(&text).unwrap(), sequence);
    let wrong = text.replace(r#"["d"]"#, "[true]");
    let error = serde_json::from_str::<OpSequence>(&wrong).unwrap_err().to_string();
    assert!(error.contains("the name of an operator, or its place in the list from 0"), "{error}");
}

#[test]
fn an_update_is_planned_after_the_readers_of_the_old_value() {
    let sequence = build(|s| {
        s.weight("w", Some(8)).operator(operator("read", &["w"]));
        s.operator(
            Operator::new("update").inputs(["w"]).output(Output::new("w1", 8).updates("w", 0)),
        );
    })
    .unwrap();
    assert!(Planner::new().plan(&sequence).is_ok());
    assert!(sequence.permuted(&[1, 0]).is_err());
}
