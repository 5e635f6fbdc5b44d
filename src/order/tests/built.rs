//! Graphs in which a rule matters that random graphs hardly touch.

use crate::{
    Bytes, OpSequence, Operator, Output,
    lower::{LoweringOptions, Placing, chunk_graph},
    order::model::Model,
    sequence::SequenceBuilder,
};

/// Returns pseudo-random numbers below given ones.
fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
        (state >> 33) % below
    }
}

/// Creates equal branches between two operators, each of which may differ a little in where it
/// reads.
pub(super) fn symmetric_graphs(count: u64) -> impl Iterator<Item = (u64, Model)> {
    (0..count).map(|seed| {
        let mut draw = draws(seed);
        let mut sequence = OpSequence::builder();
        let mut room = 1 + draw(9);
        let supply = Output::new("x", room);
        sequence.operator(Operator::new("first").output(supply).output(Output::new("z", 2)));
        let branches = 2 + draw(2);
        let length = 2 + draw(2);
        let mut ends = Vec::new();
        for step in 0..length {
            let (size, workspace) = (1 + draw(9), draw(3) * draw(4));
            let (joins, second) = (draw(2) == 0, draw(3) == 0);
            let overwrites = step > 0 && !joins && size <= room && draw(2) == 0;
            room = size;
            for branch in 0..branches {
                let name = format!("{branch}.{step}");
                let from = if step == 0 || joins && step > 1 {
                    "x".to_owned()
                } else {
                    format!("{branch}.{}", step - 1)
                };
                let mut output = Output::new(name.as_str(), size);
                if overwrites && draw(8) > 0 {
                    output = output.overwrites(from.as_str());
                }
                let mut inputs = vec![from];
                if second {
                    inputs.push("z".to_owned());
                }
                sequence.operator(
                    Operator::new("op").inputs(inputs).workspace(workspace).output(output),
                );
                ends.push(name);
            }
        }
        let kept = ends.split_off(ends.len() - usize::try_from(branches).unwrap());
        let read: Vec<String> = ends.into_iter().filter(|_| draw(3) == 0).chain(kept).collect();
        let last = Operator::new("last").inputs(read).output(Output::new("y", 1));
        let sequence = sequence.operator(last).output("y").build().unwrap();
        let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
        let placing = Placing::default();
        (seed, Model::of(&graph.counted(placing), &sequence.predecessors()))
    })
}

/// Creates trees of operators that read each other's results, some in place, with workspaces.
pub(super) fn tree_graphs(count: u64) -> impl Iterator<Item = (u64, Model)> {
    (0..count).map(|seed| {
        let mut draw = draws(seed);
        let mut sequence = OpSequence::builder();
        let mut roots: Vec<(String, Bytes)> = Vec::new();
        for step in 0..11 {
            let mut operator = Operator::new("op").workspace(draw(3) * draw(4));
            let mut output = Output::new(format!("t{step}"), 1 + draw(9));
            let size = output.size;
            for _ in 0..draw(3).min(roots.len() as u64) {
                let child = usize::try_from(draw(roots.len() as u64)).unwrap();
                let (name, room) = roots.swap_remove(child);
                if room >= size && draw(2) == 0 {
                    output = output.overwrites(name.as_str());
                }
                operator = operator.inputs([name]);
            }
            sequence.operator(operator.output(output));
            roots.push((format!("t{step}"), size));
        }
        let last = roots.iter().map(|(name, _)| name.as_str());
        sequence.operator(Operator::new("last").inputs(last).output(Output::new("y", 1)));
        let sequence = sequence.output("y").build().unwrap();
        let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
        let placing = Placing::default();
        (seed, Model::of(&graph.counted(placing), &sequence.predecessors()))
    })
}

/// Creates equal chains of operators between two others.
pub(super) fn equal_chains(count: u64) -> impl Iterator<Item = (u64, Model)> {
    (0..count).map(|seed| {
        let mut draw = draws(seed);
        let mut sequence = OpSequence::builder();
        sequence.operator(Operator::new("first").output(Output::new("x", 1 + draw(9))));
        let (branches, length) = (2 + draw(2), 3 + draw(4));
        for step in 0..length {
            let (size, workspace) = (1 + draw(9), draw(2) * draw(9));
            for branch in 0..branches {
                let from = match step {
                    0 => "x".to_owned(),
                    _ => format!("{branch}.{}", step - 1),
                };
                let output = Output::new(format!("{branch}.{step}"), size);
                sequence.operator(
                    Operator::new("op").inputs([from]).workspace(workspace).output(output),
                );
            }
        }
        let ends: Vec<String> =
            (0..branches).map(|branch| format!("{branch}.{}", length - 1)).collect();
        let last = Operator::new("last").inputs(ends).output(Output::new("y", 1));
        let sequence = sequence.operator(last).output("y").build().unwrap();
        let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
        let placing = Placing::default();
        (seed, Model::of(&graph.counted(placing), &sequence.predecessors()))
    })
}

