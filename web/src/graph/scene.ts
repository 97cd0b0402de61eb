// What is drawn: the visible boxes with their places, and the edges between them, lifted to the scope both lie in.
// Everything below a closed box is one box; all edges between two boxes are one line, the thicker the more.
import { entries, type Stack, structure, unfolded } from "./fold";
import { layout, type Piece, sideways, type Wire } from "./layout";
import type { Model } from "./model";

export type BoxKind = "scope" | "operator" | "parameter" | "stack";

export interface Box {
  /** The item; of a stack the first member. */
  item: number;
  key: string;
  label: string;
  type: string;
  kind: BoxKind;
  open: boolean;
  parent: number;
  depth: number;
  /** Operators inside; of a stack the number of members. */
  count: number;
  x: number;
  y: number;
  w: number;
  h: number;
  /** Names of inputs drawn as stubs instead of lines, because they feed more than eight. */
  stubs: string[];
  members: number[];
}

export interface Line {
  from: number;
  to: number;
  count: number;
  points: number[];
  /** Goes past boxes that lie between: a residual, a skip. */
  skip: boolean;
}

/** Where data flows to. */
export type Way = "down" | "right";

export interface Scene {
  way: Way;
  boxes: Box[];
  lines: Line[];
  w: number;
  h: number;
  ms: number;
}

export interface Wish {
  open: string[];
  /** Items that must be seen by themselves. */
  alone: number[];
  /** Items with hits: their stacks hold nothing else. */
  hit?: number[];
  fold: boolean;
  way?: Way;
}

const MOST_LINES_OF_ONE = 8;
const HEAD = 26;
const PAD = 14;
const AUTO_BOXES = 60;

export class SceneMaker {
  private readonly hash: Int32Array;
  private readonly model: Model;

  constructor(model: Model) {
    this.model = model;
    this.hash = structure(model);
  }

  /** Scopes to open at first: level by level, as long as the boxes can be read; backward stays closed. */
  start(): string[] {
    const open: string[] = [];
    let level = [0];
    let boxes = 0;
    while (level.length) {
      const shown = level.map((scope) => entries(this.model, this.hash, scope, true, () => false));
      const more = shown.reduce((sum, list) => sum + list.length, 0);
      if (level[0] !== 0 && boxes + more > AUTO_BOXES) break;
      boxes += more;
      for (const scope of level) if (scope !== 0) open.push(this.model.key[scope]);
      level = shown
        .flat()
        .filter(
          (one): one is number =>
            typeof one === "number" && this.model.isScope(one) && !/^[∇]/u.test(this.model.key[one]),
        );
    }
    return open;
  }

  make(wish: Wish): Scene {
    const began = performance.now();
    const boxes = this.visible(wish);
    const represent = this.representatives(boxes);
    const lines = this.lift(boxes, represent);
    const scene = this.place(boxes, lines, wish.way ?? "down");
    scene.ms = performance.now() - began;
    return scene;
  }

  private visible(wish: Wish): Box[] {
    const { model, hash } = this;
    const open = withAncestors(model, wish.open);
    const alone = new Uint8Array(model.count);
    for (const item of wish.alone) for (let at = item; at > 0; at = model.parent[at]) alone[at] = 1;
    for (const key of open) {
      const item = model.byKey.get(key);
      for (let at = item ?? 0; at > 0; at = model.parent[at]) alone[at] = 1;
    }
    const hit = new Uint8Array(model.count);
    for (const item of wish.hit ?? []) for (let at = item; at > 0 && !hit[at]; at = model.parent[at]) hit[at] = 1;
    const boxes: Box[] = [box(model, 0, -1, 0, true)];
    for (let at = 0; at < boxes.length; at += 1) {
      const one = boxes[at];
      if (!one.open) continue;
      const inside =
        one.kind === "stack"
          ? one.members
          : entries(
              model,
              hash,
              one.item,
              wish.fold && !open.has(unfolded(one.key)),
              (item) => alone[item] === 1,
              (item) => hit[item] === 1,
            );
      for (const entry of inside) {
        if (typeof entry === "number") {
          if (model.type(entry).startsWith("profiler.")) continue; // the framework's own bookkeeping computes nothing
          boxes.push(box(model, entry, at, one.depth + 1, model.isScope(entry) && open.has(model.key[entry])));
        } else {
          boxes.push(stackBox(model, entry, at, one.depth + 1, open.has(entry.key)));
        }
      }
    }
    return boxes;
  }

