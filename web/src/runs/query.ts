// What can be asked of the list of runs: a value of a run by its column's name, words and comparisons that narrow the
// list, an order, groups. Parameters of the command line are columns like any other: `lr < 1e-3 model:gpt -tag:bug`.
import { num } from "../format/number";
import type { RunBrief } from "../types.gen";

export type Cell = number | string | boolean | null;

const OWN: Record<string, (one: RunBrief) => Cell> = {
  run: (one) => one.run,
  state: (one) => (one.live ? one.phase : one.state),
  step: (one) => one.step,
  loss: (one) => (one.loss === null ? null : num(one.loss)),
  hits: (one) => one.hits,
  ranks: (one) => one.world_size,
  host: (one) => one.host,
  started: (one) => one.started,
  found: (one) => one.found,
  command: (one) => one.command.join(" "),
  tags: (one) => one.tags.join(" "),
  note: (one) => one.note,
};
const ALIASES: Record<string, string> = { status: "state", tag: "tags", steps: "step" };

/** The value of a column: one of our own, else the parameter of that name, with or without its dashes. */
export function cellOf(one: RunBrief, name: string): Cell {
  const own = OWN[ALIASES[name] ?? name];
  if (own) return own(one);
  const wanted = name.replace(/^--?/, "");
  const known = one.params[wanted];
  if (known !== undefined) return known;
  const like = Object.keys(one.params).find((key) => key.toLowerCase() === wanted.toLowerCase());
  return like === undefined ? null : one.params[like];
}

export function isOwn(name: string): boolean {
  return name in OWN;
}

type Test = (one: RunBrief) => boolean;
const hay = new WeakMap<RunBrief, string>();

function text(one: RunBrief): string {
  let known = hay.get(one);
  if (known === undefined) {
    known = [one.run, one.command.join(" "), one.host, one.found, one.found_zh, one.tags.join(" "), one.note]
      .join(" ")
      .toLowerCase();
    hay.set(one, known);
  }
  return known;
}

