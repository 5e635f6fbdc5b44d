//! A plan in a few lines.

use crate::{
    Bytes, Plan, Strategy,
    plan::Scope,
    report::{
        Size, StepNames,
        alive::Peak,
        count,
        fit::{hanging, shortened, wrapped},
        pools, printable,
        profile::is_bound_by_steps,
    },
    sequence::SizeBasis,
};

/// Reports the pool size, bounds and savings of a plan, and the rules under which no plan is
/// smaller. `rules` describes what could be written over what, such as `in place: rows`.
#[must_use]
pub fn summary(plan: &Plan, steps: StepNames<'_>, rules: &str) -> String {
    let links = plan.chunks.iter().filter(|chunk| chunk.overwrites.is_some()).count();
    let peak = Peak::of(plan);
    let alive = known_alive(plan, peak);
    let name = name_of_bound(plan, alive);
    let judgement = match plan.pool_size.cmp(&plan.lower_bound) {
        std::cmp::Ordering::Equal => format!("the {name}"),
        _ if plan.claimed_bound.is_some() => format!("{:.3} x the {name}", plan.ratio()),
        _ if !plan.proven_optimal && plan.strategy.is_some_and(Strategy::searches) => {
            format!("{:.3} x the {name}; not proven the smallest", plan.ratio())
        }
        _ => format!("{:.3} x the {name}", plan.ratio()),
    };
    let what = if plan.pools.len() > 1 { "all pools" } else { "pool" };
    let mut rows = vec![
        (what, Size(plan.pool_size), judgement),
        (bound_label(plan), Size(alive), remark(plan, peak, steps)),
    ];
    if alive < plan.lower_bound {
        let remark = format!("no {} is smaller (proven)", scoped(plan));
        rows.push((PROVEN, Size(plan.lower_bound), remark));
    } else if alive > plan.lower_bound {
        let remark = "the most with every overwrite that is possible".to_owned();
        rows.push((BOUND, Size(plan.lower_bound), remark));
    }
    if let Some(claimed) = plan.claimed_bound {
        rows.push((CLAIMED, Size(claimed), UNCHECKED.to_owned()));
    }
    rows.push(("one buffer each", Size(plan.naive_size), saving(plan)));
    let mut text = if plan.pools.len() > 1 { pools::table(plan) } else { String::new() };
    text.push_str(&sizes(rows));
    let padding = match plan.padding {
        0 => String::new(),
        bytes => format!(", padding {bytes} B"),
    };
    let verdict = match plan.pools.len() {
        0 | 1 if plan.pool_size == plan.lower_bound || plan.proven_optimal => {
            format!("no {} is smaller under these rules:", scoped(plan))
        }
        2.. if plan.proven_optimal => format!(
            "no {} has less traffic or, with equal traffic, smaller pools (the last pool counts first), under these rules:",
            scoped(plan)
        ),
        _ => "under these rules:".to_owned(),
    };
    let rules = format!("{verdict} {rules}, alignment {} B{padding}", plan.alignment);
    text.push_str(&wrapped(&rules, 2));
    let figures = format!(
        "{}, {links} of them written over another, {}, {}; strategy {}{}{}",
        count(plan.chunks.len() as u64, "chunk"),
        count(plan.tensors.len() as u64, "tensor"),
        count(plan.steps, "step"),
        plan.strategy_name(),
        plan.winner.map_or_else(String::new, |winner| format!(": {winner}")),
        if plan.objects.is_empty() {
            String::new()
        } else {
            format!(", {}", count(plan.objects.len() as u64, "shared object"))
        },
    );
    text.push_str(&wrapped(&figures, 2));
    text.push_str(&not_copied(plan));
    text.push_str(&copies(plan));
    text.push_str(&ranges(plan));
    text.push_str(&bases(plan));
    text.push_str(&assumptions(plan));
    text
}

/// Formats sizes in a column, with a name in front and a remark behind.
pub(super) fn sizes(rows: Vec<(&str, Size, String)>) -> String {
    let width = rows.iter().map(|(_, size, _)| size.to_string().len()).max().unwrap_or(0);
    let row = |(what, size, remark): (&str, Size, String)| {
        let label = format!("{what:<16}{size:>width$}   ");
        hanging(&label, &remark, label.len())
    };
    rows.into_iter().map(row).collect()
}