/// An operator that shares an input with others but frees nothing beside them: the way to the valley
/// may lead over it, but it must wait.
pub(super) fn idle_branch() -> Model {
    let mut sequence = OpSequence::builder();
    let operator = |name: &str, inputs: &[&str], bytes: Bytes| {
        Operator::new(name).inputs(inputs.iter().copied()).output(Output::new(name, bytes))
    };
    let large = Output::new("large", 20);
    sequence.operator(Operator::new("x").output(Output::new("x", 1)).output(large));
    for (name, bytes) in [("idle", 1), ("one", 8), ("other", 4)] {
        sequence.operator(operator(name, &["x"], bytes).workspace(1));
    }
    sequence.operator(operator("join", &["one", "other", "large"], 2));
    sequence.operator(operator("wide", &["join"], 100));
    sequence.operator(operator("narrow", &["wide"], 1));
    sequence.operator(operator("last", &["x", "idle", "narrow"], 1));
    let sequence = sequence.output("last").build().unwrap();
    let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
    Model::of(&graph.counted(Placing::default()), &sequence.predecessors())
}

/// A tree with a sum in place. The other branch has to run before it, although the sum has the higher
/// hill.
pub(super) fn sum_in_tree() -> Model {
    let mut sequence = OpSequence::builder();
    for name in ["a", "b"] {
        sequence.operator(Operator::new(name).output(Output::new(name, 10)));
    }
    let sum = Output::new("sum", 10).overwrites("a");
    sequence.operator(Operator::new("sum").inputs(["a", "b"]).output(sum));
    sequence.operator(Operator::new("other").workspace(15).output(Output::new("other", 3)));
    joined_at_the_end(sequence, &["sum", "other"])
}

/// Creates units of two outputs of one operator, some rewritten in place, that are joined in place,
/// beside other operators with workspaces. The results flow into further units and the last operator.
pub(super) fn gated_graphs(count: u64) -> impl Iterator<Item = (u64, Model)> {
    (0..count).map(|seed| {
        let mut draw = draws(seed);
        let mut sequence = OpSequence::builder();
        let mut roots: Vec<String> = Vec::new();
        let mut operators = 0;
        while operators < 8 {
            let step = operators;
            let first = if roots.is_empty() || draw(2) == 0 {
                None
            } else {
                Some(roots.swap_remove(usize::try_from(draw(roots.len() as u64)).unwrap()))
            };
            let source = Operator::new("source").inputs(first).workspace(draw(2) * draw(20));
            operators += 1;
            if draw(3) == 0 {
                let name = format!("w{step}");
                sequence.operator(source.output(Output::new(name.as_str(), 1 + draw(4))));
                roots.push(name);
                continue;
            }
            let size = 1 + draw(9);
            let sizes = [size, if draw(2) == 0 { size } else { 1 + draw(9) }];
            let mut names = ["a", "b"].map(|side| format!("{side}{step}"));
            let outputs = [0, 1].map(|side| Output::new(names[side].as_str(), sizes[side]));
            sequence.operator(outputs.into_iter().fold(source, Operator::output));
            for (name, &size) in names.iter_mut().zip(&sizes) {
                if draw(2) == 0 {
                    let rewritten = format!("{name}'");
                    let output = Output::new(rewritten.as_str(), size).overwrites(name.as_str());
                    let old = std::mem::replace(name, rewritten);
                    sequence.operator(Operator::new("rewrite").inputs([old]).output(output));
                    operators += 1;
                }
            }
            let mut joined = Output::new(format!("z{step}"), size).overwrites(names[0].as_str());
            if sizes[1] == size && draw(2) == 0 {
                joined = joined.overwrites(names[1].as_str());
            }
            sequence.operator(Operator::new("join").inputs(names).output(joined));
            roots.push(format!("z{step}"));
            operators += 1;
        }
        (seed, joined_at_the_end(sequence, &roots))
    })
}

/// An operator that reads a large chunk and another with a large workspace behind it, as well as an
/// operator that is best run between the two.
pub(super) fn best_between_two() -> Model {
    let mut sequence = OpSequence::builder();
    let outputs = ["a", "b"].map(|name| Output::new(name, 10));
    sequence.operator(outputs.into_iter().fold(Operator::new("first"), Operator::output));
    let read = |name: &str, input: &str, size: Bytes| {
        Operator::new(name).inputs([input]).output(Output::new(name, size))
    };
    sequence.operator(read("c", "a", 2)).operator(read("d", "c", 2).workspace(20));
    sequence.operator(read("e", "b", 1).workspace(15));
    joined_at_the_end(sequence, &["d", "e"])
}

