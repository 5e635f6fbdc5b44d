// The map on a canvas: a pane for each pool of the plan, and of the plan beside it. All have the same steps; the
// panes of one pool have the same addresses. In each are the chunks, and below them the live bytes.

const canvas = document.getElementById("map");
const tip = document.getElementById("tip");
const AXIS = 22, LEFT = 78, TOP = 24;
// The chunks of the peak are drawn at least this wide and high.
const LEAST = 3;
// The steps shown, and the addresses of each pool.
const view = { s0: 0, s1: 1, pools: [{ a0: 0, a1: 1 }] };
let panes = [];
let ink = {};
let waiting = false;

const shownPlans = () => (state.beside ? [state.shown, state.beside] : [state.shown]);
const rowCount = () => Math.max(...shownPlans().map(({ plan }) => plan.pools.length));
// A little more than the pool, so that its end is in sight.
const topAddress = (row) => Math.max(1, ...shownPlans().map(({ plan }) => plan.pools[row]?.size ?? 0)) * 1.03;
const allAddresses = () => Array.from({ length: rowCount() }, (_, row) => ({ a0: 0, a1: topAddress(row) }));
const allSteps = () => Math.max(1, ...shownPlans().map(({ sheet }) => sheet.steps));

// Where a pool of a plan is drawn, in a part of the stage. The lowest of several has the numbers of the steps.
class Pane {
  constructor(shown, row, x, y, w, h) {
    const several = shown.plan.pools.length > 1;
    // Room for the name of the pool, the numbers of the steps, and the live bytes.
    this.title = several ? 16 : 0;
    this.axis = row + 1 === shown.plan.pools.length ? AXIS : 6;
    this.timeHeight = several ? 26 : 44;
    Object.assign(this, shown, { row, pool: shown.plan.pools[row], left: x, top: y, right: x + w, bottom: y + h });
    Object.assign(this, { x: x + LEFT, y: y + TOP + this.title, w: Math.max(10, w - LEFT - 12) });
    this.h = Math.max(10, h - TOP - this.title - this.axis - this.timeHeight - 8);
  }

  get range() { return view.pools[this.row]; }

  holdsChunk(at) { return this.sheet.rowOf(this.plan, at) === this.row; }

  px(step) { return this.x + ((step - view.s0) / (view.s1 - view.s0)) * this.w; }
  py(address) { return this.y + this.h * (1 - (address - this.range.a0) / (this.range.a1 - this.range.a0)); }
  stepAt(x) { return view.s0 + ((x - this.x) / this.w) * (view.s1 - view.s0); }
  addressAt(y) { return this.range.a0 + (1 - (y - this.y) / this.h) * (this.range.a1 - this.range.a0); }
  // The part below the map.
  get timeTop() { return this.y + this.h + this.axis; }
  timeY(bytes) { return this.timeTop + this.timeHeight * (1 - bytes / topAddress(this.row)); }

  // The rectangles of a chunk, one unless it has holes or windows. What makes the peak can always be seen.
  boxes(at) {
    const low = this.sheet.low(this.plan, at), isPeak = this.pool.peakChunks.has(at);
    return this.sheet.boxesOf(at).map((box) => {
      const x = this.px(box.begin), y = this.py(low + box.high);
      let w = this.px(box.end) - x, h = this.py(low + box.low) - y;
      if (isPeak) { w = Math.max(w, LEAST); h = Math.max(h, 1); }
      return { at, x, y, w, h };
    });
  }

  holds(x, y) { return x >= this.x && x <= this.x + this.w && y >= this.y && y <= this.y + this.h; }

