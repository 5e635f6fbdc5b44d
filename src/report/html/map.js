// The map on a canvas: drawing, zoom and pan, and finding the chunk under the pointer.

const canvas = document.getElementById("map");
const tip = document.getElementById("tip");
const pen = canvas.getContext("2d");
const plot = { x: 78, y: 22, w: 1, h: 1 };
const view = { s0: 0, s1: 1, a0: 0, a1: 1 };
let ink = {};
// The highlighted chunks; null if none are.
let lit = null;
let chosen = null;
let shownStep = null;
let simulated = null;
let waiting = false;

// A little more than the pool, so that its end is visible.
const topAddress = () => Math.max(plan.pool, 1) * 1.03;
const px = (step) => plot.x + ((step - view.s0) / (view.s1 - view.s0)) * plot.w;
const py = (address) => plot.y + plot.h * (1 - (address - view.a0) / (view.a1 - view.a0));
const stepAt = (x) => view.s0 + ((x - plot.x) / plot.w) * (view.s1 - view.s0);
const addressAt = (y) => view.a0 + (1 - (y - plot.y) / plot.h) * (view.a1 - view.a0);

function readColours() {
  const style = getComputedStyle(document.documentElement);
  ink = {};
  for (const name of ["page", "panel", "ink", "soft", "rule", "free", "hatch", "mark", "c0", "c1", "c2", "c3", "c4", "c5", "c6"]) {
    ink[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const brush = tile.getContext("2d");
  brush.fillStyle = ink.free;
  brush.fillRect(0, 0, 8, 8);
  brush.strokeStyle = ink.hatch;
  brush.beginPath();
  for (const [x, y] of [[-2, 2], [0, 8], [6, 10]]) { brush.moveTo(x, y); brush.lineTo(x + (y === 8 ? 8 : 4), y - (y === 8 ? 8 : 4)); }
  brush.stroke();
  ink.pattern = pen.createPattern(tile, "repeat");
}

function fit() {
  const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(box.width * ratio));
  canvas.height = Math.max(1, Math.round(box.height * ratio));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  plot.w = Math.max(10, box.width - plot.x - 12);
  plot.h = Math.max(10, box.height - plot.y - 22);
  redraw();
}

function showAll() {
  Object.assign(view, { s0: 0, s1: Math.max(page.steps, 1), a0: 0, a1: topAddress() });
  redraw();
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const start = performance.now();
    draw();
    canvas.dataset.frame = (performance.now() - start).toFixed(2);
    canvas.dataset.frames = Number(canvas.dataset.frames || 0) + 1;
    canvas.dataset.plot = [plot.x, plot.y, plot.w, plot.h].join(" ");
    canvas.dataset.view = [view.s0, view.s1, view.a0, view.a1].join(" ");
  });
}

function draw() {
  pen.globalAlpha = 1;
  pen.fillStyle = ink.page;
  pen.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  pen.save();
  pen.beginPath();
  pen.rect(plot.x, plot.y, plot.w, plot.h);
  pen.clip();
  drawGround();
  drawChunks();
  drawLines();
  pen.restore();
  drawAxes();
}

function drawGround() {
  const x = px(0), y = py(plan.pool);
  pen.fillStyle = ink.pattern;
  pen.fillRect(x, y, px(page.steps) - x, py(0) - y);
  if (shownStep !== null) {
    pen.fillStyle = ink.rule;
    pen.fillRect(px(shownStep), plot.y, Math.max(1, px(shownStep + 1) - px(shownStep)), plot.h);
  }
}

function drawChunks() {
  const buckets = Array.from({ length: 7 }, () => []);
  let total = 0;
  for (let at = 0; at < count; at++) {
    if (!drawn(at)) continue;
    total++;
    if (page.ends[at] < view.s0 || ownBegins[at] > view.s1 || high(at) < view.a0 || low(at) > view.a1) continue;
    buckets[colour(at)].push(at);
  }
  canvas.dataset.chunks = total;
  const big = [];
  buckets.forEach((bucket, number) => {
    pen.fillStyle = ink[`c${number}`];
    for (const at of bucket) {
      const x = px(ownBegins[at]), y = py(high(at));
      const w = px(page.ends[at]) - x, h = py(low(at)) - y;
      pen.globalAlpha = lit === null || lit.has(at) ? 1 : 0.22;
      const gap = w > 3 && h > 3 ? 0.5 : 0;
      pen.fillRect(x + gap, y + gap, Math.max(0.5, w - 2 * gap), Math.max(0.5, h - 2 * gap));
      if ((w > 5 && h > 5) || at === chosen) big.push({ at, x, y, w, h });
    }
  });
  big.forEach(drawDetails);
  pen.globalAlpha = 1;
}

