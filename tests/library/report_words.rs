//! Summaries, explanations and text maps of very small, very large and unusual plans.

use std::collections::BTreeSet;

use memplan::{
    OpSequence, Operator, Output, Plan, Planner, Problem, Strategy,
    report::{MapOptions, explain, memory_map, summary},
};
use rstest::rstest;

fn plan(problem: &Problem) -> Plan {
    Planner::new().strategy(Strategy::Pushdown).plan(problem).unwrap()
}

#[test]
fn one_takes_the_singular() {
    let mut problem = Problem::builder();
    problem.chunk(0..1, 8);
    let plan = plan(&problem.build().unwrap());
    let words = summary(&plan, None, "chunks as given");
    assert!(words.contains("\n1 chunk, 1 step; strategy"), "{words}");
    let words = explain(&plan, None);
    assert!(words.contains("8 B, in 1 chunk:\n"), "{words}");
}

#[test]
fn an_empty_problem_has_no_live_bytes() {
    let plan = plan(&Problem::builder().build().unwrap());
    let words = summary(&plan, None, "chunks as given");
    assert!(words.contains("nothing is ever alive") && !words.contains("at step"), "{words}");
    assert!(explain(&plan, None).starts_with("Nothing is ever alive.\n"));
}

#[test]
fn a_pool_larger_than_one_buffer_each_takes_more() {
    let mut problem = Problem::builder();
    problem.named_chunk("a", 0..1, 8);
    let mut plan = plan(&problem.build().unwrap());
    *plan.pool_size_mut() = 16;
    let words = summary(&plan, None, "chunks as given");
    assert!(words.contains("the pool takes 100.0 % more"), "{words}");
}

/// Only one branch runs, but each has buffers of its own unless they share.
#[test]
fn each_branch_of_a_condition_counts_as_unshared() {
    let branch = |size| {
        let make = Operator::new("make").output(Output::new("s", size));
        let end = Operator::new("end").inputs(["s"]).output(Output::new("t", 64));
        OpSequence::builder().operator(make).operator(end).output("t").build().unwrap()
    };
    let condition = Operator::new("if").output(Output::new("y", 64));
    let condition = condition.body(branch(512)).body(branch(1024));
    let sequence = OpSequence::builder().operator(condition).output("y").build().unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    // The result, and two buffers of each branch.
    let words = summary(&plan, Some(&sequence), "as declared");
    assert!(words.contains("unshared  1.69 KiB (1 728 B)"), "{words}");
    let compared = Planner::new().compare(&sequence).unwrap();
    assert_eq!((plan.unshared_size(), compared.unshared_size), (1728, 1728));
}

/// The body has a chain of three buffers, for which one buffer each takes more than the best pool.
#[test]
fn each_strategy_that_is_compared_plans_the_bodies() {
    let make = |name: &str, inputs: &[&str], output: Output| {
        Operator::new(name).inputs(inputs.iter().copied()).output(output)
    };
    let body = OpSequence::builder()
        .operator(make("a", &[], Output::new("t", 16)))
        .operator(make("b", &["t"], Output::new("u", 8)))
        .operator(make("c", &["u"], Output::new("r", 16)))
        .output("r")
        .build()
        .unwrap();
    let condition = Operator::new("if").output(Output::new("y", 16)).body(body);
    let sequence = OpSequence::builder().operator(condition).output("y").build().unwrap();
    let compared = Planner::new().compare(&sequence).unwrap();
    let pool = |strategy| Planner::new().strategy(strategy).plan(&sequence).map(|p| p.pool_size());
    for (strategy, row) in &compared.rows {
        assert_eq!(row.map(|one| one.pool_size).ok(), pool(*strategy).ok(), "{strategy}");
    }
    assert!(pool(Strategy::Naive).unwrap() > pool(Strategy::Best).unwrap());
}

