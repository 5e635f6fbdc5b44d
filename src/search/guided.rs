//! Guided search: a packing of the most crowded sections guides the search for one of more sections.
//!
//! A search that has to pack everything at once rarely gets all crowded sections right. A *core*, the most crowded
//! sections alone, is packed quickly, even without any waste. The offsets found there give the branching order for a
//! wider core, and so on until the core is the whole problem (solution-guided search, Beck 2007, here from smaller
//! problems to larger ones). If a core is not packed in several searches, the core before it is repacked to get
//! another guide.

use crate::{
    monitor::Monitor,
    search::{
        control::{
            descent::{Attempt, Attempts, Packer},
            meter::Meter,
            restarts::Restarts,
        },
        effort::{PATIENCE, UNIT, Verdict},
        engine::{Engine, Share},
        packing::Packing,
        state::instance::{Fixed, Instance, Item, Staircase},
    },
};

/// The limit to try, in 64ths of the gap between the bound and the best packing: a lower one is rarely met. It is
/// the bound if some bodies cannot move.
const LEVEL: u64 = 48;

/// The sections of the cores, in 32nds of all: the last steps are the hardest.
const WIDTHS: [usize; 14] = [9, 13, 17, 20, 22, 24, 25, 26, 27, 28, 29, 30, 31, 32];

/// The most nodes for one search of a core, which usually needs several.
pub const SHARE: u64 = 100 * UNIT;

/// Some sections of an instance.
struct Core {
    inst: Instance,
    /// By body of the core: its number in the whole.
    bodies: Vec<u32>,
}

/// The cores of an instance whose bodies are all rectangles or cannot move.
pub struct Guided<'a> {
    inst: &'a Instance,
    cores: Vec<Core>,
    /// The most nodes for one search of a core.
    nodes: u64,
    /// A lower bound in units: one step above a limit that was refuted for a core, and so for the whole instance.
    pub bound: u64,
}

impl<'a> Guided<'a> {
    /// Returns `None` if staircases can move, or if there are true sizes beside rounded ones.
    pub fn new(inst: &'a Instance) -> Option<Self> {
        if inst.staircases.len() > inst.fixed.len() || inst.exact.is_some() {
            return None;
        }
        let sections = by_crowd(inst);
        let mut cores: Vec<Core> = Vec::new();
        for width in WIDTHS {
            let core = Core::new(inst, &sections[..sections.len() * width / 32]);
            if cores.last().is_none_or(|last| last.inst.sections < core.inst.sections) {
                cores.push(core);
            }
        }
        Some(Self { inst, cores, nodes: 0, bound: 0 })
    }
}

/// Guided search. Each turn begins with the narrowest core.
pub struct Guide;

impl Engine for Guide {
    fn run(&mut self, packing: &mut Packing<'_>, share: Share, monitor: &mut Monitor<'_>) -> u64 {
        let inst = packing.inst();
        let Some(mut guided) = Guided::new(inst) else { return 0 };
        let nodes = share.all();
        let levels = &[if inst.fixed.is_empty() { LEVEL } else { 0 }];
        let attempts = Attempts { levels, share: nodes, enough: 0 };
        let nodes = packing.descend(&mut guided, attempts, nodes, monitor);
        packing.raise_bound(guided.bound);
        nodes
    }
}

impl Packer for Guided<'_> {
    fn nodes(&self) -> u64 {
        self.nodes
    }

    fn pack(&mut self, attempt: Attempt, meter: &mut Meter<'_>) -> Option<(u64, Vec<u64>)> {
        let Attempt { limit, seed } = attempt;
        // By core: its packings, as offsets by body of the whole instance; and its failures since the last packing.
        let mut packings: Vec<Vec<Vec<Option<u64>>>> = vec![Vec::new(); self.cores.len()];
        let mut failures = vec![0_u64; self.cores.len()];
        let (mut round, mut at) = (seed << 20, 0);
        while !meter.is_over(self.nodes) {
            let core = self.cores.get(at)?;
            round += 1;
            let mut search = Restarts::new(&core.inst, round);
            if let Some(guides) = at.checked_sub(1).map(|before| &packings[before]) {
                let guide = &guides[usize::try_from(round).unwrap_or(0) % guides.len()];
                search = search.guided_by(core.restrict(guide));
            }
            let before = self.nodes;
            let verdict = search.decide(limit, u64::MAX, &mut meter.part(before, SHARE));
            self.nodes = before + search.nodes().max(1);
            match verdict {
                Verdict::Packed if at + 1 == self.cores.len() => {
                    let offsets = search.offsets().to_vec();
                    return Some((self.inst.height_of(&offsets), offsets));
                }
                Verdict::Packed => {
                    packings[at].push(core.extend(search.offsets(), self.inst.bodies()));
                    failures[at] = 0;
                    at += 1;
                }
                Verdict::Refuted => {
                    // More attempts would only refute it again.
                    self.bound = limit + self.inst.step();
                    self.nodes += meter.left(self.nodes);
                }
                Verdict::NodeLimit => {
                    failures[at] += 1;
                    if failures[at].is_multiple_of(PATIENCE) {
                        at = at.saturating_sub(1);
                    }
                }
            }
        }
        None
    }

    fn floor(&self) -> u64 {
        self.bound
    }
}

