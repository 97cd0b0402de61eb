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

export type ScaleKind = "linear" | "log" | "symlog";

export interface ChartProps {
  series: Series[];
  height: number;
  scale?: ScaleKind;
  /** Horizontal lines with a name, like the 1 ‰ line. */
  rules?: { y: number; label: string }[];
  pick?: (x: number) => void;
  label?: string;
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
    optionsFor(series, data.bad, 1200, 400, "linear", []),
    [data.x, ...data.y] as uPlot.AlignedData,
    holder,
  );
  plot.ctx.getImageData(0, 0, 1, 1);
  const took = performance.now() - began;
  plot.destroy();
  holder.remove();
  return took;
});

export function Chart({ series, height, scale = "linear", rules = [], pick, label }: ChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const key = JSON.stringify([scale, height, series.map((one) => [one.label, one.colour, one.faint]), rules]);

  const build = (): void => {
    const element = holder.current;
    if (!element?.clientWidth) return;
    const began = performance.now();
    const zoomed = plot.current?.scales.x ? { min: plot.current.scales.x.min, max: plot.current.scales.x.max } : null;
    plot.current?.destroy();
    const data = align(series);
    const options = optionsFor(series, data.bad, element.clientWidth, height, scale, rules, pick);
    plot.current = new uPlot(options, [data.x, ...data.y] as uPlot.AlignedData, element);
    void zoomed;
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

function optionsFor(
  series: Series[],
  bad: Bad[],
  width: number,
  height: number,
  scale: ScaleKind,
  rules: { y: number; label: string }[],
  pick?: (x: number) => void,
): uPlot.Options {
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
    legend: { live: true },
    cursor: { sync: { key: "misstep" }, drag: { x: true, y: false }, focus: { prox: 16 } },
    scales: {
      x: { time: false },
      y: { distr: scale === "log" ? 3 : scale === "symlog" ? 4 : 1, asinh: Math.max(1e-12, smallest) },
    },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : "")) },
      {
        ...axis,
        size: 68,
        ...(scale === "linear"
          ? {}
          : { filter: powers, grid: { ...axis.grid, filter: powers }, ticks: { ...axis.ticks, filter: powers } }),
        values: (_, ticks) => toldApart(ticks),
      },
    ],
    series: [
      { label: t("step"), value: (_, x) => (x === null ? "–" : String(x)) },
      ...series.map(
        (one): uPlot.Series => ({
          label: one.label,
          stroke: alpha(colour(`s${one.colour % 8}`), one.faint ? 0.28 : 1),
          width: one.faint ? 1 : 1.6,
          dash: one.colour >= 8 ? [6, 4] : undefined,
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

/** Ticks with as many digits as it takes to tell them apart. */
function toldApart(ticks: (number | null)[]): string[] {
  for (let digits = 3; ; digits += 1) {
    const texts = ticks.map((tick) => (tick === null ? "" : value(tick, digits)));
    const told = texts.filter(Boolean);
    if (digits === 8 || new Set(told).size === told.length) return texts;
  }
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
    ctx.fillStyle = colour(`s${one.colour % 8}`);
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
