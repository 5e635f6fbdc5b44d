//! The content bound: the bytes that every plan of a sequence needs, whatever it chooses.
//!
//! A plan chooses which outputs are views, which are written over inputs, and which inputs lie inside the outputs
//! that gather them. *Content* is what no choice changes: the values that operators compute. Views, gathered inputs
//! and copies add no content of their own. In each step, a plan needs the bytes of all distinct content that this or
//! a later operator reads, and of the content that the operator writes. It saves at most the bytes of inputs that the
//! outputs may be written over and that no later operator reads.
//!
//! Bytes count in multiples of the alignment unless some choice can put two values into one cell.

mod graph;
mod pieces;
mod savings;
mod values;

use crate::{
    Bytes,
    lower::{LoweringOptions, Placing, clocks},
    sequence::OpSequence,
};
pub(crate) use graph::value_graph;
use values::Values;

/// The fewest bytes that a pool needs, over all choices; `None` if that cannot be counted.
pub(crate) fn content_bound(
    sequence: &OpSequence,
    options: LoweringOptions,
    placing: Placing,
) -> Option<Bytes> {
    let is_flat = sequence.operators().iter().all(|operator| operator.bodies.is_empty());
    if !is_flat || sequence.operators().is_empty() {
        return None;
    }
    let values = Values::of(sequence, options, placing);
    let most = if sequence.streams() > 1 {
        values.most_at_operators(&clocks::operators(sequence))?
    } else {
        values.most_in_steps()
    };
    let most = most.max(0).cast_unsigned().next_multiple_of(placing.alignment.into());
    Some(Bytes::try_from(most).unwrap_or(Bytes::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operator, Output};

    fn bound(sequence: &OpSequence, alignment: Bytes) -> Option<Bytes> {
        let placing = Placing { alignment, padding: 0 };
        content_bound(sequence, LoweringOptions::default(), placing)
    }

    fn op(name: &str, inputs: &[&str], output: Output) -> Operator {
        Operator::new(name).inputs(inputs.iter().copied()).output(output)
    }

    #[test]
    fn parts_of_a_split_die_one_by_one() {
        let sequence = OpSequence::builder()
            .operator(op("m", &[], Output::new("t", 64)))
            .operator(op("v", &["t"], Output::new("a", 32).reads("t")))
            .operator(op("w", &["t"], Output::new("b", 32).reads_at("t", 32)))
            .operator(op("sig", &["b"], Output::new("s", 32).overwrites("b")))
            .operator(op("mul", &["a", "s"], Output::new("y", 32).overwrites("a")))
            .output("y")
            .build()
            .expect("the sequence is right");
        assert_eq!(bound(&sequence, 1), Some(64));
        assert_eq!(bound(&sequence, 64), Some(64));
    }

    /// The copy of the view may lie inside both outputs.
    #[test]
    fn views_of_inputs_are_counted_unless_two_outputs_gather_them() {
        let sequence = |second: &str| {
            OpSequence::builder()
                .input("x", 8)
                .operator(op("v", &["x"], Output::new("a", 4).reads("x")))
                .operator(op("w", &["x"], Output::new("b", 4).reads_at("x", 4)))
                .operator(op("c", &["a"], Output::new("c", 4).gathers("a", 0)))
                .operator(op("d", &[second, "c"], Output::new("d", 4).gathers(second, 0)))
                .build()
                .expect("the sequence is right")
        };
        assert_eq!(bound(&sequence("b"), 1), Some(8));
        assert_eq!(bound(&sequence("a"), 1), Some(0));
    }

    /// `y` may be written over `t`, which may lie inside `u`, exactly over the bytes of both.
    #[test]
    fn an_input_with_the_content_of_the_overwritten_one_may_lie_there() {
        let sequence = OpSequence::builder()
            .operator(op("m", &[], Output::new("t", 4)))
            .operator(op("n", &["t"], Output::new("u", 4).gathers("t", 0)))
            .operator(op("k", &["t", "u"], Output::new("y", 4).overwrites("u")))
            .build()
            .expect("the sequence is right");
        assert_eq!(bound(&sequence, 1), Some(4));
    }

    #[test]
    fn a_slice_keeps_only_its_bytes() {
        let sequence = OpSequence::builder()
            .operator(op("m", &[], Output::new("t", 256)))
            .operator(op("slice", &["t"], Output::new("a", 4).reads_at("t", 8)))
            .operator(op("n", &["t"], Output::new("b", 64)))
            .operator(op("k", &["b"], Output::new("c", 256)))
            .operator(op("add", &["a", "c"], Output::new("y", 8)))
            .output("y")
            .build()
            .expect("the sequence is right");
        assert_eq!(bound(&sequence, 1), Some(4 + 64 + 256));
    }

    #[test]
    fn gathered_inputs_count_once() {
        let sequence = OpSequence::builder()
            .operator(op("m", &[], Output::new("a", 96)))
            .operator(op("n", &[], Output::new("b", 32)))
            .operator(op(
                "cat",
                &["a", "b"],
                Output::new("c", 128).gathers("a", 0).gathers("b", 96),
            ))
            .operator(op(
                "cat",
                &["b", "c"],
                Output::new("d", 168).gathers("b", 0).gathers("c", 32),
            ))
            .output("d")
            .build()
            .expect("the sequence is right");
        assert_eq!(bound(&sequence, 1), Some(136));
        assert_eq!(bound(&sequence, 64), Some(192));
    }

    #[test]
    fn an_output_saves_what_it_may_destroy() {
        let sequence = |other: &str| {
            OpSequence::builder()
                .operator(op("m", &[], Output::new("a", 96)))
                .operator(op("v", &["a"], Output::new("v", 64).reads_at("a", 32)))
                .operator(op("add", &["a", other], Output::new("y", 96).overwrites("a")))
                .output("y")
                .build()
                .expect("the sequence is right")
        };
        assert_eq!(bound(&sequence("a"), 1), Some(96));
        // The view must be read while the output is written, so its bytes are not free.
        assert_eq!(bound(&sequence("v"), 1), Some(160));
    }

    /// A view that runs late keeps only what it shows.
    #[test]
    fn a_late_view_keeps_no_more_than_it_shows() {
        let sequence = OpSequence::builder()
            .operator(op("m", &[], Output::new("t", 64)))
            .operator(op("first", &["t"], Output::new("a", 32).reads("t")))
            .operator(op("use", &["a"], Output::new("b", 4)))
            .operator(op("big", &["b"], Output::new("c", 40)))
            .operator(op("second", &["t"], Output::new("d", 32).reads_at("t", 32)))
            .operator(op("add", &["c", "d"], Output::new("y", 4)))
            .output("y")
            .build()
            .expect("the sequence is right");
        assert_eq!(bound(&sequence, 1), Some(32 + 4 + 40));
    }

    /// Two outputs of one operator may be written over different bytes of one input.
    #[test]
    fn outputs_may_share_an_input_between_them() {
        let split = Operator::new("split")
            .inputs(["t"])
            .output(Output::new("a", 64).overwrites("t"))
            .output(Output::new("b", 64).overwrites_at("t", 64));
        let sequence = OpSequence::builder()
            .operator(op("m", &[], Output::new("t", 128)))
            .operator(split)
            .operator(op("add", &["a", "b"], Output::new("y", 64).overwrites("a")))
            .output("y")
            .build()
            .expect("the sequence is right");
        assert_eq!(bound(&sequence, 64), Some(128));
    }

    /// A copy of the second view dies as a whole, so that an output may be written over it.
    #[test]
    fn a_copy_may_save_a_cell() {
        let last = Operator::new("last")
            .inputs(["b"])
            .output(Output::new("x", 96).overwrites("b"))
            .output(Output::new("y", 96).overwrites("b"));
        let sequence = OpSequence::builder()
            .operator(op("m", &[], Output::new("t", 96)))
            .operator(op("v", &["t"], Output::new("a", 64).reads("t")))
            .operator(op("w", &["t"], Output::new("b", 96).reads("t")))
            .operator(last)
            .output("a")
            .build()
            .expect("the sequence is right");
        assert_eq!(bound(&sequence, 64), Some(320));
    }

    #[test]
    fn operators_of_other_streams_may_run_at_the_same_time() {
        let sequence = OpSequence::builder()
            .operator(op("a", &[], Output::new("x", 64)))
            .operator(op("b", &["x"], Output::new("y", 8)))
            .operator(op("c", &[], Output::new("z", 64)).on_stream(1))
            .operator(op("d", &["z"], Output::new("w", 8)).on_stream(1))
            .output("y")
            .output("w")
            .build()
            .expect("the sequence is right");
        assert_eq!(bound(&sequence, 1), Some(72));
    }
}
