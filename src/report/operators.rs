//! The operators of a sequence by kind: which outputs are views, which are written over an input,
//! and why the others have memory of their own.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write,
};

use crate::{
    Bytes, OpSequence, PlanError, Planner,
    lower::{Lowered, LoweredPlace, RejectedTie},
    problem::{ChunkId, RejectReason},
    report::{Size, count, fit::wrapped, printable},
    sequence::{Dependency, Origin, TensorId},
};

/// The number and total size of some outputs.
#[derive(Clone, Copy, Default)]
struct Outputs {
    count: u64,
    bytes: Bytes,
}

impl Outputs {
    fn add(&mut self, bytes: Bytes) {
        self.count += 1;
        // The sum of the views' sizes may exceed 64 bits.
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The operators of one kind.
struct OperatorKind {
    /// The kind, such as `Conv`; may be empty.
    kind: Box<str>,
    operators: u64,
    /// Outputs that are views of an input, and share its memory.
    views: Outputs,
    /// Outputs that are written over an input.
    in_place: Outputs,
    /// Outputs in memory of their own.
    new: Outputs,
    /// The number of outputs of unknown size, whether they are written over an input or not. Views
    /// of unknown size count as views.
    unknown: u64,
    /// The reasons why outputs in new memory are not written over an input, the most bytes first.
    reasons: Vec<(Box<str>, Outputs)>,
}

/// Groups the operators of a sequence by kind; kinds with the most bytes of new memory come first.
fn operator_kinds(
    sequence: &OpSequence,
    planner: &Planner<'_>,
    why: impl Fn(&str) -> Option<String>,
    is_unknown: impl Fn(&str) -> bool,
) -> Result<Vec<OperatorKind>, PlanError> {
    let lowered = &planner.lower(sequence)?;
    let plan = planner.plan(sequence)?;
    let copied: HashSet<&str> = plan.copies.list.iter().map(|copy| &*copy.output).collect();
    let mut refusals: HashMap<TensorId, &RejectedTie> = HashMap::new();
    for refused in &lowered.refused {
        refusals.entry(refused.output).or_insert(refused);
    }
    let last_readers = LastReaders::new(sequence, lowered);
    // By kind: an operator that reads the input that an operator of this kind would overwrite.
    let mut examples: HashMap<&str, usize> = HashMap::new();
    let inside = parts_inside(lowered);
    let mut kinds: BTreeMap<&str, (OperatorKind, BTreeMap<String, Outputs>)> = BTreeMap::new();
    for (step, operator) in sequence.operators().iter().enumerate() {
        let (kind, reasons) = kinds.entry(&operator.kind).or_insert_with(|| {
            let none = Outputs::default();
            let kind = OperatorKind {
                kind: operator.kind.clone(),
                operators: 0,
                views: none,
                in_place: none,
                new: none,
                unknown: 0,
                reasons: Vec::new(),
            };
            (kind, BTreeMap::new())
        });
        kind.operators += 1;
        for &output in &operator.outputs {
            let tensor = sequence.tensor(output);
            let bytes = tensor.size.unwrap_or(0);
            match place(sequence, lowered, &inside, output) {
                _ if is_unknown(&tensor.name) => match &tensor.origin {
                    Origin::Output { dependency: Dependency::Reads { .. }, .. } => {
                        kind.views.add(0);
                    }
                    _ => kind.unknown += 1,
                },
                Place::View if copied.contains(&*tensor.name) => {
                    kind.new.add(bytes);
                    reasons.entry(SAVES.to_owned()).or_default().add(bytes);
                }
                Place::View => kind.views.add(bytes),
                Place::Overwriter => kind.in_place.add(bytes),
                Place::Around(reason) => {
                    kind.new.add(bytes);
                    reasons.entry(reason.to_owned()).or_default().add(bytes);
                }
                Place::New(by_default) => {
                    let refusal = refusals.get(&output).map(|refused| {
                        let reader = last_readers.of(refused).filter(|&reader| reader > step);
                        let Some(reader) = reader else { return refused.reason.to_string() };
                        examples.entry(&*operator.kind).or_insert(reader);
                        READ_LATER.to_owned()
                    });
                    let reason = refusal.or_else(|| why(&tensor.name));
                    kind.new.add(bytes);
                    reasons.entry(reason.unwrap_or(by_default.to_owned())).or_default().add(bytes);
                }
            }
        }
    }
    let mut kinds: Vec<OperatorKind> = kinds
        .into_values()
        .map(|(mut kind, reasons)| {
            let example = |reader: &usize| match sequence.operator_name(*reader) {
                reader if kind.operators == 1 => format!("{READ_LATER}, by {reader}"),
                reader => format!("{READ_LATER}, for example by {reader}"),
            };
            let named = |why: String| match examples.get(&*kind.kind) {
                Some(reader) if why == READ_LATER => example(reader),
                _ => why,
            };
            let reasons = reasons.into_iter();
            kind.reasons = reasons.map(|(why, outputs)| (named(why).into(), outputs)).collect();
            kind.reasons.sort_by_key(|(_, outputs)| std::cmp::Reverse(outputs.bytes));
            kind
        })
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse((kind.new.bytes, kind.unknown)));
    Ok(kinds)
}

enum Place {
    View,
    Overwriter,
    /// In memory of its own, for this reason.
    New(&'static str),
    /// In memory of its own, around inputs that are not copied.
    Around(&'static str),
}

fn place(
    sequence: &OpSequence,
    lowered: &Lowered,
    inside: &HashMap<ChunkId, usize>,
    output: TensorId,
) -> Place {
    let place = lowered.places[output.index()];
    let Origin::Output { dependency, .. } = &sequence.tensor(output).origin else {
        return Place::New("it is supplied");
    };
    match (dependency, place) {
        (_, LoweredPlace::Nowhere) => Place::New("it has no bytes"),
        (Dependency::Reads { input, .. }, _) => {
            let shared = match (lowered.places[input.index()], place) {
                (LoweredPlace::Chunk { chunk: a, .. }, LoweredPlace::Chunk { chunk: b, .. }) => {
                    a == b
                }
                (
                    LoweredPlace::Supplied { tensor: a, .. },
                    LoweredPlace::Supplied { tensor: b, .. },
                ) => a == b,
                _ => false,
            };
            let is_copied = || lowered.copied.iter().any(|tie| tie.output == output);
            match shared {
                true => Place::View,
                false if is_copied() => {
                    Place::New("a required overwrite would destroy the bytes of the view")
                }
                false => Place::New("views get memory of their own"),
            }
        }
        (Dependency::Overwrites(_), LoweredPlace::Supplied { .. }) => Place::Overwriter,
        (Dependency::Overwrites(_), LoweredPlace::Chunk { chunk, .. }) => {
            if lowered.problem.link(chunk).is_some() {
                Place::Overwriter
            } else {
                Place::New("requests to write over an input are not accepted")
            }
        }
        (Dependency::Gathers(_), LoweredPlace::Supplied { .. }) => Place::New(COPIES),
        (Dependency::Gathers(gathers), LoweredPlace::Chunk { chunk, .. }) => {
            match inside.get(&chunk) {
                None => Place::New(COPIES),
                Some(&inside) if inside < gathers.len() => {
                    Place::Around("it holds some of its inputs without a copy")
                }
                Some(_) => Place::Around("it holds its inputs without a copy"),
            }
        }
        (Dependency::Fresh, _) => Place::New("it does not request to be written over an input"),
    }
}

const SAVES: &str = "a copy makes the pool smaller than a view";

const COPIES: &str = "it holds copies of its inputs";

const READ_LATER: &str = "its input is read again later";

/// The last operator that reads each chunk, directly or through a view.
struct LastReaders<'a> {
    lowered: &'a Lowered,
    of_chunk: HashMap<ChunkId, usize>,
}

impl<'a> LastReaders<'a> {
    fn new(sequence: &OpSequence, lowered: &'a Lowered) -> Self {
        let mut readers = Self { lowered, of_chunk: HashMap::new() };
        for (step, operator) in sequence.operators().iter().enumerate() {
            let read = operator.inputs.iter().filter_map(|&input| readers.chunk(input));
            let read: Vec<ChunkId> = read.collect();
            readers.of_chunk.extend(read.into_iter().map(|chunk| (chunk, step)));
        }
        readers
    }

