//! Random sequences with views, updates and gathers, and a table for every placement of their tensors in one pool: a
//! slow model that follows each byte from its writer to its last reader.

use std::collections::BTreeSet;

use arbitrary::{Result, Unstructured};
use memplan::{OpSequence, Operator, Output, Plan};
use serde_json::{Value, json};

/// The way in which an output uses an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Tie {
    /// A view of the bytes of a tensor from an offset on; true if it is a copy.
    View(usize, u64, bool),
    /// Over a tensor at an offset; whether that is required, and whether it lies there.
    Over(usize, u64, bool, bool),
    /// Tensors that it holds at offsets.
    Gather(Vec<(usize, u64)>),
    None,
}

#[derive(Clone, Debug)]
struct Tensor {
    size: u64,
    /// The step that makes it; `None` for an input.
    made: Option<usize>,
    tie: Tie,
    /// The offset in the pool.
    place: u64,
}

#[derive(Clone, Debug, Default)]
struct Step {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// The size of the workspace and its place.
    workspace: (u64, u64),
    stream: usize,
}

/// A sequence whose tensors, except the only input, lie in a pool.
#[derive(Clone, Debug)]
pub struct Placed {
    tensors: Vec<Tensor>,
    steps: Vec<Step>,
    outputs: BTreeSet<usize>,
}

impl Placed {
    /// Draws a sequence, on one stream or two, and places for its tensors.
    pub fn random(random: &mut Unstructured<'_>) -> Result<Self> {
        let input = Tensor { size: 8, made: None, tie: Tie::None, place: 0 };
        let mut drawn = Self { tensors: vec![input], steps: Vec::new(), outputs: BTreeSet::new() };
        for _ in 0..random.int_in_range(2..=8)? {
            drawn.step(random)?;
        }
        if random.ratio(1, 3)? {
            for step in &mut drawn.steps {
                step.stream = usize::from(random.ratio(1, 2)?);
            }
        }
        for _ in 0..random.int_in_range(0..=2)? {
            let output = random.choose_index(drawn.tensors.len())?;
            drawn.outputs.insert(output);
        }
        drawn.outputs.remove(&0);
        drawn.place(random)?;
        Ok(drawn)
    }

    fn step(&mut self, random: &mut Unstructured<'_>) -> Result<()> {
        let mut step = Step::default();
        for _ in 0..random.int_in_range(1..=3)? {
            let input = random.choose_index(self.tensors.len())?;
            if !step.inputs.contains(&input) {
                step.inputs.push(input);
            }
        }
        let kind = random.int_in_range(0..=9)?;
        let count =
            if kind < 4 { random.int_in_range(1..=3)? } else { random.int_in_range(0..=2)? };
        for at in 0_u64..count {
            let of = step.inputs[random.choose_index(step.inputs.len())?];
            let (tie, size) = match kind {
                // A split, or a view of a view.
                0..4 if of > 0 && self.tensors[of].size > 0 => {
                    let size = self.tensors[of].size;
                    let low = random.int_in_range(0..=size - 1)?;
                    let is_half = size.is_multiple_of(2) && random.ratio(2, 3)?;
                    let low = if is_half { size / 2 * (at % 2) } else { low };
                    let most = if is_half { size / 2 } else { size - low };
                    let size = if is_half { most } else { random.int_in_range(0..=most)? };
                    (Tie::View(of, low, random.ratio(1, 10)?), size)
                }
                4..7 if of > 0 && self.tensors[of].size > 0 => {
                    let size = self.tensors[of].size;
                    let is_all = random.ratio(2, 3)?;
                    let low = if is_all { 0 } else { random.int_in_range(0..=size - 1)? };
                    let size = if is_all { size } else { random.int_in_range(1..=size - low)? };
                    let required = random.ratio(1, 3)?;
                    (Tie::Over(of, low, required, required || random.ratio(4, 5)?), size)
                }
                7 => {
                    let mut end = 0;
                    let mut parts = Vec::new();
                    for &input in &step.inputs {
                        parts.push((input, end));
                        end += self.tensors[input].size;
                    }
                    (Tie::Gather(parts), end)
                }
                _ => (Tie::None, *random.choose(&[0, 1, 2, 4, 4, 8, 8])?),
            };
            step.outputs.push(self.tensors.len());
            self.tensors.push(Tensor { size, made: Some(self.steps.len()), tie, place: 0 });
        }
        if random.ratio(1, 6)? {
            step.workspace.0 = random.int_in_range(1..=4)?;
        }
        self.steps.push(step);
        Ok(())
    }

    /// Draws new places.
    pub fn place(&mut self, random: &mut Unstructured<'_>) -> Result<()> {
        let top = *random.choose(&[8, 12, 16, 24])?;
        for at in 1..self.tensors.len() {
            let mut place = random.int_in_range(0..=top)? / 2 * 2;
            if let Tie::Gather(parts) = &self.tensors[at].tie
                && random.ratio(3, 4)?
            {
                let (part, offset) = parts[random.choose_index(parts.len())?];
                place = self.tensors[part].place.saturating_sub(offset);
            }
            self.tensors[at].place = self.tied(at).unwrap_or(place);
        }
        for step in &mut self.steps {
            step.workspace.1 = random.int_in_range(0..=top)?;
        }
        Ok(())
    }

