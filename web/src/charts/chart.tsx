// A chart of curves: drag to zoom, double-click to see all again, one crosshair for all charts of the page.
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { expose } from "../base";
import { value } from "../format/number";
import { t } from "../i18n";
import { colour, look } from "../state/prefs";
import { align, type Bad, type Series } from "./data";
import { strokeOf } from "./strokes";
import { tidyTicks } from "./ticks";
import { tooltip } from "./tooltip";

export type ScaleKind = "linear" | "log" | "symlog";

export interface ChartProps {
  series: Series[];
  height: number;
  scale?: ScaleKind;
  /** Horizontal lines with a name, like the 1 ‰ line. */
  rules?: { y: number; label: string }[];
  pick?: (x: number) => void;
  label?: string;
  /** What of the x axis is shown, when somebody zoomed; and told when somebody drags over it, null for all. */
  window?: [number, number] | null;
  zoom?: (window: [number, number] | null) => void;
  /** The y axis without outliers. */
  within?: { low: number; high: number } | null;
  /** How a place on the x axis is said; a step when nothing is given. */
  said?: (x: number) => string;
}

/** For the benchmark: how long so many curves take from numbers to pixels. */
expose("chartBench", (curves: number, points: number): number => {
  const x = Array.from({ length: points }, (_, at) => at);
  const series: Series[] = Array.from({ length: curves }, (_, colour) => ({
    label: `s${colour}`,
    x,
    y: x.map((at) => Math.sin(at / 900 + colour) + ((at * 7919) % 100) / 300),
    colour,
  }));
  const holder = document.body.appendChild(document.createElement("div"));
  const began = performance.now();
  const data = align(series);
  const plot = new uPlot(
    optionsFor({ series, height: 400 }, data.bad, 1200),
    [data.x, ...data.y] as uPlot.AlignedData,
    holder,
  );
  plot.ctx.getImageData(0, 0, 1, 1);
  const took = performance.now() - began;
  plot.destroy();
  holder.remove();
  return took;
});

export function Chart(props: ChartProps) {
  const { series, height, scale = "linear", rules = [], label } = props;
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const lines = series.map((one) => [one.label, one.colour, one.faint]);
  const key = JSON.stringify([scale, height, lines, rules, props.window, props.within]);

  const build = (): void => {
    const element = holder.current;
    if (!element?.clientWidth) return;
    const began = performance.now();
    plot.current?.destroy();
    const data = align(series);
    const options = optionsFor(props, data.bad, element.clientWidth);
    plot.current = new uPlot(options, [data.x, ...data.y] as uPlot.AlignedData, element);
    expose("chart", { ms: performance.now() - began, points: data.x.length, bad: data.bad.length, plot: plot.current });
  };
  useEffect(() => {
    build();
    const sized = new ResizeObserver(() => {
      const element = holder.current;
      if (!element) return;
      if (!plot.current) build();
      else if (Math.abs(plot.current.width - element.clientWidth) > 1)
        plot.current.setSize({ width: element.clientWidth, height });
    });
    if (holder.current) sized.observe(holder.current);
    return () => {
      sized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [key]);
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    build();
  }, [series]);
  useSignalEffect(() => {
    void look.value;
    if (plot.current) requestAnimationFrame(build);
  });
  return (
    <div
      class="chart"
      ref={holder}
      style={{ minHeight: `${height}px` }}
      role="img"
      aria-label={
        label ??
        t("chart.label", {
          names: series
            .filter((one) => !one.faint)
            .map((one) => one.label)
            .join(", "),
        })
      }
    />
  );
}

