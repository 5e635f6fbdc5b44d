//! The ties that a plan chooses from: outputs of a sequence, or optional requests and parts of a problem.

use std::borrow::Cow;

use crate::{
    Bytes, InputRef, PlanError, Planner, Problem,
    lower::{
        Grain, LoweringOptions, content_bound, has_parts, has_pieces, has_untried, lower_apart,
        optional_ties, overlap_distances,
    },
    plan::PlannedCopy,
    planner::{Prepared, bodies::Flattened},
    problem::constraints::Pool,
    sequence::{OpSequence, Tie},
};

/// A tie between two tensors, or between two chunks of a problem: the place of an optional request, or of an optional
/// part, in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::planner) enum Tied {
    Tensors(Tie),
    Chunks(usize),
    Part(usize),
}

/// Which lowered inputs a search goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Any,
    /// Those whose chunks consist of another number of runs.
    OtherRuns(usize),
    /// Those with all gathered inputs and parts that are left in their places.
    Gathered,
}

/// An input with its ties.
#[derive(Clone, Copy)]
pub(in crate::planner) enum Source<'a> {
    /// A sequence as it was given, and with the memory that its bodies need.
    Sequence(&'a OpSequence, &'a Flattened<'a>),
    Problem(&'a Problem),
}

impl<'a> Source<'a> {
    pub(super) const fn input(self) -> InputRef<'a> {
        match self {
            Self::Sequence(sequence, _) => InputRef::Sequence(sequence),
            Self::Problem(problem) => InputRef::Problem(problem),
        }
    }

    /// The number of operators, or of chunks.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Sequence(sequence, _) => sequence.operators().len(),
            Self::Problem(problem) => problem.len(),
        }
    }

    /// The ties that may be given up.
    pub(super) fn ties(self, options: LoweringOptions) -> Vec<Tied> {
        match self {
            Self::Sequence(_, flat) => {
                let ties = optional_ties(&flat.sequence, options);
                ties.into_iter().map(Tied::Tensors).collect()
            }
            Self::Problem(problem) => {
                let has_bytes = |chunk| problem.chunk(chunk).size > 0;
                let requests = problem.requests().iter().enumerate();
                let optional = requests.filter(|(_, request)| {
                    !request.required
                        && has_bytes(request.overwriter)
                        && has_bytes(request.overwritten)
                });
                let parts = if options.gathers { problem.optional_parts().len() } else { 0 };
                let parts = (0..parts).map(Tied::Part);
                optional.map(|(at, _)| Tied::Chunks(at)).chain(parts).collect()
            }
        }
    }

    /// Returns whether the bytes of a tensor may live for different times.
    pub(super) fn has_parts(self, options: LoweringOptions) -> bool {
        match self {
            Self::Sequence(_, flat) => has_parts(&flat.sequence, options),
            Self::Problem(_) => false,
        }
    }

    /// The grains of lifetimes, the simpler ones first.
    pub(super) fn grains(self, options: LoweringOptions) -> &'static [Grain] {
        match self {
            Self::Sequence(_, flat) if has_pieces(&flat.sequence, options) => {
                &[Grain::Chunks, Grain::Bytes, Grain::Pieces]
            }
            Self::Sequence(..) => &[Grain::Chunks, Grain::Bytes],
            Self::Problem(_) => &[Grain::Chunks],
        }
    }

    /// Returns whether there may be plans that no set of ties leads to, such as with an output further below an input,
    /// or with a gathered view inside the output.
    pub(super) fn has_more(self, options: LoweringOptions) -> bool {
        match self {
            Self::Sequence(_, flat) => {
                let has_overlaps = overlap_distances(&flat.sequence).next().is_some();
                has_overlaps || has_untried(&flat.sequence, options)
            }
            Self::Problem(_) => false,
        }
    }

    /// The fewest bytes of a pool without some ties, whatever else is chosen; `None` if that cannot be counted.
    pub(in crate::planner) fn bound(
        self,
        planner: &Planner<'_>,
        given_up: &[Tied],
    ) -> Option<Bytes> {
        let alignment = match self {
            Self::Sequence(..) => planner.placing().alignment,
            Self::Problem(problem) => planner.alignment.unwrap_or(problem.alignment()),
        };
        // A pool may end at its capacity, off the alignment.
        let is_cut =
            |pool: &Pool| pool.capacity.is_some_and(|bytes| !bytes.is_multiple_of(alignment));
        if planner.memories.pools.iter().any(is_cut) {
            return None;
        }
        match self {
            Self::Sequence(_, flat) => {
                let sequence = if given_up.is_empty() {
                    Cow::Borrowed(&*flat.sequence)
                } else {
                    Cow::Owned(without(flat, given_up))
                };
                content_bound(&sequence, planner.lowering, planner.placing())
            }
            Self::Problem(problem) => {
                let padding = planner.padding.unwrap_or(problem.padding());
                let gathers = planner.lowering.gathers;
                let problem = if gathers && given_up.is_empty() {
                    Cow::Borrowed(problem)
                } else {
                    let is_given_up = |part| !gathers || given_up.contains(&Tied::Part(part));
                    let is_request = |at| given_up.contains(&Tied::Chunks(at));
                    Cow::Owned(problem.without(is_request, is_given_up, false).ok()?)
                };
                problem.bound_over_choices(alignment, padding)
            }
        }
    }

    /// Lowers the input without some ties. `None` if the search has tried as many runs.
    pub(super) fn prepare<'p>(
        self,
        planner: &Planner<'p>,
        given_up: &[Tied],
        grain: Grain,
        wanted: Wanted,
    ) -> Result<Option<Prepared<'p>>, PlanError> {
        match self {
            Self::Sequence(_, flat) => {
                let mut sequence = without(flat, given_up);
                if wanted == Wanted::Gathered {
                    sequence.require_gathers();
                }
                let lowered = lower_apart(&sequence, planner.lowering, planner.placing(), grain)?;
                if wanted == Wanted::OtherRuns(lowered.runs.len()) {
                    return Ok(None);
                }
                let bodies = flat.bodies.clone();
                planner.prepare_lowered(self.input(), lowered, (&sequence).into(), bodies).map(Some)
            }
            Self::Problem(problem) => {
                let without = problem.without(
                    |at| given_up.contains(&Tied::Chunks(at)),
                    |at| given_up.contains(&Tied::Part(at)),
                    wanted == Wanted::Gathered,
                )?;
                planner.prepare(InputRef::Problem(&without)).map(Some)
            }
        }
    }

    /// The copy that giving up a tie causes, if any.
    pub(super) fn copy(self, tied: Tied) -> Option<PlannedCopy> {
        let (sequence, tie) = match (self, tied) {
            (Self::Sequence(sequence, _), Tied::Tensors(tie)) => (sequence, tie),
            (Self::Problem(problem), Tied::Part(at)) => {
                let part = problem.optional_parts()[at];
                let [output, input] =
                    [part.whole, part.part].map(|chunk| problem.name(chunk).into_boxed_str());
                return Some(PlannedCopy { output, input, size: problem.chunk(part.part).size });
            }
            _ => return None,
        };
        PlannedCopy::of(sequence, tie)
    }

    /// Returns whether one of the two tied tensors or chunks is alive at the peak of a trial.
    pub(super) fn is_at_peak(self, tied: Tied, trial: &Prepared<'_>) -> bool {
        match (self, tied) {
            (Self::Sequence(sequence, _), Tied::Tensors(tie)) => {
                let mut tensors = [tie.output, sequence.input_of(tie)].into_iter();
                tensors.any(|tensor| {
                    trial.place(tensor).chunk().is_some_and(|(chunk, _)| trial.is_at_peak(chunk))
                })
            }
            (Self::Problem(problem), Tied::Chunks(at)) => {
                let request = problem.requests()[at];
                trial.is_at_peak(request.overwriter) || trial.is_at_peak(request.overwritten)
            }
            (Self::Problem(problem), Tied::Part(at)) => {
                let part = problem.optional_parts()[at];
                trial.is_at_peak(part.part) || trial.is_at_peak(part.whole)
            }
            _ => false,
        }
    }
}

/// A sequence without some ties.
fn without(flat: &Flattened<'_>, given_up: &[Tied]) -> OpSequence {
    let ties = given_up.iter().filter_map(|tied| match *tied {
        Tied::Tensors(tie) => Some(tie),
        Tied::Chunks(_) | Tied::Part(_) => None,
    });
    flat.sequence.without(&ties.collect::<Vec<_>>())
}
