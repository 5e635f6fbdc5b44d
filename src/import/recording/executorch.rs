//! ExecuTorch's programs: a flatbuffer with the arenas of each method, the tensors in them, and the instructions.
//!
//! A tensor is alive from the first instruction that mentions it to the last one. A value that is moved to another one
//! is alive as long as both. Tensors that are read before anything writes them are state, alive all the time. Where an
//! instruction jumps back, all tensors that live across its loop are alive all through it. Tensors that share bytes at
//! one time are one chunk, as in an update in place.

use super::{
    Recording,
    buffers::{Buffer, Memory},
    choose,
};
use crate::{
    Bytes, Step,
    import::{
        Format, ImportError,
        tflite::{TfliteError, flat},
    },
};

/// The alignment of ExecuTorch's memory planning, in bytes.
const MAX_ALIGNMENT: Bytes = 16;
const REMEDY: &str = ": the program places no tensors, for example because delegates do all";
/// The numbers of the kinds of values and instructions in their unions.
const TENSOR: u8 = 5;
const TENSOR_LISTS: [u8; 2] = [10, 11];
const KERNEL: u8 = 1;
const DELEGATE: u8 = 2;
const MOVE: u8 = 3;
const JUMP: u8 = 4;
const FREE: u8 = 5;

/// A value of a method.
#[derive(Default)]
struct Value {
    /// The arena, offset and size of a tensor that is placed.
    place: Option<(usize, Bytes, Bytes)>,
    /// The values of a list.
    items: Vec<usize>,
    /// The name of a tensor that has one.
    name: String,
    /// The first and the last instruction that mention it.
    mentioned: Option<(Step, Step)>,
    /// The instruction that mentions it first.
    maker: String,
    is_state: bool,
}

/// Buffers by arena, and what is not among them.
struct Method {
    name: String,
    sizes: Vec<Bytes>,
    buffers: Vec<(usize, Buffer)>,
    instructions: Step,
    delegates: u64,
}

pub(super) fn read(bytes: &[u8], device: Option<&str>) -> Result<Recording, ImportError> {
    read_program(bytes, device).map_err(|error| match error {
        ImportError::Tflite(error) => ImportError::DamagedPte(error),
        error => error,
    })
}

fn read_program(bytes: &[u8], device: Option<&str>) -> Result<Recording, ImportError> {
    if bytes.get(4..8) != Some(b"ET12") {
        return Err(ImportError::NotPte);
    }
    let file = flat::File::unchecked(bytes);
    let mut arenas = Vec::new();
    for plan in file.root()?.tables(1, "the methods")? {
        let method = method(&file, &plan)?;
        for (arena, &size) in method.sizes.iter().enumerate() {
            let own = method.buffers.iter().filter(|(own, _)| *own == arena);
            let buffers: Vec<Buffer> = own.map(|(_, buffer)| buffer.clone()).collect();
            if !buffers.is_empty() {
                let name = format!("{}, arena {arena}", method.name);
                let (instructions, delegates) = (method.instructions, method.delegates);
                arenas.push((name, size.into(), (size, buffers, instructions, delegates)));
            }
        }
    }
    let ((size, buffers, steps, delegates), name, others) = choose(arenas, device, REMEDY)?;
    let format = Format::Pte;
    let memory = Memory { format, name, size, steps, max_alignment: MAX_ALIGNMENT };
    let mut recording = memory.finish(buffers)?;
    recording.others = others;
    recording.delegates = delegates;
    Ok(recording)
}

