//! The file forms of an operator sequence: `memplan-sequence/1`, and `/2` if an output gathers inputs or begins
//! below one, or operators run on several streams.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use crate::{
    Bytes, Operator, Output,
    file::is_zero,
    sequence::{
        Dependency, DimRange, Gather, OpSequence, Origin, Overwrite, SequenceBuilder,
        SequenceError, SizeBasis, TensorType, after::OperatorRef, check,
    },
};

const PLAIN: &str = "memplan-sequence/1";
const FULL: &str = "memplan-sequence/2";

/// An operator sequence as it stands in a JSON file, not yet checked. Inputs of operators that are
/// neither produced nor listed are weights of unknown size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a sequence")]
pub(crate) struct SequenceFile {
    /// `memplan-sequence/1`, or `memplan-sequence/2` if a key is used that only format 2 has.
    format: String,
    /// Tensors supplied for each run.
    #[serde(default)]
    inputs: Vec<TensorEntry>,
    /// Weights whose sizes are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<TensorEntry>,
    /// The operators in execution order.
    operators: Vec<OperatorEntry>,
    /// Names of the graph outputs.
    #[serde(default)]
    outputs: Vec<Box<str>>,
    /// The dimensions whose sizes may differ from run to run, by name: the smallest and the largest size;
    /// omitted if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    dims: BTreeMap<Box<str>, DimRange>,
}

/// A supplied tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a tensor")]
pub(crate) struct TensorEntry {
    /// Its name.
    name: Box<str>,
    /// Its bytes.
    size: Bytes,
    /// Its element type and shape; omitted if they are unknown.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    tensor_type: Option<TensorType>,
}

/// An operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes an operator")]
pub(crate) struct OperatorEntry {
    /// Its name, which need not be unique; empty if omitted.
    #[serde(default)]
    name: Box<str>,
    /// Its kind, such as `Conv`; empty if omitted.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    kind: Box<str>,
    /// Names of the tensors it reads.
    #[serde(default)]
    inputs: Vec<Box<str>>,
    /// The outputs.
    #[serde(default)]
    outputs: Vec<OutputEntry>,
    /// The operators that it must run after, even if it reads none of their outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<OperatorRef>,
    /// Format 2: the stream that it runs on; 0 if omitted.
    #[serde(default, skip_serializing_if = "is_first")]
    stream: usize,
    /// Bytes of scratch memory; 0 if omitted.
    #[serde(default, skip_serializing_if = "is_zero")]
    workspace: Bytes,
    /// What running it once costs, in any unit; 1 if omitted.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    cost: u64,
    /// True if it must not run twice; `false` if omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    once: bool,
    /// The sequences that it runs, such as the body of a loop; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<BodyEntry>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
fn is_first(stream: &usize) -> bool {
    *stream == 0
}

const fn one() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
fn is_one(cost: &u64) -> bool {
    *cost == 1
}

/// A sequence within an operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a body")]
pub(crate) struct BodyEntry {
    /// Tensors supplied for each run.
    #[serde(default)]
    inputs: Vec<TensorEntry>,
    /// Weights whose sizes are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<TensorEntry>,
    /// The operators in execution order.
    operators: Vec<OperatorEntry>,
    /// Names of the outputs.
    #[serde(default)]
    outputs: Vec<Box<str>>,
}

/// An output of an operator; at most one of `reads`, `overwrites` and `gathers`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes an output")]
pub(crate) struct OutputEntry {
    /// Its name.
    name: Box<str>,
    /// Its bytes.
    size: Bytes,
    /// The basis of the size; omitted if it is exact.
    #[serde(default, skip_serializing_if = "SizeBasis::is_exact")]
    basis: SizeBasis,
    /// Its element type and shape; omitted if they are unknown.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    tensor_type: Option<TensorType>,
    /// The input that it is a view of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reads: Option<ReadEntry>,
    /// The inputs that it may be written over, in order of preference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overwrites: Option<OverwriteEntries>,
    /// Format 2: the inputs that it holds copies of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gathers: Option<Vec<GatherEntry>>,
}

/// A read dependency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a view")]
pub(crate) struct ReadEntry {
    /// The viewed input.
    input: Box<str>,
    /// Bytes from its start.
    #[serde(default)]
    offset: Bytes,
    /// True if the output must not be a copy; `false` if omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    required: bool,
}

/// A write dependency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes an overwrite")]
pub(crate) struct OverwriteEntry {
    /// The overwritten input.
    input: Box<str>,
    /// Bytes from its start.
    #[serde(default)]
    offset: Bytes,
    /// Format 2: the least number of bytes by which the output must begin below it; omitted if it lies
    /// inside.
    #[serde(default, skip_serializing_if = "is_zero")]
    below: Bytes,
    /// True if it must be accepted; `false` if omitted.
    #[serde(default)]
    required: bool,
}

/// A gathered input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a gathered input")]
pub(crate) struct GatherEntry {
    /// The input.
    input: Box<str>,
    /// Bytes from the output's start.
    #[serde(default)]
    offset: Bytes,
    /// True if it must lie there, uncopied; `false` if omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    required: bool,
}

/// Write dependencies, of which the first that can be accepted is taken. A file has a list of them,
/// or a single one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OverwriteEntries(Vec<OverwriteEntry>);

impl Serialize for OverwriteEntries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [entry] => entry.serialize(serializer),
            entries => entries.serialize(serializer),
        }
    }
}

