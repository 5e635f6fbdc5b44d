//! A plan in a few lines.

use crate::{
    Bytes, OpSequence, Plan, Strategy,
    plan::Scope,
    report::{
        Size,
        alive::Peak,
        count,
        fit::{hanging, shortened, wrapped},
        pools, printable,
        profile::is_bound_by_steps,
        short_step,
    },
    sequence::SizeBasis,
};

/// Reports the pool size, bounds and savings of a plan, and the rules that its proof holds for. `rules`
/// describes what could be written over what, such as `in-place rows`.
#[must_use]
pub fn summary(plan: &Plan, steps: Option<&OpSequence>, rules: &str) -> String {
    let mut text = if plan.pools.len() > 1 { pools::table(plan) } else { String::new() };
    let padding = match plan.padding {
        0 => String::new(),
        bytes => format!(", padding {bytes} B"),
    };
    let mut rows = size_rows(plan, steps);
    rows.push(Row::words("rules", format!("{rules}, alignment {} B{padding}", plan.alignment)));
    text.push_str(&table(&rows));
    text.push_str(&wrapped(&figures(plan), 2));
    text.push_str(&not_copied(plan));
    text.push_str(&copies(plan));
    text.push_str(&ranges(plan));
    text.push_str(&bases(plan));
    text.push_str(&assumptions(plan));
    text
}

/// The size of the pool, what it is compared with, and what is proven.
fn size_rows(plan: &Plan, steps: Option<&OpSequence>) -> Vec<Row<'static>> {
    let peak = Peak::of(plan);
    let alive = known_alive(plan, peak);
    let name = match (name_of_bound(plan, alive), plan.ratio()) {
        (PEAK, 1.0) => "peak of live tensors",
        (name, _) => name,
    };
    // A plan from a file may have choices for which no bound is counted.
    let has_bound = plan.lower_bound > 0 || plan.pool_size == 0;
    let judgement = if plan.pool_size == plan.lower_bound {
        format!("= {name}")
    } else if !has_bound {
        "no bound is known".to_owned()
    } else {
        format!("= {:.3} x {name}", plan.ratio())
    };
    let of_all = plan.pools.len() > 1;
    let label = if of_all { "all pools" } else { "pool" };
    let verdict = if of_all { String::new() } else { verdict(plan) };
    let mut rows = vec![Row::new(label, plan.pool_size, judgement + &verdict)];
    let remark = remark(plan, peak, steps);
    rows.push(match bound_label(plan) {
        PEAK if alive == plan.pool_size => Row::words(PEAK, remark),
        label => Row::new(label, alive, remark),
    });
    if alive < plan.lower_bound {
        rows.push(Row::new(PROVEN, plan.lower_bound, "found by the search".to_owned()));
    } else if has_bound && alive > plan.lower_bound {
        let remark = "peak with every overwrite that is possible".to_owned();
        rows.push(Row::new(BOUND, plan.lower_bound, remark));
    }
    if let Some(claimed) = plan.claimed_bound {
        rows.push(Row::new(CLAIMED, claimed, UNCHECKED.to_owned()));
    }
    rows.push(Row::new("unshared", plan.unshared_size(), saving(plan)));
    if of_all && plan.proven_optimal {
        let words = format!(
            "no {} has less traffic or, with equal traffic, smaller pools (the last pool counts first)",
            scoped(plan)
        );
        rows.push(Row::words("proven", words));
    }
    rows
}

/// What is proven about the pool: over all choices, over the choices of the plan, or not at all.
fn verdict(plan: &Plan) -> String {
    if plan.pool_size == plan.lower_bound || plan.proven_optimal {
        return match plan.scope {
            Scope::AllChoices => ": proven minimal".to_owned(),
            Scope::TheseChoices => format!(": minimal {}", choices(plan)),
        };
    }
    let searches = plan.strategy.is_some_and(Strategy::searches);
    let is_open = searches && plan.claimed_bound.is_none();
    if is_open { ": not proven minimal".to_owned() } else { String::new() }
}

