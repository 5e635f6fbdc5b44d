// The simulation of pushdown, event by event. An event says what lies between two used blocks
// after it; a state of the queue is made by walking from the nearest one that is kept.

const KEPT = 512;
const BLOCKS = 300;
const kept = [[]];
const timeline = document.getElementById("time");
let moment = 0;

function happen(queue, [, , , below, above, blocks]) {
  const find = (chunk) => queue.findIndex((block) => block[1] === chunk);
  const first = below === null ? 0 : find(below) + 1;
  const end = above === null ? queue.length : find(above);
  queue.splice(first, Math.max(0, end - first), ...blocks);
}

// The memory queue after so many events.
function queueAfter(events) {
  const from = Math.min(Math.floor(events / KEPT), kept.length - 1);
  const queue = kept[from].slice();
  for (let at = from * KEPT; at < events; at++) {
    happen(queue, page.events[at]);
    if ((at + 1) % KEPT === 0 && (at + 1) / KEPT === kept.length) kept.push(queue.slice());
  }
  return queue;
}

// In the order in which an alloc prefers them: size, then latest stamp, then age.
const freeQueue = (queue) => queue.filter((block) => block[1] === null).sort((a, b) => a[0] - b[0] || b[2] - a[2] || a[3] - b[3]);

function drawQueue(id, label, blocks, now) {
  const row = document.getElementById(id);
  row.replaceChildren();
  element("b", label, row);
  for (const [bytes, chunk] of blocks.slice(0, BLOCKS)) {
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

// Goes to the moment after so many events.
function seek(events) {
  moment = Math.min(Math.max(events, 0), page.events.length);
  timeline.value = moment;
  const queue = queueAfter(moment), event = moment > 0 ? page.events[moment - 1] : null;
  document.getElementById("event").textContent = event === null
    ? `before the first of ${page.events.length} events`
    : `event ${moment} of ${page.events.length}: step ${event[0]}, ${event[1]} ${page.names[event[2]]}`;
  drawQueue("memory-queue", "memory queue", queue, event && event[2]);
  drawQueue("free-queue", "free queue", freeQueue(queue), null);
  document.getElementById("back").disabled = document.getElementById("first").disabled = moment === 0;
  document.getElementById("next").disabled = moment === page.events.length;
  simulated = event && event[0];
  redraw();
}