impl Core {
    /// The bodies over some sections, in these sections only.
    fn new(inst: &Instance, sections: &[usize]) -> Self {
        let mut is_kept = vec![false; inst.sections];
        for &section in sections {
            is_kept[section] = true;
        }
        // By section: how many before it are kept.
        let mut kept = vec![0u32];
        kept.extend(is_kept.iter().scan(0, |count, &is_kept| {
            *count += u32::from(is_kept);
            Some(*count)
        }));
        let clip = |first: u32, end: u32| (kept[first as usize], kept[end as usize]);
        let clip_item = |item: &Item| {
            let (first, end) = clip(item.first, item.end);
            Item { first, end, ..*item }
        };
        let mut items: Vec<(Item, u32)> = inst.items.iter().map(clip_item).zip(0u32..).collect();
        items.retain(|(item, _)| item.first < item.end);
        items.sort_unstable();
        let mut bodies: Vec<u32> = items.iter().map(|&(_, body)| body).collect();
        let root = |body: u32| inst.roots[body as usize];
        let items = items.into_iter().map(|(item, body)| (item, root(body))).collect();
        let mut fixed = Vec::new();
        for &Fixed { body, offset } in &inst.fixed {
            let mut parts = inst.staircase(body).parts.clone();
            for part in &mut parts {
                (part.first, part.end) = clip(part.first, part.end);
            }
            parts.retain(|part| part.first < part.end);
            if !parts.is_empty() {
                fixed.push((Staircase { parts }, root(body), Some(offset)));
                bodies.push(body);
            }
        }
        let inst = inst.with_bodies(items, fixed, sections.len());
        Self { inst, bodies }
    }

    /// The offsets of its bodies in a packing of others.
    fn restrict(&self, packing: &[Option<u64>]) -> Vec<Option<u64>> {
        self.bodies.iter().map(|&body| packing[body as usize]).collect()
    }

    /// Its packing, by body of the whole.
    fn extend(&self, offsets: &[u64], bodies: usize) -> Vec<Option<u64>> {
        let mut packing = vec![None; bodies];
        for (&body, &offset) in self.bodies.iter().zip(offsets) {
            packing[body as usize] = Some(offset);
        }
        packing
    }
}

/// The sections, the most crowded first: those of the most live bytes, and of the largest body, which needs its
/// bytes in one piece.
fn by_crowd(inst: &Instance) -> Vec<usize> {
    let (live, mut largest) = (inst.live(), vec![0; inst.sections]);
    for part in inst.all_parts() {
        for largest in &mut largest[part.sections()] {
            *largest = (part.high - part.low).max(*largest);
        }
    }
    let mut sections: Vec<usize> = (0..inst.sections).collect();
    sections.sort_by_key(|&x| std::cmp::Reverse(2 * live[x] + largest[x]));
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Problem,
        search::samples::{check_around_fixed, check_places, instance, random_problem, sawtooth},
        seeds::times,
    };

    #[test]
    fn packed_bodies_lie_apart_below_the_limit() {
        let (mut packed, mut refuted) = (0, 0);
        times(3000, |random| {
            let inst = instance(&random_problem(random)?);
            let Some(mut guided) = Guided::new(&inst) else { return Ok(()) };
            let limit = inst.bound() + random.int_in_range(0..=4)? * inst.align;
            let limit = limit.saturating_sub(inst.align);
            let seed = random.int_in_range(0..=9)?;
            if let Some((height, offsets)) = guided.pack_alone(limit, seed, 100_000) {
                packed += 1;
                check_places(&inst, height, &offsets);
                assert!((inst.bound()..=limit).contains(&height));
            } else {
                // So few bodies are always decided.
                refuted += 1;
                assert_eq!(guided.bound, limit + inst.align, "{inst:?}");
                let verdict = Restarts::new(&inst, 0).decide(limit, 100, &mut Meter::unwatched());
                assert_eq!(verdict, Verdict::Refuted);
            }
            Ok(())
        });
        assert!(packed > 0 && refuted > 0, "{packed} {refuted}");
    }

    #[test]
    fn bodies_are_packed_around_others_that_cannot_move() {
        check_around_fixed(|around, limit| {
            let mut guided = Guided::new(&around).unwrap();
            Some(guided.pack_alone(limit, 1, 100_000).unwrap())
        });
    }

    #[test]
    fn each_core_has_the_sections_of_the_one_before_and_the_last_one_has_all() {
        let inst = instance(&sawtooth(100));
        let guided = Guided::new(&inst).unwrap();
        assert!(guided.cores.is_sorted_by(|a, b| a.inst.sections < b.inst.sections));
        for pair in guided.cores.windows(2) {
            assert!(pair[0].bodies.iter().all(|body| pair[1].bodies.contains(body)));
        }
        let last = guided.cores.last().unwrap();
        assert_eq!((&last.inst.items, &last.inst.roots), (&inst.items, &inst.roots));
    }

    #[test]
    fn a_core_has_its_sections_of_each_body() {
        let mut problem = Problem::builder();
        for (steps, size) in [(0..6, 1), (0..2, 4), (2..4, 3), (4..6, 5), (1..5, 2)] {
            problem.chunk(steps, size);
        }
        let inst = instance(&problem.build().unwrap());
        // Sections end with the steps 1, 3 and 5; the middle one has 1 + 3 + 2 bytes, the others more.
        assert_eq!(by_crowd(&inst), [2, 0, 1]);
        let core = Core::new(&inst, &[0, 2]);
        let mut items: Vec<_> = core.inst.items.iter().map(|i| (i.sections(), i.size)).collect();
        items.sort_by_key(|(_, size)| *size);
        assert_eq!(items, [(0..2, 1), (0..2, 2), (0..1, 4), (1..2, 5)]);
        for (at, &body) in core.bodies.iter().enumerate() {
            assert_eq!(core.inst.roots[at], inst.roots[body as usize]);
        }
        let packing = core.extend(&[7, 8, 9, 10], inst.bodies());
        assert_eq!(packing.iter().flatten().count(), 4);
        assert_eq!(core.restrict(&packing), [Some(7), Some(8), Some(9), Some(10)]);
    }
}
