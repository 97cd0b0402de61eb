// The network as a tree of items: scopes, operators, parameters, in the order they ran. Built from the hub's columns,
// on the page and again in the worker, in one pass and without an object per node.
//
// A step walks every scope twice, forward and backward. Drawn as one box each, the two directions tangle; so what ran
// backward hangs below a root of its own (key `∇…`), the loss below another (`ℒ…`), and data flows downward.
import type { GraphColumns } from "../types.gen";

export const BACKWARD = "∇";
export const LOSS = "ℒ";
const SCRIPT = "script";
const LAST = 0x7fffffff;

export class Model {
  readonly columns: GraphColumns;
  count = 0;
  /** Item → its parent; the root is 0, with -1. */
  parent: Int32Array;
  /** Item → number of the node in the run's catalog; -1 for a mere scope. */
  node: Int32Array;
  /** Item → first position in a step at which something of it ran. */
  order: Int32Array;
  /** Item → operators and modules without children below it. */
  size: Int32Array;
  depth: Int32Array;
  readonly label: string[] = [];
  /** What a link says: a node's name, with a mark in front for the other roots. */
  readonly key: string[] = [];
  readonly children: number[][] = [];
  readonly byKey = new Map<string, number>();
  readonly itemOfNode: Int32Array;
  /** Items by preorder, and for each item the first and the last position of its subtree. */
  preorder: Int32Array;
  first: Int32Array;
  last: Int32Array;
  private readonly scopeItems: Record<string, Int32Array> = {};
  /** Outermost scope or node by name → the root module it belongs to. */
  private readonly owner = new Map<string, string>();
  private edgesBySource: Int32Array[] | null = null;
  private edgesByTarget: Int32Array[] | null = null;

  constructor(columns: GraphColumns) {
    this.columns = columns;
    const nodes = columns.nodes;
    const most = nodes.name.length + 2 * columns.scopes.name.length + 4;
    this.parent = new Int32Array(most).fill(-1);
    this.node = new Int32Array(most).fill(-1);
    this.order = new Int32Array(most).fill(LAST);
    this.size = new Int32Array(most);
    this.depth = new Int32Array(most);
    this.itemOfNode = new Int32Array(nodes.name.length).fill(-1);
    this.add("", "", -1);
    this.findRoots();
    for (let index = 0; index < nodes.name.length; index += 1) this.place(index);
    this.parent = this.parent.slice(0, this.count);
    this.node = this.node.slice(0, this.count);
    this.preorder = new Int32Array(this.count);
    this.first = new Int32Array(this.count);
    this.last = new Int32Array(this.count);
    this.sum();
  }

  get edgeCount(): number {
    return this.columns.edges.source.length;
  }

  type(item: number): string {
    const node = this.node[item];
    return node < 0 ? "" : this.columns.types[this.columns.nodes.type[node]];
  }

  /** The name of the node; of a mere scope its path. */
  name(item: number): string {
    const node = this.node[item];
    return node < 0 ? this.key[item].replace(/^[∇ℒ]/u, "") : this.columns.nodes.name[node];
  }

  isParameter(item: number): boolean {
    const node = this.node[item];
    if (node < 0) return false;
    const kind = this.columns.nodes.kind[node];
    return kind === "parameter" || kind === "buffer";
  }

  isScope(item: number): boolean {
    return this.children[item].length > 0;
  }

  /** The item of a node's name, else of the nearest enclosing scope; 0 when nothing fits. */
  find(name: string): number {
    for (let key = name; key; key = key.slice(0, Math.max(key.lastIndexOf("/"), key.lastIndexOf("."), 0))) {
      for (const mark of ["", BACKWARD, LOSS]) {
        const item = this.byKey.get(mark + key);
        if (item !== undefined) return item;
      }
    }
    return 0;
  }

  /** The item of exactly this key or name; undefined when the graph does not know it. */
  exact(name: string): number | undefined {
    return this.byKey.get(name) ?? this.byKey.get(BACKWARD + name) ?? this.byKey.get(LOSS + name);
  }

  /**
   * Where a hit is marked: a gradient in the backward part, never on the module it passed on its way back; a weight
   * that an update made bad nowhere, because every scope around it would look guilty. 0 for nowhere.
   */
  itemOfHit(hit: { node: string; role: string }): number {
    if (hit.role === "param") return 0;
    if (!hit.role.startsWith("grad")) return this.find(hit.node);
    return this.byKey.get(BACKWARD + hit.node) ?? 0;
  }

  /** From below the root down to the item itself. */
  path(item: number): number[] {
    const up: number[] = [];
    for (let at = item; at > 0; at = this.parent[at]) up.push(at);
    return up.reverse();
  }

  contains(scope: number, item: number): boolean {
    return this.first[item] >= this.first[scope] && this.first[item] <= this.last[scope];
  }

  /** Items whose output this node takes, with the slots; items, not boxes, so that a trace is true. */
  producers(item: number): number[] {
    this.index();
    return this.neighbours(item, this.edgesByTarget as Int32Array[], this.columns.edges.source);
  }

  consumers(item: number): number[] {
    this.index();
    return this.neighbours(item, this.edgesBySource as Int32Array[], this.columns.edges.target);
  }

  private neighbours(item: number, edges: Int32Array[], ends: number[]): number[] {
    const node = this.node[item];
    if (node < 0 || !edges[node]) return [];
    return [...new Set([...edges[node]].map((edge) => this.itemOfNode[ends[edge]]))];
  }