/// Most strategies cannot put a tensor inside another one, wherever that is required.
#[rstest]
#[case::in_the_sequence(0)]
#[case::in_a_body(1)]
#[case::in_a_body_of_a_body(2)]
fn a_strategy_that_cannot_plan_a_body_is_not_known(#[case] depth: usize) {
    let mut sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("t", 16)))
        .operator(Operator::new("cat").inputs(["t"]).output(Output::new("y", 24).holds("t", 8)))
        .output("y")
        .build()
        .unwrap();
    for _ in 0..depth {
        let call = Operator::new("if").output(Output::new("y", 24)).body(sequence);
        sequence = OpSequence::builder().operator(call).output("y").build().unwrap();
    }
    let compared = Planner::new().compare(&sequence).unwrap();
    let row = |of| compared.rows.iter().find(|(strategy, _)| *strategy == of).unwrap().1;
    assert_eq!(row(Strategy::Pushdown).err(), Some("not known"));
    assert_eq!(row(Strategy::Best).map(|one| one.pool_size), Ok(24 * (1 + depth as u64)));
}

/// With two steps in a column, each cell would stand for two chunks.
#[test]
fn a_crowded_map_shows_the_steps_around_the_peak() {
    let mut problem = Problem::builder();
    for step in 0..300 {
        problem.chunk(step..step + 1, if step == 200 { 10 } else { 5 });
    }
    let plan = plan(&problem.build().unwrap());
    let map = memory_map(&plan, None, MapOptions::default());
    let (title, rest) = map.split_once('\n').unwrap();
    assert_eq!(title, "pool 10 B (1.000 x peak); steps 170..230 of 300, around the peak");
    let cells = || rest.lines().filter_map(|line| line.split_once(" |"));
    assert!(cells().count() == 2 && cells().all(|(_, cells)| !cells.contains('*')), "{map}");
}

#[test]
fn a_map_states_the_pool_and_the_bound() {
    let mut problem = Problem::builder();
    problem.chunk(0..1, 1024);
    let plan = plan(&problem.build().unwrap());
    let map = memory_map(&plan, None, MapOptions::default());
    assert!(map.starts_with("pool 1.00 KiB (1.000 x peak)\n"));
}

/// A plan from a file may be wrong, and is drawn to see where.
#[test]
fn a_map_leaves_out_what_lies_beyond_the_last_step() {
    let mut problem = Problem::builder();
    problem.chunk(0..2, 64);
    problem.chunk(1..2, 64);
    let mut plan = plan(&problem.build().unwrap());
    let drawn = |plan: &Plan| memory_map(plan, None, MapOptions::default());
    let cells = |map: &str| map.matches('b').count();
    let before = cells(&drawn(&plan));
    (plan.chunks_mut()[1].begin, plan.chunks_mut()[1].end) = (u64::MAX - 1, u64::MAX);
    assert!(cells(&drawn(&plan)) < before);
}

/// Letters of the legend, in order.
fn legend(map: &str) -> Vec<char> {
    let (_, legend) = map.split_once("at the peak").unwrap();
    let named = legend.lines().skip(1).filter_map(|line| line.strip_prefix("  "));
    named
        .filter(|line| line.as_bytes()[1] == b' ')
        .map(|line| line.chars().next().unwrap())
        .collect()
}

/// Each letter of the legend stands for one chunk alive at the peak, however many chunks there are.
#[test]
fn a_letter_of_the_legend_names_one_chunk() {
    for alive in [30, 52, 53, 200] {
        let mut problem = Problem::builder();
        // Every 52nd chunk is alive at the peak; all of them would have the same letter. The rest follow.
        for at in 0..52 * alive.min(20) {
            let step = u64::from(at % 52 == 0);
            problem.chunk(step..step + 1, if step == 1 { 1000 } else { 1 });
        }
        for at in 0..alive - alive.min(20) {
            problem.chunk(1..2, 100 + at);
        }
        let plan = plan(&problem.build().unwrap());
        // A line for each chunk and more than that, so that every chunk has cells of its own.
        let options = MapOptions::default().width(80).height(100_000);
        let map = memory_map(&plan, None, options);
        let letters = legend(&map);
        assert_eq!(letters.len(), 26, "{alive}");
        assert_eq!(letters.iter().collect::<BTreeSet<_>>().len(), 26, "{alive}: {letters:?}");
        assert!(map.ends_with("  letters repeat, but not among these in that step\n"));
        // The runs of each named letter in the peak's column are one.
        let column: Vec<char> =
            map.lines().filter_map(|line| line.split_once(" |")?.1.chars().nth(6)).collect();
        for letter in letters {
            let mut runs: Vec<bool> = column.iter().map(|&cell| cell == letter).collect();
            runs.dedup();
            assert_eq!(runs.iter().filter(|&&run| run).count(), 1, "{alive}: {letter}");
        }
    }
}