/** Words in quotes stay together, and a comparison may have room around its sign. */
export function words(asked: string): string[] {
  return asked.replace(/\s*(<=|>=|!=|<|>|=)\s*/g, "$1").match(/(?:[^\s"]|"[^"]*"?)+/g) ?? [];
}

/** Every word must hold; `or` begins another way to fit. What is only half written narrows nothing. */
export function matching(all: RunBrief[], asked: string): RunBrief[] {
  const ways: Test[][] = [[]];
  for (const word of words(asked)) {
    if (/^or$/i.test(word)) ways.push([]);
    else if (!/^and$/i.test(word) && !/^group:/i.test(word)) {
      const test = testOf(word);
      if (test) ways[ways.length - 1].push(test);
    }
  }
  const meant = ways.filter((way) => way.length);
  return meant.length ? all.filter((one) => meant.some((way) => way.every((test) => test(one)))) : all;
}

function testOf(word: string): Test | null {
  if (word.startsWith("-") && word.length > 1 && !word.startsWith("--")) {
    const test = testOf(word.slice(1));
    return test && ((one) => !test(one));
  }
  const bound = /^([^<>=!:"]+)(<=|>=|!=|<|>|=)(.*)$/.exec(word);
  if (bound) return bound[3] ? (one) => holds(cellOf(one, bound[1]), bound[2], plain(bound[3])) : null;
  const named = /^([\w.-]+):(.*)$/.exec(word);
  if (named) return named[2] ? (one) => fits(one, named[1].toLowerCase(), plain(named[2]).toLowerCase()) : null;
  const wanted = plain(word).toLowerCase();
  return wanted ? (one) => text(one).includes(wanted) : null;
}

function plain(word: string): string {
  return word.replace(/"/g, "");
}

function fits(one: RunBrief, name: string, wanted: string): boolean {
  if (name === "is") return wanted === "pinned" ? one.pinned : wanted === "live" ? one.live : one.bad === wanted;
  if (name === "found" && (wanted === "nan" || wanted === "inf")) return one.bad === wanted;
  if (name === "tag" || name === "tags") return one.tags.some((tag) => tag.toLowerCase().includes(wanted));
  if (name === "state" || name === "status")
    return one.state.startsWith(wanted) || (one.live && one.phase.startsWith(wanted));
  const have = cellOf(one, name);
  return have !== null && String(have).toLowerCase().includes(wanted);
}

function holds(have: Cell, how: string, wanted: string): boolean {
  if (have === null) return false;
  const number = Number(wanted);
  const numeric = wanted !== "" && !Number.isNaN(number) && typeof have === "number";
  if (how === "=" || how === "!=") {
    const same = numeric
      ? have === number
      : String(have).toLowerCase() === (/^nan$/i.test(wanted) ? "nan" : wanted.toLowerCase());
    return same === (how === "=");
  }
  if (!numeric) return false;
  return how === "<" ? have < number : how === "<=" ? have <= number : how === ">" ? have > number : have >= number;
}

/** `group:model` in the search is the same as choosing it. */
export function groupIn(asked: string): string {
  for (const word of words(asked)) {
    const found = /^group:(.+)$/i.exec(word);
    if (found) return found[1];
  }
  return "";
}

/** The search with the bounds of one column replaced: what dragging over an axis writes. */
export function bounded(asked: string, name: string, low: number | null, high: number | null): string {
  const others = words(asked).filter((word) => {
    const bound = /^([^<>=!:"]+)(<=|>=)/.exec(word);
    return !bound || bound[1] !== name;
  });
  const tidy = (x: number): string => String(Number(x.toPrecision(3)));
  if (low !== null) others.push(`${name}>=${tidy(low)}`);
  if (high !== null) others.push(`${name}<=${tidy(high)}`);
  return others.join(" ");
}

const collator = new Intl.Collator(undefined, { numeric: true });

/** Pinned runs first, then by the column; what has no value, or is not a number, comes last either way. */
export function sorted(all: RunBrief[], sort: string): RunBrief[] {
  const down = sort.startsWith("-") ? -1 : 1;
  const name = down < 0 ? sort.slice(1) : sort;
  const keyed = all.map((one) => ({ one, value: cellOf(one, name) }));
  const lacks = (value: Cell): boolean => value === null || value === "" || Number.isNaN(value);
  keyed.sort((a, b) => {
    if (a.one.pinned !== b.one.pinned) return a.one.pinned ? -1 : 1;
    if (lacks(a.value) || lacks(b.value))
      return Number(lacks(a.value)) - Number(lacks(b.value)) || b.one.started - a.one.started;
    const apart =
      typeof a.value === "number" && typeof b.value === "number"
        ? a.value - b.value
        : collator.compare(String(a.value), String(b.value));
    return down * apart || b.one.started - a.one.started;
  });
  return keyed.map(({ one }) => one);
}

export type Line = { group: string; runs: RunBrief[] } | { run: RunBrief };

/** The list by lines: a headline for each group in the order of its first run, its runs below it unless it is shut. */
export function lines(all: RunBrief[], group: string, shut: readonly string[]): Line[] {
  if (!group) return all.map((run) => ({ run }));
  const groups = new Map<string, RunBrief[]>();
  for (const one of all) {
    const value = cellOf(one, group);
    const key = value === null || value === "" ? "–" : String(value);
    const known = groups.get(key);
    if (known) known.push(one);
    else groups.set(key, [one]);
  }
  return [...groups].flatMap(([key, runs]) => [
    { group: key, runs },
    ...(shut.includes(key) ? [] : runs.map((run) => ({ run }))),
  ]);
}

export interface Parameter {
  name: string;
  /** How many runs have it. */
  runs: number;
  /** Whether two runs differ in it. */
  varies: boolean;
  numeric: boolean;
}

/** Every parameter of these runs: those in which runs differ first, then those that most of them have. */
export function parameters(all: RunBrief[]): Parameter[] {
  const known = new Map<string, Parameter & { first: Cell }>();
  for (const one of all) {
    for (const [name, value] of Object.entries(one.params)) {
      const told = known.get(name);
      if (!told)
        known.set(name, { name, runs: 1, varies: false, numeric: typeof value === "number", first: value as Cell });
      else {
        told.runs += 1;
        told.varies ||= told.first !== value;
        told.numeric &&= typeof value === "number";
      }
    }
  }
  for (const one of known.values()) one.varies ||= one.runs < all.length;
  return [...known.values()].sort((a, b) => Number(b.varies) - Number(a.varies) || b.runs - a.runs);
}
