//! The values of a sequence, whatever the order of its operators, as chunks of a graph.
//!
//! Bytes of a value that the same operators use form one chunk: its producer writes it, and it dies after the last
//! of its readers. So for any order of the operators, the peak of the graph is the content bound in that order.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use crate::{
    Bytes,
    lower::{
        LoweringOptions, Placing,
        content::{pieces::Piece, values::Values},
        graph::{CountedGraph, CountedRequest, GraphChunk},
        runs::cut,
        ties::divided_bytes,
    },
    problem::ChunkId,
    sequence::{OpSequence, Origin, TensorId},
};

/// The values of a sequence, without overlaps.
pub(crate) fn value_graph(
    sequence: &OpSequence,
    options: LoweringOptions,
    placing: Placing,
) -> CountedGraph {
    let values = Values::of(sequence, options, placing);
    let mut graph = CountedGraph { chunks: Vec::new(), requests: Vec::new(), is_exact: true };
    // By value: its runs of bytes, each with its chunk.
    let mut runs: Vec<Vec<(Range<Bytes>, ChunkId)>> = Vec::new();
    let cuts = cuts(&values);
    for (value, uses) in uses(sequence, &values).into_iter().enumerate() {
        let mut of_value = Vec::new();
        let of_uses = uses.iter().flat_map(|(bytes, _)| [bytes.start, bytes.end]);
        let may_be_apart = placing.alignment > 1 && values.is_exact(value);
        let of_uses = of_uses.filter(|_| may_be_apart);
        let cuts = of_uses.chain(cuts.get(&value).into_iter().flatten().copied());
        let split = cut(split(&uses), cuts);
        // Runs of one value may share a cell of the alignment.
        let is_single = split.len() < 2;
        graph.is_exact &= placing.alignment == 1 || is_single && !values.is_exact(value);
        for (bytes, users) in split {
            let id = ChunkId::from_index(graph.chunks.len());
            let size = bytes.end - bytes.start;
            let size = if is_single {
                values.counted(value, size)
            } else {
                // The cells that it holds the first bytes of, wherever it lies.
                size & !(placing.alignment - 1)
            };
            graph.chunks.push(GraphChunk { size, ..chunk(sequence, value, &users) });
            of_value.push((bytes, id));
        }
        runs.push(of_value);
    }
    for (step, operator) in sequence.operators().iter().enumerate() {
        for &output in &operator.outputs {
            request(&values, &runs, (step, output), &mut graph);
        }
        if operator.workspace > 0 {
            let (size, producer) = (values.counted_workspace(operator), Some(step));
            let readers = Vec::new();
            graph.chunks.push(GraphChunk { size, producer, readers, kept: false, outside: false });
        }
    }
    graph
}

/// A use of bytes: the range, and the step of the operator; the step after the last stands for bytes kept to the end.
type Use = (Range<Bytes>, usize);

/// By value: who uses which bytes, the producer included.
fn uses(sequence: &OpSequence, values: &Values<'_>) -> Vec<Vec<Use>> {
    let mut uses: Vec<Vec<Use>> = vec![Vec::new(); sequence.tensors().len()];
    let mut add = |tensor: TensorId, step: usize| {
        for &Piece { value, low, size, .. } in values.pieces(tensor) {
            uses[value].push((low..low + size, step));
        }
    };
    let end = sequence.operators().len();
    for (at, tensor) in sequence.tensors().iter().enumerate() {
        let is_supplied = !matches!(tensor.origin, Origin::Output { .. });
        if is_supplied {
            // The value exists, although no operator reads it in this step.
            add(TensorId::from_index(at), usize::MAX);
        }
    }
    for (step, operator) in sequence.operators().iter().enumerate() {
        let used = values.pieces.used(sequence, operator);
        used.into_iter().for_each(|tensor| add(tensor, step));
    }
    for tensor in sequence.outputs().iter().copied().chain(values.kept_weights()) {
        add(tensor, end);
    }
    uses
}

