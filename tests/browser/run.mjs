// Opens the page of a model in a real browser and compares what it shows with the plans that the
// tool prints.
//
//     node tests/browser/run.mjs MEMPLAN MODEL BOOK [FOLDER-FOR-SCREENSHOTS]
//
// BOOK is the folder of the built book, whose chapters are looked at as well.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Chromium } from "./chromium.mjs";
import { a_picture, every_chapter, every_size_and_theme, on_paper, the_book_is_searched } from "./layout.mjs";

const [tool, model, book, screenshots] = process.argv.slice(2);
assert(tool && model && book, "give the tool, a model and the book");
const folder = mkdtempSync(join(tmpdir(), "memplan-pages-"));
const memplan = (...args) => execFileSync(tool, args, { encoding: "utf8", maxBuffer: 1 << 30 });
const planned = (input, strategy) => JSON.parse(memplan("plan", input, "--strategy", strategy, "--json"));
const page_of = (input, name, ...more) => {
  const path = join(folder, name);
  memplan("show", input, "-o", path, ...more);
  return path;
};
const grouped = (bytes) => String(bytes).replace(/\B(?=(\d{3})+$)/g, " ");

// First step in which a chunk has its bytes for itself.
function own_begin(plan, chunk) {
  return chunk.overwrites ? plan.chunks.find(({ id }) => id === chunk.overwrites.chunk).end : chunk.begin;
}

// The middle of a chunk on the screen, computed from the page's own axes.
async function place(page, step, address) {
  const [box, plot, view] = await page.value(`(() => {
    const map = document.getElementById("map"), box = map.getBoundingClientRect();
    return [[box.x, box.y], map.dataset.plot.split(" ").map(Number), map.dataset.view.split(" ").map(Number)];
  })()`);
  const [x, y, w, h] = plot, [s0, s1, a0, a1] = view;
  return [box[0] + x + (w * (step - s0)) / (s1 - s0), box[1] + y + h * (1 - (address - a0) / (a1 - a0))];
}
const middle = (page, plan, chunk) => place(page, (own_begin(plan, chunk) + chunk.end) / 2, chunk.offset + chunk.size / 2);

async function calm(page) {
  await page.value("1");
  assert.deepEqual(page.complaints, [], "nothing on the console");
  assert.deepEqual(page.requests, [page.address], "nothing is asked of the network but the file itself");
}

async function shows_the_plan(page, plan) {
  const seen = plan.chunks.filter((chunk) => chunk.size > 0 && own_begin(plan, chunk) < chunk.end);
  assert.equal(await page.value("Number(document.getElementById('map').dataset.chunks)"), seen.length);
  const summary = await page.text("#summary");
  const counted = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
  const start = `${counted(plan.chunks.length, "chunk")}, ${counted(plan.steps, "step")}; pool`;
  assert(summary.startsWith(start), summary);
  assert(plan.pool_size < 1024 || summary.includes(`(${grouped(plan.pool_size)} B)`), summary);
}

async function hovering_tells_the_chunk(page, plan, sample) {
  for (const chunk of sample) {
    const [x, y] = await middle(page, plan, chunk);
    await page.mouse("mouseMoved", x, y);
    const text = await page.text("#tip");
    assert(text.startsWith(`${chunk.name}\n`), `${chunk.name} is not in ${text}`);
    assert(text.includes(` at ${chunk.offset}\n`), text);
    assert(text.includes(`alive from step ${chunk.begin} `) || text.includes(`alive from step ${chunk.begin}\n`), text);
    if (chunk.overwrites) {
      const old = plan.chunks.find(({ id }) => id === chunk.overwrites.chunk);
      assert(text.includes(`written over ${old.name} at ${chunk.overwrites.offset}`), text);
    }
  }
}

async function clicking_lights_up_the_chain(page, plan) {
  const chunk = plan.chunks.find((each) => each.overwrites && own_begin(plan, each) < each.end);
  const chain = [chunk];
  while (chain[0].overwrites) chain.unshift(plan.chunks.find(({ id }) => id === chain[0].overwrites.chunk));
  for (let next; (next = plan.chunks.find((each) => each.overwrites?.chunk === chain.at(-1).id)); ) chain.push(next);
  await page.click(...(await middle(page, plan, chunk)));
  assert((await page.text("#chosen")).startsWith(`${chunk.name}\n`));
  const names = (await page.texts("#panel ol .chunk"));
  assert.deepEqual(names, chain.map(({ name }) => name));
}

// The list under "front space": from the chain down, the chunks below that end highest, and again
// below their chains.
async function clicking_shows_the_front_space(page, plan) {
  const by_id = new Map(plan.chunks.map((chunk) => [chunk.id, chunk]));
  const root = (chunk) => (chunk.overwrites ? root(by_id.get(chunk.overwrites.chunk)) : chunk);
  const padded = (chunk) => chunk.offset + chunk.size + (plan.padding ?? 0);
  const alive = plan.chunks.filter((chunk) => chunk.size > 0 && own_begin(plan, chunk) < chunk.end);
  const top = alive.reduce((a, b) => (padded(b) > padded(a) ? b : a));
  const expected = new Set();
  const walk = (start, seen) => {
    if (seen.has(start)) return;
    seen.add(start);
    const resting = [];
    for (const member of alive.filter((each) => root(each) === start)) {
      for (const other of alive.filter((each) => root(each) !== start && padded(each) <= member.offset)) {
        const together = own_begin(plan, other) < member.end && own_begin(plan, member) < other.end;
        if (together) resting.push([padded(other) - (member.offset - start.offset), other]);
      }
    }
    const highest = Math.max(0, ...resting.map(([base]) => base));
    for (const [base, other] of resting) if (base === highest && base > 0) { expected.add(other.name); walk(root(other), seen); }
  };
  walk(root(top), new Set());
  await page.click(...(await middle(page, plan, top)));
  const names = await page.texts("#panel h2:last-of-type + ul .chunk");
  assert.deepEqual(new Set(names), expected);
  assert(expected.size > 0);
}

