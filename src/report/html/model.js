// The plans of one input and queries about them.

const page = JSON.parse(document.getElementById("data").textContent);
const count = page.names.length;
let plan = page.plans[0];

// The rows of a table that is stored by column, as objects.
function rows(columns) {
  const entries = Object.entries(columns);
  const made = entries[0][1].map(() => ({}));
  for (const [name, column] of entries) column.forEach((value, at) => { made[at][name] = value; });
  return made;
}

// The link by which each chunk overwrites another, the chunk that overwrites it, and its chain: the
// root, and its number among the chains.
const linkOf = new Array(count).fill(null), overwriter = new Array(count).fill(null);
for (const link of rows(page.links)) {
  linkOf[link.overwriter] = link;
  if (link.overwritten < count) overwriter[link.overwritten] = link.overwriter;
}
// The first step in which each chunk has its bytes to itself.
const ownBegins = page.begins.map((begin, at) => (linkOf[at] ? page.ends[linkOf[at].overwritten] ?? begin : begin));
const root = Array.from({ length: count }, (_, at) => at);
const chainNumber = new Array(count).fill(0);
let chains = 0;
for (let at = 0; at < count; at++) {
  if (linkOf[at]) continue;
  chainNumber[at] = chains++;
  for (let next = overwriter[at]; next !== null && root[next] === next; next = overwriter[next]) {
    root[next] = at;
    chainNumber[next] = chainNumber[at];
  }
}
const supplied = new Map(rows(page.supplied).map(({ chunk, kind }) => [chunk, kind]));
const viewsOf = Array.from({ length: count }, () => []);
for (const view of rows(page.views)) viewsOf[view.chunk].push(view);

const low = (at) => plan.offsets[at];
const high = (at) => plan.offsets[at] + (page.sizes[at] > 0 ? page.sizes[at] + page.padding : 0);
const drawn = (at) => page.sizes[at] > 0 && ownBegins[at] < page.ends[at];
const colour = (at) => chainNumber[at] % 7;

// The members of a chain from the root on; each has its bytes to itself once the one before it ends.
function chainOf(at) {
  const members = [root[at]], seen = new Set(members);
  for (let next = overwriter[root[at]]; next !== null && !seen.has(next); next = overwriter[next]) {
    members.push(next);
    seen.add(next);
  }
  return members;
}

function stepName(step) {
  const operator = page.operators[step];
  return operator === undefined ? `step ${step}` : `step ${step} (${operator})`;
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

// Describes a chunk, a line each: name, size and offset, lifetime, and the chunks that share its bytes.
function describe(at) {
  const lines = [
    page.names[at],
    `${size(page.sizes[at])} at ${low(at)}`,
    `alive from ${stepName(page.begins[at])} to ${stepName(page.ends[at] - 1)}`,
  ];
  if (supplied.has(at)) lines.push(supplied.get(at));
  else if (page.operators.length) lines.push(`operator: ${page.operators[page.begins[at]] ?? "?"}`);
  const link = linkOf[at];
  if (link) lines.push(`written over ${page.names[link.overwritten]} at ${link.offset}`);
  if (overwriter[at] !== null) lines.push(`overwritten by ${page.names[overwriter[at]]}`);
  const views = viewsOf[at].map((view) => view.name);
  if (views.length) lines.push(`views: ${views.slice(0, 8).join(", ")}${views.length > 8 ? ` and ${views.length - 8} more` : ""}`);
  if (plan.objects.length) lines.push(`in shared object ${plan.objects[at]}`);
  return lines;
}

// The chunks alive at a step, the largest first.
function aliveAt(step) {
  const alive = [];
  for (let at = 0; at < count; at++) {
    if (page.sizes[at] > 0 && ownBegins[at] <= step && step < page.ends[at]) alive.push(at);
  }
  return alive.sort((a, b) => page.sizes[b] - page.sizes[a] || a - b);
}

// The bytes alive at a step.
function liveAt(step) {
  let lowest = 0, past = page.live.step.length;
  while (lowest < past) {
    const middle = (lowest + past) >> 1;
    if (page.live.step[middle] <= step) lowest = middle + 1; else past = middle;
  }
  return lowest > 0 ? page.live.bytes[lowest - 1] : 0;
}

// The front space of a chain, down to the bottom of the pool: the highest-ending chunks below it, and
// the same for each of these.
function downToFloor(at) {
  const found = new Set(), walked = new Set(), next = [root[at]];
  while (next.length) {
    const start = next.pop();
    if (walked.has(start)) continue;
    walked.add(start);
    const members = chainOf(start).filter(drawn);
    let floor = 0, front = [];
    for (let other = 0; other < count; other++) {
      if (root[other] === start || !drawn(other)) continue;
      // The members follow each other in time: find the first that ends after the other begins.
      let from = 0, past = members.length;
      while (from < past) {
        const middle = (from + past) >> 1;
        if (page.ends[members[middle]] <= ownBegins[other]) from = middle + 1; else past = middle;
      }
      for (; from < members.length && ownBegins[members[from]] < page.ends[other]; from++) {
        if (high(other) > low(members[from])) continue;
        const base = high(other) - (low(members[from]) - low(start));
        if (base > floor) { floor = base; front = [other]; } else if (base === floor && base > 0) front.push(other);
      }
    }
    for (const other of front) { found.add(other); next.push(root[other]); }
  }
  return [...found].sort((a, b) => high(b) - high(a) || a - b);
}

function searched(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const found = [];
  for (let at = 0; at < count; at++) {
    if (page.names[at].toLowerCase().includes(wanted) || viewsOf[at].some((view) => view.name.toLowerCase().includes(wanted))) found.push(at);
  }
  return found;
}
