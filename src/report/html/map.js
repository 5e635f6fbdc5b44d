// The map on a canvas: one pane, or two on one scale; in each the chunks, and below them the bytes alive.

const canvas = document.getElementById("map");
const tip = document.getElementById("tip");
const AXIS = 22, TIMELINE = 74, LEFT = 78, TOP = 24;
// The chunks of the peak are drawn at least this wide and high.
const LEAST = 3;
const view = { s0: 0, s1: 1, a0: 0, a1: 1 };
let panes = [];
let ink = {};
let waiting = false;

const shownPlans = () => (state.beside ? [state.shown, state.beside] : [state.shown]);
// A little more than the pool, so that its end is in sight.
const topAddress = () => Math.max(1, ...shownPlans().map(({ plan }) => plan.pool)) * 1.03;
const allSteps = () => Math.max(1, ...shownPlans().map(({ sheet }) => sheet.steps));

// Where a plan is drawn.
class Pane {
  constructor(shown, x, y, w, h) {
    Object.assign(this, shown, { x, y, w: Math.max(10, w), h: Math.max(10, h) });
  }

  px(step) { return this.x + ((step - view.s0) / (view.s1 - view.s0)) * this.w; }
  py(address) { return this.y + this.h * (1 - (address - view.a0) / (view.a1 - view.a0)); }
  stepAt(x) { return view.s0 + ((x - this.x) / this.w) * (view.s1 - view.s0); }
  addressAt(y) { return view.a0 + (1 - (y - this.y) / this.h) * (view.a1 - view.a0); }
  // The part below the map.
  get timeTop() { return this.y + this.h + AXIS; }
  get timeHeight() { return TIMELINE - AXIS - 8; }
  timeY(bytes) { return this.timeTop + this.timeHeight * (1 - bytes / topAddress()); }

