// What a scope shows of its children: identical neighbours as one stack (`0…47 ×48`), a crowd in chunks of at most 200.
// A member that somebody looks at (the origin of a NaN, the selection, an opened scope) stands alone; members with hits
// and members without are never in one stack. Opening a stack of
// identical scopes means "do not fold below this parent" (`blocks[*]`), so that its members can be opened in turn.
import type { Model } from "./model";

export const CHUNK = 200;
const FEWEST_ALIKE = 3;

export interface Stack {
  kind: "fold" | "chunk";
  /** `blocks[3…47]`: stable as long as the members are. */
  key: string;
  label: string;
  members: number[];
}

export type Entry = number | Stack;

/** The same for two scopes that compute the same: types in order, and how the children are wired. */
export function structure(model: Model): Int32Array {
  const hash = new Int32Array(model.count);
  const position = new Int32Array(model.count);
  for (const list of model.children) list.forEach((child, at) => (position[child] = at));
  const wiring = new Int32Array(model.count);
  const { source, target } = model.columns.edges;
  for (let edge = 0; edge < source.length; edge += 1) {
    let a = model.itemOfNode[source[edge]];
    let b = model.itemOfNode[target[edge]];
    while (model.depth[a] > model.depth[b]) a = model.parent[a];
    while (model.depth[b] > model.depth[a]) b = model.parent[b];
    while (a !== b && model.parent[a] !== model.parent[b]) {
      a = model.parent[a];
      b = model.parent[b];
    }
    // Summed, so that the order in which edges were told does not matter.
    if (a !== b) wiring[model.parent[a]] += mix(position[a] + 1, position[b] + 7919);
  }
  const types = new Map<string, number>();
  for (let at = model.count - 1; at >= 0; at -= 1) {
    const item = model.preorder[at];
    const name = model.type(item) || (model.isScope(item) ? "" : model.label[item]);
    if (!types.has(name)) types.set(name, types.size + 1);
    let value = mix(17, types.get(name) as number);
    for (const child of model.children[item]) value = mix(value, hash[child]);
    hash[item] = mix(value, wiring[item]);
  }
  return hash;
}

function mix(a: number, b: number): number {
  let value = Math.imul(a ^ (b + 0x9e3779b9 + (a << 6) + (a >>> 2)), 0x85ebca6b);
  value ^= value >>> 13;
  return Math.imul(value, 0xc2b2ae35) | 0;
}

/** In the list of open scopes: the children of this scope are not folded. */
export function unfolded(scope: string): string {
  return `${scope}[*]`;
}

/** The children of a scope as they are shown. `alone`: these stand by themselves. */
export function entries(
  model: Model,
  hash: Int32Array,
  scope: number,
  fold: boolean,
  alone: (item: number) => boolean,
  hit: (item: number) => boolean = () => false,
): Entry[] {
  const children = model.children[scope];
  const shown: Entry[] = [];
  for (let at = 0; at < children.length; ) {
    const alike = fold ? alikeFrom(model, hash, children, at, alone, hit) : [children[at]];
    if (alike.length >= FEWEST_ALIKE) shown.push(stack(model, scope, alike, "fold"));
    else shown.push(...alike);
    at += alike.length;
  }
  return chunks(model, scope, shown);
}

function alikeFrom(
  model: Model,
  hash: Int32Array,
  children: number[],
  at: number,
  alone: (item: number) => boolean,
  hit: (item: number) => boolean,
): number[] {
  const one = children[at];
  if (!model.isScope(one) || alone(one)) return [one];
  const alike = [one];
  for (let next = at + 1; next < children.length; next += 1) {
    const other = children[next];
    if (hash[other] !== hash[one] || model.size[other] !== model.size[one] || alone(other) || hit(other) !== hit(one))
      break;
    alike.push(other);
  }
  return alike;
}

function chunks(model: Model, scope: number, shown: Entry[]): Entry[] {
  const crowd = shown.filter((entry): entry is number => typeof entry === "number" && !model.isParameter(entry));
  if (crowd.length <= CHUNK) return shown;
  const rest = shown.filter((entry) => typeof entry !== "number" || model.isParameter(entry));
  for (let at = 0; at < crowd.length; at += CHUNK) {
    const members = crowd.slice(at, at + CHUNK);
    rest.push(stack(model, scope, members, "chunk", at));
  }
  return rest;
}

function stack(model: Model, scope: number, members: number[], kind: Stack["kind"], from = 0): Stack {
  const first = model.label[members[0]];
  const last = model.label[members[members.length - 1]];
  const label = kind === "fold" ? `${first}…${last}` : `${from + 1}–${from + members.length}`;
  return { kind, key: `${model.key[scope]}[${label}]`, label, members };
}
