// The network of one side, coloured by how far it is from the other: blue is rounding, orange is more, a star the cause.
import { effect, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { expose } from "../base";
import { unfolded } from "../graph/fold";
import { Boxes } from "../graph/marks";
import { BACKWARD, LOSS, Model } from "../graph/model";
import { nameRoots } from "../graph/paint";
import { Painter } from "../graph/painter";
import { innermost, withAncestors } from "../graph/scene";
import { LayoutThread } from "../graph/thread";
import { lang, t } from "../i18n";
import { askText } from "../net/api";
import { look } from "../state/prefs";
import { change, query } from "../state/route";
import type { ComparisonTable, GraphColumns } from "../types.gen";
import { Icon } from "../ui/icons";
import { badness, type Phase, type Places, phaseOf, placesOf, rowAt } from "./errors";
import { told, w } from "./words";

const REST_MS = 200;
const shown = signal<{ table: ComparisonTable; row: number } | null>(null);
let painter: Painter | null = null;

export function ErrorGraph({
  table,
  row,
  choose,
}: {
  table: ComparisonTable;
  row: number;
  choose: (row: number) => void;
}) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const small = useRef<HTMLCanvasElement>(null);
  const none = useSignal(false);
  const act = useRef(choose);
  act.current = choose;
  if (shown.peek()?.table !== table || shown.peek()?.row !== row) shown.value = { table, row };
  const side = query.value.side === "b" ? "b" : "a";
  const phase = phaseShown(table, row);
  useEffect(
    () =>
      holder.current && canvas.current && small.current
        ? engine(holder.current, canvas.current, small.current, side, phase, none, (at) => act.current(at))
        : undefined,
    [table.id, side, phase],
  );
  return (
    <section class="panel graph grow" aria-label={w("graph.title")}>
      <header>
        <h2 class="hidden-visually">{w("graph.title")}</h2>
        <span class="segments" role="group" aria-label={w("graph.side")}>
          {(["a", "b"] as const).map((one) => (
            <button
              key={one}
              aria-pressed={side === one}
              onClick={() => change({ side: one === "a" ? null : one, open: null, cam: null })}
            >
              {one.toUpperCase()}
            </button>
          ))}
        </span>
        <span class="segments" role="group" aria-label={w("graph.phase")}>
          {(["forward", "backward"] as const).map((one) => (
            <button key={one} aria-pressed={phase === one} onClick={() => change({ phase: one })}>
              {told("phase", one)}
            </button>
          ))}
        </span>
        <span class="grow" />
        <button class="plain" title={t("graph.fit")} onClick={() => painter?.fit()}>
          <Icon name="fit" />
          <span class="hidden-visually">{t("graph.fit")}</span>
        </button>
        <button class="plain" title={t("graph.zoomOut")} onClick={() => painter?.zoom(1 / 1.3)}>
          <Icon name="minus" />
          <span class="hidden-visually">{t("graph.zoomOut")}</span>
        </button>
        <button class="plain" title={t("graph.zoomIn")} onClick={() => painter?.zoom(1.3)}>
          <Icon name="plus" />
          <span class="hidden-visually">{t("graph.zoomIn")}</span>
        </button>
      </header>
      <div class="canvas-holder" ref={holder}>
        <canvas
          ref={canvas}
          class="graph-canvas"
          tabIndex={0}
          role="img"
          aria-label={w("graph.canvas")}
          data-test="error-graph"
        />
        <canvas ref={small} class="minimap" aria-hidden="true" style={{ width: "150px", height: "96px" }} />
        {none.value && (
          <div class="empty over">
            <p>{w("graph.none")}</p>
          </div>
        )}
        <ul class="legend error-legend" data-test="error-legend">
          <li>
            <span class="swatch same" />
            {w("legend.same")}
          </li>
          <li>
            <span class="swatch noise" />
            {w("legend.noise")}
          </li>
          <li>
            <span class="swatch far" />
            <Icon name="circle" tone="error" />
            {w("legend.different")}
          </li>
          <li class="tone-warning">
            <Icon name="star" />
            {w("part.cause")}
          </li>
          <li>
            <span class="swatch hole" />
            {w("legend.none")}
          </li>
        </ul>
      </div>
    </section>
  );
}

/** The pass that is coloured: the one asked for, else that of the chosen row. */
function phaseShown(table: ComparisonTable, row: number): Phase {
  const asked = query.value.phase;
  return asked === "forward" || asked === "backward" ? asked : row >= 0 ? phaseOf(table, row) : "forward";
}

