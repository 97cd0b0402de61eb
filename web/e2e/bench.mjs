// The page's figures in a real browser, against a real hub: the bar of each beside what was measured.
// With --json: {"control", "rows": [{"case", "value", "unit"}]}; the control is one drawing of the curves over another.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import * as lib from "./lib.mjs";

const STATIC = join(lib.ROOT, "src/misstep/hub/static");
const AS_JSON = process.argv.includes("--json");
const EVERYTHING = process.argv.includes("--all");
const say = AS_JSON ? console.error : console.log;
const rows = [];
let control = 1;
const note = (name, value, unit, bar) => {
  rows.push({ case: name, value, unit, bar });
  say(
    `${name.padEnd(58)} ${String(Math.round(value * 10) / 10).padStart(9)} ${unit.padEnd(3)} bar ${bar} ${unit}  ${value <= bar ? "ok" : "OVER"}`,
  );
};
const middle = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];

const zipped = (names) =>
  names.reduce((sum, name) => sum + gzipSync(readFileSync(join(STATIC, name))).length, 0) / 1000;

/** What the page names itself, and the layout's thread; every other page comes when somebody goes there. */
function firstLoad() {
  const named = [
    ...readFileSync(join(STATIC, "index.html"), "utf8").matchAll(/(?:src|href)="\.\/([^"]+\.(?:js|css))"/g),
  ].map((found) => found[1]);
  const worker = readdirSync(join(STATIC, "assets"))
    .filter((name) => name.startsWith("worker-"))
    .map((name) => join("assets", name));
  return zipped(["index.html", ...named, ...worker]);
}

function everything() {
  return zipped([
    "index.html",
    ...readdirSync(join(STATIC, "assets"))
      .filter((name) => !name.endsWith(".map"))
      .map((name) => join("assets", name)),
  ]);
}

const PAINTED = () => window.__misstep?.graph?.painter.draws > 0 && window.__misstep.graph.painter.drawn > 0;
/** Some pixel of the heat map has a colour. */
const DRAWN = () => {
  const canvas = document.querySelector("[data-test=heat]");
  if (!canvas?.width) return false;
  const { data } = canvas.getContext("2d").getImageData(canvas.width / 2, canvas.height / 2, 1, 1);
  return data[3] > 0 && (data[0] !== data[1] || data[1] !== data[2]);
};
const TITLED = () => document.querySelector("h1") !== null;
const CURVES = () => (window.__misstep?.chart?.points ?? 0) > 100;

/** From the link to the moment something is there, median of three; scripts are in the browser's cache after the first. */
async function opened(browser, hub, path, there) {
  const times = [];
  const context = await lib.visitor(browser);
  await (await lib.visit(context, hub, "settings")).close();
  for (let round = 0; round < 3; round += 1) {
    const page = await context.newPage();
    const began = Date.now();
    await page.goto(lib.address(hub, path), { waitUntil: "commit" });
    await page.waitForFunction(there, null, { polling: "raf", timeout: 60_000 });
    times.push(Date.now() - began);
    await page.close();
  }
  await context.close();
  return middle(times);
}

/** Frames a second while the line of time of 5,000 operators plays. */
async function scrubbed(browser, hub) {
  const page = await lib.open(browser, hub, "runs/curve/debug?step=10000");
  await page.waitForFunction(() => (window.__misstep?.scrub?.line.value?.moments.length ?? 0) > 5000, null, {
    timeout: 60_000,
  });
  const rate = await page.evaluate(async () => {
    const { scrub } = window.__misstep;
    const total = scrub.line.value.moments.length;
    const began = performance.now();
    for (let frame = 0; frame < 90; frame += 1) {
      scrub.to(Math.floor((frame / 90) * total));
      await new Promise((yes) => requestAnimationFrame(yes));
    }
    return 90_000 / (performance.now() - began);
  });
  note("scrubber over 5,040 operators (frames a second, more is better)", -rate, "fps", -50);
  await page.context().close();
}

/** A folder with 5,000 runs, of which the hub knows nothing yet. */
async function manyRuns(browser) {
  const folder = lib.folder();
  const made = lib.start([join(lib.ROOT, "web/e2e/many_runs.py"), join(folder, "missteps")], { cwd: folder });
  if ((await made.done) !== 0) throw new Error(made.err);
  const hub = await lib.startHub(folder);
  const first = await lib.visit(await lib.visitor(browser), hub, "settings"); // the scripts, and nothing of the list
  const page = await first.context().newPage();
  const began = Date.now();
  await page.goto(lib.address(hub, "runs"), { waitUntil: "commit" });
  await page.waitForSelector("[data-test=runs] tr.pick");
  note("5,000 runs: link to first rows, the hub just started", Date.now() - began, "ms", 500);
  await page.waitForSelector("[data-test=run-count]:has-text('5,000 runs')", { timeout: 60_000 });
  const filters = [];
  for (const text of ["lr<1e-3", "found:nan model:gpt", "tag:bug or batch=96", ""])
    filters.push(
      await page.evaluate(async (asked) => {
        const input = document.querySelector("#run-search");
        const started = performance.now();
        input.value = asked;
        input.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((yes) => setTimeout(yes)); // what the change makes of the page
        return performance.now() - started;
      }, text),
    );
  note("5,000 runs: a search, from the key to the rows (worst of 4)", Math.max(...filters), "ms", 50);
  await page.context().close();
  await hub.stop();
  lib.remove(folder);
}

