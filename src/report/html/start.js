// Connects the pointer, the keys and the controls to the functions that they call, and keeps what is shown
// in the address of the page, so that a view can be sent.

const strategies = document.getElementById("strategy");
const besides = document.getElementById("beside");
const searchField = document.getElementById("search");
const controls = { colours: document.getElementById("colours"), line: document.getElementById("line"), difference: document.getElementById("difference") };

function summary({ sheet, plan }) {
  const judgement = plan.pool === plan.bound ? `equal to the ${plan.bound_name}${plan.proof === "plan" ? ", proven minimal" : ""}`
    : `${(plan.pool / Math.max(plan.bound, 1)).toFixed(3)} × the ${plan.bound_name}, ${size(plan.bound)}${plan.proof ? `; no ${plan.proof} is smaller` : ""}`;
  const each = plan.pools.map(({ name, size: bytes, capacity }) => `${name} ${short(bytes)}${capacity === null ? "" : ` of ${short(capacity)}`}`);
  const pools = each.length > 1 ? `${each.join(", ")}; together` : "pool";
  return `${counted(sheet.count, "chunk")}, ${counted(sheet.steps, sheet.unit)}; ${pools} ${size(plan.pool)}, ${judgement}; unshared ${short(plan.naive)}`;
}

// Shows what the state says, after another plan, another colour or another pane was chosen.
function refresh() {
  const { shown, beside } = state;
  document.getElementById("summary").textContent = summary(shown);
  const more = document.getElementById("summary-beside");
  more.hidden = !beside;
  more.textContent = beside ? `beside: ${summary(beside)}` : "";
  controls.difference.parentNode.hidden = !beside || beside.sheet !== shown.sheet;
  tip.hidden = true;
  makeRoom();
  showLegend();
  offerSimulation();
  fillTable();
  if (state.chosen !== null) choose(state.chosen);
  else if (state.step !== null) chooseStep(state.step);
  else if (state.lit === null) clear();
  bound();
}

function usePlan(at) {
  const before = state.shown;
  state.shown = plans[at];
  if (before.sheet !== state.shown.sheet) Object.assign(state, { chosen: null, step: null, lit: null });
  refresh();
  showAddresses();
}

function useBeside(at) {
  state.beside = at === null ? null : plans[at];
  refresh();
  showAddresses();
}

// All addresses, at the steps shown.
function showAddresses() {
  view.pools = allAddresses();
  bound();
}

