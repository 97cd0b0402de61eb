// What lies under the cursor of a chart, beside it: the place, and every curve's value there, the nearest first and bold.
// A legend that is always there takes the room of a curve and says nothing until somebody points.
import type uPlot from "uplot";
import { value } from "../format/number";
import type { Series } from "./data";
import { sampleOf } from "./strokes";

const MOST = 12;

export function tooltip(series: Series[], place: (x: number) => string): uPlot.Plugin {
  const box = document.createElement("div");
  box.className = "chart-tip";
  box.hidden = true;
  return {
    hooks: {
      init: (plot) => {
        plot.over.appendChild(box);
        plot.over.addEventListener("pointerleave", () => {
          box.hidden = true;
        });
      },
      setCursor: (plot) => {
        const { idx, left, top } = plot.cursor;
        // Charts share their crosshair: only the one under the pointer has a box.
        if (idx === null || idx === undefined || left === undefined || left < 0 || !plot.over.matches(":hover")) {
          box.hidden = true;
          return;
        }
        fill(box, plot, series, idx, place);
        box.hidden = false;
        const wide = plot.over.clientWidth;
        box.style.left = left > wide / 2 ? "" : `${left + 14}px`;
        box.style.right = left > wide / 2 ? `${wide - left + 14}px` : "";
        box.style.top = `${Math.max(0, Math.min((top ?? 0) - 12, plot.over.clientHeight - box.offsetHeight))}px`;
      },
    },
  };
}

function fill(box: HTMLElement, plot: uPlot, series: Series[], at: number, place: (x: number) => string): void {
  const head = document.createElement("b");
  head.textContent = place(plot.data[0][at]);
  const under = plot.cursor.top === undefined ? NaN : plot.posToVal(plot.cursor.top, "y");
  const told = series
    .map((one, index) => ({ one, y: plot.data[index + 1][at] }))
    .filter(({ one, y }) => !one.faint && y !== null && y !== undefined)
    .map(({ one, y }) => ({ one, y: y as number, gap: Math.abs((y as number) - under) }))
    .sort((a, b) => a.gap - b.gap);
  const rows = told.slice(0, MOST).map(({ one, y }, index) => {
    const row = document.createElement("div");
    if (index === 0 && told.length > 1) row.className = "near";
    const sample = document.createElement("span");
    sample.className = "line-sample";
    Object.assign(sample.style, sampleOf(one.colour));
    const name = document.createElement("span");
    name.className = "cut grow";
    name.textContent = one.label;
    const number = document.createElement("span");
    number.className = "mono";
    number.textContent = value(y);
    row.append(sample, name, number);
    return row;
  });
  if (told.length > MOST) {
    const rest = document.createElement("div");
    rest.className = "dim";
    rest.textContent = `+${told.length - MOST}`;
    rows.push(rest);
  }
  box.replaceChildren(head, ...rows);
}
