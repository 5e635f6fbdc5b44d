//! The events of the simulation are complete: replaying them gives sound queues, and their front
//! spaces give the planner's own offsets.

use std::collections::BTreeMap;

use crate::{
    common::problems::layout,
    common::random::{Wild, random_problem},
    common::seeds::times,
};
use memplan::{
    Problem, Strategy,
    baselines::pushdown::{Action, Block, Event, Holder, Queues, events},
    problem::ChunkId,
};

/// The blocks below and above a chunk when it gets its block.
fn front_space(events: &[Event]) -> BTreeMap<ChunkId, Vec<ChunkId>> {
    let mut front: BTreeMap<ChunkId, Vec<ChunkId>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.action != Action::Free) {
        if let Some(below) = event.below {
            front.entry(event.chunk).or_default().push(below);
        }
        if let Some(above) = event.above {
            front.entry(above).or_default().push(event.chunk);
        }
    }
    front
}

/// The definition in the book's chapter Offsets: small problems may recurse.
fn base(problem: &Problem, front: &BTreeMap<ChunkId, Vec<ChunkId>>, root: ChunkId) -> u64 {
    let mut base_of_root = 0;
    for member in problem.chain(root) {
        for &below in front.get(&member).into_iter().flatten() {
            let (below_root, below_offset) = problem.place_in_chain(below);
            let end = base(problem, front, below_root) + below_offset + problem.padded_size(below);
            base_of_root = base_of_root.max(end.saturating_sub(problem.place_in_chain(member).1));
        }
    }
    problem.align_up(base_of_root)
}

#[test]
fn replayed_events_give_sound_queues_and_the_planners_offsets() {
    times(500, |random| {
        let wild = Wild { chunks: 9, steps: 7, size: 20, alignment: true };
        let problem = random_problem(random, wild)?;
        let events = events(&problem);
        let mut queues = Queues::default();
        for event in &events {
            queues.apply(event);
            let free = |holder: Holder| matches!(holder, Holder::Free { .. });
            let pairs = queues.memory.windows(2);
            assert!(pairs.clone().all(|pair| !(free(pair[0].holder) && free(pair[1].holder))));
            let holds = |chunk| queues.memory.iter().any(|b| b.holder == Holder::Chunk(chunk));
            assert_eq!(holds(event.chunk), event.action != Action::Free, "{event:?}");
            for block in &queues.memory {
                if let Holder::Chunk(chunk) = block.holder {
                    assert_eq!(block.size, problem.padded_size(chunk));
                }
            }
            assert!(queues.free().is_sorted_by_key(|block| block.size));
        }
        assert!(queues.memory.len() <= 1, "everything is free in the end: {queues:?}");
        let layout = layout(Strategy::Pushdown, &problem);
        let front = front_space(&events);
        for root in problem.roots() {
            assert_eq!(layout.offset(root), base(&problem, &front, root), "{root:?}");
        }
        Ok(())
    });
}

/// The first free block that is large enough, or, if none is, the last, which then grows.
#[test]
fn an_alloc_takes_the_block_that_the_free_queue_prefers() {
    times(500, |random| {
        let wild = Wild { chunks: 20, steps: 12, size: 20, alignment: true };
        let problem = random_problem(random, wild)?;
        let mut queues = Queues::default();
        for event in &events(&problem) {
            let free = queues.free();
            queues.apply(event);
            let size = problem.padded_size(event.chunk);
            let large = free.iter().find(|block| block.size >= size);
            let (action, taken) = match (large, free.last()) {
                _ if matches!(event.action, Action::Free | Action::Overwrite) => continue,
                (Some(block), _) if block.size == size => (Action::Fit, block),
                (Some(block), _) => (Action::Split, block),
                (None, Some(last)) => (Action::Grow, last),
                (None, None) => {
                    assert_eq!((event.action, event.above), (Action::Append, None));
                    continue;
                }
            };
            assert_eq!(event.action, action, "{event:?} of {free:?}");
            let others: Vec<&Block> = free.iter().filter(|&block| block != taken).collect();
            assert!(!queues.memory.contains(taken), "{event:?} of {free:?}");
            assert!(others.iter().all(|&block| queues.memory.contains(block)), "{event:?}");
        }
        Ok(())
    });
}

#[test]
fn an_overwriter_leaves_a_free_head_and_a_free_tail() {
    const MIB: u64 = 1 << 20;
    let mut problem = Problem::builder();
    let whole = problem.chunk(0..2, 20 * MIB);
    let middle = problem.chunk(1..3, 10 * MIB);
    problem.overwrite(middle, whole, 6 * MIB);
    let events = events(&problem.build().unwrap());
    let overwrite = &events[1];
    assert_eq!((overwrite.action, overwrite.chunk, overwrite.step), (Action::Overwrite, middle, 1));
    let sizes: Vec<u64> = overwrite.blocks.iter().map(|block| block.size / MIB).collect();
    assert_eq!(sizes, [6, 10, 4]);
}