function inCanvas(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// The pointers that are down, where they were last. One drags, two zoom.
const grips = new Map();
let dragged = false;
canvas.addEventListener("pointerdown", (event) => {
  grips.set(event.pointerId, inCanvas(event));
  dragged = grips.size > 1;
  try { canvas.setPointerCapture(event.pointerId); } catch { /* The pointer is gone already. */ }
});
canvas.addEventListener("pointermove", (event) => {
  const [x, y] = inCanvas(event), grip = grips.get(event.pointerId);
  if (!grip) { hover(x, y); return; }
  const pane = paneAt(x, y);
  tip.hidden = true;
  if (grips.size === 2) {
    const [other] = [...grips].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    const apart = ([a, b]) => Math.max(20, Math.hypot(a - other[0], b - other[1]));
    zoom(pane, (x + other[0]) / 2, (y + other[1]) / 2, apart(grip) / apart([x, y]), true, true);
    grips.set(event.pointerId, [x, y]);
    return;
  }
  const dx = x - grip[0], dy = y - grip[1];
  if (!dragged && Math.hypot(dx, dy) < 4) return;
  dragged = true;
  grips.set(event.pointerId, [x, y]);
  pan((-dx / pane.w) * (view.s1 - view.s0), (dy / pane.h) * (pane.range.a1 - pane.range.a0), pane.row);
});
canvas.addEventListener("pointerup", (event) => {
  const [x, y] = inCanvas(event), clicked = grips.delete(event.pointerId) && !dragged && grips.size === 0;
  if (!clicked) return;
  const pane = paneAt(x, y), at = chunkAt(pane, x, y);
  const own = at === null || pane.sheet === state.shown.sheet ? at : state.shown.sheet.names.indexOf(pane.sheet.names[at]);
  if (own !== null && own >= 0) choose(own);
  else if (x >= pane.x && x <= pane.x + pane.w) chooseStep(stepNear(pane, x));
});
canvas.addEventListener("pointercancel", (event) => { grips.delete(event.pointerId); });
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("dblclick", showAll);
canvas.addEventListener("wheel", (event) => {
  // Inside another page, the wheel scrolls that page until the map is clicked.
  if (window !== window.top && document.activeElement !== canvas) return;
  event.preventDefault();
  const [x, y] = inCanvas(event), pane = paneAt(x, y);
  // Over an axis only that axis is zoomed. Some browsers turn a wheel sideways while Shift is held.
  const time = !event.altKey && x >= pane.x, addresses = !event.shiftKey && y <= pane.y + pane.h;
  zoom(pane, x, y, Math.exp((event.deltaY || event.deltaX) * 0.0015), time, addresses);
}, { passive: false });

// The next chunk in a direction: alive at the same time above or below, or at the same addresses earlier or later.
function neighbour(across, up) {
  const { sheet, plan } = state.shown, at = state.chosen;
  if (at === null) return sheet.aliveAt(sheet.peak_step)[0] ?? sheet.drawnChunks[0] ?? null;
  const low = sheet.low(plan, at), high = sheet.high(plan, at), begin = sheet.ownBegins[at], end = sheet.ends[at];
  const row = sheet.rowOf(plan, at);
  let best = null, least = Infinity;
  for (const other of sheet.drawnChunks) {
    if (other === at || sheet.rowOf(plan, other) !== row) continue;
    const steps = across > 0 ? sheet.ownBegins[other] - end : begin - sheet.ends[other];
    const bytes = up > 0 ? sheet.low(plan, other) - high : low - sheet.high(plan, other);
    const meets = across !== 0
      ? sheet.low(plan, other) < high && low < sheet.high(plan, other)
      : sheet.ownBegins[other] < end && begin < sheet.ends[other];
    const way = across !== 0 ? steps : bytes;
    if (meets && way >= 0 && way < least) { least = way; best = other; }
  }
  return best ?? (up === 0 ? null : inNextPool(at, row - up, up));
}

// Up from the highest chunk of a pool is the lowest one of the pool above that is alive with it; and so down.
function inNextPool(at, row, up) {
  const { sheet, plan } = state.shown;
  const meets = (other) => sheet.ownBegins[other] < sheet.ends[at] && sheet.ownBegins[at] < sheet.ends[other];
  const found = sheet.drawnChunks.filter((other) => sheet.rowOf(plan, other) === row && meets(other));
  return found.sort((a, b) => up * (sheet.low(plan, a) - sheet.low(plan, b)))[0] ?? null;
}

function go(across, up) {
  const at = neighbour(across, up);
  if (at === null) return;
  choose(at);
  bringIntoSight(at);
}

canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const pane = state.chosen === null ? panes[0] : paneOf(state.chosen), { a0, a1 } = pane.range;
  const steps = (view.s1 - view.s0) / 10, addresses = (a1 - a0) / 10, centre = [pane, pane.x + pane.w / 2, pane.y + pane.h / 2];
  const turn = (across, up) => (event.shiftKey ? pan(across * steps, up * addresses, pane.row) : go(across, up));
  const answers = {
    ArrowLeft: () => turn(-1, 0), ArrowRight: () => turn(1, 0), ArrowUp: () => turn(0, 1), ArrowDown: () => turn(0, -1),
    "+": () => zoom(...centre, 0.8, true, true), "-": () => zoom(...centre, 1.25, true, true),
    Enter: () => {
      if (state.chosen !== null) zoomTo(state.chosen);
      else if (state.step !== null) zoomToStep(state.step);
    },
    p: () => chooseStep(state.shown.sheet.peak_step), P: () => chooseStep(state.shown.sheet.peak_step),
    "0": showAll, Escape: clear,
  };
  if (answers[event.key]) { event.preventDefault(); answers[event.key](); }
});

