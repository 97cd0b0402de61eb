// Numbers for eyes: how every value, count, size and time of the page is written. ASCII minus, so that a copied
// number pastes into Python; non-finite values keep their names; a count is never rounded to nothing.
import type { Num } from "../types.gen";

/** Back from the wire: NaN and the infinities travel as words. */
export function num(value: Num | null | undefined): number {
  if (value === null || value === undefined) return Number.NaN;
  return typeof value === "number" ? value : Number(value);
}

/** A measured value: 4 digits, plain between 1e-3 and 1e5, else 3 digits and an exponent. */
export function value(x: number | null | undefined, digits = 4): string {
  if (x === null || x === undefined) return "–";
  if (Number.isNaN(x)) return "NaN";
  if (x === Infinity) return "+Inf";
  if (x === -Infinity) return "-Inf";
  if (x === 0) return Object.is(x, -0) ? "-0" : "0";
  const size = Math.abs(x);
  if (digits >= 17) return String(x);
  if (Number.isInteger(x) && size < 1e5) return String(x);
  if (size >= 1e-3 && size < 1e5) return plain(x, digits);
  return x.toExponential(Math.max(1, digits - 2)).replace("e+", "e");
}

function plain(x: number, digits: number): string {
  const text = x.toPrecision(digits);
  return text.includes("e") ? String(Number(text)) : text;
}

/** A value off the wire. */
export function shown(x: Num | null | undefined, digits = 4): string {
  return x === null || x === undefined ? "–" : value(num(x), digits);
}

/** A statistic over steps as it must be drawn: of a tensor with NaN or Inf the rest says nothing, so it is NaN or Inf. */
export function honest(columns: Record<string, readonly Num[]>, statistic: string): number[] {
  const plain = (columns[statistic] ?? []).map((one) => num(one));
  if (["nan", "pos_inf", "neg_inf", "zeros", "negatives", "positives", "count"].includes(statistic)) return plain;
  const { nan, pos_inf: up, neg_inf: down } = columns;
  return plain.map((one, at) =>
    num(nan?.[at]) > 0 ? Number.NaN : num(up?.[at]) > 0 ? Infinity : num(down?.[at]) > 0 ? -Infinity : one,
  );
}

/** One cell of a tensor: integers are never rounded, booleans are T and F. */
export function cell(x: number | bigint, dtype: string, digits = 4): string {
  if (typeof x === "bigint") return x.toString();
  if (dtype === "bool") return x ? "T" : "F";
  if (/^u?int/.test(dtype)) return Number.isFinite(x) ? String(x) : value(x);
  return value(x, digits);
}

/** 12,345 in both languages. */
export function count(n: number): string {
  return Math.round(n).toLocaleString("en-US");
}

/** A share that never hides something: `<0.1 %` and `>99.9 %` instead of 0 and 100. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "0 %";
  const share = (100 * part) / whole;
  if (part > 0 && share < 0.1) return "<0.1 %";
  if (part < whole && share > 99.9) return ">99.9 %";
  return `${share >= 10 || share === 0 ? share.toFixed(share % 1 && share < 99.95 ? 1 : 0) : share.toFixed(1)} %`;
}

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) {
    n /= 1024;
    at += 1;
  }
  return `${at === 0 ? n : n.toPrecision(3)} ${units[at]}`;
}

/** A duration: 3 digits with its unit, hours and minutes above an hour. */
export function seconds(s: number): string {
  if (!Number.isFinite(s)) return "–";
  if (s === 0) return "0 s";
  if (s < 1e-3) return `${(s * 1e6).toPrecision(3)} µs`;
  if (s < 1) return `${(s * 1e3).toPrecision(3)} ms`;
  if (s < 60) return `${s.toPrecision(3)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} m`;
}

/** A relative deviation in per mille, signed. */
export function perMille(x: number): string {
  if (!Number.isFinite(x)) return value(x);
  const shownNumber = Math.abs(x * 1000) < 1e-3 && x !== 0 ? (x * 1000).toExponential(1) : (x * 1000).toFixed(3);
  return `${x > 0 ? "+" : ""}${shownNumber} ‰`;
}

export function shape(dims: readonly number[]): string {
  return `[${dims.join(",")}]`;
}

const SHORT: Record<string, string> = {
  float64: "f64",
  float32: "f32",
  float16: "f16",
  bfloat16: "bf16",
  float8_e4m3fn: "f8",
  float8_e5m2: "f8",
  int64: "i64",
  int32: "i32",
  int16: "i16",
  int8: "i8",
  uint8: "u8",
  bool: "bool",
  complex64: "c64",
  complex128: "c128",
};

export function dtype(name: string): string {
  return SHORT[name] ?? name;
}

/** The colour token of a dtype. */
export function dtypeColour(name: string): string {
  const short = dtype(name);
  const known = ["f64", "f32", "f16", "bf16", "f8", "i64", "i32", "i8", "bool", "c64"];
  if (known.includes(short)) return `var(--t-${short})`;
  if (short === "i16") return "var(--t-i32)";
  if (short === "u8") return "var(--t-i8)";
  return short === "c128" ? "var(--t-c64)" : "var(--fg2)";
}
