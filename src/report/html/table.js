// All tensors in a table: to sort, to filter, and linked with the map both ways.

const table = document.getElementById("rows");
const filter = document.getElementById("filter");
const PAGE_ROWS = 100;
const COLUMNS = [
  ["name", "name"], ["kind", "kind"], ...(sheets.some(({ typeNames }) => typeNames.length) ? [["dtype", "dtype"], ["shape", "shape"]] : []), ["size", "size"], ["begin", `from ${sheets[0].unit}`], ["end", `to ${sheets[0].unit}`],
  ["offset", "offset"], ...(plans.some(({ plan }) => plan.pools.length > 1) ? [["pool", "pool"]] : []), ["chunk", "chunk"], ["over", "written over"],
];
const order = { column: "begin", down: false };
let shownRows = PAGE_ROWS;

// A row for each chunk, and one for each view.
function tensorRows() {
  const { sheet, plan } = state.shown, pool = (at) => plan.pools[sheet.rowOf(plan, at)].name;
  const made = sheet.names.map((name, at) => ({
    name, kind: sheet.kindOfChunk(at), ...sheet.typeOf(at), size: sheet.sizes[at], begin: sheet.begins[at], end: sheet.ends[at] - 1,
    offset: sheet.low(plan, at), pool: pool(at), chunk: sheet.names[at], over: sheet.linkOf[at] ? sheet.names[sheet.linkOf[at].overwritten] : "", at,
  }));
  for (const [number, { chunk: at, name, offset, size, begin }] of sheet.viewRows.entries()) {
    made.push({ name, kind: sheet.kindOf(begin), ...sheet.typeOf(sheet.count + number), size, begin, end: sheet.ends[at] - 1, offset: sheet.low(plan, at) + offset, pool: pool(at), chunk: sheet.names[at], over: "", at });
  }
  return made;
}

function fillTable() {
  if (!document.getElementById("tensors").open) return;
  const wanted = filter.value.trim().toLowerCase();
  const found = tensorRows().filter(({ name, kind, dtype, shape, pool }) => [name, kind, dtype, shape, pool].some((words) => words.toLowerCase().includes(wanted)));
  const by = order.column, sign = order.down ? -1 : 1;
  found.sort((a, b) => sign * (typeof a[by] === "number" ? a[by] - b[by] : a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0) || a.begin - b.begin || a.at - b.at);
  const body = table.tBodies[0];
  body.replaceChildren();
  for (const each of found.slice(0, shownRows)) {
    const row = element("tr", null, body, each.at === state.chosen ? "chosen" : null);
    row.dataset.chunk = each.at;
    chunkButton(each.name, each.at, element("td", null, row, "name"));
    for (const [column] of COLUMNS.slice(1)) {
      const value = each[column], number = typeof value === "number";
      element("td", number ? grouped(value) : value, row, number ? "number" : ["chunk", "over"].includes(column) ? "name" : null);
    }
  }
  document.getElementById("rows-shown").textContent = `${Math.min(shownRows, found.length)} of ${found.length}`;
  document.getElementById("more").hidden = found.length <= shownRows;
  for (const [at, [column]] of COLUMNS.entries()) {
    const sorted = column === by ? (order.down ? "descending" : "ascending") : "none";
    table.tHead.rows[0].cells[at].setAttribute("aria-sort", sorted);
  }
}

// Marks the rows of the chunk that was chosen elsewhere.
function markRow(at) {
  let first = true;
  for (const row of table.tBodies[0].rows) {
    const is = Number(row.dataset.chunk) === at;
    row.classList.toggle("chosen", is);
    if (is && first) { first = false; row.scrollIntoView({ block: "nearest" }); }
  }
}

function makeTable() {
  const head = element("tr", null, table.tHead);
  for (const [column, words] of COLUMNS) {
    const cell = element("th", null, head);
    cell.scope = "col";
    element("button", words, cell).addEventListener("click", () => {
      order.down = order.column === column ? !order.down : ["size", "offset"].includes(column);
      order.column = column;
      fillTable();
    });
  }
  filter.addEventListener("input", () => { shownRows = PAGE_ROWS; fillTable(); });
  document.getElementById("more").addEventListener("click", () => { shownRows += PAGE_ROWS; fillTable(); });
  document.getElementById("tensors").addEventListener("toggle", fillTable);
}