async function a_step_lists_who_is_alive(page, plan, step) {
  const [x] = await place(page, step + 0.5, 0);
  const [, bottom] = await place(page, 0, 0);
  await page.click(x, bottom + 8);
  assert((await page.text("#step")).startsWith(`step ${step}`));
  const alive = plan.chunks.filter((chunk) => chunk.size > 0 && own_begin(plan, chunk) <= step && step < chunk.end);
  alive.sort((a, b) => b.size - a.size || a.id - b.id);
  assert.deepEqual(await page.texts("#panel ol .chunk"), alive.slice(0, 200).map(({ name }) => name));
}

async function searching_finds_by_name(page, plan) {
  const { name } = plan.chunks[Math.floor(plan.chunks.length / 2)];
  const text = name.slice(0, Math.ceil(name.length / 2)).toUpperCase();
  await page.type("#search", text);
  const tensors = plan.tensors.filter(({ name, chunk }) => chunk !== null && name.toLowerCase().includes(text.toLowerCase()));
  const ids = new Set([...tensors.map(({ chunk }) => chunk), ...plan.chunks.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase())).map(({ id }) => id)]);
  const names = plan.chunks.filter(({ id }) => ids.has(id)).map(({ name }) => name);
  assert(names.length > 0 && names.length < plan.chunks.length);
  assert.equal(await page.text("#found"), `${names.length} found`);
  assert.deepEqual(await page.texts("#panel .chunk"), names.slice(0, 200));
}

async function choose_strategy(page, at) {
  await page.value(`(() => { const list = document.getElementById("strategy"); list.value = "${at}"; list.dispatchEvent(new Event("change")); })()`);
}

