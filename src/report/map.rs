//! The memory map as text: steps to the right, addresses up, a letter for each chunk.
//!
//! A cell of the map covers a range of steps and a range of bytes. It shows a chunk's letter only
//! if that chunk alone touches it, `.` if no chunk does, and `*` if several do. If too many cells would be `*`, the map
//! shows only the steps around the peak, one per column.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeSet, fmt::Write, ops::Range};

use crate::{
    Bytes, OpSequence, Plan, Step,
    boxes::PlacedBox,
    report::{
        Size,
        alive::{Peak, Piece, bytes_by_chunk},
        bound_name, count,
        fit::{self, WIDTH, wrapped},
        printable,
        times::Times,
    },
};

/// The size of a map: of text in columns and lines, of a picture in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapOptions {
    /// Columns of text, axis included, at least 40; 80 by default. Pixels of a picture, at least 320; by default a few
    /// per step, between 960 and 2400.
    pub width: Option<usize>,
    /// Lines of text, at least 1; 24 by default. Pixels of a picture, at least 320; by default as many as several maps
    /// leave each other of a window, for one map between 560 and 1200.
    pub height: Option<usize>,
    /// The least number of bytes on the address axis of a picture, so that several pictures can have one scale.
    pub scale: Bytes,
    /// True for text with a legend that lists only the names of the chunks, several on a line.
    pub names_only: bool,
}

impl MapOptions {
    /// Draws this many columns or pixels.
    #[must_use]
    pub const fn width(mut self, width: usize) -> Self {
        self.width = Some(width);
        self
    }

    /// Draws this many lines or pixels.
    #[must_use]
    pub const fn height(mut self, height: usize) -> Self {
        self.height = Some(height);
        self
    }

    /// Draws an address axis of at least this many bytes in a picture.
    #[must_use]
    pub const fn scale(mut self, scale: Bytes) -> Self {
        self.scale = scale;
        self
    }

    /// The width and height in pixels of each of several pictures below one another; by default, they fit the first
    /// plan.
    pub(super) fn pixels(self, plan: &Plan, maps: usize) -> (u32, u32) {
        let least = |size: usize| u32::try_from(size).unwrap_or(u32::MAX).max(320);
        let fitting_width = || {
            let steps = u32::try_from(plan.steps.min(400)).unwrap_or(400);
            (120 + 6 * steps).clamp(960, 2400)
        };
        let fitting_height = || {
            let chunks = u32::try_from(plan.chunks.len().min(2000)).unwrap_or(2000);
            let several = u32::try_from(maps).unwrap_or(u32::MAX).saturating_add(1);
            ((500 + chunks).clamp(560, 1200) * 2 / several).max(320)
        };
        (
            self.width.map_or_else(fitting_width, least),
            self.height.map_or_else(fitting_height, least),
        )
    }

    /// Lists only the names of the chunks, several on a line, without sizes and lifetimes.
    #[must_use]
    pub const fn names_only(mut self, names_only: bool) -> Self {
        self.names_only = names_only;
        self
    }
}

const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const FREE: u8 = b'.';
const SEVERAL: u8 = b'*';
const RESERVED: u8 = b'#';
/// Every other character of a pinned chunk.
const PINNED: u8 = b'/';
/// The width of the address axis in columns.
const AXIS: usize = 11;
/// The largest number of chunks that the legend names.
const LEGEND: usize = 26;

/// Draws a plan as text.
#[must_use]
pub fn memory_map(plan: &Plan, steps: Option<&OpSequence>, options: MapOptions) -> String {
    map_to_scale(plan, steps, options, None)
}

