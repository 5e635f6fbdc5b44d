// The plans of one input, and what can be asked of them.

const page = JSON.parse(document.getElementById("data").textContent);
const count = page.names.length;
let plan = page.plans[0];

// Root of each chunk's chain, who overwrites each chunk, the chain's place among the chains.
const overwriter = new Array(count).fill(null);
page.overwrites.forEach((over, at) => { if (over && over[0] < count) overwriter[over[0]] = at; });
const root = Array.from({ length: count }, (_, at) => at);
const chainNumber = new Array(count).fill(0);
let chains = 0;
for (let at = 0; at < count; at++) {
  if (page.overwrites[at]) continue;
  chainNumber[at] = chains++;
  for (let next = overwriter[at]; next !== null && root[next] === next; next = overwriter[next]) {
    root[next] = at;
    chainNumber[next] = chainNumber[at];
  }
}
const supplied = new Map(page.supplied);
const viewsOf = Array.from({ length: count }, () => []);
for (const [chunk, name, offset, size, begin] of page.views) viewsOf[chunk].push({ name, offset, size, begin });

const low = (at) => plan.offsets[at];
const high = (at) => plan.offsets[at] + (page.sizes[at] > 0 ? page.sizes[at] + page.padding : 0);
const drawn = (at) => page.sizes[at] > 0 && page.own_begins[at] < page.ends[at];
const colour = (at) => chainNumber[at] % 7;

// From the root on; each member has its bytes for itself after the one before.
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

// In a binary unit with three digits.
function short(bytes) {
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let value = bytes, unit = -1;
  while (value >= 1024 && unit < 5) { value /= 1024; unit++; }
  if (unit < 0) return `${grouped(bytes)} B`;
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${units[unit]}`;
}

const size = (bytes) => (bytes < 1024 ? short(bytes) : `${short(bytes)} (${grouped(bytes)} B)`);

// A line each: name, size and offset, life, and whom the chunk shares its bytes with.
function describe(at) {
  const lines = [
    page.names[at],
    `${size(page.sizes[at])} at ${low(at)}`,
    `alive from ${stepName(page.begins[at])} to ${stepName(page.ends[at] - 1)}`,
  ];
  if (supplied.has(at)) lines.push(supplied.get(at));
  else if (page.operators.length) lines.push(`operator: ${page.operators[page.begins[at]] ?? "?"}`);
  const over = page.overwrites[at];
  if (over) lines.push(`written over ${page.names[over[0]]} at ${over[1]}`);
  if (overwriter[at] !== null) lines.push(`overwritten by ${page.names[overwriter[at]]}`);
  const views = viewsOf[at].map((view) => view.name);
  if (views.length) lines.push(`views: ${views.slice(0, 8).join(", ")}${views.length > 8 ? ` and ${views.length - 8} more` : ""}`);
  if (plan.objects.length) lines.push(`in shared object ${plan.objects[at]}`);
  return lines;
}

// Who is alive at a step, the largest first.
function aliveAt(step) {
  const alive = [];
  for (let at = 0; at < count; at++) {
    if (page.sizes[at] > 0 && page.own_begins[at] <= step && step < page.ends[at]) alive.push(at);
  }
  return alive.sort((a, b) => page.sizes[b] - page.sizes[a] || a - b);
}

// The bytes alive at a step.
function liveAt(step) {
  let lowest = 0, past = page.live.length;
  while (lowest < past) {
    const middle = (lowest + past) >> 1;
    if (page.live[middle][0] <= step) lowest = middle + 1; else past = middle;
  }
  return lowest > 0 ? page.live[lowest - 1][1] : 0;
}

// The front space of a chain, down to the floor: of those below it, the chunks that end highest,
// and again below these.
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
      // The members come one after another in time: the first that ends after the other begins.
      let from = 0, past = members.length;
      while (from < past) {
        const middle = (from + past) >> 1;
        if (page.ends[members[middle]] <= page.own_begins[other]) from = middle + 1; else past = middle;
      }
      for (; from < members.length && page.own_begins[members[from]] < page.ends[other]; from++) {
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
