// Parallel coordinates: an axis for each column, a line for each row. A click on an axis' name turns it over; where a
// page filters by them, dragging along an axis says between which values.
import { signal, useSignal } from "@preact/signals";
import { Canvas, type Paper } from "../ui/canvas";
import type { Axis } from "./axis";

/** More lines than this are a wall; the first of them say more. */
const MOST_LINES = 1000;
const [SIDE, TOP, FOOT] = [50, 26, 34];
const turned = signal<string[]>([]);

export interface ParallelProps {
  axes: Axis[];
  /** The most important first: it is drawn last. */
  rows: number[];
  label: string;
  height: number;
  /** The first row stands out and the others fade with their rank. */
  best?: boolean;
  /** Rows in the colour of NaN. */
  bad?: (row: number) => boolean;
  /** Told when somebody dragged along an axis; nulls when it was only clicked. */
  narrow?: (axis: Axis, low: number | null, high: number | null) => void;
}

export function ParallelLines({ axes, rows, label, height, best, bad, narrow }: ParallelProps) {
  const drag = useSignal<{ place: number; from: number; to: number } | null>(null);
  const across = (at: number, width: number): number => SIDE + (at * (width - 2 * SIDE)) / Math.max(1, axes.length - 1);
  const up = (at: number): number => height - FOOT - at * (height - FOOT - TOP);
  const flipped = (axis: Axis, at: number): number => (turned.value.includes(axis.name) ? 1 - at : at);
  const shownRows = rows.slice(0, MOST_LINES);
  const draw = ({ context, width, ink }: Paper): void => {
    for (let at = shownRows.length - 1; at >= 0; at -= 1) {
      const row = shownRows[at];
      const ill = bad?.(row) ?? false;
      const quality = best ? 1 - at / Math.max(1, shownRows.length - 1) : 0.75;
      const first = best && at === 0;
      context.strokeStyle = first ? ink("ok") : ill ? ink("nan") : ink("s0");
      context.lineWidth = first ? 2.4 : ill ? 1.4 : 1;
      const crowd = 60 / shownRows.length + 0.08;
      context.globalAlpha = first ? 1 : Math.min(ill ? 0.7 : 0.06 + 0.6 * quality ** 3, ill ? 2 * crowd : crowd);
      context.beginPath();
      let begun = false;
      axes.forEach((axis, place) => {
        const y = flipped(axis, axis.at(row));
        if (Number.isNaN(y)) {
          begun = false; // this row has no such value
          return;
        }
        const to = up(Math.min(1, Math.max(0, y)));
        if (begun) context.lineTo(across(place, width), to);
        else context.moveTo(across(place, width), to);
        begun = true;
      });
      context.stroke();
    }
    context.globalAlpha = 1;
    axes.forEach((axis, place) => {
      axisLine(context, ink, axis, across(place, width), place === axes.length - 1);
      if (drag.value?.place === place) {
        context.fillStyle = ink("accent");
        context.globalAlpha = 0.3;
        context.fillRect(across(place, width) - 7, drag.value.from, 14, drag.value.to - drag.value.from);
        context.globalAlpha = 1;
      }
    });
  };
  const axisLine = (
    context: CanvasRenderingContext2D,
    ink: (name: string) => string,
    axis: Axis,
    x: number,
    last: boolean,
  ): void => {
    context.strokeStyle = ink("edge");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, up(0));
    context.lineTo(x, up(1));
    context.stroke();
    context.fillStyle = ink("fg1");
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.fillText(axis.name.slice(0, 18), x, height - 4);
    context.fillStyle = ink("fg2");
    context.textBaseline = "middle";
    context.textAlign = last ? "right" : "left";
    // A rim in the colour of the ground: numbers stay readable on a thousand lines.
    context.strokeStyle = ink("bg1");
    context.lineWidth = 3;
    context.lineJoin = "round";
    for (const tick of axis.ticks.slice(0, 12)) {
      const [text, side, y] = [tick.label.slice(0, 10), x + (last ? -5 : 5), up(flipped(axis, tick.at))];
      context.strokeText(text, side, y);
      context.fillText(text, side, y);
    }
  };
  const nearest = (x: number, width: number): number =>
    Math.round(((x - SIDE) / (width - 2 * SIDE)) * Math.max(1, axes.length - 1));
  const turn = (x: number, y: number, width: number): void => {
    const name = axes[nearest(x, width)]?.name;
    if (y < height - FOOT || !name) return;
    turned.value = turned.value.includes(name) ? turned.value.filter((one) => one !== name) : [...turned.value, name];
  };
  const dragged = (how: "down" | "move" | "up", x: number, y: number, width: number): void => {
    const place = nearest(x, width);
    if (how === "down") {
      if (y < height - FOOT && axes[place]?.from && Math.abs(across(place, width) - x) < 24)
        drag.value = { place, from: y, to: y };
      return;
    }
    const now = drag.peek();
    if (!now) return;
    if (how === "move") drag.value = { ...now, to: Math.min(height - FOOT, Math.max(TOP, y)) };
    else {
      drag.value = null;
      const axis = axes[now.place];
      const at = (pixel: number): number => flipped(axis, (height - FOOT - pixel) / (height - FOOT - TOP));
      const [one, two] = [at(now.from), at(now.to)].sort((a, b) => a - b);
      if (!axis.from) return;
      if (Math.abs(now.to - now.from) < 4) narrow?.(axis, null, null);
      else narrow?.(axis, axis.from(Math.max(0, one)), axis.from(Math.min(1, two)));
    }
  };
  return <Canvas height={height} label={label} draw={draw} pick={turn} drag={narrow && dragged} />;
}