  // The lit chunks of this pane; those of another sheet are found by name.
  lit() {
    if (state.lit === null || this.sheet === state.shown.sheet) return state.lit;
    const names = new Set([...state.lit].map((at) => state.shown.sheet.names[at]));
    return new Set(this.sheet.names.flatMap((name, at) => (names.has(name) ? [at] : [])));
  }
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const hues = Array.from({ length: HUES }, (_, hue) => `c${hue}`);
  ink = {};
  for (const name of ["page", "panel", "ink", "soft", "rule", "free", "hatch", "mark", ...hues]) {
    ink[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

// The patterns of free space, of pinned chunks and of reserved bytes: a ground, perhaps none, and strokes.
const STROKES = { up: [[-2, 2, 4, -4], [0, 8, 8, -8], [6, 10, 4, -4]], down: [[-2, 6, 4, 4], [0, 0, 8, 8], [6, -2, 4, 4]] };
const patterns = () => ({
  free: { ground: ink.free, stroke: ink.hatch, strokes: STROKES.up },
  pinned: { ground: null, stroke: ink.soft, strokes: STROKES.down },
  reserved: { ground: ink.rule, stroke: ink.soft, strokes: [...STROKES.up, ...STROKES.down] },
});

function hatch(pen, { ground, stroke, strokes }) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const brush = tile.getContext("2d");
  if (ground) { brush.fillStyle = ground; brush.fillRect(0, 0, 8, 8); }
  brush.strokeStyle = stroke;
  brush.beginPath();
  for (const [x, y, dx, dy] of strokes) { brush.moveTo(x, y); brush.lineTo(x + dx, y + dy); }
  brush.stroke();
  return pen.createPattern(tile, "repeat");
}

const fillsOf = (make) => Object.fromEntries(Object.entries(patterns()).map(([name, pattern]) => [name, make(name, pattern)]));

const isAcross = () => state.beside !== null && canvas.clientWidth >= 700;

// Divides the stage: two plans stand side by side where there is room, else one below the other. So do the pools
// of each plan.
function layOut() {
  const shown = shownPlans(), across = isAcross();
  const rows = shown.map(({ plan }) => plan.pools.length);
  const w = across ? canvas.clientWidth / 2 : canvas.clientWidth;
  const h = canvas.clientHeight / (across ? Math.max(...rows) : rows.reduce((sum, count) => sum + count, 0));
  panes = shown.flatMap((each, at) => each.plan.pools.map((_, row) => {
    const above = across || at === 0 ? row : rows[0] + row;
    return new Pane(each, row, across ? at * w : 0, above * h, w, h);
  }));
}

// Several pools need more height than a window may have. Then a finger scrolls the page, and two zoom.
function makeRoom() {
  const counts = shownPlans().map(({ plan }) => plan.pools.length);
  const rows = isAcross() ? Math.max(...counts) : counts.reduce((sum, count) => sum + count, 0);
  const height = rowCount() > 1 ? `${rows * 13}rem` : "";
  for (const each of [canvas.parentNode, canvas.parentNode.parentNode]) each.style.minHeight = height;
  canvas.style.touchAction = height && canvas.clientHeight > 0.8 * innerHeight ? "pan-y" : "";
}

function fit() {
  const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(box.width * ratio));
  canvas.height = Math.max(1, Math.round(box.height * ratio));
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  // A canvas of another size is empty, and would flicker until the next frame.
  layer.stale = true;
  paint();
}

function showAll() {
  Object.assign(view, { s0: 0, s1: allSteps(), pools: allAddresses() });
  redraw();
}

function redraw(moving = false) {
  if (!moving) layer.stale = true;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    paint();
  });
}

function paint() {
  const start = performance.now();
  const pen = canvas.getContext("2d");
  ink.fills ??= fillsOf((_, pattern) => hatch(pen, pattern));
  drawFrame(pen, ink.fills);
  const [{ x, y, w, h, sheet }] = panes;
  Object.assign(canvas.dataset, {
    frame: (performance.now() - start).toFixed(2),
    frames: Number(canvas.dataset.frames || 0) + 1,
    plot: [x, y, w, h].join(" "),
    plots: panes.map((pane) => [pane.x, pane.y, pane.w, pane.h].join(" ")).join(","),
    view: viewNumbers().join(" "),
    chunks: sheet.drawnChunks.length,
  });
  remember();
}

// Draws all panes with a pen, that of the canvas or one that writes SVG.
function draw(pen, fills) {
  clean(pen);
  for (const pane of panes) {
    pen.save();
    pen.beginPath();
    pen.rect(pane.x, pane.y, pane.w, pane.h);
    pen.clip();
    drawGround(pen, pane, fills);
    drawChunks(pen, pane, fills);
    drawLines(pen, pane);
    pen.restore();
    drawTimeline(pen, pane);
    drawAxes(pen, pane);
  }
}

function clean(pen) {
  layOut();
  pen.globalAlpha = 1;
  pen.fillStyle = ink.page;
  pen.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
}

