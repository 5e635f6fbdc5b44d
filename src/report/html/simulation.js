// The simulation of pushdown, event by event. An event holds the blocks between two used blocks as
// they are after it. The queue at any time is computed from the nearest one that is kept.

const KEPT = 512;
const BLOCKS = 300;
const kept = [[]];
const timeline = document.getElementById("time");
const events = simulatedEvents(page.simulation);
let moment = 0;

// Gives each event its step, the name of its action and its blocks.
function simulatedEvents(simulation) {
  const blocks = rows(simulation.blocks);
  let first = 0;
  return rows(simulation.events).map((event) => {
    const action = simulation.actions[event.action], past = first + event.blocks;
    const step = action === "free" ? page.ends[event.chunk] : page.begins[event.chunk];
    const own = blocks.slice(first, past).map((block) => ({ ...block, chunk: block.stamp === null ? event.chunk : null }));
    first = past;
    return { ...event, step, action, blocks: own };
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
  const row = document.getElementById(id);
  row.replaceChildren();
  element("b", label, row);
  for (const { size: bytes, chunk } of blocks.slice(0, BLOCKS)) {
    const name = chunk === null ? "free" : page.names[chunk];
    const box = element("div", `${name} ${short(bytes)}`, row, chunk === null ? "block free" : "block");
    box.title = `${name}: ${size(bytes)}`;
    box.dataset.size = bytes;
    box.style.flexGrow = bytes;
    if (chunk === null) continue;
    box.style.background = `var(--c${colour(chunk)})`;
    if (chunk === now) box.classList.add("now");
    box.addEventListener("click", () => choose(chunk));
  }
  if (blocks.length > BLOCKS) element("div", `and ${blocks.length - BLOCKS} more`, row, "soft");
}

// Shows the queues after this many events.
function seek(number) {
  moment = Math.min(Math.max(number, 0), events.length);
  timeline.value = moment;
  const queue = queueAfter(moment), event = moment > 0 ? events[moment - 1] : null;
  document.getElementById("event").textContent = event === null
    ? `before the first of ${events.length} events`
    : `event ${moment} of ${events.length}: step ${event.step}, ${event.action} ${page.names[event.chunk]}`;
  drawQueue("memory-queue", "memory queue", queue, event && event.chunk);
  drawQueue("free-queue", "free queue", freeQueue(queue), null);
  document.getElementById("back").disabled = document.getElementById("first").disabled = moment === 0;
  document.getElementById("next").disabled = moment === events.length;
  simulated = event && event.step;
  redraw();
}
