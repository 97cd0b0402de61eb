// How the values are spread; NaN and the infinities have bars of their own at the side and never vanish in the rest.
import { useSignal } from "@preact/signals";
import { count, value } from "../format/number";
import { t } from "../i18n";
import type { Histogram as Data } from "../types.gen";

const W = 640;
const H = 190;
const BASE = H - 22;

export function Histogram({ data, other }: { data: Data; other?: Data | null }) {
  const log = useSignal(true);
  const most = Math.max(1, ...data.counts, ...(other?.counts ?? []));
  const tall = (n: number): number =>
    n === 0 ? 0 : Math.max(2, (log.value ? Math.log1p(n) / Math.log1p(most) : n / most) * (BASE - 14));
  const bad = [
    ["NaN", data.nan, "var(--nan)"],
    ["+Inf", data.pos_inf, "var(--inf)"],
    ["-Inf", data.neg_inf, "var(--inf)"],
  ] as const;
  const side = bad.some(([, n]) => n > 0) ? 130 : 0;
  const room = W - side - 8;
  const step = room / data.counts.length;
  const low = data.edges[0];
  const high = data.edges[data.edges.length - 1];
  return (
    <div class="column">
      <label class="field" style={{ alignSelf: "flex-end" }}>
        <input type="checkbox" checked={log.value} onChange={() => (log.value = !log.value)} />
        {t("tensor.logCounts")}
      </label>
      <svg
        viewBox={`0 0 ${W} ${H}`}
        class="histogram"
        role="img"
        aria-label={t("tensor.histLabel", { bins: data.counts.length, low: value(low), high: value(high) })}
      >
        <line x1="4" x2={room + 4} y1={BASE + 0.5} y2={BASE + 0.5} stroke="var(--line)" />
        {low < 0 && high > 0 && (
          <line
            x1={4 + (-low / (high - low)) * room}
            x2={4 + (-low / (high - low)) * room}
            y1="6"
            y2={BASE}
            stroke="var(--edge)"
            stroke-dasharray="3 3"
          />
        )}
        {data.counts.map((n, at) => (
          <rect
            key={at}
            x={4 + at * step + 0.5}
            width={Math.max(1, step - 1)}
            y={BASE - tall(n)}
            height={tall(n)}
            fill="var(--s0)"
          >
            <title>{`${value(data.edges[at])} … ${value(data.edges[at + 1])}: ${count(n)}`}</title>
          </rect>
        ))}
        {other?.counts.map((n, at) => (
          <rect
            key={at}
            x={4 + (at * room) / other.counts.length}
            width={room / other.counts.length}
            y={BASE - tall(n) - 1}
            height="2"
            fill="var(--s1)"
          />
        ))}
        <text x="4" y={H - 6} class="axis">
          {value(low)}
        </text>
        <text x={room / 2 + 4} y={H - 6} class="axis" text-anchor="middle">
          {value((low + high) / 2)}
        </text>
        <text x={room + 4} y={H - 6} class="axis" text-anchor="end">
          {value(high)}
        </text>
        <text x="4" y="12" class="axis">
          {count(most)}
        </text>
        {side > 0 &&
          bad.map(
            ([name, n, ink], at) =>
              n > 0 && (
                <g key={name}>
                  <rect x={W - side + 14 + at * 38} width="26" y={BASE - tall(n)} height={tall(n)} fill={ink} />
                  <text x={W - side + 27 + at * 38} y={H - 6} class="axis" text-anchor="middle">
                    {name}
                  </text>
                  <text x={W - side + 27 + at * 38} y={BASE - tall(n) - 4} class="axis" text-anchor="middle">
                    {count(n)}
                  </text>
                </g>
              ),
          )}
      </svg>
    </div>
  );
}
