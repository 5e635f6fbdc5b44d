//! Pictures show the whole plan, and nothing that a name injects.

use std::collections::BTreeMap;

use crate::common::{
    random::{Wild, random_problem},
    seeds::times,
};
use memplan::{
    OpSequence, Operator, Output, Plan, Planner, Problem, Strategy,
    lower::{LoweringOptions, lower},
    report::{MapOptions, MapSheet, memory_map_html, memory_map_svg, simulation_svg, trace},
};
use serde_json::Value;

const BAD: &str = "</script><script>alert('1')</script>&\"\u{202e}\u{2028}]]>";
/// The text that a reader sees.
const SHOWN: &str = "</script><script>alert('1')</script>&\"\\u{202e}\\u{2028}]]>";

/// A chain of two chunks, a view, and names that are markup.
fn hostile() -> (OpSequence, Plan, Problem) {
    let mut sequence = OpSequence::builder();
    sequence
        .input("x", 64)
        .operator(Operator::new(BAD).inputs(["x"]).output(Output::new("a", 4096)))
        .operator(
            Operator::new("crop").inputs(["a"]).output(Output::new(BAD, 1024).overwrites("a")),
        )
        .operator(Operator::new("view").inputs([BAD]).output(Output::new("<v>", 1024).reads(BAD)))
        .operator(Operator::new("end").inputs(["<v>"]).output(Output::new("y", 512)))
        .output("y");
    let sequence = sequence.build().unwrap();
    let plan = Planner::new().strategy(Strategy::Pushdown).plan(&sequence).unwrap();
    let problem = lower(&sequence, LoweringOptions::default()).unwrap().problem;
    (sequence, plan, problem)
}

/// Panics if tags do not close in order, or an attribute holds a bare mark.
fn check_markup(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some((text, tag)) = rest.split_once('<') {
        assert!(!text.contains('>') || open.last() == Some(&"style"), "a bare '>' in {text}");
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        let name = tag.trim_matches('/').split_whitespace().next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?} are left open");
}

/// Writes a page of one sheet.
fn page(title: &str, plans: &[Plan], steps: Option<&OpSequence>, problem: &Problem) -> String {
    memory_map_html(title, &[MapSheet::new(plans, steps).problem(problem)])
}

/// Returns the data in a page.
fn all_data(html: &str) -> Value {
    let start = html.split_once("id=\"data\">").unwrap().1;
    serde_json::from_str(start.split_once("</script>").unwrap().0).unwrap()
}

/// The data of a page's first sheet.
fn data(html: &str) -> Value {
    all_data(html)["sheets"][0].clone()
}

#[test]
fn names_are_text_everywhere() {
    let (sequence, plan, problem) = hostile();
    let steps = Some(&sequence);
    for svg in
        [memory_map_svg(&plan, steps, MapOptions::default()), simulation_svg(&problem, 0..9, 960)]
    {
        check_markup(&svg);
        assert!(!svg.contains("<script"), "{svg}");
        assert!(svg.contains("&lt;script&gt;alert"), "{svg}");
        assert!(!svg.contains('\u{202e}') && svg.contains("\\u{202e}\\u{2028}]]&gt;"), "{svg}");
    }
    let html = page(BAD, std::slice::from_ref(&plan), steps, &problem);
    // The only two are those of the page: the data and the scripts.
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (2, 2));
    assert!(!html.contains(['\u{2028}', '\u{202e}']));
    let data = data(&html);
    assert_eq!((&data["names"][1], &data["operators"]["name"][0]), (&SHOWN.into(), &SHOWN.into()));
    let trace: Value = serde_json::from_str(&trace(&plan, steps)).unwrap();
    assert_eq!(trace["traceEvents"][2]["name"], BAD);
}

#[test]
fn a_map_has_a_rectangle_for_each_chunk_a_seam_for_each_overwriter_and_a_mark_for_each_view() {
    let (sequence, plan, _) = hostile();
    let svg = memory_map_svg(&plan, Some(&sequence), MapOptions::default());
    // The legend has one of each as well.
    assert_eq!(svg.matches("<rect class=\"c c").count(), 3);
    assert_eq!(svg.matches("class=\"over\"").count(), 1 + 1);
    assert_eq!(svg.matches("class=\"view\"").count(), 1 + 1);
    assert_eq!(svg.matches("class=\"step\"").count(), 4);
    assert!(svg.contains("written over a at 0"), "{svg}");
    assert!(svg.contains("views: &lt;v&gt;"), "{svg}");
}