function drawGround(pen, pane, fills) {
  const { sheet, pool } = pane;
  const x = pane.px(0), y = pane.py(pool.size);
  pen.fillStyle = fills.free;
  pen.fillRect(x, y, pane.px(sheet.steps) - x, pane.py(0) - y);
  pen.fillStyle = fills.reserved;
  for (const [low, high] of pool.reserved) pen.fillRect(x, pane.py(high), pane.px(sheet.steps) - x, pane.py(low) - pane.py(high));
  if (state.step !== null) {
    pen.fillStyle = ink.rule;
    pen.fillRect(pane.px(state.step), pane.y, Math.max(1, pane.px(state.step + 1) - pane.px(state.step)), pane.h);
  }
}

// The chunks that two plans of one sheet put in different places; null if they are not compared.
function differing() {
  const { shown, beside } = state;
  return state.difference && beside && beside.sheet === shown.sheet ? moved(shown, beside) : null;
}

const moved = ({ sheet, plan: one }, { plan: other }) => (at) => one.offsets[at] !== other.offsets[at] || sheet.rowOf(one, at) !== sheet.rowOf(other, at);

function drawChunks(pen, pane, fills) {
  const { sheet, plan, range } = pane, { numbers } = colouring(sheet);
  const lit = pane.lit(), differs = differing();
  const shown = (at) => (lit === null || lit.has(at)) && (differs === null || differs(at));
  const ratio = devicePixelRatio, snap = (x) => Math.round(x * ratio) / ratio;
  // What makes the peak and what is lit is drawn last, over others that are too thin to see. Where a pixel is
  // wider than a step, only these have a width of their own; of the others, it shows those alive at its middle.
  const plain = Array.from({ length: HUES }, () => []), marked = Array.from({ length: HUES }, () => []);
  for (const at of sheet.around(view.s0, view.s1)) {
    if (!pane.holdsChunk(at) || sheet.ends[at] < view.s0 || sheet.high(plan, at) < range.a0 || sheet.low(plan, at) > range.a1) continue;
    const mark = pane.pool.peakChunks.has(at) || (lit !== null && lit.has(at));
    for (const box of pane.boxes(at)) {
      if (box.w < 3 && !mark) {
        const end = snap(box.x + box.w);
        box.x = snap(box.x);
        box.w = end - box.x;
        if (box.w <= 0) continue;
      }
      (mark ? marked : plain)[numbers[at]].push(box);
    }
  }
  const large = [], pinned = [];
  for (const buckets of [plain, marked]) {
    buckets.forEach((bucket, number) => {
      pen.fillStyle = ink[`c${number}`];
      for (const box of bucket) {
        pen.globalAlpha = shown(box.at) ? 1 : 0.35;
        const gap = box.w > 3 && box.h > 3 ? 0.5 : 0;
        pen.fillRect(box.x + gap, box.y + gap, Math.max(0.5, box.w - 2 * gap), Math.max(0.5, box.h - 2 * gap));
        if ((box.w > 5 && box.h > 5) || isChosen(pane, box.at)) large.push(box);
        if (sheet.pinned.has(box.at)) pinned.push(box);
      }
    });
  }
  pen.fillStyle = fills.pinned;
  for (const { at, x, y, w, h } of pinned) {
    pen.globalAlpha = shown(at) ? 0.7 : 0.3;
    pen.fillRect(x, y, w, h);
  }
  pen.globalAlpha = 1;
  pen.font = FONT;
  pen.textAlign = "left";
  for (const box of large) drawDetails(pen, pane, box);
}

const isChosen = (pane, at) => state.chosen !== null && pane.sheet.names[at] === state.shown.sheet.names[state.chosen];