// Steps through the simulation; the expected queues come from the tool's own trace.
async function stepping_shows_the_queues(page, input) {
  // Standard error holds the trace.
  const told = execFileSync("sh", ["-c", `RUST_LOG=off,memplan::simulate=trace "$0" plan "$1" --strategy pushdown 2>&1 >/dev/null`, tool, input], { encoding: "utf8", maxBuffer: 1 << 30 });
  const lines = told.split("\n").filter((line) => /memplan::simulate: (free|alloc)/.test(line)).map((line) => line.replace(/\x1b\[[0-9;]*m/g, ""));
  assert.equal(await page.value("document.getElementById('simulation').open"), false, "collapsed by default");
  await page.value("(document.getElementById('simulation').open = true)");
  await page.value("1");
  const count = await page.value("Number(document.getElementById('time').max)");
  assert.equal(count, lines.length);
  const sizes = (text) => (text === "" ? [] : text.split(", ").map((block) => Number(block.split(" ").at(-1))));
  const check = async (at) => {
    const line = lines[at - 1], [, memory, free] = /memory=\[(.*)\] free=\[(.*)\]/.exec(line);
    const [, action, step] = /simulate: (.*) step=(\d+)/.exec(line);
    assert((await page.text("#event")).startsWith(`event ${at} of ${count}: step ${step}, ${action} `), line);
    const blocks = await page.value(`["memory-queue", "free-queue"].map((id) => [...document.querySelectorAll("#" + id + " .block")].map((each) => Number(each.dataset.size)))`);
    // The trace leaves out what is beyond 16 blocks.
    if (!memory.includes(" more")) assert.deepEqual(blocks[0], sizes(memory), line);
    if (!free.includes(" more")) assert.deepEqual(blocks[1], sizes(free), line);
  };
  const few = Math.min(count, 25);
  for (let at = 1; at <= few; at++) {
    await page.press("#next");
    await check(at);
  }
  for (let at = few - 1; at > few - 5; at--) {
    await page.press("#back");
    await check(at);
  }
  await page.value(`(() => { const time = document.getElementById("time"); time.value = ${count}; time.dispatchEvent(new Event("input")); })()`);
  await check(count);
}

// The wheel zooms in, a drag pans, "show all" goes back.
async function zoom_and_pan(page) {
  const views = async () => (await page.value("document.getElementById('map').dataset.view")).split(" ").map(Number);
  const whole = await views();
  const [x, y] = await place(page, (whole[0] + whole[1]) / 2, (whole[2] + whole[3]) / 2);
  await page.mouse("mouseWheel", x, y, { deltaX: 0, deltaY: -600 });
  const near = await views();
  assert(near[1] - near[0] < (whole[1] - whole[0]) / 2 && near[3] - near[2] < (whole[3] - whole[2]) / 2, String(near));
  await page.mouse("mousePressed", x, y, { button: "left", clickCount: 1 });
  await page.mouse("mouseMoved", x - 90, y + 60, { button: "left", buttons: 1 });
  await page.mouse("mouseReleased", x - 90, y + 60, { button: "left", clickCount: 1 });
  const aside = await views();
  assert(aside[0] > near[0] && aside[2] > near[2], String(aside));
  await page.press("#whole");
  assert.deepEqual(await views(), whole);
}

// Arrows choose chunks: the next one above begins where the chosen one ends, or higher, and is alive with it.
async function the_keyboard_chooses_chunks(page) {
  await page.press("#whole");
  await page.value("document.getElementById('map').focus()");
  const chosen = async () => {
    const [name, place, life] = (await page.text("#chosen")).split("\n");
    const steps = life.match(/step (\d+)/g).map((step) => Number(step.slice(5)));
    return { name, offset: Number(place.split(" at ")[1]), begin: steps[0], end: steps[1] };
  };
  await page.key("ArrowLeft");
  const first = await chosen();
  for (const [key, holds] of [
    ["ArrowUp", (from, to) => to.offset >= from.offset],
    ["ArrowDown", (from, to) => to.offset <= from.offset],
    ["ArrowRight", (from, to) => to.begin >= from.begin],
    ["ArrowLeft", (from, to) => to.end <= from.end],
  ]) {
    const from = await chosen();
    await page.key(key);
    const to = await chosen();
    assert(holds(from, to), `${key}: from ${JSON.stringify(from)} to ${JSON.stringify(to)}`);
  }
  assert(first.name.length > 0);
  await page.key("p");
  assert.notEqual(await page.text("#step"), null, "P chooses the peak");
  await page.key("Escape");
  assert.equal(await page.text("#step"), null);
}

const view_of = async (page) => (await page.value("document.getElementById('map').dataset.view")).split(" ").map(Number);

// Without a mouse: from the top of the page to the table and to the map, and through the map.
async function everything_by_keys_and_touch(browser, path) {
  const page = await browser.open(path);
  await page.value("(() => { location.hash = '#plan=2&step=3'; })()");
  await page.key("Tab");
  const [x, y, style] = await page.value("(() => { const { x, y } = document.activeElement.getBoundingClientRect(); return [x, y, getComputedStyle(document.activeElement).outlineStyle]; })()");
  assert(x >= 0 && y >= 0 && style === "solid", "the skip link is seen when it has the focus");
  await page.key("Enter");
  assert.equal(await page.value("document.activeElement.parentNode.id"), "tensors");
  assert((await page.texts("#rows tbody tr")).length > 0, "the table is open");
  assert((await page.text("#step")).startsWith("step 3"), "the view is kept");
  const reached = new Set();
  for (let at = 0; at < 40 && !reached.has("map"); at++) { await page.key("Tab", { shift: true }); reached.add(await page.value("document.activeElement.id")); }
  assert(["map", "panel"].every((id) => reached.has(id)), [...reached].join(" "));
  assert.equal(await page.value("getComputedStyle(document.activeElement).outlineStyle"), "solid");
  const whole = await view_of(page), span = ([s0, s1]) => s1 - s0;
  await page.key("+");
  const near = await view_of(page);
  assert(span(near) < span(whole) && near[3] - near[2] < whole[3] - whole[2], "+ zooms in");
  await page.key("ArrowRight", { shift: true });
  assert((await view_of(page))[0] > near[0], "Shift and an arrow pan");
  await page.key("-");
  assert(span(await view_of(page)) > span(near));
  await page.key("0");
  assert.deepEqual(await view_of(page), whole);
  await page.key("p");
  await page.key("Enter");
  assert(span(await view_of(page)) < span(whole) || span(whole) <= 8, "Enter zooms to the peak");
  await page.key("0");
  await page.key("p");
  await page.key("ArrowUp");
  await page.key("Enter");
  // The surroundings of a chunk are eight steps at least.
  assert(span(await view_of(page)) < span(whole) || span(whole) <= 8, "Enter zooms to what is chosen");
  await page.key("0");
  // Two fingers move apart.
  await page.send("Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: 2 });
  const [left, top] = await place(page, span(whole) / 2, whole[3] / 2);
  const touch = (type, apart) => page.send("Input.dispatchTouchEvent", { type, touchPoints: apart ? [{ x: left - apart, y: top, id: 0 }, { x: left + apart, y: top, id: 1 }] : [] });
  await touch("touchStart", 50);
  for (const apart of [70, 90, 110]) await touch("touchMove", apart);
  await touch("touchEnd", 0);
  assert(span(await view_of(page)) < span(whole) / 1.5, "two fingers zoom");
  // A canvas of another size is drawn in the same frame.
  const colours = await page.value(`new Promise((then) => {
    let calls = 0;
    new ResizeObserver(() => {
      if (calls++ === 0) return;
      const copy = document.createElement("canvas"), brush = copy.getContext("2d", { willReadFrequently: true });
      Object.assign(copy, { width: canvas.width, height: canvas.height });
      brush.drawImage(canvas, 0, 0);
      then(new Set(new Uint32Array(brush.getImageData(0, 0, copy.width, copy.height).data.buffer)).size);
    }).observe(canvas);
    requestAnimationFrame(() => requestAnimationFrame(() => { canvas.style.height = "80%"; }));
  })`);
  assert(colours > 5, `${colours} colours after a change of size`);
  // Nothing moves by itself.
  assert.deepEqual(await page.value("document.getAnimations().map(String)"), []);
  assert.deepEqual(page.complaints, []);
  await page.close();
}

// The buttons save the view to files.
async function the_view_is_saved(browser, path) {
  const downloads = mkdtempSync(join(folder, "saved-"));
  const page = await browser.open(path);
  await page.send("Page.setDownloadBehavior", { behavior: "allow", downloadPath: downloads });
  for (const [button, ending, begin] of [["#save-svg", ".svg", "<svg "], ["#save-png", ".png", "\x89PNG"]]) {
    await page.press(button);
    let found;
    for (let wait = 0; wait < 100 && !found; wait++) {
      await new Promise((then) => setTimeout(then, 50));
      found = readdirSync(downloads).find((name) => name.endsWith(ending));
    }
    assert(found && readFileSync(join(downloads, found), "latin1").startsWith(begin), `${button}: ${readdirSync(downloads)}`);
  }
  assert.deepEqual(page.complaints, []);
  await page.close();
}

async function the_table_and_the_map_are_linked(page, plan) {
  await page.value("(document.getElementById('tensors').open = true)");
  await page.value("1");
  const shown = await page.text("#rows-shown");
  const tensors = new Set([...plan.chunks.map(({ name }) => name), ...plan.tensors.filter(({ chunk }) => chunk !== null).map(({ name }) => name)]);
  assert.equal(shown, `${Math.min(100, tensors.size)} of ${tensors.size}`);
  const heads = await page.texts("#rows th"), column = (name) => `:nth-child(${heads.indexOf(name) + 1})`;
  await page.press(`#rows th${column("size")} button`);
  const sizes = (await page.texts(`#rows tbody td${column("size")}`)).map((text) => Number(text.replaceAll(" ", "")));
  assert.deepEqual(sizes, [...sizes].sort((a, b) => b - a), "sorted by size");
  assert.equal(sizes[0], Math.max(...plan.chunks.map(({ size }) => size)));
  await page.press("#rows tbody tr:first-child .chunk");
  const name = await page.text("#rows tbody tr:first-child .chunk");
  assert((await page.text("#chosen")).length > 0);
  assert.equal(await page.text("#rows tr.chosen .chunk"), name);
  // Models state the element types and shapes; sizes follow from them.
  assert.equal(heads.includes("dtype") && heads.includes("shape"), model.endsWith(".onnx"));
  if (heads.includes("dtype")) {
    const [types, shapes] = await Promise.all(["dtype", "shape"].map((head) => page.texts(`#rows tbody td${column(head)}`)));
    assert(types.length > 10 && types.every((type) => type === "float32"), String(types));
    assert.deepEqual(shapes.map((shape) => 4 * shape.split(" × ").reduce((product, size) => product * Number(size), 1)), sizes);
    await page.type("#filter", "float32");
    assert.equal(await page.text("#rows-shown"), shown);
  }
  const chunk = plan.chunks[Math.floor(plan.chunks.length / 2)];
  await page.type("#filter", chunk.name);
  const rows = await page.texts("#rows tbody tr");
  assert(rows.length > 0 && rows.every((text) => text.toLowerCase().includes(chunk.name.toLowerCase())), String(rows));
  await page.type("#filter", " ");
  await page.value("(document.getElementById('tensors').open = false)");
}

async function select(page, id, value) {
  await page.value(`(() => { const list = document.getElementById("${id}"); list.value = "${value}"; list.dispatchEvent(new Event("change")); })()`);
}

// Every chunk with an extent is in one group, and the bytes add up.
async function colours_group_the_chunks(page, plan) {
  const seen = plan.chunks.filter((chunk) => chunk.size > 0 && own_begin(plan, chunk) < chunk.end).length;
  for (const colours of ["kind", "module", "size"]) {
    await select(page, "colours", colours);
    const texts = await page.texts("#legend > .groups:first-child > li");
    const counted = texts.map((text) => Number(/(\d+) chunks?, /.exec(text)?.[1] ?? 0)).reduce((a, b) => a + b, 0);
    assert(counted === seen || texts.at(-1).startsWith("and "), `${colours}: ${counted} of ${seen}`);
  }
  await page.press("#legend .chunk");
  await select(page, "colours", "chain");
}

async function two_plans_stand_side_by_side(page, plans) {
  await select(page, "beside", 1);
  const differ = plans[2].chunks.filter((chunk, at) => chunk.size > 0 && own_begin(plans[2], chunk) < chunk.end && chunk.offset !== plans[1].chunks[at].offset).length;
  await page.press("#whole");
  assert((await page.text("#elsewhere")).startsWith(`${differ} of `), await page.text("#elsewhere"));
  const [, , w] = (await page.value("document.getElementById('map').dataset.plot")).split(" ").map(Number);
  const width = await page.value("document.getElementById('map').clientWidth");
  assert(w < width / 2, "two panes");
  await select(page, "beside", "");
}

// The fragment of the address shows the same again; a wrong one shows the whole map.
async function the_address_keeps_the_view(browser, path, plan) {
  const { name } = plan.chunks[1];
  const page = await browser.open(path);
  const to = (hash) => page.value(`(() => { location.hash = ${JSON.stringify(hash)}; })()`);
  await to(`plan=2&colours=kind&line=1&view=1,3,0,4096&chunk=${encodeURIComponent(name)}`);
  assert((await page.text("#chosen")).startsWith(`${name}\n`));
  assert.deepEqual((await page.value("document.getElementById('map').dataset.view")).split(" ").map(Number), [1, 3, 0, 4096]);
  await page.value("new Promise((then) => setTimeout(then, 400))");
  const kept = new URLSearchParams((await page.value("location.hash")).slice(1));
  assert.deepEqual([kept.get("plan"), kept.get("colours"), kept.get("line"), kept.get("chunk"), kept.get("view")], ["2", "kind", "1", name, "1,3,0,4096"]);
  for (const wrong of ["plan=99&view=x,1,2&chunk=none&step=-7", "view=9,1,5,2&colours=constructor", "view=-5,1e99,-1,1e99&step=1e9"]) {
    await to(wrong);
    const seen = (await page.value("document.getElementById('map').dataset.view")).split(" ").map(Number);
    assert(seen[0] === 0 && seen[2] === 0 && seen[1] === plan.steps, `${wrong}: ${seen}`);
  }
  assert.deepEqual(page.complaints, []);
  await page.close();
}

async function the_view_is_a_picture(page) {
  const [parsed, rectangles] = await page.value(`(() => {
    const made = new DOMParser().parseFromString(svgOfView(), "image/svg+xml");
    return [made.querySelector("parsererror") === null, made.querySelectorAll("rect").length];
  })()`);
  const seen = await page.value("Number(document.getElementById('map').dataset.chunks)");
  assert(parsed && rectangles > seen, `${rectangles} rectangles for ${seen} chunks`);
}

// A peak of one step among thousands can be seen and clicked, and the view never leaves the map.
async function a_narrow_peak(browser) {
  const input = join(folder, "narrow.json");
  const chunks = Array.from({ length: 3000 }, (_, id) => ({ id, name: `t${id}`, begin: 2 * id, end: 2 * id + 3, size: 4096 }));
  chunks.push({ id: 3000, name: "the peak", begin: 4000, end: 4001, size: 1 << 20 });
  writeFileSync(input, JSON.stringify({ format: "memplan-problem/1", chunks }));
  const page = await browser.open(page_of(input, "narrow.html"));
  const [x] = await place(page, 4000.5, 0), [, bottom] = await place(page, 0, 0);
  await page.click(x + 2, bottom + 40);
  assert((await page.text("#step")).startsWith("step 4000"), await page.text("#step"));
  assert.equal((await page.texts("#panel ol .chunk"))[0], "the peak");
  const plan = planned(input, "best"), peak = plan.chunks.find(({ name }) => name === "the peak");
  const [px, py] = await place(page, 4000, peak.offset + peak.size / 2);
  await page.click(px + 2, py);
  assert((await page.text("#chosen")).startsWith("the peak\n"));
  await page.press("#panel ol .chunk");
  const [s0, s1, a0, a1] = (await page.value("document.getElementById('map').dataset.view")).split(" ").map(Number);
  assert(s0 <= 4000 && s1 >= 4001 && s1 - s0 < 50 && a0 >= 0 && a1 > a0, "choosing a name zooms to its chunk");
  await page.value("(() => { for (let at = 0; at < 60; at++) pan(-1e6, -1e12); zoom(panes[0], 0, 0, 1e9, true, true); })()");
  assert.deepEqual((await page.value("document.getElementById('map').dataset.view")).split(" ").map(Number).filter((value) => value < 0), []);
  await calm(page);
  await page.close();
}

// Two plan files with other chunks: each a sheet of its own.
async function two_files(browser) {
  const input = "book/src/figures/example.json", files = ["rows", "none"].map((profile) => join(folder, `${profile}.json`));
  memplan("plan", input, "-o", files[0]);
  memplan("plan", input, "--inplace", "none", "-o", files[1]);
  const path = join(folder, "files.html");
  memplan("show", input, ...files, "-o", path);
  const page = await browser.open(path);
  assert.equal(await page.value("panes.length"), 2);
  assert.equal(await page.value("panes[0].sheet === panes[1].sheet"), false);
  assert((await page.text("#summary-beside")).startsWith("beside: "));
  await calm_but_for_the_fragment(page);
  await page.close();
}

// Pools stand one below the other, each with its name and its own addresses, and all with the same steps. `kept`
// has a hole in which `conv` takes its place; `table` is pinned; the lowest bytes of `sram` are reserved.
const POOLS = {
  format: "memplan-problem/2",
  pools: [{ name: "sram", capacity: 4096, cost: 1, reserved: [[0, 256]] }, { name: "psram", cost: 10 }],
  chunks: [
    { id: 0, name: "kept", begin: 0, end: 12, size: 1024, holes: [[3, 7]], pin: { pool: "sram", offset: 1536 } },
    { id: 1, name: "strip", begin: 1, end: 10, size: 1536, windows: [{ begin: 4, end: 8, low: 0, high: 256 }] },
    { id: 2, name: "conv", begin: 3, end: 7, size: 1024, pin: { pool: "sram", offset: 1536 } },
    { id: 3, name: "table", begin: 0, end: 12, size: 512, pin: { pool: "sram", offset: 1024 } },
    { id: 4, name: "big", begin: 2, end: 9, size: 60000 },
    { id: 5, name: "tail", begin: 6, end: 12, size: 20480 },
    { id: 6, name: "left", begin: 2, end: 5, size: 256 },
    { id: 7, name: "concat", begin: 5, end: 9, size: 512 },
  ],
  parts: [{ chunk: 6, whole: 7, offset: 0 }],
};

// The places of the panes in the window, and what each shows.
const panes_of = (page) => page.value(`(() => {
  const { x, y } = canvas.getBoundingClientRect();
  return panes.map((pane) => ({ x: x + pane.x, y: y + pane.y, w: pane.w, h: pane.h, name: pane.pool.name, range: pane.range, s0: view.s0, s1: view.s1 }));
})()`);

async function pools_one_below_the_other(browser) {
  const input = join(folder, "pools.json");
  writeFileSync(input, JSON.stringify(POOLS));
  const plan = planned(input, "best"), path = page_of(input, "pools.html", "--strategy", "best,first-fit");
  const pool_of = (name) => plan.chunks.find((chunk) => chunk.name === name).pool;
  assert.deepEqual(["kept", "big"].map(pool_of), ["sram", "psram"]);
  const page = await browser.open(path);
  for (const width of [1400, 390]) {
    await page.send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: false });
    const [sram, psram] = await panes_of(page);
    assert.deepEqual([sram.name, psram.name], ["sram", "psram"]);
    assert(sram.x === psram.x && sram.w === psram.w, "one axis of steps");
    assert(psram.y > sram.y + sram.h && sram.h >= 80 && psram.h >= 80, `${width}: ${JSON.stringify([sram, psram])}`);
    assert(sram.range.a1 < 4400 && psram.range.a1 > 80000, "each pool has a scale of its own");
  }
  await page.send("Emulation.setDeviceMetricsOverride", { width: 1400, height: 900, deviceScaleFactor: 1, mobile: false });
  assert((await page.text("#summary")).includes("sram 4.00 KiB of 4.00 KiB, psram "), await page.text("#summary"));
  // What lies at a point: a chunk of that pool, and in a hole whatever lies there.
  const [sram, psram] = await panes_of(page);
  const at = (pane, step, address) => [pane.x + (pane.w * (step - pane.s0)) / (pane.s1 - pane.s0), pane.y + pane.h * (1 - (address - pane.range.a0) / (pane.range.a1 - pane.range.a0))];
  for (const [pane, step, address, words] of [
    [sram, 1.5, 1600, "kept\n1.00 KiB (1 024 B) at 1536 in sram\n"], [sram, 5, 1600, "conv\n"], [sram, 9.5, 1600, "kept\n"],
    [sram, 6, 1100, "pinned"], [psram, 4, 100, "big\n"], [sram, 5, 1600, "at 1536 in sram"], [sram, 1.5, 1600, "no bytes in steps 3..7"],
  ]) {
    await page.mouse("mouseMoved", ...at(pane, step, address));
    const text = await page.text("#tip");
    assert(text.includes(words), `${words} is not in ${text}`);
  }
  await page.mouse("mouseMoved", ...at(sram, 6, 3000));
  assert.equal(await page.value("tip.hidden"), true, "strip needs only its lowest bytes in step 6");
  await page.mouse("mouseMoved", ...at(psram, 4.5, 0).map((value, axis) => value + 30 * axis));
  assert((await page.text("#tip")).includes("(60 000 B) alive in psram"), await page.text("#tip"));
  // The wheel zooms in the addresses of one pool and in the steps of all.
  await page.mouse("mouseWheel", ...at(psram, 4, 30000), { deltaX: 0, deltaY: -400 });
  const [above, below] = await panes_of(page);
  assert(above.range.a1 === sram.range.a1 && below.range.a1 - below.range.a0 < psram.range.a1 / 1.5, JSON.stringify([above, below]));
  assert(above.s1 - above.s0 < 8 && above.s1 === below.s1);
  const kept = await view_of(page);
  assert.equal(kept.length, 6);
  await page.value("new Promise((then) => setTimeout(then, 400))");
  const hash = await page.value("location.hash");
  await page.press("#whole");
  assert.notDeepEqual(await view_of(page), kept);
  await page.value("new Promise((then) => setTimeout(then, 400))");
  await page.value(`(() => { location.hash = ${JSON.stringify(hash)}; })()`);
  assert((await view_of(page)).every((value, place) => Math.abs(value - kept[place]) <= 1e-6 * Math.max(1, value)), "the address keeps the view of every pool");
  await page.press("#whole");
  // Down from the lowest chunk of a pool is the highest one of the next.
  await page.type("#search", "left");
  assert.deepEqual(await page.texts("#panel .chunk"), ["left"]);
  assert((await page.text("#panel")).includes("256 B at 256 in sram"));
  await page.press("#panel .chunk");
  assert((await page.text("#chosen")).startsWith("left\n"));
  await page.press("#whole");
  await page.value("(choose(6), canvas.focus())");
  await page.key("ArrowDown");
  assert((await page.text("#chosen")).startsWith("big\n"), await page.text("#chosen"));
  await page.key("ArrowUp");
  assert((await page.text("#chosen")).startsWith("tail\n"), await page.text("#chosen"));
  await page.key("ArrowUp");
  assert((await page.text("#chosen")).includes(" in sram\n"), await page.text("#chosen"));
  // The table names the pools, and filters by them.
  await page.value("(document.getElementById('tensors').open = true)");
  await page.type("#filter", "psram");
  assert.equal(await page.text("#rows-shown"), "2 of 2");
  await page.value("(document.getElementById('tensors').open = false)");
  // Two plans side by side have two rows of panes.
  await select(page, "beside", 1);
  const four = await panes_of(page);
  assert.deepEqual(four.map(({ name }) => name), ["sram", "psram", "sram", "psram"]);
  assert(four[2].x > four[0].x + four[0].w && four[2].y === four[0].y && four[3].y === four[1].y, JSON.stringify(four));
  await select(page, "beside", "");
  const svg = await page.value("svgOfView()");
  assert(["sram: 4.00 KiB", "psram: 78.", "url(#pinned)", "url(#reserved)", "id=\"reserved\""].every((part) => svg.includes(part)), svg.slice(0, 2000));
  await calm_but_for_the_fragment(page);
  await page.close();
  await every_size_and_theme(browser, path, "pools-page", screenshots);
  await a_picture(browser, page_of(input, "pools.svg"), "pools-picture", screenshots);
}

