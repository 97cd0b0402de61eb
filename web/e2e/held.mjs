// Journeys through what lies still: a dump, two of them side by side, checkpoints. The data is made by misstep itself.
import { strict as assert } from "node:assert";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { api, inside, open, ROOT, start, train, until } from "./lib.mjs";
import { settled } from "./smoke.mjs";

/** Two trainings that differ in one epsilon, their checkpoints, and one step exported in MindSpore's layout. */
export async function twins(where, { program, script = join(ROOT, "web", "e2e", "twins.py") } = {}) {
  const one = (name, ...more) =>
    train(where, null, script, {
      name,
      level: "module",
      program,
      args: ["--dump", "*@0:2", "-q"],
      more: [`missteps/${name}.pth`, ...more],
    });
  const [left, right] = [one("left"), one("right", "0.05")];
  assert.equal(await left.done, 0, left.err);
  assert.equal(await right.done, 0, right.err);
  const exported = start(["-m", "misstep", "export", "left@1", "--format", "mindspore", "--to", "missteps/foreign"], {
    cwd: where,
  });
  assert.equal(await exported.done, 0, exported.err);
}

export const heldPages = {
  dumps: "runs/left/dumps?step=1&q=blocks.2.norm&tensor=blocks.2.norm:output@1%230&watch=max+%3E+2+on+*:output",
  comparison: "compare/dumps?a=left@1&b=right@1&q=norm",
  map: "compare/dumps?a=left@1&b=foreign&tab=map&q=head",
  checkpoints: "ckpt?a=left.pth&b=right.pth&q=embed&weight=model.embed.weight",
};

/** Bytes of an address of the hub, with the page's own cookie. */
async function bytes(page, href) {
  const answer = await page.request.get(href);
  assert.equal(answer.status(), 200);
  return answer.body();
}

