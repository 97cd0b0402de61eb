// An axis of a chart made of rows: where the value of a row lies between 0 and 1, and what is written beside it.

/** Where a value lies on an axis, from 0 to 1; NaN when it has no place. */
export interface Axis {
  name: string;
  at: (row: number) => number;
  ticks: { at: number; label: string }[];
  /** The value at a place, for what is dragged over; absent where the values are words. */
  from?: (at: number) => number;
}

/** The axis of a column: numbers by size or by exponent, words by their order. */
export function axisOf(name: string, column: readonly (number | string | boolean | null)[], log: boolean): Axis {
  const given = column.filter((one) => one !== null && one !== undefined);
  if (given.some((one) => typeof one !== "number")) {
    const words = [...new Set(given.map(String))].sort();
    const places = new Map(words.map((word, at) => [word, words.length < 2 ? 0.5 : at / (words.length - 1)]));
    return {
      name,
      at: (row) => {
        const one = column[row];
        return one === null || one === undefined ? NaN : (places.get(String(one)) ?? NaN);
      },
      ticks: words.map((word) => ({ at: places.get(word) as number, label: word })),
    };
  }
  return numberAxis(name, given as number[], log, (row) => (column[row] === null ? NaN : Number(column[row])));
}

/** Values over several powers of ten, all above zero, are seen by their exponent. */
export function spread(numbers: readonly number[]): boolean {
  if (!numbers.length) return false;
  let least = Infinity;
  let most = -Infinity;
  for (const one of numbers) {
    least = Math.min(least, one);
    most = Math.max(most, one);
  }
  return least > 0 && most / least > 100;
}

/** `numbers` span the axis; `of` finds the value of a row. */
export function numberAxis(name: string, numbers: readonly number[], log: boolean, of: (row: number) => number): Axis {
  let low = Infinity;
  let high = -Infinity;
  for (const one of numbers) {
    if (!Number.isFinite(one)) continue;
    low = Math.min(low, one);
    high = Math.max(high, one);
  }
  const exponent = log && low > 0;
  const by = exponent ? Math.log10 : (x: number): number => x;
  const [begin, end] = [by(low), by(high)];
  const at = (x: number): number => (end > begin ? (by(x) - begin) / (end - begin) : 0.5);
  const from = (part: number): number => {
    const x = begin + part * (end - begin);
    return exponent ? 10 ** x : x;
  };
  const shown = (x: number): string => Number(x.toPrecision(3)).toString();
  const ticks = low <= high ? [0, 0.25, 0.5, 0.75, 1].map((part) => ({ at: part, label: shown(from(part)) })) : [];
  return { name, at: (row) => at(of(row)), ticks, from };
}
