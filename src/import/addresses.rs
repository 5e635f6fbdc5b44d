//! Addresses that a runtime gave to the tensors of a model, from a file in JSON or CSV, as a plan to be run on a shadow
//! of the memory.
//!
//! JSON is an object with an address for each tensor, or a list of objects with `name`, `address` and, if known, `size`.
//! CSV has these three columns. An address is a number of bytes, or a text such as `"0x7f10"`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    Bytes, OpSequence, Plan, PlannedTensor, Problem, TensorPlace,
    import::{Format, ImportError},
    sequence::{Origin, Tensor},
    verify::{self, Violation},
};

/// An address in bytes, and the size that the runtime states, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    address: u64,
    size: Option<Bytes>,
}

/// The addresses of the tensors of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// The tensors at their addresses, from the lowest on. It has no lifetimes: only [`faults`](Self::faults) judges it.
    pub(crate) plan: Plan,
    /// The lowest address, which is offset 0 of the plan.
    pub(crate) lowest: u64,
    /// The tensors that operators make and that have bytes, but no address in the file.
    pub(crate) without: BTreeSet<Box<str>>,
    /// The number of names in the file that are no tensors of the sequence, or have no bytes.
    pub(crate) unknown: usize,
    /// The number of weights that share their bytes with another one, which are left out.
    pub(crate) shared: usize,
    /// The number of operators with a workspace, which has no address.
    pub(crate) workspaces: usize,
}

impl Addresses {
    /// Reads the addresses of a sequence's tensors, for [`report::audit`](crate::report::audit).
    pub(crate) fn read(
        bytes: &[u8],
        format: Format,
        sequence: &OpSequence,
    ) -> Result<Self, ImportError> {
        if sequence.has_bodies() {
            return Err(ImportError::AddressesOfBodies);
        }
        let entries = match format {
            Format::Csv => of_csv(bytes)?,
            _ => of_json(bytes)?,
        };
        let mut placed: Vec<(&Tensor, Entry, Bytes)> = Vec::new();
        let mut without = BTreeSet::new();
        for tensor in sequence.tensors() {
            match (entries.get(&*tensor.name), tensor.size) {
                (_, Some(0) | None) => {}
                (Some(&entry), Some(size)) => placed.push((tensor, entry, size)),
                (None, Some(_)) if matches!(tensor.origin, Origin::Output { .. }) => {
                    without.insert(tensor.name.clone());
                }
                (None, Some(_)) => {}
            }
        }
        let unknown = entries.len() - placed.len();
        if placed.is_empty() {
            let first = entries.into_keys().next().unwrap_or_else(|| "nothing".to_owned());
            return Err(ImportError::AddressesOfOthers { first });
        }
        let shared = leave_shared_weights(&mut placed);
        let lowest = placed.iter().map(|(_, entry, _)| entry.address).min().unwrap_or(0);
        let mut problem = Problem::builder();
        for (tensor, _, size) in &placed {
            problem.named_chunk(tensor.name.clone(), 0..1, *size);
        }
        let offsets: Vec<Bytes> =
            placed.iter().map(|(_, entry, _)| entry.address - lowest).collect();
        // The sum of all sizes is no larger than that of the sequence.
        let problem = problem.finish()?;
        let mut plan = Plan::from_offsets(&problem, &offsets)?;
        let tensors =
            placed.iter().enumerate().map(|(chunk, (tensor, entry, size))| PlannedTensor {
                name: tensor.name.clone(),
                // More bytes than needed do no harm.
                size: entry.size.map_or(*size, |own| own.min(*size)),
                basis: tensor.basis,
                place: TensorPlace::Pool { chunk, offset: offsets[chunk] },
            });
        plan.tensors = tensors.collect();
        let operators = sequence.operators().iter();
        let workspaces = operators.filter(|operator| operator.workspace > 0).count();
        Ok(Self { plan, lowest, without, unknown, shared, workspaces })
    }

    /// Runs the operators on a shadow of the memory, and returns everything that is wrong. Tensors without an address
    /// are not judged.
    pub(crate) fn faults(&self, sequence: &OpSequence) -> Vec<Violation> {
        let mut faults = verify::execute(sequence, &self.plan);
        let workspaces: BTreeSet<_> = sequence.workspace_names().into_iter().flatten().collect();
        let is_unseen =
            |name: &str| self.without.contains(name) || workspaces.iter().any(|own| **own == *name);
        faults.retain(|fault| match fault {
            Violation::Missing { name } => !is_unseen(name),
            Violation::RequiredOverwriteMissing { overwriter, overwritten } => {
                !is_unseen(overwriter) && !is_unseen(overwritten)
            }
            _ => true,
        });
        faults
    }
}

