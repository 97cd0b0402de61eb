// The graph on a canvas: only what is in sight, and only as much of it as can be read at this size.
import { colour } from "../state/prefs";
import { type Family, family } from "./classes";
import { lines, ways } from "./lines";
import type { Box, Scene } from "./scene";

export interface Camera {
  /** Screen pixels per unit, and where the scene's origin is on the screen. */
  k: number;
  x: number;
  y: number;
}

export interface Marks {
  selected: number;
  hovered: number;
  current: number;
  /** Box → hits inside; origins are starred. */
  hits: Map<number, number>;
  origins: Set<number>;
  watched: Set<number>;
  /** Lines along which the selected node's data really flows. */
  trace: Map<number, "in" | "out">;
  /** The true ways of that data where the line ends at a scope's border: from box to box. */
  ways: [number, number][];
  colourBy: "family" | "depth" | "heat" | "error";
  /** Box → 0 … 1, when colouring by a measured value; of an error up to ½ is rounding. */
  heat: Map<number, number>;
  /** While the scrubber stands somewhere: by box, when it was made and when it was bad, and where the scrubber is. */
  flow: { at: number; made: Float64Array; bad: Float64Array } | null;
}

export interface Colours {
  [name: string]: string;
}

const NAMES = [
  "bg0",
  "bg1",
  "bg2",
  "bg3",
  "fg1",
  "fg2",
  "line",
  "edge",
  "soft",
  "accent",
  "accent-bg",
  "error",
  "warning",
  "ok",
  "nan",
  "cold",
  "hot",
  "s0",
  "s1",
  "op-matmul",
  "op-norm",
  "op-act",
  "op-elem",
  "op-reduce",
  "op-shape",
  "op-param",
  "op-loss",
  "op-comm",
];

export function colours(): Colours {
  return Object.fromEntries(NAMES.map((name) => [name, colour(name)]));
}

const UI = 'system-ui, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
const families = new Map<string, Family>();

function familyOf(type: string): Family {
  let found = families.get(type);
  if (!found) {
    found = family(type);
    families.set(type, found);
  }
  return found;
}

export function paint(
  ctx: CanvasRenderingContext2D,
  w: number,
  h: number,
  scene: Scene,
  camera: Camera,
  marks: Marks,
  c: Colours,
): number {
  const { k } = camera;
  const left = -camera.x / k;
  const top = -camera.y / k;
  const right = left + w / k;
  const bottom = top + h / k;
  const inSight = (one: Box): boolean => one.x < right && one.x + one.w > left && one.y < bottom && one.y + one.h > top;
  ctx.fillStyle = c.bg0;
  ctx.fillRect(0, 0, w, h);
  ctx.save();
  ctx.translate(camera.x, camera.y);
  ctx.scale(k, k);
  let drawn = 0;
  scene.boxes.forEach((one, index) => {
    if (index === 0 || !one.open || !inSight(one) || one.w * k < 2) return;
    scopeBox(ctx, one, k, marks, index, c);
    drawn += 1;
  });
  lines(ctx, scene, k, { left, top, right, bottom }, marks, c);
  scene.boxes.forEach((one, index) => {
    if (one.open || index === 0 || !inSight(one) || one.w * k < 1) return;
    ctx.globalAlpha = later(marks, index) ? 0.35 : 1;
    closedBox(ctx, one, k, marks, index, c);
    drawn += 1;
  });
  ctx.globalAlpha = 1;
  ways(ctx, scene, k, marks, c);
  ctx.restore();
  return drawn;
}

/** Not made yet at the place where the scrubber stands. */
function later(marks: Marks, index: number): boolean {
  return marks.flow !== null && !(marks.flow.made[index] <= marks.flow.at);
}

function badNow(marks: Marks, index: number): boolean {
  return marks.flow !== null && marks.flow.bad[index] <= marks.flow.at;
}

function rounded(ctx: CanvasRenderingContext2D, one: { x: number; y: number; w: number; h: number }, r: number): void {
  ctx.beginPath();
  ctx.roundRect(one.x, one.y, one.w, one.h, r);
}

