// The colours of the chunks: by chain, by kind of operator, by module path or by size. A scheme gives each
// chunk a group; groups have a colour, and the legend lists them.

const HUES = 10;
const legend = document.getElementById("legend");
const LISTED_GROUPS = 40;

// The parts of a name that say where in the model it belongs, without the last.
const moduleOf = (name) => name.split(/[/.]+/).filter(Boolean).slice(0, -1);

const SCHEMES = {
  chain: (sheet) => (at) => [`chain ${sheet.chainNumber[at]}`],
  kind: (sheet) => (at) => [sheet.kindOfChunk(at) || "unknown"],
  module: (sheet) => (at) => { const path = moduleOf(sheet.names[at]); return path.length ? path : ["top level"]; },
  size: (sheet) => (at) => {
    const power = Math.max(0, Math.floor(Math.log2(Math.max(1, sheet.sizes[at])) / 2) * 2);
    return [`${short(2 ** power)} and more`];
  },
};

// A tree of groups: the bytes of their chunks, the chunks, and the groups inside each.
function groupsOf(sheet, scheme) {
  const pathOf = SCHEMES[scheme](sheet);
  const tree = { name: "", bytes: 0, chunks: [], inside: new Map() };
  for (let at = 0; at < sheet.count; at++) {
    if (!sheet.drawn(at)) continue;
    let group = tree;
    group.chunks.push(at);
    group.bytes += sheet.sizes[at];
    for (const part of pathOf(at).slice(0, 8)) {
      if (!group.inside.has(part)) group.inside.set(part, { name: part, bytes: 0, chunks: [], inside: new Map() });
      group = group.inside.get(part);
      group.chunks.push(at);
      group.bytes += sheet.sizes[at];
    }
  }
  // A prefix that all names share says nothing.
  let top = tree;
  while (scheme === "module" && top.inside.size === 1) {
    const [only] = top.inside.values();
    if (only.inside.size === 0 || only.chunks.length < top.chunks.length) break;
    top = only;
  }
  return top;
}

const coloured = new Map();

// The colour of each chunk of a sheet, as a number below HUES, and the groups.
function colouring(sheet) {
  const key = `${sheets.indexOf(sheet)} ${state.colours}`;
  if (coloured.has(key)) return coloured.get(key);
  const numbers = new Uint8Array(sheet.count);
  let groups = [];
  if (state.colours === "chain") {
    for (let at = 0; at < sheet.count; at++) numbers[at] = sheet.chainNumber[at] % HUES;
  } else {
    const top = groupsOf(sheet, state.colours);
    // By size, the groups do not overlap; otherwise those with the most bytes come first.
    const rank = (group) => (state.colours === "size" ? sheet.sizes[group.chunks[0]] : group.bytes);
    groups = [...top.inside.values()].sort((a, b) => rank(b) - rank(a));
    groups.forEach((group, number) => {
      group.colour = number % HUES;
      for (const at of group.chunks) numbers[at] = group.colour;
    });
  }
  coloured.set(key, { numbers, groups });
  return coloured.get(key);
}

function light(chunks) {
  state.chosen = state.step = null;
  state.lit = new Set(chunks);
  redraw();
}

function showGroup(group, parent, colour) {
  const inside = [...group.inside.values()].sort((a, b) => b.bytes - a.bytes);
  const folds = state.colours === "module" && inside.length > 0;
  const item = element("li", null, parent);
  const line = folds ? element("summary", null, element("details", null, item)) : item;
  element("span", null, line, `swatch hue${colour}`);
  const button = element("button", group.name, line, "chunk");
  button.addEventListener("click", (event) => { event.preventDefault(); light(group.chunks); });
  element("span", ` ${counted(group.chunks.length, "chunk")}, ${short(group.bytes)}`, line, "soft");
  if (!folds) return;
  const list = element("ul", null, line.parentNode, "groups");
  // Folded groups are filled when they are opened.
  line.parentNode.addEventListener("toggle", () => {
    if (list.children.length) return;
    for (const each of inside.slice(0, LISTED_GROUPS)) showGroup(each, list, colour);
    if (inside.length > LISTED_GROUPS) element("li", `and ${inside.length - LISTED_GROUPS} more`, list, "soft");
  });
}

function showLegend() {
  const { groups } = colouring(state.shown.sheet);
  legend.replaceChildren();
  const { sheet, plan } = state.shown;
  const marks = [["free", "free"], ["peak", `peak ${sheet.unit}`], ["bound", plan.bound_line], ["seam", "written over"], ["view", "view"]];
  if (sheet.pinned.size) marks.push(["pinned", "pinned"]);
  if (plan.pools.some(({ reserved }) => reserved.length)) marks.push(["reserved", "reserved"]);
  const list = element("ul", null, legend, "groups");
  if (!groups.length) element("li", "one colour for each chain of overwriters", list, "soft");
  for (const group of groups.slice(0, LISTED_GROUPS)) showGroup(group, list, group.colour);
  if (groups.length > LISTED_GROUPS) element("li", `and ${groups.length - LISTED_GROUPS} more`, list, "soft");
  const line = element("ul", null, legend, "groups marks");
  for (const [mark, words] of marks) {
    const item = element("li", null, line);
    element("span", null, item, `swatch ${mark}`);
    element("span", words, item);
  }
}
