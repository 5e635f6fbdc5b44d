//! MiniMalloc's CSV, in all its dialects.
//!
//! Each line is a chunk. The columns come in any order: `id` (`buffer`, `buffer_id`), `lower`
//! (`begin`, `start`), `upper`, or `end` for the last step itself, and `size`. Of the optional
//! columns, `alignment` is honoured (all chunks get the largest), `hint` is ignored, and `offset`
//! is the answer in a plan; `gaps`, and `offset` in a problem, would change the answer and are
//! rejected.

use std::collections::HashMap;

use csv::{ReaderBuilder, StringRecord, Trim};
use tracing::warn;

use crate::{
    Bytes, Plan, PlannedChunk, PlannedLink, Problem, Step,
    import::ImportError,
    problem::{ChunkId, Ids, ProblemError},
};

/// The meanings of columns, with their headings.
const COLUMNS: [(&str, &[&str]); 8] = [
    ("id", &["id", "buffer", "buffer_id"]),
    ("first step", &["lower", "begin", "start"]),
    ("last step", &["upper", "end"]),
    ("size", &["size"]),
    ("alignment", &["alignment"]),
    ("hint", &["hint"]),
    ("gaps", &["gaps"]),
    ("offset", &["offset"]),
];
const ID: usize = 0;
const LOWER: usize = 1;
const UPPER: usize = 2;
const SIZE: usize = 3;
const ALIGNMENT: usize = 4;
const HINT: usize = 5;
const GAPS: usize = 6;
const OFFSET: usize = 7;

/// The columns of a file.
struct Header {
    /// The index of each meaning in the fields of a line.
    columns: [Option<usize>; 8],
    /// True if the file gives the last step itself (`end`), false for the step after it (`upper`).
    inclusive: bool,
}

impl Header {
    fn read(headings: &StringRecord) -> Result<Self, ImportError> {
        let mut header = Self { columns: [None; 8], inclusive: false };
        for (at, heading) in headings.iter().enumerate() {
            let Some(meaning) = COLUMNS.iter().position(|(_, names)| names.contains(&heading))
            else {
                return Err(ImportError::UnknownColumn { column: heading.to_owned() });
            };
            if header.columns[meaning].replace(at).is_some() {
                return Err(ImportError::RepeatedColumn { column: COLUMNS[meaning].0 });
            }
            header.inclusive |= heading == "end";
        }
        for meaning in [ID, LOWER, UPPER, SIZE] {
            if header.columns[meaning].is_none() {
                return Err(ImportError::MissingColumn { column: COLUMNS[meaning].0 });
            }
        }
        Ok(header)
    }
}

/// A line of the file.
struct Line<'a> {
    /// The whole file.
    bytes: &'a [u8],
    header: &'a Header,
    fields: &'a StringRecord,
}

impl Line<'_> {
    fn number(&self) -> u64 {
        let Some(position) = self.fields.position() else { return 0 };
        // The reader counts from the empty lines before this one, which it skips.
        let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
        let rest = self.bytes.get(start..).unwrap_or_default();
        let skipped = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        position.line() + skipped.filter(|&&byte| byte == b'\n').count() as u64
    }

    /// Returns a field; `None` if the column is missing.
    fn field(&self, meaning: usize) -> Option<&str> {
        self.fields.get(self.header.columns[meaning]?)
    }

    fn id(&self) -> &str {
        self.field(ID).unwrap_or_default()
    }

    fn bad(&self, meaning: usize, expected: &'static str) -> ImportError {
        ImportError::BadField {
            line: self.number(),
            column: COLUMNS[meaning].0,
            value: self.field(meaning).unwrap_or_default().to_owned(),
            expected,
        }
    }

    fn whole(&self, meaning: usize) -> Result<u64, ImportError> {
        self.field(meaning)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.bad(meaning, "a whole number from 0 to 2^64 - 1"))
    }

    /// Returns the first step and the step after the last.
    fn lifetime(&self) -> Result<(Step, Step), ImportError> {
        let (begin, end) = (self.whole(LOWER)?, self.whole(UPPER)?);
        let end = end.checked_add(u64::from(self.header.inclusive));
        Ok((begin, end.ok_or_else(|| self.bad(UPPER, "a step below 2^64 - 1"))?))
    }

    fn empty_lifetime(&self, begin: Step, end: Step) -> ImportError {
        let inclusive = self.header.inclusive;
        ImportError::EmptyLifetime {
            line: self.number(),
            id: self.id().to_owned(),
            begin,
            upper: end - u64::from(inclusive),
            inclusive,
        }
    }

    fn alignment(&self) -> Result<Bytes, ImportError> {
        if self.header.columns[ALIGNMENT].is_none() {
            return Ok(1);
        }
        let alignment = self.whole(ALIGNMENT)?;
        if alignment.is_power_of_two() {
            Ok(alignment)
        } else {
            Err(self.bad(ALIGNMENT, "a power of two"))
        }
    }

    fn unsupported(&self, what: &'static str, remedy: &'static str) -> ImportError {
        ImportError::Unsupported { line: self.number(), id: self.id().to_owned(), what, remedy }
    }
}

/// Calls `visit` with every line.
fn each_line(
    bytes: &[u8],
    mut visit: impl FnMut(&Line<'_>) -> Result<(), ImportError>,
) -> Result<Header, ImportError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(bytes);
    let header = Header::read(reader.headers()?)?;
    let mut fields = StringRecord::new();
    while reader.read_record(&mut fields)? {
        visit(&Line { bytes, header: &header, fields: &fields })?;
    }
    Ok(header)
}

