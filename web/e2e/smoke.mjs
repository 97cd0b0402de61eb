// Every page in both languages and themes: nothing complains, nothing sticks out, nothing is untranslated, axe is content.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { ROOT, until, visit } from "./lib.mjs";

const KEYS = new Set(
  ["i18n/en.gen.ts", "held/words.en.gen.ts", "study/words.en.gen.ts"].flatMap((file) =>
    [...readFileSync(join(ROOT, "web/src", file), "utf8").matchAll(/^ {2}"([^"]+\.[^"]+)":/gm)].map(
      (found) => found[1],
    ),
  ),
);

export function pages(run, broken) {
  return {
    runs: `runs?focus=${run}`,
    debug: `runs/${run}/debug?open=blocks.2`,
    tensor: `runs/${run}/debug?node=blocks.2/log&tab=tensor&step=5`,
    node: `runs/${run}/debug?node=blocks.2.fc/addmm&step=5`,
    source: `runs/${run}/debug?node=blocks.2/log&tab=source`,
    history: `runs/${run}/debug?node=blocks.2/log&tab=history`,
    scalars: `runs/${run}/scalars?smooth=0.5`,
    compare: `compare/scalars?runs=${run},${broken}&base=${run}`,
    statistics: `runs/${run}/hist?tensor=blocks.2.fc.weight:grad`,
    ranks: `runs/${run}/ranks`,
    crash: `runs/${broken}/crash`,
    settings: "settings",
  };
}

/** The part of a page that no page before it has shown: of the debugger's tabs, the tab. */
export function news(name) {
  return ["tensor", "node", "source", "history"].includes(name) ? "#tab-panel" : "html";
}

/** Wait until the page has settled: connected, and nothing on its way for a moment. */
export async function settled(page) {
  await page.waitForSelector("[data-test=link][data-link=open]");
  await page.waitForLoadState("networkidle");
  await page.evaluate(() => new Promise((yes) => requestAnimationFrame(() => requestAnimationFrame(yes))));
}

/** What is wrong with a page; with `axe` a selector, what that says of this part of it. */
export async function smoke(context, hub, path, axe) {
  const page = await visit(context, hub, path);
  await settled(page);
  const wrong = [...page.bad];
  const found = await page.evaluate(
    (keys) => {
      const known = new Set(keys);
      const out = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode())
        if (known.has(node.textContent.trim())) out.push(`raw key ${node.textContent}`);
      for (const one of document.querySelectorAll("[aria-label],[title],[placeholder]"))
        for (const name of ["aria-label", "title", "placeholder"])
          if (known.has(one.getAttribute(name))) out.push(`raw key ${one.getAttribute(name)}`);
      if (document.querySelectorAll("h1").length !== 1 || !document.querySelector("h1").textContent) out.push("no h1");
      if (document.documentElement.scrollWidth > innerWidth || document.body.scrollHeight > innerHeight)
        out.push("the page is larger than the window");
      for (const one of document.querySelectorAll("button, .panel, canvas, .tree-row, .hit-line, tr, .card")) {
        const box = one.getBoundingClientRect();
        if (one.closest("[hidden]") || getComputedStyle(one).visibility === "hidden") continue;
        if (box.width < 1 || box.height < 1) out.push(`no size: ${one.outerHTML.slice(0, 80)}`);
        if (one.tagName === "BUTTON" && box.left > innerWidth - 4 && !one.closest(".scroll"))
          out.push(`out of sight: ${one.textContent.slice(0, 60)}`);
      }
      for (const one of document.querySelectorAll("button, .chip, .pill, th")) {
        if (
          one.scrollWidth > one.clientWidth + 2 &&
          getComputedStyle(one).overflow === "visible" &&
          one.clientWidth > 0
        )
          out.push(`text sticks out: ${one.textContent.slice(0, 60)}`);
      }
      const bar = document.querySelector(".control");
      if (bar && bar.scrollWidth > bar.clientWidth + 1) out.push("the control bar is too narrow");
      return out;
    },
    [...KEYS],
  );
  wrong.push(...found);
  if (axe) {
    // Without frames of another origin the legacy mode finds the same, and needs no second page to do it.
    const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).include(axe).analyze();
    for (const one of violations)
      if (one.impact === "serious" || one.impact === "critical")
        wrong.push(
          `axe ${one.id}: ${one.nodes
            .slice(0, 3)
            .map((node) => node.html.slice(0, 140))
            .join(" | ")}`,
        );
  }
  await page.close();
  return wrong;
}

export async function magenta(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector("[data-test=heat]");
    if (!canvas) return 0;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let at = 0; at < data.length; at += 4)
      if (Math.abs(data[at] - 217) < 3 && Math.abs(data[at + 1] - 70) < 3 && Math.abs(data[at + 2] - 239) < 3) n += 1;
    return n;
  });
}

export { until };
