//! The arena of a runtime for a TensorFlow Lite model, as text.

use std::fmt::Write;

use crate::{
    Bytes, Plan,
    baselines::tflite::RecordError,
    export::tflite::OfflinePlan,
    import::tflite::{Arena, KernelLibrary, Runtime, TAIL_RELEASE},
    plan::ArenaEntry,
    report::{Size, count, fit::hanging, printable},
};

/// Lists the heads by the runtime's own planner and with a plan, in bytes, with the gain in percent.
#[must_use]
pub fn heads(own: Bytes, planned: Bytes) -> String {
    sizes("head", ["by its own planner", "with this plan"], own, planned)
}

/// The words for the arena as it is and with the plan that memplan made.
fn words(entry: &ArenaEntry) -> [&'static str; 2] {
    match (entry.models.is_some(), entry.planned_already) {
        (false, false) => ["by its own planner", "with this plan"],
        (false, true) => ["with the file's plan", "with this plan"],
        (true, false) => ["by its own planner", "with a plan of each"],
        (true, true) => ["with files' plans", "with a plan of each"],
    }
}

#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn sizes(of: &str, words: [&str; 2], own: Bytes, planned: Bytes) -> String {
    let gain = match own.checked_sub(planned) {
        None => format!("{} more; do not use it", Size(planned - own)),
        Some(0) => "no saving".to_owned(),
        Some(less) => format!("{:.1} % saved", less as f64 * 100.0 / own as f64),
    };
    let label = |by: &str| format!("  {:<27}", format!("{of} {by}"));
    let planned = hanging(&label(words[1]), &format!("{}, {gain}", Size(planned)), 29);
    format!("{}{}\n{planned}", label(words[0]), Size(own))
}