    /// The place of a tensor that lies in another, in the pool.
    fn tied(&self, at: usize) -> Option<u64> {
        match self.tensors[at].tie {
            Tie::View(of, offset, false) | Tie::Over(of, offset, _, true) => {
                Some(self.tensors[of].place + offset)
            }
            _ => None,
        }
    }

    /// The sequence; `None` if it is none.
    pub fn sequence(&self) -> Option<OpSequence> {
        let mut sequence = OpSequence::builder();
        sequence.input("t0", 8);
        for (at, step) in self.steps.iter().enumerate() {
            let mut operator = Operator::new(format!("op{at}")).on_stream(step.stream);
            operator = operator.inputs(step.inputs.iter().map(|input| format!("t{input}")));
            for &output in &step.outputs {
                let tensor = &self.tensors[output];
                let made = Output::new(format!("t{output}"), tensor.size);
                operator = operator.output(match &tensor.tie {
                    Tie::None => made,
                    Tie::View(of, offset, _) => made.reads_at(format!("t{of}"), *offset),
                    Tie::Over(of, offset, true, _) => made.updates(format!("t{of}"), *offset),
                    Tie::Over(of, offset, ..) => made.overwrites_at(format!("t{of}"), *offset),
                    Tie::Gather(parts) => parts.iter().fold(made, |made, (part, offset)| {
                        made.gathers(format!("t{part}"), *offset)
                    }),
                });
            }
            if step.workspace.0 > 0 {
                operator = operator.workspace(step.workspace.0);
            }
            sequence.operator(operator);
        }
        for output in &self.outputs {
            sequence.output(format!("t{output}"));
        }
        sequence.build().ok()
    }

    /// Returns whether a tensor lies where the tensor of its tie puts it.
    fn is_at(&self, at: usize, of: usize, offset: u64) -> bool {
        let has_bytes = self.tensors[at].size > 0 && self.tensors[of].size > 0;
        of > 0 && has_bytes && self.tensors[at].place == self.tensors[of].place + offset
    }

    fn is_view(&self, at: usize) -> bool {
        matches!(self.tensors[at].tie, Tie::View(of, offset, _) if self.is_at(at, of, offset))
    }

    /// The tensor that was written where a tensor lies.
    fn shown(&self, at: usize) -> usize {
        match self.tensors[at].tie {
            Tie::View(of, ..) if self.is_view(at) => self.shown(of),
            _ => at,
        }
    }

    /// By written tensor: the step after the last that uses any of it, and the same for each byte.
    fn ends(&self) -> Vec<(u64, Vec<u64>)> {
        let made = |tensor: &Tensor| tensor.made.map_or(0, |step| step as u64 + 1);
        let end_of = |tensor| (made(tensor), vec![made(tensor); usize_of(tensor.size)]);
        let mut ends: Vec<(u64, Vec<u64>)> = self.tensors.iter().map(end_of).collect();
        let mut read = |at: usize, end: u64, has_bytes: bool| {
            let shown = self.shown(at);
            ends[shown].0 = ends[shown].0.max(end);
            if has_bytes {
                let low = usize_of(self.tensors[at].place - self.tensors[shown].place);
                for byte in low..low + usize_of(self.tensors[at].size) {
                    ends[shown].1[byte] = ends[shown].1[byte].max(end);
                }
            }
        };
        for (now, step) in self.steps.iter().enumerate() {
            let end = now as u64 + 1;
            let shows = |&output: &usize| {
                self.is_view(output)
                    || matches!(self.tensors[output].tie, Tie::View(..))
                        && self.tensors[output].size == 0
            };
            let only_shows =
                !step.outputs.is_empty() && step.workspace.0 == 0 && step.outputs.iter().all(shows);
            for &input in &step.inputs {
                let is_of = |&output: &usize| matches!(self.tensors[output].tie, Tie::View(of, ..) if of == input);
                let is_read = !(only_shows && step.outputs.iter().any(is_of));
                read(input, end, is_read);
            }
            for &output in step.outputs.iter().filter(|&&output| self.is_view(output)) {
                read(output, end, true);
            }
        }
        for &output in &self.outputs {
            read(output, self.steps.len() as u64, true);
        }
        ends
    }

