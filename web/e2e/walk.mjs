// The walk through a debugger that MindSpore's own guide describes, as one journey on a run started after the page was
// opened: it waits, the graph comes, nodes are found, run to and looked at, a weight is compared with the step before,
// a watchpoint is set, training goes on by steps and freely until it trips, the cause is read, training is ended.
import { strict as assert } from "node:assert";
import { inside, open, startHub, train, until } from "./lib.mjs";
import { magenta } from "./smoke.mjs";

export async function phase(page, word) {
  await page.waitForFunction((text) => document.querySelector("[data-test=phase]")?.textContent.includes(text), word, {
    timeout: 20_000,
  });
}

/** The middle of a box once the graph stands still. */
async function middle(page, key) {
  let before = "";
  const box = await until(async () => {
    const now = await inside(page, `m.graph?.boxAt(${JSON.stringify(key)})`);
    const still = now && JSON.stringify(now) === before;
    before = JSON.stringify(now);
    return still && now;
  }, `${key} in the graph`);
  const canvas = await page.locator("[data-test=graph]").boundingBox();
  return [canvas.x + box.x + (box.w ?? 0) / 2, canvas.y + box.y + (box.h ?? 0) / 2];
}

async function started(c, hub) {
  const page = (c.page = await open(c.browser, hub, "runs"));
  await page.waitForSelector("text=No run yet");
  const run = train(c.empty, hub, c.script, { name: "first", args: ["--pause-at-start", "-q"], more: ["60", "0.01"] });
  c.processes.push(run);
  await page.waitForSelector("tr:has-text('first')", { timeout: 120_000 });
  await page.click("a:has-text('first')");
  await phase(page, "paused");
  return [page, run];
}

async function looked(page) {
  await page.click("[data-test=step]");
  await phase(page, "step 1");
  await page.waitForFunction(() => (window.__misstep?.graph?.scene.boxes.length ?? 0) > 10);
  // The list of nodes leads the graph.
  await page.fill("#node-search", "op:log");
  await page.click(".tree-row:has-text('blocks.2/log')");
  await page.waitForFunction(() => /node=blocks\.2\/log/.test(location.search));
  const [x, y] = await middle(page, "blocks.2/log");
  // Run to this node, from its menu; then one node on.
  await page.mouse.click(x, y, { button: "right" });
  await page.click("[role=menuitem]:has-text('Run to')");
  await phase(page, "blocks.2/log");
  await page.click("#tab-tensor");
  await page.waitForSelector(".tensor-facts .chip:has-text('live')");
  await page.click("#tab-node");
  await page.waitForSelector("#tab-panel:has-text('float32'), #tab-panel:has-text('f32')");
  await page.keyboard.press("F10");
  await page.waitForFunction(() => !document.querySelector("[data-test=phase]").textContent.includes("blocks.2/log"));
}

/** A weight against the step before: not kept so far, so it is kept now, and two steps are run. */
async function compared(page) {
  await page.fill("#node-search", "head.weight");
  await page.click(".tree-row:has-text('head.weight')");
  await page.fill("#step-count", "1");
  await page.click("[data-test=step]");
  await phase(page, "paused at step 2");
  await page.click("#tab-compare");
  await page.waitForSelector("[data-test=keep-and-step], [data-test=differences]");
  if (await page.isVisible("[data-test=keep-and-step]")) await page.click("[data-test=keep-and-step]");
  await page.waitForSelector("[data-test=differences]:has-text('%')", { timeout: 20_000 });
  page.bad = page.bad.filter((one) => !/404|status of 404/.test(one)); // what was not kept was asked for once
}

async function caught(page) {
  await page.click("[data-test=lower-watch]");
  await page.click("[data-test=watch-add]");
  await page.selectOption(".watch-editor select", "tensor_overflow");
  await page.click("[data-test=watch-save]");
  await page.waitForSelector(".watch-line");
  await page.click("[data-test=continue]");
  await phase(page, "watchpoint");
  await page.click("[data-test=lower-hits]");
  await page.click("[data-test=origin]");
  assert.match(page.url(), /node=blocks\.2\/log/);
  await page.click("#tab-tensor");
  await until(() => magenta(page), "NaN in magenta");
  await page.click("#tab-source");
  assert.match(await page.textContent("[data-test=source-line]"), /torch\.log/);
}

export const firstRun = {
  "an empty page waits, a run that starts appears by itself, and the debugger's walk is done on it": async (c) => {
    const hub = await startHub(c.empty);
    const [page, run] = await started(c, hub);
    await looked(page);
    await compared(page);
    await caught(page);
    await page.click("[data-test=terminate]");
    await page.click("[data-test=terminate-yes]");
    await run.done;
    await page.waitForSelector("[data-test=continue]", { state: "detached" });
    assert.deepEqual(page.bad, []);
    await page.context().close();
    await hub.stop();
  },
};
