use crate::search::state::instance::*;
use crate::{
    search::samples::{instance, random_problem, rectangle},
    seeds::times,
};

/// The parts of all bodies over a section, by root.
fn over_section(inst: &Instance, section: u32) -> Vec<(ChunkId, Part)> {
    let mut over: Vec<(ChunkId, Part)> = inst
        .roots
        .iter()
        .zip(inst.parts())
        .flat_map(|(&root, parts)| parts.into_iter().map(move |part| (root, part)))
        .filter(|(_, part)| (part.first..part.end).contains(&section))
        .collect();
    over.sort_unstable_by_key(|&(root, _)| root);
    over
}

/// The bytes of each chain in a step, relative to its root.
fn over_step(problem: &Problem, step: Step) -> Vec<(ChunkId, Bytes, Bytes)> {
    let all = || problem.roots().flat_map(|root| problem.segments(root).map(move |s| (root, s)));
    let ragged = all().any(|(_, s)| s.low % problem.alignment() != 0);
    let high = |high| if ragged { high } else { problem.align_up(high) };
    let mut over: Vec<(ChunkId, Bytes, Bytes)> = all()
        .filter(|(_, s)| (s.begin..s.end).contains(&step))
        .map(|(root, s)| (root, s.low, high(s.high)))
        .collect();
    over.sort_unstable();
    over
}

/// The chunks of each section are those of some step, and the chunks of each step are among those
/// of some section.
#[test]
fn sections_are_the_fullest_steps_in_the_largest_unit() {
    times(500, |random| {
        let problem = random_problem(random)?;
        let inst = instance(&problem);
        assert_eq!(inst.bodies(), problem.roots().count());
        assert_eq!(inst.unit * inst.align % problem.alignment(), 0);
        let steps: Vec<_> = (0..40).map(|step| over_step(&problem, step)).collect();
        let sections: Vec<Vec<(ChunkId, Part)>> =
            (0u32..).take(inst.sections).map(|at| over_section(&inst, at)).collect();
        for (at, section) in sections.iter().enumerate() {
            let has = |other: &Vec<_>| section.iter().all(|part| other.contains(part));
            assert!((0..at).chain(at + 1..inst.sections).all(|o| !has(&sections[o])));
        }
        let bytes = |&(root, part): &(_, Part)| (root, part.low * inst.unit, part.high * inst.unit);
        let sections: Vec<Vec<_>> =
            sections.iter().map(|section| section.iter().map(bytes).collect()).collect();
        assert!(sections.iter().all(|section| steps.contains(section)), "{problem:#?}");
        for step in steps.iter().filter(|step| !step.is_empty()) {
            let has = |section: &Vec<_>| step.iter().all(|part| section.contains(part));
            assert!(sections.iter().any(has), "{step:?} of {problem:#?}");
        }
        let most = steps.iter().map(|step| step.iter().map(|(_, l, h)| h - l).sum::<u64>());
        let most = problem.align_up(most.max().unwrap_or(0));
        assert_eq!(inst.bound() * inst.unit, most, "{problem:#?}");
        // The unit is the greatest common divisor.
        let numbers: Vec<u64> = inst
            .all_parts()
            .flat_map(|part| [part.low, part.high])
            .chain((inst.align > 1 && inst.bodies() > 0).then_some(inst.align))
            .collect();
        let common = |by: u64| numbers.iter().all(|number| number.is_multiple_of(by));
        assert!(numbers.is_empty() || !(2..=40).any(common), "{numbers:?} of {problem:#?}");
        Ok(())
    });
}

#[test]
fn a_staircase_covers_the_sections_of_its_parts() {
    let part = |first, end| Part { first, end, low: 0, high: 1 };
    let staircase = Staircase { parts: vec![part(3, 5), part(5, 6)] };
    assert_eq!(staircase.sections(), 3..6);
    let parts = (2..7).map(|section| staircase.part(section).map(|part| part.first));
    assert_eq!(parts.collect::<Vec<_>>(), [None, Some(3), Some(3), Some(5), None]);
}

