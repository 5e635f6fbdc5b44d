// The sheets of the page and queries about them. A sheet holds the chunks that one or more plans place;
// `plans` lists all plans of all sheets.

const page = JSON.parse(document.getElementById("data").textContent);

// The rows of a table that is stored by column, as objects.
function rows(columns) {
  const entries = Object.entries(columns);
  const made = entries[0][1].map(() => ({}));
  for (const [name, column] of entries) column.forEach((value, at) => { made[at][name] = value; });
  return made;
}

const counted = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;

const grouped = (bytes) => String(bytes).replace(/\B(?=(\d{3})+$)/g, " ");

// Formats bytes in a binary unit with three digits.
function short(bytes) {
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let value = bytes, unit = -1;
  while (value >= 1024 && unit < 5) { value /= 1024; unit++; }
  if (unit < 0) return `${grouped(bytes)} B`;
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${units[unit]}`;
}

const size = (bytes) => (bytes < 1024 ? short(bytes) : `${short(bytes)} (${grouped(bytes)} B)`);

// The first index in a sorted list whose entry exceeds a value.
function past(list, value) {
  let from = 0, to = list.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (list[middle] <= value) from = middle + 1; else to = middle;
  }
  return from;
}

function byChunk(table) {
  const found = new Map();
  for (const row of table) {
    if (!found.has(row.chunk)) found.set(row.chunk, []);
    found.get(row.chunk).push(row);
  }
  return found;
}

// The live bytes: the steps where they change are stored as differences.
function summed({ step, bytes }) {
  let now = 0;
  return { step: step.map((gap) => (now += gap)), bytes };
}

function liveAt({ step, bytes }, now) {
  const after = past(step, now);
  return after > 0 ? bytes[after - 1] : 0;
}

class Sheet {
  constructor(data) {
    Object.assign(this, data);
    const count = (this.count = data.names.length);
    // The link by which each chunk overwrites another, the chunks that overwrite it, and its chain:
    // the root, and its number among the chains.
    this.linkOf = new Array(count).fill(null);
    this.overwriters = new Map();
    for (const link of rows(data.links)) {
      this.linkOf[link.overwriter] = link;
      if (link.overwritten >= count) continue;
      if (!this.overwriters.has(link.overwritten)) this.overwriters.set(link.overwritten, []);
      this.overwriters.get(link.overwritten).push(link.overwriter);
    }
    // The first step in which each chunk has its bytes to itself.
    this.ownBegins = data.begins.map((begin, at) => {
      const end = this.linkOf[at] ? data.ends[this.linkOf[at].overwritten] : undefined;
      return end === undefined ? begin : Math.min(end, begin + 1);
    });
    this.root = Array.from({ length: count }, (_, at) => at);
    this.chainNumber = new Array(count).fill(0);
    let chains = 0;
    for (let at = 0; at < count; at++) {
      if (this.linkOf[at]) continue;
      this.chainNumber[at] = chains++;
      for (const next of this.chainOf(at).slice(1)) {
        this.root[next] = at;
        this.chainNumber[next] = this.chainNumber[at];
      }
    }
    // The boxes of the chunks that do not have all of their bytes to themselves for all of their lives.
    this.boxes = byChunk(rows(data.boxes));
    for (const [at, boxes] of this.boxes) this.boxes.set(at, boxes.filter(({ begin, end }) => begin < end));
    this.partsOf = byChunk(rows(data.parts));
    this.pinned = new Set(data.pinned);
    this.windowsOf = byChunk(rows(data.windows));
    this.supplied = new Map(rows(data.supplied).map(({ chunk, kind }) => [chunk, kind]));
    this.viewRows = rows(data.views);
    this.viewsOf = Array.from({ length: count }, () => []);
    for (const view of this.viewRows) this.viewsOf[view.chunk].push(view);
    this.typeNames = data.types.dtypes.map((dtype, at) => ({ dtype, shape: data.types.shapes[at].join(" × ") || "scalar" }));
    this.live = summed(data.live);
    // The chunks with an extent, by the step where they begin.
    this.drawnChunks = [];
    for (let at = 0; at < count; at++) if (this.drawn(at)) this.drawnChunks.push(at);
    this.drawnChunks.sort((a, b) => this.ownBegins[a] - this.ownBegins[b] || a - b);
    this.drawnBegins = this.drawnChunks.map((at) => this.ownBegins[at]);
    this.longest = this.drawnChunks.reduce((most, at) => Math.max(most, this.ends[at] - this.ownBegins[at]), 0);
    for (const plan of data.plans) this.addPools(plan);
  }

  // A plan has at least one pool; only those of problems with pools have names.
  addPools(plan) {
    const { peak_step, live } = this;
    plan.pools = plan.pools.length ? plan.pools.map((pool) => ({ ...pool, live: summed(pool.live) }))
      : [{ name: "", size: plan.pool, capacity: null, bound: plan.bound, bound_line: plan.bound_line, peak_step, reserved: [], live }];
    plan.pools.forEach((pool, row) => {
      pool.peakChunks = new Set(this.aliveAt(pool.peak_step).filter((at) => this.rowOf(plan, at) === row));
    });
  }

  // The boxes of a chunk: steps, and bytes from its start, padding included. Bytes that it shares with a chunk
  // around it are in the boxes of that one.
  boxesOf(at) {
    return this.boxes.get(at) ?? [{ begin: this.ownBegins[at], end: this.ends[at], low: 0, high: this.sizes[at] + this.padding }];
  }

  drawn(at) { return this.sizes[at] > 0 && this.boxesOf(at).some(({ begin, end }) => begin < end); }

  // The pool of a chunk, by its place in the plan's list.
  rowOf(plan, at) { return plan.pool_of.length ? plan.pool_of[at] : 0; }

  // The offset of a chunk, with its pool if there are several.
  placeOf(plan, at, offset = this.low(plan, at)) {
    return plan.pools.length > 1 ? `${offset} in ${plan.pools[this.rowOf(plan, at)].name}` : String(offset);
  }

  lifetime(begin, end) { return end - 1 > begin ? `${this.unit}s ${begin}..${end}` : `${this.unit} ${begin}`; }

  low(plan, at) { return plan.offsets[at]; }

  high(plan, at) { return plan.offsets[at] + (this.sizes[at] > 0 ? this.sizes[at] + this.padding : 0); }

  // The chunks that may be alive in a range of steps, by their beginning. A box may lie one step before it.
  around(begin, end) {
    return this.drawnChunks.slice(past(this.drawnBegins, begin - this.longest - 1), past(this.drawnBegins, end + 1));
  }

  // The members of a chain from the root on, each after the one that it is written over.
  chainOf(at) {
    const members = new Set([this.root[at]]);
    for (const member of members) for (const next of this.overwriters.get(member) ?? []) members.add(next);
    return [...members];
  }

  stepName(step) {
    const operator = this.operators.name[step];
    return operator === undefined || this.unit !== "step" ? `${this.unit} ${step}` : `step ${step} (${operator})`;
  }

  // The kind of the operator of a step; empty if it is unknown.
  kindOf(step) { return this.operators.kinds[this.operators.kind[step]] ?? ""; }

  // What makes a chunk: the kind of its operator, or what it is if it is supplied.
  kindOfChunk(at) { return this.supplied.get(at) ?? this.kindOf(this.begins[at]); }

  // The element type and shape of a tensor, by its number among the chunks and then the views.
  typeOf(number) { return this.typeNames[this.types.of[number]] ?? { dtype: "", shape: "" }; }

  // What an operator reads: a name, and the chunk that holds it, if one does.
  inputsOf(step) {
    return (this.operators.inputs[step] ?? []).map((number) => {
      if (number < this.count) return { name: this.names[number], at: number };
      const view = this.viewRows[number - this.count];
      if (view) return { name: view.name, at: view.chunk };
      return { name: this.operators.outside[number - this.count - this.viewRows.length], at: null };
    });
  }

  // Describes a chunk, a line each: name, size and offset, lifetime, and the chunks that share its bytes.
  describe(plan, at) {
    const lines = [
      this.names[at],
      `${size(this.sizes[at])} at ${this.placeOf(plan, at)}`,
      `alive from ${this.stepName(this.begins[at])} to ${this.stepName(this.ends[at] - 1)}`,
    ];
    const { dtype, shape } = this.typeOf(at);
    if (dtype) lines.push(`${dtype}, ${shape}`);
    if (this.supplied.has(at)) lines.push(this.supplied.get(at));
    else if (this.operators.name.length) {
      const kind = this.kindOf(this.begins[at]);
      lines.push(`operator: ${this.operators.name[this.begins[at]] ?? "?"}${kind ? `, ${kind}` : ""}`);
    }
    const link = this.linkOf[at];
    if (link) lines.push(`written over ${this.names[link.overwritten]} ${link.below ? `from ${link.below} below` : `at ${link.offset}`}`);
    const overwriters = (this.overwriters.get(at) ?? []).map((next) => this.names[next]);
    if (overwriters.length) lines.push(`overwritten by ${overwriters.slice(0, 8).join(", ")}`);
    for (const { whole, offset } of (this.partsOf.get(at) ?? []).slice(0, 8)) lines.push(`inside ${this.names[whole]} at ${offset}`);
    const views = this.viewsOf[at].map((view) => view.name);
    if (views.length) lines.push(`views: ${views.slice(0, 8).join(", ")}${views.length > 8 ? ` and ${views.length - 8} more` : ""}`);
    if (this.pinned.has(at)) lines.push("pinned");
    for (const { begin, end, low, high } of this.windowsOf.get(at) ?? []) {
      lines.push(`${low < high ? `only bytes ${low}..${high}` : "no bytes"} in ${this.lifetime(begin, end)}`);
    }
    if (plan.objects.length) lines.push(`in shared object ${plan.objects[at]}`);
    return lines;
  }

  // The chunks alive at a step, the largest first.
  aliveAt(step) {
    return this.around(step, step)
      .filter((at) => this.boxesOf(at).some(({ begin, end }) => begin <= step && step < end))
      .sort((a, b) => this.sizes[b] - this.sizes[a] || a - b);
  }

  // The live bytes at a step in all pools of a plan.
  liveAt(plan, step) { return plan.pools.reduce((sum, { live }) => sum + liveAt(live, step), 0); }

  // The front space of a chain, down to the bottom of the pool: the highest-ending chunks below it, and
  // the same for each of these.
  downToFloor(plan, at) {
    const low = (at) => this.low(plan, at), high = (at) => this.high(plan, at);
    const found = new Set(), walked = new Set(), next = [this.root[at]];
    while (next.length) {
      const start = next.pop();
      if (walked.has(start)) continue;
      walked.add(start);
      const members = this.chainOf(start).filter((at) => this.drawn(at));
      let floor = 0, front = [];
      for (const member of members) {
        for (const other of this.around(this.ownBegins[member], this.ends[member] - 1)) {
          const together = this.rowOf(plan, other) === this.rowOf(plan, member) && this.ownBegins[other] < this.ends[member] && this.ownBegins[member] < this.ends[other];
          if (!together || this.root[other] === start || high(other) > low(member)) continue;
          const base = high(other) - (low(member) - low(start));
          if (base > floor) { floor = base; front = [other]; } else if (base === floor && base > 0) front.push(other);
        }
      }
      for (const other of front) { found.add(other); next.push(this.root[other]); }
    }
    return [...found].sort((a, b) => high(b) - high(a) || a - b);
  }

  searched(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const found = [];
    for (let at = 0; at < this.count; at++) {
      if (this.names[at].toLowerCase().includes(wanted) || this.viewsOf[at].some((view) => view.name.toLowerCase().includes(wanted))) found.push(at);
    }
    return found;
  }
}

const sheets = page.sheets.map((data) => new Sheet(data));
const plans = sheets.flatMap((sheet) => sheet.plans.map((plan) => {
  const winner = plan.winner === null ? "" : `: ${plan.winner}`;
  return { sheet, plan, label: `${sheet.label ? `${sheet.label}, ` : ""}${plan.strategy}${winner}, ${short(plan.pool)}` };
}));

// What the page shows: a plan, perhaps another beside it, a part of the map, and what is chosen in it.
// Chosen and lit chunks, and the step, are those of the first plan's sheet.
const state = { shown: plans[0], beside: null, colours: "chain", line: false, difference: false, chosen: null, step: null, lit: null, simulated: null };
