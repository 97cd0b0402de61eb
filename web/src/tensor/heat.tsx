// The heat map: the whole plane at once, pooled so that no NaN is lost, and down to single cells by zooming in.
import { effect, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { expose } from "../base";
import { cell } from "../format/number";
import { t } from "../i18n";
import { plainNumber } from "../net/values";
import { colour, digits, look } from "../state/prefs";
import { type Inks, ink, rgb, type Scale, scaleOf } from "./scale";
import { TILE, type TileSource } from "./tiles";

interface Sight {
  /** Pixels per element, and the element at the left upper corner. */
  size: number;
  row: number;
  column: number;
}

export interface HeatProps {
  source: TileSource;
  unsigned?: boolean;
  chosen: [number, number] | null;
  choose: (row: number, column: number) => void;
  scaled: (scale: Scale) => void;
}

export function Heat({ source, unsigned, chosen, choose, scaled }: HeatProps) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const pointed = useSignal("");
  const life = useRef<{
    draw: () => void;
    show: (row: number, column: number) => void;
    chosen: [number, number] | null;
  } | null>(null);

  useEffect(() => {
    if (!holder.current || !canvas.current) return;
    const made = heatEngine(
      holder.current,
      canvas.current,
      source,
      unsigned ?? false,
      choose,
      scaled,
      (text) => (pointed.value = text),
    );
    life.current = made;
    return made.end;
  }, [source, unsigned]);
  useEffect(() => {
    if (!life.current) return;
    life.current.chosen = chosen;
    if (chosen) life.current.show(chosen[0], chosen[1]);
    life.current.draw();
  }, [chosen?.[0], chosen?.[1], source]);

  return (
    <div class="heat" ref={holder}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={t("tensor.heatLabel", { rows: source.rows, columns: source.columns })}
        data-test="heat"
      />
      <span class="chip pointed" hidden={!pointed.value}>
        {pointed.value}
      </span>
    </div>
  );
}

