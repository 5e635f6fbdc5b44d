//! Streams whose boxes live as in one line of time: the same conflicts in steps.

use std::collections::BTreeSet;

use memplan::{
    Planner, Problem, Strategy,
    problem::{ChunkId, Request},
    verify::verify,
};
use serde_json::{Value, json};

use crate::common::{
    constraints::{Dice, random_problem},
    shared,
};

/// The time in which a chunk has its bytes to itself, in clocks.
type Life = (Vec<u64>, Vec<u64>);

fn clock(value: &Value) -> Vec<u64> {
    match value.as_u64() {
        Some(step) => vec![step],
        None => value.as_array().unwrap().iter().map(|at| at.as_u64().unwrap()).collect(),
    }
}

/// By chunk: the time in which it has bytes to itself, read from the text of a problem and the accepted
/// overwrites. `None` for a chunk that lives only while it is written over another, or has no bytes.
fn lives(problem: &Problem) -> Vec<Option<Life>> {
    let text = serde_json::to_value(problem).unwrap();
    let of = |(chunk, id): (&Value, ChunkId)| {
        let (mut begin, end) = (clock(&chunk["begin"]), clock(&chunk["end"]));
        if problem.overwritten(id).is_some_and(|(_, distance)| distance >= 0) {
            begin[usize::try_from(chunk["stream"].as_u64().unwrap_or(0)).unwrap()] += 1;
        }
        (begin != end && problem.chunk(id).size > 0).then_some((begin, end))
    };
    text["chunks"].as_array().unwrap().iter().zip(problem.ids()).map(of).collect()
}

fn is_over(end: &[u64], begin: &[u64]) -> bool {
    end.iter().zip(begin).all(|(end, begin)| end <= begin)
}

fn conflicts(lives: &[Option<Life>]) -> BTreeSet<[usize; 2]> {
    let mut found = BTreeSet::new();
    for (y, of_y) in lives.iter().enumerate() {
        for (x, of_x) in lives[..y].iter().enumerate() {
            if let (Some(p), Some(q)) = (of_x, of_y)
                && !is_over(&p.1, &q.0)
                && !is_over(&q.1, &p.0)
            {
                found.insert([x, y]);
            }
        }
    }
    found
}

/// Returns whether, of any two sets of boxes that are over before another begins, one lies in the other.
fn is_interval_order(lives: &[Option<Life>]) -> bool {
    let boxes: Vec<&Life> = lives.iter().flatten().collect();
    let before = |(begin, _): &&Life| -> BTreeSet<usize> {
        (0..boxes.len()).filter(|&other| is_over(&boxes[other].1, begin)).collect()
    };
    let sets: Vec<BTreeSet<usize>> = boxes.iter().map(before).collect();
    sets.iter().all(|a| sets.iter().all(|b| a.is_subset(b) || b.is_subset(a)))
}

/// The text of a problem without its lifetimes.
fn constraints(problem: &Problem) -> Value {
    let mut text = serde_json::to_value(problem).unwrap();
    let text = text.as_object_mut().unwrap();
    for chunk in text["chunks"].as_array_mut().unwrap() {
        for key in ["begin", "end", "stream"] {
            chunk.as_object_mut().unwrap().remove(key);
        }
    }
    let some = |key: &str| text.get(key).cloned().unwrap_or_default();
    let chunks = problem.ids().map(|chunk| format!("{:?}", problem.overwritten(chunk)));
    json!([
        some("chunks"),
        some("pools"),
        some("parts"),
        some("apart"),
        some("alignment"),
        some("padding"),
        chunks.collect::<Vec<_>>()
    ])
}

/// Checks that the steps of a problem have its conflicts and its constraints. Returns whether there are steps.
fn check(problem: &Problem, name: &str) -> bool {
    let lives_on_streams = lives(problem);
    let Some(linear) = problem.collapse_streams() else { return false };
    assert!(is_interval_order(&lives_on_streams), "{name}");
    assert_eq!(conflicts(&lives(&linear)), conflicts(&lives_on_streams), "{name}");
    assert_eq!(constraints(&linear), constraints(problem), "{name}");
    assert_eq!(linear.collapse_streams(), None, "{name}");
    true
}

