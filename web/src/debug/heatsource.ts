// Colour the graph by what a step measured: the greatest magnitude of each node's tensors, on a log scale.
import { computed, effect, signal } from "@preact/signals";
import { num } from "../format/number";
import { ask } from "../net/api";
import { query } from "../state/route";
import { graph, rank, runName, shownStep } from "../state/run";
import type { StepTable } from "../types.gen";

const table = signal<StepTable | null>(null);

effect(() => {
  if (query.value.colour !== "heat" || !runName.value || !graph.value) return;
  const step = shownStep.value;
  const name = runName.value;
  void ask<StepTable>(`runs/${encodeURIComponent(name)}/steps/${step}`, { rank: rank.value }).then((answer) => {
    if (runName.peek() === name) table.value = answer;
  }, () => (table.value = null));
});

/** Item → 0 … 1; what is not finite is 1. */
export const heatOf = computed<Map<number, number>>(() => {
  const found = new Map<number, number>();
  const rows = table.value;
  const model = graph.value;
  if (!rows || !model || query.value.colour !== "heat") return found;
  const { min, max, nan, pos_inf: up, neg_inf: down } = rows.columns;
  rows.tensor.forEach((tensor, row) => {
    const item = model.itemOfNode[model.columns.tensors.node[tensor]];
    if (item === undefined || item < 0) return;
    const bad = num(nan[row]) + num(up[row]) + num(down[row]) > 0;
    const size = Math.max(Math.abs(num(min[row])), Math.abs(num(max[row])));
    const heat = bad || !Number.isFinite(size) ? 1 : Math.min(0.85, Math.max(0, (Math.log10(size + 1e-12) + 4) / 9));
    found.set(item, Math.max(found.get(item) ?? 0, heat));
  });
  return found;
});