function scopeBox(ctx: CanvasRenderingContext2D, one: Box, k: number, marks: Marks, index: number, c: Colours): void {
  rounded(ctx, one, 8);
  ctx.fillStyle = one.depth % 2 ? c.bg1 : c.bg2;
  ctx.fill();
  border(ctx, index, marks, k, c);
  if (index === marks.current) here(ctx, one.x, one.y + 15, Math.max(1, 0.7 / k), c);
  if (13 * k < 5.5) return;
  ctx.fillStyle = c.fg1;
  ctx.font = `600 12px ${UI}`;
  ctx.textBaseline = "middle";
  const title = one.kind === "stack" ? `${one.label}  ×${one.count}` : name(one);
  const space = one.w - 24;
  ctx.fillText(cut(ctx, title, space), one.x + 12, one.y + 15);
  const used = ctx.measureText(title).width;
  if (one.type && one.kind !== "stack" && used + 40 < space) {
    ctx.fillStyle = c.fg2;
    ctx.font = `11px ${UI}`;
    ctx.fillText(cut(ctx, one.type, space - used - 12), one.x + 20 + used, one.y + 15.5);
  }
}

function closedBox(ctx: CanvasRenderingContext2D, one: Box, k: number, marks: Marks, index: number, c: Colours): void {
  if (one.kind === "stack") {
    for (const off of [6, 3]) {
      rounded(ctx, { x: one.x + off, y: one.y + off, w: one.w - 6, h: one.h - 6 }, 6);
      ctx.fillStyle = c.bg2;
      ctx.fill();
      ctx.strokeStyle = c.line;
      ctx.lineWidth = 1;
      ctx.stroke();
    }
  }
  const body = one.kind === "stack" ? { x: one.x, y: one.y, w: one.w - 6, h: one.h - 6 } : one;
  rounded(ctx, body, one.kind === "operator" ? one.h / 2 : one.kind === "parameter" ? 3 : 6);
  ctx.fillStyle = fill(one, index, marks, c);
  ctx.fill();
  if (marks.colourBy === "error" && !marks.heat.has(index)) ctx.setLineDash([4, 3]); // nothing was compared here
  border(ctx, index, marks, k, c);
  ctx.setLineDash([]);
  signs(ctx, one, index, marks, k, c);
  if (12 * k < 5.5) return;
  label(ctx, one, body, c);
}

function fill(one: Box, index: number, marks: Marks, c: Colours): string {
  const heat = marks.heat.get(index);
  if (badNow(marks, index)) return mixed(c.bg2, c.nan, 0.35);
  if (marks.colourBy === "heat") return heat === undefined ? c.bg2 : mixed(c.bg2, c.hot, heat);
  if (marks.colourBy === "error") return heat === undefined ? c.bg0 : erring(heat, c);
  if (one.kind === "scope" || one.kind === "stack" || marks.colourBy === "depth") return c.bg3;
  return c[`op-${familyOf(one.type)}`];
}

/** Blue for rounding, orange beyond it: apart for every kind of colour blindness, and faint enough to write on. */
function erring(heat: number, c: Colours): string {
  if (heat === 0) return c.bg2;
  return heat <= 0.5 ? mixed(c.bg2, c.s0, 0.15 + heat * 0.6) : mixed(c.bg2, c.s1, 0.1 + heat * 0.5);
}

