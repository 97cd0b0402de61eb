// Journeys over studies: one with everything in it, one of ten thousand trials.
import { strict as assert } from "node:assert";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import * as lib from "./lib.mjs";
import { settled } from "./smoke.mjs";

/** Both studies in a folder of runs. */
export async function makeStudies(where) {
  mkdirSync(join(where, "missteps"), { recursive: true });
  const made = lib.start([join(lib.ROOT, "web/e2e/studies.py"), join(where, "missteps")], { cwd: where });
  assert.equal(await made.done, 0, made.err);
}

export const studyPages = { studies: "studies", study: "studies/mlp?sel=3,5" };

export const studies = {
  "a study shows its trials, what differs between two, and a filter narrows them": async (context) => {
    await context.studies;
    context.page = await lib.open(context.browser, context.hub, "studies");
    const page = context.page;
    await page.getByRole("link", { name: "mlp" }).click();
    await page.waitForSelector("[data-test=study][data-trials='60']");
    await page.fill("[data-test=trials] input:not([type=checkbox])", "state:pruned");
    await page.waitForSelector(".trial-state.is-pruned");
    assert.equal(await page.locator(".trial-state.is-complete").count(), 0);
    await page.fill("[data-test=trials] input:not([type=checkbox])", "");
    const boxes = page.locator(".trials-row input[type=checkbox]");
    await boxes.nth(0).check();
    await boxes.nth(1).check();
    await page.waitForSelector("[data-test=differs]");
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },
  "ten thousand trials are listed and can be sorted": async (context) => {
    await context.studies;
    context.page = await lib.open(context.browser, context.hub, "studies/many");
    const page = context.page;
    await page.waitForSelector("[data-test=study][data-trials='10000']");
    await page.locator(".trials-head button", { hasText: "value" }).click();
    await settled(page);
    assert.ok((await page.locator(".trials-row").count()) < 60);
    assert.ok(await page.locator(".trials-row.best").count());
    await page.context().close();
  },
};
