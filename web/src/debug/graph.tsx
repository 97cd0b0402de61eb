// The graph panel: canvas, toolbar and small map. The tree beside it is its accessible twin; this is for the eyes.
import { computed, effect, signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { expose } from "../base";
import { count } from "../format/number";
import { unfolded } from "../graph/fold";
import { Boxes, marksFor } from "../graph/marks";
import type { Model } from "../graph/model";
import { BACKWARD, LOSS } from "../graph/model";
import { type Marks, nameRoots } from "../graph/paint";
import { Painter } from "../graph/painter";
import { innermost, type Scene, type Way, type Wish, withAncestors } from "../graph/scene";
import { LayoutThread } from "../graph/thread";
import { lang, said, t } from "../i18n";
import { chooseNode, chosenItem, fold, opened, setOpen } from "../state/debug";
import { flow } from "../state/flow";
import { look } from "../state/prefs";
import { change, query } from "../state/route";
import {
  graph,
  graphDrawn,
  graphMissing,
  graphText,
  hits,
  hitsKnown,
  rank,
  runName,
  shownStep,
  state,
  watchpoints,
} from "../state/run";
import { guiltyNode, isMask } from "../state/verdict";
import { Skeleton } from "../ui/card";
import { Icon } from "../ui/icons";
import { More } from "../ui/more";
import { HeatLegend, heatOf } from "./heatsource";
import { pointers } from "./pointers";

const COLOURS = ["family", "depth", "heat", "mean", "nan", "zeros", "bytes"] as const;
const CANCEL_AFTER_MS = 400;
const REST_MS = 200;

/** What other parts may ask of the canvas. */
export const view: { painter: Painter | null; toggle: (key: string) => void; scene: Scene | null } = {
  painter: null,
  toggle: () => {},
  scene: null,
};

export function GraphPanel() {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const small = useRef<HTMLCanvasElement>(null);
  const figures = useSignal({ boxes: 0, lines: 0, ms: 0 });
  const slow = useSignal(false);
  const crumbs = useComputed(() => {
    const model = graph.value;
    return model && chosenItem.value > 0
      ? model.path(chosenItem.value).map((item) => ({ key: model.key[item], text: rootName(model, item) }))
      : [];
  });

  useEffect(
    () =>
      canvas.current && small.current && holder.current
        ? engine(holder.current, canvas.current, small.current, figures, slow)
        : undefined,
    [],
  );

  return (
    <section class="panel graph" aria-label={t("graph.title")}>
      <header>
        <h2 class="hidden-visually">{t("graph.title")}</h2>
        <nav class="crumbs cut" aria-label={t("graph.path")}>
          {crumbs.value.map((one, at) => (
            <span key={one.key}>
              {at > 0 && <span class="dim"> / </span>}
              <button class="plain mono" onClick={() => chooseNode(one.key)}>
                {one.text}
              </button>
            </span>
          ))}
        </nav>
        <span class="grow" />
        <label class="field">
          <span class="hidden-visually">{t("graph.colourBy")}</span>
          <select
            class="short"
            aria-label={t("graph.colourBy")}
            value={query.value.colour ?? "family"}
            onChange={(event) =>
              change({ colour: event.currentTarget.value === "family" ? null : event.currentTarget.value })
            }
          >
            {COLOURS.map((one) => (
              <option key={one} value={one}>
                {said("graph.by", one)}
              </option>
            ))}
          </select>
        </label>
        <button
          class="plain"
          title={t("graph.turn")}
          onClick={() => change({ way: way.peek() === "right" ? "down" : "right", cam: null })}
          data-test="turn"
        >
          <Icon name={way.value === "right" ? "right" : "down"} />
          <span class="hidden-visually">{t("graph.turn")}</span>
        </button>
        <button
          class="plain"
          aria-pressed={fold.value}
          title={t("graph.foldHelp")}
          onClick={() => change({ fold: fold.value ? "0" : null })}
        >
          <Icon name="fold" />
          <span class="hidden-visually">{t("graph.fold")}</span>
        </button>
        <button class="plain" title={`${t("graph.fit")} (0)`} onClick={() => view.painter?.fit()}>
          <Icon name="fit" />
          <span class="hidden-visually">{t("graph.fit")}</span>
        </button>
        <button class="plain" title={t("graph.zoomOut")} onClick={() => view.painter?.zoom(1 / 1.3)}>
          <Icon name="minus" />
          <span class="hidden-visually">{t("graph.zoomOut")}</span>
        </button>
        <button class="plain" title={t("graph.zoomIn")} onClick={() => view.painter?.zoom(1.3)}>
          <Icon name="plus" />
          <span class="hidden-visually">{t("graph.zoomIn")}</span>
        </button>
        <More name={`${runName.value}-graph`} svg={drawing} />
      </header>
      <div class="canvas-holder" ref={holder}>
        <canvas
          ref={canvas}
          class="graph-canvas"
          tabIndex={0}
          role="img"
          aria-label={`${t("graph.canvas")} ${t("graph.figures", { boxes: count(figures.value.boxes), lines: count(figures.value.lines) })}`}
          data-test="graph"
        />
        <canvas ref={small} class="minimap" aria-hidden="true" style={{ width: "150px", height: "96px" }} />
        {!graph.value && !graphMissing.value && !figures.value.boxes && (
          <div class="over graph-waits">
            <Skeleton rows={5} />
          </div>
        )}
        {!graph.value && graphMissing.value && (
          <div class="empty over">
            <h2>{t("graph.none")}</h2>
            <p>{t("graph.noneHelp")}</p>
          </div>
        )}
        {slow.value && (
          <div class="over slow">
            <span>{t("graph.laying")}</span>
            <button onClick={() => view.painter && cancel()}>{t("cancel")}</button>
          </div>
        )}
        <HeatLegend />
        <ul class="legend" aria-hidden="true">
          <li class="tone-warning">
            <Icon name="star" />
            {t("graph.legendOrigin")}
          </li>
          <li class="tone-nan">
            <Icon name="circle" />
            {t("graph.legendHit")}
          </li>
          {state.value?.place && (
            <li class="tone-accent">
              <Icon name="play" />
              {t("graph.legendCurrent")}
            </li>
          )}
        </ul>
      </div>
    </section>
  );
}

/** The pane's size; what the graph is turned by. */
const pane = signal({ w: 1, h: 1 });
/** Along the longer side of the pane, unless somebody chose. */
const way = computed<Way>(() =>
  query.value.way === "down" || query.value.way === "right"
    ? query.value.way
    : pane.value.w > pane.value.h * 1.45
      ? "right"
      : "down",
);

function colourBy(): Marks["colourBy"] {
  const asked = query.peek().colour ?? "family";
  return asked === "family" || asked === "depth" ? asked : "heat";
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
function engine(
  holder: HTMLElement,
  canvas: HTMLCanvasElement,
  small: HTMLCanvasElement,
  figures: { value: object },
  slow: { value: boolean },
): () => void {
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
    requestAnimationFrame(() =>
      requestAnimationFrame(() =>
        setTimeout(() => {
          if (graphDrawn.peek() !== null) graphDrawn.value = graphText.peek();
        }),
      ),
    );
    if (first) begin();
    else if (goTo) reveal();
    goTo = false;
    expose("graph", {
      painter,
      scene,
      get camera() {
        return painter.camera;
      },
      boxAt: (key: string) => screenBox(key),
    });
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
      resting = setTimeout(
        () => change({ cam: `${camera.k.toFixed(3)},${camera.x.toFixed(0)},${camera.y.toFixed(0)}` }),
        REST_MS,
      );
    };
  };
  const reveal = (): void => {
    const box = boxes && chosenItem.peek() > 0 ? boxes.of(chosenItem.peek()) : -1;
    if (box > 0 && !painter.inSight(box)) painter.centre(box);
  };
  const mark = (): void => {
    if (!model || !boxes || !painter.scene) return;
    const step = shownStep.peek();
    const atStep = hits.peek().filter((hit) => hit.step === step && hit.rank === rank.peek() && !isMask(hit));
    painter.marks = marksFor(
      model,
      painter.scene,
      boxes,
      {
        selected: chosenItem.peek(),
        current: state.peek()?.place?.node ?? "",
        hits: atStep,
        guilty: guiltyNode.peek(),
        watch: watchpoints.peek(),
        heat: heatOf.peek(),
        flow: flow.peek(),
        colourBy: colourBy(),
      },
      hovered,
    );
    painter.draw();
  };
  const screenBox = (key: string): object | null => {
    const box = painter.scene?.boxes.find((one) => one.key === key);
    const { k, x, y } = painter.camera;
    return box
      ? { x: box.x * k + x, y: box.y * k + y, w: box.w * k, h: box.h * k, open: box.open, count: box.count }
      : null;
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
  ends.push(
    effect(() => {
      if (!graphText.value) return;
      thread.graph(graphText.value);
      wished = "";
    }),
  );
  ends.push(
    effect(() => {
      const next = graph.value;
      if (!next) {
        model = boxes = null;
        if (graphText.value && !query.value.node)
          ask({ open: opened.value ?? ["*"], alone: [], hit: [], fold: fold.value, way: way.value });
        return;
      }
      if (model !== next && painter.scene && sceneOf === graphText.value) boxes = new Boxes(next, painter.scene);
      model = next;
      const item = chosenItem.value;
      const asked = opened.value ?? ["*"];
      if (item !== before) goTo = true;
      before = item;
      // The way to the chosen node is always open, whatever the link says.
      const path =
        item > 0
          ? next
              .path(item)
              .slice(0, -1)
              .map((one) => next.key[one])
          : [];
      const guilty = guiltyNode.value ? [next.find(guiltyNode.value)] : [];
      const hit = hitsKnown.value
        ? [
            ...new Set(
              hits.value
                .filter((one) => one.step === shownStep.value && one.rank === rank.value && !isMask(one))
                .map((one) => next.itemOfHit(one)),
            ),
          ]
        : [];
      ask({
        open: [...new Set([...asked, ...path])],
        alone: [...guilty, ...(item > 0 ? [item] : [])],
        hit,
        fold: fold.value,
        way: way.value,
      });
      mark();
    }),
  );
  ends.push(
    effect(() => {
      void [
        chosenItem.value,
        hits.value,
        guiltyNode.value,
        watchpoints.value,
        state.value,
        shownStep.value,
        query.value.colour,
        heatOf.value,
      ];
      mark();
      if (goTo && boxes) reveal();
    }),
  );
  ends.push(
    effect(() => {
      const now = flow.value;
      mark();
      if (now && boxes && !painter.inSight(boxes.of(now.item))) painter.follow(boxes.of(now.item));
    }),
  );
  ends.push(
    effect(() => {
      void [look.value, lang.value];
      nameRoots({ [BACKWARD]: t("graph.backward"), [LOSS]: t("graph.loss") });
      requestAnimationFrame(() => painter.recolour());
    }),
  );

  view.toggle = (key: string): void => {
    const box = painter.scene?.boxes.find((one) => one.key === key);
    if (!model || !box || (box.kind !== "scope" && box.kind !== "stack")) return;
    anchor = key;
    const now = withAncestors(model, opened.peek() ?? start);
    if (box.kind === "stack" && box.type === "fold") now.add(unfolded(model.key[model.parent[box.item]]));
    else if (box.open)
      for (const other of [...now]) {
        if (
          other === key ||
          other === unfolded(key) ||
          (model.byKey.has(other) && model.contains(box.item, model.byKey.get(other) as number) && box.kind === "scope")
        )
          now.delete(other);
      }
    else now.add(key);
    if (
      box.open &&
      chosenItem.peek() > 0 &&
      box.kind === "scope" &&
      model.contains(box.item, chosenItem.peek()) &&
      chosenItem.peek() !== box.item
    )
      chooseNode(key);
    setOpen(innermost(model, now));
  };

  const sized = new ResizeObserver(() => {
    painter.resize(holder.clientWidth, holder.clientHeight);
    pane.value = { w: holder.clientWidth, h: holder.clientHeight };
  });
  sized.observe(holder);
  ends.push(
    () => sized.disconnect(),
    () => thread.close(),
    () => {
      view.painter = null;
    },
  );
  ends.push(
    pointers(
      canvas,
      small,
      painter,
      (box) => {
        hovered = box;
        painter.marks.hovered = box;
        painter.draw();
      },
      (key) => view.toggle(key),
    ),
  );
  return () => ends.forEach((end) => end());
}