/// The recorded problems say which are interval orders. Plans of the steps are plans on the
/// streams.
#[test]
fn recorded_interval_orders_are_found() {
    let Some(text) = shared("data/problem2/omnimalloc.jsonl") else { return };
    let mut found = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let Ok(problem) = serde_json::from_value::<Problem>(case["problem"].clone()) else {
            continue;
        };
        if case["problem"]["streams"].as_u64().is_none_or(|streams| streams < 2) {
            continue;
        }
        assert_eq!(check(&problem, name), case["interval_order"].as_bool().unwrap(), "{name}");
        let Some(linear) = problem.collapse_streams() else { continue };
        found += 1;
        let recorded: BTreeSet<[usize; 2]> =
            serde_json::from_value(case["conflicts"].clone()).unwrap();
        assert_eq!(conflicts(&lives(&linear)), recorded, "{name}");
        for &strategy in Strategy::ALL {
            let plan = Planner::new().strategy(strategy).plan(&problem).unwrap();
            assert_eq!(verify(&problem, &plan), [], "{name}, {strategy}");
        }
    }
    assert!(found > 6, "only {found} interval orders");
}

/// A program on two streams that meet now and then: operators read what was made before, and some write over
/// it.
fn random_program(dice: &mut Dice) -> Value {
    let mut at = [[0_u64; 2]; 2];
    let mut chunks: Vec<Value> = Vec::new();
    let mut overwrites: Vec<Value> = Vec::new();
    let mut ends: Vec<[u64; 2]> = Vec::new();
    for id in 0..3 + dice.roll(8) {
        let stream = usize::try_from(dice.roll(2)).unwrap();
        let other = at[1 - stream];
        if dice.roll(3) > 0 {
            at[stream] = [at[stream][0].max(other[0]), at[stream][1].max(other[1])];
        }
        let begin = at[stream];
        at[stream][stream] += 1;
        let end = at[stream];
        // The last chunk whose life so far is over, or that ends here.
        let old = (0..ends.len()).rev().find(|&old| is_over(&ends[old], &begin));
        if let Some(old) = old.filter(|_| dice.roll(2) == 0) {
            chunks[old]["end"] = json!(end);
            ends[old] = end;
            overwrites.push(json!({"chunk": id, "overwritten": old}));
        } else if let Some(old) = old {
            // It is read once more.
            let read = [ends[old][0].max(end[0]), ends[old][1].max(end[1])];
            chunks[old]["end"] = json!(read);
            ends[old] = read;
        }
        let size = if dice.roll(10) == 0 { 0 } else { 4 };
        chunks.push(json!({"id": id, "begin": begin, "end": end, "size": size, "stream": stream,
                            "alignment": 1 << dice.roll(2)}));
        ends.push(end);
    }
    json!({"format": "memplan-problem/2", "streams": 2, "chunks": chunks, "overwrites": overwrites,
           "padding": dice.roll(2)})
}

#[test]
fn the_steps_of_random_problems_have_the_same_conflicts() {
    let mut dice = Dice(77);
    let (mut found, mut linked, mut missed, mut pooled, mut joined) = (0, 0, 0, 0, 0);
    for round in 0..4_000 {
        let (is_program, text) = match round % 2 {
            0 => (true, random_program(&mut dice)),
            _ => (false, random_problem(&mut dice)),
        };
        let Ok(problem) = serde_json::from_value::<Problem>(text.clone()) else { continue };
        if text["streams"].is_null() {
            continue;
        }
        let is_found = check(&problem, &text.to_string());
        if is_program {
            // Clocks of a program lose nothing.
            assert_eq!(is_found, is_interval_order(&lives(&problem)), "{text}");
        }
        missed += u32::from(!is_found);
        found += u32::from(is_found);
        linked += u32::from(is_found && problem.has_links());
        pooled += u32::from(is_found && problem.pools().len() > 1);
        joined += u32::from(is_found && problem.has_parts());
        if is_found && let Ok(plan) = Planner::new().strategy(Strategy::FirstFit).plan(&problem) {
            assert_eq!(verify(&problem, &plan), [], "{text}");
        }
    }
    let least = [found, linked, missed, pooled, joined].into_iter().min();
    assert!(
        least > Some(10),
        "{found} found, {linked} with links, {pooled} with pools, {joined} with parts; {missed} not"
    );
}

