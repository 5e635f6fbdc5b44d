//! Inputs that run one after the other in one pool.

use std::{collections::BTreeSet, path::Path};

use memplan::{
    Input, InputRef, OpSequence, Problem, import::recording::Recording, problem::ChunkId,
};

use crate::{
    Failure,
    args::{InputArgs, LaterArgs, PlacingArgs, SharedNames},
    files::{self, wrong},
    planning::{self, BUILT_IN},
};

/// Reads an input. If others run after it, it becomes one problem with them.
pub(crate) fn input(
    path: Option<&Path>,
    reading: &InputArgs,
    later: &LaterArgs,
) -> Result<Input, Failure> {
    Ok(recorded_input(path, reading, later)?.0)
}

/// Reads an input as above, with the facts of a recording if it is one.
pub(crate) fn recorded_input(
    path: Option<&Path>,
    reading: &InputArgs,
    later: &LaterArgs,
) -> Result<(Input, Option<Recording>), Failure> {
    let (first, recording) = planning::input(path, reading)?;
    if later.after.is_empty() {
        return Ok((first, recording));
    }
    let mut prefixes = BTreeSet::new();
    let mut all = phase(&first, path, reading, &mut prefixes)?;
    let mut is_used = vec![false; later.share.len()];
    for path in &later.after {
        let input = files::read_input(path, reading)?;
        let next = phase(&input, Some(path), reading, &mut prefixes)?;
        let mut shared = Vec::new();
        for (SharedNames([a, b]), is_used) in later.share.iter().zip(&mut is_used) {
            let pair = |a: &str, b: &str| Some((find(&all, a)?, find(&next, b)?));
            if let Some(pair) = pair(a, b).or_else(|| pair(b, a)) {
                shared.push(pair);
                *is_used = true;
            }
        }
        all = all.concat(&next, &shared).map_err(|error| wrong(Some(path), error))?;
    }
    match later.share.iter().zip(is_used).find(|(_, is_used)| !is_used) {
        Some((SharedNames([a, b]), _)) => {
            let words = format!(
                "--share {a}={b}: no two inputs have chunks of these names, or several have; chunks are named as in {}",
                example(&all)
            );
            Err(wrong(None, words))
        }
        None => Ok((Input::Problem(all), None)),
    }
}

/// The names of some chunks.
fn example(problem: &Problem) -> String {
    let names = problem.ids().take(3).map(|chunk| problem.name(chunk));
    names.collect::<Vec<_>>().join(", ")
}

/// The chunk of this name, with or without the name of its file; `None` if several have it.
fn find(problem: &Problem, name: &str) -> Option<ChunkId> {
    let is = |chunk: &ChunkId, whole: bool| {
        let found = problem.own_name(*chunk).unwrap_or_default();
        let own = found.split_once('/').map_or(found, |(_, own)| own);
        if whole { found == name } else { own == name }
    };
    if let Some(chunk) = problem.ids().find(|chunk| is(chunk, true)) {
        return Some(chunk);
    }
    let mut found = problem.ids().filter(|chunk| is(chunk, false));
    found.next().filter(|_| found.next().is_none())
}

/// An input as a problem, with names that begin with that of its file.
fn phase(
    input: &Input,
    path: Option<&Path>,
    reading: &InputArgs,
    prefixes: &mut BTreeSet<String>,
) -> Result<Problem, Failure> {
    let dims = InputRef::from(input).sequence().map(OpSequence::dims);
    if let Some((name, range)) = dims.into_iter().flatten().find(|(_, range)| !range.is_exact()) {
        let words = format!(
            "the plan of inputs that run one after the other is for one size, not for {name}={range}; give one, as in --dim {name}={}",
            range.most
        );
        return Err(wrong(path, words));
    }
    let stem = path.map_or(Some("linknet".as_ref()), Path::file_stem);
    let stem = stem.map_or_else(|| "input".to_owned(), |stem| stem.display().to_string());
    // A file may come twice.
    let again = (2..).map(|count| format!("{stem}.{count}"));
    let prefix = std::iter::once(stem.clone()).chain(again).find(|one| !prefixes.contains(one));
    let prefix = prefix.unwrap_or(stem);
    let named = path.unwrap_or(BUILT_IN.as_ref());
    let problem = planning::lowered(input, named, reading.lowering().gathers(false))?;
    let problem = match PlacingArgs::default_alignment(reading, input, path) {
        Some(alignment) => problem.with_alignment(alignment),
        None => Ok(problem),
    };
    let problem = problem.map_err(|error| wrong(path, error))?;
    let problem = problem.with_prefix(&format!("{prefix}/"));
    prefixes.insert(prefix);
    Ok(problem)
}
