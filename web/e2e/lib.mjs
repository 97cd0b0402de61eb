// What every browser test needs: a real hub, a real training, one Chromium, and eyes for what goes wrong in the page.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const HERE = dirname(fileURLToPath(import.meta.url));
export const ROOT = resolve(HERE, "..", "..");
const PYTHON = process.env.MISSTEP_PYTHON ?? join(ROOT, ".venv", "bin", "python");
const BROWSER = process.env.MISSTEP_CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
  "--font-render-hinting=none",
];

const children = new Set();

function environment(more = {}) {
  return {
    ...process.env,
    PYTHONPATH: join(ROOT, "src"),
    PATH: `${dirname(PYTHON)}:${process.env.PATH}`,
    OMP_NUM_THREADS: "1",
    PYTHONUNBUFFERED: "1",
    ...more,
  };
}

/** A process of ours: its output is kept, and it ends with us. */
export function start(args, { cwd, env = {} } = {}) {
  const child = spawn(PYTHON, args, { cwd, env: environment(env), stdio: ["pipe", "pipe", "pipe"] });
  children.add(child);
  const one = { child, out: "", err: "", done: null };
  child.stdout.on("data", (data) => (one.out += data));
  child.stderr.on("data", (data) => (one.err += data));
  one.done = new Promise((yes) =>
    child.on("exit", (code) => {
      children.delete(child);
      yes(code);
    }),
  );
  return one;
}

export async function until(check, what, ms = 20_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`timed out: ${what}`);
    await new Promise((yes) => setTimeout(yes, 40));
  }
}

export function folder() {
  const path = mkdtempSync(join(tmpdir(), "misstep-web-"));
  mkdirSync(join(path, "missteps"));
  return path;
}

export async function startHub(where, { prefix = "", port = 0, token = "" } = {}) {
  const one = start(
    [join(HERE, "hub.py"), join(where, "missteps"), "--prefix", prefix, "--port", String(port), "--token", token],
    { cwd: where },
  );
  await until(() => one.out.includes("\n") || one.child.exitCode !== null, "the hub's address");
  if (!one.out.includes("\n")) throw new Error(`the hub did not start: ${one.err}`);
  const told = JSON.parse(one.out.split("\n")[0]);
  return {
    ...told,
    prefix,
    process: one,
    async stop() {
      one.child.stdin.end();
      await one.done;
    },
  };
}

/** `misstep run` of a script, debugged by the hub. */
export function train(
  where,
  hub,
  script,
  { args = [], name = "", level = "op", more = [], program = PYTHON, env = {} } = {},
) {
  const options = ["run", "--level", level, ...(name ? ["--name", name] : []), ...args, program, script, ...more];
  return start(["-m", "misstep", ...options], {
    cwd: where,
    env: { ...env, ...(hub ? { MISSTEP_HUB: hub.link, MISSTEP_TOKEN: hub.token } : {}) },
  });
}

export async function launch() {
  return chromium.launch({ executablePath: BROWSER, args: FLAGS });
}

/** Somebody with a browser of their own: language, theme, window, and nothing remembered. */
export async function visitor(
  browser,
  { lang = "en", theme = "dark", width = 1440, height = 900, motion = "reduce" } = {},
) {
  const context = await browser.newContext({
    viewport: { width, height },
    reducedMotion: motion,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  await context.addInitScript(
    ([l, t]) => {
      localStorage.setItem("misstep.lang", JSON.stringify(l));
      localStorage.setItem("misstep.theme", JSON.stringify(t));
    },
    [lang, theme],
  );
  return context;
}

/** A page that is let in, with everything bad it says written down. */
export async function open(browser, hub, path, looks = {}) {
  return visit(await visitor(browser, looks), hub, path);
}

/** Another page of the same visitor, whose browser has the scripts already. */
export async function visit(context, hub, path) {
  const page = await context.newPage();
  page.bad = [];
  page.on("console", (message) => {
    if (message.type() === "error") page.bad.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => page.bad.push(`error: ${error.message}`));
  page.on("response", (answer) => {
    if (answer.status() >= 400) page.bad.push(`${answer.status()} ${answer.url()}`);
  });
  page.on("requestfailed", (request) => {
    if (request.failure()?.errorText !== "net::ERR_ABORTED")
      page.bad.push(`failed ${request.url()} ${request.failure()?.errorText}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(hub.url) && !/^(data|blob):/.test(request.url()))
      page.bad.push(`outside: ${request.url()}`);
  });
  await page.goto(address(hub, path));
  return page;
}

export function address(hub, path) {
  const mark = path.includes("?") ? "&" : "?";
  return `${hub.url}${hub.prefix}/${path}${mark}test=1#token=${hub.token}`;
}

/** What the page shows of its insides to tests. */
export function inside(page, expression) {
  return page.evaluate(`(() => { const m = window.__misstep ?? {}; return ${expression}; })()`);
}

export async function api(hub, path) {
  const answer = await fetch(`${hub.url}/api/v1/${path}`, { headers: { "x-misstep-token": hub.token } });
  return answer.json();
}

/** Move a run, as another client would. */
export async function order(hub, run, op) {
  const body = JSON.stringify({ t: "cmd", id: "x", op, run });
  await fetch(`${hub.url}/api/v1/runs/${run}/command`, {
    method: "POST",
    headers: { "x-misstep-token": hub.token, "content-type": "application/json" },
    body,
  });
}

/** On failure: a picture, the page's complaints, and what hub and training said. */
export async function evidence(name, page, processes) {
  const path = join(ROOT, "web", "e2e-failures");
  mkdirSync(path, { recursive: true });
  if (page) await page.screenshot({ path: join(path, `${name}.png`) }).catch(() => {});
  writeFileSync(
    join(path, `${name}.txt`),
    [...(page?.bad ?? []), page?.url() ?? "", ...processes.map((one) => one.out + one.err)].join("\n"),
  );
}

export async function endAll() {
  for (const child of children) child.kill("SIGKILL");
}

export function remove(path) {
  rmSync(path, { recursive: true, force: true });
}
