// The whole scene in a corner, for when it does not fit into the window.
import type { Camera, Colours, Marks } from "./paint";
import type { Scene } from "./scene";

/** The whole scene in a corner, and where we are in it. */
export function minimap(
  ctx: CanvasRenderingContext2D,
  w: number,
  h: number,
  scene: Scene,
  camera: Camera,
  view: { w: number; h: number },
  marks: Marks,
  c: Colours,
): void {
  const k = Math.min(w / scene.w, h / scene.h);
  const dx = (w - scene.w * k) / 2;
  const dy = (h - scene.h * k) / 2;
  ctx.fillStyle = c.bg1;
  ctx.fillRect(0, 0, w, h);
  scene.boxes.forEach((one, index) => {
    if (index === 0 || one.w * k < 0.4) return;
    const bad = marks.hits.has(index) && !one.open;
    ctx.fillStyle = marks.origins.has(index) ? c.warning : bad ? c.nan : one.open ? c.bg2 : c.edge;
    ctx.globalAlpha = one.open ? 0.5 : 1;
    ctx.fillRect(dx + one.x * k, dy + one.y * k, Math.max(1, one.w * k), Math.max(1, one.h * k));
  });
  ctx.globalAlpha = 1;
  ctx.strokeStyle = c.accent;
  ctx.lineWidth = 1.5;
  const box = {
    x: dx - (camera.x / camera.k) * k,
    y: dy - (camera.y / camera.k) * k,
    w: (view.w / camera.k) * k,
    h: (view.h / camera.k) * k,
  };
  const x0 = Math.max(0.75, box.x);
  const y0 = Math.max(0.75, box.y);
  ctx.strokeRect(
    x0,
    y0,
    Math.max(2, Math.min(w - 0.75, box.x + box.w) - x0),
    Math.max(2, Math.min(h - 0.75, box.y + box.h) - y0),
  );
}
