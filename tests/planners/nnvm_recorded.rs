//! `PlanMemory` answers as the original does, to the last storage.

use crate::common::{golden, graphs::wrong_read, index, indices, number, numbers};
use memplan::baselines::nnvm::{
    Graph, InPlace, Node, NodeEntry, NodeKind, PlanOptions, Tensor, plan,
};
use serde_json::Value;

fn entry(value: &Value) -> NodeEntry {
    NodeEntry { node: index(&value[0]), output: index(&value[1]) }
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().unwrap().iter().map(item).collect()
}

fn node(value: &Value) -> Node {
    let variable = value["kind"] == "var";
    let identity = numbers(&value["identity"]);
    let in_place = list(&value["inplace"], |pair| (index(&pair[0]), index(&pair[1])));
    let tensor = |shape: &Value| {
        let elements = numbers(shape).iter().product();
        Tensor { elements, bytes: 4 * elements, ..Tensor::default() }
    };
    Node {
        inputs: list(&value["inputs"], entry),
        outputs: list(&value["shapes"], tensor),
        in_place: in_place
            .into_iter()
            .zip(identity)
            .map(|((input, output), identity)| InPlace { input, output, identity: identity != 0 })
            .collect(),
        ignored_inputs: indices(&value["ignore"]),
        ..Node::new(if variable { NodeKind::Variable } else { NodeKind::Operator })
    }
}

fn options(env: &Value) -> PlanOptions {
    let number = |name: &str| env[name].as_str().map(|text| text.parse::<u64>().unwrap());
    let default = PlanOptions::default();
    let match_range = number("NNVM_EXEC_MATCH_RANGE").unwrap_or(default.match_range);
    let colours = number("NNVM_EXEC_NUM_TEMP").map_or(1, |count| usize::try_from(count).unwrap());
    default
        .match_range(match_range)
        .auto_search(number("NNVM_AUTO_SEARCH_MATCH_RANGE") == Some(1))
        .take_ignored_inputs(true)
        .colours(colours)
}

#[test]
fn storages_under_every_setting() {
    let Some(cases) = golden("nnvm.json") else { return };
    assert_eq!(cases.len(), 100);
    for (at, case) in cases.iter().enumerate() {
        let nodes = list(&case["nodes"], node);
        let graph = Graph::new(nodes, list(&case["outputs"], entry)).unwrap();
        let name = |node: usize| case["nodes"][node]["name"].as_str().unwrap();
        for result in case["results"].as_array().unwrap() {
            let what = format!("case {at}, {}", result["env"]);
            let order: Vec<&str> = graph.order().iter().map(|&node| name(node)).collect();
            assert_eq!(
                order,
                list(&result["node_order"], |name| name.as_str().unwrap().to_owned()),
                "{what}"
            );
            let options = options(&result["env"]);
            let plan = plan(&graph, &options);
            let mut entries = Vec::new();
            for &node in graph.order() {
                for (output, entry) in plan.entries[node].iter().enumerate() {
                    let number = |id: Option<usize>| id.map_or(-1, |id| i64::try_from(id).unwrap());
                    let in_place = if entry.dead { -2 } else { number(entry.taken_from) };
                    entries.push(serde_json::json!([
                        name(node),
                        output,
                        number(entry.storage),
                        in_place
                    ]));
                }
            }
            assert_eq!(Value::Array(entries), result["entries"], "{what}: entries");
            assert_eq!(plan.total(), number(&result["total"]), "{what}: total");
            let right = options.clone().take_ignored_inputs(false);
            assert_eq!(wrong_read(&graph, &memplan::baselines::nnvm::plan(&graph, &right)), None);
        }
    }
}
