// The canvas and its camera: draws when something changed, follows the pointer, keeps the clicked box under it.
import { minimap } from "./minimap";
import { type Camera, colours, type Marks, paint } from "./paint";
import type { Box, Scene } from "./scene";

const LEAST_ZOOM = 0.02;
const MOST_ZOOM = 3;
const MAP_W = 150;
const MAP_H = 96;

export class Painter {
  camera: Camera = { k: 1, x: 0, y: 0 };
  scene: Scene | null = null;
  marks: Marks = {
    selected: -1,
    hovered: -1,
    current: -1,
    hits: new Map(),
    origins: new Set(),
    watched: new Set(),
    trace: new Map(),
    ways: [],
    colourBy: "family",
    heat: new Map(),
    flow: null,
  };
  w = 0;
  h = 0;
  drawMs = 0;
  drawn = 0;
  draws = 0;
  moved: (camera: Camera) => void = () => {};
  /** A rectangle being drawn over the graph, in pixels of the screen, and the boxes it holds. */
  band: { x0: number; y0: number; x1: number; y1: number } | null = null;
  picked: number[] = [];
  private c: Record<string, string> = colours();
  private waiting = false;
  private flight = 0;
  private readonly canvas: HTMLCanvasElement;
  private readonly map: HTMLCanvasElement;

  constructor(canvas: HTMLCanvasElement, map: HTMLCanvasElement) {
    this.canvas = canvas;
    this.map = map;
  }

  recolour(): void {
    this.c = colours();
    this.draw();
  }

  resize(w: number, h: number): void {
    const ratio = devicePixelRatio || 1;
    this.w = w;
    this.h = h;
    this.canvas.width = Math.max(1, Math.round(w * ratio));
    this.canvas.height = Math.max(1, Math.round(h * ratio));
    this.map.width = MAP_W * ratio;
    this.map.height = MAP_H * ratio;
    this.drawNow();
  }

