// What the colours mean: the scale with its ends, and how many elements are of each kind.
import { count, value } from "../format/number";
import { t } from "../i18n";
import type { StatsView } from "../types.gen";
import { type Scale, valueAt } from "./scale";

export function Legend({ scale, stats }: { scale: Scale | null; stats: StatsView | null }) {
  const ends = scale ? [scale.signed ? -1 : 0, 1] : [0, 1];
  const ramp =
    scale?.signed === false
      ? "linear-gradient(90deg, var(--bg2), var(--cold))"
      : "linear-gradient(90deg, var(--cold), var(--bg2), var(--hot))";
  return (
    <div class="heat-legend" aria-label={t("tensor.legend")} role="group">
      {scale && (
        <>
          <span class="mono">
            {scale.clipped ? "◂ " : ""}
            {value(valueAt(ends[0], scale), 3)}
          </span>
          <span class="ramp" style={{ background: ramp }} />
          <span class="mono">
            {value(valueAt(ends[1], scale), 3)}
            {scale.clipped ? " ▸" : ""}
          </span>
          <span class="dim">{scale.kind}</span>
        </>
      )}
      <span class="swatch nan" />
      <span>NaN {count(stats?.nan ?? 0)}</span>
      <span class="swatch up" />
      <span>+Inf {count(stats?.pos_inf ?? 0)}</span>
      <span class="swatch down" />
      <span>-Inf {count(stats?.neg_inf ?? 0)}</span>
      <span class="dim">0: {count(stats?.zeros ?? 0)}</span>
    </div>
  );
}