/// Written by hand so that errors name a wrong key: for an untagged enum, serde only reports that
/// no variant matches.
impl<'de> Deserialize<'de> for OverwriteEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Vec<OverwriteEntry>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an overwrite, or a list of them")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Ok(vec![OverwriteEntry::deserialize(MapAccessDeserializer::new(map))?])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq))
            }
        }

        deserializer.deserialize_any(Entries).map(Self)
    }
}

/// In a file, a string is the name of an operator, and a number is its place in the list.
impl Serialize for OperatorRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Name(name) => name.serialize(serializer),
            Self::Place(place) => place.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for OperatorRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reference;

        impl Visitor<'_> for Reference {
            type Value = OperatorRef;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an operator, or its place in the list from 0")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<OperatorRef, E> {
                Ok(OperatorRef::Name(name.into()))
            }

            fn visit_u64<E: serde::de::Error>(self, place: u64) -> Result<OperatorRef, E> {
                // No list has more entries than a `usize` counts.
                Ok(OperatorRef::Place(usize::try_from(place).unwrap_or(usize::MAX)))
            }
        }

        deserializer.deserialize_any(Reference)
    }
}

impl From<OpSequence> for SequenceFile {
    fn from(sequence: OpSequence) -> Self {
        let BodyEntry { inputs, weights, operators, outputs } = (&sequence).into();
        let format = if new_key(&operators).is_some() { FULL } else { PLAIN }.to_owned();
        Self { format, inputs, weights, operators, outputs, dims: sequence.dims }
    }
}

/// The first key that only format 2 has.
fn new_key(operators: &[OperatorEntry]) -> Option<&'static str> {
    operators.iter().find_map(|operator| {
        let key = |output: &OutputEntry| {
            let overwrites = output.overwrites.iter().flat_map(|overwrites| &overwrites.0);
            let keys = [
                (output.reads.as_ref().is_some_and(|read| read.required), "required"),
                (output.gathers.is_some(), "gathers"),
                (overwrites.into_iter().any(|overwrite| overwrite.below > 0), "below"),
            ];
            keys.into_iter().find_map(|(is_used, key)| is_used.then_some(key))
        };
        let stream = || (operator.stream > 0).then_some("stream");
        let in_bodies = || operator.bodies.iter().find_map(|body| new_key(&body.operators));
        operator.outputs.iter().find_map(key).or_else(stream).or_else(in_bodies)
    })
}

impl From<&OpSequence> for BodyEntry {
    fn from(sequence: &OpSequence) -> Self {
        let name = |id: super::TensorId| sequence.tensor(id).name.clone();
        let supplied = |wanted: &Origin| {
            sequence
                .tensors()
                .iter()
                .filter(|tensor| tensor.origin == *wanted)
                .filter_map(|tensor| {
                    let (name, tensor_type) = (tensor.name.clone(), tensor.elements.clone());
                    Some(TensorEntry { name, size: tensor.size?, tensor_type })
                })
                .collect()
        };
        let output = |&id: &super::TensorId| {
            let tensor = sequence.tensor(id);
            let mut entry = OutputEntry {
                name: tensor.name.clone(),
                size: tensor.size.unwrap_or(0),
                basis: tensor.basis,
                tensor_type: tensor.elements.clone(),
                reads: None,
                overwrites: None,
                gathers: None,
            };
            match &tensor.origin {
                Origin::Output {
                    dependency: Dependency::Reads { input, offset, required },
                    ..
                } => {
                    let (input, offset, required) = (name(*input), *offset, *required);
                    entry.reads = Some(ReadEntry { input, offset, required });
                }
                Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } => {
                    let entries = overwrites
                        .iter()
                        .map(|overwrite| OverwriteEntry {
                            input: name(overwrite.input),
                            offset: overwrite.offset,
                            below: overwrite.below,
                            required: overwrite.required,
                        })
                        .collect();
                    entry.overwrites = Some(OverwriteEntries(entries));
                }
                Origin::Output { dependency: Dependency::Gathers(gathers), .. } => {
                    let entry_of = |gather: &Gather<super::TensorId>| GatherEntry {
                        input: name(gather.input),
                        offset: gather.offset,
                        required: gather.required,
                    };
                    entry.gathers = Some(gathers.iter().map(entry_of).collect());
                }
                _ => {}
            }
            entry
        };
        let mut named: HashMap<&str, usize> = HashMap::new();
        for operator in sequence.operators() {
            *named.entry(&operator.name).or_default() += 1;
        }
        let operator_ref = |&step: &usize| {
            let name = &sequence.operators()[step].name;
            match named.get(&**name) {
                Some(1) if !name.is_empty() => OperatorRef::Name(name.clone()),
                _ => OperatorRef::Place(step),
            }
        };
        let read: HashSet<super::TensorId> = sequence
            .operators()
            .iter()
            .flat_map(|operator| operator.inputs.iter().copied())
            .collect();
        // A file cannot express a weight of unknown size that no operator reads.
        let known = |id: &&super::TensorId| {
            let tensor = sequence.tensor(**id);
            tensor.origin != Origin::Weight || tensor.size.is_some() || read.contains(id)
        };
        Self {
            inputs: supplied(&Origin::Input),
            weights: supplied(&Origin::Weight),
            operators: sequence
                .operators()
                .iter()
                .map(|operator| OperatorEntry {
                    name: operator.name.clone(),
                    kind: operator.kind.clone(),
                    inputs: operator.inputs.iter().map(|&id| name(id)).collect(),
                    outputs: operator.outputs.iter().map(output).collect(),
                    after: operator.after.iter().map(operator_ref).collect(),
                    stream: operator.stream,
                    workspace: operator.workspace,
                    cost: operator.cost,
                    once: operator.once,
                    bodies: operator.bodies.iter().map(Self::from).collect(),
                })
                .collect(),
            outputs: sequence.outputs().iter().filter(known).map(|&id| name(id)).collect(),
        }
    }
}

