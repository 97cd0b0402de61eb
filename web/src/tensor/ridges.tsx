// A tensor's histogram at every step whose values were kept, one behind the other, or as rows of a heat map.
import { useSignal, useSignalEffect } from "@preact/signals";
import { count, value } from "../format/number";
import { t } from "../i18n";
import { askBinary } from "../net/api";
import { query } from "../state/route";
import { detail, rank, runName } from "../state/run";
import type { Histogram, TensorHeader } from "../types.gen";

const MOST = 24;
const W = 640;

export function Ridges({ address }: { address: string }) {
  const found = useSignal<{ step: number; histogram: Histogram }[]>([]);
  const heat = useSignal(false);
  useSignalEffect(() => {
    const wanted = query.value.tensor;
    const steps = (detail.value?.tensor_steps ?? []).slice(-MOST);
    const end = new AbortController();
    found.value = [];
    if (!wanted) return;
    void Promise.all(
      steps.map(async (step) => {
        try {
          const answer = await askBinary<TensorHeader>(
            `runs/${encodeURIComponent(runName.value)}/tensor`,
            { address: `${wanted}@${step}#${rank.value}`, want: ["hist:64"] },
            end.signal,
          );
          return answer.header.histogram ? { step, histogram: answer.header.histogram } : null;
        } catch {
          return null; // this step kept other tensors
        }
      }),
    ).then((all) => {
      if (!end.signal.aborted) found.value = all.filter((one) => one !== null);
    });
    return () => end.abort();
  });
  if (!found.value.length) return <p class="dim">{t("stats.noHistograms")}</p>;
  const low = Math.min(...found.value.map((one) => one.histogram.edges[0]));
  const high = Math.max(...found.value.map((one) => one.histogram.edges[one.histogram.edges.length - 1]));
  const x = (at: number): number => 60 + ((at - low) / (high - low || 1)) * (W - 130);
  const tall = heat.value ? 16 : 22;
  const height = found.value.length * tall + 50;
  return (
    <div class="column">
      <label class="field">
        <input type="checkbox" checked={heat.value} onChange={() => (heat.value = !heat.value)} />
        {t("stats.heatRows")}
      </label>
      <svg viewBox={`0 0 ${W} ${height}`} class="histogram" role="img" aria-label={t("stats.ridges", { address })}>
        {found.value.map(({ step, histogram }, row) => {
          const base = 30 + (row + 1) * tall;
          const most = Math.max(1, ...histogram.counts);
          const bad = histogram.nan + histogram.pos_inf + histogram.neg_inf;
          const width = x(histogram.edges[1]) - x(histogram.edges[0]) || 1;
          const up = (n: number): number => (Math.log1p(n) / Math.log1p(most)) * (tall + 12);
          const outline = histogram.counts
            .map((n, at) => `L${(x(histogram.edges[at]) + width / 2).toFixed(1)} ${(base - up(n)).toFixed(1)}`)
            .join("");
          return (
            <g key={step}>
              <text x="52" y={base} class="axis" text-anchor="end">
                {step}
              </text>
              {heat.value ? (
                histogram.counts.map((n, at) => (
                  <rect
                    key={at}
                    x={x(histogram.edges[at])}
                    y={base - tall + 2}
                    width={width + 0.5}
                    height={tall - 2}
                    fill="var(--cold)"
                    opacity={n ? 0.12 + (0.88 * Math.log1p(n)) / Math.log1p(most) : 0}
                  >
                    <title>{`${value(histogram.edges[at])}: ${count(n)}`}</title>
                  </rect>
                ))
              ) : (
                <path
                  d={`M${x(histogram.edges[0])} ${base}${outline}L${x(histogram.edges[histogram.edges.length - 1])} ${base}Z`}
                  fill="var(--bg2)"
                  stroke="var(--s0)"
                  stroke-width="1.2"
                />
              )}
              {bad > 0 && (
                <>
                  <rect
                    x={W - 62}
                    y={base - 12}
                    width="10"
                    height="10"
                    fill={histogram.nan ? "var(--nan)" : "var(--inf)"}
                  />
                  <text x={W - 48} y={base - 3} class="axis">
                    {count(bad)}
                  </text>
                </>
              )}
            </g>
          );
        })}
        <text x="60" y={height - 6} class="axis">
          {value(low)}
        </text>
        <text x={W - 70} y={height - 6} class="axis" text-anchor="end">
          {value(high)}
        </text>
      </svg>
    </div>
  );
}
