//! Operators on several streams, and the operators that each must wait for.

use crate::{Step, sequence::OpSequence};

impl OpSequence {
    /// The most streams of a sequence.
    pub const MAX_STREAMS: usize = 64;

    /// The number of streams: one more than the highest that an operator runs on, and at least 1.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.operators.iter().map(|operator| operator.stream + 1).max().unwrap_or(1)
    }

    /// By step: the operators of other streams that an operator must wait for before it runs, ascending. They
    /// are the producers of its inputs and the operators that it is declared to run after, except operators that
    /// are certainly over because the stream has already waited for later ones. A runtime whose streams wait for
    /// these operators, and for no others, runs every plan of the sequence safely.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output};
    ///
    /// let sequence = OpSequence::builder()
    ///     .operator(Operator::new("a").output(Output::new("x", 64)))
    ///     .operator(Operator::new("b").inputs(["x"]).output(Output::new("y", 64)))
    ///     .operator(Operator::new("c").on_stream(1).inputs(["x", "y"]).output(Output::new("z", 8)))
    ///     .operator(Operator::new("d").on_stream(1).inputs(["y", "z"]).output(Output::new("w", 8)))
    ///     .build()?;
    /// assert_eq!(sequence.waits(), [vec![], vec![], vec![1], vec![]]);
    /// # Ok::<(), memplan::SequenceError>(())
    /// ```
    #[must_use]
    pub fn waits(&self) -> Vec<Vec<usize>> {
        let streams = self.streams();
        if streams == 1 {
            return vec![Vec::new(); self.operators.len()];
        }
        // By step: the steps of each stream that are over once this one is.
        let mut after: Vec<Box<[Step]>> = Vec::with_capacity(self.operators.len());
        let mut last: Vec<Option<usize>> = vec![None; streams];
        let mut all = Vec::with_capacity(self.operators.len());
        for (step, operator) in self.operators.iter().enumerate() {
            let mut clock: Box<[Step]> = match last[operator.stream] {
                Some(before) => after[before].clone(),
                None => vec![0; streams].into(),
            };
            let mut waits = Vec::new();
            for first in self.direct_predecessors(step).into_iter().rev() {
                let of = self.operators[first].stream;
                // The own entry of a clock is the position of the operator in its stream, from 1.
                if after[first][of] <= clock[of] {
                    continue;
                }
                for (at, &over) in clock.iter_mut().zip(&after[first]) {
                    *at = (*at).max(over);
                }
                waits.push(first);
            }
            waits.reverse();
            all.push(waits);
            clock[operator.stream] += 1;
            after.push(clock);
            last[operator.stream] = Some(step);
        }
        all
    }

    /// The producers of an operator's inputs and the operators that it is declared to run after,
    /// ascending and without repeats.
    pub(crate) fn direct_predecessors(&self, step: usize) -> Vec<usize> {
        let operator = &self.operators[step];
        let producer = |input: &super::TensorId| self.tensor(*input).producer();
        let mut first: Vec<usize> = operator.inputs.iter().filter_map(producer).collect();
        first.extend(&operator.after);
        first.sort_unstable();
        first.dedup();
        first
    }
}
