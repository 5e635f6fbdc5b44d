//! Random problems and operator sequences.

#![allow(dead_code, reason = "each target uses its own part")]

use arbitrary::{Result, Unstructured};
use memplan::{OpSequence, Operator, Output, Problem, SequenceError, problem::ChunkId};

/// The ranges from which random problems are drawn.
#[derive(Clone, Copy)]
pub struct Wild {
    pub chunks: usize,
    pub steps: u64,
    pub size: u64,
    pub alignment: bool,
}

/// Creates a problem with overlapping lifetimes, many requests that can be accepted, and sometimes
/// an alignment and a padding.
pub fn random_problem(random: &mut Unstructured<'_>, wild: Wild) -> Result<Problem> {
    let mut problem = Problem::builder();
    if wild.alignment {
        problem = problem
            .alignment(1 << random.int_in_range(0..=4)?)
            .padding(random.int_in_range(0..=3)?);
    }
    let count = random.int_in_range(0..=wild.chunks)?;
    let mut chunks: Vec<(u64, u64, u64)> = Vec::with_capacity(count);
    for at in 0..count {
        // Half of the chunks begin where an earlier one ends, so that they may overwrite it.
        let over =
            if at > 0 && random.ratio(1, 2)? { Some(random.choose_index(at)?) } else { None };
        let begin = match over {
            Some(over) => chunks[over].1 - 1,
            None => random.int_in_range(0..=wild.steps - 1)?,
        };
        let end = begin + random.int_in_range(1..=wild.steps.div_ceil(2))?;
        let most = over.map_or(wild.size, |over| chunks[over].2);
        let size = random.int_in_range(u64::from(most > 0)..=most)?;
        let chunk = problem.chunk(begin..end, size);
        chunks.push((begin, end, size));
        if let Some(over) = over {
            let offset = random.int_in_range(0..=chunks[over].2 - size)?;
            problem.overwrite(chunk, ChunkId::from_index(over), offset);
        }
    }
    Ok(problem.build().unwrap())
}

/// A tensor of a random sequence.
struct Drawn {
    size: u64,
    /// The tensor that its chunk was made for, its offset in that chunk, and the size of that
    /// chunk, if views share memory and nothing is copied.
    chunk: usize,
    offset: u64,
    room: u64,
    /// True for a variable that was not updated yet.
    variable: bool,
}

/// Creates an operator sequence with every feature: inputs, weights and variables, views of views,
/// operators that read several views of the same bytes, in-place operators (also on a part),
/// concatenations, required updates, several outputs, dead outputs, workspace, tensors without bytes, graph outputs
/// of every kind, and sometimes a list that is not in execution order. Some sequences require the
/// impossible, such as two updates of one state.
pub fn random_sequence(
    random: &mut Unstructured<'_>,
    operators: usize,
) -> Result<std::result::Result<OpSequence, SequenceError>> {
    let mut tensors: Vec<Drawn> = Vec::new();
    let mut sequence = OpSequence::builder();
    for at in 0..random.int_in_range(1..=4)? {
        let size = random_size(random)?;
        let variable = random.ratio(1, 2)?;
        if variable {
            sequence.weight(format!("t{at}"), Some(size));
        } else {
            sequence.input(format!("t{at}"), size);
        }
        tensors.push(Drawn { size, chunk: at, offset: 0, room: size, variable });
    }
    let mut list = Vec::new();
    for at in 0..random.int_in_range(1..=operators)? {
        list.push(random_operator(random, &mut tensors, at)?);
    }
    if random.ratio(1, 4)? {
        for at in 1..list.len() {
            let other = random.choose_index(at + 1)?;
            list.swap(at, other);
        }
    }
    for operator in list {
        sequence.operator(operator);
    }
    for _ in 0..random.int_in_range(0..=3)? {
        sequence.output(format!("t{}", random.choose_index(tensors.len())?));
    }
    Ok(sequence.build())
}

fn random_size(random: &mut Unstructured<'_>) -> Result<u64> {
    Ok(if random.ratio(1, 12)? { 0 } else { random.int_in_range(1..=64)? })
}

