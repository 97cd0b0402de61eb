import { describe, expect, it } from "vitest";
import { badness, NOISE_MOST, phaseOf } from "../src/held/errors";
import { withIgnored, withLayout, withPair } from "../src/held/maptext";
import { noteText } from "../src/held/notes";
import { momentText, parseMoment } from "../src/held/things";
import { lang } from "../src/i18n";
import type { ComparisonTable } from "../src/types.gen";

describe("a map as text", () => {
  it("gets a pair where its section is, and keeps what else stands there", () => {
    const text = '# by hand\n[names]\n"a.*" = "b.*"\n\n[rules]\n\'^x\' = "y"\n';
    expect(withPair(text, "fc", 'odd"name')).toBe(
      '# by hand\n[names]\n"a.*" = "b.*"\n"fc" = "odd\\"name"\n\n[rules]\n\'^x\' = "y"\n',
    );
  });
  it("has a pair said anew only once", () => {
    expect(withPair(withPair("", "fc", "one"), "fc", "two")).toBe('[names]\n"fc" = "two"\n');
  });
  it("makes the sections it needs", () => {
    const text = withLayout(withPair("", "fc", "dense"), "fc", "transpose");
    expect(text).toBe('[names]\n"fc" = "dense"\n\n[layouts]\n"fc" = "transpose"\n');
    expect(withIgnored(withIgnored(withIgnored(text, "left", "a"), "left", "b"), "left", "a")).toContain(
      'left = ["a", "b"]',
    );
  });
  it("leaves a list of several lines to hands", () => {
    const text = '[ignore]\nleft = [\n  "a",\n]\n';
    expect(withIgnored(text, "left", "b")).toBe(text);
  });
});

describe("a moment", () => {
  it("is a name with a step and a rank", () => {
    expect(parseMoment("run@120#3", new Set(["run"]))).toEqual({ name: "run", step: 120, rank: 3 });
    expect(parseMoment("odd@1", new Set(["odd@1"]))).toEqual({ name: "odd@1", step: null, rank: null });
    expect(momentText("run", 0, null)).toBe("run@0");
  });
});

describe("how bad a row is", () => {
  const table = {
    rows: {
      left: ["fc:output", "fc:output", "fc:output", "fc.weight:grad", ""],
      right: ["", "", "", "", "x:grad_input.1"],
      verdict: ["identical", "noise", "different", "different", "missing"],
      relative: [0, 1e-7, 0.1, "Infinity", null],
      expected: [1e-6, 1e-6, 1e-6, 0, null],
    },
  } as unknown as ComparisonTable;
  it("is zero for the same bits, below the line for rounding, above it for more", () => {
    const [same, noise, far, endless, missing] = [0, 1, 2, 3, 4].map((row) => badness(table, row));
    expect(same).toBe(0);
    expect(noise).toBeGreaterThan(0);
    expect(noise).toBeLessThanOrEqual(NOISE_MOST);
    expect(far).toBeGreaterThan(NOISE_MOST);
    expect([endless, missing]).toEqual([1, 1]);
  });
  it("belongs to the pass in which it was computed", () => {
    expect([0, 3, 4].map((row) => phaseOf(table, row))).toEqual(["forward", "backward", "backward"]);
  });
});

describe("a note", () => {
  it("speaks of A and B, in the language of the page", () => {
    const note = "float32 against float16; the right side is 1.01 times the left; something new";
    expect(noteText(note)).toBe("float32 against float16; B is 1.01 times A; something new");
    lang.value = "zh";
    expect(noteText(note)).toBe("float32 与 float16；B 是 A 的 1.01 倍；something new");
    lang.value = "en";
  });
});
