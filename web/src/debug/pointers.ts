// The mouse on the graph: hover, choose, pan, zoom, select a rectangle, and jump with the small map.
import type { Painter } from "../graph/painter";
import { chooseNode } from "../state/debug";
import { manyMenu, nodeMenu } from "./nodemenu";

export function pointers(
  canvas: HTMLCanvasElement,
  small: HTMLCanvasElement,
  painter: Painter,
  hover: (box: number) => void,
  toggle: (key: string) => void,
): () => void {
  const ends = new AbortController();
  const on = { signal: ends.signal };
  let from: { x: number; y: number; moved: boolean } | null = null;
  const key = (box: number): string => painter.scene?.boxes[box]?.key ?? "";
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      if (event.shiftKey) {
        painter.select({ x0: event.offsetX, y0: event.offsetY, x1: event.offsetX, y1: event.offsetY });
        return;
      }
      painter.select(null);
      from = { x: event.offsetX, y: event.offsetY, moved: false };
    },
    on,
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
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
    },
    on,
  );
  canvas.addEventListener(
    "pointerup",
    (event) => {
      if (painter.band) {
        painter.band = null;
        painter.draw();
        manyMenu(
          painter.picked.flatMap((box) => painter.scene?.boxes[box] ?? []),
          event.clientX,
          event.clientY,
        );
        return;
      }
      const click = from && !from.moved;
      from = null;
      if (!click) return;
      const box = painter.at(event.offsetX, event.offsetY);
      const one = painter.scene?.boxes[box];
      if (one?.kind === "stack") toggle(one.key);
      else if (one) chooseNode(one.key);
    },
    on,
  );
  canvas.addEventListener("dblclick", (event) => toggle(key(painter.at(event.offsetX, event.offsetY))), on);
  canvas.addEventListener(
    "contextmenu",
    (event) => {
      event.preventDefault();
      const box = painter.at(event.offsetX, event.offsetY);
      const one = painter.scene?.boxes[box];
      if (one && one.kind !== "stack") nodeMenu(one.key, event.clientX, event.clientY);
    },
    on,
  );
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      if (event.shiftKey) painter.pan(-event.deltaY, 0);
      else painter.zoom(Math.exp(-event.deltaY * 0.0016), event.offsetX, event.offsetY);
    },
    { ...on, passive: false },
  );
  const jump = (event: PointerEvent): void => {
    if (event.buttons) painter.jump(event.offsetX, event.offsetY);
  };
  small.addEventListener("pointerdown", jump, on);
  small.addEventListener("pointermove", jump, on);
  return () => ends.abort();
}
