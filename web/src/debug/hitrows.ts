// What happened as a person reads it: the verdict first, then what else was noticed, one row for a tensor however many
// watchpoints tripped; what merely followed from the verdict, and masks that are meant, each folded into one line.
import { isGuilty, isMask } from "../state/verdict";
import type { HitView, VerdictView } from "../types.gen";

export interface HitRow {
  kind: "hit";
  hit: HitView;
  guilty: boolean;
  mask: boolean;
  inner: boolean;
  watchpoints: number[];
  /** The same tensor in how many steps. */
  times: number;
}
export interface FoldRow {
  kind: "follow" | "masks";
  count: number;
  first: string;
  last: string;
  steps: [number, number];
  open: boolean;
}
export type Row = HitRow | FoldRow;
export type Filter = "all" | "step";

export function hitRows(
  hits: readonly HitView[],
  filter: Filter,
  step: number,
  open: ReadonlySet<string>,
  verdict: VerdictView | null,
): Row[] {
  const seen = filter === "step" ? hits.filter((hit) => hit.step === step) : hits;
  const bornAt = verdict && verdict.kind !== "exception" ? verdict.step : Infinity;
  // Once a NaN is in the weights, every later step is full of it: nothing there is news.
  const follows = (hit: HitView): boolean =>
    hit.birth === "propagated" || (hit.severity === "error" && hit.step > bornAt) || nonFinite(hit, bornAt);
  const groups: Record<"guilty" | "other" | "follow" | "masks", HitView[]> = {
    guilty: [],
    other: [],
    follow: [],
    masks: [],
  };
  for (const hit of seen) {
    const where = isMask(hit) ? "masks" : isGuilty(hit, verdict) ? "guilty" : follows(hit) ? "follow" : "other";
    groups[where].push(hit);
  }
  const rows: Row[] = [...lines(groups.guilty, true), ...lines(groups.other, false)];
  for (const kind of ["follow", "masks"] as const) {
    const group = groups[kind];
    if (!group.length) continue;
    const tensors = lines(group, false, kind === "masks", true);
    rows.push({
      kind,
      count: tensors.length,
      first: group[0].node,
      last: group[group.length - 1].node,
      steps: [group[0].step, group[group.length - 1].step],
      open: open.has(kind),
    });
    if (open.has(kind)) rows.push(...tensors);
  }
  return rows;
}

function nonFinite(hit: HitView, bornAt: number): boolean {
  const { stats } = hit;
  return hit.step >= bornAt && stats !== null && stats.nan + stats.pos_inf + stats.neg_inf > 0;
}

/** One row for a tensor: of the same step, and of masks over all steps. */
function lines(group: readonly HitView[], guilty: boolean, mask = false, inner = false): HitRow[] {
  const merged = new Map<string, HitRow>();
  const steps = new Map<string, Set<number>>();
  for (const hit of group) {
    const key = mask ? `${hit.node}:${hit.role}.${hit.slot}#${hit.rank}` : hit.address;
    const row = merged.get(key);
    if (!row) merged.set(key, { kind: "hit", hit, guilty, mask, inner, watchpoints: [hit.watchpoint], times: 1 });
    else if (!row.watchpoints.includes(hit.watchpoint)) row.watchpoints.push(hit.watchpoint);
    const known = steps.get(key) ?? new Set();
    steps.set(key, known.add(hit.step));
  }
  for (const [key, row] of merged) row.times = steps.get(key)?.size ?? 1;
  return [...merged.values()];
}