// Times of several streams are sums of clocks, and are not called steps.
async function streams(browser) {
  const input = join(folder, "streams.json");
  const chunks = [
    { id: 0, name: "a", begin: [0, 0], end: [2, 0], size: 64 }, { id: 1, name: "b", begin: [0, 0], end: [0, 2], size: 128, stream: 1 },
    { id: 2, name: "c", begin: [1, 0], end: [3, 1], size: 32 }, { id: 3, name: "d", begin: [2, 1], end: [4, 3], size: 96, stream: 1 },
  ];
  writeFileSync(input, JSON.stringify({ format: "memplan-problem/2", streams: 2, chunks }));
  const page = await browser.open(page_of(input, "streams.html"));
  await page.value("(document.getElementById('tensors').open = true)");
  await page.value("choose(0)");
  const text = await page.value("document.querySelector('main').innerText + document.querySelector('footer').innerText + svgOfView()");
  assert(text.includes("clock sum") && !/\bsteps?\b/.test(text.replace("the number of steps that are over", "")), text);
  await calm(page);
  await page.close();
}

async function calm_but_for_the_fragment(page) {
  assert.deepEqual(page.complaints, [], "nothing on the console");
}

async function a_real_model(browser) {
  const strategies = ["pushdown", "naive", "best"];
  const plans = strategies.map((strategy) => planned(model, strategy));
  const path = page_of(model, "model.html", "--strategy", strategies.join(","));
  for (const dark of [false, true]) {
    const page = await browser.open(path, { dark });
    if (screenshots) writeFileSync(join(screenshots, dark ? "dark.png" : "light.png"), await page.screenshot());
    for (const [at, plan] of plans.entries()) {
      await choose_strategy(page, at);
      await shows_the_plan(page, plan);
      // The larger ones can be hit with a pointer.
      const large = plan.chunks.filter((chunk) => chunk.size > plan.pool_size / 60 && own_begin(plan, chunk) < chunk.end);
      await hovering_tells_the_chunk(page, plan, large.filter((_, place) => place % 5 === 0));
    }
    if (dark) {
      // What a click does depends on no colour.
      await calm(page);
      await page.close();
      continue;
    }
    await clicking_lights_up_the_chain(page, plans[2]);
    await clicking_shows_the_front_space(page, plans[2]);
    await a_step_lists_who_is_alive(page, plans[2], plans[2].peak_step);
    await searching_finds_by_name(page, plans[2]);
    await page.press("#whole");
    await zoom_and_pan(page);
    await the_keyboard_chooses_chunks(page);
    await the_table_and_the_map_are_linked(page, plans[2]);
    await colours_group_the_chunks(page, plans[2]);
    await two_plans_stand_side_by_side(page, plans);
    await the_view_is_a_picture(page);
    await choose_strategy(page, 1);
    assert.equal(await page.value("document.getElementById('simulation').hidden"), true, "naive is not simulated");
    await choose_strategy(page, 0);
    await stepping_shows_the_queues(page, model);
    if (screenshots) writeFileSync(join(screenshots, "end.png"), await page.screenshot());
    await calm(page);
    await page.close();
  }
  await the_address_keeps_the_view(browser, path, plans[2]);
  await everything_by_keys_and_touch(browser, path);
  await the_view_is_saved(browser, path);
  await every_size_and_theme(browser, path, "model", screenshots);
  await on_paper(browser, path);
}