/// Reads a method and follows its instructions.
fn method(file: &flat::File<'_>, plan: &flat::Table<'_>) -> Result<Method, ImportError> {
    let name = plan.text(0, "the name of a method")?;
    let wrong = |what| ImportError::Pte { place: format!("method '{name}'"), what };
    let mut values = Vec::new();
    for value in plan.tables(2, "the values")? {
        values.push(read_value(&value).map_err(|error| error.unwrap_or_else(|| wrong(SIZE)))?);
    }
    let sizes = plan.vector(8, 8, "the sizes of the arenas")?;
    let sizes = file.u64s(sizes)?;
    let operators = plan.tables(6, "the operators")?;
    let mut names = Vec::with_capacity(operators.len());
    for operator in operators {
        let (name, overload) = (operator.text(0, "an operator")?, operator.text(1, "an operator")?);
        names.push(if overload.is_empty() { name } else { format!("{name}.{overload}") });
    }
    let mut walk = Walk { values, step: 0, moves: Vec::new(), loops: Vec::new(), delegates: 0 };
    let index = |number: i32| usize::try_from(number).ok();
    for input in plan.i32s(3, "the inputs")? {
        walk.mention(index(input).ok_or_else(|| wrong(VALUE))?, "input")
            .ok_or_else(|| wrong(VALUE))?;
    }
    for chain in plan.tables(5, "the chains")? {
        for instruction in chain.tables(2, "the instructions")? {
            let kind = instruction.u8(0, "an instruction")?;
            if let Some(call) = instruction.table(1, "an instruction")? {
                walk.instruction(kind, &call, &names)?.ok_or_else(|| wrong(VALUE))?;
            }
            walk.step += 1;
        }
    }
    let last = walk.step;
    for output in plan.i32s(4, "the outputs")? {
        walk.mention(index(output).ok_or_else(|| wrong(VALUE))?, "output")
            .ok_or_else(|| wrong(VALUE))?;
    }
    let (instructions, delegates) = (last.max(1), walk.delegates);
    walk.join_moves();
    walk.extend_over_loops();
    let mut buffers = Vec::new();
    for (number, value) in walk.values.into_iter().enumerate() {
        let (Some((arena, low, size)), Some((first, end))) = (value.place, value.mentioned) else {
            continue;
        };
        let high = low.checked_add(size).ok_or_else(|| wrong(SIZE))?;
        if sizes.get(arena).is_none_or(|&bytes| high > bytes) {
            return Err(wrong(OUTSIDE));
        }
        let (begin, end) = if value.is_state { (0, instructions) } else { (first, end + 1) };
        let maker = if value.is_state { "state".to_owned() } else { value.maker };
        let name = match &*value.name {
            "" => format!("{maker}, value {number}"),
            name => format!("{name}, value {number}"),
        };
        buffers.push((
            arena,
            Buffer {
                name,
                line: maker,
                low,
                high,
                begin,
                end: end.min(instructions).max(begin + 1),
            },
        ));
    }
    Ok(Method { name, sizes, buffers, instructions, delegates })
}

const SIZE: &str = "a tensor has a size or a type that memplan does not know";
const VALUE: &str = "an instruction refers to a value or an operator that does not exist";
const OUTSIDE: &str = "a tensor lies outside its arena";

/// Reads a value. Without an error of its own, the size or the type is wrong.
fn read_value(value: &flat::Table<'_>) -> Result<Value, Option<ImportError>> {
    let failed = |error: TfliteError| Some(ImportError::from(error));
    let kind = value.u8(0, "a value").map_err(failed)?;
    let Some(content) = value.table(1, "a value").map_err(failed)? else {
        return Ok(Value::default());
    };
    if TENSOR_LISTS.contains(&kind) {
        let items = content.i32s(0, "a list").map_err(failed)?;
        let items = items.into_iter().filter_map(|item| usize::try_from(item).ok()).collect();
        return Ok(Value { items, ..Value::default() });
    }
    if kind != TENSOR {
        return Ok(Value::default());
    }
    let Some(place) = content.table(6, "a place").map_err(failed)? else {
        return Ok(Value::default());
    };
    let sizes = content.i32s(2, "a shape").map_err(failed)?;
    let element = element(content.u8(0, "a type").map_err(failed)?).ok_or(None)?;
    let product = |bytes: Bytes, size: i32| bytes.checked_mul(u64::try_from(size).ok()?);
    let size = sizes.into_iter().try_fold(element, product).ok_or(None)?;
    let arena = place.u32(0, "a place").map_err(failed)?;
    let low = place.u32(1, "a place").map_err(failed)? as Bytes;
    let high = place.u32(2, "a place").map_err(failed)? as Bytes;
    let extra = content.table(9, "a tensor").map_err(failed)?;
    let name = extra.map(|extra| extra.text(1, "a name")).transpose().map_err(failed)?;
    let has_data = content.u32(5, "a tensor").map_err(failed)? > 0;
    Ok(Value {
        place: (size > 0).then_some((arena, high << 32 | low, size)),
        name: name.unwrap_or_default(),
        is_state: has_data,
        ..Value::default()
    })
}

/// The bytes of an element, by the number of its type.
fn element(number: u8) -> Option<Bytes> {
    Some(match number {
        0 | 1 | 11..=13 | 16 | 17 | 23..=26 => 1,
        2 | 5 | 15 | 22 | 27 => 2,
        3 | 6 | 14 | 28 => 4,
        4 | 7 | 29 => 8,
        _ => return None,
    })
}

