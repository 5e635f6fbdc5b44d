// Opens the page of a model in a real browser and compares what it shows with the plans that the
// tool prints.
//
//     node tests/browser/run.mjs MEMPLAN MODEL [FOLDER-FOR-SCREENSHOTS]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Chromium } from "./chromium.mjs";

const [tool, model, screenshots] = process.argv.slice(2);
assert(tool && model, "give the tool and a model");
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
    await clicking_lights_up_the_chain(page, plans[2]);
    await clicking_shows_the_front_space(page, plans[2]);
    await a_step_lists_who_is_alive(page, plans[2], plans[2].peak_step);
    await searching_finds_by_name(page, plans[2]);
    await page.press("#whole");
    await zoom_and_pan(page);
    await stepping_shows_the_queues(page, model);
    if (screenshots) writeFileSync(join(screenshots, dark ? "dark-end.png" : "light-end.png"), await page.screenshot());
    await calm(page);
    await page.close();
  }
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

// Many chunks: how long a frame takes while the map is panned, and that the page opens.
async function many_chunks(browser, count, most) {
  const input = join(folder, `${count}.json`);
  let random = 1;
  const next = (below) => { random = (random * 48271) % 2147483647; return random % below; };
  const chunks = Array.from({ length: count }, (_, id) => ({ id, name: `t${id}`, begin: id, end: id + 1 + next(12), size: 64 * (1 + next(4000)) }));
  writeFileSync(input, JSON.stringify({ format: "memplan-problem/1", chunks }));
  const path = page_of(input, `${count}.html`, "--strategy", "pushdown");
  const start = Date.now();
  const page = await browser.open(path);
  await shows_the_plan(page, planned(input, "pushdown"));
  const opened = Date.now() - start;
  // From the beginning of the frame that draws a turn of the wheel until the next one begins.
  const [drawing, frames] = await page.value(`new Promise(async (done) => {
    const drawing = [], frames = [], map = document.getElementById("map"), box = map.getBoundingClientRect();
    for (let at = 0; at < 30; at++) {
      map.dispatchEvent(new WheelEvent("wheel", { deltaY: at % 2 ? 40 : -40, clientX: box.x + 400, clientY: box.y + 200, bubbles: true, cancelable: true }));
      frames.push(await new Promise((then) => requestAnimationFrame((start) => requestAnimationFrame(() => then(performance.now() - start)))));
      drawing.push(Number(map.dataset.frame));
    }
    done([drawing, frames].map((times) => times.sort((a, b) => a - b)));
  })`);
  const ms = (times) => `${times[15].toFixed(1)} ms (median), ${times[29].toFixed(1)} ms (longest of 30)`;
  console.log(`${count} chunks: open in ${opened} ms, a frame takes ${ms(frames)}, its drawing ${ms(drawing)}`);
  assert(frames[15] < most, `a frame takes ${frames[15]} ms, more than ${most}`);
  await calm(page);
  await page.close();
}

const browser = new Chromium();
try {
  for (const [words, test] of [
    ["the page of a real model", a_real_model],
    ["a hostile name", a_hostile_name],
    ["10^4 chunks are fluid", (browser) => many_chunks(browser, 10_000, 50)],
    ["10^5 chunks open", (browser) => many_chunks(browser, 100_000, 2_000)],
  ]) {
    await test(browser);
    console.log(`ok: ${words}`);
  }
} finally {
  await browser.close().catch(() => {});
  rmSync(folder, { recursive: true, force: true });
}