export const held = {
  "a dump is searched, walked by step with the same tensor in sight, and downloaded": async (c) => {
    await c.twins;
    const page = (c.page = await open(c.browser, c.hub, "runs/left/dumps"));
    await page.waitForSelector("[data-test=dump-row]");
    await page.fill("#run-search", "op:LayerNorm shape:32,24 -blocks.0");
    await page.waitForFunction(() => document.querySelector("[data-test=dump-total]")?.textContent.startsWith("12 "));
    await page.click("[data-test=dump-row]:has-text('blocks.2.norm:output')");
    await page.waitForSelector("[data-test=heat]");
    await page.selectOption("[data-test=dump-step]", "2");
    await page.waitForFunction(() => location.search.includes("tensor=blocks.2.norm:output@2"));
    await page.waitForSelector(".tensor-facts:has-text('blocks.2.norm:output@2')");
    const file = await bytes(page, await page.evaluate(() => document.querySelector("[data-test=npy]").href));
    assert.equal(file.subarray(1, 6).toString(), "NUMPY");
    const link = page.url();
    await page.goto(link);
    await page.waitForSelector(".tensor-facts:has-text('blocks.2.norm:output@2')");
    await page.focus(".dump-list");
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction(() => !location.search.includes("blocks.2.norm:output"));
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },

  "watchpoints are asked of a folder of another tool, and a hit opens its tensor": async (c) => {
    await c.twins;
    const page = (c.page = await open(c.browser, c.hub, "dumps"));
    await page.click("[data-test=things] a:has-text('foreign')");
    await page.waitForSelector(".chip:has-text('MindSpore')");
    await page.fill("[data-test=check-words]", "max > 2 on *norm:output");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-test=check-count]");
    await page.click(".check-hit >> nth=0");
    await page.waitForSelector("[data-test=heat]");
    await page.waitForFunction(
      () => /tensor=blocks\.\d\.norm:output/.test(location.search) && location.search.includes("watch="),
    );
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },

  "two dumps open at the cause, starred, in sight, in the graph, and element by element": async (c) => {
    await c.twins;
    const page = (c.page = await open(c.browser, c.hub, "compare/dumps?a=left@1"));
    await page.selectOption("[data-test=pick-B]", "right");
    const cause = page.locator(".pair-row.chosen[data-part=cause]");
    await cause.waitFor();
    assert.match(await cause.textContent(), /blocks\.2\.norm:output/);
    const [box, list] = [await cause.boundingBox(), await page.locator("[data-test=pairs]").boundingBox()];
    assert.ok(box.y >= list.y && box.y + box.height <= list.y + list.height, "the cause is in sight");
    assert.match(await page.textContent("[data-test=summary]"), /blocks\.2\.norm:output/);
    await page.waitForSelector("[data-test=pair] [data-test=heat]");
    const worst = await until(
      () => inside(page, "m.errors && m.errors.worst().length > 5 ? m.errors.worst() : null"),
      "a coloured graph",
    );
    const heat = new Map(worst);
    assert.ok(
      heat.get("blocks.2.norm") > 0.5 && heat.get("blocks.0") === 0,
      "orange after the cause, nothing before it",
    );
    await page.focus("[data-test=pairs]");
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction(() => /row=blocks\.2:output/.test(location.search));
    await page.click("[data-test=pair] button:has-text('relative')");
    await page.waitForFunction(() => location.search.includes("mode=relative"));
    await settled(page);
    const other = (c.page = await open(c.browser, c.hub, page.url().replace(`${c.hub.url}/`, "")));
    await other.waitForSelector(".pair-row.chosen:has-text('blocks.2:output')");
    await other.click("[data-test=to-cause]");
    await other.waitForSelector(".pair-row.chosen[data-part=cause]");
    assert.deepEqual([...page.bad, ...other.bad], []);
    await page.context().close();
    await other.context().close();
  },

  "a pairing is edited, computed anew, and the map is the file that misstep diff reads": async (c) => {
    await c.twins;
    const page = (c.page = await open(c.browser, c.hub, "compare/dumps?a=left@1&b=right@1"));
    await page.waitForSelector(".pair-row.chosen");
    await page.click("[data-test=edit-pair]");
    assert.equal(await page.inputValue("[data-test=map-left]"), "blocks.2.norm");
    await page.fill("[data-test=map-left]", "blocks.0.fc");
    await page.fill("[data-test=map-right]", "blocks.1.fc");
    await page.click("[data-test=map-pair]");
    await page.click("[data-test=map-apply]");
    await page.waitForFunction(() => location.search.includes("map="));
    await page.waitForSelector(".pair-row:has-text('blocks.1.fc'):has-text('map')");
    const file = join(c.where, "map.toml");
    writeFileSync(
      file,
      await bytes(page, await page.evaluate(() => document.querySelector("[data-test=map-download]").href)),
    );
    const diff = start(["-m", "misstep", "diff", "left@1", "right@1", "--map", file, "--json"], { cwd: c.where });
    assert.equal(await diff.done, 3, diff.err);
    assert.ok(JSON.parse(diff.out).rows.some((row) => row.matched_by === "map"));
    await page.fill("[data-test=map-text]", "[names");
    await page.click("[data-test=map-apply]");
    await page.waitForSelector("[data-test=map-wrong]");
    await page.setInputFiles("[data-test=map-file]", file);
    await page.waitForFunction(() => document.querySelector("[data-test=map-text]").value.includes("blocks.1.fc"));
    assert.deepEqual(
      page.bad.filter((one) => !/maps|400/.test(one)),
      [],
    );
    await page.context().close();
  },

  "a checkpoint is shown weight by weight, and beside another with what changed": async (c) => {
    await c.twins;
    const page = (c.page = await open(c.browser, c.hub, "ckpt?a=left.pth"));
    await page.waitForSelector("[data-test=weight-row]");
    await page.click("[data-test=only-optimizer]");
    await page.waitForSelector("[data-test=weight-row]:has-text('exp_avg')");
    await page.selectOption("[data-test=pick-B]", "right.pth");
    await page.waitForSelector("[data-change=changed]");
    await page.click("[data-test=only-same]");
    await page.waitForFunction(
      () => document.querySelector("[data-change]") && !document.querySelector("[data-change=changed]"),
    );
    await page.click("[data-test=only-changed]");
    await page.click("[data-test=weight-row]:has-text('model.embed.weight')");
    await page.waitForSelector("[data-test=pair] .pill:has-text('out of tolerance')");
    const { things } = await api(c.hub, "things");
    assert.deepEqual(
      things.filter((one) => one.kind === "checkpoint").map((one) => one.name),
      ["left.pth", "right.pth"],
    );
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },
};
