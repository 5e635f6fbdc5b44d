use arbitrary::{Result, Unstructured};

use super::*;
use crate::{
    Limits, Observer, Problem,
    search::samples::{check_places, instance},
    seeds::times,
    tilings::{Tile, declare, mixed},
};

/// Draws a tiling of about this many tiles.
fn tiling(random: &mut Unstructured<'_>, tiles: usize) -> Result<Vec<Tile>> {
    Ok(mixed(tiles, 1 << 10, random.int_in_range(1..=1 << 20)?))
}

fn instance_of(tiles: &[Tile]) -> Instance {
    let mut problem = Problem::builder();
    declare(&mut problem, tiles);
    instance(&problem.build().unwrap())
}

fn contraction(inst: &Instance) -> Option<Contraction> {
    Contraction::of(inst, &mut Monitor::new(&Limits::default(), Observer::default()))
}

#[test]
fn a_tiling_contracts_to_one_block_and_so_does_one_that_lacks_a_tile() {
    let (mut contracted, mut drawn) = (0, 0);
    times(1000, |random| {
        let mut tiles = tiling(random, 100)?;
        tiles.truncate(tiles.len() - random.int_in_range(0..=1)?);
        let inst = instance_of(&tiles);
        drawn += 1;
        let Some(contraction) = contraction(&inst) else { return Ok(()) };
        if contraction.outer.len() == 1 {
            contracted += 1;
            check_places(&inst, inst.bound(), &contraction.offsets(&[0]));
        }
        Ok(())
    });
    assert!(contracted * 10 > drawn * 7, "{contracted} of {drawn}");
}

/// Bodies of blocks that do not overlap do not overlap.
#[test]
fn blocks_hold_packings_of_their_bodies() {
    times(300, |random| {
        let mut tiles = tiling(random, 30)?;
        // Another tile may break the tiling.
        let at = random.choose_index(tiles.len())?;
        tiles[at].high += random.int_in_range(0..=2)?;
        let inst = instance_of(&tiles);
        let Some(contraction) = contraction(&inst) else { return Ok(()) };
        let blocks = contraction.instance(&inst);
        let above = |offset: &mut u64, item: &Item| {
            *offset += item.size;
            Some(*offset - item.size)
        };
        let stacked: Vec<u64> = blocks.items.iter().scan(0, above).collect();
        check_places(&inst, u64::MAX, &contraction.offsets(&stacked));
        Ok(())
    });
}

#[test]
fn fillers_take_exactly_what_is_free() {
    times(500, |random| {
        let mut tiles = tiling(random, 30)?;
        tiles.truncate(tiles.len() - random.int_in_range(0..=3)?);
        let inst = instance_of(&tiles);
        let Some(fillers) = fillers(&inst) else { return Ok(()) };
        for x in 0..inst.sections {
            let over = |items: &[Item]| -> u64 {
                let over = items.iter().filter(|item| item.sections().contains(&x));
                over.map(|item| item.size).sum()
            };
            assert_eq!(over(&inst.items) + over(&fillers), inst.bound());
        }
        Ok(())
    });
}
