// The lines of the graph: bundles between boxes, skips dashed, and the true ways of the chosen node's data.
import type { Colours, Marks } from "./paint";
import type { Line, Scene } from "./scene";

export interface Sight {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export function lines(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  k: number,
  sight: Sight,
  marks: Marks,
  c: Colours,
): void {
  const simple = k < 0.25;
  const traced: Line[] = [];
  const { flow } = marks;
  scene.lines.forEach((line, index) => {
    if (!touches(line, sight)) return;
    if (marks.trace.has(index)) {
      traced.push(line);
      return;
    }
    const bad = flow !== null && flow.bad[line.from] <= flow.at;
    const later = flow !== null && !(flow.made[line.from] <= flow.at);
    ctx.strokeStyle = bad ? c.nan : c.edge;
    ctx.globalAlpha = later ? 0.25 : simple ? 0.6 : 0.9;
    // A skip beside the chain it jumps over: there, but not the way.
    ctx.setLineDash(line.skip && !simple ? [5, 4] : []);
    stroke(
      ctx,
      line,
      scene.way,
      simple,
      Math.max(0.7 / k, Math.min(4, 1 + Math.log2(line.count) * 0.6)) + (bad ? 1 : 0),
    );
  });
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = c.accent;
  for (const line of traced) stroke(ctx, line, scene.way, simple, Math.max(2, 1.6 / k));
  if (simple) return;
  scene.lines.forEach((line, index) => {
    const p = line.points;
    if (p.length < 4 || !touches(line, sight)) return;
    const bad = flow !== null && flow.bad[line.from] <= flow.at;
    ctx.fillStyle = bad ? c.nan : marks.trace.has(index) ? c.accent : c.edge;
    const end = p.length - 2;
    if (scene.way === "right") tip(ctx, p[end], p[end + 1], p[end] >= p[end - 2] ? 1 : -1, 0);
    else tip(ctx, p[end], p[end + 1], 0, p[end + 1] >= p[end - 1] ? 1 : -1);
  });
}

export function ways(ctx: CanvasRenderingContext2D, scene: Scene, k: number, marks: Marks, c: Colours): void {
  ctx.strokeStyle = c.accent;
  ctx.lineWidth = Math.max(1.4, 1.2 / k);
  ctx.setLineDash([5, 4]);
  const right = scene.way === "right";
  for (const [from, to] of marks.ways) {
    const a = scene.boxes[from];
    const b = scene.boxes[to];
    const points = right
      ? [a.x + a.w, a.y + a.h / 2, b.x, b.y + b.h / 2]
      : [a.x + a.w / 2, a.y + a.h, b.x + b.w / 2, b.y];
    ctx.beginPath();
    bend(ctx, points, 2, scene.way);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

function touches(line: Line, sight: Sight): boolean {
  const p = line.points;
  let low = Infinity;
  let high = -Infinity;
  let least = Infinity;
  let most = -Infinity;
  for (let at = 0; at < p.length; at += 2) {
    least = Math.min(least, p[at]);
    most = Math.max(most, p[at]);
    low = Math.min(low, p[at + 1]);
    high = Math.max(high, p[at + 1]);
  }
  return least < sight.right && most > sight.left && low < sight.bottom && high > sight.top;
}

function stroke(ctx: CanvasRenderingContext2D, line: Line, way: Scene["way"], simple: boolean, width: number): void {
  const p = line.points;
  if (p.length < 4) return;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.moveTo(p[0], p[1]);
  for (let at = 2; at < p.length; at += 2) {
    if (simple) ctx.lineTo(p[at], p[at + 1]);
    else bend(ctx, p, at, way);
  }
  ctx.stroke();
}

/** From the point before `at` to it, leaving and arriving along the way data flows. */
function bend(ctx: CanvasRenderingContext2D, p: readonly number[], at: number, way: Scene["way"]): void {
  const [x0, y0, x1, y1] = [p[at - 2], p[at - 1], p[at], p[at + 1]];
  if (at === 2) ctx.moveTo(x0, y0);
  if (way === "right") ctx.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
  else ctx.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
}

function tip(ctx: CanvasRenderingContext2D, x: number, y: number, dx: number, dy: number): void {
  ctx.beginPath();
  ctx.moveTo(x - 6 * dx - 4 * dy, y - 6 * dy - 4 * dx);
  ctx.lineTo(x, y);
  ctx.lineTo(x - 6 * dx + 4 * dy, y - 6 * dy + 4 * dx);
  ctx.closePath();
  ctx.fill();
}