  /** For every item the box that stands for it: by ranges of the preorder, outer boxes first. */
  private representatives(boxes: Box[]): Int32Array {
    const { model } = this;
    const byPosition = new Int32Array(model.count);
    boxes.forEach((one, index) => {
      for (const item of one.kind === "stack" ? one.members : [one.item]) {
        byPosition.fill(index, model.first[item], model.last[item] + 1);
      }
    });
    return byPosition;
  }

  private lift(boxes: Box[], represent: Int32Array): Line[] {
    const { model } = this;
    const { source, target } = model.columns.edges;
    const found = new Map<number, Line>();
    for (let edge = 0; edge < source.length; edge += 1) {
      let a = represent[model.first[model.itemOfNode[source[edge]]]];
      let b = represent[model.first[model.itemOfNode[target[edge]]]];
      if (a === b) continue;
      while (boxes[a].depth > boxes[b].depth) a = boxes[a].parent;
      while (boxes[b].depth > boxes[a].depth) b = boxes[b].parent;
      if (a === b) continue;
      while (boxes[a].parent !== boxes[b].parent) {
        a = boxes[a].parent;
        b = boxes[b].parent;
      }
      const key = a * boxes.length + b;
      const line = found.get(key);
      if (line) line.count += 1;
      else found.set(key, { from: a, to: b, count: 1, points: [], skip: false });
    }
    return this.stubbed(boxes, [...found.values()]);
  }

  /** Inputs that feed more than eight (masks, position ids) become names beside their consumers. */
  private stubbed(boxes: Box[], lines: Line[]): Line[] {
    const outs = new Int32Array(boxes.length);
    for (const line of lines) outs[line.from] += 1;
    return lines.filter((line) => {
      if (outs[line.from] <= MOST_LINES_OF_ONE) return true;
      boxes[line.to].stubs.push(boxes[line.from].label);
      return false;
    });
  }

  private place(boxes: Box[], lines: Line[], way: Way): Scene {
    const { model } = this;
    const children: number[][] = boxes.map(() => []);
    boxes.forEach((one, index) => {
      if (one.parent >= 0) children[one.parent].push(index);
    });
    const within: Line[][] = boxes.map(() => []);
    for (const line of lines) within[boxes[line.from].parent].push(line);
    const slot = new Int32Array(boxes.length);
    for (let at = boxes.length - 1; at >= 0; at -= 1) {
      const one = boxes[at];
      if (!one.open) continue;
      const pieces: Piece[] = children[at].map((child, position) => {
        slot[child] = position;
        const { w, h, item, kind } = boxes[child];
        return { w, h, order: model.order[item], aside: kind === "parameter" };
      });
      const wires: Wire[] = within[at].map((line) => ({ from: slot[line.from], to: slot[line.to] }));
      const drawing = way === "right" ? sideways(pieces, wires) : layout(pieces, wires);
      children[at].forEach((child, position) => {
        boxes[child].x = drawing.x[position] + PAD;
        boxes[child].y = drawing.y[position] + HEAD + 8;
      });
      within[at].forEach((line, index) => {
        line.points = drawing.routes[index];
        line.skip = line.points.length > 4;
      });
      one.w = Math.max(one.w, drawing.w + 2 * PAD);
      one.h = drawing.h + HEAD + 8 + PAD;
      const spare = (one.w - drawing.w) / 2 - PAD;
      if (spare > 0) shift(boxes, children[at], within[at], spare);
    }
    // From here outer to inner: a child's place becomes absolute.
    boxes.forEach((one, index) => {
      for (const child of children[index]) {
        boxes[child].x += one.x;
        boxes[child].y += one.y;
      }
      for (const line of within[index]) {
        for (let at = 0; at < line.points.length; at += 2) {
          line.points[at] += one.x + PAD;
          line.points[at + 1] += one.y + HEAD + 8;
        }
      }
    });
    return { boxes, lines, w: boxes[0].w, h: boxes[0].h, ms: 0, way };
  }
}

