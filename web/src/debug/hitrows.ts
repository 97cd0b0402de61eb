// The hit list as a person reads it: in execution order, one row for a tensor however many watchpoints tripped, and
// what merely followed from an origin folded into one line.
import type { HitView } from "../types.gen";

export interface HitRow {
  kind: "hit";
  hit: HitView;
  watchpoints: number[];
}
export interface FoldRow {
  kind: "propagated";
  step: number;
  rank: number;
  count: number;
  open: boolean;
}
export type Row = HitRow | FoldRow;
export type Filter = "all" | "origins" | "step";

export function hitRows(hits: readonly HitView[], filter: Filter, step: number, open: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  const groups = new Map<string, HitView[]>();
  for (const hit of hits) {
    if (filter === "step" && hit.step !== step) continue;
    const key = foldKey(hit);
    const group = groups.get(key);
    if (group) group.push(hit);
    else groups.set(key, [hit]);
  }
  const born = hits.find((hit) => hit.birth === "origin");
  for (const [key, group] of groups) {
    const merged = byTensor(group);
    // Once a NaN is in the weights, every later step is full of it: nothing there is news.
    const follows = (hit: HitView): boolean => hit.birth === "propagated" || (hit.birth === "unknown" && hit.severity === "error" && born !== undefined && hit.step > born.step);
    rows.push(...merged.filter((row) => !follows(row.hit) && (filter !== "origins" || row.hit.birth === "origin")));
    const after = merged.filter((row) => follows(row.hit));
    if (filter === "origins" || !after.length) continue;
    rows.push({ kind: "propagated", step: group[0].step, rank: group[0].rank, count: after.length, open: open.has(key) });
    if (open.has(key)) rows.push(...after);
  }
  return rows;
}

export function foldKey(hit: { step: number; rank: number }): string {
  return `${hit.step}#${hit.rank}`;
}

function byTensor(hits: readonly HitView[]): HitRow[] {
  const known = new Map<string, HitRow>();
  for (const hit of hits) {
    const row = known.get(hit.address);
    if (row) row.watchpoints.push(hit.watchpoint);
    else known.set(hit.address, { kind: "hit", hit, watchpoints: [hit.watchpoint] });
  }
  return [...known.values()];
}