async function a_hostile_name(browser) {
  const bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
  const input = join(folder, "bad.json");
  writeFileSync(input, JSON.stringify({ format: "memplan-problem/1", chunks: [{ id: 0, name: bad, begin: 0, end: 2, size: 64 }] }));
  const page = await browser.open(page_of(input, "bad.html"));
  const plan = planned(input, "best");
  await shows_the_plan(page, plan);
  await hovering_tells_the_chunk(page, plan, plan.chunks);
  await calm(page);
  const drawn = await browser.open(page_of(input, "bad.svg"));
  assert.equal(await drawn.value("document.querySelectorAll('script, img').length"), 0);
  assert((await drawn.text("rect.c title")).startsWith(bad));
  await calm(drawn);
}

// Many chunks: the page opens, and its frames follow each other quickly while the map is zoomed.
async function many_chunks(browser, count, most) {
  const input = join(folder, `${count}.json`);
  let random = 1;
  const next = (below) => { random = (random * 48271) % 2147483647; return random % below; };
  const chunks = Array.from({ length: count }, (_, id) => ({ id, name: `t${id}`, begin: id, end: id + 1 + next(12), size: 64 * (1 + next(4000)) }));
  writeFileSync(input, JSON.stringify({ format: "memplan-problem/1", chunks }));
  const path = page_of(input, `${count}.html`, "--strategy", "pushdown");
  const bytes = statSync(path).size;
  assert(bytes < 150 * count, `the file has ${bytes} bytes`);
  const start = Date.now();
  const page = await browser.open(path);
  await shows_the_plan(page, planned(input, "pushdown"));
  const opened = Date.now() - start;
  // The time between frames, each with a turn of the wheel.
  const frames = await page.value(`(async () => {
    const frame = () => new Promise((then) => requestAnimationFrame(then));
    const frames = [], map = document.getElementById("map"), box = map.getBoundingClientRect();
    let last = await frame();
    for (let at = 0; at < 60; at++) {
      map.dispatchEvent(new WheelEvent("wheel", { deltaY: at % 20 < 10 ? 20 : -20, clientX: box.x + 400, clientY: box.y + 200, bubbles: true, cancelable: true }));
      const now = await frame();
      frames.push(now - last);
      last = now;
    }
    return frames.sort((a, b) => a - b);
  })()`);
  console.log(`${count} chunks: ${bytes} bytes, open in ${opened} ms; from frame to frame ${frames[30].toFixed(1)} ms (median), ${frames[57].toFixed(1)} ms (19 of 20), ${frames[59].toFixed(1)} ms (longest)`);
  assert(frames[30] < most, `a frame takes ${frames[30]} ms, more than ${most}`);
  await the_map_moves_as_a_picture(page);
  await calm(page);
  await page.close();
}

