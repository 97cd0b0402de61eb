import { expect, test } from "vitest";
import { defaultSlice, moved, parseSlice, SliceError, wholeIndex } from "../src/tensor/slice";

test("a slice reads as in numpy", () => {
  const one = parseSlice("[0, ..., ::2]", [4, 3, 8]);
  expect(one.free).toEqual([
    { axis: 1, size: 3 },
    { axis: 2, size: 4 },
  ]);
  expect(wholeIndex(one, [4, 3, 8], [2, 3])).toEqual([0, 2, 6]);
});

test("negative indices and steps count from the end", () => {
  const one = parseSlice("-1, ::-1", [4, 5]);
  expect(one.parts[0]).toBe(3);
  expect(wholeIndex(one, [4, 5], [0])).toEqual([3, 4]);
});

test("what cannot be read is told with a slice that works", () => {
  for (const text of ["9,0", "0,0,0", "a", "::0", "...,..."]) {
    try {
      parseSlice(text, [4, 5]);
      expect.fail(text);
    } catch (error) {
      expect(error).toBeInstanceOf(SliceError);
      expect(() => parseSlice((error as SliceError).example, [4, 5])).not.toThrow();
    }
  }
});

test("two axes are free at first, and a fixed index moves round", () => {
  expect(defaultSlice([8, 12, 5, 6])).toBe("0,0,:,:");
  expect(moved(parseSlice("0,0,:,:", [8, 12, 5, 6]), [8, 12, 5, 6], 0, -1)).toBe("7,0,:,:");
});
