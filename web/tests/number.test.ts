import { expect, test } from "vitest";
import { bytes, cell, honest, percent, perMille, seconds, value } from "../src/format/number";

test("values have four digits, plain between 1e-3 and 1e5", () => {
  expect([1.23456, 0.00123456, 12345.6, 0, -0, 1e-4, 123456.7, 2].map((x) => value(x))).toEqual([
    "1.235",
    "0.001235",
    "12350",
    "0",
    "-0",
    "1.00e-4",
    "1.23e5",
    "2",
  ]);
});

test("what is not finite keeps its name", () => {
  expect([NaN, Infinity, -Infinity].map((x) => value(x))).toEqual(["NaN", "+Inf", "-Inf"]);
});

test("a share never hides something", () => {
  expect([percent(1, 1e6), percent(999_999, 1e6), percent(0, 10), percent(10, 10), percent(1, 8)]).toEqual([
    "<0.1 %",
    ">99.9 %",
    "0 %",
    "100 %",
    "12.5 %",
  ]);
});

test("integers are exact and booleans are letters", () => {
  expect([cell(9007199254740993n, "int64"), cell(123456789, "int32"), cell(1, "bool"), cell(0, "bool")]).toEqual([
    "9007199254740993",
    "123456789",
    "T",
    "F",
  ]);
});

test("units follow the size", () => {
  expect([bytes(512), bytes(6144), seconds(0), seconds(0.0000123), seconds(0.5), seconds(75), seconds(3720)]).toEqual([
    "512 B",
    "6.00 KiB",
    "0 s",
    "12.3 µs",
    "500 ms",
    "1 m 15 s",
    "1 h 02 m",
  ]);
});

test("deviations are signed per mille", () => {
  expect([perMille(0.0012), perMille(-0.5), perMille(0)]).toEqual(["+1.200 ‰", "-500.000 ‰", "0.000 ‰"]);
});

test("a statistic of a tensor with NaN is NaN, its count of NaN is not", () => {
  const columns = { l2: [1, 2, 3], nan: [0, 4, 0], pos_inf: [0, 0, 1], neg_inf: [0, 0, 0] };
  expect(honest(columns, "l2")).toEqual([1, NaN, Infinity]);
  expect(honest(columns, "nan")).toEqual([0, 4, 0]);
});
