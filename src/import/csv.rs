//! CSV files of MiniMalloc and OmniMalloc, in all their dialects.
//!
//! Each line is a chunk; lines that begin with `#` are comments. The columns come in any order: `id`
//! (`buffer`, `buffer_id`), `lower` (`begin`, `start`), `upper`, or `end` for the last step itself, and
//! `size`. The optional columns are `alignment`, `gaps` (steps in which a chunk needs none or only some
//! of its bytes) and `offset`: the place of a chunk, which is the answer in a plan and a pin in a
//! problem. With several streams, times are clocks such as `1:0:3`. `hint` and `kind` are ignored.

use std::{borrow::Cow, collections::HashMap, io::Read, ops::Range};

use csv::{ReaderBuilder, StringRecord, Trim};
use tracing::warn;

use crate::{
    Bytes, Plan, PlannedChunk, PlannedLink, Problem, Step,
    import::ImportError,
    problem::{
        ChunkId, Ids, Link, ProblemBuilder, ProblemError,
        constraints::{PoolId, sum},
        moment::Moment,
    },
};

/// The headings of each meaning of a column.
const COLUMNS: [&[&str]; 9] = [
    &["id", "buffer", "buffer_id"],
    &["lower", "begin", "start"],
    &["upper", "end"],
    &["size"],
    &["alignment"],
    &["hint"],
    &["gaps"],
    &["offset"],
    &["kind"],
];
const ID: usize = 0;
const LOWER: usize = 1;
const UPPER: usize = 2;
const SIZE: usize = 3;
const ALIGNMENT: usize = 4;
const HINT: usize = 5;
const GAPS: usize = 6;
const OFFSET: usize = 7;

const CLOCK_IN_END: &str =
    "a step; clocks such as 1:0:3 need the column 'upper', because 'end' is the last step itself";
const BAD_GAPS: &str = "a list of gaps such as '7-8 9-10@1:17', the steps 7-8 without any bytes and the steps 9-10 with only the bytes [1, 17)";

