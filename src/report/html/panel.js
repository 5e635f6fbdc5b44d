// The panel beside the map: a chunk with its chain and front space, the chunks alive at a step, or
// the results of a search.

const panel = document.getElementById("panel");
const LISTED = 200;

function element(tag, text, parent, kind) {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  if (kind) made.className = kind;
  parent.append(made);
  return made;
}

function list(heading, chunks, tag = "ul") {
  element("h2", heading, panel);
  const items = element(tag, null, panel);
  for (const at of chunks.slice(0, LISTED)) {
    const item = element("li", null, items);
    const button = element("button", page.names[at], item, "chunk");
    button.dataset.chunk = at;
    button.addEventListener("click", () => choose(at));
    element("span", ` ${short(page.sizes[at])} at ${low(at)}`, item, "soft");
  }
  if (chunks.length > LISTED) element("div", `and ${chunks.length - LISTED} more`, panel, "soft");
}

// Clears the selection and explains the page.
function clear() {
  chosen = shownStep = lit = null;
  panel.replaceChildren();
  element("h2", "How to read it", panel);
  const lines = [
    "Steps run to the right, addresses up. A rectangle is a memory chunk; chunks of one colour that touch at a dashed line are written over one another.",
    "A dotted outline is a view. Hatched space is free. The line shows the bytes alive at each step, the dashed line the lower bound.",
    "Click a chunk to see its chain, its views and the chunks that it rests on; click a step below the map to see the chunks alive there.",
    "The wheel zooms; with Shift it zooms in time only, with Alt in addresses only. Drag to pan. Keys: arrows, + and -, 0 to show all, Escape.",
  ];
  for (const text of lines) element("p", text, panel);
  list(`alive at the peak, ${stepName(page.peak_step)}`, aliveAt(page.peak_step), "ol");
  redraw();
}

function choose(at) {
  chosen = at;
  shownStep = null;
  const chain = chainOf(at), below = downToFloor(at);
  lit = new Set([...chain, ...below]);
  panel.replaceChildren();
  element("h2", "chunk", panel);
  element("pre", describe(at).join("\n"), panel).id = "chosen";
  list(`chain of ${chain.length}`, chain, "ol");
  if (viewsOf[at].length) {
    element("h2", `views: ${viewsOf[at].length}`, panel);
    const items = element("ul", null, panel);
    for (const seen of viewsOf[at]) element("li", `${seen.name}: ${size(seen.size)} at ${low(at) + seen.offset}, from ${stepName(seen.begin)}`, items);
  }
  list(below.length ? "front space, down to the bottom" : "it rests on the bottom of the pool", below);
  redraw();
}

function chooseStep(step) {
  if (step < 0 || step >= page.steps) return;
  shownStep = step;
  chosen = null;
  const alive = aliveAt(step);
  lit = new Set(alive);
  panel.replaceChildren();
  element("h2", stepName(step), panel).id = "step";
  element("div", `${size(liveAt(step))} alive in ${counted(alive.length, "chunk")}`, panel);
  list("alive, largest first", alive, "ol");
  redraw();
}

function search(text) {
  if (!text.trim()) { clear(); return; }
  const found = searched(text);
  chosen = shownStep = null;
  lit = new Set(found);
  panel.replaceChildren();
  element("h2", `${found.length} found`, panel).id = "found";
  list("by name", found);
  redraw();
}

function hover(x, y) {
  const at = chunkAt(x, y);
  const onAxis = y > plot.y + plot.h && x >= plot.x && x <= plot.x + plot.w;
  const step = Math.floor(stepAt(x));
  if (at !== null) tip.textContent = describe(at).join("\n");
  else if (onAxis && step >= 0 && step < page.steps) tip.textContent = `${stepName(step)}\n${size(liveAt(step))} alive`;
  else { tip.hidden = true; return; }
  tip.hidden = false;
  const stage = canvas.getBoundingClientRect(), box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(0, x + 16 + box.width > stage.width ? x - 12 - box.width : x + 16)}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 14, stage.height - box.height))}px`;
}
