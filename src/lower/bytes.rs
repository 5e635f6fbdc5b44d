//! Lifetimes of bytes: splits chunks whose bytes are needed for different times.
//!
//! Views may show parts of one chunk: the halves of a split, the slices of a buffer that is filled step by step, or a
//! small slice of a large tensor. Each byte must be kept only until its own last reader. Such a chunk is split into
//! *runs*, each a chunk with a lifetime of its own. The whole chunk is alive only while it is written; the runs are its
//! [parts](crate::problem::Part), so they stay where they are. An output may then be written over a run although other
//! runs are still read, and a run may lie inside an output that gathers a view of it. On several streams, bytes belong
//! to one run if their last readers are over at the same clock.

use std::{collections::BTreeMap, mem, ops::Range};

use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes,
    lower::{
        Grain, LoweringOptions,
        clocks::{self, first_end},
        place::{DraftChunk, Places, Source},
        runs::{cut, runs, runs_on_streams},
        ties::divided_bytes,
    },
    problem::ChunkId,
    sequence::{Dependency, Gather, OpSequence, Origin, TensorId},
};

/// Bytes of a chunk that are needed equally long, as a chunk of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunChunk {
    pub(super) chunk: ChunkId,
    /// The first byte in the whole chunk.
    pub(super) low: Bytes,
    /// The byte after the last.
    pub(super) high: Bytes,
}

/// The origin of the bytes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// They are there before the first step.
    Supplied {
        /// The stream of the first operator that uses them.
        first_stream: usize,
    },
    /// An operator writes them.
    New,
    /// The operator of this step may write them over another chunk. The runs begin after this step, because in it the
    /// whole chunk shares bytes with the overwritten one.
    Over(usize),
}

/// The runs of a chunk.
#[derive(Clone, Debug)]
pub(super) struct SplitChunk {
    /// The tensor that the chunk was made for.
    tensor: TensorId,
    pub(super) made: Made,
    /// In the order of their bytes. Together, they are the whole chunk, or what is needed after it was made.
    pub(super) runs: Vec<RunChunk>,
}

/// The chunks that consist of runs.
pub(super) type SplitChunks = BTreeMap<ChunkId, SplitChunk>;

/// The most runs of a chunk. In each step, a plan lists the ones that are alive, so their number may be squared.
const MAX_RUNS: usize = 256;

/// Splits the chunks whose bytes are needed for different times; with [`Grain::Pieces`], also where the bytes that
/// outputs gather, or that outputs of one operator divide between them, begin and end. If `outside`, chunks outside the
/// pool are split as well.
pub(super) fn split(
    sequence: &OpSequence,
    places: &mut Places,
    options: LoweringOptions,
    grain: Grain,
    outside: bool,
) {
    let mut cuts = vec![Vec::new(); places.chunks.len()];
    if grain == Grain::Pieces {
        places.cut(sequence, options, &mut cuts);
    }
    let mut uses = vec![Vec::new(); places.chunks.len()];
    let mut add = |step: usize, tensor: TensorId| {
        if let Some((chunk, bytes)) = places.bytes(sequence, tensor) {
            uses[chunk.index()].push((bytes, step));
        }
    };
    for (step, operator) in sequence.operators().iter().enumerate() {
        let used = sequence.used_tensors(operator, |view, input| places.is_view(view, input));
        used.for_each(|(tensor, _)| add(step, tensor));
    }
    let clocks = (sequence.streams() > 1).then(|| clocks::operators(sequence));
    let stream = |step: usize| sequence.operators().get(step).map_or(0, |one| one.stream);
    let end = sequence.operators().len();
    sequence.outputs().iter().for_each(|&output| add(end, output));
    for (at, mut uses) in uses.into_iter().enumerate() {
        let chunk = &places.chunks[at];
        let is_possible = chunk.can_be_split() && (outside || chunk.outside.is_none());
        let size = chunk.size;
        let is_whole = cuts[at].is_empty() && uses.iter().all(|(bytes, _)| *bytes == (0..size));
        if !is_possible || is_whole {
            continue;
        }
        let first_stream = uses.iter().map(|&(_, step)| step).min().map_or(0, stream);
        let made = chunk.tensor().map(|tensor| Made::of(sequence, tensor, first_stream));
        let Some(made) = made else { continue };
        match made {
            Made::Over(written) => uses.retain(|&(_, step)| step > written),
            // It is there before the first step of each stream.
            Made::Supplied { .. } if clocks.is_some() => {}
            // All of it is there in the first step.
            Made::Supplied { .. } | Made::New => uses.push((0..size, 0)),
        }
        let runs: Vec<Range<Bytes>> = if let Some(clocks) = &clocks {
            let end_of = |steps: &mut dyn Iterator<Item = usize>| {
                let mut is_kept = false;
                let clock = clocks.end_of(steps.inspect(|&step| is_kept |= step == end));
                (clock, is_kept)
            };
            let runs = runs_on_streams(&uses, sequence.streams(), stream, end_of);
            // The whole chunk is alive until the first run ends, so there must be such a moment.
            let mut ends = runs.iter().map(|(_, (clock, _))| clock);
            let is_supplied = made == Made::Supplied { first_stream };
            if is_supplied && first_end(&mut ends, first_stream).is_none() {
                continue;
            }
            bytes_of(runs)
        } else {
            bytes_of(runs(&uses))
        };
        let whole_runs = runs.iter().map(|run| (run.clone(), ())).collect();
        let pieces = bytes_of(cut(whole_runs, cuts[at].drain(..)));
        let is_split = |runs: &Vec<Range<Bytes>>| {
            (1..=MAX_RUNS).contains(&runs.len()) && runs.iter().all(|run| *run != (0..size))
        };
        if let Some(runs) = [pieces, runs].into_iter().find(is_split) {
            places.split(ChunkId::from_index(at), made, &runs);
        }
    }
    places.put_runs_after_wholes();
    for &output in sequence.outputs() {
        if let Some((chunk, bytes)) = places.bytes(sequence, output) {
            let needed: Vec<ChunkId> = places.runs_in(chunk, &bytes).collect();
            if !needed.is_empty() {
                places.chunks[chunk.index()].output = false;
            }
            for run in needed {
                places.chunks[run.index()].output = true;
            }
        }
    }
}

