//! Plans as output for readers and other programs: text, memory maps, JSON, CSV.
//!
//! Functions that name the steps of a plan take the sequence whose operators they name, or `None` if there is none:
//! steps have only numbers then.

mod advice;
mod alive;
#[cfg(feature = "tflite")]
mod arena;
#[cfg(feature = "files")]
mod audit;
mod compare;
mod conflict;
mod count;
#[cfg(feature = "files")]
mod csv;
mod describe;
mod explain;
mod fit;
#[cfg(feature = "files")]
mod html;
#[cfg(feature = "files")]
mod json;
mod kept;
mod map;
mod maps;
mod markup;
mod offsets;
mod onnxruntime;
mod operators;
mod pools;
mod profile;
mod reasons;
mod recomputation;
#[cfg(feature = "files")]
mod recording;
mod reordering;
mod reruns;
mod rules;
mod size;
mod summary;
mod svg;
mod times;
#[cfg(feature = "files")]
mod trace;
mod traffic;
mod verification;

pub use crate::printable::printable;
#[cfg(feature = "files")]
pub use advice::advice_json;
pub use advice::{Change, advice, advice_text};
#[cfg(feature = "tflite")]
pub use arena::{arena, arena_entry, heads, shared_arena_entry};
#[cfg(feature = "files")]
pub use audit::audit;
#[cfg(feature = "files")]
pub use compare::comparisons_json;
pub use compare::{comparison, comparisons, seconds};
pub use conflict::conflict;
pub use count::count;
#[cfg(feature = "files")]
pub use csv::{not_in_csv, write_plan_csv, write_problem_csv};
pub use explain::explain;
#[cfg(feature = "files")]
pub use explain::explain_json;
#[cfg(feature = "files")]
pub use html::{MapSheet, memory_map_html};
#[cfg(feature = "files")]
pub use json::{
    write_json, write_plan_file, write_plan_json, write_problem_json, write_sequence_json,
};
pub use map::{MapOptions, memory_map};
pub use maps::{memory_maps, memory_maps_svg, pool_maps, pool_maps_svg};
pub use offsets::offsets;
#[cfg(feature = "serde")]
pub use onnxruntime::memory_pattern_entry;
#[cfg(feature = "files")]
pub use onnxruntime::memory_pattern_json;
pub use onnxruntime::{compared_patterns, memory_pattern};
#[cfg(feature = "files")]
pub use operators::operator_kinds_json;
pub use operators::operator_table;
pub use pools::{by_pool, in_buffers, pool_title};
pub use recomputation::{recomputation, recompute_curve};
#[cfg(feature = "files")]
pub use recomputation::{recomputation_json, recompute_curve_json};
#[cfg(feature = "files")]
pub use recording::{recording, recording_json};
pub use reordering::reordering;
#[cfg(feature = "files")]
pub use reordering::reordering_json;
pub use reruns::explain_reruns;
#[cfg(feature = "files")]
pub use reruns::reruns_json;
pub use rules::rules;
pub(crate) use size::Size;
pub use size::size;
pub use summary::{bound_name, dims, scoped, summary};
pub use svg::{memory_map_svg, recompute_curve_svg, simulation_svg};
#[cfg(feature = "files")]
pub use trace::trace;
pub use traffic::traffic;
#[cfg(feature = "files")]
pub use traffic::traffic_json;
pub use verification::{bound_ratio, verification, violations};

use crate::{OpSequence, Step};

/// Names a step by its operator, if the sequence is known, as `step 4 (conv1)`, or as `step 4`.
fn step_name(sequence: Option<&OpSequence>, step: Step) -> String {
    match operator_at(sequence, step) {
        Some(operator) => format!("step {step} ({})", printable(&operator)),
        None => format!("step {step}"),
    }
}

/// Names a step with a long operator name shortened, for text of limited width.
fn short_step(sequence: Option<&OpSequence>, step: Step) -> String {
    match operator_at(sequence, step) {
        Some(operator) => format!("step {step} ({})", short(&operator)),
        None => format!("step {step}"),
    }
}

/// The name of the operator of a step, if the sequence is known and has that step.
fn operator_at(sequence: Option<&OpSequence>, step: Step) -> Option<String> {
    let sequence = sequence?;
    let at = usize::try_from(step).ok().filter(|&at| at < sequence.operators().len())?;
    Some(sequence.operator_name(at))
}

/// Shortens a name for use in a sentence.
fn short(name: &str) -> String {
    fit::shortened(&printable(name), 28).into_owned()
}
