// The list of runs as somebody works in it: found, grouped, tagged, looked at side by side, deleted.
import { strict as assert } from "node:assert";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { folder, open, remove, start, startHub, until } from "./lib.mjs";

export const workspace = {
  "runs are found by their parameters, grouped, tagged in their directories, and deleted after a question": async (
    c,
  ) => {
    const where = folder();
    const made = start([join(import.meta.dirname, "many_runs.py"), join(where, "missteps"), "40"], { cwd: where });
    assert.equal(await made.done, 0, made.err);
    const hub = await startHub(where);
    const page = (c.page = await open(c.browser, hub, "runs"));
    const shown = async (text) => page.waitForSelector(`[data-test=run-count]:text-is('${text}')`);
    await shown("40 runs");
    await page.fill("#run-search", "model:gpt batch >= 32");
    await page.waitForFunction(() => document.querySelectorAll("[data-test=runs] tr.pick").length < 20);
    const names = await page.$$eval("[data-test=runs] tr.pick a b", (all) => all.map((one) => one.textContent));
    assert.ok(names.length && names.every((name) => name.startsWith("gpt-")), names.join());
    assert.match(
      decodeURIComponent(await until(async () => /q=/.test(page.url()) && page.url(), "a link")),
      /model:gpt/,
    );
    await page.fill("#run-search", "");
    await page.selectOption("select[aria-label='Group the runs']", "model");
    await page.waitForSelector("tr.group:has-text('gpt')");
    await page.selectOption("select[aria-label='Group the runs']", "");
    const [first, second] = await page.$$eval("tr.pick a b", (all) => all.slice(0, 2).map((one) => one.textContent));
    for (const name of [first, second]) await page.check(`tr:has-text('${name}') input[type=checkbox]`);
    await page.click("text=Tag…");
    await page.fill("[role=dialog] input", "look here");
    await page.keyboard.press("Enter");
    await page.waitForSelector(`tr:has-text('${first}') .tag:has-text('look here')`);
    assert.match(readFileSync(join(where, "missteps", first, "labels.json"), "utf8"), /look here/);
    await page.click("[role=dialog] footer button");
    await page.click("button:has-text('Delete…')");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Cancel");
    await page.click("[data-test=delete-yes]");
    await shown("38 runs");
    assert.ok(!existsSync(join(where, "missteps", first)) && !existsSync(join(where, "missteps", second)));
    assert.deepEqual(page.bad, []);
    await page.context().close();
    await hub.stop();
    remove(where);
  },
};
