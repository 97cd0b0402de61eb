// Operators as a treemap: area is own time, colour the phase. Rows are laid along the shorter side while that keeps
// tiles near square.
import type { SpeedOperator } from "../types.gen";

interface Tile {
  one: SpeedOperator;
  x: number;
  y: number;
  w: number;
  h: number;
}

const PHASES: Record<string, string> = {
  forward: "var(--op-matmul)",
  backward: "var(--op-loss)",
  optimizer: "var(--op-act)",
};

export function Treemap({ operators }: { operators: readonly SpeedOperator[] }) {
  return (
    <div class="speed-map">
      {tiles(operators).map(({ one, x, y, w, h }) => (
        <div
          key={`${one.name} ${one.phase} ${one.where}`}
          class="speed-tile"
          title={`${one.name} ${one.phase} ${(one.share * 100).toFixed(1)} % ${one.where}`}
          style={{
            left: `${x}%`,
            top: `${y}%`,
            width: `${w}%`,
            height: `${h}%`,
            background: PHASES[one.phase] ?? "var(--op-elem)",
          }}
        >
          {w * h > 120 && (
            <>
              <b>
                {one.name} {(one.share * 100).toFixed(0)} %
              </b>
              <span class="mono">{one.where}</span>
            </>
          )}
        </div>
      ))}
    </div>
  );
}

export function tiles(operators: readonly SpeedOperator[]): Tile[] {
  const whole = operators.reduce((sum, one) => sum + one.share, 0) || 1;
  const left = operators.map((one) => ({ one, area: (one.share / whole) * 10000 }));
  const made: Tile[] = [];
  let [x, y, w, h] = [0, 0, 100, 100];
  while (left.length) {
    const side = Math.min(w, h);
    let row: typeof left = [];
    let worst = Number.POSITIVE_INFINITY;
    for (const next of left) {
      const tried = [...row, next];
      const sum = tried.reduce((total, one) => total + one.area, 0);
      const ratio = Math.max(...tried.map((one) => skew(one.area, sum, side)));
      if (ratio > worst) break;
      row = tried;
      worst = ratio;
    }
    const sum = row.reduce((total, one) => total + one.area, 0);
    const thick = sum / side;
    let along = 0;
    for (const { one, area } of row) {
      const long = area / thick;
      made.push(w <= h ? { one, x: x + along, y, w: long, h: thick } : { one, x, y: y + along, w: thick, h: long });
      along += long;
    }
    if (w <= h) [y, h] = [y + thick, h - thick];
    else [x, w] = [x + thick, w - thick];
    left.splice(0, row.length);
  }
  return made;
}

/** How far from square a tile of this area is, in a row of this sum along this side. */
function skew(area: number, sum: number, side: number): number {
  const thick = sum / side;
  const long = area / thick;
  return Math.max(thick / long, long / thick);
}