// A map that is slow to draw is shifted while it moves, and drawn anew once it rests.
async function the_map_moves_as_a_picture(page) {
  const [moved, rested] = await page.value(`(async () => {
    const after = (time) => new Promise((then) => setTimeout(then, time));
    const frame = () => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)));
    const copy = document.createElement("canvas"), brush = copy.getContext("2d", { willReadFrequently: true });
    Object.assign(copy, { width: canvas.width, height: canvas.height });
    const pixels = (...part) => {
      brush.drawImage(canvas, 0, 0);
      return new Uint32Array(brush.getImageData(...part).data.buffer);
    };
    const alike = (a, b) => a.filter((pixel, at) => pixel === b[at]).length / a.length;
    showAll();
    const [pane] = panes, middle = [pane.x + 100, pane.y + 100, Math.floor(pane.w) - 200, Math.floor(pane.h) - 200];
    zoom(pane, pane.x + pane.w / 2, pane.y + pane.h / 2, 0.5, true, true);
    await after(300);
    redraw();
    await frame();
    layer.took = 1000;
    if (layer.picture.width !== canvas.width) Object.assign(layer.picture, { width: canvas.width, height: canvas.height });
    layer.picture.getContext("2d").drawImage(canvas, 0, 0);
    const before = pixels(...middle);
    pan((-40 / pane.w) * (view.s1 - view.s0), 0);
    await frame();
    const moving = pixels(middle[0] + 40, ...middle.slice(1));
    await after(400);
    const resting = pixels(0, 0, canvas.width, canvas.height);
    redraw();
    await frame();
    return [alike(before, moving), alike(resting, pixels(0, 0, canvas.width, canvas.height))];
  })()`);
  assert(moved > 0.99, `only ${moved} of the picture moved`);
  assert.equal(rested, 1, "drawn anew at rest");
}