  /** At the next frame, however often it is asked. */
  draw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawNow();
    });
  }

  drawNow(): void {
    const ctx = this.canvas.getContext("2d");
    if (!ctx || !this.scene || !this.w) return;
    const began = performance.now();
    const ratio = devicePixelRatio || 1;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawn = paint(ctx, this.w, this.h, this.scene, this.camera, this.marks, this.c);
    this.drawBand(ctx);
    const small = this.map.getContext("2d");
    this.map.hidden = this.w < 3 * MAP_W || this.allInSight();
    if (small && !this.map.hidden) {
      small.setTransform(ratio, 0, 0, ratio, 0, 0);
      minimap(small, MAP_W, MAP_H, this.scene, this.camera, this, this.marks, this.c);
    }
    this.drawMs = performance.now() - began;
    this.draws += 1;
  }

  /** What lies in the rectangle: closed boxes that it touches; an open scope is not taken, what is inside it is. */
  select(band: Painter["band"]): number[] {
    this.band = band;
    if (!band || !this.scene) this.picked = [];
    else {
      const { k, x, y } = this.camera;
      const [left, right] = [(Math.min(band.x0, band.x1) - x) / k, (Math.max(band.x0, band.x1) - x) / k];
      const [top, bottom] = [(Math.min(band.y0, band.y1) - y) / k, (Math.max(band.y0, band.y1) - y) / k];
      this.picked = this.scene.boxes.flatMap((one, index) =>
        index > 0 && !one.open && one.x < right && one.x + one.w > left && one.y < bottom && one.y + one.h > top
          ? [index]
          : [],
      );
    }
    this.draw();
    return this.picked;
  }

  private drawBand(ctx: CanvasRenderingContext2D): void {
    const { k, x, y } = this.camera;
    ctx.strokeStyle = this.c.accent;
    ctx.lineWidth = 2;
    for (const index of this.picked) {
      const one = this.scene?.boxes[index];
      if (one) ctx.strokeRect(one.x * k + x - 3, one.y * k + y - 3, one.w * k + 6, one.h * k + 6);
    }
    if (!this.band) return;
    const { x0, y0, x1, y1 } = this.band;
    ctx.setLineDash([5, 4]);
    ctx.lineWidth = 1;
    ctx.strokeRect(x0, y0, x1 - x0, y1 - y0);
    ctx.setLineDash([]);
    ctx.globalAlpha = 0.12;
    ctx.fillStyle = this.c.accent;
    ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
    ctx.globalAlpha = 1;
  }

  /** Nothing lies outside of the window: a map of it would only cover it. */
  private allInSight(): boolean {
    const { k, x, y } = this.camera;
    const scene = this.scene;
    const slack = 24;
    return (
      scene !== null &&
      x >= -slack &&
      y >= -slack &&
      x + scene.w * k <= this.w + slack &&
      y + scene.h * k <= this.h + slack
    );
  }

  fit(): void {
    if (!this.scene || !this.w) return;
    const k = Math.min(1.1, Math.max(LEAST_ZOOM, Math.min((this.w - 32) / this.scene.w, (this.h - 32) / this.scene.h)));
    this.set({ k, x: (this.w - this.scene.w * k) / 2, y: Math.max(8, (this.h - this.scene.h * k) / 2) });
  }

  /** At reading size, the top of the network in the middle: better than everything too small to read. */
  begin(): void {
    if (!this.scene) return;
    this.fit();
    if (this.camera.k >= 0.55) return;
    const k = 0.8;
    if (this.scene.way === "right") this.set({ k, x: 8, y: (this.h - this.scene.h * k) / 2 });
    else this.set({ k, x: (this.w - this.scene.w * k) / 2, y: 8 });
  }

  zoom(factor: number, x = this.w / 2, y = this.h / 2): void {
    const k = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, this.camera.k * factor));
    const ratio = k / this.camera.k;
    this.set({ k, x: x - (x - this.camera.x) * ratio, y: y - (y - this.camera.y) * ratio });
  }

  pan(dx: number, dy: number): void {
    this.set({ ...this.camera, x: this.camera.x + dx, y: this.camera.y + dy });
  }

  set(camera: Camera): void {
    this.flight += 1;
    this.camera = camera;
    this.draw();
    this.moved(camera);
  }

  /** Bring a box to the middle, at a size that can be read; a short flight unless the reader wants no motion. */
  centre(index: number): void {
    const box = this.scene?.boxes[index];
    if (!box || !this.w) return;
    const k = Math.max(this.camera.k, box.open ? Math.min(0.9, (this.w - 80) / box.w, (this.h - 60) / box.h) : 0.9);
    const tall = box.open ? Math.min(box.h, this.h / k - 40) : box.h;
    const goal = { k, x: this.w / 2 - (box.x + box.w / 2) * k, y: this.h / 2 - (box.y + tall / 2) * k };
    const from = { ...this.camera };
    const began = performance.now();
    const mine = (this.flight += 1);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const move = (now: number): void => {
      if (mine !== this.flight) return;
      const share = still ? 1 : Math.min(1, (now - began) / 150);
      const eased = 1 - (1 - share) ** 3;
      this.camera = {
        k: from.k + (goal.k - from.k) * eased,
        x: from.x + (goal.x - from.x) * eased,
        y: from.y + (goal.y - from.y) * eased,
      };
      this.drawNow();
      if (share < 1) requestAnimationFrame(move);
      else this.moved(this.camera);
    };
    move(began);
  }

  /** Bring a box into sight at the present size, without a flight: the scrubber moves on every frame. */
  follow(index: number): void {
    const box = this.scene?.boxes[index];
    if (!box || !this.w) return;
    const { k } = this.camera;
    this.flight += 1;
    this.camera = { k, x: this.w / 2 - (box.x + box.w / 2) * k, y: this.h / 2 - (box.y + Math.min(box.h, 40) / 2) * k };
    this.draw();
  }

  inSight(index: number): boolean {
    const box = this.scene?.boxes[index];
    if (!box) return false;
    const { k, x, y } = this.camera;
    return (
      box.x * k + x > 0 &&
      (box.x + box.w) * k + x < this.w &&
      box.y * k + y > 0 &&
      (box.y + Math.min(box.h, 40)) * k + y < this.h
    );
  }

  /** A new scene in which this box is where it was. */
  replace(scene: Scene, anchor: string): void {
    const before = anchor ? this.scene?.boxes.find((one) => one.key === anchor) : undefined;
    this.scene = scene;
    this.picked = [];
    const after = before ? scene.boxes.find((one) => one.key === anchor) : undefined;
    if (before && after) {
      const { k } = this.camera;
      const dx = (before.x + before.w / 2 - after.x - after.w / 2) * k;
      this.set({ k, x: this.camera.x + dx, y: this.camera.y + (before.y - after.y) * k });
    }
    this.draw();
  }

  /** The innermost box at a point of the screen; -1 for none. */
  at(px: number, py: number): number {
    const x = (px - this.camera.x) / this.camera.k;
    const y = (py - this.camera.y) / this.camera.k;
    const boxes = this.scene?.boxes ?? [];
    for (let index = boxes.length - 1; index > 0; index -= 1) if (holds(boxes[index], x, y)) return index;
    return -1;
  }

  /** A click in the small map moves the camera there. */
  jump(px: number, py: number): void {
    if (!this.scene) return;
    const k = Math.min(MAP_W / this.scene.w, MAP_H / this.scene.h);
    const x = (px - (MAP_W - this.scene.w * k) / 2) / k;
    const y = (py - (MAP_H - this.scene.h * k) / 2) / k;
    this.set({ ...this.camera, x: this.w / 2 - x * this.camera.k, y: this.h / 2 - y * this.camera.k });
  }
}

function holds(box: Box, x: number, y: number): boolean {
  return x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h;
}
