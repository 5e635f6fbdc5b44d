//! A reader for Python's pickles that builds lists, dictionaries, texts and numbers, and nothing else.
//!
//! A pickle is a program for a stack machine. The instructions that import, call or restore objects are errors here, so
//! nothing in a file is ever executed. Tuples become lists. Lists and dictionaries are kept in tables and referred to
//! by number: what a pickle mentions many times is stored once, and what contains itself does no harm. Each
//! instruction makes at most one value, so the memory used is in proportion to the size of the file.

use crate::import::ImportError;

/// A value, or the number of a list, dictionary or text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// `None`, bytes, or a number that is not a whole one of 64 bits.
    Other,
    Whole(i64),
    Text(u32),
    List(u32),
    Dict(u32),
    /// The mark that begins the items of a list or dictionary.
    Mark,
}

/// The values of a pickle.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    texts: Vec<&'a str>,
    lists: Vec<Vec<Value>>,
    dicts: Vec<Vec<(Value, Value)>>,
    pub(super) root: Value,
}

impl<'a> Pickle<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, ImportError> {
        Machine::new(bytes).run()
    }

    /// The items of a list or tuple; none if the value is neither.
    pub(super) fn list(&self, value: Value) -> &[Value] {
        match value {
            Value::List(at) => &self.lists[at as usize],
            _ => &[],
        }
    }

    pub(super) fn text(&self, value: Value) -> Option<&'a str> {
        match value {
            Value::Text(at) => Some(self.texts[at as usize]),
            _ => None,
        }
    }

    /// The value of a key; [`Value::Other`] if there is none.
    pub(super) fn get(&self, dict: Value, key: &str) -> Value {
        let Value::Dict(at) = dict else { return Value::Other };
        // The last of equal keys counts, as in Python.
        let mut entries = self.dicts[at as usize].iter().rev();
        entries
            .find(|(own, _)| self.text(*own) == Some(key))
            .map_or(Value::Other, |&(_, value)| value)
    }

    /// A whole number that is not negative.
    pub(super) fn number(&self, dict: Value, key: &str) -> Option<u64> {
        match self.get(dict, key) {
            Value::Whole(number) => number.try_into().ok(),
            _ => None,
        }
    }
}

/// The stack machine.
struct Machine<'a> {
    bytes: &'a [u8],
    /// The next byte.
    at: usize,
    stack: Vec<Value>,
    memo: Vec<Option<Value>>,
    pickle: Pickle<'a>,
}

