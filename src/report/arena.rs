//! The arena of TensorFlow Lite Micro for a model, in words.

#[cfg(feature = "serde")]
use crate::plan::ArenaEntry;
use crate::{
    Bytes, Plan,
    export::tflite::OfflinePlan,
    import::tflite::{Arena, KernelLibrary},
    planner::tflite::RecordError,
    report::{Size, count, fit::hanging},
};

/// The sizes of the head of the arena in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heads {
    /// The head without the plan.
    pub own: Bytes,
    /// True if the model already has another plan, which the runtime then uses; otherwise its own planner
    /// places everything.
    pub is_planned_already: bool,
    /// The head with the plan in the metadata of the model, as the runtime would place the rest.
    pub planned: Bytes,
}

impl Heads {
    /// Creates the heads without a plan and with it, in bytes.
    #[must_use]
    pub const fn new(own: Bytes, planned: Bytes) -> Self {
        Self { own, is_planned_already: false, planned }
    }

    /// Simulates both heads, for a plan of the model's sequence. `present` is the plan in the model, if there is one.
    ///
    /// # Errors
    ///
    /// If the sum of sizes and offsets exceeds 64 bits, or the plan in the model is for another
    /// model.
    pub fn of(
        arena: &Arena,
        plan: &Plan,
        present: Option<&OfflinePlan>,
    ) -> Result<Self, RecordError> {
        let online = OfflinePlan::online(arena);
        let own = present.unwrap_or(&online).simulate(arena)?;
        let planned = OfflinePlan::of_plan(arena, plan).simulate(arena)?;
        Ok(Self::new(own.size, planned.size).planned_already(present.is_some()))
    }

    /// Sets whether the model already has another plan, which the first head is for.
    #[must_use]
    pub const fn planned_already(mut self, is_planned_already: bool) -> Self {
        self.is_planned_already = is_planned_already;
        self
    }
}

/// Lists both heads, with the gain in percent.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
pub fn heads(heads: Heads) -> String {
    let Heads { own, planned, is_planned_already } = heads;
    let gain = match own.checked_sub(planned) {
        None => format!("{} more; do not use it", Size(planned - own)),
        Some(0) => "no less".to_owned(),
        Some(less) => format!("{:.1} % less", less as f64 * 100.0 / own as f64),
    };
    let label = if is_planned_already { "with the file's plan" } else { "by its own planner  " };
    let planned =
        hanging("  head with this plan        ", &format!("{}, {gain}", Size(planned)), 29);
    format!("  head {label}  {}\n{planned}", Size(own))
}

/// Reports how large the head of the arena is, by the runtime's own planner and with a plan, and what these
/// figures leave out.
#[must_use]
pub fn arena(arena: &Arena, sizes: Heads, kernels: KernelLibrary) -> String {
    let scratch = arena.buffers.iter().filter(|buffer| buffer.tensor.is_none());
    let mut text = format!("TensorFlow Lite Micro, {kernels} kernels\n{}", heads(sizes));
    let (buffers, variables) = (scratch.count() as u64, arena.variables);
    let variables = match variables {
        0 => String::new(),
        bytes => format!(", and variables of {}", Size(bytes)),
    };
    let words = format!(
        "The head holds tensors and {} of the kernels. The arena must also hold the tail, which is not in these figures: the runtime's structures, tables of the kernels{variables}.",
        count(buffers, "scratch buffer")
    );
    text.push_str(&hanging("  ", &words, 2));
    if !arena.unknown_scratch.is_empty() {
        let words = format!(
            "Scratch memory not known, and counted as none; state it with --scratch: {}.",
            arena.unknown_scratch.join(", ")
        );
        text.push_str(&hanging("  ", &words, 2));
    }
    text
}

/// Returns the same for a plan's file: the arena of a model with both heads, and the memory that these do not
/// count.
#[must_use]
#[cfg(feature = "serde")]
pub fn arena_entry(arena: &Arena, sizes: Heads, kernels: KernelLibrary) -> ArenaEntry {
    let Heads { own, is_planned_already, planned } = sizes;
    let scratch = arena.buffers.iter().filter(|buffer| buffer.tensor.is_none());
    let mut not_included = vec!["structures of the runtime", "tables of the kernels"];
    if arena.variables > 0 {
        not_included.push("variables");
    }
    ArenaEntry {
        runtime: "tflite-micro".into(),
        kernels: kernels.name().into(),
        own,
        planned_already: is_planned_already,
        planned,
        scratch_buffers: scratch.count(),
        unknown_scratch: arena.unknown_scratch.clone(),
        not_included: not_included.into_iter().map(str::to_owned).collect(),
        variables: arena.variables,
    }
}
