// numpy's slice syntax, as Python reads it: `0, 3, ::2, -1`. The hub reads it again; here it is checked while typing.

export interface Range {
  start: number | null;
  stop: number | null;
  step: number | null;
}
export type Part = number | Range;

export interface Sliced {
  parts: Part[];
  /** The axes that are left, with their sizes. */
  free: { axis: number; size: number }[];
}

export class SliceError extends Error {
  /** A slice that would work for this shape. */
  readonly example: string;

  constructor(text: string, example: string) {
    super(text);
    this.example = example;
  }
}

/** Two axes free, the others at their first element: what is shown before anybody chose. */
export function defaultSlice(shape: readonly number[]): string {
  if (shape.length <= 2) return "";
  return [...shape.slice(0, -2).map(() => "0"), ":", ":"].join(",");
}

export function parseSlice(text: string, shape: readonly number[]): Sliced {
  const example = `[${defaultSlice(shape) || shape.map(() => ":").join(",")}]`;
  const wrong = (why: string): SliceError => new SliceError(why, example);
  const bare = text.trim();
  const inside = bare.startsWith("[") && bare.endsWith("]") ? bare.slice(1, -1) : bare;
  const words = inside.trim() ? inside.split(",").map((word) => word.trim()) : [];
  if (words.length && !words[words.length - 1]) words.pop();
  const dots = words.filter((word) => word === "...").length;
  if (dots > 1) throw wrong("…");
  const given = words.length - dots;
  if (given > shape.length) throw wrong(`${given} > ${shape.length}`);
  const fill = Array<string>(shape.length - given).fill(":");
  const at = words.indexOf("...");
  const whole = at >= 0 ? [...words.slice(0, at), ...fill, ...words.slice(at + 1)] : [...words, ...fill];
  const parts = whole.map((word, axis) => part(word, axis, shape[axis], wrong));
  const free = parts.flatMap((one, axis) =>
    typeof one === "number" ? [] : [{ axis, size: lengthOf(one, shape[axis]) }],
  );
  return { parts, free };
}

function part(word: string, axis: number, size: number, wrong: (why: string) => SliceError): Part {
  if (/^[-+]?\d{1,15}$/.test(word)) {
    const index = Number(word);
    if (index < -size || index >= size) throw wrong(`${word}: 0 … ${size - 1} (axis ${axis})`);
    return index < 0 ? index + size : index;
  }
  const found = /^(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?)?$/.exec(word);
  if (!found) throw wrong(word || "?");
  const [start, stop, step] = [found[1], found[2], found[3]].map((one) => (one === undefined ? null : Number(one)));
  if (step === 0) throw wrong("::0");
  return { start, stop, step };
}

/** How many elements a range leaves, by Python's rules. */
export function lengthOf(range: Range, size: number): number {
  const [start, stop, step] = bounds(range, size);
  return Math.max(0, step > 0 ? Math.ceil((stop - start) / step) : Math.ceil((start - stop) / -step));
}

function bounds(range: Range, size: number): [number, number, number] {
  const step = range.step ?? 1;
  const clip = (value: number, low: number, high: number): number =>
    Math.min(high, Math.max(low, value < 0 ? value + size : value));
  if (step > 0)
    return [
      range.start === null ? 0 : clip(range.start, 0, size),
      range.stop === null ? size : clip(range.stop, 0, size),
      step,
    ];
  return [
    range.start === null ? size - 1 : clip(range.start, -1, size - 1),
    range.stop === null ? -1 : clip(range.stop, -1, size - 1),
    step,
  ];
}

/** Where an element of the slice lies in the whole tensor. */
export function wholeIndex(sliced: Sliced, shape: readonly number[], inner: readonly number[]): number[] {
  let at = 0;
  return sliced.parts.map((one, axis) => {
    if (typeof one === "number") return one;
    const [start, , step] = bounds(one, shape[axis]);
    return start + step * inner[at++];
  });
}

/** The same slice with one fixed index moved. */
export function moved(sliced: Sliced, shape: readonly number[], axis: number, by: number): string {
  return sliced.parts
    .map((one, at) => {
      if (typeof one === "number") return String(at === axis ? (one + by + shape[axis]) % shape[axis] : one);
      return `${one.start ?? ""}:${one.stop ?? ""}${one.step === null ? "" : `:${one.step}`}`;
    })
    .join(",");
}
