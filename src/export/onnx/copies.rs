//! ONNX models with nodes that run twice or later.
//!
//! A copy of a node has its bytes, with other names for itself and for what it makes and reads. Readers have their
//! bytes as well, with the names of the copies where they read those. What is known of the shape of a value is
//! stated of its copy, too. All else stays as it is.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use rten_onnx::onnx::{GraphProto, ModelProto};

use crate::{
    OpSequence,
    import::onnx::{Field, NODE, OnnxError, Survey, fields, graph_field},
    planner::Replanned,
    recompute::Recomputation,
    recompute::{Run, runs},
};

/// The fields of a graph for its outputs, and for what is known of its other values.
const OUTPUT: u64 = 12;
const VALUE_INFO: u64 = 13;

/// The fields of a node for the names that it reads, the names that it makes, and its own.
const READS: u64 = 1;
const MAKES: u64 = 2;
const NAME: u64 = 3;

/// The field of a value for its name.
const VALUE_NAME: u64 = 1;

/// Returns the model in which some nodes run twice or later, as [`plan_recomputed`] has found it for the sequence of
/// `survey`, with any costs. A runtime must be kept from merging equal nodes again: in ONNX Runtime, load the model
/// with `ORT_DISABLE_ALL`.
///
/// ```no_run
/// use memplan::{Limits, Planner, export, recompute::Recomputed};
/// use memplan::import::{ImportOptions, onnx};
///
/// let model = std::fs::read("model.onnx")?;
/// let survey = onnx::read_with_nodes(&model, &ImportOptions::default())?;
/// let found = Planner::new().plan_recomputed(&survey.sequence, 8 << 20, Limits::default(), None)?;
/// if let Recomputed::Found(fit) = found {
///     std::fs::write("smaller.onnx", export::onnx::expanded(&model, &survey, &fit)?)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the bytes are not the model of `survey`, or the graph is stored in several pieces; and if something runs later
/// and a call of a function is several operators, a node with a sub-graph would run twice or read a copy, or a copy
/// needs a name that the model has.
///
/// [`plan_recomputed`]: crate::Planner::plan_recomputed
pub fn expanded(
    model: &[u8],
    survey: &Survey,
    fit: &Replanned<Recomputation>,
) -> Result<Vec<u8>, OnnxError> {
    let place = graph_field(model)?;
    let file = File { bytes: model, fields: fields(model, place.content.clone())? };
    let parsed = ModelProto::parse_buf(model)
        .map_err(|error| OnnxError::NotOnnx { reason: error.to_string() })?;
    let graph = parsed.graph.unwrap_or_default();
    let writing = Writing { file: &file, graph: &graph, survey, fit };
    let content = writing.graph(place.content.clone())?;
    let head = place.whole.start..place.content.start;
    let mut written = model[..head.start].to_vec();
    // The first byte of the head is the tag; the length follows.
    written.push(model[head.start]);
    push_length(&mut written, content.len());
    written.extend_from_slice(&content);
    written.extend_from_slice(&model[place.whole.end..]);
    Ok(written)
}

/// The bytes of a model, and the fields of its main graph.
struct File<'a> {
    bytes: &'a [u8],
    fields: Vec<Field>,
}

impl File<'_> {
    fn nodes(&self) -> Vec<&Field> {
        self.fields.iter().filter(|field| field.number == NODE).collect()
    }

    /// The content of a field as text.
    fn text(&self, field: &Field) -> &str {
        std::str::from_utf8(&self.bytes[field.content.clone()]).unwrap_or_default()
    }
}

/// The new names in a run of a node, by their old ones.
type Names<'a> = HashMap<&'a str, Box<str>>;

/// A run of a node.
struct NodeRun<'a> {
    node: usize,
    /// The new name of the node itself, if it is a copy.
    name: Option<&'a str>,
    names: Names<'a>,
}

struct Writing<'a> {
    file: &'a File<'a>,
    graph: &'a GraphProto,
    survey: &'a Survey,
    fit: &'a Replanned<Recomputation>,
}

