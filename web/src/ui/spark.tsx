// A curve in the height of a line: gaps where a value was not finite, and a magenta tick there, so that NaN is seen.
import { num } from "../format/number";
import type { Num } from "../types.gen";

export function Spark({
  points,
  width = 72,
  height = 18,
}: {
  points: readonly (Num | null)[];
  width?: number;
  height?: number;
}) {
  if (points.length < 2) return null;
  const values = points.map((one) => num(one));
  const finite = values.filter(Number.isFinite);
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  const x = (at: number): number => 1 + (at * (width - 2)) / (values.length - 1);
  const y = (one: number): number => height - 2 - ((one - low) * (height - 4)) / span;
  let path = "";
  let drawing = false;
  values.forEach((one, at) => {
    if (Number.isFinite(one)) path += `${drawing ? "L" : "M"}${x(at).toFixed(1)} ${y(one).toFixed(1)}`;
    drawing = Number.isFinite(one);
  });
  return (
    <svg
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      aria-hidden="true"
      style={{ display: "block", flex: "none" }}
    >
      {values.map((one, at) =>
        Number.isFinite(one) ? null : (
          <rect
            key={at}
            x={x(at) - 1}
            y={1}
            width={2}
            height={height - 2}
            fill={Number.isNaN(one) ? "var(--nan)" : "var(--inf)"}
          />
        ),
      )}
      <path d={path} fill="none" stroke="var(--s0)" stroke-width="1.4" />
    </svg>
  );
}