/// Leaves out weights that share bytes with one before them: equal weights may be stored once.
fn leave_shared_weights(placed: &mut Vec<(&Tensor, Entry, Bytes)>) -> usize {
    let mut weights: Vec<(u64, u64, &str)> = placed
        .iter()
        .filter(|(tensor, ..)| tensor.origin == Origin::Weight)
        .map(|(tensor, entry, size)| {
            (entry.address, entry.address.saturating_add(*size), &*tensor.name)
        })
        .collect();
    weights.sort_unstable();
    let mut end = 0;
    let mut left = BTreeSet::new();
    for (low, high, name) in weights {
        if low < end {
            left.insert(name);
        }
        end = end.max(high);
    }
    placed.retain(|(tensor, ..)| !left.contains(&*tensor.name));
    left.len()
}

const ENTRY: &str = "expected an address in bytes, such as 4096 or \"0x1000\"";
const JSON: &str = "expected an object with an address for each tensor, or a list of objects with name and address";
const SIZE: &str = "expected a size in bytes";
const COLUMNS: &str = "expected the columns name and address, and maybe size";

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn address(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| number(value.as_str()?))
}

fn of_json(bytes: &[u8]) -> Result<BTreeMap<String, Entry>, ImportError> {
    let wrong = |place: String, expected| ImportError::Address { place, expected };
    let entry = |place: &str, value: &Value| {
        let (own, size) = match value {
            Value::Object(keys) => (keys.get("address").unwrap_or(&Value::Null), keys.get("size")),
            value => (value, None),
        };
        let address = address(own).ok_or_else(|| wrong(place.to_owned(), ENTRY))?;
        let size = match size {
            None | Some(Value::Null) => None,
            Some(size) => Some(size.as_u64().ok_or_else(|| wrong(place.to_owned(), SIZE))?),
        };
        Ok::<_, ImportError>(Entry { address, size })
    };
    let mut entries = BTreeMap::new();
    match serde_json::from_slice(bytes)? {
        Value::Object(tensors) => {
            for (name, value) in &tensors {
                entries.insert(name.clone(), entry(&format!("'{name}'"), value)?);
            }
        }
        Value::Array(tensors) => {
            for (at, value) in tensors.iter().enumerate() {
                let place = format!("entry {at}");
                let name = value.get("name").and_then(Value::as_str);
                let name = name.ok_or_else(|| wrong(place.clone(), JSON))?.to_owned();
                let entry = entry(&place, value)?;
                if entries.insert(name.clone(), entry).is_some_and(|old| old != entry) {
                    return Err(ImportError::TwoAddresses { name });
                }
            }
        }
        _ => return Err(wrong("the file".to_owned(), JSON)),
    }
    Ok(entries)
}

fn of_csv(bytes: &[u8]) -> Result<BTreeMap<String, Entry>, ImportError> {
    let wrong = |place: String, expected| ImportError::Address { place, expected };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let headings = reader.headers()?.clone();
    let column = |name: &str| headings.iter().position(|heading| heading == name);
    let (Some(name), Some(address)) = (column("name"), column("address")) else {
        return Err(wrong("line 1".to_owned(), COLUMNS));
    };
    let size = column("size");
    let mut entries = BTreeMap::new();
    for record in reader.records() {
        let record = record?;
        let line = format!("line {}", record.position().map_or(0, csv::Position::line));
        let own = record.get(name).unwrap_or_default().to_owned();
        let address = record.get(address).and_then(number);
        let address = address.ok_or_else(|| wrong(line.clone(), ENTRY))?;
        let size = match size.and_then(|size| record.get(size)) {
            None | Some("") => None,
            Some(text) => Some(number(text).ok_or_else(|| wrong(line.clone(), SIZE))?),
        };
        let entry = Entry { address, size };
        if entries.insert(own.clone(), entry).is_some_and(|old| old != entry) {
            return Err(ImportError::TwoAddresses { name: own });
        }
    }
    Ok(entries)
}