function drawDetails({ at, x, y, w, h }) {
  pen.globalAlpha = lit === null || lit.has(at) ? 1 : 0.22;
  pen.strokeStyle = pen.fillStyle = ink.ink;
  if (linkOf[at]) {
    pen.setLineDash([3, 2]);
    line(x, y, x, y + h);
  }
  pen.setLineDash([1, 2]);
  for (const seen of viewsOf[at]) {
    const left = px(seen.begin), top = py(low(at) + seen.offset + seen.size);
    const height = py(low(at) + seen.offset) - top;
    if (x + w - left > 6 && height > 6) pen.strokeRect(left + 2.5, top + 2.5, x + w - left - 5, height - 5);
  }
  pen.setLineDash([]);
  if (at === chosen) {
    pen.lineWidth = 2.5;
    pen.strokeRect(x + 1, y + 1, Math.max(1, w - 2), Math.max(1, h - 2));
    pen.lineWidth = 1;
  }
  // The label goes into the visible part of the rectangle.
  const left = Math.max(x, plot.x), top = Math.max(y, plot.y);
  const room = Math.min(x + w, plot.x + plot.w) - left - 8, height = Math.min(y + h, plot.y + plot.h) - top;
  const letters = Math.floor(room / 6.2);
  if (letters < 7 || height < 14) return;
  const name = page.names[at];
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.fillText(name.length <= letters ? name : `…${name.slice(name.length - letters + 1)}`, left + 5, top + 12);
  if (height > 30) pen.fillText(short(page.sizes[at]), left + 5, top + 26);
}

