// The numbers themselves, as many as fit, of a plane of any size: only the cells in sight exist.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { cell } from "../format/number";
import { t } from "../i18n";
import { plainNumber } from "../net/values";
import { digits } from "../state/prefs";
import type { TileSource } from "./tiles";

const ROW = 24;
const HEAD = 56;
/** Browsers stop laying out boxes taller than about 16 million pixels. */
const TALLEST = 12_000_000;

export interface GridProps {
  source: TileSource;
  chosen: [number, number] | null;
  choose: (row: number, column: number) => void;
}

export function Grid({ source, chosen, choose }: GridProps) {
  const holder = useRef<HTMLDivElement>(null);
  const at = useSignal({ top: 0, left: 0, w: 600, h: 300 });
  const width = Math.max(72, 26 + 8 * (digits.value + 5));
  const rows = Math.min(source.rows, Math.floor(TALLEST / ROW));
  const columns = Math.min(source.columns, Math.floor(TALLEST / width));
  void source.version.value;

  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const read = (): void => {
      at.value = { top: element.scrollTop, left: element.scrollLeft, w: element.clientWidth, h: element.clientHeight };
    };
    read();
    element.addEventListener("scroll", read);
    const sized = new ResizeObserver(read);
    sized.observe(element);
    return () => {
      element.removeEventListener("scroll", read);
      sized.disconnect();
    };
  }, [source]);
  useEffect(() => {
    const element = holder.current;
    if (!element || !chosen) return;
    const [row, column] = chosen;
    if (row * ROW < element.scrollTop || (row + 2) * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = Math.max(0, row * ROW - element.clientHeight / 2);
    const far = (column + 1) * width + HEAD;
    if (column * width < element.scrollLeft || far > element.scrollLeft + element.clientWidth)
      element.scrollLeft = Math.max(0, column * width - element.clientWidth / 2);
  }, [chosen?.[0], chosen?.[1], source]);

  const firstRow = Math.floor(at.value.top / ROW);
  const lastRow = Math.min(rows, firstRow + Math.ceil(at.value.h / ROW) + 1);
  const firstColumn = Math.floor(at.value.left / width);
  const lastColumn = Math.min(columns, firstColumn + Math.ceil(at.value.w / width) + 1);
  const shownRows = Array.from({ length: Math.max(0, lastRow - firstRow) }, (_, index) => firstRow + index);
  const shownColumns = Array.from({ length: Math.max(0, lastColumn - firstColumn) }, (_, index) => firstColumn + index);

  return (
    <div
      class="numbers"
      ref={holder}
      tabIndex={0}
      role="grid"
      aria-label={t("tensor.gridLabel")}
      aria-rowcount={source.rows}
      aria-colcount={source.columns}
    >
      <div
        role="presentation"
        style={{ height: `${(rows + 1) * ROW}px`, width: `${columns * width + HEAD}px`, position: "relative" }}
      >
        <div class="numbers-head" role="row" style={{ height: `${ROW}px`, width: `${columns * width + HEAD}px` }}>
          {shownColumns.map((column) => (
            <span key={column} role="columnheader" style={{ left: `${HEAD + column * width}px`, width: `${width}px` }}>
              {column}
            </span>
          ))}
        </div>
        {shownRows.map((row) => (
          <div key={row} role="row" class="numbers-row" style={{ top: `${(row + 1) * ROW}px`, height: `${ROW}px` }}>
            <span role="rowheader" style={{ left: `${at.value.left}px`, width: `${HEAD}px` }}>
              {row}
            </span>
            {shownColumns.map((column) => {
              const value = source.value(row, column);
              const mine = chosen?.[0] === row && chosen[1] === column;
              return (
                <span
                  key={column}
                  role="gridcell"
                  aria-selected={mine}
                  class={kind(value, mine)}
                  style={{ left: `${HEAD + column * width}px`, width: `${width}px` }}
                  onClick={() => choose(row, column)}
                >
                  {value === undefined ? "…" : cell(value, source.dtype, digits.value)}
                </span>
              );
            })}
          </div>
        ))}
      </div>
    </div>
  );
}

function kind(value: number | bigint | undefined, chosen: boolean): string {
  const x = value === undefined ? 1 : plainNumber(value);
  const name = Number.isNaN(x) ? "nan" : !Number.isFinite(x) ? "inf" : x === 0 ? "zero" : "";
  return `${name}${chosen ? " chosen" : ""}`;
}
