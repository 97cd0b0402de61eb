// The lines of a checkpoint's page: each weight with its partner in the other checkpoint, and which lines a filter keeps.
import type { CheckpointView, ComparisonTable, WeightView } from "../types.gen";
import { stuckOver } from "./series";

export const FILTERS = ["all", "changed", "same", "bad", "stuck", "alone", "weights", "optimizer"] as const;
export type Filter = (typeof FILTERS)[number];

export type Change = "same" | "rounding" | "changed" | "shape" | "dtype" | "onlyA" | "onlyB" | "";

export interface Line {
  name: string;
  a: WeightView | null;
  b: WeightView | null;
  change: Change;
  row: number;
}

/** Every weight of A with its partner, then what only B has. */
export function linesOf(one: CheckpointView, other: CheckpointView | undefined, table: ComparisonTable | null): Line[] {
  if (!other || !table)
    return one.weights.map((weight) => ({ name: weight.name, a: weight, b: null, change: "", row: -1 }));
  const left = new Map(one.weights.map((weight) => [weight.address, weight]));
  const right = new Map(other.weights.map((weight) => [weight.address, weight]));
  const { left_address, right_address, verdict } = table.rows;
  const found: Line[] = verdict.map((said, row) => {
    const a = left.get(left_address[row]) ?? null;
    const b = right.get(right_address[row]) ?? null;
    const change: Change =
      said === "identical"
        ? "same"
        : said === "noise"
          ? "rounding"
          : said === "different"
            ? "changed"
            : said === "missing"
              ? a
                ? "onlyA"
                : "onlyB"
              : said;
    return { name: a?.name ?? b?.name ?? "", a, b, change, row };
  });
  const seen = new Set(found.map((line) => line.name));
  for (const [all, change] of [
    [table.only_left, "onlyA"],
    [table.only_right, "onlyB"],
  ] as const) {
    for (const alone of all) {
      const weight = (change === "onlyA" ? left : right).get(alone.address) ?? null;
      if (weight && !seen.has(weight.name))
        found.push({
          name: weight.name,
          a: change === "onlyA" ? weight : null,
          b: change === "onlyB" ? weight : null,
          change,
          row: -1,
        });
    }
  }
  return found;
}

export function isBad(weight: WeightView | null): boolean {
  return weight !== null && (weight.state === "nan" || weight.state === "inf" || weight.state === "exploding");
}

export function fits(line: Line, only: Filter): boolean {
  if (only === "changed")
    return (
      line.change === "changed" || line.change === "rounding" || line.change === "shape" || line.change === "dtype"
    );
  if (only === "same") return line.change === "same";
  if (only === "bad") return isBad(line.a) || isBad(line.b);
  if (only === "stuck") return line.a !== null && stuckOver(line.a.address) > 0;
  if (only === "alone") return line.change === "onlyA" || line.change === "onlyB";
  if (only === "weights" || only === "optimizer") return (line.a ?? line.b)?.section === only;
  return true;
}