function engine(
  holder: HTMLElement,
  canvas: HTMLCanvasElement,
  small: HTMLCanvasElement,
  side: "a" | "b",
  phase: Phase,
  none: { value: boolean },
  choose: (row: number) => void,
): () => void {
  const own = (painter = new Painter(canvas, small));
  const ends: (() => void)[] = [];
  let model: Model | null = null;
  let boxes: Boxes | null = null;
  let places: Places | null = null;
  let start: string[] = [];
  let first = true;
  let anchor = "";
  let before = -1;
  const itemOf = (row: number): number => {
    const rows = shown.peek()?.table.rows;
    const name = rows ? (side === "a" ? rows.left_node[row] : rows.right_node[row]) : "";
    return model && name ? (model.exact(name) ?? model.find(name)) : 0;
  };
  const mark = (): void => {
    const now = shown.peek();
    if (!model || !boxes || !places || !now) return;
    const marks = own.marks;
    marks.colourBy = "error";
    marks.heat = new Map();
    marks.hits = new Map();
    marks.origins = new Set();
    for (const [item, heat] of places.heat) {
      const box = boxes.of(item);
      if (box > 0) marks.heat.set(box, Math.max(marks.heat.get(box) ?? 0, heat));
    }
    for (const item of places.bad) marks.hits.set(boxes.of(item), 1);
    for (const item of places.causes) marks.origins.add(boxes.of(item));
    const chosen = itemOf(now.row);
    marks.selected = chosen > 0 ? boxes.of(chosen) : -1;
    own.draw();
  };
  const reveal = (): void => {
    const box = boxes && shown.peek() ? boxes.of(itemOf((shown.peek() as { row: number }).row)) : -1;
    if (box > 0 && !own.inSight(box)) own.centre(box);
  };
  /** The camera of the link; else the whole, or the chosen row's place where the whole is too small to read. */
  const begin = (): void => {
    const [k, x, y] = (query.peek().cam ?? "").split(",").map(Number);
    if (Number.isFinite(y) && k > 0) own.set({ k, x, y });
    else {
      own.begin();
      reveal();
    }
    let resting: ReturnType<typeof setTimeout> | undefined;
    own.moved = (camera) => {
      tidy();
      clearTimeout(resting);
      resting = setTimeout(
        () => change({ cam: `${camera.k.toFixed(3)},${camera.x.toFixed(0)},${camera.y.toFixed(0)}` }),
        REST_MS,
      );
    };
    tidy();
    ends.push(() => clearTimeout(resting));
  };
  /** The small map is in the way while everything can be seen without it. */
  const tidy = (): void => {
    const {
      scene,
      camera: { k },
    } = own;
    small.style.visibility = scene && scene.w * k <= own.w && scene.h * k <= own.h + 1 ? "hidden" : "visible";
  };
  const thread = new LayoutThread((scene, told) => {
    if (told && !start.length && told.length) {
      start = told; // what to open at first is known only now: once more, with the way to the row as well
      wish();
      return;
    }
    own.replace(scene, anchor);
    anchor = "";
    boxes = model ? new Boxes(model, scene) : null;
    mark();
    if (first) begin();
    else reveal();
    first = false;
    expose("errors", {
      painter: own,
      scene,
      places,
      worst: () => [...(own.marks.heat ?? [])].map(([box, heat]) => [scene.boxes[box].key, heat]),
    });
  });
  const wish = (): void => {
    const now = shown.peek();
    if (!model || !now || !places) return;
    const item = itemOf(now.row);
    const way =
      item > 0
        ? model
            .path(item)
            .slice(0, -1)
            .map((one) => (model as Model).key[one])
        : [];
    const asked =
      query.peek().open === undefined
        ? start.length
          ? start
          : ["*"]
        : query.peek().open === "-"
          ? []
          : query.peek().open.split(";");
    const open = asked[0] === "*" ? (way.length ? ["*", ...way] : asked) : [...new Set([...asked, ...way])];
    thread.wish({
      open: open.length === 1 ? open : open.filter((one) => one !== "*"),
      alone: [...places.causes, ...(item > 0 ? [item] : [])].slice(0, 40),
      fold: true,
    });
  };
  const id = shown.peek()?.table.id ?? "";
  void askText(`comparisons/${id}/graph`, { side }).then(
    (text) => {
      const now = shown.peek();
      if (!now || now.table.id !== id || painter !== own) return;
      thread.graph(text);
      model = new Model(JSON.parse(text) as GraphColumns);
      none.value = model.count < 2;
      places = placesOf(now.table, model, side, phase);
      wish();
    },
    () => (none.value = true),
  );
  ends.push(
    effect(() => {
      const row = shown.value?.row ?? -1;
      void query.value.open;
      if (row !== before) before = row;
      wish();
    }),
  );
  ends.push(
    effect(() => {
      void [look.value, lang.value];
      nameRoots({ [BACKWARD]: t("graph.backward"), [LOSS]: t("graph.loss") });
      requestAnimationFrame(() => own.recolour());
    }),
  );
  const toggle = (key: string): void => {
    const box = own.scene?.boxes.find((one) => one.key === key);
    if (!model || !box || (box.kind !== "scope" && box.kind !== "stack")) return;
    anchor = key;
    const asked = query.peek().open;
    const now = withAncestors(model, asked === undefined ? start : asked === "-" ? [] : asked.split(";"));
    if (box.kind === "stack" && box.type === "fold") now.add(unfolded(model.key[model.parent[box.item]]));
    else if (box.open)
      for (const other of [...now]) {
        if (
          other === key ||
          other === unfolded(key) ||
          (model.byKey.has(other) && box.kind === "scope" && model.contains(box.item, model.byKey.get(other) as number))
        )
          now.delete(other);
      }
    else now.add(key);
    const keys = innermost(model, now);
    change({ open: keys.length ? keys.join(";") : "-" });
  };
  ends.push(
    pointers(
      canvas,
      small,
      own,
      (box) => {
        const one = own.scene?.boxes[box];
        const now = shown.peek();
        if (!one || !model || !places || !now) return;
        if (one.kind === "stack") toggle(one.key);
        else {
          const row = rowAt(places, now.table, model, one.item);
          if (row >= 0) choose(row);
        }
      },
      toggle,
      (box) => {
        const one = own.scene?.boxes[box];
        const now = shown.peek();
        const rows = one && places ? (places.rows.get(one.item) ?? []) : [];
        return one
          ? `${one.key}${one.type ? `  ${one.type}` : ""}${now && rows.length ? `  ${Math.max(...rows.map((row) => badness(now.table, row))) > 0.5 ? w("legend.different") : w("legend.noise")}` : ""}`
          : "";
      },
    ),
  );
  const sized = new ResizeObserver(() => own.resize(holder.clientWidth, holder.clientHeight));
  sized.observe(holder);
  ends.push(
    () => sized.disconnect(),
    () => thread.close(),
  );
  return () => {
    ends.forEach((end) => end());
    if (painter === own) painter = null;
  };
}

