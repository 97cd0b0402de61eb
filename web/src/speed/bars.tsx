// Steps as stacked bars: one colour a segment, from the bottom in the order of a step, with the median as a line.
import type { SpeedView } from "../types.gen";
import { w } from "./words";

const WIDTH = 1200;
const HEIGHT = 190;
/** By segment; the same in the legend. */
export const COLOURS: Record<string, string> = {
  data: "var(--s4)",
  transfer: "var(--s1)",
  forward: "var(--s0)",
  loss: "var(--s3)",
  backward: "var(--s6)",
  gradients: "var(--s5)",
  optimizer: "var(--s2)",
  gap: "var(--s7)",
  compile: "var(--edge)",
};
const ORDER = ["gap", "optimizer", "gradients", "backward", "loss", "forward", "transfer", "data", "compile"];

export function ms(value: number): string {
  return value >= 1000
    ? `${(value / 1000).toPrecision(3)} s`
    : `${value >= 100 ? value.toFixed(0) : value.toPrecision(3)} ms`;
}

export function Bars({ view }: { view: SpeedView }) {
  const bars = view.steps.length;
  if (!bars) return null;
  const totals = view.steps.map((_, at) => view.spent.reduce((sum, column) => sum + (column[at] ?? 0), 0));
  const ordered = [...totals].sort((a, b) => a - b);
  // Beyond a multiple of the usual a bar is cut: one long step must not flatten all others.
  const top = Math.max(
    1e-9,
    Math.min(ordered[ordered.length - 1] ?? 0, 3 * (ordered[Math.floor(bars * 0.9)] ?? 0)) * 1.04,
  );
  const wide = WIDTH / bars;
  const y = (value: number) => HEIGHT - (Math.min(value, top) / top) * HEIGHT;
  return (
    <svg class="speed-bars" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img">
      <title>{w("title")}</title>
      {view.steps.map((step, at) => {
        let below = 0;
        const said = view.segments
          .map((_, place) => ({ word: view.words[place] ?? "", took: view.spent[place]?.[at] ?? 0 }))
          .filter((one) => one.took > 0)
          .map((one) => `${one.word} ${ms(one.took)}`);
        return (
          <g key={step}>
            <title>{`${step}: ${ms(totals[at] ?? 0)} · ${said.join(" · ")}`}</title>
            {ORDER.map((name) => {
              const took = view.spent[view.segments.indexOf(name)]?.[at] ?? 0;
              const from = below;
              below += took;
              const high = y(from) - y(below);
              return high > 0.2 ? (
                <rect
                  key={name}
                  x={at * wide}
                  y={y(below)}
                  width={Math.max(wide - (wide > 4 ? 1 : 0), 0.5)}
                  height={high}
                  fill={COLOURS[name] ?? "var(--s7)"}
                />
              ) : null;
            })}
          </g>
        );
      })}
      <line class="speed-median" x1="0" x2={WIDTH} y1={y(view.p50)} y2={y(view.p50)} />
    </svg>
  );
}

export function Legend({ view }: { view: SpeedView }) {
  const used = view.segments.filter((_, place) => (view.spent[place] ?? []).some((took) => took > 0));
  return (
    <ul class="speed-legend">
      {used.map((name) => (
        <li key={name}>
          <i style={{ background: COLOURS[name] }} />
          {view.words[view.segments.indexOf(name)]}
        </li>
      ))}
    </ul>
  );
}
