//! `PlanMemory` on small graphs.

use crate::common::{graphs::wrong_read, problems::layout};
use memplan::{
    Planner, Problem, Strategy,
    baselines::nnvm::{
        Graph, GraphError, InPlace, MemoryPlan, Node, NodeEntry, NodeKind, PlanOptions, Tensor,
        assign, plan,
    },
};
use rstest::rstest;

fn node(kind: NodeKind, inputs: &[usize], elements: &[u64]) -> Node {
    let tensor = |&elements| Tensor { elements, bytes: 2 * elements, ..Tensor::default() };
    Node {
        inputs: inputs.iter().map(|&node| NodeEntry { node, output: 0 }).collect(),
        outputs: elements.iter().map(tensor).collect(),
        ..Node::new(kind)
    }
}

fn variable(elements: u64) -> Node {
    node(NodeKind::Variable, &[], &[elements])
}

fn operator(inputs: &[usize], elements: &[u64]) -> Node {
    node(NodeKind::Operator, inputs, elements)
}

fn in_place(node: Node, identity: bool) -> Node {
    Node { in_place: vec![InPlace { input: 0, output: 0, identity }], ..node }
}

/// A graph with the first outputs of some nodes as outputs.
fn graph(nodes: Vec<Node>, outputs: &[usize]) -> Graph {
    let outputs = outputs.iter().map(|&node| NodeEntry { node, output: 0 }).collect();
    Graph::new(nodes, outputs).unwrap()
}

fn storages(plan: &MemoryPlan) -> Vec<Option<usize>> {
    plan.entries.iter().map(|entries| entries[0].storage).collect()
}

fn with_range(match_range: u64) -> PlanOptions {
    PlanOptions::default().match_range(match_range)
}

/// Storages of 10, 4 and 30 elements are free when 8 are requested.
#[rstest]
#[case::the_least_that_is_large_enough(16, Some(0), 88)]
#[case::the_largest_within_the_range(1, None, 104)]
#[case::no_reuse_at_all(0, None, 104)]
fn a_free_storage_of_about_the_size_is_reused(
    #[case] range: u64,
    #[case] reused: Option<usize>,
    #[case] total: u64,
) {
    let nodes = vec![
        variable(1),
        operator(&[0], &[10]),
        operator(&[0], &[4]),
        operator(&[0], &[30]),
        operator(&[1, 2, 3], &[0]),
        operator(&[4], &[8]),
    ];
    let answer = plan(&graph(nodes, &[5]), &with_range(range));
    let storage = storages(&answer)[5].unwrap();
    assert_eq!((Some(storage).filter(|&s| s < 3), answer.total()), (reused, total));
}

#[test]
fn a_storage_that_is_too_small_grows() {
    let nodes =
        vec![variable(1), operator(&[0], &[10]), operator(&[1], &[0]), operator(&[2], &[12])];
    let answer = plan(&graph(nodes, &[3]), &PlanOptions::default());
    assert_eq!(storages(&answer), [None, Some(0), Some(1), Some(0)]);
    assert_eq!(answer.storages, [24, 0]);
}

#[test]
fn auto_search_keeps_the_first_of_the_smallest_totals() {
    // With any range above 1, the small one takes the large storage, and the large one has none.
    let nodes = vec![
        variable(1),
        operator(&[0], &[100]),
        operator(&[1], &[0]),
        operator(&[2], &[50]),
        operator(&[2, 3], &[100]),
    ];
    let graph = graph(nodes, &[3, 4]);
    let total = |options| plan(&graph, &options).total();
    assert_eq!((total(with_range(1)), total(with_range(16))), (300, 400));
    assert_eq!(total(PlanOptions::default().auto_search(true)), 300);
}

#[test]
fn storages_are_not_shared_between_devices() {
    let elsewhere = Node { device: 1, ..operator(&[2], &[10]) };
    let nodes = vec![variable(1), operator(&[0], &[10]), operator(&[1], &[0]), elsewhere];
    let answer = plan(&graph(nodes, &[3]), &PlanOptions::default());
    assert_eq!(storages(&answer), [None, Some(0), Some(1), Some(2)]);
}

