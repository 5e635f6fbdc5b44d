//! The lower bound that needs no search: the bytes of each operator with its operands.

use crate::{Bytes, order::model::Model};

impl Model {
    /// A lower bound for every order: for each operator, everything that it reads and produces is live in its
    /// step; so are the bytes before the first operator and after the last one.
    pub(super) fn operands(&self) -> Bytes {
        let operator = |operator: usize| {
            let reads = self.reads.get(operator).iter().map(|&chunk| self.sizes[chunk as usize]);
            // An output may save chunks that are too small to count.
            let adds = self.adds[operator].saturating_sub(self.free_outputs(operator));
            self.base + reads.sum::<Bytes>() + adds
        };
        let kept = (0..self.sizes.len()).filter(|&chunk| self.kept[chunk]);
        let at_end = self.base + kept.map(|chunk| self.sizes[chunk]).sum::<Bytes>();
        let steps = (0..self.operators()).map(operator);
        steps.chain([at_end, self.least_first_step()]).max().unwrap_or(0)
    }

    /// Returns the most bytes that the outputs of an operator may save by overwriting something.
    pub(super) fn free_outputs(&self, operator: usize) -> Bytes {
        let overwrites = &self.overwrites[operator];
        let first = |at: &usize| {
            overwrites[..*at].iter().all(|overwrite| overwrite.output != overwrites[*at].output)
        };
        let most = |at: usize| {
            let same = overwrites[at..].iter().filter(|w| w.output == overwrites[at].output);
            same.map(|overwrite| overwrite.bytes).max().unwrap_or(0)
        };
        (0..overwrites.len()).filter(first).map(most).sum()
    }
}
