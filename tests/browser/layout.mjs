// How pages look at the width of a desktop and of a phone, in both themes: nothing scrolls sideways, no text
// is cut off or too faint.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const DESKTOP = [1400, 900], PHONE = [390, 800], BETWEEN = [750, 900];
// The least height of letters, in pixels.
const LEGIBLE = 9;

// Shows a page in each size and theme, and hands a description of each to a check.
async function each_look(page, name, screenshots, check, sizes = [PHONE, DESKTOP]) {
  for (const [width, height] of sizes) {
    await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    for (const theme of width === BETWEEN[0] ? ["light"] : ["light", "dark"]) {
      await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: theme }] });
      await check(`${name}, ${width} wide, ${theme}`, width);
      if (screenshots) writeFileSync(join(screenshots, `${name}-${width}-${theme}.png`), await page.screenshot(true));
    }
  }
}

export async function every_size_and_theme(browser, path, name, screenshots) {
  const page = await browser.open(path, { width: PHONE[0], height: PHONE[1] });
  await page.value("(() => { for (const each of document.querySelectorAll('details')) each.open = true; })()");
  await each_look(page, name, screenshots, async (look) => {
    await page.value("1");
    assert.deepEqual(await page.now(`(${faults_of_layout})()`), [], look);
  });
  await page.close();
}

// What a printer gets, also from a dark screen: light, without controls, the map in its own proportions.
export async function on_paper(browser, path) {
  const page = await browser.open(path, { dark: true, width: 700, height: 1000 });
  await page.value("(() => { for (const each of document.querySelectorAll('details')) each.open = true; })()");
  const media = (media) => page.send("Emulation.setEmulatedMedia", { media, features: [{ name: "prefers-color-scheme", value: "dark" }] });
  await media("print");
  await page.value("1");
  assert.deepEqual(await page.now(`(${faults_of_layout})()`), [], "on paper");
  const { stretched, ground, controls, gap } = await page.now(`(() => {
    const canvas = document.getElementById("map"), box = canvas.getBoundingClientRect();
    const shown = (each) => each.getBoundingClientRect().width > 0;
    return {
      stretched: canvas.width / canvas.height / (box.width / box.height),
      ground: [...canvas.getContext("2d").getImageData(1, 1, 1, 1).data],
      controls: [...document.querySelectorAll("button:not(.chunk, th button), input")].filter(shown).map((each) => each.id),
      gap: document.getElementById("panel").getBoundingClientRect().top - box.bottom,
    };
  })()`);
  assert(Math.abs(stretched - 1) < 0.02, `the map is stretched: ${stretched}`);
  assert(ground[3] === 0 || ground.slice(0, 3).every((part) => part > 240), `the map is printed on ${ground}`);
  assert.deepEqual(controls, []);
  assert(gap >= 0 && gap < 20, `the panel is ${gap} pixels below the map`);
  const { data } = await page.send("Page.printToPDF", { paperWidth: 8.27, paperHeight: 11.69 });
  assert(Buffer.from(data, "base64").subarray(0, 5).toString() === "%PDF-");
  await media("screen");
  assert(await page.value("document.getElementById('whole').getBoundingClientRect().width > 0"), "the controls come back");
  await page.close();
}

// A picture by itself: all of its text lies within it, and can be read on what it lies on.
export async function a_picture(browser, path, name, screenshots) {
  const page = await browser.open(path);
  await each_look(page, name, screenshots, async (look) => {
    assert.deepEqual(await page.now(`(() => { ${contrast}; return (${faults_of_picture})(); })()`), [], look);
  });
  assert.deepEqual(page.complaints, []);
  await page.close();
}