const where = lib.folder();
const browser = await lib.launch();
try {
  note("loaded at first, compressed", firstLoad(), "kB", 130);
  say(`all pages together, compressed: ${everything().toFixed(1)} kB`);
  const made = lib.start([join(lib.ROOT, "web/e2e/bench_runs.py"), where, ...(EVERYTHING ? ["--all"] : [])], {
    cwd: where,
  });
  if ((await made.done) !== 0) throw new Error(made.err);
  say(`graph of ${made.out.trim()} operators`);
  const hub = await lib.startHub(where);
  const painted = [];
  let page;
  for (let round = 0; round < 5; round += 1) {
    await page?.context().close();
    page = await lib.open(browser, hub, "runs");
    await page.waitForSelector("tr:has-text('graph50k')");
    await page.evaluate(() => {
      window.__began = performance.now();
      document.querySelector("a[href*=graph50k]").click();
    });
    painted.push(
      await page.evaluate(
        () =>
          new Promise((yes) => {
            const look = () =>
              window.__misstep?.graph?.painter.draws > 0 && window.__misstep.graph.painter.drawn > 0
                ? yes(performance.now() - window.__began)
                : requestAnimationFrame(look);
            look();
          }),
      ),
    );
  }
  note("50,400 operators: navigation to painted graph (median of 5)", middle(painted), "ms", 1000);
  const expands = [];
  const open = [];
  for (const key of ["layers[*]", "layers[1–200]", "layers.7"]) {
    open.push(key);
    expands.push(
      await page.evaluate(
        (wanted) =>
          new Promise((yes) => {
            const graph = window.__misstep.graph;
            const before = graph.scene;
            const began = performance.now();
            window.__misstep.setOpen(wanted);
            const look = () =>
              window.__misstep.graph.scene !== before
                ? requestAnimationFrame(() => yes(performance.now() - began))
                : requestAnimationFrame(look);
            look();
          }),
        open,
      ),
    );
  }
  note("open a scope: click to painted (worst of 3)", Math.max(...expands), "ms", 100);
  const frames = await page.evaluate(async () => {
    const { painter } = window.__misstep.graph;
    painter.set({ k: 1, x: -painter.scene.w / 2 + painter.w / 2, y: 0 });
    const times = [];
    let last = performance.now();
    for (let at = 0; at < 90; at += 1) {
      painter.pan(at % 2 ? 3 : -2, -9);
      await new Promise((yes) => requestAnimationFrame(yes));
      times.push(performance.now() - last);
      last = performance.now();
    }
    return { times: times.sort((a, b) => a - b), boxes: painter.scene.boxes.length };
  });
  note(
    `pan at 1:1, ${frames.boxes} boxes: 95th percentile of a frame`,
    frames.times[Math.floor(frames.times.length * 0.95)],
    "ms",
    50,
  );
  await page.context().close();
  if (EVERYTHING)
    note(
      "300,000 operators: link to painted graph",
      await opened(browser, hub, "runs/graph300k/debug", PAINTED),
      "ms",
      3000,
    );
  note("control: the settings page", await opened(browser, hub, "settings", TITLED), "ms", 1e9);
  note("10,000 steps: link to drawn curves", await opened(browser, hub, "runs/curve/scalars", CURVES), "ms", 500);
  note(
    "1e8 elements: link to first tile",
    await opened(browser, hub, "runs/huge/debug?node=big&tab=tensor&step=1", DRAWN),
    "ms",
    500,
  );
  await scrubbed(browser, hub);
  page = await lib.open(browser, hub, "runs/graph50k/scalars");
  await page.waitForSelector("[data-test=curve-loss]");
  const charts = [];
  for (let round = 0; round < 3; round += 1)
    charts.push(await page.evaluate(() => window.__misstep.chartBench(10, 100_000)));
  note("ten curves of 100,000 points drawn (median of 3)", middle(charts), "ms", 300);
  control = charts[2] / charts[1];
  await page.context().close();
  await hub.stop();
  await manyRuns(browser);
} finally {
  await browser.close();
  await lib.endAll();
  lib.remove(where);
}
if (AS_JSON)
  console.log(
    JSON.stringify({ control, rows: rows.map(({ bar, ...row }) => ({ ...row, value: Math.abs(row.value) })) }),
  );
process.exit(rows.some((row) => row.value > row.bar) ? 1 : 0);
