//! Maps and explanations of problems with pools, pins, holes and streams.

use std::borrow::Cow;

use crate::common::constraints::{Dice, random_problem};
use memplan::{
    Plan, Planner, Problem,
    plan::PlannedPool,
    problem::{Pool, PoolId},
    report::{MapOptions, by_pool, explain, in_buffers, memory_map, pool_maps, pool_maps_svg},
    search::first_fit,
};

/// Memory of 12 bytes, the lowest 2 reserved, and more memory behind it. `kept` has a hole in which `conv`
/// takes its place, `strip` needs only its lowest 2 bytes in [3, 5), `table` is pinned.
fn problem() -> Problem {
    let mut problem = Problem::builder();
    let sram = problem.pool(Pool::new("sram").capacity(12).reserved(0..2).cost(1));
    let psram = problem.pool(Pool::new("psram").cost(9));
    let kept = problem.named_chunk("kept", 0..6, 4);
    let strip = problem.named_chunk("strip", 0..6, 4);
    let conv = problem.named_chunk("conv", 2..4, 4);
    let table = problem.named_chunk("table", 0..6, 2);
    let large = problem.named_chunk("large", 1..4, 64);
    problem.hole(kept, 2..4).window(strip, 3..5, 0..2).pin(table, sram, 2);
    problem.only_in(large, [psram]).pin(kept, sram, 4).pin(strip, sram, 8).pin(conv, sram, 4);
    problem.build().unwrap()
}

fn planned() -> Plan {
    Planner::new().plan(&problem()).unwrap()
}

fn text(plan: &Plan) -> String {
    pool_maps(plan, None, MapOptions::default().width(40))
}

#[test]
fn holes_are_empty_pins_and_reserved_bytes_are_hatched() {
    let text = text(&planned());
    let (sram, psram) = text.split_once("\n\n").unwrap();
    let rows: Vec<&str> = sram.lines().filter_map(|line| Some(line.split_once('|')?.1)).collect();
    assert_eq!(
        rows,
        [
            "/b/b/b/b/b/b......../b/b",
            "b/b/b/b/b/b/b/b/b/b/b/b/",
            "/a/a/a/a/c/c/c/c/a/a/a/a",
            "a/a/a/a/c/c/c/c/a/a/a/a/",
            "d/d/d/d/d/d/d/d/d/d/d/d/",
            "########################",
        ],
        "{text}"
    );
    assert!(text.starts_with("pool sram, capacity 12 B:\n"), "{text}");
    assert!(sram.contains("  '/' pinned, '#' reserved\n"), "{text}");
    assert!(psram.starts_with("pool psram:\n") && !psram.contains("pinned"), "{text}");
}

#[test]
fn a_picture_draws_holes_empty_and_hatches_pins_and_reserved_bytes() {
    let svg = pool_maps_svg(&planned(), None, MapOptions::default());
    // `kept` on both sides of its hole, `strip` before, in and after its window, and the three others.
    assert_eq!(svg.matches("<rect class=\"c c").count(), 2 + 3 + 3);
    assert_eq!(svg.matches("<rect class=\"pinned\" x").count(), 2 + 3 + 2);
    assert_eq!(svg.matches("<title>reserved: 0 B to 2 B</title>").count(), 1);
    assert!(
        svg.contains("kept\n4 B at 4\nalive from step 0 to step 5\npinned\nno bytes in steps 2..4")
    );
    assert!(svg.contains("only bytes 0..2 in steps 3..5"));
}

#[test]
fn a_hole_is_not_explained_as_full() {
    let text = explain(&planned(), None);
    let sram = text.split_once("In pool psram").unwrap().0;
    assert!(sram.contains("Peak, at step 0: 10 B, in 3 chunks:"), "{sram}");
    assert!(sram.contains("   0 .. 2          2 B  reserved"), "{sram}");
    assert!(
        sram.contains("2 B of the pool (16.7 %) is free or reserved even in step 0."),
        "{sram}"
    );
}

#[test]
fn times_of_several_streams_are_not_called_steps() {
    let json = r#"{"format": "memplan-problem/2", "streams": 2, "chunks": [
        {"id": 0, "name": "a", "begin": [0, 0], "end": [2, 0], "size": 64},
        {"id": 1, "name": "b", "begin": [0, 0], "end": [0, 2], "size": 128, "stream": 1},
        {"id": 2, "name": "c", "begin": [1, 0], "end": [3, 1], "size": 32}]}"#;
    let problem: Problem = serde_json::from_str(json).unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    let explained = explain(&plan, None);
    let svg = pool_maps_svg(&plan, None, MapOptions::default());
    assert!(explained.contains("clock sums 0..2"), "{explained}");
    let (_, behind) = explained.split_once("on all streams together.").unwrap();
    for text in [behind, &text(&plan), svg.split_once("</style>").unwrap().1] {
        assert!(text.contains("clock sum"), "{text}");
        let words = text.replace("class=\"step\"", "");
        assert!(!words.contains("step"), "{words}");
    }
}