impl<'a> Writing<'a> {
    /// The content of the new graph.
    fn graph(&self, content: Range<usize>) -> Result<Vec<u8>, OnnxError> {
        let nodes = self.file.nodes();
        let runs = self.node_runs(nodes.len())?;
        let bytes = self.file.bytes;
        let mut written = Vec::with_capacity(2 * content.len());
        let mut end = content.start;
        let mut runs = runs.iter();
        for place in &nodes {
            written.extend_from_slice(&bytes[end..place.whole.start]);
            // Copies stand right before the next node of the file.
            for run in runs.by_ref() {
                self.push_node(&mut written, nodes[run.node], run)?;
                if run.name.is_none() {
                    break;
                }
            }
            end = place.whole.end;
        }
        written.extend_from_slice(&bytes[end..content.end]);
        self.push_values(&mut written)?;
        Ok(written)
    }

    /// The runs of all nodes of the file, in order.
    fn node_runs(&self, nodes: usize) -> Result<Vec<NodeRun<'a>>, OnnxError> {
        let given = &self.survey.sequence;
        let of_steps = self.survey.nodes.of_steps();
        let is_other =
            self.survey.nodes.len() != nodes || of_steps.len() != given.operators().len();
        if is_other {
            return Err(OnnxError::NotAPermutation { nodes });
        }
        if !self.fit.change.later.is_empty() {
            check_calls(given, of_steps)?;
        }
        let expanded = &self.fit.change.sequence;
        let later = &self.fit.change.later;
        let all = runs(given.operators().len(), later)?;
        let by_output: HashMap<&str, Run> = (0..all.len().min(expanded.operators().len()))
            .filter_map(|at| Some((first_output(expanded, at)?, all[at])))
            .collect();
        let mut taken = names_of(self.graph);
        let mut copies: Vec<NodeRun> = Vec::new();
        let mut before: HashMap<usize, Vec<NodeRun>> = HashMap::new();
        let mut own: HashMap<usize, Names> = HashMap::new();
        let mut order = Vec::new();
        for (at, operator) in self.fit.sequence.operators().iter().enumerate() {
            let run = first_output(&self.fit.sequence, at).and_then(|name| by_output.get(name));
            let (Some(&Run { step, is_copy }), true) =
                (run, of_steps.len() == given.operators().len())
            else {
                return Err(OnnxError::NotAPermutation { nodes });
            };
            let mut names = self.renamed(step, at);
            let node = of_steps[step];
            if is_copy {
                self.name_outputs(node, &mut names, &mut taken)?;
                let name = Some(&*operator.name);
                copies.push(NodeRun { node, name, names });
            } else {
                before.entry(node).or_default().append(&mut copies);
                own.entry(node).or_default().extend(names);
                order.push(step);
            }
        }
        let order = self.survey.nodes.order(&order);
        if order.len() != nodes {
            return Err(OnnxError::NotAPermutation { nodes });
        }
        let mut runs = Vec::new();
        for node in order {
            runs.extend(before.remove(&node).unwrap_or_default());
            let names = own.remove(&node).unwrap_or_default();
            runs.push(NodeRun { node, name: None, names });
        }
        Ok(runs)
    }

    /// The tensors of a step that have other names in the expanded sequence, where it is at `at`.
    fn renamed(&self, step: usize, at: usize) -> Names<'a> {
        let (given, expanded) = (&self.survey.sequence, &self.fit.sequence);
        let (old, new) = (&given.operators()[step], &expanded.operators()[at]);
        let reads = old.inputs.iter().zip(&new.inputs);
        let pairs = reads.chain(old.outputs.iter().zip(&new.outputs));
        let names =
            pairs.map(|(&old, &new)| (&*given.tensor(old).name, &expanded.tensor(new).name));
        names.filter(|(old, new)| **old != ***new).map(|(old, new)| (old, new.clone())).collect()
    }

    /// Gives a name to all that a copy makes, also to what the sequence does not have.
    fn name_outputs(
        &self,
        node: usize,
        names: &mut Names<'a>,
        taken: &mut HashSet<Box<str>>,
    ) -> Result<(), OnnxError> {
        for output in self.graph.node[node].output.iter().filter(|name| !name.is_empty()) {
            let copy = names.entry(output).or_insert_with(|| format!("{output}~1").into());
            if !taken.insert(copy.clone()) {
                return Err(OnnxError::Unsupported {
                    what: format!("a copy of '{output}' next to another value named '{copy}'"),
                    remedy: "rename that value".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn push_node(
        &self,
        written: &mut Vec<u8>,
        place: &Field,
        run: &NodeRun<'_>,
    ) -> Result<(), OnnxError> {
        let bytes = self.file.bytes;
        if run.names.is_empty() {
            written.extend_from_slice(&bytes[place.whole.clone()]);
            return Ok(());
        }
        let node = &self.graph.node[run.node];
        if node.attribute.iter().any(|attribute| attribute.g.is_some()) {
            let name = node.output.first().map_or("", String::as_str);
            return Err(OnnxError::Unsupported {
                what: format!("a copy at the node with a sub-graph that makes '{name}'"),
                remedy: "write the operators as .json".to_owned(),
            });
        }
        let mut content = Vec::with_capacity(place.content.len() + 64);
        for field in fields(bytes, place.content.clone())? {
            let new = match (field.number, run.name) {
                (READS | MAKES, _) => run.names.get(self.file.text(&field)).map(|name| &**name),
                (NAME, Some(name)) => Some(name),
                _ => None,
            };
            match new {
                Some(new) => push_field(&mut content, field.number, new.as_bytes()),
                None => content.extend_from_slice(&bytes[field.whole]),
            }
        }
        push_field(written, NODE, &content);
        Ok(())
    }

    /// States of each copy what the file states of its original.
    fn push_values(&self, written: &mut Vec<u8>) -> Result<(), OnnxError> {
        let (given, expanded) = (&self.survey.sequence, &self.fit.change.sequence);
        let all = runs(given.operators().len(), &self.fit.change.later)?;
        let mut copies: Names = HashMap::new();
        for (operator, run) in expanded.operators().iter().zip(all).filter(|(_, run)| run.is_copy) {
            let old = given.operators()[run.step].outputs.iter().map(|&id| &*given.tensor(id).name);
            let new = operator.outputs.iter().map(|&id| expanded.tensor(id).name.clone());
            copies.extend(old.zip(new));
        }
        for value in &self.file.fields {
            if !matches!(value.number, OUTPUT | VALUE_INFO) {
                continue;
            }
            let of = fields(self.file.bytes, value.content.clone())?;
            let name = of.iter().find(|field| field.number == VALUE_NAME);
            let Some(copy) = name.and_then(|name| copies.remove(self.file.text(name))) else {
                continue;
            };
            let mut content = Vec::with_capacity(value.content.len() + copy.len());
            for field in of {
                if field.number == VALUE_NAME {
                    push_field(&mut content, VALUE_NAME, copy.as_bytes());
                } else {
                    content.extend_from_slice(&self.file.bytes[field.whole]);
                }
            }
            push_field(written, VALUE_INFO, &content);
        }
        Ok(())
    }
}

/// Each node must be one operator at most.
fn check_calls(given: &OpSequence, of_steps: &[usize]) -> Result<(), OnnxError> {
    let mut seen = HashSet::new();
    match of_steps.iter().position(|&node| !seen.insert(node)) {
        None => Ok(()),
        Some(step) => Err(OnnxError::Unsupported {
            what: format!(
                "the call of a function, to which '{}' belongs, beside operators that run later",
                given.operator_name(step)
            ),
            remedy: "inline the functions with onnx.inliner, or write the operators as .json"
                .to_owned(),
        }),
    }
}

fn first_output(sequence: &OpSequence, step: usize) -> Option<&str> {
    let output = sequence.operators()[step].outputs.first()?;
    Some(&sequence.tensor(*output).name)
}

/// The names of all values of a graph and of its sub-graphs.
fn names_of(graph: &GraphProto) -> HashSet<Box<str>> {
    let mut names = HashSet::new();
    let mut open = vec![graph];
    while let Some(graph) = open.pop() {
        let values = graph.input.iter().filter_map(|value| value.name.as_deref());
        let weights = graph.initializer.iter().filter_map(|tensor| tensor.name.as_deref());
        let made = graph.node.iter().flat_map(|node| node.output.iter().map(String::as_str));
        names.extend(values.chain(weights).chain(made).map(Box::from));
        let attributes = graph.node.iter().flat_map(|node| &node.attribute);
        open.extend(attributes.filter_map(|attribute| attribute.g.as_ref()));
    }
    names
}

/// Appends a field whose content has a length.
fn push_field(written: &mut Vec<u8>, number: u64, content: &[u8]) {
    push_varint(written, number << 3 | 2);
    push_length(written, content.len());
    written.extend_from_slice(content);
}

fn push_length(written: &mut Vec<u8>, length: usize) {
    push_varint(written, length as u64);
}

#[allow(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn push_varint(written: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        written.push(number as u8 | 0x80);
        number >>= 7;
    }
    written.push(number as u8);
}
