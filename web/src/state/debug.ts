// What the debugger page looks at: all of it is in the address; here it is read and changed by meaning.
import { computed, signal } from "@preact/signals";
import { addressText, parseAddress, slotKey } from "../format/address";
import type { HitView, NodeInfo, TensorBrief } from "../types.gen";
import { change, query } from "./route";
import { graph, hits, isLive, rank, shownStep } from "./run";
import { isGuilty, isMask } from "./verdict";

export const TABS = ["node", "tensor", "compare", "source", "history"] as const;
export type Tab = (typeof TABS)[number];
export const VIEWS = ["heat", "grid", "hist", "line"] as const;
export type View = (typeof VIEWS)[number];

export const nodeName = computed(() => query.value.node ?? "");
export const tab = computed<Tab>(() =>
  (TABS as readonly string[]).includes(query.value.tab) ? (query.value.tab as Tab) : "node",
);
export const slot = computed(() => query.value.slot ?? "");
export const slice = computed(() => query.value.slice ?? "");
export const view = computed<View | "">(() =>
  (VIEWS as readonly string[]).includes(query.value.as) ? (query.value.as as View) : "",
);
export const fold = computed(() => query.value.fold !== "0");
/** The scopes that are open; null while nobody has opened or closed one. */
export const opened = computed<string[] | null>(() => {
  const text = query.value.open;
  return text === undefined ? null : text === "-" ? [] : text.split(";");
});

/** What the hub knows of the chosen node at the shown step; filled by the node tab's owner. */
export const info = signal<NodeInfo | null>(null);
export const infoProblem = signal("");
/** The watchpoint whose members the dots in the gutter show. */
export const activeWatch = computed(() => (query.value.wp ? Number(query.value.wp) : null));
export const editing = signal<number | "new" | null>(null);
export const editorStart = signal<{ on: string } | null>(null);

/** Whether the graph has exactly the node of the address; it may not have it yet, or not any more. */
export const nodeKnown = computed(() => graph.value?.exact(nodeName.value) !== undefined);

/** The item of the graph for the chosen node, else for the nearest scope around it. */
export const chosenItem = computed(() => {
  const model = graph.value;
  if (!model || !nodeName.value) return 0;
  return model.exact(nodeName.value) ?? model.find(nodeName.value.replace(/^[∇ℒ]/u, ""));
});

/** The name the hub knows, without the mark of the backward root. */
export const chosenNode = computed(() => {
  const model = graph.value;
  return model && nodeKnown.value ? model.name(chosenItem.value) : nodeName.value.replace(/^[∇ℒ]/u, "");
});

export function chooseNode(key: string, more: Record<string, string | number | null> = {}, push = true): void {
  change({ node: key, slot: null, slice: null, hit: null, ...more }, push);
}

export function chooseHit(hit: HitView): void {
  change(
    {
      node: keyOf(hit.node),
      slot: slotKey(hit),
      slice: null,
      step: hit.step,
      rank: hit.rank === rank.peek() ? (query.peek().rank ?? null) : hit.rank,
      hit: hitKey(hit),
      tab: "tensor",
    },
    true,
  );
}

export function hitKey(hit: HitView): string {
  return `${hit.rank}.${hit.id}`;
}

export const chosenHit = computed(() => hits.value.find((hit) => hitKey(hit) === query.value.hit) ?? null);

/** A link carries a node's own name; the key of the graph has a mark for what ran backward. */
export function keyOf(name: string): string {
  const model = graph.peek();
  const item = model?.exact(name);
  return item !== undefined && model ? model.key[item] : name;
}

/** Walk through the hits; from none to the one that is the verdict's. */
export function walkHits(by: 1 | -1): void {
  const all = hits.peek().filter((hit) => !isMask(hit));
  if (!all.length) return;
  const at = all.findIndex((hit) => hitKey(hit) === query.peek().hit);
  const start = Math.max(
    0,
    all.findIndex((hit) => isGuilty(hit)),
  );
  chooseHit(all[at < 0 ? start : Math.min(all.length - 1, Math.max(0, at + by))]);
}

/** The tensor on show: the one the address names, else the first output of the node. */
export const tensor = computed<TensorBrief | null>(() => {
  const node = info.value;
  if (!node?.tensors.length) return null;
  const wanted = slot.value;
  const named = node.tensors.find((one) => slotKey(one) === wanted);
  return named ?? node.tensors.find((one) => one.role === "output") ?? node.tensors[0];
});

/** The full address of the tensor on show; also when the hub's table does not list it yet. */
export const tensorAddress = computed(() => {
  const address = fullAddress.value;
  const parsed = parseAddress(address);
  // Where training stands, the process itself knows best which step a value is of: weights are those of the step before.
  return parsed && isLive.value && query.value.step === undefined ? addressText({ ...parsed, step: null }) : address;
});

const fullAddress = computed(() => {
  if (tensor.value && (!slot.value || slotKey(tensor.value) === slot.value)) return tensor.value.address;
  if (!chosenNode.value || !slot.value) return tensor.value?.address ?? "";
  const parsed = parseAddress(`${chosenNode.value}${slot.value.startsWith("~") ? "" : ":"}${slot.value}`);
  return parsed ? addressText({ ...parsed, step: shownStep.value, rank: rank.value }) : "";
});

/** Open or close a scope; the address lists what is open. */
export function setOpen(keys: string[]): void {
  change({ open: keys.length ? keys.join(";") : "-" });
}