function line(x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

// The visible part of the line of live bytes, as horizontal and vertical pieces. Where many changes
// fall on one pixel, a piece spans them from the least to the most. Pieces are filled, not stroked: a
// stroke with this many corners takes a tenth of a second.
function livePieces() {
  const { step: steps, bytes } = page.live;
  const pieces = [];
  let from = 0, past = steps.length;
  while (from < past) {
    const middle = (from + past) >> 1;
    if (steps[middle] < view.s0) from = middle + 1; else past = middle;
  }
  let x = px(from > 0 ? steps[from - 1] : 0), y = py(from > 0 ? bytes[from - 1] : 0);
  for (let at = from; at < steps.length && steps[at] <= view.s1;) {
    const here = px(steps[at]);
    pieces.push({ left: x, top: y, right: here, bottom: y });
    let top = y, bottom = y;
    for (; at < steps.length && px(steps[at]) < here + 1; at++) {
      y = py(bytes[at]);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
    pieces.push({ left: here, top, right: here, bottom });
    x = here;
  }
  pieces.push({ left: x, top: y, right: px(Math.min(page.steps, view.s1)), bottom: y });
  return pieces;
}

function drawPieces(pieces, width) {
  const half = width / 2;
  for (const { left, top, right, bottom } of pieces) pen.fillRect(left - half, top - half, right - left + width, bottom - top + width);
}

function drawLines() {
  const peak = px(page.peak_step);
  pen.fillStyle = pen.strokeStyle = ink.mark;
  pen.globalAlpha = 0.1;
  pen.fillRect(peak, plot.y, Math.max(1, px(page.peak_step + 1) - peak), plot.h);
  pen.globalAlpha = 1;
  pen.setLineDash([7, 4]);
  pen.lineWidth = 1.5;
  line(plot.x, py(plan.bound), plot.x + plot.w, py(plan.bound));
  pen.setLineDash([]);
  const pieces = livePieces();
  pen.fillStyle = ink.page;
  pen.globalAlpha = 0.7;
  drawPieces(pieces, 3.5);
  pen.globalAlpha = 1;
  pen.fillStyle = ink.ink;
  drawPieces(pieces, 1.5);
  if (simulated !== null) {
    pen.lineWidth = 2;
    pen.strokeStyle = ink.mark;
    line(px(simulated), plot.y, px(simulated), plot.y + plot.h);
  }
  pen.lineWidth = 1;
}

function drawAxes() {
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = ink.soft;
  pen.strokeStyle = ink.rule;
  pen.textAlign = "right";
  const span = view.a1 - view.a0, least = (span * 32) / plot.h;
  const apart = 2 ** Math.max(0, Math.ceil(Math.log2(least)));
  for (let mark = Math.ceil(view.a0 / apart) * apart; mark <= view.a1; mark += apart) {
    line(plot.x - 4, py(mark), plot.x, py(mark));
    pen.fillText(short(mark), plot.x - 7, py(mark) + 4);
  }
  pen.textAlign = "left";
  const wanted = ((view.s1 - view.s0) * 40) / plot.w;
  const ten = 10 ** Math.max(0, Math.floor(Math.log10(wanted)));
  const every = [1, 2, 5, 10].map((times) => times * ten).find((step) => step >= wanted) ?? 10 * ten;
  const bottom = plot.y + plot.h;
  for (let step = Math.ceil(view.s0 / every) * every; step < view.s1; step += every) {
    line(px(step), bottom, px(step), bottom + 5);
    pen.fillText(String(step), px(step) + 2, bottom + 15);
  }
  pen.strokeRect(plot.x, plot.y, plot.w, plot.h);
  pen.fillStyle = ink.mark;
  const left = px(page.peak_step) > plot.x + plot.w / 2;
  pen.textAlign = left ? "right" : "left";
  if (px(page.peak_step) >= plot.x && px(page.peak_step) <= plot.x + plot.w) {
    pen.fillText(`peak: ${stepName(page.peak_step)}`, px(page.peak_step + (left ? 1 : 0)), plot.y - 6);
  }
}

// The chunk at a point of the canvas, or null.
function chunkAt(x, y) {
  if (x < plot.x || x > plot.x + plot.w || y < plot.y || y > plot.y + plot.h) return null;
  const step = stepAt(x), address = addressAt(y);
  const pixel = (view.s1 - view.s0) / plot.w, byte = (view.a1 - view.a0) / plot.h;
  let near = null;
  for (let at = 0; at < count; at++) {
    if (!drawn(at)) continue;
    if (ownBegins[at] <= step && step < page.ends[at] && low(at) <= address && address < high(at)) return at;
    // A thin chunk is found from a pixel away.
    if (ownBegins[at] - pixel <= step && step < page.ends[at] + pixel && low(at) - byte <= address && address < high(at) + byte) near = at;
  }
  return near;
}

function zoom(x, y, factor, time, addresses) {
  if (time) {
    const step = Math.min(Math.max(stepAt(x), view.s0), view.s1);
    const span = Math.min(Math.max((view.s1 - view.s0) * factor, 0.5), page.steps * 2 + 1);
    const share = (step - view.s0) / (view.s1 - view.s0);
    view.s0 = step - share * span;
    view.s1 = view.s0 + span;
  }
  if (addresses) {
    const address = Math.min(Math.max(addressAt(y), view.a0), view.a1);
    const span = Math.min(Math.max((view.a1 - view.a0) * factor, 16), topAddress() * 2 + 16);
    const share = (address - view.a0) / (view.a1 - view.a0);
    view.a0 = address - share * span;
    view.a1 = view.a0 + span;
  }
  keepInSight();
}

function pan(steps, addresses) {
  view.s0 += steps;
  view.s1 += steps;
  view.a0 += addresses;
  view.a1 += addresses;
  keepInSight();
}

// Keeps at least a part of the map visible.
function keepInSight() {
  const push = (low, high, end) => (high < end * 0.02 ? end * 0.02 - high : low > end * 0.98 ? end * 0.98 - low : 0);
  const steps = push(view.s0, view.s1, page.steps), addresses = push(view.a0, view.a1, topAddress());
  view.s0 += steps;
  view.s1 += steps;
  view.a0 += addresses;
  view.a1 += addresses;
  redraw();
}

function zoomTo(at) {
  const steps = Math.max(4, (page.ends[at] - ownBegins[at]) * 3), bytes = Math.max(16, page.sizes[at] * 4);
  const step = (page.ends[at] + ownBegins[at]) / 2, address = (low(at) + high(at)) / 2;
  Object.assign(view, { s0: step - steps / 2, s1: step + steps / 2, a0: address - bytes / 2, a1: address + bytes / 2 });
  redraw();
}
