// Colour the graph by what a step measured: of each node's tensors the greatest, on a logarithmic scale, with a legend.
import { computed, effect, signal } from "@preact/signals";
import { bytes, count, num, value } from "../format/number";
import { said, t } from "../i18n";
import { ask } from "../net/api";
import { query } from "../state/route";
import { graph, rank, runName, shownStep } from "../state/run";
import type { StepTable } from "../types.gen";

const table = signal<StepTable | null>(null);
const MEASURES = new Set(["heat", "mean", "nan", "zeros", "bytes"]);

const measure = computed(() => (MEASURES.has(query.value.colour ?? "") ? (query.value.colour as string) : ""));

effect(() => {
  if (!measure.value || !runName.value || !graph.value) return;
  const step = shownStep.value;
  const name = runName.value;
  void ask<StepTable>(`runs/${encodeURIComponent(name)}/steps/${step}`, { rank: rank.value }).then(
    (answer) => {
      if (runName.peek() === name) table.value = answer;
    },
    () => (table.value = null),
  );
});

function measured(rows: StepTable, row: number, what: string): number {
  const { min, max, nan, pos_inf: up, neg_inf: down, abs_mean: mean, zeros } = rows.columns;
  const bad = num(nan[row]) + num(up[row]) + num(down[row]);
  const total = rows.shape[row].reduce((a, b) => a * b, 1);
  if (what === "nan") return bad;
  if (what === "zeros") return total ? num(zeros[row]) / total : 0;
  if (what === "bytes") return total * itemSize(rows.dtype[row]);
  if (bad) return Infinity;
  return what === "mean" ? num(mean[row]) : Math.max(Math.abs(num(min[row])), Math.abs(num(max[row])));
}

function itemSize(dtype: string): number {
  const bits = Number(/(\d+)$/.exec(dtype)?.[1] ?? 8);
  return dtype === "bool" ? 1 : Math.max(1, bits / 8);
}

interface Heat {
  of: Map<number, number>;
  low: number;
  high: number;
}

const heat = computed<Heat>(() => {
  const found = new Map<number, number>();
  const rows = table.value;
  const model = graph.value;
  const what = measure.value;
  if (!rows || !model || !what) return { of: found, low: 0, high: 0 };
  rows.tensor.forEach((tensor, row) => {
    const item = model.itemOfNode[model.columns.tensors.node[tensor]];
    if (item === undefined || item < 0) return;
    found.set(item, Math.max(found.get(item) ?? 0, measured(rows, row, what)));
  });
  const finite = [...found.values()].filter((one) => Number.isFinite(one) && one > 0);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const wide = Math.log10(high) - Math.log10(low) || 1;
  for (const [item, one] of found)
    found.set(
      item,
      !Number.isFinite(one)
        ? 1
        : one <= 0
          ? 0
          : Math.min(0.85, 0.1 + (0.75 * (Math.log10(one) - Math.log10(low))) / wide),
    );
  return { of: found, low, high };
});

/** Item → 0 … 1; what is not finite is 1. */
export const heatOf = computed<Map<number, number>>(() => heat.value.of);

/** What the colours mean, with the ends of the scale. */
export function HeatLegend() {
  const what = measure.value;
  const { low, high } = heat.value;
  if (!what || !Number.isFinite(high) || !heat.value.of.size) return null;
  const shown = (one: number): string =>
    what === "bytes"
      ? bytes(one)
      : what === "nan"
        ? count(one)
        : what === "zeros"
          ? `${value(one * 100)} %`
          : value(one);
  return (
    <div class="heat-scale" data-test="heat-scale">
      <span>{said("graph.by", what)}</span>
      <span class="mono">{shown(low)}</span>
      <span class="ramp warm" />
      <span class="mono">{shown(high)}</span>
      <span class="dim">{t("graph.step", { step: shownStep.value })}</span>
    </div>
  );
}
