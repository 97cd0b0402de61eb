// Values to colours. Both signs: blue – surface – red, on a symlog scale; one sign, and errors: surface to blue. Magenta and yellow are for
// NaN and Inf alone, so that neither can be mistaken for a value.
import { plainNumber, type Values } from "../net/values";

export type Rgb = [number, number, number];

export interface Scale {
  /** symlog around zero; or linear from one end to the other, for values of one sign that differ by less than ten times. */
  kind: "symlog" | "linear";
  signed: boolean;
  /** Below this magnitude the scale is linear: the 1st percentile of what is not zero. */
  linear: number;
  /** Above this it is clipped: the 99.9th percentile. */
  clip: number;
  clipped: boolean;
  /** Where a linear scale begins. */
  centre: number;
}

export interface Inks {
  neutral: Rgb;
  cold: Rgb;
  hot: Rgb;
  nan: Rgb;
  inf: Rgb;
}

export function scaleOf(values: Values, unsigned = false): Scale {
  const sizes: number[] = [];
  let [negative, positive, zero] = [false, false, false];
  const stride = Math.max(1, Math.floor(values.length / 65_536));
  for (let at = 0; at < values.length; at += stride) {
    const x = plainNumber(values[at]);
    if (!Number.isFinite(x)) continue;
    zero ||= x === 0;
    if (x === 0) continue;
    negative ||= x < 0;
    positive ||= x > 0;
    sizes.push(Math.abs(x));
  }
  const common = { kind: "symlog" as const, centre: 0 };
  if (!sizes.length) return { ...common, signed: !unsigned, linear: 1e-12, clip: 1, clipped: false };
  sizes.sort((a, b) => a - b);
  const [least, greatest] = [sizes[0], sizes[sizes.length - 1]];
  if (!unsigned && !zero && negative !== positive && greatest < 10 * least && greatest > least) {
    const way = negative ? -1 : 1;
    return {
      kind: "linear",
      signed: false,
      linear: 1,
      clip: way * (greatest - least),
      clipped: false,
      centre: way * least,
    };
  }
  const most = sizes[sizes.length - 1];
  const clip = sizes.length > 2000 ? sizes[Math.floor((sizes.length - 1) * 0.999)] : most;
  return {
    ...common,
    signed: negative,
    linear: Math.max(sizes[Math.floor(sizes.length * 0.01)], clip * 1e-9),
    clip,
    clipped: clip < most,
  };
}

/** −1 … 1. */
export function position(x: number, scale: Scale): number {
  if (scale.kind === "linear") return Math.min(1, Math.max(-1, (x - scale.centre) / scale.clip));
  const size = Math.abs(x);
  if (size === 0) return 0;
  const top = Math.asinh(scale.clip / scale.linear);
  const share = Math.min(1, Math.asinh(size / scale.linear) / (top || 1));
  return x < 0 ? -share : share;
}

/** The value at a place of the scale; the inverse of `position`. */
export function valueAt(share: number, scale: Scale): number {
  if (scale.kind === "linear") return scale.centre + share * scale.clip;
  return Math.sign(share) * scale.linear * Math.sinh(Math.abs(share) * Math.asinh(scale.clip / scale.linear));
}

export function ink(x: number, scale: Scale, inks: Inks): Rgb {
  if (Number.isNaN(x)) return inks.nan;
  if (!Number.isFinite(x)) return inks.inf;
  const share = position(x, scale);
  // A scale is made of what was in sight first: a value of the other sign, met later, has the other hue all the same.
  return mix(inks.neutral, share < 0 === scale.signed ? inks.cold : inks.hot, Math.abs(share));
}

export function mix(a: Rgb, b: Rgb, share: number): Rgb {
  return [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share];
}

export function rgb(hex: string): Rgb {
  const text = hex.replace("#", "");
  const full = text.length === 3 ? [...text].map((mark) => mark + mark).join("") : text;
  return [0, 2, 4].map((at) => Number.parseInt(full.slice(at, at + 2), 16)) as Rgb;
}