function optionsFor(props: ChartProps, bad: Bad[], width: number): uPlot.Options {
  const { series, height, scale = "linear", rules = [], pick, within, zoom } = props;
  const place = props.said ?? ((x: number): string => `${t("step")} ${x}`);
  const axis = {
    stroke: colour("fg2"),
    grid: { stroke: colour("soft"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
    font: "11px ui-monospace, monospace",
  };
  const smallest = Math.min(
    ...series.flatMap((one) =>
      one.y.length > 4000 ? [] : one.y.filter((y) => Number.isFinite(y) && y !== 0).map(Math.abs),
    ),
    1,
  );
  return {
    width,
    height,
    legend: { show: false },
    plugins: [tooltip(series, place)],
    cursor: {
      sync: { key: "misstep" },
      drag: { x: true, y: false, setScale: !zoom },
      focus: { prox: 16 },
      ...(zoom ? { bind: { dblclick: () => () => back(zoom) } } : {}),
    },
    scales: {
      x: { time: false, ...(props.window ? { range: (): [number, number] => props.window as [number, number] } : {}) },
      y: {
        distr: scale === "log" ? 3 : scale === "symlog" ? 4 : 1,
        asinh: Math.max(1e-12, smallest),
        ...(within && scale === "linear" ? { range: (): [number, number] => [within.low, within.high] } : {}),
      },
    },
    axes: [
      {
        ...axis,
        size: 34,
        values: (_, ticks) =>
          ticks.map((tick) => (props.said ? props.said(tick) : Number.isInteger(tick) ? String(tick) : "")),
      },
      {
        ...axis,
        size: 68,
        ...(scale === "linear"
          ? {}
          : { filter: powers, grid: { ...axis.grid, filter: powers }, ticks: { ...axis.ticks, filter: powers } }),
        values: (_, ticks) =>
          scale === "linear" ? tidyTicks(ticks) : ticks.map((tick) => (tick === null ? "" : value(tick, 3))),
      },
    ],
    series: [
      { label: t("step"), value: (_, x) => (x === null ? "–" : String(x)) },
      ...series.map(
        (one): uPlot.Series => ({
          label: one.label,
          stroke: alpha(strokeOf(one.colour).colour, one.faint ? 0.28 : 1),
          width: one.faint ? 1 : 1.6,
          dash: strokeOf(one.colour).dash,
          points: { show: one.x.length <= 2 },
          value: (_, y) => (y === null ? "–" : value(y)),
          spanGaps: false,
        }),
      ),
    ],
    hooks: {
      draw: [
        (plot) => {
          marks(plot, bad);
          lonely(plot, series);
          ruled(plot, rules);
        },
      ],
      setSelect: zoom
        ? [
            (plot) => {
              const { left, width: wide } = plot.select;
              if (wide < 4) return;
              zoom([plot.posToVal(left, "x"), plot.posToVal(left + wide, "x")]);
              plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ]
        : [],
      ready: pick
        ? [
            (plot) => {
              plot.over.addEventListener("click", () => {
                const x =
                  plot.cursor.idx === null || plot.cursor.idx === undefined ? undefined : plot.data[0][plot.cursor.idx];
                if (x !== undefined && plot.select.width < 3) pick(x);
              });
            },
          ]
        : [],
    },
  };
}

/** A double click sees all again; uPlot wants to be told that nothing else is to be done. */
function back(zoom: NonNullable<ChartProps["zoom"]>): null {
  zoom(null);
  return null;
}

/** Zero and the powers of ten: the lines of a logarithmic axis that can be told apart. */
function isPower(x: number): boolean {
  return x === 0 || Math.abs(Math.log10(Math.abs(x)) - Math.round(Math.log10(Math.abs(x)))) < 1e-6;
}

function powers(_: uPlot, splits: number[]): (number | null)[] {
  return splits.map((one) => (isPower(one) ? one : null));
}

function alpha(hex: string, share: number): string {
  return share >= 1
    ? hex
    : `${hex}${Math.round(share * 255)
        .toString(16)
        .padStart(2, "0")}`;
}

/** NaN and Inf: a hatched band where they are, and a mark on the rail, at the top or the bottom. */
function marks(plot: uPlot, bad: Bad[]): void {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const ratio = devicePixelRatio || 1;
  let last = -Infinity;
  for (const one of bad) {
    const x = plot.valToPos(one.x, "x", true);
    if (x < left || x > left + width) continue;
    ctx.globalAlpha = 0.1;
    ctx.fillStyle = one.kind === "nan" ? "#d946ef" : "#facc15";
    ctx.fillRect(x - 1.5 * ratio, top, 3 * ratio, height);
    ctx.globalAlpha = 1;
    if (x - last < 7 * ratio) continue;
    last = x;
    const down = one.kind === "down";
    const y = down ? top + height - 2 * ratio : top + 2 * ratio;
    const way = down ? -1 : 1;
    ctx.beginPath();
    ctx.moveTo(x - 4.5 * ratio, y + way * 8 * ratio);
    ctx.lineTo(x + 4.5 * ratio, y + way * 8 * ratio);
    ctx.lineTo(x, y);
    ctx.closePath();
    ctx.fill();
  }
}

/** A value between two gaps has no line to be part of: it gets a dot. */
function lonely(plot: uPlot, series: Series[]): void {
  const { ctx } = plot;
  const ratio = devicePixelRatio || 1;
  series.forEach((one, index) => {
    const column = plot.data[index + 1];
    if (one.faint || column.length > 20_000) return;
    ctx.fillStyle = strokeOf(one.colour).colour;
    for (let at = 0; at < column.length; at += 1) {
      const y = column[at];
      if (y === null || y === undefined || column[at - 1] != null || column[at + 1] != null) continue;
      ctx.beginPath();
      ctx.arc(plot.valToPos(plot.data[0][at], "x", true), plot.valToPos(y, "y", true), 2.5 * ratio, 0, 7);
      ctx.fill();
    }
  });
}

function ruled(plot: uPlot, rules: { y: number; label: string }[]): void {
  const { ctx } = plot;
  const { left, width } = plot.bbox;
  ctx.strokeStyle = colour("warning");
  ctx.fillStyle = colour("warning");
  ctx.font = `${11 * (devicePixelRatio || 1)}px ui-monospace, monospace`;
  for (const rule of rules) {
    const y = plot.valToPos(rule.y, "y", true);
    if (!Number.isFinite(y) || y < plot.bbox.top || y > plot.bbox.top + plot.bbox.height) continue;
    ctx.setLineDash([6, 4]);
    ctx.beginPath();
    ctx.moveTo(left, y);
    ctx.lineTo(left + width, y);
    ctx.stroke();
    ctx.setLineDash([]);
    if (!rule.label) continue;
    ctx.textAlign = "right";
    ctx.fillText(rule.label, left + width - 6, y - 4);
  }
}
