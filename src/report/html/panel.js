// The panel beside the map: what is chosen, who is alive, what was found.

const panel = document.getElementById("details");
const LISTED = 200;

function element(tag, text, parent, kind = null) {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  if (kind) made.className = kind;
  parent.append(made);
  return made;
}

// A button that chooses a chunk and shows where it lies.
function chunkButton(name, at, parent) {
  const button = element("button", name, parent, "chunk");
  button.dataset.chunk = at;
  button.addEventListener("click", () => { choose(at); zoomTo(at); });
  return button;
}

function list(heading, chunks, tag = "ul") {
  const { sheet, plan } = state.shown;
  element("h2", heading, panel);
  const items = element(tag, null, panel);
  for (const at of chunks.slice(0, LISTED)) {
    const item = element("li", null, items);
    chunkButton(sheet.names[at], at, item);
    element("span", ` ${short(sheet.sizes[at])} at ${sheet.placeOf(plan, at)}`, item, "soft");
  }
  if (chunks.length > LISTED) element("div", `and ${chunks.length - LISTED} more`, panel, "soft");
}

// Nothing is chosen: how the page is used.
function clear() {
  const { sheet, plan } = state.shown;
  state.chosen = state.step = state.lit = null;
  panel.replaceChildren();
  element("h2", "How to read it", panel);
  const lines = [
    `${sheet.unit === "step" ? "Steps" : "Clock sums"} run to the right, addresses up. A rectangle is a chunk of memory; a dashed edge shows where one is written over another.`,
    ...(plan.pools.length > 1 ? ["Each pool has a map of its own, with its own addresses; all have the same steps."] : []),
    ...(sheet.unit === "step" ? [] : ["There are several streams; a clock sum is the number of steps that are over, on all streams together."]),
    `A dotted outline is a view. Hatched space is free. Below the map are the live bytes at each ${sheet.unit}; no pool can end below the dashed line.`,
    `Click a chunk for its operator, its chain, its views and what it rests on. Click below the map for the chunks alive at a ${sheet.unit}.`,
    "The wheel or two fingers zoom, with Shift in time only, with Alt in addresses only; drag to pan. Keys: arrows choose the next chunk, with Shift they pan; + and - zoom, 0 shows all, P chooses the peak, Enter zooms to what is chosen, Escape clears.",
  ];
  for (const text of lines) element("p", text, panel);
  if (state.beside) showDifference();
  list(`alive at the peak, ${sheet.stepName(sheet.peak_step)}`, sheet.aliveAt(sheet.peak_step), "ol");
  redraw();
}

// How the plan beside differs.
function showDifference() {
  const { shown, beside } = state;
  element("h2", "The difference", panel);
  const pools = beside.plan.pool - shown.plan.pool;
  const than = pools === 0 ? "the same pool" : `a pool ${size(Math.abs(pools))} ${pools > 0 ? "larger" : "smaller"}`;
  element("p", `${beside.label} has ${than}.`, panel);
  if (shown.sheet !== beside.sheet) {
    const names = new Set(beside.sheet.names);
    const gone = shown.sheet.names.filter((name) => !names.has(name)).length, come = beside.sheet.count - (shown.sheet.count - gone);
    element("p", `${counted(gone, "chunk")} of the first plan ${gone === 1 ? "is" : "are"} not in it, ${come} of its own ${come === 1 ? "is" : "are"} new.`, panel);
    return;
  }
  const differ = shown.sheet.drawnChunks.filter(moved(shown, beside));
  element("p", `${differ.length} of ${counted(shown.sheet.drawnChunks.length, "chunk")} lie elsewhere.`, panel).id = "elsewhere";
}

function showInputs(step) {
  const { sheet } = state.shown, inputs = sheet.inputsOf(step);
  if (!inputs.length) return;
  element("h2", "inputs of its operator", panel);
  const items = element("ul", null, panel, "inputs");
  for (const { name, at } of inputs) {
    const item = element("li", null, items);
    if (at === null) { element("span", name, item); element("span", " outside the pool", item, "soft"); }
    else chunkButton(name, at, item);
  }
}

function choose(at) {
  const { sheet, plan } = state.shown;
  const chain = sheet.chainOf(at), below = sheet.downToFloor(plan, at);
  Object.assign(state, { chosen: at, step: null, lit: new Set([...chain, ...below]) });
  panel.replaceChildren();
  element("h2", "chunk", panel);
  element("pre", sheet.describe(plan, at).join("\n"), panel).id = "chosen";
  if (!sheet.supplied.has(at)) showInputs(sheet.begins[at]);
  list(`chain of ${chain.length}`, chain, "ol");
  if (sheet.viewsOf[at].length) {
    element("h2", `views: ${sheet.viewsOf[at].length}`, panel);
    const items = element("ul", null, panel);
    for (const seen of sheet.viewsOf[at]) element("li", `${seen.name}: ${size(seen.size)} at ${sheet.placeOf(plan, at, sheet.low(plan, at) + seen.offset)}, from ${sheet.stepName(seen.begin)}`, items);
  }
  list(below.length ? "front space, down to the floor" : "it rests on the floor", below);
  markRow(at);
  redraw();
}

function chooseStep(step) {
  const { sheet, plan } = state.shown;
  if (step < 0 || step >= sheet.steps) return;
  const alive = sheet.aliveAt(step);
  Object.assign(state, { step, chosen: null, lit: new Set(alive) });
  panel.replaceChildren();
  element("h2", sheet.stepName(step), panel).id = "step";
  const kind = sheet.kindOf(step);
  if (kind) element("div", kind, panel, "soft");
  element("div", `${size(sheet.liveAt(plan, step))} alive in ${counted(alive.length, "chunk")}`, panel);
  list("alive, the largest first", alive, "ol");
  redraw();
}

function search(text) {
  if (!text.trim()) { clear(); return; }
  const found = state.shown.sheet.searched(text);
  Object.assign(state, { chosen: null, step: null, lit: new Set(found) });
  panel.replaceChildren();
  element("h2", `${found.length} found`, panel).id = "found";
  list("by name", found);
  redraw();
}

function hover(x, y) {
  const pane = paneAt(x, y), { sheet, plan, pool } = pane, at = chunkAt(pane, x, y);
  const step = stepNear(pane, x);
  const below = y > pane.y + pane.h && x >= pane.x && x <= pane.x + pane.w;
  if (at !== null) tip.textContent = sheet.describe(plan, at).join("\n");
  else if (below && step >= 0 && step < sheet.steps) tip.textContent = `${sheet.stepName(step)}\n${size(liveAt(pool.live, step))} alive${pool.name ? ` in ${pool.name}` : ""}`;
  else { tip.hidden = true; return; }
  tip.hidden = false;
  const stage = canvas.getBoundingClientRect(), box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(0, Math.min(x + 16 + box.width > stage.width ? x - 12 - box.width : x + 16, stage.width - box.width))}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 14, stage.height - box.height))}px`;
}