/// Counts what was planned, and names the planner.
fn figures(plan: &Plan) -> String {
    let links = plan.chunks.iter().filter(|chunk| chunk.overwrites.is_some()).count();
    let mut counts = vec![count(plan.chunks.len() as u64, "chunk")];
    if links > 0 {
        counts.push(format!("{links} in place"));
    }
    if !plan.tensors.is_empty() {
        counts.push(count(plan.tensors.len() as u64, "tensor"));
    }
    counts.push(count(plan.steps, "step"));
    let winner = plan.winner.map_or_else(String::new, |winner| format!(" ({winner})"));
    let objects = match plan.objects.len() as u64 {
        0 => String::new(),
        objects => format!(", {}", count(objects, "shared object")),
    };
    format!("{}; strategy {}{winner}{objects}", counts.join(", "), plan.strategy_name())
}

/// A line of a summary: a label, a size if there is one, and a remark.
pub(super) struct Row<'a> {
    label: &'a str,
    size: Option<Size>,
    remark: String,
}

impl<'a> Row<'a> {
    pub(super) fn new(label: &'a str, bytes: Bytes, remark: String) -> Self {
        Self { label, size: Some(Size(bytes)), remark }
    }

    pub(super) fn words(label: &'a str, remark: String) -> Self {
        Self { label, size: None, remark }
    }
}

/// Formats lines with their labels and sizes in columns.
pub(super) fn table(rows: &[Row<'_>]) -> String {
    let label = rows.iter().map(|row| row.label.len()).max().unwrap_or(0);
    let size = rows.iter().filter_map(|row| row.size).map(|size| size.to_string().len());
    let size = size.max().unwrap_or(0);
    let row = |row: &Row<'_>| {
        let start = match row.size {
            Some(own) => format!("{:<label$}  {own:<size$}  ", row.label),
            None => format!("{:<label$}  ", row.label),
        };
        hanging(&start, &row.remark, start.len())
    };
    rows.iter().map(row).collect()
}

/// Counts the inputs that already lie where an output of the sequence holds them.
fn not_copied(plan: &Plan) -> String {
    if plan.parts.is_empty() || plan.tensors.is_empty() {
        return String::new();
    }
    let inputs = count(plan.parts.len() as u64, "concat input");
    wrapped(&format!("{inputs} in place ({:#} not copied)", Size(plan.not_copied())), 2)
}

/// Counts the views and gathered inputs that are copied because that makes the pool smaller, or because a required
/// overwrite needs it.
fn copies(plan: &Plan) -> String {
    let copies = &plan.copies;
    if copies.list.is_empty() {
        return String::new();
    }
    let verb = if copies.list.len() == 1 { "is" } else { "are" };
    let saved = match copies.saved {
        0 => String::new(),
        saved => format!(", which saves {:#}", Size(saved)),
    };
    let mut names: Vec<String> = copies
        .list
        .iter()
        .take(3)
        .map(|copy| shortened(&printable(&copy.output), MAX_CHARACTERS).into_owned())
        .collect();
    if copies.list.len() > names.len() {
        names.push("...".to_owned());
    }
    let tensors = count(copies.list.len() as u64, "tensor");
    let text = format!(
        "copied: {tensors} that could share memory {verb} copied ({}), {:#}{saved}",
        names.join(", "),
        Size(copies.size()),
    );
    wrapped(&text, 2)
}

/// Lists the sizes that the plan holds for, if there are several.
fn ranges(plan: &Plan) -> String {
    if plan.dims.is_empty() {
        return String::new();
    }
    wrapped(&format!("planned for the largest sizes; holds for every run with {}", dims(plan)), 2)
}

/// The sizes that a plan holds for: `batch=1..8, sequence=1..128`.
#[must_use]
pub fn dims(plan: &Plan) -> String {
    let dims: Vec<String> =
        plan.dims.iter().map(|(name, sizes)| format!("{}={sizes}", printable(name))).collect();
    dims.join(", ")
}

/// Counts the sizes that are upper limits, or declared and not confirmed.
fn bases(plan: &Plan) -> String {
    let number = |basis| plan.tensors.iter().filter(|tensor| tensor.basis == basis).count() as u64;
    let (at_most, declared) = (number(SizeBasis::AtMost), number(SizeBasis::Declared));
    let at_most = (at_most > 0).then(|| {
        let tensors = count(at_most, "tensor");
        let whose = if at_most == 1 { "its upper bound" } else { "their upper bound" };
        format!("{tensors} planned at {whose}\n")
    });
    let declared = (declared > 0).then(|| {
        let tensors = count(declared, "tensor");
        format!("{tensors} whose size the model only declares\n")
    });
    [at_most, declared].into_iter().flatten().collect()
}

