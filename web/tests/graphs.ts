// Networks for the tests: a transformer of any size, in the columns the hub sends.
import type { GraphColumns } from "../src/types.gen";

const OPS = [
  "aten.native_layer_norm",
  "aten.addmm",
  "aten.addmm",
  "aten.addmm",
  "aten.bmm",
  "aten._softmax",
  "aten.bmm",
  "aten.addmm",
  "aten.add",
  "aten.native_layer_norm",
  "aten.addmm",
  "aten.gelu",
  "aten.addmm",
  "aten.add",
];
const PLACE = [
  "ln1",
  "attn.q",
  "attn.k",
  "attn.v",
  "attn.core",
  "attn.core",
  "attn.core",
  "attn.o",
  "",
  "ln2",
  "mlp.up",
  "mlp",
  "mlp.down",
  "",
];

export function transformer(blocks: number): GraphColumns {
  const scopeNames = [""];
  const scopeParents = [-1];
  const scope = (name: string): number => {
    const known = scopeNames.indexOf(name, Math.max(0, scopeNames.length - 40));
    const found = known >= 0 ? known : name === "" ? 0 : known;
    if (found >= 0) return found;
    const cut = name.lastIndexOf(".");
    const parent = scope(cut > 0 ? name.slice(0, cut) : "");
    scopeNames.push(name);
    scopeParents.push(parent);
    return scopeNames.length - 1;
  };
  const types: string[] = [];
  const nodes: GraphColumns["nodes"] = {
    name: [],
    scope: [],
    kind: [],
    phase: [],
    type: [],
    order: [],
    file: [],
    line: [],
    graph: [],
    forward: [],
  };
  const edges: GraphColumns["edges"] = {
    source: [],
    target: [],
    source_slot: [],
    target_slot: [],
    dtype: [],
    shape: [],
  };
  const add = (name: string, where: string, type: string, inputs: number[]): number => {
    if (!types.includes(type)) types.push(type);
    nodes.name.push(name);
    nodes.scope.push(scope(where));
    nodes.kind.push("operator");
    nodes.phase.push("forward");
    nodes.type.push(types.indexOf(type));
    nodes.order.push(nodes.name.length);
    nodes.file.push(-1);
    nodes.line.push(0);
    nodes.graph.push(0);
    nodes.forward.push(-1);
    for (const input of inputs) {
      edges.source.push(input);
      edges.target.push(nodes.name.length - 1);
      for (const column of [edges.source_slot, edges.target_slot, edges.dtype, edges.shape]) column.push(0);
    }
    return nodes.name.length - 1;
  };
  const mask = add("mask", "", "aten.tril", []);
  let x = add("embed/embedding", "embed", "aten.embedding", []);
  scope("layers");
  for (let block = 0; block < blocks; block += 1) {
    const made: number[] = [];
    const at = (index: number): number => made[index];
    OPS.forEach((op, index) => {
      const where = `layers.${block}${PLACE[index] ? `.${PLACE[index]}` : ""}`;
      const inputs = [
        [x],
        [at(0)],
        [at(0)],
        [at(0)],
        [at(1), at(2)],
        [at(4), mask],
        [at(5), at(3)],
        [at(6)],
        [at(7), x],
        [at(8)],
        [at(9)],
        [at(10)],
        [at(11)],
        [at(12), at(8)],
      ][index];
      made.push(add(`${where}/${op.replace("aten.", "")}${index}`, where, op, inputs));
    });
    x = at(13);
  }
  add("head/addmm", "head", "aten.addmm", [x]);
  return {
    run: "t",
    rank: 0,
    rev: 1,
    nodes,
    edges,
    types,
    files: [],
    graphs: [""],
    dtypes: ["float32"],
    shapes: [[1]],
    roles: ["input", "output"],
    scopes: {
      name: scopeNames,
      parent: scopeParents,
      label: scopeNames.map((name) => name.slice(name.lastIndexOf(".") + 1)),
    },
    tensors: { node: [], role: [], slot: [], call: [] },
  };
}
