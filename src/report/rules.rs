//! The rules of a plan: which outputs could be written over inputs, and what lies in the pool.

use crate::{InputRef, lower::LoweringOptions};

/// The rule that nothing is written over an input.
const NO_IN_PLACE: &str = "no in-place";

/// Describes the rules under which an input is planned, such as `in-place rows, inputs in the pool`.
/// `kernels` describes what the kernels of a model may do in place, such as `rows`; other operators
/// declare it.
#[must_use]
pub fn rules(input: InputRef<'_>, kernels: Option<&str>, options: LoweringOptions) -> String {
    let in_place = match (input, kernels) {
        (InputRef::Problem(_), _) => "chunks and links as given".to_owned(),
        (InputRef::Sequence(_), Some("none")) => NO_IN_PLACE.to_owned(),
        (InputRef::Sequence(_), Some(kernels)) => format!("in-place {kernels}"),
        (InputRef::Sequence(_), None) if options.inplace => "in-place as declared".to_owned(),
        (InputRef::Sequence(_), None) => NO_IN_PLACE.to_owned(),
    };
    let pool = [
        (!options.views, ", no views"),
        (!options.gathers, ", all copies"),
        (options.inputs_in_pool, ", inputs in the pool"),
        (options.weights_in_pool, ", weights in the pool"),
    ];
    let pool = pool.into_iter().filter(|(applies, _)| *applies).map(|(_, rule)| rule);
    in_place + &pool.collect::<String>()
}