#[test]
fn with_colours_storages_are_reused_along_paths_only() {
    // Two branches. Without colours, the second would take the storage that the first has released.
    let nodes = vec![
        variable(1),
        operator(&[0], &[10]),
        operator(&[1], &[10]),
        operator(&[2], &[10]),
        operator(&[0], &[10]),
        operator(&[3, 4], &[1]),
    ];
    let graph = graph(nodes, &[5]);
    let sequential = plan(&graph, &PlanOptions::default());
    assert_eq!(storages(&sequential)[4], Some(1));
    let parallel = plan(&graph, &PlanOptions::default().colours(2));
    assert_eq!(storages(&parallel)[..5], [None, Some(0), Some(1), Some(0), Some(2)]);
}

#[test]
fn external_entries_are_not_planned_and_dead_ones_are_free_at_once() {
    let mut given = operator(&[0], &[10]);
    given.outputs[0].external = true;
    let mut two = operator(&[1], &[10, 10]);
    two.in_place = vec![InPlace { input: 0, output: 0, identity: false }];
    let nodes = vec![variable(1), given, two, operator(&[2], &[10])];
    let answer = plan(&graph(nodes, &[3]), &PlanOptions::default());
    assert_eq!(answer.entries[1][0].storage, None);
    // Nothing is taken from an external entry; of equal sizes the later output requests first.
    let [read, dead] = answer.entries[2][..] else { panic!() };
    assert_eq!((read.storage, read.taken_from, dead.storage), (Some(1), None, Some(0)));
    assert!(dead.dead && !read.dead);
    assert_eq!(answer.entries[3][0].storage, dead.storage);
}

/// x -> reshape -> reshape -> in place, and x is read once more at the end.
#[rstest]
#[case::read_later(true, [None, Some(0), Some(0), Some(0), Some(1)])]
#[case::read_no_more(false, [None, Some(0), Some(0), Some(0), Some(0)])]
fn working_in_place_behind_two_views_spares_later_readers(
    #[case] read_later: bool,
    #[case] expected: [Option<usize>; 5],
) {
    let mut nodes = vec![
        variable(8),
        operator(&[0], &[8]),
        in_place(operator(&[1], &[8]), true),
        in_place(operator(&[2], &[8]), true),
        in_place(operator(&[3], &[8]), false),
        operator(&[4], &[1]),
    ];
    if read_later {
        nodes[5].inputs.push(NodeEntry { node: 1, output: 0 });
    }
    let graph = graph(nodes, &[5]);
    let answer = plan(&graph, &PlanOptions::default());
    assert_eq!(storages(&answer)[..5], expected);
    assert_eq!(wrong_read(&graph, &answer), None);
}

/// An operator that needs only the shape of x is declared to work in place on it, but x is read
/// once more. The original overwrites it.
#[test]
fn inputs_that_are_not_read_are_not_written() {
    let shape = Node { ignored_inputs: vec![0], ..in_place(operator(&[1, 0], &[8]), false) };
    let nodes = vec![variable(8), operator(&[0], &[8]), shape, operator(&[2, 1], &[1])];
    let graph = graph(nodes, &[3]);
    assert_eq!(wrong_read(&graph, &plan(&graph, &PlanOptions::default())), None);
    let original = PlanOptions::default().take_ignored_inputs(true);
    let lost = NodeEntry { node: 1, output: 0 };
    assert_eq!(wrong_read(&graph, &plan(&graph, &original)), Some((lost, Some(3))));
}

/// weight, gradient, weight - gradient, assign.
fn update(difference: Node) -> Vec<Node> {
    vec![variable(8), operator(&[0], &[8]), difference, node(NodeKind::Assign, &[0, 2], &[8])]
}

fn assigned(nodes: Vec<Node>, outputs: &[usize]) -> (Vec<Option<usize>>, Vec<usize>) {
    let graph = graph(nodes, outputs);
    let answer = assign(&graph, plan(&graph, &PlanOptions::default()));
    (storages(&answer.plan), answer.no_ops)
}