#[test]
fn the_line_of_live_bytes_peaks_at_the_lower_bound() {
    times(80, |random| {
        let wild = Wild { chunks: 30, steps: 20, size: 100, alignment: true };
        let problem = random_problem(random, wild)?;
        // A search may give up overwrites, and other bytes are then alive.
        let plan = Planner::new().strategy(Strategy::Pushdown).plan(&problem).unwrap();
        let html = page("", std::slice::from_ref(&plan), None, &problem);
        let data = data(&html);
        let column = |name: &str| {
            let column = data["live"][name].as_array().unwrap();
            column.iter().map(|value| value.as_u64().unwrap()).collect::<Vec<_>>()
        };
        let mut expected: Vec<(u64, u64)> = Vec::new();
        problem.sweep_live_bytes(|step, bytes| expected.push((step, bytes)));
        let (steps, bytes): (Vec<u64>, Vec<u64>) = expected.into_iter().unzip();
        // The page states each step as its difference to the one before.
        let gaps = column("step").into_iter();
        let stated: Vec<u64> = gaps
            .scan(0, |step, gap| {
                *step += gap;
                Some(*step)
            })
            .collect();
        assert_eq!((stated, column("bytes")), (steps, bytes));
        check_markup(&memory_map_svg(&plan, None, MapOptions::default()));
        check_markup(&simulation_svg(&problem, 0..u64::MAX, 960));
        Ok(())
    });
}

#[test]
fn a_page_holds_every_plan_and_every_event() {
    let (sequence, pushdown, problem) = hostile();
    let steps = Some(&sequence);
    let naive = Planner::new().strategy(Strategy::Naive).plan(&sequence).unwrap();
    let html = page("two", &[pushdown.clone(), naive], steps, &problem);
    let data = data(&html);
    assert_eq!(data["plans"][0]["strategy"], "pushdown");
    assert_eq!(data["plans"][1]["strategy"], "naive");
    for (at, chunk) in pushdown.chunks().iter().enumerate() {
        assert_eq!(data["plans"][0]["offsets"][at], chunk.offset);
        assert_eq!(data["sizes"][at], chunk.size);
    }
    for column in ["action", "chunk", "below", "above", "blocks"] {
        assert_eq!(data["simulation"]["events"][column].as_array().unwrap().len(), 5, "{column}");
    }
    let other = Planner::new().plan(&Problem::builder().build().unwrap()).unwrap();
    let mixed = page("", &[pushdown, other], steps, &problem);
    assert_eq!(all_data(&mixed)["sheets"].as_array().unwrap().len(), 2);
    assert_eq!(page("", &[], steps, &problem), "");
}

/// Two sheets may have other chunks and other operators; what each operator reads is numbered.
#[test]
fn a_page_holds_sheets_of_different_chunks() {
    let (sequence, plan, problem) = hostile();
    let steps = Some(&sequence);
    let apart = lower(&sequence, LoweringOptions::default().inplace(false)).unwrap().problem;
    let other = Planner::new().plan(&apart).unwrap();
    let sheets = [
        MapSheet::new(std::slice::from_ref(&plan), steps).problem(&problem).label("in place"),
        MapSheet::new(std::slice::from_ref(&other), None).problem(&apart).label("<apart>"),
    ];
    let html = memory_map_html("two", &sheets);
    let first = data(&html);
    // The chunks are 'a' and the two that follow; the view <v> comes behind them, then x outside.
    let (chunks, views) = (plan.chunks().len(), first["views"]["name"].as_array().unwrap().len());
    let inputs = &first["operators"]["inputs"];
    assert_eq!(inputs[0], serde_json::json!([chunks + views]), "x lies outside the pool");
    assert_eq!(first["operators"]["outside"], serde_json::json!(["x"]));
    assert_eq!(inputs[1], serde_json::json!([0]), "crop reads a");
    let all = all_data(&html);
    assert_eq!(all["sheets"][1]["label"], "<apart>");
    assert_eq!(all["sheets"][1]["names"].as_array().unwrap().len(), other.chunks().len());
}

#[test]
fn a_page_of_twenty_thousand_chunks_stays_below_three_megabytes() {
    let mut problem = Problem::builder();
    for at in 0..20_000_u64 {
        let lifetime = at..at + 1 + at * 7 % 40;
        problem.chunk(lifetime, 1 + at.wrapping_mul(2_654_435_761) % (4 << 20));
    }
    let problem = problem.build().unwrap();
    let plan = Planner::new().strategy(Strategy::Pushdown).plan(&problem).unwrap();
    let html = page("large", &[plan], None, &problem);
    assert!(html.len() < 3_000_000, "{} B", html.len());
}

/// The tooltip of a graph input does not say that an operator made it.
#[test]
fn a_page_names_graph_inputs_and_weights_as_such() {
    let sequence = OpSequence::builder()
        .input("x", 64)
        .weight("w", Some(32))
        .operator(Operator::new("conv1").inputs(["x", "w"]).output(Output::new("y", 16)))
        .output("y")
        .build()
        .unwrap();
    let options = LoweringOptions::default().inputs_in_pool(true).weights_in_pool(true);
    let plan = Planner::new().lowering(options).plan(&sequence).unwrap();
    let problem = lower(&sequence, options).unwrap().problem;
    let steps = Some(&sequence);
    let html = page("", std::slice::from_ref(&plan), steps, &problem);
    let expected = serde_json::json!({"chunk": [0, 1], "kind": ["a graph input", "a weight"]});
    assert_eq!(data(&html)["supplied"], expected);
}

