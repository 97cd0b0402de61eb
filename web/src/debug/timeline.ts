// A step as a line of time: its operators in the order they ran, each with its phase, its size and whether it was bad.

import { num } from "../format/number";
import type { Model } from "../graph/model";
import type { StepTable } from "../types.gen";

export type Badness = "" | "nan" | "inf";
export const PHASES = ["forward", "loss", "backward", "optimizer"] as const;
export type TimePhase = (typeof PHASES)[number];

export interface Moment {
  item: number;
  phase: TimePhase;
  bad: Badness;
  /** 0 … 1: the mean magnitude of what it made, on a logarithmic scale over the step. */
  size: number;
}

export interface Timeline {
  step: number;
  moments: Moment[];
  counts: Record<TimePhase, number>;
  bad: number;
}

const MADE = new Set(["output", "loss", "param"]);
const MADE_BY_MODULES = new Set(["output", "loss", "grad", "grad_input", "param"]);

export function timeline(model: Model, table: StepTable): Timeline {
  const { nodes, tensors, roles } = model.columns;
  const rows = table.tensor.filter((tensor) => tensor < tensors.node.length);
  const operators = rows.some((tensor) => nodes.kind[tensors.node[tensor]] === "operator");
  const wanted = operators ? MADE : MADE_BY_MODULES;
  const logs: number[] = [];
  const seen = new Map<number, number>();
  const moments: Moment[] = [];
  table.tensor.forEach((tensor, row) => {
    const node = tensors.node[tensor];
    if (node === undefined) return;
    const role = roles[tensors.role[tensor]];
    if (!wanted.has(role) || (operators && nodes.kind[node] === "module")) return;
    const item = model.itemOfNode[node];
    const bad = badness(table, row, nodes.phase[node]);
    const mean = num(table.columns.abs_mean?.[row] ?? 0);
    const size = Number.isFinite(mean) && mean > 0 ? Math.log10(mean) : Number.NaN;
    const before = seen.get(item);
    if (before !== undefined) {
      if (bad && !moments[before].bad) moments[before].bad = bad;
      return;
    }
    seen.set(item, moments.length);
    moments.push({ item, phase: phaseOf(role, nodes.phase[node]), bad, size });
    if (Number.isFinite(size)) logs.push(size);
  });
  logs.sort((a, b) => a - b);
  const low = logs[Math.floor(logs.length * 0.02)] ?? -1;
  const high = logs[Math.ceil(logs.length * 0.98) - 1] ?? 1;
  const counts = { forward: 0, loss: 0, backward: 0, optimizer: 0 };
  let bad = 0;
  for (const moment of moments) {
    const share = (moment.size - low) / Math.max(high - low, 1e-9);
    moment.size = Number.isFinite(share) ? Math.min(1, Math.max(0.06, share)) : moment.bad ? 1 : 0.06;
    counts[moment.phase] += 1;
    if (moment.bad) bad += 1;
  }
  return { step: table.step, moments, counts, bad };
}

function phaseOf(role: string, phase: string): TimePhase {
  if (role === "param") return "optimizer";
  if (role === "grad" || role === "grad_input") return "backward";
  return (PHASES as readonly string[]).includes(phase) ? (phase as TimePhase) : "forward";
}

/** -Inf alone, going forward, is a mask until something else is bad. */
function badness(table: StepTable, row: number, phase: string): Badness {
  const { nan, pos_inf, neg_inf } = table.columns;
  if (num(nan?.[row] ?? 0) > 0) return "nan";
  if (num(pos_inf?.[row] ?? 0) > 0) return "inf";
  return num(neg_inf?.[row] ?? 0) > 0 && phase !== "forward" ? "inf" : "";
}

/** When each item was first made, and when it was first bad; Infinity for never. Of a scope, of what lies in it. */
export function times(model: Model, line: Timeline): { made: Float64Array; bad: Float64Array } {
  const made = new Float64Array(model.count).fill(Infinity);
  const bad = new Float64Array(model.count).fill(Infinity);
  line.moments.forEach((moment, at) => {
    for (let item = moment.item; item >= 0; item = model.parent[item]) {
      if (made[item] > at) made[item] = at;
      if (moment.bad && bad[item] > at) bad[item] = at;
    }
  });
  return { made, bad };
}

/** For each pixel the tallest bar and the worst value under it: one NaN among thousands is still seen. */
export function bins(line: readonly Moment[], width: number): Moment[] {
  if (line.length <= width) return [...line];
  const out: Moment[] = [];
  for (let pixel = 0; pixel < width; pixel += 1) {
    const from = Math.floor((pixel * line.length) / width);
    const to = Math.max(from + 1, Math.floor(((pixel + 1) * line.length) / width));
    let best = line[from];
    for (let at = from + 1; at < to; at += 1) {
      const one = line[at];
      if ((one.bad && !best.bad) || (!!one.bad === !!best.bad && one.size > best.size)) best = one;
    }
    out.push(best);
  }
  return out;
}
