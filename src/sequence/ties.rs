//! Ties: dependencies of an output on an input of its operator, and sequences without some of them.

use crate::sequence::{Dependency, OpSequence, Origin, TensorId};

/// One dependency of an output on an input: a view, one of its overwrites, or one of its gathered inputs. A tie
/// that is not required may be given up; the output, or the gathered input, then has memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tie {
    pub(crate) output: TensorId,
    /// Its place in the list of overwrites or gathered inputs; 0 for a view.
    pub(crate) place: usize,
}

impl OpSequence {
    /// Returns the dependency of a tensor: `Fresh` if it is supplied.
    pub(crate) fn dependency(&self, output: TensorId) -> &Dependency<TensorId> {
        match &self.tensor(output).origin {
            Origin::Output { dependency, .. } => dependency,
            Origin::Input | Origin::Weight => &Dependency::Fresh,
        }
    }

    /// The input that a tie binds.
    pub(crate) fn input_of(&self, tie: Tie) -> TensorId {
        match self.dependency(tie.output) {
            Dependency::Reads { input, .. } => *input,
            Dependency::Overwrites(overwrites) => overwrites[tie.place].input,
            Dependency::Gathers(gathers) => gathers[tie.place].input,
            Dependency::Fresh => tie.output,
        }
    }

    /// The same sequence without some ties.
    pub(crate) fn without(&self, given_up: &[Tie]) -> Self {
        let mut given_up = given_up.to_vec();
        // Remove the last places of each output first, so that the places before them stay valid.
        given_up.sort_unstable_by(|a, b| b.cmp(a));
        given_up.dedup();
        let mut without = self.clone();
        for Tie { output, place } in given_up {
            let Origin::Output { dependency, .. } = &mut without.tensors[output.index()].origin
            else {
                continue;
            };
            match dependency {
                Dependency::Fresh => {}
                Dependency::Reads { .. } => *dependency = Dependency::Fresh,
                Dependency::Overwrites(overwrites) => {
                    overwrites.remove(place);
                    if overwrites.is_empty() {
                        *dependency = Dependency::Fresh;
                    }
                }
                Dependency::Gathers(gathers) => {
                    gathers.remove(place);
                    if gathers.is_empty() {
                        *dependency = Dependency::Fresh;
                    }
                }
            }
        }
        without
    }

    /// Requires all gathered inputs to lie inside their outputs.
    pub(crate) fn require_gathers(&mut self) {
        for tensor in &mut self.tensors {
            if let Origin::Output { dependency: Dependency::Gathers(gathers), .. } =
                &mut tensor.origin
            {
                for gather in gathers {
                    gather.required = true;
                }
            }
        }
    }
}

impl OpSequence {
    /// By tensor: the tensor whose memory it shares, through views and required overwrites; itself if it shares none.
    pub(crate) fn memory_roots(&self) -> Vec<TensorId> {
        let mut roots: Vec<TensorId> =
            (0..self.tensors().len()).map(TensorId::from_index).collect();
        for &output in self.operators().iter().flat_map(|operator| &operator.outputs) {
            let Origin::Output { dependency, .. } = &self.tensor(output).origin else { continue };
            let shared = match dependency {
                Dependency::Reads { input, .. } => Some(*input),
                Dependency::Overwrites(overwrites) => {
                    overwrites.iter().find(|overwrite| overwrite.required).map(|one| one.input)
                }
                Dependency::Fresh | Dependency::Gathers(_) => None,
            };
            if let Some(input) = shared {
                roots[output.index()] = roots[input.index()];
            }
        }
        roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operator, Output};

    #[test]
    fn a_sequence_without_ties_has_only_fresh_outputs() {
        let sequence = OpSequence::builder()
            .operator(Operator::new("a").output(Output::new("a", 8)).output(Output::new("b", 8)))
            .operator(Operator::new("v").inputs(["a"]).output(Output::new("v", 4).reads_at("a", 4)))
            .operator(
                Operator::new("add")
                    .inputs(["a", "b"])
                    .output(Output::new("c", 8).overwrites("a").overwrites("b")),
            )
            .operator(
                Operator::new("concat")
                    .inputs(["c", "v"])
                    .output(Output::new("d", 12).gathers("c", 0).gathers("v", 8)),
            )
            .build()
            .expect("the sequence is right");
        let id = |name| sequence.tensor_id(name).expect("the tensor exists");
        let dependency = |sequence: &OpSequence, name| match &sequence.tensor(id(name)).origin {
            Origin::Output { dependency, .. } => dependency.clone(),
            _ => Dependency::Fresh,
        };
        let tie = |name, place| Tie { output: id(name), place };
        let one = sequence.without(&[tie("c", 0), tie("d", 1)]);
        assert!(
            matches!(&dependency(&one, "c"), Dependency::Overwrites(list) if list[0].input == id("b"))
        );
        assert!(matches!(&dependency(&one, "d"), Dependency::Gathers(list) if list.len() == 1));
        let none =
            sequence.without(&[tie("v", 0), tie("c", 0), tie("c", 1), tie("d", 0), tie("d", 1)]);
        for name in ["v", "c", "d"] {
            assert_eq!(dependency(&none, name), Dependency::Fresh, "{name}");
        }
    }
}