/// A chain that keeps its bytes is an item; one whose bytes change is not.
#[test]
fn chains_whose_bytes_change_are_staircases() {
    let mut problem = Problem::builder();
    let plain = problem.chunk(0..4, 6);
    let whole = problem.chunk(0..2, 4);
    let same = problem.chunk(1..4, 4);
    let large = problem.chunk(0..3, 8);
    let small = problem.chunk(2..4, 2);
    problem.overwrite(same, whole, 0).overwrite(small, large, 6);
    // A section of its own for each of the two steps of the staircase.
    problem.chunk(0..1, 2);
    problem.chunk(3..4, 2);
    let inst = instance(&problem.build().unwrap());
    assert_eq!(inst.roots.iter().position(|&root| root == large), Some(inst.items.len()));
    assert_eq!((inst.staircases.len(), inst.unit, inst.sections), (1, 2, 2));
    let staircase = inst.staircase(4);
    assert_eq!(staircase.sections(), 0..2);
    let low = |section| staircase.part(section).map(|part| (part.low, part.high));
    assert_eq!([low(0), low(1), low(2)], [Some((0, 4)), Some((3, 4)), None]);
    assert_eq!([3, 4].map(|body| inst.is_staircase(body)), [false, true]);
    for root in [plain, whole] {
        assert!(inst.roots[..4].contains(&root));
    }
}

/// Every third chunk is fixed. The rounds with pinned items begin as they do where none are.
#[test]
fn pinned_items_are_in_the_order_that_they_have_without_pins() {
    let (mut forwards, mut backwards) = (0, 0);
    times(500, |random| {
        let mut outlines = Vec::new();
        for at in 0..random.int_in_range(1_usize..=20)? {
            let begin = random.int_in_range(0..=20)?;
            let end = begin + random.int_in_range(1..=9)?;
            let high = random.int_in_range(1..=9)?;
            let fixed = at.is_multiple_of(3).then_some(100 * at as u64);
            outlines.push(rectangle(at, [begin, end], high, fixed));
        }
        let inst = Instance::of_outlines(&outlines, 1).with_pins();
        let Pinned { inst: pinned, numbers } = *inst.pinned.clone().unwrap();
        for ((&pin, root), &number) in pinned.pins.iter().zip(&pinned.roots).zip(&numbers) {
            assert_eq!(*root, inst.roots[number as usize]);
            assert_eq!(pin, outlines[root.index()].fixed.map(|offset| offset / inst.unit));
        }
        for outline in &mut outlines {
            outline.fixed = None;
        }
        let plain = Instance::of_outlines(&outlines, 1);
        assert_eq!(pinned.roots, plain.roots);
        let in_bytes = |inst: &Instance| -> Vec<Item> {
            let item = |item: &Item| Item { size: item.size * inst.unit, ..*item };
            inst.items.iter().map(item).collect()
        };
        assert_eq!(in_bytes(&pinned), in_bytes(&plain));
        let is_forwards = plain.items.first() == inst.items.first();
        forwards += u32::from(is_forwards);
        backwards += u32::from(!is_forwards);
        Ok(())
    });
    assert!(forwards > 0 && backwards > 0, "{forwards} {backwards}");
}

#[test]
fn items_are_searched_in_one_direction_of_time() {
    let mut mirrored = 0;
    times(500, |random| {
        let (mut forwards, mut backwards) = (Problem::builder(), Problem::builder());
        for _ in 0..random.int_in_range(0..=20)? {
            let begin = random.int_in_range(0..=20)?;
            let end = begin + random.int_in_range(1..=9)?;
            let size = random.int_in_range(1..=9)?;
            forwards.chunk(begin..end, size);
            backwards.chunk(100 - end..100 - begin, size);
        }
        let [inst, other] = [forwards, backwards].map(|it| instance(&it.build().unwrap()));
        let turn = |item: &Item| item.mirrored(inst.sections);
        let turned: Vec<Item> = inst.items.iter().map(turn).collect();
        if begins_fuller(&turned, inst.sections) {
            mirrored += 1;
            assert_eq!((&other.items, &other.roots), (&inst.items, &inst.roots));
        } else {
            // As many bytes at both ends.
            assert!(!begins_fuller(&inst.items, inst.sections), "{inst:?}");
        }
        Ok(())
    });
    assert!(mirrored > 0);
}