impl Made {
    fn of(sequence: &OpSequence, tensor: TensorId, first_stream: usize) -> Self {
        match sequence.tensor(tensor).origin {
            Origin::Input | Origin::Weight => Self::Supplied { first_stream },
            Origin::Output { step, dependency: Dependency::Overwrites(_) } => Self::Over(step),
            Origin::Output { .. } => Self::New,
        }
    }
}

/// The bytes of runs, without their ends.
fn bytes_of<K>(runs: Vec<(Range<Bytes>, K)>) -> Vec<Range<Bytes>> {
    runs.into_iter().map(|(bytes, _)| bytes).collect()
}

impl Places {
    /// The chunk of a tensor and its bytes there.
    fn bytes(&self, sequence: &OpSequence, tensor: TensorId) -> Option<(ChunkId, Range<Bytes>)> {
        let (chunk, low) = self.tensors[tensor.index()]?;
        let size = sequence.tensor(tensor).size.unwrap_or(Bytes::MAX);
        Some((chunk, low..low.saturating_add(size)))
    }

    /// Adds the bytes at which a chunk may be cut into pieces: where bytes that an output gathers begin and end, in its
    /// own chunk and in the input's, and where bytes begin and end that outputs of one operator divide between them.
    fn cut(&self, sequence: &OpSequence, options: LoweringOptions, cuts: &mut [Vec<Bytes>]) {
        for target in divided_bytes(sequence, options) {
            if let Some((chunk, low)) = self.tensors[target.root.index()] {
                let bytes = [target.bytes.start, target.bytes.end];
                cuts[chunk.index()].extend(bytes.map(|byte| low.saturating_add(byte)));
            }
        }
        for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
            let Origin::Output { dependency: Dependency::Gathers(gathers), .. } =
                &sequence.tensor(output).origin
            else {
                continue;
            };
            let Some((whole, of_whole)) = self.bytes(sequence, output) else { continue };
            for &Gather { input, offset, .. } in gathers {
                let Some((part, bytes)) = self.bytes(sequence, input) else { continue };
                let low = of_whole.start.saturating_add(offset);
                let high = low.saturating_add(bytes.end - bytes.start);
                cuts[whole.index()].extend([low, high]);
                cuts[part.index()].extend([bytes.start, bytes.end]);
            }
        }
    }

    fn split(&mut self, whole: ChunkId, made: Made, runs: &[Range<Bytes>]) {
        let of_whole = self.chunks[whole.index()].clone();
        let Some(tensor) = of_whole.tensor() else { return };
        let runs = runs.iter().map(|bytes| {
            let chunk = ChunkId::from_index(self.chunks.len());
            let source = Source::Run { tensor, low: bytes.start, high: bytes.end };
            let size = bytes.end - bytes.start;
            self.chunks.push(DraftChunk { size, source, output: false, ..of_whole.clone() });
            RunChunk { chunk, low: bytes.start, high: bytes.end }
        });
        let runs = runs.collect();
        self.runs.insert(whole, SplitChunk { tensor, made, runs });
    }

    /// Numbers the chunks again, each followed by its runs: among chunks that live as long as each other, an overwriter
    /// must come after what it overwrites.
    fn put_runs_after_wholes(&mut self) {
        if self.runs.is_empty() {
            return;
        }
        let wholes = self.wholes();
        let place = |chunk: &ChunkId| match wholes.get(chunk) {
            Some(&(whole, low)) => (whole, Some(low)),
            None => (*chunk, None),
        };
        let mut order: Vec<ChunkId> = (0..self.chunks.len()).map(ChunkId::from_index).collect();
        order.sort_unstable_by_key(place);
        self.chunks = order.iter().map(|chunk| self.chunks[chunk.index()].clone()).collect();
        let mut new = order.clone();
        for (at, chunk) in order.iter().enumerate() {
            new[chunk.index()] = ChunkId::from_index(at);
        }
        let renumber = |chunk: &mut ChunkId| *chunk = new[chunk.index()];
        self.tensors.iter_mut().flatten().for_each(|(chunk, _)| renumber(chunk));
        self.workspaces.iter_mut().flatten().for_each(renumber);
        let runs = mem::take(&mut self.runs).into_iter().map(|(mut whole, mut split)| {
            renumber(&mut whole);
            split.runs.iter_mut().for_each(|run| renumber(&mut run.chunk));
            (whole, split)
        });
        self.runs = runs.collect();
    }

    /// The runs of a chunk that share bytes with a range; none if it is not split.
    pub(super) fn runs_in<'a>(
        &'a self,
        chunk: ChunkId,
        bytes: &'a Range<Bytes>,
    ) -> impl Iterator<Item = ChunkId> + 'a {
        let runs = self.runs.get(&chunk).map_or(&[][..], |split| &split.runs);
        let first = runs.partition_point(|run| run.high <= bytes.start);
        runs[first..].iter().take_while(|run| run.low < bytes.end).map(|run| run.chunk)
    }

    /// By run: the whole chunk, and the first byte in it.
    pub(super) fn wholes(&self) -> BTreeMap<ChunkId, (ChunkId, Bytes)> {
        let of_whole = |(&whole, split): (&ChunkId, &SplitChunk)| {
            split.runs.iter().map(|run| (run.chunk, (whole, run.low))).collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(of_whole).collect()
    }

    /// The runs that begin after a step, with that step.
    pub(super) fn begun_after(&self) -> impl Iterator<Item = (ChunkId, usize)> + '_ {
        let splits = self.runs.values().filter_map(|split| match split.made {
            Made::Over(step) => Some((&split.runs, step)),
            Made::Supplied { .. } | Made::New => None,
        });
        splits.flat_map(|(runs, step)| runs.iter().map(move |run| (run.chunk, step)))
    }

    /// The runs of a chunk; none if it is not split.
    pub(super) fn runs_of(&self, chunk: ChunkId) -> impl Iterator<Item = ChunkId> + '_ {
        self.runs.get(&chunk).into_iter().flat_map(|split| &split.runs).map(|run| run.chunk)
    }

    /// The chunks that an operator uses through a tensor: the tensor's chunk, or the runs that it shows. Only its
    /// producer uses a split chunk itself.
    pub(super) fn used(
        &self,
        sequence: &OpSequence,
        tensor: TensorId,
        is_input: bool,
    ) -> SmallVec<[ChunkId; 2]> {
        let Some((chunk, bytes)) = self.bytes(sequence, tensor) else { return SmallVec::new() };
        let Some(split) = self.runs.get(&chunk) else { return smallvec![chunk] };
        let is_made = !is_input && split.tensor == tensor;
        if is_made && matches!(split.made, Made::Over(_)) {
            return smallvec![chunk];
        }
        is_made.then_some(chunk).into_iter().chain(self.runs_in(chunk, &bytes)).collect()
    }

    /// The chunk that contains a whole range of a chunk's bytes, with the offset in it: the chunk itself if it is not
    /// split, otherwise one of its runs. `None` if no single run contains the range.
    pub(super) fn holder(&self, chunk: ChunkId, bytes: &Range<Bytes>) -> Option<(ChunkId, Bytes)> {
        let Some(SplitChunk { runs, .. }) = self.runs.get(&chunk) else {
            return Some((chunk, bytes.start));
        };
        let at = runs.partition_point(|run| run.low <= bytes.start).checked_sub(1)?;
        let RunChunk { chunk, low, high } = runs[at];
        (bytes.end <= high).then(|| (chunk, bytes.start - low))
    }
}
