// Pictures of every page in both themes and languages, from real runs, into docs/screenshots/.
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { twins } from "./held.mjs";
import * as lib from "./lib.mjs";
import { settled } from "./smoke.mjs";
import { makeStudies, studyPages } from "./studies.mjs";

const OUT = join(lib.ROOT, "docs", "screenshots");
const LOOKS = [
  ["en", "dark"],
  ["zh", "light"],
];
const IN_CONTRAST = ["debugger", "crash", "statistics", "curves"];
const only = process.argv[2] ?? "";
mkdirSync(OUT, { recursive: true });

const where = lib.folder();
for (const name of ["train.py", "transformer.py", "twins.py", "ranks.py"])
  copyFileSync(join(lib.ROOT, "web/e2e", name), join(where, name));
const script = "train.py";
const hub = await lib.startHub(where);
const browser = await lib.launch();
try {
  const made = [
    lib.train(where, null, script, {
      program: "python",
      name: "log-of-negative",
      args: ["--watch", "tensor_overflow", "--then", "dump", "-q"],
      more: ["40"],
    }),
    lib.train(where, null, script, { program: "python", name: "other-seed", args: ["-q"], more: ["40", "0", "4"] }),
    lib.train(where, null, "transformer.py", { program: "python", name: "transformer-48", args: ["-q"] }),
  ];
  copyFileSync(join(lib.ROOT, "examples/torch_slow_loader.py"), join(where, "slow_loader.py"));
  made.push(
    lib.train(where, null, "slow_loader.py", {
      program: "python",
      name: "slow-loader",
      args: ["-q", "--level", "off"],
      env: { MISSTEP_PROFILE: "20:23" },
    }),
  );
  await makeStudies(where);
  await twins(where, { program: "python", script: "twins.py" });
  const torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "ranks.py"];
  const ended = [
    lib.train(where, null, script, {
      program: "python",
      name: "wrong-width",
      args: ["-q"],
      more: ["40", "0", "3", "26"],
    }),
    lib.train(where, null, torchrun[0], {
      program: "python",
      name: "two-ranks",
      args: ["-q"],
      more: torchrun.slice(1),
      env: { MISSTEP_HANG_SECONDS: "2" },
    }),
  ];
  for (const one of ended) await one.done; // badly, as they should
  for (const one of made) if ((await one.done) !== 0) throw new Error(one.err);
  lib.train(where, hub, script, {
    program: "python",
    name: "live",
    args: ["--pause-at-start", "--watch", "tensor_overflow", "--then", "pause", "-q"],
    more: ["40", "0.01"],
  });
  await lib.until(
    async () => (await lib.api(hub, "runs")).runs.some((one) => one.run === "live" && one.phase === "paused"),
    "a live run",
    60_000,
  );
  await lib.order(hub, "live", "continue");
  await lib.until(
    async () => (await lib.api(hub, "runs/live/state")).reason?.kind === "watchpoint",
    "the watchpoint",
    60_000,
  );
  const pages = {
    runs: "runs?focus=log-of-negative&sel=log-of-negative,other-seed",
    debugger: "runs/log-of-negative/debug",
    numbers: "runs/log-of-negative/debug?node=blocks.2/log&tab=tensor&as=grid&step=5",
    histogram: "runs/log-of-negative/debug?node=blocks.2/log&tab=tensor&as=hist&step=5",
    node: "runs/log-of-negative/debug?node=blocks.2.fc/addmm&step=4",
    source: "runs/log-of-negative/debug?node=blocks.2/log&tab=source&step=5",
    compare: "runs/log-of-negative/debug?node=blocks.3&tab=compare&step=6&vs=step:5",
    history: "runs/log-of-negative/debug?node=blocks.2/log&tab=history",
    curves: "compare/scalars?runs=log-of-negative,other-seed&base=log-of-negative&smooth=0.5",
    statistics: "runs/log-of-negative/hist?tensor=blocks.2/log:output&role=output",
    ranks: "runs/two-ranks/ranks",
    crash: "runs/wrong-width/crash",
    "crash-order": "runs/wrong-width/crash?tab=order",
    "crash-memory": "runs/wrong-width/crash?tab=memory",
    "crash-hang": "runs/two-ranks/crash/hang",
    "graph-folded": "runs/transformer-48/debug?open=layers",
    "graph-unfolded": "runs/transformer-48/debug?open=layers.1.self_attn;layers.1;∇layers&node=layers.1",
    live: "runs/live/debug",
    speed: "runs/slow-loader/speed",
    settings: "settings",
    ...studyPages,
    dumps: "runs/log-of-negative/dumps?watch=overflow&tensor=blocks.2/log:output@5%230",
    "dump-of-another-tool": "dumps?of=foreign&step=1&tensor=blocks.2.norm:output@1%230&as=hist",
    comparison: "compare/dumps?a=left@1&b=right@1",
    map: "compare/dumps?a=left@1&b=foreign&tab=map",
    checkpoint: "ckpt?a=left.pth&weight=model.blocks.0.fc.weight",
    checkpoints: "ckpt?a=left.pth&b=right.pth&weight=model.blocks.0.fc.weight",
  };
  for (const [name, path] of Object.entries(pages)) {
    if (only && !only.split(",").some((word) => name.includes(word))) continue;
    for (const [lang, theme] of [...LOOKS, ...(IN_CONTRAST.includes(name) ? [["en", "contrast"]] : [])]) {
      const page = await lib.open(browser, hub, path, { lang, theme });
      await settled(page);
      await page.waitForTimeout(400); // the last tiles are painted a frame after they arrived
      await page.screenshot({ path: join(OUT, `${name}-${lang}-${theme}.png`) });
      if (page.bad.length) console.log(name, lang, page.bad);
      await page.context().close();
    }
    console.log(name);
  }
  await hub.stop();
} finally {
  await browser.close();
  await lib.endAll();
  lib.remove(where);
}
