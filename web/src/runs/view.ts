// How the list of runs is looked at: everything here is in the address, so that a link is a view. Only a choice of more
// runs than an address should hold stays in the page.
import { computed, signal } from "@preact/signals";
import { toldOf } from "../i18n";
import { ask, post } from "../net/api";
import { keepRuns, runs, runsTotal } from "../state/live";
import { remember, remembered } from "../state/remembered";
import { change, go, query } from "../state/route";
import { toast } from "../state/toasts";
import type { LabelEdit, Removed, RunBrief } from "../types.gen";
import { groupIn, isOwn, type Line, lines, matching, parameters, sorted } from "./query";

export const OWN_COLUMNS = [
  "state",
  "found",
  "step",
  "loss",
  "hits",
  "ranks",
  "tags",
  "note",
  "started",
  "host",
  "command",
] as const;
const FIRST = ["state", "found", "step", "loss"];
const LAST = ["tags", "started"];
/** More columns of parameters than this are chosen by hand. */
const MOST_PARAMETERS = 5;
const LONGEST_CHOICE = 30;

const everything = computed(() => [...runs.value.values()]);
export const known = computed(() => parameters(everything.value));
const kept = signal<string[] | null>(remembered<string[] | null>("runs.columns", null));

export const columns = computed<string[]>(() => {
  const asked = query.value.cols?.split(",").filter((one) => one.startsWith("--") || isOwn(one)) ?? kept.value;
  if (asked) return asked;
  const telling = known.value.filter((one) => one.varies).slice(0, MOST_PARAMETERS);
  return [...FIRST, ...telling.map((one) => `--${one.name}`), ...LAST];
});

export function setColumns(next: string[] | null): void {
  kept.value = next;
  remember("runs.columns", next);
  change({ cols: null });
}

export const sort = computed(() => query.value.sort ?? "-started");
export const group = computed(() => query.value.group || groupIn(query.value.q ?? ""));
export const shut = computed(() => (query.value.shut ?? "").split(",").filter(Boolean));
export const fitting = computed(() => sorted(matching(everything.value, query.value.q ?? ""), sort.value));
export const shownLines = computed<Line[]>(() => lines(fitting.value, group.value, shut.value));

// ── chosen runs ──

const many = signal<string[] | null>(null);
export const chosen = computed(() =>
  (many.value ?? (query.value.sel ?? "").split(",")).filter((name) => runs.value.has(name)),
);

export function choose(names: string[]): void {
  many.value = names.length > LONGEST_CHOICE ? names : null;
  change({ sel: names.length > LONGEST_CHOICE ? null : names.join(",") });
}

export function toggle(name: string): void {
  const now = chosen.peek();
  choose(now.includes(name) ? now.filter((one) => one !== name) : [...now, name]);
}

/** Their curves laid over each other; more than sixty are no picture any more. */
export function compare(names: string[]): void {
  go(["compare", "scalars"], { runs: names.slice(0, 60).join(","), base: names[0] });
}

// ── saved views ──

export interface View {
  name: string;
  query: Record<string, string>;
}
const OF_A_VIEW = ["q", "sort", "cols", "group", "par"];
export const views = signal<View[]>(remembered<View[]>("runs.views", []));

export function saveView(name: string): void {
  const now = query.peek();
  const saved = Object.fromEntries(OF_A_VIEW.filter((key) => now[key]).map((key) => [key, now[key]]));
  if (!saved.cols) saved.cols = columns.peek().join(",");
  views.value = [...views.peek().filter((one) => one.name !== name), { name, query: saved }];
  remember("runs.views", views.peek());
}

export function openView(view: View): void {
  change({ ...Object.fromEntries(OF_A_VIEW.map((key) => [key, null])), ...view.query }, true);
}

export function dropView(name: string): void {
  views.value = views.peek().filter((one) => one.name !== name);
  remember("runs.views", views.peek());
}

// ── changing runs ──

export async function label(edit: Partial<LabelEdit> & { runs: string[] }): Promise<void> {
  try {
    keepRuns(await post<RunBrief[]>("labels", edit));
  } catch (error) {
    toast("error", (error as Error).message);
  }
}

/** Deletes for good; what was refused is told run by run. */
export async function remove(names: string[]): Promise<void> {
  try {
    const told = await post<Removed>("removals", { runs: names });
    const next = new Map(runs.peek());
    for (const name of told.runs) next.delete(name);
    runs.value = next;
    runsTotal.value -= told.runs.length;
    choose(chosen.peek().filter((name) => !told.runs.includes(name)));
    for (const one of told.refused) toast("warning", toldOf(one));
  } catch (error) {
    toast("error", (error as Error).message);
  }
}

const asked = new Set<string>();

/** What opening a run needs first is fetched when the pointer rests on its name: the hub has it ready then. */
export function prefetch(run: string): void {
  if (asked.has(run)) return;
  asked.add(run);
  const path = `runs/${encodeURIComponent(run)}`;
  void Promise.all([ask(`${path}/verdict`), ask(`${path}/graph`)]).catch(() => asked.delete(run));
}