function pointers(
  canvas: HTMLCanvasElement,
  small: HTMLCanvasElement,
  own: Painter,
  click: (box: number) => void,
  toggle: (key: string) => void,
  title: (box: number) => string,
): () => void {
  const ends = new AbortController();
  const on = { signal: ends.signal };
  let from: { x: number; y: number; moved: boolean } | null = null;
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      from = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    },
    on,
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
      if (!from) {
        const box = own.at(event.offsetX, event.offsetY);
        canvas.style.cursor = box > 0 ? "pointer" : "grab";
        canvas.title = box > 0 ? title(box) : "";
        own.marks.hovered = box;
        own.draw();
        return;
      }
      const dx = event.offsetX - from.x;
      const dy = event.offsetY - from.y;
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      from = { x: event.offsetX, y: event.offsetY, moved: true };
      own.pan(dx, dy);
    },
    on,
  );
  canvas.addEventListener(
    "pointerup",
    (event) => {
      const still = from && !from.moved;
      from = null;
      if (still) click(own.at(event.offsetX, event.offsetY));
    },
    on,
  );
  canvas.addEventListener(
    "dblclick",
    (event) => toggle(own.scene?.boxes[own.at(event.offsetX, event.offsetY)]?.key ?? ""),
    on,
  );
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      own.zoom(Math.exp(-event.deltaY * 0.0016), event.offsetX, event.offsetY);
    },
    { ...on, passive: false },
  );
  canvas.addEventListener(
    "keydown",
    (event) => {
      const act: Record<string, () => void> = {
        "0": () => own.fit(),
        "+": () => own.zoom(1.3),
        "=": () => own.zoom(1.3),
        "-": () => own.zoom(1 / 1.3),
        ArrowLeft: () => own.pan(60, 0),
        ArrowRight: () => own.pan(-60, 0),
        ArrowUp: () => own.pan(0, 60),
        ArrowDown: () => own.pan(0, -60),
      };
      if (!act[event.key]) return;
      event.preventDefault();
      event.stopPropagation();
      act[event.key]();
    },
    on,
  );
  const jump = (event: PointerEvent): void => {
    if (event.buttons) own.jump(event.offsetX, event.offsetY);
  };
  small.addEventListener("pointerdown", jump, on);
  small.addEventListener("pointermove", jump, on);
  return () => ends.abort();
}
