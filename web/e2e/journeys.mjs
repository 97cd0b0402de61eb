// What a person does, one story each; the name is the fact that holds afterwards.
import { strict as assert } from "node:assert";
import { api, inside, open, order, until } from "./lib.mjs";
import { proxy } from "./prefix.mjs";
import { magenta, settled } from "./smoke.mjs";
import { phase } from "./walk.mjs";

export const RUN = "story";
export const PAUSE = ["--pause-at-start", "--watch", "tensor_overflow", "--then", "pause", "-q"];

/** A training that was started at the beginning and waits for us; several journeys move it on in turn. */
async function live(c, name) {
  await until(
    async () => (await api(c.hub, "runs")).runs.some((one) => one.run === name && one.live && one.phase === "paused"),
    `${name} waits`,
    60_000,
  );
}

export const journeys = {
  "a link opens on the guilty node without a click, never on a mask": async (c) => {
    assert.equal(await c.gpt.done, 0, c.gpt.err);
    const page = (c.page = await open(c.browser, c.hub, "runs/gpt/debug"));
    await page.waitForSelector("[data-test=verdict]:has-text('NaN born in blocks.3/log — step 5, forward')");
    await page.waitForFunction(() => /node=blocks\.3\/log&.*step=5/.test(location.search));
    await page.waitForSelector("[data-test=origin].chosen");
    assert.match(await page.textContent("[data-test=masks]"), /6 attention masks/);
    assert.equal(await page.textContent("[data-test=state]"), "finished · NaN at step 5");
    const box = await until(() => inside(page, "m.graph?.boxAt('blocks.3/log')"), "the node in the graph");
    assert.ok(box.x > 0 && box.y > 0, "it is in sight");
    assert.equal(await inside(page, "m.graph.painter.marks.origins.size"), 1);
    await page.click("[data-test=copy-report]");
    assert.match(
      await page.evaluate(() => navigator.clipboard.readText()),
      /NaN born in blocks\.3\/log[\s\S]*torch\.log/,
    );
    await page.goto(`${c.hub.url}/runs`);
    await page.waitForSelector(
      "tr:has-text('gpt'):has-text('finished · NaN'):has-text('NaN born in blocks.3/log, step 5')",
    );
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },

  "the line of time lights the graph up, and the NaN is seen being born": async (c) => {
    const page = (c.page = await open(c.browser, c.hub, "runs/gpt/debug"));
    await page.waitForFunction(
      () => window.__misstep?.scrub?.line.value?.moments.length > 300 && window.__misstep.graph,
    );
    await page.focus("[data-test=time-line]");
    await page.keyboard.press("ArrowLeft");
    const bad = () =>
      inside(
        page,
        "m.graph.painter.marks.flow && [...m.graph.painter.marks.flow.bad].filter((at) => at <= m.graph.painter.marks.flow.at).length",
      );
    assert.equal(
      await until(async () => ((await bad()) === 0 ? "none" : ""), "just before the birth nothing is bad"),
      "none",
    );
    await page.keyboard.press("ArrowRight");
    await until(async () => (await bad()) > 0, "born");
    await page.waitForFunction(() => /node=blocks\.3\/log/.test(location.search));
    await page.keyboard.press("End");
    await until(async () => (await bad()) > 5, "and spread");
    await page.click("[data-test=time-stop]");
    await page.click("[data-test=time-steps]");
    await page.waitForSelector("[data-test=time-curve]");
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },

  "without the link's token the page says how to get one": async (c) => {
    const context = await c.browser.newContext();
    const page = (c.page = await context.newPage());
    await page.goto(`${c.hub.url}/runs`);
    await page.waitForSelector("[data-test=denied]:has-text('misstep ui --open')");
    await context.close();
  },

  "the NaN cells of a kept tensor are magenta, one by one with N": async (c) => {
    const page = (c.page = await open(c.browser, c.hub, "runs/dumped/debug"));
    await page.waitForSelector("[data-test=heat]");
    await until(() => magenta(page), "magenta pixels");
    await page.waitForSelector("[data-test=verdict]:has-text('NaN born in blocks.2/log — step 5, forward')");
    await page.click(".top h1"); // focus leaves every field
    await page.keyboard.press("n");
    await page.waitForSelector(".cell-line:has-text('NaN')");
    await page.click("button:has-text('numbers')");
    await page.waitForSelector(".numbers .nan");
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },

  "a link opens exactly the view it was copied from": async (c) => {
    const page = (c.page = await open(
      c.browser,
      c.hub,
      "runs/dumped/debug?open=blocks.2;blocks[*]&node=blocks.2/log&tab=tensor&step=5",
    ));
    await page.waitForSelector("[data-test=heat]");
    await page.waitForFunction(() => window.__misstep?.graph);
    await page.fill("[data-test=slice]", "0:8,:");
    await page.keyboard.press("Enter");
    await inside(page, "m.graph.painter.set({k: 0.77, x: 111, y: 55})");
    await page.waitForFunction(() => location.search.includes("cam=0.770") && location.search.includes("slice="));
    const link = page.url();
    const other = (c.page = await open(c.browser, c.hub, link.replace(`${c.hub.url}/`, "")));
    await other.waitForSelector("[data-test=heat]");
    await other.waitForFunction(() => window.__misstep?.graph && window.__misstep.heat?.rows === 8);
    assert.deepEqual(await inside(other, "m.graph.camera"), { k: 0.77, x: 111, y: 55 });
    assert.equal(await inside(other, "m.graph.boxAt('blocks.2')?.open"), true);
    await page.context().close();
    await other.context().close();
  },

  "two tensors are compared by step, with the differences counted": async (c) => {
    const page = (c.page = await open(
      c.browser,
      c.hub,
      "runs/dumped/debug?node=blocks.2/log&tab=compare&step=5&vs=step:5&mode=a",
    ));
    await page.waitForSelector(".pill:has-text('out of tolerance')");
    assert.match(await page.textContent(".tensor-facts"), /0 % out of tolerance/);
    await until(() => magenta(page), "A has its NaN");
    await page.context().close();
  },

  "everything can be reached with the keyboard alone": async (c) => {
    const page = (c.page = await open(c.browser, c.hub, "runs"));
    await settled(page);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("dumped");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-test=origin].chosen");
    await page.keyboard.press("/");
    await page.keyboard.type("op:relu");
    await page.waitForSelector(".found-count");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /node=blocks\.0\/relu/.test(location.search));
    await page.keyboard.press("Escape");
    await page.focus("#tree");
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction(() => !/node=blocks\.0\/relu/.test(location.search));
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("j");
    await page.waitForFunction(() => location.search.includes("hit="));
    const before = await page.evaluate(() => document.documentElement.dataset.theme);
    await page.keyboard.press("t");
    assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), before);
    await page.keyboard.press("l");
    await page.waitForSelector("h1:has-text('调试器')");
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.waitForSelector("[data-test=curve-loss]");
    await page.keyboard.press("?");
    await page.waitForSelector("[role=dialog]");
    await page.keyboard.press("Escape");
    await page.waitForSelector("[role=dialog]", { state: "detached" });
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },

  "several nodes are chosen with a rectangle, every hit is listed, and a panel is saved as a file": async (c) => {
    const page = (c.page = await open(c.browser, c.hub, "runs/dumped/debug"));
    await page.waitForSelector("[data-test=origin].chosen");
    const { total } = await api(c.hub, "runs/dumped/hits?limit=1");
    assert.ok(total > 1000, `${total} hits are more than a page`);
    await page.waitForSelector("[data-test=more-hits]", { state: "detached" });
    const box = await until(() => inside(page, "m.graph?.boxAt('blocks.2/log')"), "the origin in the graph");
    const canvas = await (await page.$("[data-test=graph]")).boundingBox();
    const [x, y] = [canvas.x + box.x, canvas.y + box.y];
    await page.keyboard.down("Shift");
    await page.mouse.move(x - 20, y - 6);
    await page.mouse.down();
    await page.mouse.move(x + box.w + 4, y + box.h + 2, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await page.waitForSelector("[role=menu]:has-text('Copy 1 names')");
    await page.keyboard.press("Escape");
    for (const [panel, words, file] of [
      [".graph", "Drawing (.svg)", "dumped-graph.svg"],
      [".graph", "Picture (.png)", "dumped-graph.png"],
      [".hits-panel", "Table (.csv)", "dumped-hits.csv"],
    ]) {
      await page.click(`${panel} [data-test=more]`);
      const [saved] = await Promise.all([page.waitForEvent("download"), page.click(`text=${words}`)]);
      assert.equal(saved.suggestedFilename(), file);
    }
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },

  "an input method composing Chinese fires no shortcut": async (c) => {
    const page = (c.page = await open(c.browser, c.hub, "runs/dumped/debug"));
    await settled(page);
    const before = await page.evaluate(() => [document.documentElement.dataset.theme, document.documentElement.lang]);
    await page.evaluate(() => {
      for (const key of ["t", "l", "F8", "Enter", "g"])
        document.body.dispatchEvent(
          new KeyboardEvent("keydown", { key, isComposing: true, bubbles: true, cancelable: true }),
        );
    });
    assert.deepEqual(
      await page.evaluate(() => [document.documentElement.dataset.theme, document.documentElement.lang]),
      before,
    );
    await page.focus("#node-search");
    await page.keyboard.type("t");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), before[0]);
    await page.context().close();
  },

  "the page works below a path prefix": async (c) => {
    const gate = await proxy(c.hub, "/user/me/proxy");
    const page = (c.page = await open(c.browser, gate, "runs/dumped/debug"));
    await page.waitForSelector("[data-test=origin].chosen");
    await page.waitForSelector("[data-test=link][data-link=open]");
    await page.click(".rail a[title=Curves]");
    await page.waitForSelector("[data-test=curve-loss]");
    assert.match(page.url(), /\/user\/me\/proxy\/runs\/dumped\/scalars/);
    assert.deepEqual(page.bad, []);
    await page.context().close();
    gate.close();
  },

  "of two tabs the one that did not look is told": async (c) => {
    await live(c, RUN);
    const one = await open(c.browser, c.hub, `runs/${RUN}/debug`);
    const two = (c.page = await open(c.browser, c.hub, `runs/${RUN}/debug`));
    await phase(one, "paused");
    await phase(two, "paused");
    await two.evaluate(() => {
      window.__misstep.socket.o.hear = () => {};
    });
    await one.click("[data-test=step]");
    await phase(one, "step 1");
    await two.click("[data-test=step]");
    await two.waitForSelector("[data-test=toast]:has-text('Somebody else')");
    await one.context().close();
    await two.context().close();
  },

  "step, next node and run to node go where they say, and a tensor under way is shown live": async (c) => {
    await live(c, RUN);
    const page = (c.page = await open(c.browser, c.hub, `runs/${RUN}/debug`));
    await phase(page, "paused");
    const { step } = await api(c.hub, `runs/${RUN}/state`);
    await page.fill("#step-count", "2");
    await page.click("[data-test=step]");
    await phase(page, `step ${step + 2}`);
    await page.fill("#node-search", "op:log");
    await page.click(".tree-row:has-text('blocks.2/log')");
    await page.click("[data-test=run-to]");
    await phase(page, "blocks.2/log");
    await page.click("#tab-tensor");
    await page.waitForSelector(".tensor-facts .chip:has-text('live')");
    await page.keyboard.press("F10");
    await page.waitForFunction(() => !document.querySelector("[data-test=phase]").textContent.includes("blocks.2/log"));
    assert.deepEqual(page.bad, []);
    await page.context().close();
  },

  "a watchpoint is tried out, added and removed in place": async (c) => {
    await live(c, RUN);
    const page = (c.page = await open(c.browser, c.hub, `runs/${RUN}/debug`));
    await phase(page, "paused");
    await page.click("[data-test=lower-watch]");
    await page.click("[data-test=watch-add]");
    await page.selectOption(".watch-editor select", "tensor_too_large");
    await page.fill(".watch-editor label:has-text('max_gt') input", "0.0001");
    await page.click("[data-test=dry-run]");
    await page.waitForSelector("[data-test=trial]");
    assert.match(await page.textContent("[data-test=trial]"), /would hit [1-9]/);
    await page.click("[data-test=watch-save]");
    await page.waitForSelector(".watch-line:has-text('values too large')");
    await page.click(".watch-line:has-text('values too large') button[title=Remove]");
    await page.waitForSelector(".watch-line:has-text('values too large')", { state: "detached" });
    await page.context().close();
  },

  "a watchpoint stops training, the origin is starred and chosen, its source line one click away": async (c) => {
    await live(c, RUN);
    const page = (c.page = await open(c.browser, c.hub, `runs/${RUN}/debug`));
    await phase(page, "paused");
    await page.click("[data-test=continue]");
    await phase(page, "watchpoint");
    await page.waitForSelector("[data-test=origin].chosen");
    assert.match(await page.textContent("[data-test=origin]"), /blocks\.2\/log.*NaN ×/s);
    assert.match(page.url(), /node=blocks\.2\/log/);
    await until(() => magenta(page), "the values that tripped it were kept, NaN in magenta");
    await page.click("#tab-source");
    assert.match(await page.textContent("[data-test=source-line]"), /torch\.log/);
    const box = await inside(page, "m.graph.boxAt('blocks.2/log')");
    assert.ok(box && box.x > 0 && box.y > 0, "the origin is in sight in the graph");
    await page.context().close();
  },

  "training is ended only after a question, and the page goes on as a recorded run": async (c) => {
    await live(c, RUN);
    const page = (c.page = await open(c.browser, c.hub, `runs/${RUN}/debug`));
    await phase(page, "paused");
    await page.click("[data-test=terminate]");
    await page.waitForSelector("[role=dialog]");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Cancel");
    await page.click("[data-test=terminate-yes]");
    await c.story.done;
    await page.waitForSelector("[data-test=continue]", { state: "detached" });
    await page.context().close();
  },

  "a cut connection is told, comes back by itself, and no hit is lost": async (c) => {
    await live(c, "cut");
    const page = (c.page = await open(c.browser, c.hub, "runs/cut/debug"));
    await phase(page, "paused");
    await page.evaluate(() => {
      const { socket } = window.__misstep;
      socket.kept = socket.connect;
      socket.connect = () => {};
      socket.drop();
    });
    await order(c.hub, "cut", "continue");
    await page.waitForSelector("[data-test=banner]", { timeout: 10_000 });
    const total = await until(async () => (await api(c.hub, "runs/cut/hits?limit=1")).total, "hits behind our back");
    assert.ok(total > 0);
    await page.evaluate(() => {
      const { socket } = window.__misstep;
      socket.connect = socket.kept;
      socket.connect();
    });
    await page.waitForSelector("[data-test=link][data-link=open]");
    await page.waitForSelector("[data-test=origin]");
    await page.waitForSelector("[data-test=banner]", { state: "detached" });
    await page.context().close();
    await order(c.hub, "cut", "terminate");
  },
};