  // The rectangle of a chunk. What makes the peak can always be seen.
  box(at) {
    const { sheet, plan } = this;
    const x = this.px(sheet.ownBegins[at]), y = this.py(sheet.high(plan, at));
    let w = this.px(sheet.ends[at]) - x, h = this.py(sheet.low(plan, at)) - y;
    if (sheet.peakChunks.has(at)) { w = Math.max(w, LEAST); h = Math.max(h, 1); }
    return { at, x, y, w, h };
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

// The pattern of free space.
function hatch(pen) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const brush = tile.getContext("2d");
  brush.fillStyle = ink.free;
  brush.fillRect(0, 0, 8, 8);
  brush.strokeStyle = ink.hatch;
  brush.beginPath();
  for (const [x, y] of [[-2, 2], [0, 8], [6, 10]]) { brush.moveTo(x, y); brush.lineTo(x + (y === 8 ? 8 : 4), y - (y === 8 ? 8 : 4)); }
  brush.stroke();
  return pen.createPattern(tile, "repeat");
}

// Divides the stage: two panes stand side by side where there is room, else one below the other.
function layOut() {
  const width = canvas.clientWidth, height = canvas.clientHeight, shown = shownPlans();
  const across = shown.length === 2 && width >= 700;
  const w = across ? width / 2 : width, h = across ? height : height / shown.length;
  panes = shown.map((each, at) => {
    const x = across ? at * w : 0, y = across ? 0 : at * h;
    return new Pane(each, x + LEFT, y + TOP, w - LEFT - 12, h - TOP - TIMELINE);
  });
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
  Object.assign(view, { s0: 0, s1: allSteps(), a0: 0, a1: topAddress() });
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
  ink.pattern ??= hatch(pen);
  drawFrame(pen, ink.pattern);
  const [{ x, y, w, h, sheet }] = panes;
  Object.assign(canvas.dataset, {
    frame: (performance.now() - start).toFixed(2),
    frames: Number(canvas.dataset.frames || 0) + 1,
    plot: [x, y, w, h].join(" "),
    view: [view.s0, view.s1, view.a0, view.a1].join(" "),
    chunks: sheet.drawnChunks.length,
  });
  remember();
}

// Draws all panes with a pen, that of the canvas or one that writes SVG.
function draw(pen, free) {
  clean(pen);
  for (const pane of panes) {
    pen.save();
    pen.beginPath();
    pen.rect(pane.x, pane.y, pane.w, pane.h);
    pen.clip();
    drawGround(pen, pane, free);
    drawChunks(pen, pane);
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

function drawGround(pen, pane, free) {
  const { sheet, plan } = pane;
  const x = pane.px(0), y = pane.py(plan.pool);
  pen.fillStyle = free;
  pen.fillRect(x, y, pane.px(sheet.steps) - x, pane.py(0) - y);
  if (state.step !== null) {
    pen.fillStyle = ink.rule;
    pen.fillRect(pane.px(state.step), pane.y, Math.max(1, pane.px(state.step + 1) - pane.px(state.step)), pane.h);
  }
}

// The chunks that two plans of one sheet put in different places; null if they are not compared.
function moved() {
  if (!state.difference || !state.beside || state.beside.sheet !== state.shown.sheet) return null;
  return (at) => state.beside.plan.offsets[at] !== state.shown.plan.offsets[at];
}

function drawChunks(pen, pane) {
  const { sheet, plan } = pane, { numbers } = colouring(sheet);
  const lit = pane.lit(), differs = moved();
  const shown = (at) => (lit === null || lit.has(at)) && (differs === null || differs(at));
  const ratio = devicePixelRatio, snap = (x) => Math.round(x * ratio) / ratio;
  // What makes the peak and what is lit is drawn last, over others that are too thin to see. Where a pixel is
  // wider than a step, only these have a width of their own; of the others, it shows those alive at its middle.
  const plain = Array.from({ length: HUES }, () => []), marked = Array.from({ length: HUES }, () => []);
  for (const at of sheet.around(view.s0, view.s1)) {
    if (sheet.ends[at] < view.s0 || sheet.high(plan, at) < view.a0 || sheet.low(plan, at) > view.a1) continue;
    const mark = sheet.peakChunks.has(at) || (lit !== null && lit.has(at)), box = pane.box(at);
    if (box.w < 3 && !mark) {
      const end = snap(box.x + box.w);
      box.x = snap(box.x);
      box.w = end - box.x;
      if (box.w <= 0) continue;
    }
    (mark ? marked : plain)[numbers[at]].push(box);
  }
  const large = [];
  for (const buckets of [plain, marked]) {
    buckets.forEach((bucket, number) => {
      pen.fillStyle = ink[`c${number}`];
      for (const box of bucket) {
        pen.globalAlpha = shown(box.at) ? 1 : 0.35;
        const gap = box.w > 3 && box.h > 3 ? 0.5 : 0;
        pen.fillRect(box.x + gap, box.y + gap, Math.max(0.5, box.w - 2 * gap), Math.max(0.5, box.h - 2 * gap));
        if ((box.w > 5 && box.h > 5) || isChosen(pane, box.at)) large.push(box);
      }
    });
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
  const name = sheet.names[at];
  pen.fillText(name.length <= letters ? name : `…${name.slice(name.length - letters + 1)}`, left + 5, top + 12);
  if (height > 30) pen.fillText(short(sheet.sizes[at]), left + 5, top + 26);
}

const FONT = "11px system-ui, sans-serif";

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

// The visible part of the live bytes, a rectangle for each pixel at most: x, to x, and the least and
// most bytes there.
function liveSpans(pane) {
  const { step, bytes } = pane.sheet.live;
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
  const { sheet, plan } = pane, peak = pane.px(sheet.peak_step);
  pen.strokeStyle = ink.mark;
  pen.lineWidth = 1;
  pen.strokeRect(peak, pane.y - 1, Math.max(1, pane.px(sheet.peak_step + 1) - peak), pane.h + 2);
  pen.setLineDash([7, 4]);
  pen.lineWidth = 1.5;
  line(pen, pane.x, pane.py(plan.bound), pane.x + pane.w, pane.py(plan.bound));
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

// The bytes alive, below the map.
function drawTimeline(pen, pane) {
  const { sheet, plan } = pane, { x, w, timeTop: top, timeHeight: height } = pane;
  pen.save();
  pen.beginPath();
  pen.rect(x, top - 1, w, height + 2);
  pen.clip();
  pen.fillStyle = ink.soft;
  const bottom = pane.timeY(0);
  for (const span of liveSpans(pane)) pen.fillRect(span.x, pane.timeY(span.most), Math.max(1, span.to - span.x), bottom - pane.timeY(span.most));
  const peak = pane.px(sheet.peak_step), wide = Math.max(LEAST, pane.px(sheet.peak_step + 1) - peak);
  pen.fillStyle = ink.mark;
  pen.fillRect(peak, pane.timeY(sheet.liveAt(sheet.peak_step)), wide, bottom - pane.timeY(sheet.liveAt(sheet.peak_step)));
  pen.strokeStyle = ink.mark;
  pen.setLineDash([7, 4]);
  line(pen, x, pane.timeY(plan.bound), x + w, pane.timeY(plan.bound));
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
  pen.fillText(short(sheet.liveAt(sheet.peak_step)), x - 7, top + height / 2 + 12);
}

function drawAxes(pen, pane) {
  const { sheet, x, y, w, h } = pane, bottom = y + h;
  pen.font = FONT;
  pen.fillStyle = ink.soft;
  pen.strokeStyle = ink.rule;
  pen.textAlign = "right";
  const apart = 2 ** Math.max(0, Math.ceil(Math.log2(((view.a1 - view.a0) * 32) / h)));
  for (let mark = Math.ceil(view.a0 / apart) * apart; mark <= view.a1; mark += apart) {
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
    pen.fillText(label, pane.px(step) + 2, bottom + 15);
  }
  pen.strokeRect(x, y, w, h);
  const peak = pane.px(sheet.peak_step), label = `peak: ${sheet.stepName(sheet.peak_step)}`;
  if (peak < x || peak > x + w) return;
  pen.fillStyle = ink.mark;
  const left = peak > x + w / 2, room = Math.max(0, Math.floor((left ? peak - x : x + w - peak) / 6.2));
  pen.textAlign = left ? "right" : "left";
  pen.fillText(label.length <= room ? label : `${label.slice(0, Math.max(4, room - 1))}…`, left ? pane.px(sheet.peak_step + 1) : peak, y - 7);
}

const paneAt = (x, y) => panes.find((pane) => x >= pane.x - LEFT && x <= pane.x + pane.w + 12 && y >= pane.y - TOP && y <= pane.y + pane.h + TIMELINE) ?? panes[0];

// The chunk at a point of the page, or null. Thin ones are caught from a pixel away, those of the peak first.
function chunkAt(pane, x, y) {
  if (!pane.holds(x, y)) return null;
  const { sheet, plan } = pane, step = pane.stepAt(x), address = pane.addressAt(y);
  const pixel = (view.s1 - view.s0) / pane.w;
  let near = null;
  for (const at of sheet.around(step - LEAST * pixel, step + pixel)) {
    if (sheet.ownBegins[at] <= step && step < sheet.ends[at] && sheet.low(plan, at) <= address && address < sheet.high(plan, at)) return at;
    const box = pane.box(at);
    const caught = x >= box.x - 1 && x <= box.x + box.w + 1 && y >= box.y - 1 && y <= box.y + box.h + 1;
    if (caught && (near === null || sheet.peakChunks.has(at))) near = at;
  }
  return near;
}

// The step at a point, that of the peak from three pixels away.
function stepNear(pane, x) {
  const { sheet } = pane, step = Math.floor(pane.stepAt(x));
  const from = pane.px(sheet.peak_step), to = Math.max(from + LEAST, pane.px(sheet.peak_step + 1));
  return to - from <= LEAST && x >= from - 3 && x <= to + 3 ? sheet.peak_step : step;
}

// The view never leaves the map: no steps before the first, no addresses below 0.
function bound(moving = false) {
  const clamp = (low, high, most, least) => {
    const span = Math.min(Math.max(high - low, least), most);
    const from = Math.min(Math.max(low, 0), most - span);
    return [from, from + span];
  };
  [view.s0, view.s1] = clamp(view.s0, view.s1, allSteps(), Math.min(0.5, allSteps()));
  [view.a0, view.a1] = clamp(view.a0, view.a1, topAddress(), Math.min(16, topAddress()));
  redraw(moving);
}

function zoom(pane, x, y, factor, time, addresses) {
  if (time) {
    const step = Math.min(Math.max(pane.stepAt(x), view.s0), view.s1);
    view.s0 = step - (step - view.s0) * factor;
    view.s1 = step + (view.s1 - step) * factor;
  }
  if (addresses) {
    const address = Math.min(Math.max(pane.addressAt(y), view.a0), view.a1);
    view.a0 = address - (address - view.a0) * factor;
    view.a1 = address + (view.a1 - address) * factor;
  }
  bound(true);
}

function pan(steps, addresses) {
  const push = (low, high, by, most) => Math.min(Math.max(by, -low), most - high);
  const across = push(view.s0, view.s1, steps, allSteps()), up = push(view.a0, view.a1, addresses, topAddress());
  view.s0 += across;
  view.s1 += across;
  view.a0 += up;
  view.a1 += up;
  bound(true);
}

// Shows a chunk with its surroundings.
function zoomTo(at) {
  const { sheet, plan } = state.shown;
  const steps = Math.max(8, (sheet.ends[at] - sheet.ownBegins[at]) * 4), bytes = Math.max(64, sheet.sizes[at] * 8);
  const step = (sheet.ends[at] + sheet.ownBegins[at]) / 2, address = (sheet.low(plan, at) + sheet.high(plan, at)) / 2;
  Object.assign(view, { s0: step - steps / 2, s1: step + steps / 2, a0: address - bytes / 2, a1: address + bytes / 2 });
  bound();
}

// Moves the view until a chunk is in sight.
function bringIntoSight(at) {
  const { sheet, plan } = state.shown;
  const inside = (from, to, low, high) => (to - from >= high - low ? 0 : from < low ? from - low : to > high ? to - high : 0);
  pan(inside(sheet.ownBegins[at], sheet.ends[at], view.s0, view.s1), inside(sheet.low(plan, at), sheet.high(plan, at), view.a0, view.a1));
}