function mixed(a: string, b: string, share: number): string {
  const read = (text: string): number[] => [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
  const [from, to] = [read(a), read(b)];
  return `rgb(${from.map((one, at) => Math.round(one + (to[at] - one) * share)).join(" ")})`;
}

function border(ctx: CanvasRenderingContext2D, index: number, marks: Marks, k: number, c: Colours): void {
  const bad = marks.hits.has(index) || badNow(marks, index);
  const strong = index === marks.selected || bad || index === marks.hovered;
  ctx.lineWidth = strong ? Math.max(2, 1.5 / k) : Math.max(1, 0.6 / k);
  ctx.strokeStyle = badNow(marks, index)
    ? c.nan
    : index === marks.selected
      ? c.accent
      : marks.origins.has(index)
        ? c.warning
        : bad
          ? c.nan
          : index === marks.hovered
            ? c.edge
            : c.line;
  ctx.stroke();
}

/** Dots and stars outside the box, at a size that survives zooming out. */
function signs(ctx: CanvasRenderingContext2D, one: Box, index: number, marks: Marks, k: number, c: Colours): void {
  const size = Math.max(1, 0.7 / k);
  if (marks.watched.has(index)) dot(ctx, one.x, one.y + one.h / 2, 3.5 * size, c.accent);
  if (marks.origins.has(index)) star(ctx, one.x + one.w, one.y, 8 * size, c.warning);
  else if (marks.hits.has(index)) dot(ctx, one.x + one.w - 2, one.y + 2, 4 * size, c.nan);
  if (index === marks.current) here(ctx, one.x, one.y + one.h / 2, size, c);
}

/** Training stands here. */
function here(ctx: CanvasRenderingContext2D, x: number, y: number, size: number, c: Colours): void {
  ctx.beginPath();
  ctx.moveTo(x - 15 * size, y - 6 * size);
  ctx.lineTo(x - 4 * size, y);
  ctx.lineTo(x - 15 * size, y + 6 * size);
  ctx.closePath();
  ctx.fillStyle = c.accent;
  ctx.fill();
}

function label(
  ctx: CanvasRenderingContext2D,
  one: Box,
  body: { x: number; y: number; w: number; h: number },
  c: Colours,
): void {
  ctx.textBaseline = "middle";
  ctx.fillStyle = c.fg1;
  const middle = body.y + body.h / 2 + 0.5;
  if (one.kind === "parameter") {
    ctx.font = `11px ${UI}`;
    ctx.fillText(cut(ctx, one.label, body.w - 10), body.x + 6, middle);
    return;
  }
  if (one.kind === "operator") {
    ctx.font = `12px ${UI}`;
    const text = cut(ctx, one.label, body.w - 14);
    ctx.fillText(text, body.x + (body.w - ctx.measureText(text).width) / 2, middle);
  } else {
    const beside = one.kind === "stack" ? `×${one.count}` : String(one.count);
    const detail = one.kind === "scope" ? one.type : "";
    ctx.font = `12px ${UI}`;
    const room = ctx.measureText(beside).width;
    ctx.fillStyle = c.fg2;
    const line = detail ? body.y + 14 : middle;
    ctx.fillText(beside, body.x + body.w - room - 9, line);
    ctx.fillStyle = c.fg1;
    ctx.font = `600 12px ${UI}`;
    ctx.fillText(cut(ctx, name(one), body.w - room - 26), body.x + 10, line);
    if (detail) {
      ctx.fillStyle = c.fg2;
      ctx.font = `11px ${UI}`;
      ctx.fillText(cut(ctx, detail, body.w - 18), body.x + 10, body.y + 30);
    }
  }
  if (one.stubs.length) {
    ctx.font = `10px ${UI}`;
    ctx.fillStyle = c.fg2;
    ctx.fillText(cut(ctx, `‹ ${one.stubs.join(", ")}`, one.w), body.x + 4, body.y - 7);
  }
}

let words: Record<string, string> = {};

/** What the roots of backward and loss are called in the reader's language. */
export function nameRoots(names: Record<string, string>): void {
  words = names;
}

export function name(one: { key: string; label: string }): string {
  return words[one.key] ?? one.label;
}

function cut(ctx: CanvasRenderingContext2D, text: string, space: number): string {
  if (ctx.measureText(text).width <= space) return text;
  let least = 0;
  let most = text.length;
  while (least < most) {
    const half = (least + most + 1) >> 1;
    if (ctx.measureText(`${text.slice(0, half)}…`).width <= space) least = half;
    else most = half - 1;
  }
  return `${text.slice(0, least)}…`;
}

function dot(ctx: CanvasRenderingContext2D, x: number, y: number, r: number, style: string): void {
  ctx.beginPath();
  ctx.arc(x, y, r, 0, 7);
  ctx.fillStyle = style;
  ctx.fill();
}

function star(ctx: CanvasRenderingContext2D, x: number, y: number, r: number, style: string): void {
  ctx.beginPath();
  for (let at = 0; at < 10; at += 1) {
    const far = at % 2 ? r * 0.45 : r;
    const angle = (Math.PI * at) / 5 - Math.PI / 2;
    ctx.lineTo(x + far * Math.cos(angle), y + far * Math.sin(angle));
  }
  ctx.closePath();
  ctx.fillStyle = style;
  ctx.fill();
}