impl TryFrom<SequenceFile> for OpSequence {
    type Error = SequenceError;

    fn try_from(file: SequenceFile) -> Result<Self, SequenceError> {
        match (&*file.format, new_key(&file.operators)) {
            (FULL, _) | (PLAIN, None) => {}
            (PLAIN, Some(key)) => return Err(SequenceError::UnknownKey { key, format: FULL }),
            _ => return Err(SequenceError::Format { found: file.format, expected: PLAIN }),
        }
        let SequenceFile { inputs, weights, operators, outputs, dims, .. } = file;
        let sequence: Self = BodyEntry { inputs, weights, operators, outputs }.try_into()?;
        let sequence = Self { dims, ..sequence };
        check::dims(&sequence)?;
        Ok(sequence)
    }
}

impl TryFrom<BodyEntry> for OpSequence {
    type Error = SequenceError;

    fn try_from(file: BodyEntry) -> Result<Self, SequenceError> {
        let mut sequence = OpSequence::builder();
        sequence.undeclared_are_weights();
        for TensorEntry { name, size, tensor_type } in file.inputs {
            state_type(&mut sequence, &name, tensor_type);
            sequence.input(name, size);
        }
        for TensorEntry { name, size, tensor_type } in file.weights {
            state_type(&mut sequence, &name, tensor_type);
            sequence.weight(name, Some(size));
        }
        for entry in file.operators {
            let mut operator = Operator::new(entry.name)
                .kind(entry.kind)
                .inputs(entry.inputs)
                .on_stream(entry.stream)
                .workspace(entry.workspace)
                .cost(entry.cost);
            operator.once = entry.once;
            for body in entry.bodies {
                operator = operator.body(body.try_into()?);
            }
            operator.after.extend(entry.after);
            for mut output in entry.outputs {
                state_type(&mut sequence, &output.name, output.tensor_type.take());
                operator = operator.output(output.try_into()?);
            }
            sequence.operator(operator);
        }
        for name in file.outputs {
            sequence.output(name);
        }
        sequence.build()
    }
}

fn state_type(sequence: &mut SequenceBuilder, name: &str, tensor_type: Option<TensorType>) {
    if let Some(tensor_type) = tensor_type {
        sequence.typed(name, tensor_type);
    }
}

impl TryFrom<OutputEntry> for Output {
    type Error = SequenceError;

    fn try_from(entry: OutputEntry) -> Result<Self, SequenceError> {
        let gathers = entry.gathers.map(|gathers| {
            let gather =
                |GatherEntry { input, offset, required }| Gather { input, offset, required };
            Dependency::Gathers(gathers.into_iter().map(gather).collect())
        });
        let dependency = match (entry.reads, entry.overwrites, gathers) {
            (None, None, None) => Dependency::Fresh,
            (None, None, Some(gathers)) => gathers,
            (Some(ReadEntry { input, offset, required }), None, None) => {
                Dependency::Reads { input, offset, required }
            }
            (None, Some(OverwriteEntries(overwrites)), None) => Dependency::Overwrites(
                overwrites
                    .into_iter()
                    .map(|OverwriteEntry { input, offset, below, required }| Overwrite {
                        input,
                        offset,
                        below,
                        required,
                    })
                    .collect(),
            ),
            _ => {
                return Err(SequenceError::SeveralDependencies { output: entry.name.to_string() });
            }
        };
        let (name, size, basis) = (entry.name, entry.size, entry.basis);
        Ok(Output { name, size, basis, dependency, is_mixed: false })
    }
}
