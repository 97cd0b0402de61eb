// What a person does after a crash: from the banner to the record, and with the bundle alone on another machine.
import { strict as assert } from "node:assert";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { folder, open, remove, start, until } from "./lib.mjs";
import { settled } from "./smoke.mjs";

export const BROKEN = "broken";

async function says(page, test, pattern) {
  await page.waitForSelector(`[data-test=${test}]`);
  assert.match(await page.textContent(`[data-test=${test}]`), pattern);
}

export const crashes = {
  "a run that failed links to its flight record, which names the line, the cause and the place": async (c) => {
    const page = (c.page = await open(c.browser, c.hub, `runs/${BROKEN}/debug`));
    await page.click("[data-test=to-record]");
    await says(
      page,
      "summary",
      /RuntimeError: mat1 and mat2.*step 4 · forward · embed \(Linear\).*train\.py.*step 3 was the last/s,
    );
    await says(page, "causes", /the inner sizes differ/);
    await says(page, "stack", /width = 9|width.*9/s);
    await page.click("#crash-order");
    await says(page, "order", /ran.*somewhere here\s*embed\/addmm.*not reached/s);
    await page.click("#crash-memory");
    await says(page, "holders", /blocks\.0\.fc\.weight/);
    await page.keyboard.press("l");
    await page.waitForSelector("[data-test=causes]:has-text('内侧维度不一致')");
    await page.waitForFunction(() => /\/crash\?.*tab=memory/.test(location.href));
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },
};

export const elsewhere = {
  "a bundle opens offline, on a machine that has nothing else of the run": async (c) => {
    const elsewhere = folder();
    copyFileSync(join(c.where, "missteps", BROKEN, "records", "crash.zip"), join(elsewhere, "sent.zip"));
    const served = start(["-m", "misstep", "open", "sent.zip", "--ui"], { cwd: elsewhere, env: { BROWSER: "true" } });
    const told = await until(
      () => /http\S+/.exec(served.out) ?? (served.child.exitCode !== null && [served.err]),
      "the page's address",
    );
    const address = new URL(told[0]);
    const hub = { url: address.origin, prefix: "", token: address.hash.replace("#token=", "") };
    const page = (c.page = await open(c.browser, hub, address.pathname.slice(1)));
    await settled(page);
    await says(page, "summary", /RuntimeError: mat1 and mat2/);
    await page.click("text=Open in the debugger");
    await page.waitForFunction(() => (window.__misstep?.graph?.scene.boxes.length ?? 0) > 5);
    assert.deepEqual(page.bad, []);
    await page.context().close();
    served.child.kill("SIGINT");
    await served.done;
    remove(elsewhere);
  },
};
