// The run on the page: its state, hits, watchpoints and graph, first fetched and then kept current by the socket.
import { batch, computed, effect, signal } from "@preact/signals";
import { Model } from "../graph/model";
import { t, toldOf } from "../i18n";
import { ask, askText, HubError } from "../net/api";
import type {
  Ack,
  Command,
  GraphColumns,
  HitList,
  HitView,
  RunDetail,
  Scalars,
  ServerMessage,
  State,
  StepNews,
  WatchEdit,
  WatchList,
  WatchpointView,
} from "../types.gen";
import { connection, listen, onRenewal, runs, socket } from "./live";
import { place } from "./route";
import { toast } from "./toasts";

const HIT_PAGE = 1000;
const MOST_HITS = 20_000;
const GRAPH_PAUSE_MS = 700;

export const runName = computed(() => (place.value.path[0] === "runs" ? (place.value.path[1] ?? "") : ""));
export const rank = computed(() => Number(place.value.query.rank ?? runs.value.get(runName.value)?.ranks[0] ?? 0));

export const state = signal<State | null>(null);
export const detail = signal<RunDetail | null>(null);
export const hits = signal<HitView[]>([]);
export const hitTotal = signal(0);
export const hitsKnown = signal(false);
/** How many there are beyond those that were fetched. */
export const hitsLeft = computed(() => Math.max(0, hitTotal.value - hits.value.length));
export const watchpoints = signal<WatchpointView[]>([]);
export const lastStep = signal<StepNews | null>(null);
export const graph = signal<Model | null>(null);
export const problem = signal<HubError | null>(null);
/** Points of curves as they arrive; the scalars page adds them to what it fetched. */
export const fresh = signal<Scalars | null>(null);

/** The step training stands in: the one that ended last, or, between two nodes, the one under way. */
export function standing(now: State): number {
  return now.place ? now.step + 1 : now.step;
}

/** The step that is shown: the one in the address, else where the run stands. */
export const shownStep = computed<number>(() => {
  const asked = place.value.query.step;
  return asked !== undefined ? Number(asked) : state.value ? standing(state.value) : (detail.value?.last_step ?? 0);
});

export const isLive = computed(() => {
  const phase = state.value?.phase;
  return phase !== undefined && phase !== "offline" && phase !== "ended" && phase !== "lost" && phase !== "detached";
});

/** Why no command can be given now; empty when one can. */
export const noControl = computed<string>(() => {
  if (connection.value.link !== "open") return t("control.noConnection");
  const phase = state.value?.phase;
  if (phase === "offline" || phase === "ended") return t("control.offline");
  if (phase === "lost") return t("control.lost");
  if (phase === "detached") return t("control.detached");
  return phase === "terminating" ? t("control.terminating") : "";
});

function inOrder(all: HitView[]): HitView[] {
  return all.sort((a, b) => a.step - b.step || a.rank - b.rank || a.order - b.order || a.id - b.id);
}

/** Hits by rank and number: the same one may come from the list and from the socket. */
export function withHits(before: readonly HitView[], more: readonly HitView[]): HitView[] {
  const known = new Map(before.map((hit) => [`${hit.rank}.${hit.id}`, hit]));
  for (const hit of more) known.set(`${hit.rank}.${hit.id}`, hit);
  return inOrder([...known.values()]);
}

let hitsListed = 0;
let hitsAsked = "";

/** The next page of hits, or those of one step or all origins wherever they are in the list. */
export async function moreHits(narrow: { step?: number; birth?: "origin" } = {}): Promise<void> {
  const name = runName.peek();
  const paged = narrow.step === undefined && narrow.birth === undefined;
  const key = `${name} ${paged ? hitsListed : JSON.stringify(narrow)}`;
  if (!name || !hitsLeft.peek() || hitsAsked.includes(`${key};`)) return;
  hitsAsked += `${key};`;
  try {
    const answer = await ask<HitList>(`runs/${encodeURIComponent(name)}/hits`, {
      limit: HIT_PAGE,
      offset: paged ? hitsListed : 0,
      step: narrow.step,
      birth: narrow.birth,
    });
    if (runName.peek() !== name) return;
    if (paged) hitsListed += answer.hits.length;
    hits.value = withHits(hits.peek(), answer.hits);
  } catch {
    hitsAsked = hitsAsked.replace(`${key};`, "");
  }
}