/// Draws a plan as text, with as many bytes per line as if the pool had `scale` bytes.
pub(super) fn map_to_scale(
    plan: &Plan,
    steps: Option<&OpSequence>,
    options: MapOptions,
    scale: Option<Bytes>,
) -> String {
    let mut text = String::new();
    if plan.pool_size == 0 || plan.steps == 0 {
        text.push_str("an empty pool\n");
        return text;
    }
    let (ratio, name) = (plan.ratio(), bound_name(plan));
    let letters = Letters::new(plan);
    let times = Times::of(plan, steps);
    let mut grid = Grid::new(plan, options, scale, 0..plan.steps);
    let mut cells = grid.fill(plan, &letters.of_chunk);
    let mut part = String::new();
    if scale.is_none() && times.has_peak && grid.steps_per_column > 1 && is_crowded(&cells) {
        let Range { start, end } = around_peak(plan, grid.columns as Step);
        part = format!("; steps {start}..{end} of {}, around the peak", plan.steps);
        grid = Grid::new(plan, options, scale, start..end);
        cells = grid.fill(plan, &letters.of_chunk);
    }
    let pool = Size(plan.pool_size);
    text.push_str(&wrapped(&format!("pool {pool:#} ({ratio:.3} x {name}){part}"), 2));
    for (row, line) in cells.chunks(grid.columns).enumerate().rev() {
        let address = format!("{:#}", Size(grid.row_bytes.saturating_mul(row as u64)));
        let line: String = line.iter().map(|&cell| char::from(cell)).collect();
        let _ = writeln!(text, "{address:>width$} |{line}", width = AXIS - 2);
    }
    let _ = writeln!(text, "{:>AXIS$}{}", "+", "-".repeat(grid.columns));
    text.push_str(&grid.step_axis(times));
    let (column, row) = (grid.column_name(times), Size(grid.row_bytes));
    let (free, several) = (char::from(FREE), char::from(SEVERAL));
    let scale =
        format!("1 column = {column}, 1 row = {row:#}; '{free}' free, '{several}' several chunks");
    text.push_str(&wrapped(&scale, 2));
    let pinned = (!plan.pinned.is_empty()).then(|| format!("'{}' pinned", char::from(PINNED)));
    let reserved =
        (!plan.reserved.is_empty()).then(|| format!("'{}' reserved", char::from(RESERVED)));
    let signs: Vec<String> = pinned.into_iter().chain(reserved).collect();
    if !signs.is_empty() {
        let _ = writeln!(text, "  {}", signs.join(", "));
    }
    if options.names_only {
        text.push_str(&names(plan, &letters));
    } else {
        legend(&mut text, plan, times, &letters);
    }
    text
}

/// Returns whether more than a third of the cells in use stand for several chunks.
fn is_crowded(cells: &[u8]) -> bool {
    let used = cells.iter().filter(|&&cell| cell != FREE && cell != RESERVED).count();
    let single = cells.iter().filter(|&&cell| ![FREE, RESERVED, SEVERAL].contains(&cell)).count();
    3 * (used - single) > used
}

/// As many steps as there are columns, with the peak in the middle if possible.
fn around_peak(plan: &Plan, columns: Step) -> Range<Step> {
    let begin = Peak::of(plan).step.saturating_sub(columns / 2);
    let begin = begin.min(plan.steps - columns);
    begin..begin + columns
}

/// The letters of the chunks, and the chunks that the legend names.
struct Letters {
    /// The letter of each chunk, by index in the plan.
    of_chunk: Vec<u8>,
    /// All chunks if they are few, otherwise the largest of those alive at the peak. No two chunks
    /// alive there have the same letter if one of them is named.
    named: Vec<usize>,
    /// True if there are more chunks than the legend names, so that only some are named.
    some: bool,
}

impl Letters {
    fn new(plan: &Plan) -> Self {
        let of_chunk = (0..plan.chunks.len()).map(|at| LETTERS[at % LETTERS.len()]).collect();
        let mut named: Vec<usize> =
            (0..plan.chunks.len()).filter(|&at| plan.chunks[at].size > 0).collect();
        let some = named.len() > LEGEND;
        if some {
            let peak = Peak::of(plan).pieces(plan);
            named = bytes_by_chunk(&peak).into_iter().map(|(at, _)| at).collect();
            named.sort_by_key(|&at| Reverse(plan.chunks[at].size));
        }
        let mut letters = Self { of_chunk, named, some };
        letters.tell_apart();
        letters.named.truncate(LEGEND);
        letters
    }

    /// Gives each of the first named chunks a letter that no other of them has. When the letters run out, a chunk gets
    /// the letter of one that the legend does not name.
    fn tell_apart(&mut self) {
        let mut free: Vec<u8> = LETTERS.to_vec();
        let first = self.named.len().min(LETTERS.len());
        let mut without = Vec::new();
        for &at in &self.named[..first] {
            match free.iter().position(|&letter| letter == self.of_chunk[at]) {
                Some(place) => _ = free.remove(place),
                None => without.push(at),
            }
        }
        for (at, letter) in without.into_iter().zip(free) {
            self.of_chunk[at] = letter;
        }
        for (&at, &lender) in self.named[first..].iter().zip(self.named.iter().skip(LEGEND).cycle())
        {
            self.of_chunk[at] = self.of_chunk[lender];
        }
    }

