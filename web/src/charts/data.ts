// Curves made ready to draw: one x axis for all, gaps where there is no value, smoothing that forgets nothing, and what
// is not finite kept aside so that it is drawn as a mark.

export interface Series {
  label: string;
  x: readonly number[];
  y: readonly number[];
  /** Number in the palette (strokes.ts); from the ninth on the line is broken. */
  colour: number;
  /** Drawn faint and without a legend: the raw values under a smoothed line. */
  faint?: boolean;
}

export interface Bad {
  x: number;
  kind: "nan" | "up" | "down";
  series: number;
}

export interface Aligned {
  x: number[];
  /** One array for each series; null where it has no finite value. */
  y: (number | null)[][];
  bad: Bad[];
}

export function align(all: readonly Series[]): Aligned {
  const same =
    all.length > 0 &&
    all.every(
      (one) =>
        one.x === all[0].x ||
        (one.x.length === all[0].x.length &&
          one.x[0] === all[0].x[0] &&
          one.x[one.x.length - 1] === all[0].x[all[0].x.length - 1] &&
          one.x.every((value, at) => value === all[0].x[at])),
    );
  const bad: Bad[] = [];
  const note = (x: number, y: number, series: number): null => {
    if (!all[series].faint) bad.push({ x, kind: Number.isNaN(y) ? "nan" : y > 0 ? "up" : "down", series });
    return null;
  };
  if (same) {
    const x = [...all[0].x];
    return {
      x,
      y: all.map((one, series) =>
        one.y.map((value, at) => (Number.isFinite(value) ? value : note(x[at], value, series))),
      ),
      bad,
    };
  }
  const x = [...new Set(all.flatMap((one) => [...one.x]))].sort((a, b) => a - b);
  const place = new Map(x.map((value, at) => [value, at]));
  const y = all.map((one, series) => {
    const column: (number | null)[] = Array<number | null>(x.length).fill(null);
    one.x.forEach((value, at) => {
      const height = one.y[at];
      column[place.get(value) as number] = Number.isFinite(height) ? height : note(value, height, series);
    });
    return column;
  });
  return { x, y, bad };
}

/** An exponential mean that starts unbiased and steps over what is not finite, leaving it where it was. */
export function smooth(y: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...y];
  let mean = 0;
  let share = 0;
  return y.map((value) => {
    if (!Number.isFinite(value)) return value;
    mean = mean * weight + (1 - weight) * value;
    share = share * weight + (1 - weight);
    return mean / share;
  });
}

/** The least and the greatest of every bucket: what is drawn of more points than pixels. */
export function minMax(x: readonly number[], y: readonly number[], buckets: number): { x: number[]; y: number[] } {
  if (x.length <= buckets * 2) return { x: [...x], y: [...y] };
  const size = Math.ceil(x.length / buckets);
  const out: { x: number[]; y: number[] } = { x: [], y: [] };
  for (let start = 0; start < x.length; start += size) {
    const stop = Math.min(x.length, start + size);
    let low = -1;
    let high = -1;
    let odd = -1;
    for (let at = start; at < stop; at += 1) {
      if (!Number.isFinite(y[at])) odd = odd < 0 ? at : odd;
      else {
        if (low < 0 || y[at] < y[low]) low = at;
        if (high < 0 || y[at] > y[high]) high = at;
      }
    }
    for (const at of [...new Set([low, high, odd])].filter((one) => one >= 0).sort((a, b) => a - b)) {
      out.x.push(x[at]);
      out.y.push(y[at]);
    }
  }
  return out;
}

export interface Divergence {
  x: number[];
  /** (run − base) / |base|. */
  y: number[];
  /** The first step more than 1 ‰ apart; null when there is none. */
  first: number | null;
}

export const PER_MILLE = 1e-3;

export function divergence(base: Series, run: Series): Divergence {
  const reference = new Map(base.x.map((x, at) => [x, base.y[at]]));
  const out: Divergence = { x: [], y: [], first: null };
  run.x.forEach((x, at) => {
    const wanted = reference.get(x);
    if (wanted === undefined) return;
    const gap = wanted === run.y[at] ? 0 : (run.y[at] - wanted) / Math.abs(wanted);
    out.x.push(x);
    out.y.push(gap);
    if (out.first === null && !(Math.abs(gap) <= PER_MILLE)) out.first = x;
  });
  return out;
}

/** Most values lie together and a few far out: the range of the many, and how many are beyond. Null when nothing is. */
export function withoutOutliers(series: readonly Series[]): { low: number; high: number; beyond: number } | null {
  const all: number[] = [];
  for (const one of series) if (!one.faint) for (const y of one.y) if (Number.isFinite(y)) all.push(y);
  if (all.length < 20) return null;
  all.sort((a, b) => a - b);
  const at = (share: number): number => all[Math.min(all.length - 1, Math.floor(share * all.length))];
  const [low, high] = [at(0.02), at(0.98)];
  const span = high - low;
  if (span <= 0) return null;
  // Half a span is what a curve that falls steeply at first may reach; five is something else.
  const [least, most] = [low - 5 * span, high + 5 * span];
  const beyond = all.filter((y) => y < least || y > most).length;
  if (!beyond) return null;
  const inside = all.filter((y) => y >= least && y <= most);
  const margin = 0.06 * (inside[inside.length - 1] - inside[0]);
  return { low: inside[0] - margin, high: inside[inside.length - 1] + margin, beyond };
}
