// The page's figures in a real browser, against a real hub: the bar of each beside what was measured.
// With --json: {"control", "rows": [{"case", "value", "unit"}]}; the control is one drawing of the curves over another.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import * as lib from "./lib.mjs";

const STATIC = join(lib.ROOT, "src/misstep/hub/static");
const AS_JSON = process.argv.includes("--json");
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

const where = lib.folder();
const browser = await lib.launch();
try {
  note("loaded at first, compressed", firstLoad(), "kB", 120);
  say(`all pages together, compressed: ${everything().toFixed(1)} kB`);
  const made = lib.start([join(lib.ROOT, "web/e2e/bench_runs.py"), where], { cwd: where });
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
  note("50,400 operators: navigation to painted graph (median of 5)", middle(painted), "ms", 1500);
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
  note("open a scope: click to painted (worst of 3)", Math.max(...expands), "ms", 300);
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
  await page.goto(lib.address(hub, "runs/graph50k/scalars"));
  await page.waitForSelector("[data-test=curve-loss]");
  const charts = [];
  for (let round = 0; round < 3; round += 1)
    charts.push(await page.evaluate(() => window.__misstep.chartBench(10, 100_000)));
  note("ten curves of 100,000 points drawn (median of 3)", middle(charts), "ms", 300);
  control = charts[2] / charts[1];
  await page.context().close();
  await hub.stop();
} finally {
  await browser.close();
  await lib.endAll();
  lib.remove(where);
}
if (AS_JSON) console.log(JSON.stringify({ control, rows: rows.map(({ bar, ...row }) => row) }));
process.exit(rows.some((row) => row.value > row.bar) ? 1 : 0);