    fn repeat(&self, plan: &Plan) -> bool {
        let with_bytes = || (0..plan.chunks.len()).filter(|&at| plan.chunks[at].size > 0);
        with_bytes().map(|at| self.of_chunk[at]).collect::<BTreeSet<u8>>().len()
            < with_bytes().count()
    }
}

/// The cells, with the steps and bytes that each covers.
struct Grid {
    /// The steps that are drawn.
    steps: Range<Step>,
    columns: usize,
    rows: usize,
    /// The columns per step if there are fewer steps than columns, otherwise 1.
    columns_per_step: usize,
    /// The steps per column; 1 if `columns_per_step` is more.
    steps_per_column: Step,
    row_bytes: Bytes,
}

impl Grid {
    fn new(plan: &Plan, options: MapOptions, scale: Option<Bytes>, steps: Range<Step>) -> Self {
        let room = options.width.unwrap_or(80).max(40) - AXIS;
        let number = steps.end - steps.start;
        let few = usize::try_from(number).unwrap_or(usize::MAX);
        let columns_per_step = (room / few).clamp(1, 6);
        let steps_per_column = number.div_ceil(room as u64).max(1);
        let columns = match steps_per_column {
            1 => few * columns_per_step,
            many => usize::try_from(number.div_ceil(many)).unwrap_or(room),
        };
        let height = options.height.unwrap_or(24).max(1) as u64;
        // Lines fall on every edge if there are few enough of them.
        let edges = plan.chunks.iter().filter(|chunk| chunk.size > 0);
        let edges = edges.flat_map(|chunk| [chunk.offset, chunk.size.saturating_add(plan.padding)]);
        let inner = plan.windows.iter().flat_map(|window| [window.low, window.high]);
        let reserved = plan.reserved.iter().flat_map(|(_, bytes)| [bytes.start, bytes.end]);
        let unit = edges.chain(inner).chain(reserved).fold(plan.pool_size, gcd);
        let row_bytes = match scale {
            Some(scale) => scale.max(plan.pool_size).div_ceil(height),
            None if plan.pool_size / unit <= height => unit,
            None => plan.pool_size.div_ceil(height),
        };
        let rows = usize::try_from(plan.pool_size.div_ceil(row_bytes)).unwrap_or(1);
        Self { steps, columns, rows, columns_per_step, steps_per_column, row_bytes }
    }

    fn column(&self, step: Step) -> usize {
        usize::try_from(step.saturating_sub(self.steps.start) / self.steps_per_column)
            .map_or(usize::MAX, |column| column.saturating_mul(self.columns_per_step))
    }

    fn fill(&self, plan: &Plan, letters: &[u8]) -> Vec<u8> {
        let mut cells = vec![FREE; self.columns * self.rows];
        // Letters repeat, so the chunk in each cell is kept as well.
        let mut owners = vec![usize::MAX; cells.len()];
        let row = |byte: Bytes| usize::try_from(byte / self.row_bytes).unwrap_or(usize::MAX);
        for (_, bytes) in plan.reserved.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            for row in row(bytes.start)..=row(bytes.end - 1).min(self.rows - 1) {
                cells[row * self.columns..][..self.columns].fill(RESERVED);
            }
        }
        let is_shown =
            |piece: &Piece| piece.own.begin < self.steps.end && self.steps.start < piece.own.end;
        for Piece { chunk: at, own } in plan.pieces().into_iter().filter(is_shown) {
            let PlacedBox { begin, end, low, high } = own;
            let hatches = plan.pinned.binary_search(&at).is_ok();
            let (bottom, left) = (row(low), self.column(begin));
            for row in bottom..=row(high - 1).min(self.rows - 1) {
                let last = self.column(end - 1).saturating_add(self.columns_per_step - 1);
                for column in left..=last.min(self.columns - 1) {
                    let cell = row * self.columns + column;
                    let owner = std::mem::replace(&mut owners[cell], at);
                    let alone = owner == usize::MAX || owner == at;
                    let is_stroke = hatches && (row - bottom + column - left) % 2 == 1;
                    cells[cell] = if !alone {
                        SEVERAL
                    } else if is_stroke {
                        PINNED
                    } else {
                        letters[at]
                    };
                }
            }
        }
        cells
    }

    /// Formats the step numbers that there is room for.
    fn step_axis(&self, times: Times<'_>) -> String {
        let mut line = vec![b' '; AXIS + self.columns];
        let mut free_from = 0;
        for mark in 0..self.columns / self.columns_per_step {
            let step = self.steps_per_column.saturating_mul(mark as u64) + self.steps.start;
            if step >= self.steps.end {
                break;
            }
            let label = step.to_string();
            let at = AXIS + mark * self.columns_per_step;
            if at >= free_from && at + label.len() <= line.len() {
                line[at..at + label.len()].copy_from_slice(label.as_bytes());
                free_from = at + label.len() + if self.columns_per_step > 1 { 1 } else { 7 };
            }
        }
        let text: String = line.into_iter().map(char::from).collect();
        let unit = format!("{} ", times.unit);
        format!("{unit:>width$}{}\n", &text[AXIS..].trim_end(), width = AXIS)
    }

    fn column_name(&self, times: Times<'_>) -> String {
        match (self.columns_per_step, self.steps_per_column) {
            (1, many) => times.count(many),
            (columns, _) => format!("1/{columns} {}", times.unit),
        }
    }
}

