// What can be done with a node, wherever it is clicked: run to it, watch it, see its line, copy its name.

import type { Box } from "../graph/scene";
import { t } from "../i18n";
import { activeWatch, chooseNode, editing, editorStart } from "../state/debug";
import { change } from "../state/route";
import { command, edit, graph, noControl } from "../state/run";
import { toast } from "../state/toasts";
import { type MenuItem, openMenu } from "../ui/menu";
import { view } from "./graph";

export function nodeMenu(key: string, x: number, y: number): void {
  const model = graph.peek();
  const item = model?.byKey.get(key);
  if (!model || item === undefined) return;
  const name = model.name(item);
  const scope = model.isScope(item);
  const items: (MenuItem | null)[] = [
    {
      icon: "runTo",
      text: t("menu.runTo"),
      key: "Ctrl+F10",
      off: noControl.peek() !== "" || model.node[item] < 0,
      act: () => void runTo(key),
    },
    {
      icon: "circle",
      text: scope ? t("menu.watchScope") : t("menu.watch"),
      key: "F9",
      off: noControl.peek() !== "",
      act: () => watchNode(key),
    },
    null,
    { icon: "file", text: t("menu.source"), off: model.node[item] < 0, act: () => chooseNode(key, { tab: "source" }) },
    {
      icon: "scalars",
      text: t("menu.history"),
      off: model.node[item] < 0,
      act: () => chooseNode(key, { tab: "history" }),
    },
    { icon: "copy", text: t("menu.copy"), act: () => void copy(name) },
  ];
  if (scope) {
    items.push(null, { icon: "right", text: t("menu.toggle"), key: "Enter", act: () => view.toggle(key) });
    items.push({ icon: "fold", text: t("menu.refold"), act: () => refold(key) });
  }
  openMenu(x, y, items);
}

/** What can be done with everything a rectangle was drawn around. */
export function manyMenu(boxes: readonly Box[], x: number, y: number): void {
  const model = graph.peek();
  if (!model || !boxes.length) return;
  const items = [...new Set(boxes.flatMap((one) => (one.kind === "stack" ? one.members : [one.item])))];
  const names = items.map((item) => model.name(item));
  const n = names.length;
  openMenu(x, y, [
    {
      icon: "circle",
      text: t("menu.watchMany", { n }),
      off: noControl.peek() !== "",
      act: () => void watchMany(items, "watch_scope"),
    },
    {
      icon: "ring",
      text: t("menu.unwatchMany", { n }),
      off: noControl.peek() !== "" || activeWatch.peek() === null,
      act: () => void watchMany(items, "unwatch_scope"),
    },
    null,
    { icon: "copy", text: t("menu.copyMany", { n }), act: () => void copy(names.join("\n")) },
  ]);
}

/** With a chosen watchpoint these join or leave it; without one the editor opens on them. */
async function watchMany(items: readonly number[], op: "watch_scope" | "unwatch_scope"): Promise<void> {
  const model = graph.peek();
  const watchpoint = activeWatch.peek();
  if (!model) return;
  if (watchpoint === null) {
    editorStart.value = {
      on: items.map((item) => (model.isScope(item) ? `${model.name(item)}*` : `${model.name(item)}:output`)).join(" "),
    };
    editing.value = "new";
    return;
  }
  for (const item of items) if ((await edit(op, { watchpoint, scope: model.name(item) })) === null) return;
}

function refold(key: string): void {
  const link = new URLSearchParams(location.search).get("open") ?? "";
  change({
    open:
      link
        .split(";")
        .filter((one) => one !== `${key}[*]`)
        .join(";") || "-",
  });
}

export async function runTo(key: string): Promise<void> {
  const model = graph.peek();
  const item = model?.byKey.get(key);
  if (!model || item === undefined || model.node[item] < 0) return;
  const phase = model.columns.nodes.phase[model.node[item]];
  await command("run_to", { node: model.name(item), phase: phase === "backward" ? "backward" : null });
}

/** Open the editor with this node, or everything below this scope, filled in. */
export function watchNode(key: string): void {
  const model = graph.peek();
  const item = model?.byKey.get(key);
  if (!model || item === undefined) return;
  const name = model.name(item);
  editorStart.value = { on: model.isScope(item) ? `${name}*` : `${name}:output` };
  editing.value = "new";
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast("info", t("copied"), text);
  } catch {
    toast("warning", t("notCopied"), text);
  }
}
