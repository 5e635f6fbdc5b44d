// The map while it moves. Many chunks take longer to draw than a frame lasts, so that the last picture of them
// is shifted and scaled instead; once the view rests, they are drawn again.

const SLOW = 6, REST = 120;
// The last picture, the view it shows, the milliseconds it took, and that more than the view has changed.
const layer = { picture: document.createElement("canvas"), view: null, took: 0, stale: true };
let resting = 0;

// The picture shows most of the view, and is not enlarged much.
function serves() {
  if (layer.stale || layer.took < SLOW || layer.view === null) return false;
  const old = layer.view;
  const near = (low, high, oldLow, oldHigh) => {
    const span = high - low, seen = Math.min(high, oldHigh) - Math.max(low, oldLow);
    return seen > 0.7 * span && oldHigh - oldLow < 2 * span;
  };
  return near(view.s0, view.s1, old.s0, old.s1) && view.pools.every(({ a0, a1 }, row) => near(a0, a1, old.pools[row].a0, old.pools[row].a1));
}

function drawFrame(pen, fills) {
  if (serves()) {
    drawMoved(pen, fills);
    clearTimeout(resting);
    resting = setTimeout(redraw, REST);
    return;
  }
  const start = performance.now(), { picture } = layer;
  draw(pen, fills);
  Object.assign(layer, { took: performance.now() - start, view: { ...view, pools: view.pools.map((range) => ({ ...range })) }, stale: false });
  if (layer.took < SLOW) return;
  if (picture.width !== canvas.width || picture.height !== canvas.height) Object.assign(picture, { width: canvas.width, height: canvas.height });
  picture.getContext("2d").drawImage(canvas, 0, 0);
}

// Draws the last picture at its place in the view, and the axes of the view.
function drawMoved(pen, fills) {
  const old = layer.view, ratio = canvas.width / canvas.clientWidth;
  clean(pen);
  for (const pane of panes) {
    const { x, y, w, h, timeTop, timeHeight } = pane, left = pane.px(old.s0), right = pane.px(old.s1), range = old.pools[pane.row], top = pane.py(range.a1), bottom = pane.py(range.a0);
    const part = (from, height, low, high) => pen.drawImage(layer.picture, x * ratio, from * ratio, w * ratio, height * ratio, left, low, right - left, high - low);
    pen.save();
    pen.beginPath();
    pen.rect(x, y, w, h);
    pen.clip();
    drawGround(pen, pane, fills);
    part(y, h, top, bottom);
    pen.restore();
    pen.save();
    pen.beginPath();
    pen.rect(x, timeTop, w, timeHeight);
    pen.clip();
    part(timeTop, timeHeight, timeTop, timeTop + timeHeight);
    pen.restore();
    drawAxes(pen, pane);
  }
}