pub(super) fn read_problem(bytes: &[u8]) -> Result<Problem, ImportError> {
    let mut problem = Problem::builder();
    let mut ids = Vec::new();
    let (mut alignment, mut alignments_differ, mut hints) = (None, false, false);
    each_line(bytes, |line| {
        if line.field(GAPS).is_some_and(|gaps| !gaps.is_empty()) {
            return Err(line.unsupported(
                "gaps in its lifetime",
                "empty that column to plan it for its whole lifetime",
            ));
        }
        if line.field(OFFSET).is_some() {
            return Err(line.unsupported(
                "a fixed offset",
                "remove that column to plan it anew, or give the file as PLAN to verify it",
            ));
        }
        hints |= line.field(HINT).is_some_and(|hint| !matches!(hint, "" | "-1"));
        let own = line.alignment()?;
        alignments_differ |= alignment.is_some_and(|alignment| alignment != own);
        alignment = alignment.max(Some(own));
        let (begin, end) = line.lifetime()?;
        if begin >= end {
            return Err(line.empty_lifetime(begin, end));
        }
        problem.chunk(begin..end, line.whole(SIZE)?);
        ids.push(Box::from(line.id()));
        Ok(())
    })?;
    let alignment = alignment.unwrap_or(1);
    if alignments_differ {
        warn!(target: "memplan::import", alignment, "chunks have different alignments; all get the largest");
    }
    if hints {
        warn!(target: "memplan::import", "the hints in this file are ignored");
    }
    problem.with_ids(numbered(ids));
    problem.alignment(alignment).finish().map_err(|error| at_line(bytes, error))
}

/// Adds the line of the invalid chunk to an error: the last line with its id.
fn at_line(bytes: &[u8], error: ProblemError) -> ImportError {
    let (ProblemError::DuplicateId { id } | ProblemError::SizeOverflow { chunk: id, .. }) = &error
    else {
        return error.into();
    };
    let mut found = None;
    let read = each_line(bytes, |line| {
        if line.id() == id {
            found = Some(line.number());
        }
        Ok(())
    });
    match (read, found) {
        (Ok(_), Some(line)) => ImportError::Line { line, error },
        _ => error.into(),
    }
}

/// Ids are numbers if all of them are written as numbers, otherwise texts.
fn numbered(ids: Vec<Box<str>>) -> Ids {
    let number = |id: &str| id.parse::<u64>().ok().filter(|number| number.to_string() == id);
    match ids.iter().map(|id| number(id)).collect::<Option<Vec<u64>>>() {
        Some(numbers) => Ids::numbers(numbers),
        None => Ids::Texts(ids),
    }
}

pub(super) fn read_plan(bytes: &[u8], problem: &Problem) -> Result<Plan, ImportError> {
    let labels = problem.labels();
    let texts = matches!(labels.ids, Ids::Texts(_));
    let ids: HashMap<String, ChunkId> = problem.ids().map(|id| (labels.id(id), id)).collect();
    let mut chunks: Vec<PlannedChunk> = Vec::with_capacity(problem.len());
    // The line of each chunk of the problem.
    let mut lines: Vec<Option<usize>> = vec![None; problem.len()];
    let header = each_line(bytes, |line| {
        if line.field(OFFSET).is_none() {
            return Err(ImportError::NotAPlan);
        }
        let (begin, end) = line.lifetime()?;
        let (size, offset) = (line.whole(SIZE)?, line.whole(OFFSET)?);
        [size, problem.padding(), problem.alignment()]
            .into_iter()
            .try_fold(offset, Bytes::checked_add)
            .ok_or_else(|| line.bad(OFFSET, "an offset whose chunk ends below 2^64"))?;
        let at = chunks.len();
        let number = if texts { at as u64 } else { line.whole(ID)? };
        let own = if texts { line.id().to_owned() } else { number.to_string() };
        let known = ids.get(&own).copied();
        if let Some(chunk) = known {
            lines[chunk.index()] = Some(at);
        }
        chunks.push(PlannedChunk {
            id: known.map_or(number, |chunk| labels.number(chunk)),
            name: known.map_or(own, |chunk| labels.name(chunk)).into(),
            size,
            begin,
            end,
            pool: 0,
            offset,
            overwrites: None,
            object: None,
        });
        Ok(())
    })?;
    if header.columns[OFFSET].is_none() {
        return Err(ImportError::NotAPlan);
    }
    keep_links(&mut chunks, &lines, problem);
    Ok(Plan::of_chunks(problem, chunks))
}

/// Keeps the problem's links whose overwriter lies in its place, since the file has none.
fn keep_links(chunks: &mut [PlannedChunk], lines: &[Option<usize>], problem: &Problem) {
    for id in problem.ids() {
        let Some(link) = problem.link(id) else { continue };
        if let (Some(overwriter), Some(overwritten)) =
            (lines[id.index()], lines[link.overwritten.index()])
        {
            let place = chunks[overwritten].offset.checked_add(link.offset);
            if place == Some(chunks[overwriter].offset) {
                chunks[overwriter].overwrites = Some(PlannedLink::new(overwritten, link.offset));
            }
        }
    }
}
