//! The places of a staircase: on the floor of a section, or hanging above it.

use crate::search::{
    reasoning::survey::Survey,
    state::{
        instance::{Part, Span},
        skyline::Skyline,
    },
};

impl Survey {
    /// The offset at which a staircase rests on the floor of a section, if it can lie there.
    pub fn offset_on_floor(
        &self,
        sky: &Skyline<'_>,
        body: u32,
        x: usize,
        floor: u64,
    ) -> Option<u64> {
        let staircase = sky.inst.staircase(body);
        let offset = floor.checked_sub(staircase.part(x)?.low)?;
        if sky.is_placed(body) || !offset.is_multiple_of(sky.inst.align) {
            return None;
        }
        let mut sections = 0;
        let is_free = staircase.parts.iter().all(|part| {
            let span = part.at(offset);
            span.high <= sky.limit()
                && part.sections().all(|x| {
                    sections += 1;
                    span.low >= sky.floor(x) && sky.reserved(x).iter().all(|&r| span.is_clear_of(r))
                })
        });
        self.examined.update(|sum| sum + sections);
        is_free.then_some(offset)
    }

    /// The lowest height above `floor` at which the part of a staircase over a section can lie.
    pub fn next_height(&self, sky: &Skyline<'_>, body: u32, x: usize, floor: u64) -> Option<u64> {
        if sky.is_placed(body) {
            return None;
        }
        let low = sky.inst.staircase(body).part(x)?.low;
        let from = (floor + 1).saturating_sub(low);
        Some(self.lowest_offset(sky, body, from) + low)
    }

    /// The lowest offset from `from` at which a staircase is clear of everything placed.
    fn lowest_offset(&self, sky: &Skyline<'_>, body: u32, from: u64) -> u64 {
        let align = sky.inst.align;
        let mut offset = from.next_multiple_of(align);
        let parts = &sky.inst.staircase(body).parts;
        let sections =
            || parts.iter().flat_map(|part: &Part| part.sections().map(move |x| (part, x)));
        for (part, x) in sections() {
            offset = offset.max(sky.floor(x).saturating_sub(part.low).next_multiple_of(align));
        }
        loop {
            let before = offset;
            let mut looked = 0;
            for (part, x) in sections() {
                looked += 1;
                for &Span { low, high } in sky.reserved(x).iter().rev() {
                    if low < offset + part.high && offset + part.low < high {
                        offset = (high - part.low).next_multiple_of(align);
                    }
                }
            }
            self.examined.update(|sum| sum + looked);
            if offset == before {
                return offset;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        search::samples::{instance, is_free, random_problem, random_sky},
        seeds::times,
    };

    #[test]
    fn a_staircase_lies_as_low_as_it_can() {
        times(1000, |random| {
            let inst = instance(&random_problem(random)?);
            let sky = random_sky(random, &inst)?;
            let survey = Survey::new(0);
            for body in (0u32..).take(inst.bodies()).skip(inst.items.len()) {
                let parts = &inst.staircase(body).parts;
                let is_free = |&offset: &u64| is_free(&sky, parts, offset);
                let from = random.int_in_range(0..=20)?;
                let aligned = |offset: &u64| offset.is_multiple_of(inst.align);
                let lowest = |from: u64| (from..1000).filter(aligned).find(is_free).unwrap();
                assert_eq!(survey.lowest_offset(&sky, body, from), lowest(from), "{inst:?}");
                for part in parts {
                    let x = part.first as usize;
                    let floor = sky.floor(x);
                    let above = (!sky.is_placed(body))
                        .then(|| lowest((floor + 1).saturating_sub(part.low)) + part.low);
                    assert_eq!(survey.next_height(&sky, body, x, floor), above);
                    assert!(above.is_none_or(|above| above > floor));
                }
            }
            Ok(())
        });
    }
}
