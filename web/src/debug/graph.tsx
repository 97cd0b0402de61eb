// The graph panel: canvas, toolbar and small map. The tree beside it is its accessible twin; this is for the eyes.
import { effect, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { expose } from "../base";
import { unfolded } from "../graph/fold";
import { Boxes, marksFor } from "../graph/marks";
import type { Model } from "../graph/model";
import { BACKWARD, LOSS } from "../graph/model";
import { type Marks, nameRoots } from "../graph/paint";
import { Painter } from "../graph/painter";
import { innermost, type Scene, type Wish, withAncestors } from "../graph/scene";
import { LayoutThread } from "../graph/thread";
import { count } from "../format/number";
import { lang, t } from "../i18n";
import { chooseNode, chosenItem, fold, opened, setOpen } from "../state/debug";
import { look } from "../state/prefs";
import { change, query } from "../state/route";
import { graph, graphDrawn, graphText, hits, hitsKnown, runName, shownStep, state, watchpoints } from "../state/run";
import { Icon } from "../ui/icons";
import { More } from "../ui/more";
import { heatOf } from "./heatsource";
import { manyMenu, nodeMenu } from "./nodemenu";

const CANCEL_AFTER_MS = 400;
const REST_MS = 200;

/** What other parts may ask of the canvas. */
export const view: { painter: Painter | null; toggle: (key: string) => void; scene: Scene | null } = { painter: null, toggle: () => {}, scene: null };

export function GraphPanel() {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const small = useRef<HTMLCanvasElement>(null);
  const figures = useSignal({ boxes: 0, lines: 0, ms: 0 });
  const slow = useSignal(false);
  const crumbs = useComputed(() => {
    const model = graph.value;
    return model && chosenItem.value > 0 ? model.path(chosenItem.value).map((item) => ({ key: model.key[item], text: rootName(model, item) })) : [];
  });

  useEffect(() => (canvas.current && small.current && holder.current ? engine(holder.current, canvas.current, small.current, figures, slow) : undefined), []);

  return (
    <section class="panel graph" aria-label={t("graph.title")}>
      <header>
        <h2>{t("graph.title")}</h2>
        <nav class="crumbs cut" aria-label={t("graph.path")}>
          {crumbs.value.map((one, at) => (
            <span key={one.key}>{at > 0 && <span class="dim"> / </span>}<button class="plain mono" onClick={() => chooseNode(one.key)}>{one.text}</button></span>
          ))}
        </nav>
        <span class="grow" />
        <span class="dim mono figures" data-test="graph-figures">{t("graph.figures", { boxes: count(figures.value.boxes), lines: count(figures.value.lines) })}</span>
        <label class="field"><span class="hidden-visually">{t("graph.colourBy")}</span>
          <select aria-label={t("graph.colourBy")} value={query.value.colour ?? "family"} onChange={(event) => change({ colour: event.currentTarget.value === "family" ? null : event.currentTarget.value })}>
            <option value="family">{t("graph.byFamily")}</option>
            <option value="depth">{t("graph.byDepth")}</option>
            <option value="heat">{t("graph.byMax")}</option>
          </select>
        </label>
        <button class="plain" aria-pressed={fold.value} title={t("graph.foldHelp")} onClick={() => change({ fold: fold.value ? "0" : null })}><Icon name="fold" /><span class="hidden-visually">{t("graph.fold")}</span></button>
        <button class="plain" title={`${t("graph.fit")} (0)`} onClick={() => view.painter?.fit()}><Icon name="fit" /><span class="hidden-visually">{t("graph.fit")}</span></button>
        <button class="plain" title={t("graph.zoomOut")} onClick={() => view.painter?.zoom(1 / 1.3)}><Icon name="minus" /><span class="hidden-visually">{t("graph.zoomOut")}</span></button>
        <button class="plain" title={t("graph.zoomIn")} onClick={() => view.painter?.zoom(1.3)}><Icon name="plus" /><span class="hidden-visually">{t("graph.zoomIn")}</span></button>
        <More name={`${runName.value}-graph`} svg={drawing} />
      </header>
      <div class="canvas-holder" ref={holder}>
        <canvas ref={canvas} class="graph-canvas" tabIndex={0} role="img" aria-label={t("graph.canvas")} data-test="graph" />
        <canvas ref={small} class="minimap" aria-hidden="true" style={{ width: "150px", height: "96px" }} />
        {!graph.value && <div class="empty over"><h2>{t("graph.none")}</h2><p>{t("graph.noneHelp")}</p></div>}
        {slow.value && <div class="over slow"><span>{t("graph.laying")}</span><button onClick={() => view.painter && cancel()}>{t("cancel")}</button></div>}
        <ul class="legend" aria-hidden="true">
          <li class="tone-warning"><Icon name="star" />{t("graph.legendOrigin")}</li>
          <li class="tone-error"><Icon name="circle" />{t("graph.legendHit")}</li>
          <li class="tone-accent"><Icon name="play" />{t("graph.legendCurrent")}</li>
        </ul>
      </div>
    </section>
  );
}

let cancel: () => void = () => {};

async function drawing(): Promise<string> {
  const { svgText } = await import("../graph/svg");
  return view.painter?.scene ? svgText(view.painter.scene, view.painter.marks) : "";
}

export function rootName(model: Model, item: number): string {
  const key = model.key[item];
  return key === BACKWARD ? t("graph.backward") : key === LOSS ? t("graph.loss") : model.label[item];
}

/** Everything that moves: signals to the worker, its scenes to the canvas, the pointer to the camera. */
function engine(holder: HTMLElement, canvas: HTMLCanvasElement, small: HTMLCanvasElement, figures: { value: object }, slow: { value: boolean }): () => void {
  const painter = new Painter(canvas, small);
  const ends: (() => void)[] = [];
  let model: Model | null = null;
  let boxes: Boxes | null = null;
  let anchor = "";
  let start: string[] = [];
  let hovered = -1;
  let first = true;
  let goTo = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  view.painter = painter;
  expose("setOpen", setOpen);

  const thread = new LayoutThread((scene, told) => {
    clearTimeout(timer);
    slow.value = false;
    if (told) start = told;
    painter.replace(scene, anchor);
    anchor = "";
    view.scene = scene;
    boxes = model ? new Boxes(model, scene) : null;
    sceneOf = graphText.peek();
    figures.value = { boxes: scene.boxes.length - 1, lines: scene.lines.length, ms: scene.ms };
    mark();
    // Painted at the next frame, and on the screen when the one after it begins.
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => { if (graphDrawn.peek() !== null) graphDrawn.value = graphText.peek(); })));
    if (first) begin();
    else if (goTo) reveal();
    goTo = false;
    expose("graph", { painter, scene, get camera() { return painter.camera; }, boxAt: (key: string) => screenBox(key) });
  });
  cancel = () => {
    slow.value = false;
    thread.cancel();
    change({ open: "-" });
  };

  const begin = (): void => {
    first = false;
    const [k, x, y] = (query.peek().cam ?? "").split(",").map(Number);
    if (Number.isFinite(y) && k > 0) painter.set({ k, x, y });
    else if (chosenItem.peek() > 0) {
      painter.begin();
      if (boxes) painter.centre(boxes.of(chosenItem.peek()));
    } else painter.begin();
    // Once the camera rests: every change of the address makes the whole page look at it again.
    let resting: ReturnType<typeof setTimeout> | undefined;
    painter.moved = (camera) => {
      clearTimeout(resting);
      resting = setTimeout(() => change({ cam: `${camera.k.toFixed(3)},${camera.x.toFixed(0)},${camera.y.toFixed(0)}` }), REST_MS);
    };
  };
  const reveal = (): void => {
    const box = boxes && chosenItem.peek() > 0 ? boxes.of(chosenItem.peek()) : -1;
    if (box > 0 && !painter.inSight(box)) painter.centre(box);
  };
  const mark = (): void => {
    if (!model || !boxes || !painter.scene) return;
    const step = shownStep.peek();
    const atStep = hits.peek().filter((hit) => hit.step === step);
    painter.marks = marksFor(model, painter.scene, boxes, {
      selected: chosenItem.peek(), current: state.peek()?.place?.node ?? "", hits: atStep, watch: watchpoints.peek(),
      heat: heatOf.peek(), colourBy: (query.peek().colour as Marks["colourBy"]) ?? "family",
    }, hovered);
    painter.draw();
  };
  const screenBox = (key: string): object | null => {
    const box = painter.scene?.boxes.find((one) => one.key === key);
    const { k, x, y } = painter.camera;
    return box ? { x: box.x * k + x, y: box.y * k + y, w: box.w * k, h: box.h * k, open: box.open, count: box.count } : null;
  };

  let before = -1;
  let wished = "";
  let sceneOf = "";
  /** A step more, with nothing new to see in the layout, is no reason for another one. */
  const ask = (wish: Wish): void => {
    if (JSON.stringify(wish) === wished) return;
    wished = JSON.stringify(wish);
    clearTimeout(timer);
    timer = setTimeout(() => (slow.value = true), CANCEL_AFTER_MS);
    thread.wish(wish);
  };
  graphDrawn.value = "";
  ends.push(() => (graphDrawn.value = null));
  ends.push(effect(() => {
    if (!graphText.value) return;
    thread.graph(graphText.value);
    wished = "";
  }));
  ends.push(effect(() => {
    const next = graph.value;
    if (!next) {
      model = boxes = null;
      if (graphText.value && !query.value.node) ask({ open: opened.value ?? ["*"], alone: [], hit: [], fold: fold.value });
      return;
    }
    if (model !== next && painter.scene && sceneOf === graphText.value) boxes = new Boxes(next, painter.scene);
    model = next;
    const item = chosenItem.value;
    const asked = opened.value ?? ["*"];
    if (item !== before) goTo = true;
    before = item;
    // The way to the chosen node is always open, whatever the link says.
    const way = item > 0 ? next.path(item).slice(0, -1).map((one) => next.key[one]) : [];
    const origins = hitsKnown.value ? hits.value.filter((hit) => hit.birth === "origin").slice(0, 20).map((hit) => next.find(hit.node)) : [];
    const hit = hitsKnown.value ? [...new Set(hits.value.filter((one) => one.step === shownStep.value).map((one) => next.find(one.node)))] : [];
    ask({ open: [...new Set([...asked, ...way])], alone: [...origins, ...(item > 0 ? [item] : [])], hit, fold: fold.value });
    mark();
  }));
  ends.push(effect(() => {
    void [chosenItem.value, hits.value, watchpoints.value, state.value, shownStep.value, query.value.colour, heatOf.value];
    mark();
    if (goTo && boxes) reveal();
  }));
  ends.push(effect(() => {
    void [look.value, lang.value];
    nameRoots({ [BACKWARD]: t("graph.backward"), [LOSS]: t("graph.loss") });
    requestAnimationFrame(() => painter.recolour());
  }));

  view.toggle = (key: string): void => {
    const box = painter.scene?.boxes.find((one) => one.key === key);
    if (!model || !box || (box.kind !== "scope" && box.kind !== "stack")) return;
    anchor = key;
    const now = withAncestors(model, opened.peek() ?? start);
    if (box.kind === "stack" && box.type === "fold") now.add(unfolded(model.key[model.parent[box.item]]));
    else if (box.open) for (const other of [...now]) {
      if (other === key || other === unfolded(key) || (model.byKey.has(other) && model.contains(box.item, model.byKey.get(other) as number) && box.kind === "scope")) now.delete(other);
    } else now.add(key);
    if (box.open && chosenItem.peek() > 0 && box.kind === "scope" && model.contains(box.item, chosenItem.peek()) && chosenItem.peek() !== box.item) chooseNode(key);
    setOpen(innermost(model, now));
  };

  const sized = new ResizeObserver(() => {
    painter.resize(holder.clientWidth, holder.clientHeight);
  });
  sized.observe(holder);
  ends.push(() => sized.disconnect(), () => thread.close(), () => { view.painter = null; });
  ends.push(pointers(canvas, small, painter, (box) => { hovered = box; painter.marks.hovered = box; painter.draw(); }));
  return () => ends.forEach((end) => end());
}

