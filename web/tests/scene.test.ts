import { expect, test } from "vitest";
import { Model } from "../src/graph/model";
import { type Box, innermost, type Scene, SceneMaker, withAncestors } from "../src/graph/scene";
import { transformer } from "./graphs";

const model = new Model(transformer(48));
const maker = new SceneMaker(model);
const allOpen = model.key.filter((_, item) => item > 0 && model.isScope(item));

function overlaps(a: Box, b: Box): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

function sound(scene: Scene): void {
  const siblings = new Map<number, Box[]>();
  scene.boxes.forEach((box, index) => {
    if (index === 0) return;
    const parent = scene.boxes[box.parent];
    expect(
      box.x >= parent.x &&
        box.y >= parent.y &&
        box.x + box.w <= parent.x + parent.w + 0.01 &&
        box.y + box.h <= parent.y + parent.h + 0.01,
      `${box.key} inside ${parent.key}`,
    ).toBe(true);
    for (const other of siblings.get(box.parent) ?? [])
      expect(overlaps(box, other), `${box.key} over ${other.key}`).toBe(false);
    siblings.set(box.parent, [...(siblings.get(box.parent) ?? []), box]);
  });
}

test("identical layers are one stack", () => {
  const scene = maker.make({ open: ["layers"], alone: [], fold: true });
  const stack = scene.boxes.find((box) => box.kind === "stack");
  expect([stack?.label, stack?.count]).toEqual(["0…47", 48]);
  sound(scene);
});

test("an origin breaks the stack in two and stands alone", () => {
  const origin = model.find("layers.7.attn.core/_softmax5");
  const scene = maker.make({ open: ["layers"], alone: [origin], fold: true });
  expect(
    scene.boxes.filter((box) => scene.boxes[box.parent]?.key === "layers").map((box) => [box.label, box.kind]),
  ).toEqual([
    ["0…6", "stack"],
    ["7", "scope"],
    ["8…47", "stack"],
  ]);
});

test("layers with hits and layers without are never in one stack", () => {
  const hit = [...Array(10).keys()].map((at) => model.find(`layers.${at + 8}.attn.core/_softmax5`));
  const scene = maker.make({ open: ["layers"], alone: [model.find("layers.7.attn.core/_softmax5")], hit, fold: true });
  expect(
    scene.boxes.filter((box) => scene.boxes[box.parent]?.key === "layers").map((box) => [box.label, box.kind]),
  ).toEqual([
    ["0…6", "stack"],
    ["7", "scope"],
    ["8…17", "stack"],
    ["18…47", "stack"],
  ]);
});

test("nothing overlaps and children lie inside, with every scope open", () => {
  sound(maker.make({ open: allOpen, alone: [], fold: false }));
});

test("every edge between two visible boxes is drawn, or is a stub of an input that feeds many", () => {
  const scene = maker.make({ open: allOpen, alone: [], fold: false });
  const drawn = new Set(scene.lines.map((line) => `${line.from}>${line.to}`));
  for (const line of scene.lines) expect(line.points.length).toBeGreaterThanOrEqual(4);
  const stubs = scene.boxes.filter((box) => box.stubs.includes("mask")).length;
  const layers = scene.boxes.findIndex((box) => box.key === "layers");
  const mask = scene.boxes.findIndex((box) => box.key === "mask");
  expect(stubs > 0 || drawn.has(`${mask}>${layers}`)).toBe(true);
});

test("the same wish gives the same scene", () => {
  const [a, b] = [0, 1].map(() => maker.make({ open: allOpen, alone: [], fold: true }));
  expect({ ...a, ms: 0 }).toEqual({ ...b, ms: 0 });
});

test("a crowd of more than 200 is cut into chunks", () => {
  const many = new Model(transformer(450));
  const scene = new SceneMaker(many).make({ open: ["layers", "layers[*]"], alone: [], fold: true });
  expect(scene.boxes.filter((box) => box.kind === "stack").map((box) => box.label)).toEqual([
    "1–200",
    "201–400",
    "401–450",
  ]);
});

test("50,000 operators are laid out folded, whatever the depth", () => {
  const large = new Model(transformer(3600));
  const scene = new SceneMaker(large).make({ open: ["layers", "layers.1799"], alone: [], fold: true });
  expect(large.columns.nodes.name.length).toBeGreaterThan(50_000);
  expect(scene.boxes.length).toBeLessThan(60);
  sound(scene);
});

test("a link lists the innermost open scopes and means those around them too", () => {
  const open = withAncestors(model, ["layers.3.attn"]);
  expect([...open].sort()).toEqual(["layers", "layers.3", "layers.3.attn"]);
  expect(innermost(model, open)).toEqual(["layers.3.attn"]);
});