/// Counts the inputs that already lie where an output of the sequence holds them.
fn not_copied(plan: &Plan) -> String {
    if plan.parts.is_empty() || plan.tensors.is_empty() {
        return String::new();
    }
    let inputs = count(plan.parts.len() as u64, "input");
    let (verb, bytes) =
        (if plan.parts.len() == 1 { "lies" } else { "lie" }, Size(plan.not_copied()));
    wrapped(
        &format!("concatenation: {inputs} {verb} inside the output, so {bytes:#} need no copy"),
        2,
    )
}

/// Counts the views and gathered inputs that are copied because that makes the pool smaller.
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
        format!("sizes up to: {tensors} planned at the largest size possible at run time\n")
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

/// States what was assumed about the sequence: a name in error would make a weight, and the pool too small.
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
        let words = "no operator makes and nobody declares (taken as weights, outside the pool)";
        text.push_str(&wrapped(&format!("{words}: {}", names.join(", ")), 2));
    }
    if plan.is_sorted {
        text.push_str(&wrapped(
            "the operators were not in execution order; steps count in the sorted order",
            2,
        ));
    }
    text
}

/// The most bytes alive at one step.
pub(super) const ALIVE: &str = "bytes alive";
/// The bound of a problem with pins, holes, parts or several pools.
const BOUND: &str = "lower bound";
/// A larger bound, proven by a search.
const PROVEN: &str = "proven bound";
/// A bound that a file states.
pub(super) const CLAIMED: &str = "claimed bound";
/// The remark on such a bound.
pub(super) const UNCHECKED: &str = "by the plan file, not checked";

/// The name of the bound in [`Plan::lower_bound`]: the most bytes alive at one step, or a larger
/// number that a search has proven.
#[must_use]
pub fn bound_name(plan: &Plan) -> &'static str {
    name_of_bound(plan, known_alive(plan, Peak::of(plan)))
}

/// As [`bound_name`], where the most bytes alive are known.
fn name_of_bound(plan: &Plan, alive: Bytes) -> &'static str {
    match bound_label(plan) {
        ALIVE if alive < plan.lower_bound => PROVEN,
        ALIVE if alive > plan.lower_bound => BOUND,
        label => label,
    }
}

/// The name of a line at the bound in a picture that also shows the bytes alive at each step.
pub(super) fn bound_line(plan: &Plan) -> &'static str {
    match bound_name(plan) {
        ALIVE => "most bytes alive",
        name => name,
    }
}

/// The most bytes alive at one step if they are a lower bound, otherwise the lower bound.
fn known_alive(plan: &Plan, peak: Peak) -> Bytes {
    if is_bound_by_steps(plan) { peak.bytes } else { plan.lower_bound }
}

/// The plans that a proof is about: `plan`, or `plan with these overwrites`.
#[must_use]
pub fn scoped(plan: &Plan) -> &'static str {
    match plan.scope {
        Scope::AllChoices => "plan",
        _ if plan.tensors.is_empty() => "plan with these overwrites",
        _ => "plan with these chunks",
    }
}

/// The name of what [`known_alive`] returns.
fn bound_label(plan: &Plan) -> &'static str {
    if is_bound_by_steps(plan) { ALIVE } else { BOUND }
}

fn remark(plan: &Plan, peak: Peak, steps: StepNames<'_>) -> String {
    match peak.bytes {
        _ if !plan.peak.is_empty() => {
            format!("{} that may be alive together", count(plan.peak.len() as u64, "chunk"))
        }
        _ if !is_bound_by_steps(plan) => format!("no {} is smaller", scoped(plan)),
        0 => "nothing is ever alive".to_owned(),
        _ => format!("the most, in {}", steps.short_name(peak.step)),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn saving(plan: &Plan) -> String {
    if plan.naive_size == 0 {
        return "nothing to plan".to_owned();
    }
    let share = 100.0 * (1.0 - plan.pool_size as f64 / plan.naive_size as f64);
    if share < 0.0 {
        format!("the pool takes {:.1} % more", -share)
    } else {
        format!("the pool saves {share:.1} %")
    }
}
