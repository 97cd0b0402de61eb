import { expect, test } from "vitest";
import { csvText, curveCells } from "../src/format/csv";

test("numbers are written as Python reads them, and texts with a comma in quotes", () => {
  expect(
    csvText([
      ["a", 'b,"c"'],
      [1.5, Number.NaN],
      [-Infinity, null],
    ]),
  ).toBe('a,"b,""c"""\n1.5,nan\n-inf,\n');
});

test("curves with other steps share one column of steps", () => {
  expect(
    curveCells([
      { label: "a", x: [1, 3], y: [10, 30] },
      { label: "b", x: [2, 3], y: [20, 31], faint: true },
    ]),
  ).toEqual([
    ["step", "a", "b (raw)"],
    [1, 10, undefined],
    [2, undefined, 20],
    [3, 30, 31],
  ]);
});
