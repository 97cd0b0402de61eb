import { describe, expect, it } from "vitest";
import { bounded, cellOf, groupIn, lines, matching, parameters, sorted, words } from "../src/runs/query";
import type { RunBrief } from "../src/types.gen";

function run(name: string, more: Partial<RunBrief> = {}): RunBrief {
  return {
    run: name,
    state: "finished",
    live: false,
    started: 1,
    phase: "offline",
    step: 10,
    loss: 1,
    world_size: 1,
    ranks: [0],
    host: "here",
    command: ["python", "train.py"],
    hits: 0,
    spark: [],
    found: "",
    found_zh: "",
    bad: "",
    params: {},
    tags: [],
    note: "",
    pinned: false,
    ...more,
  };
}

const ALL = [
  run("gpt", { params: { lr: 3e-4, model: "gpt" }, bad: "nan", found: "NaN born in blocks.3/log", loss: "NaN" }),
  run("vit", { params: { lr: 1e-2, model: "vit", amp: true }, tags: ["baseline"], started: 2, loss: 0.5 }),
  run("old", { state: "failed", note: "warm-up too short", started: 0, hits: 4 }),
];
const names = (all: RunBrief[]): string[] => all.map((one) => one.run);

describe("the search of the list of runs", () => {
  it.each([
    ["", ["gpt", "vit", "old"]],
    ["lr < 1e-3", ["gpt"]],
    ["lr>=1e-3", ["vit"]],
    ["model:gpt or state:failed", ["gpt", "old"]],
    ["found:nan", ["gpt"]],
    ["-found:nan", ["vit", "old"]],
    ["tag:base", ["vit"]],
    ["amp=true", ["vit"]],
    ["--lr=0.01", ["vit"]],
    ["loss=NaN", ["gpt"]],
    ["hits>0 and state:failed", ["old"]],
    ['"too short"', ["old"]],
    ["lr<", ["gpt", "vit", "old"]],
    ["lr:", ["gpt", "vit", "old"]],
    ["group:model", ["gpt", "vit", "old"]],
    ["nothing-like-this", []],
  ])("%s", (asked, wanted) => {
    expect(names(matching(ALL, asked))).toEqual(wanted);
  });

  it("keeps a comparison with room around its sign together", () => {
    expect(words('lr <  1e-3 "two words" x')).toEqual(["lr<1e-3", '"two words"', "x"]);
  });

  it("takes five thousand runs", () => {
    const many = Array.from({ length: 5000 }, (_, at) => run(`r${at}`, { params: { lr: at / 5000 } }));
    expect(matching(many, "lr<0.5 r1")).toHaveLength(1 + 10 + 100 + 1000);
  });
});

describe("the order of the list", () => {
  it("puts what has no number last, whichever way", () => {
    expect(names(sorted(ALL, "loss"))).toEqual(["vit", "old", "gpt"]);
    expect(names(sorted(ALL, "-loss"))).toEqual(["old", "vit", "gpt"]);
  });
  it("keeps pinned runs on top", () => {
    expect(names(sorted([...ALL, run("pin", { pinned: true, started: -5 })], "-started"))[0]).toBe("pin");
  });
  it("sorts by a parameter", () => {
    expect(names(sorted(ALL, "-lr"))).toEqual(["vit", "gpt", "old"]);
  });
});

describe("groups, bounds and parameters", () => {
  it("heads a group with its runs, unless it is shut", () => {
    expect(lines(ALL, "model", ["gpt"]).map((one) => ("group" in one ? one.group : one.run.run))).toEqual([
      "gpt",
      "vit",
      "vit",
      "–",
      "old",
    ]);
    expect(groupIn("lr<1 group:model")).toBe("model");
  });
  it("writes what was dragged over an axis into the search", () => {
    const once = bounded("model:gpt", "lr", 1e-4, 1e-3);
    expect(once).toBe("model:gpt lr>=0.0001 lr<=0.001");
    expect(bounded(once, "lr", null, null)).toBe("model:gpt");
  });
  it("names first the parameters in which runs differ", () => {
    const same = [run("a", { params: { lr: 1, seed: 3 } }), run("b", { params: { lr: 2, seed: 3 } })];
    expect(parameters(same).map((one) => [one.name, one.varies])).toEqual([
      ["lr", true],
      ["seed", false],
    ]);
    expect(cellOf(same[0], "--LR")).toBe(1);
  });
});
