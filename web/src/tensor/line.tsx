// One row of a tensor as a curve; a value that is not finite is a mark on the rail, never a gap that nobody sees.
import { value } from "../format/number";
import { t } from "../i18n";
import { plainNumber } from "../net/values";
import { TILE, type TileSource } from "./tiles";

const W = 640;
const H = 200;
const MOST = 2048;

export function Line({ source, row }: { source: TileSource; row: number }) {
  void source.version.value;
  const shown = Math.min(source.columns, MOST);
  const points: (number | undefined)[] = [];
  for (let tile = 0; tile * TILE < shown; tile += 1) {
    for (let at = tile * TILE; at < Math.min(shown, (tile + 1) * TILE); at += 1) {
      const one = source.value(row, at);
      points.push(one === undefined ? undefined : plainNumber(one));
    }
  }
  const finite = points.filter((one): one is number => one !== undefined && Number.isFinite(one));
  const low = finite.length ? Math.min(...finite) : 0;
  const high = finite.length ? Math.max(...finite) : 1;
  const x = (at: number): number => 8 + (at * (W - 16)) / Math.max(1, shown - 1);
  const y = (one: number): number => H - 26 - ((one - low) / (high - low || 1)) * (H - 52);
  let path = "";
  let drawing = false;
  points.forEach((one, at) => {
    const good = one !== undefined && Number.isFinite(one);
    if (good) path += `${drawing ? "L" : "M"}${x(at).toFixed(1)} ${y(one).toFixed(1)}`;
    drawing = good;
  });
  return (
    <svg viewBox={`0 0 ${W} ${H}`} class="histogram" role="img" aria-label={t("tensor.lineLabel", { row })}>
      <line x1="8" x2={W - 8} y1={H - 20} y2={H - 20} stroke="var(--line)" />
      {low < 0 && high > 0 && (
        <line x1="8" x2={W - 8} y1={y(0)} y2={y(0)} stroke="var(--edge)" stroke-dasharray="3 3" />
      )}
      <path d={path} fill="none" stroke="var(--s0)" stroke-width="1.4" />
      {points.map(
        (one, at) =>
          one !== undefined &&
          !Number.isFinite(one) && (
            <path
              key={at}
              d={one === -Infinity ? `M${x(at) - 4} ${H - 30}h8l-4 8z` : `M${x(at) - 4} 16h8l-4 -8z`}
              fill={Number.isNaN(one) ? "var(--nan)" : "var(--inf)"}
            >
              <title>{`[${at}] ${value(one)}`}</title>
            </path>
          ),
      )}
      {shown <= 64 &&
        points.map(
          (one, at) =>
            one !== undefined &&
            Number.isFinite(one) && (
              <circle key={at} cx={x(at)} cy={y(one)} r="2.4" fill="var(--s0)">
                <title>{`[${at}] ${value(one)}`}</title>
              </circle>
            ),
        )}
      <text x="8" y="14" class="axis">
        {value(high)}
      </text>
      <text x="8" y={H - 24} class="axis">
        {value(low)}
      </text>
      <text x="8" y={H - 5} class="axis">
        0
      </text>
      <text x={W - 8} y={H - 5} class="axis" text-anchor="end">
        {shown - 1}
        {shown < source.columns ? ` / ${source.columns - 1}` : ""}
      </text>
    </svg>
  );
}
