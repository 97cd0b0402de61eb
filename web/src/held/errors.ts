// How bad a row is, as one number for colours: 0 the same bits, up to ½ what rounding explains, above it what it does not.
import { num } from "../format/number";
import type { Model } from "../graph/model";
import type { ComparisonTable } from "../types.gen";

/** Where rounding ends. */
export const NOISE_MOST = 0.5;

export function badness(table: ComparisonTable, row: number): number {
  const { verdict, relative, expected } = table.rows;
  if (verdict[row] === "identical") return 0;
  const share = Math.log10(Math.max(1e-12, num(relative[row] ?? "NaN")) / Math.max(1e-12, num(expected[row] ?? 0)));
  if (verdict[row] === "noise")
    return Math.min(NOISE_MOST, Math.max(0.12, NOISE_MOST + (Number.isFinite(share) ? share : 0) * 0.15));
  if (verdict[row] !== "different" || !Number.isFinite(share)) return 1;
  return Math.min(1, 0.62 + Math.max(0, share) * 0.06);
}

export interface Places {
  /** Item of the graph → the worst of its rows. */
  heat: Map<number, number>;
  /** Item → its rows, in execution order. */
  rows: Map<number, number[]>;
  bad: Set<number>;
  causes: Set<number>;
}

const GRADIENT = /:grad(_input|_output)?(\.\d+)?$/;
export type Phase = "forward" | "backward";

/** In which pass a row was computed: gradients flow through the same nodes, the other way. */
export function phaseOf(table: ComparisonTable, row: number): Phase {
  return GRADIENT.test(table.rows.left[row] || table.rows.right[row] || "") ? "backward" : "forward";
}

/** Rows of one pass by the place of the graph they belong to. */
export function placesOf(table: ComparisonTable, model: Model, side: "a" | "b", phase: Phase): Places {
  const found: Places = { heat: new Map(), rows: new Map(), bad: new Set(), causes: new Set() };
  const names = side === "a" ? table.rows.left_node : table.rows.right_node;
  names.forEach((name, row) => {
    const item = name ? (model.exact(name) ?? model.find(name)) : 0;
    if (!item || phaseOf(table, row) !== phase) return;
    found.heat.set(item, Math.max(found.heat.get(item) ?? 0, badness(table, row)));
    const list = found.rows.get(item);
    if (list) list.push(row);
    else found.rows.set(item, [row]);
    const { verdict, part } = table.rows;
    if (verdict[row] !== "identical" && verdict[row] !== "noise") found.bad.add(item);
    if (part[row] === "cause") found.causes.add(item);
  });
  return found;
}

/** The row to show for a place: its first cause, else its first difference, else its first row; scopes ask inside. */
export function rowAt(places: Places, table: ComparisonTable, model: Model, item: number): number {
  const rows = [...places.rows]
    .filter(([one]) => one === item || model.contains(item, one))
    .flatMap(([, list]) => list)
    .sort((a, b) => a - b);
  const { verdict, part } = table.rows;
  return (
    rows.find((row) => part[row] === "cause") ??
    rows.find((row) => verdict[row] !== "identical" && verdict[row] !== "noise") ??
    rows[0] ??
    -1
  );
}