fn gcd(a: Bytes, b: Bytes) -> Bytes {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The names of the letters, several on a line.
fn names(plan: &Plan, letters: &Letters) -> String {
    let entry = |&at: &usize| {
        let name = printable(&plan.chunks[at].name).into_owned();
        format!("{}={}", char::from(letters.of_chunk[at]), fit::shortened(&name, 28))
    };
    wrapped(&letters.named.iter().map(entry).collect::<Vec<_>>().join(" "), 0)
}

/// Writes the names of the letters.
fn legend(text: &mut String, plan: &Plan, times: Times<'_>, letters: &Letters) {
    let shown = &letters.named;
    if letters.some {
        let chunks = count(plan.chunks.len() as u64, "chunk");
        let title = if times.has_peak {
            let peak = times.short_name(Peak::of(plan).step);
            format!("the largest of {chunks} at the peak, {peak}:")
        } else {
            format!("the largest of {chunks} at the peak:")
        };
        text.push_str(&wrapped(&title, 2));
    }
    // The exact size is omitted where a line has no room for it.
    let entries = |exact| shown.iter().map(move |&at| Legend::new(plan, times, letters, at, exact));
    let is_wide = |entry: &Legend<'_>| entry.length() > WIDTH;
    let exact = !entries(true).any(|entry| is_wide(&entry));
    let width = entries(exact).map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let room = entries(exact).map(|entry| WIDTH.saturating_sub(entry.length_without_name())).min();
    let width = width.min(room.unwrap_or(0)).min(40);
    text.extend(entries(exact).map(|entry| entry.line(width)));
    if letters.repeat(plan) {
        let when = if times.has_peak { " in that step" } else { "" };
        let _ = writeln!(text, "  letters repeat, but not among these{when}");
    }
}

/// A line of the legend.
struct Legend<'a> {
    letter: char,
    name: Cow<'a, str>,
    place: String,
    /// The chunk that it is written over.
    over: Option<Cow<'a, str>>,
    at: String,
}

impl<'a> Legend<'a> {
    fn new(plan: &'a Plan, times: Times<'_>, letters: &Letters, at: usize, exact: bool) -> Self {
        let chunk = &plan.chunks[at];
        let size = Size(chunk.size);
        let size = if exact { size.to_string() } else { format!("{size:#}") };
        let (begin, end) = (chunk.begin, chunk.end);
        let pinned = if plan.pinned.binary_search(&at).is_ok() { ", pinned" } else { "" };
        Self {
            letter: char::from(letters.of_chunk[at]),
            name: printable(&chunk.name),
            place: format!("{size} at {}, {}{pinned}", chunk.offset, times.lifetime(begin, end)),
            over: chunk.overwrites.map(|link| {
                plan.chunks.get(link.chunk).map_or("?".into(), |old| printable(&old.name))
            }),
            at: match chunk.overwrites {
                Some(link) if link.offset > 0 => format!(" at {}", link.offset),
                Some(link) if link.below > 0 => format!(" from {} below", link.below),
                _ => String::new(),
            },
        }
    }

    fn length(&self) -> usize {
        self.length_without_name() + self.name.chars().count()
    }

    fn length_without_name(&self) -> usize {
        let over = self.over.as_ref().map_or(0, |over| ", over ".len() + over.chars().count());
        "  a   ".len() + self.place.chars().count() + over + self.at.len()
    }

    fn line(&self, width: usize) -> String {
        let mut parts = vec![
            fit::text(format!("  {} ", self.letter)),
            fit::name(format!("{:<width$}", self.name)),
            fit::text(format!("  {}", self.place)),
        ];
        if let Some(over) = &self.over {
            parts.extend([fit::text(", over "), fit::name(&**over), fit::text(&*self.at)]);
        }
        fit::line(parts)
    }
}