#[test]
fn a_plan_file_keeps_windows_pins_and_reserved_bytes() {
    let plan = planned();
    let windows = |plan: &Plan| -> Vec<_> {
        (0..plan.chunks().len()).map(|at| plan.windows(at).collect::<Vec<_>>()).collect()
    };
    assert_eq!((windows(&plan).concat().len(), plan.pinned()), (2, &[0, 1, 2, 3][..]));
    let reserved: Vec<_> = plan.reserved(0).map(|bytes| (bytes.start, bytes.end)).collect();
    assert_eq!(reserved, [(0, 2)]);
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    // A file that omits them can be read as well; the input then supplies them.
    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let fields = value.as_object_mut().unwrap();
    fields.remove("windows");
    fields.remove("pinned");
    fields["pools"][0].as_object_mut().unwrap().remove("reserved");
    let read: Plan = serde_json::from_value(value).unwrap();
    assert!(!read.has_windows());
    let counted = Planner::new().count_bound(read, &problem()).unwrap();
    assert_eq!(windows(&counted), windows(&plan));
}

/// With a line for each byte, no cell of the map of a right plan holds two chunks. Parts lie in the bytes of
/// their wholes, so problems with parts are skipped.
#[test]
fn no_two_chunks_are_drawn_over_each_other() {
    let mut dice = Dice(18);
    let mut drawn = 0;
    for round in 0..600 {
        let json = random_problem(&mut dice);
        let Ok(problem) = serde_json::from_value::<Problem>(json) else { continue };
        let Ok(layout) = first_fit::layout(&problem) else { continue };
        let places: Vec<(PoolId, u64)> =
            problem.ids().map(|c| (layout.pool(c), layout.offset(c))).collect();
        let plan = Plan::from_places(&problem, &places).unwrap();
        if problem.is_unconstrained() || !plan.parts().is_empty() {
            continue;
        }
        for pool in by_pool(&plan) {
            let height = usize::try_from(pool.pool_size()).unwrap();
            let map = memory_map(&pool, None, MapOptions::default().height(height));
            let rows = map.lines().filter_map(|line| Some(line.split_once(" |")?.1));
            assert!(rows.into_iter().all(|row| !row.contains('*')), "problem {round}:\n{map}");
            drawn += 1;
        }
    }
    assert!(drawn > 100, "{drawn}");
}

/// The buffers of a pool are drawn one by one, so that no address is beyond the size that is given for it.
#[test]
fn every_chunk_lies_within_the_size_of_its_buffer() {
    let mut dice = Dice(21);
    let (mut split, mut aligned) = (0, 0);
    for round in 0..1500 {
        let json = random_problem(&mut dice);
        let Ok(problem) = serde_json::from_value::<Problem>(json) else { continue };
        let Ok(layout) = first_fit::layout(&problem) else { continue };
        let places: Vec<(PoolId, u64)> =
            problem.ids().map(|c| (layout.pool(c), layout.offset(c))).collect();
        let plan = Plan::from_places(&problem, &places).unwrap();
        let buffers = in_buffers(&plan);
        assert_eq!(buffers.chunks().len(), plan.chunks().len());
        let is_row = |pool: &PlannedPool| pool.largest.is_some();
        if let Cow::Borrowed(same) = buffers {
            assert_eq!(*same, plan);
            continue;
        }
        let sizes = |plan: &Plan| plan.pools().iter().map(|pool| pool.size).sum::<u64>();
        assert_eq!(sizes(&buffers), sizes(&plan), "problem {round}");
        for (pool, one) in by_pool(&buffers).iter().zip(buffers.pools()) {
            let used = pool.chunks().iter().filter(|chunk| chunk.size > 0);
            let top = used.map(|chunk| pool.end_of(chunk)).max().unwrap_or(0);
            assert!(top <= pool.pool_size(), "problem {round}, {}: {top}", one.name);
            aligned += u32::from(top < pool.pool_size());
        }
        assert!(plan.pools().iter().any(is_row));
        let text = explain(&buffers, None);
        assert!(text.contains(", buffer ") || buffers.pools().len() == 1, "{text}");
        assert_eq!(text, explain(&plan, None));
        split += 1;
    }
    assert!(split > 20 && aligned > 5, "{split} rows of buffers, {aligned} buffers rounded up");
}