    fn chunk(&self, tensor: TensorId) -> Option<ChunkId> {
        Some(self.lowered.places[tensor.index()].chunk()?.0)
    }

    /// The last reader of an input that is not overwritten because it has later readers.
    fn of(&self, refused: &RejectedTie) -> Option<usize> {
        let is_late = refused.reason == RejectReason::NotLastReader;
        is_late.then(|| self.of_chunk.get(&self.chunk(refused.input)?).copied())?
    }
}

/// The number of inputs that lie inside each chunk.
fn parts_inside(lowered: &Lowered) -> HashMap<ChunkId, usize> {
    let mut inside = HashMap::new();
    for part in lowered.problem.parts() {
        *inside.entry(part.whole).or_default() += 1;
    }
    inside
}

/// Columns for the name of a kind; longer ones get a line of their own.
const KIND: usize = 24;

/// Lists the operators of a sequence by kind in a table: the number of operators, and the number and size of the
/// outputs that are views, are written over an input, or have new memory; below each kind, the reasons for new memory.
/// The planner decides which views are copied. `name` names the input, and `rules` describes what may be written over
/// what. `why` returns the reason why an output, given by name, does not request to be written over an input, if the
/// reason is known. `is_unknown` returns whether the size of an output is unknown; such outputs do not count towards
/// the bytes.
///
/// # Errors
///
/// As [`Planner::plan`].
pub fn operator_table(
    [name, rules]: [&str; 2],
    sequence: &OpSequence,
    planner: &Planner<'_>,
    why: impl Fn(&str) -> Option<String>,
    is_unknown: impl Fn(&str) -> bool,
) -> Result<String, PlanError> {
    let kinds = operator_kinds(sequence, planner, why, is_unknown)?;
    let operators: u64 = kinds.iter().map(|kind| kind.operators).sum();
    let mut text = String::new();
    let (operators, number) = (count(operators, "operator"), count(kinds.len() as u64, "kind"));
    let _ = writeln!(text, "{}: {operators} of {number}; {rules}", printable(name));
    let unknown: u64 = kinds.iter().map(|kind| kind.unknown).sum();
    if unknown > 0 {
        let outputs = count(unknown, "output");
        let words = "not in the bytes; give sizes with --dim, --shape or --dim-default";
        text.push_str(&wrapped(&format!("shape or type unknown: {outputs}, {words}"), 2));
    }
    text.push('\n');
    let head = ["operators", "views", "in place", "new memory"];
    let _ = writeln!(
        text,
        "{:<KIND$}{:>10}{:>15}{:>15}{:>15}",
        "kind", head[0], head[1], head[2], head[3]
    );
    let cell = |outputs: Outputs| match outputs {
        Outputs { count: 0, .. } => "-".to_owned(),
        Outputs { count, bytes } => format!("{count} {:>9}", format!("{:#}", Size(bytes))),
    };
    for kind in &kinds {
        let mut name = match &*kind.kind {
            "" => "(no kind)".into(),
            kind => printable(kind),
        };
        if name.chars().count() > KIND {
            let _ = writeln!(text, "{name}");
            name = "".into();
        }
        let OperatorKind { operators, views, in_place, new, .. } = kind;
        let [views, in_place, new] = [*views, *in_place, *new].map(cell);
        let _ = writeln!(text, "{name:<KIND$}{operators:>10}{views:>15}{in_place:>15}{new:>15}");
        for (reason, outputs) in &kind.reasons {
            // A single reason would only repeat the numbers of its kind.
            let amount = if kind.reasons.len() == 1 { String::new() } else { cell(*outputs) };
            let _ = writeln!(text, "  {amount:>15}  {}", printable(reason));
        }
        if kind.unknown > 0 {
            let amount = format!("{} {:>9}", kind.unknown, "?");
            let _ = writeln!(text, "  {amount:>15}  shape or type unknown");
        }
    }
    Ok(text)
}

/// Returns the same figures as JSON.
///
/// # Errors
///
/// As [`operator_table`].
#[cfg(feature = "files")]
pub fn operator_kinds_json(
    [name, rules]: [&str; 2],
    sequence: &OpSequence,
    planner: &Planner<'_>,
    why: impl Fn(&str) -> Option<String>,
    is_unknown: impl Fn(&str) -> bool,
) -> Result<serde_json::Value, PlanError> {
    use serde_json::json;
    let kinds = operator_kinds(sequence, planner, why, is_unknown)?;
    let of = |outputs: Outputs| json!({"outputs": outputs.count, "bytes": outputs.bytes});
    let kind = |kind: &OperatorKind| {
        let reason = |(reason, outputs): &(Box<str>, Outputs)| json!({"reason": reason, "outputs": outputs.count, "bytes": outputs.bytes});
        json!({
            "kind": kind.kind,
            "operators": kind.operators,
            "views": of(kind.views),
            "in_place": of(kind.in_place),
            "new": of(kind.new),
            "size_unknown": {"outputs": kind.unknown},
            "reasons": kind.reasons.iter().map(reason).collect::<Vec<_>>(),
        })
    };
    let kinds: Vec<_> = kinds.iter().map(kind).collect();
    Ok(json!({"input": name, "rules": rules, "kinds": kinds}))
}