function pointers(canvas: HTMLCanvasElement, small: HTMLCanvasElement, painter: Painter, hover: (box: number) => void): () => void {
  const ends = new AbortController();
  const on = { signal: ends.signal };
  let from: { x: number; y: number; moved: boolean } | null = null;
  const key = (box: number): string => painter.scene?.boxes[box]?.key ?? "";
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    if (event.shiftKey) {
      painter.select({ x0: event.offsetX, y0: event.offsetY, x1: event.offsetX, y1: event.offsetY });
      return;
    }
    painter.select(null);
    from = { x: event.offsetX, y: event.offsetY, moved: false };
  }, on);
  canvas.addEventListener("pointermove", (event) => {
    if (painter.band) {
      painter.select({ ...painter.band, x1: event.offsetX, y1: event.offsetY });
      return;
    }
    if (!from) {
      const box = painter.at(event.offsetX, event.offsetY);
      canvas.style.cursor = box > 0 ? "pointer" : "grab";
      const one = painter.scene?.boxes[box];
      canvas.title = one ? `${one.key}${one.type ? `  ${one.type}` : ""}` : "";
      if (box !== painter.marks.hovered) hover(box);
      return;
    }
    const dx = event.offsetX - from.x;
    const dy = event.offsetY - from.y;
    if (!from.moved && Math.hypot(dx, dy) < 4) return;
    from = { x: event.offsetX, y: event.offsetY, moved: true };
    painter.pan(dx, dy);
  }, on);
  canvas.addEventListener("pointerup", (event) => {
    if (painter.band) {
      painter.band = null;
      painter.draw();
      manyMenu(painter.picked.flatMap((box) => painter.scene?.boxes[box] ?? []), event.clientX, event.clientY);
      return;
    }
    const click = from && !from.moved;
    from = null;
    if (!click) return;
    const box = painter.at(event.offsetX, event.offsetY);
    const one = painter.scene?.boxes[box];
    if (one?.kind === "stack") view.toggle(one.key);
    else if (one) chooseNode(one.key);
  }, on);
  canvas.addEventListener("dblclick", (event) => view.toggle(key(painter.at(event.offsetX, event.offsetY))), on);
  canvas.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    const box = painter.at(event.offsetX, event.offsetY);
    const one = painter.scene?.boxes[box];
    if (one && one.kind !== "stack") nodeMenu(one.key, event.clientX, event.clientY);
  }, on);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey) painter.pan(-event.deltaY, 0);
    else painter.zoom(Math.exp(-event.deltaY * 0.0016), event.offsetX, event.offsetY);
  }, { ...on, passive: false });
  const jump = (event: PointerEvent): void => {
    if (event.buttons) painter.jump(event.offsetX, event.offsetY);
  };
  small.addEventListener("pointerdown", jump, on);
  small.addEventListener("pointermove", jump, on);
  return () => ends.abort();
}