// What is shown, as the fragment of the address; and back. A fragment by hand may be wrong.
let remembering = 0;
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const { shown, beside, colours, line, difference, chosen, step } = state;
    const parts = new URLSearchParams({ plan: plans.indexOf(shown), view: viewNumbers().map((value) => Number(value.toPrecision(9))).join(",") });
    if (beside) parts.set("beside", plans.indexOf(beside));
    if (colours !== "chain") parts.set("colours", colours);
    if (line) parts.set("line", 1);
    if (difference) parts.set("difference", 1);
    if (chosen !== null) parts.set("chunk", shown.sheet.names[chosen]);
    if (step !== null) parts.set("step", step);
    // A page inside another may not change its address.
    try { history.replaceState(null, "", `#${parts}`); } catch { /* Then it is not kept. */ }
  }, 200);
}

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1)), number = (name) => (parts.has(name) ? Number(parts.get(name)) : NaN);
  state.shown = plans[number("plan")] ?? plans[0];
  state.beside = plans[number("beside")] ?? null;
  if (Object.hasOwn(SCHEMES, parts.get("colours"))) state.colours = parts.get("colours");
  state.line = parts.has("line");
  state.difference = parts.has("difference");
  const chosen = parts.has("chunk") ? state.shown.sheet.names.indexOf(parts.get("chunk")) : -1;
  state.chosen = chosen >= 0 ? chosen : null;
  state.step = Number.isInteger(number("step")) ? number("step") : null;
  strategies.value = plans.indexOf(state.shown);
  besides.value = state.beside ? plans.indexOf(state.beside) : "";
  controls.colours.value = state.colours;
  controls.line.checked = state.line;
  controls.difference.checked = state.difference;
  Object.assign(view, { s0: 0, s1: allSteps(), pools: allAddresses() });
  const seen = (parts.get("view") ?? "").split(",").map(Number);
  const pairs = Array.from({ length: seen.length / 2 }, (_, at) => seen.slice(2 * at, 2 * at + 2));
  if (seen.length === 2 + 2 * view.pools.length && pairs.every(([low, high]) => Number.isFinite(low) && Number.isFinite(high) && low < high)) {
    [[view.s0, view.s1]] = pairs;
    view.pools = pairs.slice(1).map(([a0, a1]) => ({ a0, a1 }));
  }
  refresh();
}

plans.forEach(({ label }, at) => {
  element("option", label, strategies).value = at;
  element("option", label, besides).value = at;
});
besides.parentNode.hidden = plans.length < 2;
strategies.addEventListener("change", () => usePlan(Number(strategies.value)));
besides.addEventListener("change", () => useBeside(besides.value === "" ? null : Number(besides.value)));
controls.colours.addEventListener("change", () => { state.colours = controls.colours.value; refresh(); });
controls.line.addEventListener("change", () => { state.line = controls.line.checked; redraw(); });
controls.difference.addEventListener("change", () => { state.difference = controls.difference.checked; redraw(); });
searchField.addEventListener("input", () => search(searchField.value));
searchField.addEventListener("keydown", (event) => {
  const found = event.key === "Enter" ? state.shown.sheet.searched(searchField.value) : [];
  if (found.length) { choose(found[0]); zoomTo(found[0]); }
});
document.getElementById("whole").addEventListener("click", () => {
  searchField.value = "";
  clear();
  showAll();
});
// Not by the address, which keeps the view.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  const tensors = document.getElementById("tensors");
  tensors.open = true;
  tensors.querySelector("summary").focus();
});
simulationBox.addEventListener("toggle", offerSimulation);
document.getElementById("first").addEventListener("click", () => seek(0));
document.getElementById("back").addEventListener("click", () => seek(simulation.moment - 1));
document.getElementById("next").addEventListener("click", () => seek(simulation.moment + 1));
timeline.addEventListener("input", () => seek(Number(timeline.value)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });
// Paper is light.
matchMedia("print").addEventListener("change", () => { readColours(); fit(); });
addEventListener("hashchange", recall);
new ResizeObserver(fit).observe(canvas);

document.getElementById("title").textContent = page.title;
// On a small screen the panel has no room for both.
document.getElementById("colour-legend").open = innerWidth > 720;
readColours();
makeTable();
if (sheets.length > 1 && !location.hash) location.replace(`#beside=${plans.findIndex(({ sheet }) => sheet === sheets[1])}`);
recall();
