// Connects the pointer, the keys and the controls to their functions.

const strategies = document.getElementById("strategy");
page.plans.forEach((each, at) => {
  const winner = each.winner === null ? "" : `: ${each.winner}`;
  element("option", `${each.strategy}${winner}, ${short(each.pool)}`, strategies).value = at;
});

function useStrategy(at) {
  plan = page.plans[at];
  const judgement = plan.pool === plan.bound ? "the lower bound"
    : `${(plan.pool / Math.max(plan.bound, 1)).toFixed(3)} × the lower bound, ${size(plan.bound)}${plan.proven ? "; proven smallest" : ""}`;
  document.getElementById("summary").textContent =
    `${counted(count, "chunk")}, ${counted(page.steps, "step")}; pool ${size(plan.pool)}, ${judgement}; one buffer each ${short(plan.naive)}`;
  view.a0 = 0;
  view.a1 = topAddress();
  tip.hidden = true;
  if (chosen !== null) choose(chosen);
  else if (shownStep !== null) chooseStep(shownStep);
  else redraw();
}

function inCanvas(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

let grip = null;
canvas.addEventListener("pointerdown", (event) => {
  grip = { at: inCanvas(event), moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const [x, y] = inCanvas(event);
  if (!grip) { hover(x, y); return; }
  const dx = x - grip.at[0], dy = y - grip.at[1];
  if (!grip.moved && Math.hypot(dx, dy) < 4) return;
  grip = { at: [x, y], moved: true };
  tip.hidden = true;
  pan((-dx / plot.w) * (view.s1 - view.s0), (dy / plot.h) * (view.a1 - view.a0));
});
canvas.addEventListener("pointerup", (event) => {
  const [x, y] = inCanvas(event), clicked = grip && !grip.moved;
  grip = null;
  if (!clicked) return;
  const at = chunkAt(x, y);
  if (at !== null) choose(at);
  else if (x >= plot.x && x <= plot.x + plot.w) chooseStep(Math.floor(stepAt(x)));
});
canvas.addEventListener("pointercancel", () => { grip = null; });
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("dblclick", showAll);
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const [x, y] = inCanvas(event);
  // Over an axis, the wheel zooms only that axis. With Shift, some wheels scroll sideways.
  const time = !event.altKey && x >= plot.x, addresses = !event.shiftKey && y <= plot.y + plot.h;
  zoom(x, y, Math.exp((event.deltaY || event.deltaX) * 0.0015), time, addresses);
}, { passive: false });

canvas.addEventListener("keydown", (event) => {
  const steps = (view.s1 - view.s0) / 10, addresses = (view.a1 - view.a0) / 10;
  const centre = [plot.x + plot.w / 2, plot.y + plot.h / 2];
  const answers = {
    ArrowLeft: () => pan(-steps, 0), ArrowRight: () => pan(steps, 0),
    ArrowUp: () => pan(0, addresses), ArrowDown: () => pan(0, -addresses),
    "+": () => zoom(...centre, 0.8, true, true), "-": () => zoom(...centre, 1.25, true, true),
    "0": showAll, Escape: clear,
  };
  if (answers[event.key]) { event.preventDefault(); answers[event.key](); }
});

strategies.addEventListener("change", () => useStrategy(Number(strategies.value)));
const searchField = document.getElementById("search");
searchField.addEventListener("input", () => search(searchField.value));
searchField.addEventListener("keydown", (event) => {
  const found = event.key === "Enter" ? searched(searchField.value) : [];
  if (found.length) { choose(found[0]); zoomTo(found[0]); }
});
document.getElementById("whole").addEventListener("click", () => {
  searchField.value = "";
  clear();
  showAll();
});
document.getElementById("first").addEventListener("click", () => seek(0));
document.getElementById("back").addEventListener("click", () => seek(moment - 1));
document.getElementById("next").addEventListener("click", () => seek(moment + 1));
timeline.addEventListener("input", () => seek(Number(timeline.value)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });
new ResizeObserver(fit).observe(canvas);

document.getElementById("title").textContent = page.title;
timeline.max = events.length;
document.querySelector("footer").hidden = events.length === 0;
readColours();
useStrategy(0);
clear();
showAll();
seek(0);