/// The most names that are listed, and the most characters of each.
const MAX_NAMES: usize = 5;
const MAX_CHARACTERS: usize = 40;

/// States what was assumed about the sequence. A misspelled name would count as a weight, and the pool would be too
/// small.
fn assumptions(plan: &Plan) -> String {
    let mut text = String::new();
    if !plan.undeclared.is_empty() {
        let mut names: Vec<String> = plan
            .undeclared
            .iter()
            .take(MAX_NAMES)
            .map(|name| shortened(&printable(name), MAX_CHARACTERS).into_owned())
            .collect();
        if plan.undeclared.len() > MAX_NAMES {
            names.push(format!("{} more", plan.undeclared.len() - MAX_NAMES));
        }
        let words = "neither made by an operator nor declared (taken as weights, outside the pool)";
        text.push_str(&wrapped(&format!("{words}: {}", names.join(", ")), 2));
    }
    if plan.is_sorted {
        text.push_str(&wrapped(
            "steps are numbered in the order of execution, not in the order of the file",
            2,
        ));
    }
    text
}

/// The largest number of bytes that are live at one step.
pub(super) const PEAK: &str = "peak";
/// The bound of a problem with pins, holes, parts or several pools.
const BOUND: &str = "lower bound";
/// A larger bound, proven by a search.
const PROVEN: &str = "proven bound";
/// A bound that a file states.
pub(super) const CLAIMED: &str = "claimed bound";
/// The remark on such a bound.
pub(super) const UNCHECKED: &str = "by the plan file, not checked";

/// The name of the bound in [`Plan::lower_bound`]: the peak, or a larger
/// number that a search has proven.
#[must_use]
pub fn bound_name(plan: &Plan) -> &'static str {
    name_of_bound(plan, known_alive(plan, Peak::of(plan)))
}

/// As [`bound_name`], where the most bytes alive are known.
fn name_of_bound(plan: &Plan, alive: Bytes) -> &'static str {
    match bound_label(plan) {
        PEAK if alive < plan.lower_bound => PROVEN,
        PEAK if alive > plan.lower_bound => BOUND,
        label => label,
    }
}

/// The bytes alive at the peak if they are a lower bound, otherwise the lower bound of the plan.
fn known_alive(plan: &Plan, peak: Peak) -> Bytes {
    if is_bound_by_steps(plan) { peak.bytes } else { plan.lower_bound }
}

/// The plans that a proof is about: `plan`, or `plan with these overwrites and copies`.
#[must_use]
pub fn scoped(plan: &Plan) -> &'static str {
    match plan.scope {
        Scope::AllChoices => "plan",
        _ if plan.tensors.is_empty() => "plan with these overwrites and copies",
        _ => "plan with these views, overwrites and copies",
    }
}

/// The choices of a plan that a proof is limited to.
fn choices(plan: &Plan) -> &'static str {
    if plan.tensors.is_empty() {
        "with these overwrites and copies"
    } else {
        "with these views, overwrites and copies"
    }
}

/// The name of what [`known_alive`] returns.
fn bound_label(plan: &Plan) -> &'static str {
    if is_bound_by_steps(plan) { PEAK } else { BOUND }
}

fn remark(plan: &Plan, peak: Peak, steps: Option<&OpSequence>) -> String {
    match peak.bytes {
        _ if !plan.peak.is_empty() => {
            format!("{} that may be alive together", count(plan.peak.len() as u64, "chunk"))
        }
        _ if !is_bound_by_steps(plan) => format!("no {} is smaller", scoped(plan)),
        0 => "nothing is ever alive".to_owned(),
        _ => format!("at {}", short_step(steps, peak.step)),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn saving(plan: &Plan) -> String {
    let unshared = plan.unshared_size();
    if unshared == 0 {
        return "nothing to plan".to_owned();
    }
    let share = 100.0 * (1.0 - plan.pool_size as f64 / unshared as f64);
    if share < 0.0 {
        format!("the pool takes {:.1} % more", -share)
    } else {
        format!("{share:.1} % saved")
    }
}
