// Drives a headless Chromium over its debugging pipe; needs nothing but Node.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const PATIENCE = 60_000;

export class Chromium {
  #next = 1;
  #answers = new Map();
  #listeners = [];
  #rest = "";

  constructor(program = process.env.CHROMIUM ?? "chromium") {
    this.profile = mkdtempSync(join(tmpdir(), "memplan-browser-"));
    this.process = spawn(program, [
      "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", `--user-data-dir=${this.profile}`,
    ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.process.on("error", (error) => this.#fail(error));
    this.process.on("exit", () => this.#fail(new Error("chromium ended")));
    this.process.stdio[3].on("error", (error) => this.#fail(error));
    this.process.stdio[4].setEncoding("utf8").on("data", (text) => this.#read(text));
  }

  #fail(error) {
    for (const { reject } of this.#answers.values()) reject(error);
    this.#answers.clear();
  }

  // Messages end with a zero byte.
  #read(text) {
    const parts = (this.#rest + text).split("\0");
    this.#rest = parts.pop();
    for (const part of parts) {
      const message = JSON.parse(part);
      const answer = this.#answers.get(message.id);
      if (!answer) {
        for (const listener of this.#listeners) listener(message);
        continue;
      }
      this.#answers.delete(message.id);
      if (message.error) answer.reject(new Error(message.error.message)); else answer.resolve(message.result);
    }
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${method}: no answer`)), PATIENCE);
      const then = (settle) => (value) => { clearTimeout(late); settle(value); };
      this.#answers.set(id, { resolve: then(resolve), reject: then(reject) });
      this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  on(listener) {
    this.#listeners.push(listener);
  }

  // Opens a file; records the page's console messages and network requests.
  async open(path, { dark = false, width = 1400, height = 900 } = {}) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await page.send(`${domain}.enable`);
    await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    page.address = pathToFileURL(path).href;
    const loaded = page.event("Page.loadEventFired");
    await page.send("Page.navigate", { url: page.address });
    await loaded;
    return page;
  }

  async close() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    await this.send("Browser.close").catch(() => this.process.kill());
    await ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  complaints = [];
  requests = [];

  constructor(browser, session, target) {
    Object.assign(this, { browser, session, target });
    browser.on(({ method, params, sessionId }) => {
      if (sessionId !== session) return;
      if (method === "Runtime.exceptionThrown") this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === "Runtime.consoleAPICalled") this.complaints.push(`console.${params.type}: ${params.args.map((each) => each.value).join(" ")}`);
      if (method === "Log.entryAdded") this.complaints.push(params.entry.text);
      if (method === "Network.requestWillBeSent" && !params.request.url.startsWith("data:")) this.requests.push(params.request.url);
    });
  }

  send(method, params) {
    return this.browser.send(method, params, this.session);
  }

  event(name) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${name}: did not come`)), PATIENCE);
      this.browser.on(({ method, sessionId, params }) => {
        if (method === name && sessionId === this.session) { clearTimeout(late); resolve(params); }
      });
    });
  }

  // The value of an expression in the page, after the next frame has been drawn.
  value(expression) {
    return this.now(`new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(() => then(${expression}))))`);
  }

  // The value of an expression in the page as it is.
  async now(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  text(selector) {
    return this.value(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? null`);
  }

  texts(selector) {
    return this.value(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((each) => each.textContent)`);
  }

  mouse(type, x, y, more = {}) {
    return this.send("Input.dispatchMouseEvent", { type, x, y, pointerType: "mouse", ...more });
  }

  async click(x, y) {
    await this.mouse("mouseMoved", x, y);
    await this.mouse("mousePressed", x, y, { button: "left", clickCount: 1 });
    await this.mouse("mouseReleased", x, y, { button: "left", clickCount: 1 });
  }

  async press(selector) {
    const [x, y] = await this.value(`(() => { const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()`);
    await this.click(x, y);
  }

  async key(key, { shift = false } = {}) {
    const text = key.length === 1 ? { text: key } : {};
    const code = { Tab: 9, Enter: 13 }[key], more = { modifiers: shift ? 8 : 0, ...(code ? { windowsVirtualKeyCode: code } : {}), ...(key === "Enter" ? { text: "\r" } : {}) };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, ...text, ...more });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, ...more });
    await this.value("1");
  }

  async type(selector, text) {
    await this.value(`(() => { const field = document.querySelector(${JSON.stringify(selector)}); field.focus(); field.select(); })()`);
    await this.send("Input.insertText", { text });
  }

  // A picture of what is in the window, or of the whole page as far as it is not endless.
  async screenshot(whole = false) {
    const { cssContentSize: { width, height } } = await this.send("Page.getLayoutMetrics");
    const clip = { x: 0, y: 0, width, height: Math.min(height, 6000), scale: 1 };
    const { data } = await this.send("Page.captureScreenshot", { format: "png", ...(whole ? { captureBeyondViewport: true, clip } : {}) });
    return Buffer.from(data, "base64");
  }

  close() {
    return this.browser.send("Target.closeTarget", { targetId: this.target });
  }
}