#[rstest]
#[case::computed_right_into_the_variable(NodeKind::Broadcast, Some(2), vec![3])]
#[case::copied_from_any_other_operator(NodeKind::Operator, Some(1), vec![])]
fn an_assign_has_the_storage_of_its_variable(
    #[case] kind: NodeKind,
    #[case] difference: Option<usize>,
    #[case] no_ops: Vec<usize>,
) {
    let (storages, done) = assigned(update(node(kind, &[0, 1], &[8])), &[3]);
    // At most two planned storages, then that of the variable.
    let variable = storages[0];
    assert_eq!(storages[3], variable);
    assert_eq!(storages[2] == variable, !no_ops.is_empty());
    assert_eq!((storages[2], done), (difference, no_ops));
}

#[test]
fn without_assigns_only_variables_gain_a_storage() {
    let (storages, no_ops) = assigned(vec![variable(4), operator(&[0], &[4])], &[1]);
    assert_eq!((storages, no_ops), (vec![Some(1), Some(0)], vec![]));
}

#[rstest]
#[case::the_value_is_read_twice(vec![operator(&[2], &[1])])]
#[case::the_variable_is_read_later(vec![operator(&[0], &[1])])]
fn an_assign_copies_if_others_would_notice(#[case] more: Vec<Node>) {
    let mut nodes = update(node(NodeKind::Broadcast, &[0, 1], &[8]));
    nodes.extend(more);
    // The difference comes first, then the other reader, then the assign.
    let (storages, no_ops) = assigned(nodes, &[2, 4, 3]);
    assert_ne!(storages[2], storages[0]);
    assert!(no_ops.is_empty());
}

#[test]
fn an_assign_of_a_view_copies() {
    let view = in_place(node(NodeKind::Broadcast, &[1], &[8]), true);
    let (storages, no_ops) = assigned(update(view), &[3]);
    assert_eq!((storages[2], no_ops), (storages[1], vec![]));
}

#[rstest]
#[case::an_unknown_input(vec![operator(&[3], &[1])], 0, GraphError::UnknownEntry { node: 3, output: 0 })]
#[case::an_unknown_output(vec![], 0, GraphError::UnknownEntry { node: 0, output: 0 })]
#[case::a_cycle(
    vec![operator(&[1], &[1]), operator(&[0], &[1])], 0, GraphError::Cycle { node: 0 }
)]
#[case::in_place_without_inputs(
    vec![in_place(operator(&[], &[1]), false)], 0, GraphError::Operands { node: 0 }
)]
#[case::an_assign_to_no_variable(
    vec![operator(&[], &[1]), node(NodeKind::Assign, &[0, 0], &[1])], 1, GraphError::Assign { node: 1 }
)]
#[case::too_many_bytes(
    vec![variable(u64::MAX / 4), variable(u64::MAX / 4), variable(2)], 0, GraphError::SizeOverflow { node: 2 }
)]
fn wrong_graphs_are_refused(
    #[case] nodes: Vec<Node>,
    #[case] output: usize,
    #[case] error: GraphError,
) {
    assert_eq!(Graph::new(nodes, vec![NodeEntry { node: output, output: 0 }]), Err(error));
}

#[test]
fn a_problem_is_planned_chain_by_chain_in_real_bytes() {
    let mut problem = Problem::builder();
    problem.chunk(0..2, 10);
    problem.chunk(1..3, 20);
    problem.chunk(2..4, 12);
    problem.chunk(3..5, 1);
    let problem = problem.build().unwrap();
    let layout = layout(Strategy::Nnvm, &problem);
    assert_eq!(layout.objects, [12, 20, 1]);
    assert_eq!(layout.object_of, [Some(0), Some(1), Some(0), Some(2)]);
    let plan = Planner::new().strategy(Strategy::Nnvm).plan(&problem).unwrap();
    assert_eq!(plan.pool_size(), 33);
}
