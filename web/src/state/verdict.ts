// The one answer of the run on the page: where the first bad value was born, or which exception ended it. Landing, star,
// card, tree and rank follow it; a hit never does, because a mask is a hit too.
import { computed, effect, signal } from "@preact/signals";
import { lang } from "../i18n";
import { ask } from "../net/api";
import type { HitView, VerdictView } from "../types.gen";
import { onRenewal } from "./live";
import { hits, hitTotal, rank, runName, state } from "./run";

const SOON_MS = 250;

const told = signal<{ run: string; of: VerdictView | null } | null>(null);

/** Whether the hub has answered for this run; until then nobody says that nothing is wrong. */
export const verdictKnown = computed(() => told.value?.run === runName.value && runName.value !== "");
export const verdict = computed<VerdictView | null>(() => (verdictKnown.value ? (told.value?.of ?? null) : null));
/** The guilty node in the graph on the page; empty on another rank, or when the place is not a node. */
export const guiltyNode = computed(() =>
  verdict.value && verdict.value.rank === rank.value && verdict.value.kind !== "exception" ? verdict.value.node : "",
);

/** The hit that is the verdict's own. */
export function isGuilty(hit: HitView, of: VerdictView | null = verdict.value): boolean {
  return (
    of !== null &&
    of.kind !== "exception" &&
    hit.node === of.node &&
    hit.step === of.step &&
    hit.rank === of.rank &&
    hit.birth === "origin" &&
    !isMask(hit)
  );
}

/** Put there on purpose: -Inf and nothing else, in a step in which nothing else was bad. */
export function isMask(hit: HitView): boolean {
  const { stats } = hit;
  return hit.severity === "info" && stats !== null && stats.neg_inf > 0 && stats.nan + stats.pos_inf === 0;
}

export const guiltyHit = computed(() => hits.value.find((hit) => isGuilty(hit)) ?? null);

async function fetchVerdict(run: string): Promise<void> {
  try {
    const of = await ask<VerdictView | null>(`runs/${encodeURIComponent(run)}/verdict`, { lang: lang.peek() });
    if (runName.peek() === run) told.value = { run, of };
  } catch {
    // A run that only begins has no directory yet; its first hit or its next pause asks again.
  }
}

export function followVerdict(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let before = "";
  effect(() => {
    const run = runName.value;
    const now = `${run} ${lang.value} ${state.value?.phase === "running" ? "" : state.value?.rev} ${hitTotal.value > 0}`;
    if (!run || now === before) return;
    const first = !before.startsWith(`${run} `);
    before = now;
    clearTimeout(timer);
    if (first) void fetchVerdict(run);
    else timer = setTimeout(() => void fetchVerdict(run), SOON_MS);
  });
  onRenewal(() => {
    if (runName.peek()) void fetchVerdict(runName.peek());
  });
}