/// Creates parts of one to four operators that read one result from outside and end with one operator.
/// They have workspaces, requests to overwrite, outputs that nobody reads, and control edges.
pub(super) fn module_graphs(count: u64) -> impl Iterator<Item = (u64, Model)> {
    (0..count).map(|seed| {
        let mut draw = draws(seed);
        let mut sequence = OpSequence::builder();
        let mut tensors: Vec<(String, Bytes)> = Vec::new();
        if draw(2) == 0 {
            sequence.input("in", 1 + draw(9));
            tensors.push(("in".to_owned(), 0));
        }
        let (most, mut step) = (8 + draw(3), 0);
        let mut unread: Vec<String> = Vec::new();
        while step < most {
            let entry = match tensors.len() as u64 {
                0 => None,
                all => Some(tensors[usize::try_from(draw(all)).unwrap()].clone()),
            };
            let end = (step + 1 + draw(4)).min(most);
            let mut inner: Vec<(String, Bytes)> = Vec::new();
            let mut waiting: Vec<String> = Vec::new();
            while step < end {
                let mut inputs: Vec<(String, Bytes)> = Vec::new();
                if inner.is_empty() || draw(3) == 0 {
                    inputs.extend(entry.clone());
                }
                if !inner.is_empty() {
                    inputs.push(inner[usize::try_from(draw(inner.len() as u64)).unwrap()].clone());
                }
                if step + 1 == end {
                    let rest = waiting.iter().filter(|name| inputs.iter().all(|(i, _)| i != *name));
                    let rest: Vec<_> = rest.map(|name| (name.clone(), 0)).collect();
                    inputs.extend(rest);
                }
                waiting.retain(|name| inputs.iter().all(|(input, _)| input != name));
                unread.retain(|name| inputs.iter().all(|(input, _)| input != name));
                let name = format!("t{step}");
                let size = 1 + draw(9);
                let mut output = Output::new(name.as_str(), size);
                for (input, _) in inputs.iter().filter(|(_, room)| *room >= size) {
                    if draw(3) == 0 {
                        output = output.overwrites(input.as_str());
                    }
                }
                let mut operator = Operator::new(name.as_str())
                    .inputs(inputs.iter().map(|(name, _)| name.as_str()))
                    .output(output);
                if draw(4) == 0 {
                    operator = operator.workspace(1 + draw(12));
                }
                if draw(10) == 0 {
                    operator = operator.output(Output::new(format!("dead{step}"), 1 + draw(6)));
                }
                if step > 0 && draw(16) == 0 {
                    operator = operator.after_place(usize::try_from(draw(step)).unwrap());
                }
                sequence.operator(operator);
                inner.push((name.clone(), size));
                waiting.push(name.clone());
                if step + 1 == end {
                    unread.push(name.clone());
                    tensors.push((name, size));
                }
                step += 1;
            }
        }
        if draw(3) == 0 {
            sequence.output(unread.pop().unwrap());
        }
        (seed, joined_at_the_end(sequence, &unread))
    })
}

/// A chunk that is updated right after its producer once another rewrite of it is joined, but that
/// lives on until the last operator. The operator with the workspace has to run first.
pub(super) fn rewritten_before_update() -> Model {
    let mut sequence = OpSequence::builder();
    let outputs = [Output::new("x", 2), Output::new("y0", 10)];
    sequence.operator(outputs.into_iter().fold(Operator::new("source"), Operator::output));
    let rewritten = Output::new("y1", 10).overwrites("y0");
    sequence.operator(Operator::new("rewrite").inputs(["y0"]).output(rewritten));
    let updated = Output::new("z", 10).overwrites("y1");
    sequence.operator(Operator::new("update").inputs(["y1", "x"]).output(updated));
    sequence.operator(Operator::new("other").workspace(7).output(Output::new("w", 1)));
    joined_at_the_end(sequence, &["z", "w"])
}

/// Two results of one operator, both rewritten in place and then joined in place, beside an operator
/// that has to run first.
pub(super) fn gated_unit() -> Model {
    let mut sequence = OpSequence::builder();
    let outputs = ["a", "b"].map(|name| Output::new(name, 10));
    sequence.operator(outputs.into_iter().fold(Operator::new("split"), Operator::output));
    for (old, new) in [("a", "a'"), ("b", "b'")] {
        let output = Output::new(new, 10).overwrites(old);
        sequence.operator(Operator::new("rewrite").inputs([old]).output(output));
    }
    let product = Output::new("z", 10).overwrites("a'").overwrites("b'");
    sequence.operator(Operator::new("product").inputs(["a'", "b'"]).output(product));
    sequence.operator(Operator::new("other").workspace(14).output(Output::new("w", 1)));
    joined_at_the_end(sequence, &["z", "w"])
}