/// Adds an operator that reads some of the tensors, preferably new ones.
fn random_operator(
    random: &mut Unstructured<'_>,
    tensors: &mut Vec<Drawn>,
    step: usize,
) -> Result<Operator> {
    let mut inputs: Vec<usize> = Vec::new();
    for _ in 0..random.int_in_range(0..=3)? {
        let first = if random.ratio(3, 4)? { tensors.len().saturating_sub(4) } else { 0 };
        let input = random.int_in_range(first..=tensors.len() - 1)?;
        inputs.push(input);
        // This is often another view of the same bytes, or of some of them.
        if random.ratio(1, 4)? {
            let is_alias = |&at: &usize| tensors[at].chunk == tensors[input].chunk;
            let aliases: Vec<usize> = (0..tensors.len()).filter(is_alias).collect();
            inputs.push(aliases[random.choose_index(aliases.len())?]);
        }
    }
    // Names of operators need not be unique.
    let mut operator = Operator::new(format!("op{}", step % 7));
    operator = operator.inputs(inputs.iter().map(|input| format!("t{input}")));
    if random.ratio(1, 4)? {
        operator = operator.workspace(random.int_in_range(1..=40)?);
    }
    for _ in 0..[0, 1, 1, 1, 1, 2, 3][random.choose_index(7)?] {
        let name = format!("t{}", tensors.len());
        let (size, chunk) = (random_size(random)?, tensors.len());
        let mut drawn = Drawn { size, chunk, offset: 0, room: size, variable: false };
        let choice = if inputs.is_empty() { 0 } else { random.int_in_range(0..=9)? };
        let output = if choice < 3 && !inputs.is_empty() && random.ratio(1, 2)? {
            let output = random_concat(random, &name, &inputs, tensors)?;
            (drawn.size, drawn.room) = (output.1, output.1);
            output.0
        } else if choice < 3 {
            Output::new(name, drawn.size)
        } else {
            let input = inputs[random.choose_index(inputs.len())?];
            let over = &mut tensors[input];
            if choice < 6 {
                let whole = random.ratio(1, 2)?;
                let offset = if whole { 0 } else { random.int_in_range(0..=over.size)? };
                let rest = over.size - offset;
                drawn.size = if whole { rest } else { random.int_in_range(0..=rest)? };
                drawn.chunk = over.chunk;
                (drawn.offset, drawn.room) = (over.offset + offset, over.room);
                Output::new(name, drawn.size).reads_at(format!("t{input}"), offset)
            } else {
                // Variables are usually updated, other tensors usually overwritten if possible.
                let required = random.ratio(if over.variable { 9 } else { 1 }, 10)?;
                let whole = required && over.variable && random.ratio(3, 4)?;
                let end = if random.ratio(1, 8)? { over.room - over.offset } else { over.size };
                let offset = if random.ratio(1, 2)? { 0 } else { random.int_in_range(0..=end)? };
                drawn.size = random.int_in_range(0..=end - offset)?;
                let offset = if whole { 0 } else { offset };
                drawn.size = if whole { over.size } else { drawn.size };
                drawn.room = drawn.size;
                drawn.variable = required && std::mem::take(&mut over.variable);
                let mut output = Output::new(name, drawn.size);
                if !required && random.ratio(1, 4)? {
                    // Sometimes another input is a candidate as well.
                    let other = inputs[random.choose_index(inputs.len())?];
                    if tensors[other].size >= drawn.size {
                        output = output.overwrites(format!("t{other}"));
                    }
                }
                let input = format!("t{input}");
                if required {
                    output.updates(input, offset)
                } else {
                    output.overwrites_at(input, offset)
                }
            }
        };
        tensors.push(drawn);
        operator = operator.output(output);
    }
    Ok(operator)
}

/// Creates an output that gathers some of the inputs, sometimes with bytes between them; returns its
/// size as well.
fn random_concat(
    random: &mut Unstructured<'_>,
    name: &str,
    inputs: &[usize],
    tensors: &[Drawn],
) -> Result<(Output, u64)> {
    let mut places = Vec::new();
    let mut end = 0;
    for &input in inputs {
        if end < 200 && random.ratio(4, 5)? {
            end += if random.ratio(1, 6)? { random.int_in_range(0..=5)? } else { 0 };
            places.push((input, end));
            end += tensors[input].size;
        }
    }
    end += if random.ratio(1, 6)? { 3 } else { 0 };
    let gather =
        |output: Output, (input, at): (usize, u64)| output.gathers(format!("t{input}"), at);
    Ok((places.into_iter().fold(Output::new(name, end), gather), end))
}