/// A walk over the instructions.
struct Walk {
    values: Vec<Value>,
    step: Step,
    /// The values that are moved, and where to.
    moves: Vec<(usize, usize)>,
    /// The first and the last instruction of each loop.
    loops: Vec<(Step, Step)>,
    delegates: u64,
}

impl Walk {
    /// Notes that an instruction mentions a value; `None` if there is no such value.
    fn mention(&mut self, value: usize, maker: &str) -> Option<()> {
        for item in self.values.get(value)?.items.clone() {
            self.mention_one(item, maker)?;
        }
        self.mention_one(value, maker)
    }

    fn mention_one(&mut self, value: usize, maker: &str) -> Option<()> {
        let value = self.values.get_mut(value)?;
        match &mut value.mentioned {
            Some((_, last)) => *last = self.step,
            first => {
                *first = Some((self.step, self.step));
                maker.clone_into(&mut value.maker);
            }
        }
        Some(())
    }

    /// Follows an instruction; `None` if it refers to what does not exist.
    fn instruction(
        &mut self,
        kind: u8,
        call: &flat::Table<'_>,
        operators: &[String],
    ) -> Result<Option<()>, ImportError> {
        let number = |slot| {
            Ok::<_, TfliteError>(usize::try_from(call.i32_or(slot, 0, "an instruction")?).ok())
        };
        Ok(match kind {
            KERNEL | DELEGATE => {
                let arguments = call.i32s(1, "an instruction")?;
                let arguments = arguments.into_iter().map(|at| usize::try_from(at).ok());
                let Some(arguments) = arguments.collect::<Option<Vec<usize>>>() else {
                    return Ok(None);
                };
                let name = if kind == KERNEL {
                    number(0)?.and_then(|operator| operators.get(operator)).cloned()
                } else {
                    self.delegates += 1;
                    Some("a delegate".to_owned())
                };
                name.and_then(|name| self.call(&arguments, &name, kind == KERNEL))
            }
            MOVE => {
                let (from, to) = (number(0)?, number(1)?);
                from.zip(to).and_then(|(from, to)| {
                    self.mention(from, "a move")?;
                    self.mention(to, "a move")?;
                    self.moves.push((from, to));
                    Some(())
                })
            }
            JUMP => {
                let to = number(1)?.map(|to| to as Step);
                if let Some(to) = to.filter(|&to| to <= self.step) {
                    self.loops.push((to, self.step));
                }
                number(0)?.and_then(|condition| self.mention(condition, "a jump"))
            }
            FREE => number(0)?.and_then(|value| self.mention(value, "a release")),
            _ => Some(()),
        })
    }

    /// A kernel's last argument is what it returns, which the one before it usually is as well. What it reads without
    /// anybody having written it is state.
    fn call(&mut self, arguments: &[usize], name: &str, is_kernel: bool) -> Option<()> {
        let result = arguments.last().copied().filter(|_| is_kernel);
        let end = arguments.iter().rposition(|&argument| Some(argument) != result);
        for &argument in &arguments[..end.map_or(0, |end| end + 1)] {
            let value = self.values.get_mut(argument)?;
            value.is_state |= is_kernel && value.mentioned.is_none();
        }
        arguments.iter().try_for_each(|&argument| self.mention(argument, name))
    }

    /// A moved value and what it is moved to are alive as long as both.
    fn join_moves(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for &(from, to) in &self.moves {
                let last = |value: usize| self.values[value].mentioned.map_or(0, |(_, last)| last);
                let last = last(from).max(last(to));
                for value in [from, to] {
                    if let Some((_, own)) = &mut self.values[value].mentioned {
                        changed |= *own < last;
                        *own = last;
                    }
                }
            }
        }
    }

    /// Keeps a value alive all through a loop if it is alive before the loop and in it, or is moved in it.
    fn extend_over_loops(&mut self) {
        let moved: std::collections::BTreeSet<usize> =
            self.moves.iter().flat_map(|&(from, to)| [from, to]).collect();
        for &(begin, end) in self.loops.iter().rev() {
            for (at, value) in self.values.iter_mut().enumerate() {
                let Some((first, last)) = &mut value.mentioned else { continue };
                let is_in_it = *first <= end && *last >= begin;
                if is_in_it && (*first < begin || moved.contains(&at)) {
                    (*first, *last) = ((*first).min(begin), (*last).max(end));
                }
            }
        }
    }
}