/// Returns the model of a sequence that ends with an operator that reads these tensors.
fn joined_at_the_end(mut sequence: SequenceBuilder, read: &[impl AsRef<str>]) -> Model {
    let read = read.iter().map(AsRef::as_ref);
    let last = Operator::new("last").inputs(read).output(Output::new("y", 1));
    let sequence = sequence.operator(last).output("y").build().unwrap();
    let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
    Model::of(&graph.counted(Placing::default()), &sequence.predecessors())
}

/// An output that saves fewer bytes over its first input, which does not die, than over its second.
pub(super) fn two_ways_to_overwrite() -> Model {
    let mut sequence = OpSequence::builder();
    for name in ["a", "b"] {
        sequence.operator(Operator::new(name).output(Output::new(name, 8)));
    }
    let output = Output::new("c", 8).overlaps("a", 4).overwrites("b");
    sequence.operator(Operator::new("c").inputs(["a", "b"]).output(output));
    sequence.operator(Operator::new("last").inputs(["a", "c"]));
    let sequence = sequence.build().unwrap();
    let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
    Model::of(&graph.counted(Placing::default()), &sequence.predecessors())
}

/// Two outputs of which the first overlaps a small input or else a large one, which only then is left for the second.
/// So the death of the small one saves more than its own bytes.
pub(super) fn small_death_saves_much() -> Model {
    let mut sequence = OpSequence::builder();
    let (a, b) = (Output::new("a", 10), Output::new("b", 1));
    sequence.operator(Operator::new("first").output(a).output(b));
    let overlap = Output::new("c", 10).overlaps("b", 9).overlaps("a", 9);
    let over = Output::new("d", 10).overwrites("a");
    sequence.operator(Operator::new("both").inputs(["a", "b"]).output(overlap).output(over));
    sequence.operator(Operator::new("reader").inputs(["b"]).output(Output::new("e", 1)));
    joined_at_the_end(sequence, &["c", "d", "e"])
}

/// Two equal branches and a sum of both. In place, it may only take one or the other of the two.
pub(super) fn half_overwritten() -> [Model; 2] {
    ["a", "b"].map(|overwritten| {
        let mut sequence = OpSequence::builder();
        for name in ["a", "b"] {
            sequence.operator(Operator::new(name).output(Output::new(name, 8)));
        }
        let branch = |name: &str, input: &str| {
            Operator::new(name).inputs([input]).output(Output::new(name, 10))
        };
        sequence.operator(branch("c", "a"));
        let sum = Output::new("sum", 8).overwrites(overwritten);
        sequence.operator(Operator::new("sum").inputs(["a", "b"]).output(sum));
        let last = Operator::new("last").inputs(["sum"]).output(Output::new("y", 1));
        sequence.operator(last).operator(branch("d", "b"));
        let sequence = sequence.output("c").output("d").output("y").build().unwrap();
        let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
        Model::of(&graph.counted(Placing::default()), &sequence.predecessors())
    })
}

/// Chunks that begin inside cells of 4 bytes because they overwrite one that does: after an update at
/// an offset, and after one that begins below its input.
pub(super) fn off_the_alignment() -> [OpSequence; 2] {
    let update = (7, Output::new("b", 2).updates("a", 2), 2, 6);
    let overlap = (6, Output::new("b", 5).overlaps("a", 2), 5, 3);
    [update, overlap].map(|(room, output, size, last)| {
        let mut sequence = OpSequence::builder();
        sequence.operator(Operator::new("a").output(Output::new("a", room)));
        sequence.operator(Operator::new("b").inputs(["a"]).output(output));
        let output = Output::new("c", size).overwrites("b");
        sequence.operator(Operator::new("c").inputs(["b"]).output(output));
        let output = Output::new("d", last);
        sequence.operator(Operator::new("d").inputs(["c"]).output(output)).build().unwrap()
    })
}

/// Creates chunks of one byte, a reader of each behind all of them, and an operator that needs half
/// as many bytes.
pub(super) fn wide(chunks: u32) -> Model {
    let mut sequence = OpSequence::builder();
    for at in 0..chunks {
        sequence
            .operator(Operator::new(format!("make{at}")).output(Output::new(at.to_string(), 1)));
    }
    for at in 0..chunks {
        sequence.operator(Operator::new(format!("read{at}")).inputs([at.to_string().as_str()]));
    }
    let large = Output::new("large", u64::from(chunks / 2));
    sequence.operator(Operator::new("large").output(large));
    sequence.operator(Operator::new("last").inputs(["large"]));
    let sequence = sequence.build().unwrap();
    let graph = chunk_graph(&sequence, LoweringOptions::default()).unwrap();
    Model::of(&graph.counted(Placing::default()), &sequence.predecessors())
}
