// What the hub tells by itself: the list of runs, the connection, and for the run on the page its state, hits,
// watchpoints and curves. Pages read these signals; only this file and run.ts write them.
import { batch, computed, signal } from "@preact/signals";
import { expose, socketUrl } from "../base";
import { lang } from "../i18n";
import { ask, HubError } from "../net/api";
import { type Link, LiveSocket, type Wire } from "../net/socket";
import { type Alert, PROTOCOL, type RunBrief, type RunList, type ServerMessage, SUBPROTOCOL } from "../types.gen";

export interface Connection {
  link: Link;
  why: string;
  server: string;
  /** When it was cut, for the banner; 0 while it is whole. */
  since: number;
  lastNews: number;
}

export const connection = signal<Connection>({ link: "connecting", why: "", server: "", since: 0, lastNews: 0 });
export const runs = signal<Map<string, RunBrief>>(new Map());
export const directory = signal("");
/** False until the first list has arrived: an empty list is then really empty. */
export const runsKnown = signal(false);
/** How many there are; more than the list holds while the rest is on its way. */
export const runsTotal = signal(0);
export const alerts = signal<(Alert & { at: number })[]>([]);

/** The hub does not know us: no cookie, or one of another hub. */
export const denied = signal(false);
/** Names for a picker, the newest first. */
export const newest = computed(() =>
  [...runs.value.values()]
    .sort((a, b) => b.started - a.started)
    .slice(0, 200)
    .map((one) => one.run),
);

type Listener = (message: ServerMessage) => void;
const listeners = new Set<Listener>();
const renewals = new Set<() => void>();

export const socket = new LiveSocket({
  proto: PROTOCOL,
  open: () => new WebSocket(socketUrl(), SUBPROTOCOL) as unknown as Wire,
  lang: () => lang.peek(),
  link: (link, why) => {
    const before = connection.peek();
    const cut = link === "waiting" || (link === "connecting" && before.since > 0);
    connection.value = {
      ...before,
      link,
      why: why || (link === "connecting" ? before.why : why),
      server: link === "open" ? why : before.server,
      since: cut ? before.since || Date.now() : 0,
    };
  },
  hear: (message) => {
    batch(() => {
      if (Date.now() - connection.peek().lastNews > 1000) {
        connection.value = { ...connection.peek(), lastNews: Date.now() };
      }
      if (message.t === "welcome") keepRuns(message.runs);
      else if (message.t === "run") keepRuns([message.run]);
      else if (message.t === "alert") alerts.value = [...alerts.peek().slice(-20), { ...message, at: Date.now() }];
      for (const listen of listeners) listen(message);
    });
  },
  renew: () => {
    void fetchRuns();
    for (const renew of renewals) renew();
  },
});

/** Lines of the list that are newer than those we have. */
export function keepRuns(briefs: readonly RunBrief[]): void {
  const next = new Map(runs.peek());
  for (const brief of briefs) next.set(brief.run, brief);
  runs.value = next;
}

/** A screenful at once, then the rest: of thousands of runs the newest are in sight before all are read. */
export async function fetchRuns(): Promise<void> {
  try {
    if (!runsKnown.peek()) listed(await ask<RunList>("runs", { newest: FIRST_RUNS }));
    if (runsTotal.peek() !== runs.peek().size || complete) listed(await ask<RunList>("runs"));
    complete = true;
  } catch (error) {
    if (error instanceof HubError && error.status === 401) denied.value = true;
    // The banner tells that the hub is away; the list we have stays.
  }
}

const FIRST_RUNS = 100;
let complete = false;

function listed(list: RunList): void {
  batch(() => {
    runs.value = new Map(list.runs.map((brief) => [brief.run, brief]));
    runsTotal.value = list.total;
    directory.value = list.directory;
    runsKnown.value = true;
    denied.value = false;
  });
}

/** Hear every message; the returned function ends it. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Told when everything must be fetched again. */
export function onRenewal(renew: () => void): () => void {
  renewals.add(renew);
  return () => renewals.delete(renew);
}

export function start(): void {
  expose("socket", socket);
  socket.subscribe("runs", ["runs", "state"]);
  socket.connect();
  void fetchRuns();
}