    /// The plan with these places; its table follows from them. It lists windows, as they are or up to the whole chunk,
    /// unless `widen` is `None`.
    pub fn plan(&self, widen: Option<u64>) -> Plan {
        let ends = self.ends();
        let mut table = Table::default();
        let mut chunk_of = vec![None; self.tensors.len()];
        let written = |&at: &usize| self.tensors[at].size > 0 && self.shown(at) == at;
        for at in (1..self.tensors.len()).filter(written) {
            let tensor = &self.tensors[at];
            let made = tensor.made.unwrap_or(0) as u64;
            let over = match tensor.tie {
                Tie::Over(of, offset, ..) if self.is_at(at, of, offset) => {
                    let old = self.shown(of);
                    let offset = tensor.place - self.tensors[old].place;
                    chunk_of[old]
                        .filter(|_| offset + tensor.size <= self.tensors[old].size)
                        .map(|chunk: usize| json!({"chunk": chunk, "offset": offset}))
                }
                _ => None,
            };
            chunk_of[at] = Some(table.chunks.len());
            let steps = [made, ends[at].0];
            let name = format!("t{at}");
            let (size, place) = (tensor.size, tensor.place);
            table.add(Row { name, size, steps, place, over, ends: ends[at].1.clone() }, widen);
            if let Tie::Gather(parts) = &tensor.tie {
                for &(part, offset) in
                    parts.iter().filter(|&&(part, offset)| part > 0 && self.is_at(part, at, offset))
                {
                    let shown = self.shown(part);
                    let (size, all) = (self.tensors[part].size, self.tensors[shown].size);
                    let low = self.tensors[part].place - self.tensors[shown].place;
                    if let Some(inside) = chunk_of[shown] {
                        let whole = table.chunks.len() - 1;
                        let mut part = json!({"chunk": inside, "whole": whole, "offset": offset});
                        if size < all {
                            (part["low"], part["size"]) = (json!(low), json!(size));
                        }
                        table.parts.push(part);
                    }
                }
            }
        }
        for (at, step) in self.steps.iter().enumerate().filter(|(_, step)| step.workspace.0 > 0) {
            let (size, place) = step.workspace;
            let steps = [at as u64, at as u64 + 1];
            let ends = vec![at as u64 + 1; usize_of(size)];
            let name = format!("op{at}.workspace");
            table.add(Row { name, size, steps, place, over: None, ends }, None);
        }
        let tensors = (1..self.tensors.len()).map(|at| {
            let Tensor { size, place, .. } = self.tensors[at];
            let chunk = chunk_of[self.shown(at)].filter(|_| size > 0);
            let offset = if chunk.is_some() { place } else { 0 };
            json!({"name": format!("t{at}"), "chunk": chunk, "offset": offset, "size": size})
        });
        let is_on_one = self.steps.iter().all(|step| step.stream == 0);
        table.plan(&tensors.collect::<Vec<_>>(), self.steps.len(), is_on_one)
    }
}

/// A chunk whose bytes are needed from the first of the steps until `ends`.
struct Row {
    name: String,
    size: u64,
    steps: [u64; 2],
    place: u64,
    over: Option<Value>,
    ends: Vec<u64>,
}

/// The table of a plan.
#[derive(Default)]
struct Table {
    chunks: Vec<Value>,
    parts: Vec<Value>,
    windows: Vec<Value>,
    /// The bytes of the pool that are needed, with the step.
    needed: BTreeSet<(u64, u64)>,
    naive_size: u64,
    top: u64,
}

impl Table {
    /// Adds a chunk.
    fn add(&mut self, row: Row, widen: Option<u64>) {
        let Row { name, size, steps: [begin, end], place, over, ends } = row;
        let chunk = self.chunks.len();
        self.naive_size += size;
        self.top = if over.is_none() { self.top.max(place + size) } else { self.top };
        self.chunks.push(json!({"id": chunk, "name": name, "size": size, "begin": begin,
            "end": end, "offset": place, "overwrites": over}));
        for step in begin..end {
            let needed = (0..size).filter(|&byte| ends[usize_of(byte)] > step);
            let needed: Vec<u64> = needed.collect();
            self.needed.extend(needed.iter().map(|byte| (step, place + byte)));
            if widen.is_none() || needed.len() as u64 == size {
                continue;
            }
            let mut window = |low: u64, high: u64| {
                self.windows.push(json!({"chunk": chunk, "begin": step, "end": step + 1,
                    "low": low, "high": high}));
            };
            let reach = |byte: u64| (byte + 1 + widen.unwrap_or(0)).min(size);
            if needed.is_empty() {
                window(0, 0);
            }
            for run in needed.chunk_by(|a, b| a + 1 == *b) {
                window(run[0], reach(run[run.len() - 1]));
            }
        }
    }

    fn plan(self, tensors: &[Value], steps: usize, is_on_one_stream: bool) -> Plan {
        let alive = |step: usize| self.needed.iter().filter(|at| at.0 == step as u64).count();
        let most = (0..steps).map(alive).max().unwrap_or(0);
        let peak = (0..steps).find(|&step| alive(step) == most).unwrap_or(0);
        let peak = is_on_one_stream.then_some(peak);
        let plan = json!({
            "format": "memplan-plan/2", "pool_size": self.top, "lower_bound": (most as u64).min(self.top),
            "naive_size": self.naive_size, "alignment": 1, "steps": steps, "peak_step": peak,
            "pools": [{"name": "pool", "size": self.top}], "traffic": 0, "objective": [0, self.top],
            "chunks": self.chunks, "parts": self.parts, "windows": self.windows, "tensors": tensors,
        });
        serde_json::from_value(plan).unwrap()
    }
}

fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap()
}
