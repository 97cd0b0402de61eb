import { describe, expect, it, test } from "vitest";
import { align, divergence, minMax, type Series, smooth, withoutOutliers } from "../src/charts/data";
import { tidyTicks } from "../src/charts/ticks";
import { hitRows } from "../src/debug/hitrows";
import { membership } from "../src/debug/treerows";
import { addressText, middle, parseAddress } from "../src/format/address";
import { ink, position, scaleOf, valueAt } from "../src/tensor/scale";
import type { HitView, VerdictView } from "../src/types.gen";

const series = (y: number[], x = y.map((_, at) => at)): Series => ({ label: "s", x, y, colour: 0 });

test("NaN leaves a gap and a mark", () => {
  expect(align([series([1, NaN, Infinity, 2])])).toEqual({
    x: [0, 1, 2, 3],
    y: [[1, null, null, 2]],
    bad: [
      { x: 1, kind: "nan", series: 0 },
      { x: 2, kind: "up", series: 0 },
    ],
  });
});

test("curves of different steps share one axis", () => {
  expect(align([series([1, 2], [0, 2]), series([5], [1])])).toMatchObject({
    x: [0, 1, 2],
    y: [
      [1, null, 2],
      [null, 5, null],
    ],
  });
});

test("smoothing starts unbiased and steps over NaN", () => {
  expect(smooth([2, NaN, 2, 2], 0.9)).toEqual([2, NaN, expect.closeTo(2), expect.closeTo(2)]);
});

test("thinning keeps the least, the greatest and the NaN of every bucket", () => {
  const y = Array.from({ length: 1000 }, (_, at) => (at === 500 ? NaN : Math.sin(at / 10)));
  y[333] = 99;
  const thin = minMax(
    y.map((_, at) => at),
    y,
    50,
  );
  expect(thin.x.length).toBeLessThanOrEqual(151);
  expect([thin.y.includes(99), thin.y.some(Number.isNaN)]).toEqual([true, true]);
});

test("the first step more than one per mille apart is found", () => {
  expect(divergence(series([1, 1, 1]), series([1, 1.0005, 1.002])).first).toBe(2);
  expect(divergence(series([1, 1]), series([1, NaN])).first).toBe(1);
  expect(divergence(series([1, 1]), series([1, 1])).first).toBeNull();
});

const hit = (id: number, birth: HitView["birth"], address: string, step = 5): HitView => ({
  id,
  birth,
  address,
  step,
  rank: 0,
  watchpoint: 1,
  node: address.split(":")[0],
  role: "output",
  slot: 0,
  reason: "",
  call: 1,
  severity: "error",
  order: id,
  condition: "",
  stats: null,
  readings: [],
  errors: [],
  outdated: false,
  reason_zh: "",
});

const born: VerdictView = {
  kind: "nan",
  node: "a",
  step: 5,
  rank: 0,
  phase: "forward",
  op: "",
  slot: "output",
  title: "",
  evidence: [],
  source: null,
  precision: "operator",
  samples: [],
  command: "",
  inputs: [],
};
const masked: HitView["stats"] = {
  count: 4,
  nan: 0,
  pos_inf: 0,
  neg_inf: 2,
  zeros: 0,
  negatives: 0,
  positives: 2,
  min: 0,
  max: 1,
  mean: 0.5,
  abs_mean: 0.5,
  l2: 1,
  std: 0.1,
  dtype: "float32",
  shape: [4],
};

test("what follows from the verdict is one line, one tensor is one row, and masks are neither", () => {
  const mask = { ...hit(9, "origin", "mask:output", 1), severity: "info" as const, stats: masked };
  const rows = hitRows(
    [
      mask,
      hit(1, "origin", "a:output"),
      { ...hit(2, "origin", "a:output"), watchpoint: 2 },
      hit(3, "propagated", "b:output"),
      hit(4, "propagated", "c:output"),
      hit(5, "unknown", "d:output", 6),
    ],
    "all",
    5,
    new Set(),
    born,
  );
  expect(rows).toMatchObject([
    { kind: "hit", guilty: true, watchpoints: [1, 2] },
    { kind: "follow", count: 3, steps: [5, 6] },
    { kind: "masks", count: 1 },
  ]);
});

test("a name is cut in its middle: the block and the operator stay", () => {
  expect(middle("encoder.blocks.17.attention.inner/masked_fill_2", 30)).toBe("encoder.blo….17…/masked_fill_2");
  expect(middle("blocks.3/log", 30)).toBe("blocks.3/log");
});

test("patterns choose nodes as in Python", () => {
  const fits = membership({ nodes: [], on: ["encoder.*:grad"], but: ["*.bias"] });
  expect(["encoder.0.fc", "encoder.0.bias", "decoder.0"].map(fits)).toEqual([true, false, false]);
});

test("addresses are written as they are read", () => {
  for (const text of ["a.0/log:output@5#0", "fc~2:grad.1", "x:param"])
    expect(addressText(parseAddress(text)!)).toBe(text);
});

test("the scale is its own inverse, and NaN and Inf have inks of their own", () => {
  const scale = scaleOf(Float32Array.from([-5, -0.1, 0, 0.01, 3, NaN]));
  expect(valueAt(position(0.7, scale), scale)).toBeCloseTo(0.7);
  const inks = { neutral: [0, 0, 0], cold: [0, 0, 9], hot: [9, 0, 0], nan: [1, 2, 3], inf: [4, 5, 6] } as const;
  expect([ink(NaN, scale, inks as never), ink(-Infinity, scale, inks as never)]).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  const near = scaleOf(Float32Array.from([1.2, 1.4, 1.6]));
  expect([near.kind, near.signed, valueAt(0, near), position(1.6, near)]).toEqual([
    "linear",
    false,
    expect.closeTo(1.2),
    expect.closeTo(1),
  ]);
  const positive = scaleOf(Float32Array.from([0, 0.1, 40]));
  expect(positive.signed).toBe(false);
  expect(ink(40, positive, inks as never)).toEqual([0, 0, 9]);
  expect(ink(-40, positive, inks as never)).toEqual([9, 0, 0]);
});

describe("ticks and outliers", () => {
  it.each([
    [
      [0, 0.5, 1, 1.5],
      ["0", "0.5", "1.0", "1.5"],
    ],
    [
      [0.02, 0.04, 0.06],
      ["0.02", "0.04", "0.06"],
    ],
    [
      [0.25, 0.5, 0.75],
      ["0.25", "0.50", "0.75"],
    ],
    [
      [2, 4, 6],
      ["2", "4", "6"],
    ],
  ])("ticks %s are alike", (ticks, told) => {
    expect(tidyTicks(ticks)).toEqual(told);
  });
  it("one spike in a quiet curve is beyond the axis, a steep beginning is not", () => {
    const of = (y: number[]) => [{ label: "a", x: y.map((_, at) => at), y, colour: 0 }];
    const quiet = Array.from({ length: 100 }, (_, at) => Math.sin(at));
    expect(withoutOutliers(of([...quiet, 1e4]))?.beyond).toBe(1);
    expect(withoutOutliers(of(Array.from({ length: 100 }, (_, at) => 10 * Math.exp(-at / 20))))).toBe(null);
  });
});
