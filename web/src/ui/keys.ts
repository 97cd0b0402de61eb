// Every key of the page. Ignored while somebody types, and while an input method composes: Enter and F-keys are its own.
import { walkSteps } from "../debug/control";
import { view as graphView } from "../debug/graph";
import { runTo, watchNode } from "../debug/nodemenu";
import { walkBad } from "../debug/tensortab";
import { toggleWatch } from "../debug/tree";
import { chooseNode, chosenItem, editing, walkHits } from "../state/debug";
import { editorKeys, nextTheme, otherLang } from "../state/prefs";
import { change, go, page, place } from "../state/route";
import { command, graph, isLive, noControl, runName, state } from "../state/run";
import { confirmTerminate, dialog } from "./dialogs";
import { menu } from "./menu";
import { paletteOpen } from "./palette";

let goes = 0;
const GO_MS = 1200;
const STILL: Record<string, string[]> = { x: ["compare", "dumps"], w: ["ckpt"] };
const PAGES: Record<string, string> = { u: "dumps", d: "debug", s: "scalars", h: "hist", k: "ranks", c: "crash" };

function typing(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return (
    target !== null &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    (target as HTMLInputElement).type !== "checkbox"
  );
}

function name(event: KeyboardEvent): string {
  const marks = `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}`;
  const shift = event.shiftKey && (event.key.length > 1 || /[a-z]/i.test(event.key)) ? "Shift+" : "";
  return `${marks}${shift}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
}

function move(op: "continue" | "next" | "step"): void {
  if (!isLive.peek() || noControl.peek()) return;
  const paused = state.peek()?.phase === "paused";
  if (op === "continue") void command(paused ? "continue" : "pause");
  else if (paused && op === "next") void command("next");
  else if (paused)
    void command("step", {
      count: Number((document.getElementById("step-count") as HTMLInputElement | null)?.value ?? 1) || 1,
    });
}

/** In the graph: up to an input, down to an output, aside to a sibling. */
function walkGraph(key: string): void {
  const model = graph.peek();
  const item = chosenItem.peek();
  if (!model) return;
  if (!item) {
    const first = model.children[0].find((one) => !model.isParameter(one));
    if (first) chooseNode(model.key[first]);
    return;
  }
  const siblings = model.children[model.parent[item]];
  const at = siblings.indexOf(item);
  const next =
    key === "ArrowUp"
      ? (model.producers(item)[0] ?? siblings[at - 1])
      : key === "ArrowDown"
        ? (model.consumers(item)[0] ?? siblings[at + 1])
        : siblings[at + (key === "ArrowLeft" ? -1 : 1)];
  if (next > 0) chooseNode(model.key[next]);
}

const EVERYWHERE: Record<string, () => void> = {
  n: () => walkBad.act?.("next"),
  "Shift+n": () => walkBad.act?.("previous"),
  t: nextTheme,
  l: otherLang,
  "?": () => (dialog.value = "help"),
  "/": () => document.querySelector<HTMLInputElement>("#node-search, #run-search")?.focus(),
};

const DEBUGGING: Record<string, () => void> = {
  F8: () => move("continue"),
  F10: () => move("next"),
  F6: () => move("step"),
  "Ctrl+F10": () => graph.peek() && chosenItem.peek() && void runTo(graph.peek()!.key[chosenItem.peek()]),
  F9: () => chosenItem.peek() && toggleWatch(chosenItem.peek(), false),
  "Shift+F9": () => graph.peek() && chosenItem.peek() && watchNode(graph.peek()!.key[chosenItem.peek()]),
  j: () => walkHits(1),
  k: () => walkHits(-1),
  n: () => walkBad.act?.("next"),
  "Shift+n": () => walkBad.act?.("previous"),
  "[": () => walkSteps(-1),
  "]": () => walkSteps(1),
  p: () => change({ tab: "compare", vs: "prev" }, true),
  "0": () => graphView.painter?.fit(),
  "+": () => graphView.painter?.zoom(1.3),
  "=": () => graphView.painter?.zoom(1.3),
  "-": () => graphView.painter?.zoom(1 / 1.3),
  ".": () => {
    const at = state.peek()?.place?.node;
    const model = graph.peek();
    if (at && model) chooseNode(model.key[model.find(at)]);
  },
  ArrowUp: () => walkGraph("ArrowUp"),
  ArrowDown: () => walkGraph("ArrowDown"),
  ArrowLeft: () => walkGraph("ArrowLeft"),
  ArrowRight: () => walkGraph("ArrowRight"),
  Enter: () => graph.peek() && chosenItem.peek() && graphView.toggle(graph.peek()!.key[chosenItem.peek()]),
  Backspace: () => {
    const model = graph.peek();
    const item = chosenItem.peek();
    if (model && item && model.parent[item] > 0) chooseNode(model.key[model.parent[item]]);
  },
  Escape: () => (editing.value = null),
};

const FUNCTION_KEYS = /^(Ctrl\+|Shift\+)?F\d+$/;
/** Keys that a focused control needs itself. */
const OF_CONTROLS = /^(Enter|Backspace|Arrow|Escape)/;

export function listenToKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.defaultPrevented) return;
    const key = name(event);
    if (key === "Ctrl+k") {
      event.preventDefault();
      paletteOpen.value = !paletteOpen.peek();
      return;
    }
    if (dialog.peek() || paletteOpen.peek() || menu.peek()) return;
    if (typing(event) && !FUNCTION_KEYS.test(key)) return;
    if (goTo(key)) {
      event.preventDefault();
      return;
    }
    const debugging = page.peek() === "runs" && place.peek().path[2] === "debug";
    const own = (event.target as HTMLElement).closest(
      "button, a, [role=tree], [role=listbox], [role=separator], [role=grid], [role=tablist]",
    );
    if (OF_CONTROLS.test(key) && own) return;
    const editor: Record<string, () => void> = {
      F5: () => move("continue"),
      "Shift+F5": () => isLive.peek() && confirmTerminate(),
    };
    const act =
      (debugging ? (DEBUGGING[key] ?? (editorKeys.peek() ? editor[key] : undefined)) : undefined) ?? EVERYWHERE[key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function goTo(key: string): boolean {
  const waiting = Date.now() - goes < GO_MS;
  if (key === "g") {
    goes = Date.now();
    return true;
  }
  goes = 0;
  if (!waiting) return false;
  if (key === "r") go(["runs"]);
  else if (STILL[key]) go(STILL[key]);
  else if (key === "u" && !runName.peek()) go(["dumps"]);
  else if (PAGES[key] && runName.peek()) go(["runs", runName.peek(), PAGES[key]]);
  else return false;
  return true;
}
