// Tables as text that Python and a spreadsheet read.

export type Cells = (string | number | null | undefined)[][];

/** Curves side by side: one column of x, one for each curve. */
export function curveCells(
  series: readonly { label: string; x: readonly number[]; y: readonly number[]; faint?: boolean }[],
): Cells {
  const columns = series.map((one) => new Map(one.x.map((x, at) => [x, one.y[at]])));
  const all = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  return [
    ["step", ...series.map((one) => (one.faint ? `${one.label} (raw)` : one.label))],
    ...all.map((x) => [x, ...columns.map((column) => column.get(x))]),
  ];
}

/** Numbers as Python reads them; a text with a comma, a quote or a line break in quotes. */
export function csvText(rows: Cells): string {
  const cell = (one: Cells[number][number]): string => {
    if (one === null || one === undefined) return "";
    if (typeof one === "number")
      return Number.isNaN(one) ? "nan" : one === Infinity ? "inf" : one === -Infinity ? "-inf" : String(one);
    return /[",\n\r]/.test(one) ? `"${one.replace(/"/g, '""')}"` : one;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
}
