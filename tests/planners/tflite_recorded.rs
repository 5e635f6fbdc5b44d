//! The planners of TFLite answer as the originals do, to the last id and offset.

use crate::common::{golden, index, indices, number, numbers};
use memplan::baselines::tflite::{
    Objects, ReallocationGraph, Record, RecordSize, Records, cpu_arena, equality,
    greedy_by_breadth, greedy_by_size, greedy_in_order, micro, min_cost_flow, naive,
    offsets_by_size, positional_maxima, shared_objects_bound,
};
use serde_json::Value;

/// The records of a case, with the sizes of one of its columns.
fn records<S: RecordSize>(case: &Value, column: &str, size: impl Fn(&Value) -> S) -> Records<S> {
    let sizes = case[column].as_array().unwrap();
    let lives = numbers(&case["first"]).into_iter().zip(numbers(&case["last"]));
    let record = |(size_value, (first, last))| Record { size: size(size_value), first, last };
    Records::new(sizes.iter().zip(lives).map(record).collect()).unwrap()
}

fn sides<const N: usize>(value: &Value) -> [u32; N] {
    let sides: Vec<u32> = numbers(value).iter().map(|&n| u32::try_from(n).unwrap()).collect();
    sides.try_into().unwrap()
}

fn expect<S: RecordSize + std::fmt::Debug>(
    objects: &Objects<S>,
    recorded: &Value,
    size: impl Fn(&Value) -> S,
    what: &str,
) {
    assert!(!recorded.is_null(), "{what}: not recorded");
    assert_eq!(objects.ids(), indices(&recorded["ids"]), "{what}: ids");
    let sizes: Vec<S> = recorded["sizes"].as_array().unwrap().iter().map(size).collect();
    assert_eq!(objects.sizes(), sizes, "{what}: sizes");
}

#[test]
fn shared_objects_of_plain_sizes() {
    let Some(cases) = golden("tflite_gpu.json") else { return };
    assert_eq!(cases.len(), 75);
    for (at, case) in cases.iter().enumerate() {
        let records = records(case, "sizes", number);
        let graph = case["reallocation_graph"].as_array().unwrap();
        let graph = ReallocationGraph::new(graph.iter().map(indices).collect()).unwrap();
        let answers = [
            ("NAIVE", naive::objects(&records)),
            ("EQUALITY", equality::objects(&records)),
            ("GREEDY_IN_ORDER", greedy_in_order::objects(&records)),
            ("GREEDY_BY_BREADTH", greedy_by_breadth::objects(&records)),
            ("GREEDY_BY_SIZE", greedy_by_size::objects(&records)),
            ("GREEDY_BEST", greedy_by_size::best_objects(&records)),
            ("MINCOSTFLOW", min_cost_flow::objects(&records)),
            (
                "GREEDY_IN_ORDER+realloc",
                greedy_in_order::objects_in_parallel(&records, &graph).unwrap(),
            ),
        ];
        for (strategy, objects) in answers {
            let what = format!("case {at}, {strategy}");
            expect(&objects, &case["objects"][strategy], number, &what);
            assert!(objects.total() >= shared_objects_bound(&records), "{what}: bound");
        }
    }
}

#[test]
fn shared_textures_of_two_and_three_dimensions() {
    let Some(cases) = golden("tflite_gpu.json") else { return };
    for (at, case) in cases.iter().enumerate() {
        let recorded = |strategy| &case["objects"][strategy];
        let flat = records(case, "uint2", sides::<2>);
        let deep = records(case, "uint3", sides::<3>);
        let what = |strategy| format!("case {at}, {strategy}");
        let strategy = "EQUALITY.uint2";
        expect(&equality::texture_objects(&flat), recorded(strategy), sides, &what(strategy));
        let strategy = "EQUALITY.uint3";
        expect(&equality::texture_objects(&deep), recorded(strategy), sides, &what(strategy));
        let strategy = "GREEDY_IN_ORDER.uint2";
        expect(
            &greedy_in_order::texture_objects(&flat),
            recorded(strategy),
            sides,
            &what(strategy),
        );
        let strategy = "GREEDY_IN_ORDER.uint3";
        expect(
            &greedy_in_order::texture_objects(&deep),
            recorded(strategy),
            sides,
            &what(strategy),
        );
    }
}

#[test]
fn reallocation_graphs_and_positional_maxima() {
    let Some(cases) = golden("tflite_gpu.json") else { return };
    for (at, case) in cases.iter().enumerate() {
        let lists = |name: &str| -> Vec<Vec<usize>> {
            case[name].as_array().unwrap().iter().map(indices).collect()
        };
        let graph = ReallocationGraph::from_dependencies(&lists("deps_graph")).unwrap();
        assert_eq!(graph.neighbours(), lists("reallocation_graph"), "case {at}");
        let maxima = positional_maxima(&records(case, "sizes", number));
        assert_eq!(maxima, numbers(&case["positional_max"]), "case {at}");
    }
}

#[test]
fn offsets_at_every_alignment() {
    let Some(cases) = golden("tflite_gpu.json") else { return };
    for (at, case) in cases.iter().enumerate() {
        let records = records(case, "sizes", number);
        for (alignment, recorded) in case["offsets_greedy_by_size"].as_object().unwrap() {
            let offsets = offsets_by_size::offsets(&records, alignment.parse().unwrap()).unwrap();
            let what = format!("case {at}, alignment {alignment}");
            assert_eq!(offsets.offsets, numbers(&recorded["offsets"]), "{what}");
            assert_eq!(offsets.total, number(&recorded["total"]), "{what}");
        }
    }
}

#[test]
fn the_arena_and_micro() {
    let Some(cases) = golden("tflite_cpu_micro.json") else { return };
    assert_eq!(cases.len(), 100);
    for (at, case) in cases.iter().enumerate() {
        let record = |entry: &Value| Record {
            first: number(&entry[0]),
            last: number(&entry[1]),
            size: number(&entry[2]),
        };
        let records = case["records"].as_array().unwrap().iter().map(record).collect();
        let records = Records::new(records).unwrap();
        let align = index(&case["align"]) as u64;
        // None of the recorded tensors counts as alive in the whole run.
        let arena = cpu_arena::offsets(&records, u64::MAX, align).unwrap();
        assert_eq!(arena.offsets, numbers(&case["tflite_cpu"]), "case {at}: arena");
        let micro = micro::offsets(&records, align).unwrap();
        assert_eq!(micro.offsets, numbers(&case["tflm"]), "case {at}: micro");
    }
}