function drawDetails(pen, pane, { at, x, y, w, h }) {
  const { sheet, plan } = pane;
  pen.strokeStyle = pen.fillStyle = ink.ink;
  if (sheet.linkOf[at]) {
    pen.setLineDash([3, 2]);
    line(pen, x, y, x, y + h);
    pen.setLineDash([]);
  }
  for (const seen of sheet.viewsOf[at]) {
    pen.setLineDash([1, 2]);
    const left = pane.px(seen.begin), top = pane.py(sheet.low(plan, at) + seen.offset + seen.size);
    const height = pane.py(sheet.low(plan, at) + seen.offset) - top;
    if (x + w - left > 6 && height > 6) pen.strokeRect(left + 2.5, top + 2.5, x + w - left - 5, height - 5);
    pen.setLineDash([]);
  }
  if (isChosen(pane, at)) {
    pen.lineWidth = 2.5;
    pen.strokeRect(x + 1, y + 1, Math.max(1, w - 2), Math.max(1, h - 2));
    pen.lineWidth = 1;
  }
  // The visible part of the rectangle holds the text.
  const left = Math.max(x, pane.x), top = Math.max(y, pane.y);
  const room = Math.min(x + w, pane.x + pane.w) - left - 8, height = Math.min(y + h, pane.y + pane.h) - top;
  const letters = Math.floor(room / 6.2);
  if (letters < 7 || height < 14) return;
  pen.fillText(labelOf(sheet.names[at], letters), left + 5, top + 12);
  if (height > 30) pen.fillText(short(sheet.sizes[at]), left + 5, top + 26);
}

// A name with as many letters as there is room for: without the number of a first output, which most names have, and
// then the end, which differs between the layers of a model.
function labelOf(name, letters) {
  const shown = name.length <= letters ? name : name.replace(/_output_0$/, "");
  return shown.length <= letters ? shown : `…${shown.slice(shown.length - letters + 1)}`;
}

const FONT = "11px system-ui, sans-serif", BOLD = `600 ${FONT}`;

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

// The visible part of the live bytes, a rectangle for each pixel at most: x, to x, and the least and
// most bytes there.
function liveSpans(pane) {
  const { step, bytes } = pane.pool.live;
  const spans = [], from = past(step, view.s0 - 1e-9);
  let x = pane.px(from > 0 ? step[from - 1] : 0), now = from > 0 ? bytes[from - 1] : 0;
  for (let at = from; at < step.length && step[at] <= view.s1;) {
    const here = pane.px(step[at]);
    spans.push({ x, to: here, least: now, most: now });
    let least = Infinity, most = -Infinity;
    for (; at < step.length && pane.px(step[at]) < here + 1; at++) {
      now = bytes[at];
      least = Math.min(least, now);
      most = Math.max(most, now);
    }
    spans.push({ x: here, to: here + 1, least, most });
    x = here;
  }
  spans.push({ x, to: pane.px(Math.min(pane.sheet.steps, view.s1)), least: now, most: now });
  return spans;
}

function drawLines(pen, pane) {
  const { sheet, pool } = pane, peak = pane.px(pool.peak_step);
  pen.strokeStyle = ink.mark;
  pen.lineWidth = 1;
  pen.strokeRect(peak, pane.y - 1, Math.max(1, pane.px(pool.peak_step + 1) - peak), pane.h + 2);
  pen.setLineDash([7, 4]);
  pen.lineWidth = 1.5;
  line(pen, pane.x, pane.py(pool.bound), pane.x + pane.w, pane.py(pool.bound));
  pen.setLineDash([]);
  if (state.line) {
    // Pieces are filled instead of stroked: stroking this many corners takes a tenth of a second.
    const spans = liveSpans(pane);
    for (const [colour, width] of [[ink.page, 3.5], [ink.ink, 1.5]]) {
      pen.fillStyle = colour;
      for (const { x, to, least, most } of spans) {
        const top = pane.py(most) - width / 2;
        pen.fillRect(x - width / 2, top, to - x + width, pane.py(least) + width / 2 - top);
      }
    }
  }
  if (state.simulated !== null && sheet === simulation.sheet) {
    pen.lineWidth = 2;
    line(pen, pane.px(state.simulated), pane.y, pane.px(state.simulated), pane.y + pane.h);
  }
  pen.lineWidth = 1;
}

