use crate::search::samples::{apply, instance, is_free, random_change, random_problem, random_sky};
use crate::{search::reasoning::valleys::*, seeds::times};

/// The offset at which a body rests on the floor of a section, if it can, from the definition.
fn resting(sky: &Skyline<'_>, v: Valley, body: u32, x: usize) -> Option<u64> {
    let inst = sky.inst;
    let (parts, low) = if inst.is_staircase(body) {
        let staircase = inst.staircase(body);
        (staircase.parts.clone(), staircase.part(x)?.low)
    } else {
        let item = inst.items[body as usize];
        let inside = v.left <= item.first as usize && item.end as usize <= v.right;
        (vec![item.part()], (inside && item.sections().contains(&x)).then_some(0)?)
    };
    let offset = v.floor.checked_sub(low)?;
    let is_low = parts.iter().all(|part| part.at(offset).high <= sky.limit());
    let is_free = is_free(sky, &parts, offset) && (!inst.is_staircase(body) || is_low);
    let stands = is_free && offset.is_multiple_of(inst.align) && !sky.is_placed(body);
    stands.then_some(offset)
}

#[test]
fn a_survey_counts_what_lies_inside_a_valley_and_what_may_rest_on_its_floor() {
    times(2000, |random| {
        let inst = instance(&random_problem(random)?);
        let mut valleys = Valleys::new(random_sky(random, &inst)?);
        let mut x = 0;
        while x < inst.sections {
            let sky = &valleys.sky;
            let run = x..run_end(sky, x);
            x = run.end;
            assert!(run.clone().all(|at| run_start(sky, at) == run.start));
            let v = Valley::around(sky, run.clone());
            assert!(v.left <= run.start && run.end <= v.right);
            assert!(v.sections().all(|at| sky.floor(at) <= v.floor));
            if v.sections() == run && sky.live(run.start) {
                valleys.survey.fill(sky, v, true);
                check(&mut valleys, v);
            }
        }
        Ok(())
    });
}

/// Remembered pivots are used only while their valley is unchanged.
#[test]
fn the_section_to_branch_on_does_not_depend_on_the_past() {
    times(1500, |random| {
        let inst = instance(&random_problem(random)?);
        let limit = inst.bound() + random.int_in_range(0..=20)?;
        let mut valleys = Valleys::new(Skyline::new(&inst, limit));
        let mut changes = Vec::new();
        for _ in 0..random.int_in_range(0..=20)? {
            let back = if changes.is_empty() { 0 } else { random.choose_index(changes.len())? };
            if random.ratio(1, 4)? && !changes.is_empty() {
                let (mark, _) = changes[back];
                valleys.sky.undo(mark);
                changes.truncate(back);
            } else if let Some(change) = random_change(random, &valleys.sky)? {
                let mark = valleys.sky.mark();
                apply(&mut valleys.sky, change);
                if !(0..inst.sections).all(|x| valleys.sky.fits(x)) {
                    valleys.sky.undo(mark);
                    continue;
                }
                changes.push((mark, change));
            }
            let mut fresh = Valleys::new(Skyline::new(&inst, limit));
            for &(_, change) in &changes {
                apply(&mut fresh.sky, change);
            }
            let pivot = fresh.pivot(0..inst.sections);
            assert_eq!(valleys.pivot(0..inst.sections), pivot, "{changes:?} of {inst:?}");
            let live = (0..inst.sections).any(|x| fresh.sky.live(x));
            assert!(live || pivot.is_none());
        }
        Ok(())
    });
}

/// Recounts what a survey counts.
fn check(valleys: &mut Valleys<'_>, v: Valley) {
    let inst = valleys.sky.inst;
    let bodies = || (0u32..).take(inst.bodies());
    let is_first_equal = |body: u32| {
        inst.is_staircase(body)
            || !bodies().take(body as usize).any(|other| {
                !valleys.sky.is_placed(other)
                    && inst.items[other as usize] == inst.items[body as usize]
            })
    };
    for x in v.sections() {
        let sky = &valleys.sky;
        let inside = |body: &u32| {
            inst.items.get(*body as usize).is_some_and(|i| {
                i.sections().contains(&x)
                    && v.left <= i.first as usize
                    && i.end as usize <= v.right
                    && !sky.is_placed(*body)
            })
        };
        let sizes: u64 = bodies().filter(inside).map(|b| inst.items[b as usize].size).sum();
        let mut expected: Vec<Candidate> = bodies()
            .filter(|&body| is_first_equal(body))
            .filter_map(|body| Some(Candidate { body, offset: resting(sky, v, body, x)? }))
            .collect();
        let cell = valleys.survey.cells[x];
        assert_eq!((cell.inside, cell.count as usize), (sizes, expected.len()), "{inst:?}");
        assert!(expected.len() != 1 || cell.which == expected[0].body);
        let urgency = Urgency::default();
        let pivot = Pivot { valley: v, section: x, waste: None, urgency };
        let mut candidates = Vec::new();
        valleys.candidates(&pivot, &mut candidates);
        candidates.sort_unstable();
        expected.sort_unstable();
        assert_eq!(candidates, expected);
    }
    let sky = &valleys.sky;
    let in_waste = |body: u32| {
        let item = inst.items[body as usize];
        let over = item.sections();
        let low = over.clone().map(|x| sky.floor(x) - sky.waste(x)).max().unwrap();
        let low = low.next_multiple_of(inst.align);
        let inside = v.left <= over.start && over.end <= v.right;
        inside
            && !sky.is_placed(body)
            && low + item.size <= over.map(|x| sky.floor(x)).min().unwrap()
    };
    let dominated = bodies().take(inst.items.len()).any(in_waste);
    assert_eq!(valleys.survey.dominated, dominated);
    valleys.survey.wipe(v);
    assert!(valleys.survey.cells.iter().all(|cell| (cell.inside, cell.count) == (0, 0)));
}