function heatEngine(
  holder: HTMLElement,
  canvas: HTMLCanvasElement,
  source: TileSource,
  unsigned: boolean,
  choose: HeatProps["choose"],
  scaled: HeatProps["scaled"],
  point: (text: string) => void,
) {
  let sight: Sight = { size: 1, row: 0, column: 0 };
  let w = 0;
  let h = 0;
  let scale: Scale | null = null;
  let fitted = false;
  const offscreen = new OffscreenCanvas(TILE, TILE);
  const life = { draw, show, chosen: null as [number, number] | null, end };

  function fit(): void {
    const size = Math.min(w / source.columns, h / source.rows, 40);
    // A long thin plane would be a line: give it some height and let the rest be scrolled to.
    sight = { size: Math.max(size, Math.min(1, Math.max(w / source.columns, 1 / 64))), row: 0, column: 0 };
    fitted = true;
  }

  function poolFor(size: number): number {
    return size >= 1 ? 1 : 2 ** Math.ceil(Math.log2(1 / size));
  }

  function draw(): void {
    const ctx = canvas.getContext("2d");
    if (!ctx || !w || !h) return;
    if (!fitted) fit();
    const ratio = devicePixelRatio || 1;
    const inks: Inks = {
      neutral: rgb(colour("bg2")),
      cold: rgb(colour("cold")),
      hot: rgb(colour("hot")),
      nan: rgb("#d946ef"),
      inf: rgb("#facc15"),
    };
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colour("bg1");
    ctx.fillRect(0, 0, w, h);
    ctx.imageSmoothingEnabled = false;
    const pool = poolFor(sight.size);
    const block = pool * TILE * sight.size;
    const tileRows = Math.ceil(source.rows / pool / TILE);
    const tileColumns = Math.ceil(source.columns / pool / TILE);
    for (let tr = Math.max(0, Math.floor(sight.row / pool / TILE)); tr < tileRows; tr += 1) {
      const y = (tr * TILE * pool - sight.row) * sight.size;
      if (y > h) break;
      for (let tc = Math.max(0, Math.floor(sight.column / pool / TILE)); tc < tileColumns; tc += 1) {
        const x = (tc * TILE * pool - sight.column) * sight.size;
        if (x > w) break;
        const tile = source.tile(pool, tr, tc);
        if (!tile) {
          waiting(
            ctx,
            x,
            y,
            Math.min(block, (source.columns - tc * TILE * pool) * sight.size),
            Math.min(block, (source.rows - tr * TILE * pool) * sight.size),
          );
          continue;
        }
        if (!scale) {
          scale = scaleOf(tile.values, unsigned);
          scaled(scale);
        }
        const image = new ImageData(tile.columns, tile.rows);
        for (let at = 0; at < tile.values.length; at += 1) {
          const [r, g, b] = ink(plainNumber(tile.values[at]), scale, inks);
          image.data.set([r, g, b, 255], at * 4);
        }
        const off = offscreen.getContext("2d") as OffscreenCanvasRenderingContext2D;
        off.putImageData(image, 0, 0);
        const unit = pool * sight.size;
        ctx.drawImage(offscreen, 0, 0, tile.columns, tile.rows, x, y, tile.columns * unit, tile.rows * unit);
        if (unit >= 8) glyphs(ctx, tile.values, tile.columns, x, y, unit, w, h);
      }
    }
    if (life.chosen) {
      ctx.strokeStyle = colour("fg1");
      ctx.lineWidth = 2;
      const size = Math.max(6, sight.size);
      ctx.strokeRect(
        (life.chosen[1] - sight.column) * sight.size,
        (life.chosen[0] - sight.row) * sight.size,
        size,
        size,
      );
    }
    expose("heat", { sight, pool, element, rows: source.rows, columns: source.columns });
  }

  function waiting(ctx: CanvasRenderingContext2D, x: number, y: number, tw: number, th: number): void {
    ctx.fillStyle = colour("soft");
    ctx.fillRect(x, y, tw, th);
  }

  function element(px: number, py: number): [number, number] | null {
    const row = Math.floor(py / sight.size + sight.row);
    const column = Math.floor(px / sight.size + sight.column);
    return row >= 0 && column >= 0 && row < source.rows && column < source.columns ? [row, column] : null;
  }

  function show(row: number, column: number): void {
    const y = (row - sight.row) * sight.size;
    const x = (column - sight.column) * sight.size;
    if (x >= 0 && y >= 0 && x + sight.size <= w && y + sight.size <= h) return;
    sight = { ...sight, row: row - h / sight.size / 2, column: column - w / sight.size / 2 };
  }

  function zoom(factor: number, px: number, py: number): void {
    const size = Math.min(48, Math.max(1 / 256, sight.size * factor));
    sight = { size, row: sight.row + py / sight.size - py / size, column: sight.column + px / sight.size - px / size };
    draw();
  }

  const stop = new AbortController();
  const on = { signal: stop.signal };
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * 0.002), event.offsetX, event.offsetY);
    },
    { ...on, passive: false },
  );
  let from: { x: number; y: number; moved: boolean } | null = null;
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      from = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    },
    on,
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
      if (from && (from.moved || Math.hypot(event.offsetX - from.x, event.offsetY - from.y) > 3)) {
        sight = {
          ...sight,
          row: sight.row - (event.offsetY - from.y) / sight.size,
          column: sight.column - (event.offsetX - from.x) / sight.size,
        };
        from = { x: event.offsetX, y: event.offsetY, moved: true };
        draw();
      }
      const at = element(event.offsetX, event.offsetY);
      const pool = poolFor(sight.size);
      const value = at ? source.value(Math.floor(at[0] / pool), Math.floor(at[1] / pool), pool) : undefined;
      point(
        at && value !== undefined
          ? `[${at.join(", ")}]${pool > 1 ? ` ${pool}×${pool}` : ""} = ${cell(value, source.dtype, digits.peek())}`
          : "",
      );
    },
    on,
  );
  canvas.addEventListener(
    "pointerup",
    (event) => {
      const at = from && !from.moved ? element(event.offsetX, event.offsetY) : null;
      from = null;
      if (at) choose(at[0], at[1]);
    },
    on,
  );
  canvas.addEventListener("pointerleave", () => point(""), on);
  canvas.addEventListener(
    "dblclick",
    () => {
      fit();
      draw();
    },
    on,
  );
  canvas.addEventListener(
    "keydown",
    (event) => {
      if (event.key === "+" || event.key === "=") zoom(1.4, w / 2, h / 2);
      else if (event.key === "-") zoom(1 / 1.4, w / 2, h / 2);
      else return;
      event.stopPropagation();
    },
    on,
  );
  const sized = new ResizeObserver(() => {
    w = holder.clientWidth;
    h = holder.clientHeight;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(w * ratio));
    canvas.height = Math.max(1, Math.round(h * ratio));
    fitted = false;
    draw();
  });
  sized.observe(holder);
  const redraw = effect(() => {
    void [source.version.value, look.value];
    requestAnimationFrame(draw);
  });
  function end(): void {
    stop.abort();
    sized.disconnect();
    redraw();
  }
  return life;
}

/** A diagonal for NaN, triangles for the infinities: shape as well as colour. */
function glyphs(
  ctx: CanvasRenderingContext2D,
  values: ArrayLike<number | bigint>,
  columns: number,
  x: number,
  y: number,
  unit: number,
  w: number,
  h: number,
): void {
  ctx.strokeStyle = "#000";
  ctx.fillStyle = "#000";
  ctx.lineWidth = Math.max(1, unit / 12);
  for (let at = 0; at < values.length; at += 1) {
    const value = plainNumber(values[at]);
    if (Number.isFinite(value)) continue;
    const left = x + (at % columns) * unit;
    const top = y + Math.floor(at / columns) * unit;
    if (left > w || top > h || left + unit < 0 || top + unit < 0) continue;
    ctx.beginPath();
    if (Number.isNaN(value)) {
      ctx.moveTo(left, top + unit);
      ctx.lineTo(left + unit, top);
      ctx.stroke();
    } else {
      const [tip, base] = value > 0 ? [0.22, 0.78] : [0.78, 0.22];
      ctx.moveTo(left + unit / 2, top + unit * tip);
      ctx.lineTo(left + unit * 0.8, top + unit * base);
      ctx.lineTo(left + unit * 0.2, top + unit * base);
      ctx.fill();
    }
  }
}
