//! ONNX Runtime's memory pattern.

use arbitrary::{Result, Unstructured};
use memplan::{
    OpSequence, Operator, Output,
    baselines::onnxruntime::MemoryPattern,
    sequence::{Dependency, Origin},
};
use rstest::rstest;

use crate::common::{random::random_sequence, seeds::times};

/// Operators with one output each, such as `b:1024 = a of a` for a view, or `b:1024 = a, x over a`. The
/// input is `x`, of 1024 bytes; the graph output is the last tensor.
fn sequence(lines: &str) -> OpSequence {
    let mut sequence = OpSequence::builder();
    sequence.input("x", 1024);
    let mut last = "";
    for line in lines.split(';').map(str::trim) {
        let (output, rest) = line.split_once(" = ").unwrap();
        let (name, size) = output.split_once(':').unwrap();
        let mut output = Output::new(name, size.parse().unwrap());
        let (inputs, rest) = rest.split_once(' ').map_or((rest, ""), |(a, b)| (a, b));
        output = match rest.split_once(' ') {
            Some(("of", input)) => output.reads(input),
            Some(("over", input)) => output.overwrites(input),
            _ => output,
        };
        sequence.operator(Operator::new(name).inputs(inputs.split(',')).output(output));
        last = name;
    }
    sequence.output(last);
    sequence.build().unwrap()
}

/// The offsets of the tensors by name, in units of 256 bytes, and the size of the pattern.
fn pattern(sequence: &OpSequence) -> (String, u64) {
    let pattern = MemoryPattern::of(sequence);
    let named = sequence.tensors().iter().zip(&pattern.offsets);
    let named =
        named.filter_map(|(tensor, offset)| Some(format!("{}{}", tensor.name, (*offset)? / 256)));
    (named.collect::<Vec<_>>().join(" "), pattern.size / 256)
}

#[rstest]
#[case::sizes_are_rounded_up("a:1 = x; b:257 = a; y:4 = b", "a0 b1", 3)]
#[case::outputs_lie_outside("y:1024 = x", "", 0)]
#[case::a_view_keeps_its_buffer("a:1024 = x; b:1024 = a of a; c:256 = x; y:4 = b,c", "a0 b0 c4", 5)]
#[case::a_view_of_an_input_lies_outside("a:1024 = x of x; b:256 = a; y:4 = b", "b0", 1)]
#[case::the_last_reader_writes_over_it("a:1024 = x; b:1024 = a over a; y:4 = b", "a0 b0", 4)]
#[case::another_reader_keeps_it("a:1024 = x; b:1024 = a over a; y:4 = a,b", "a0 b4", 8)]
#[case::an_input_is_never_written_over("a:1024 = x over x; y:4 = a", "a0", 4)]
#[case::a_view_that_is_read_later_keeps_it(
    "a:1024 = x; b:1024 = a of a; c:1024 = a over a; y:4 = b,c",
    "a0 b0 c4",
    8
)]
#[case::a_free_buffer_of_the_size_is_used_again(
    "a:1024 = x; b:512 = a; c:1024 = b; y:4 = c",
    "a0 b4 c0",
    6
)]
#[case::other_sizes_fill_the_gap("a:1024 = x; b:512 = a; c:768 = b; y:4 = c", "a0 b4 c0", 6)]
#[case::a_buffer_lives_until_it_is_used_again(
    "a:1024 = x; b:512 = a; c:768 = b; d:256 = c; e:1024 = d; y:4 = e",
    "a0 b4 c6 d4 e0",
    9
)]
#[case::the_buffer_freed_last_is_used_first(
    "a:1024 = x; b:1024 = x; c:256 = a; d:256 = b,c; e:1024 = d; y:4 = e",
    "a0 b4 c8 d0 e4",
    9
)]
#[case::the_smallest_gap(
    "a:1024 = x; b:256 = x; c:512 = x; d:768 = x; e:256 = a,c; f:384 = e,b,d; y:4 = f",
    "a0 b4 c5 d7 e10 f5",
    11
)]
#[case::what_nothing_reads_stays("a:1024 = x; b:512 = x; c:256 = b; y:4 = c", "a0 b4 c6", 7)]
fn outputs_take_buffers(#[case] lines: &str, #[case] offsets: &str, #[case] size: u64) {
    assert_eq!(pattern(&sequence(lines)), (offsets.to_owned(), size));
}