async function the_pictures(browser) {
  const example = "book/src/figures/example.json";
  for (const [name, input, ...more] of [
    ["map", model], ["example", example, "--strategy", "pushdown"], ["simulation", example, "--simulation"],
    ["orders", "book/src/figures/branches.json", "--reorder", "--alignment", "1"],
    ["narrow", example, "--strategy", "pushdown", "--width", "320"], ["narrow-simulation", example, "--simulation", "--width", "320"],
  ]) await a_picture(browser, page_of(input, `${name}.svg`, ...more), name, screenshots);
}

const browser = new Chromium();
try {
  for (const [words, test] of [
    ["the page of a real model", a_real_model],
    ["a hostile name", a_hostile_name],
    ["a peak of one step", a_narrow_peak],
    ["two plan files", two_files],
    ["pools one below the other", pools_one_below_the_other],
    ["sums of clocks", streams],
    ["pictures at every size", the_pictures],
    ["the chapters of the book", (browser) => every_chapter(browser, book, screenshots)],
    ["the book is searched", (browser) => the_book_is_searched(browser, book)],
    ["20 000 chunks are fluid", (browser) => many_chunks(browser, 20_000, 34)],
    ["10^5 chunks open", (browser) => many_chunks(browser, 100_000, 2_000)],
  ]) {
    await test(browser);
    console.log(`ok: ${words}`);
  }
} finally {
  await browser.close().catch(() => {});
  rmSync(folder, { recursive: true, force: true });
}
