//! The arena of a runtime for a TensorFlow Lite model, as text.

#[cfg(feature = "serde")]
use crate::plan::ArenaEntry;
use crate::{
    Bytes, Plan,
    baselines::tflite::RecordError,
    export::tflite::OfflinePlan,
    import::tflite::{Arena, KernelLibrary, Runtime, TAIL_RELEASE},
    report::{Size, count, fit::hanging, printable},
};

/// The sizes of the head of the arena in bytes; for TensorFlow Lite's interpreter, of its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heads {
    /// The head without the plan.
    pub own: Bytes,
    /// True if the model already has another plan, which the runtime then uses; otherwise its own planner
    /// places everything.
    pub is_planned_already: bool,
    /// The head with the plan in the metadata of the model, as the runtime would place the rest; for the
    /// interpreter, the pool of the plan.
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
        if arena.runtime == Runtime::Interpreter {
            // The interpreter cannot be given offsets.
            return Ok(Self::new(arena.own_size()?, plan.pool_size));
        }
        let online = OfflinePlan::online(arena);
        let own = present.unwrap_or(&online).simulate(arena)?;
        let planned = OfflinePlan::of_plan(arena, plan).simulate(arena)?;
        Ok(Self::new(own.size, planned.size).planned_already(present.is_some()))
    }

    /// The heads of models that share one arena. The head of the arena is as large as the largest of the models' heads.
    /// A model whose plan would not make its head smaller counts without the plan.
    #[must_use]
    pub fn shared(models: &[Self]) -> Self {
        let largest = |of: fn(&Self) -> Bytes| models.iter().map(of).max().unwrap_or(0);
        let planned = largest(|heads| heads.planned.min(heads.own));
        let is_planned_already = models.iter().any(|heads| heads.is_planned_already);
        Self::new(largest(|heads| heads.own), planned).planned_already(is_planned_already)
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
pub fn heads(heads: Heads) -> String {
    sizes("head", heads, ONE)
}

/// The words for the plan in a file, and for the plan that memplan made.
type Words = [&'static str; 2];

const ONE: Words = ["with the file's plan", "with this plan"];
const SEVERAL: Words = ["with files' plans", "with a plan of each"];

fn without(heads: Heads, [present, _]: Words) -> &'static str {
    if heads.is_planned_already { present } else { "by its own planner" }
}

/// Lists the whole arena, head and tail, by the runtime's own planner and with the plan.
fn whole(heads: Heads, tail: Bytes, words: Words) -> String {
    let arena = |by: &str, head: Bytes| {
        let label = format!("  {:<27}", format!("arena {by}"));
        format!("{label}{}\n", Size(head.saturating_add(tail)))
    };
    arena(without(heads, words), heads.own) + &arena(words[1], heads.planned)
}

#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn sizes(of: &str, heads: Heads, words: Words) -> String {
    let Heads { own, planned, .. } = heads;
    let gain = match own.checked_sub(planned) {
        None => format!("{} more; do not use it", Size(planned - own)),
        Some(0) => "no saving".to_owned(),
        Some(less) => format!("{:.1} % saved", less as f64 * 100.0 / own as f64),
    };
    let label = |by: &str| format!("  {:<27}", format!("{of} {by}"));
    let planned = hanging(&label(words[1]), &format!("{}, {gain}", Size(planned)), 29);
    format!("{}{}\n{planned}", label(without(heads, words)), Size(own))
}

/// Reports how large the head of the arena is, by the runtime's own planner and with a plan, and what these
/// figures omit. `faults` is all that is wrong with a plan that the model has already.
#[must_use]
pub fn arena(arena: &Arena, sizes: Heads, kernels: KernelLibrary, faults: &[String]) -> String {
    if arena.runtime == Runtime::Interpreter {
        return interpreter(arena, sizes);
    }
    shared_arena(&[arena], sizes, kernels, faults)
}