// The live bytes, below the map.
function drawTimeline(pen, pane) {
  const { pool, x, w, timeTop: top, timeHeight: height } = pane, most = liveAt(pool.live, pool.peak_step);
  pen.save();
  pen.beginPath();
  pen.rect(x, top - 1, w, height + 2);
  pen.clip();
  pen.fillStyle = ink.soft;
  const bottom = pane.timeY(0);
  for (const span of liveSpans(pane)) pen.fillRect(span.x, pane.timeY(span.most), Math.max(1, span.to - span.x), bottom - pane.timeY(span.most));
  const peak = pane.px(pool.peak_step), wide = Math.max(LEAST, pane.px(pool.peak_step + 1) - peak);
  pen.fillStyle = ink.mark;
  pen.fillRect(peak, pane.timeY(most), wide, bottom - pane.timeY(most));
  pen.strokeStyle = ink.mark;
  pen.setLineDash([7, 4]);
  line(pen, x, pane.timeY(pool.bound), x + w, pane.timeY(pool.bound));
  pen.setLineDash([]);
  if (state.step !== null) {
    pen.strokeStyle = ink.ink;
    pen.strokeRect(pane.px(state.step), top, Math.max(1, pane.px(state.step + 1) - pane.px(state.step)), height);
  }
  pen.restore();
  pen.strokeStyle = ink.rule;
  pen.strokeRect(x, top, w, height);
  pen.fillStyle = ink.soft;
  pen.font = FONT;
  pen.textAlign = "right";
  pen.fillText("alive", x - 7, top + height / 2 - 2);
  pen.fillText(short(most), x - 7, top + height / 2 + 12);
}

function drawAxes(pen, pane) {
  const { sheet, pool, range, x, y, w, h } = pane, bottom = y + h;
  pen.font = FONT;
  pen.fillStyle = ink.soft;
  pen.strokeStyle = ink.rule;
  pen.textAlign = "right";
  const apart = 2 ** Math.max(0, Math.ceil(Math.log2(((range.a1 - range.a0) * 32) / h)));
  for (let mark = Math.ceil(range.a0 / apart) * apart; mark <= range.a1; mark += apart) {
    line(pen, x - 4, pane.py(mark), x, pane.py(mark));
    pen.fillText(short(mark), x - 7, pane.py(mark) + 4);
  }
  pen.textAlign = "left";
  const wanted = ((view.s1 - view.s0) * 48) / w;
  const ten = 10 ** Math.max(0, Math.floor(Math.log10(wanted)));
  const every = [1, 2, 5, 10].map((times) => times * ten).find((step) => step >= wanted) ?? 10 * ten;
  for (let step = Math.ceil(view.s0 / every) * every; step < view.s1; step += every) {
    const label = String(step);
    if (pane.px(step) + 2 + label.length * 6.5 > x + w) continue;
    line(pen, pane.px(step), bottom, pane.px(step), bottom + 5);
    if (pane.axis === AXIS) pen.fillText(label, pane.px(step) + 2, bottom + 15);
  }
  pen.strokeRect(x, y, w, h);
  if (pane.title) {
    pen.fillStyle = ink.ink;
    pen.font = BOLD;
    const words = `${pool.name}: ${size(pool.size)}${pool.capacity === null ? "" : ` of ${short(pool.capacity)}`}`;
    pen.fillText(cutOff(words, Math.floor((w + LEFT - 8) / 6.6)), pane.left + 8, y - 23);
    pen.font = FONT;
  }
  const peak = pane.px(pool.peak_step), label = `peak: ${sheet.stepName(pool.peak_step)}`;
  if (peak < x || peak > x + w) return;
  pen.fillStyle = ink.mark;
  const left = peak > x + w / 2, room = Math.max(0, Math.floor((left ? peak - x : x + w - peak) / 6.2));
  pen.textAlign = left ? "right" : "left";
  pen.fillText(cutOff(label, room), left ? pane.px(pool.peak_step + 1) : peak, y - 7);
}

const cutOff = (words, room) => (words.length <= room ? words : `${words.slice(0, Math.max(4, room - 1))}…`);

const paneAt = (x, y) => panes.find((pane) => x >= pane.left && x <= pane.right && y >= pane.top && y <= pane.bottom) ?? panes[0];
// The pane of a chunk of the first plan.
const paneOf = (at) => panes.find((pane) => pane.plan === state.shown.plan && pane.holdsChunk(at)) ?? panes[0];