impl<'a> Machine<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let pickle =
            Pickle { texts: Vec::new(), lists: Vec::new(), dicts: Vec::new(), root: Value::Other };
        Self { bytes, at: 0, stack: Vec::new(), memo: Vec::new(), pickle }
    }

    fn wrong(&self, what: impl Into<String>) -> ImportError {
        ImportError::Pickle { at: self.at, what: what.into() }
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], ImportError> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| self.wrong("the file ends too early"))?;
        self.at += taken.len();
        Ok(taken)
    }

    /// Reads a little-endian number of at most 8 bytes.
    fn unsigned(&mut self, bytes: u64) -> Result<u64, ImportError> {
        let bytes = self.take(bytes)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// Reads a whole number in two's complement; longer ones than 64 bits are not needed.
    fn whole(&mut self, count: u64) -> Result<Value, ImportError> {
        if count > 8 {
            self.take(count)?;
            return Ok(Value::Other);
        }
        let unsigned = self.unsigned(count)?;
        // The sign is the highest bit of the last byte.
        let unused = 64 - 8 * count;
        Ok(Value::Whole(if count == 0 { 0 } else { (unsigned << unused).cast_signed() >> unused }))
    }

    fn text(&mut self, count: u64) -> Result<Value, ImportError> {
        let bytes = self.take(count)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.wrong("a text is not UTF-8"))?;
        let at = number(self.pickle.texts.len()).ok_or_else(|| self.wrong(TOO_LARGE))?;
        self.pickle.texts.push(text);
        Ok(Value::Text(at))
    }

    fn list(&mut self, items: Vec<Value>) -> Result<Value, ImportError> {
        let at = number(self.pickle.lists.len()).ok_or_else(|| self.wrong(TOO_LARGE))?;
        self.pickle.lists.push(items);
        Ok(Value::List(at))
    }

    fn dict(&mut self) -> Result<Value, ImportError> {
        let at = number(self.pickle.dicts.len()).ok_or_else(|| self.wrong(TOO_LARGE))?;
        self.pickle.dicts.push(Vec::new());
        Ok(Value::Dict(at))
    }

    fn pop(&mut self) -> Result<Value, ImportError> {
        match self.stack.pop() {
            Some(Value::Mark) | None => Err(self.wrong("an instruction has too few values")),
            Some(value) => Ok(value),
        }
    }

    /// Takes the values above the last mark, and the mark.
    fn pop_marked(&mut self) -> Result<Vec<Value>, ImportError> {
        let mark = self.stack.iter().rposition(|value| *value == Value::Mark);
        let mark = mark.ok_or_else(|| self.wrong("an instruction has no mark"))?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(items)
    }

    fn top(&mut self) -> Result<Value, ImportError> {
        let value = self.pop()?;
        self.stack.push(value);
        Ok(value)
    }

    fn append(&mut self, items: &[Value]) -> Result<(), ImportError> {
        match self.top()? {
            Value::List(at) => self.pickle.lists[at as usize].extend_from_slice(items),
            _ => return Err(self.wrong("items are added to a value that is no list")),
        }
        Ok(())
    }

    fn set(&mut self, items: &[Value]) -> Result<(), ImportError> {
        let (pairs, rest) = items.as_chunks::<2>();
        match self.top()? {
            Value::Dict(at) if rest.is_empty() => {
                let entries = pairs.iter().map(|&[key, value]| (key, value));
                self.pickle.dicts[at as usize].extend(entries);
            }
            _ => return Err(self.wrong("keys and values are added to a value that is no dict")),
        }
        Ok(())
    }

    fn remember(&mut self, place: u64) -> Result<(), ImportError> {
        let value = self.top()?;
        // A writer counts places from 0, and each takes a byte at least.
        let place = usize::try_from(place).ok().filter(|&place| place < self.at);
        let place = place.ok_or_else(|| self.wrong("a value has an impossible number"))?;
        self.memo.resize(self.memo.len().max(place + 1), None);
        self.memo[place] = Some(value);
        Ok(())
    }

    fn recall(&mut self, place: u64) -> Result<Value, ImportError> {
        let known = usize::try_from(place).ok().and_then(|place| *self.memo.get(place)?);
        known.ok_or_else(|| self.wrong("a value is used that nobody has stored"))
    }

    fn run(mut self) -> Result<Pickle<'a>, ImportError> {
        if self.bytes.first() != Some(&PROTO) {
            return Err(self.wrong("this is not a pickle of protocol 2 or later"));
        }
        loop {
            let [instruction] = *self.take(1)? else { continue };
            if instruction == b'.' {
                self.pickle.root = self.pop()?;
                return Ok(self.pickle);
            }
            if !self.change(instruction)? {
                let value = self.value(instruction)?;
                self.stack.push(value);
            }
        }
    }

    /// Follows an instruction that makes no value of its own; returns whether it is one.
    fn change(&mut self, instruction: u8) -> Result<bool, ImportError> {
        match instruction {
            PROTO => {
                let version = self.unsigned(1)?;
                if !(2..=5).contains(&version) {
                    return Err(self.wrong(format!("protocol {version} is unknown")));
                }
            }
            // A frame: the number of bytes until the next one.
            0x95 => {
                self.take(8)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' => {
                let items = self.pop_marked()?;
                self.append(&items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_marked()?;
                self.set(&items)?;
            }
            0x94 => self.remember(self.memo.len() as u64)?,
            b'q' | b'r' => {
                let place = self.unsigned(if instruction == b'q' { 1 } else { 4 })?;
                self.remember(place)?;
            }
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                self.pop_marked()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Makes the value of an instruction.
    fn value(&mut self, instruction: u8) -> Result<Value, ImportError> {
        Ok(match instruction {
            b'(' => Value::Mark,
            b'N' | 0x88 | 0x89 => Value::Other,
            b'J' => self.whole(4)?,
            b'K' => Value::Whole(self.unsigned(1)?.cast_signed()),
            b'M' => Value::Whole(self.unsigned(2)?.cast_signed()),
            0x8a | 0x8b => {
                let count = self.unsigned(if instruction == 0x8a { 1 } else { 4 })?;
                self.whole(count)?
            }
            b'G' => self.bytes(8)?,
            0x8c | b'X' | 0x8d => {
                let count = self.unsigned(match instruction {
                    0x8c => 1,
                    b'X' => 4,
                    _ => 8,
                })?;
                self.text(count)?
            }
            b'C' | b'B' | 0x8e => {
                let count = self.unsigned(match instruction {
                    b'C' => 1,
                    b'B' => 4,
                    _ => 8,
                })?;
                self.bytes(count)?
            }
            b']' | b')' => self.list(Vec::new())?,
            b'}' => self.dict()?,
            b't' | b'l' => {
                let items = self.pop_marked()?;
                self.list(items)?
            }
            0x85..=0x87 => {
                let items = (0x84..instruction).map(|_| self.pop()).collect::<Result<Vec<_>, _>>();
                let mut items = items?;
                items.reverse();
                self.list(items)?
            }
            b'd' => {
                let items = self.pop_marked()?;
                let dict = self.dict()?;
                self.stack.push(dict);
                self.set(&items)?;
                self.pop()?
            }
            b'h' | b'j' => {
                let place = self.unsigned(if instruction == b'h' { 1 } else { 4 })?;
                self.recall(place)?
            }
            b'2' => self.top()?,
            other => {
                self.at -= 1;
                return Err(self.wrong(refusal(other)));
            }
        })
    }

    /// Skips bytes, which no snapshot needs.
    fn bytes(&mut self, count: u64) -> Result<Value, ImportError> {
        self.take(count)?;
        Ok(Value::Other)
    }
}

const PROTO: u8 = 0x80;
const TOO_LARGE: &str = "there are too many values";

fn number(count: usize) -> Option<u32> {
    u32::try_from(count).ok()
}

/// Explains why an instruction is an error.
fn refusal(instruction: u8) -> String {
    let runs = match instruction {
        b'c' | 0x93 => "imports a Python object",
        b'R' | b'i' | b'o' | 0x81 | 0x92 => "calls a Python object",
        b'b' => "sets the state of a Python object",
        b'P' | b'Q' | 0x82..=0x84 => "refers to a Python object",
        _ => return format!("instruction 0x{instruction:02x} makes no list, dict, text or number"),
    };
    format!(
        "instruction 0x{instruction:02x} {runs}; a snapshot has lists, dicts, texts and numbers only"
    )
}