/// Reports how large the head of the arena of a TensorFlow Lite model is, by the runtime's own planner and with a plan,
/// and what these figures omit; or the same for models of TensorFlow Lite Micro that share one arena.
#[must_use]
pub fn arena(entry: &ArenaEntry) -> String {
    let &ArenaEntry { own, planned, scratch_buffers, variables, .. } = entry;
    let Some(kernels) = &entry.kernels else { return interpreter(entry) };
    let words = words(entry);
    let in_one = entry.models.map_or(String::new(), |of| format!(", {of} models in one arena"));
    let is_one = entry.models.is_none();
    let sizes = sizes("head", words, own, planned);
    let mut text = format!("TensorFlow Lite Micro, {kernels} kernels{in_one}\n{sizes}");
    let tail = match variables {
        0 => "structures and the kernels' tables".to_owned(),
        bytes => format!("structures, the kernels' tables, and variables of {}", Size(bytes)),
    };
    let shared =
        if is_one { "" } else { " The models share it, and it is as large as the largest needs." };
    let held = format!(
        "The head holds tensors and {} of the kernels.{shared}",
        count(scratch_buffers as u64, "scratch buffer")
    );
    let tail = if is_one { tail } else { format!("{tail} of all models") };
    let words = match entry.tail {
        Some(bytes) => {
            for (by, head) in words.into_iter().zip([own, planned]) {
                let label = format!("  {:<27}", format!("arena {by}"));
                let _ = writeln!(text, "{label}{}", Size(head.saturating_add(bytes)));
            }
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
    if !entry.unknown_scratch.is_empty() {
        let words = format!(
            "Scratch memory not known, and counted as 0 B; give it with --scratch: {}.",
            entry.unknown_scratch.join(", ")
        );
        text.push_str(&hanging("  ", &words, 2));
    }
    if let [first, others @ ..] = &*entry.wrong_plan {
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

fn interpreter(entry: &ArenaEntry) -> String {
    let sizes = sizes("arena", words(entry), entry.own, entry.planned);
    let mut text = format!("TensorFlow Lite's interpreter\n{sizes}");
    let apart = [("persistent", entry.persistent), ("heap", entry.heap)];
    if apart.iter().any(|&(_, bytes)| bytes > 0) {
        for (label, bytes) in apart {
            text.push_str(&hanging(&format!("  {label:<27}"), &Size(bytes).to_string(), 29));
        }
        let words = "Persistent are constants that are widened once; on the heap are tensors whose sizes operators find when they run, and shapes.";
        text.push_str(&hanging("  ", words, 2));
    }
    let scratch = count(entry.scratch_buffers as u64, "scratch buffer");
    let mut apart = vec!["other scratch memory of its kernels".to_owned()];
    if entry.variables > 0 {
        apart.push(format!("variables of {}", Size(entry.variables)));
    }
    if entry.called > 0 {
        apart.push(format!("arenas of called subgraphs, of {}", Size(entry.called)));
    }
    let words = format!(
        "The arena holds tensors, the inputs and outputs of the model to the end, and {scratch} stated with --scratch. Not in these figures: {}. The interpreter takes no offsets from outside, and delegates keep tensors in memory of their own.",
        apart.join(", ")
    );
    text.push_str(&hanging("  ", &words, 2));
    text
}

/// Returns the figures of a model's arena: both heads, as the runtime would place the rest, and the memory that they do
/// not count. `plan` is a plan of the model's sequence, `present` a right plan that the model has already, and `faults`
/// is all that is wrong with a plan that it has.
///
/// # Errors
///
/// If the sum of sizes and offsets exceeds 64 bits, or the plan in the model is for another model.
pub fn arena_entry(
    arena: &Arena,
    plan: &Plan,
    present: Option<&OfflinePlan>,
    kernels: KernelLibrary,
    faults: &[String],
) -> Result<ArenaEntry, RecordError> {
    let is_micro = arena.runtime == Runtime::Micro;
    let (own, planned) = if is_micro {
        let online = OfflinePlan::online(arena);
        let own = present.unwrap_or(&online).head(arena)?;
        (own.total, OfflinePlan::of_plan(arena, plan).head(arena)?.total)
    } else {
        // The interpreter cannot be given offsets.
        (arena.own_size()?, plan.pool_size)
    };
    let scratch = arena.buffers.iter().filter(|buffer| buffer.tensor.is_none());
    let entry = ArenaEntry {
        runtime: arena.runtime.name().into(),
        models: None,
        kernels: is_micro.then(|| kernels.name().into()),
        own,
        planned_already: is_micro && present.is_some(),
        wrong_plan: faults.to_vec(),
        planned,
        scratch_buffers: scratch.count(),
        unknown_scratch: arena.unknown_scratch.clone(),
        not_included: Vec::new(),
        persistent: arena.persistent,
        heap: arena.heap,
        tail: None,
        tail_release: None,
        variables: arena.variables,
        called: arena.called,
    };
    Ok(with_tail(entry, Arena::shared_tail(&[arena])))
}

/// Returns the figures of models of TensorFlow Lite Micro that share one arena; `None` if there is no model. The head
/// is as large as the largest of the models' heads. A model whose plan would not make its head smaller counts without
/// the plan.
#[must_use]
pub fn shared_arena_entry(models: Vec<(&Arena, ArenaEntry)>) -> Option<ArenaEntry> {
    let (arenas, entries): (Vec<&Arena>, Vec<ArenaEntry>) = models.into_iter().unzip();
    let least =
        entries.into_iter().map(|one| ArenaEntry { planned: one.planned.min(one.own), ..one });
    let mut all = least.reduce(|mut all, one| {
        all.wrong_plan.extend(one.wrong_plan);
        all.unknown_scratch.extend(one.unknown_scratch);
        ArenaEntry {
            own: all.own.max(one.own),
            planned: all.planned.max(one.planned),
            planned_already: all.planned_already || one.planned_already,
            scratch_buffers: all.scratch_buffers + one.scratch_buffers,
            variables: all.variables.saturating_add(one.variables),
            called: all.called.saturating_add(one.called),
            ..all
        }
    })?;
    all.models = (arenas.len() > 1).then_some(arenas.len());
    Some(with_tail(all, Arena::shared_tail(&arenas)))
}

/// Sets the tail, and what is then not included.
fn with_tail(mut entry: ArenaEntry, tail: Option<Bytes>) -> ArenaEntry {
    let is_micro = entry.kernels.is_some();
    let not_included = [
        (is_micro && tail.is_none(), "structures of the runtime"),
        (is_micro && tail.is_none(), "tables of the kernels"),
        (!is_micro, "other scratch memory of its kernels"),
        (entry.variables > 0 && tail.is_none(), "variables"),
        (entry.called > 0, "arenas of called subgraphs"),
    ];
    let not_included = not_included.into_iter().filter(|(applies, _)| *applies);
    entry.not_included = not_included.map(|(_, what)| what.to_owned()).collect();
    (entry.tail, entry.tail_release) = (tail, tail.map(|_| TAIL_RELEASE.into()));
    entry
}
