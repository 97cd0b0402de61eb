// Which boxes carry a star, a dot or an accent, for the scene as it is folded now.
import type { Flow } from "../state/flow";
import type { HitView, WatchpointView } from "../types.gen";
import type { Model } from "./model";
import type { Marks } from "./paint";
import type { Box, Scene } from "./scene";

/** For an item the box that stands for it in this scene. */
export class Boxes {
  private readonly byItem = new Map<number, number>();
  private readonly model: Model;

  constructor(model: Model, scene: Scene) {
    this.model = model;
    scene.boxes.forEach((one, index) => {
      for (const item of one.kind === "stack" ? one.members : [one.item]) {
        if (!this.byItem.has(item) || one.kind !== "stack") this.byItem.set(item, index);
      }
    });
  }

  of(item: number): number {
    for (let at = item; at >= 0; at = this.model.parent[at]) {
      const box = this.byItem.get(at);
      if (box !== undefined) return box;
    }
    return 0;
  }
}

export interface Seen {
  selected: number;
  current: string;
  /** Without masks, which are meant. */
  hits: readonly HitView[];
  /** The node of the verdict. */
  guilty: string;
  watch: readonly WatchpointView[];
  heat: Map<number, number>;
  flow: Flow | null;
  colourBy: Marks["colourBy"];
}

export function marksFor(model: Model, scene: Scene, boxes: Boxes, seen: Seen, hovered: number): Marks {
  const marks: Marks = {
    selected: seen.selected > 0 ? boxes.of(seen.selected) : -1,
    hovered,
    current: seen.current ? boxes.of(model.find(seen.current)) : -1,
    hits: new Map(),
    origins: new Set(),
    watched: new Set(),
    trace: new Map(),
    ways: [],
    colourBy: seen.colourBy,
    heat: new Map(),
    flow: null,
  };
  for (const hit of seen.hits) {
    const item = model.itemOfHit(hit);
    const box = item > 0 ? boxes.of(item) : 0;
    if (box > 0) marks.hits.set(box, (marks.hits.get(box) ?? 0) + 1);
  }
  const guilty = seen.guilty ? boxes.of(model.find(seen.guilty)) : 0;
  if (guilty > 0) marks.origins.add(guilty);
  for (const watch of seen.watch) {
    // Only members chosen by hand are dotted: a pattern that fits everything would dot everything.
    if (watch.enabled) for (const node of watch.nodes) marks.watched.add(boxes.of(model.find(node)));
  }
  for (const [item, heat] of seen.heat) {
    const box = boxes.of(item);
    marks.heat.set(box, Math.max(marks.heat.get(box) ?? 0, heat));
  }
  if (seen.flow) marks.flow = flowOf(scene, seen.flow);
  if (seen.selected > 0) trace(model, scene, boxes, seen.selected, marks);
  return marks;
}

/** By box: the earliest of what lies in it. */
function flowOf(scene: Scene, flow: Flow): Marks["flow"] {
  const earliest = (times: Float64Array, box: Box): number =>
    box.kind === "stack" ? Math.min(...box.members.map((item) => times[item])) : times[box.item];
  return {
    at: flow.at,
    made: Float64Array.from(scene.boxes, (box) => earliest(flow.made, box)),
    bad: Float64Array.from(scene.boxes, (box) => earliest(flow.bad, box)),
  };
}

function trace(model: Model, scene: Scene, boxes: Boxes, item: number, marks: Marks): void {
  const own = boxes.of(item);
  const lines = new Map(scene.lines.map((line, index) => [line.from * scene.boxes.length + line.to, index]));
  const mark = (from: number, to: number, way: "in" | "out"): void => {
    let a = from;
    let b = to;
    const { boxes: all } = scene;
    while (all[a].depth > all[b].depth) a = all[a].parent;
    while (all[b].depth > all[a].depth) b = all[b].parent;
    while (a !== b && all[a].parent !== all[b].parent) {
      a = all[a].parent;
      b = all[b].parent;
    }
    if (a === b) return;
    const index = lines.get(a * all.length + b);
    if (index !== undefined) marks.trace.set(index, way);
    if (a !== from || b !== to) marks.ways.push([from, to]);
  };
  for (const other of model.producers(item)) mark(boxes.of(other), own, "in");
  for (const other of model.consumers(item)) mark(own, boxes.of(other), "out");
}
