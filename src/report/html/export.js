// The view as a file: PNG from the canvas, or SVG from a pen that records what the map draws.

class SvgPen {
  constructor() {
    Object.assign(this, { parts: [], path: "", clips: 0, open: 0, dash: "", globalAlpha: 1, lineWidth: 1, textAlign: "left" });
  }

  static escape(text) { return String(text).replace(/[&<>"]/g, (letter) => `&#${letter.codePointAt(0)};`); }

  #paint(colour) { return `${colour}"${this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""}`; }

  #stroke() { return `fill="none" stroke="${this.#paint(this.strokeStyle)} stroke-width="${this.lineWidth}"${this.dash}`; }

  #box(x, y, w, h) { return [["x", x], ["y", y], ["width", Math.abs(w)], ["height", Math.abs(h)]].map(([name, value]) => `${name}="${value.toFixed(1)}"`).join(" "); }

  setLineDash(dash) { this.dash = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""; }

  fillRect(x, y, w, h) { this.parts.push(`<rect ${this.#box(x, y, w, h)} fill="${this.#paint(this.fillStyle)}/>`); }

  strokeRect(x, y, w, h) { this.parts.push(`<rect ${this.#box(x, y, w, h)} ${this.#stroke()}/>`); }

  beginPath() { this.path = ""; }

  moveTo(x, y) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`; }

  lineTo(x, y) { this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`; }

  stroke() { this.parts.push(`<path d="${this.path}" ${this.#stroke()}/>`); }

  rect(x, y, w, h) { this.clipped = this.#box(x, y, w, h); }

  save() {}

  clip() { this.parts.push(`<clipPath id="clip${this.clips}"><rect ${this.clipped}/></clipPath><g clip-path="url(#clip${this.clips++})">`); }

  restore() { this.parts.push("</g>"); }

  fillText(text, x, y) {
    const anchor = this.textAlign === "right" ? ' text-anchor="end"' : "";
    this.parts.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${this.fillStyle}"${anchor}${this.font === BOLD ? ' font-weight="600"' : ""}>${SvgPen.escape(text)}</text>`);
  }

  picture(width, height, title) {
    const lines = (strokes) => strokes.map(([x, y, dx, dy]) => `M${x} ${y}l${dx} ${dy}`).join("");
    const drawn = ([name, { ground, stroke, strokes }]) => `<pattern id="${name}" width="8" height="8" patternUnits="userSpaceOnUse">${ground ? `<rect width="8" height="8" fill="${ground}"/>` : ""}<path d="${lines(strokes)}" stroke="${stroke}"/></pattern>`;
    const pattern = Object.entries(patterns()).map(drawn).join("");
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="100%" role="img" font-family="system-ui, sans-serif" font-size="11"><title>${SvgPen.escape(title)}</title><defs>${pattern}</defs>\n${this.parts.join("\n")}\n</svg>\n`;
  }
}

function svgOfView() {
  const pen = new SvgPen();
  draw(pen, fillsOf((name) => `url(#${name})`));
  return pen.picture(canvas.clientWidth, canvas.clientHeight, `${page.title}: ${shownPlans().map(({ label }) => label).join(" and ")}`);
}

function save(blob, ending) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${page.title.replace(/[^\w.-]+/g, "_")}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

document.getElementById("save-svg").addEventListener("click", () => save(new Blob([svgOfView()], { type: "image/svg+xml" }), "svg"));
document.getElementById("save-png").addEventListener("click", () => canvas.toBlob((blob) => save(blob, "png")));
