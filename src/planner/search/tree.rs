//! The search tree.

use super::{instance::Instance, skyline::Skyline};
use std::collections::HashSet;

struct Frame {
    left: usize,
    right: usize,
    parent: usize,
    mark: usize,
    cands: usize,
    next: usize,
    end: usize,
    section: usize,
    waste: Option<u64>,
    floor: u64,
    pending: usize,
    hash: u128,
}

#[derive(Clone, Copy)]
struct Pending {
    left: usize,
    right: usize,
    parent: usize,
    below: usize,
}

const NIL: usize = usize::MAX;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Yes,
    No,
    Unknown,
}

pub(super) struct Stats {
    pub nodes: u64,
    pub hits: u64,
    pub table: usize,
    pub dead: [u64; 8],
}

pub(super) type Table = HashSet<u128>;

pub(super) fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// Whether everything fits under the limit, in at most so many nodes. On `Yes` the skyline holds the places.
pub(super) fn run(inst: &Instance, sky: &mut Skyline<'_>, rank: &[u32], budget: u64, table: &mut Table) -> (End, Stats) {
    let mut stats = Stats { nodes: 0, hits: 0, table: 0, dead: [0; 8] };
    let mut frames: Vec<Frame> = Vec::new();
    let mut pendings: Vec<Pending> = Vec::new();
    let mut cands: Vec<u32> = Vec::new();
    let m = inst.sections;
    if (0..m).any(|x| sky.rem[x] > sky.limit) || !sky.settle(0, m) {
        return (End::No, stats);
    }
    let mut pending = NIL;
    split(sky, 0, m, NIL, &mut pendings, &mut pending);
    loop {
        // Open the next component.
        if pending == NIL {
            return (End::Yes, stats);
        }
        let Pending { left, right, parent, below } = pendings[pending];
        let mark = sky.mark();
        let mut dead = false;
        let hash = state_hash(sky, left, right);
        if table.contains(&hash) {
            stats.hits += 1;
            dead = true;
        }
        if !dead && let Some(pivot) = sky.pivot(left, right) {
            let start = cands.len();
            sky.candidates(pivot.valley, pivot.section, &mut cands);
            cands[start..].sort_unstable_by_key(|&id| rank[id as usize]);
            frames.push(Frame {
                left,
                right,
                parent,
                mark,
                cands: start,
                next: start,
                end: cands.len(),
                section: pivot.section,
                waste: pivot.waste,
                floor: pivot.valley.floor,
                pending: below,
                hash,
            });
        }
        let mut at = if dead { parent } else { frames.len() - 1 };
        // Try choices until one stands.
        loop {
            if at == NIL {
                return (End::No, stats);
            }
            // Forget everything above frame `at`.
            while frames.len() > at + 1 {
                frames.pop();
            }
            let frame = &mut frames[at];
            sky.undo(frame.mark);
            cands.truncate(frame.end);
            pending = frame.pending;
            if stats.nodes >= budget {
                return (End::Unknown, stats);
            }
            stats.nodes += 1;
            let (a, b);
            if frame.next < frame.end {
                let id = cands[frame.next];
                frame.next += 1;
                let item = inst.items[id as usize];
                (a, b) = (item.first as usize, item.end as usize);
                sky.place(id);
            } else if let Some(up) = frame.waste.take() {
                sky.raise(frame.section, frame.floor + up);
                (a, b) = (frame.section, frame.section + 1);
            } else {
                if table.len() < 4_000_000 {
                    table.insert(frame.hash);
                }
                at = frame.parent;
                continue;
            }
            if sky.settle(a, b) {
                let (left, right) = (frame.left, frame.right);
                split(sky, left, right, at, &mut pendings, &mut pending);
                break;
            }
        }
    }
}

fn split(sky: &Skyline<'_>, left: usize, right: usize, parent: usize, pendings: &mut Vec<Pending>, pending: &mut usize) {
    if *pending == NIL {
        pendings.clear();
    } else {
        pendings.truncate(*pending + 1);
    }
    let mut x = left;
    while x < right {
        if sky.rem[x] == 0 {
            x += 1;
            continue;
        }
        let start = x;
        x += 1;
        while x < right && sky.cross[x] > 0 {
            x += 1;
        }
        pendings.push(Pending { left: start, right: x, parent, below: *pending });
        *pending = pendings.len() - 1;
    }
}

fn state_hash(sky: &Skyline<'_>, left: usize, right: usize) -> u128 {
    let mut a: u64 = mix((left as u64) << 32 | right as u64);
    let mut b: u64 = 0;
    for x in left..right {
        let h = mix((sky.limit - sky.floor[x]).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ mix(x as u64 + 1));
        let h = if sky.dom && sky.base[x] < sky.floor[x] { mix(h ^ (sky.limit - sky.base[x])) } else { h };
        a = a.wrapping_add(h).wrapping_add(sky.left[x]);
        b ^= mix(h.rotate_left(17) ^ 0x1234_5678_9abc_def1) ^ mix(sky.left[x].rotate_left(23) ^ 0x7_1234_5678);
    }
    (u128::from(a) << 64) | u128::from(b)
}