/** The graph as the hub sent it, for the layout's thread. */
export const graphText = signal("");
/** While a panel draws the graph: the text of which it shows something already. */
export const graphDrawn = signal<string | null>(null);
/** The hub has answered, and the run has no graph: it has not trained yet. */
export const graphMissing = signal(false);
const LARGE_GRAPH = 1_000_000;
let graphAsked = "";
let graphTimer: ReturnType<typeof setTimeout> | undefined;

async function fetchAll(name: string): Promise<void> {
  const path = `runs/${encodeURIComponent(name)}`;
  const own =
    <T>(store: (answer: T) => void) =>
    (answer: T): void => {
      if (runName.peek() === name) batch(() => store(answer));
    };
  const failed = (error: unknown): void => {
    if (runName.peek() === name && error instanceof HubError && error.status === 404) problem.value = error;
  };
  await Promise.all([
    ask<RunDetail>(path).then(
      own((answer) => (detail.value = answer)),
      failed,
    ),
    ask<State>(`${path}/state`).then(
      own((answer) => (state.value = answer)),
      failed,
    ),
    ask<HitList>(`${path}/hits`, { limit: HIT_PAGE }).then(
      own((answer) => {
        hits.value = withHits(hits.peek(), answer.hits);
        hitsListed = Math.max(hitsListed, answer.hits.length);
        hitTotal.value = answer.total;
        hitsKnown.value = true;
      }),
      failed,
    ),
    ask<WatchList>(`${path}/watchpoints`).then(
      own((answer) => (watchpoints.value = answer.watchpoints)),
      failed,
    ),
    // The first welcome makes everything be asked again at once; the graph is large and news of it come by themselves.
    graphAsked === name && !graph.peek() ? null : fetchGraph(name),
  ]);
}

async function fetchGraph(name: string): Promise<void> {
  try {
    graphAsked = name;
    const text = await askText(`runs/${encodeURIComponent(name)}/graph`, { rank: rank.peek() });
    if (runName.peek() !== name) return;
    graphMissing.value = !text || /"name":\[\]/.test(text.slice(0, 4000));
    // The worker gets the text first and reads it while we do: cloning the objects would take longer than both.
    graphText.value = text;
    // A large graph is first seen, then known: the model is made twice, and the thread's needs the processor more.
    if (text.length > LARGE_GRAPH && !graph.peek() && !place.peek().query.node) await seen(text);
    if (runName.peek() === name && graphText.peek() === text) graph.value = new Model(JSON.parse(text) as GraphColumns);
  } catch {
    if (runName.peek() === name) graphMissing.value = true;
    // A run without steps has no graph yet; the page says so, and news of the graph ask again.
  }
}

/** Until a panel shows this graph, or none is there to show it. */
function seen(text: string): Promise<void> {
  return new Promise((yes) => {
    const end = effect(() => {
      if (graphDrawn.value !== null && graphDrawn.value !== text) return;
      queueMicrotask(() => end());
      yes();
    });
  });
}

function hear(message: ServerMessage): void {
  if (!("run" in message) || message.run !== runName.peek()) return;
  if (message.t === "state") {
    const ended = message.phase === "ended" && state.peek()?.phase !== "ended";
    state.value = message;
    if (ended) void fetchAll(message.run);
  } else if (message.t === "hit") {
    const before = hits.peek();
    hits.value = withHits(before, [message.hit]);
    hitTotal.value += hits.peek().length - before.length;
  } else if (message.t === "wp") {
    const others = watchpoints.peek().filter((one) => one.id !== message.watchpoint.id);
    const next = message.op === "remove" ? others : [...others, message.watchpoint];
    watchpoints.value = next.sort((a, b) => a.id - b.id);
  } else if (message.t === "step") {
    lastStep.value = message;
  } else if (message.t === "scalars") {
    fresh.value = message;
  } else if (message.t === "log") {
    toast(message.level === "info" || message.level === "debug" ? "info" : "warning", toldOf(message));
  } else if (message.t === "graph") {
    clearTimeout(graphTimer);
    graphTimer = setTimeout(() => void fetchGraph(message.run), graph.peek() ? GRAPH_PAUSE_MS : 0);
  }
}