/// Reports the same for models of TensorFlow Lite Micro that share one arena.
#[must_use]
pub fn shared_arena(
    arenas: &[&Arena],
    heads: Heads,
    kernels: KernelLibrary,
    faults: &[String],
) -> String {
    let is_one = arenas.len() == 1;
    let words = if is_one { ONE } else { SEVERAL };
    let in_one =
        if is_one { String::new() } else { format!(", {} models in one arena", arenas.len()) };
    let sizes = sizes("head", heads, words);
    let mut text = format!("TensorFlow Lite Micro, {kernels} kernels{in_one}\n{sizes}");
    let Contents { scratch, variables, unknown_scratch } = Contents::of(arenas);
    let tail = match variables {
        0 => "structures and the kernels' tables".to_owned(),
        bytes => format!("structures, the kernels' tables, and variables of {}", Size(bytes)),
    };
    let shared =
        if is_one { "" } else { " The models share it, and it is as large as the largest needs." };
    let held = format!(
        "The head holds tensors and {} of the kernels.{shared}",
        count(scratch as u64, "scratch buffer")
    );
    let tail = if is_one { tail } else { format!("{tail} of all models") };
    let words = match Arena::shared_tail(arenas) {
        Some(bytes) => {
            text.push_str(&whole(heads, bytes, words));
            format!(
                "{held} The whole arena adds the tail, {}: the runtime's {tail}, as arena_used_bytes of the Python package tflite-micro {TAIL_RELEASE} counts them (64 bits). Structures differ in other releases and on 32 bits.",
                Size(bytes)
            )
        }
        None => format!(
            "{held} The arena must also hold the tail, which is not in these figures: the runtime's {tail}."
        ),
    };
    text.push_str(&hanging("  ", &words, 2));
    if !unknown_scratch.is_empty() {
        let words = format!(
            "Scratch memory not known, and counted as 0 B; give it with --scratch: {}.",
            unknown_scratch.join(", ")
        );
        text.push_str(&hanging("  ", &words, 2));
    }
    if let [first, others @ ..] = faults {
        let others = match others.len() as u64 {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        let words = format!(
            "The plan in the file is wrong for {kernels} kernels under these options, and not used in these figures: {}{others}.",
            printable(first)
        );
        text.push_str(&hanging("  ", &words, 2));
    }
    text
}

/// The contents of the arenas of several models.
struct Contents {
    scratch: usize,
    variables: Bytes,
    unknown_scratch: Vec<String>,
}

impl Contents {
    fn of(arenas: &[&Arena]) -> Self {
        let buffers = arenas.iter().flat_map(|arena| &arena.buffers);
        let variables = arenas.iter().map(|arena| arena.variables);
        let unknown = arenas.iter().flat_map(|arena| &arena.unknown_scratch);
        Self {
            scratch: buffers.filter(|buffer| buffer.tensor.is_none()).count(),
            variables: variables.fold(0, Bytes::saturating_add),
            unknown_scratch: unknown.cloned().collect(),
        }
    }
}

fn interpreter(arena: &Arena, heads: Heads) -> String {
    let mut text = format!("TensorFlow Lite's interpreter\n{}", sizes("arena", heads, ONE));
    let apart = [("persistent", arena.persistent), ("heap", arena.heap)];
    if apart.iter().any(|&(_, bytes)| bytes > 0) {
        for (label, bytes) in apart {
            text.push_str(&hanging(&format!("  {label:<27}"), &Size(bytes).to_string(), 29));
        }
        let words = "Persistent are constants that are widened once; on the heap are tensors whose sizes operators find when they run, and shapes.";
        text.push_str(&hanging("  ", words, 2));
    }
    let scratch = arena.buffers.iter().filter(|buffer| buffer.tensor.is_none());
    let scratch = count(scratch.count() as u64, "scratch buffer");
    let mut apart = vec!["other scratch memory of its kernels".to_owned()];
    if arena.variables > 0 {
        apart.push(format!("variables of {}", Size(arena.variables)));
    }
    if arena.called > 0 {
        apart.push(format!("arenas of called subgraphs, of {}", Size(arena.called)));
    }
    let words = format!(
        "The arena holds tensors, the inputs and outputs of the model to the end, and {scratch} stated with --scratch. Not in these figures: {}. The interpreter takes no offsets from outside, and delegates keep tensors in memory of their own.",
        apart.join(", ")
    );
    text.push_str(&hanging("  ", &words, 2));
    text
}

/// Returns the figures of [`arena`] for a plan's file: both heads, and the memory that they do not count.
#[must_use]
#[cfg(feature = "serde")]
pub fn arena_entry(
    arena: &Arena,
    sizes: Heads,
    kernels: KernelLibrary,
    faults: &[String],
) -> ArenaEntry {
    entry(arena.runtime, &[arena], sizes, kernels, faults)
}

/// Returns the figures of [`shared_arena`] for a plan's file.
#[must_use]
#[cfg(feature = "serde")]
pub fn shared_arena_entry(
    arenas: &[&Arena],
    heads: Heads,
    kernels: KernelLibrary,
    faults: &[String],
) -> ArenaEntry {
    entry(Runtime::Micro, arenas, heads, kernels, faults)
}

#[cfg(feature = "serde")]
fn entry(
    runtime: Runtime,
    arenas: &[&Arena],
    heads: Heads,
    kernels: KernelLibrary,
    faults: &[String],
) -> ArenaEntry {
    let Heads { own, is_planned_already, planned } = heads;
    let Contents { scratch, variables, unknown_scratch } = Contents::of(arenas);
    let is_micro = runtime == Runtime::Micro;
    let tail = Arena::shared_tail(arenas);
    let sum = |of: fn(&Arena) -> Bytes| {
        arenas.iter().map(|arena| of(arena)).fold(0, Bytes::saturating_add)
    };
    let called = sum(|arena| arena.called);
    let not_included: &[(bool, &str)] = &[
        (is_micro && tail.is_none(), "structures of the runtime"),
        (is_micro && tail.is_none(), "tables of the kernels"),
        (!is_micro, "other scratch memory of its kernels"),
        (variables > 0 && tail.is_none(), "variables"),
        (called > 0, "arenas of called subgraphs"),
    ];
    let not_included = not_included.iter().filter(|(applies, _)| *applies);
    ArenaEntry {
        runtime: runtime.name().into(),
        models: (arenas.len() > 1).then_some(arenas.len()),
        kernels: is_micro.then(|| kernels.name().into()),
        own,
        planned_already: is_planned_already,
        wrong_plan: faults.to_vec(),
        planned,
        scratch_buffers: scratch,
        unknown_scratch,
        not_included: not_included.map(|&(_, what)| what.to_owned()).collect(),
        persistent: sum(|arena| arena.persistent),
        heap: sum(|arena| arena.heap),
        tail,
        tail_release: tail.map(|_| TAIL_RELEASE.into()),
        variables,
        called,
    }
}