function shift(boxes: Box[], children: number[], lines: Line[], by: number): void {
  for (const child of children) boxes[child].x += by;
  for (const line of lines) for (let at = 0; at < line.points.length; at += 2) line.points[at] += by;
}

/** A link lists only the innermost open scopes; the ones around them are open too. */
export function withAncestors(model: Model, keys: readonly string[]): Set<string> {
  const open = new Set(keys);
  for (const key of keys) {
    const bracket = key.lastIndexOf("[");
    let item = model.byKey.get(key) ?? (bracket > 0 ? model.byKey.get(key.slice(0, bracket)) : undefined) ?? 0;
    for (; item > 0; item = model.parent[item]) open.add(model.key[item]);
  }
  return open;
}

/** Of these scopes only the innermost, for the link. */
export function innermost(model: Model, keys: Iterable<string>): string[] {
  const all = [...keys];
  const outer = new Set<string>();
  for (const key of all) {
    const bracket = key.lastIndexOf("[");
    const scope = bracket > 0 ? model.byKey.get(key.slice(0, bracket)) : undefined;
    const item = model.byKey.get(key);
    if (scope !== undefined) outer.add(model.key[scope]);
    for (let at = scope ?? (item ? model.parent[item] : 0); at > 0; at = model.parent[at]) outer.add(model.key[at]);
  }
  return all.filter((key) => !outer.has(key)).sort();
}

/** About as wide as the text will be; the painter cuts what does not fit. */
function textWidth(text: string, per: number): number {
  let units = 0;
  for (const mark of text) units += mark > "\u2e80" ? 1.8 : 1;
  return units * per;
}

function box(model: Model, item: number, parent: number, depth: number, open: boolean): Box {
  const scope = model.isScope(item);
  const kind: BoxKind = scope ? "scope" : model.isParameter(item) ? "parameter" : "operator";
  const label = model.label[item];
  const type = model.type(item);
  const one: Box = {
    item,
    key: model.key[item],
    label,
    type,
    kind,
    open,
    parent,
    depth,
    count: model.size[item],
    x: 0,
    y: 0,
    w: 0,
    h: 0,
    stubs: [],
    members: [],
  };
  if (kind === "parameter") {
    one.w = Math.min(150, textWidth(label, 6.1) + 16);
    one.h = 18;
  } else if (kind === "operator") {
    one.w = Math.min(220, Math.max(64, textWidth(label, 7.4) + 28));
    one.h = 28;
  } else {
    const beside = textWidth(String(one.count), 7) + 30;
    one.w = Math.min(260, Math.max(96, textWidth(label, 7.4) + beside, textWidth(type, 6) + 28));
    one.h = type ? 42 : 30;
  }
  return one;
}

function stackBox(model: Model, of: Stack, parent: number, depth: number, open: boolean): Box {
  const inner = of.kind === "fold" ? model.type(of.members[0]) : "";
  return {
    item: of.members[0],
    key: of.key,
    label: of.label,
    type: of.kind,
    kind: "stack",
    open,
    parent,
    depth,
    count: of.members.length,
    x: 0,
    y: 0,
    w: Math.max(130, textWidth(of.label, 7.4) + 66, textWidth(inner, 6) + 30),
    h: 46,
    stubs: [],
    members: of.members,
  };
}
