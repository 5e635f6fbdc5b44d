//! Every offset of a plan, as a table.

use crate::{
    Bytes, Plan, PlannedChunk, TensorPlace,
    report::{
        fit::{WIDTH, line, name, text},
        printable,
        times::Times,
    },
};

/// The columns that names need, including the space between columns.
const MIN_NAME: usize = 20;

/// A row of the table.
struct Row<'a> {
    offset: String,
    size: String,
    steps: String,
    name: &'a str,
    /// The place of a tensor outside the pool.
    elsewhere: Option<String>,
}

/// Lists the offset, size, steps of its chunk, and name of every tensor, in the order of the sequence, and then
/// of the chunks that hold no tensor, such as workspaces. For the plan of a problem, lists every
/// chunk. Offsets and sizes are in bytes; in several pools, an offset names its pool, as `sram+1024`.
#[must_use]
pub fn offsets(plan: &Plan) -> String {
    let rows = rows(plan);
    let width = |heading: &str, cell: fn(&Row<'_>) -> usize| {
        rows.iter().map(cell).chain([heading.len()]).max().unwrap_or(0)
    };
    let widths = (width("offset", |row| row.offset.len()), width("size", |row| row.size.len()));
    let has_tensors = !plan.tensors.is_empty();
    let (what, alive) =
        if has_tensors { ("tensor", "chunk alive in") } else { ("chunk", "alive in") };
    let steps = width(alive, |row| row.steps.len());
    // Steps with many digits leave no room for names.
    let has_room = widths.0 + widths.1 + steps + MIN_NAME <= WIDTH;
    let columns = |offset: &str, size: &str, life: &str| {
        let numbers = format!("{offset:>0$}  {size:>1$}  ", widths.0, widths.1);
        if has_room { format!("{numbers}{life:<steps$}  ") } else { numbers }
    };
    let mut table = line(vec![text(columns("offset", "size", alive) + what)]);
    for row in &rows {
        let mut parts = vec![text(columns(&row.offset, &row.size, &row.steps))];
        parts.push(name(printable(row.name)));
        if let Some(elsewhere) = &row.elsewhere {
            parts.extend([text(", in "), name(printable(elsewhere).into_owned())]);
        }
        table.push_str(&line(parts));
    }
    table
}

/// An offset, with the pool if there are several.
fn place(plan: &Plan, chunk: Option<&PlannedChunk>, offset: Bytes) -> String {
    let pool = chunk.and_then(|chunk| plan.pools.get(chunk.pool));
    match pool.filter(|_| plan.pools.len() > 1) {
        Some(pool) => format!("{}+{offset}", printable(&pool.name)),
        None => offset.to_string(),
    }
}

fn rows(plan: &Plan) -> Vec<Row<'_>> {
    let times = Times::of(plan, None);
    let mut holds_none = vec![true; plan.chunks.len()];
    let mut rows = Vec::with_capacity(plan.tensors.len());
    for tensor in &plan.tensors {
        let (offset, steps, elsewhere) = match &tensor.place {
            TensorPlace::Pool { chunk, offset } => {
                if let Some(holds_none) = holds_none.get_mut(*chunk) {
                    *holds_none = false;
                }
                let chunk = plan.chunks.get(*chunk);
                let steps = chunk.map_or_else(String::new, |at| times.lifetime(at.begin, at.end));
                (place(plan, chunk, *offset), steps, None)
            }
            TensorPlace::Supplied { tensor, offset } => {
                let place =
                    if *offset == 0 { tensor.to_string() } else { format!("{tensor} at {offset}") };
                ("-".to_owned(), String::new(), Some(place))
            }
            TensorPlace::Nowhere => ("-".to_owned(), String::new(), None),
        };
        rows.push(Row {
            offset,
            size: tensor.size.to_string(),
            steps,
            name: &tensor.name,
            elsewhere,
        });
    }
    let without_tensor = plan.chunks.iter().zip(holds_none).filter(|&(_, holds_none)| holds_none);
    rows.extend(without_tensor.map(|(chunk, _)| Row {
        offset: place(plan, Some(chunk), chunk.offset),
        size: chunk.size.to_string(),
        steps: times.lifetime(chunk.begin, chunk.end),
        name: &chunk.name,
        elsewhere: None,
    }));
    rows
}
