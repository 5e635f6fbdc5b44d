//! The offset of each buffer: the smallest gap between the live buffers, in order of time.

use crate::{
    Bytes, OpSequence,
    baselines::onnxruntime::{ALIGNMENT, reuse::Buffer},
    sequence::TensorId,
};

/// A live buffer.
struct Block {
    owner: TensorId,
    offset: Bytes,
    end: Bytes,
}

/// Places the buffers of a sequence, given the owner of each tensor's buffer. Returns their offsets in bytes, by the
/// id of the owner, and the size of the pattern.
pub(super) fn place(sequence: &OpSequence, buffers: &[Buffer]) -> (Vec<Option<Bytes>>, Bytes) {
    let last_reads = last_reads(sequence, buffers);
    let mut is_returned = vec![false; buffers.len()];
    sequence.outputs().iter().for_each(|output| is_returned[output.index()] = true);
    let mut offsets = vec![None; buffers.len()];
    let mut live: Vec<Block> = Vec::new();
    let mut size = 0;
    for (step, operator) in sequence.operators().iter().enumerate() {
        for &output in &operator.outputs {
            if buffers[output.index()].owner != output || is_returned[output.index()] {
                continue;
            }
            let bytes = sequence.tensor(output).size.unwrap_or(0);
            let bytes = bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(bytes);
            let (at, offset) = if bytes == 0 { (live.len(), 0) } else { best_gap(&live, bytes) };
            offsets[output.index()] = Some(offset);
            if bytes > 0 {
                let end = offset.saturating_add(bytes);
                size = size.max(end);
                live.insert(at, Block { owner: output, offset, end });
            }
        }
        live.retain(|block| last_reads[block.owner.index()] != Some(step));
    }
    (offsets, size)
}

/// The step of the last read of each buffer, by its owner; `None` if it stays to the end, because it holds a tensor
/// that nothing reads.
fn last_reads(sequence: &OpSequence, buffers: &[Buffer]) -> Vec<Option<usize>> {
    let mut last = vec![None; buffers.len()];
    let mut is_read = vec![false; buffers.len()];
    for (step, operator) in sequence.operators().iter().enumerate() {
        for input in &operator.inputs {
            is_read[input.index()] = true;
            last[buffers[input.index()].owner.index()] = Some(step);
        }
    }
    for (buffer, _) in buffers.iter().zip(is_read).filter(|(_, is_read)| !is_read) {
        last[buffer.owner.index()] = None;
    }
    last
}

/// The place in the list of live buffers, which is in order of offsets, and the offset of the smallest gap that holds
/// some bytes; of equal ones, the lowest.
fn best_gap(live: &[Block], bytes: Bytes) -> (usize, Bytes) {
    let mut best = (live.len(), live.last().map_or(0, |block| block.end));
    let mut least = Bytes::MAX;
    let mut start = 0;
    for (at, block) in live.iter().enumerate() {
        let rest = block.offset.checked_sub(start).and_then(|gap| gap.checked_sub(bytes));
        if let Some(rest) = rest.filter(|&rest| rest < least) {
            (best, least) = ((at, start), rest);
        }
        start = block.end;
    }
    best
}
