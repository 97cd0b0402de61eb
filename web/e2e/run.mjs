// The journeys of a person, in a real browser, against a real hub and a real PyTorch training.
//
//     npm run e2e            all of them
//     npm run e2e -- tabs    those whose name contains the word
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { BROKEN, crashes, elsewhere } from "./crashes.mjs";
import { held, heldPages, twins } from "./held.mjs";
import { journeys, PAUSE, RUN } from "./journeys.mjs";
import * as lib from "./lib.mjs";
import { news, pages, smoke } from "./smoke.mjs";
import { makeStudies, studies, studyPages } from "./studies.mjs";
import { firstRun } from "./walk.mjs";
import { workspace } from "./workspace.mjs";

const only = process.argv[2] ?? "";
const script = join(lib.ROOT, "web", "e2e", "train.py");
const where = lib.folder();
let failed = 0;

async function check(name, act, page = () => null, processes = []) {
  if (only && !name.includes(only)) return;
  const began = Date.now();
  try {
    await act();
    console.log(`ok    ${name}  ${((Date.now() - began) / 1000).toFixed(1)} s`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n${error.stack}`);
    await lib.evidence(name.replace(/\W+/g, "-"), page(), processes).catch(() => {});
  }
}

const began = Date.now();
const browser = await lib.launch();
const empty = lib.folder();
try {
  // Everything that trains starts now, together: importing a framework takes longer than most journeys.
  const hub = await lib.startHub(where);
  const story = lib.train(where, hub, script, { name: RUN, args: PAUSE, more: ["40", "0.01"] });
  const cut = lib.train(where, hub, script, {
    name: "cut",
    args: ["--pause-at-start", "--watch", "tensor_overflow", "-q"],
    more: ["400", "0.02"],
  });
  const first = lib.train(where, null, script, {
    name: "dumped",
    args: ["--watch", "tensor_overflow", "--then", "dump", "-q"],
    more: ["12"],
  });
  const broken = lib.train(where, null, script, { name: BROKEN, args: ["-q"], more: ["12", "0", "3", "4"] });
  const gpt = lib.train(where, null, join(lib.ROOT, "web", "e2e", "gpt.py"), {
    name: "gpt",
    args: ["-q"],
    more: ["8"],
  });
  const context = {
    gpt,
    browser,
    where,
    empty,
    script,
    hub,
    story,
    twins: twins(where),
    studies: makeStudies(where),
    page: null,
    processes: [hub.process, story, cut, first, broken, gpt],
  };
  assert.equal(await first.done, 0, first.err);
  assert.equal(await broken.done, 1, broken.err);
  // Those with a hub and a process of their own wait mostly for Python to begin; the others go on meanwhile.
  const apart = { ...context, page: null };
  const alone = (async () => {
    for (const [name, act] of Object.entries({ ...firstRun, ...elsewhere }))
      await check(
        name,
        () => act(apart),
        () => apart.page,
        context.processes,
      );
  })();
  for (const [name, act] of Object.entries({ ...crashes, ...workspace, ...journeys, ...held, ...studies }))
    await check(
      name,
      () => act(context),
      () => context.page,
      context.processes,
    );
  const [english, chinese] = [
    await lib.visitor(browser, { lang: "en", theme: "dark" }),
    await lib.visitor(browser, { lang: "zh", theme: "light", width: 800 }),
  ];
  for (const [name, path] of Object.entries({ ...pages("dumped", BROKEN), ...heldPages, ...studyPages })) {
    await check(
      `page ${name}`,
      async () => {
        const wrong = await Promise.all([
          smoke(english, hub, path, news(name)),
          smoke(chinese, hub, path, name === "debug" || name === "runs" ? "html" : null),
        ]);
        assert.deepEqual(wrong.flat(), []);
      },
      () => null,
      context.processes,
    );
  }
  await alone;
  await hub.stop();
} finally {
  await browser.close();
  await lib.endAll();
  lib.remove(where);
  lib.remove(empty);
}
console.log(`${failed ? `${failed} failed` : "all passed"} in ${((Date.now() - began) / 1000).toFixed(0)} s`);
process.exit(failed ? 1 : 0);