#[test]
fn a_trace_begins_and_ends_every_chunk() {
    let (sequence, plan, _) = hostile();
    let trace: Value = serde_json::from_str(&trace(&plan, Some(&sequence))).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!((of("b"), of("e"), of("X")), (3, 3, 4));
    check_rows(events);
    let most = events.iter().filter_map(|event| event["args"]["bytes"].as_u64()).max();
    assert_eq!(most, Some(plan.lower_bound()));
}

/// In a row, each lifetime must end before the next begins.
fn check_rows(events: &[Value]) {
    let mut open: BTreeMap<&str, &Value> = BTreeMap::new();
    for event in events {
        let row = event["id2"]["local"].as_str().unwrap_or_default();
        match event["ph"].as_str() {
            Some("b") => assert_eq!(open.insert(row, &event["name"]), None, "two in a row"),
            Some("e") => assert_eq!(open.remove(row), Some(&event["name"])),
            _ => {}
        }
    }
    assert!(open.is_empty());
}

/// An output that begins below the input that it overwrites has bytes while the input has all of its own.
#[test]
fn a_trace_draws_a_partial_overlap_in_rows_of_their_own() {
    let sequence = OpSequence::builder()
        .operator(Operator::new("a").output(Output::new("x", 8)))
        .operator(Operator::new("b").inputs(["x"]).output(Output::new("y", 16).overlaps("x", 8)))
        .output("y")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.offset("x"), plan.offset("y")), (16, Some(8), Some(0)));
    let trace: Value = serde_json::from_str(&trace(&plan, Some(&sequence))).unwrap();
    check_rows(trace["traceEvents"].as_array().unwrap());
}

#[test]
fn extreme_plans_are_drawn_without_failing() {
    let mut wide = Problem::builder();
    wide.chunk(0..u64::MAX, 1);
    wide.chunk(7..9, u64::MAX / 2);
    let wide = wide.build().unwrap();
    let mut plan = Planner::new().plan(&wide).unwrap();
    for offset in [0, u64::MAX - 3] {
        plan.chunks_mut()[1].offset = offset;
        plan.chunks_mut()[0].overwrites = Some(memplan::PlannedLink::new(0, 3));
        let tiny = MapOptions::default().width(0).height(0);
        let svg = memory_map_svg(&plan, None, tiny);
        check_markup(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(serde_json::from_str::<Value>(&trace(&plan, None)).is_ok());
        page("", std::slice::from_ref(&plan), None, &wide);
    }
    let empty = Planner::new().plan(&Problem::builder().build().unwrap()).unwrap();
    assert!(memory_map_svg(&empty, None, MapOptions::default()).contains("an empty pool"));
}

/// A picture of the queues stays within its frame and a few kilobytes, however many blocks there
/// are.
#[test]
fn a_picture_of_many_blocks_keeps_to_its_frame() {
    let mut many = Problem::builder();
    for at in 0..2_000 {
        many.chunk(at % 3..4 + at % 5, 1 + at);
    }
    let svg = simulation_svg(&many.build().unwrap(), 1..6, 0);
    check_markup(&svg);
    assert!(svg.len() < 1_000_000 && svg.contains(" more</text>"), "{}", svg.len());
    let places = svg.split(" y=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
    assert!(places.map(|y| y.parse::<f64>().unwrap()).all(|y| y >= 0.0));
}

/// A page shows a picture as wide as its column, and prints it light.
#[test]
fn a_picture_scales_to_its_place_and_describes_itself() {
    let mut many = Problem::builder();
    for at in 0..30 {
        many.chunk(at..at + 3, 64);
    }
    let problem = many.build().unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    let of = |width| memory_map_svg(&plan, None, MapOptions::default().width(width));
    // More events than fit side by side fill more rows.
    let (map, simulation) = (of(960), simulation_svg(&problem, 0..30, 960));
    let (narrow, few) = (of(360), simulation_svg(&problem, 0..30, 360));
    for (svg, most) in [(&map, 960.0), (&simulation, 960.0), (&narrow, 360.0), (&few, 360.0)] {
        let (head, _) = svg.split_once("<style>").unwrap();
        let (_, view) = head.split_once("viewBox=\"0 0 ").unwrap();
        let width: f64 = view.split(' ').next().unwrap().parse().unwrap();
        assert!(width <= most && head.contains(" width=\"100%\"") && !head.contains("height="));
        assert!(head.contains("<title>") && head.contains("<desc>"), "{head}");
        assert!(svg.contains("@media screen and (prefers-color-scheme:dark)"));
        let places = svg.split(" x=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
        assert!(places.map(|x| x.parse::<f64>().unwrap()).all(|x| (-2.0..width).contains(&x)));
    }
    let rows = |svg: &str| svg.matches("<g transform").count();
    assert!(rows(&simulation) > 3 && rows(&few) > 2 * rows(&simulation));
    assert!(map.contains("<title>best (pushdown): pool 192 B (1.000 × peak)</title>"));
}
