// Where the page opens: at the verdict, in its step, on its rank. When a watchpoint stops training, at the verdict of
// that step, else at the tensor that tripped it. A place that the address names is never left.
import { useSignalEffect } from "@preact/signals";
import { chooseHit } from "../state/debug";
import { query } from "../state/route";
import { graph, hits, hitsKnown, rank, runName, standing, state } from "../state/run";
import { isMask, verdict, verdictKnown } from "../state/verdict";
import type { HitView, State } from "../types.gen";
import { goTo } from "./verdictcard";

let arrived = "";
let placed = "";

export function useLanding(): void {
  useSignalEffect(() => {
    if (!graph.value || !verdictKnown.value) return;
    const run = runName.value;
    const now = state.value;
    const paused = now?.phase === "paused" && now.reason?.kind === "watchpoint" ? now : null;
    const moment = `${run} ${paused ? paused.rev : ""}`;
    const first = arrived.split(" ")[0] !== run;
    const of = verdict.value;
    // Somebody chose this place: by a link, or by hand since.
    const chosen = query.peek().node !== undefined && query.peek().node !== placed;
    if (first && (query.peek().node || query.peek().hit)) {
      arrived = moment;
      return;
    }
    if (
      of &&
      (!paused || of.step === standing(paused)) &&
      (arrived !== moment || !query.peek().node) &&
      (!chosen || paused)
    ) {
      arrived = moment;
      goTo(of, of.kind === "exception" ? "node" : "tensor", false);
      placed = query.peek().node ?? "";
      return;
    }
    if (paused && arrived !== moment && hitsKnown.value) {
      const hit = tripped(paused, hits.value);
      if (!hit) return;
      arrived = moment;
      chooseHit(hit);
      placed = query.peek().node ?? "";
      return;
    }
    if (!paused && first && of === null) arrived = moment;
  });
}

/** The hit that stopped training; a mask only when the watchpoint was set for it. */
export function tripped(now: State, all: readonly HitView[]): HitView | undefined {
  const step = standing(now);
  const here = all.filter((hit) => hit.step === step && hit.rank === (now.reason?.rank ?? rank.peek()));
  const own = here.filter((hit) => hit.watchpoint === now.reason?.watchpoint);
  const from = own.length ? own : here;
  return from.find((hit) => hit.birth === "origin" && !isMask(hit)) ?? from.find((hit) => !isMask(hit)) ?? from[0];
}
