// The simulation of pushdown, event by event. An event holds the blocks between two used blocks as
// they are after it. The queue at any time is computed from the nearest one that is kept.

const KEPT = 512;
const BLOCKS = 300;
const simulationBox = document.getElementById("simulation");
const timeline = document.getElementById("time");
// The sheet simulated, its events, the queues that are kept, and the number of events shown.
const simulation = { sheet: null, events: [], kept: [[]], moment: 0 };

// Gives each event its step, the name of its action and its blocks.
function simulatedEvents(sheet) {
  const blocks = rows(sheet.simulation.blocks);
  let first = 0;
  return rows(sheet.simulation.events).map((event) => {
    const action = sheet.simulation.actions[event.action], next = first + event.blocks;
    const step = action === "free" ? sheet.ends[event.chunk] : sheet.begins[event.chunk];
    const used = { size: sheet.sizes[event.chunk] + (sheet.sizes[event.chunk] > 0 ? sheet.padding : 0), chunk: event.chunk };
    const own = blocks.slice(first, next).map((block) => (block.size > 0 ? { ...block, chunk: null } : used));
    first = next;
    const near = (away) => (away === null ? null : event.chunk + away);
    return { ...event, step, action, blocks: own, below: near(event.below), above: near(event.above) };
  });
}

function apply(queue, { below, above, blocks }) {
  const find = (chunk) => queue.findIndex((block) => block.chunk === chunk);
  const first = below === null ? 0 : find(below) + 1;
  const end = above === null ? queue.length : find(above);
  queue.splice(first, Math.max(0, end - first), ...blocks);
}

// The memory queue after this many events.
function queueAfter(number) {
  const { events, kept } = simulation;
  const from = Math.min(Math.floor(number / KEPT), kept.length - 1);
  const queue = kept[from].slice();
  for (let at = from * KEPT; at < number; at++) {
    apply(queue, events[at]);
    if ((at + 1) % KEPT === 0 && (at + 1) / KEPT === kept.length) kept.push(queue.slice());
  }
  return queue;
}

// The free blocks in the order in which an alloc tries them: size, then latest stamp, then age.
const freeQueue = (queue) => queue.filter((block) => block.chunk === null).sort((a, b) => a.size - b.size || b.stamp - a.stamp || a.age - b.age);

function drawQueue(id, label, blocks, now) {
  const row = document.getElementById(id), { numbers } = colouring(simulation.sheet);
  row.replaceChildren();
  element("b", label, row);
  for (const { size: bytes, chunk } of blocks.slice(0, BLOCKS)) {
    const name = chunk === null ? "free" : simulation.sheet.names[chunk];
    const box = element("div", `${name} ${short(bytes)}`, row, chunk === null ? "block free" : `block hue${numbers[chunk]}`);
    box.title = `${name}: ${size(bytes)}`;
    box.dataset.size = bytes;
    box.style.flexGrow = bytes;
    if (chunk === null) continue;
    if (chunk === now) box.classList.add("now");
    box.addEventListener("click", () => choose(chunk));
  }
  if (blocks.length > BLOCKS) element("div", `and ${blocks.length - BLOCKS} more`, row, "soft");
}

// Shows the queues after this many events.
function seek(number) {
  const { events, sheet } = simulation;
  const moment = (simulation.moment = Math.min(Math.max(number, 0), events.length));
  timeline.value = moment;
  const queue = queueAfter(moment), event = moment > 0 ? events[moment - 1] : null;
  document.getElementById("event").textContent = event === null
    ? `before the first of ${events.length} events`
    : `event ${moment} of ${events.length}: step ${event.step}, ${event.action} ${sheet.names[event.chunk]}`;
  drawQueue("memory-queue", "memory queue", queue, event && event.chunk);
  drawQueue("free-queue", "free queue", freeQueue(queue), null);
  document.getElementById("back").disabled = document.getElementById("first").disabled = moment === 0;
  document.getElementById("next").disabled = moment === events.length;
  state.simulated = event && event.step;
  redraw();
}

// The simulation stands under a plan that it made, and under no other.
function offerSimulation() {
  const { sheet, plan } = state.shown;
  const made = (plan.winner ?? plan.strategy) === "pushdown" && sheet.simulation.events.chunk.length > 0;
  simulationBox.hidden = !made;
  if (!made || !simulationBox.open) { state.simulated = null; return; }
  if (simulation.sheet !== sheet) {
    Object.assign(simulation, { sheet, events: simulatedEvents(sheet), kept: [[]], moment: 0 });
    timeline.max = simulation.events.length;
  }
  seek(simulation.moment);
}