/// The chunks that a plan names for its bound are those that are alive at the peak of the steps.
#[test]
fn the_bound_and_the_chunks_at_the_peak_are_those_of_the_steps() {
    let mut dice = Dice(78);
    let (mut compared, mut pinned) = (0, 0);
    for round in 0..2_000 {
        let text =
            if round % 4 == 0 { random_program(&mut dice) } else { random_problem(&mut dice) };
        let Ok(problem) = serde_json::from_value::<Problem>(text.clone()) else { continue };
        let Some(linear) = problem.collapse_streams() else { continue };
        let plan = |problem| Planner::new().strategy(Strategy::FirstFit).plan(problem);
        let (Ok(on_streams), Ok(in_steps)) = (plan(&problem), plan(&linear)) else { continue };
        assert_eq!(on_streams.lower_bound(), in_steps.lower_bound(), "{text}");
        assert_eq!(on_streams.lower_bound(), problem.lower_bound(), "{text}");
        let alive: Vec<usize> = (lives(&linear).iter().enumerate())
            .filter(|(_, life)| {
                let at_peak =
                    |(begin, end): &Life| (begin[0]..end[0]).contains(&in_steps.peak_step());
                life.as_ref().is_some_and(at_peak)
            })
            .map(|(chunk, _)| chunk)
            .collect();
        assert_eq!(on_streams.peak(), alive, "{text}");
        let mut stale = on_streams;
        stale.peak_mut().clear();
        assert_eq!(Planner::new().count_bound(stale, &problem).unwrap().peak(), alive, "{text}");
        compared += 1;
        pinned += u32::from(text["chunks"].as_array().unwrap().iter().any(|c| !c["pin"].is_null()));
    }
    assert!(compared > 100 && pinned > 10, "{compared} compared, {pinned} with pins");
}

/// A required overwrite stays one in steps, so that no layout does without it.
#[test]
fn required_overwrites_are_required_in_steps() {
    let mut dice = Dice(79);
    let mut count = 0;
    for _ in 0..4_000 {
        let Ok(problem) = serde_json::from_value::<Problem>(random_problem(&mut dice)) else {
            continue;
        };
        let Some(linear) = problem.collapse_streams() else { continue };
        let is_honoured = |request: &&Request| {
            let overwritten = problem.overwritten(request.overwriter);
            request.required && overwritten.is_some_and(|(old, _)| old == request.overwritten)
        };
        for request in problem.requests().iter().filter(is_honoured) {
            let same = |one: &&Request| one.overwriter == request.overwriter;
            assert!(linear.requests().iter().find(same).is_some_and(|one| one.required));
            count += 1;
        }
    }
    assert!(count > 0);
}

/// Two streams that wait for each other after each step, with some chunks that live on.
#[test]
fn ten_thousand_chunks_in_one_line_of_time_are_numbered() {
    let mut problem = Problem::builder();
    for at in 0..10_000_u64 {
        let (round, stream) = (at / 2, at % 2);
        let chunk = problem.chunk(0..1, 64);
        let mut end = [round; 2];
        end[usize::try_from(stream).unwrap()] += 1;
        let end = if at.is_multiple_of(5) { [round + 1 + at % 7; 2] } else { end };
        let stream = usize::try_from(stream).unwrap();
        problem.clocks(chunk, [round; 2], end, stream);
    }
    let problem = problem.streams(2).build().unwrap();
    let linear = problem.collapse_streams().unwrap();
    // What ends before a barrier ends in its round.
    let expected = |at: u64| (at / 2, at / 2 + 1 + if at.is_multiple_of(5) { at % 7 } else { 0 });
    let last = linear.chunks().iter().map(|chunk| chunk.end).max().unwrap();
    for (at, chunk) in (0..).zip(linear.chunks()) {
        let (begin, end) = expected(at);
        assert_eq!((chunk.begin, chunk.end), (begin, end.min(last)), "{at}");
    }
}