  private index(): void {
    if (this.edgesBySource) return;
    const { source, target } = this.columns.edges;
    const gather = (ends: number[]): Int32Array[] => {
      const lists: number[][] = [];
      ends.forEach((node, edge) => (lists[node] ??= []).push(edge));
      return lists.map((list) => Int32Array.from(list));
    };
    this.edgesBySource = gather(source);
    this.edgesByTarget = gather(target);
  }

  private add(key: string, label: string, parent: number): number {
    const item = this.count;
    this.count += 1;
    this.key.push(key);
    this.label.push(label);
    this.children.push([]);
    this.byKey.set(key, item);
    this.parent[item] = parent;
    if (parent >= 0) {
      this.children[parent].push(item);
      this.depth[item] = this.depth[parent] + 1;
    }
    return item;
  }

  /**
   * The modules of a network stand beside its root in their names (`GPT`, `tok`, `blocks.0`): the root's own operators
   * (`GPT/add`) would be in a box of their own, with lines there and back. Its children belong into it.
   */
  private findRoots(): void {
    const { nodes, scopes, graphs } = this.columns;
    const isRoot = new Set<string>();
    nodes.name.forEach((name, index) => {
      if (nodes.kind[index] === "module" && nodes.scope[index] === 0 && graphs[nodes.graph[index]] === name)
        isRoot.add(name);
    });
    if (!isRoot.size) return;
    nodes.name.forEach((name, index) => {
      const root = graphs[nodes.graph[index]];
      if (!isRoot.has(root) || nodes.kind[index] === "operator") return;
      let scope = nodes.scope[index];
      while (scope > 0 && scopes.parent[scope] > 0) scope = scopes.parent[scope];
      const top = scope > 0 ? scopes.name[scope] : name;
      if (top !== root && !isRoot.has(top)) this.owner.set(top, root);
    });
  }

  private place(index: number): void {
    const { nodes } = this.columns;
    const phase = nodes.phase[index];
    const mark = phase === "backward" ? BACKWARD : phase === "loss" ? LOSS : "";
    const name = nodes.name[index];
    const key = mark + name;
    let item = this.byKey.get(key);
    if (item === undefined) {
      const own = nodes.scope[index] === 0 ? this.ownerOf(name, mark) : -1;
      const parent = own >= 0 ? own : this.scope(nodes.scope[index], mark);
      const cut = Math.max(name.lastIndexOf("/"), name.lastIndexOf("."));
      item = this.add(key, cut > 0 ? name.slice(cut + 1) : name, parent);
    }
    this.node[item] = index;
    this.itemOfNode[index] = item;
    const order = nodes.order[index];
    if (order > 0) this.order[item] = Math.min(this.order[item], order);
  }

  /** Scopes by number, of each root: looking up a name for every operator took a third of the time. */
  private scope(scope: number, mark: string): number {
    const known = (this.scopeItems[mark] ??= new Int32Array(this.columns.scopes.name.length).fill(-1));
    if (known[scope] < 0) known[scope] = this.findScope(scope, mark);
    return known[scope];
  }

  private findScope(scope: number, mark: string): number {
    const { scopes } = this.columns;
    const name = scopes.name[scope];
    if (scope === 0 || (mark === LOSS && name === SCRIPT)) {
      return mark === "" ? 0 : (this.byKey.get(mark) ?? this.add(mark, mark, 0));
    }
    const outer = scopes.parent[scope] === 0 ? this.ownerOf(name, mark) : -1;
    return (
      this.byKey.get(mark + name) ??
      this.add(mark + name, scopes.label[scope], outer >= 0 ? outer : this.scope(scopes.parent[scope], mark))
    );
  }

  /** The item of the root module that this outermost name belongs to; -1 for none. */
  private ownerOf(name: string, mark: string): number {
    const root = this.owner.get(name);
    if (root === undefined) return -1;
    return this.byKey.get(mark + root) ?? this.add(mark + root, root, this.scope(0, mark));
  }

  /** Orders and sizes from the leaves up, then children in execution order, parameters first. */
  private sum(): void {
    // A node may get its children long after it was placed, so the depth is told again from the tree itself.
    const stack = [0];
    const seen: number[] = [];
    while (stack.length) {
      const item = stack.pop() as number;
      seen.push(item);
      for (const child of this.children[item]) {
        this.depth[child] = this.depth[item] + 1;
        stack.push(child);
      }
    }
    for (let at = seen.length - 1; at >= 0; at -= 1) {
      const item = seen[at];
      if (!this.children[item].length) this.size[item] = this.isParameter(item) ? 0 : 1;
      const parent = this.parent[item];
      if (parent < 0) continue;
      this.size[parent] += this.size[item];
      if (!this.isParameter(item)) this.order[parent] = Math.min(this.order[parent], this.order[item]);
    }
    const compare = (a: number, b: number): number =>
      Number(this.isParameter(b)) - Number(this.isParameter(a)) || this.order[a] - this.order[b] || a - b;
    for (const list of this.children) {
      if (list.some((item, at) => at > 0 && compare(list[at - 1], item) > 0)) list.sort(compare);
    }
    this.number(0);
  }

  private number(root: number): void {
    let at = 0;
    const next = new Int32Array(this.count);
    const stack = [root];
    this.first[root] = at;
    this.preorder[at++] = root;
    while (stack.length) {
      const top = stack[stack.length - 1];
      const children = this.children[top];
      if (next[top] < children.length) {
        const child = children[next[top]++];
        this.first[child] = at;
        this.preorder[at++] = child;
        stack.push(child);
      } else {
        this.last[top] = at - 1;
        stack.pop();
      }
    }
  }
}
