// A study in columns: filters, order, the best so far, and where values lie on axes.
import { expect, test } from "vitest";
import { bestSoFar, matching, ordered, parameterAxis, ranked, targetAxis } from "../src/study/data";
import type { StudyColumns } from "../src/types.gen";

const study = {
  study: "s",
  targets: ["loss"],
  goals: ["minimize"],
  parameters: ["lr", "kind"],
  log: ["lr"],
  wanted: 4,
  words: ["complete", "pruned", "failed", "running"],
  number: [0, 1, 2, 3],
  state: [0, 0, 1, 3],
  values: [[2, 1, 1000, null]],
  params: [
    [0.01, 0.0001, 1, null],
    ["a", "b", "a", null],
  ],
  run: ["s-0", "s-1", "s-2", ""],
  ended: ["complete", "complete", "divergence", ""],
  why: ["", "", "the loss ran away", ""],
  steps: [10, 10, 3, 0],
  seconds: [1, 2, 3, 0],
  best: [1],
  command: "",
} as StudyColumns;

test("a filter narrows by words, by state and by value", () => {
  expect(matching(study, "ran away")).toEqual([2]);
  expect(matching(study, "state:complete")).toEqual([0, 1]);
  expect(matching(study, "loss<1.5")).toEqual([1]);
  expect(matching(study, "lr>=0.01 kind=a")).toEqual([0, 2]);
});

test("rows without a value come last, whichever way they are sorted", () => {
  expect(ordered(study, [0, 1, 2, 3], "loss")).toEqual([1, 0, 2, 3]);
  expect(ordered(study, [0, 1, 2, 3], "-loss")).toEqual([2, 0, 1, 3]);
});

test("the best so far follows the goal and leaves out pruned trials", () => {
  expect(bestSoFar(study)).toEqual({ x: [0, 1], y: [2, 1] });
  expect(ranked({ ...study, goals: ["maximize"] })).toEqual([0, 1]);
});

test("an axis is logarithmic for a parameter searched by its exponent, and a word has a place", () => {
  expect(parameterAxis(study, "lr").at(0)).toBeCloseTo(0.5);
  expect(parameterAxis(study, "kind").at(1)).toBe(1);
  expect(parameterAxis(study, "lr").at(3)).toBeNaN();
  expect(targetAxis(study).at(0)).toBe(1);
});
