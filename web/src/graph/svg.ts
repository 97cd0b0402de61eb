// The scene as a drawing: everything that is open now, at full size, for a paper or a slide.
import { colour } from "../state/prefs";
import { family } from "./classes";
import { type Marks, name } from "./paint";
import type { Box, Line, Scene } from "./scene";

export function svgText(scene: Scene, marks: Marks): string {
  const c = (token: string): string => colour(token);
  const parts: string[] = [];
  const text = (x: number, y: number, words: string, more = ""): void => {
    parts.push(`<text x="${r(x)}" y="${r(y)}" ${more}>${escaped(words)}</text>`);
  };
  const rect = (one: Box, radius: number, fill: string, index: number): void => {
    const stroke = marks.origins.has(index)
      ? c("warning")
      : marks.hits.has(index)
        ? c("error")
        : index === marks.selected
          ? c("accent")
          : c("line");
    const wide = marks.hits.has(index) || index === marks.selected ? 2 : 1;
    parts.push(
      `<rect x="${r(one.x)}" y="${r(one.y)}" width="${r(one.w)}" height="${r(one.h)}" rx="${radius}" fill="${fill}" stroke="${stroke}" stroke-width="${wide}"><title>${escaped(`${one.key} ${one.type}`.trim())}</title></rect>`,
    );
  };
  scene.boxes.forEach((one, index) => {
    if (index === 0 || !one.open) return;
    rect(one, 8, one.depth % 2 ? c("bg1") : c("bg2"), index);
    text(
      one.x + 12,
      one.y + 19,
      one.kind === "stack" ? `${one.label}  ×${one.count}` : `${name(one)} ${one.type}`,
      `font-weight="600"`,
    );
  });
  for (const line of scene.lines)
    parts.push(
      `<path d="${pathOf(line, scene.way)}" fill="none" stroke="${c("edge")}" stroke-width="${r(Math.min(4, 1 + Math.log2(line.count) * 0.6))}"${line.skip ? ' stroke-dasharray="5 4"' : ""} marker-end="url(#tip)"/>`,
    );
  scene.boxes.forEach((one, index) => {
    if (index === 0 || one.open) return;
    const plain = one.kind === "scope" || one.kind === "stack";
    rect(one, one.kind === "operator" ? one.h / 2 : 5, plain ? c("bg3") : c(`op-${family(one.type)}`), index);
    const title = one.kind === "stack" ? `${one.label}  ×${one.count}` : name(one);
    if (one.kind === "operator") text(one.x + one.w / 2, one.y + one.h / 2 + 4, title, `text-anchor="middle"`);
    else
      text(
        one.x + 9,
        one.y + (plain && one.type && one.kind === "scope" ? 18 : one.h / 2 + 4),
        title,
        plain ? `font-weight="600"` : "",
      );
    if (one.kind === "scope" && one.type) text(one.x + 9, one.y + 34, one.type, `font-size="11" fill="${c("fg2")}"`);
    if (marks.origins.has(index)) text(one.x + one.w - 6, one.y + 6, "★", `font-size="18" fill="${c("warning")}"`);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${r(scene.w)} ${r(scene.h)}" width="${r(scene.w)}" height="${r(scene.h)}" font-family="system-ui, sans-serif" font-size="12" fill="${c("fg1")}">
<defs><marker id="tip" viewBox="0 0 8 6" refX="8" refY="3" markerWidth="8" markerHeight="6" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 3L0 6z" fill="${c("edge")}"/></marker></defs>
<rect width="100%" height="100%" fill="${c("bg0")}"/>
${parts.join("\n")}
</svg>
`;
}

function r(x: number): string {
  return String(Math.round(x * 10) / 10);
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

function pathOf(line: Line, way: Scene["way"]): string {
  const p = line.points;
  let path = p.length >= 4 ? `M${r(p[0])} ${r(p[1])}` : "";
  for (let at = 2; at < p.length; at += 2) {
    const [x0, y0, x1, y1] = [p[at - 2], p[at - 1], p[at], p[at + 1]];
    const [mx, my] = [r((x0 + x1) / 2), r((y0 + y1) / 2)];
    path +=
      way === "right"
        ? `C${mx} ${r(y0)} ${mx} ${r(y1)} ${r(x1)} ${r(y1)}`
        : `C${r(x0)} ${my} ${r(x1)} ${my} ${r(x1)} ${r(y1)}`;
  }
  return path;
}