export async function every_chapter(browser, book, screenshots) {
  const chapters = readdirSync(book).filter((name) => name.endsWith(".html") && !["404.html", "index.html", "print.html", "toc.html"].includes(name));
  assert(chapters.length > 30, `${book} has ${chapters.length} chapters`);
  for (const chapter of chapters) {
    const page = await browser.open(join(book, chapter), { width: PHONE[0], height: PHONE[1] });
    await each_look(page, chapter.replace(".html", ""), screenshots, async (look, width) => {
      assert.deepEqual(await page.now(`(${faults_of_layout})()`), [], look);
      for (const { source, shown } of await page.now("[...document.querySelectorAll('main img')].map((image) => ({ source: image.currentSrc, shown: image.clientWidth }))")) {
        const drawn = Number(/viewBox="0 0 ([\d.]+)/.exec(readFileSync(fileURLToPath(source), "utf8"))[1]);
        assert((11 * shown) / drawn >= LEGIBLE, `${look}: the letters of ${basename(source)} are ${((11 * shown) / drawn).toFixed(1)} pixels high`);
      }
      if (width === PHONE[0]) return;
      const wide = await page.now("[...document.querySelectorAll('pre code, .table-wrapper')].filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent.slice(0, 40))");
      assert.deepEqual(wide, [], `${look}: scrolls sideways`);
    }, [PHONE, BETWEEN, DESKTOP]);
    await page.close();
  }
}

// The book's own search finds a chapter by a word.
export async function the_book_is_searched(browser, book) {
  const page = await browser.open(join(book, "pools.html"));
  await page.press("#mdbook-search-toggle");
  await page.send("Input.insertText", { text: "separation" });
  let found = [];
  // The index may still be loading when the first key is pressed.
  for (let tries = 0; tries < 100 && found.length === 0; tries++) {
    await page.key("ArrowRight");
    found = await page.value("[...document.querySelectorAll('#mdbook-searchresults a')].map((each) => each.getAttribute('href'))");
  }
  assert(found.some((address) => address.startsWith("planner-optimal.html")), `found ${found}`);
  assert.deepEqual(page.complaints, []);
  await page.close();
}

// These run in the page.
const contrast = `
  const luminance = (parts) => parts.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (a, b) => { const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x); return (high + 0.05) / (low + 0.05); };
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number)`;

function faults_of_picture() {
  const faults = [], whole = document.documentElement.getBoundingClientRect();
  const fill = (selector) => { const found = document.querySelector(selector); return found ? numbers(getComputedStyle(found).fill) : null; };
  const page = fill(".page"), chunks = Array.from({ length: 10 }, (_, hue) => fill(`.c${hue}`)).filter(Boolean);
  for (const text of document.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    if (box.left < whole.left || box.right > whole.right || box.bottom > whole.bottom) faults.push(`${text.textContent}: beyond the edge`);
    const own = numbers(getComputedStyle(text).fill);
    for (const ground of text.classList.contains("name") ? chunks : [page]) {
      if (contrast(own, ground) < 4.5) faults.push(`${text.textContent}: contrast ${contrast(own, ground).toFixed(2)}`);
    }
  }
  if (document.querySelectorAll("text").length < 5) faults.push("hardly any text");
  return faults;
}

function faults_of_layout() {
  const faults = [];
  if (document.documentElement.scrollWidth > innerWidth) faults.push(`scrolls sideways: ${document.documentElement.scrollWidth}`);
  const luminance = (parts) => parts.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (a, b) => { const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x); return (high + 0.05) / (low + 0.05); };
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const parts = numbers(getComputedStyle(each).backgroundColor);
      if (parts.length === 3 || parts[3] === 1) return parts.slice(0, 3);
    }
    return [255, 255, 255];
  };
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || box.width === 0 || element.closest("script, option, .skip") || element.disabled) continue;
    const style = getComputedStyle(element), words = `${element.tagName} ${element.textContent.trim().slice(0, 30)}`;
    const seen = contrast(numbers(style.color).slice(0, 3), behind(element));
    if (seen < 4.5) faults.push(`${words}: contrast ${seen.toFixed(2)}`);
    if (!element.closest(".scroll, .queue, .table-wrapper, pre") && box.right > innerWidth + 1) faults.push(`${words}: beyond the edge`);
    if (!element.closest(".queue") && style.overflow === "hidden" && element.scrollWidth > element.clientWidth + 1) faults.push(`${words}: cut off`);
  }
  if (typeof ink === "object") {
    const parse = (hex) => { const full = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join("") : hex.slice(1); return [0, 2, 4].map((at) => parseInt(full.slice(at, at + 2), 16)); };
    for (let hue = 0; hue < HUES; hue++) if (contrast(parse(ink.ink), parse(ink[`c${hue}`])) < 4.5) faults.push(`names on colour ${hue}`);
    for (const name of ["soft", "mark"]) if (contrast(parse(ink[name]), parse(ink.page)) < 4.5) faults.push(`${name} on the page`);
  }
  return faults;
}

