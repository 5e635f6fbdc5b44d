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
  return [["s0", "s1"], ["a0", "a1"]].every(([low, high]) => {
    const span = view[high] - view[low], seen = Math.min(view[high], old[high]) - Math.max(view[low], old[low]);
    return seen > 0.7 * span && old[high] - old[low] < 2 * span;
  });
}

function drawFrame(pen, free) {
  if (serves()) {
    drawMoved(pen, free);
    clearTimeout(resting);
    resting = setTimeout(redraw, REST);
    return;
  }
  const start = performance.now(), { picture } = layer;
  draw(pen, free);
  Object.assign(layer, { took: performance.now() - start, view: { ...view }, stale: false });
  if (layer.took < SLOW) return;
  if (picture.width !== canvas.width || picture.height !== canvas.height) Object.assign(picture, { width: canvas.width, height: canvas.height });
  picture.getContext("2d").drawImage(canvas, 0, 0);
}

// Draws the last picture at its place in the view, and the axes of the view.
function drawMoved(pen, free) {
  const old = layer.view, ratio = canvas.width / canvas.clientWidth;
  clean(pen);
  for (const pane of panes) {
    const { x, y, w, h, timeTop, timeHeight } = pane, left = pane.px(old.s0), right = pane.px(old.s1), top = pane.py(old.a1), bottom = pane.py(old.a0);
    const part = (from, height, low, high) => pen.drawImage(layer.picture, x * ratio, from * ratio, w * ratio, height * ratio, left, low, right - left, high - low);
    pen.save();
    pen.beginPath();
    pen.rect(x, y, w, h);
    pen.clip();
    drawGround(pen, pane, free);
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