/// By value: the places between bytes that outputs of one operator may divide between them.
fn cuts(values: &Values<'_>) -> HashMap<usize, Vec<Bytes>> {
    let mut cuts: HashMap<usize, Vec<Bytes>> = HashMap::new();
    for target in divided_bytes(values.sequence, values.options) {
        for piece in values.pieces.range(target.root.index(), target.bytes) {
            cuts.entry(piece.value).or_default().extend([piece.low, piece.low + piece.size]);
        }
    }
    cuts
}

/// Splits bytes where their users change.
fn split(uses: &[Use]) -> Vec<(Range<Bytes>, Vec<usize>)> {
    // Uses that begin, or end.
    let mut events: Vec<(Bytes, usize, bool)> = Vec::with_capacity(2 * uses.len());
    for (bytes, step) in uses.iter().filter(|(bytes, _)| !bytes.is_empty()) {
        events.extend([(bytes.start, *step, true), (bytes.end, *step, false)]);
    }
    events.sort_unstable();
    let mut open: BTreeMap<usize, usize> = BTreeMap::new();
    let mut runs: Vec<(Range<Bytes>, Vec<usize>)> = Vec::new();
    let mut from: Bytes = 0;
    for (at, step, begins) in events {
        if from < at && !open.is_empty() {
            let is_next = |bytes: &Range<Bytes>| bytes.end == from;
            match runs.last_mut() {
                Some((bytes, users)) if is_next(bytes) && users.iter().eq(open.keys()) => {
                    bytes.end = at;
                }
                _ => runs.push((from..at, open.keys().copied().collect())),
            }
        }
        from = at;
        let count = open.entry(step).or_default();
        if begins {
            *count += 1;
        } else if *count > 1 {
            *count -= 1;
        } else {
            open.remove(&step);
        }
    }
    runs
}

fn chunk(sequence: &OpSequence, value: usize, users: &[usize]) -> GraphChunk {
    let producer = sequence.tensors()[value].producer();
    let end = sequence.operators().len();
    let is_reader = |&&user: &&usize| user < end && Some(user) != producer;
    GraphChunk {
        size: 0,
        producer,
        readers: users.iter().filter(is_reader).copied().collect(),
        kept: users.contains(&end),
        outside: false,
    }
}

/// Adds the requests of an output to be written over values.
fn request(
    values: &Values<'_>,
    runs: &[Vec<(Range<Bytes>, ChunkId)>],
    (step, output): (usize, TensorId),
    graph: &mut CountedGraph,
) {
    let size = values.size(output);
    let made = match &runs[output.index()][..] {
        [] => return,
        [(_, one)] => Some(*one),
        _ => None,
    };
    let counted = values.counted(output.index(), size);
    let mut requests: Vec<CountedRequest> = Vec::new();
    for (overwrite, pieces) in values.overwritten_by(step, output) {
        let mut saved: Vec<(ChunkId, Bytes)> = Vec::new();
        for piece in &pieces {
            let (runs, end) = (&runs[piece.value], piece.low + piece.size);
            let first = runs.partition_point(|(bytes, _)| bytes.end <= piece.low);
            for (bytes, chunk) in runs[first..].iter().take_while(|(bytes, _)| bytes.start < end) {
                let shared = bytes.end.min(end) - bytes.start.max(piece.low);
                let cells = values.saved_cells(overwrite, piece.value, shared);
                let cells = Bytes::try_from(cells).unwrap_or(Bytes::MAX);
                graph.is_exact &= cells == values.counted(piece.value, shared);
                saved.push((*chunk, cells));
            }
        }
        let sum = saved.iter().map(|(_, bytes)| bytes).sum::<Bytes>();
        // At an unaligned offset, all cells that begin in the output may begin in bytes that it destroys.
        let all = if values.is_exact(output.index()) { counted } else { sum.min(counted) };
        // If an output may save the bytes of several chunks, all of them count as saved once one dies. No plan saves
        // more.
        graph.is_exact &= saved.len() < 2 && made.is_some();
        requests.extend(saved.into_iter().map(|(overwritten, _)| CountedRequest {
            output: output.0,
            operator: step,
            made,
            overwritten,
            saved: all,
            size,
            required: overwrite.required,
        }));
    }
    // The first possible request is used, so the one that saves most comes first.
    requests.sort_by_key(|request| std::cmp::Reverse((request.required, request.saved)));
    graph.requests.extend(requests);
}