#[test]
fn a_free_buffer_must_have_the_same_shape() {
    let place = |a: &[u64], d: &[u64]| {
        let mut builder = OpSequence::builder();
        let operator = |name: &str, input, size| {
            Operator::new(name).inputs([input]).output(Output::new(name, size))
        };
        builder
            .input("x", 1024)
            .operator(operator("a", "x", 1024))
            .operator(operator("b", "a", 512));
        builder.operator(operator("c", "b", 256)).operator(operator("d", "c", 1024));
        builder.operator(operator("y", "d", 4)).output("y");
        builder.tensor_type("a", "float32", a);
        builder.tensor_type("d", "int32", d);
        pattern(&builder.build().unwrap()).0
    };
    assert_eq!(place(&[2, 128], &[2, 128]), "a0 b4 c6 d0");
    // Nothing takes the buffer of a, so it is gone when c is made.
    assert_eq!(place(&[2, 128], &[256]), "a0 b4 c0 d1");
}

#[test]
fn the_figures_say_what_is_apart() {
    let pattern = MemoryPattern::of(&sequence("a:1000 = x; y:300 = a"));
    assert_eq!((pattern.size, pattern.outputs, pattern.total()), (1024, 300, 1324));
    assert!(!pattern.has_bodies);
}

/// The tensor whose memory a tensor may share by its dependencies, on and on.
fn roots(sequence: &OpSequence) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (index, tensor) in sequence.tensors().iter().enumerate() {
        let inputs = match &tensor.origin {
            Origin::Output { dependency: Dependency::Reads { input, .. }, .. } => vec![*input],
            Origin::Output { dependency: Dependency::Overwrites(requests), .. } => {
                requests.iter().map(|request| request.input).collect()
            }
            _ => Vec::new(),
        };
        let mut roots = vec![index];
        roots.extend(
            inputs
                .iter()
                .filter(|input| input.index() < index)
                .flat_map(|input| &all[input.index()]),
        );
        all.push(roots);
    }
    all
}

/// Tensors that are alive at once share bytes only if one is made from the other's memory.
#[test]
fn live_tensors_do_not_overlap() {
    let check = |random: &mut Unstructured<'_>| -> Result<()> {
        let Ok(sequence) = random_sequence(random, 14)? else { return Ok(()) };
        let pattern = MemoryPattern::of(&sequence);
        assert_eq!(pattern, MemoryPattern::of(&sequence));
        let roots = roots(&sequence);
        let mut lives: Vec<Option<(usize, usize)>> = vec![None; roots.len()];
        for (step, operator) in sequence.operators().iter().enumerate() {
            for &tensor in operator.inputs.iter().chain(&operator.outputs) {
                let life = lives[tensor.index()].get_or_insert((step, step));
                life.1 = step;
            }
        }
        let placed = |at: usize| {
            let (offset, size) = (pattern.offsets[at]?, sequence.tensors()[at].size?);
            (size > 0).then_some((offset, offset + size, lives[at]?))
        };
        for a in 0..roots.len() {
            let Some((from, to, (first, last))) = placed(a) else { continue };
            assert!(to <= pattern.size, "{sequence:?}");
            for b in 0..a {
                let Some((other, end, (begin, until))) = placed(b) else { continue };
                let at_once = first.max(begin) <= last.min(until);
                let may_share = roots[a].iter().any(|root| roots[b].contains(root));
                assert!(
                    !at_once || may_share || from >= end || other >= to,
                    "{a} {b} {sequence:?}"
                );
            }
        }
        Ok(())
    };
    times(2000, check);
}