// The chunk at a point of the page, or null. Thin ones are caught from a pixel away, those of the peak first.
function chunkAt(pane, x, y) {
  if (!pane.holds(x, y)) return null;
  const { sheet, plan } = pane, step = pane.stepAt(x), address = pane.addressAt(y);
  const pixel = (view.s1 - view.s0) / pane.w;
  let near = null;
  for (const at of sheet.around(step - LEAST * pixel, step + pixel)) {
    if (!pane.holdsChunk(at)) continue;
    const low = sheet.low(plan, at);
    if (sheet.boxesOf(at).some((box) => box.begin <= step && step < box.end && low + box.low <= address && address < low + box.high)) return at;
    const caught = pane.boxes(at).some((box) => x >= box.x - 1 && x <= box.x + box.w + 1 && y >= box.y - 1 && y <= box.y + box.h + 1);
    if (caught && (near === null || pane.pool.peakChunks.has(at))) near = at;
  }
  return near;
}

// The step at a point, that of the peak from three pixels away.
function stepNear(pane, x) {
  const { peak_step } = pane.pool, step = Math.floor(pane.stepAt(x));
  const from = pane.px(peak_step), to = Math.max(from + LEAST, pane.px(peak_step + 1));
  return to - from <= LEAST && x >= from - 3 && x <= to + 3 ? peak_step : step;
}

// The view as numbers: steps, and then the addresses of each pool.
const viewNumbers = () => [view.s0, view.s1, ...view.pools.flatMap(({ a0, a1 }) => [a0, a1])];

// The view never leaves the map: no steps before the first, no addresses below 0.
function bound(moving = false) {
  const clamp = (low, high, most, least) => {
    const span = Math.min(Math.max(high - low, least), most);
    const from = Math.min(Math.max(low, 0), most - span);
    return [from, from + span];
  };
  [view.s0, view.s1] = clamp(view.s0, view.s1, allSteps(), Math.min(0.5, allSteps()));
  view.pools = allAddresses().map((all, row) => {
    const [a0, a1] = clamp(view.pools[row]?.a0 ?? 0, view.pools[row]?.a1 ?? all.a1, all.a1, Math.min(16, all.a1));
    return { a0, a1 };
  });
  redraw(moving);
}

function zoom(pane, x, y, factor, time, addresses) {
  if (time) {
    const step = Math.min(Math.max(pane.stepAt(x), view.s0), view.s1);
    view.s0 = step - (step - view.s0) * factor;
    view.s1 = step + (view.s1 - step) * factor;
  }
  if (addresses) {
    const { range } = pane, address = Math.min(Math.max(pane.addressAt(y), range.a0), range.a1);
    range.a0 = address - (address - range.a0) * factor;
    range.a1 = address + (range.a1 - address) * factor;
  }
  bound(true);
}

function pan(steps, addresses, row = 0) {
  const range = view.pools[row];
  const push = (low, high, by, most) => Math.min(Math.max(by, -low), most - high);
  const across = push(view.s0, view.s1, steps, allSteps()), up = push(range.a0, range.a1, addresses, topAddress(row));
  view.s0 += across;
  view.s1 += across;
  range.a0 += up;
  range.a1 += up;
  bound(true);
}

// Shows a chunk with its surroundings.
function zoomTo(at) {
  const { sheet, plan } = state.shown;
  const steps = Math.max(8, (sheet.ends[at] - sheet.ownBegins[at]) * 4), bytes = Math.max(64, sheet.sizes[at] * 8);
  const step = (sheet.ends[at] + sheet.ownBegins[at]) / 2, address = (sheet.low(plan, at) + sheet.high(plan, at)) / 2;
  Object.assign(view, { s0: step - steps / 2, s1: step + steps / 2 });
  Object.assign(view.pools[sheet.rowOf(plan, at)], { a0: address - bytes / 2, a1: address + bytes / 2 });
  bound();
}

// Zooms to a step, with all addresses.
function zoomToStep(step) {
  view.pools = allAddresses();
  Object.assign(view, { s0: step - 3.5, s1: step + 4.5 });
  bound();
}

// Moves the view until a chunk is in sight.
function bringIntoSight(at) {
  const { sheet, plan } = state.shown, row = sheet.rowOf(plan, at), { a0, a1 } = view.pools[row];
  const inside = (from, to, low, high) => (to - from >= high - low ? 0 : from < low ? from - low : to > high ? to - high : 0);
  pan(inside(sheet.ownBegins[at], sheet.ends[at], view.s0, view.s1), inside(sheet.low(plan, at), sheet.high(plan, at), a0, a1), row);
}
