// A study as columns, and what the charts need of it: positions on axes, ranks by quality, filters.
import { type Axis, axisOf, numberAxis, spread } from "../charts/axis";
import { num } from "../format/number";
import type { StudyColumns } from "../types.gen";

export { type Axis, spread } from "../charts/axis";
export type Row = number; // a place in the columns

export function value(study: StudyColumns, row: Row, target = 0): number {
  const one = study.values[target]?.[row];
  return one === null || one === undefined ? NaN : num(one);
}

export function stateOf(study: StudyColumns, row: Row): string {
  return study.words[study.state[row]];
}

/** Complete trials with a finite value, the best first. */
export function ranked(study: StudyColumns, target = 0): Row[] {
  const sign = study.goals[target] === "maximize" ? -1 : 1;
  return study.number
    .map((_, row) => row)
    .filter((row) => stateOf(study, row) === "complete" && Number.isFinite(value(study, row, target)))
    .sort((a, b) => sign * (value(study, a, target) - value(study, b, target)));
}

/** The best value so far, trial by trial. */
export function bestSoFar(study: StudyColumns, target = 0): { x: number[]; y: number[] } {
  const sign = study.goals[target] === "maximize" ? -1 : 1;
  const x: number[] = [];
  const y: number[] = [];
  let best = NaN;
  for (let row = 0; row < study.number.length; row += 1) {
    const one = value(study, row, target);
    if (stateOf(study, row) !== "complete" || !Number.isFinite(one)) continue;
    if (Number.isNaN(best) || sign * one < sign * best) best = one;
    x.push(study.number[row]);
    y.push(best);
  }
  return { x, y };
}

/** The axis of a parameter: numbers by size or by exponent, words by their order. */
export function parameterAxis(study: StudyColumns, name: string): Axis {
  const column = study.params[study.parameters.indexOf(name)] ?? [];
  return axisOf(name, column as (number | string | boolean | null)[], study.log.includes(name));
}

export function targetAxis(study: StudyColumns, target = 0): Axis {
  // Of complete trials alone: one that ran away before it was pruned would press all others into one line.
  const numbers = ranked(study, target).map((row) => value(study, row, target));
  return numberAxis(study.targets[target], numbers, spread(numbers), (row) => value(study, row, target));
}

/** Rows that fit: every word must occur; `state:pruned`, `lr<0.01` and `loss>1` narrow by value. */
export function matching(study: StudyColumns, text: string): Row[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return study.number
    .map((_, row) => row)
    .filter((row) =>
      words.every((word) => {
        const state = /^state:(.+)$/.exec(word);
        if (state) return stateOf(study, row).startsWith(state[1]);
        const bound = /^([^<>=]+)(<=|>=|<|>|=)(.+)$/.exec(word);
        if (bound) return holds(numberOf(study, row, bound[1]), bound[2], bound[3]);
        const all = `${study.number[row]} ${study.run[row]} ${study.why[row]} ${study.ended[row]} ${stateOf(study, row)} ${study.params.map((column) => String(column[row] ?? "")).join(" ")}`;
        return all.toLowerCase().includes(word);
      }),
    );
}

function numberOf(study: StudyColumns, row: Row, name: string): string | number | null {
  const target = study.targets.findIndex((one) => one.toLowerCase() === name);
  if (target >= 0) return value(study, row, target);
  const parameter = study.parameters.findIndex((one) => one.toLowerCase() === name);
  if (parameter >= 0) return study.params[parameter][row] as string | number | null;
  if (name === "steps") return study.steps[row];
  if (name === "seconds") return study.seconds[row];
  return name === "trial" ? study.number[row] : null;
}

function holds(have: string | number | null, how: string, text: string): boolean {
  if (have === null) return false;
  if (how === "=") return String(have).toLowerCase() === text;
  const want = Number(text);
  const is = Number(have);
  return how === "<" ? is < want : how === "<=" ? is <= want : how === ">" ? is > want : is >= want;
}

/** Rows in an order; `-loss` is downwards. What has no value comes last. */
export function ordered(study: StudyColumns, rows: Row[], sort: string): Row[] {
  const down = sort.startsWith("-") ? -1 : 1;
  const name = sort.replace(/^-/, "");
  const of = (row: Row): string | number | null =>
    name === "state" ? stateOf(study, row) : name === "run" ? study.run[row] : numberOf(study, row, name.toLowerCase());
  return [...rows].sort((a, b) => {
    const [x, y] = [of(a), of(b)];
    const lacks = (one: string | number | null): boolean =>
      one === null || (typeof one === "number" && Number.isNaN(one));
    if (lacks(x) || lacks(y)) return Number(lacks(x)) - Number(lacks(y));
    return down * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
  });
}
