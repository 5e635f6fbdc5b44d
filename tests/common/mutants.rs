//! Plans with a change in one of their fields, usually a small one.

use arbitrary::{Result, Unstructured};
use memplan::{Plan, PlannedLink, TensorPlace};

/// The names of the fields that a mutant changes, so that none is forgotten.
pub const FIELDS: [&str; 22] = [
    "pool_size",
    "lower_bound",
    "proven_optimal",
    "naive_size",
    "alignment",
    "padding",
    "steps",
    "peak_step",
    "objects",
    "chunk.id",
    "chunk.name",
    "chunk.size",
    "chunk.begin",
    "chunk.end",
    "chunk.offset",
    "chunk.overwrites",
    "chunk.object",
    "chunks",
    "tensor.name",
    "tensor.size",
    "tensor.place",
    "tensors",
];

/// Returns a number near another, or near 0.
fn near(random: &mut Unstructured<'_>, number: u64, most: u64) -> Result<u64> {
    Ok(match random.int_in_range(0..=7)? {
        0 | 1 => number + 1,
        2 | 3 => number.saturating_sub(1),
        4 => number + random.int_in_range(2..=16)?,
        5 => number.saturating_sub(random.int_in_range(2..=16)?),
        6 => 0,
        _ => random.int_in_range(0..=most)?,
    })
}

/// Changes one field of a plan, possibly to its old value or to another correct one.
pub fn mutate(random: &mut Unstructured<'_>, plan: &mut Plan) -> Result<&'static str> {
    let field = *random.choose(&FIELDS)?;
    let pool = 2 * plan.pool_size() + 2;
    let number = |number: &mut u64, random: &mut Unstructured<'_>, most| -> Result<()> {
        *number = near(random, *number, most)?;
        Ok(())
    };
    match field {
        "pool_size" => number(plan.pool_size_mut(), random, pool)?,
        "lower_bound" => number(plan.lower_bound_mut(), random, pool)?,
        "naive_size" => number(plan.naive_size_mut(), random, pool)?,
        "proven_optimal" => *plan.proven_optimal_mut() ^= true,
        "alignment" => *plan.alignment_mut() = *random.choose(&[0, 1, 2, 3, 4, 8, 16])?,
        "padding" => *plan.padding_mut() = random.int_in_range(0..=4)?,
        "steps" => number(plan.steps_mut(), random, 20)?,
        "peak_step" => number(plan.peak_step_mut(), random, 20)?,
        "objects" if !plan.objects().is_empty() => {
            let at = random.choose_index(plan.objects().len())?;
            number(&mut plan.objects_mut()[at], random, pool)?;
        }
        "tensors" | "tensor.name" | "tensor.size" | "tensor.place"
            if !plan.tensors().is_empty() =>
        {
            change_tensor(random, plan, field)?;
        }
        _ if !plan.chunks().is_empty() => change_chunk(random, plan, field)?,
        _ => {}
    }
    Ok(field)
}

fn change_chunk(random: &mut Unstructured<'_>, plan: &mut Plan, field: &str) -> Result<()> {
    let count = plan.chunks().len();
    let (at, other) = (random.choose_index(count)?, random.choose_index(count)?);
    let pool = 2 * plan.pool_size() + 2;
    let (other_offset, other_name) =
        (plan.chunks()[other].offset, plan.chunks()[other].name.clone());
    let (alignment, objects) = (plan.alignment(), plan.objects().len());
    let chunk = &mut plan.chunks_mut()[at];
    match field {
        "chunk.id" => chunk.id = near(random, chunk.id, 20)?,
        "chunk.name" => chunk.name = if at == other { "other".into() } else { other_name },
        "chunk.size" => chunk.size = near(random, chunk.size, pool)?,
        "chunk.begin" => chunk.begin = near(random, chunk.begin, 20)?,
        "chunk.end" => chunk.end = near(random, chunk.end, 20)?,
        "chunk.offset" => match random.int_in_range(0..=3)? {
            0 => chunk.offset = other_offset,
            1 => chunk.offset += alignment,
            2 => (chunk.offset, plan.chunks_mut()[other].offset) = (other_offset, chunk.offset),
            _ => chunk.offset = near(random, chunk.offset, pool)?,
        },
        "chunk.overwrites" => {
            chunk.overwrites = match chunk.overwrites {
                Some(link) if random.arbitrary()? => {
                    Some(PlannedLink::new(link.chunk, near(random, link.offset, pool)?))
                }
                Some(_) if random.arbitrary()? => None,
                _ => {
                    let offset = chunk.offset.saturating_sub(other_offset);
                    let offset = if random.arbitrary()? { offset } else { 0 };
                    Some(PlannedLink::new(other, offset))
                }
            };
        }
        "chunk.object" => {
            chunk.object =
                if random.arbitrary()? { Some(random.int_in_range(0..=objects)?) } else { None };
        }
        // These change the list of chunks, to which tensors and links refer by index.
        _ => match random.int_in_range(0..=2)? {
            0 => {
                let again = chunk.clone();
                plan.chunks_mut().push(again);
            }
            1 => plan.chunks_mut().swap(at, other),
            _ => drop(plan.chunks_mut().pop()),
        },
    }
    Ok(())
}

fn change_tensor(random: &mut Unstructured<'_>, plan: &mut Plan, field: &str) -> Result<()> {
    let count = plan.tensors().len();
    let (at, other) = (random.choose_index(count)?, random.choose_index(count)?);
    let pool = 2 * plan.pool_size() + 2;
    let other_tensor = plan.tensors()[other].clone();
    let chunk = random.int_in_range(0..=plan.chunks().len())?;
    let tensor = &mut plan.tensors_mut()[at];
    match field {
        "tensor.name" => {
            tensor.name = if at == other { "other".into() } else { other_tensor.name };
        }
        "tensor.size" => tensor.size = near(random, tensor.size, pool)?,
        "tensor.place" => {
            let offset = match tensor.place {
                TensorPlace::Pool { offset, .. } | TensorPlace::Supplied { offset, .. } => offset,
                _ => 0,
            };
            let moved = near(random, offset, pool)?;
            tensor.place = match (random.int_in_range(0..=5)?, &tensor.place) {
                (0, _) => TensorPlace::Nowhere,
                (1, _) => other_tensor.place,
                (2, _) => TensorPlace::Supplied { tensor: other_tensor.name, offset },
                (3, TensorPlace::Pool { .. }) => TensorPlace::Pool { chunk, offset },
                (_, TensorPlace::Supplied { tensor, .. }) => {
                    TensorPlace::Supplied { tensor: tensor.clone(), offset: moved }
                }
                (_, TensorPlace::Pool { chunk, .. }) => {
                    TensorPlace::Pool { chunk: *chunk, offset: moved }
                }
                _ => TensorPlace::Pool { chunk, offset: moved },
            };
        }
        _ => match random.int_in_range(0..=2)? {
            0 => plan.tensors_mut().push(other_tensor),
            1 => plan.tensors_mut().swap(at, other),
            _ => drop(plan.tensors_mut().remove(at)),
        },
    }
    Ok(())
}