/// The columns of a file.
struct Header {
    /// The index of each meaning in the fields of a line, and its heading.
    columns: [Option<(usize, &'static str)>; COLUMNS.len()],
    /// True if the file gives the last step itself (`end`), false for the step after it (`upper`).
    inclusive: bool,
}

impl Header {
    fn read(headings: &StringRecord, line: u64) -> Result<Self, ImportError> {
        let mut header = Self { columns: [None; COLUMNS.len()], inclusive: false };
        for (at, heading) in headings.iter().enumerate() {
            let known = COLUMNS.iter().enumerate().find_map(|(meaning, names)| {
                Some((meaning, *names.iter().find(|name| **name == heading)?))
            });
            let Some((meaning, name)) = known else {
                return Err(ImportError::UnknownColumn { line, column: heading.to_owned() });
            };
            if let Some((_, first)) = header.columns[meaning].replace((at, name)) {
                return Err(ImportError::RepeatedColumn { line, columns: [first, name] });
            }
            header.inclusive |= heading == "end";
        }
        for meaning in [ID, LOWER, UPPER, SIZE] {
            if header.columns[meaning].is_none() {
                return Err(ImportError::MissingColumn { line, column: COLUMNS[meaning][0] });
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
        line_number(self.bytes, self.fields)
    }

    /// Returns a field; `None` if the column is missing.
    fn field(&self, meaning: usize) -> Option<&str> {
        self.fields.get(self.header.columns[meaning]?.0).map(str::trim)
    }

    fn id(&self) -> &str {
        self.field(ID).unwrap_or_default()
    }

    fn bad(&self, meaning: usize, expected: &'static str) -> ImportError {
        ImportError::BadField {
            line: self.number(),
            column: self.header.columns[meaning].map_or(COLUMNS[meaning][0], |(_, name)| name),
            value: self.field(meaning).unwrap_or_default().to_owned(),
            expected,
        }
    }

    fn whole(&self, meaning: usize) -> Result<u64, ImportError> {
        self.field(meaning)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.bad(meaning, "a whole number from 0 to 2^64 - 1"))
    }

    /// Returns a step, or a clock such as `1:0:3`.
    fn moment(&self, meaning: usize) -> Result<Moment, ImportError> {
        let text = self.field(meaning).unwrap_or_default();
        if !text.contains(':') {
            return self.whole(meaning).map(Moment::Step);
        }
        if self.header.inclusive {
            return Err(self.bad(meaning, CLOCK_IN_END));
        }
        let clock = text.split(':').map(|step| step.parse().ok()).collect::<Option<Vec<Step>>>();
        clock.map(Moment::Clock).ok_or_else(|| self.bad(meaning, "a clock such as 1:0:3"))
    }

    /// Returns the first moment and the one after the last.
    fn lifetime(&self) -> Result<(Moment, Moment), ImportError> {
        match (self.moment(LOWER)?, self.moment(UPPER)?) {
            (begin, Moment::Step(end)) => {
                let end = end.checked_add(u64::from(self.header.inclusive));
                let end = end.ok_or_else(|| self.bad(UPPER, "a step below 2^64 - 1"))?;
                Ok((begin, Moment::Step(end)))
            }
            clocks => Ok(clocks),
        }
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

    /// Returns the offset that the chunk must have; `None` if the field is empty or -1.
    fn pin(&self) -> Result<Option<Bytes>, ImportError> {
        let expected = "an offset in bytes; leave it empty, or write -1, for a chunk to be placed";
        match self.field(OFFSET) {
            None | Some("" | "-1") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| self.bad(OFFSET, expected)),
        }
    }

    fn gaps(&self) -> Result<Vec<Gap>, ImportError> {
        let gaps = self.field(GAPS).unwrap_or_default().split_whitespace();
        gaps.map(|text| Gap::read(text, self.header.inclusive))
            .collect::<Option<_>>()
            .ok_or_else(|| self.bad(GAPS, BAD_GAPS))
    }
}

/// Steps in which a chunk needs none, or only some, of its bytes.
struct Gap {
    steps: Range<Step>,
    /// The bytes that it needs.
    bytes: Option<Range<Bytes>>,
}

impl Gap {
    /// Reads `7-8` or `9-10@1:17`; `None` if the text is neither.
    fn read(text: &str, inclusive: bool) -> Option<Self> {
        let pair = |text: &str, between: char| {
            let (low, high) = text.split_once(between)?;
            Some(low.parse::<u64>().ok()?..high.parse::<u64>().ok()?)
        };
        let (steps, bytes) = match text.split_once('@') {
            Some((steps, bytes)) => (steps, Some(pair(bytes, ':')?)),
            None => (text, None),
        };
        let steps = pair(steps, '-')?;
        Some(Self { steps: steps.start..steps.end.checked_add(u64::from(inclusive))?, bytes })
    }

    fn add_to(self, problem: &mut ProblemBuilder, chunk: ChunkId) {
        match self.bytes {
            Some(bytes) => problem.window(chunk, self.steps, bytes),
            None => problem.hole(chunk, self.steps),
        };
    }
}

/// The number of a record's line, from 1. The reader counts from the comments and empty lines before the
/// record, which it skips.
fn line_number(bytes: &[u8], record: &StringRecord) -> u64 {
    let Some(position) = record.position() else { return 1 };
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = bytes.get(start..).unwrap_or_default();
    let lines = rest.split_inclusive(|&byte| byte == b'\n');
    let is_skipped = |line: &&[u8]| matches!(line, [b'\n'] | [b'\r', b'\n'] | [b'#', .., b'\n']);
    position.line() + lines.take_while(is_skipped).count() as u64
}

/// Calls `visit` with every line.
fn each_line(
    bytes: &[u8],
    mut visit: impl FnMut(&Line<'_>) -> Result<(), ImportError>,
) -> Result<Header, ImportError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        // The reader ends other lines at a carriage return, but not comments.
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let mut parts = text.split(|&byte| byte == b'\r');
        let is_comment = |part: &[u8]| part.starts_with(b"#");
        if parts.any(is_comment) && parts.next().is_some() {
            return Err(ImportError::CommentGoesOn { line });
        }
    }
    // Without a newline, the reader takes a comment in the last line for a record.
    let lines = bytes.chain(&b"\n"[..]);
    // Trimming every record here would copy it; `Line::field` trims the fields that are used.
    let mut reader =
        ReaderBuilder::new().trim(Trim::Headers).comment(Some(b'#')).from_reader(lines);
    let headings = reader.headers()?;
    let header = Header::read(headings, line_number(bytes, headings))?;
    let mut fields = StringRecord::new();
    while reader.read_record(&mut fields)? {
        visit(&Line { bytes, header: &header, fields: &fields })?;
    }
    Ok(header)
}

pub(super) fn read_problem(bytes: &[u8]) -> Result<Problem, ImportError> {
    let mut problem = Problem::builder();
    let mut ids = Ids::Numbers(Vec::new());
    let mut alignments: Vec<Bytes> = Vec::new();
    let (mut hints, mut streams) = (false, None);
    each_line(bytes, |line| {
        hints |= line.field(HINT).is_some_and(|hint| !matches!(hint, "" | "-1"));
        alignments.push(line.alignment()?);
        let (begin, end) = line.lifetime()?;
        for (time, meaning) in [(&begin, LOWER), (&end, UPPER)] {
            let count = time.steps().len();
            if *streams.get_or_insert(count) != count {
                let expected = "a time on as many streams as those before, such as 1:0:3 on three";
                return Err(line.bad(meaning, expected));
            }
        }
        let chunk = match (begin, end) {
            (Moment::Step(begin), Moment::Step(end)) if begin >= end => {
                return Err(line.empty_lifetime(begin, end));
            }
            (Moment::Step(begin), Moment::Step(end)) => {
                problem.chunk(begin..end, line.whole(SIZE)?)
            }
            (begin, end) => {
                let chunk = problem.chunk(0..0, line.whole(SIZE)?);
                problem.clocks(chunk, begin.steps(), end.steps(), 0);
                chunk
            }
        };
        for gap in line.gaps()? {
            gap.add_to(&mut problem, chunk);
        }
        if let Some(offset) = line.pin()? {
            problem.pin(chunk, PoolId::default(), offset);
        }
        add_id(&mut ids, line.id());
        Ok(())
    })?;
    if hints {
        warn!(target: "memplan::import", "the hints in this file are ignored");
    }
    if let Some(streams) = streams.filter(|&streams| streams > 1) {
        problem.streams(streams);
    }
    // The alignment that all chunks need is that of the problem, and so of its pool.
    let common = alignments.iter().copied().min().unwrap_or(1);
    for (at, &alignment) in alignments.iter().enumerate().filter(|(_, own)| **own > common) {
        problem.align(ChunkId::from_index(at), alignment);
    }
    problem.label(match ids {
        Ids::Numbers(numbers) => Ids::numbers(numbers),
        ids => ids,
    });
    problem.alignment(common).finish().map_err(|error| at_line(bytes, error))
}

/// Adds the line of the invalid chunk to an error: the last line with its id.
fn at_line(bytes: &[u8], error: ProblemError) -> ImportError {
    let Some(id) = error.chunk() else { return error.into() };
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

/// Adds an id. Ids are numbers as long as all of them are written as numbers, otherwise texts.
fn add_id(ids: &mut Ids, id: &str) {
    let is_plain = id == "0" || id.starts_with(|first| matches!(first, '1'..='9'));
    match (&mut *ids, id.parse().ok().filter(|_| is_plain)) {
        (Ids::Numbers(numbers), Some(number)) => numbers.push(number),
        (Ids::Numbers(numbers), None) => {
            let texts = numbers.iter().map(|number| number.to_string().into());
            *ids = Ids::Texts(texts.chain([id.into()]).collect());
        }
        (Ids::Texts(texts), _) => texts.push(id.into()),
        (Ids::Positions, _) => {}
    }
}

pub(super) fn read_plan(bytes: &[u8], problem: &Problem) -> Result<Plan, ImportError> {
    let labels = &problem.labels;
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
        [size, problem.padding(), problem.alignment() - 1]
            .into_iter()
            .try_fold(offset, Bytes::checked_add)
            .ok_or_else(|| line.bad(OFFSET, "an offset whose chunk ends below 2^64"))?;
        let at = chunks.len();
        let number = if texts { at as u64 } else { line.whole(ID)? };
        let own = if texts { line.id().to_owned() } else { number.to_string() };
        let known = ids.get(&own).copied();
        if let Some(chunk) = known {
            lines[chunk.index()] = Some(at);
            // A plan keeps the sum of each clock, by which clocks cannot be told apart.
            let life = problem.all_constraints().lives.get(chunk.index());
            for (time, meaning, own) in [
                (&begin, LOWER, life.map(|life| &life.begin)),
                (&end, UPPER, life.map(|life| &life.end)),
            ] {
                if matches!(time, Moment::Clock(clock) if own.is_none_or(|own| **own != **clock)) {
                    return Err(line.bad(meaning, "the clock of this chunk in the problem"));
                }
            }
        }
        chunks.push(PlannedChunk {
            id: known.map_or(number, |chunk| labels.number(chunk)),
            name: known.map_or(own, |chunk| labels.name(chunk)).into(),
            size,
            begin: sum(begin.steps()),
            end: sum(end.steps()),
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
    let offset = |chunk: ChunkId| lines[chunk.index()].map(|at| chunks[at].offset);
    let taken = taken(problem, offset);
    let link = |id: ChunkId| {
        let link = taken.link(id).filter(|&link| is_in_place(id, link, offset))?;
        let (new, old) = (lines[id.index()]?, lines[link.overwritten.index()]?);
        Some((new, PlannedLink { chunk: old, ..PlannedLink::of(link) }))
    };
    let links: Vec<(usize, PlannedLink)> = taken.ids().filter_map(link).collect();
    for (overwriter, link) in links {
        chunks[overwriter].overwrites = Some(link);
    }
    let plan = Plan::of_chunks(problem, chunks);
    if plan.lower_bound <= plan.pool_size {
        return Ok(plan);
    }
    // The bound holds for overwrites that the plan gives up.
    Ok(Plan { scope: plan.scope, ..Plan::of_chunks(&taken, plan.chunks) })
}

/// The problem without the requests that a plan does not take: those whose overwriter does not lie in its place. The
/// file has no links.
fn taken(problem: &Problem, offset: impl Fn(ChunkId) -> Option<Bytes> + Copy) -> Cow<'_, Problem> {
    let is_elsewhere = |at: usize| {
        let request = problem.requests()[at];
        !request.required && !is_in_place(request.overwriter, request.link(), offset)
    };
    if !(0..problem.requests().len()).any(is_elsewhere) {
        return Cow::Borrowed(problem);
    }
    problem.without(is_elsewhere, |_| false, false).map_or(Cow::Borrowed(problem), Cow::Owned)
}

/// Returns whether an overwriter lies where a link says.
fn is_in_place(overwriter: ChunkId, link: Link, offset: impl Fn(ChunkId) -> Option<Bytes>) -> bool {
    let from = offset(link.overwritten).and_then(|old| old.checked_add(link.offset));
    let to = offset(overwriter).and_then(|new| new.checked_add(link.below));
    from.is_some() && from == to
}
