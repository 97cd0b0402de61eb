// Which rows the tree shows, and what their dots say: sums over ranges of the preorder, so that 50,000 nodes cost nothing.
import type { Model } from "../graph/model";
import type { HitView, WatchpointView } from "../types.gen";

/** Items in the order of the rows. */
export function treeRows(model: Model, open: ReadonlySet<number>): number[] {
  const rows: number[] = [];
  const stack = [...model.children[0]].reverse();
  while (stack.length) {
    const item = stack.pop() as number;
    rows.push(item);
    if (open.has(item))
      for (let at = model.children[item].length - 1; at >= 0; at -= 1) stack.push(model.children[item][at]);
  }
  return rows;
}

/** How many of something lie below an item. */
export class Sums {
  private readonly running: Int32Array;
  private readonly model: Model;

  constructor(model: Model, of: (item: number) => number) {
    this.model = model;
    this.running = new Int32Array(model.count + 1);
    for (let at = 0; at < model.count; at += 1) this.running[at + 1] = this.running[at] + of(model.preorder[at]);
  }

  below(item: number): number {
    return this.running[this.model.last[item] + 1] - this.running[this.model.first[item]];
  }
}

/** Hits below an item, and whether the verdict's node is there. */
export function hitSums(model: Model, hits: readonly HitView[], guilty: string): { all: Sums; guilty: number } {
  const all = new Map<number, number>();
  for (const hit of hits) {
    const item = model.itemOfHit(hit);
    if (item > 0) all.set(item, (all.get(item) ?? 0) + 1);
  }
  return {
    all: new Sums(model, (item) => all.get(item) ?? 0),
    guilty: guilty ? (model.exact(guilty) ?? 0) : 0,
  };
}

export type Dot = "all" | "some" | "none";

/** Members of a watchpoint among the nodes below an item. */
export class Members {
  private readonly inside: Sums;
  private readonly total: Sums;

  constructor(model: Model, watch: WatchpointView) {
    const fits = membership(watch);
    this.inside = new Sums(model, (item) => (model.node[item] >= 0 && fits(model.name(item)) ? 1 : 0));
    this.total = new Sums(model, (item) => (model.node[item] >= 0 ? 1 : 0));
  }

  dot(item: number): Dot {
    const inside = this.inside.below(item);
    return inside === 0 ? "none" : inside === this.total.below(item) ? "all" : "some";
  }
}

/** Whether a watchpoint looks at a node, by its list or by its patterns. */
export function membership(watch: Pick<WatchpointView, "nodes" | "on" | "but">): (name: string) => boolean {
  if (watch.nodes.length) {
    const names = new Set(watch.nodes);
    return (name) => names.has(name);
  }
  const on = watch.on.map(globOf);
  const but = watch.but.map(globOf);
  return (name) => (!on.length || on.some((one) => one.test(name))) && !but.some((one) => one.test(name));
}

function globOf(pattern: string): RegExp {
  const node = pattern.split(/[:@#~]/)[0] || "*";
  const text = node
    .replace(/[.+^${}()|\\]/g, "\\$&")
    .replace(/\*/g, ".*")
    .replace(/\?/g, ".");
  try {
    return new RegExp(`^${text}$`, "s");
  } catch {
    return /^$/;
  }
}
