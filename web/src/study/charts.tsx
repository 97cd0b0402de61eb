// The pictures of a study: history, importance, parallel coordinates, slices, contour. Canvases: ten thousand marks.
import { ParallelLines } from "../charts/parallel";
import type { StudyColumns, StudyImportance } from "../types.gen";
import { Canvas, frame, type Paper } from "../ui/canvas";
import { type Axis, bestSoFar, parameterAxis, type Row, ranked, stateOf, targetAxis, value } from "./data";
import { w } from "./words";

const INSET = 0.03;
const inset = (at: number): number => INSET + at * (1 - 2 * INSET);
const TONES: Record<string, string> = { complete: "s0", pruned: "warning", failed: "error" };

export function History({ study, target, pick }: { study: StudyColumns; target: number; pick: (row: Row) => void }) {
  const axis = targetAxis(study, target);
  const most = Math.max(1, study.number.length - 1);
  const draw = (paper: Paper): void => {
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((at) => ({ at: inset(at), label: String(Math.round(at * most)) }));
    const to = frame(
      paper,
      ticks,
      axis.ticks.map((one) => ({ ...one, at: inset(one.at) })),
    );
    const { context, ink } = paper;
    for (let row = 0; row < study.number.length; row += 1) {
      const state = stateOf(study, row);
      const at = Math.min(1, Math.max(0, axis.at(row)));
      if (!(state in TONES) || Number.isNaN(at)) continue;
      context.fillStyle = ink(TONES[state]);
      context.globalAlpha = state === "complete" ? 0.85 : 0.5;
      context.beginPath();
      context.arc(to.x(inset(study.number[row] / most)), to.y(inset(at)), 2.6, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
    const best = bestSoFar(study, target);
    const rows = new Map(study.number.map((number, row) => [number, row]));
    const done = ranked(study, target);
    const atOf = new Map(done.map((row) => [value(study, row, target), axis.at(row)]));
    context.strokeStyle = ink("ok");
    context.lineWidth = 1.8;
    context.beginPath();
    best.x.forEach((x, at) => {
      if (!rows.has(x)) return;
      const y = to.y(inset(atOf.get(best.y[at]) ?? 0));
      if (at === 0) context.moveTo(to.x(inset(x / most)), y);
      else {
        context.lineTo(to.x(inset(x / most)), to.y(inset(atOf.get(best.y[at - 1]) ?? 0)));
        context.lineTo(to.x(inset(x / most)), y);
      }
    });
    context.stroke();
  };
  return (
    <Canvas
      height={240}
      label={w("history")}
      draw={draw}
      pick={(x, _, width) => pick(Math.round(Math.min(1, Math.max(0, (x - 58) / (width - 72))) * most))}
    />
  );
}

export function Importance({ told }: { told: StudyImportance | null }) {
  if (!told || told.problem || !told.names.length) return <p class="dim">{w("importance.wait")}</p>;
  return (
    <table class="importance">
      <tbody>
        {told.names.map((name, at) => (
          <tr key={name}>
            <td class="mono nowrap">{name}</td>
            <td style={{ width: "100%" }}>
              <div class="share" style={{ width: `${Math.max(1, 100 * told.shares[at])}%` }} />
            </td>
            <td class="number">{(100 * told.shares[at]).toFixed(1)} %</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Parallel({ study, target }: { study: StudyColumns; target: number }) {
  const axes: Axis[] = [...study.parameters.map((name) => parameterAxis(study, name)), targetAxis(study, target)];
  return <ParallelLines axes={axes} rows={ranked(study, target)} label={w("parallel")} height={360} best />;
}

export function Slice({ study, name, target }: { study: StudyColumns; name: string; target: number }) {
  const [across, up] = [parameterAxis(study, name), targetAxis(study, target)];
  const draw = (paper: Paper): void => {
    const padded = (axis: Axis): { at: number; label: string }[] =>
      axis.ticks.map((one) => ({ ...one, at: inset(one.at) }));
    const to = frame(
      paper,
      padded(across).filter((_, at, all) => all.length < 6 || at % 2 === 0),
      padded(up),
    );
    const { context, ink } = paper;
    const newest = Math.max(1, study.number.length - 1);
    for (let row = 0; row < study.number.length; row += 1) {
      const [x, y] = [across.at(row), up.at(row)];
      if (stateOf(study, row) !== "complete" || Number.isNaN(x) || Number.isNaN(y)) continue;
      context.fillStyle = ink("s0");
      context.globalAlpha = 0.25 + (0.65 * row) / newest;
      context.beginPath();
      context.arc(to.x(inset(x)), to.y(inset(y)), 3, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  };
  return <Canvas height={190} label={`${w("slice")} ${name}`} draw={draw} />;
}

const CELLS = 24;

export function Contour({ study, x, y, target }: { study: StudyColumns; x: string; y: string; target: number }) {
  const [across, up] = [parameterAxis(study, x), parameterAxis(study, y)];
  const best = ranked(study, target);
  const draw = (paper: Paper): void => {
    const padded = (axis: Axis): { at: number; label: string }[] =>
      axis.ticks.map((one) => ({ ...one, at: inset(one.at) }));
    const to = frame(paper, padded(across), padded(up));
    const { context, ink } = paper;
    const points = best
      .map((row, place) => ({ x: across.at(row), y: up.at(row), quality: 1 - place / Math.max(1, best.length - 1) }))
      .filter((one) => !Number.isNaN(one.x) && !Number.isNaN(one.y));
    if (!points.length) return;
    const sample = points.length > 400 ? points.filter((_, at) => at % Math.ceil(points.length / 400) === 0) : points;
    const [wide, high] = [(to.x(1) - to.x(0)) / CELLS, (to.y(0) - to.y(1)) / CELLS];
    context.fillStyle = ink("s0");
    for (let column = 0; column < CELLS; column += 1) {
      for (let line = 0; line < CELLS; line += 1) {
        const [cx, cy] = [(column + 0.5) / CELLS, (line + 0.5) / CELLS];
        let total = 0;
        let weight = 0;
        for (const one of sample) {
          const near = 1 / ((inset(one.x) - cx) ** 2 + (inset(one.y) - cy) ** 2 + 0.002) ** 2;
          total += near * one.quality;
          weight += near;
        }
        context.globalAlpha = 0.05 + 0.75 * (total / weight) ** 2;
        context.fillRect(to.x(column / CELLS), to.y((line + 1) / CELLS), wide + 0.5, high + 0.5);
      }
    }
    context.globalAlpha = 1;
    points.forEach((one, place) => {
      context.fillStyle = ink(place === 0 ? "ok" : "fg1");
      context.beginPath();
      context.arc(to.x(inset(one.x)), to.y(inset(one.y)), place === 0 ? 4.5 : 1.8, 0, 7);
      context.fill();
    });
  };
  return <Canvas height={360} label={`${w("contour")} ${x} ${y}`} draw={draw} />;
}
