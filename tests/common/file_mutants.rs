//! Plan files with a change in one place: every key of the JSON is changed, wherever it is.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use serde_json::{Number, Value};

/// A place in a JSON value: keys of objects, and indices of lists as texts.
pub type Path = Vec<String>;

/// The key that a place has in the book, Files: without the indices of lists, and as in the plan around a body.
pub fn key(path: &[String]) -> String {
    let mut key = String::new();
    for step in path {
        if step.parse::<usize>().is_ok() {
            key.push_str("[]");
        } else {
            key.push_str(if key.is_empty() { "" } else { "." });
            key.push_str(step);
        }
    }
    while let Some(inner) = key.strip_prefix("bodies[].plan.") {
        key = inner.to_owned();
    }
    key
}

/// All places of a value, those of lists and objects included.
pub fn places(value: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    add_places(value, &mut Vec::new(), &mut found);
    found
}

fn add_places(value: &Value, path: &mut Path, found: &mut Vec<Path>) {
    let mut add = |step: String, value: &Value| {
        path.push(step);
        found.push(path.clone());
        add_places(value, path, found);
        path.pop();
    };
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| add(key.clone(), value)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(at, value)| add(at.to_string(), value));
        }
        _ => {}
    }
}

fn at<'v>(value: &'v mut Value, path: &[String]) -> &'v mut Value {
    path.iter().fold(value, |value, step| match value {
        Value::Object(object) => object.get_mut(step).unwrap(),
        Value::Array(list) => &mut list[step.parse::<usize>().unwrap()],
        _ => unreachable!("a path leads through lists and objects"),
    })
}

/// Changes one place of a file; it may stay as it is.
pub fn mutate(random: &mut Unstructured<'_>, file: &mut Value, path: &[String]) -> Result<()> {
    // Another value of the same file is more often plausible than a random one.
    let key = key(path);
    let alike: Vec<Value> = places(file)
        .into_iter()
        .filter(|other| self::key(other) == key)
        .map(|other| at(file, &other).clone())
        .collect();
    let other = random.choose(&alike)?.clone();
    let (last, around) = path.split_last().unwrap();
    if random.ratio(1, 8)? {
        match at(file, around) {
            Value::Object(object) => drop(object.remove(last)),
            Value::Array(list) => {
                let index = last.parse::<usize>().unwrap();
                // The order of the other lists means nothing.
                let is_ordered = ["objects[]", "order[]", "pools[]", "objective[]"];
                match random.int_in_range(0..=2)? {
                    0 => drop(list.remove(index)),
                    1 if is_ordered.contains(&&*key) => {
                        let with = random.choose_index(list.len())?;
                        list.swap(index, with);
                    }
                    _ => list.push(list[index].clone()),
                }
            }
            _ => {}
        }
        return Ok(());
    }
    let value = at(file, path);
    *value = match &*value {
        _ if random.ratio(1, 4)? => other,
        Value::Null => random.int_in_range(0..=3_u64)?.into(),
        Value::Bool(is_so) => (!is_so).into(),
        Value::Number(number) => near(random, number)?,
        Value::String(_) => "other".into(),
        // Their entries are changed instead.
        Value::Array(_) if random.ratio(1, 2)? => Value::Array(Vec::new()),
        _ if random.ratio(1, 2)? => Value::Null,
        value => value.clone(),
    };
    Ok(())
}

fn near(random: &mut Unstructured<'_>, number: &Number) -> Result<Value> {
    let Some(number) = number.as_u64() else { return Ok(1.into()) };
    Ok(match random.int_in_range(0..=6)? {
        0 | 1 => number.saturating_add(1),
        2 | 3 => number.saturating_sub(1),
        4 => number.saturating_mul(2),
        5 => 0,
        _ => random.int_in_range(0..=40)?,
    }
    .into())
}

/// Returns whether a plan that differs from a right one only here may be right as well, for every input: what it
/// says is not about the input.
pub fn is_information(key: &str) -> bool {
    let keys = [
        // How the plan was made, and what only a search could check.
        "strategy",
        "winner",
        "seconds",
        "arena",
        "lower_bound",
        "proven_optimal",
        "scope",
        // Some of the chunks that are alive together at the peak of several streams.
        "peak",
        "peak[]",
        // Pins of the caller, beside those of the input.
        "pinned",
        "pinned[]",
        // Where tensors are needed in parts, the peak may be counted by byte or by chunk.
        "peak_step",
        // What is copied to make the pool smaller; the plan need not say so.
        "copies",
        "copies.list",
        "copies.list[]",
        "copies.saved",
        // The basis of a size.
        "tensors[].basis",
        // Names of the file for its own chunks.
        "chunks[].id",
    ];
    keys.contains(&key)
}

/// The same for the memories, where the caller gave them: the input lists none.
pub fn is_of_caller(key: &str) -> bool {
    let fields = ["name", "capacity", "alignment", "cost", "largest", "reserved"];
    let is_field =
        |field: &str| key.strip_prefix("pools[].").is_some_and(|key| key.starts_with(field));
    key == "pools" || key == "pools[]" || fields.into_iter().any(is_field)
}

/// Returns whether a chunk or tensor may lie elsewhere, or need more bytes, so that a right plan may remain right.
pub fn is_place(key: &str) -> bool {
    let keys = [
        "chunks[].offset",
        "chunks[].pool",
        "tensors[].offset",
        "tensors[].chunk",
        "tensors[].supplied",
        "alignment",
        "padding",
        "order",
        "order[]",
        // A window may be larger than needed, or left out.
        "windows",
        "windows[]",
        "windows[].begin",
        "windows[].end",
        "windows[].low",
        "windows[].high",
    ];
    keys.contains(&key)
}

/// The changes that were tried.
#[derive(Default)]
pub struct Changed {
    /// By key: the changes, and those that were found.
    pub keys: BTreeMap<String, (usize, usize)>,
}

impl Changed {
    pub fn count(&mut self, key: String, is_found: bool) {
        let (tried, found) = self.keys.entry(key).or_default();
        *tried += 1;
        *found += usize::from(is_found);
    }

    /// Prints the changes, and checks that those of every key are found.
    pub fn report(&self, may_differ: impl Fn(&str) -> bool) {
        eprintln!("changes, and those that were found: {:?}", self.keys);
        let is_missed = |(key, (tried, found)): &(&String, &(usize, usize))| {
            *tried >= 100 && *found == 0 && !may_differ(key)
        };
        let missed: Vec<_> = self.keys.iter().filter(is_missed).collect();
        assert_eq!(missed, [], "no change of these keys was ever found");
    }
}