/** Follow whichever run the address names. */
export function followRun(): void {
  listen(hear);
  onRenewal(() => {
    if (runName.peek()) void fetchAll(runName.peek());
  });
  let before = "";
  let began = { run: "", at: 0 };
  effect(() => {
    const name = runName.value;
    const key = `${name}#${rank.value}`;
    const made = runs.value.get(name)?.started ?? 0;
    // The same name with a later beginning: the run was deleted and recorded anew.
    const anew = name !== "" && began.run === name && began.at > 0 && made > began.at + 0.5;
    if (began.run !== name || made > began.at) began = { run: name, at: made };
    if (key === before && !anew) return;
    before = key;
    graphAsked = "";
    batch(() => {
      graphText.value = "";
      for (const one of [state, detail, lastStep, graph, problem, fresh]) one.value = null;
      hits.value = [];
      watchpoints.value = [];
      hitTotal.value = 0;
      hitsKnown.value = false;
      hitsListed = 0;
      hitsAsked = "";
      graphMissing.value = false;
    });
    socket.unsubscribe("run");
    if (!name) return;
    socket.subscribe("run", ["state", "steps", "scalars", "hits", "watchpoints", "graph", "log"], name);
    void fetchAll(name);
  });
}

/** What is shown must be marked, also when its hits lie beyond the pages that were read so far. */
export function followHits(): void {
  effect(() => {
    if (!hitsLeft.value || !hitsKnown.value) return;
    void moreHits({ step: shownStep.value });
    // Folded, thousands are three lines: the counts are only right with all of them.
    if (hits.value.length < MOST_HITS) void moreHits();
    const wanted = place.value.query.hit;
    if (wanted && !hits.value.some((hit) => `${hit.rank}.${hit.id}` === wanted)) void moreHits();
  });
}

/** Move the run; a refusal is told in a toast. True when the hub took it. */
export async function command(op: Command["op"], more: Partial<Command> = {}): Promise<boolean> {
  const seen = state.peek();
  if (!seen) return false;
  const optimistic = {
    continue: "running",
    pause: "pausing",
    step: "stepping",
    next: "stepping",
    pynative: "stepping",
  } as const;
  const answer = await told((id) => ({ t: "cmd", id, op, run: seen.run, rev: seen.rev, ...more }));
  if (answer && op in optimistic && state.peek()?.rev === seen.rev) {
    state.value = { ...seen, rev: answer.rev || seen.rev, phase: optimistic[op as keyof typeof optimistic] };
  }
  return answer !== null;
}

/** Change watchpoints; the answer's result, or null when refused. */
export async function edit(op: WatchEdit["op"], more: Partial<WatchEdit> = {}): Promise<unknown> {
  const answer = await told((id) => ({ t: "watch", id, op, run: runName.peek(), ...more }));
  return answer ? (answer.result ?? {}) : null;
}

async function told(make: Parameters<typeof socket.request>[0]): Promise<Ack | null> {
  try {
    const answer = await socket.request(make);
    if (answer.t === "ack") return answer;
    if (answer.t === "nack")
      toast(answer.code === "stale_state" ? "warning" : "error", refusal(answer.code), toldOf(answer));
  } catch (error) {
    toast("error", t("nack.cut"), String((error as Error).message));
  }
  return null;
}

function refusal(code: string): string {
  if (code === "stale_state") return t("nack.stale_state");
  if (code === "not_paused") return t("nack.not_paused");
  if (code === "not_running") return t("nack.not_running");
  if (code === "denied") return t("nack.denied");
  return code === "timeout" ? t("nack.timeout") : t("nack.other");
}

/** What a message says, in the language of the page. */
